//! What a model takes for input: the shape of one sample, the factor its values were multiplied with, how images were
//! brought to that shape.
//!
//! It is part of the model file, so that whoever asks a model prepares new data the way it was fitted, in every language,
//! and is told when that cannot be meant.

#[cfg(feature = "formats")]
use std::path::Path;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[cfg(feature = "formats")]
use super::{DataSet, OpenOptions, open, open_picture};
use super::{Element, Missing, ModelFile, Patches, Samples, Unobserved};
use crate::error::{Error, Result, sides};

/// Samples that are looked at to see where their values lie, spread over all of them.
const LOOKED_AT: usize = 256;

/// A factor of this magnitude or less takes bytes to another range altogether: what lies in that range already is not multiplied again.
const TO_ANOTHER_RANGE: f64 = 0.01;

/// What the numbers of pixels are divided by to be fractions, whatever type they are stored as. Percentages are not among these: a few
/// of them may well lie below 1.
const WHITE: [f64; 4] = [255.0, 256.0, 65_535.0, 65_536.0];

/// Whole numbers are plainly not what a model of fractions knows where they are so many times as large: counts of 0 and 1 may be
/// followed by a 2.
const CLEARLY_LARGER: f64 = 8.0;

/// A set of samples that can be looked at, wherever it is: in this process, or where an [`Engine`](crate::Engine) has it.
///
/// ```
/// use matmix::Samples;
/// use matmix::data::Glance;
///
/// let samples = Samples::from_vec(&[1], (0..100u8).collect::<Vec<_>>())?;
/// assert_eq!(samples.some(4)?.to_f64(0..4)?, [0.0, 25.0, 50.0, 75.0]);
/// # Ok::<(), matmix::Error>(())
/// ```
pub trait Glance {
    /// What every stored value is multiplied with.
    fn scale(&self) -> f64;

    /// What the values are stored as.
    fn element(&self) -> Element;

    /// What NaN is.
    fn missing(&self) -> Missing;

    /// So many of the samples, spread over all of them; all of them if they are fewer.
    ///
    /// # Errors
    /// If they cannot be read.
    fn some(&self, count: usize) -> Result<Samples<'_>>;
}

/// The places of so many samples out of `len`, spread over all of them.
pub(crate) fn spread(len: usize, count: usize) -> Vec<usize> {
    let count = len.min(count);
    (0..count).map(|i| i * len / count).collect()
}

impl Glance for Samples<'_> {
    fn scale(&self) -> f64 {
        self.scale
    }

    fn element(&self) -> Element {
        Samples::element(self)
    }

    fn missing(&self) -> Missing {
        Samples::missing(self)
    }

    fn some(&self, count: usize) -> Result<Samples<'_>> {
        self.clone().select_part(&spread(self.len(), count))
    }
}

/// What a model takes for input.
///
/// ```
/// use matmix::{Input, Samples};
///
/// let bytes = Samples::from_vec(&[2, 2], vec![0u8, 51, 102, 255])?.scaled(1.0 / 255.0)?;
/// let input = Input::of(bytes.shape(), &bytes)?;
/// assert_eq!((input.scale, input.range), (1.0 / 255.0, Some([0.0, 1.0])));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
#[non_exhaustive]
pub struct Input {
    /// The shape of one sample as it is given, before a preset looks at it in its way.
    pub shape: Vec<usize>,
    /// What every stored value was multiplied with.
    pub scale: f64,
    /// What the values were stored as.
    pub element: Element,
    /// The smallest and the largest value after that, among some of the samples; `None` if no cell of these was observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// Whether all these values were whole numbers and none was negative, as pixels and counts are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// The rows and columns that images were brought to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resize: Option<(usize, usize)>,
    /// Whether images kept their channels as a third mode.
    #[serde(default)]
    pub colour: bool,
    /// The windows of a sample that the model takes for its own samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patches: Option<Patches>,
    /// What told in the data that a cell was not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Unobserved>,
    /// Which cells a mask for all samples said were observed, as the lengths of runs of cells that were and were not, in turn; empty if
    /// there was none. What the model says about the others follows from the observed ones, so they are left out of new data, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mask: Vec<usize>,
}

impl Serialize for Input {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

/// Reads and checks, once for model files and pickles: the runs of a mask are added up and expanded later.
impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let input = Self::deserialize(deserializer)?;
        let size = input.shape.iter().try_fold(1usize, |product, &side| product.checked_mul(side));
        if input.mask.is_empty() || size.is_some_and(|size| input.has_mask_of(size)) {
            return Ok(input);
        }
        let cells = match input.masked_cells() {
            Some(cells) => format!("{cells} cells"),
            None => "more cells than can be counted".into(),
        };
        let shape = sides(&input.shape);
        Err(D::Error::custom(format!("its mask is of {cells}, but its samples are of {shape}")))
    }
}

impl Input {
    /// What these samples are, `shape` being that of one of them as it was given.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn of(shape: &[usize], samples: &(impl Glance + ?Sized)) -> Result<Self> {
        let seen = look(samples)?;
        Ok(Self {
            shape: shape.to_vec(),
            scale: samples.scale(),
            element: samples.element(),
            range: seen.range,
            whole: seen.range.is_some() && seen.whole,
            resize: None,
            colour: false,
            patches: None,
            missing: (samples.missing() == Missing::Nan).then_some(Unobserved::Nan),
            mask: vec![],
        })
    }

    /// The same for a model of these windows of the samples.
    pub fn with_patches(self, patches: Patches) -> Self {
        Self { patches: Some(patches), ..self }
    }

    /// The same with the way images were read, and what told that a cell was not observed.
    #[cfg(feature = "formats")]
    pub fn with_images(self, options: &OpenOptions) -> Self {
        let missing = options.missing.filter(|missing| *missing != Unobserved::Never);
        Self { resize: options.resize, colour: options.colour, missing: missing.or(self.missing), ..self }
    }

    /// The same with a mask that all samples had, if they had one: whether each cell was observed. It is what told that a cell was not,
    /// unless [`with_images`](Self::with_images) says afterwards that something else did, too.
    pub fn with_mask(self, observed: Option<&[bool]>) -> Self {
        // Runs of observed cells have even places; the first may be empty.
        let mut mask = Vec::new();
        for &seen in observed.into_iter().flatten() {
            while mask.is_empty() || mask.len() % 2 != usize::from(seen) {
                mask.push(0);
            }
            if let Some(last) = mask.last_mut() {
                *last += 1;
            }
        }
        let missing = self.missing.filter(|missing| mask.is_empty() || *missing != Unobserved::Nan);
        Self { mask, missing, ..self }
    }

    /// The same way to read images and missing cells, where `options` do not say another one.
    #[cfg(feature = "formats")]
    pub fn images(&self, options: &OpenOptions) -> OpenOptions {
        OpenOptions {
            resize: options.resize.or(self.resize),
            colour: options.colour || self.colour,
            missing: options.missing.or(self.missing),
            ..options.clone()
        }
    }

    /// Opens data the way the model's was: images are read the same way, and cells that the model never saw are left out, unless `options`
    /// say that none is missing ([`Unobserved::Never`]). Its values are as they are stored, unless `options` say otherwise.
    ///
    /// # Errors
    /// Those of [`open`].
    #[cfg(feature = "formats")]
    pub fn open(&self, spec: &str, options: &OpenOptions) -> Result<DataSet> {
        let mut data = match open(spec, &self.images(options)) {
            // What was images then may be an array now, and what was transparent NaN.
            Err(Error::OnlyImages { .. }) => {
                let was = self
                    .missing
                    .map(|was| if let Unobserved::Alpha(_) = was { Unobserved::Nan } else { was });
                open(spec, &OpenOptions { missing: options.missing.or(was), ..options.clone() })
            }
            other => other,
        }?;
        // With `Never`, the cells behind the model's mask are observed, too.
        let seen = self.seen(data.samples.sample_len());
        if let Some(seen) = seen.filter(|_| options.missing != Some(Unobserved::Never)) {
            data.samples = without_unseen(data.samples, &seen)?;
            // Where there is a mask of the data, too, both have to have seen a cell.
            data.mask = Some(match data.mask {
                Some(own) => own.iter().zip(seen).map(|(&own, seen)| own && seen).collect(),
                None => seen,
            });
        }
        Ok(data)
    }

    /// Opens one picture the way the model's images were, but in its own size; none if `path` is not called like a picture.
    ///
    /// # Errors
    /// Those of [`open_picture`].
    #[cfg(feature = "formats")]
    pub fn open_picture(&self, path: &Path, options: &OpenOptions) -> Result<Option<DataSet>> {
        open_picture(path, &OpenOptions { resize: options.resize, ..self.images(options) })
    }

    /// The samples with the same cells not observed as the model's had: those behind its mask (unless they have another size), those that
    /// hold the value which stood for that (unless NaN is a missing cell of theirs already).
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn observed<'a>(&self, samples: Samples<'a>) -> Result<Samples<'a>> {
        let samples = match self.missing {
            // Whoever has opened them the same way has told already which are missing.
            Some(Unobserved::Value(fill)) if samples.missing() == Missing::Error => {
                samples.with_fill_value(fill)?
            }
            Some(Unobserved::Nan | Unobserved::Alpha(_)) => samples.with_missing(Missing::Nan),
            _ => samples,
        };
        match self.seen(samples.sample_len()) {
            Some(seen) => without_unseen(samples, &seen),
            None => Ok(samples),
        }
    }

    /// Whether the model had a mask of this number of cells.
    pub fn has_mask_of(&self, cells: usize) -> bool {
        !self.mask.is_empty() && self.masked_cells() == Some(cells)
    }

    /// The sum of the runs of the mask; `None` if it overflows.
    fn masked_cells(&self) -> Option<usize> {
        self.mask.iter().try_fold(0usize, |sum, &run| sum.checked_add(run))
    }

    /// Whether the model saw each of so many cells of a sample, if it had a mask of that size.
    fn seen(&self, cells: usize) -> Option<Vec<bool>> {
        if !self.has_mask_of(cells) {
            return None;
        }
        let run = |(place, &length): (usize, &usize)| std::iter::repeat_n(place % 2 == 0, length);
        Some(self.mask.iter().enumerate().flat_map(run).collect())
    }

    /// The samples, their values multiplied the way the model's were.
    ///
    /// # Errors
    /// Those of [`factor`](Self::factor).
    pub fn scaled<'a>(&self, samples: &Samples<'a>) -> Result<Samples<'a>> {
        samples.clone().scaled(self.factor(samples)?)
    }

    /// What the values of these samples have to be multiplied with to be what the model's were, wherever the samples are: the factor of
    /// the fit, or 1 if they have it already.
    ///
    /// # Errors
    /// If it is plain that this cannot be meant: whole numbers of bytes, of whatever type, where the model knows values from 0 to 1; values
    /// up to 1 where a factor made such values of pixels; fractions up to 1 where the model knows whole numbers as they are, many times as
    /// large; samples that already have another factor than the model's.
    pub fn factor(&self, samples: &(impl Glance + ?Sized)) -> Result<f64> {
        let is_multiplied = samples.scale() != 1.0;
        // What has a factor is not given another one, whoever gave it.
        let factor = if is_multiplied { 1.0 } else { self.scale };
        let has_another = is_multiplied && self.scale != 1.0 && samples.scale() != self.scale;
        let Some(expected) = self.range else { return Ok(factor) };
        let may_be_bytes = self.scale == 1.0 && expected[0] >= 0.0 && largest(expected) <= 1.0;
        let knows_larger_wholes = self.scale == 1.0 && self.whole && largest(expected) > CLEARLY_LARGER;
        let may_be_fractions =
            !is_multiplied && (self.was_pixels() || knows_larger_wholes) && samples.element() != Element::U8;
        if !(has_another || may_be_bytes || may_be_fractions) {
            return Ok(factor);
        }
        let Seen { range: Some(found), whole } = look(samples)? else { return Ok(factor) };
        // The pixels of the fit may all have been dark; fractions go up to 1.
        let fractions = if knows_larger_wholes { 1.0 } else { largest(expected).max(1.0) };
        let could_be_bytes = whole && largest(found) <= 255.0;
        let bytes_for_fractions =
            may_be_bytes && could_be_bytes && largest(found) > CLEARLY_LARGER * fractions;
        // A black image is black by any factor, and whole numbers as they are may all be 0 or 1.
        let is_dark = largest(found) == 0.0 || knows_larger_wholes && whole;
        let fractions_for_bytes = may_be_fractions && !is_dark && largest(found) <= fractions;
        if has_another || bytes_for_fractions || fractions_for_bytes {
            return Err(Error::Values { found, expected, scale: self.scale });
        }
        Ok(factor)
    }

    /// Whether the factor of the fit made fractions of the numbers of pixels.
    fn was_pixels(&self) -> bool {
        let factor = self.scale.abs();
        let is_of_white = WHITE.iter().any(|white| (factor * white - 1.0).abs() < 1e-6);
        is_of_white || self.element == Element::U8 && factor <= TO_ANOTHER_RANGE
    }
}

/// The samples without the cells that a model never saw.
fn without_unseen<'a>(samples: Samples<'a>, seen: &[bool]) -> Result<Samples<'a>> {
    let shape = samples.shape().to_vec();
    let observed = seen.iter().copied().map(u8::from).collect::<Vec<_>>();
    samples.with_mask(Samples::from_vec(&shape, observed)?)
}

/// The largest magnitude of what lies between these.
fn largest(range: [f64; 2]) -> f64 {
    range[0].abs().max(range[1].abs())
}

impl ModelFile {
    /// The samples as this model takes them: without the cells that were not observed in its fit, multiplied with `scale`, or with
    /// the factor of its fit if that is `None`, and in the shape its preset looks at.
    ///
    /// # Errors
    /// If their values or their shape are not those of a sample of this model.
    pub fn prepare<'a>(&self, samples: &Samples<'a>, scale: Option<f64>) -> Result<Samples<'a>> {
        let observed = self.input.as_ref().map(|input| input.observed(samples.clone())).transpose()?;
        self.view(&self.scaled(observed.as_ref().unwrap_or(samples), scale)?)
    }

    /// A part of [`prepare`](Self::prepare), for what [`Input::open`] has opened: the values, not the shape.
    ///
    /// # Errors
    /// If their values are not those of a sample of this model.
    pub fn scaled<'a>(&self, samples: &Samples<'a>, scale: Option<f64>) -> Result<Samples<'a>> {
        match (scale, &self.input) {
            (Some(scale), _) => samples.clone().scaled(scale),
            (None, Some(input)) => input.scaled(samples),
            (None, None) => Ok(samples.clone()),
        }
    }
}

/// What some of the samples say about the values of all.
struct Seen {
    /// The smallest and the largest, if any was.
    range: Option<[f64; 2]>,
    /// Whether every value that was observed is a whole number, and none is negative.
    whole: bool,
}

fn look(samples: &(impl Glance + ?Sized)) -> Result<Seen> {
    let some = samples.some(LOOKED_AT)?;
    let values = some.to_f64(0..some.len())?;
    let widest = [f64::INFINITY, f64::NEG_INFINITY];
    let whole = |x: f64| x.is_nan() || x >= 0.0 && x.fract() == 0.0;
    let range = values.iter().fold(widest, |[low, high], &x| [low.min(x), high.max(x)]);
    Ok(Seen { range: (range[0] <= range[1]).then_some(range), whole: values.iter().all(|&x| whole(x)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes() -> Samples<'static> {
        Samples::from_vec(&[2, 2], (0..40).map(|i| (i * 13 % 256) as u8).collect::<Vec<_>>()).unwrap()
    }

    fn fractions() -> Samples<'static> {
        let values = bytes().to_f64(0..10).unwrap();
        Samples::from_vec(&[2, 2], values.iter().map(|x| x / 255.0).collect::<Vec<_>>()).unwrap()
    }

    fn input(samples: &Samples<'_>) -> Input {
        Input::of(samples.shape(), samples).unwrap()
    }

    #[test]
    fn what_a_model_was_fitted_to_is_what_it_is_given() {
        let scaled = bytes().scaled(1.0 / 255.0).unwrap();
        let input = input(&scaled);
        let prepared = input.scaled(&bytes()).unwrap();
        assert_eq!(prepared.to_f64(0..10).unwrap(), scaled.to_f64(0..10).unwrap());
        let text = serde_json::to_string(&input).unwrap();
        assert_eq!(serde_json::from_str::<Input>(&text).unwrap(), input);
    }

    #[cfg(feature = "formats")]
    #[test]
    fn a_mask_is_kept_as_runs_and_hides_the_same_cells() {
        let seen = [false, false, true, false];
        let input = input(&bytes()).with_mask(Some(&seen));
        assert_eq!(input.mask, [0, 2, 1, 1]);
        let text = serde_json::to_string(&input).unwrap();
        assert_eq!(serde_json::from_str::<Input>(&text).unwrap(), input);
        let masked = input.observed(bytes()).unwrap().to_f64(3..4).unwrap();
        assert!(masked.iter().zip(seen).all(|(x, seen)| x.is_nan() != seen));
        assert_eq!(input.clone().with_mask(Some(&[true, true, false, false])).mask, [2, 2]);
        // That NaN is a missing cell of masked samples says nothing that the mask does not.
        let of_nan = Input { missing: Some(Unobserved::Nan), ..input.clone() };
        assert_eq!(of_nan.clone().with_mask(Some(&seen)), input);
        assert_eq!(of_nan.with_mask(None).missing, Some(Unobserved::Nan));
        assert!(input.with_mask(None).mask.is_empty());
    }

    #[test]
    fn bytes_are_not_taken_for_fractions_nor_fractions_for_bytes() {
        let of_fractions = input(&fractions());
        assert!(matches!(of_fractions.scaled(&bytes()), Err(Error::Values { .. })));
        assert!(of_fractions.scaled(&fractions()).is_ok());
        let of_bytes = input(&bytes().scaled(1.0 / 255.0).unwrap());
        assert!(matches!(of_bytes.scaled(&fractions()), Err(Error::Values { .. })));
        // Numbers up to 255 in another type are what bytes are.
        let wide = Samples::from_vec(&[2, 2], bytes().to_f64(0..10).unwrap()).unwrap();
        let prepared = of_bytes.scaled(&wide).unwrap();
        assert_eq!(prepared.scale(), 1.0 / 255.0);
        // So they are for a model of fractions; other numbers may be meant.
        assert!(matches!(of_fractions.scaled(&wide), Err(Error::Values { .. })));
        let other = |factor: f64| {
            let values = bytes().to_f64(0..10).unwrap().iter().map(|x| x * factor).collect::<Vec<_>>();
            Samples::from_vec(&[2, 2], values).unwrap()
        };
        assert!(of_fractions.scaled(&other(0.01)).is_ok() && of_fractions.scaled(&other(2.0)).is_ok());
        // The same for a fit to bytes without a factor, stored as bytes or as doubles.
        for known in [bytes(), wide] {
            assert!(matches!(input(&known).scaled(&fractions()), Err(Error::Values { .. })));
            assert!(input(&known).scaled(&other(1.0)).is_ok() && input(&known).scaled(&other(0.5)).is_ok());
            // Black and white may be bytes of 0 and 1, in any element type.
            let white = Samples::from_vec(&[2], vec![0.0, 1.0]).unwrap();
            assert!(input(&known).scaled(&white).is_ok());
        }
    }

    #[test]
    fn what_a_model_knows_counts_and_not_how_it_was_stored() {
        // Black and white as bytes of 0 and 1 are fractions, and numbers up to 255 in another type are bytes.
        let ones = Samples::from_vec(&[2, 2], vec![0u8, 1, 1, 0, 1, 1, 0, 0]).unwrap();
        assert!(matches!(input(&ones).scaled(&bytes()), Err(Error::Values { .. })));
        assert!(input(&ones).scaled(&ones).is_ok());
        let wide = Samples::from_vec(&[2, 2], bytes().to_f64(0..10).unwrap()).unwrap();
        let of_wide = input(&wide.clone().scaled(1.0 / 255.0).unwrap());
        assert!(matches!(of_wide.scaled(&fractions()), Err(Error::Values { .. })));
        assert!(of_wide.scaled(&wide).is_ok());
        // Black is black; and a factor of a half leaves values where they are.
        let black = Samples::from_vec(&[2, 2], vec![0.0; 8]).unwrap();
        assert!(of_wide.scaled(&black).is_ok());
        assert!(input(&bytes().scaled(0.5).unwrap()).scaled(&wide).is_ok());
    }

    #[test]
    fn samples_that_have_the_factor_are_not_multiplied_again() {
        let scaled = bytes().scaled(1.0 / 255.0).unwrap();
        let of_bytes = input(&scaled);
        assert_eq!(of_bytes.scaled(&scaled).unwrap().scale(), 1.0 / 255.0);
        let other = bytes().scaled(0.1).unwrap();
        // The largest of the bytes is 19 · 13 = 247 or, beyond 255, 39 · 13 − 256 = 251.
        let expected = [0.0, 251.0 / 255.0];
        let Err(Error::Values { found, expected: known, scale }) = of_bytes.scaled(&other) else {
            panic!("values with another factor were taken");
        };
        for (found, wanted) in [(found, [0.0, 25.1]), (known, expected), ([scale; 2], [1.0 / 255.0; 2])] {
            assert!((0..2).all(|end| (found[end] - wanted[end]).abs() < 1e-12), "{found:?}, not {wanted:?}");
        }
        // A model of values as they are takes fractions, whatever made them.
        assert_eq!(input(&fractions()).scaled(&scaled).unwrap().scale(), 1.0 / 255.0);
        // Where nobody knows what the values of the fit were, they are left as they were made.
        let of_nobody_knows = Input { range: None, ..of_bytes };
        assert_eq!(of_nobody_knows.scaled(&other).unwrap().scale(), 0.1);
        assert_eq!(of_nobody_knows.scaled(&bytes()).unwrap().scale(), 1.0 / 255.0);
    }

    #[test]
    fn models_of_small_or_broken_numbers_take_fractions() {
        let of = |values: &[f64]| Samples::from_vec(&[2], values.to_vec()).unwrap();
        let few = of(&[0.25, 0.75]);
        // Whole numbers up to 8, percentages with fractions, numbers below zero.
        for known in [of(&[0.0, 8.0, 3.0, 1.0]), of(&[0.0, 100.0, 37.25, 0.5]), of(&[-40.0, 100.0])] {
            assert_eq!(input(&known).scaled(&few).unwrap().scale(), 1.0);
        }
        assert!(matches!(input(&of(&[0.0, 9.0])).scaled(&few), Err(Error::Values { .. })));
        // A file of before does not say whether its values were whole.
        let before = Input { whole: false, ..input(&bytes()) };
        assert!(before.scaled(&fractions()).is_ok());
    }

    #[test]
    fn a_factor_below_zero_is_one_like_any_other() {
        let turned = fractions().scaled(-1.0).unwrap();
        assert_eq!(input(&turned).scaled(&fractions()).unwrap().scale(), -1.0);
        // Bytes that were turned around are bytes all the same.
        let of_bytes = input(&bytes().scaled(-1.0 / 255.0).unwrap());
        assert_eq!(of_bytes.scaled(&bytes()).unwrap().scale(), -1.0 / 255.0);
        assert!(matches!(of_bytes.scaled(&fractions()), Err(Error::Values { .. })));
    }

    #[test]
    fn what_may_be_meant_is_not_refused() {
        let of = |values: &[f64]| Samples::from_vec(&[2], values.to_vec()).unwrap();
        // Percentages may all be small.
        let of_percentages = input(&of(&[0.0, 100.0, 37.25, 0.5]).scaled(0.01).unwrap());
        assert_eq!(of_percentages.scaled(&of(&[0.25, 0.75])).unwrap().scale(), 0.01);
        // Where there were counts of 0 and 1 there may be a 2; nine times as much is something else.
        let counts = |most: u8| Samples::from_vec(&[2], vec![0, 1, 1, most]).unwrap();
        let of_counts = input(&counts(1));
        assert!(of_counts.scaled(&counts(2)).is_ok() && of_counts.scaled(&counts(8)).is_ok());
        assert!(matches!(of_counts.scaled(&counts(9)), Err(Error::Values { .. })));
    }

    #[test]
    fn a_model_of_samples_that_nobody_has_seen_can_be_read_again() {
        // 256 of 600 samples are looked at.
        let seen = spread(600, LOOKED_AT);
        let values =
            (0..600).map(|n| if seen.contains(&n) { f64::NAN } else { n as f64 }).collect::<Vec<_>>();
        let samples = Samples::from_vec(&[1], values).unwrap().with_missing(Missing::Nan);
        let input = input(&samples);
        assert_eq!((input.range, input.missing), (None, Some(Unobserved::Nan)));
        let text = serde_json::to_string(&input).unwrap();
        assert_eq!(serde_json::from_str::<Input>(&text).unwrap(), input);
        assert!(input.scaled(&bytes()).is_ok());
    }

    #[test]
    fn arrays_are_prepared_as_files_are_opened() {
        use crate::data::FillValue;
        use crate::linalg::Matrix;
        use crate::model::{Component, Mixture};

        let u = || Matrix::from_fn(2, 1, |i, _| i as f64 + 0.5);
        let component = Component::new(&[2, 2], vec![0.0; 4], vec![u(), u()], 1.0).unwrap();
        let model = Mixture::new(&[2, 2], vec![1.0], vec![component]).unwrap();
        let of = |input| ModelFile { input: Some(input), ..ModelFile::new(model.clone().into()) };
        let missing = |samples: Samples<'_>| {
            samples.to_f64(0..10).unwrap().iter().map(|x| x.is_nan()).collect::<Vec<_>>()
        };
        let filled = of(Input { missing: Some(Unobserved::Value(FillValue::Is(13.0))), ..input(&bytes()) });
        let expected = bytes().to_f64(0..10).unwrap().iter().map(|&x| x == 13.0).collect::<Vec<_>>();
        assert_eq!(missing(filled.prepare(&bytes(), None).unwrap()), expected);
        let masked = of(input(&bytes()).with_mask(Some(&[true, false, true, true])));
        let expected = (0..40).map(|cell| cell % 4 == 1).collect::<Vec<_>>();
        assert_eq!(missing(masked.prepare(&bytes(), None).unwrap()), expected);
    }
}
