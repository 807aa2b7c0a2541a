//! Small pictures in every format, written out by hand: for the unit tests beside the readers and the tests of the whole.
#![allow(dead_code, clippy::unwrap_used)]

use std::io::Write;
use std::path::Path;

/// A grey picture as the file that `ending` names: png, bmp, pgm or tiff.
pub(crate) fn grey(ending: &str, rows: usize, columns: usize, pixels: &[u8]) -> Vec<u8> {
    assert_eq!(pixels.len(), rows * columns);
    match ending.to_ascii_lowercase().as_str() {
        "png" => png(rows, columns, 0, 8, &[], pixels),
        "bmp" => bmp(rows, columns, pixels),
        "pgm" => [format!("P5 {columns} {rows} 255\n").as_bytes(), pixels].concat(),
        "tiff" => tiff(&[(rows, columns, pixels)]),
        other => panic!("no picture ends in {other}"),
    }
}

/// Writes a grey picture into the folder of `path`, which is made if it is not there.
pub(crate) fn save(path: impl AsRef<Path>, rows: usize, columns: usize, pixels: &[u8]) {
    let path = path.as_ref();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let ending = path.extension().unwrap().to_str().unwrap();
    std::fs::write(path, grey(ending, rows, columns, pixels)).unwrap();
}

/// A PNG file of this colour type (0 grey, 2 RGB, 4 grey and alpha, 6 RGBA) with more chunks before the pixels.
pub(crate) fn png(
    rows: usize,
    columns: usize,
    colour: u8,
    bits: u8,
    more: &[(&[u8; 4], &[u8])],
    body: &[u8],
) -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut chunk = |name: &[u8; 4], body: &[u8]| {
        let mut crc = flate2::Crc::new();
        crc.update(name);
        crc.update(body);
        file.extend((body.len() as u32).to_be_bytes());
        file.extend(name);
        file.extend(body);
        file.extend(crc.sum().to_be_bytes());
    };
    let mut header = [(columns as u32).to_be_bytes(), (rows as u32).to_be_bytes()].concat();
    header.extend([bits, colour, 0, 0, 0]);
    chunk(b"IHDR", &header);
    more.iter().for_each(|(name, body)| chunk(name, body));
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    // Every row begins with the number of its filter: none.
    for row in body.chunks(body.len() / rows) {
        zlib.write_all(&[0]).unwrap();
        zlib.write_all(row).unwrap();
    }
    chunk(b"IDAT", &zlib.finish().unwrap());
    chunk(b"IEND", &[]);
    file
}

/// A BMP file with a palette of 256 shades.
fn bmp(rows: usize, columns: usize, pixels: &[u8]) -> Vec<u8> {
    let mut file = b"BM".to_vec();
    let mut numbers = |numbers: &[u32]| numbers.iter().for_each(|n| file.extend(n.to_le_bytes()));
    let offset = 14 + 40 + 1024;
    numbers(&[0, 0, offset, 40, columns as u32, rows as u32, 1 | 8 << 16, 0, 0, 0, 0, 0, 0]);
    file.extend((0..=255).flat_map(|shade| [shade, shade, shade, 0]));
    for row in pixels.chunks(columns).rev() {
        file.extend(row);
        file.extend(vec![0; columns.next_multiple_of(4) - columns]);
    }
    file
}

/// A TIFF file of grey pages, not packed.
pub(crate) fn tiff(pages: &[(usize, usize, &[u8])]) -> Vec<u8> {
    let mut file = b"II*\0".to_vec();
    // Where the place of the next directory has to be noted.
    let mut link = file.len();
    file.extend([0; 4]);
    for (rows, columns, pixels) in pages {
        let body = file.len() as u32;
        file.extend(*pixels);
        file.resize(file.len().next_multiple_of(2), 0);
        let directory = file.len() as u32;
        file[link..link + 4].copy_from_slice(&directory.to_le_bytes());
        let tags = [
            (256u16, *columns as u32),
            (257, *rows as u32),
            (258, 8),
            (259, 1),
            (262, 1),
            (273, body),
            (277, 1),
            (278, *rows as u32),
            (279, pixels.len() as u32),
        ];
        file.extend((tags.len() as u16).to_le_bytes());
        for (tag, value) in tags {
            // One long number each.
            file.extend([tag.to_le_bytes(), 4u16.to_le_bytes()].concat());
            file.extend([1u32.to_le_bytes(), value.to_le_bytes()].concat());
        }
        link = file.len();
        file.extend([0; 4]);
    }
    file
}
