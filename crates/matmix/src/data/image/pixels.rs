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

    /// Which pixels are opaque: whose alpha is neither 0 nor below this share of the most it can be. None if there is no alpha.
    pub(crate) fn opaque(&self, share: f64) -> Option<Vec<bool>> {
        fn of<T: Copy>(x: &[T], step: usize, most: f64, share: f64, value: impl Fn(T) -> f64) -> Vec<bool> {
            let alpha = |pixel: &[T]| value(pixel[step - 1]) / most;
            x.chunks_exact(step).map(|pixel| alpha(pixel) > 0.0 && alpha(pixel) >= share).collect()
        }
        let step = self.channels.count();
        self.channels.has_alpha().then(|| match &self.values {
            Values::U8(x) => of(x, step, 255.0, share, f64::from),
            Values::U16(x) => of(x, step, 65535.0, share, f64::from),
            Values::F32(x) => of(x, step, 1.0, share, f64::from),
        })
    }

    /// The same picture with NaN where it was not observed, and with other rows and columns: what was not observed adds nothing to its
    /// neighbours, and a pixel of which less than half was observed was not.
    pub(crate) fn observed(self, observed: &[bool], rows: usize, columns: usize) -> Self {
        let step = self.channels.count();
        let seen = |i: usize| observed[i / step];
        let values: Vec<f32> = match &self.values {
            Values::U8(x) => x.iter().map(|&x| f32::from(x)).collect(),
            Values::U16(x) => x.iter().map(|&x| f32::from(x)).collect(),
            Values::F32(x) => x.clone(),
        };
        if (self.rows, self.columns) == (rows, columns) {
            let cells = values.iter().enumerate().map(|(i, &x)| if seen(i) { x } else { f32::NAN });
            return Self { values: Values::F32(cells.collect()), ..self };
        }
        let zeros: Vec<f32> =
            values.iter().enumerate().map(|(i, &x)| if seen(i) { x } else { 0.0 }).collect();
        let ones: Vec<f32> = observed.iter().map(|&seen| f32::from(u8::from(seen))).collect();
        let sums = resize::resized(&zeros, (self.rows, self.columns, step), rows, columns);
        let shares = resize::resized(&ones, (self.rows, self.columns, 1), rows, columns);
        let cell = |(i, sum): (usize, f32)| match shares[i / step] {
            // Rounding makes a half a little less.
            share if share >= 0.499_999 => sum / share,
            _ => f32::NAN,
        };
        let values = Values::F32(sums.into_iter().enumerate().map(cell).collect());
        Self { rows, columns, values, ..self }
    }

    /// 255 where any channel but alpha is other than 0, and 0 elsewhere.
    pub(crate) fn not_black(self) -> Self {
        fn of<T: Copy + PartialOrd + Default>(x: &[T], step: usize, counted: usize) -> Vec<u8> {
            // NaN is neither above nor below.
            let lit = |x: &T| *x > T::default() || *x < T::default();
            x.chunks_exact(step).map(|pixel| if pixel[..counted].iter().any(lit) { 255 } else { 0 }).collect()
        }
        let step = self.channels.count();
        let counted = if self.channels.has_alpha() { step - 1 } else { step };
        let values = match &self.values {
            Values::U8(x) => of(x, step, counted),
            Values::U16(x) => of(x, step, counted),
            Values::F32(x) => of(x, step, counted),
        };
        Self { channels: Channels::Grey, values: Values::U8(values), ..self }
    }

    /// 255 where bytes are at least half of that, and 0 elsewhere.
    pub(crate) fn not_dark(self) -> Self {
        let Values::U8(x) = &self.values else { return self };
        let values = x.iter().map(|&x| if x >= 128 { 255 } else { 0 }).collect();
        Self { values: Values::U8(values), ..self }
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
    fn what_is_transparent_is_not_observed_and_does_not_leak() {
        let picture = pixels(Channels::GreyAlpha, Values::U8(vec![100, 255, 7, 0]));
        assert_eq!(picture.opaque(0.0), Some(vec![true, false]));
        let half = pixels(Channels::GreyAlpha, Values::U8(vec![100, 127, 7, 128]));
        assert_eq!((half.opaque(0.5), half.opaque(0.0)), (Some(vec![false, true]), Some(vec![true; 2])));
        assert_eq!(pixels(Channels::Grey, Values::U8(vec![1, 2])).opaque(0.5), None);
        let Values::F32(x) = picture.clone().grey().observed(&[true, false], 1, 2).values else { panic!() };
        assert!(x[0] == 100.0 && x[1].is_nan());
        // One pixel of two, of which half was observed: its shade is that of the half.
        let Values::F32(x) = picture.grey().observed(&[true, false], 1, 1).values else { panic!() };
        assert_eq!(x, [100.0]);
        let colour = pixels(Channels::Rgba, Values::U16(vec![1, 2, 3, 9, 4, 5, 6, 0]));
        let seen = colour.opaque(0.0).unwrap();
        let Values::F32(x) = colour.colour().observed(&seen, 1, 2).values else { panic!() };
        assert!(x[..3] == [1.0, 2.0, 3.0] && x[3..].iter().all(|x| x.is_nan()));
    }

    #[test]
    fn a_mask_is_what_is_not_black() {
        let mask = pixels(Channels::Rgba, Values::U8(vec![0, 0, 1, 0, 0, 0, 0, 255])).not_black();
        assert_eq!(mask.values, Values::U8(vec![255, 0]));
        let wide = pixels(Channels::Grey, Values::F32(vec![f32::NAN, -0.5])).not_black();
        assert_eq!(wide.values, Values::U8(vec![0, 255]));
        assert_eq!(wide.resized(1, 1).not_dark().values, Values::U8(vec![255]));
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
