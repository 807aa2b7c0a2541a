//! The windows of an image: where they begin, and what stands in them.

use crate::error::{Error, Result};

/// All windows of one size over images of one shape, in row-major order of where they begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Windows {
    /// The sides of a window.
    pub(crate) size: Vec<usize>,
    /// How many there are along each mode.
    pub(crate) positions: Vec<usize>,
    /// From one window to the next along each mode, in elements of the image.
    steps: Vec<usize>,
    /// Where the lines of a window (its last mode) begin, counted from its first element.
    lines: Vec<usize>,
}

impl Windows {
    /// One number for all modes is cut to the sides that are shorter; a number of its own for a mode has to fit.
    pub(crate) fn new(image: &[usize], size: &[usize], stride: &[usize]) -> Result<Self> {
        let (order, sides) = (image.len(), Self::sides(image, size)?);
        let stride: Vec<usize> = match stride {
            [one] => vec![*one; order],
            each => each.to_vec(),
        };
        if stride.len() != order || stride.contains(&0) {
            let expected = "one step for all modes or one per mode, each at least 1";
            return Err(Error::Option {
                option: "patch stride",
                value: crate::error::sides(&stride),
                expected,
            });
        }
        let mut places = vec![1; order];
        for d in (1..order).rev() {
            places[d - 1] = places[d] * image[d];
        }
        let positions = (0..order).map(|d| (image[d] - sides[d]) / stride[d] + 1).collect();
        // A step beyond the image is never made: there is one window along that mode.
        let steps = (0..order).map(|d| stride[d].min(image[d]) * places[d]).collect();
        let outer = &sides[..order - 1];
        let lines = (0..outer.iter().product()).map(|line| place(line, outer, &places)).collect();
        Ok(Self { size: sides, positions, steps, lines })
    }

    /// The sides of a window of such an image.
    pub(crate) fn sides(image: &[usize], size: &[usize]) -> Result<Vec<usize>> {
        let sides: Vec<usize> = match size {
            [one] => image.iter().map(|side| (*one).min(*side)).collect(),
            each => each.to_vec(),
        };
        let fits = sides.len() == image.len() && sides.iter().zip(image).all(|(h, p)| (1..=*p).contains(h));
        if fits && !sides.is_empty() {
            return Ok(sides);
        }
        let expected = "one side for all modes or one per mode, each between 1 and the side of the image";
        Err(Error::Option { option: "patch size", value: crate::error::sides(size), expected })
    }

    /// How many windows an image has.
    pub(crate) fn count(&self) -> usize {
        self.positions.iter().product()
    }

    /// The elements of a window.
    pub(crate) fn len(&self) -> usize {
        self.size.iter().product()
    }

    /// Adds the elements of window `n` of an image to `out`.
    pub(crate) fn push<T: Copy>(&self, image: &[T], n: usize, out: &mut Vec<T>) {
        let first = place(n, &self.positions, &self.steps);
        let width = self.line_len();
        self.lines.iter().for_each(|line| out.extend_from_slice(&image[first + line..first + line + width]));
    }

    /// Adds window `n` of an image, minus its mean and, with a floor, divided by √(variance + floor), to `out`. Where nothing varies and
    /// the floor is 0, that is 0.
    pub(crate) fn push_normalised<T: Copy + Into<f64>>(
        &self,
        image: &[T],
        n: usize,
        (scale, floor): (f64, Option<f64>),
        out: &mut Vec<f32>,
    ) {
        let first = place(n, &self.positions, &self.steps);
        let width = self.line_len();
        let lines = self.lines.iter().map(|line| &image[first + line..first + line + width]);
        let (count, mut sum) = (self.len() as f64, 0.0);
        for line in lines.clone() {
            sum += line.iter().map(|&x| x.into()).sum::<f64>();
        }
        let mean = sum / count;
        let factor = floor.map_or(scale, |floor| {
            let square = |x: f64| (x - mean) * (x - mean);
            let mut squares = 0.0;
            for line in lines.clone() {
                squares += line.iter().map(|&x| square(x.into())).sum::<f64>();
            }
            let spread = squares / count * scale * scale + floor;
            if spread > 0.0 { scale / spread.sqrt() } else { 0.0 }
        });
        for line in lines {
            out.extend(line.iter().map(|&x| ((x.into() - mean) * factor) as f32));
        }
    }

    /// Adds a window, and the mean of what stands in its place in `image`, to that place of `sums`, and 1 to how often that was done.
    pub(crate) fn give_back(
        &self,
        n: usize,
        window: &[f64],
        image: &[f64],
        sums: &mut [f64],
        counts: &mut [u32],
    ) {
        let first = place(n, &self.positions, &self.steps);
        let width = self.line_len();
        let places = || self.lines.iter().map(|line| first + line..first + line + width);
        let mean = places().map(|place| image[place].iter().sum::<f64>()).sum::<f64>() / self.len() as f64;
        for (place, line) in places().zip(window.chunks_exact(width)) {
            sums[place.clone()].iter_mut().zip(line).for_each(|(sum, x)| *sum += x + mean);
            counts[place].iter_mut().for_each(|count| *count += 1);
        }
    }

    fn line_len(&self) -> usize {
        self.size.last().copied().unwrap_or(1)
    }
}

/// The number `n`, written with these sides as its bases, as a sum of steps.
fn place(mut n: usize, sides: &[usize], steps: &[usize]) -> usize {
    let mut at = 0;
    for (side, step) in sides.iter().zip(steps).rev() {
        at += n % side * step;
        n /= side;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_cut_in_order_and_a_step_apart() {
        let image: Vec<usize> = (0..20).collect();
        let windows = Windows::new(&[4, 5], &[2, 3], &[2, 1]).unwrap();
        assert_eq!((windows.count(), &windows.positions[..]), (6, &[2, 3][..]));
        let window = |n| {
            let mut out = Vec::new();
            windows.push(&image, n, &mut out);
            out
        };
        assert_eq!(window(0), [0, 1, 2, 5, 6, 7]);
        assert_eq!(window(2), [2, 3, 4, 7, 8, 9]);
        assert_eq!(window(4), [11, 12, 13, 16, 17, 18]);
    }

    #[test]
    fn a_step_beyond_the_image_leaves_one_window() {
        let windows = Windows::new(&[4, 5], &[2, 3], &[usize::MAX, 2]).unwrap();
        assert_eq!((windows.count(), &windows.positions[..]), (2, &[1, 2][..]));
        let (image, mut out): (Vec<usize>, _) = ((0..20).collect(), Vec::new());
        windows.push(&image, 1, &mut out);
        assert_eq!(out, [2, 3, 4, 7, 8, 9]);
    }

    #[test]
    fn one_side_for_all_modes_is_cut_to_short_ones() {
        let colour = Windows::new(&[8, 9, 3], &[6], &[1]).unwrap();
        assert_eq!((&colour.size[..], &colour.positions[..]), (&[6, 6, 3][..], &[3, 4, 1][..]));
        assert!(Windows::new(&[8, 9, 3], &[6, 6, 6], &[1]).is_err());
        assert!(Windows::new(&[8, 9], &[6, 6, 3], &[1]).is_err());
        assert!(Windows::new(&[8, 9], &[0], &[1]).is_err());
        assert!(Windows::new(&[8, 9], &[6], &[0]).is_err());
        assert!(Windows::new(&[8, 9], &[], &[1]).is_err());
    }
}
