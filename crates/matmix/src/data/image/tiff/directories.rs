//! The lists of tags in a TIFF file, looked through before they are read: what they say about their own length decides
//! how much is allocated for them.

use std::collections::HashSet;
use std::io::{self, Read, Seek, SeekFrom};

use super::super::{Problem, Room};

/// A directory that describes a picture takes at least so many bytes of the file.
const DIRECTORY: u64 = 64;

/// Whether every value lies within the file, and the chain of directories has an end.
pub(super) fn check(file: &mut (impl Read + Seek), room: Room) -> Problem<()> {
    let mut file = Bytes { file, big_endian: false };
    file.seek(0)?;
    file.big_endian = file.bytes::<2>()? == *b"MM";
    let big = file.u16()? == 43;
    if big {
        // The width of an offset, and two bytes that mean nothing.
        file.bytes::<4>()?;
    }
    let mut seen = HashSet::new();
    let mut next = file.offset(big)?;
    while next != 0 {
        if !seen.insert(next) {
            return Err("its directories lead in a circle".into());
        }
        if seen.len() as u64 > room.file / DIRECTORY + 1 {
            return Err(format!("it lists more pictures than a file of {} bytes can hold", room.file));
        }
        file.seek(next)?;
        let entries = if big { file.offset(true)? } else { u64::from(file.u16()?) };
        if entries.saturating_mul(12) > room.file {
            return Err("one of its directories is longer than the file".into());
        }
        for _ in 0..entries {
            let (_tag, kind) = (file.u16()?, file.u16()?);
            let (count, at) = (file.offset(big)?, file.offset(big)?);
            let width = match kind {
                1 | 2 | 6 | 7 => 1,
                3 | 8 => 2,
                4 | 9 | 11 | 13 => 4,
                5 | 10 | 12 | 16..=18 => 8,
                // The decoder passes over eight bytes of sixteen, and takes what follows for other lists.
                _ if big => return Err(format!("a list in it is of the unknown type {kind}")),
                _ => 0,
            };
            let bytes = count.saturating_mul(width);
            // What is short stands where the place of the rest would be.
            if bytes > if big { 8 } else { 4 } && at.saturating_add(bytes) > room.file {
                return Err(format!(
                    "a list of {bytes} bytes in it goes beyond its end; the file is cut short"
                ));
            }
        }
        next = file.offset(big)?;
    }
    file.seek(0)
}

struct Bytes<'f, F> {
    file: &'f mut F,
    big_endian: bool,
}

impl<F: Read + Seek> Bytes<'_, F> {
    fn seek(&mut self, to: u64) -> Problem<()> {
        self.file.seek(SeekFrom::Start(to)).map(|_| ()).map_err(|e| e.to_string())
    }

    fn bytes<const N: usize>(&mut self) -> Problem<[u8; N]> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes).map_err(|_| "it ends within one of its directories".to_string())?;
        Ok(bytes)
    }

    fn u16(&mut self) -> Problem<u16> {
        let bytes = self.bytes()?;
        Ok(if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    /// A number of four bytes, or of eight.
    fn offset(&mut self, big: bool) -> Problem<u64> {
        if big {
            let bytes = self.bytes()?;
            return Ok(if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) });
        }
        let bytes = self.bytes()?;
        Ok(u64::from(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }))
    }
}

/// A file whose chain of directories begins at another one of them.
pub(super) struct Begun<'f, F> {
    file: &'f mut F,
    /// The header of the file, with the offset of this directory.
    header: Vec<u8>,
    position: u64,
}

impl<'f, F: Read + Seek> Begun<'f, F> {
    pub(super) fn at(file: &'f mut F, directory: u64) -> Problem<Self> {
        let told = |e: io::Error| e.to_string();
        file.seek(SeekFrom::Start(0)).map_err(told)?;
        let mut header = vec![0; 8];
        file.read_exact(&mut header).map_err(told)?;
        let big_endian = header.starts_with(b"MM");
        let big = header[if big_endian { 3 } else { 2 }] == 43;
        let mut place = if big_endian { directory.to_be_bytes() } else { directory.to_le_bytes() };
        if big {
            header.extend(place);
        } else {
            // Four bytes, the last of eight or the first.
            place.rotate_left(if big_endian { 4 } else { 0 });
            header[4..].copy_from_slice(&place[..4]);
        }
        // Where the file goes on is where it stands while the header is read.
        file.seek(SeekFrom::Start(header.len() as u64)).map_err(told)?;
        Ok(Self { file, header, position: 0 })
    }
}

impl<F: Read + Seek> Read for Begun<'_, F> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let header = usize::try_from(self.position).ok().and_then(|from| self.header.get(from..));
        let count = match header.filter(|rest| !rest.is_empty()) {
            Some(mut rest) => rest.read(out)?,
            None => self.file.read(out)?,
        };
        self.position += count as u64;
        Ok(count)
    }
}

impl<F: Read + Seek> Seek for Begun<'_, F> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = match to {
            SeekFrom::Current(by) => {
                self.position.checked_add_signed(by).ok_or(io::ErrorKind::InvalidInput)?
            }
            SeekFrom::Start(to) => to,
            end => self.file.seek(end)?,
        };
        self.file.seek(SeekFrom::Start(self.position.max(self.header.len() as u64)))?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::data::pictures;

    #[test]
    fn lengths_beyond_the_file_and_circles_are_found() {
        let whole = pictures::tiff(&[(2, 3, &[0; 6]), (2, 3, &[0; 6])]);
        let problem = |bytes: &[u8]| check(&mut Cursor::new(bytes), Room { file: bytes.len() as u64 }).err();
        assert_eq!(problem(&whole), None);
        let first = u32::from_le_bytes([whole[4], whole[5], whole[6], whole[7]]) as usize;
        let mut long = whole.clone();
        long[first + 2 + 4..first + 2 + 8].copy_from_slice(&0x1000_0000u32.to_le_bytes());
        assert!(problem(&long).unwrap().contains("a list of 1073741824 bytes in it goes beyond its end"));
        let mut circle = whole.clone();
        let end = whole.len() - 4;
        circle[end..].copy_from_slice(&(first as u32).to_le_bytes());
        assert_eq!(problem(&circle).unwrap(), "its directories lead in a circle");
        assert_eq!(problem(&whole[..whole.len() - 5]).unwrap(), "it ends within one of its directories");
        let entry = |tag: u16, kind: u16, value: u64| {
            let (tag, kind) = (tag.to_le_bytes(), kind.to_le_bytes());
            [&tag[..], &kind, &1u64.to_le_bytes(), &value.to_le_bytes()].concat()
        };
        let big = |kind| {
            let head = [&b"II+\0\x08\0\0\0"[..], &16u64.to_le_bytes(), &1u64.to_le_bytes()].concat();
            [head, entry(256, kind, 2), vec![0; 8]].concat()
        };
        assert_eq!(
            (problem(&big(4)), problem(&big(0)).unwrap()),
            (None, "a list in it is of the unknown type 0".into())
        );
    }

    /// A file of another directory is the same file but for where its chain begins.
    #[test]
    fn a_file_can_begin_at_any_directory() {
        for (order, big) in [(b"II", false), (b"MM", false), (b"II", true), (b"MM", true)] {
            let mut bytes = vec![order[0], order[1], 0, 0, 0, 0, 0, 0];
            bytes[if order == b"MM" { 3 } else { 2 }] = if big { 43 } else { 42 };
            bytes.extend(0..40);
            let mut cursor = Cursor::new(&bytes);
            let mut begun = Begun::at(&mut cursor, 0x0102).unwrap();
            let mut read = Vec::new();
            begun.read_to_end(&mut read).unwrap();
            let (place, width) = if big { (8, 8) } else { (4, 4) };
            let mut expected = bytes.clone();
            let offset = if order == b"MM" { 0x0102u64.to_be_bytes() } else { 0x0102u64.to_le_bytes() };
            let offset = if order == b"MM" { &offset[8 - width..] } else { &offset[..width] };
            expected[place..place + width].copy_from_slice(offset);
            assert_eq!(read, expected, "{order:?}, {big}");
            let mut two = [0; 2];
            for from in [0, 3, 7, 15, 20] {
                assert_eq!(begun.seek(SeekFrom::Start(from)).unwrap(), from);
                begun.read_exact(&mut two).unwrap();
                assert_eq!(two, expected[from as usize..][..2]);
                assert_eq!(begun.seek(SeekFrom::Current(-1)).unwrap(), from + 1);
                begun.read_exact(&mut two[..1]).unwrap();
                assert_eq!(two[0], expected[from as usize + 1]);
            }
        }
    }
}
