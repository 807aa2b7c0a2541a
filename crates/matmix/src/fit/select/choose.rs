//! Criteria, and which candidate they choose.

use super::fold::{Fold, Worth};
use super::{Candidate, Criterion, SelectOptions};
use crate::error::sides;
use crate::model::Mixture;

/// A candidate with what is known of it on every fold.
pub(super) struct Judged {
    pub(super) candidate: Candidate,
    /// Its model on each fold.
    pub(super) models: Vec<Mixture>,
    /// ln p of every sample held out, all folds one after the other, and their weights.
    held_out: Vec<f64>,
    weights: Vec<f64>,
}

impl Judged {
    /// The same candidate on every fold.
    pub(super) fn new(worths: Vec<Worth>, folds: &[Fold<'_>]) -> Self {
        let model = &worths[0].model;
        let seen: f64 = folds.iter().map(|fold| fold.train.total_weight()).sum();
        let log_likelihood = worths.iter().map(|w| w.log_likelihood).sum::<f64>();
        let tests = folds.iter().filter_map(|fold| fold.test.as_ref());
        let weights: Vec<f64> = tests.flat_map(|test| (0..test.len()).map(|n| test.weight(n))).collect();
        let held_out: Vec<f64> = worths.iter().flat_map(|w| w.held_out.clone()).collect();
        let all = held_out.is_empty().then(|| model.criteria(log_likelihood, worths[0].entropy, seen));
        let candidate = Candidate {
            components: model.n_components(),
            rank: model.rank().to_vec(),
            parameters: model.n_parameters(),
            log_likelihood: log_likelihood / seen,
            held_out: (!held_out.is_empty()).then(|| mean(&held_out, &weights)),
            standard_error: None,
            bic: all.map(|c| c.bic),
            aic: all.map(|c| c.aic),
            icl: all.map(|c| c.icl),
        };
        Self { candidate, models: worths.into_iter().map(|w| w.model).collect(), held_out, weights }
    }

    /// By how much the other is better on the samples held out, and the standard error of that.
    fn behind(&self, other: &Judged) -> (f64, f64) {
        let apart: Vec<f64> = other.held_out.iter().zip(&self.held_out).map(|(a, b)| a - b).collect();
        let behind = mean(&apart, &self.weights);
        let squares: Vec<f64> = apart.iter().map(|d| (d - behind).powi(2)).collect();
        (behind, (mean(&squares, &self.weights) / worth(&self.weights)).sqrt())
    }
}

fn mean(values: &[f64], weights: &[f64]) -> f64 {
    values.iter().zip(weights).map(|(v, w)| v * w).sum::<f64>() / weights.iter().sum::<f64>()
}

/// How many samples of equal weight say as much as these (Kish 1965).
fn worth(weights: &[f64]) -> f64 {
    weights.iter().sum::<f64>().powi(2) / weights.iter().map(|w| w * w).sum::<f64>()
}

/// The candidate of least cost.
fn best(judged: &[Judged], criterion: Criterion) -> usize {
    let cost = |at: usize| {
        let cost = judged[at].candidate.cost(criterion);
        if cost.is_nan() { f64::INFINITY } else { cost }
    };
    (1..judged.len()).fold(0, |a, b| if cost(b) < cost(a) { b } else { a })
}

/// The candidate that the criterion chooses.
pub(super) fn choose(judged: &[Judged], options: &SelectOptions) -> usize {
    let best = best(judged, options.criterion);
    if !options.is_cautious() {
        return best;
    }
    let close = |&at: &usize| {
        let (behind, error) = judged[at].behind(&judged[best]);
        at == best || behind <= error
    };
    let simplest = (0..judged.len()).filter(close).min_by_key(|&at| judged[at].candidate.parameters);
    simplest.unwrap_or(best)
}

/// All candidates, with how sure it is that each is worse than the best.
pub(super) fn table(judged: &[Judged], criterion: Criterion) -> Vec<Candidate> {
    let best = best(judged, criterion);
    let row = |one: &Judged| {
        let standard_error = one.candidate.held_out.map(|_| one.behind(&judged[best]).1);
        Candidate { standard_error, ..one.candidate.clone() }
    };
    judged.iter().map(row).collect()
}

/// What the table says.
pub(super) fn advice(
    candidates: &[Candidate],
    chosen: usize,
    first: &[usize],
    options: &SelectOptions,
) -> String {
    let best = &candidates[chosen];
    let k = best.components;
    let by = match options.criterion {
        Criterion::HeldOut => "by the likelihood of samples held out".to_string(),
        other => format!("by {}", other.name().to_uppercase()),
    };
    let rank = sides(&best.rank);
    let mut words = vec![format!("K = {k} with cores of {rank} is chosen {by}")];
    let most = candidates.iter().map(|c| c.components).max().unwrap_or(k);
    let sure = if options.is_cautious() { "no more than a standard error" } else { "nothing" };
    if options.least_components < options.most_components {
        words.push(match k == most && k == options.most_components {
            true => "more components than were tried may be better still".into(),
            false if k == most => format!("the samples do not come apart into more than {most} components"),
            false => format!("beyond K = {k} {sure} is gained"),
        });
    }
    let gain = |other: &Candidate| match options.criterion {
        Criterion::HeldOut => best.held_out.zip(other.held_out).map(|(a, b)| a - b),
        _ => None,
    };
    let same_k: Vec<&Candidate> = candidates.iter().filter(|c| c.components == k).collect();
    if let Some(nats) = same_k
        .iter()
        .find(|c| c.rank == first && c.rank != best.rank)
        .and_then(|c| gain(c))
        .filter(|nats| *nats > 0.0)
    {
        words.push(format!("{rank} gains {nats:.1} nats per sample over {}", sides(first)));
    }
    format!("{}.", words.join("; "))
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
            bic: None,
            aic: None,
            icl: None,
        };
        Judged { candidate, models: vec![model], held_out, weights }
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
