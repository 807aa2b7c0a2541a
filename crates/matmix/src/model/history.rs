//! What happened during a fit.

use std::mem::discriminant;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::Choice;
use crate::error::sides;
use crate::options::choices;

choices! {
    /// Why a fit ended. None of them loses the model.
    ///
    /// ```
    /// use matmix::{FitOptions, Samples, StopReason, fit};
    ///
    /// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
    /// let samples = Samples::from_vec(&[4, 3], numbers)?;
    /// let few = FitOptions { rank: vec![1], max_iter: 2, tol: 0.0, ..FitOptions::default() };
    /// assert_eq!(fit(&samples, &few)?.stop(), StopReason::MaxIterations);
    /// let enough = FitOptions { max_iter: 100, tol: 1e-6, ..few };
    /// assert_eq!(fit(&samples, &enough)?.stop().name(), "converged");
    /// # Ok::<(), matmix::Error>(())
    /// ```
    pub enum StopReason {
        /// The change of an iteration was small enough.
        #[default]
        Converged = "converged",
        /// The last iteration allowed was still changing the model.
        MaxIterations = "max_iterations",
        /// The callback asked to stop.
        Stopped = "stopped",
    }
}

impl StopReason {
    /// The warning of a fit that ended before it converged, in the words of the command line, the report and Python.
    pub fn warning(self) -> Option<&'static str> {
        match self {
            Self::Converged => None,
            Self::MaxIterations => Some(
                "the fit has not converged: its last iteration still changed the model; more iterations (max_iter) or a \
                 larger tolerance (tol) end it",
            ),
            Self::Stopped => Some("the fit was stopped before it converged"),
        }
    }
}

/// Something a user should know about a fit.
///
/// ```
/// use matmix::{Event, FitOptions, Samples, fit};
///
/// // Thirty equal samples leave nothing over for the noise.
/// let samples = Samples::from_vec(&[4, 3], vec![1.0; 360])?;
/// let fitted = fit(&samples, &FitOptions { rank: vec![1], ..FitOptions::default() })?;
/// assert!(fitted.history.events.contains(&Event::NoiseAtFloor { component: 0 }));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// Splits led to fewer components than requested: all components began at once, with k-means.
    AtOnce {
        /// Number of components that splits led to.
        reached: usize,
        /// Number of components of the fit.
        components: usize,
        /// Number of k-means starts; the best was kept.
        starts: usize,
    },
    /// A component without samples was moved to one half of a large one.
    Moved {
        /// After which iteration.
        iteration: usize,
        /// Which component.
        component: usize,
        /// The component that was split.
        split: usize,
    },
    /// A component that the data do not support was removed: it has the weight 0 from then on. The log-likelihood may fall in this iteration.
    Removed {
        /// After which iteration.
        iteration: usize,
        /// Which component.
        component: usize,
        /// Its effective size before, in samples.
        size: f64,
    },
    /// At the end, a component has too few samples to determine its loadings; they were held.
    Starved {
        /// Which component.
        component: usize,
        /// N_k.
        weight: f64,
    },
    /// At the end, a component's noise variance is at its floor.
    NoiseAtFloor {
        /// Which component.
        component: usize,
    },
    /// The cells were observed too seldom to separate noise from differences between cells: the noise variances are bounded by the spread of
    /// all values, and imputed values have no basis.
    SeldomObserved {
        /// Mean number of samples that observed a cell, over all cells observed at all; less than 2.
        observations: f64,
    },
    /// At the end, the default rank keeps little of the variance.
    DefaultRank {
        /// The default rank.
        rank: Vec<usize>,
        /// The share of the variance of the samples that the model keeps.
        kept: f64,
        /// Half of each side.
        half: Vec<usize>,
        /// About the share that cores of that size would keep, with a single component.
        half_keeps: f64,
    },
    /// At the end, the last columns of a mode explain no more than noise would, in every component.
    #[serde(rename = "redundant_columns")]
    DeadColumns {
        /// The mode, counted from 0.
        mode: usize,
        /// Its rank.
        rank: usize,
        /// How many of its columns are above the noise.
        needed: usize,
    },
    /// Columns of a mode that explained no more than noise would were dropped, and the fit went on.
    #[serde(rename = "pruned_columns")]
    Pruned {
        /// The mode, counted from 0.
        mode: usize,
        /// Its rank before.
        from: usize,
        /// Its rank from then on.
        to: usize,
    },
    /// The state of the fit could not be kept: the fit went on, and a kill would have lost what came after the last state that was.
    NotKept {
        /// After which iteration, for the first time.
        iteration: usize,
        /// What the system said.
        problem: String,
    },
}

impl Event {
    /// The component of the event, if it concerns a single one.
    pub fn component(&self) -> Option<usize> {
        match self {
            Self::Moved { component, .. }
            | Self::Removed { component, .. }
            | Self::Starved { component, .. }
            | Self::NoiseAtFloor { component } => Some(*component),
            Self::AtOnce { .. }
            | Self::SeldomObserved { .. }
            | Self::DefaultRank { .. }
            | Self::DeadColumns { .. }
            | Self::Pruned { .. }
            | Self::NotKept { .. } => None,
        }
    }

    /// Whether a user has to know before relying on the result; all other events are remarks.
    pub fn is_warning(&self) -> bool {
        match self {
            Self::Removed { .. }
            | Self::Starved { .. }
            | Self::NoiseAtFloor { .. }
            | Self::SeldomObserved { .. }
            | Self::NotKept { .. } => true,
            Self::AtOnce { .. }
            | Self::Moved { .. }
            | Self::DefaultRank { .. }
            | Self::DeadColumns { .. }
            | Self::Pruned { .. } => false,
        }
    }

    /// The event as a sentence, the same on the command line, in the report and in Python.
    ///
    /// ```
    /// let event = matmix::Event::NoiseAtFloor { component: 3 };
    /// assert!(event.in_words().starts_with("noise variance at its floor in component 3: "));
    /// ```
    pub fn in_words(&self) -> String {
        self.sentence(&listed(&[self.detail()]))
    }

    /// The component in a list of those with the same event, with its own figure if it has one.
    pub(crate) fn detail(&self) -> String {
        match self {
            Self::Starved { component, weight: size } | Self::Removed { component, size, .. } => {
                format!("{component} ({size:.1} samples)")
            }
            other => other.component().map(|k| k.to_string()).unwrap_or_default(),
        }
    }

    /// The event in words; `components` names the component or components that it concerns.
    pub(crate) fn sentence(&self, components: &str) -> String {
        match self {
            Self::AtOnce { reached, components, starts } => format!(
                "no split gained likelihood at K = {reached}: all {components} components began with k-means, the best of \
                 {starts} starts"
            ),
            Self::Moved { iteration, split, .. } => {
                format!(
                    "no samples in {components} after iteration {iteration}: moved to one half of component {split}"
                )
            }
            Self::Removed { .. } => format!(
                "too little support in the data for {components}: removed, with weight 0; fewer components describe \
                 these data as well"
            ),
            Self::Starved { .. } => format!(
                "too few samples to determine the loadings of {components}: fewer components or smaller ranks have enough"
            ),
            Self::NoiseAtFloor { .. } => format!(
                "noise variance at its floor in {components}: the fit of those samples is all but exact, and their \
                 log-likelihood is not reliable"
            ),
            Self::SeldomObserved { observations } => format!(
                "a cell was observed {observations:.1} times on average: noise variances are bounded by the spread of all values, \
                 and imputed values have no basis"
            ),
            Self::DefaultRank { rank, kept, half, half_keeps } => format!(
                "cores of {}, the default, keep {:.0} % of the variance; cores of {} (rank) would keep about {:.0} %",
                sides(rank),
                100.0 * kept,
                sides(half),
                100.0 * half_keeps
            ),
            Self::DeadColumns { mode, rank, needed } => format!(
                "of the {rank} columns of mode {mode} only {needed} explain more than noise would; pruning (prune) drops the \
                 others"
            ),
            Self::Pruned { mode, from, to } => format!(
                "mode {mode} began with {from} columns; all but {to} explained no more than noise and were dropped"
            ),
            Self::NotKept { iteration, problem } => format!(
                "no checkpoint could be written from iteration {iteration} on: {problem}; the model is complete"
            ),
        }
    }
}

/// `component 3`, `components 3, 5 and 8`; of many the first eight.
fn listed(components: &[String]) -> String {
    const SHOWN: usize = 8;
    match components {
        [one] => format!("component {one}"),
        all if all.len() > SHOWN + 1 => {
            format!("components {} and {} others", all[..SHOWN].join(", "), all.len() - SHOWN)
        }
        [some @ .., last] => format!("components {} and {last}", some.join(", ")),
        [] => String::new(),
    }
}

/// Events as they are stored. An event of a later version is left out: the rest of the history is worth reading.
fn events<'de, D: Deserializer<'de>>(stored: D) -> Result<Vec<Event>, D::Error> {
    let stored = Vec::<Value>::deserialize(stored)?;
    Ok(stored.into_iter().filter_map(|event| serde_json::from_value(renamed(event)).ok()).collect())
}

/// Earlier versions counted the modes of these two events from 1, and called them otherwise.
fn renamed(mut event: Value) -> Value {
    let name = match event["event"].as_str() {
        Some("dead_columns") => "redundant_columns",
        Some("pruned") => "pruned_columns",
        _ => return event,
    };
    event["event"] = name.into();
    event["mode"] = event["mode"].as_u64().map(|mode| mode.saturating_sub(1)).into();
    event
}

/// Log-likelihood and reconstruction error over the iterations; entry 0 is the start.
///
/// ```
/// use matmix::{FitOptions, Samples, fit};
///
/// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
/// let samples = Samples::from_vec(&[4, 3], numbers)?;
/// let options = FitOptions { components: 2, rank: vec![2, 1], max_iter: 10, tol: 0.0, ..FitOptions::default() };
/// let history = fit(&samples, &options)?.history;
/// assert_eq!((history.n_iterations(), history.log_likelihood.len()), (10, 11));
/// // It never falls, but for the last digits.
/// assert!(history.log_likelihood.windows(2).all(|pair| pair[1] >= pair[0] - 1e-9));
/// assert!(history.samples == 30 && history.passes >= 11.0 && history.samples_per_second().is_some());
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct History {
    /// The mean log-likelihood per sample, of all samples, of the model after t iterations over all samples.
    pub log_likelihood: Vec<f64>,
    /// e(t) of the model after t iterations over all samples.
    pub reconstruction_error: Vec<f64>,
    /// The iterations before those, over parts of the samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub early: Vec<Early>,
    /// What was done to find the start, if it was searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Searched>,
    /// What components and ranks were chosen from, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// How many samples a pass over the whole set reads.
    #[serde(default)]
    pub samples: usize,
    /// Passes over the whole set, those of a search and of all restarts included: one over a part counts as its share.
    #[serde(default)]
    pub passes: f64,
    /// What a user should know.
    #[serde(default, deserialize_with = "events")]
    pub events: Vec<Event>,
    /// Why the fit ended; absent in a checkpoint.
    #[serde(default)]
    pub stop: Option<StopReason>,
    /// Which of the restarts this is, counted from 0.
    #[serde(default)]
    pub restart: usize,
    /// How long the fit took, with all its restarts, and before it was interrupted and gone on with.
    #[serde(default)]
    pub seconds: f64,
}

choices! {
    /// What a search did.
    ///
    /// ```
    /// use matmix::{FitOptions, Samples, Search, SearchMove, fit};
    ///
    /// // Three groups of forty.
    /// let numbers: Vec<f64> = (0..1440).map(|i| f64::from((i * 37) % 101 + i / 480 * 500)).collect();
    /// let samples = Samples::from_vec(&[4, 3], numbers)?;
    /// let options = FitOptions { components: 3, rank: vec![1], search: Search::Auto, ..FitOptions::default() };
    /// let steps = fit(&samples, &options)?.history.search.unwrap().steps;
    /// assert_eq!(steps[0].kind, SearchMove::Begin);
    /// assert!(steps.iter().any(|step| step.kind == SearchMove::Split && step.kept));
    /// # Ok::<(), matmix::Error>(())
    /// ```
    pub enum SearchMove {
        /// It began: with one component, or with all at once where splits led to fewer.
        #[default]
        Begin = "begin",
        /// Components were split in two.
        Split = "split",
        /// Pairs of components were merged.
        Merge = "merge",
        /// One was split and two were merged.
        Exchange = "exchange",
        /// Several were split, and as many pairs merged.
        Breathe = "breathe",
        /// A selection tried other ranks.
        Rank = "rank",
    }
}

/// One step of a search.
///
/// ```
/// use matmix::{FitOptions, Samples, Search, fit};
///
/// let numbers: Vec<f64> = (0..1440).map(|i| f64::from((i * 37) % 101 + i / 480 * 500)).collect();
/// let samples = Samples::from_vec(&[4, 3], numbers)?;
/// let options = FitOptions { components: 3, rank: vec![1], search: Search::Auto, ..FitOptions::default() };
/// let steps = fit(&samples, &options)?.history.search.unwrap().steps;
/// // From one component to as many as were asked for.
/// let kept: Vec<usize> = steps.iter().filter(|step| step.kept).map(|step| step.components).collect();
/// assert_eq!((kept.first(), kept.last()), (Some(&1), Some(&3)));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchStep {
    /// What it did.
    #[serde(rename = "move")]
    pub kind: SearchMove,
    /// To how many components or pairs.
    pub count: usize,
    /// How many components there were afterwards.
    pub components: usize,
    /// The mean log-likelihood per sample of the search after a few iterations.
    pub log_likelihood: f64,
    /// Whether it was kept.
    pub kept: bool,
}

/// How a start was searched for.
///
/// ```
/// use matmix::{FitOptions, Samples, Search, fit};
///
/// let numbers: Vec<f64> = (0..1440).map(|i| f64::from((i * 37) % 101 + i / 480 * 500)).collect();
/// let samples = Samples::from_vec(&[4, 3], numbers)?;
/// let options = FitOptions { components: 3, rank: vec![1], search: Search::Auto, ..FitOptions::default() };
/// let history = fit(&samples, &options)?.history;
/// let searched = history.search.unwrap();
/// let [split, merged, _] = searched.counts();
/// assert_eq!((searched.samples, 1 + split - merged), (120, 3));
/// assert!(searched.passes < history.passes && searched.gain() >= 0.0);
/// assert!(searched.in_words().starts_with(&format!("{split} splits, {merged} merge")));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Searched {
    /// How many samples it ran on.
    pub samples: usize,
    /// Passes over the whole set that it cost: those of fewer components, or over fewer samples, count as their share.
    pub passes: f64,
    /// What it did, in order.
    pub steps: Vec<SearchStep>,
}

impl Searched {
    const EXCHANGES: &[SearchMove] = &[SearchMove::Exchange, SearchMove::Breathe];

    /// How many components were split, pairs merged and exchanges kept; a breath is as many exchanges as it split components.
    pub fn counts(&self) -> [usize; 3] {
        let count = |kinds: &[SearchMove]| {
            let steps = self.steps.iter().filter(|step| kinds.contains(&step.kind) && step.kept);
            steps.map(|step| step.count).sum()
        };
        [&[SearchMove::Split][..], &[SearchMove::Merge], Self::EXCHANGES].map(count)
    }

    /// What was done, what it gained and what it cost, as a user reads it.
    pub fn in_words(&self) -> String {
        let [splits, merges, exchanges] = self.counts();
        let several =
            |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        format!(
            "{}, {}, {} that gained {:.2} per sample, for {:.1} of the passes",
            several(splits, "split"),
            several(merges, "merge"),
            several(exchanges, "exchange"),
            self.gain(),
            self.passes,
        )
    }

    /// What the exchanges gained, in mean log-likelihood per sample.
    pub fn gain(&self) -> f64 {
        let last = |exchanges: bool| {
            let mut kept =
                self.steps.iter().filter(|s| s.kept && (exchanges || !Self::EXCHANGES.contains(&s.kind)));
            kept.next_back().map_or(0.0, |s| s.log_likelihood)
        };
        last(true) - last(false)
    }
}

/// Iterations over a part of the samples.
///
/// ```
/// use matmix::{Early, History};
///
/// // One iteration over a quarter of the samples, and two over all of them.
/// let early = Early { share: 0.25, log_likelihood: vec![-9.0, -8.0], reconstruction_error: vec![3.0, 2.5] };
/// let history = History {
///     early: vec![early],
///     log_likelihood: vec![-8.1, -7.9, -7.8],
///     reconstruction_error: vec![2.6, 2.4, 2.3],
///     ..History::default()
/// };
/// assert_eq!(history.n_iterations(), 3);
/// assert_eq!(history.stages().collect::<Vec<_>>(), [(0.25, 1), (1.0, 2)]);
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Early {
    /// The share of the samples.
    pub share: f64,
    /// The mean log-likelihood per sample of that part; entry 0 is the model the stage began with.
    pub log_likelihood: Vec<f64>,
    /// e(t) of that part.
    pub reconstruction_error: Vec<f64>,
}

impl History {
    /// The sentences a user has to know before relying on the result: the events that are warnings, components with the same
    /// event in one sentence. [`StopReason::warning`] has that of a fit that has not converged.
    ///
    /// ```
    /// use matmix::{Event, History};
    ///
    /// let events = [1, 4].map(|component| Event::NoiseAtFloor { component }).to_vec();
    /// let history = History { events, ..History::default() };
    /// let [warning] = &history.warnings()[..] else { panic!("one sentence") };
    /// assert!(warning.starts_with("noise variance at its floor in components 1 and 4: "));
    /// ```
    pub fn warnings(&self) -> Vec<String> {
        self.sentences(true)
    }

    /// The other events as sentences.
    pub fn remarks(&self) -> Vec<String> {
        self.sentences(false)
    }

    fn sentences(&self, warnings: bool) -> Vec<String> {
        let mut groups: Vec<(&Event, Vec<String>)> = Vec::new();
        for event in self.events.iter().filter(|event| event.is_warning() == warnings) {
            let same = |other: &Event| discriminant(other) == discriminant(event);
            match groups.iter_mut().find(|(first, _)| warnings && event.component().is_some() && same(first))
            {
                Some((_, components)) => components.push(event.detail()),
                None => groups.push((event, vec![event.detail()])),
            }
        }
        groups.iter().map(|(event, components)| event.sentence(&listed(components))).collect()
    }

    /// The number of iterations, those over parts of the samples included.
    pub fn n_iterations(&self) -> usize {
        self.stages().map(|(_, iterations)| iterations).sum()
    }

    /// How many samples were read per second, if it is known how long the fit took.
    pub fn samples_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.samples as f64 * self.passes / self.seconds)
    }

    /// The iterations by the share of the samples they saw, in the order of the fit: the last are those over all samples.
    pub fn stages(&self) -> impl Iterator<Item = (f64, usize)> {
        let early = self.early.iter().map(|early| (early.share, &early.reconstruction_error));
        let series = early.chain([(1.0, &self.reconstruction_error)]);
        series.map(|(share, evaluated)| (share, evaluated.len().saturating_sub(1)))
    }

    /// Whether the start has been evaluated.
    pub(crate) fn has_begun(&self) -> bool {
        !(self.early.is_empty() && self.reconstruction_error.is_empty())
    }

    /// Takes note of a model that was evaluated on a share of the samples.
    pub(crate) fn push(&mut self, share: f64, log_likelihood: f64, reconstruction_error: f64) {
        let (likelihoods, errors) = if share == 1.0 {
            (&mut self.log_likelihood, &mut self.reconstruction_error)
        } else {
            if self.early.last().is_none_or(|early| early.share != share) {
                self.early.push(Early { share, ..Early::default() });
            }
            let at = self.early.len() - 1;
            let early = &mut self.early[at];
            (&mut early.log_likelihood, &mut early.reconstruction_error)
        };
        // A model without a likelihood has a history without one.
        if !log_likelihood.is_nan() {
            likelihoods.push(log_likelihood);
        }
        errors.push(reconstruction_error);
    }

    /// Forgets the evaluation of the last iteration over all samples: its model was changed.
    pub(crate) fn pop(&mut self) {
        self.log_likelihood.pop();
        self.reconstruction_error.pop();
    }

    /// Log-likelihood and error of the model that was evaluated last.
    pub(crate) fn last(&self) -> (f64, f64) {
        let last = |x: &[f64]| x.last().copied().unwrap_or(f64::NAN);
        match self.early.last().filter(|_| self.reconstruction_error.is_empty()) {
            Some(early) => (last(&early.log_likelihood), last(&early.reconstruction_error)),
            None => (last(&self.log_likelihood), last(&self.reconstruction_error)),
        }
    }

    /// What the last iteration over a part of the samples gained.
    pub(crate) fn early_gain(&self) -> Option<f64> {
        match self.early.last()?.log_likelihood[..] {
            [.., before, now] => Some(now - before),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_with_the_same_event_share_a_sentence() {
        let floors = (0..12).map(|component| Event::NoiseAtFloor { component });
        let starved = [(2, 1.04), (5, 3.0)].map(|(component, weight)| Event::Starved { component, weight });
        let moved = [1, 2].map(|component| Event::Moved { iteration: 3, component, split: 0 });
        let events = floors.chain(starved).chain(moved).collect();
        let history = History { events, ..History::default() };
        let [floor, starved] = &history.warnings()[..] else { panic!("{:?}", history.warnings()) };
        assert!(floor.contains("in components 0, 1, 2, 3, 4, 5, 6, 7 and 4 others: "), "{floor}");
        assert!(starved.contains("components 2 (1.0 samples) and 5 (3.0 samples): "), "{starved}");
        let [first, second] = &history.remarks()[..] else { panic!("{:?}", history.remarks()) };
        assert!(
            first.contains("no samples in component 1 after iteration 3: moved to one half of component 0"),
            "{first}"
        );
        assert!(second.contains("component 2 "), "{second}");
    }

    #[test]
    fn modes_count_from_0_also_those_of_older_files() {
        let old = r#"{ "log_likelihood": [], "reconstruction_error": [], "events": [
            { "event": "dead_columns", "mode": 1, "rank": 6, "needed": 3 }, { "event": "pruned", "mode": 2, "from": 6, "to": 3 },
            { "event": "of_a_later_version", "component": 3 }, { "event": "noise_at_floor", "component": 0 } ] }"#;
        let history: History = serde_json::from_str(old).unwrap();
        let redundant = Event::DeadColumns { mode: 0, rank: 6, needed: 3 };
        let events =
            [redundant, Event::Pruned { mode: 1, from: 6, to: 3 }, Event::NoiseAtFloor { component: 0 }];
        assert_eq!(history.events, events);
        assert!(history.remarks()[0].starts_with("of the 6 columns of mode 0 only 3 "));
        let now = serde_json::to_string(&history).unwrap();
        assert_eq!(serde_json::from_str::<History>(&now).unwrap(), history);
        assert!(now.contains("redundant_columns") && now.contains("pruned_columns"));
    }

    #[test]
    fn only_convergence_needs_no_warning() {
        assert_eq!(StopReason::Converged.warning(), None);
        assert!(StopReason::MaxIterations.warning().unwrap().contains("not converged"));
        assert!(StopReason::Stopped.warning().is_some());
    }
}
