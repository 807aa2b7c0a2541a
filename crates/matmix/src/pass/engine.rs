//! Where samples are: the seam between whoever needs a pass and whatever runs it, this process or machines elsewhere.
//!
//! A fit asks an [`Engine`] to run a pass over all samples and gets the sums back. It never sees a sample but the few it asks
//! for by number.

use super::task::{AnySums, Task};
use super::{Backend, Pass, RowsPass, Sums, mismatch};
use crate::data::{Element, Glance, Missing, Samples, spread};
use crate::error::{Error, Result};

/// Something that holds a set of samples and can run passes over it. [`Samples`] is one.
///
/// An engine whose samples are in parts runs [`Task::run`] over each of them and adds the sums along a
/// [`SumTree`](super::SumTree), so that the same parts give the same bits wherever they are.
///
/// ```
/// use matmix::{Engine, Samples};
///
/// let samples = Samples::from_vec(&[4, 3], vec![0.5f32; 120])?;
/// let engine: &dyn Engine = &samples;
/// assert_eq!((engine.len(), engine.order()), (10, 2));
/// # Ok::<(), matmix::Error>(())
/// ```
pub trait Engine: Sync {
    /// The shape of one sample.
    fn shape(&self) -> &[usize];

    /// N.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The type the elements are stored in, the same in all parts: the precision of a pass depends on it.
    fn element(&self) -> Element;

    /// The factor every stored value is multiplied by, the same in all parts.
    fn scale(&self) -> f64;

    /// What NaN means in the samples, the same in all parts.
    fn missing(&self) -> Missing {
        Missing::Error
    }

    /// One weight per sample, if there are weights.
    fn weights(&self) -> Option<&[f64]>;

    /// What is known about the class of each sample, if anything is.
    fn classes(&self) -> Option<&[Option<u32>]> {
        None
    }

    /// Runs the pass over all samples.
    ///
    /// # Errors
    /// Whatever the samples, or getting at them, can cause.
    fn run(&self, task: &Task) -> Result<AnySums>;

    /// What computes passes over samples that were fetched to this process.
    fn backend(&self) -> &dyn Backend;

    /// The samples themselves, where this process can read them.
    fn local(&self) -> Option<&Samples<'_>> {
        None
    }

    /// The number of modes.
    fn order(&self) -> usize {
        self.shape().len()
    }

    /// P.
    fn sample_len(&self) -> usize {
        self.shape().iter().product()
    }

    /// The weight of sample `n`: 1 unless there are weights.
    fn weight(&self, n: usize) -> f64 {
        self.weights().map_or(1.0, |w| w[n])
    }

    /// The sum of the weights: N unless there are weights.
    fn total_weight(&self) -> f64 {
        self.weights().map_or(self.len() as f64, |w| w.iter().sum())
    }

    /// The number of samples whose weight is positive.
    fn n_effective(&self) -> usize {
        self.weights().map_or(self.len(), |w| w.iter().filter(|&&w| w > 0.0).count())
    }
}

impl dyn Engine + '_ {
    /// Runs a pass and makes sure that the sums are its own and that every sample was seen once.
    ///
    /// # Errors
    /// Those of [`Engine::run`], and sums that are not those of the pass.
    pub fn sums<P: Pass + Clone>(&self, pass: &P) -> Result<P::Sums> {
        let sums = P::Sums::try_from(self.run(&pass.clone().into())?)?;
        let expected = pass.stage().count(self.len());
        if sums.n_samples() != expected as u64 {
            return Err(Error::LostSamples { expected, found: sums.n_samples() });
        }
        if !pass.fits(&sums) {
            return Err(mismatch("they are of another model, of other samples or of another question"));
        }
        Ok(sums)
    }

    /// The samples with these numbers in ascending order, scaled, weighted and labelled as they are in the whole set.
    ///
    /// # Errors
    /// Those of [`Engine::run`], and samples that are not those of the set.
    pub fn fetch(&self, mut indices: Vec<usize>) -> Result<Samples<'static>> {
        indices.sort_unstable();
        indices.dedup();
        let rows = self.sums(&RowsPass { indices: indices.clone() })?;
        let samples = rows.into_samples()?.scaled(self.scale())?.with_missing(self.missing());
        if samples.shape() != self.shape() || samples.element() != self.element() {
            return Err(mismatch("they are of other samples"));
        }
        let samples = match self.classes() {
            Some(classes) => samples.with_classes(indices.iter().map(|&n| classes[n]).collect())?,
            None => samples,
        };
        match self.weights() {
            Some(weights) => samples.with_part_weights(indices.iter().map(|&n| weights[n]).collect()),
            None => Ok(samples),
        }
    }
}

impl Glance for dyn Engine + '_ {
    fn scale(&self) -> f64 {
        Engine::scale(self)
    }

    fn element(&self) -> Element {
        Engine::element(self)
    }

    fn missing(&self) -> Missing {
        Engine::missing(self)
    }

    fn some(&self, count: usize) -> Result<Samples<'_>> {
        self.fetch(spread(self.len(), count))
    }
}
