//! What a model says about samples, chunk by chunk: the E-step without the sums.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::block::{Block, Picked};
use super::chunks;
use super::plan::{Plan, Precision, cheapest_last};
use super::simd::{Path, Real};
use crate::data::{Chunk, Samples};
use crate::error::{Error, Result};
use crate::model::Mixture;

/// What is known about the samples of one chunk, sample after sample.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inferred {
    /// Which samples.
    pub(crate) range: Range<usize>,
    /// ln p(X_n).
    pub(crate) log_likelihood: Vec<f64>,
    /// The most probable component.
    pub(crate) best: Vec<usize>,
    /// ‖X − X̂‖² under the most probable component.
    pub(crate) squared_error: Vec<f64>,
    /// ln p(X_n|k), n × K.
    pub(crate) log_density: Vec<f64>,
    /// γ, n × K.
    pub(crate) responsibilities: Vec<f64>,
    /// Q, n × ρ for the most probable component or n × K × ρ for all.
    pub(crate) cores: Vec<f64>,
}

/// Which cores a caller wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cores {
    None,
    MostProbable,
    All,
}

/// Evaluates `model` on all samples and hands each chunk's findings, passed through `finish` in parallel, to `fold`
/// in order.
pub(crate) fn infer<R: Send>(
    model: &Mixture,
    samples: &Samples<'_>,
    cores: Cores,
    result_bytes: usize,
    finish: impl Fn(Inferred) -> R + Sync + Send,
    fold: impl FnMut(R),
) -> Result<()> {
    if samples.shape() != model.shape() {
        return Err(Error::ShapeMismatch {
            expected: model.shape().to_vec(),
            found: samples.shape().to_vec(),
        });
    }
    if Precision::Auto.is_double(samples.element(), model) {
        run::<f64, R>(model, samples, cores, result_bytes, finish, fold)
    } else {
        run::<f32, R>(model, samples, cores, result_bytes, finish, fold)
    }
}

fn run<T: Real, R: Send>(
    model: &Mixture,
    samples: &Samples<'_>,
    cores: Cores,
    result_bytes: usize,
    finish: impl Fn(Inferred) -> R + Sync + Send,
    fold: impl FnMut(R),
) -> Result<()> {
    let plan = Plan::<T>::new(model, cheapest_last(model.shape(), model.rank()));
    let path = Path::best();
    chunks::fold(
        samples,
        result_bytes * chunks::chunk_len(samples.sample_len()),
        || Block::new(&plan),
        |block, range, chunk| {
            let mut out = Inferred { range: range.clone(), ..Inferred::default() };
            let scale = samples.scale();
            path.run(Infer { plan: &plan, chunk, scale, cores, block, out: &mut out });
            if out.log_likelihood.iter().any(|l| !l.is_finite()) {
                samples.check_finite(range.clone())?;
                // Squares that left the range of single precision have room in double.
                let plan = Plan::<f64>::new(model, cheapest_last(model.shape(), model.rank()));
                let block = &mut Block::new(&plan);
                out = Inferred { range: range.clone(), ..Inferred::default() };
                path.run(Infer { plan: &plan, chunk, scale, cores, block, out: &mut out });
            }
            if let Some(n) = out.log_likelihood.iter().position(|l| !l.is_finite()) {
                return Err(Error::Overflow { sample: range.start + n });
            }
            Ok(finish(out))
        },
        fold,
    )
}

struct Infer<'a, T> {
    plan: &'a Plan<T>,
    chunk: Chunk<'a>,
    scale: f64,
    cores: Cores,
    block: &'a mut Block<T>,
    out: &'a mut Inferred,
}

impl<T: Real> WithSimd for Infer<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { plan, chunk, scale, cores, block, out } = self;
        let (size, k, lanes) = (plan.sample_len, plan.components.len(), block.densities.lanes);
        let count = chunk.len() / size;
        let mut gamma = vec![0.0; k];
        let all: Vec<usize> = (0..k).collect();
        for picked in Picked::all(chunk, scale, count, lanes) {
            block.evaluate(simd, plan, picked);
            let densities = &block.densities;
            for lane in 0..picked.count {
                let (best, log_likelihood) =
                    densities.responsibilities(plan, &all, lane, f64::NEG_INFINITY, &mut gamma);
                out.log_likelihood.push(log_likelihood);
                out.best.push(best);
                out.squared_error.push(block.squared_error(plan, best, lane));
                out.log_density.extend((0..k).map(|k| densities.log_density[k * lanes + lane]));
                out.responsibilities.extend(&gamma);
                let wanted = match cores {
                    Cores::None => 0..0,
                    Cores::MostProbable => best..best + 1,
                    Cores::All => 0..k,
                };
                for k in wanted {
                    let precision = &plan.components[k].density.precision;
                    out.cores.extend(block.y_of(plan, k, lane).zip(precision).map(|(y, p)| y.to_f64() * p));
                }
            }
        }
    }
}
