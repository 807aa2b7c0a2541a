//! Fitting batch by batch: stochastic EM (Cappé & Moulines 2009, *On-line EM algorithm for latent data models*).
//!
//! A batch's sums are blended with the sums the current parameters stand for, and the ordinary M-step does the rest:
//!
//! ```text
//! s ← (1 − η_t) E_θ[s] + η_t s_batch        θ ← maximize(s)        η_t = (t + 2)^−0.7
//! ```
//!
//! The complete-data model is an exponential family, so E_θ[s], the expectation of the sums under the model itself, is
//! what all earlier batches have left behind: no history of sums is kept, a model and the number t say everything.
//! Approximate by nature: where it ends depends on the order of the batches, and a full fit that begins there is better.

use super::em::{fit, noise_floor, with_threads};
use super::engine;
use super::maximize::maximize;
use super::options::{Algorithm, FitOptions};
use crate::data::Samples;
use crate::error::{Error, Result};
use crate::linalg::Matrix;
use crate::model::{Component, Mixture};
use crate::pass::em::em_pass;
use crate::pass::simd::Path;
use crate::pass::{ComponentStatistics, Statistics};

/// How fast steps become shorter: any exponent in (0.5, 1] converges, and smaller ones forget a bad start sooner.
const FORGETTING: f64 = 0.7;

/// Added to the number of batches, so that the second batch does not replace what the first one has found.
const DELAY: f64 = 2.0;

/// Iterations on the first batch: they lead away from the start, and more would only adapt to that batch.
const FIRST_ITERATIONS: usize = 3;

/// A mixture that is fitted batch by batch. Approximate; see [`fit`](super::fit) for the real thing.
///
/// ```
/// use matmix::{FitOptions, OnlineFit, Samples};
///
/// let numbers: Vec<f64> = (0..480).map(|i| f64::from((i * 37) % 101)).collect();
/// let options = FitOptions { components: 2, rank: vec![2, 1], ..FitOptions::default() };
/// let mut online = OnlineFit::begin(&Samples::from_slice(&[4, 3], &numbers[..240])?, &options)?;
/// online.step(&Samples::from_slice(&[4, 3], &numbers[240..])?, &options)?;
/// assert_eq!(online.batches, 2);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct OnlineFit {
    /// The model after the batches so far.
    pub model: Mixture,
    /// How many batches it has seen: the next step is as long as this number says.
    pub batches: u64,
    /// The mean log-likelihood per sample of the last batch: for the first one under the model it led to, for every
    /// other under the model that had not seen it yet.
    pub log_likelihood: f64,
}

impl OnlineFit {
    /// The ordinary start and a few ordinary iterations, on the first batch.
    pub fn begin(samples: &Samples<'_>, options: &FitOptions) -> Result<Self> {
        only_exact(options)?;
        let first = FitOptions { max_iter: FIRST_ITERATIONS, tol: 0.0, checkpoint: None, ..options.clone() };
        let fit = fit(samples, &first)?;
        let log_likelihood = fit.log_likelihood();
        Ok(Self { model: fit.model, batches: 1, log_likelihood })
    }

    /// Goes on from a model that has seen so many batches; a full fit counts as one.
    pub fn resume(model: Mixture, batches: u64) -> Self {
        Self { model, batches, log_likelihood: f64::NAN }
    }

    /// One step on a batch of any size: one pass over it for every mode.
    ///
    /// Of the options, `threads`, `precision` and `noise_floor` count; what the model is has been decided.
    pub fn step(&mut self, samples: &Samples<'_>, options: &FitOptions) -> Result<()> {
        only_exact(options)?;
        if samples.shape() != self.model.shape() {
            return Err(Error::ShapeMismatch {
                expected: self.model.shape().to_vec(),
                found: samples.shape().to_vec(),
            });
        }
        let eta = (self.batches as f64 + DELAY).powf(-FORGETTING);
        let (model, log_likelihood) =
            with_threads(options.threads, || step(&self.model, samples, eta, options))??;
        self.model = model;
        self.log_likelihood = log_likelihood;
        self.batches += 1;
        Ok(())
    }
}

fn only_exact(options: &FitOptions) -> Result<()> {
    match options.algorithm {
        Algorithm::Exact => Ok(()),
        Algorithm::Paper => Err(Error::Option {
            option: "algorithm",
            value: "the paper's".into(),
            expected: "exact: the paper's algorithm has no sums that add up over batches",
        }),
    }
}

/// The model after a step of length `eta` on a batch, and the mean log-likelihood of the batch before it.
fn step(model: &Mixture, samples: &Samples<'_>, eta: f64, options: &FitOptions) -> Result<(Mixture, f64)> {
    let moments = engine::moments(samples)?;
    let floor = noise_floor(&moments, samples.element(), options.noise_floor);
    if !floor.is_finite() {
        return Err(Error::Overflow { sample: 0 });
    }
    let mut log_likelihood = f64::NAN;
    let mut model = model.clone();
    for mode in 0..samples.order() {
        let batch = em_pass(&model, samples, mode, options.precision, Path::best())?;
        if mode == 0 {
            log_likelihood = batch.mean_log_likelihood();
        }
        // The blend weighs as much as the batch; what the batch adds to it weighs η of that, a single sample too.
        let unit = eta * batch.weight / samples.n_effective() as f64;
        model = maximize(&model, &blend(&model, &batch, eta), floor, unit);
    }
    Ok((model, log_likelihood))
}

/// (1 − η) E_θ[s] + η s_batch, for as much weight as the batch has.
fn blend(model: &Mixture, batch: &Statistics, eta: f64) -> Statistics {
    let mut sums = batch.clone();
    sums.components = model
        .components()
        .iter()
        .zip(model.weights())
        .zip(&batch.components)
        .map(|((component, &weight), found)| {
            let mut sums = expected(component, batch.mode, (1.0 - eta) * weight * batch.weight);
            sums.weight += eta * found.weight;
            sums.squared_distance += eta * found.squared_distance;
            sums.mean_shift.iter_mut().zip(&found.mean_shift).for_each(|(to, from)| *to += eta * from);
            sums.cross.add_scaled(eta, &found.cross);
            sums.weighted_gram.add_scaled(eta, &found.weighted_gram);
            sums.gram.add_scaled(eta, &found.gram);
            sums
        })
        .collect();
    sums
}

/// The sums of a pass that updates mode d over `n` samples of this very component, in expectation:
///
/// ```text
/// ΔM = 0    s_x = n (P σ² + Σ s_j)    A = n tr(W) U^(d)
/// S = n diag_i( Σ_{j: j_d=i} s_j/(s_j + σ²) )    H = n diag_i( Σ_{j: j_d=i} w_j s_j/(s_j + σ²) )
/// ```
///
/// With the posterior variance that the M-step adds to them, S is n ρ/r_d times the identity and H is n tr(W) times it: the
/// M-step returns the parameters they came from.
fn expected(component: &Component, d: usize, n: f64) -> ComponentStatistics {
    let u = &component.loadings()[d];
    let r = u.cols();
    let others = component.other_variances(d);
    let lambda = u.column_norms_squared();
    let mut cross = u.clone();
    cross.scale(n * others.iter().sum::<f64>());
    let mut sums = ComponentStatistics {
        weight: n,
        assigned: 0,
        mean_shift: vec![0.0; component.mean().len()],
        squared_distance: n * component.total_variance(),
        cross,
        weighted_gram: Matrix::zeros(r, r),
        gram: Matrix::zeros(r, r),
    };
    let noise = component.noise_variance();
    for (i, lambda) in lambda.iter().enumerate() {
        for w in &others {
            let known = lambda * w / (lambda * w + noise);
            sums.gram[(i, i)] += n * known;
            sums.weighted_gram[(i, i)] += n * w * known;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rand_distr::StandardNormal;

    fn planted(shape: &[usize], rank: &[usize], k: usize, seed: u64) -> Mixture {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut normal = move || -> f64 { rng.sample(StandardNormal) };
        let parts = (0..k)
            .map(|j| {
                let mean = (0..shape.iter().product()).map(|_| 3.0 * normal()).collect();
                let sides = shape.iter().zip(rank);
                let loadings = sides.map(|(&p, &r)| Matrix::from_fn(p, r, |_, _| normal())).collect();
                Component::new(shape, mean, loadings, 0.3 + 0.2 * j as f64).unwrap()
            })
            .collect();
        Mixture::new(shape, (0..k).map(|j| 1.0 + j as f64).collect(), parts).unwrap()
    }

    fn relative(a: &[f64], b: &[f64]) -> f64 {
        let difference: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
        (difference / b.iter().map(|b| b * b).sum::<f64>()).sqrt()
    }

    const CASES: [(&[usize], &[usize]); 4] =
        [(&[7], &[3]), (&[5, 4], &[2, 3]), (&[4, 3, 3], &[2, 1, 2]), (&[6, 2], &[1, 2])];

    /// A step of length 0 goes nowhere: the M-step returns the parameters whose expected sums it is given.
    #[test]
    fn the_expected_sums_lead_back_to_the_model() {
        for (shape, rank) in CASES {
            let model = planted(shape, rank, 3, 5);
            let drawn = planted(shape, rank, 2, 6).sample(50, 7).samples;
            let samples = Samples::from_slice(shape, &drawn).unwrap();
            let (same, _) = step(&model, &samples, 0.0, &FitOptions::default()).unwrap();
            assert!(relative(same.weights(), model.weights()) < 1e-12);
            for (a, b) in same.components().iter().zip(model.components()) {
                assert_eq!(a.mean(), b.mean());
                assert!((a.noise_variance() / b.noise_variance() - 1.0).abs() < 1e-11, "{shape:?}");
                for (u, v) in a.loadings().iter().zip(b.loadings()) {
                    assert!(relative(u.as_slice(), v.as_slice()) < 1e-11, "{shape:?}");
                }
            }
        }
    }

    /// What `expected` says in closed form is what a pass finds in many samples of the model.
    #[test]
    fn the_expected_sums_are_those_of_samples_of_the_model() {
        const N: usize = 60_000;
        for (shape, rank) in CASES {
            let model = planted(shape, rank, 1, 8);
            let drawn = model.sample(N, 9).samples;
            let samples = Samples::from_slice(shape, &drawn).unwrap();
            for mode in 0..shape.len() {
                let found = em_pass(&model, &samples, mode, Default::default(), Path::best()).unwrap();
                let found = &found.components[0];
                let wanted = expected(&model.components()[0], mode, N as f64);
                // Of 60,000 samples the sums scatter by half a per cent or so; the matrices' entries by a little more.
                assert!((found.squared_distance / wanted.squared_distance - 1.0).abs() < 0.015);
                for (found, wanted) in [
                    (&found.cross, &wanted.cross),
                    (&found.weighted_gram, &wanted.weighted_gram),
                    (&found.gram, &wanted.gram),
                ] {
                    let error = relative(found.as_slice(), wanted.as_slice());
                    assert!(error < 0.03, "{shape:?}, mode {mode}: {error}");
                }
            }
        }
    }
}
