//! The search of a good optimum: grow from one component by local splits, overshoot, merge down, exchange.
//!
//! Where EM ends depends on where it begins, and no start of K components at once is good everywhere. A search begins with one
//! component and splits those whose own samples gain most from two, to half as many again as are wanted; merges the pairs that lose
//! least; and then exchanges, a split paired with a merge, and breathes, several of both at once, as long as the likelihood rises. What a split gains is known from a
//! few iterations on the samples of one component, what a merge loses from parameters, and for the cheapest pairs from their samples.
//!
//! All of it runs on samples at hand: those of a small set, or some that are fetched by number. The loop goes on from what it finds.
//!
//! | file | what |
//! |---|---|
//! | [`ground`] | the samples, iterations on some of them, and what they cost |
//! | [`split`] | what a split gains |
//! | [`shapes`] | a split of samples that differ in their covariance only |
//! | [`merge`] | what a merge loses |

mod ground;
mod merge;
mod shapes;
mod split;

use rand_chacha::ChaCha8Rng;

pub(in crate::fit) use self::ground::{Climbed, Ground};
pub(in crate::fit) use self::merge::{Losses, Merge, merged};
pub(in crate::fit) use self::split::{Splits, split};
use super::mixture::{About, with_noise};
use super::start;
use super::steps::Watch;
use crate::error::Result;
use crate::model::{Event, Mixture, SearchMove, SearchStep, Searched};
use crate::pass::Engine;

/// A search grows to so many times as many components as are wanted.
const OVERSHOOT: f64 = 1.5;

/// Of the components so far one in so many is split at a time.
const SHARE: usize = 2;

/// Passes over all samples after components were split or merged.
const PASSES: usize = 3;

/// Passes of an exchange before it is judged.
const TRIAL_PASSES: usize = 4;

/// Merges whose loss is measured, while merging down and for an exchange.
const MEASURED: usize = 4;
const MEASURED_FOR_EXCHANGE: usize = 5;

/// Exchanges of a search: many, and also such as lose at first, which iterations make good.
pub(in crate::fit) const EXCHANGES: Patience = Patience { exchanges: 12, failures: 2, worth_trying: 0.6 };

/// How long a search goes on exchanging.
#[derive(Debug, Clone, Copy)]
pub(in crate::fit) struct Patience {
    /// Exchanges at most.
    pub(in crate::fit) exchanges: usize,
    /// Failures in a row after which there are no more.
    pub(in crate::fit) failures: usize,
    /// An exchange is tried if its split is expected to gain this share of what its merge loses.
    pub(in crate::fit) worth_trying: f64,
}

/// An exchange that gains no more than this share of the log-likelihood has found the same components again: which of the two is better would
/// be a matter of rounding, and of the unit of the data.
const ROUNDING: f64 = 1e-9;

/// Breaths at most; each splits one component in so many, and takes so many passes before as many are merged. One is kept if it raises
/// the log-likelihood by this share: it costs as much as several exchanges.
const BREATHS: usize = 4;
const BREATH: usize = 3;
const BREATH_PASSES: usize = 2;
const BREATH_GAIN: f64 = 1e-5;

/// The samples a search runs on, in all and per component, unless the set has fewer than twice as many.
const SAMPLES: usize = 4096;
const SAMPLES_PER_COMPONENT: usize = 100;

/// Starts of all components at once, where splits do not lead to enough of them: the best of several k-means.
pub(in crate::fit) const STARTS: usize = 3;

/// How many samples of a large set a search for so many components runs on.
pub(super) fn n_samples(engine: &dyn Engine, components: usize) -> usize {
    let wanted = SAMPLES.max(SAMPLES_PER_COMPONENT * components);
    match engine.local().filter(|samples| !samples.is_read_ahead()) {
        Some(_) => wanted,
        None => start::affordable(engine, wanted, components),
    }
}

/// The initial model of a restart, the record of its search, and the event to report. `None` if the observer ended the search.
pub(super) fn search(
    about: &About<'_>,
    rng: &mut ChaCha8Rng,
    watch: &mut Watch<'_>,
) -> Result<Option<(Mixture, Searched, Option<Event>)>> {
    let (engine, wanted) = (about.engine, about.options.components);
    let few = n_samples(engine, wanted);
    // A set that is little larger is not worth leaving samples out.
    let count = if engine.len() < 2 * few { engine.len() } else { few };
    let samples = start::at_hand(engine, count, rng)?;
    let ground = Ground::new(about, &samples);
    let mut searching = Searching::new(&ground, rng, watch);
    let now = searching.begin(about)?;
    let mut now = searching.grow(now, overshoot(wanted, samples.n_effective(), &ground))?;
    let reached = now.model.n_components();
    let mut event = None;
    if reached < wanted && !searching.stopped {
        now = searching.at_once(wanted)?;
        event = Some(Event::AtOnce { reached, components: wanted, starts: STARTS });
    }
    let now = searching.merge_down(now, wanted)?;
    let now = searching.exchange(now, EXCHANGES)?;
    let now = searching.breathe(now)?;
    let Searching { steps, stopped, .. } = searching;
    if stopped {
        return Ok(None);
    }
    let passes = ground.passes(wanted, engine.len());
    Ok(Some((now.model, Searched { samples: samples.len(), passes, steps }, event)))
}

/// The largest number of components of a search.
fn most_components(wanted: usize) -> usize {
    (OVERSHOOT * wanted as f64).ceil() as usize
}

/// How many components to grow to: no more than the samples allow.
pub(in crate::fit) fn overshoot(wanted: usize, samples: usize, ground: &Ground<'_>) -> usize {
    most_components(wanted).min(samples / (2 * ground.least_members())).max(wanted)
}

/// A search under way: what it remembers, and what it has done.
pub(in crate::fit) struct Searching<'a, 'r, 'w> {
    ground: &'a Ground<'a>,
    rng: &'r mut ChaCha8Rng,
    splits: Splits,
    losses: Losses,
    pub(in crate::fit) steps: Vec<SearchStep>,
    watch: &'r mut Watch<'w>,
    /// Whether whoever watches has had enough.
    pub(in crate::fit) stopped: bool,
}

impl<'a, 'r, 'w> Searching<'a, 'r, 'w> {
    pub(in crate::fit) fn new(
        ground: &'a Ground<'a>,
        rng: &'r mut ChaCha8Rng,
        watch: &'r mut Watch<'w>,
    ) -> Self {
        let (splits, losses, steps) = (Splits::default(), Losses::default(), Vec::new());
        Self { ground, rng, splits, losses, steps, watch, stopped: false }
    }

    /// One component.
    pub(in crate::fit) fn begin(&mut self, about: &About<'_>) -> Result<Climbed> {
        let ground = self.ground;
        let held = ground.backend.over(ground.samples)?;
        let floor = ground.constraints.noise_floor;
        let one = start::k_means(
            &*held,
            1,
            ground.rank,
            floor,
            ground.moments,
            start::Effort::for_start(1),
            self.rng,
        )?;
        let now = ground.climb(with_noise(one, about.options)?, PASSES)?;
        self.note(SearchMove::Begin, 1, &now, true);
        Ok(now)
    }

    /// Initialize all components at once, with the best of [`STARTS`] k-means starts: used where splits lead to fewer components. The best
    /// has the most components of enough samples, then the largest likelihood.
    pub(in crate::fit) fn at_once(&mut self, components: usize) -> Result<Climbed> {
        let ground = self.ground;
        let held = ground.backend.over(ground.samples)?;
        let floor = ground.constraints.noise_floor;
        let effort = start::Effort::for_start(components);
        let least = ground.least_members();
        let mut best: Option<(usize, Climbed)> = None;
        for _ in 0..STARTS {
            let start =
                start::k_means(&*held, components, ground.rank, floor, ground.moments, effort, self.rng)?;
            ground.count_distances(ground.samples.len() * effort.distances(components));
            let now = ground.climb(with_noise(start, ground.options)?, PASSES)?;
            let large = now.groups(ground.samples).iter().filter(|group| group.len() >= least).count();
            let is_better = |(most, best): &(usize, Climbed)| {
                large > *most || (large == *most && now.log_likelihood > best.log_likelihood)
            };
            if best.as_ref().is_none_or(is_better) {
                best = Some((large, now));
            }
        }
        let Some((_, now)) = best else { unreachable!("there is a start") };
        self.note(SearchMove::Begin, components, &now, true);
        Ok(now)
    }

    /// Splits the components that gain most, a share of them at a time, until there are so many or none gains anything.
    pub(in crate::fit) fn grow(&mut self, mut now: Climbed, components: usize) -> Result<Climbed> {
        while now.model.n_components() < components && !self.stopped {
            let k = now.model.n_components();
            let mut splits = self.splits.all(self.ground, &now, self.rng)?;
            splits.truncate((components - k).min((k / SHARE).max(1)));
            if splits.is_empty() {
                break;
            }
            now = self.ground.climb(split(&now.model, &splits), PASSES)?;
            self.note(SearchMove::Split, splits.len(), &now, true);
        }
        Ok(now)
    }

    /// Merges the pairs that lose least until so many components are left; samples stay where they are meanwhile.
    pub(in crate::fit) fn merge_down(&mut self, mut now: Climbed, components: usize) -> Result<Climbed> {
        let merges = now.model.n_components().saturating_sub(components);
        if merges > 0 && !self.stopped {
            now = self.narrowed(now, components)?;
            self.note(SearchMove::Merge, merges, &now, true);
        }
        Ok(now)
    }

    fn narrowed(&mut self, mut now: Climbed, components: usize) -> Result<Climbed> {
        while now.model.n_components() > components {
            let Some(merge) = self.merges(&now, MEASURED)?.into_iter().min_by(by_loss) else { break };
            now = merged(&now, &merge, self.ground);
        }
        self.ground.climb(now.model, PASSES)
    }

    /// The cheapest merges, measured.
    fn merges(&mut self, now: &Climbed, count: usize) -> Result<Vec<Merge>> {
        self.losses.cheapest(self.ground, now, count)
    }

    /// A split and a merge at a time, kept if the likelihood has risen after a few iterations.
    pub(in crate::fit) fn exchange(&mut self, mut now: Climbed, patience: Patience) -> Result<Climbed> {
        let (mut tried, mut failures): (Vec<(usize, [usize; 2])>, _) = (Vec::new(), 0);
        for _ in 0..patience.exchanges {
            if self.stopped {
                break;
            }
            let splits = self.splits.all(self.ground, &now, self.rng)?;
            let merges = self.merges(&now, MEASURED_FOR_EXCHANGE)?;
            let candidates = merges.iter().flat_map(|merge| splits.iter().map(move |split| (split, merge)));
            let promising = candidates.filter(|(split, merge)| {
                !merge.pair.contains(&split.component)
                    && split.gain >= patience.worth_trying * merge.loss
                    && !tried.contains(&(split.component, merge.pair))
            });
            let best = promising.max_by(|a, b| (a.0.gain - a.1.loss).total_cmp(&(b.0.gain - b.1.loss)));
            let Some((split, merge)) = best else { break };
            let model = exchanged(&now.model, split, merge);
            let after = self.ground.climb(model, TRIAL_PASSES)?;
            let kept =
                after.log_likelihood > now.log_likelihood + ROUNDING * self.ground.size(now.log_likelihood);
            self.note(SearchMove::Exchange, 1, &after, kept);
            if kept {
                (now, failures) = (after, 0);
                tried.clear();
            } else {
                tried.push((split.component, merge.pair));
                failures += 1;
                if failures == patience.failures {
                    break;
                }
            }
        }
        Ok(now)
    }

    /// Several splits at once and as many merges, as long as the likelihood rises: what no single exchange can change.
    pub(in crate::fit) fn breathe(&mut self, mut now: Climbed) -> Result<Climbed> {
        let components = now.model.n_components();
        for _ in 0..if components > BREATH { BREATHS } else { 0 } {
            if self.stopped {
                break;
            }
            let mut splits = self.splits.all(self.ground, &now, self.rng)?;
            splits.truncate(components / BREATH);
            if splits.is_empty() {
                break;
            }
            let wide = self.ground.climb(split(&now.model, &splits), BREATH_PASSES)?;
            let after = self.narrowed(wide, components)?;
            let kept = after.log_likelihood
                > now.log_likelihood + BREATH_GAIN * self.ground.size(now.log_likelihood);
            self.note(SearchMove::Breathe, splits.len(), &after, kept);
            if !kept {
                break;
            }
            now = after;
        }
        Ok(now)
    }

    fn note(&mut self, kind: SearchMove, count: usize, after: &Climbed, kept: bool) {
        let log_likelihood = after.log_likelihood / self.ground.samples.total_weight();
        let components = after.model.n_components();
        let step = SearchStep { kind, count, components, log_likelihood, kept };
        self.stopped |= (self.watch)(&step).is_break();
        self.steps.push(step);
    }
}

fn by_loss(a: &Merge, b: &Merge) -> std::cmp::Ordering {
    a.loss.total_cmp(&b.loss)
}

/// The model with one component split and two others merged.
fn exchanged(model: &Mixture, split: &self::split::Split, merge: &Merge) -> Mixture {
    let (mut weights, mut components) = (model.weights().to_vec(), model.components().to_vec());
    let (k, [i, j]) = (split.component, merge.pair);
    components[i] = merge.one.clone();
    weights[i] += weights[j];
    let [first, second] = [0, 1].map(|at| (split.two.components()[at].clone(), split.two.weights()[at]));
    weights[j] = weights[k] * second.1;
    weights[k] *= first.1;
    (components[k], components[j]) = (first.0, second.0);
    model.with_components(weights, components)
}
