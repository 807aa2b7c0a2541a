//! IDX, the format MNIST is distributed in: plain files are memory-mapped, gzip files are unpacked in memory.
//!
//! A file is two zero bytes, the element type, the number of axes, one big-endian 32-bit size per axis, and the
//! elements in C order, big-endian.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::MultiGzDecoder;

use super::flat::{FlatFile, map_file, map_known};
use super::npy::{self, Array, Elements};
use super::samples::Samples;
use crate::error::{Error, FileKind, Result, sides};

const FORMAT: FileKind = FileKind::Idx;
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// What the first bytes say.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Header {
    element: u8,
    shape: Vec<usize>,
    /// Where the elements begin, in bytes.
    offset: usize,
    /// How many bytes of elements there must be.
    needed: usize,
}

impl Header {
    fn parse(bytes: &[u8]) -> std::result::Result<Self, String> {
        if bytes.len() < 4 || bytes[..2] != [0, 0] {
            return Err(
                "it does not begin with two zero bytes, an element type and the number of axes".into()
            );
        }
        let (element, axes) = (bytes[2], usize::from(bytes[3]));
        let size = match element {
            0x08 | 0x09 => 1,
            0x0B => 2,
            0x0C | 0x0D => 4,
            0x0E => 8,
            other => {
                return Err(format!(
                    "its element type is 0x{other:02X}; 0x08 (bytes) to 0x0E (doubles) are known"
                ));
            }
        };
        if axes == 0 {
            return Err("it has no axes".into());
        }
        let offset = 4 + 4 * axes;
        let sizes =
            bytes.get(4..offset).ok_or_else(|| format!("it ends before the sizes of its {axes} axes"))?;
        let shape: Vec<usize> =
            sizes.chunks_exact(4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]) as usize).collect();
        let needed = shape.iter().try_fold(size, |n: usize, &axis| n.checked_mul(axis));
        let needed = needed.filter(|&n| n <= usize::MAX / 2);
        let needed = needed.ok_or_else(|| format!("its axes {} are too large", sides(&shape)))?;
        Ok(Header { element, shape, offset, needed })
    }

    /// The element type as NumPy writes it.
    fn descr(&self) -> &'static str {
        match self.element {
            0x08 => "|u1",
            0x09 => "|i1",
            0x0B => ">i2",
            0x0C => ">i4",
            0x0D => ">f4",
            _ => ">f8",
        }
    }

    /// The number of samples and their shape.
    fn samples(&self) -> std::result::Result<(usize, &[usize]), String> {
        if self.shape.len() < 2 {
            return Err(format!(
                "it has one axis of {}, as files of labels have; samples need sample × mode 1 (× mode 2 …)",
                self.shape[0]
            ));
        }
        Ok((self.shape[0], &self.shape[1..]))
    }

    fn check_length(&self, found: usize) -> std::result::Result<(), String> {
        if found == self.needed {
            return Ok(());
        }
        let why =
            if found < self.needed { "the file is cut short" } else { "its header describes another file" };
        Err(format!(
            "its axes {} need {} bytes of data, but {} are there; {why}",
            sides(&self.shape),
            self.needed,
            // From a gzip stream no more than one byte too many is read.
            if found > self.needed { "more".to_string() } else { found.to_string() },
        ))
    }
}

/// Whether `bytes` begin like an IDX file.
pub(crate) fn looks_like(bytes: &[u8]) -> bool {
    matches!(bytes, [0, 0, 0x08 | 0x09 | 0x0B..=0x0E, 1..=8, ..])
}

/// Whether `bytes` begin like a gzip file.
pub(crate) fn looks_like_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&GZIP)
}

/// The samples of an IDX file: the first axis counts them, the others are the modes.
pub(crate) fn open(path: &Path) -> Result<Samples<'static>> {
    let (map, identity) = map_known(path)?;
    let wrong = |problem: String| Error::format(path, FORMAT, problem);
    if looks_like_gzip(&map) {
        return from_gzip(&map).map_err(wrong);
    }
    let header = Header::parse(&map).map_err(wrong)?;
    header.check_length(map.len() - header.offset).map_err(wrong)?;
    let (len, shape) = header.samples().map_err(wrong)?;
    let file =
        FlatFile::new(path, (map, identity), header.descr(), header.offset, len, shape).map_err(wrong)?;
    Samples::from_source(Arc::new(file)).map_err(|e| wrong(e.to_string()))
}

/// The bytes of the samples that [`open`] would unpack, as they are worked on; none if it is not packed.
pub(crate) fn packed_bytes(path: &Path) -> Result<Option<u64>> {
    let map = map_file(path)?;
    if !looks_like_gzip(&map) {
        return Ok(None);
    }
    let mut start = Vec::new();
    // The header has at most 256 axes of four bytes.
    let read = MultiGzDecoder::new(&map[..]).take(4 + 4 * 255).read_to_end(&mut start);
    // What is wrong with the stream or the header is told by whoever unpacks it.
    let header = read.ok().and_then(|_| Header::parse(&start).ok());
    Ok(header.map(|header| npy::worked_bytes(header.descr(), header.needed as u64)))
}

/// The samples of a gzip IDX file that is in memory.
pub(crate) fn from_gzip(bytes: &[u8]) -> std::result::Result<Samples<'static>, String> {
    let mut bytes = unpack(bytes, u64::MAX)?;
    let header = Header::parse(&bytes)?;
    let (_, shape) = header.samples()?;
    let elements = if header.element == 0x08 {
        // No second copy of what may be large.
        bytes.drain(..header.offset);
        Elements::U8(bytes)
    } else {
        decode(&header, &bytes)?
    };
    elements.into_samples(shape).map_err(|e| e.to_string())
}

/// Decodes a whole IDX file, plain or gzip, from memory; the error says what is wrong with it.
#[cfg_attr(not(feature = "demo"), allow(dead_code))]
pub(crate) fn parse(bytes: &[u8]) -> std::result::Result<Array, String> {
    parse_within(bytes, u64::MAX)
}

/// The same for a file that may unpack to no more than so many bytes.
pub(crate) fn parse_within(bytes: &[u8], most: u64) -> std::result::Result<Array, String> {
    let unpacked;
    let bytes = if looks_like_gzip(bytes) {
        unpacked = unpack(bytes, most)?;
        &unpacked
    } else {
        bytes
    };
    let header = Header::parse(bytes)?;
    header.check_length(bytes.len() - header.offset)?;
    let elements = decode(&header, bytes)?;
    Ok(Array { shape: header.shape, elements })
}

/// The header and the elements of a gzip IDX file.
///
/// The vector grows with what really comes out of the stream and never past what the header explains.
fn unpack(bytes: &[u8], most: u64) -> std::result::Result<Vec<u8>, String> {
    let mut stream = MultiGzDecoder::new(bytes);
    let mut out = Vec::new();
    let mut pull = |out: &mut Vec<u8>, count: usize| {
        let read = stream.by_ref().take(count as u64).read_to_end(out);
        read.map_err(|e| format!("its gzip stream breaks off after {} unpacked bytes: {e}", out.len()))
    };
    pull(&mut out, 4)?;
    let axes = out.get(3).map_or(0, |&axes| usize::from(axes));
    pull(&mut out, 4 * axes)?;
    let header = Header::parse(&out)?;
    if header.needed as u64 > most {
        return Err(format!(
            "its axes {} need {} bytes, far more than a file of {} bytes should unpack to",
            sides(&header.shape),
            header.needed,
            bytes.len()
        ));
    }
    // One byte more than needed tells a longer stream from a whole one.
    pull(&mut out, header.needed + 1)?;
    header.check_length(out.len() - header.offset)?;
    Ok(out)
}

/// The caller has checked that all elements are there.
fn decode(header: &Header, bytes: &[u8]) -> std::result::Result<Elements, String> {
    npy::decode(header.descr(), &bytes[header.offset..header.offset + header.needed])
}

/// The file of labels beside a file of images, if there is one: `train-images-idx3-ubyte.gz` has
/// `train-labels-idx1-ubyte.gz`, in either spelling (`-idx3` or `.idx3`), packed or not.
pub(crate) fn labels_beside(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let plain = name.strip_suffix(".gz").unwrap_or(name);
    if !plain.contains("images") {
        return None;
    }
    let labels = plain.replace("images", "labels");
    let labels = match labels.find("idx") {
        // Whatever the order of the samples, labels have one axis.
        Some(at) if labels[at + 3..].starts_with(|c: char| c.is_ascii_digit()) => {
            format!("{}idx1{}", &labels[..at], &labels[at + 4..])
        }
        _ => labels,
    };
    let dotted = labels.replace("-idx1-", ".idx1-");
    let dashed = labels.replace(".idx1-", "-idx1-");
    [labels, dotted, dashed]
        .into_iter()
        .flat_map(|n| [n.clone(), format!("{n}.gz")])
        .map(|n| path.with_file_name(n))
        .find(|p| p.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::made::{gzip, idx};

    #[test]
    fn other_element_types_are_converted() {
        let shorts: Vec<u8> = [-2i16, 300].iter().flat_map(|x| x.to_be_bytes()).collect();
        assert_eq!(parse(&idx(0x0B, &[2], &shorts)).unwrap().elements, Elements::F32(vec![-2.0, 300.0]));
        assert_eq!(parse(&idx(0x09, &[1], &[0xff])).unwrap().elements, Elements::F32(vec![-1.0]));
        let ints = 70_000i32.to_be_bytes();
        assert_eq!(parse(&idx(0x0C, &[1], &ints)).unwrap().elements, Elements::F64(vec![70_000.0]));
        let floats = 0.1f32.to_be_bytes();
        assert_eq!(parse(&idx(0x0D, &[1], &floats)).unwrap().elements, Elements::F32(vec![0.1]));
        let doubles = 0.1f64.to_be_bytes();
        let file = gzip(&idx(0x0E, &[1, 1], &doubles));
        let samples = from_gzip(&file).unwrap();
        assert_eq!(samples.to_f64(0..1).unwrap(), [0.1]);
    }

    #[test]
    fn bad_files_say_what_is_wrong() {
        let whole = idx(8, &[2, 2, 2], &[1, 2, 3, 4, 5, 6, 7, 8]);
        let cut = "its axes 2×2×2 need 8 bytes of data, but 7 are there; the file is cut short";
        assert_eq!(parse(&whole[..whole.len() - 1]).unwrap_err(), cut);
        assert_eq!(parse(&gzip(&whole[..whole.len() - 1])).unwrap_err(), cut);
        let long = [&whole[..], &[9]].concat();
        assert!(parse(&long).unwrap_err().contains("but more are there"));
        assert!(parse(&gzip(&long)).unwrap_err().contains("but more are there"));
        let packed = gzip(&whole);
        let broken = parse(&packed[..packed.len() - 12]).unwrap_err();
        assert!(broken.contains("its gzip stream breaks off"), "{broken}");
        assert!(parse(&whole[..9]).unwrap_err().contains("ends before the sizes of its 3 axes"));
        assert!(parse(&idx(7, &[1], &[1])).unwrap_err().contains("element type is 0x07"));
        assert!(parse(b"PNG?").unwrap_err().contains("two zero bytes"));
        assert!(parse(&gzip(b"")).unwrap_err().contains("two zero bytes"));
        let huge = gzip(&idx(8, &[u32::MAX, u32::MAX, u32::MAX], &[0; 100]));
        assert!(parse(&huge).unwrap_err().contains("too large"));
    }

    #[test]
    fn labels_are_found_beside_the_images() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("train-labels-idx1-ubyte.gz"), "").unwrap();
        std::fs::write(at("t10k-labels.idx1-ubyte"), "").unwrap();
        let found = |name: &str| labels_beside(&at(name)).map(|p| p.file_name().unwrap().to_owned());
        assert_eq!(found("train-images-idx3-ubyte.gz").unwrap(), "train-labels-idx1-ubyte.gz");
        assert_eq!(found("train-images-idx3-ubyte").unwrap(), "train-labels-idx1-ubyte.gz");
        assert_eq!(found("t10k-images.idx3-ubyte").unwrap(), "t10k-labels.idx1-ubyte");
        assert_eq!(found("t10k-images-idx3-ubyte").unwrap(), "t10k-labels.idx1-ubyte");
        assert_eq!(found("other-images-idx3-ubyte"), None);
        assert_eq!(found("train-labels-idx1-ubyte.gz"), None);
    }
}
