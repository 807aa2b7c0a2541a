//! What a search stands on: samples at hand, a few iterations on some of them, and a count of what that cost.

use std::sync::atomic::{AtomicU64, Ordering};

use super::super::maximize::{Constraints, least_weight, min_component_size};
use super::super::mixture::About;
use super::super::options::FitOptions;
use super::super::updates::{iteration, updates};
use crate::data::Samples;
use crate::error::Result;
use crate::model::Mixture;
use crate::pass::{AskPass, Backend, EmPass, EmSums, Moments, Question, Update};
use crate::walk::Stage;

/// The samples of a search and how components are fitted to some of them.
pub(in crate::fit) struct Ground<'a> {
    pub(in crate::fit) samples: &'a Samples<'a>,
    pub(in crate::fit) backend: &'a dyn Backend,
    pub(super) options: &'a FitOptions,
    pub(super) rank: &'a [usize],
    /// The largest number of components on the way.
    components: usize,
    pub(super) constraints: Constraints,
    pub(super) moments: &'a Moments,
    log_unit: f64,
    cost: Cost,
}

/// What was asked of samples. Counted in whole numbers, so that threads may add in any order.
#[derive(Debug, Default)]
struct Cost {
    /// Densities ln p(X_n|k).
    densities: AtomicU64,
    /// Squared distances of a sample to a centre.
    distances: AtomicU64,
}

/// A mixture and what it says about the samples it was fitted to.
#[derive(Debug, Clone)]
pub(in crate::fit) struct Climbed {
    pub(in crate::fit) model: Mixture,
    /// ln π_k + ln p(X_n|k), N × K.
    pub(super) joint: Vec<f64>,
    /// Σ_n w_n ln p(X_n).
    pub(in crate::fit) log_likelihood: f64,
}

impl<'a> Ground<'a> {
    pub(in crate::fit) fn new(about: &'a About<'a>, samples: &'a Samples<'a>) -> Self {
        let backend = about.engine.backend();
        Self {
            samples,
            backend: backend.for_few().unwrap_or(backend),
            options: about.options,
            rank: &about.rank,
            components: super::most_components(about.options.n_components()),
            constraints: about.constraints(),
            moments: &about.moments,
            log_unit: about.log_unit(),
            cost: Cost::default(),
        }
    }

    /// The smallest noise variance allowed.
    pub(in crate::fit) fn noise_floor(&self) -> f64 {
        self.constraints.noise_floor
    }

    /// Size of a log-likelihood of samples near unit variance: relative gains refer to it.
    pub(super) fn size(&self, log_likelihood: f64) -> f64 {
        let weight = self.samples.total_weight();
        (log_likelihood + weight * self.log_unit).abs().max(weight)
    }

    /// The samples a component needs before its loadings are determined, and one more.
    pub(super) fn least_members(&self) -> usize {
        let by_rank = least_weight(self.rank).ceil() + 1.0;
        let samples = self.samples.total_weight() / self.constraints.unit;
        min_component_size(self.samples.sample_len(), self.rank, samples, self.components).ceil().max(by_rank)
            as usize
    }

    /// Passes of a mixture of so many components over so many samples that all of it comes to. A distance reads a sample as a density
    /// does, and multiplies it with one column instead of the narrowest loadings and their mean.
    pub(in crate::fit) fn passes(&self, components: usize, samples: usize) -> f64 {
        let narrowest = self.rank.iter().copied().min().unwrap_or(1) as f64;
        let distances = self.cost.distances.load(Ordering::Relaxed) as f64 / (narrowest + 1.0);
        let densities = self.cost.densities.load(Ordering::Relaxed) as f64;
        (densities + distances) / (components * samples) as f64
    }

    /// Counts squared distances.
    pub(super) fn count_distances(&self, distances: usize) {
        self.cost.distances.fetch_add(distances as u64, Ordering::Relaxed);
    }

    fn count_densities(&self, samples: &Samples<'_>, model: &Mixture) {
        let densities = samples.len() * model.n_components();
        self.cost.densities.fetch_add(densities as u64, Ordering::Relaxed);
    }

    /// One pass of EM over some of the samples.
    pub(super) fn pass(&self, samples: &Samples<'_>, model: &Mixture, update: Update) -> Result<EmSums> {
        self.count_densities(samples, model);
        let held = self.backend.over(samples)?;
        let (model, precision) = (model.clone(), self.options.precision);
        held.sums(&EmPass { model, update, precision, stage: Stage::ALL })
    }

    /// The passes of one iteration over some of the samples.
    pub(super) fn updates(&self, samples: &Samples<'_>, model: &Mixture) -> Vec<Update> {
        let (shape, rank, k) = (model.shape(), model.rank(), model.n_components());
        updates((shape, rank, k), samples.len(), self.backend)
    }

    /// Iterate over some of the samples for at least `passes` passes; return the model and the log-likelihood before the last pass.
    pub(super) fn rise(
        &self,
        samples: &Samples<'_>,
        mut model: Mixture,
        passes: usize,
    ) -> Result<(Mixture, f64)> {
        let updates = self.updates(samples, &model);
        let mut log_likelihood = f64::NAN;
        for _ in 0..passes.div_ceil(updates.len()) {
            let pass = |model: &Mixture, update| {
                let sums = self.pass(samples, model, update)?;
                log_likelihood = sums.log_likelihood;
                Ok(sums)
            };
            model = iteration(model, &updates, |_| self.constraints, pass)?;
        }
        Ok((model, log_likelihood))
    }

    /// The model after iterations over all samples until one gains less than a share of the log-likelihood, or so many passes are made. Not
    /// the one loop: nobody watches, resumes or reads the history of one of the thousands of small fits of a search.
    pub(in crate::fit) fn settle(&self, mut model: Mixture, share: f64, passes: usize) -> Result<Climbed> {
        let updates = self.updates(self.samples, &model);
        let mut before = f64::NEG_INFINITY;
        for _ in 0..passes.div_ceil(updates.len()) {
            let mut now = f64::NAN;
            let pass = |model: &Mixture, update| {
                let sums = self.pass(self.samples, model, update)?;
                now = if now.is_nan() { sums.log_likelihood } else { now };
                Ok(sums)
            };
            model = iteration(model, &updates, |_| self.constraints, pass)?;
            if now - before <= share * self.size(now) {
                break;
            }
            before = now;
        }
        self.climb(model, 0)
    }

    /// ln p(X_n|k) of some of the samples.
    pub(super) fn densities(&self, samples: &Samples<'_>, model: &Mixture) -> Result<Vec<f64>> {
        self.count_densities(samples, model);
        let held = self.backend.over(samples)?;
        Ok(held.sums(&AskPass::one(model.clone().into(), Question::LogDensities))?.values)
    }

    /// The model after iterations of so many passes over all samples, and what it says about them.
    pub(in crate::fit) fn climb(&self, model: Mixture, passes: usize) -> Result<Climbed> {
        let (model, _) = self.rise(self.samples, model, passes)?;
        let mut joint = self.densities(self.samples, &model)?;
        let weights: Vec<f64> = model.weights().iter().map(|w| w.ln()).collect();
        for row in joint.chunks_exact_mut(weights.len()) {
            row.iter_mut().zip(&weights).for_each(|(joint, weight)| *joint += weight);
        }
        Ok(Climbed::new(model, joint, self.samples))
    }
}

impl Climbed {
    pub(super) fn new(model: Mixture, joint: Vec<f64>, samples: &Samples<'_>) -> Self {
        let rows = joint.chunks_exact(model.n_components()).enumerate();
        let log_likelihood = rows.map(|(n, row)| samples.weight(n) * log_sum(row)).sum();
        Self { model, joint, log_likelihood }
    }

    /// ln π_k + ln p(X_n|k).
    pub(super) fn joint(&self, n: usize, k: usize) -> f64 {
        self.joint[n * self.model.n_components() + k]
    }

    /// −Σ_n w_n Σ_k γ ln γ.
    pub(in crate::fit) fn entropy(&self, samples: &Samples<'_>) -> f64 {
        let rows = self.joint.chunks_exact(self.model.n_components()).enumerate();
        let entropy = |row: &[f64]| {
            let total = log_sum(row);
            let part = |joint: &f64| {
                if *joint > f64::NEG_INFINITY { (total - joint) * (joint - total).exp() } else { 0.0 }
            };
            row.iter().map(part).sum::<f64>()
        };
        rows.map(|(n, row)| samples.weight(n) * entropy(row)).sum()
    }

    /// The samples that have each component as their most probable one, in ascending order; those of no weight belong to none.
    pub(in crate::fit) fn groups(&self, samples: &Samples<'_>) -> Vec<Vec<usize>> {
        let components = self.model.n_components();
        let mut groups = vec![Vec::new(); components];
        for (n, row) in self.joint.chunks_exact(components).enumerate() {
            if samples.weight(n) > 0.0 {
                let likelier = |a: usize, b: usize| if row[b] > row[a] { b } else { a };
                groups[(1..components).fold(0, likelier)].push(n);
            }
        }
        groups
    }
}

/// ln Σ exp.
pub(super) fn log_sum(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest.is_infinite() {
        return largest;
    }
    largest + values.iter().map(|v| (v - largest).exp()).sum::<f64>().ln()
}
