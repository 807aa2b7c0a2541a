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

use std::ops::ControlFlow;

use super::maximize::Constraints;
use super::mixture::{fit_on, noise_floor, with_noise};
use super::options::{Algorithm, FitOptions};
use super::passes;
use super::threads::with_threads;
use super::updates::{iteration, updates};
use crate::data::{Missing, Samples};
use crate::error::{Error, Result};
use crate::linalg::Matrix;
use crate::model::{Component, DEGREES, Exponent, Mixture};
use crate::pass::{ComponentSums, EmPass, EmSums, Engine, LoadingSums, Update};
use crate::walk::Stage;

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
    ///
    /// # Errors
    /// As [`fit`](fn@crate::fit), and for options of another algorithm or with classes.
    pub fn begin(samples: &Samples<'_>, options: &FitOptions) -> Result<Self> {
        Self::begin_on(samples, options)
    }

    /// The same, on the samples of an engine: those of a backend, say.
    ///
    /// # Errors
    /// As [`begin`](Self::begin), and whatever keeps the engine from running a pass.
    pub fn begin_on(engine: &dyn Engine, options: &FitOptions) -> Result<Self> {
        only_exact(options)?;
        only_unlabelled(options)?;
        let first = FitOptions { max_iter: FIRST_ITERATIONS, tol: 0.0, checkpoint: None, ..options.clone() };
        let fit = fit_on(engine, &first, &mut |_| ControlFlow::Continue(()))?;
        let log_likelihood = fit.log_likelihood();
        Ok(Self { model: fit.model, batches: 1, log_likelihood })
    }

    /// Goes on from a model that has seen so many batches; a full fit counts as one.
    pub fn resume(model: Mixture, batches: u64) -> Self {
        Self { model, batches, log_likelihood: f64::NAN }
    }

    /// One step on a batch of any size: one pass over it for every mode.
    ///
    /// Of the options, `threads`, `precision`, `noise_floor`, `noise`, `dof` and `missing` count; what the model is has been decided.
    ///
    /// # Errors
    /// If the batch has another shape than the model, a sample of it is not finite, or the options ask for another algorithm.
    pub fn step(&mut self, samples: &Samples<'_>, options: &FitOptions) -> Result<()> {
        let told = if options.missing == Missing::Nan { Missing::Nan } else { samples.missing() };
        self.step_on(&samples.clone().with_missing(told), options)
    }

    /// The same, on the samples of an engine, which knows what NaN means in them.
    ///
    /// # Errors
    /// As [`step`](Self::step), and whatever keeps the engine from running a pass.
    pub fn step_on(&mut self, engine: &dyn Engine, options: &FitOptions) -> Result<()> {
        only_exact(options)?;
        if engine.shape() != self.model.shape() {
            return Err(Error::ShapeMismatch {
                expected: self.model.shape().to_vec(),
                found: engine.shape().to_vec(),
            });
        }
        let eta = (self.batches as f64 + DELAY).powf(-FORGETTING);
        let (model, log_likelihood) =
            with_threads(options.threads, || step(&self.model, engine, eta, options))??;
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

/// The first batch decides about the start, and need not know a sample of every class.
fn only_unlabelled(options: &FitOptions) -> Result<()> {
    match options.classes.is_empty() {
        true => Ok(()),
        false => Err(Error::Option {
            option: "classes",
            value: format!("{} names", options.classes.len()),
            expected: "empty: labels are known to whole fits only",
        }),
    }
}

/// The model after a step of length `eta` on a batch, and the mean log-likelihood of the batch before it.
fn step(model: &Mixture, samples: &dyn Engine, eta: f64, options: &FitOptions) -> Result<(Mixture, f64)> {
    let moments = passes::moments(samples, false)?;
    if moments.share() == 0.0 {
        return Err(Error::NothingObserved);
    }
    let floor = noise_floor(&moments, samples.element(), options.noise_floor);
    if !floor.is_finite() {
        return Err(Error::Overflow { sample: 0 });
    }
    let mut log_likelihood = None;
    let model = with_noise(model.clone(), options)?;
    let of = (model.shape(), model.rank(), model.n_components());
    let updates = updates(of, samples.len(), samples.backend());
    let constraints = |blend: &EmSums| {
        // The blend weighs as much as the batch; what the batch adds to it weighs η of that, a single sample too.
        let unit = eta * blend.weight / samples.n_effective() as f64;
        Constraints { noise_floor: floor, unit, dof: options.dof, min_degrees: *DEGREES.start() }
    };
    let pass = |model: &Mixture, update| {
        let pass = EmPass { model: model.clone(), update, precision: options.precision, stage: Stage::ALL };
        let batch = samples.sums(&pass)?;
        log_likelihood.get_or_insert(batch.mean_log_likelihood());
        Ok(blend(model, &batch, eta))
    };
    let model = iteration(model, &updates, constraints, pass)?;
    Ok((model, log_likelihood.unwrap_or(f64::NAN)))
}

/// (1 − η) E_θ[s] + η s_batch, for as much weight as the batch has.
fn blend(model: &Mixture, batch: &EmSums, eta: f64) -> EmSums {
    let mut sums = batch.clone();
    for (k, (sums, found)) in sums.components.iter_mut().zip(&batch.components).enumerate() {
        let weight = (1.0 - eta) * model.weights()[k] * batch.weight;
        *sums = expected(model, &model.components()[k], batch.update, weight);
        sums.add_scaled(eta, found);
    }
    sums
}

/// The sums of a pass over `n` samples of this very component, in expectation:
///
/// ```text
/// N = W = n    m = 0    b = 0    s = n (P σ² + Σ s_j)    F = n U^(1) ⊗ … ⊗ U^(D)    G = n I
/// ```
///
/// and Σ γ E[ln u] = −n (ln(ν/2) − ψ(ν/2)) for Student-t noise, contracted where the pass updates one mode. The M-step returns the parameters they came from.
fn expected(model: &Mixture, component: &Component, update: Update, n: f64) -> ComponentSums {
    let mut sums = ComponentSums::zero(model.shape(), model.rank(), update);
    sums.weight = n;
    sums.scale = n;
    sums.log_scale = n * Exponent::prior(component).log_weight(0.0);
    sums.squares = n * component.total_variance();
    match (&mut sums.loadings, update) {
        (LoadingSums::All { cross, gram }, _) => {
            let core_len = gram.rows();
            for j in 0..core_len {
                let mut unit = vec![0.0; core_len];
                unit[j] = n;
                let row = crate::linalg::expand(&unit, component.loadings());
                let size = row.len();
                cross.as_mut_slice()[j * size..(j + 1) * size].copy_from_slice(&row);
                gram[(j, j)] = n;
            }
        }
        (LoadingSums::Mode { cross, weighted_gram, gram }, Update::Mode(d)) => {
            let others = component.other_variances(d);
            let trace: f64 = others.iter().sum();
            *cross = component.loadings()[d].clone();
            cross.scale(n * trace);
            let r = gram.rows();
            *weighted_gram = Matrix::identity(r, r);
            weighted_gram.scale(n * trace);
            *gram = Matrix::identity(r, r);
            gram.scale(n * others.len() as f64);
        }
        (LoadingSums::Mode { .. }, Update::All) => unreachable!("sums of one mode"),
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
        let components = (0..k)
            .map(|j| {
                let mean = (0..shape.iter().product()).map(|_| 3.0 * normal()).collect();
                let sides = shape.iter().zip(rank);
                let loadings = sides.map(|(&p, &r)| Matrix::from_fn(p, r, |_, _| normal())).collect();
                Component::new(shape, mean, loadings, 0.3 + 0.2 * j as f64).unwrap()
            })
            .collect();
        Mixture::new(shape, (0..k).map(|j| 1.0 + j as f64).collect(), components).unwrap()
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
            let modes = (0..shape.len()).filter(|_| shape.len() > 1).map(Update::Mode);
            for update in modes.chain([Update::All]) {
                let pass =
                    EmPass { model: model.clone(), update, precision: Default::default(), stage: Stage::ALL };
                let found = (&samples as &dyn Engine).sums(&pass).unwrap();
                let found = &found.components[0];
                let wanted = expected(&model, &model.components()[0], update, N as f64);
                // Of 60,000 samples the sums scatter by half a per cent or so; the matrices' entries by a little more.
                assert!((found.squares / wanted.squares - 1.0).abs() < 0.015);
                let pairs: Vec<(&Matrix, &Matrix)> = match (&found.loadings, &wanted.loadings) {
                    (LoadingSums::All { cross: a, gram: b }, LoadingSums::All { cross: c, gram: d }) => {
                        vec![(a, c), (b, d)]
                    }
                    (
                        LoadingSums::Mode { cross: a, weighted_gram: b, gram: c },
                        LoadingSums::Mode { cross: d, weighted_gram: e, gram: f },
                    ) => vec![(a, d), (b, e), (c, f)],
                    _ => panic!("sums of different updates"),
                };
                for (found, wanted) in pairs {
                    let error = relative(found.as_slice(), wanted.as_slice());
                    assert!(error < 0.03, "{shape:?}, {update:?}: {error}");
                }
            }
        }
    }
}
