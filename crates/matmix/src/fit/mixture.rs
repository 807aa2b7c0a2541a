//! The one EM loop.

use std::ops::ControlFlow;
use std::time::Instant;

use super::accelerate::{self, Accelerator};
use super::checkpoint::State;
use super::engine::{self, Engine};
use super::history::{Event, History, StopReason};
use super::maximize::{least_weight, maximize};
use super::options::{Algorithm, FitOptions, Start, StopRule};
use super::{paper, reseed, start};
use crate::data::{Element, Samples};
use crate::error::{Error, Result};
use crate::model::Mixture;
use crate::pass::moments::Moments;
use crate::pass::{Precision, Statistics};

/// A fitted mixture and how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The model with the largest log-likelihood of all restarts.
    pub model: Mixture,
    /// Its history.
    pub history: History,
    /// How many samples have each component as their most probable one.
    pub assigned: Vec<u64>,
}

impl Fit {
    /// The mean log-likelihood per sample of the model.
    pub fn log_likelihood(&self) -> f64 {
        self.history.log_likelihood.last().copied().unwrap_or(f64::NAN)
    }

    /// The paper's reconstruction error e of the model.
    pub fn reconstruction_error(&self) -> f64 {
        self.history.reconstruction_error.last().copied().unwrap_or(f64::NAN)
    }

    /// The number of iterations of the restart that was kept.
    pub fn n_iterations(&self) -> usize {
        self.history.n_iterations()
    }

    /// Why it ended.
    pub fn stop(&self) -> StopReason {
        self.history.stop.unwrap_or(StopReason::MaxIterations)
    }
}

/// What a callback sees after the start (iteration 0) and after each iteration.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Which restart, counted from 0.
    pub restart: usize,
    /// How many there are.
    pub n_init: usize,
    /// Which iteration; 0 is the start.
    pub iteration: usize,
    /// How many there may be.
    pub max_iter: usize,
    /// The mean log-likelihood per sample.
    pub log_likelihood: f64,
    /// The reconstruction error e.
    pub reconstruction_error: f64,
    /// The model so far.
    pub model: &'a Mixture,
}

/// A callback per iteration; `ControlFlow::Break(())` stops the fit and keeps the model.
pub type Observer<'a> = dyn FnMut(&Progress<'_>) -> ControlFlow<()> + Send + 'a;

/// Fits a mixture.
///
/// ```
/// use matmix::{FitOptions, Samples, fit};
///
/// let numbers: Vec<f64> = (0..240).map(|i| f64::from((i * 37) % 101)).collect();
/// let samples = Samples::from_vec(&[4, 3], numbers)?;
/// let fit = fit(&samples, &FitOptions { components: 2, rank: vec![2, 1], ..FitOptions::default() })?;
/// assert!(fit.history.log_likelihood.is_sorted());
/// # Ok::<(), matmix::Error>(())
/// ```
pub fn fit(samples: &Samples<'_>, options: &FitOptions) -> Result<Fit> {
    fit_with(samples, options, &mut |_| ControlFlow::Continue(()))
}

/// Fits a mixture and calls `observer` after every iteration.
pub fn fit_with(samples: &Samples<'_>, options: &FitOptions, observer: &mut Observer<'_>) -> Result<Fit> {
    fit_on(samples, options, observer)
}

/// Fits a mixture to whatever samples the engine holds and calls `observer` after every iteration.
pub fn fit_on(engine: &dyn Engine, options: &FitOptions, observer: &mut Observer<'_>) -> Result<Fit> {
    options.validate(engine)?;
    with_threads(options.threads, || Loop::new(engine, options)?.run(observer))?
}

/// Runs `work` on a pool of so many threads, or where it is.
pub(super) fn with_threads<R: Send>(threads: Option<usize>, work: impl FnOnce() -> R + Send) -> Result<R> {
    match threads {
        None => Ok(work()),
        Some(threads) => {
            let impossible = |value: String| Error::Option {
                option: "threads",
                value,
                expected: "between 1 and 1024, and no more than this machine can start",
            };
            // Thousands of threads would start, and then do nothing but look for work.
            if !(1..=1024).contains(&threads) {
                return Err(impossible(threads.to_string()));
            }
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let pool = pool.map_err(|e| impossible(format!("{threads} ({e})")))?;
            Ok(pool.install(work))
        }
    }
}

/// One evaluation of a model: its likelihood and error, and whatever the next step needs.
pub(super) struct Evaluated {
    pub(super) log_likelihood: f64,
    pub(super) reconstruction_error: f64,
    pub(super) assigned: Vec<u64>,
    /// N_k.
    pub(super) weights: Vec<f64>,
    /// The sums that update mode 0; the paper's algorithm makes its own.
    pub(super) sums: Option<Statistics>,
}

pub(super) struct Loop<'a> {
    pub(super) engine: &'a dyn Engine,
    pub(super) options: &'a FitOptions,
    pub(super) rank: Vec<usize>,
    pub(super) moments: Moments,
    pub(super) floor: f64,
    /// The weight that counts as one sample when it is asked whether there are enough of them.
    pub(super) unit: f64,
    started: Instant,
}

impl<'a> Loop<'a> {
    fn new(engine: &'a dyn Engine, options: &'a FitOptions) -> Result<Self> {
        let started = Instant::now();
        let moments = engine::moments(engine)?;
        let floor = noise_floor(&moments, engine.element(), options.noise_floor);
        if !floor.is_finite() {
            // Equal samples have no variance, however large they are; their squares still have to be numbers.
            return Err(Error::Overflow { sample: 0 });
        }
        let rank = options.rank_for(engine.shape())?;
        // Weights that sum to 1, say, are as many samples as before; a weight of 2 is two samples.
        let unit = (engine.total_weight() / engine.n_effective() as f64).min(1.0);
        Ok(Self { engine, options, rank, moments, floor, unit, started })
    }

    fn run(&self, observer: &mut Observer<'_>) -> Result<Fit> {
        let mut state = State::load(self)?.unwrap_or_default();
        while state.restart < self.options.n_init {
            let stopped = self.restart(&mut state, observer)?;
            if stopped {
                break;
            }
        }
        let seconds = self.started.elapsed().as_secs_f64();
        let Some((model, mut history, assigned)) = state.best else {
            unreachable!("at least one restart has ended")
        };
        history.seconds += seconds;
        Ok(Fit { model, history, assigned })
    }

    /// Runs one restart from its beginning or from the state of a checkpoint; true if the callback stopped it.
    fn restart(&self, state: &mut State, observer: &mut Observer<'_>) -> Result<bool> {
        let restart = state.restart;
        let mut model = match state.model.take() {
            Some(model) => model,
            None => {
                state.history = History { restart, ..History::default() };
                state.reseeds = vec![0; self.options.components];
                state.paper = None;
                state.accelerator = Accelerator::default();
                self.start(restart)?
            }
        };
        let resumed = !state.history.log_likelihood.is_empty();
        let mut now = self.evaluate(&model)?;
        if !resumed {
            state.history.push(now.log_likelihood, now.reconstruction_error);
        }
        let mut stop = None;
        let mut interrupted = !resumed && self.observe(state, &model, observer).is_break();
        while stop.is_none() && !interrupted && state.history.n_iterations() < self.options.max_iter {
            let mut guessed = false;
            match self.options.algorithm {
                Algorithm::Exact => {
                    (model, now, guessed) = self.iterate_or_guess(model, now, state)?;
                    let moves = state.history.events.len();
                    (model, now) = reseed::revive(self, model, now, &mut state.reseeds, &mut state.history)?;
                    if state.history.events.len() > moves {
                        state.accelerator.restart();
                    }
                }
                Algorithm::Paper => {
                    let Some(samples) = self.engine.local() else {
                        return Err(super::options::paper_is_local());
                    };
                    model = paper::iterate(samples, &model, self.floor, &mut state.paper)?;
                    now = self.evaluate(&model)?;
                }
            }
            state.history.push(now.log_likelihood, now.reconstruction_error);
            // A guess may be kept that is no better than what was there: only an iteration tells that nothing changes.
            if !guessed && self.converged(&state.history) {
                stop = Some(StopReason::Converged);
            }
            interrupted = self.observe(state, &model, observer).is_break();
            if stop.is_none() && !interrupted {
                state.save_if_due(self, &model)?;
            }
        }
        if interrupted && stop.is_none() {
            // The file keeps the restart as one that is still running, so that resuming goes on from here.
            state.save_running(self, &model)?;
            self.finish(state, model, &now, StopReason::Stopped);
        } else {
            self.finish(state, model, &now, stop.unwrap_or(StopReason::MaxIterations));
            state.save(self)?;
        }
        Ok(interrupted)
    }

    fn start(&self, restart: usize) -> Result<Mixture> {
        let mut rng = start::stream(self.options.seed, restart);
        let (engine, k) = (self.engine, self.options.components);
        match &self.options.start {
            Start::KMeans => start::k_means(engine, k, &self.rank, self.floor, &self.moments, &mut rng),
            Start::Random => start::random(engine, k, &self.rank, &mut rng),
            Start::Model(model) => Ok((**model).clone()),
        }
    }

    /// One iteration, and perhaps a step to where it and the one before lead; true if that step was taken.
    fn iterate_or_guess(
        &self,
        model: Mixture,
        now: Evaluated,
        state: &mut State,
    ) -> Result<(Mixture, Evaluated, bool)> {
        if !(self.options.accelerate && accelerate::is_late(&state.history, self.engine.sample_len())) {
            state.accelerator.restart();
            let (model, now) = self.iterate(model, now)?;
            return Ok((model, now, false));
        }
        let known = now.log_likelihood;
        let next = self.update(model.clone(), now)?;
        if let Some(guess) = state.accelerator.guess(&model, &next, self.floor) {
            let there = match self.evaluate(&guess) {
                Err(Error::Overflow { .. }) => None,
                there => Some(there?).filter(|there| there.log_likelihood >= known),
            };
            state.accelerator.kept(there.is_some());
            if let Some(there) = there {
                return Ok((guess, there, true));
            }
        }
        let now = self.evaluate(&next)?;
        Ok((next, now, false))
    }

    /// One cycle over all modes and the evaluation of what comes of it.
    pub(super) fn iterate(&self, model: Mixture, now: Evaluated) -> Result<(Mixture, Evaluated)> {
        let model = self.update(model, now)?;
        let now = self.evaluate(&model)?;
        Ok((model, now))
    }

    /// One cycle over all modes. The pass that updates the first mode has already been made: it was the
    /// evaluation of the model the cycle begins with.
    fn update(&self, mut model: Mixture, now: Evaluated) -> Result<Mixture> {
        let mut sums = now.sums;
        for mode in 0..self.engine.order() {
            let sums = match sums.take() {
                Some(sums) => sums,
                None => self.pass(&model, mode)?,
            };
            model = maximize(&model, &sums, self.floor, self.unit);
        }
        Ok(model)
    }

    fn pass(&self, model: &Mixture, mode: usize) -> Result<Statistics> {
        engine::em(self.engine, model, mode, self.precision())
    }

    fn precision(&self) -> Precision {
        match self.options.algorithm {
            Algorithm::Exact => self.options.precision,
            Algorithm::Paper => Precision::Double,
        }
    }

    /// Likelihood and error of a model, with the sums that update its first mode.
    pub(super) fn evaluate(&self, model: &Mixture) -> Result<Evaluated> {
        let sums = self.pass(model, 0)?;
        Ok(Evaluated {
            log_likelihood: sums.mean_log_likelihood(),
            reconstruction_error: sums.reconstruction_error(),
            assigned: sums.components.iter().map(|c| c.assigned).collect(),
            weights: sums.components.iter().map(|c| c.weight).collect(),
            sums: Some(sums),
        })
    }

    fn converged(&self, history: &History) -> bool {
        let change = |series: &[f64]| match series {
            [.., before, now] => (now - before).abs(),
            _ => f64::INFINITY,
        };
        let tol = self.options.tol;
        match self.options.stop {
            StopRule::LogLikelihood => {
                let now = history.log_likelihood.last().copied().unwrap_or(0.0);
                tol > 0.0 && change(&history.log_likelihood) <= tol * now.abs().max(1.0)
            }
            StopRule::ReconstructionError => tol > 0.0 && change(&history.reconstruction_error) <= tol,
        }
    }

    fn observe(&self, state: &State, model: &Mixture, observer: &mut Observer<'_>) -> ControlFlow<()> {
        let history = &state.history;
        observer(&Progress {
            restart: state.restart,
            n_init: self.options.n_init,
            iteration: history.n_iterations(),
            max_iter: self.options.max_iter,
            log_likelihood: history.log_likelihood.last().copied().unwrap_or(f64::NAN),
            reconstruction_error: history.reconstruction_error.last().copied().unwrap_or(f64::NAN),
            model,
        })
    }

    /// Ends a restart: keeps its model if it is the best so far.
    fn finish(&self, state: &mut State, model: Mixture, now: &Evaluated, stop: StopReason) {
        let mut history = std::mem::take(&mut state.history);
        history.stop = Some(stop);
        let least = least_weight(&self.rank) * self.unit;
        for (component, (part, &weight)) in model.components().iter().zip(&now.weights).enumerate() {
            if part.noise_variance() <= self.floor {
                history.events.push(Event::NoiseAtFloor { component });
            }
            if weight < least {
                history.events.push(Event::Starved { component, weight });
            }
        }
        let last = |h: &History| h.log_likelihood.last().copied().unwrap_or(f64::NEG_INFINITY);
        let better = state.best.as_ref().is_none_or(|(_, best, _)| last(&history) > last(best));
        if better {
            state.best = Some((model, history, now.assigned.clone()));
        }
        state.restart += 1;
    }
}

/// The smallest noise variance allowed: relative to the data's variance, or to the size of its numbers where all
/// samples are the same: the square of what rounding does to numbers of that size and type.
pub(super) fn noise_floor(moments: &Moments, element: Element, relative: f64) -> f64 {
    let rounding = if element == Element::F64 { 1e-28 } else { 1e-14 };
    let size = moments.mean.len() as f64;
    let square = moments.mean.iter().map(|m| m * m).sum::<f64>() / size;
    let floor = (relative * moments.variance / size).max(rounding * square);
    if floor > 0.0 { floor } else { 1e-14 }
}
