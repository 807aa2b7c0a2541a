//! A picture in memory, and as a PNG file.

use std::path::Path;

use png::{BitDepth, ColorType, Compression, Encoder, EncodingError, Filter};

use crate::data::atomic::write_file;
use crate::error::{Error, Result};

/// The largest picture that is made, in pixels.
const LIMIT: usize = 1 << 28;

/// Pixels, three bytes each (red, green, blue), row after row.
///
/// ```
/// use matmix::picture::Image;
///
/// let mut image = Image::new(3, 2, [255; 3])?;
/// image.set_pixel(2, 1, [200, 0, 0]);
/// let large = image.enlarged(4)?;
/// assert_eq!((large.width, large.height, large.pixel(11, 7)), (12, 8, [200, 0, 0]));
/// assert!(large.to_png()?.starts_with(b"\x89PNG"));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Pixels per row.
    pub width: usize,
    /// The number of rows.
    pub height: usize,
    /// `3 * width * height` bytes.
    pub rgb: Vec<u8>,
}

impl Image {
    /// A picture of one colour.
    ///
    /// # Errors
    /// If the picture would have no pixels or more than 2^28.
    pub fn new(width: usize, height: usize, colour: [u8; 3]) -> Result<Self> {
        let pixels = checked(width, height)?;
        Ok(Self { width, height, rgb: colour.repeat(pixels) })
    }

    /// The colour of column `x` in row `y`.
    pub fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let at = 3 * (y * self.width + x);
        [self.rgb[at], self.rgb[at + 1], self.rgb[at + 2]]
    }

    /// Gives column `x` of row `y` a colour.
    pub fn set_pixel(&mut self, x: usize, y: usize, colour: [u8; 3]) {
        let at = 3 * (y * self.width + x);
        self.rgb[at..at + 3].copy_from_slice(&colour);
    }

    /// Lays `other` over this one with its upper left corner at (`x`, `y`); what does not fit is left out.
    pub fn put(&mut self, other: &Image, x: usize, y: usize) {
        let columns = other.width.min(self.width.saturating_sub(x));
        let rows = other.height.min(self.height.saturating_sub(y));
        for row in 0..rows {
            let from = 3 * row * other.width;
            let to = 3 * ((y + row) * self.width + x);
            if columns > 0 {
                self.rgb[to..to + 3 * columns].copy_from_slice(&other.rgb[from..from + 3 * columns]);
            }
        }
    }

    /// Every pixel as a square of `factor` × `factor` pixels.
    ///
    /// # Errors
    /// If the picture would have no pixels or more than 2^28.
    pub fn enlarged(&self, factor: usize) -> Result<Self> {
        let factor = factor.max(1);
        let size = |side: usize| side.saturating_mul(factor);
        let mut out = Self::new(size(self.width), size(self.height), [0; 3])?;
        for y in 0..out.height {
            for x in 0..out.width {
                out.set_pixel(x, y, self.pixel(x / factor, y / factor));
            }
        }
        Ok(out)
    }

    /// Pictures beside each other, their upper edges in one line.
    ///
    /// # Errors
    /// If the picture would have no pixels or more than 2^28.
    pub fn beside(images: &[Image], gap: usize, background: [u8; 3]) -> Result<Self> {
        let gaps = gap.saturating_mul(images.len().saturating_sub(1));
        let width = images.iter().fold(gaps, |sum, i| sum.saturating_add(i.width));
        let height = images.iter().map(|i| i.height).max().unwrap_or(0);
        let mut out = Self::new(width, height, background)?;
        let mut x = 0;
        for image in images {
            out.put(image, x, 0);
            x = x.saturating_add(image.width).saturating_add(gap);
        }
        Ok(out)
    }

    /// Pictures below each other, their left edges in one line.
    ///
    /// # Errors
    /// If the picture would have no pixels or more than 2^28.
    pub fn below(images: &[Image], gap: usize, background: [u8; 3]) -> Result<Self> {
        let gaps = gap.saturating_mul(images.len().saturating_sub(1));
        let height = images.iter().fold(gaps, |sum, i| sum.saturating_add(i.height));
        let width = images.iter().map(|i| i.width).max().unwrap_or(0);
        let mut out = Self::new(width, height, background)?;
        let mut y = 0;
        for image in images {
            out.put(image, 0, y);
            y = y.saturating_add(image.height).saturating_add(gap);
        }
        Ok(out)
    }

    /// The bytes of a PNG file; a picture without colour takes one byte per pixel.
    ///
    /// # Errors
    /// If it cannot be encoded.
    pub fn to_png(&self) -> Result<Vec<u8>> {
        let grey: Option<Vec<u8>> =
            self.rgb.chunks_exact(3).map(|p| (p[0] == p[1] && p[1] == p[2]).then_some(p[0])).collect();
        let (pixels, colour) = match &grey {
            Some(grey) => (grey, ColorType::Grayscale),
            None => (&self.rgb, ColorType::Rgb),
        };
        png((self.height, self.width), colour, BitDepth::Eight, pixels)
    }

    /// Writes a PNG file, whole or not at all.
    ///
    /// # Errors
    /// If the file cannot be written; what was there before stays.
    pub fn write_png(&self, path: impl AsRef<Path>) -> Result<()> {
        let bytes = self.to_png()?;
        write_file(path.as_ref(), |out| out.write_all(&bytes))
    }
}

/// The bytes of a PNG file with 16 bits per channel, of one channel (grey) or three.
pub(super) fn png_of_16_bits(
    (rows, columns): (usize, usize),
    channels: usize,
    values: &[u16],
) -> Result<Vec<u8>> {
    checked(columns, rows)?;
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_be_bytes()).collect();
    let colour = if channels == 1 { ColorType::Grayscale } else { ColorType::Rgb };
    png((rows, columns), colour, BitDepth::Sixteen, &bytes)
}

/// The number of pixels, if it is within the limit.
fn checked(width: usize, height: usize) -> Result<usize> {
    width.checked_mul(height).filter(|pixels| (1..=LIMIT).contains(pixels)).ok_or_else(|| Error::Option {
        option: "picture size",
        value: format!("{width}×{height} pixels"),
        expected: "between 1 and 2^28 pixels; draw fewer tiles, or enlarge them less",
    })
}

fn png(
    (rows, columns): (usize, usize),
    colour: ColorType,
    depth: BitDepth,
    pixels: &[u8],
) -> Result<Vec<u8>> {
    let encoded = || -> std::result::Result<Vec<u8>, EncodingError> {
        let mut out = Vec::new();
        // The limit on the size of a picture keeps both sides far below what PNG can hold.
        let mut encoder = Encoder::new(&mut out, columns as u32, rows as u32);
        encoder.set_color(colour);
        encoder.set_depth(depth);
        encoder.set_compression(Compression::Fast);
        encoder.set_filter(Filter::Adaptive);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(pixels)?;
        writer.finish()?;
        Ok(out)
    };
    encoded().map_err(|e| Error::Data { name: "PNG".into(), problem: e.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The colour type and the pixels, by the decoder alone.
    fn read(path: &Path) -> (ColorType, Vec<u8>) {
        let file = std::io::BufReader::new(std::fs::File::open(path).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        (info.color_type, bytes)
    }

    #[test]
    fn what_is_written_is_read_as_grey_or_colour() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        let mut image = Image::new(3, 2, [10; 3]).unwrap();
        image.write_png(&path).unwrap();
        assert_eq!(read(&path), (ColorType::Grayscale, vec![10; 6]));
        image.set_pixel(2, 1, [1, 2, 3]);
        image.write_png(&path).unwrap();
        assert_eq!(read(&path), (ColorType::Rgb, image.rgb));
    }

    #[test]
    fn pictures_are_put_together_with_gaps() {
        let (a, b) = (Image::new(2, 1, [1; 3]).unwrap(), Image::new(1, 2, [2; 3]).unwrap());
        let beside = Image::beside(&[a.clone(), b.clone()], 1, [9; 3]).unwrap();
        let reds = |image: &Image| image.rgb.iter().copied().step_by(3).collect::<Vec<u8>>();
        assert_eq!((beside.width, beside.height, reds(&beside)), (4, 2, vec![1, 1, 9, 2, 9, 9, 9, 2]));
        let below = Image::below(&[a.clone(), b], 0, [9; 3]).unwrap();
        assert_eq!((below.width, below.height, reds(&below)), (2, 3, vec![1, 1, 2, 9, 2, 9]));
        assert_eq!(reds(&below.enlarged(2).unwrap())[..8], [1, 1, 1, 1, 1, 1, 1, 1]);
        assert_eq!(reds(&below.enlarged(2).unwrap())[8..12], [2, 2, 9, 9]);
    }

    #[test]
    fn sizes_without_sense_are_errors() {
        assert!(Image::beside(&[], 1, [0; 3]).unwrap_err().to_string().contains("0×0 pixels"));
        assert!(Image::new(usize::MAX, 2, [0; 3]).is_err());
        assert!(Image::new(2, 2, [0; 3]).unwrap().enlarged(usize::MAX).is_err());
        // A picture laid beyond the edge is cut, not a panic.
        let mut small = Image::new(2, 2, [0; 3]).unwrap();
        small.put(&Image::new(5, 5, [1; 3]).unwrap(), 1, 1);
        small.put(&Image::new(5, 5, [1; 3]).unwrap(), 7, 0);
        assert_eq!((small.pixel(0, 0), small.pixel(1, 1)), ([0; 3], [1; 3]));
    }
}
