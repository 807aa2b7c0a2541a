//! The size of the default model for outliers: a small mixture of PPCA, chosen by held-out likelihood.

use rand::seq::SliceRandom;

use super::iterate::Observer;
use super::mixture::fit_on;
use super::options::FitOptions;
use super::start;
use super::threads::with_threads;
use crate::data::Samples;
use crate::error::{Error, Result};
use crate::infer::ask;
use crate::pass::{Backend, Engine, Question};

/// The samples that decide, at most.
const SAMPLES: usize = 16_384;
/// Held-out fraction: 1/5.
const HELD_OUT: usize = 5;
/// The samples below which nothing is held out.
const FEW: usize = 50;

/// The most components and factors. More factors raise the likelihood of the class that was fitted and the likelihood of other classes: means over
/// the ten digits of MNIST, 1,000 samples each, of the area under the curve are 0.951 for 3 components with 32 factors, 0.942 with 64.
const MOST_COMPONENTS: usize = 3;
const FACTORS: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// Smallest number of samples of a component: a smaller component fits a few outliers and makes them likely.
const EACH: usize = 200;

/// Iterations of a candidate, and the change that stops them: candidates differ by many nats.
const ITERATIONS: usize = 30;
const TOLERANCE: f64 = 1e-4;

/// Chooses components and factors of a mixture of PPCA that detects outliers, by the likelihood of samples held out: (K, factors).
///
/// Numbers that are given stay. Candidates go from few factors up, then from three components down; together they cost less than
/// ten fits of the chosen size. Missing cells are left out of the likelihood.
///
/// # Errors
/// As [`fit`](super::fit); if the samples are not vectors.
///
/// ```
/// use std::ops::ControlFlow;
/// use matmix::{FitOptions, Samples, detector_size};
///
/// // Two hundred vectors of six numbers along one direction, and some noise.
/// let number = |i: u32| f64::from(i / 6 * 37 % 101) * f64::from(i % 6) + f64::from(i * 71 % 23) / 10.0;
/// let samples = Samples::from_vec(&[6], (0..1200).map(number).collect())?;
/// let (components, factors) =
///     detector_size(&samples, None, None, &FitOptions::default(), &mut |_| ControlFlow::Continue(()))?;
/// assert!((1..=3).contains(&components) && (1..=3).contains(&factors));
/// # Ok::<(), matmix::Error>(())
/// ```
pub fn detector_size(
    engine: &dyn Engine,
    components: Option<usize>,
    factors: Option<usize>,
    options: &FitOptions,
    observer: &mut Observer<'_>,
) -> Result<(usize, usize)> {
    let &[size] = engine.shape() else {
        return Err(Error::Order { what: "a mixture of PPCA", expected: 1, found: engine.shape().len() });
    };
    if let (Some(components), Some(factors)) = (components, factors) {
        return Ok((components, factors));
    }
    let mut rng = start::stream(options.seed, 0);
    let samples = &*start::at_hand(engine, SAMPLES, &mut rng)?;
    let mut places: Vec<usize> = (0..samples.len()).filter(|&n| samples.weight(n) > 0.0).collect();
    // A sample with a weight of three counts as three samples do.
    let count = places.len().max(samples.total_weight() as usize);
    // Half of the directions at most, or nothing would be left for the noise.
    let most = (size / 2).min(count / 8).max(1);
    let ladder: Vec<usize> = match factors {
        Some(factors) => vec![factors],
        None => FACTORS.iter().copied().filter(|&factors| factors <= most).collect(),
    };
    if count < FEW {
        return Ok((components.unwrap_or(1), ladder[ladder.len() - 1]));
    }
    places.shuffle(&mut rng);
    let part = |held: bool| {
        let chosen = places.iter().enumerate().filter(|(at, _)| (at % HELD_OUT == 0) == held);
        let mut part: Vec<usize> = chosen.map(|(_, &n)| n).collect();
        part.sort_unstable();
        samples.clone().select(&part)
    };
    let mut judging =
        Judging { train: part(false)?, test: part(true)?, backend: engine.backend(), options, observer };
    // Small numbers of factors are all alike and rarely chosen.
    let ladder = &ladder[ladder.len().saturating_sub(4)..];
    let most = components.unwrap_or((count / EACH).clamp(1, MOST_COMPONENTS));
    let mut best = (f64::NEG_INFINITY, most, ladder[0]);
    for &factors in ladder {
        let value = judging.value(most, factors)?;
        if value <= best.0 {
            break;
        }
        best = (value, most, factors);
    }
    if components.is_none() {
        for fewer in (1..best.1).rev() {
            let value = judging.value(fewer, best.2)?;
            if value <= best.0 {
                break;
            }
            best = (value, fewer, best.2);
        }
    }
    Ok((best.1, best.2))
}

/// What judges candidates.
struct Judging<'a, 'o, 'f> {
    train: Samples<'a>,
    test: Samples<'a>,
    backend: &'a dyn Backend,
    options: &'a FitOptions,
    observer: &'o mut Observer<'f>,
}

impl Judging<'_, '_, '_> {
    /// The mean log-likelihood of the samples held out.
    fn value(&mut self, components: usize, factors: usize) -> Result<f64> {
        let options = FitOptions {
            components,
            rank: vec![factors],
            max_iter: self.options.max_iter.min(ITERATIONS),
            tol: self.options.tol.max(TOLERANCE),
            checkpoint: None,
            ..self.options.clone()
        };
        let fitted = fit_on(&*self.backend.over(&self.train)?, &options, self.observer)?;
        let (backend, test) = (self.backend, &self.test);
        let log_densities = with_threads(options.threads, || {
            ask(fitted.model.into(), &*backend.over(test)?, [Question::LogLikelihood]).map(|[values]| values)
        })??;
        let total: f64 = log_densities.iter().enumerate().map(|(n, value)| value * test.weight(n)).sum();
        Ok(if total.is_finite() { total / test.total_weight() } else { f64::NEG_INFINITY })
    }
}
