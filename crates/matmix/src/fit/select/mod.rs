//! How many components, of what rank: candidates along a path of warm starts, a criterion, and the chosen one fitted.
//!
//! The path over K is that of the search: grow from one component beyond the most that are asked for, and come down by the merges
//! that lose least. The path over ranks climbs from the ranks of the best candidate: a mode gets columns along what it has left over, or
//! loses its shortest. Where ranks have grown, the numbers of components beside the chosen one grow the same way; where they have
//! shrunk, the path is walked again with those. No candidate begins from scratch.
//! What is chosen then begins with a model of a fold, or, where ranks have grown, with a search of its own: columns that were added bit by bit are
//! where they were first useful, and not where they are of most use together.
//!
//! | file | what |
//! |---|---|
//! | [`options`] | what a user can choose |
//! | [`fold`] | samples to fit to and samples to judge by |
//! | [`rank`] | the same mixture with other ranks |
//! | [`scree`] | how variance is spread over the directions of a mode |
//! | [`choose`] | criteria, and which candidate they choose |

mod choose;
mod fold;
mod options;
mod rank;
mod scree;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use self::choose::{Floored, Judged, Told, advice, choose};
use self::fold::{Fold, Walker, Worth, folds};
pub use self::options::SelectOptions;
use self::rank::{equal_ranks, ranks_beside};
use self::scree::Spectrum;
use super::iterate::{Observer, Progress};
use super::mixture::{Fit, fit_on};
use super::options::{FitOptions, Search, Start};
use super::start;
use super::steps::Watch;
use super::threads::with_threads;
use crate::data::{Missing, Samples};
use crate::error::{Error, Result, optional};
use crate::model::{Candidate, Choice, Mixture, SearchMove, SearchStep};
use crate::pass::{AskPass, Engine, Question};

/// The samples that candidates are fitted to, at most: the chosen one is then fitted to all of them.
const SAMPLES: usize = 16_384;

/// Rounds over components and ranks.
const ROUNDS: usize = 2;

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
/// assert!(!selected.choice.advice.is_empty());
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// What was tried, and what was chosen; the history of the fit has it, too.
    pub choice: Choice,
    /// The chosen one, fitted to all samples.
    pub fit: Fit,
}

impl Selection {
    /// The candidate that was chosen.
    pub fn best(&self) -> &Candidate {
        &self.choice.candidates[self.choice.chosen]
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

/// The same for whatever samples the engine holds; `observer` hears of the steps of the search and of the iterations of the chosen
/// model. If it breaks, the best of the candidates that were judged before is chosen, and kept as it is; where there was none, the fewest components
/// as they begin.
///
/// # Errors
/// As [`select`], and whatever keeps the engine from running a pass.
pub fn select_on(
    engine: &dyn Engine,
    options: &SelectOptions,
    observer: &mut Observer<'_>,
) -> Result<Selection> {
    options.validate(engine)?;
    let (samples, held);
    let engine = match engine
        .local()
        .filter(|local| local.missing() == Missing::Error && options.fit.missing == Missing::Nan)
    {
        Some(local) => {
            samples = local.clone().with_missing(options.fit.missing);
            held = engine.backend().over(&samples)?;
            &*held
        }
        None => engine,
    };
    let stopped = AtomicBool::new(false);
    let (choice, model) = with_threads(options.fit.threads, || run(engine, options, observer, &stopped))??;
    let best = &choice.candidates[choice.chosen];
    let (components, rank) = (best.components, best.rank.clone());
    let anew = FitOptions { components, rank, ..options.fit.clone() };
    let fit = match model {
        Some(model) => FitOptions { start: Start::Model(Box::new(model)), n_init: 1, ..anew },
        None => anew,
    };
    let stopped = stopped.load(Ordering::Relaxed);
    let mut fit = fit_on(engine, &fit, &mut |progress| match observer(progress) {
        _ if stopped => ControlFlow::Break(()),
        flow => flow,
    })?;
    fit.history.choice = Some(choice.clone());
    Ok(Selection { choice, fit })
}

/// What is under way: the folds, how far each has come, and what has been judged.
struct Selecting<'a, 'o> {
    options: &'a SelectOptions,
    engine: &'a dyn Engine,
    samples: &'a Samples<'a>,
    folds: &'a [Fold<'a>],
    walkers: Vec<Walker<'a>>,
    judged: Vec<Judged>,
    /// The ranks that were chosen one after the other, from those of the path on, where they have grown.
    way: Vec<Vec<usize>>,
    watch: &'o mut Watch<'o>,
    /// Whether the observer ended the selection.
    stopped: &'o AtomicBool,
}

/// Everything but the last fit: what was chosen, and the model to begin that with, if it does not begin anew.
fn run(
    engine: &dyn Engine,
    options: &SelectOptions,
    observer: &mut Observer<'_>,
    stopped: &AtomicBool,
) -> Result<(Choice, Option<Mixture>)> {
    let mut rng = start::stream(options.fit.seed, 0);
    let samples = start::at_hand(engine, SAMPLES, &mut rng)?;
    let samples = &*samples;
    let folds = match options.criterion().holds_out() {
        true => folds(samples, options.folds, &mut rng)?,
        false => vec![Fold::new(samples.clone(), None)?],
    };
    let max_iter = options.fit.max_iter;
    let mut watch = |step: &SearchStep| {
        if observer(&Progress::searching(0, 1, max_iter, step)).is_break() {
            stopped.store(true, Ordering::Relaxed);
        }
        if stopped.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let mut selecting = Selecting {
        options,
        engine,
        samples,
        folds: &folds,
        walkers: folds.iter().map(|fold| Walker::new(fold, engine.backend(), &options.fit)).collect(),
        judged: Vec::new(),
        way: Vec::new(),
        watch: &mut watch,
        stopped,
    };
    let first = selecting.first_rank()?;
    let mut rank = first.clone();
    for _ in 0..if options.choose_rank { ROUNDS } else { 1 } {
        selecting.path(&rank, &mut rng)?;
        if !options.choose_rank || stopped.load(Ordering::Relaxed) {
            break;
        }
        let before = selecting.chosen().candidate.rank.clone();
        let way = selecting.climb_ranks()?;
        rank = selecting.chosen().candidate.rank.clone();
        let has_grown = rank.iter().product::<usize>() > before.iter().product();
        if has_grown {
            selecting.way = [vec![before.clone()], way].concat();
        }
        if rank == before || options.least_components == options.most_components {
            break;
        }
        // Components that small cores have found are better than those of a path with large ones, which has too few samples for each.
        if has_grown {
            selecting.climb_components()?;
            break;
        }
    }
    let best = match options.explain.filter(|_| !stopped.load(Ordering::Relaxed)) {
        Some(share) => selecting.explain(share)?,
        None => choose(&selecting.judged, options),
    };
    selecting.finish(best, &first)
}

impl Selecting<'_, '_> {
    fn chosen(&self) -> &Judged {
        &self.judged[choose(&self.judged, self.options)]
    }

    /// Whether the observer ended the selection.
    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// The ranks to begin with.
    fn first_rank(&self) -> Result<Vec<usize>> {
        let shape = self.engine.shape();
        if let Some(share) = self.options.explain {
            let all = (0..self.samples.len()).filter(|&n| self.samples.weight(n) > 0.0).collect();
            return self.spectrum(&[all])?.smallest(self.samples, share);
        }
        let most = self.options.most_rank(shape)?;
        Ok(match self.options.keep {
            Some(keep) => equal_ranks(&most, keep),
            None => {
                self.options.fit.rank_for(shape)?.iter().zip(&most).map(|(&r, &most)| r.min(most)).collect()
            }
        })
    }

    fn spectrum(&self, groups: &[Vec<usize>]) -> Result<Spectrum> {
        Spectrum::new(self.samples, self.engine.backend(), groups)
    }

    /// Judges all numbers of components with these ranks, from the fewest up.
    fn path(&mut self, rank: &[usize], rng: &mut rand_chacha::ChaCha8Rng) -> Result<()> {
        let options = self.options;
        // No fold has fewer samples than components.
        let enough = self.folds.iter().map(|fold| fold.train.n_effective()).min().unwrap_or(1);
        let most = options.most_components.min(enough);
        let least = options.least_components;
        if least > most {
            let expected = "a range that begins with no more than there are samples to fit to";
            let value = format!("{least}..{}", options.most_components);
            return Err(Error::Components { value, expected });
        }
        let mut paths = Vec::new();
        for walker in &mut self.walkers {
            if self.stopped.load(Ordering::Relaxed) {
                break;
            }
            paths.push(walker.path(rank, least, most, rng, self.watch)?);
        }
        if self.is_stopped() && self.judged.is_empty() {
            // Folds that have come to nothing have no say.
            if paths[0].is_empty() {
                paths[0].push(self.walkers[0].begun(rank, least, rng, self.watch)?);
            }
            paths.retain(|path| !path.is_empty());
            self.walkers.truncate(paths.len());
            self.folds = &self.folds[..paths.len()];
        }
        if paths.len() < self.folds.len() {
            return Ok(());
        }
        // Those that every fold has come to, from the fewest up.
        let judged = paths.iter().map(Vec::len).min().unwrap_or(0);
        for at in (0..judged).rev() {
            self.judge(paths.iter().map(|path| path[at].clone()).collect());
        }
        Ok(())
    }

    fn judge(&mut self, worths: Vec<Worth>) {
        let judged = self.judgement(worths);
        self.note(judged);
    }

    /// Takes note of a candidate; of two with the same numbers the better one stays.
    fn note(&mut self, judged: Judged) {
        let criterion = self.options.criterion();
        let Candidate { components, rank, .. } = &judged.candidate;
        match self.position(*components, rank) {
            Some(at) if judged.candidate.cost(criterion) < self.judged[at].candidate.cost(criterion) => {
                self.judged[at] = judged;
            }
            Some(_) => {}
            None => self.judged.push(judged),
        }
    }

    fn judgement(&self, worths: Vec<Worth>) -> Judged {
        Judged::new(worths, self.folds, self.options.criterion())
    }

    /// The candidate at a place with other ranks.
    fn reranked(&mut self, at: usize, rank: &[usize]) -> Result<Judged> {
        let mut worths = Vec::new();
        for (walker, model) in self.walkers.iter_mut().zip(&self.judged[at].models) {
            worths.push(walker.reranked(model, rank)?);
        }
        let judged = self.judgement(worths);
        self.show(&judged);
        Ok(judged)
    }

    /// Report a candidate of other ranks to the observer.
    fn show(&mut self, judged: &Judged) {
        let Candidate { components, log_likelihood, .. } = judged.candidate;
        let step = SearchStep { kind: SearchMove::Rank, count: 1, components, log_likelihood, kept: true };
        let _ = (self.watch)(&step);
    }

    /// Tries ranks beside those of the chosen candidate, a mode at a time, as long as another one is chosen: the ranks that were chosen on the
    /// way.
    fn climb_ranks(&mut self) -> Result<Vec<Vec<usize>>> {
        let keep = self.options.values_kept(self.engine.shape())?;
        let most = self.options.most_rank(self.engine.shape())?;
        let (mut far, mut way) = (true, Vec::new());
        loop {
            let at = choose(&self.judged, self.options);
            let Candidate { components, rank, .. } = self.judged[at].candidate.clone();
            let is_wider = |other: &Vec<usize>| other.iter().zip(&rank).any(|(other, now)| other > now);
            let beside = ranks_beside(&rank, &most, far, keep);
            // Once ranks grow, narrower ones are what was left behind: they are tried if nothing else is left.
            let (first, then): (Vec<_>, Vec<_>) =
                beside.into_iter().partition(|other| way.is_empty() || is_wider(other));
            let mut next = at;
            for others in [first, then] {
                for other in others {
                    if self.position(components, &other).is_none() && !self.is_stopped() {
                        let judged = optional(self.reranked(at, &other))?;
                        self.judged.extend(judged);
                    }
                }
                if self.is_stopped() {
                    return Ok(way);
                }
                next = choose(&self.judged, self.options);
                if next != at {
                    break;
                }
            }
            if next != at {
                way.push(self.judged[next].candidate.rank.clone());
            } else if far {
                far = false;
            } else {
                return Ok(way);
            }
        }
    }

    /// Tries numbers of components beside the chosen one as long as another one is chosen: those that the path has found, with ranks that
    /// grow the same way.
    fn climb_components(&mut self) -> Result<()> {
        loop {
            let at = choose(&self.judged, self.options);
            let components = self.judged[at].candidate.components;
            for other in [components - 1, components + 1] {
                let known = self.position(other, &self.way[self.way.len() - 1]).is_some();
                let Some(begun) = self.position(other, &self.way[0]).filter(|_| !known) else { continue };
                let mut along = || {
                    let mut worths = Vec::new();
                    for (walker, model) in self.walkers.iter_mut().zip(&self.judged[begun].models) {
                        worths.extend(walker.along(model, &self.way[1..])?);
                    }
                    Ok(worths)
                };
                if let Some(worths) = optional(along())? {
                    let judged = self.judgement(worths);
                    self.show(&judged);
                    self.note(judged);
                }
                if self.is_stopped() {
                    return Ok(());
                }
            }
            if choose(&self.judged, self.options) == at {
                return Ok(());
            }
        }
    }

    /// Where the candidate of these numbers is.
    fn position(&self, components: usize, rank: &[usize]) -> Option<usize> {
        self.judged.iter().position(|j| j.candidate.components == components && j.candidate.rank == rank)
    }

    /// The chosen number of components with the smallest cores that explain this share of the variance, in the place it has.
    fn explain(&mut self, share: f64) -> Result<usize> {
        let mut at = choose(&self.judged, self.options);
        let model = self.best_on(&self.judged[at].models)?;
        let mut rank = self.spectrum(&self.groups(&model)?)?.smallest(self.samples, share)?;
        loop {
            if rank != self.judged[at].candidate.rank {
                let judged = self.reranked(at, &rank)?;
                self.judged.push(judged);
                at = self.judged.len() - 1;
            }
            let model = self.best_on(&self.judged[at].models)?;
            if self.explained(&model)? >= share || rank == self.engine.shape() {
                return Ok(at);
            }
            // A core is shrunk towards the mean, and a fit has axes of its own: one more where most is left.
            let scree = self.spectrum(&self.groups(&model)?)?.scree;
            let next = |d: usize| scree[d].get(rank[d]).copied().unwrap_or(f64::NEG_INFINITY);
            let widest = (1..rank.len()).fold(0, |a, d| if next(d) > next(a) { d } else { a });
            rank[widest] += 1;
        }
    }

    /// The share of the variance of all samples that a model explains.
    fn explained(&self, model: &Mixture) -> Result<f64> {
        let pass = AskPass::one(model.clone().into(), Question::SquaredError);
        let errors = self.engine.backend().over(self.samples)?.sums(&pass)?.values;
        let left: f64 = errors.iter().enumerate().map(|(n, e)| self.samples.weight(n) * e).sum();
        let squares = super::passes::moments(self.samples, false)?.variance * self.samples.total_weight();
        Ok(1.0 - left / squares.max(f64::MIN_POSITIVE))
    }

    /// The samples of each component.
    fn groups(&self, model: &Mixture) -> Result<Vec<Vec<usize>>> {
        let pass = AskPass::one(model.clone().into(), Question::Component);
        let components = self.engine.backend().over(self.samples)?.sums(&pass)?.values;
        let mut groups = vec![Vec::new(); model.n_components()];
        for (n, &k) in components.iter().enumerate() {
            if self.samples.weight(n) > 0.0 {
                groups[k as usize].push(n);
            }
        }
        Ok(groups)
    }

    /// Of the models of all folds the one that explains all samples best.
    fn best_on(&self, models: &[Mixture]) -> Result<Mixture> {
        let held = self.engine.backend().over(self.samples)?;
        let mut best: Option<(f64, &Mixture)> = None;
        for model in models {
            let score = if models.len() == 1 { 0.0 } else { model.score(&*held)? };
            if best.is_none_or(|(before, _)| score > before) {
                best = Some((score, model));
            }
        }
        best.map(|(_, model)| model.clone()).ok_or(Error::EmptySet)
    }

    /// The chosen candidate with cores half as large again, where its ranks were given.
    fn beyond(&mut self, best: usize) -> Result<Option<Candidate>> {
        let shape = self.engine.shape();
        let rank = &self.judged[best].candidate.rank;
        let more: Vec<usize> = rank.iter().zip(shape).map(|(&r, &p)| (r + r.div_ceil(2)).min(p)).collect();
        if self.options.chooses_rank() || more == *rank || self.is_stopped() {
            return Ok(None);
        }
        // Out of competition, so that it may fail, and is not recommended where its likelihood has no bound.
        let judged = optional(self.reranked(best, &more))?.filter(|judged| !judged.is_floored());
        Ok(judged.map(|judged| judged.beside(&self.judged[best], self.options.criterion())))
    }

    fn finish(mut self, best: usize, first: &[usize]) -> Result<(Choice, Option<Mixture>)> {
        let options = self.options;
        let beyond = self.beyond(best)?;
        let model = self.best_on(&self.judged[best].models)?;
        let scree = self.spectrum(&self.groups(&model)?)?.scree;
        let chosen = self.judged[best].candidate.clone();
        let mut candidates = choose::table(&self.judged, options.criterion());
        candidates.sort_by(|a, b| a.rank.cmp(&b.rank).then(a.components.cmp(&b.components)));
        let same = |c: &Candidate| c.components == chosen.components && c.rank == chosen.rank;
        let chosen = candidates.iter().position(same).unwrap_or(0);
        let told = Told {
            reached: self.walkers.iter().filter_map(|walker| walker.reached).min(),
            floored: Floored::of(&self.judged),
            stopped: self.is_stopped(),
        };
        let choice = Choice {
            chosen,
            criterion: options.criterion(),
            purpose: options.purpose,
            advice: advice(&candidates, chosen, first, beyond.as_ref(), &told, options),
            beyond,
            scree,
            passes: self.walkers.iter().map(|walker| walker.passes).sum(),
            candidates,
        };
        let anew = !self.way.is_empty() && options.fit.search == Search::Auto && !self.is_stopped();
        Ok((choice, Some(model).filter(|_| !anew)))
    }
}
