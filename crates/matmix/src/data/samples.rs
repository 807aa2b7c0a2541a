//! A set of N samples of one shape, read chunk by chunk.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use super::files::Files;
use super::meter::Meter;
use super::missing::Missing;
use super::npy;
use super::source::{Element, InMemory, Scalar, Source};
use crate::error::{Counted, Error, Result};

/// What samples that must be read may take of the memory if nobody says otherwise.
pub(super) const DEFAULT_BUDGET: u64 = 1 << 30;

/// N samples of one shape: vectors, matrices or tensors of any order.
///
/// The elements stay where they are: in a vector, in a slice that belongs to somebody else, in a
/// memory-mapped file. Scaling, selecting and reshaping are views; nothing is copied until a chunk is read.
///
/// ```
/// use matmix::Samples;
///
/// // Four 2×3 matrices.
/// let samples = Samples::from_vec(&[2, 3], (0..24).map(f64::from).collect::<Vec<_>>())?;
/// assert_eq!((samples.len(), samples.order()), (4, 2));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Clone)]
pub struct Samples<'a> {
    pub(super) source: Arc<dyn Source + 'a>,
    pub(super) shape: Vec<usize>,
    /// How many samples of `shape` one sample of the source holds (1, or its rows when those are the samples).
    pub(super) split: usize,
    pub(super) selection: Option<Arc<[usize]>>,
    pub(super) scale: f64,
    pub(super) weights: Option<Arc<[f64]>>,
    pub(super) classes: Option<Arc<[Option<u32>]>>,
    pub(super) budget: Option<u64>,
    pub(super) meter: Option<Arc<Meter>>,
    pub(super) missing: Missing,
}

impl std::fmt::Debug for Samples<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Samples({} × {} {})", self.len(), crate::error::sides(&self.shape), self.element())
    }
}

impl<'a> Samples<'a> {
    /// Samples of `shape` from a vector that holds one after the other in row-major order.
    ///
    /// # Errors
    /// If the shape is empty, or the elements are no whole samples or none at all.
    pub fn from_vec<T: Scalar + 'a>(shape: &[usize], elements: Vec<T>) -> Result<Self> {
        Self::in_memory(shape, Cow::Owned(elements))
    }

    /// Samples of `shape` from a slice, without a copy.
    ///
    /// # Errors
    /// As [`from_vec`](Self::from_vec).
    pub fn from_slice<T: Scalar>(shape: &[usize], elements: &'a [T]) -> Result<Self> {
        Self::in_memory(shape, Cow::Borrowed(elements))
    }

    fn in_memory<T: Scalar + 'a>(shape: &[usize], elements: Cow<'a, [T]>) -> Result<Self> {
        let size = sample_size(shape)?;
        if !elements.len().is_multiple_of(size) {
            return Err(Error::DataLength { shape: shape.to_vec(), found: elements.len() });
        }
        Self::from_source(Arc::new(InMemory::new(shape.to_vec(), elements)))
    }

    /// Samples from a `.npy` file with the axes sample × mode 1 × mode 2 × …, memory-mapped: the elements stay on disk
    /// until a chunk is read. Nobody may cut the file short meanwhile: that would end the process (SIGBUS), unless
    /// the set is larger than its [memory budget](Self::with_memory_budget) and read piece by piece.
    ///
    /// # Errors
    /// If the file cannot be read, is no `.npy` file of numbers, or holds no samples.
    pub fn from_npy(path: impl AsRef<Path>) -> Result<Samples<'static>> {
        Samples::from_source(npy::source(path.as_ref())?.into())
    }

    /// The samples of several `.npy` files of one shape and type as one set, in the order given. Each file is a part
    /// of the set: sums are made file by file and added along a fixed tree, as a cluster would with a file per task.
    ///
    /// # Errors
    /// As [`from_npy`](Self::from_npy), if there are no files, and if they differ in shape or type.
    pub fn from_npy_files<P: AsRef<Path>>(paths: &[P]) -> Result<Samples<'static>> {
        Samples::from_source(Arc::new(Files::open(paths)?))
    }

    /// Samples from any [`Source`].
    ///
    /// # Errors
    /// If it is empty, or its shape is.
    pub fn from_source(source: Arc<dyn Source + 'a>) -> Result<Self> {
        sample_size(source.shape())?;
        if source.is_empty() {
            return Err(Error::EmptySet);
        }
        let shape = source.shape().to_vec();
        Ok(Self {
            source,
            shape,
            split: 1,
            selection: None,
            scale: 1.0,
            weights: None,
            classes: None,
            budget: None,
            meter: None,
            missing: Missing::Error,
        })
    }

    /// The same samples, of which a pass may hold no more than about so many bytes at a time, its own sums and working
    /// space included. A set in files that is larger is not mapped but read piece by piece, ahead of the threads that
    /// work on it; the results have the same bits. A set that is in memory already stays there.
    pub fn with_memory_budget(mut self, bytes: u64) -> Self {
        self.budget = Some(bytes);
        self
    }

    /// The same samples; whoever goes over them counts them on `meter`.
    pub fn with_meter(mut self, meter: Arc<Meter>) -> Self {
        self.meter = Some(meter);
        self
    }

    /// The same samples, of which NaN means this. Everything a mixture is asked about samples with missing cells, a fit included, is
    /// answered by what was observed of them.
    pub fn with_missing(mut self, missing: Missing) -> Self {
        self.missing = missing;
        self
    }

    /// The same samples, each multiplied by its weight in every sum (as if it were there that many times).
    ///
    /// # Errors
    /// As [`with_part_weights`](Self::with_part_weights), and if all weights are zero.
    pub fn with_weights(self, weights: Vec<f64>) -> Result<Self> {
        let weighted = self.with_part_weights(weights)?;
        match weighted.n_effective() {
            0 => Err(Error::ZeroWeights),
            _ => Ok(weighted),
        }
    }

    /// The same for a part of a larger set, in which no sample has to count.
    ///
    /// # Errors
    /// If there is not one weight per sample, or one of them is negative or not finite.
    pub fn with_part_weights(mut self, weights: Vec<f64>) -> Result<Self> {
        if weights.len() != self.len() {
            return Err(Error::Count { what: Counted::Weights, expected: self.len(), found: weights.len() });
        }
        for (sample, &value) in weights.iter().enumerate() {
            if !(value.is_finite() && value >= 0.0) {
                return Err(Error::Weight { sample, value });
            }
        }
        self.weights = Some(weights.into());
        Ok(self)
    }

    /// The same samples, of which it is known which class each belongs to, counted from 0; `None` where it is not. To a mixture
    /// whose components belong to [classes](crate::Classes), a sample of known class is one of the components of that class and of no
    /// others: its density is that of the sample and its class, and its responsibilities are zero elsewhere.
    ///
    /// # Errors
    /// If there is not one class per sample.
    pub fn with_classes(mut self, classes: Vec<Option<u32>>) -> Result<Self> {
        if classes.len() != self.len() {
            return Err(Error::Count { what: Counted::Classes, expected: self.len(), found: classes.len() });
        }
        self.classes = Some(classes.into());
        Ok(self)
    }

    /// The same samples with every value multiplied by `factor` when it is read (1/255 for bytes, say).
    ///
    /// # Errors
    /// If the factor is zero or not finite, alone or with the one there is.
    pub fn scaled(mut self, factor: f64) -> Result<Self> {
        // Two factors can be fine and their product not.
        let scale = self.scale * factor;
        if !(scale.is_finite() && scale != 0.0) {
            return Err(Error::Option {
                option: "scale",
                value: factor.to_string(),
                expected: "a finite number other than 0",
            });
        }
        self.scale = scale;
        Ok(self)
    }

    /// The samples at these places, in this order.
    ///
    /// # Errors
    /// If there are none, if one is beyond the end, or if none of them counts.
    pub fn select(self, indices: &[usize]) -> Result<Self> {
        let chosen = self.select_part(indices)?;
        match chosen.n_effective() {
            0 => Err(Error::ZeroWeights),
            _ => Ok(chosen),
        }
    }

    /// The same for a part of a larger set, in which no sample has to count.
    pub(crate) fn select_part(mut self, indices: &[usize]) -> Result<Self> {
        if indices.is_empty() {
            return Err(Error::EmptySet);
        }
        let len = self.len();
        if let Some(&index) = indices.iter().find(|&&i| i >= len) {
            return Err(Error::Index { index, len });
        }
        if let Some(weights) = &self.weights {
            self.weights = Some(indices.iter().map(|&i| weights[i]).collect());
        }
        if let Some(classes) = &self.classes {
            self.classes = Some(indices.iter().map(|&i| classes[i]).collect());
        }
        self.selection = Some(indices.iter().map(|&i| self.place(i)).collect());
        Ok(self)
    }

    /// The same numbers as samples of another shape with as many elements (flattened, say).
    ///
    /// # Errors
    /// If it has more or fewer elements, or none.
    pub fn reshaped(mut self, shape: &[usize]) -> Result<Self> {
        if sample_size(shape)? != self.sample_len() {
            return Err(Error::DataLength { shape: shape.to_vec(), found: self.sample_len() });
        }
        self.shape = shape.to_vec();
        Ok(self)
    }

    /// The rows of the matrices (the slices along the first mode) as samples of their own; each row has the
    /// weight and the class of its sample. Sample n becomes the samples n·p … n·p + p − 1.
    ///
    /// # Errors
    /// If the samples are vectors.
    pub fn rows(mut self) -> Result<Self> {
        if self.shape.len() < 2 {
            return Err(Error::Order { what: "splitting samples into rows", expected: 2, found: 1 });
        }
        let p = self.shape.remove(0);
        if let Some(weights) = &self.weights {
            self.weights = Some(weights.iter().flat_map(|&w| std::iter::repeat_n(w, p)).collect());
        }
        if let Some(classes) = &self.classes {
            self.classes = Some(classes.iter().flat_map(|&c| std::iter::repeat_n(c, p)).collect());
        }
        if let Some(selection) = &self.selection {
            self.selection = Some(selection.iter().flat_map(|&n| n * p..(n + 1) * p).collect());
        }
        self.split *= p;
        Ok(self)
    }

    /// The number of samples.
    pub fn len(&self) -> usize {
        self.selection.as_ref().map_or(self.source.len() * self.split, |s| s.len())
    }

    /// Never true: an empty set cannot be made.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shape of one sample.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of modes: 1 for vectors, 2 for matrices.
    pub fn order(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements of one sample.
    pub fn sample_len(&self) -> usize {
        self.shape.iter().product()
    }

    /// The type the elements are stored in.
    pub fn element(&self) -> Element {
        self.source.element()
    }

    /// The factor every stored value is multiplied by when it is read.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// What NaN means in these samples.
    pub fn missing(&self) -> Missing {
        self.missing
    }

    /// The sample weights, if they were given.
    pub fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    /// The classes of the samples, if they were given.
    pub fn classes(&self) -> Option<&[Option<u32>]> {
        self.classes.as_deref()
    }

    /// The weight of sample `n`: 1 unless weights were given.
    pub fn weight(&self, n: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |w| w[n])
    }

    /// The sum of the weights: N unless weights were given.
    pub fn total_weight(&self) -> f64 {
        self.weights.as_ref().map_or(self.len() as f64, |w| w.iter().sum())
    }

    /// The number of samples whose weight is positive.
    pub fn n_effective(&self) -> usize {
        self.weights.as_ref().map_or(self.len(), |w| w.iter().filter(|&&w| w > 0.0).count())
    }

    /// The place of sample `n` in the source, counted in parts.
    fn place(&self, n: usize) -> usize {
        self.selection.as_ref().map_or(n, |s| s[n])
    }
}

fn sample_size(shape: &[usize]) -> Result<usize> {
    let size = shape.iter().try_fold(1usize, |size, &side| size.checked_mul(side));
    match size {
        Some(size) if size > 0 && !shape.is_empty() => Ok(size),
        _ => Err(Error::EmptyShape { shape: shape.to_vec() }),
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    fn twelve() -> Samples<'static> {
        Samples::from_vec(&[2, 3], (0..72).map(f64::from).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn selection_of_a_selection_counts_from_the_first() {
        let s = twelve().select(&[3, 5, 7]).unwrap().select(&[2, 0]).unwrap();
        assert_eq!(s.to_f64(0..2).unwrap(), [(42..48), (18..24)].concat_f64());
    }

    #[test]
    fn rows_of_selected_samples_are_their_rows() {
        let s = twelve().select(&[1, 4]).unwrap().rows().unwrap();
        assert_eq!((s.len(), s.shape()), (4, &[3][..]));
        assert_eq!(s.to_f64(1..3).unwrap(), [(9..12), (24..27)].concat_f64());
        let all = twelve().rows().unwrap();
        assert_eq!(all.to_f64(3..6).unwrap(), [(9..12), (12..18)].concat_f64());
    }

    #[test]
    fn rows_inherit_the_weight_of_their_sample() {
        let s = twelve().with_weights((0..12).map(f64::from).collect()).unwrap().rows().unwrap();
        assert_eq!(&s.weights().unwrap()[2..6], &[1.0, 1.0, 2.0, 2.0]);
    }

    #[test]
    fn a_nan_is_found_with_its_place() {
        let mut x = vec![0f32; 24];
        x[6 + 4] = f32::NAN;
        let s = Samples::from_vec(&[2, 3], x).unwrap();
        match s.check_finite(0..4) {
            Err(Error::NotFinite { sample: 1, position, .. }) => assert_eq!(position, [1, 1]),
            other => panic!("{other:?}"),
        }
    }

    trait ConcatF64 {
        fn concat_f64(&self) -> Vec<f64>;
    }

    impl<const N: usize> ConcatF64 for [Range<i32>; N] {
        fn concat_f64(&self) -> Vec<f64> {
            self.iter().flat_map(|r| r.clone().map(f64::from)).collect()
        }
    }
}
