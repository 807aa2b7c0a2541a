//! JPEG, decoded by the crate `zune-jpeg`.
//!
//! The decoder makes the best of whatever it gets, as a browser should: half a file gives half a picture, the rest
//! grey. Here the markers are walked through first. A file without its end is an error, and so is a header that
//! promises more pixels than the bits that follow can stand for.

use std::io::{BufRead, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::orientation::Orientation;
use super::pixels::{Channels, Depth, Pixels, Values};
use super::{Header, Problem, Room, rest};

/// Blocks of 8×8 coefficients that are gone through for each byte of the file, at most, and for any file. A scan of a
/// progressive file can pass over thousands of blocks with a few bits, and there can be many scans.
const BLOCKS_PER_BYTE: u64 = 128;
const BLOCKS: u64 = 1 << 20;

pub(super) fn header(file: impl BufRead + Seek, room: Room) -> Problem<Header> {
    let found = Markers::walk(file, false)?;
    found.header(room, room.file)
}

pub(super) fn decode(file: impl BufRead + Seek, room: Room) -> Problem<Pixels> {
    let mut bytes = rest(file, room)?;
    let found = Markers::walk(std::io::Cursor::new(&bytes), true)?;
    let header = found.header(room, found.coded)?;
    let work: u64 = found.scans.iter().map(|scan| found.blocks(scan)).sum();
    if work > BLOCKS.saturating_add(BLOCKS_PER_BYTE.saturating_mul(room.file)) {
        return Err(format!(
            "it goes over its {}×{} pixels {} times; a file of {} bytes has no reason to",
            header.rows,
            header.columns,
            found.scans.len(),
            room.file
        ));
    }
    // Bytes between the segments mean nothing; the decoder would not be so sure.
    found.stray.iter().rev().for_each(|range| drop(bytes.drain(range.clone())));
    let (colours, channels) = match header.channels {
        Channels::Grey => (ColorSpace::Luma, Channels::Grey),
        _ => (ColorSpace::RGB, Channels::Rgb),
    };
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .set_max_width(usize::MAX)
        .set_max_height(usize::MAX)
        .jpeg_set_out_colorspace(colours);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(&bytes[..]), options);
    decoder.decode_headers().map_err(told)?;
    let expected = header.rows * header.columns * channels.count();
    if decoder.output_buffer_size() != Some(expected) {
        return Err("it has several headers that contradict each other".into());
    }
    let mut values = vec![0; expected];
    decoder.decode_into(&mut values).map_err(told)?;
    let (rows, columns) = (header.rows, header.columns);
    Ok(header.orientation.apply(Pixels { rows, columns, channels, values: Values::U8(values) }))
}

/// What the markers of a file say.
#[derive(Debug, Default)]
struct Markers {
    rows: usize,
    columns: usize,
    /// Name, horizontal and vertical sampling factor of each component.
    components: Vec<[u8; 3]>,
    orientation: Orientation,
    /// The components of each scan.
    scans: Vec<Vec<u8>>,
    /// The bytes of coded pixels.
    coded: u64,
    /// Where bytes stand that belong to nothing.
    stray: Vec<Range<usize>>,
}

impl Markers {
    /// Goes through the file to its end or, if it need not be `whole`, to where the pixels begin.
    fn walk(mut file: impl BufRead + Seek, whole: bool) -> Problem<Self> {
        let mut found = Self::default();
        let mut at = 2;
        file.seek(SeekFrom::Start(at)).map_err(|e| e.to_string())?;
        let mut in_scan = false;
        loop {
            let before = at;
            let marker = next_marker(&mut file, &mut at)?;
            // The first 0xFF of a marker is its own, whatever fills the room before it.
            let passed = at - before - 2;
            if in_scan {
                found.coded += passed;
            } else if passed > 0 {
                found.stray.push(before as usize..(at - 2) as usize);
            }
            match marker {
                // Nothing but a byte of the pixels, a place to start again from, or a private note.
                0x00 | 0x01 | 0xd0..=0xd8 => {
                    if in_scan {
                        found.coded += 2;
                    }
                    continue;
                }
                0xd9 if found.scans.is_empty() => return Err("it ends before any pixels".into()),
                0xd9 => return Ok(found),
                _ => in_scan = false,
            }
            let length = u64::from(u16::from_be_bytes(read(&mut file)?));
            let body = length.checked_sub(2).ok_or("it has a segment of impossible length")?;
            at += length;
            match marker {
                0xc0..=0xc2 if found.components.is_empty() => found.frame(&segment(&mut file, body)?)?,
                0xc0..=0xc2 => return Err("it has two headers of a picture".into()),
                0xc3 | 0xc5..=0xc7 => return Err("it is lossless or hierarchical, which is not read".into()),
                0xc9..=0xcb | 0xcd..=0xcf => {
                    return Err("it is coded arithmetically, which is not read".into());
                }
                0xe1 => {
                    let segment = segment(&mut file, body)?;
                    if let Some(exif) = segment.strip_prefix(b"Exif\0\0") {
                        found.orientation = Orientation::from_exif(exif);
                    }
                }
                0xda => {
                    found.scan(&segment(&mut file, body)?)?;
                    if !whole {
                        return Ok(found);
                    }
                    in_scan = true;
                }
                _ => {
                    file.seek_relative(body as i64).map_err(|e| e.to_string())?;
                }
            }
        }
    }

    fn frame(&mut self, segment: &[u8]) -> Problem<()> {
        let [bits, r0, r1, c0, c1, count, components @ ..] = segment else {
            return Err("its header is cut short".into());
        };
        if *bits != 8 {
            return Err(format!("it has {bits} bits per channel; 8 are read"));
        }
        self.rows = usize::from(u16::from_be_bytes([*r0, *r1]));
        self.columns = usize::from(u16::from_be_bytes([*c0, *c1]));
        self.components = components.chunks_exact(3).map(|c| [c[0], c[1] >> 4, c[1] & 15]).collect();
        let sampled = self.components.iter().all(|[_, h, v]| (1..=4).contains(h) && (1..=4).contains(v));
        if self.components.len() != usize::from(*count) || !sampled {
            return Err("the components in its header make no sense".into());
        }
        Ok(())
    }

    fn scan(&mut self, segment: &[u8]) -> Problem<()> {
        if self.components.is_empty() {
            return Err("its pixels come before its header".into());
        }
        let (count, components) = segment.split_first().ok_or("a scan has no header")?;
        let names: Vec<u8> = components.chunks_exact(2).take(usize::from(*count)).map(|c| c[0]).collect();
        if names.is_empty() || names.iter().any(|name| !self.components.iter().any(|c| c[0] == *name)) {
            return Err("a scan is of components that its header does not know".into());
        }
        self.scans.push(names);
        Ok(())
    }

    /// The blocks of these components.
    fn blocks(&self, names: &[u8]) -> u64 {
        let most = |of: usize| self.components.iter().map(|c| u64::from(c[of])).max().unwrap_or(1).max(1);
        let along =
            |side: usize, sampling: u8, most: u64| (side as u64 * u64::from(sampling)).div_ceil(8 * most);
        let chosen = self.components.iter().filter(|c| names.contains(&c[0]));
        chosen.map(|c| along(self.columns, c[1], most(1)) * along(self.rows, c[2], most(2))).sum()
    }

    /// The header, if `coded` bytes can stand for so many pixels: a block takes at least a bit.
    fn header(&self, room: Room, coded: u64) -> Problem<Header> {
        let (rows, columns) = (self.rows, self.columns);
        let channels = match self.components.len() {
            1 => Channels::Grey,
            3 | 4 => Channels::Rgb,
            count => return Err(format!("it has {count} channels; 1, 3 or 4 are read")),
        };
        room.check(rows, columns, channels.count())?;
        let names: Vec<u8> = self.components.iter().map(|c| c[0]).collect();
        if self.blocks(&names) > coded.saturating_mul(8) {
            return Err(format!(
                "its header says {rows}×{columns} pixels, but {coded} bytes cannot stand for so many"
            ));
        }
        let orientation = self.orientation;
        Ok(Header { orientation, ..Header::new(rows, columns, channels, Depth::U8) })
    }
}

/// The next byte after an 0xFF, fill bytes aside; `at` counts what was read.
fn next_marker(file: &mut impl BufRead, at: &mut u64) -> Problem<u8> {
    let passed = file.skip_until(0xff).map_err(|e| e.to_string())?;
    *at += passed as u64;
    loop {
        let mut byte = [0];
        file.read_exact(&mut byte).map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => "the file is cut short: it has no end-of-image marker".to_string(),
            _ => e.to_string(),
        })?;
        *at += 1;
        if byte[0] != 0xff {
            return Ok(byte[0]);
        }
    }
}

fn read<const N: usize>(file: &mut impl Read) -> Problem<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes).map_err(|_| "the file is cut short within a header".to_string())?;
    Ok(bytes)
}

fn segment(file: &mut impl Read, length: u64) -> Problem<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() as u64 != length {
        return Err("the file is cut short within a header".into());
    }
    Ok(bytes)
}

/// The decoder writes some of its messages in quotation marks.
fn told(error: zune_jpeg::errors::DecodeErrors) -> String {
    error.to_string().trim_matches('"').to_string()
}
