//! TIFF, decoded by the crate `tiff`: one picture or a stack of them, whole numbers or floating point.
//!
//! | file | what |
//! |---|---|
//! | `directories` | the lists of tags, looked through before they are read |

mod directories;

use std::io::{BufRead, Read, Seek};

use ::tiff::ColorType;
use ::tiff::decoder::{BufferLayoutPreference, Decoder, DecodingResult, Limits};
use ::tiff::tags::{CompressionMethod, PhotometricInterpretation, SampleFormat, Tag};

use super::orientation::Orientation;
use super::pixels::{Channels, Depth, Pixels, Values};
use super::{Contents, Header, Page, Problem, Room};

pub(super) fn headers<R: BufRead + Seek>(mut file: R, room: Room) -> Problem<Contents> {
    directories::check(&mut file, room)?;
    let mut decoder = decoder(file, room)?;
    let mut contents = Contents { pages: Vec::new(), left_out: 0 };
    loop {
        let page = contents.pages.len() + contents.left_out;
        if page > 0 && is_of_another(&mut decoder) {
            contents.left_out += 1;
        } else {
            let header = Described::of(&mut decoder, room).map_err(|e| on_page(page, e))?.header;
            let at = decoder.ifd_pointer().map_or(0, |pointer| pointer.0);
            contents.pages.push(Header { page: Page { number: page, at }, ..header });
        }
        if !decoder.more_images() {
            return Ok(contents);
        }
        decoder.next_image().map_err(|e| on_page(page + 1, told(e)))?;
    }
}

/// Every page by the place of its directory: the way along the chain of all before it grows with their number.
pub(super) fn decode<R: BufRead + Seek>(
    mut file: R,
    room: Room,
    pages: &[Page],
    mut take: impl FnMut(Pixels) -> Problem<()>,
) -> Problem<()> {
    for page in pages {
        let mut read = || {
            let mut decoder = decoder(directories::Begun::at(&mut file, page.at)?, room)?;
            picture(&mut decoder, room)
        };
        take(read().map_err(|e| on_page(page.number, e))?)?;
    }
    Ok(())
}

fn told(error: ::tiff::TiffError) -> String {
    error.to_string()
}

fn on_page(page: usize, problem: String) -> String {
    if page == 0 { problem } else { format!("on page {}: {problem}", page + 1) }
}

fn decoder<R: Read + Seek>(file: R, room: Room) -> Problem<Decoder<R>> {
    let decoder = Decoder::new(file).map_err(told)?;
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut limits = Limits::default();
    // What is allocated for a tag stands in the file.
    limits.ifd_value_size = bytes(room.file);
    limits.decoding_buffer_size = bytes(room.most());
    limits.intermediate_buffer_size = bytes(room.most());
    Ok(decoder.with_limits(limits))
}

/// Whether a picture says that it is a smaller version of another one, or its mask.
fn is_of_another<R: Read + Seek>(decoder: &mut Decoder<R>) -> bool {
    let kind: Option<u32> = decoder.find_tag_unsigned(Tag::NewSubfileType).ok().flatten();
    kind.is_some_and(|kind| kind & 0b101 != 0)
}

/// What a directory says about its picture.
struct Described {
    header: Header,
    colour: ColorType,
    layout: BufferLayoutPreference,
}

impl Described {
    fn of<R: Read + Seek>(decoder: &mut Decoder<R>, room: Room) -> Problem<Self> {
        let (width, height) = decoder.dimensions().map_err(told)?;
        let (rows, columns) = (height as usize, width as usize);
        refuse_jpeg(decoder)?;
        let colour = decoder.colortype().map_err(|e| match palette(decoder) {
            true => {
                "its pixels are places in a palette, which is not read; save it in grey or in colour".into()
            }
            false => told(e),
        })?;
        let layout = decoder.image_buffer_layout().map_err(told)?;
        let (channels, bits) = match colour {
            ColorType::Gray(bits) => (Channels::Grey, bits),
            ColorType::GrayA(bits) | ColorType::Multiband { bit_depth: bits, num_samples: 2 } => {
                (Channels::GreyAlpha, bits)
            }
            ColorType::RGB(bits) => (Channels::Rgb, bits),
            ColorType::RGBA(bits) => (Channels::Rgba, bits),
            ColorType::CMYK(bits @ (8 | 16)) => (Channels::Rgb, bits),
            ColorType::Multiband { num_samples, .. } => {
                return Err(format!("its pixels have {num_samples} channels; up to 4 are read"));
            }
            other => return Err(format!("its colours are {other:?}; grey, RGB and CMYK are read")),
        };
        let format = layout.sample_format;
        let (depth, exact) = match (format, bits) {
            (SampleFormat::Uint, 1 | 2 | 4) if channels == Channels::Grey => (Depth::U8, true),
            (SampleFormat::Uint, 8) => (Depth::U8, true),
            (SampleFormat::Uint, 16) => (Depth::U16, true),
            (SampleFormat::IEEEFP, 16 | 32) | (SampleFormat::Int, 8 | 16) => (Depth::F32, true),
            (SampleFormat::IEEEFP, 64) | (SampleFormat::Uint | SampleFormat::Int, 32 | 64) => {
                (Depth::F32, false)
            }
            _ => return Err(format!("its numbers have {bits} bits ({format:?}), which is not read")),
        };
        room.check(rows, columns, colour.num_samples().max(1) as usize * usize::from(bits).div_ceil(8))?;
        let orientation: Option<u64> = decoder.find_tag_unsigned(Tag::Orientation).ok().flatten();
        let orientation = Orientation::new(orientation.unwrap_or(1));
        let header = Header { orientation, exact, ..Header::new(rows, columns, channels, depth) };
        Ok(Self { header, colour, layout })
    }
}

fn palette<R: Read + Seek>(decoder: &mut Decoder<R>) -> bool {
    let kind: Option<u16> = decoder.find_tag_unsigned(Tag::PhotometricInterpretation).ok().flatten();
    kind == Some(PhotometricInterpretation::RGBPalette.to_u16())
}

/// A picture inside the picture may claim any size.
fn refuse_jpeg<R: Read + Seek>(decoder: &mut Decoder<R>) -> Problem<()> {
    let method: Option<u16> = decoder.find_tag_unsigned(Tag::Compression).ok().flatten();
    let jpeg = [CompressionMethod::JPEG.to_u16(), CompressionMethod::ModernJPEG.to_u16()];
    if method.is_some_and(|method| jpeg.contains(&method)) {
        return Err("it is packed as JPEG, which is not read; save it as JPEG, or as TIFF with LZW".into());
    }
    Ok(())
}

fn picture<R: Read + Seek>(decoder: &mut Decoder<R>, room: Room) -> Problem<Pixels> {
    let Described { header, colour, layout } = Described::of(decoder, room)?;
    let (rows, columns) = (header.rows, header.columns);
    let mut decoded = DecodingResult::U8(Vec::new());
    decoder.read_image_to_buffer(&mut decoded).map_err(told)?;
    if decoded.as_buffer(0).byte_len() < layout.complete_len {
        return Err("its planes take more memory than they may".into());
    }
    let mut values = match decoded {
        DecodingResult::U8(x) => match colour {
            ColorType::Gray(bits @ (1 | 2 | 4)) => Values::U8(spread(&x, columns, usize::from(bits))),
            _ => Values::U8(x),
        },
        DecodingResult::U16(x) => Values::U16(x),
        DecodingResult::F32(x) => Values::F32(x),
        DecodingResult::F16(x) => Values::F32(x.into_iter().map(f32::from).collect()),
        DecodingResult::F64(x) => Values::F32(x.into_iter().map(|x| x as f32).collect()),
        DecodingResult::I8(x) => Values::F32(x.into_iter().map(f32::from).collect()),
        DecodingResult::I16(x) => Values::F32(x.into_iter().map(f32::from).collect()),
        DecodingResult::U32(x) => Values::F32(x.into_iter().map(|x| x as f32).collect()),
        DecodingResult::I32(x) => Values::F32(x.into_iter().map(|x| x as f32).collect()),
        DecodingResult::U64(x) => Values::F32(x.into_iter().map(|x| x as f32).collect()),
        DecodingResult::I64(x) => Values::F32(x.into_iter().map(|x| x as f32).collect()),
    };
    if layout.planes > 1 {
        values = match values {
            Values::U8(x) => Values::U8(side_by_side(&x, layout.planes)),
            Values::U16(x) => Values::U16(side_by_side(&x, layout.planes)),
            Values::F32(x) => Values::F32(side_by_side(&x, layout.planes)),
        };
    }
    if let ColorType::CMYK(_) = colour {
        values = match values {
            Values::U8(x) => {
                Values::U8(x.chunks_exact(4).flat_map(|p| printed(p, 255).map(|v| v as u8)).collect())
            }
            Values::U16(x) => {
                Values::U16(x.chunks_exact(4).flat_map(|p| printed(p, 65_535).map(|v| v as u16)).collect())
            }
            values => values,
        };
    }
    let found = match &values {
        Values::U8(x) => x.len(),
        Values::U16(x) => x.len(),
        Values::F32(x) => x.len(),
    };
    let expected = rows * columns * header.channels.count();
    if found != expected {
        return Err(format!("{found} numbers came out where {expected} should"));
    }
    Ok(header.orientation.apply(Pixels { rows, columns, channels: header.channels, values }))
}

/// Numbers of a few bits, side by side in bytes, spread over 0 to 255; every row begins with a byte of its own.
fn spread(packed: &[u8], columns: usize, bits: usize) -> Vec<u8> {
    let largest = (1usize << bits) - 1;
    let shade = |row: &[u8], j: usize| {
        let number = usize::from(row[j * bits / 8]) >> (8 - bits - j * bits % 8) & largest;
        (number * 255 / largest) as u8
    };
    let rows = packed.chunks_exact((columns * bits).div_ceil(8));
    rows.flat_map(|row| (0..columns).map(move |j| shade(row, j))).collect()
}

/// Planes one after the other as the channels of pixels.
fn side_by_side<T: Copy>(x: &[T], planes: usize) -> Vec<T> {
    let size = x.len() / planes;
    (0..size).flat_map(|i| (0..planes).map(move |plane| x[plane * size + i])).collect()
}

/// What light is left of white after four inks.
fn printed<T: Copy + Into<u32>>(inks: &[T], white: u32) -> [u32; 3] {
    let left = |ink: T| white - ink.into();
    let key = u64::from(left(inks[3]));
    [inks[0], inks[1], inks[2]].map(|ink| (u64::from(left(ink)) * key / u64::from(white)) as u32)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read, Result, SeekFrom};

    use super::*;
    use crate::data::pictures;

    /// Counts the bytes read.
    struct Counting(Cursor<Vec<u8>>, u64);

    impl Read for Counting {
        fn read(&mut self, out: &mut [u8]) -> Result<usize> {
            let count = self.0.read(out)?;
            self.1 += count as u64;
            Ok(count)
        }
    }

    impl BufRead for Counting {
        fn fill_buf(&mut self) -> Result<&[u8]> {
            self.0.fill_buf()
        }

        fn consume(&mut self, amount: usize) {
            self.0.consume(amount);
        }
    }

    impl Seek for Counting {
        fn seek(&mut self, to: SeekFrom) -> Result<u64> {
            self.0.seek(to)
        }
    }

    #[test]
    fn the_last_of_many_pages_costs_what_the_first_does() {
        let pixels: Vec<[u8; 2]> = (0..2000u16).map(|page| page.to_le_bytes()).collect();
        let pages: Vec<(usize, usize, &[u8])> = pixels.iter().map(|two| (1, 2, &two[..])).collect();
        let file = pictures::tiff(&pages);
        let room = Room { file: file.len() as u64 };
        let mut counting = Counting(Cursor::new(file), 0);
        let headers = headers(&mut counting, room).unwrap().pages;
        let mut cost = |n: usize| {
            let before = counting.1;
            decode(&mut counting, room, &[headers[n].page], |page| {
                assert_eq!(page.values, Values::U8(pixels[n].to_vec()));
                Ok(())
            })
            .unwrap();
            counting.1 - before
        };
        assert_eq!((cost(0), cost(1000)), (cost(1999), cost(1999)));
    }
}
