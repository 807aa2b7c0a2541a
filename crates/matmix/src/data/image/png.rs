//! PNG, read by the crate `png`.

use std::io::{BufRead, Seek};

use ::png::{BitDepth, ColorType, Decoder, Limits, Reader, Transformations};

use super::orientation::Orientation;
use super::pixels::{Channels, Depth, Pixels, Values};
use super::{Header, Problem, Room};

/// What the chunks before the pixels may take beside them: palettes and notes of cameras.
const NOTES: u64 = 1 << 20;

pub(super) fn header(file: impl BufRead + Seek, room: Room) -> Problem<Header> {
    Ok(begin(file, room)?.0)
}

pub(super) fn decode(file: impl BufRead + Seek, room: Room) -> Problem<Pixels> {
    let (header, grey_palette, mut reader) = begin(file, room)?;
    let colours = if grey_palette { colours_of(header.channels) } else { header.channels };
    let Header { rows, columns, .. } = header;
    let mut bytes = vec![0; rows * columns * colours.count() * header.depth.size()];
    let frame = reader.next_frame(&mut bytes).map_err(|e| e.to_string())?;
    if (frame.height as usize, frame.width as usize) != (rows, columns) {
        return Err(format!(
            "its first picture has {}×{} pixels, not {rows}×{columns}",
            frame.height, frame.width
        ));
    }
    let values = match header.depth {
        Depth::U16 => Values::U16(bytes.chunks_exact(2).map(|b| u16::from_be_bytes([b[0], b[1]])).collect()),
        _ => Values::U8(bytes),
    };
    let pixels = Pixels { rows, columns, channels: colours, values };
    // The three channels of a grey palette are the same.
    let pixels = match (grey_palette, header.channels) {
        (true, Channels::Grey) => pixels.grey(),
        (true, _) => pixels.grey_with_alpha(),
        _ => pixels,
    };
    Ok(header.orientation.apply(pixels))
}

/// The header, whether a palette holds nothing but shades of grey, and the decoder before the first row.
fn begin<R: BufRead + Seek>(file: R, room: Room) -> Problem<(Header, bool, Reader<R>)> {
    let limit = |bytes: u64| Limits { bytes: usize::try_from(bytes).unwrap_or(usize::MAX) };
    let mut decoder = Decoder::new_with_limits(file, limit(room.file.saturating_add(NOTES)));
    // Neither says anything about the pixels that is of use here, and both may unpack to anything.
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let first = decoder.read_header_info().map_err(|e| e.to_string())?;
    let (rows, columns) = (first.height as usize, first.width as usize);
    room.check(rows, columns, first.bytes_per_pixel())?;
    // The decoder keeps a row of what it hands out, and that is counted too.
    decoder.set_limits(limit(room.file.saturating_add(NOTES).saturating_add(8 * columns as u64)));
    // Fewer than 8 bits become 8, palettes colours, a transparent colour transparency.
    decoder.set_transformations(Transformations::EXPAND);
    let reader = decoder.read_info().map_err(|e| e.to_string())?;
    let info = reader.info();
    let mut grey_palette = false;
    if info.color_type == ColorType::Indexed {
        let palette = info.palette.as_deref().unwrap_or_default();
        if palette.is_empty() || palette.len() % 3 != 0 {
            return Err(format!("its palette has {} bytes; three per colour are needed", palette.len()));
        }
        grey_palette = palette.chunks_exact(3).all(|c| c[0] == c[1] && c[1] == c[2]);
    }
    let (colour, bits) = reader.output_color_type();
    let channels = match colour {
        ColorType::Grayscale => Channels::Grey,
        ColorType::GrayscaleAlpha => Channels::GreyAlpha,
        ColorType::Rgb if grey_palette => Channels::Grey,
        ColorType::Rgba if grey_palette => Channels::GreyAlpha,
        ColorType::Rgb | ColorType::Indexed => Channels::Rgb,
        ColorType::Rgba => Channels::Rgba,
    };
    let depth = if bits == BitDepth::Sixteen { Depth::U16 } else { Depth::U8 };
    room.check(rows, columns, colour.samples() * depth.size())?;
    let orientation = info.exif_metadata.as_deref().map(Orientation::from_exif).unwrap_or_default();
    Ok((Header { orientation, ..Header::new(rows, columns, channels, depth) }, grey_palette, reader))
}

/// What the decoder makes of a palette: always colours.
fn colours_of(channels: Channels) -> Channels {
    if channels.has_alpha() { Channels::Rgba } else { Channels::Rgb }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::io::Cursor;

    use ::png::Encoder;

    use super::*;

    fn room(bytes: &[u8]) -> Room {
        Room { file: bytes.len() as u64 }
    }

    fn decoded(bytes: &[u8]) -> Problem<Pixels> {
        decode(Cursor::new(bytes), room(bytes))
    }

    /// Writes a file of one row.
    fn written(
        colour: ColorType,
        bits: BitDepth,
        columns: u32,
        palette: Option<&[u8]>,
        row: &[u8],
    ) -> Vec<u8> {
        let mut info = ::png::Info::with_size(columns, 1);
        info.color_type = colour;
        info.bit_depth = bits;
        info.palette = palette.map(|p| Cow::Owned(p.to_vec()));
        encode(info, row)
    }

    /// Writes a file as `info` describes it.
    fn encode(info: ::png::Info<'_>, pixels: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Encoder::with_info(&mut out, info).unwrap().write_header().unwrap();
        writer.write_image_data(pixels).unwrap();
        writer.finish().unwrap();
        out
    }

    /// So many rows and columns of bytes.
    fn bytes_of(colour: ColorType, rows: u32, columns: u32) -> ::png::Info<'static> {
        let mut info = ::png::Info::with_size(columns, rows);
        info.color_type = colour;
        info.bit_depth = BitDepth::Eight;
        info
    }

    #[test]
    fn every_kind_comes_out_as_it_went_in() {
        for (colour, channels) in [
            (ColorType::Grayscale, Channels::Grey),
            (ColorType::GrayscaleAlpha, Channels::GreyAlpha),
            (ColorType::Rgb, Channels::Rgb),
            (ColorType::Rgba, Channels::Rgba),
        ] {
            let bytes: Vec<u8> = (0..6 * channels.count()).map(|i| (i * 41 % 256) as u8).collect();
            let file = encode(bytes_of(colour, 2, 3), &bytes);
            let expected = Pixels { rows: 2, columns: 3, channels, values: Values::U8(bytes) };
            assert_eq!(decoded(&file), Ok(expected));
        }
        let wide = written(ColorType::Rgb, BitDepth::Sixteen, 1, None, &[1, 2, 3, 4, 255, 255]);
        assert_eq!(decoded(&wide).unwrap().values, Values::U16(vec![258, 772, 65535]));
        let bits = written(ColorType::Grayscale, BitDepth::Two, 4, None, &[0b00_01_10_11]);
        assert_eq!(decoded(&bits).unwrap().values, Values::U8(vec![0, 85, 170, 255]));
    }

    #[test]
    fn a_palette_is_grey_where_all_its_colours_are() {
        let colours = written(ColorType::Indexed, BitDepth::Eight, 2, Some(&[1, 2, 3, 9, 9, 9]), &[1, 0]);
        let pixels = decoded(&colours).unwrap();
        assert_eq!((pixels.channels, pixels.values), (Channels::Rgb, Values::U8(vec![9, 9, 9, 1, 2, 3])));
        let greys = written(ColorType::Indexed, BitDepth::Eight, 2, Some(&[5, 5, 5, 9, 9, 9]), &[1, 0]);
        let pixels = decoded(&greys).unwrap();
        assert_eq!((pixels.channels, pixels.values), (Channels::Grey, Values::U8(vec![9, 5])));
        assert_eq!(header(Cursor::new(&greys), room(&greys)).unwrap().channels, Channels::Grey);
    }

    #[test]
    fn a_palette_that_ends_within_a_colour_is_an_error() {
        let mut file = written(ColorType::Indexed, BitDepth::Eight, 1, Some(&[0, 0, 0]), &[0]);
        // Four bytes of palette instead of three, with their checksum.
        let at = file.windows(4).position(|w| w == b"PLTE").unwrap();
        let mut crc = flate2::Crc::new();
        crc.update(b"PLTE\0\0\0\0");
        let chunk = [&4u32.to_be_bytes()[..], b"PLTE\0\0\0\0", &crc.sum().to_be_bytes()].concat();
        file.splice(at - 4..at + 4 + 3 + 4, chunk);
        assert_eq!(decoded(&file).unwrap_err(), "its palette has 4 bytes; three per colour are needed");
    }

    #[test]
    fn a_file_that_is_cut_short_or_says_too_much_is_an_error() {
        let bytes: Vec<u8> = (0..1024u32).map(|i| (i * i * 7 % 251) as u8).collect();
        let file = encode(bytes_of(ColorType::Grayscale, 32, 32), &bytes);
        for end in [20, 40, file.len() / 2, file.len() - 20] {
            assert!(decoded(&file[..end]).is_err(), "{end} of {}", file.len());
        }
        let mut huge = file.clone();
        huge[16..24].copy_from_slice(&[0, 0, 0x20, 0, 0, 0, 0x20, 0]);
        let mut crc = flate2::Crc::new();
        crc.update(&huge[12..29]);
        huge[29..33].copy_from_slice(&crc.sum().to_be_bytes());
        assert!(decoded(&huge).unwrap_err().contains("8192×8192 pixels"));
    }
}
