//! Image files: what their headers say and the pixels they hold, whatever the format.
//!
//! One file per format, each a reader of its own or a thin layer over a decoder of the format's own. Nothing in a file
//! is believed: a size is compared with what a file of that length can hold before anything is allocated, and a
//! decoder that panics has met a file that cannot be read.
//!
//! | file | what |
//! |---|---|
//! | `bmp`, `jpeg`, `png`, `pnm`, `tiff` | the formats |
//! | `pixels`, `orientation` | a decoded picture, and how the camera was held |
//! | `resize` | other rows and columns |
//! | `guard` | decoders that panic |

mod bmp;
mod guard;
mod jpeg;
mod orientation;
mod pixels;
pub(crate) mod png;
mod pnm;
mod resize;
mod tiff;

use std::io::{BufRead, Read, Seek, SeekFrom};

pub(crate) use self::orientation::Orientation;
pub(crate) use self::pixels::{Channels, Depth, Pixels, Values};

/// No image of more pixels is read (11,585×11,585).
pub(crate) const PIXELS: usize = 1 << 27;
/// So much may come out of any file, however small: a page of one colour takes next to nothing.
const FLOOR: u64 = 16 << 20;
/// So many bytes may come out of one: deflate packs at most 1,032 into one, LZW somewhat more.
const RATIO: u64 = 1400;

type Problem<T> = std::result::Result<T, String>;

/// What a file says about one of its pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Rows as they are stored.
    rows: usize,
    /// Columns as they are stored.
    columns: usize,
    pub(crate) channels: Channels,
    pub(crate) depth: Depth,
    /// Whether single precision holds what is stored.
    pub(crate) exact: bool,
    pub(crate) orientation: Orientation,
    pub(crate) page: Page,
}

/// Which picture of a file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Page {
    /// Counted from 0.
    pub(crate) number: usize,
    /// Where in a TIFF file its directory is, in bytes.
    at: u64,
}

impl Header {
    fn new(rows: usize, columns: usize, channels: Channels, depth: Depth) -> Self {
        Self {
            rows,
            columns,
            channels,
            depth,
            exact: true,
            orientation: Orientation::default(),
            page: Page::default(),
        }
    }

    /// What the picture takes when it is decoded.
    pub(crate) fn bytes(&self) -> u64 {
        (self.rows * self.columns * self.channels.count() * self.depth.size()) as u64
    }

    /// Rows and columns of the upright picture.
    pub(crate) fn size(&self) -> (usize, usize) {
        self.orientation.size(self.rows, self.columns)
    }
}

/// What may come out of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// The length of the file.
    pub(crate) file: u64,
}

impl Room {
    /// Whether a picture of this size can come out of the file.
    fn check(&self, rows: usize, columns: usize, pixel_bytes: usize) -> Problem<()> {
        let pixels = rows.checked_mul(columns);
        let Some(pixels @ 1..=PIXELS) = pixels else {
            return Err(format!(
                "its header says {rows}×{columns} pixels; between 1 and {PIXELS} are possible"
            ));
        };
        let bytes = (pixels * pixel_bytes) as u64;
        if bytes > self.most() {
            return Err(format!(
                "its header says {rows}×{columns} pixels, {} of them; a file of {} bytes cannot hold so many",
                crate::error::bytes(bytes),
                self.file
            ));
        }
        Ok(())
    }

    /// The most bytes that may come out of the file.
    fn most(&self) -> u64 {
        self.file.saturating_mul(RATIO).max(FLOOR)
    }
}

/// The headers of the pictures in a file: one, unless it is TIFF.
pub(crate) struct Contents {
    pub(crate) pages: Vec<Header>,
    /// How many pictures of a TIFF file are not read, because it says that they are thumbnails or masks of others.
    pub(crate) left_out: usize,
}

/// Reads the headers of a file. What is in it counts, not what it is called.
pub(crate) fn headers<R: BufRead + Seek>(mut file: R, room: Room) -> Problem<Contents> {
    guard::guarded(|| {
        let one = |header: Header| Contents { pages: vec![header], left_out: 0 };
        match Format::of(&mut file)? {
            Format::Png => png::header(file, room).map(one),
            Format::Jpeg => jpeg::header(file, room).map(one),
            Format::Bmp => bmp::header(file, room).map(one),
            Format::Pnm => pnm::header(file, room).map(one),
            Format::Tiff => tiff::headers(file, room),
        }
    })
}

/// Decodes the pictures at these places of a file, one after the other, and turns them upright.
pub(crate) fn decode<R: BufRead + Seek>(
    mut file: R,
    room: Room,
    pages: &[Page],
    mut take: impl FnMut(Pixels) -> Problem<()>,
) -> Problem<()> {
    guard::guarded(|| {
        let decoded = match Format::of(&mut file)? {
            Format::Tiff => return tiff::decode(file, room, pages, take),
            Format::Png => png::decode(file, room)?,
            Format::Jpeg => jpeg::decode(file, room)?,
            Format::Bmp => bmp::decode(file, room)?,
            Format::Pnm => pnm::decode(file, room)?,
        };
        take(decoded)
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Png,
    Jpeg,
    Pnm,
    Bmp,
    Tiff,
}

impl Format {
    fn of(file: &mut (impl BufRead + Seek)) -> Problem<Self> {
        let mut start = [0; 16];
        let mut found = 0;
        while found < start.len() {
            match file.read(&mut start[found..]).map_err(|e| e.to_string())? {
                0 => break,
                count => found += count,
            }
        }
        file.seek(SeekFrom::Start(0)).map_err(|e| e.to_string())?;
        match &start[..found] {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Ok(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Ok(Self::Jpeg),
            [b'P', b'1'..=b'6', b'#' | b' ' | b'\t' | b'\r' | b'\n', ..] => Ok(Self::Pnm),
            [b'B', b'M', ..] => Ok(Self::Bmp),
            [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => Ok(Self::Tiff),
            [b'G', b'I', b'F', b'8', ..] => Err(other("GIF")),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Err(other("WebP")),
            [_, _, _, _, b'f', b't', b'y', b'p', ..] => Err(other("HEIC or AVIF")),
            [] => Err("it is empty".into()),
            _ => Err("it begins like no PNG, JPEG, PNM (PBM, PGM, PPM), BMP or TIFF file".into()),
        }
    }
}

fn other(name: &str) -> String {
    format!("it is a {name} image; PNG, JPEG, PNM (PBM, PGM, PPM), BMP and TIFF are read")
}

/// Reads what is left of a file that is decoded as a whole.
fn rest(file: impl Read, room: Room) -> Problem<Vec<u8>> {
    let mut bytes = Vec::new();
    // One that grows meanwhile is not followed for ever.
    file.take(room.file).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn other_formats_are_called_by_their_names() {
        let problem = |bytes: &[u8]| {
            let room = Room { file: bytes.len() as u64 };
            headers(Cursor::new(bytes), room).err().unwrap()
        };
        assert!(problem(b"GIF89a").contains("it is a GIF image; PNG, JPEG"));
        assert!(problem(b"RIFF\0\0\0\0WEBPVP8 ").contains("WebP"));
        assert!(problem(b"\0\0\0\x18ftypheic").contains("HEIC"));
        assert!(problem(b"not a picture").contains("begins like no PNG"));
        assert_eq!(problem(b""), "it is empty");
    }

    #[test]
    fn a_size_is_compared_with_the_file() {
        let check = |file, rows, columns| Room { file }.check(rows, columns, 1);
        assert_eq!(check(100, 4000, 4000), Ok(()));
        assert!(check(100, 5000, 5000).unwrap_err().contains("a file of 100 bytes cannot hold"));
        assert_eq!(check(100_000, 5000, 5000), Ok(()));
        assert!(check(100, 0, 5).unwrap_err().contains("0×5 pixels"));
        assert!(check(u64::MAX, 20_000, 20_000).unwrap_err().contains("are possible"));
        assert!(check(u64::MAX, usize::MAX, 2).is_err());
    }
}
