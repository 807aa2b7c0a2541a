//! Samples of which a value, or a mask beside them, says that a cell is missing.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use super::missing::Missing;
use super::samples::Samples;
use super::source::{Buffer, Chunk, Element, Residence, Source};
use crate::error::{Counted, Error, Result};
use crate::options::as_text;

/// Which values, as they are stored, stand for a cell that was not observed. As text it is a number, or `below:0`.
///
/// ```
/// use matmix::Samples;
/// use matmix::data::FillValue;
///
/// let samples = Samples::from_vec(&[3], vec![1.0, -9999.0, 0.0])?.with_fill_value("below:0".parse()?)?;
/// let missing: Vec<bool> = samples.to_f64(0..1)?.iter().map(|x| x.is_nan()).collect();
/// assert_eq!(missing, [false, true, false]);
/// assert_eq!(FillValue::Is(255.0).to_string(), "255");
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum FillValue {
    /// This one.
    Is(f64),
    /// Everything below.
    Below(f64),
}

impl FillValue {
    fn is_missing(self, x: f64) -> bool {
        match self {
            FillValue::Is(value) => x == value,
            FillValue::Below(value) => x < value,
        }
    }
}

impl fmt::Display for FillValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FillValue::Is(value) => write!(f, "{value}"),
            FillValue::Below(value) => write!(f, "below:{value}"),
        }
    }
}

impl FromStr for FillValue {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = match text.trim().split_once(':') {
            Some(("below", value)) => number(value).map(Self::Below),
            _ => number(text).map(Self::Is),
        };
        found.ok_or_else(|| Error::Option {
            option: "fill_value",
            value: format!("`{text}`"),
            expected: "a number such as 255, or below:0",
        })
    }
}

as_text!(FillValue);

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|x: &f64| x.is_finite())
}

/// What tells in data that is opened that a cell was not observed. As text it is `error`, `nan`, a number, `below:0`, `alpha` or
/// `alpha:0.5`: so it is typed, and so it stands in a model file.
///
/// ```
/// use matmix::data::{FillValue, Unobserved};
///
/// assert_eq!("below:0".parse::<Unobserved>()?, Unobserved::Value(FillValue::Below(0.0)));
/// assert_eq!(Unobserved::Alpha(0.5).to_string(), "alpha:0.5");
/// assert!("transparent".parse::<Unobserved>().is_err());
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Unobserved {
    /// Nothing: every cell was observed, and NaN is a mistake.
    #[default]
    Never,
    /// NaN.
    Nan,
    /// A value as it is stored. NaN is a missing cell, too.
    Value(FillValue),
    /// A transparent place of an image: one whose alpha is 0, or below this share of what is opaque.
    Alpha(f64),
}

impl Unobserved {
    /// What NaN is in such data.
    pub fn missing(self) -> Missing {
        if self == Self::Never { Missing::Error } else { Missing::Nan }
    }
}

impl fmt::Display for Unobserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("error"),
            Self::Nan => f.write_str("nan"),
            Self::Value(fill) => fill.fmt(f),
            Self::Alpha(0.0) => f.write_str("alpha"),
            Self::Alpha(share) => write!(f, "alpha:{share}"),
        }
    }
}

impl FromStr for Unobserved {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = match (text.trim(), text.trim().split_once(':')) {
            ("error", _) => Some(Self::Never),
            ("nan" | "NaN", _) => Some(Self::Nan),
            ("alpha", _) => Some(Self::Alpha(0.0)),
            (_, Some(("alpha", share))) => {
                number(share).filter(|share| (0.0..=1.0).contains(share)).map(Self::Alpha)
            }
            (text, _) => text.parse().ok().map(Self::Value),
        };
        found.ok_or_else(|| Error::Option {
            option: "missing",
            value: format!("`{text}`"),
            expected: "nan, error, a number such as 255, below:0, alpha, or alpha:0.5 with a share of what is opaque",
        })
    }
}

as_text!(Unobserved);

impl<'a> Samples<'a> {
    /// The same samples with NaN, which means a missing cell, in the place of these values. Bytes become single precision.
    ///
    /// ```
    /// use matmix::Samples;
    /// use matmix::data::FillValue;
    ///
    /// let samples = Samples::from_vec(&[2], vec![1u8, 255, 3, 4])?.scaled(0.5)?.with_fill_value(FillValue::Is(255.0))?;
    /// let values = samples.to_f64(0..2)?;
    /// assert!(values[1].is_nan());
    /// assert_eq!((values[0], &values[2..]), (0.5, &[1.5, 2.0][..]));
    /// # Ok::<(), matmix::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are no samples.
    pub fn with_fill_value(self, fill: FillValue) -> Result<Self> {
        self.marked(Rule::Fill(fill))
    }

    /// The same samples with NaN, which means a missing cell, where `observed` is 0 (or NaN): one sample of that set for all samples of
    /// this one, or one for each. It has the shape of these samples, or all but their last mode, whose entries are then observed
    /// together, as the channels of a pixel are. Bytes become single precision.
    ///
    /// ```
    /// use matmix::Samples;
    ///
    /// let observed = Samples::from_vec(&[2], vec![1u8, 0])?;
    /// let samples = Samples::from_vec(&[2], vec![1.0, 2.0, 3.0, 4.0])?.with_mask(observed)?;
    /// let missing: Vec<bool> = samples.to_f64(0..2)?.iter().map(|x| x.is_nan()).collect();
    /// assert_eq!(missing, [false, true, false, true]);
    /// # Ok::<(), matmix::Error>(())
    /// ```
    ///
    /// # Errors
    /// A mask of another shape, or of another number of samples than 1 and that of this set.
    pub fn with_mask(self, observed: Samples<'a>) -> Result<Self> {
        let shape = self.shape();
        let is_of_pixels = observed.shape() == &shape[..shape.len() - 1] && shape.len() > 1;
        if observed.shape() != shape && !is_of_pixels {
            return Err(Error::ShapeMismatch { expected: shape.to_vec(), found: observed.shape().to_vec() });
        }
        if observed.len() != 1 && observed.len() != self.len() {
            return Err(Error::Count { what: Counted::Masks, expected: self.len(), found: observed.len() });
        }
        let repeat = self.sample_len() / observed.sample_len();
        let rule = if observed.len() == 1 {
            let mask = observed.to_f64(0..1)?;
            Rule::Every(mask.iter().flat_map(|&x| std::iter::repeat_n(is_observed(x), repeat)).collect())
        } else {
            Rule::Each { observed: Box::new(observed), repeat }
        };
        self.marked(rule)
    }

    fn marked(self, rule: Rule<'a>) -> Result<Self> {
        let Self { scale, weights, classes, budget, meter, .. } = self.clone();
        let source = Arc::new(Marked { samples: Samples { scale: 1.0, ..self }, rule });
        let marked = Samples::from_source(source)?;
        Ok(Samples { scale, weights, classes, budget, meter, missing: Missing::Nan, ..marked })
    }
}

/// Whether a mask says that a cell was observed.
pub(super) fn is_observed(mask: f64) -> bool {
    mask != 0.0 && !mask.is_nan()
}

/// What says that a cell is missing.
enum Rule<'a> {
    Fill(FillValue),
    /// Whether each cell was observed, for all samples alike.
    Every(Vec<bool>),
    /// A mask for each sample, every cell of which stands for so many of the sample.
    Each {
        observed: Box<Samples<'a>>,
        repeat: usize,
    },
}

struct Marked<'a> {
    samples: Samples<'a>,
    rule: Rule<'a>,
}

impl Source for Marked<'_> {
    fn shape(&self) -> &[usize] {
        self.samples.shape()
    }

    fn len(&self) -> usize {
        self.samples.len()
    }

    fn element(&self) -> Element {
        match self.samples.element() {
            Element::F64 => Element::F64,
            _ => Element::F32,
        }
    }

    fn read<'a>(&'a self, range: Range<usize>, buffer: &'a mut Buffer) -> Result<Chunk<'a>> {
        let mut own = Buffer::new();
        let chunk = self.samples.stored(range.clone(), &mut own)?;
        buffer.clear();
        match &self.rule {
            Rule::Fill(fill) => mark(chunk, buffer, |_, x| fill.is_missing(x)),
            Rule::Every(observed) => mark(chunk, buffer, |i, _| !observed[i % observed.len()]),
            Rule::Each { observed, repeat } => {
                let mut of_mask = Buffer::new();
                let mask = observed.stored(range, &mut of_mask)?;
                mark(chunk, buffer, |i, _| !is_observed(mask.get(i / repeat)));
            }
        }
        Ok(buffer.chunk(self.element()))
    }

    fn residence(&self) -> Residence {
        match &self.rule {
            Rule::Each { observed, .. } => self.samples.residence().max(observed.residence()),
            _ => self.samples.residence(),
        }
    }

    fn check(&self) -> Result<()> {
        if let Rule::Each { observed, .. } = &self.rule {
            observed.check_unchanged()?;
        }
        self.samples.check_unchanged()
    }

    fn parts(&self) -> Vec<usize> {
        self.samples.parts().iter().map(ExactSizeIterator::len).collect()
    }
}

/// Copies the elements, with NaN for those that are missing by their place in the chunk or their value.
fn mark(chunk: Chunk<'_>, buffer: &mut Buffer, is_missing: impl Fn(usize, f64) -> bool) {
    let value = |i: usize, x: f64| if is_missing(i, x) { f64::NAN } else { x };
    match chunk {
        Chunk::U8(x) => buffer.f32.extend(x.iter().enumerate().map(|(i, &x)| value(i, f64::from(x)) as f32)),
        Chunk::F32(x) => buffer.f32.extend(x.iter().enumerate().map(|(i, &x)| value(i, f64::from(x)) as f32)),
        Chunk::F64(x) => buffer.f64.extend(x.iter().enumerate().map(|(i, &x)| value(i, x))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holes(samples: &Samples<'_>) -> Vec<usize> {
        let values = samples.to_f64(0..samples.len()).unwrap();
        values.iter().enumerate().filter(|(_, x)| x.is_nan()).map(|(i, _)| i).collect()
    }

    #[test]
    fn a_mask_is_for_all_samples_or_for_each_and_pixels_lack_all_channels() {
        let images = || Samples::from_vec(&[1, 2, 3], (0..18u8).collect::<Vec<_>>()).unwrap();
        let mask = |values: Vec<u8>| Samples::from_vec(&[1, 2], values).unwrap();
        assert_eq!(holes(&images().with_mask(mask(vec![7, 0])).unwrap()), [3, 4, 5, 9, 10, 11, 15, 16, 17]);
        let each = images().with_mask(mask(vec![1, 1, 0, 1, 1, 0])).unwrap();
        assert_eq!((holes(&each), each.missing()), (vec![6, 7, 8, 15, 16, 17], Missing::Nan));
        // A choice of samples is one of masks, too.
        assert_eq!(holes(&each.clone().select(&[2, 1]).unwrap()), [3, 4, 5, 6, 7, 8]);
        assert_eq!(each.scaled(0.5).unwrap().to_f64(1..2).unwrap()[3..], [4.5, 5.0, 5.5]);
        let exact = Samples::from_vec(&[1, 2, 3], vec![f64::NAN, 1.0, 1.0, 1.0, 1.0, 0.0]).unwrap();
        assert_eq!(holes(&images().with_mask(exact).unwrap()), [0, 5, 6, 11, 12, 17]);
    }

    #[test]
    fn masks_of_another_shape_or_number_are_refused() {
        let images = || Samples::from_vec(&[2, 2], vec![0.0; 12]).unwrap();
        let mask = |shape: &[usize], count: usize| Samples::from_vec(shape, vec![1u8; count]).unwrap();
        assert!(matches!(images().with_mask(mask(&[4], 4)), Err(Error::ShapeMismatch { .. })));
        let found = images().with_mask(mask(&[2, 2], 8)).unwrap_err();
        assert_eq!(found, Error::Count { what: Counted::Masks, expected: 3, found: 2 });
        let vectors = Samples::from_vec(&[2], vec![0.0; 4]).unwrap();
        assert!(vectors.with_mask(mask(&[1], 2)).is_err());
    }

    #[test]
    fn what_is_typed_is_what_a_file_keeps() {
        for text in ["error", "nan", "255", "-9999.5", "below:0", "alpha", "alpha:0.25"] {
            let found: Unobserved = text.parse().unwrap();
            assert_eq!(found.to_string(), text);
            let json = serde_json::to_string(&found).unwrap();
            assert_eq!(serde_json::from_str::<Unobserved>(&json).unwrap(), found);
        }
        for text in ["", "alpha:2", "alpha:", "below:x", "inf", "mask"] {
            assert!(text.parse::<Unobserved>().is_err(), "{text}");
        }
    }
}
