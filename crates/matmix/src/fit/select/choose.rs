//! Criteria, which candidate they choose, and what to make of the table.

use super::super::search::STARTS;
use super::SelectOptions;
use super::fold::{Fold, Worth};
use crate::error::sides;
use crate::model::{Candidate, Criterion, Mixture};

/// Candidates that are named one by one, at most.
const NAMED: usize = 3;

/// A candidate with what is known of it on every fold.
pub(super) struct Judged {
    pub(super) candidate: Candidate,
    /// Its model on each fold.
    pub(super) models: Vec<Mixture>,
    /// What every sample held out costs, all folds one after the other, and their weights: −ln p or ‖X − X̂‖², whatever decides.
    losses: Vec<f64>,
    weights: Vec<f64>,
    /// Whether a component has a noise variance at the floor, on any fold.
    floored: bool,
}

impl Judged {
    /// The same candidate on every fold.
    pub(super) fn new(worths: Vec<Worth>, folds: &[Fold<'_>], criterion: Criterion) -> Self {
        let model = &worths[0].model;
        let seen: f64 = folds.iter().map(|fold| fold.train.total_weight()).sum();
        let log_likelihood = worths.iter().map(|w| w.log_likelihood).sum::<f64>();
        let judged = folds.iter().map(Fold::judged);
        let weights: Vec<f64> = judged.flat_map(|part| (0..part.len()).map(|n| part.weight(n))).collect();
        let log_densities: Vec<f64> = worths.iter().flat_map(|w| w.log_densities.clone()).collect();
        let squared_errors: Vec<f64> = worths.iter().flat_map(|w| w.squared_errors.clone()).collect();
        let holds_out = folds.iter().all(|fold| fold.test.is_some());
        let all = (!holds_out).then(|| model.criteria(log_likelihood, worths[0].entropy, seen));
        let squares: f64 = folds.iter().map(|fold| fold.squares).sum();
        let left: f64 = squared_errors.iter().zip(&weights).map(|(e, w)| e * w).sum();
        let candidate = Candidate {
            components: model.n_components(),
            rank: model.rank().to_vec(),
            parameters: model.n_parameters(),
            log_likelihood: log_likelihood / seen,
            held_out: holds_out.then(|| mean(&log_densities, &weights)),
            standard_error: None,
            error: mean(&squared_errors, &weights).sqrt(),
            explained: 1.0 - left / squares.max(f64::MIN_POSITIVE),
            bic: all.map(|c| c.bic),
            aic: all.map(|c| c.aic),
            icl: all.map(|c| c.icl),
        };
        // A likelihood grows without bound as the noise vanishes; an error does not.
        let floored = criterion != Criterion::Error && worths.iter().any(|worth| worth.is_floored);
        let losses = match criterion {
            Criterion::Error => squared_errors,
            _ => log_densities.into_iter().map(|l| -l).collect(),
        };
        Self { candidate, models: worths.into_iter().map(|w| w.model).collect(), losses, weights, floored }
    }

    /// Whether its likelihood has no bound.
    pub(super) fn is_floored(&self) -> bool {
        self.floored
    }

    /// By how much the other is better on the samples held out, and the standard error of that.
    fn behind(&self, other: &Judged) -> (f64, f64) {
        let apart: Vec<f64> = self.losses.iter().zip(&other.losses).map(|(a, b)| a - b).collect();
        let behind = mean(&apart, &self.weights);
        let squares: Vec<f64> = apart.iter().map(|d| (d - behind).powi(2)).collect();
        (behind, (mean(&squares, &self.weights) / worth(&self.weights)).sqrt())
    }

    /// The candidate, with the standard error of its difference from another one.
    pub(super) fn beside(&self, other: &Judged, criterion: Criterion) -> Candidate {
        let error = |error: f64| match criterion {
            // Of e, where the losses are e².
            Criterion::Error => error / (2.0 * other.candidate.error),
            _ => error,
        };
        let standard_error = self.candidate.held_out.map(|_| error(self.behind(other).1));
        Candidate { standard_error, ..self.candidate.clone() }
    }
}

fn mean(values: &[f64], weights: &[f64]) -> f64 {
    values.iter().zip(weights).map(|(v, w)| v * w).sum::<f64>() / weights.iter().sum::<f64>()
}

/// How many samples of equal weight say as much as these (Kish 1965).
fn worth(weights: &[f64]) -> f64 {
    weights.iter().sum::<f64>().powi(2) / weights.iter().map(|w| w * w).sum::<f64>()
}

/// The candidate of least cost; one with a component at the noise floor only if all have one.
fn best(judged: &[Judged], criterion: Criterion) -> usize {
    let cost = |at: usize| {
        let cost = judged[at].candidate.cost(criterion);
        (judged[at].floored, if cost.is_nan() { f64::INFINITY } else { cost })
    };
    (1..judged.len()).fold(0, |a, b| if cost(b) < cost(a) { b } else { a })
}

/// The candidate that the criterion chooses.
pub(super) fn choose(judged: &[Judged], options: &SelectOptions) -> usize {
    let best = best(judged, options.criterion());
    if !options.is_cautious() {
        return best;
    }
    let close = |&at: &usize| {
        let (behind, error) = judged[at].behind(&judged[best]);
        at == best || (behind <= error && judged[at].floored == judged[best].floored)
    };
    let simplest = (0..judged.len()).filter(close).min_by_key(|&at| judged[at].candidate.parameters);
    simplest.unwrap_or(best)
}

/// All candidates, with how sure it is that each is worse than the best.
pub(super) fn table(judged: &[Judged], criterion: Criterion) -> Vec<Candidate> {
    let best = &judged[best(judged, criterion)];
    judged.iter().map(|one| one.beside(best, criterion)).collect()
}

/// Facts for the advice that the table of candidates lacks.
pub(super) struct Told {
    /// Number of components that splits led to, if the path needed more.
    pub(super) reached: Option<usize>,
    /// Candidates with components at the noise floor.
    pub(super) floored: Floored,
    /// Whether the observer ended the selection.
    pub(super) stopped: bool,
}

/// Candidates with a component at the noise floor: whether all have one, and of what components and ranks they are.
pub(super) struct Floored {
    all: bool,
    which: Vec<String>,
}

impl Floored {
    pub(super) fn of(judged: &[Judged]) -> Self {
        let name =
            |one: &Judged| format!("K = {} with {}", one.candidate.components, sides(&one.candidate.rank));
        let which: Vec<String> = judged.iter().filter(|one| one.floored).map(name).collect();
        Self { all: which.len() == judged.len(), which }
    }

    /// The candidates that are left out, and the reason.
    fn in_words(&self) -> Option<String> {
        const REASON: &str =
            "the noise variance of components is at its floor, so that the likelihood has no bound";
        match &self.which[..] {
            [] => None,
            _ if self.all => Some(format!("of no candidate it says much: {REASON}")),
            [one] => Some(format!("{one} is left out: {REASON}")),
            [some @ .., last] if some.len() < NAMED => {
                Some(format!("{} and {last} are left out: {REASON}", some.join(", ")))
            }
            all => Some(format!(
                "{} candidates are left out, {} among them: {REASON}",
                all.len(),
                all[all.len() - 1]
            )),
        }
    }
}

/// What the table says.
pub(super) fn advice(
    candidates: &[Candidate],
    chosen: usize,
    first: &[usize],
    beyond: Option<&Candidate>,
    told: &Told,
    options: &SelectOptions,
) -> String {
    let (best, criterion) = (&candidates[chosen], options.criterion());
    let k = best.components;
    let rank = sides(&best.rank);
    let purpose = options.purpose.map_or_else(String::new, |purpose| format!(" for {purpose}"));
    let by = match criterion {
        Criterion::HeldOut => "by the likelihood of samples held out".to_string(),
        Criterion::Error => {
            format!("by the error of samples held out, {} values kept of each", best.values_kept())
        }
        other => format!("by {}", other.name().to_uppercase()),
    };
    let mut words = vec![format!("K = {k} with cores of {rank} is chosen{purpose} {by}")];
    if let Some(share) = options.explain {
        words.push(format!("no smaller cores explain {} % of the variance", 100.0 * share));
    }
    let most = candidates.iter().map(|c| c.components).max().unwrap_or(k);
    let sure = if options.is_cautious() { "no more than a standard error" } else { "nothing" };
    if options.least_components < options.most_components {
        words.push(match k == most && k == options.most_components {
            true => "more components than were tried may be better still".into(),
            false if k == most => format!("there are too few samples for more than {most} components"),
            false => format!("beyond K = {k} {sure} is gained"),
        });
    }
    if let Some(reached) = told.reached {
        let components = if reached == 1 { "1 component".into() } else { format!("{reached} components") };
        words.push(format!(
            "no split of {components} gained anything: more began at once with k-means, the best of {STARTS} starts"
        ));
    }
    words.extend(told.floored.in_words());
    if told.stopped {
        words.push("stopped before all candidates were judged".into());
    }
    if options.explain.is_none() {
        let other = candidates.iter().find(|c| c.components == k && c.rank == first && c.rank != best.rank);
        words.extend(other.and_then(|other| gained(best, other, criterion)));
    }
    let sure = |beyond: &&Candidate| {
        best.cost(criterion) - beyond.cost(criterion) > beyond.standard_error.unwrap_or(0.0)
    };
    if let Some(gain) = beyond.filter(sure).and_then(|beyond| gained(beyond, best, criterion)) {
        words.push(format!("more rank still helps: {gain}"));
    }
    format!("{}.", words.join("; "))
}

/// What the ranks of one candidate gain over those of another, if they do.
fn gained(one: &Candidate, other: &Candidate, criterion: Criterion) -> Option<String> {
    let gain = other.cost(criterion) - one.cost(criterion);
    let (ours, theirs) = (sides(&one.rank), sides(&other.rank));
    (gain > 0.0).then(|| match criterion {
        Criterion::HeldOut => format!("{ours} gains {gain:.1} nats per sample over {theirs}"),
        Criterion::Error => {
            format!("{ours} has {:.1} % less error than {theirs}", 100.0 * gain / other.error)
        }
        by => format!("{ours} has a {} lower by {gain:.0} than {theirs}", by.name().to_uppercase()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Matrix;
    use crate::model::Component;

    /// A candidate of K components with these values held out.
    fn judged(components: usize, held_out: Vec<f64>) -> Judged {
        let part = Component::new(&[2], vec![0.0; 2], vec![Matrix::identity(2, 1)], 1.0).unwrap();
        let model = Mixture::new(&[2], vec![1.0; components], vec![part; components]).unwrap();
        let weights = vec![1.0; held_out.len()];
        let candidate = Candidate {
            components,
            rank: vec![1],
            parameters: model.n_parameters(),
            log_likelihood: 0.0,
            held_out: Some(mean(&held_out, &weights)),
            standard_error: None,
            error: 1.0,
            explained: 0.0,
            bic: None,
            aic: None,
            icl: None,
        };
        let losses = held_out.iter().map(|l| -l).collect();
        Judged { candidate, models: vec![model], losses, weights, floored: false }
    }

    #[test]
    fn one_standard_error_is_that_of_the_difference() {
        // Samples differ by tens of nats, candidates by one or two on every sample.
        let values =
            |shift: &dyn Fn(usize) -> f64| (0..50).map(|n| 20.0 * (n % 7) as f64 + shift(n)).collect();
        let all = [
            judged(1, values(&|_| 0.0)),
            judged(2, values(&|n| 1.0 + 0.1 * (n % 2) as f64)),
            judged(3, values(&|n| 1.05 + 0.01 + if n % 2 == 0 { 0.5 } else { -0.5 })),
        ];
        let (behind, error) = all[1].behind(&all[2]);
        assert!((behind - 0.01).abs() < 1e-9);
        // The differences are 0.56 and −0.54: a standard deviation of 0.55.
        assert!((error - 0.55 / 50f64.sqrt()).abs() < 1e-9, "{error}");
        let options = SelectOptions::default();
        assert_eq!(choose(&all, &options), 1);
        assert_eq!(choose(&all, &SelectOptions { one_standard_error: false, ..options }), 2);
    }
}
