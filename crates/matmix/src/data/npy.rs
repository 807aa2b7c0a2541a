//! NumPy's `.npy` format: memory-mapped in, written out.
//!
//! Files in C order stay on disk; `u8`, `f32` and `f64` in this machine's byte order are worked on as they are, every
//! other real type is converted chunk by chunk. Fortran order is put in order once, in memory.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::atomic::write_file;
pub(crate) use super::elements::{
    Elements, decode, decode_into, element_size, from_fortran_order, worked_bytes, worked_in,
};
use super::flat::{FlatFile, map_known};
use super::limit::Limit;
use super::source::{Buffer, Element, InMemory, Scalar, Source};
use crate::error::{Action, Error, FileKind, Result, sides};

const FORMAT: FileKind = FileKind::Npy;
pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";
/// What is read of a stream at a time, in bytes.
const PIECE: usize = 1 << 20;

/// What the header of a `.npy` file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// The element type as NumPy writes it: `<f4`, `|u1`.
    pub descr: String,
    /// Whether the first axis varies fastest.
    pub fortran_order: bool,
    /// The axes.
    pub shape: Vec<usize>,
    /// Where the elements begin, in bytes.
    pub offset: usize,
}

impl Header {
    /// Reads the header at the start of `bytes`; the error says what is wrong with it.
    pub(crate) fn parse(bytes: &[u8]) -> std::result::Result<Self, String> {
        if bytes.len() < 10 || &bytes[..6] != MAGIC {
            return Err("it does not begin with \\x93NUMPY".into());
        }
        let (start, length): (usize, usize) = match bytes[6] {
            1 => (10, usize::from(u16::from_le_bytes([bytes[8], bytes[9]]))),
            2 | 3 if bytes.len() >= 12 => {
                (12, u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize)
            }
            2 | 3 => return Err("it ends inside the header".into()),
            version => return Err(format!("its version is {version}; 1 to 3 are known")),
        };
        let text = start
            .checked_add(length)
            .and_then(|end| bytes.get(start..end))
            .ok_or_else(|| format!("its header should have {length} bytes, but the file ends before"))?;
        let text = std::str::from_utf8(text).map_err(|_| "its header is not text".to_string())?;
        let descr = quoted(after(text, "descr")?)
            .ok_or("its elements are records; plain numbers are needed")?
            .to_string();
        let order = after(text, "fortran_order")?;
        let fortran_order = match order {
            o if o.starts_with("True") => true,
            o if o.starts_with("False") => false,
            _ => return Err("its header does not say whether the order is Fortran's".into()),
        };
        let axes = after(text, "shape")?;
        let axes = axes
            .strip_prefix('(')
            .and_then(|a| a.split_once(')'))
            .ok_or("the shape in its header is not a tuple")?
            .0;
        let mut shape = Vec::new();
        for axis in axes.split(',').map(str::trim).filter(|a| !a.is_empty()) {
            let axis = axis.strip_suffix('L').unwrap_or(axis);
            shape.push(axis.parse().map_err(|_| format!("the axis `{axis}` in its header is no size"))?);
        }
        Ok(Header { descr, fortran_order, shape, offset: start + length })
    }

    /// The number of elements, if it can be counted.
    pub(crate) fn count(&self) -> Option<usize> {
        self.shape.iter().try_fold(1usize, |n, &axis| n.checked_mul(axis))
    }
}

/// What follows `'key':` in the text of a header.
fn after<'t>(text: &'t str, key: &str) -> std::result::Result<&'t str, String> {
    for quote in ['\'', '"'] {
        let found = text.split_once(&format!("{quote}{key}{quote}"));
        if let Some(rest) = found.and_then(|(_, rest)| rest.trim_start().strip_prefix(':')) {
            return Ok(rest.trim_start());
        }
    }
    Err(format!("its header has no `{key}`"))
}

fn quoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|c| *c == '\'' || *c == '"')?;
    text[1..].split_once(quote).map(|(inside, _)| inside)
}

/// An array in memory: what a `.npy` file or a member of an `.npz` archive holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Array {
    /// The axes.
    pub shape: Vec<usize>,
    /// The elements in C order.
    pub elements: Elements,
}

/// Decodes a whole `.npy` file from memory; the error says what is wrong with it.
pub(crate) fn parse(bytes: &[u8]) -> std::result::Result<Array, String> {
    let header = Header::parse(bytes)?;
    let body = body(&header, bytes)?;
    let elements = decode(&header.descr, body)?;
    Ok(ordered(header, elements))
}

/// The array in C order.
fn ordered(header: Header, elements: Elements) -> Array {
    let shape = header.shape;
    let elements = match elements {
        elements if !header.fortran_order => elements,
        Elements::U8(x) => Elements::U8(from_fortran_order(&shape, &x)),
        Elements::F32(x) => Elements::F32(from_fortran_order(&shape, &x)),
        Elements::F64(x) => Elements::F64(from_fortran_order(&shape, &x)),
    };
    Array { shape, elements }
}

/// Decodes a `.npy` file from a stream, piece by piece.
pub(crate) fn read(name: &str, mut stream: impl Read, limit: Limit) -> Result<Array> {
    let wrong = |problem: String| Error::format(Path::new(name), FORMAT, problem);
    let io = |e: std::io::Error| Error::io(Path::new(name), Action::Read, &e);
    let mut start = Vec::new();
    let mut pull =
        |start: &mut Vec<u8>, count: usize| stream.by_ref().take(count as u64).read_to_end(start).map_err(io);
    pull(&mut start, 12)?;
    // Versions 2 and 3 count the bytes of their header in four bytes; it is never that long.
    let length = match start[..] {
        [_, _, _, _, _, _, 1, _, a, b, ..] => 10 + usize::from(u16::from_le_bytes([a, b])),
        [_, _, _, _, _, _, _, _, a, b, 0 | 1, 0] => 12 + u32::from_le_bytes([a, b, start[10], 0]) as usize,
        _ => start.len(),
    };
    let more = length.saturating_sub(start.len());
    pull(&mut start, more)?;
    let header = Header::parse(&start).map_err(wrong)?;
    let size = element_size(&header.descr).map_err(wrong)?;
    let needed = header.count().and_then(|n| n.checked_mul(size));
    let needed = needed.ok_or_else(|| wrong("its shape is too large".into()))?;
    limit.check(name, worked_bytes(&header.descr, needed as u64))?;
    let mut buffer = Buffer::new();
    let mut piece = start.split_off(header.offset.min(start.len()));
    let mut found = 0;
    loop {
        piece.truncate(needed - found);
        let whole = piece.len() / size * size;
        decode_into(&header.descr, &piece[..whole], &mut buffer).map_err(wrong)?;
        found += whole;
        piece.drain(..whole);
        if found == needed || pull(&mut piece, PIECE)? == 0 {
            break;
        }
    }
    if found < needed {
        return Err(wrong(format!(
            "its shape {} of {} needs {needed} bytes of data, but {} are there; it was cut short",
            sides(&header.shape),
            header.descr,
            found + piece.len()
        )));
    }
    let elements = Elements::from_buffer(worked_in(&header.descr), buffer);
    Ok(ordered(header, elements))
}

/// The bytes of the elements, after a check that they are all there.
fn body<'b>(header: &Header, bytes: &'b [u8]) -> std::result::Result<&'b [u8], String> {
    let size = element_size(&header.descr)?;
    let needed = header.count().and_then(|n| n.checked_mul(size)).ok_or("its shape is too large")?;
    let found = bytes.len() - header.offset;
    if found < needed {
        return Err(format!(
            "its shape {} of {} needs {needed} bytes of data, but {found} are there; the file is cut short",
            sides(&header.shape),
            header.descr
        ));
    }
    Ok(&bytes[header.offset..header.offset + needed])
}

/// The samples of a `.npy` file: on disk, or in memory where they have to be put in order first (Fortran's). The first
/// axis counts the samples, the others are the modes.
pub(crate) fn source(path: &Path) -> Result<Box<dyn Source>> {
    let (map, identity) = map_known(path)?;
    let wrong = |problem: String| Error::format(path, FORMAT, problem);
    let header = Header::parse(&map).map_err(wrong)?;
    body(&header, &map).map_err(wrong)?;
    if header.shape.len() < 2 {
        let problem = format!(
            "its shape is {}; samples need at least two axes, sample × mode 0 (× mode 1 …)",
            sides(&header.shape)
        );
        return Err(Error::data(path, problem));
    }
    let (len, shape) = (header.shape[0], header.shape[1..].to_vec());
    if shape.contains(&0) {
        let problem =
            format!("its shape is {}; a sample of {} holds nothing", sides(&header.shape), sides(&shape));
        return Err(Error::data(path, problem));
    }
    if !header.fortran_order {
        let file =
            FlatFile::new(path, (map, identity), &header.descr, header.offset, len, &shape).map_err(wrong)?;
        return Ok(Box::new(file));
    }
    Ok(match parse(&map).map_err(wrong)?.elements {
        Elements::U8(x) => Box::new(InMemory::new(shape, x.into())),
        Elements::F32(x) => Box::new(InMemory::new(shape, x.into())),
        Elements::F64(x) => Box::new(InMemory::new(shape, x.into())),
    })
}

/// The bytes that [`source`] would hold in memory to put them in order; none if they stay in the file. What is wrong
/// with it is told by whoever reads it.
pub(crate) fn reordered_bytes(path: &Path) -> Result<Option<u64>> {
    let header = Header::parse(&map_known(path)?.0).ok().filter(|header| header.fortran_order);
    Ok(header.and_then(|header| {
        let stored = header.count()?.checked_mul(element_size(&header.descr).ok()?)?;
        Some(worked_bytes(&header.descr, stored as u64))
    }))
}

/// Writes an array in C order; the elements come in pieces, so that they need not be in memory at once.
///
/// # Errors
/// If the file cannot be written, or `pieces` fails; what was there before stays.
pub fn write<T: Scalar>(
    path: impl Into<PathBuf>,
    shape: &[usize],
    pieces: impl FnMut(&mut (dyn FnMut(&[T]) -> std::io::Result<()> + Send)) -> std::io::Result<()>,
) -> Result<()> {
    write_file(&path.into(), |out| write_to(out, shape, pieces))
}

/// The same to whatever takes bytes.
///
/// # Errors
/// If `out` takes no more bytes, or `pieces` fails.
pub fn write_to<T: Scalar>(
    out: &mut (dyn std::io::Write + Send),
    shape: &[usize],
    mut pieces: impl FnMut(&mut (dyn FnMut(&[T]) -> std::io::Result<()> + Send)) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let descr = match T::ELEMENT {
        Element::U8 => "|u1",
        Element::F32 => "<f4",
        Element::F64 => "<f8",
    };
    out.write_all(&header_bytes(descr, shape))?;
    pieces(&mut |elements| out.write_all(bytemuck::cast_slice(elements)))
}

/// Writes an array that is in memory.
///
/// # Errors
/// If the file cannot be written; what was there before stays.
pub fn write_array<T: Scalar>(path: impl Into<PathBuf>, shape: &[usize], elements: &[T]) -> Result<()> {
    assert_eq!(elements.len(), shape.iter().product::<usize>(), "as many elements as the shape says");
    write(path, shape, |put| put(elements))
}

pub(crate) fn header_bytes(descr: &str, shape: &[usize]) -> Vec<u8> {
    let axes: Vec<String> = shape.iter().map(|axis| format!("{axis},")).collect();
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}", axes.join(" "));
    // The elements begin at a multiple of 64 bytes, as NumPy writes them, so that they can be mapped.
    while (10 + text.len() + 1) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::samples::Samples;
    use super::super::source::{Chunk, Residence};
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        let x: Vec<f32> = (0..24).map(|i| i as f32 / 7.0).collect();
        write_array(&path, &[4, 2, 3], &x).unwrap();
        let npy = source(&path).unwrap();
        assert_eq!((npy.element(), npy.residence()), (Element::F32, Residence::Mapped));
        assert_eq!(npy.read(1..3, &mut Buffer::new()).unwrap(), Chunk::F32(&x[6..18]));
    }

    #[test]
    fn fortran_order_and_other_types_are_converted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        // NumPy's np.asfortranarray(np.arange(6, dtype='>i2').reshape(2, 3)).
        let mut bytes = header_bytes(">i2", &[2, 3]);
        let at = bytes.windows(5).position(|w| w == b"False").unwrap();
        bytes[at..at + 5].copy_from_slice(b"True ");
        for x in [0i16, 3, 1, 4, 2, 5] {
            bytes.extend(x.to_be_bytes());
        }
        std::fs::write(&path, bytes).unwrap();
        let npy = source(&path).unwrap();
        assert_eq!((npy.len(), npy.shape()), (2, &[3][..]));
        assert_eq!(npy.residence(), Residence::Memory);
        let x = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(npy.read(0..2, &mut Buffer::new()).unwrap(), Chunk::F32(&x));
    }

    #[test]
    fn samples_that_hold_nothing_are_refused_in_either_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        let c_order = header_bytes("<f8", &[3, 0, 2]);
        let mut fortran = c_order.clone();
        let at = fortran.windows(5).position(|w| w == b"False").unwrap();
        fortran[at..at + 5].copy_from_slice(b"True ");
        for bytes in [c_order, fortran] {
            std::fs::write(&path, bytes).unwrap();
            for error in [source(&path).err().unwrap(), Samples::from_npy_files(&[&path, &path]).unwrap_err()]
            {
                assert!(
                    error.to_string().contains("its shape is 3×0×2; a sample of 0×2 holds nothing"),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn a_stream_gives_what_the_file_gives() {
        for (descr, body) in [("<f8", vec![7; 48]), (">i2", (0..12).collect()), ("|u1", (0..6).collect())] {
            let file = [header_bytes(descr, &[2, 3]), body].concat();
            let limit = Limit::unpacked(Some(48));
            assert_eq!(
                read("-", &file[..], limit),
                parse(&file).map_err(|e| Error::format(Path::new("-"), FORMAT, e))
            );
            let cut = read("-", &file[..file.len() - 1], limit).unwrap_err().to_string();
            assert!(cut.contains("it was cut short"), "{cut}");
            assert!(read("-", &file[..30], limit).is_err());
            let small = read("-", &file[..], Limit::unpacked(Some(5)));
            assert!(matches!(small, Err(Error::Unpacked { limit: 5, .. })));
        }
    }

    #[test]
    fn a_cut_file_says_how_much_is_missing() {
        let mut bytes = header_bytes("<f8", &[3, 2]);
        bytes.extend([0; 40]);
        let error = parse(&bytes).unwrap_err();
        assert!(error.contains("needs 48 bytes of data, but 40 are there"), "{error}");
    }
}
