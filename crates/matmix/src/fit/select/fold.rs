//! Samples a candidate is fitted to, and those it is judged by.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::super::mixture::About;
use super::super::options::FitOptions;
use super::super::passes;
use super::super::search::{Climbed, Ground, Patience, Searching, overshoot};
use super::super::steps::Watch;
use super::rank::with_rank;
use crate::data::Samples;
use crate::error::Result;
use crate::model::Mixture;
use crate::pass::{AskPass, Backend, Question};

/// The part held out if there is one fold only: one sample in so many.
const HELD_OUT: usize = 5;

/// A candidate is settled once a pass gains less than this share of its log-likelihood, or after so many passes.
const SETTLED: f64 = 1e-4;
const MOST_PASSES: usize = 12;

/// Every K of a path comes from one that was exchanged already, and hands on what it finds: little is left to be done at each, and an exchange
/// that is expected to lose rarely gains.
const EXCHANGES: Patience = Patience { exchanges: 2, failures: 1, worth_trying: 0.8 };

/// Some samples to fit to, and the others, if there are any.
pub(super) struct Fold<'a> {
    pub(super) train: Samples<'a>,
    pub(super) test: Option<Samples<'a>>,
    /// Σ w ‖X − M‖² of the samples a candidate is judged by.
    pub(super) squares: f64,
}

impl<'a> Fold<'a> {
    pub(super) fn new(train: Samples<'a>, test: Option<Samples<'a>>) -> Result<Self> {
        let judged = test.as_ref().unwrap_or(&train);
        let squares = passes::moments(judged, false)?.variance * judged.total_weight();
        Ok(Self { train, test, squares })
    }

    /// The samples a candidate is judged by: those held out, or those it is fitted to.
    pub(super) fn judged(&self) -> &Samples<'a> {
        self.test.as_ref().unwrap_or(&self.train)
    }
}

/// The places of the samples of every fold; those of no weight are in none.
pub(super) fn folds<'a>(samples: &Samples<'a>, count: usize, rng: &mut ChaCha8Rng) -> Result<Vec<Fold<'a>>> {
    let mut places: Vec<usize> = (0..samples.len()).filter(|&n| samples.weight(n) > 0.0).collect();
    places.shuffle(rng);
    let folds = if count == 1 { HELD_OUT } else { count };
    let fold = |f: usize| {
        let part = |held: bool| {
            let mut part: Vec<usize> = places
                .iter()
                .enumerate()
                .filter(|(at, _)| (at % folds == f) == held)
                .map(|(_, &n)| n)
                .collect();
            part.sort_unstable();
            samples.clone().select(&part)
        };
        Fold::new(part(false)?, Some(part(true)?))
    };
    (0..count).map(fold).collect()
}

/// What a model is worth on a fold.
#[derive(Debug, Clone)]
pub(super) struct Worth {
    pub(super) model: Mixture,
    /// Σ w ln p over the samples it was fitted to, and the entropy of their responsibilities.
    pub(super) log_likelihood: f64,
    pub(super) entropy: f64,
    /// Whether a component has a noise variance at the floor, or is on its way there as the cores leave no more of the samples than that.
    pub(super) is_floored: bool,
    /// ln p of each sample it is judged by, and ‖X − X̂‖².
    pub(super) log_densities: Vec<f64>,
    pub(super) squared_errors: Vec<f64>,
}

/// A fold under way: the model it has come to.
pub(super) struct Walker<'a> {
    fold: &'a Fold<'a>,
    backend: &'a dyn Backend,
    options: &'a FitOptions,
    pub(super) passes: f64,
    /// Number of components that splits led to, if the path needed more: those began at once.
    pub(super) reached: Option<usize>,
}

impl<'a> Walker<'a> {
    pub(super) fn new(fold: &'a Fold<'a>, backend: &'a dyn Backend, options: &'a FitOptions) -> Self {
        Self { fold, backend, options, passes: 0.0, reached: None }
    }

    /// Models of every number of components from `most` down to `least`, each from the one before by the merge that loses least; fewer if
    /// the observer ends the path. Where splits do not lead to `most` components, these begin at once, and the model of the splits takes over at its
    /// own number of components if it is better.
    pub(super) fn path(
        &mut self,
        rank: &[usize],
        least: usize,
        most: usize,
        rng: &mut ChaCha8Rng,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<Worth>> {
        let held = self.backend.over(&self.fold.train)?;
        let about = About::new(&*held, self.options)?.with_rank(rank);
        let ground = Ground::new(&about, &self.fold.train);
        let mut searching = Searching::new(&ground, rng, watch);
        let mut now = searching.begin(&about)?;
        if most > 1 {
            let samples = self.fold.train.n_effective();
            now = searching.grow(now, overshoot(most, samples, &ground))?;
        }
        let reached = now.model.n_components();
        let grown = (reached < most && !searching.stopped).then(|| now.clone());
        if grown.is_some() {
            self.reached = Some(self.reached.map_or(reached, |before| before.min(reached)));
            now = searching.at_once(most)?;
        }
        now = searching.merge_down(now, most)?;
        let mut found = Vec::new();
        for components in (least..=most).rev() {
            now = searching.merge_down(now, components)?;
            if searching.stopped {
                break;
            }
            if let Some(grown) = grown.as_ref().filter(|_| components == reached)
                && grown.log_likelihood > now.log_likelihood
            {
                now = grown.clone();
            }
            if components > 1 {
                now = searching.exchange(now, EXCHANGES)?;
            }
            now = ground.settle(now.model, SETTLED, MOST_PASSES)?;
            found.push(self.worth(&now, ground.noise_floor())?);
        }
        self.passes += ground.passes(most, self.fold.train.len());
        Ok(found)
    }

    /// Initialize `components` components at once: for a path that ended before its first candidate.
    pub(super) fn begun(
        &mut self,
        rank: &[usize],
        components: usize,
        rng: &mut ChaCha8Rng,
        watch: &mut Watch<'_>,
    ) -> Result<Worth> {
        let held = self.backend.over(&self.fold.train)?;
        let about = About::new(&*held, self.options)?.with_rank(rank);
        let ground = Ground::new(&about, &self.fold.train);
        let now = Searching::new(&ground, rng, watch).at_once(components)?;
        self.worth(&now, ground.noise_floor())
    }

    /// A model with other ranks, settled.
    pub(super) fn reranked(&mut self, model: &Mixture, rank: &[usize]) -> Result<Worth> {
        let held = self.backend.over(&self.fold.train)?;
        let before = About::new(&*held, self.options)?.with_rank(model.rank());
        let after = before.with_rank(rank);
        let components = model.n_components();
        let ground = Ground::new(&before, &self.fold.train);
        let now = ground.climb(model.clone(), 0)?;
        let model = with_rank(&ground, &now, rank)?;
        self.passes += ground.passes(components, self.fold.train.len());
        let ground = Ground::new(&after, &self.fold.train);
        let now = ground.settle(model, SETTLED, MOST_PASSES)?;
        self.passes += ground.passes(components, self.fold.train.len());
        self.worth(&now, ground.noise_floor())
    }

    /// A model with these ranks one after the other, settled each time; nothing if there are none. Columns that come a few at a time find far better places
    /// than all of them at once.
    pub(super) fn along(&mut self, model: &Mixture, way: &[Vec<usize>]) -> Result<Option<Worth>> {
        let mut grown: Option<Worth> = None;
        for rank in way {
            let before = grown.as_ref().map_or(model, |worth| &worth.model);
            grown = Some(self.reranked(before, rank)?);
        }
        Ok(grown)
    }

    fn worth(&self, now: &Climbed, floor: f64) -> Result<Worth> {
        let questions = vec![Question::LogLikelihood, Question::SquaredError];
        let pass = AskPass { model: std::sync::Arc::new(now.model.clone().into()), questions };
        let answers = self.backend.over(self.fold.judged())?.sums(&pass)?.values;
        let (log_likelihood, entropy) = (now.log_likelihood, now.entropy(&self.fold.train));
        let squared_errors: Vec<f64> = answers.iter().copied().skip(1).step_by(2).collect();
        let judged = self.fold.judged();
        let squares: f64 = squared_errors.iter().enumerate().map(|(n, error)| judged.weight(n) * error).sum();
        let left = squares / (judged.total_weight() * judged.sample_len() as f64);
        Ok(Worth {
            model: now.model.clone(),
            log_likelihood,
            entropy,
            is_floored: now.model.components().iter().any(|part| part.noise_variance() <= floor)
                || left <= floor,
            log_densities: answers.iter().copied().step_by(2).collect(),
            squared_errors,
        })
    }
}
