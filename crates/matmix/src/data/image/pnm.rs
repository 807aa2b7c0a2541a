//! PBM, PGM and PPM, as text (P1 to P3) and as bytes (P4 to P6), with 8 or 16 bits.

use std::io::{BufRead, Read, Seek};

use super::pixels::{Channels, Depth, Pixels, Values};
use super::{Header, Problem, Room, rest};

/// The longest header that is read, comments included.
const HEADER: usize = 1 << 16;

pub(super) fn header(file: impl BufRead + Seek, room: Room) -> Problem<Header> {
    let mut start = Vec::new();
    file.take(HEADER as u64).read_to_end(&mut start).map_err(|e| e.to_string())?;
    Ok(Layout::parse(&start, room)?.header())
}

pub(super) fn decode(file: impl BufRead + Seek, room: Room) -> Problem<Pixels> {
    let bytes = rest(file, room)?;
    let layout = Layout::parse(&bytes[..bytes.len().min(HEADER)], room)?;
    let header = layout.header();
    let body = &bytes[layout.begin..];
    let (rows, columns, channels) = (layout.rows, layout.columns, header.channels);
    let count = rows * columns * channels.count();
    let cut = |found: usize| {
        format!(
            "its {rows}×{columns} pixels are {count} numbers, but {found} are there; the file is cut short"
        )
    };
    let values = match layout.kind {
        b'1' => {
            let mut values = Vec::with_capacity(count.min(body.len()));
            for byte in body.iter().filter(|b| !b.is_ascii_whitespace()).take(count) {
                values.push(match byte {
                    b'0' => 255,
                    b'1' => 0,
                    other => {
                        return Err(format!("a pixel is `{}`; 0 and 1 are possible", other.escape_ascii()));
                    }
                });
            }
            Values::U8(values)
        }
        b'2' | b'3' => text(body, count, layout.largest)?,
        b'4' => {
            let row_bytes = columns.div_ceil(8);
            let whole = body.len() / row_bytes.max(1);
            let stored = body.get(..row_bytes * rows).ok_or_else(|| cut(whole * columns))?;
            let bits = stored.chunks_exact(row_bytes).flat_map(|row| {
                (0..columns).map(|j| if row[j / 8] >> (7 - j % 8) & 1 == 1 { 0 } else { 255 })
            });
            Values::U8(bits.collect())
        }
        _ if header.depth == Depth::U8 => {
            Values::U8(body.get(..count).ok_or_else(|| cut(body.len()))?.to_vec())
        }
        _ => {
            let stored = body.get(..2 * count).ok_or_else(|| cut(body.len() / 2))?;
            Values::U16(stored.chunks_exact(2).map(|b| u16::from_be_bytes([b[0], b[1]])).collect())
        }
    };
    let found = match &values {
        Values::U8(x) => x.len(),
        Values::U16(x) => x.len(),
        Values::F32(x) => x.len(),
    };
    if found < count {
        return Err(cut(found));
    }
    Ok(Pixels { rows, columns, channels, values })
}

/// Numbers with white space between them; fewer than `count` if there are no more.
fn text(body: &[u8], count: usize, largest: u32) -> Problem<Values> {
    let words = body.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).take(count);
    let numbers = words.map(|word| {
        let number = std::str::from_utf8(word).ok().and_then(|word| word.parse::<u32>().ok());
        number.filter(|&number| number <= largest).ok_or_else(|| {
            let word: String = word.iter().take(20).flat_map(|b| b.escape_ascii()).map(char::from).collect();
            format!("a value is `{word}`; numbers from 0 to {largest} are possible")
        })
    });
    if largest <= 255 {
        return Ok(Values::U8(numbers.map(|x| x.map(|x| x as u8)).collect::<Problem<_>>()?));
    }
    Ok(Values::U16(numbers.map(|x| x.map(|x| x as u16)).collect::<Problem<_>>()?))
}

struct Layout {
    /// `1` to `6`.
    kind: u8,
    rows: usize,
    columns: usize,
    /// The value of white.
    largest: u32,
    /// Where the pixels begin, in bytes.
    begin: usize,
}

impl Layout {
    fn parse(bytes: &[u8], room: Room) -> Problem<Self> {
        let kind = *bytes.get(1).ok_or("it ends within its header")?;
        let mut at = 2;
        let mut number = |name: &str| {
            number_at(bytes, &mut at).ok_or_else(|| format!("its header does not say its {name}"))
        };
        let (columns, rows) = (number("width")? as usize, number("height")? as usize);
        let largest = if matches!(kind, b'1' | b'4') { 1 } else { number("largest value")? };
        if !(1..=65_535).contains(&largest) {
            return Err(format!("its largest value is {largest}; 1 to 65535 are possible"));
        }
        // One white space ends the header; what follows may look like anything.
        let layout = Self { kind, rows, columns, largest, begin: (at + 1).min(bytes.len()) };
        let header = layout.header();
        room.check(rows, columns, header.channels.count() * header.depth.size())?;
        let numbers = (rows * columns * header.channels.count()) as u64;
        // Bits side by side, digits, digits with spaces between them, bytes.
        let least = match kind {
            b'1' => numbers,
            b'2' | b'3' => 2 * numbers - 1,
            b'4' => (columns.div_ceil(8) * rows) as u64,
            _ => numbers * header.depth.size() as u64,
        };
        let found = room.file.saturating_sub(layout.begin as u64);
        if found < least {
            return Err(format!(
                "its {rows}×{columns} pixels take at least {least} bytes, but {found} are there; the file is cut short"
            ));
        }
        Ok(layout)
    }

    fn header(&self) -> Header {
        let channels = if matches!(self.kind, b'3' | b'6') { Channels::Rgb } else { Channels::Grey };
        let depth = if self.largest > 255 { Depth::U16 } else { Depth::U8 };
        Header::new(self.rows, self.columns, channels, depth)
    }
}

/// The next number of the header; `at` moves behind it.
fn number_at(bytes: &[u8], at: &mut usize) -> Option<u32> {
    loop {
        match bytes.get(*at)? {
            b'#' => *at += bytes[*at..].iter().position(|&b| b == b'\n' || b == b'\r')?,
            b if b.is_ascii_whitespace() => *at += 1,
            _ => break,
        }
    }
    let digits = bytes[*at..].iter().take_while(|b| b.is_ascii_digit()).count();
    let number = std::str::from_utf8(&bytes[*at..*at + digits]).ok()?.parse().ok()?;
    *at += digits;
    Some(number)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn decoded(file: &[u8]) -> Problem<Pixels> {
        let room = Room { file: file.len() as u64 };
        let header = header(Cursor::new(file), room)?;
        let pixels = decode(Cursor::new(file), room)?;
        assert_eq!((header.size(), header.channels), ((pixels.rows, pixels.columns), pixels.channels));
        Ok(pixels)
    }

    #[test]
    fn all_six_kinds_and_both_depths() {
        let values = |file: &[u8]| decoded(file).unwrap().values;
        assert_eq!(values(b"P1 3 2 \n010 1\n1 0"), Values::U8(vec![255, 0, 255, 0, 0, 255]));
        assert_eq!(values(b"P2\n# a comment\n2 1\n15\n 7\t15\n"), Values::U8(vec![7, 15]));
        assert_eq!(values(b"P2 2 1 1000 999 3"), Values::U16(vec![999, 3]));
        assert_eq!(values(b"P3 1 1 255 1 2 3"), Values::U8(vec![1, 2, 3]));
        assert_eq!(values(b"P4 9 1\n\x80\x80"), Values::U8(vec![0, 255, 255, 255, 255, 255, 255, 255, 0]));
        // The first pixel is a line feed, which no longer belongs to the header.
        assert_eq!(values(b"P5 2 1 255\n\n\x07"), Values::U8(vec![10, 7]));
        assert_eq!(values(b"P5 1 2 65535\n\x01\x02\xff\xff"), Values::U16(vec![258, 65535]));
        let colour = decoded(b"P6 1 1 255\nabc").unwrap();
        assert_eq!((colour.channels, colour.values), (Channels::Rgb, Values::U8(b"abc".to_vec())));
    }

    #[test]
    fn bad_files_say_what_is_wrong() {
        let is = |file: &[u8], expected: &str| {
            let problem = decoded(file).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        };
        is(b"P5 2", "does not say its height");
        is(b"P5 2 2 0 ", "its largest value is 0");
        is(b"P5 2 2 70000 ", "its largest value is 70000");
        is(b"P5 2 2 255 abc", "take at least 4 bytes, but 3 are there; the file is cut short");
        is(b"P2 2 1 255 1           ", "are 2 numbers, but 1 are there; the file is cut short");
        is(b"P2 2 1 255 1 x          ", "a value is `x`; numbers from 0 to 255");
        is(b"P2 2 1 15 1 16          ", "a value is `16`; numbers from 0 to 15");
        is(b"P1 2 1 02", "a pixel is `2`");
        is(b"P5 99999999999 1 255 a", "does not say its width");
        is(b"P5 100000 100000 255 a", "are possible");
        is(b"P4 4000 4000\n", "the file is cut short");
    }
}
