//! Missing cells, given the others: samples with the same cells missing share their factorisation.

use std::collections::BTreeMap;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Gamma, StandardNormal};

use crate::data::Samples;
use crate::error::{Error, Result};
use crate::memory::Request;
use crate::model::{Chance, Holes, Mixture, Pattern};
use crate::parallel;
use crate::pass::{Impute, Imputed};
use crate::temper::Temper;

/// Means and standard deviations.
pub(super) fn impute(pass: &Impute<'_>, samples: &Samples<'_>) -> Result<Imputed> {
    let model = pass.model;
    let broken = Broken::of(model, samples, pass.temper)?;
    let size = model.sample_len();
    let parts = broken.each(model, samples, |pattern, _, x, _| {
        let found = pattern.condition(x);
        Ok((pattern.moments(&found), found.log_likelihood))
    })?;
    let missing = broken.missing();
    let mut deviations = vec![0.0; broken.values.len()];
    let mut log_likelihood = vec![0.0; samples.len()];
    let mut values = broken.values;
    for ((missing, members), found) in broken.patterns.iter().zip(parts) {
        for (&n, (cells, likelihood)) in members.iter().zip(found) {
            log_likelihood[n] = likelihood;
            for (&i, (mean, variance)) in missing.iter().zip(cells) {
                values[n * size + i] = mean;
                deviations[n * size + i] = variance.sqrt();
            }
        }
    }
    let empty = broken.patterns.get(&(0..size).collect::<Holes>()).cloned().unwrap_or_default();
    Ok(Imputed { values, deviations, log_likelihood, missing, empty, tempered: broken.tempered })
}

/// All missing cells of every sample together, drawn several times.
pub(super) fn draws(pass: &Impute<'_>, samples: &Samples<'_>, draws: usize, seed: u64) -> Result<Vec<f64>> {
    let model = pass.model;
    let broken = Broken::of(model, samples, pass.temper)?;
    let size = model.sample_len();
    // All cells, and a copy of the missing ones while they are drawn.
    let numbers = broken.values.len() as u128 + broken.missing() as u128;
    let request = Request {
        samples: samples.len().saturating_mul(draws),
        shape: samples.shape(),
        needed: (numbers * size_of::<f64>() as u128).saturating_mul(draws as u128),
    };
    request.check()?;
    let mut all = request.reserve(broken.values.len().saturating_mul(draws))?;
    let parts = broken.each(model, samples, |pattern, missing, x, n| {
        let found = pattern.condition(x);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(n as u64);
        let mut chance = Random(rng);
        let mut drawn = request.reserve(missing.len() * draws)?;
        (0..draws).for_each(|_| drawn.extend(pattern.draw(&found, &mut chance)));
        Ok(drawn)
    })?;
    (0..draws).for_each(|_| all.extend_from_slice(&broken.values));
    for ((missing, members), found) in broken.patterns.iter().zip(parts) {
        for (&n, drawn) in members.iter().zip(found) {
            for (draw, cells) in drawn.chunks_exact(missing.len().max(1)).enumerate() {
                let to = &mut all[draw * samples.len() * size..][n * size..(n + 1) * size];
                missing.iter().zip(cells).for_each(|(&i, x)| to[i] = *x);
            }
        }
    }
    Ok(all)
}

/// Samples with holes, grouped by where they are.
struct Broken {
    values: Vec<f64>,
    patterns: BTreeMap<Holes, Vec<usize>>,
    /// The τ of each pattern.
    tempers: Vec<f64>,
    /// The samples for which that is less than 1, in order.
    tempered: Vec<usize>,
}

impl Broken {
    fn of(model: &Mixture, samples: &Samples<'_>, temper: Temper) -> Result<Self> {
        let temper = temper.validate()?;
        if samples.shape() != model.shape() {
            return Err(Error::ShapeMismatch {
                expected: model.shape().to_vec(),
                found: samples.shape().to_vec(),
            });
        }
        let values = samples.to_f64(0..samples.len())?;
        let mut patterns: BTreeMap<Holes, Vec<usize>> = BTreeMap::new();
        for (n, x) in values.chunks_exact(model.sample_len()).enumerate() {
            if let Some(i) = x.iter().position(|x| x.is_infinite()) {
                return Err(Error::NotFinite {
                    sample: n,
                    position: position(i, model.shape()),
                    value: x[i],
                });
            }
            let missing = x.iter().enumerate().filter(|(_, x)| x.is_nan()).map(|(i, _)| i).collect();
            patterns.entry(missing).or_default().push(n);
        }
        // Of what is complete, or has nothing to be trusted, nothing changes.
        let size = model.sample_len();
        let of = |missing: &Holes| match missing.len() {
            count if count == 0 || count == size => 1.0,
            _ => temper.of(model.shape(), missing),
        };
        let tempers: Vec<f64> = patterns.keys().map(of).collect();
        let less = patterns.iter().zip(&tempers).filter(|(_, temper)| **temper < 1.0);
        let mut tempered: Vec<usize> = less.flat_map(|((_, members), _)| members.iter().copied()).collect();
        tempered.sort_unstable();
        Ok(Self { values, patterns, tempers, tempered })
    }

    /// The number of missing cells of all samples.
    fn missing(&self) -> usize {
        self.patterns.iter().map(|(missing, members)| missing.len() * members.len()).sum()
    }

    /// What `work` says about every sample, by pattern, in the order of its members.
    fn each<R: Send>(
        &self,
        model: &Mixture,
        samples: &Samples<'_>,
        work: impl Fn(&Pattern<'_>, &Holes, &[f64], usize) -> Result<R> + Sync,
    ) -> Result<Vec<Vec<R>>> {
        let patterns: Vec<(&Holes, &Vec<usize>)> = self.patterns.iter().collect();
        let size = samples.sample_len();
        let parts = parallel::map(patterns.len(), |at| {
            let (missing, members) = patterns[at];
            let pattern = Pattern::new(model, missing, self.tempers[at]);
            let pattern = pattern.ok_or(Error::Overflow { sample: members[0] })?;
            let of = |&n: &usize| work(&pattern, missing, &self.values[n * size..(n + 1) * size], n);
            members.iter().map(of).collect()
        });
        parts.into_iter().collect()
    }
}

/// One index per mode.
fn position(cell: usize, shape: &[usize]) -> Vec<usize> {
    let mut rest = cell;
    let mut position = vec![0; shape.len()];
    for (at, &side) in position.iter_mut().zip(shape).rev() {
        *at = rest % side;
        rest /= side;
    }
    position
}

struct Random<R>(R);

impl<R: Rng> Chance for Random<R> {
    fn uniform(&mut self) -> f64 {
        self.0.random()
    }

    fn normal(&mut self) -> f64 {
        self.0.sample(StandardNormal)
    }

    fn gamma(&mut self, shape: f64) -> f64 {
        // The shape is half of something positive; 1 would be no scale at all.
        Gamma::new(shape, 1.0).map_or(shape, |gamma| self.0.sample(gamma))
    }
}
