//! BMP as programs write it: palettes of 1, 4 and 8 bits, 24 and 32 bits per pixel.
//!
//! Without a mask the fourth byte of a pixel is alpha if it differs between pixels, and unused otherwise: programs write both.

use std::io::{BufRead, Read, Seek, SeekFrom};

use super::pixels::{Channels, Depth, Pixels, Values};
use super::{Header, Problem, Room, rest};

/// The file's own header; what describes the picture follows.
const FILE_HEADER: usize = 14;
/// The longest header with masks and a palette.
const HEADERS: u64 = 14 + 124 + 16 + 1024;

pub(super) fn header(mut file: impl BufRead + Seek, room: Room) -> Problem<Header> {
    let mut start = Vec::new();
    file.by_ref().take(HEADERS).read_to_end(&mut start).map_err(|e| e.to_string())?;
    let layout = Layout::parse(&start, room)?;
    if !layout.is_undecided() {
        return Ok(layout.header());
    }
    file.seek(SeekFrom::Start(0)).map_err(|e| e.to_string())?;
    Ok(layout.decided(&rest(file, room)?)?.header())
}

pub(super) fn decode(file: impl BufRead + Seek, room: Room) -> Problem<Pixels> {
    let bytes = rest(file, room)?;
    let layout = Layout::parse(&bytes, room)?.decided(&bytes)?;
    let (rows, columns, channels) = (layout.rows, layout.columns, layout.channels());
    let body = layout.body(&bytes)?;
    let mut values = Vec::with_capacity(rows * columns * channels.count());
    for i in 0..rows {
        let stored = if layout.top_down { i } else { rows - 1 - i };
        layout.row(&body[stored * layout.row_bytes..][..layout.row_bytes], channels, &mut values)?;
    }
    Ok(Pixels { rows, columns, channels, values: Values::U8(values) })
}

/// How a pixel is stored.
enum Kind {
    /// So many bits are a place in the palette (red, green, blue).
    Palette { bits: usize, colours: Vec<[u8; 3]> },
    /// So many bytes, with red, green, blue and perhaps transparency at these places.
    Direct { bytes: usize, places: Vec<usize> },
    /// Four bytes: blue, green, red, and one that only the pixels say the meaning of.
    Undecided,
}

struct Layout {
    rows: usize,
    columns: usize,
    top_down: bool,
    kind: Kind,
    /// Where the pixels begin, in bytes.
    begin: usize,
    /// Bytes per row, filled up to a multiple of four.
    row_bytes: usize,
}

impl Layout {
    fn parse(bytes: &[u8], room: Room) -> Problem<Self> {
        let cut = || "it ends within its header".to_string();
        let u16_at = |at: usize| {
            let two = bytes.get(at..at + 2).ok_or_else(cut)?;
            Ok::<_, String>(u16::from_le_bytes([two[0], two[1]]))
        };
        let u32_at = |at: usize| Ok::<_, String>(u32::from(u16_at(at)?) | u32::from(u16_at(at + 2)?) << 16);
        let begin = u32_at(10)? as usize;
        let size = u32_at(FILE_HEADER)? as usize;
        let (width, height, bits, compression, used) = match size {
            12 => (i32::from(u16_at(18)? as i16), i32::from(u16_at(20)? as i16), u16_at(24)?, 0, 0),
            40..=124 => {
                (u32_at(18)? as i32, u32_at(22)? as i32, u16_at(28)?, u32_at(30)?, u32_at(46)? as usize)
            }
            _ => return Err(format!("its header of {size} bytes is of no known kind")),
        };
        let columns = usize::try_from(width).unwrap_or(0);
        let rows = height.unsigned_abs() as usize;
        let bits = usize::from(bits);
        room.check(rows, columns, if bits == 32 { 4 } else { 3 })?;
        let masks = if size == 40 {
            12 * usize::from(compression == 3) + 16 * usize::from(compression == 6)
        } else {
            0
        };
        let kind = match (bits, compression) {
            (1 | 4 | 8, 0) => {
                let entry = if size == 12 { 3 } else { 4 };
                let count = if used == 0 { 1 << bits } else { used.min(1 << bits) };
                let at = FILE_HEADER + size;
                let palette = bytes.get(at..at + entry * count).ok_or_else(cut)?;
                let colours = palette.chunks_exact(entry).map(|c| [c[2], c[1], c[0]]).collect();
                Kind::Palette { bits, colours }
            }
            (24, 0) => Kind::Direct { bytes: 3, places: vec![2, 1, 0] },
            (32, 0) => Kind::Undecided,
            (32, 3 | 6) => {
                let alpha = size >= 56 || compression == 6;
                let masks: Problem<Vec<u32>> =
                    (0..3 + usize::from(alpha)).map(|i| u32_at(54 + 4 * i)).collect();
                let masks = masks?;
                let place = |mask: u32| match mask.trailing_zeros() {
                    shift @ (0 | 8 | 16 | 24) if mask >> shift == 0xff => Ok(shift as usize / 8),
                    _ => Err(format!("its channels are the bits {masks:08x?}; whole bytes are read")),
                };
                let colours = masks.iter().enumerate().filter(|(i, mask)| *i < 3 || **mask != 0);
                let places: Problem<Vec<usize>> = colours.map(|(_, mask)| place(*mask)).collect();
                Kind::Direct { bytes: 4, places: places? }
            }
            (_, 1 | 2) => return Err("it is packed by run lengths, which is not read".into()),
            (_, 4 | 5) => return Err("it holds another image file (JPEG or PNG), which is not read".into()),
            _ => return Err(format!("it has {bits} bits per pixel; 1, 4, 8, 24 and 32 are read")),
        };
        if begin < FILE_HEADER + size + masks {
            return Err("its pixels begin within its header".into());
        }
        let row_bytes = (columns * bits).div_ceil(32) * 4;
        Ok(Self { rows, columns, top_down: height < 0, kind, begin, row_bytes })
    }

    fn is_undecided(&self) -> bool {
        matches!(self.kind, Kind::Undecided)
    }

    /// The same, with a meaning for the fourth byte.
    fn decided(mut self, file: &[u8]) -> Problem<Self> {
        if self.is_undecided() {
            // A row of four bytes per pixel needs no filling up.
            let mut fourth = self.body(file)?.iter().skip(3).step_by(4);
            let first = fourth.next();
            let differs = fourth.any(|byte| Some(byte) != first);
            let places = if differs { vec![2, 1, 0, 3] } else { vec![2, 1, 0] };
            self.kind = Kind::Direct { bytes: 4, places };
        }
        Ok(self)
    }

    /// The rows as they are stored.
    fn body<'b>(&self, file: &'b [u8]) -> Problem<&'b [u8]> {
        let (rows, columns, needed) = (self.rows, self.columns, self.row_bytes * self.rows);
        let body = self.begin.checked_add(needed).and_then(|end| file.get(self.begin..end));
        body.ok_or_else(|| {
            let found = file.len().saturating_sub(self.begin);
            format!(
                "its {rows}×{columns} pixels take {needed} bytes, but {found} are there; the file is cut short"
            )
        })
    }

    fn channels(&self) -> Channels {
        match &self.kind {
            Kind::Palette { colours, .. } if colours.iter().all(|c| c[0] == c[1] && c[1] == c[2]) => {
                Channels::Grey
            }
            Kind::Direct { places, .. } if places.len() == 4 => Channels::Rgba,
            _ => Channels::Rgb,
        }
    }

    fn header(&self) -> Header {
        Header::new(self.rows, self.columns, self.channels(), Depth::U8)
    }

    /// Adds a stored row to the values.
    fn row(&self, stored: &[u8], channels: Channels, values: &mut Vec<u8>) -> Problem<()> {
        match &self.kind {
            Kind::Undecided => return Err("the fourth byte of its pixels has no meaning".into()),
            Kind::Direct { bytes, places } => {
                for pixel in stored.chunks_exact(*bytes).take(self.columns) {
                    values.extend(places.iter().map(|&place| pixel[place]));
                }
            }
            Kind::Palette { bits, colours } => {
                for j in 0..self.columns {
                    // The leftmost pixel is in the highest bits of a byte.
                    let byte = usize::from(stored[j * bits / 8]);
                    let index = byte >> (8 - bits - j * bits % 8) & ((1 << bits) - 1);
                    let colour = colours.get(index).ok_or_else(|| {
                        format!("a pixel has colour {index} of a palette of {}", colours.len())
                    })?;
                    values.extend(&colour[..if channels == Channels::Grey { 1 } else { 3 }]);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A file with a header of 40 bytes (or more), a palette and rows.
    fn bmp(columns: i32, rows: i32, bits: u16, compression: u32, palette: &[u8], body: &[u8]) -> Vec<u8> {
        let mut file = b"BM".to_vec();
        file.extend([0; 8]);
        file.extend((54 + palette.len() as u32).to_le_bytes());
        file.extend(40u32.to_le_bytes());
        file.extend(columns.to_le_bytes());
        file.extend(rows.to_le_bytes());
        file.extend(1u16.to_le_bytes());
        file.extend(bits.to_le_bytes());
        file.extend(compression.to_le_bytes());
        file.extend([0; 20]);
        file.extend(palette);
        file.extend(body);
        file
    }

    fn decoded(file: &[u8]) -> Problem<Pixels> {
        let room = Room { file: file.len() as u64 };
        let pixels = decode(Cursor::new(file), room)?;
        let header = header(Cursor::new(file), room)?;
        assert_eq!((header.size(), header.channels), ((pixels.rows, pixels.columns), pixels.channels));
        Ok(pixels)
    }

    #[test]
    fn palettes_of_every_width_and_either_direction() {
        let greys: Vec<u8> = (0..=255).flat_map(|g| [g, g, g, 0]).collect();
        // Two rows of three, the lower one first, each filled up to four bytes.
        let file = bmp(3, 2, 8, 0, &greys, &[4, 5, 6, 0, 1, 2, 3, 0]);
        let pixels = decoded(&file).unwrap();
        assert_eq!((pixels.channels, pixels.values), (Channels::Grey, Values::U8(vec![1, 2, 3, 4, 5, 6])));
        let file = bmp(3, -2, 8, 0, &greys, &[4, 5, 6, 0, 1, 2, 3, 0]);
        assert_eq!(decoded(&file).unwrap().values, Values::U8(vec![4, 5, 6, 1, 2, 3]));
        let two = [0, 0, 0, 0, 255, 255, 255, 0];
        let file = bmp(10, 1, 1, 0, &two, &[0b1011_0001, 0b0100_0000, 0, 0]);
        let Values::U8(bits) = decoded(&file).unwrap().values else { panic!() };
        assert_eq!(bits.iter().map(|b| b / 255).collect::<Vec<_>>(), [1, 0, 1, 1, 0, 0, 0, 1, 0, 1]);
        let sixteen: Vec<u8> = (0..16).flat_map(|g| [g, g + 100, g + 200, 0]).collect();
        let file = bmp(3, 1, 4, 0, &sixteen, &[0x1f, 0x20, 0, 0]);
        // Blue comes first in the file.
        let expected = vec![201, 101, 1, 215, 115, 15, 202, 102, 2];
        assert_eq!(decoded(&file).unwrap().values, Values::U8(expected));
    }

    #[test]
    fn direct_colours_with_and_without_transparency() {
        let file = bmp(1, 1, 24, 0, &[], &[3, 2, 1, 0]);
        assert_eq!(decoded(&file).unwrap().values, Values::U8(vec![1, 2, 3]));
        let file = bmp(1, 1, 32, 0, &[], &[3, 2, 1, 77]);
        assert_eq!(decoded(&file).unwrap().values, Values::U8(vec![1, 2, 3]));
        // The fourth byte of all pixels, where it is not the same, can be nothing but transparency.
        let file = bmp(2, 1, 32, 0, &[], &[3, 2, 1, 0, 6, 5, 4, 255]);
        let pixels = decoded(&file).unwrap();
        assert_eq!(
            (pixels.channels, pixels.values),
            (Channels::Rgba, Values::U8(vec![1, 2, 3, 0, 4, 5, 6, 255]))
        );
        let file = bmp(2, 1, 32, 0, &[], &[3, 2, 1, 255, 6, 5, 4, 255]);
        assert_eq!(decoded(&file).unwrap().channels, Channels::Rgb);
        // Masks that say where each channel is: here red is the first byte and transparency the last.
        let masks: Vec<u8> =
            [0xffu32, 0xff00, 0xff0000, 0xff00_0000].iter().flat_map(|m| m.to_le_bytes()).collect();
        let file = bmp(1, 1, 32, 6, &masks, &[1, 2, 3, 4]);
        let pixels = decoded(&file).unwrap();
        assert_eq!((pixels.channels, pixels.values), (Channels::Rgba, Values::U8(vec![1, 2, 3, 4])));
    }

    #[test]
    fn bad_files_say_what_is_wrong() {
        let is = |file: Vec<u8>, expected: &str| {
            let problem = decoded(&file).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        };
        let file = bmp(2, 2, 24, 0, &[], &[0; 16]);
        is(file[..file.len() - 1].to_vec(), "take 16 bytes, but 15 are there; the file is cut short");
        is(file[..30].to_vec(), "it ends within its header");
        is(bmp(2, 2, 8, 1, &[0; 1024], &[0; 16]), "packed by run lengths");
        is(bmp(2, 2, 16, 0, &[], &[0; 16]), "it has 16 bits per pixel");
        is(bmp(0, 2, 24, 0, &[], &[0; 16]), "2×0 pixels");
        is(bmp(-5, 2, 24, 0, &[], &[0; 16]), "2×0 pixels");
        is(bmp(i32::MAX, i32::MIN, 24, 0, &[], &[0; 16]), "are possible");
        is(bmp(3000, 3000, 24, 0, &[], &[0; 16]), "a file of 70 bytes cannot hold so many");
        is(bmp(1, 1, 32, 3, &[0xff, 1, 0, 0, 0, 0xff, 0, 0, 0, 0, 0xff, 0], &[0; 4]), "whole bytes are read");
        let mut few = bmp(1, 1, 8, 0, &[0; 8], &[2, 0, 0, 0]);
        few[46] = 2;
        is(few, "colour 2 of a palette of 2");
    }
}
