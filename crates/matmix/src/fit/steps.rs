//! What the one loop asks of whatever it fits.
//!
//! To add a model is to write these steps: where it begins, a pass that evaluates it, and what follows from the sums of that pass. The
//! loop ([`iterate`](super::iterate)) does the rest: restarts, stopping, guesses, checkpoints, progress. A worked example is
//! `tests/suite/add_a_model.rs`.

use std::ops::ControlFlow;

use super::iterate::LoopOptions;
use crate::data::Tensors;
use crate::error::Result;
use crate::model::{Event, History, Mixture, SearchStep};
use crate::walk::Stage;

/// Hears of every step of a search; `ControlFlow::Break(())` makes it the last.
///
/// ```
/// use std::ops::ControlFlow;
/// use matmix::SearchStep;
/// use matmix::fit::Watch;
///
/// let mut told = 0;
/// let watch: &mut Watch<'_> = &mut |_: &SearchStep| {
///     told += 1;
///     ControlFlow::Continue(())
/// };
/// # let _ = watch;
/// assert_eq!(told, 0);
/// ```
pub type Watch<'w> = dyn FnMut(&SearchStep) -> ControlFlow<()> + 'w;

/// The steps of a fit.
///
/// ```
/// use matmix::fit::{Evaluation, LoopOptions, Steps, Watch, iterate};
/// use matmix::pass::{MomentSums, MomentsPass, Stage};
/// use matmix::{Engine, History, Result, Samples, StopRule};
///
/// /// The point with the least squared distance to all samples.
/// struct Centre<'a>(&'a dyn Engine);
///
/// impl Steps for Centre<'_> {
///     type Model = Vec<f64>;
///     type Sums = MomentSums;
///
///     fn start(&mut self, _restart: usize, _: &mut History, _: &mut Watch<'_>) -> Result<Vec<f64>> {
///         Ok(vec![0.0; self.0.sample_len()])
///     }
///
///     fn evaluate(&mut self, centre: &Vec<f64>, _: Stage) -> Result<Evaluation<MomentSums>> {
///         let sums = self.0.sums(&MomentsPass { origin: centre.clone(), digest: false })?;
///         let reconstruction_error = (sums.squares / sums.weight).sqrt();
///         let (log_likelihood, sampling_error, assigned) = (f64::NAN, 0.0, vec![sums.n_samples]);
///         Ok(Evaluation { log_likelihood, sampling_error, reconstruction_error, assigned, sums })
///     }
///
///     fn update(&mut self, centre: &Vec<f64>, sums: MomentSums, _: Stage) -> Result<Vec<f64>> {
///         Ok(centre.iter().zip(&sums.sum).map(|(c, sum)| c + sum / sums.weight).collect())
///     }
/// }
///
/// let samples = Samples::from_vec(&[2], vec![1.0, 0.0, 3.0, 2.0, 2.0, 7.0])?;
/// let stop = StopRule::ReconstructionError;
/// let options = LoopOptions { n_init: 1, max_iter: 9, tol: 1e-9, stop, accelerate: false, checkpoint: None };
/// let finished = iterate(&mut Centre(&samples), &options, &mut |_| std::ops::ControlFlow::Continue(()))?;
/// assert_eq!(finished.model, [2.0, 3.0]);
/// # Ok::<(), matmix::Error>(())
/// ```
pub trait Steps {
    /// What is fitted.
    type Model: Clone;
    /// What a pass finds out that the next update needs.
    type Sums;

    /// Where a restart begins, counted from 0; the history takes note of passes that were needed to find out, and `watch` hears of every step
    /// of a search. If it ends the search, any start will do: the loop ends as well.
    ///
    /// # Errors
    /// Whatever the samples cause.
    fn start(&mut self, restart: usize, history: &mut History, watch: &mut Watch<'_>) -> Result<Self::Model>;

    /// One pass: how good a model is on the samples of a stage, and the sums of its first update.
    ///
    /// # Errors
    /// Whatever the samples cause.
    fn evaluate(&mut self, model: &Self::Model, stage: Stage) -> Result<Evaluation<Self::Sums>>;

    /// The model that follows. Updates that need more passes than the one that evaluated the model run them.
    ///
    /// # Errors
    /// Whatever the samples cause.
    fn update(&mut self, model: &Self::Model, sums: Self::Sums, stage: Stage) -> Result<Self::Model>;

    /// The passes of one iteration: the one that evaluates, and those that an update runs beyond it.
    fn passes_per_iteration(&self) -> usize {
        1
    }

    /// After an iteration: a chance to mend what no iteration would.
    ///
    /// # Errors
    /// Whatever the samples cause.
    fn mend(
        &mut self,
        _model: &Self::Model,
        _now: &Evaluation<Self::Sums>,
        _stage: Stage,
        _history: &mut History,
    ) -> Result<Option<Mended<Self::Model, Self::Sums>>> {
        Ok(None)
    }

    /// Whether a model that has converged is to be kept: a chance to change it and go on.
    ///
    /// # Errors
    /// Whatever the samples cause.
    fn review(
        &mut self,
        _model: &Self::Model,
        _now: &Evaluation<Self::Sums>,
        _history: &mut History,
    ) -> Result<Option<Mended<Self::Model, Self::Sums>>> {
        Ok(None)
    }

    /// What a user should know about a finished model.
    fn remarks(&self, _model: &Self::Model, _now: &Evaluation<Self::Sums>) -> Vec<Event> {
        Vec::new()
    }

    /// The stage to begin with: all samples, unless early iterations may see fewer.
    fn first_stage(&self) -> Stage {
        Stage::ALL
    }

    /// The model as numbers that may be extrapolated; `None` if it has none, and then nothing is guessed.
    fn extrapolation(&self) -> Option<&dyn Extrapolation<Self::Model>> {
        None
    }

    /// The mixture that an observer is shown, if the model is one.
    fn shown<'m>(&self, _model: &'m Self::Model) -> Option<&'m Mixture> {
        None
    }

    /// Whether the last change was small enough to end the fit.
    fn converged(&self, history: &History, options: &LoopOptions) -> bool {
        options.converged(history, 0.0)
    }

    /// Writes a model, with a prefix to the names of its tensors. One that is not written begins anew when a fit is resumed.
    fn write(&self, _model: &Self::Model, _prefix: &str, _to: &mut Tensors) {}

    /// Reads a model that was written so; `None` if there is none.
    ///
    /// # Errors
    /// What is wrong with the tensors.
    fn read(&mut self, _prefix: &str, _from: &Tensors) -> Result<Option<Self::Model>> {
        Ok(None)
    }
}

/// Another model, evaluated.
pub(super) type Mended<M, S> = (M, Evaluation<S>);

/// How good a model is, and what its update needs.
///
/// ```
/// use matmix::fit::Evaluation;
/// use matmix::pass::{MomentSums, MomentsPass};
/// use matmix::{Engine, Result, Samples};
///
/// /// How good a point is that all samples are rebuilt as.
/// fn evaluate(samples: &dyn Engine, point: &[f64]) -> Result<Evaluation<MomentSums>> {
///     let sums = samples.sums(&MomentsPass { origin: point.to_vec(), digest: false })?;
///     let reconstruction_error = (sums.squares / sums.weight).sqrt();
///     let assigned = vec![sums.n_samples];
///     Ok(Evaluation { log_likelihood: f64::NAN, sampling_error: 0.0, reconstruction_error, assigned, sums })
/// }
///
/// let samples = Samples::from_vec(&[2], vec![3.0, 4.0, -3.0, -4.0])?;
/// assert_eq!(evaluate(&samples, &[0.0, 0.0])?.reconstruction_error, 5.0);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Evaluation<S> {
    /// The mean log-likelihood per sample; NaN for a model without one.
    pub log_likelihood: f64,
    /// The standard error of that mean, as an estimate of the log-likelihood of all samples there could be.
    pub sampling_error: f64,
    /// The paper's e = sqrt(Σ‖X − X̂‖²/N).
    pub reconstruction_error: f64,
    /// How many samples belong to each component.
    pub assigned: Vec<u64>,
    /// The sums of the pass.
    pub sums: S,
}

/// A model as a vector in which guesses where iterations are heading can be made.
///
/// ```
/// use matmix::fit::Extrapolation;
///
/// /// A positive number, extrapolated as its logarithm so that it stays positive.
/// struct Positive;
///
/// impl Extrapolation<f64> for Positive {
///     fn late(&self) -> f64 {
///         1e-3
///     }
///     fn coordinates(&self, x: &f64) -> Vec<f64> {
///         vec![x.ln()]
///     }
///     fn aligned(&self, x: &f64, _reference: &[f64]) -> Vec<f64> {
///         self.coordinates(x)
///     }
///     fn metric(&self, _: &f64) -> Vec<f64> {
///         vec![1.0]
///     }
///     fn at(&self, _like: &f64, coordinates: &[f64]) -> Option<f64> {
///         Some(coordinates[0].exp()).filter(|x| x.is_normal())
///     }
/// }
///
/// // As far again as from 8 to 2.
/// let next = 2.0 * Positive.coordinates(&2.0)[0] - Positive.coordinates(&8.0)[0];
/// assert!((Positive.at(&2.0, &[next]).unwrap() - 0.5).abs() < 1e-12);
/// ```
pub trait Extrapolation<M> {
    /// The gain of an iteration below which guesses begin, in the unit of the log-likelihood.
    fn late(&self) -> f64;

    /// The parameters as free numbers.
    fn coordinates(&self, model: &M) -> Vec<f64>;

    /// The same, as close to `reference` as parameters that mean the same can be.
    fn aligned(&self, model: &M, reference: &[f64]) -> Vec<f64>;

    /// How much a change of each coordinate is worth.
    fn metric(&self, model: &M) -> Vec<f64>;

    /// The model these coordinates stand for, if they stand for one.
    fn at(&self, like: &M, coordinates: &[f64]) -> Option<M>;
}
