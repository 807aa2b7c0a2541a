//! What a model says about samples, chunk by chunk: the E-step without the sums.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::block::{Block, Picked};
use super::chunks;
use super::densities::Densities;
use super::plan::{Plan, Precision, cheapest_last};
use super::simd::{Path, Real};
use super::stack::{Stack, Stacked};
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
    let setup = Setup::<T>::new(model);
    let path = Path::best();
    chunks::fold(
        samples,
        result_bytes * chunks::chunk_len(samples.sample_len()),
        || Kernel::new(&setup),
        |kernel, range, chunk| {
            let mut out = Inferred { range: range.clone(), ..Inferred::default() };
            let scale = samples.scale();
            path.run(Infer { setup: &setup, chunk, scale, cores, kernel, out: &mut out });
            if out.log_likelihood.iter().any(|l| !l.is_finite()) {
                samples.check_finite(range.clone())?;
                // Squares that left the range of single precision have room in double.
                let setup = Setup::<f64>::new(model);
                let kernel = &mut Kernel::new(&setup);
                out = Inferred { range: range.clone(), ..Inferred::default() };
                path.run(Infer { setup: &setup, chunk, scale, cores, kernel, out: &mut out });
            }
            if let Some(n) = out.log_likelihood.iter().position(|l| !l.is_finite()) {
                return Err(Error::Overflow { sample: range.start + n });
            }
            Ok(finish(out))
        },
        fold,
    )
}

/// A model made ready for the E-step.
struct Setup<T> {
    plan: Plan<T>,
    /// Its components side by side, where that is faster than samples side by side.
    stacked: Option<Stacked<T>>,
}

impl<T: Real> Setup<T> {
    fn new(model: &Mixture) -> Self {
        let plan = Plan::new(model, cheapest_last(model.shape(), model.rank()));
        Self { stacked: Stacked::is_faster(&plan).then(|| Stacked::new(&plan)), plan }
    }
}

/// The two ways to evaluate a block of samples.
enum Kernel<'a, T> {
    SamplesAbreast(Block<T>),
    ComponentsAbreast(&'a Stacked<T>, Stack<T>),
}

impl<'a, T: Real> Kernel<'a, T> {
    fn new(setup: &'a Setup<T>) -> Self {
        match &setup.stacked {
            Some(stacked) => {
                Kernel::ComponentsAbreast(stacked, Stack::new(stacked, setup.plan.components.len()))
            }
            None => Kernel::SamplesAbreast(Block::new(&setup.plan)),
        }
    }

    fn densities(&self) -> &Densities {
        match self {
            Kernel::SamplesAbreast(block) => &block.densities,
            Kernel::ComponentsAbreast(_, stack) => &stack.densities,
        }
    }
}

struct Infer<'a, 's, T> {
    setup: &'a Setup<T>,
    chunk: Chunk<'a>,
    scale: f64,
    cores: Cores,
    kernel: &'a mut Kernel<'s, T>,
    out: &'a mut Inferred,
}

impl<T: Real> WithSimd for Infer<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { setup, chunk, scale, cores, kernel, out } = self;
        let (plan, lanes) = (&setup.plan, kernel.densities().lanes);
        let count = chunk.len() / plan.sample_len;
        let all: Vec<usize> = (0..plan.components.len()).collect();
        let mut gamma = vec![0.0; all.len()];
        for picked in Picked::all(chunk, scale, count, lanes) {
            match kernel {
                Kernel::SamplesAbreast(block) => {
                    block.evaluate(simd, plan, picked);
                    for lane in 0..picked.count {
                        let y = |k| block.y_of(plan, k, lane);
                        out.add(plan, &block.densities, &all, lane, cores, &mut gamma, y);
                    }
                }
                Kernel::ComponentsAbreast(stacked, stack) => {
                    stack.load(simd, stacked, picked, &plan.reference);
                    let fetch = stacked.fetch(picked, plan.sample_len);
                    stack.evaluate(simd, plan, stacked, &all, picked.count, fetch);
                    for lane in 0..picked.count {
                        let y = |k| stack.y_of(stacked, k, lane);
                        out.add(plan, &stack.densities, &all, lane, cores, &mut gamma, y);
                    }
                }
            }
        }
    }
}

impl Inferred {
    /// Adds one sample, whose Y under each component is `y`.
    #[inline(always)]
    fn add<T: Real, Y: Iterator<Item = T>>(
        &mut self,
        plan: &Plan<T>,
        densities: &Densities,
        all: &[usize],
        lane: usize,
        cores: Cores,
        gamma: &mut [f64],
        y: impl Fn(usize) -> Y,
    ) {
        let lanes = densities.lanes;
        let (best, log_likelihood) = densities.responsibilities(plan, all, lane, f64::NEG_INFINITY, gamma);
        self.log_likelihood.push(log_likelihood);
        self.best.push(best);
        let explained = plan.components[best].explained(y(best));
        self.squared_error.push(densities.squared_error((best, lane), explained));
        self.log_density.extend(all.iter().map(|k| densities.log_density[k * lanes + lane]));
        self.responsibilities.extend_from_slice(gamma);
        let wanted = match cores {
            Cores::None => 0..0,
            Cores::MostProbable => best..best + 1,
            Cores::All => 0..all.len(),
        };
        for k in wanted {
            let precision = &plan.components[k].density.precision;
            self.cores.extend(y(k).zip(precision).map(|(y, p)| y.to_f64() * p));
        }
    }
}
