//! Cells that are missing (NaN) in new samples, filled in by what a fitted mixture knows about the rest: conditional means, standard
//! deviations and draws, exact unless the posterior is tempered ([`Temper`]).

use std::collections::BTreeMap;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Gamma, StandardNormal};

use crate::data::{Missing, Samples};
use crate::error::{Error, Result};
use crate::model::{Chance, Holes, Mixture, Pattern};
use crate::parallel;
use crate::temper::Temper;

/// Samples whose missing cells were filled in.
///
/// ```
/// use matmix::{Component, Matrix, Mixture, Samples};
///
/// // Two numbers of variance 2 and covariance 1, with means 1 and 2.
/// let component = Component::new(&[2], vec![1.0, 2.0], vec![Matrix::from_vec(2, 1, vec![1.0, 1.0])], 1.0)?;
/// let model = Mixture::new(&[2], vec![1.0], vec![component])?;
/// let filled = model.impute(&Samples::from_vec(&[2], vec![3.0, f64::NAN])?)?;
/// // The second given the first: 2 + ½ (3 − 1), with a variance of 2 − ½.
/// assert!((filled.values[1] - 3.0).abs() < 1e-12);
/// assert!((filled.deviations[1].powi(2) - 1.5).abs() < 1e-12);
/// assert_eq!((filled.missing, filled.values[0], filled.deviations[0]), (1, 3.0, 0.0));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Imputed {
    /// N × P: what was observed as it was, what was missing by its conditional mean.
    pub values: Vec<f64>,
    /// N × P: the standard deviation of every cell given what was observed of its sample; 0 where it was observed. It is infinite where a
    /// Student-t has no variance.
    pub deviations: Vec<f64>,
    /// ln p of what was observed of every sample; 0 for a sample of which nothing was.
    pub log_likelihood: Vec<f64>,
    /// How many cells were missing.
    pub missing: usize,
    /// The samples of which nothing was observed.
    pub empty: Vec<usize>,
    /// The samples whose posterior was tempered: with [`Temper::Auto`] those of which a large region is missing.
    pub tempered: Vec<usize>,
}

/// # Errors
/// Samples of another shape, and infinite ones.
impl Mixture {
    /// Fills in the cells that are NaN: the mean and the standard deviation of each given all observed cells of its sample, over all
    /// components. Samples with the same cells missing share their factorisation. Where a large region is missing, the observed cells are
    /// trusted less than exactly, see [`Temper::Auto`].
    ///
    /// ```
    /// use matmix::{FitOptions, Samples, fit};
    ///
    /// let numbers: Vec<f64> = (0..240).map(|i| f64::from((i * 37) % 101)).collect();
    /// let samples = Samples::from_slice(&[4, 3], &numbers)?;
    /// let model = fit(&samples, &FitOptions { rank: vec![2, 1], ..FitOptions::default() })?.model;
    /// let mut broken = numbers.clone();
    /// broken[5] = f64::NAN;
    /// let filled = model.impute(&Samples::from_vec(&[4, 3], broken)?)?;
    /// assert!(filled.values[5].is_finite() && filled.deviations[5] > 0.0);
    /// assert_eq!(filled.values[6], numbers[6]);
    /// # Ok::<(), matmix::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the samples have another shape than the model, or a cell is infinite.
    pub fn impute(&self, samples: &Samples<'_>) -> Result<Imputed> {
        self.impute_by(samples, Temper::default())
    }

    /// The same, with observed cells trusted as far as `temper` says. The log-likelihoods are exact in any case.
    ///
    /// # Errors
    /// As [`impute`](Self::impute), and a temper that is none.
    pub fn impute_by(&self, samples: &Samples<'_>, temper: Temper) -> Result<Imputed> {
        let broken = Broken::of(self, samples, temper)?;
        let size = self.sample_len();
        let parts = broken.each(self, samples, |pattern, x, _| {
            let found = pattern.condition(x);
            (pattern.moments(&found), found.log_likelihood)
        })?;
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
        let missing = broken.patterns.iter().map(|(missing, members)| missing.len() * members.len()).sum();
        let empty = broken.patterns.get(&(0..size).collect::<Holes>()).cloned().unwrap_or_default();
        let tempered = broken.tempered;
        if !tempered.is_empty() {
            let own = samples.clone().with_missing(Missing::Nan).select_part(&tempered)?;
            let exact = self.score_samples(&own)?;
            tempered.iter().zip(exact).for_each(|(&n, exact)| log_likelihood[n] = exact);
        }
        Ok(Imputed { values, deviations, log_likelihood, missing, empty, tempered })
    }

    /// Draws all missing cells of every sample together, `draws` times: draws × N × P, observed cells as they were. What is computed from
    /// each of them and then averaged knows how uncertain the missing cells are (multiple imputation). The draws of a sample depend on
    /// the seed and its number alone.
    ///
    /// # Errors
    /// As [`impute`](Self::impute), and if there is not enough memory.
    pub fn impute_draws(&self, samples: &Samples<'_>, draws: usize, seed: u64) -> Result<Vec<f64>> {
        self.impute_draws_by(samples, draws, seed, Temper::default())
    }

    /// The same, with observed cells trusted as far as `temper` says.
    ///
    /// # Errors
    /// As [`impute_by`](Self::impute_by).
    pub fn impute_draws_by(
        &self,
        samples: &Samples<'_>,
        draws: usize,
        seed: u64,
        temper: Temper,
    ) -> Result<Vec<f64>> {
        let broken = Broken::of(self, samples, temper)?;
        let size = self.sample_len();
        let parts = broken.each(self, samples, |pattern, x, n| {
            let found = pattern.condition(x);
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(n as u64);
            let mut chance = Random(rng);
            (0..draws).map(|_| pattern.draw(&found, &mut chance)).collect::<Vec<_>>()
        })?;
        let mut all = broken.values.repeat(draws);
        for ((missing, members), found) in broken.patterns.iter().zip(parts) {
            for (&n, draws) in members.iter().zip(found) {
                for (draw, cells) in draws.iter().enumerate() {
                    let to = &mut all[draw * samples.len() * size..][n * size..(n + 1) * size];
                    missing.iter().zip(cells).for_each(|(&i, x)| to[i] = *x);
                }
            }
        }
        Ok(all)
    }
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

    /// What `work` says about every sample, by pattern, in the order of its members.
    fn each<R: Send>(
        &self,
        model: &Mixture,
        samples: &Samples<'_>,
        work: impl Fn(&Pattern<'_>, &[f64], usize) -> R + Sync,
    ) -> Result<Vec<Vec<R>>> {
        let patterns: Vec<(&Holes, &Vec<usize>)> = self.patterns.iter().collect();
        let size = samples.sample_len();
        let parts = parallel::map(patterns.len(), |at| {
            let (missing, members) = patterns[at];
            let pattern = Pattern::new(model, missing, self.tempers[at]);
            let pattern = pattern.ok_or(Error::Overflow { sample: members[0] })?;
            let of = |&n: &usize| work(&pattern, &self.values[n * size..(n + 1) * size], n);
            Ok(members.iter().map(of).collect())
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
