//! A file whose samples stand one after the other: `.npy` in C order, plain IDX.
//!
//! The elements stay on disk. They are memory-mapped, or read by their position in the file where mapped pages would
//! not fit the memory budget. A type or byte order that is not worked on as it is stored is converted chunk by chunk.
//!
//! Whoever changes the file meanwhile is noticed: at every opening where it is read, before every pass where it is
//! mapped. One that is cut short in the middle of a pass over mapped samples ends the process (SIGBUS on Unix).

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use super::file::{self, Identity};
use super::npy::{decode_into, element_size, worked_in};
use super::source::{Buffer, Chunk, Element, Residence, Source};
use crate::error::{Action, Error, Result};

/// Samples in a file.
pub(crate) struct FlatFile {
    path: PathBuf,
    shape: Vec<usize>,
    len: usize,
    /// The element type as NumPy writes it.
    descr: String,
    element: Element,
    /// Where the elements begin, in bytes.
    offset: usize,
    /// Whether the elements can be worked on as they are stored.
    native: bool,
    map: Mmap,
    identity: Identity,
}

impl FlatFile {
    /// The caller has checked that `len` samples of `shape` and type `descr` follow `offset` in the map.
    pub(crate) fn new(
        path: &Path,
        (map, identity): (Mmap, Identity),
        descr: &str,
        offset: usize,
        len: usize,
        shape: &[usize],
    ) -> std::result::Result<Self, String> {
        let element = worked_in(descr);
        element_size(descr)?;
        let body = &map[offset..];
        let whole = |width: usize| &body[..body.len() / width * width];
        let native = cfg!(target_endian = "little")
            && match descr {
                "<f4" | "=f4" => bytemuck::try_cast_slice::<u8, f32>(whole(4)).is_ok(),
                "<f8" | "=f8" => bytemuck::try_cast_slice::<u8, f64>(whole(8)).is_ok(),
                _ => element == Element::U8,
            };
        Ok(Self {
            path: path.to_owned(),
            shape: shape.to_vec(),
            len,
            descr: descr.to_string(),
            element,
            offset,
            native,
            map,
            identity,
        })
    }

    /// Where the bytes of these samples stand in the file.
    fn bytes(&self, samples: &Range<usize>) -> Range<usize> {
        let stored = element_size(&self.descr).unwrap_or(1);
        let size = self.shape.iter().product::<usize>() * stored;
        self.offset + samples.start * size..self.offset + samples.end * size
    }

    fn decode(&self, bytes: &[u8], buffer: &mut Buffer) -> Result<()> {
        decode_into(&self.descr, bytes, buffer).map_err(|problem| Error::data(&self.path, problem))
    }

    fn read_at(&self, bytes: &mut [u8], at: usize) -> Result<()> {
        // Opened anew each time: a thousand files are more than a process may keep open, and one that is gone
        // should be missed.
        let file = file::open_again(&self.path, &self.identity)?;
        read_exact_at(&file, bytes, at as u64).map_err(|e| Error::io(&self.path, Action::Read, &e))
    }
}

impl Source for FlatFile {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn len(&self) -> usize {
        self.len
    }

    fn element(&self) -> Element {
        self.element
    }

    fn residence(&self) -> Residence {
        Residence::Mapped
    }

    fn read<'a>(&'a self, samples: Range<usize>, buffer: &'a mut Buffer) -> Result<Chunk<'a>> {
        let bytes = &self.map[self.bytes(&samples)];
        if self.native {
            return Ok(match self.element {
                Element::U8 => Chunk::U8(bytes),
                Element::F32 => Chunk::F32(bytemuck::cast_slice(bytes)),
                Element::F64 => Chunk::F64(bytemuck::cast_slice(bytes)),
            });
        }
        buffer.clear();
        self.decode(bytes, buffer)?;
        Ok(buffer.chunk(self.element))
    }

    fn check(&self) -> Result<()> {
        file::check_mapped(&self.path, &self.identity)
    }

    fn load(&self, samples: Range<usize>, buffer: &mut Buffer) -> Result<()> {
        let at = self.bytes(&samples);
        if !self.native {
            let mut bytes = vec![0; at.len()];
            self.read_at(&mut bytes, at.start)?;
            return self.decode(&bytes, buffer);
        }
        // Straight into its place.
        let count = at.len() / self.element.size();
        match self.element {
            Element::U8 => self.read_at(grown(&mut buffer.u8, count), at.start),
            Element::F32 => self.read_at(bytemuck::cast_slice_mut(grown(&mut buffer.f32, count)), at.start),
            Element::F64 => self.read_at(bytemuck::cast_slice_mut(grown(&mut buffer.f64, count)), at.start),
        }
    }
}

/// Room for so many more at the end.
fn grown<T: Default + Copy>(x: &mut Vec<T>, count: usize) -> &mut [T] {
    let before = x.len();
    x.resize(before + count, T::default());
    &mut x[before..]
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, at)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => {
                bytes = &mut bytes[count..];
                at += count as u64;
            }
        }
    }
    Ok(())
}

/// Maps a file into memory, read-only.
pub(crate) fn map_file(path: &Path) -> Result<Mmap> {
    Ok(map_known(path)?.0)
}

/// Maps a file into memory, read-only, and remembers which one it was.
pub(crate) fn map_known(path: &Path) -> Result<(Mmap, Identity)> {
    let (file, identity) = file::open(path)?;
    // SAFETY: the map is private to this process and only read. Another process that truncates the file
    // while it is mapped could end this one (SIGBUS); that is the documented price of not copying.
    #[allow(unsafe_code)]
    let map = unsafe { Mmap::map(&file) }.map_err(|e| Error::io(path, Action::Map, &e))?;
    Ok((map, identity))
}

#[cfg(test)]
mod tests {
    use super::super::npy;
    use super::*;

    fn loaded(source: &dyn Source, samples: Range<usize>) -> Result<Buffer> {
        let mut buffer = Buffer::new();
        source.load(samples, &mut buffer)?;
        Ok(buffer)
    }

    #[test]
    fn mapped_and_read_are_the_same_for_every_type() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        for descr in ["|u1", "|i1", "<u2", ">i2", "<f2", ">f2", "<f4", ">f4", "<i4", "<f8", ">f8", ">u8"] {
            let width = element_size(descr).unwrap();
            // Integers of eight bytes have to be ones that double precision holds.
            let byte = |i: usize| if width == 8 && i % 8 < 2 { 0 } else { (i * 37 % 101) as u8 };
            let body: Vec<u8> = (0..5 * 6 * width).map(byte).collect();
            std::fs::write(&path, [npy::header_bytes(descr, &[5, 2, 3]), body].concat()).unwrap();
            let source = npy::source(&path).unwrap();
            let (mut at_once, mut mapped) = (Buffer::new(), Buffer::new());
            let whole = source.read(0..5, &mut at_once).unwrap();
            let part = source.read(1..4, &mut mapped).unwrap();
            assert_eq!(part, whole.slice(6..24), "{descr}");
            assert_eq!(loaded(&*source, 1..4).unwrap().chunk(source.element()), part, "{descr}");
            assert_eq!(source.residence(), Residence::Mapped);
        }
    }

    #[test]
    fn a_file_that_changes_or_goes_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        npy::write_array(&path, &[8, 2], &[1.0f32; 16]).unwrap();
        let source = npy::source(&path).unwrap();
        assert_eq!(source.check(), Ok(()));
        // Another file of the same size in its place: the map is still of the old one, and nothing else is read.
        npy::write_array(folder.path().join("y.npy"), &[8, 2], &[2.0f32; 16]).unwrap();
        std::fs::rename(folder.path().join("y.npy"), &path).unwrap();
        let error = loaded(&*source, 0..1).unwrap_err().to_string();
        assert!(error.contains("x.npy: another file was put in its place since it was opened"), "{error}");
        assert_eq!(source.check(), Ok(()));
        assert_eq!(source.read(0..1, &mut Buffer::new()).unwrap(), Chunk::F32(&[1.0; 2]));
        let source = npy::source(&path).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(file.metadata().unwrap().len() - 9).unwrap();
        for error in [loaded(&*source, 0..1).unwrap_err(), source.check().unwrap_err()] {
            assert!(
                error.to_string().contains("x.npy: it has become shorter (183 bytes instead of 192)"),
                "{error}"
            );
        }
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(loaded(&*source, 0..1), Err(Error::Io { action: Action::Open, .. })));
    }
}
