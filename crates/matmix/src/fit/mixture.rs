//! Fitting a mixture by exact EM: the steps of the loop.

use std::ops::ControlFlow;

use super::accelerate::MixtureSpace;
use super::identity::identity;
use super::iterate::{Finished, LoopOptions, Observer, iterate};
use super::maximize::{Constraints, least_weight, min_component_size, min_degrees};
use super::options::{Algorithm, Dof, FitOptions, Search, Start};
use super::paper::PaperSteps;
use super::steps::{Evaluation, Extrapolation, Steps, Watch};
use super::support::Fate;
use super::threads::with_threads;
use super::updates::{iteration, updates};
use super::{by_class, low_rank, passes, search, start, support};
use crate::data::{Element, Missing, Samples, Tensors, read_mixture, write_mixture};
use crate::error::{Error, Result};
use crate::model::{Classes, Component, Event, History, Mixture, Noise, StopReason, power_of_four};
use crate::pass::{EmPass, EmSums, Engine, MissingCells, Moments, Precision, Update};
use crate::walk::Stage;

/// A fitted mixture and how it came about.
///
/// ```
/// use matmix::{FitOptions, Samples, fit};
///
/// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
/// let samples = Samples::from_vec(&[4, 3], numbers)?;
/// let fitted = fit(&samples, &FitOptions { components: 2, rank: vec![1], ..FitOptions::default() })?;
/// assert_eq!((fitted.assigned.iter().sum::<u64>(), fitted.range), (30, [0.0, 100.0]));
/// assert!((fitted.log_likelihood() - fitted.model.score(&samples)?).abs() < 1e-9);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The model with the largest log-likelihood of all restarts.
    pub model: Mixture,
    /// Its history.
    pub history: History,
    /// How many samples have each component as their most probable one.
    pub assigned: Vec<u64>,
    /// The least and the largest value of the samples.
    pub range: [f64; 2],
    /// What was not observed of them.
    pub missing: MissingCells,
    /// How many cells were observed of no sample at all.
    pub never_observed: usize,
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

/// Fits a mixture.
///
/// # Errors
/// Samples that are not finite, options that do not fit them, a checkpoint of another fit. Not converging is no error.
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
///
/// # Errors
/// As [`fit`].
pub fn fit_with(samples: &Samples<'_>, options: &FitOptions, observer: &mut Observer<'_>) -> Result<Fit> {
    fit_on(samples, options, observer)
}

/// Fits a mixture to whatever samples the engine holds and calls `observer` after every iteration.
///
/// # Errors
/// As [`fit`], and whatever keeps the engine from running a pass.
pub fn fit_on(engine: &dyn Engine, options: &FitOptions, observer: &mut Observer<'_>) -> Result<Fit> {
    options.validate(engine)?;
    if options.missing == engine.missing() || engine.missing() == Missing::Nan {
        return with_threads(options.threads, || run(engine, options, observer))?;
    }
    let Some(samples) = engine.local() else { unreachable!("options that were validated") };
    let samples = samples.clone().with_missing(options.missing);
    let held = engine.backend().over(&samples)?;
    with_threads(options.threads, || run(&*held, options, observer))?
}

fn run(engine: &dyn Engine, options: &FitOptions, observer: &mut Observer<'_>) -> Result<Fit> {
    let mut fit = run_once(engine, options, observer)?;
    if options.prune {
        fit = pruned(engine, options, observer, fit)?;
    }
    if options.rank.is_empty() {
        fit.history.events.extend(default_rank(engine, &fit, options.seed)?);
    }
    Ok(fit)
}

/// A default rank that keeps less than this share of the variance is mentioned.
const KEPT: f64 = 0.9;

/// Elements, and samples, in the estimate of the variance that other ranks keep.
const TELLING: usize = 1 << 22;
const TELLING_SAMPLES: std::ops::RangeInclusive<usize> = 32..=1024;

/// The event of a default rank that keeps little of the variance.
fn default_rank(engine: &dyn Engine, fit: &Fit, seed: u64) -> Result<Option<Event>> {
    let rank = fit.model.rank().to_vec();
    let half: Vec<usize> = engine.shape().iter().map(|side| side.div_ceil(2)).collect();
    // Half of the entries of a vector would be most of its factors.
    if half.len() < 2 || half.iter().zip(&rank).all(|(half, rank)| half <= rank) {
        return Ok(None);
    }
    let count = (TELLING / engine.sample_len()).clamp(*TELLING_SAMPLES.start(), *TELLING_SAMPLES.end());
    let samples = &*start::at_hand(engine, count, &mut start::stream(seed, 0))?;
    let held = engine.backend().over(samples)?;
    let seen = passes::moments(&*held, false)?;
    // Errors are those of observed cells.
    let variance = seen.variance * seen.share();
    let kept = 1.0 - fit.reconstruction_error().powi(2) / variance;
    if variance == 0.0 || kept >= KEPT {
        return Ok(None);
    }
    // Missing cells have the mean.
    let half_keeps = low_rank::captured(samples, &*held, &half, &seen)? / variance;
    Ok(Some(Event::DefaultRank { rank, kept, half, half_keeps }))
}

/// Drops columns that have fallen to the noise and fits on, until there are none; the history of the last fit tells of all.
fn pruned(
    engine: &dyn Engine,
    options: &FitOptions,
    observer: &mut Observer<'_>,
    mut fit: Fit,
) -> Result<Fit> {
    let samples = engine.n_effective() as f64;
    loop {
        let (rank, needed) = (fit.model.rank().to_vec(), fit.model.needed_rank(samples));
        if needed == rank || fit.stop() == StopReason::Stopped {
            return Ok(fit);
        }
        let start = Start::Model(Box::new(fit.model.pruned(&needed)?));
        // The state that was kept is that of the fit before, which ends the same way again.
        let next = FitOptions {
            rank: needed.clone(),
            start,
            n_init: 1,
            prune: false,
            checkpoint: None,
            ..options.clone()
        };
        let after = run_once(engine, &next, observer)?;
        let History { mut events, search, passes, seconds, restart, .. } = fit.history;
        events.retain(|event| !matches!(event, Event::DeadColumns { .. }));
        let modes = rank.iter().zip(&needed).enumerate().filter(|(_, (from, to))| to < from);
        events.extend(modes.map(|(d, (&from, &to))| Event::Pruned { mode: d, from, to }));
        events.extend(after.history.events);
        let history = History {
            events,
            search,
            restart,
            passes: passes + after.history.passes,
            seconds: seconds + after.history.seconds,
            ..after.history
        };
        fit = Fit { history, ..after };
    }
}

fn run_once(engine: &dyn Engine, options: &FitOptions, observer: &mut Observer<'_>) -> Result<Fit> {
    let about = About::new(engine, options)?;
    let (range, missing) = (about.moments.range, about.moments.missing);
    let unseen = &about.moments.unseen;
    let never_observed = (0..unseen.len()).filter(|&i| about.moments.seen(i) == 0.0).count();
    let checkpoint = options.checkpoint.as_ref();
    let loop_options = LoopOptions {
        n_init: options.n_init,
        max_iter: options.max_iter,
        tol: options.tol,
        stop: options.stop,
        accelerate: options.accelerate && options.algorithm == Algorithm::Exact,
        checkpoint: checkpoint
            .map(|c| (c.clone(), identity(engine, options, &about.rank, about.moments.digest))),
    };
    let Finished { model, history, assigned } = match options.algorithm {
        Algorithm::Exact => iterate(&mut MixtureSteps::new(about), &loop_options, observer)?,
        Algorithm::Paper => {
            let Some(samples) = engine.local() else { return Err(super::options::paper_is_local()) };
            let finished = iterate(&mut PaperSteps { about, samples }, &loop_options, observer)?;
            let Finished { model, history, assigned } = finished;
            Finished { model: model.mixture, history, assigned }
        }
    };
    let history = History { samples: engine.len(), ..history };
    Ok(Fit { model, history, assigned, range, missing, never_observed })
}

/// What a fit knows before it begins.
pub(super) struct About<'a> {
    pub(super) engine: &'a dyn Engine,
    pub(super) options: &'a FitOptions,
    pub(super) rank: Vec<usize>,
    pub(super) moments: Moments,
    /// The smallest noise variance allowed.
    pub(super) floor: f64,
    /// The weight that counts as one sample when it is asked whether there are enough of them.
    pub(super) unit: f64,
    /// Mean number of samples that observed a cell.
    observations: f64,
}

/// Cells observed fewer times than this on average do not tell noise from differences between cells. The spread
/// of all values then bounds the noise from below, wholly where no cell is observed twice.
const OBSERVATIONS: f64 = 2.0;

impl<'a> About<'a> {
    pub(super) fn new(engine: &'a dyn Engine, options: &'a FitOptions) -> Result<Self> {
        let moments = passes::moments(engine, options.checkpoint.is_some())?;
        if moments.share() == 0.0 {
            return Err(Error::NothingObserved);
        }
        // Weights that sum to 1, say, are as many samples as before; a weight of 2 is two samples.
        let unit = (engine.total_weight() / engine.n_effective() as f64).min(1.0);
        let observations = moments.observations(unit);
        let floor = noise_floor(&moments, engine.element(), options.noise_floor)
            .max((OBSERVATIONS - observations).max(0.0) * moments.spread());
        if !floor.is_finite() {
            // Equal samples have no variance, however large they are; their squares still have to be numbers.
            return Err(Error::Overflow { sample: 0 });
        }
        let rank = options.rank_for(engine.shape())?;
        Ok(Self { engine, options, rank, moments, floor, unit, observations })
    }

    /// A power of four near the variance of the data.
    fn unit_variance(&self) -> f64 {
        let size = self.moments.mean.len() as f64;
        power_of_four((self.moments.variance / size).max(self.floor))
    }

    /// Added to the mean log-likelihood per sample to make it that of samples near unit variance.
    pub(super) fn log_unit(&self) -> f64 {
        let observed = self.moments.share() * self.moments.mean.len() as f64;
        0.5 * observed * self.unit_variance().ln()
    }

    /// The same for cores of another shape.
    pub(super) fn with_rank(&self, rank: &[usize]) -> Self {
        Self { rank: rank.to_vec(), moments: self.moments.clone(), ..*self }
    }

    /// Where a restart begins.
    pub(super) fn start(
        &self,
        restart: usize,
        history: &mut History,
        watch: &mut Watch<'_>,
    ) -> Result<Mixture> {
        let mut rng = start::stream(self.options.seed, restart);
        let (engine, k) = (self.engine, self.options.n_components());
        if self.searches()
            && let Some((model, searched, event)) = search::search(self, &mut rng, watch)?
        {
            history.passes += searched.passes;
            history.search = Some(searched);
            history.events.extend(event);
            return Ok(model);
        }
        let model = match &self.options.start {
            Start::KMeans | Start::Random if self.is_labelled() => by_class::start(self, &mut rng)?,
            Start::KMeans => {
                let effort = start::Effort::for_start(k);
                start::k_means(engine, k, &self.rank, self.floor, &self.moments, effort, &mut rng)?
            }
            Start::Random => {
                let chosen = start::draw_distinct(engine, k, &mut rng);
                start::random(engine, chosen, &self.rank, self.floor, &self.moments, &mut rng)?
            }
            Start::Model(model) => (**model).clone(),
        };
        with_noise(model, self.options)
    }

    /// Whether components belong to classes.
    pub(super) fn is_labelled(&self) -> bool {
        !self.options.classes.is_empty()
    }

    /// Whether a restart begins with a search: not if there is nothing to search for, or no iteration that could go on from it.
    fn searches(&self) -> bool {
        let FitOptions { search, algorithm, start, components, max_iter, .. } = self.options;
        *search == Search::Auto
            && *algorithm == Algorithm::Exact
            && *start == Start::KMeans
            && *components > 1
            && *max_iter > 0
            // Splits and merges know no classes.
            && !self.is_labelled()
    }

    /// What bounds the parameters of an M-step.
    pub(super) fn constraints(&self) -> Constraints {
        Constraints {
            noise_floor: self.floor,
            unit: self.unit,
            dof: self.options.dof,
            min_degrees: self.min_degrees(),
        }
    }

    fn min_degrees(&self) -> f64 {
        let k = self.options.n_components();
        min_degrees(self.engine.shape(), &self.rank, self.engine.total_weight() / self.unit, k)
    }

    /// The least weight that a component of a fit to samples of this total weight may have.
    pub(super) fn min_weight(&self, total: f64) -> f64 {
        min_component_size(
            self.engine.sample_len(),
            &self.rank,
            total / self.unit,
            self.options.n_components(),
        ) * self.unit
    }

    /// One pass of EM.
    pub(super) fn pass(
        &self,
        model: &Mixture,
        update: Update,
        precision: Precision,
        stage: Stage,
    ) -> Result<EmSums> {
        self.engine.sums(&EmPass { model: model.clone(), update, precision, stage })
    }

    /// A mixture that was kept, if it is one of this fit.
    pub(super) fn read(&self, prefix: &str, from: &Tensors) -> Result<Option<Mixture>> {
        if !from.has(&format!("{prefix}weights")) {
            return Ok(None);
        }
        let model = read_mixture(from, prefix)?;
        let fits = model.shape() == self.engine.shape()
            && model.rank() == self.rank
            && model.n_components() == self.options.n_components()
            && model.classes().map_or(&[][..], Classes::names) == self.options.classes;
        if fits { Ok(Some(model)) } else { Err(from.wrong("its parts do not belong together")) }
    }
}

/// Degrees of freedom to begin with, where none are given: tails that a sample from afar can lengthen and many Gaussian ones shorten.
const FIRST_DEGREES: f64 = 10.0;

/// A start with the noise that is asked for. One that has degrees of freedom already begins with its own, unless they are given.
pub(super) fn with_noise(model: Mixture, options: &FitOptions) -> Result<Mixture> {
    let degrees = |component: &Component| match (options.noise, options.dof) {
        (Noise::Gaussian, _) => None,
        (Noise::T, Dof::Fixed(degrees)) => Some(degrees),
        (Noise::T, _) => Some(component.degrees_of_freedom().unwrap_or(FIRST_DEGREES)),
    };
    if options.noise == Noise::Gaussian && model.noise() == Noise::Gaussian {
        return Ok(model);
    }
    let components = model.components().iter().map(|c| c.clone().with_degrees_of_freedom(degrees(c)));
    let components = components.collect::<Result<Vec<_>>>()?;
    Ok(model.with_components(model.weights().to_vec(), components))
}

/// How good a model is, from the sums of a pass.
pub(super) fn evaluation(sums: EmSums) -> Evaluation<EmSums> {
    Evaluation {
        log_likelihood: sums.mean_log_likelihood(),
        sampling_error: sums.deviation() / (sums.n_samples as f64).sqrt(),
        reconstruction_error: sums.reconstruction_error(),
        assigned: sums.components.iter().map(|c| c.assigned).collect(),
        sums,
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

/// Samples that the smallest part of a set has at least, in all and per component: with fewer, small components would be lost.
const LEAST_STAGE: usize = 1000;
const LEAST_PER_COMPONENT: usize = 100;

/// The smallest part of a set that was searched has at least so many times as many samples as the search has seen.
const AFTER_SEARCH: usize = 4;

/// How many samples of equal weight say as much as these (Kish 1965).
fn worth(samples: &dyn Engine) -> f64 {
    let squares: f64 = match samples.weights() {
        Some(weights) => weights.iter().map(|w| w * w).sum(),
        None => return samples.len() as f64,
    };
    samples.total_weight().powi(2) / squares
}

/// The steps of exact EM.
pub(super) struct MixtureSteps<'a> {
    pub(super) about: About<'a>,
    space: MixtureSpace,
    /// The passes of an iteration.
    updates: Vec<Update>,
    /// The fate of each component.
    pub(super) fates: Vec<Fate>,
}

impl<'a> MixtureSteps<'a> {
    fn new(about: About<'a>) -> Self {
        let space = MixtureSpace {
            floor: about.floor,
            min_degrees: about.min_degrees(),
            unit: about.unit_variance(),
            sample_len: about.engine.sample_len(),
        };
        let k = about.options.n_components();
        let engine = about.engine;
        let updates = updates((engine.shape(), &about.rank, k), engine.len(), engine.backend());
        Self { about, space, updates, fates: vec![Fate::Kept; k] }
    }

    fn pass(&self, model: &Mixture, update: Update, stage: Stage) -> Result<EmSums> {
        self.about.pass(model, update, self.about.options.precision, stage)
    }
}

impl Steps for MixtureSteps<'_> {
    type Model = Mixture;
    type Sums = EmSums;

    fn start(&mut self, restart: usize, history: &mut History, watch: &mut Watch<'_>) -> Result<Mixture> {
        let model = self.about.start(restart, history, watch)?;
        // A search may leave components without samples, and a given model may have components that were removed.
        let fate = |&weight: &f64| if weight == 0.0 { Fate::Removed } else { Fate::Kept };
        self.fates = model.weights().iter().map(fate).collect();
        let removed = (0..self.fates.len()).filter(|&k| self.fates[k] == Fate::Removed);
        history.events.extend(removed.map(|component| Event::Removed { iteration: 0, component, size: 0.0 }));
        Ok(model)
    }

    fn evaluate(&mut self, model: &Mixture, stage: Stage) -> Result<Evaluation<EmSums>> {
        let sums = self.pass(model, self.updates[0], stage)?;
        Ok(evaluation(sums))
    }

    fn update(&mut self, model: &Mixture, sums: EmSums, stage: Stage) -> Result<Mixture> {
        let constraints = self.about.constraints();
        // The pass that updates the first mode was the evaluation of the model.
        let mut first = Some(sums);
        let pass = |model: &Mixture, update| match first.take() {
            Some(sums) => Ok(sums),
            None => self.pass(model, update, stage),
        };
        iteration(model.clone(), &self.updates, |_| constraints, pass)
    }

    fn passes_per_iteration(&self) -> usize {
        self.updates.len()
    }

    fn mend(
        &mut self,
        model: &Mixture,
        now: &Evaluation<EmSums>,
        stage: Stage,
        history: &mut History,
    ) -> Result<Option<(Mixture, Evaluation<EmSums>)>> {
        support::remove_small(self, model, now, stage, history)
    }

    fn review(
        &mut self,
        model: &Mixture,
        now: &Evaluation<EmSums>,
        history: &mut History,
    ) -> Result<Option<(Mixture, Evaluation<EmSums>)>> {
        support::remove_unsupported(self, model, now, history)
    }

    fn remarks(&self, model: &Mixture, now: &Evaluation<EmSums>) -> Vec<Event> {
        let least = least_weight(&self.about.rank) * self.about.unit;
        let mut events = Vec::new();
        let observations = self.about.observations;
        if observations < OBSERVATIONS {
            events.push(Event::SeldomObserved { observations });
        }
        let parts = model.components().iter().zip(model.weights()).zip(&now.sums.components);
        for (component, ((part, _), sums)) in parts.enumerate().filter(|(_, ((_, weight), _))| **weight > 0.0)
        {
            if part.noise_variance() <= self.about.floor {
                events.push(Event::NoiseAtFloor { component });
            }
            if sums.weight < least {
                events.push(Event::Starved { component, weight: sums.weight });
            }
        }
        let needed = model.needed_rank(self.about.engine.n_effective() as f64);
        for (d, (&rank, needed)) in model.rank().iter().zip(needed).enumerate() {
            if needed < rank {
                events.push(Event::DeadColumns { mode: d, rank, needed });
            }
        }
        events
    }

    fn first_stage(&self) -> Stage {
        let options = self.about.options;
        // A model that was given may be as good as it gets.
        if !options.stages || matches!(options.start, Start::Model(_)) {
            return Stage::ALL;
        }
        let least = match self.about.searches() {
            // What a search has found is close to the end: only parts much larger than what it has seen are worth a stage.
            true => AFTER_SEARCH * search::n_samples(self.about.engine, options.components),
            false => LEAST_STAGE.max(LEAST_PER_COMPONENT * options.n_components()),
        };
        let mut stage = Stage::of_at_least(least as f64, worth(self.about.engine));
        // A class of which a stage has too few labelled samples would be lost in it.
        let least = LEAST_PER_COMPONENT * options.components;
        while stage != Stage::ALL && by_class::fewest_labelled(&self.about, stage) < least {
            stage = stage.doubled();
        }
        stage
    }

    fn converged(&self, history: &History, options: &LoopOptions) -> bool {
        options.converged(history, self.about.log_unit())
    }

    fn extrapolation(&self) -> Option<&dyn Extrapolation<Mixture>> {
        Some(&self.space)
    }

    fn shown<'m>(&self, model: &'m Mixture) -> Option<&'m Mixture> {
        Some(model)
    }

    fn write(&self, model: &Mixture, prefix: &str, to: &mut Tensors) {
        write_mixture(to, prefix, model);
        let fates = self.fates.iter().map(|&fate| f64::from(fate as u8)).collect();
        to.add(format!("{prefix}tries"), vec![self.fates.len()], fates);
    }

    fn read(&mut self, prefix: &str, from: &Tensors) -> Result<Option<Mixture>> {
        let model = self.about.read(prefix, from)?;
        if model.is_some() && prefix.is_empty() {
            let (_, fates) = from.get("tries", &[Some(self.fates.len())])?;
            self.fates = fates.iter().map(|&fate| Fate::read(fate)).collect();
        }
        Ok(model)
    }
}
