//! A decoded picture: rows, columns, channels, and the values as the file stores them.

use super::resize;

/// What the numbers of a pixel mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channels {
    Grey,
    GreyAlpha,
    Rgb,
    Rgba,
}

impl Channels {
    /// Numbers per pixel.
    pub(crate) fn count(self) -> usize {
        match self {
            Channels::Grey => 1,
            Channels::GreyAlpha => 2,
            Channels::Rgb => 3,
            Channels::Rgba => 4,
        }
    }

    pub(crate) fn has_alpha(self) -> bool {
        matches!(self, Channels::GreyAlpha | Channels::Rgba)
    }

    pub(crate) fn has_colour(self) -> bool {
        matches!(self, Channels::Rgb | Channels::Rgba)
    }
}

/// What the numbers of a picture are kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    /// Up to 8 bits.
    U8,
    /// Up to 16 bits.
    U16,
    /// Floating point, and whatever else TIFF holds.
    F32,
}

impl Depth {
    /// Bytes per number.
    pub(super) fn size(self) -> usize {
        match self {
            Depth::U8 => 1,
            Depth::U16 => 2,
            Depth::F32 => 4,
        }
    }
}

/// The numbers of a picture, as they are stored: 0 to 255, 0 to 65535, or any.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values {
    U8(Vec<u8>),
    U16(Vec<u16>),
    F32(Vec<f32>),
}

/// A picture: pixel after pixel, row after row, the channels of a pixel side by side.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pixels {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) channels: Channels,
    pub(crate) values: Values,
}

impl Pixels {
    /// The same picture in one channel, without transparency. Colour turns grey by the luma of Rec. 709; the shade of
    /// bytes is a byte.
    pub(crate) fn grey(self) -> Self {
        let step = self.channels.count();
        let values = match (self.channels, self.values) {
            (Channels::Grey, values) => values,
            (Channels::GreyAlpha, values) => kept(values, step, 1),
            (_, Values::U8(x)) => Values::U8(x.chunks_exact(step).map(luma_of_bytes).collect()),
            (_, Values::U16(x)) => {
                Values::F32(x.chunks_exact(step).map(|p| luma([p[0], p[1], p[2]].map(f32::from))).collect())
            }
            (_, Values::F32(x)) => {
                Values::F32(x.chunks_exact(step).map(|p| luma([p[0], p[1], p[2]])).collect())
            }
        };
        Self { channels: Channels::Grey, values, ..self }
    }

    /// The first channel and the transparency of a picture with four, where the other two say nothing new.
    pub(super) fn grey_with_alpha(self) -> Self {
        let Values::U8(x) = &self.values else { return self };
        let values = x.chunks_exact(4).flat_map(|p| [p[0], p[3]]).collect();
        Self { channels: Channels::GreyAlpha, values: Values::U8(values), ..self }
    }

    /// The same picture in three channels, without transparency.
    pub(crate) fn colour(self) -> Self {
        let values = match (self.channels, self.values) {
            (Channels::Rgb, values) => values,
            (Channels::Rgba, values) => kept(values, 4, 3),
            (grey, values) => tripled(values, grey.count()),
        };
        Self { channels: Channels::Rgb, values, ..self }
    }

    /// The same picture with other rows and columns; bytes stay bytes.
    pub(crate) fn resized(self, rows: usize, columns: usize) -> Self {
        if (self.rows, self.columns) == (rows, columns) {
            return self;
        }
        let from = (self.rows, self.columns, self.channels.count());
        let values = match self.values {
            Values::U8(x) => {
                let resized = resize::resized(&x, from, rows, columns);
                Values::U8(resized.into_iter().map(|v| v.round().clamp(0.0, 255.0) as u8).collect())
            }
            Values::U16(x) => Values::F32(resize::resized(&x, from, rows, columns)),
            Values::F32(x) => Values::F32(resize::resized(&x, from, rows, columns)),
        };
        Self { rows, columns, values, ..self }
    }

    /// The pixels at these places, in this order, as a picture of this size.
    pub(super) fn rearranged(self, rows: usize, columns: usize, places: impl Iterator<Item = usize>) -> Self {
        fn at<T: Copy>(x: &[T], step: usize, places: impl Iterator<Item = usize>) -> Vec<T> {
            let mut out = Vec::with_capacity(x.len());
            places.for_each(|place| out.extend_from_slice(&x[place * step..(place + 1) * step]));
            out
        }
        let step = self.channels.count();
        let values = match &self.values {
            Values::U8(x) => Values::U8(at(x, step, places)),
            Values::U16(x) => Values::U16(at(x, step, places)),
            Values::F32(x) => Values::F32(at(x, step, places)),
        };
        Self { rows, columns, values, ..self }
    }
}

/// The first `keep` of every `step` numbers.
fn kept(values: Values, step: usize, keep: usize) -> Values {
    fn of<T: Copy>(x: &[T], step: usize, keep: usize) -> Vec<T> {
        x.chunks_exact(step).flat_map(|pixel| &pixel[..keep]).copied().collect()
    }
    match &values {
        Values::U8(x) => Values::U8(of(x, step, keep)),
        Values::U16(x) => Values::U16(of(x, step, keep)),
        Values::F32(x) => Values::F32(of(x, step, keep)),
    }
}

/// The first of every `step` numbers, three times.
fn tripled(values: Values, step: usize) -> Values {
    fn of<T: Copy>(x: &[T], step: usize) -> Vec<T> {
        x.chunks_exact(step).flat_map(|pixel| [pixel[0]; 3]).collect()
    }
    match &values {
        Values::U8(x) => Values::U8(of(x, step)),
        Values::U16(x) => Values::U16(of(x, step)),
        Values::F32(x) => Values::F32(of(x, step)),
    }
}

fn luma([red, green, blue]: [f32; 3]) -> f32 {
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// Rounded, and in whole numbers, so that a grey pixel keeps its shade.
fn luma_of_bytes(pixel: &[u8]) -> u8 {
    let [red, green, blue] = [pixel[0], pixel[1], pixel[2]].map(u32::from);
    ((2126 * red + 7152 * green + 722 * blue + 5000) / 10_000) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixels(channels: Channels, values: Values) -> Pixels {
        Pixels { rows: 1, columns: 2, channels, values }
    }

    #[test]
    fn colour_turns_grey_and_grey_keeps_its_shade() {
        let grey = pixels(Channels::Rgb, Values::U8(vec![255, 0, 0, 0, 255, 0])).grey();
        assert_eq!(grey.values, Values::U8(vec![54, 182]));
        let all: Vec<u8> = (0..=255).flat_map(|shade| [shade; 3]).collect();
        let all = Pixels { rows: 1, columns: 256, channels: Channels::Rgb, values: Values::U8(all) };
        assert_eq!(all.grey().values, Values::U8((0..=255).collect()));
        let wide = pixels(Channels::Rgba, Values::U16(vec![65535, 0, 0, 9, 1000, 1000, 1000, 9])).grey();
        let Values::F32(wide) = wide.values else { panic!("{wide:?}") };
        assert!((wide[0] - 0.2126 * 65535.0).abs() < 0.01 && (wide[1] - 1000.0).abs() < 0.01, "{wide:?}");
    }

    #[test]
    fn transparency_is_dropped_and_grey_becomes_colour_with_its_shade() {
        let alpha = || pixels(Channels::GreyAlpha, Values::U16(vec![700, 1, 800, 2]));
        assert_eq!(alpha().grey().values, Values::U16(vec![700, 800]));
        assert_eq!(alpha().colour().values, Values::U16(vec![700, 700, 700, 800, 800, 800]));
        let rgba = pixels(Channels::Rgba, Values::F32(vec![0.1, 0.2, 0.3, 1.0, 0.4, 0.5, 0.6, 1.0]));
        assert_eq!(rgba.colour().values, Values::F32(vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6]));
    }
}
