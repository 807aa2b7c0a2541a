//! What the model says about every sample, and which samples are worth showing.

use std::collections::HashMap;

use super::content::Histogram;
use super::recognition::Mistake;
use crate::data::Samples;
use crate::error::Result;
use crate::infer::ask;
use crate::model::{Mixture, Supported};
use crate::pass::Question;

/// How many samples a strip of pictures shows.
const STRIP: usize = 6;
/// How many reconstructions, outliers and filled samples are shown.
const SPREAD: usize = 12;

/// One number per sample, for all samples.
#[derive(Debug, Clone, Default)]
pub(crate) struct Findings {
    /// ln p(X_n).
    pub(crate) log_likelihood: Vec<f64>,
    /// The most probable component.
    pub(crate) component: Vec<usize>,
    /// Its probability.
    pub(crate) responsibility: Vec<f64>,
    /// Score that ranks samples: [`Mixture::typicality`] of the supported components.
    pub(crate) standing: Vec<f64>,
    /// The same of ln p(X_n|k) under that component.
    pub(crate) standing_within: Vec<f64>,
    /// ‖X − X̂‖² under it.
    pub(crate) squared_error: Vec<f64>,
    /// −Σ γ ln γ over all samples, weighted.
    pub(crate) entropy: f64,
}

impl Findings {
    /// One pass over the samples.
    pub(crate) fn new(model: &Mixture, supported: &Supported, samples: &Samples<'_>) -> Result<Self> {
        let questions = [
            Question::Component,
            Question::LogLikelihood,
            Question::Typicality,
            Question::Entropy,
            Question::SquaredError,
            Question::Responsibilities,
        ];
        let [component, log_likelihood, standing, entropies, squared_error, gamma] =
            ask(model.clone().into(), samples, questions)?;
        let component: Vec<usize> = component.into_iter().map(|k| k as usize).collect();
        let gamma = gamma.chunks_exact(model.n_components()).zip(&component);
        let responsibility: Vec<f64> = gamma.map(|(gamma, &best)| gamma[best]).collect();
        // p(X|k) = p(X) γ / π.
        let within = |n: usize| standing[n] + (responsibility[n] / model.weights()[component[n]]).ln();
        let standing_within = (0..component.len()).map(within).collect();
        let all = Self {
            standing_within,
            standing: match supported.is_reduced {
                true => supported.model.typicality(samples)?,
                false => standing,
            },
            entropy: entropies.iter().enumerate().map(|(n, e)| samples.weight(n) * e).sum(),
            component,
            log_likelihood,
            squared_error,
            responsibility,
        };
        Ok(all)
    }
}

/// The samples that travel with the page, as indices into the data, and who of them plays which part.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Cast {
    /// Everybody: those with a part first.
    pub(crate) index: Vec<usize>,
    /// How many have a part; they must have pictures.
    pub(crate) roles: usize,
    /// Positions of the samples nearest to the mean of each component, among its own.
    pub(crate) typical: Vec<Vec<usize>>,
    /// Positions of the least likely samples of each component.
    pub(crate) untypical: Vec<Vec<usize>>,
    /// Positions from the best reconstructed to the worst.
    pub(crate) spread: Vec<usize>,
    /// Positions of the least likely samples of all.
    pub(crate) outliers: Vec<usize>,
    /// Positions of those that were recognised wrongly, each with whom it was taken for.
    pub(crate) mistakes: Vec<Mistake>,
    /// Positions of samples with missing cells, from the fewest to the most, without those that have nothing else.
    pub(crate) filled: Vec<usize>,
    /// Positions of the samples with most missing cells.
    pub(crate) lacking: Vec<usize>,
}

impl Cast {
    /// Chooses who is shown, `distance` being how far each sample is from the mean of its component and `holes` how many of its `size`
    /// cells are missing; the rest of the map is an even selection of at most `points` in all.
    pub(crate) fn new(
        findings: &Findings,
        distance: &[f64],
        relative_error: &[f64],
        components: usize,
        mistakes: &[Mistake],
        holes: &[usize],
        size: usize,
        points: usize,
    ) -> Self {
        let n = findings.component.len();
        let mut members = vec![Vec::new(); components];
        for (i, &k) in findings.component.iter().enumerate() {
            members[k].push(i);
        }
        let mut cast = Self::default();
        let mut position = HashMap::new();
        for of in &mut members {
            // The densest samples of a component need not look like it: they are those with the least of everything.
            of.sort_by(|&a, &b| distance[a].total_cmp(&distance[b]));
            // A sample is not both: a component of seven shows three of each.
            let each = STRIP.min(of.len() / 2).max(usize::from(!of.is_empty()));
            let typical = cast.take(&mut position, of.iter().take(each));
            let others = &mut of[each..];
            others.sort_by(|&a, &b| findings.standing_within[a].total_cmp(&findings.standing_within[b]));
            let untypical = cast.take(&mut position, others.iter().take(each));
            cast.typical.push(typical);
            cast.untypical.push(untypical);
        }
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| relative_error[a].total_cmp(&relative_error[b]));
        cast.spread = cast.take(&mut position, evenly(&order).iter());
        order.sort_by(|&a, &b| findings.standing[a].total_cmp(&findings.standing[b]));
        cast.outliers = cast.take(&mut position, order.iter().take(SPREAD));
        // An even selection: the first few would all be of the first labels.
        let shown = mistakes.len().min(SPREAD);
        for i in 0..shown {
            let Mistake { sample, nearest } = mistakes[i * mistakes.len() / shown];
            let places = cast.take(&mut position, [sample, nearest].iter());
            cast.mistakes.push(Mistake { sample: places[0], nearest: places[1] });
        }
        let mut broken: Vec<usize> = (0..n).filter(|&n| holes[n] > 0).collect();
        broken.sort_by_key(|&n| std::cmp::Reverse(holes[n]));
        cast.lacking = cast.take(&mut position, broken.iter().take(STRIP));
        broken.retain(|&n| holes[n] < size);
        broken.reverse();
        cast.filled = cast.take(&mut position, evenly(&broken).iter());
        cast.roles = cast.index.len();
        let room = points.saturating_sub(cast.roles).min(n);
        let others: Vec<usize> = (0..n).filter(|i| !position.contains_key(i)).collect();
        let room = room.min(others.len());
        cast.index.extend((0..room).map(|i| others[i * others.len() / room]));
        cast
    }

    /// The positions of these samples, which get one if they have none.
    fn take<'a>(
        &mut self,
        position: &mut HashMap<usize, usize>,
        samples: impl Iterator<Item = &'a usize>,
    ) -> Vec<usize> {
        samples
            .map(|&n| {
                *position.entry(n).or_insert_with(|| {
                    self.index.push(n);
                    self.index.len() - 1
                })
            })
            .collect()
    }
}

/// A spread over these from the first to the last.
fn evenly(order: &[usize]) -> Vec<usize> {
    let shown = SPREAD.min(order.len());
    let at = |i: usize| order[if shown == 1 { 0 } else { i * (order.len() - 1) / (shown - 1) }];
    (0..shown).map(at).collect()
}

/// Forty bins from the least value to the largest, infinities left out.
pub(crate) fn histogram(values: &[f64]) -> Histogram {
    const BINS: usize = 40;
    let values = || values.iter().copied().filter(|v| v.is_finite());
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(f64::NEG_INFINITY, f64::max);
    // Equal values are one bin around them.
    let room = 0.5f64.max(1e-9 * low.abs());
    let (low, high) = if high > low { (low, high) } else { (low - room, low + room) };
    let mut counts = vec![0; BINS];
    for v in values() {
        let bin = ((v - low) / (high - low) * BINS as f64) as usize;
        counts[bin.min(BINS - 1)] += 1;
    }
    let edges = (0..=BINS).map(|i| low + (high - low) * i as f64 / BINS as f64).collect();
    Histogram { edges, counts }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(n: usize, components: usize) -> Findings {
        Findings {
            log_likelihood: (0..n).map(|i| ((i * 37) % 101) as f64).collect(),
            component: (0..n).map(|i| i % components).collect(),
            responsibility: vec![1.0; n],
            standing: (0..n).map(|i| ((i * 37) % 101) as f64).collect(),
            standing_within: (0..n).map(|i| ((i * 37) % 101) as f64).collect(),
            squared_error: vec![1.0; n],
            entropy: 0.0,
        }
    }

    #[test]
    fn everybody_is_there_once_and_the_worst_are_the_worst() {
        let findings = some(100, 3);
        let error: Vec<f64> = (0..100).map(f64::from).collect();
        let holes: Vec<usize> = (0..100).map(|n| if n % 5 == 0 { n / 5 } else { 0 }).collect();
        let mistakes = [Mistake { sample: 40, nearest: 41 }];
        let cast = Cast::new(&findings, &error, &error, 3, &mistakes, &holes, 19, 3000);
        let mut all = cast.index.clone();
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
        assert_eq!((cast.typical[0].len(), cast.untypical[2].len()), (6, 6));
        assert_eq!(cast.index[cast.spread[0]], 0);
        assert_eq!(cast.index[cast.spread[11]], 99);
        assert_eq!(findings.log_likelihood[cast.index[cast.outliers[0]]], 0.0);
        let Mistake { sample, nearest } = cast.mistakes[0];
        assert_eq!((cast.index[sample], cast.index[nearest]), (40, 41));
        let [filled, lacking] =
            [&cast.filled, &cast.lacking].map(|of| of.iter().map(|&i| cast.index[i]).collect::<Vec<_>>());
        assert_eq!(lacking[..2], [95, 90]);
        // Of sample 95 nothing is left.
        assert_eq!((filled.first(), filled.last()), (Some(&5), Some(&90)));
        assert_eq!(cast.index[cast.typical[1][0]], 1);
        let worst = cast.index[cast.untypical[1][0]];
        let of_its_own = (0..100).filter(|i| i % 3 == 1 && *i > 16);
        assert!(
            of_its_own.into_iter().all(|i| findings.standing_within[i] >= findings.standing_within[worst])
        );
    }

    #[test]
    fn a_large_set_is_thinned_and_keeps_its_parts() {
        let error = vec![1.0; 10_000];
        let cast = Cast::new(&some(10_000, 2), &error, &error, 2, &[], &[0; 10_000], 9, 500);
        assert_eq!(cast.index.len(), 500);
        assert!(cast.roles <= 48);
    }

    #[test]
    fn few_samples_and_empty_components_are_no_trouble() {
        let cast = Cast::new(&some(1, 1), &[0.5], &[0.5], 3, &[], &[0], 9, 10);
        assert_eq!((cast.index.clone(), cast.spread.clone()), (vec![0], vec![0]));
        assert!(cast.typical[1].is_empty() && cast.untypical[0].is_empty());
        assert_eq!(histogram(&[2.0, 2.0]).counts.iter().sum::<usize>(), 2);
        assert_eq!(histogram(&[2.0, f64::INFINITY]).counts.iter().sum::<usize>(), 1);
    }
}
