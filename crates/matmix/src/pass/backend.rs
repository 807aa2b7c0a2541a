//! What computes: the seam behind which instruction sets, and other devices, are.

use super::{
    Answers, AskPass, DistancesPass, EmPass, EmSums, Engine, Filter, GroupSums, GroupsPass, Impute, Imputed,
    MomentSums, MomentsPass, Pool, ScatterPass, ScatterSums,
};
use crate::data::Samples;
use crate::error::Result;

/// Something that computes passes over samples which this process can read. The processor is one.
///
/// Samples are those of one part, numbered from 0; whoever asks has checked that the pass fits them.
///
/// # Errors
/// All of them fail for samples that are not finite, or too large to be squared, and name the first one.
///
/// ```
/// use std::ops::ControlFlow;
/// use matmix::{Backend, Cpu, FitOptions, Samples, fit_on};
///
/// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
/// let samples = Samples::from_vec(&[4, 3], numbers)?;
/// let options = FitOptions { rank: vec![1], ..FitOptions::default() };
/// let by = |backend: &dyn Backend| fit_on(&*backend.over(&samples)?, &options, &mut |_| ControlFlow::Continue(()));
/// // Every instruction set there is finds the same optimum.
/// let best = by(&Cpu::best())?.log_likelihood();
/// for cpu in Cpu::all() {
///     assert!((by(&cpu)?.log_likelihood() - best).abs() < 1e-6, "{}", cpu.name());
/// }
/// # Ok::<(), matmix::Error>(())
/// ```
pub trait Backend: std::fmt::Debug + Send + Sync {
    /// What to call it.
    fn name(&self) -> String;

    /// The E-step and its sums.
    ///
    /// # Errors
    /// If the samples cannot be read, one of them is not finite, or whatever computes fails.
    fn em(&self, pass: &EmPass, samples: &Samples<'_>) -> Result<EmSums>;

    /// Mean and variance; samples are hashed with their numbers, which begin at `first`.
    ///
    /// # Errors
    /// As [`em`](Self::em).
    fn moments(&self, pass: &MomentsPass, samples: &Samples<'_>, first: usize) -> Result<MomentSums>;

    /// The scatters of modes.
    ///
    /// # Errors
    /// As [`em`](Self::em).
    fn scatter(&self, pass: &ScatterPass, samples: &Samples<'_>) -> Result<ScatterSums>;

    /// The samples nearest to each of a few centres.
    ///
    /// # Errors
    /// As [`em`](Self::em).
    fn groups(&self, pass: &GroupsPass, samples: &Samples<'_>) -> Result<GroupSums>;

    /// The distances of all samples to a few points.
    ///
    /// # Errors
    /// As [`em`](Self::em).
    fn distances(&self, pass: &DistancesPass, samples: &Samples<'_>) -> Result<Answers>;

    /// What a model says about every sample, a chunk of them at a time and in order.
    ///
    /// # Errors
    /// As [`em`](Self::em).
    fn ask(
        &self,
        pass: &AskPass,
        samples: &Samples<'_>,
        each: &mut (dyn FnMut(Answers) + Send),
    ) -> Result<()>;

    /// The posterior means of samples without their noise, a chunk of them at a time and in order.
    ///
    /// # Errors
    /// As [`em`](Self::em).
    fn filter(
        &self,
        question: &Filter<'_>,
        samples: &Samples<'_>,
        each: &mut (dyn FnMut(Vec<f64>) + Send),
    ) -> Result<()>;

    /// The Fisher vectors of images, a few of them at a time and in order.
    ///
    /// # Errors
    /// As [`em`](Self::em).
    fn pool(
        &self,
        question: &Pool<'_>,
        images: &Samples<'_>,
        each: &mut (dyn FnMut(Vec<f32>) + Send),
    ) -> Result<()>;

    /// The means and standard deviations of missing cells, and the log-likelihoods as far as observed cells are trusted.
    ///
    /// # Errors
    /// If the samples have another shape than the model, or a cell is infinite.
    fn impute(&self, question: &Impute<'_>, samples: &Samples<'_>) -> Result<Imputed>;

    /// The missing cells of every sample drawn together, so many times: draws × N × P.
    ///
    /// # Errors
    /// As [`impute`](Self::impute).
    fn impute_draws(
        &self,
        question: &Impute<'_>,
        samples: &Samples<'_>,
        draws: usize,
        seed: u64,
    ) -> Result<Vec<f64>>;

    /// What computes in its place where a search asks about a few samples at a time, thousands of times: a device would be waited for. None if
    /// it does so itself.
    fn for_few(&self) -> Option<&dyn Backend> {
        None
    }

    /// Whether sums are added up where they are, however many samples they are of: their size then costs nothing beside the samples.
    fn adds_in_place(&self) -> bool {
        false
    }

    /// What a pass costs beyond its contractions, in multiply-adds for every element of a sample: what decides whether one pass for all modes
    /// is dearer than one for each.
    fn overhead(&self) -> usize;

    /// An engine over samples of this process whose passes are computed here; a device may take the samples with it.
    ///
    /// # Errors
    /// If the device cannot take them.
    fn over<'a>(&'a self, samples: &'a Samples<'a>) -> Result<Box<dyn Engine + 'a>>;
}
