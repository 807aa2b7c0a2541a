//! How many components, of what rank: candidates along a path of warm starts, a criterion, and the chosen one fitted.
//!
//! The path over K is that of the search: grow from one component beyond the most that are asked for, and come down by the merges
//! that lose least. The path over ranks climbs from the ranks of the best candidate: a mode gets columns along what it has left over, or
//! loses its shortest. No candidate begins from scratch.
//!
//! | file | what |
//! |---|---|
//! | [`fold`] | samples to fit to and samples to judge by |
//! | [`rank`] | the same mixture with other ranks |
//! | [`choose`] | criteria, and which candidate they choose |

mod choose;
mod fold;
mod rank;

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use self::choose::{Judged, advice, choose};
use self::fold::{Fold, Walker, Worth, folds};
use super::iterate::Observer;
use super::mixture::{Fit, fit_on};
use super::options::{Algorithm, Checkpoint, FitOptions, Start};
use super::start;
use super::threads::with_threads;
use crate::data::{Missing, Samples};
use crate::error::{Error, Result};
use crate::model::Mixture;
use crate::options::choices;
use crate::pass::Engine;

choices! {
    /// What a good model is good at.
    ///
    /// ```
    /// use matmix::{Criterion, FitOptions, Samples, SelectOptions, select};
    ///
    /// // Two groups of fifty.
    /// let numbers: Vec<f64> = (0..600).map(|i| f64::from((i * 37) % 101 + i / 300 * 500)).collect();
    /// let samples = Samples::from_vec(&[3, 2], numbers)?;
    /// let fit = FitOptions { rank: vec![1], ..FitOptions::default() };
    /// let criterion = Criterion::Bic;
    /// let selected = select(&samples, &SelectOptions { most_components: 3, criterion, fit, ..Default::default() })?;
    /// let least = selected.best().cost(criterion);
    /// assert!(selected.candidates.iter().all(|candidate| candidate.cost(criterion) >= least));
    /// # Ok::<(), matmix::Error>(())
    /// ```
    pub enum Criterion {
        /// Explaining samples it has not seen: their mean log-likelihood.
        #[default]
        HeldOut = "held-out",
        /// −2 ln L + m ln N for m parameters.
        Bic = "bic",
        /// −2 ln L + 2m.
        Aic = "aic",
        /// BIC plus twice the entropy of the responsibilities: components that do not overlap.
        Icl = "icl",
    }
}

/// The samples that candidates are fitted to, at most: the chosen one is then fitted to all of them.
const SAMPLES: usize = 16_384;

/// Rounds over components and ranks.
const ROUNDS: usize = 2;

/// The options of a selection. `..SelectOptions::default()` fills in the rest.
///
/// ```
/// use matmix::{FitOptions, Samples, SelectOptions, select};
///
/// let numbers: Vec<f64> = (0..600).map(|i| f64::from((i * 37) % 101 + i / 300 * 500)).collect();
/// let samples = Samples::from_vec(&[3, 2], numbers)?;
/// let fit = FitOptions { rank: vec![1], ..FitOptions::default() };
/// let options = SelectOptions { least_components: 2, most_components: 4, folds: 1, fit, ..Default::default() };
/// let tried: Vec<usize> = select(&samples, &options)?.candidates.iter().map(|c| c.components).collect();
/// assert_eq!(tried, [2, 3, 4]);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SelectOptions {
    /// The fewest components that are tried.
    pub least_components: usize,
    /// The most.
    pub most_components: usize,
    /// Whether ranks are chosen, too: from those of `fit` on, a mode at a time.
    pub choose_rank: bool,
    /// What decides.
    pub criterion: Criterion,
    /// In how many parts the samples are held out, one after the other; 1 holds out a fifth, once.
    pub folds: usize,
    /// Whether the model with the fewest parameters is chosen of those that are worse than the best held out by less than the standard
    /// error of the difference.
    pub one_standard_error: bool,
    /// How the chosen model is fitted; its ranks are those of every candidate, or those to begin with.
    pub fit: FitOptions,
}

impl Default for SelectOptions {
    fn default() -> Self {
        Self {
            least_components: 1,
            most_components: 10,
            choose_rank: false,
            criterion: Criterion::default(),
            folds: 3,
            one_standard_error: true,
            fit: FitOptions::default(),
        }
    }
}

/// One number of components and ranks that was tried.
///
/// ```
/// use matmix::{Criterion, FitOptions, Samples, SelectOptions, select};
///
/// let numbers: Vec<f64> = (0..600).map(|i| f64::from((i * 37) % 101 + i / 300 * 500)).collect();
/// let samples = Samples::from_vec(&[3, 2], numbers)?;
/// let fit = FitOptions { rank: vec![1], ..FitOptions::default() };
/// let selected = select(&samples, &SelectOptions { most_components: 2, fit, ..Default::default() })?;
/// // Samples that were not seen are far better explained by two components.
/// let [one, two] = &selected.candidates[..] else { panic!("one component and two") };
/// assert!(two.held_out > one.held_out && two.parameters > one.parameters);
/// assert_eq!(one.cost(Criterion::HeldOut), -one.held_out.unwrap());
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// K.
    pub components: usize,
    /// The shape of the cores.
    pub rank: Vec<usize>,
    /// The number of free parameters.
    pub parameters: usize,
    /// The mean log-likelihood per sample it was fitted to.
    pub log_likelihood: f64,
    /// The mean log-likelihood per sample held out, if samples were.
    pub held_out: Option<f64>,
    /// The standard error of the difference between this and the best candidate, on the samples held out.
    pub standard_error: Option<f64>,
    /// −2 ln L + m ln N, if it was fitted to all samples.
    pub bic: Option<f64>,
    /// −2 ln L + 2m.
    pub aic: Option<f64>,
    /// BIC plus twice the entropy of the responsibilities.
    pub icl: Option<f64>,
}

impl Candidate {
    /// What the criterion says: less is better.
    pub fn cost(&self, criterion: Criterion) -> f64 {
        let value = match criterion {
            Criterion::HeldOut => self.held_out.map(|held_out| -held_out),
            Criterion::Bic => self.bic,
            Criterion::Aic => self.aic,
            Criterion::Icl => self.icl,
        };
        value.unwrap_or(f64::NAN)
    }
}

/// The candidates, and the chosen one fitted.
///
/// ```
/// use matmix::{FitOptions, Samples, SelectOptions, select};
///
/// let numbers: Vec<f64> = (0..600).map(|i| f64::from((i * 37) % 101 + i / 300 * 500)).collect();
/// let samples = Samples::from_vec(&[3, 2], numbers)?;
/// let fit = FitOptions { rank: vec![1], ..FitOptions::default() };
/// let selected = select(&samples, &SelectOptions { most_components: 3, fit, ..Default::default() })?;
/// assert_eq!(selected.fit.model.n_components(), selected.best().components);
/// assert_eq!(selected.fit.assigned.iter().sum::<u64>(), 100);
/// assert!(!selected.advice.is_empty());
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// All that were tried, by rank and then by number of components.
    pub candidates: Vec<Candidate>,
    /// Which of them was chosen.
    pub chosen: usize,
    /// What decided.
    pub criterion: Criterion,
    /// What the table says, in a sentence or two.
    pub advice: String,
    /// Passes of the largest candidate over the samples that all candidates together cost, all folds included.
    pub passes: f64,
    /// The chosen one, fitted to all samples.
    pub fit: Fit,
}

impl Selection {
    /// The candidate that was chosen.
    pub fn best(&self) -> &Candidate {
        &self.candidates[self.chosen]
    }
}

/// Chooses a number of components, and ranks if they are asked for, and fits the mixture.
///
/// # Errors
/// As [`fit`](super::fit), and options that leave nothing to choose from.
///
/// ```
/// use matmix::{FitOptions, Samples, SelectOptions, select};
///
/// let numbers: Vec<f64> = (0..600).map(|i| f64::from((i * 37) % 101) + f64::from(i / 300 * 500)).collect();
/// let samples = Samples::from_vec(&[3, 2], numbers)?;
/// let fit = FitOptions { rank: vec![1], ..FitOptions::default() };
/// let chosen = select(&samples, &SelectOptions { most_components: 3, fit, ..SelectOptions::default() })?;
/// assert_eq!(chosen.fit.model.n_components(), chosen.best().components);
/// # Ok::<(), matmix::Error>(())
/// ```
pub fn select(samples: &Samples<'_>, options: &SelectOptions) -> Result<Selection> {
    select_on(samples, options, &mut |_| ControlFlow::Continue(()))
}

/// The same for whatever samples the engine holds; `observer` is called while the chosen model is fitted.
///
/// # Errors
/// As [`select`], and whatever keeps the engine from running a pass.
pub fn select_on(
    engine: &dyn Engine,
    options: &SelectOptions,
    observer: &mut Observer<'_>,
) -> Result<Selection> {
    options.validate(engine)?;
    let mut selection = with_threads(options.fit.threads, || run(engine, options))??;
    let best = selection.best();
    let (components, rank) = (best.components, best.rank.clone());
    let start = Start::Model(Box::new(selection.fit.model.clone()));
    let fit = FitOptions { components, rank, start, n_init: 1, ..options.fit.clone() };
    selection.fit = fit_on(engine, &fit, observer)?;
    Ok(selection)
}

impl SelectOptions {
    /// Whether a simpler candidate than the best may be chosen.
    fn is_cautious(&self) -> bool {
        self.one_standard_error && self.criterion == Criterion::HeldOut
    }

    fn validate(&self, engine: &dyn Engine) -> Result<()> {
        let wrong = |option, value: String, expected| Err(Error::Option { option, value, expected });
        let SelectOptions { least_components: least, most_components: most, .. } = *self;
        if least == 0 || least > most {
            return wrong("components", format!("{least}..{most}"), "a range from at least 1 up");
        }
        let fit = FitOptions { components: least, ..self.fit.clone() };
        if !matches!(fit.start, Start::KMeans) {
            return wrong("start", format!("`{}`", fit.start), "`kmeans`: a selection finds its own starts");
        }
        if fit.algorithm != Algorithm::Exact {
            return wrong("algorithm", format!("`{}`", fit.algorithm), "`exact` for a selection");
        }
        if fit.missing == Missing::Nan || engine.missing() == Missing::Nan {
            return wrong(
                "missing",
                "`nan`".into(),
                "`error`: a selection needs samples without missing cells",
            );
        }
        if !fit.classes.is_empty() {
            let names = format!("{} names", fit.classes.len());
            return wrong("classes", names, "empty: a selection knows no labels");
        }
        if let Some(Checkpoint { path, .. }) = &fit.checkpoint {
            return wrong("checkpoint", path.display().to_string(), "left out of a selection");
        }
        fit.validate(engine)?;
        if self.criterion == Criterion::HeldOut && (self.folds == 0 || 2 * self.folds > engine.n_effective())
        {
            return wrong("folds", self.folds.to_string(), "at least 1, and at most half as many as samples");
        }
        Ok(())
    }
}

/// Everything but the last fit: the best model of the chosen candidate stands in its place.
fn run(engine: &dyn Engine, options: &SelectOptions) -> Result<Selection> {
    let mut rng = start::stream(options.fit.seed, 0);
    let samples = start::at_hand(engine, SAMPLES, &mut rng)?;
    let samples = &*samples;
    let folds = match options.criterion {
        Criterion::HeldOut => folds(samples, options.folds, &mut rng)?,
        _ => vec![Fold { train: samples.clone(), test: None }],
    };
    let mut walkers: Vec<Walker<'_>> =
        folds.iter().map(|fold| Walker::new(fold, engine.backend(), &options.fit)).collect();
    let mut judged: Vec<Judged> = Vec::new();
    let first = options.fit.rank_for(engine.shape())?;
    let mut rank = first.clone();
    // No fold has fewer samples than components.
    let enough = folds.iter().map(|fold| fold.train.n_effective()).min().unwrap_or(1);
    let most = options.most_components.min(enough);
    let judge = |worths: Vec<Worth>| Judged::new(worths, &folds);
    for _ in 0..if options.choose_rank { ROUNDS } else { 1 } {
        let mut paths = Vec::new();
        for walker in &mut walkers {
            paths.push(walker.path(&rank, options.least_components, most, &mut rng)?);
        }
        // As many as every fold has come to, from the fewest up.
        let common = paths.iter().map(Vec::len).min().unwrap_or(0);
        for at in 0..common {
            let worths = paths.iter().map(|path| path[path.len() - 1 - at].clone()).collect();
            judged.push(judge(worths));
        }
        if judged.is_empty() {
            let expected = "a range that begins with fewer: the samples do not come apart into so many";
            let value = format!("{}..{}", options.least_components, options.most_components);
            return Err(Error::Option { option: "components", value, expected });
        }
        if !options.choose_rank {
            break;
        }
        let before = judged[choose(&judged, options)].candidate.rank.clone();
        climb_ranks(&mut walkers, &mut judged, options, &judge)?;
        rank = judged[choose(&judged, options)].candidate.rank.clone();
        if rank == before || options.least_components == options.most_components {
            break;
        }
    }
    let best = choose(&judged, options);
    let model = best_on(samples, engine, &judged[best].models)?;
    let chosen = judged[best].candidate.clone();
    let mut candidates = choose::table(&judged, options.criterion);
    candidates.sort_by(|a, b| a.rank.cmp(&b.rank).then(a.components.cmp(&b.components)));
    let same = |c: &Candidate| c.components == chosen.components && c.rank == chosen.rank;
    let chosen = candidates.iter().position(same).unwrap_or(0);
    let advice = advice(&candidates, chosen, &first, options);
    let fit = Fit {
        model,
        history: Default::default(),
        assigned: vec![],
        range: [f64::NAN; 2],
        missing: Default::default(),
        never_observed: 0,
    };
    let passes = walkers.iter().map(|walker| walker.passes).sum();
    Ok(Selection { candidates, chosen, criterion: options.criterion, advice, passes, fit })
}

/// Tries ranks beside those of the chosen candidate, a mode at a time, as long as another one is chosen.
fn climb_ranks(
    walkers: &mut [Walker<'_>],
    judged: &mut Vec<Judged>,
    options: &SelectOptions,
    judge: &dyn Fn(Vec<Worth>) -> Judged,
) -> Result<()> {
    let mut far = true;
    loop {
        let at = choose(judged, options);
        let (components, rank) = (judged[at].candidate.components, judged[at].candidate.rank.clone());
        let shape = judged[at].models[0].shape().to_vec();
        for d in 0..rank.len() {
            // Far at first, by half as much again, then by one.
            let step = if far { (rank[d] / 2).max(1) } else { 1 };
            for r in [rank[d] + step, rank[d].saturating_sub(1)] {
                let r = r.min(shape[d]);
                let mut other = rank.clone();
                other[d] = r;
                let known = |j: &Judged| j.candidate.components == components && j.candidate.rank == other;
                if r == 0 || judged.iter().any(known) {
                    continue;
                }
                let mut worths = Vec::new();
                for (walker, model) in walkers.iter_mut().zip(judged[at].models.clone()) {
                    worths.push(walker.reranked(&model, &other)?);
                }
                judged.push(judge(worths));
            }
        }
        if choose(judged, options) == at {
            if !far {
                return Ok(());
            }
            far = false;
        }
    }
}

/// Of the models of all folds the one that explains all samples best.
fn best_on(samples: &Samples<'_>, engine: &dyn Engine, models: &[Mixture]) -> Result<Mixture> {
    let held = engine.backend().over(samples)?;
    let mut best: Option<(f64, &Mixture)> = None;
    for model in models {
        let score = if models.len() == 1 { 0.0 } else { model.score(&*held)? };
        if best.is_none_or(|(before, _)| score > before) {
            best = Some((score, model));
        }
    }
    best.map(|(_, model)| model.clone()).ok_or(Error::EmptySet)
}
