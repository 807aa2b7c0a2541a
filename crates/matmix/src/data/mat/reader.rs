//! The bytes of a MATLAB version 5 file (what `save -v6` and `save -v7` write): its numeric arrays.
//!
//! The file is a header of 128 bytes and a row of elements, each a tag (type, size) and its data. A variable is
//! an element that holds others: flags, dimensions, name, numbers. Version 7 packs each variable with zlib.
//! The numbers are stored in the smallest type that holds them, whatever the class of the variable.

use std::io::Read;

use flate2::bufread::ZlibDecoder;

use crate::data::elements::{self, Elements};
use crate::data::source::Element as Worked;

type Problem<T> = std::result::Result<T, String>;

const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;
const HEADER: usize = 128;
/// How much of a packed variable is unpacked to learn its name and axes.
const START: usize = 4096;

/// A numeric array that is still in the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Variable<'b> {
    pub(super) name: String,
    pub(super) dims: Vec<usize>,
    numbers: Numbers<'b>,
    big: bool,
}

/// Where the numbers of a variable are, and of which of MATLAB's types.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Numbers<'b> {
    Plain {
        kind: u32,
        body: &'b [u8],
    },
    /// In a zlib stream, so many bytes of it, after others.
    Packed {
        kind: u32,
        size: usize,
        after: usize,
        stream: &'b [u8],
    },
}

impl Variable<'_> {
    /// The number of elements.
    pub(super) fn count(&self) -> usize {
        self.dims.iter().product()
    }

    /// The bytes of the elements as they are worked on.
    pub(super) fn bytes(&self) -> u64 {
        let (Numbers::Plain { kind, .. } | Numbers::Packed { kind, .. }) = self.numbers;
        self.count() as u64 * worked_in(kind).size() as u64
    }

    /// The elements in MATLAB's order: the first axis varies fastest.
    pub(super) fn elements(&self) -> Problem<Elements> {
        let named = |e: String| format!("variable `{}`: {e}", self.name);
        match self.numbers {
            Numbers::Plain { kind, body } => decode(kind, body, self.big).map_err(named),
            Numbers::Packed { kind, size, after, stream } => {
                let unpacked = inflate(stream, after, size).map_err(named)?;
                decode(kind, &unpacked, self.big).map_err(named)
            }
        }
    }
}

/// What a file holds.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Contents<'b> {
    pub(super) variables: Vec<Variable<'b>>,
    /// The variables that are no real numbers: cells, structs, texts, sparse and complex arrays.
    pub(super) skipped: Vec<String>,
}

/// Goes through a file and reads what stands before the numbers of each variable; the error says what is wrong with it.
pub(super) fn parse(bytes: &[u8]) -> Problem<Contents<'_>> {
    let big = header(bytes)?;
    let mut contents = Contents::default();
    let mut rest = Bytes { bytes: &bytes[HEADER..], big };
    while !rest.bytes.is_empty() {
        let at = bytes.len() - rest.bytes.len();
        let here = |e: String| format!("at byte {at}: {e}");
        let element = rest.element().map_err(here)?;
        let found = match element.kind {
            MATRIX => plain(Bytes { bytes: element.body, big }).map_err(here)?,
            COMPRESSED => packed(element.body, big).map_err(here)?,
            _ => continue,
        };
        match found {
            Matrix::Numbers(variable) => contents.variables.push(variable),
            Matrix::Other(name) => contents.skipped.push(name),
        }
    }
    Ok(contents)
}

/// Whether the numbers are big-endian.
fn header(bytes: &[u8]) -> Problem<bool> {
    if bytes.len() < HEADER {
        return Err(format!(
            "it has {} bytes; a version 5 file begins with a header of {HEADER}",
            bytes.len()
        ));
    }
    if bytes[..4].contains(&0) {
        return Err("it looks like a version 4 file; in MATLAB save it with -v7".into());
    }
    match &bytes[126..128] {
        b"IM" => Ok(false),
        b"MI" => Ok(true),
        _ => Err("it has no mark of its byte order (IM or MI) at byte 126; it is no version 5 file".into()),
    }
}

/// Whether a file is one of version 7.3, which is HDF5 behind a header of MATLAB's.
pub(super) fn is_hdf5(bytes: &[u8]) -> bool {
    let hdf5 = b"\x89HDF\r\n\x1a\n";
    bytes.starts_with(b"MATLAB 7.3") || bytes.starts_with(hdf5) || bytes.get(512..520) == Some(hdf5)
}

enum Matrix<'b> {
    Numbers(Variable<'b>),
    Other(String),
}

/// What stands before the numbers of a variable.
struct Before {
    name: String,
    dims: Vec<usize>,
    kind: u32,
    /// The bytes of the numbers.
    size: usize,
}

fn plain(mut bytes: Bytes<'_>) -> Problem<Matrix<'_>> {
    let big = bytes.big;
    Ok(match before(&mut bytes)? {
        Ok(Before { name, dims, kind, size }) => {
            let body = bytes.take(size).map_err(|e| format!("variable `{name}`: {e}"))?;
            Matrix::Numbers(Variable { name, dims, numbers: Numbers::Plain { kind, body }, big })
        }
        Err(other) => Matrix::Other(other),
    })
}

/// The same for a variable in a zlib stream, of which only the beginning is unpacked.
fn packed(stream: &[u8], big: bool) -> Problem<Matrix<'_>> {
    let mut start = Vec::new();
    let unpacked = ZlibDecoder::new(stream).take(START as u64).read_to_end(&mut start);
    // A stream that breaks off later is a matter for whoever needs the rest.
    if let (Err(e), true) = (unpacked, start.len() < 8) {
        return Err(format!("a packed variable cannot be unpacked: {e}"));
    }
    let mut bytes = Bytes { bytes: &start, big };
    let (kind, size) = (bytes.u32()?, bytes.u32()? as usize);
    if kind != MATRIX {
        return Err(format!("a packed element of type {kind}; only variables (type {MATRIX}) are packed"));
    }
    bytes.bytes = &bytes.bytes[..size.min(bytes.bytes.len())];
    Ok(match before(&mut bytes)? {
        Ok(Before { name, dims, kind, size }) => {
            let after = start.len() - bytes.bytes.len();
            Matrix::Numbers(Variable {
                name,
                dims,
                numbers: Numbers::Packed { kind, size, after, stream },
                big,
            })
        }
        Err(other) => Matrix::Other(other),
    })
}

/// The numbers in a packed element. The vector grows with what comes out of the stream, and no further than the size
/// that the variable has.
fn inflate(stream: &[u8], after: usize, size: usize) -> Problem<Vec<u8>> {
    let mut stream = ZlibDecoder::new(stream);
    let broken = |e: std::io::Error| format!("it cannot be unpacked: {e}");
    std::io::copy(&mut stream.by_ref().take(after as u64), &mut std::io::sink()).map_err(broken)?;
    let mut body = Vec::new();
    stream.take(size as u64).read_to_end(&mut body).map_err(broken)?;
    if body.len() < size {
        return Err(format!("it should have {size} bytes, but {} come out", body.len()));
    }
    Ok(body)
}

/// Flags, axes, name and the tag of the numbers; the name alone of what has no real numbers.
fn before(bytes: &mut Bytes<'_>) -> Problem<std::result::Result<Before, String>> {
    if bytes.bytes.is_empty() {
        // MATLAB writes an empty matrix without any content.
        return Ok(Err(String::new()));
    }
    let flags = bytes.element()?;
    let flags = Bytes { bytes: flags.body, big: bytes.big }.u32()?;
    let (class, complex) = (flags & 0xff, flags & 0x0800 != 0);
    // An opaque object (class 17) has no dimensions: its name follows at once.
    if class == 17 {
        return Ok(Err(name(bytes.element()?.body)));
    }
    let dims = bytes.element()?;
    let name = name(bytes.element()?.body);
    if !(6..=15).contains(&class) || complex {
        return Ok(Err(name));
    }
    let dims: Problem<Vec<usize>> = dims
        .body
        .chunks_exact(4)
        .map(|b| {
            let dim = Bytes { bytes: b, big: bytes.big }.u32()?;
            i32::try_from(dim)
                .ok()
                .map(|d| d as usize)
                .ok_or(format!("variable `{name}` has a negative side"))
        })
        .collect();
    let dims = dims?;
    let (kind, size) = bytes.tag().map_err(|e| format!("variable `{name}`: {e}"))?;
    let width = stored_size(kind).map_err(|e| format!("variable `{name}`: {e}"))?;
    let needed = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    if dims.len() < 2 || needed != Some(size / width) {
        return Err(format!(
            "variable `{name}` is {}, but holds {} numbers",
            crate::error::sides(&dims),
            size / width
        ));
    }
    Ok(Ok(Before { name, dims, kind, size }))
}

fn name(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_string()
}

/// Bytes per number of one of MATLAB's types.
fn stored_size(kind: u32) -> Problem<usize> {
    Ok(match kind {
        1 | 2 => 1,
        3 | 4 => 2,
        5..=7 => 4,
        9 | 12 | 13 => 8,
        other => return Err(format!("its numbers are of the unknown type {other}")),
    })
}

/// The type that they are worked on in.
fn worked_in(kind: u32) -> Worked {
    match kind {
        2 => Worked::U8,
        1 | 3 | 4 | 7 => Worked::F32,
        _ => Worked::F64,
    }
}

fn decode(kind: u32, body: &[u8], big: bool) -> Problem<Elements> {
    macro_rules! numbers {
        ($type:ty, $to:ty) => {
            body.chunks_exact(size_of::<$type>())
                .map(|b| {
                    let mut bytes = [0; size_of::<$type>()];
                    bytes.copy_from_slice(b);
                    (if big { <$type>::from_be_bytes(bytes) } else { <$type>::from_le_bytes(bytes) }) as $to
                })
                .collect()
        };
    }
    Ok(match kind {
        1 => Elements::F32(numbers!(i8, f32)),
        2 => Elements::U8(body.to_vec()),
        3 => Elements::F32(numbers!(i16, f32)),
        4 => Elements::F32(numbers!(u16, f32)),
        5 => Elements::F64(numbers!(i32, f64)),
        6 => Elements::F64(numbers!(u32, f64)),
        7 => Elements::F32(numbers!(f32, f32)),
        9 => Elements::F64(numbers!(f64, f64)),
        12 => elements::decode(if big { ">i8" } else { "<i8" }, body)?,
        13 => elements::decode(if big { ">u8" } else { "<u8" }, body)?,
        other => return Err(format!("its numbers are of the unknown type {other}")),
    })
}

struct Element<'b> {
    kind: u32,
    body: &'b [u8],
}

/// What is left to read.
struct Bytes<'b> {
    bytes: &'b [u8],
    big: bool,
}

impl<'b> Bytes<'b> {
    fn take(&mut self, count: usize) -> Problem<&'b [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or_else(|| {
            format!("{count} bytes should follow, but {} are there; the file is cut short", self.bytes.len())
        })?;
        self.bytes = rest;
        Ok(taken)
    }

    fn u32(&mut self) -> Problem<u32> {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.take(4)?);
        Ok(if self.big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// Type and size of an element, whose content follows.
    fn tag(&mut self) -> Problem<(u32, usize)> {
        let tag = self.u32()?;
        if tag >> 16 == 0 {
            return Ok((tag, self.u32()? as usize));
        }
        // Up to four bytes stand in the tag itself, with their number in its upper half.
        let (kind, size) = (tag & 0xffff, (tag >> 16) as usize);
        if size > 4 {
            return Err(format!("an element of {size} bytes in a tag that holds 4"));
        }
        Ok((kind, size))
    }

    fn element(&mut self) -> Problem<Element<'b>> {
        let before = self.bytes.len();
        let (kind, size) = self.tag()?;
        let body = self.take(size)?;
        // Elements begin at multiples of eight bytes (small ones have a tag of four); the last is not always filled up.
        if kind != COMPRESSED {
            let used = before - self.bytes.len();
            let padding = (used.next_multiple_of(8) - used).min(self.bytes.len());
            self.take(padding)?;
        }
        Ok(Element { kind, body })
    }
}
