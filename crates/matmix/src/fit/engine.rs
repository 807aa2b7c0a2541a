//! The seam between a fit and whatever runs its passes: this process, or machines elsewhere.
//!
//! A fit asks an [`Engine`] to run a [`Task`] over all samples and gets the [`Sums`] back. It never sees a sample but the
//! few it asks for by number.

use crate::data::{Element, Samples};
use crate::error::{Error, Result};
use crate::linalg::Matrix;
use crate::model::Mixture;
use crate::pass::moments::Moments;
use crate::pass::sums::mismatch;
use crate::pass::{GroupSums, Precision, ScatterSums, Statistics, Sums, Task};

/// Something that holds a set of samples and can run passes over it. [`Samples`] is one.
///
/// An engine whose samples are in parts runs [`Task::run`] over each of them and adds the sums along a
/// [`Tree`](crate::pass::tree::Tree), so that the same parts give the same bits wherever they are.
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

    /// One weight per sample, if there are weights.
    fn weights(&self) -> Option<&[f64]>;

    /// Runs the pass over all samples.
    fn run(&self, task: &Task) -> Result<Sums>;

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

impl Engine for Samples<'_> {
    fn shape(&self) -> &[usize] {
        Samples::shape(self)
    }

    fn len(&self) -> usize {
        Samples::len(self)
    }

    fn element(&self) -> Element {
        Samples::element(self)
    }

    fn scale(&self) -> f64 {
        Samples::scale(self)
    }

    fn weights(&self) -> Option<&[f64]> {
        Samples::weights(self)
    }

    fn run(&self, task: &Task) -> Result<Sums> {
        task.run(self, 0)
    }

    fn local(&self) -> Option<&Samples<'_>> {
        Some(self)
    }
}

/// Runs a task and makes sure that every sample was seen once.
fn run(engine: &dyn Engine, task: &Task) -> Result<Sums> {
    let sums = engine.run(task)?;
    if sums.kind() != task.kind() {
        return Err(mismatch(format!(
            "a {} pass was asked for, a {} pass answered",
            task.kind(),
            sums.kind()
        )));
    }
    if sums.n_samples() != engine.len() as u64 {
        return Err(Error::LostSamples { expected: engine.len(), found: sums.n_samples() });
    }
    Ok(sums)
}

fn other_model() -> Error {
    mismatch("they are of another model or of other samples")
}

/// One EM pass.
pub(super) fn em(
    engine: &dyn Engine,
    model: &Mixture,
    mode: usize,
    precision: Precision,
) -> Result<Statistics> {
    match run(engine, &Task::Em { model: model.clone(), mode, precision })? {
        Sums::Em(sums) if sums.like(&Statistics::zero(model, mode)) => Ok(sums),
        _ => Err(other_model()),
    }
}

/// Mean and variance of all samples. Also where NaN and infinity are found before a fit begins.
pub(super) fn moments(engine: &dyn Engine) -> Result<Moments> {
    // Sums of differences from one of the samples do not cancel the way sums of squares would; one that counts, so that
    // it lies among the others.
    let heavier = |a: usize, b: usize| if engine.weight(b) > engine.weight(a) { b } else { a };
    let first = engine.weights().map_or(0, |weights| (1..weights.len()).fold(0, heavier));
    let mut origin = rows(engine, vec![first])?.to_f64(0..1)?;
    if origin.iter().any(|x| !x.is_finite()) {
        // The pass will find it, or one before it.
        origin.fill(0.0);
    }
    let task = Task::Moments { origin };
    match (run(engine, &task)?, task) {
        (Sums::Moments(sums), Task::Moments { origin }) if sums.sum.len() == origin.len() => {
            Ok(sums.moments(&origin))
        }
        _ => Err(other_model()),
    }
}

/// Σ w Z Zᵀ of some modes in one pass, and the squares of the samples.
pub(super) fn scatters(
    engine: &dyn Engine,
    mean: &[f64],
    loadings: &[Option<Matrix>],
    modes: &[usize],
) -> Result<ScatterSums> {
    let task = Task::Scatter { mean: mean.to_vec(), loadings: loadings.to_vec(), modes: modes.to_vec() };
    let fit = |sums: &ScatterSums| {
        sums.scatters.iter().map(Matrix::rows).eq(modes.iter().map(|&d| engine.shape()[d]))
    };
    match run(engine, &task)? {
        Sums::Scatter(sums) if fit(&sums) => Ok(sums),
        _ => Err(other_model()),
    }
}

/// Σ w x xᵀ of the flattened samples, P × P: every scatter of every mode can be made from it.
pub(super) fn whole_scatter(engine: &dyn Engine, mean: &[f64]) -> Result<ScatterSums> {
    let loadings = vec![None; engine.order()];
    match run(engine, &Task::Scatter { mean: mean.to_vec(), loadings, modes: vec![] })? {
        Sums::Scatter(sums) if sums.scatters.iter().map(Matrix::rows).eq([engine.sample_len()]) => Ok(sums),
        _ => Err(other_model()),
    }
}

/// The sums of the samples nearest to each centre.
pub(super) fn groups(engine: &dyn Engine, centres: Vec<Vec<f64>>, reference: &[f64]) -> Result<GroupSums> {
    let k = centres.len();
    match run(engine, &Task::Groups { centres, reference: reference.to_vec() })? {
        Sums::Groups(sums)
            if sums.groups.len() == k && sums.groups.iter().all(|g| g.shift.len() == reference.len()) =>
        {
            Ok(sums)
        }
        _ => Err(other_model()),
    }
}

/// The samples with these numbers in ascending order, scaled and weighted as they are in the whole set.
pub(super) fn rows(engine: &dyn Engine, mut indices: Vec<usize>) -> Result<Samples<'static>> {
    indices.sort_unstable();
    indices.dedup();
    let task = Task::Rows { indices };
    let (Sums::Rows(rows), Task::Rows { indices }) = (run(engine, &task)?, task) else {
        return Err(other_model());
    };
    if rows.indices() != indices {
        let (asked, found) = (indices.len(), rows.indices().len());
        return Err(mismatch(format!("{asked} samples were asked for, {found} or others came back")));
    }
    let samples = rows.into_samples()?.scaled(engine.scale())?;
    if samples.shape() != engine.shape() || samples.element() != engine.element() {
        return Err(other_model());
    }
    match engine.weights() {
        Some(weights) => samples.with_weights(indices.iter().map(|&n| weights[n]).collect()),
        None => Ok(samples),
    }
}
