//! The one loop: starts, iterations, guesses, stages, stopping, checkpoints, restarts.

use std::ops::ControlFlow;
use std::time::Instant;

use super::accelerate::Accelerator;
use super::checkpoint::{Keeper, Kept};
use super::options::{Checkpoint, StopRule};
use super::steps::{Evaluation, Steps};
use crate::error::{Error, Result};
use crate::model::{Event, History, Mixture, SearchStep, StopReason};
use crate::walk::Stage;

/// A stage is over when an iteration gains less than this share of the error that comes of seeing a part of the samples only.
const SETTLED: f64 = 0.2;

/// A restart has to be better than another by this share of its log-likelihood.
const ROUNDING: f64 = 1e-9;

/// What the loop itself needs to know.
///
/// ```
/// use matmix::fit::LoopOptions;
/// use matmix::{History, StopRule};
///
/// let options = LoopOptions {
///     n_init: 1,
///     max_iter: 100,
///     tol: 1e-3,
///     stop: StopRule::LogLikelihood,
///     accelerate: false,
///     checkpoint: None,
/// };
/// let after = |log_likelihood: &[f64]| History { log_likelihood: log_likelihood.to_vec(), ..History::default() };
/// assert!(!options.converged(&after(&[-5.0, -4.0]), 0.0));
/// assert!(options.converged(&after(&[-5.0, -4.0, -3.999]), 0.0));
/// // The same samples in another unit, with log-likelihoods near 0.
/// assert!(options.converged(&after(&[-1.0, 0.0, 0.001]), -4.0));
/// ```
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LoopOptions {
    /// How many times to begin.
    pub n_init: usize,
    /// The largest number of iterations per start.
    pub max_iter: usize,
    /// The relative change that ends a fit; 0 runs all iterations.
    pub tol: f64,
    /// The change of what.
    pub stop: StopRule,
    /// Whether it may guess where iterations are heading.
    pub accelerate: bool,
    /// Where the state is kept, and what the fit is recognised by.
    pub checkpoint: Option<(Checkpoint, String)>,
}

impl LoopOptions {
    /// Whether the last iteration over all samples changed little enough. `log_unit` is added to a log-likelihood to make it that of
    /// samples near unit variance, so that the tolerance is the same in every unit of the data.
    pub fn converged(&self, history: &History, log_unit: f64) -> bool {
        let change = |series: &[f64]| match series {
            [.., before, now] => (now - before).abs(),
            _ => f64::INFINITY,
        };
        let last = |series: &[f64]| series.last().copied().unwrap_or(f64::INFINITY);
        let scale = match self.stop {
            StopRule::LogLikelihood => (last(&history.log_likelihood) + log_unit).abs().max(1.0),
            StopRule::ReconstructionError => last(&history.reconstruction_error),
        };
        let series = match self.stop {
            StopRule::LogLikelihood => &history.log_likelihood,
            StopRule::ReconstructionError => &history.reconstruction_error,
        };
        self.tol > 0.0 && change(series) <= self.tol * scale
    }
}

/// What a callback sees after the start (iteration 0) and after each iteration.
///
/// ```
/// use std::ops::ControlFlow;
/// use matmix::{FitOptions, Progress, Samples, StopReason, fit_with};
///
/// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
/// let samples = Samples::from_vec(&[4, 3], numbers)?;
/// let options = FitOptions { rank: vec![1], tol: 0.0, ..FitOptions::default() };
/// let fitted = fit_with(&samples, &options, &mut |progress: &Progress<'_>| match progress.iteration {
///     0..2 => ControlFlow::Continue(()),
///     _ => ControlFlow::Break(()),
/// })?;
/// assert_eq!((fitted.n_iterations(), fitted.stop()), (2, StopReason::Stopped));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// Which restart, counted from 0.
    pub restart: usize,
    /// How many there are.
    pub n_init: usize,
    /// Which iteration; 0 is the start.
    pub iteration: usize,
    /// How many there may be.
    pub max_iter: usize,
    /// The share of the samples that the iteration has seen.
    pub share: f64,
    /// Passes over the whole set so far, those of earlier restarts included: one over a part counts as its share.
    pub passes: f64,
    /// How long the fit has taken so far, in seconds.
    pub seconds: f64,
    /// The mean log-likelihood per sample.
    pub log_likelihood: f64,
    /// The reconstruction error e.
    pub reconstruction_error: f64,
    /// The model so far, if it is a mixture.
    pub model: Option<&'a Mixture>,
    /// The step of a search that was just made. There are no iterations yet, and the log-likelihood is that of the samples of the search.
    pub search: Option<&'a SearchStep>,
}

impl<'a> Progress<'a> {
    /// A step of a search before the first iteration.
    pub(super) fn searching(restart: usize, n_init: usize, max_iter: usize, step: &'a SearchStep) -> Self {
        Self {
            restart,
            n_init,
            iteration: 0,
            max_iter,
            share: 1.0,
            passes: 0.0,
            seconds: 0.0,
            log_likelihood: step.log_likelihood,
            reconstruction_error: f64::NAN,
            model: None,
            search: Some(step),
        }
    }
}

/// A callback per iteration; `ControlFlow::Break(())` stops the fit and keeps the model.
///
/// ```
/// use std::ops::ControlFlow;
/// use matmix::fit::Observer;
/// use matmix::{FitOptions, Samples, fit_with};
///
/// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
/// let samples = Samples::from_vec(&[4, 3], numbers)?;
/// let mut seen = Vec::new();
/// let observer: &mut Observer<'_> = &mut |progress| {
///     seen.push(progress.log_likelihood);
///     ControlFlow::Continue(())
/// };
/// let fitted = fit_with(&samples, &FitOptions { rank: vec![1], ..FitOptions::default() }, observer)?;
/// assert_eq!(seen, fitted.history.log_likelihood);
/// # Ok::<(), matmix::Error>(())
/// ```
pub type Observer<'a> = dyn FnMut(&Progress<'_>) -> ControlFlow<()> + Send + 'a;

/// What a fit ends with.
///
/// ```
/// use std::ops::ControlFlow;
/// use matmix::fit::{Evaluation, LoopOptions, Steps, Watch, iterate};
/// # use matmix::pass::Stage;
/// # use matmix::{History, Result, StopRule};
///
/// // A number that every iteration halves, and whose error is itself.
/// struct Halve;
/// # impl Steps for Halve {
/// #     type Model = f64;
/// #     type Sums = ();
/// #     fn start(&mut self, _: usize, _: &mut History, _: &mut Watch<'_>) -> Result<f64> {
/// #         Ok(1.0)
/// #     }
/// #     fn evaluate(&mut self, &x: &f64, _: Stage) -> Result<Evaluation<()>> {
/// #         let (log_likelihood, sampling_error, assigned) = (f64::NAN, 0.0, vec![]);
/// #         Ok(Evaluation { log_likelihood, sampling_error, reconstruction_error: x, assigned, sums: () })
/// #     }
/// #     fn update(&mut self, x: &f64, _: (), _: Stage) -> Result<f64> {
/// #         Ok(x / 2.0)
/// #     }
/// # }
/// # let stop = StopRule::ReconstructionError;
/// # let options = LoopOptions { n_init: 1, max_iter: 3, tol: 0.0, stop, accelerate: false, checkpoint: None };
/// let finished = iterate(&mut Halve, &options, &mut |_| ControlFlow::Continue(()))?;
/// assert_eq!(finished.model, 0.125);
/// assert_eq!(finished.history.reconstruction_error, [1.0, 0.5, 0.25, 0.125]);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Finished<M> {
    /// The best model of all restarts.
    pub model: M,
    /// Its history.
    pub history: History,
    /// How many samples belong to each of its components.
    pub assigned: Vec<u64>,
}

/// Everything that passes from one iteration to the next.
pub(super) struct State<M> {
    /// The restart that is running, or the next one.
    pub(super) restart: usize,
    /// Its model, if it has begun.
    pub(super) model: Option<M>,
    pub(super) history: History,
    pub(super) stage: Stage,
    pub(super) accelerator: Accelerator,
    /// The best finished restart.
    pub(super) best: Option<Finished<M>>,
}

/// Fits whatever `steps` describe.
///
/// # Errors
/// Whatever the steps, or a checkpoint, cause. Not converging is no error.
pub fn iterate<S: Steps>(
    steps: &mut S,
    options: &LoopOptions,
    observer: &mut Observer<'_>,
) -> Result<Finished<S::Model>> {
    let started = Instant::now();
    let keeper = options.checkpoint.as_ref().map(|(checkpoint, identity)| Keeper { checkpoint, identity });
    if let Some(keeper) = &keeper {
        // Asked before hours of work: what cannot be written later costs the checkpoint, not the fit.
        crate::data::atomic::check(&keeper.checkpoint.path)?;
    }
    let kept = keeper.as_ref().map(|keeper| keeper.load(steps)).transpose()?.flatten();
    let mut state = match kept {
        Some(Kept { state, max_iter }) => {
            goes_on(&state, max_iter, options)?;
            state
        }
        None => State {
            restart: 0,
            model: None,
            history: History::default(),
            stage: Stage::ALL,
            accelerator: Accelerator::default(),
            best: None,
        },
    };
    let clock = Clock { earlier: state.history.seconds, started };
    while state.restart < options.n_init {
        let mut running =
            Running { steps, options, keeper: keeper.as_ref(), state: &mut state, observer, clock };
        if running.restart()?.is_break() {
            break;
        }
    }
    let Some(mut best) = state.best else { unreachable!("at least one restart has ended") };
    best.history.passes = state.history.passes;
    best.history.seconds = clock.seconds();
    Ok(best)
}

/// How long a fit has taken, also before it was gone on with.
#[derive(Clone, Copy)]
struct Clock {
    earlier: f64,
    started: Instant,
}

impl Clock {
    fn seconds(&self) -> f64 {
        self.earlier + self.started.elapsed().as_secs_f64()
    }
}

/// Whether a state that was kept while so many iterations were allowed can be gone on from with these options.
fn goes_on<M>(state: &State<M>, max_iter: usize, options: &LoopOptions) -> Result<()> {
    let wrong = |value: String, expected| Err(Error::Option { option: "max_iter", value, expected });
    let done = state.best.iter().map(|b| &b.history).chain([&state.history]);
    let done = done.map(History::n_iterations).max().unwrap_or(0);
    if done > options.max_iter {
        let value = format!("{}, but the checkpoint has {done} iterations", options.max_iter);
        return wrong(value, "at least as many as there are, or another checkpoint");
    }
    if options.n_init > 1 && max_iter != options.max_iter {
        let value = format!("{}, but the checkpoint was kept with {max_iter}", options.max_iter);
        return wrong(value, "the same for all of several restarts");
    }
    Ok(())
}

/// One restart.
struct Running<'a, 'o, S: Steps> {
    steps: &'a mut S,
    options: &'a LoopOptions,
    keeper: Option<&'a Keeper<'a>>,
    state: &'a mut State<S::Model>,
    observer: &'a mut Observer<'o>,
    clock: Clock,
}

impl<S: Steps> Running<'_, '_, S> {
    /// Runs a restart from its beginning or from the state of a checkpoint; breaks if the callback stopped it.
    fn restart(&mut self) -> Result<ControlFlow<()>> {
        let mut interrupted = false;
        let before = self.state.history.passes;
        let mut model = match self.state.model.take() {
            Some(model) => model,
            None => {
                let restart = self.state.restart;
                self.state.history = History { restart, passes: before, ..History::default() };
                self.state.accelerator = Accelerator::default();
                // Without iterations there is nothing to be quick about.
                self.state.stage =
                    if self.options.max_iter == 0 { Stage::ALL } else { self.steps.first_stage() };
                let (observer, LoopOptions { n_init, max_iter, .. }) = (&mut *self.observer, self.options);
                let clock = self.clock;
                let mut watch = |step: &SearchStep| {
                    let progress = Progress::searching(restart, *n_init, *max_iter, step);
                    let flow = observer(&Progress { passes: before, seconds: clock.seconds(), ..progress });
                    interrupted |= flow.is_break();
                    flow
                };
                self.steps.start(restart, &mut self.state.history, &mut watch)?
            }
        };
        let cut_short = interrupted;
        if cut_short {
            // Half a search is no start: resuming searches again, and counts its passes then.
            let searched = std::mem::replace(&mut self.state.history.passes, before);
            self.keep(None);
            self.state.history.passes = searched;
        }
        let mut now;
        if self.state.history.has_begun() {
            // The pass was counted when the model was evaluated for the first time.
            now = self.steps.evaluate(&model, self.state.stage)?;
        } else {
            now = self.evaluate(&model)?;
            self.note(&now);
            interrupted |= self.observe(&model).is_break();
            if self.state.history.search.is_some() {
                // It took as long as many iterations.
                self.keep(Some(&model));
            }
        }
        let mut stop = None;
        while stop.is_none() && !interrupted && self.state.history.n_iterations() < self.options.max_iter {
            if self.state.stage != Stage::ALL && self.is_settled(&now) {
                self.state.stage = self.state.stage.doubled();
                self.state.accelerator.restart();
                now = self.evaluate(&model)?;
                self.note(&now);
                continue;
            }
            let guessed;
            (model, now, guessed) = self.iteration(model, now)?;
            if let Some((mended, after)) =
                self.steps.mend(&model, &now, self.state.stage, &mut self.state.history)?
            {
                (model, now) = (mended, after);
                self.state.accelerator.restart();
            }
            self.note(&now);
            // A guess may be kept that is no better than what was there: only an iteration tells that nothing changes.
            if !guessed
                && self.state.stage == Stage::ALL
                && self.steps.converged(&self.state.history, self.options)
            {
                match self.steps.review(&model, &now, &mut self.state.history)? {
                    Some((mended, after)) => {
                        (model, now) = (mended, after);
                        self.state.accelerator.restart();
                        self.state.history.pop();
                        self.note(&now);
                    }
                    None => stop = Some(StopReason::Converged),
                }
            }
            interrupted = self.observe(&model).is_break();
            if stop.is_none() && !interrupted && self.is_due() {
                self.keep(Some(&model));
            }
        }
        let reason = match (stop, interrupted) {
            (Some(reason), _) => reason,
            (None, true) => StopReason::Stopped,
            (None, false) => StopReason::MaxIterations,
        };
        if reason != StopReason::Converged && !cut_short {
            // The file keeps the restart as one that is still running, so that resuming goes on from here.
            self.keep(Some(&model));
        }
        if self.state.stage != Stage::ALL {
            // What is reported is about all samples.
            self.state.stage = Stage::ALL;
            now = self.evaluate(&model)?;
            self.note(&now);
        }
        self.finish(model, &now, reason);
        if reason == StopReason::Converged {
            self.keep(None);
        }
        Ok(if interrupted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn evaluate(&mut self, model: &S::Model) -> Result<Evaluation<S::Sums>> {
        self.state.history.passes += self.state.stage.share();
        self.steps.evaluate(model, self.state.stage)
    }

    /// One iteration, and perhaps a step to where it and the one before lead; true if that step was taken.
    fn iteration(
        &mut self,
        model: S::Model,
        now: Evaluation<S::Sums>,
    ) -> Result<(S::Model, Evaluation<S::Sums>, bool)> {
        let stage = self.state.stage;
        let late = stage == Stage::ALL && self.options.accelerate && self.is_late();
        let known = now.log_likelihood;
        let next = self.steps.update(&model, now.sums, stage)?;
        self.state.history.passes += (self.steps.passes_per_iteration() - 1) as f64 * stage.share();
        if !late {
            self.state.accelerator.restart();
        } else if let Some(space) = self.steps.extrapolation()
            && let Some(guess) = self.state.accelerator.guess(space, &model, &next)
        {
            drop(model);
            let there = match self.evaluate(&guess) {
                Err(Error::Overflow { .. }) => None,
                there => Some(there?).filter(|there| there.log_likelihood >= known),
            };
            self.state.accelerator.kept(there.is_some());
            if let Some(there) = there {
                return Ok((guess, there, true));
            }
        }
        let now = self.evaluate(&next)?;
        Ok((next, now, false))
    }

    /// Whether the last iteration gained so little that it is time for guesses.
    fn is_late(&self) -> bool {
        match (self.state.history.log_likelihood[..].last_chunk::<2>(), self.steps.extrapolation()) {
            (Some([before, now]), Some(space)) => now - before <= space.late(),
            _ => false,
        }
    }

    /// Whether the last iteration on a part of the samples gained so little that the part, and not the iterations, limits
    /// how good the model can become.
    fn is_settled(&self, now: &Evaluation<S::Sums>) -> bool {
        self.state.history.early_gain().is_some_and(|gain| gain <= SETTLED * now.sampling_error)
    }

    fn note(&mut self, now: &Evaluation<S::Sums>) {
        self.state.history.push(self.state.stage.share(), now.log_likelihood, now.reconstruction_error);
    }

    fn observe(&mut self, model: &S::Model) -> ControlFlow<()> {
        let history = &self.state.history;
        let (log_likelihood, reconstruction_error) = history.last();
        (self.observer)(&Progress {
            restart: self.state.restart,
            n_init: self.options.n_init,
            iteration: history.n_iterations(),
            max_iter: self.options.max_iter,
            share: self.state.stage.share(),
            passes: history.passes,
            seconds: self.clock.seconds(),
            log_likelihood,
            reconstruction_error,
            model: self.steps.shown(model),
            search: None,
        })
    }

    /// Whether it is time to keep the state.
    fn is_due(&self) -> bool {
        let iterations = self.state.history.n_iterations();
        self.keeper.is_some_and(|keeper| iterations.is_multiple_of(keeper.checkpoint.every))
    }

    /// Keeps the state, with the model of a restart that is running. A disk that is full by now does not cost the model: the history says
    /// so, once.
    fn keep(&mut self, running: Option<&S::Model>) {
        let Some(keeper) = self.keeper else { return };
        self.state.history.seconds = self.clock.seconds();
        let Err(error) = keeper.save(self.steps, self.state, running, self.options.max_iter) else { return };
        let iteration = self.state.history.n_iterations();
        let history = match (running, &mut self.state.best) {
            (None, Some(best)) => &mut best.history,
            _ => &mut self.state.history,
        };
        if !history.events.iter().any(|event| matches!(event, Event::NotKept { .. })) {
            history.events.push(Event::NotKept { iteration, problem: error.to_string() });
        }
    }

    /// Ends a restart: keeps its model if it is the best so far.
    fn finish(&mut self, model: S::Model, now: &Evaluation<S::Sums>, stop: StopReason) {
        // What all restarts cost is counted on.
        let begun = History { passes: self.state.history.passes, ..History::default() };
        let mut history = std::mem::replace(&mut self.state.history, begun);
        history.stop = Some(stop);
        history.events.extend(self.steps.remarks(&model, now));
        let last = |h: &History| h.log_likelihood.last().copied().unwrap_or(f64::NEG_INFINITY);
        // Of equal ones the first is kept: rounding does not decide.
        let beats = |before: f64| last(&history) > before + ROUNDING * before.abs().min(f64::MAX);
        let better = self.state.best.as_ref().is_none_or(|best| beats(last(&best.history)));
        if better {
            self.state.best = Some(Finished { model, history, assigned: now.assigned.clone() });
        }
        self.state.restart += 1;
    }
}
