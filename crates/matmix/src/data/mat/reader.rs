//! The bytes of a MATLAB version 5 file (what `save -v6` and `save -v7` write): its numeric arrays.
//!
//! The file is a header of 128 bytes and a row of elements, each a tag (type, size) and its data. A variable is
//! an element that holds others: flags, dimensions, name, numbers. Version 7 packs each variable with zlib.
//! The numbers are stored in the smallest type that holds them, whatever the class of the variable.

use std::io::Read;

use flate2::bufread::ZlibDecoder;

use crate::data::npy::Elements;

type Problem<T> = std::result::Result<T, String>;

const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;
const HEADER: usize = 128;

/// A numeric array, its elements in MATLAB's order: the first axis varies fastest.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) dims: Vec<usize>,
    pub(super) elements: Elements,
}

/// What a file holds.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Contents {
    pub(super) variables: Vec<Variable>,
    /// The variables that are no real numbers: cells, structs, texts, sparse and complex arrays.
    pub(super) skipped: Vec<String>,
}

/// Decodes a whole file; the error says what is wrong with it.
pub(super) fn parse(bytes: &[u8]) -> Problem<Contents> {
    let big = header(bytes)?;
    let mut contents = Contents::default();
    let mut rest = Bytes { bytes: &bytes[HEADER..], big };
    while !rest.bytes.is_empty() {
        let at = bytes.len() - rest.bytes.len();
        let element = rest.element().map_err(|e| format!("at byte {at}: {e}"))?;
        let unpacked;
        let body = match element.kind {
            MATRIX => element.body,
            COMPRESSED => {
                unpacked = inflate(element.body, big).map_err(|e| format!("at byte {at}: {e}"))?;
                &unpacked
            }
            _ => continue,
        };
        match matrix(Bytes { bytes: body, big }).map_err(|e| format!("at byte {at}: {e}"))? {
            Matrix::Numbers(variable) => contents.variables.push(variable),
            Matrix::Other(name) => contents.skipped.push(name),
        }
    }
    Ok(contents)
}

/// Whether the numbers are big-endian.
fn header(bytes: &[u8]) -> Problem<bool> {
    let hdf5 = b"\x89HDF\r\n\x1a\n";
    if bytes.starts_with(b"MATLAB 7.3") || bytes.starts_with(hdf5) || bytes.get(512..520) == Some(hdf5) {
        return Err(
            "it is a version 7.3 (HDF5) file; in MATLAB save it with -v7: save('x.mat', 'fea', 'gnd', '-v7')"
                .into(),
        );
    }
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

/// The matrix inside a packed element. The vector grows with what comes out of the stream, and no further than
/// the size that stands at its start.
fn inflate(packed: &[u8], big: bool) -> Problem<Vec<u8>> {
    let mut stream = ZlibDecoder::new(packed);
    let mut tag = [0; 8];
    let broken = |e: std::io::Error| format!("a packed variable cannot be unpacked: {e}");
    stream.read_exact(&mut tag).map_err(broken)?;
    let mut start = Bytes { bytes: &tag, big };
    let (kind, size) = (start.u32()?, start.u32()? as usize);
    if kind != MATRIX {
        return Err(format!("a packed element of type {kind}; only variables (type {MATRIX}) are packed"));
    }
    let mut body = Vec::new();
    stream.take(size as u64).read_to_end(&mut body).map_err(broken)?;
    if body.len() < size {
        return Err(format!("a packed variable should have {size} bytes, but {} come out", body.len()));
    }
    Ok(body)
}

enum Matrix {
    Numbers(Variable),
    Other(String),
}

fn matrix(mut bytes: Bytes<'_>) -> Problem<Matrix> {
    if bytes.bytes.is_empty() {
        // MATLAB writes an empty matrix without any content.
        return Ok(Matrix::Other(String::new()));
    }
    let flags = bytes.element()?;
    let flags = Bytes { bytes: flags.body, big: bytes.big }.u32()?;
    let (class, complex) = (flags & 0xff, flags & 0x0800 != 0);
    // An opaque object (class 17) has no dimensions: its name follows at once.
    if class == 17 {
        return Ok(Matrix::Other(name(bytes.element()?.body)));
    }
    let dims = bytes.element()?;
    let name = name(bytes.element()?.body);
    if !(6..=15).contains(&class) || complex {
        return Ok(Matrix::Other(name));
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
    let numbers = bytes.element().map_err(|e| format!("variable `{name}`: {e}"))?;
    let elements = decode(&numbers, bytes.big).map_err(|e| format!("variable `{name}`: {e}"))?;
    let needed = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    if dims.len() < 2 || needed != Some(elements.len()) {
        return Err(format!(
            "variable `{name}` is {}, but holds {} numbers",
            crate::error::sides(&dims),
            elements.len()
        ));
    }
    Ok(Matrix::Numbers(Variable { name, dims, elements }))
}

fn name(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_string()
}

fn decode(element: &Element<'_>, big: bool) -> Problem<Elements> {
    let body = element.body;
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
    Ok(match element.kind {
        1 => Elements::F32(numbers!(i8, f32)),
        2 => Elements::U8(body.to_vec()),
        3 => Elements::F32(numbers!(i16, f32)),
        4 => Elements::F32(numbers!(u16, f32)),
        5 => Elements::F64(numbers!(i32, f64)),
        6 => Elements::F64(numbers!(u32, f64)),
        7 => Elements::F32(numbers!(f32, f32)),
        9 => Elements::F64(numbers!(f64, f64)),
        12 => Elements::F64(numbers!(i64, f64)),
        13 => Elements::F64(numbers!(u64, f64)),
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

    fn element(&mut self) -> Problem<Element<'b>> {
        let tag = self.u32()?;
        if tag >> 16 != 0 {
            // Up to four bytes stand in the tag itself, with their number in its upper half.
            let (kind, size) = (tag & 0xffff, (tag >> 16) as usize);
            let body = self.take(4)?;
            let body = body
                .get(..size)
                .ok_or_else(|| format!("an element of {size} bytes in a tag that holds 4"))?;
            return Ok(Element { kind, body });
        }
        let size = self.u32()? as usize;
        let body = self.take(size)?;
        if tag != COMPRESSED {
            // Elements begin at multiples of eight bytes; the last one is not always filled up.
            let padding = (size.next_multiple_of(8) - size).min(self.bytes.len());
            self.take(padding)?;
        }
        Ok(Element { kind: tag, body })
    }
}
