//! The lists of tags in a TIFF file, looked through before they are read: what they say about their own length decides
//! how much is allocated for them.

use std::collections::HashSet;
use std::io::{Read, Seek, SeekFrom};

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
    }
}
