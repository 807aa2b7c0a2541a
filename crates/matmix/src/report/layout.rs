//! How a sample becomes a picture, and how large pictures are made small.
//!
//! A page cannot hold many pictures of a million pixels. Averaging blocks of elements is linear and acts on each
//! mode by itself, so averaging the rows of the loadings averages the pictures they make: the explorer of a
//! reduced page still shows exactly the average of what the library computes.

use super::content::{Kind, View};
use super::options::{Colours, ReportOptions};
use super::survey::Survey;
use crate::data::Element;
use crate::linalg::Matrix;

/// How many elements along each mode one element of the page averages.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Blocks {
    shape: Vec<usize>,
    block: Vec<usize>,
}

impl Blocks {
    /// Blocks that leave at most `limit` elements along each mode, but keep mode `whole` as it is.
    pub(crate) fn new(shape: &[usize], limit: usize, whole: Option<usize>) -> Self {
        let block = shape
            .iter()
            .enumerate()
            .map(|(d, &side)| if Some(d) == whole { 1 } else { side.div_ceil(limit.max(1)) })
            .collect();
        Self { shape: shape.to_vec(), block }
    }

    /// The largest blocks needed so that `pictures` arrays have at most `budget` elements together.
    pub(crate) fn within(shape: &[usize], whole: Option<usize>, pictures: usize, budget: usize) -> Self {
        let mut limit = if shape.len() == 1 { 1024 } else { 128 };
        loop {
            let blocks = Self::new(shape, limit, whole);
            if limit <= 8 || blocks.len() * pictures <= budget {
                return blocks;
            }
            limit = limit * 3 / 4;
        }
    }

    /// The shape of the page's arrays.
    pub(crate) fn reduced(&self) -> Vec<usize> {
        self.shape.iter().zip(&self.block).map(|(side, block)| side.div_ceil(*block)).collect()
    }

    /// The number of elements of one array of the page.
    pub(crate) fn len(&self) -> usize {
        self.reduced().iter().product()
    }

    /// Whether nothing is averaged.
    pub(crate) fn is_identity(&self) -> bool {
        self.block.iter().all(|&b| b == 1)
    }

    /// The block sides, one per mode.
    pub(crate) fn sides(&self) -> &[usize] {
        &self.block
    }

    /// A sample with its blocks averaged.
    pub(crate) fn reduce(&self, sample: &[f64]) -> Vec<f64> {
        let mut x = sample.to_vec();
        let mut shape = self.shape.clone();
        for d in 0..shape.len() {
            let (before, after) = (shape[..d].iter().product(), shape[d + 1..].iter().product());
            x = average(&x, before, shape[d], after, self.block[d]);
            shape[d] = shape[d].div_ceil(self.block[d]);
        }
        x
    }

    /// The same of a sample with missing cells (NaN): each block is averaged over what was observed of it, and is NaN where nothing was.
    pub(crate) fn reduce_observed(&self, sample: &[f64]) -> Vec<f64> {
        if self.is_identity() || !sample.iter().any(|x| x.is_nan()) {
            return self.reduce(sample);
        }
        let zeros: Vec<f64> = sample.iter().map(|&x| if x.is_nan() { 0.0 } else { x }).collect();
        let ones: Vec<f64> = sample.iter().map(|x| f64::from(u8::from(!x.is_nan()))).collect();
        // 0/0 is NaN.
        self.reduce(&zeros).iter().zip(self.reduce(&ones)).map(|(sum, share)| sum / share).collect()
    }

    /// The loadings of mode `d` with the rows of each block averaged.
    pub(crate) fn reduce_rows(&self, d: usize, loadings: &Matrix) -> Matrix {
        let rows = loadings.rows().div_ceil(self.block[d]);
        let data = average(loadings.as_slice(), 1, loadings.rows(), loadings.cols(), self.block[d]);
        Matrix::from_vec(rows, loadings.cols(), data)
    }
}

/// Averages runs of `block` entries of the middle side; the last run may be shorter.
fn average(x: &[f64], before: usize, side: usize, after: usize, block: usize) -> Vec<f64> {
    if block == 1 {
        return x.to_vec();
    }
    let reduced = side.div_ceil(block);
    let mut out = vec![0.0; before * reduced * after];
    for o in 0..before {
        for i in 0..side {
            let share = 1.0 / block.min(side - i / block * block) as f64;
            let to = (o * reduced + i / block) * after;
            let from = (o * side + i) * after;
            for n in 0..after {
                out[to + n] += share * x[from + n];
            }
        }
    }
    out
}

/// The mode that holds red, green and blue, if there is one: the last of three, or else the first.
fn channel_mode(shape: &[usize]) -> Option<usize> {
    match shape {
        [_, _, 3] => Some(2),
        [3, _, _] => Some(0),
        _ => None,
    }
}

/// Layout, colours and range from the samples and what the user wants, and the blocks that fit the budget.
pub(crate) fn view(
    shape: &[usize],
    element: Element,
    scale: f64,
    survey: &Survey,
    options: &ReportOptions,
    pictures: usize,
    budget: usize,
) -> (View, Blocks) {
    let named = !options.axes.is_empty() || !options.value.name.is_empty();
    let image = survey.low >= 0.0 && !named && (element == Element::U8 || survey.high <= 1.0);
    let colours = match options.colours {
        Colours::Auto if survey.low < 0.0 => Colours::Diverging,
        Colours::Auto if image => Colours::Grey,
        Colours::Auto => Colours::Sequential,
        chosen => chosen,
    };
    let channels =
        channel_mode(shape).filter(|_| colours == Colours::Grey && options.picture_modes.is_none());
    let kind = match (shape.len(), channels) {
        (1, _) => Kind::Curve,
        (2, _) => Kind::Matrix,
        (_, Some(_)) => Kind::Colour,
        _ => Kind::Slices,
    };
    let (row_mode, column_mode) = match (kind, options.picture_modes, channels) {
        (Kind::Curve, ..) => (0, 0),
        (_, Some(modes), _) => modes,
        (_, _, Some(0)) => (1, 2),
        _ => (0, 1),
    };
    let (low, high) = match (kind, colours) {
        (Kind::Curve, _) => {
            let room = 0.05 * (survey.high - survey.low);
            (survey.low - room, survey.high + room)
        }
        (_, Colours::Diverging) => {
            let reach = survey.middle_low.abs().max(survey.middle_high.abs());
            (-reach, reach)
        }
        (_, Colours::Grey) if element == Element::U8 && scale > 0.0 => (0.0, 255.0 * scale),
        (_, Colours::Grey) if survey.low >= 0.0 && survey.high <= 1.0 && survey.high > 0.5 => (0.0, 1.0),
        (_, Colours::Grey) => (survey.low, survey.high),
        _ => (survey.middle_low, survey.middle_high),
    };
    let (low, high) = if high > low { (low, high) } else { (low - 0.5, low + 0.5) };
    let blocks = Blocks::within(shape, channels, pictures, budget);
    let view = View {
        kind,
        shape: blocks.reduced(),
        block: blocks.sides().to_vec(),
        row_mode,
        column_mode,
        colours,
        low,
        high,
        axes: options.axes.clone(),
        value: options.value.clone(),
    };
    (view, blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::expand;

    #[test]
    fn averaging_loadings_averages_what_they_make() {
        let loadings: Vec<Matrix> = [(7, 2), (5, 3), (3, 2)]
            .iter()
            .map(|&(p, r)| Matrix::from_fn(p, r, |i, j| ((3 * i + 5 * j + p) % 11) as f64 - 4.0))
            .collect();
        let core: Vec<f64> = (0..12).map(|i| f64::from(i) * 0.3 - 1.0).collect();
        let blocks = Blocks::new(&[7, 5, 3], 3, Some(2));
        assert_eq!((blocks.reduced(), blocks.sides()), (vec![3, 3, 3], &[3, 2, 1][..]));
        let reduced: Vec<Matrix> =
            loadings.iter().enumerate().map(|(d, u)| blocks.reduce_rows(d, u)).collect();
        let found = expand(&core, &reduced);
        let expected = blocks.reduce(&expand(&core, &loadings));
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12));
    }

    #[test]
    fn a_block_is_the_mean_of_what_was_observed_of_it() {
        let nan = f64::NAN;
        let blocks = Blocks::new(&[2, 4], 2, None);
        let found = blocks.reduce_observed(&[1.0, nan, nan, nan, nan, 3.0, nan, nan]);
        // Blocks of 1×2: the rows stay.
        assert_eq!((found[0], found[2]), (1.0, 3.0));
        assert!(found[1].is_nan() && found[3].is_nan());
    }

    #[test]
    fn a_large_picture_shrinks_into_the_budget() {
        let blocks = Blocks::within(&[1000, 800, 3], Some(2), 100, 1_000_000);
        assert!(blocks.len() * 100 <= 1_000_000 && blocks.reduced()[2] == 3, "{blocks:?}");
        assert!(Blocks::within(&[28, 28], None, 144, 1_000_000).is_identity());
    }

    fn seen(low: f64, high: f64) -> Survey {
        Survey { low, high, middle_low: low, middle_high: high, ..Survey::default() }
    }

    #[test]
    fn the_layout_follows_order_channels_and_sign() {
        let kind = |shape: &[usize], element, survey: &Survey| {
            let (view, _) = view(shape, element, 1.0, survey, &ReportOptions::default(), 10, 1 << 20);
            (view.kind, view.colours, view.row_mode, view.column_mode)
        };
        let image = seen(0.0, 255.0);
        assert_eq!(kind(&[28, 28], Element::U8, &image), (Kind::Matrix, Colours::Grey, 0, 1));
        assert_eq!(kind(&[9, 9, 3], Element::U8, &image), (Kind::Colour, Colours::Grey, 0, 1));
        assert_eq!(kind(&[3, 9, 9], Element::U8, &image), (Kind::Colour, Colours::Grey, 1, 2));
        assert_eq!(kind(&[9, 9, 5], Element::U8, &image), (Kind::Slices, Colours::Grey, 0, 1));
        assert_eq!(
            kind(&[9, 9, 3], Element::F32, &seen(-1.0, 2.0)),
            (Kind::Slices, Colours::Diverging, 0, 1)
        );
        assert_eq!(kind(&[9, 9], Element::F64, &seen(0.0, 90.0)), (Kind::Matrix, Colours::Sequential, 0, 1));
        assert_eq!(kind(&[50], Element::F64, &seen(0.0, 1.0)).0, Kind::Curve);
    }
}
