//! The EM pass: E-step and sums in one walk over the samples.

use pulp::{Simd, WithSimd};

use super::aligned::Aligned;
use super::block::{Block, Picked};
use super::chunks;
use super::coarse::{Bounds, Coarse, are_useful};
use super::densities::Densities;
use super::plan::{Plan, Precision};
use super::products::Products;
use super::simd::{Path, Real};
use super::stack::{Stack, StackProducts, Stacked};
use super::statistics::Statistics;
use crate::data::{Chunk, Samples};
use crate::error::{Error, Result};
use crate::model::Mixture;

/// Responsibilities below this add nothing that double precision could hold.
const NEGLIGIBLE: f64 = 1e-12;

/// e^CUTOFF is far below what a double can add to 1, and exponentials are not free.
const CUTOFF: f64 = -60.0;

/// How a pass goes about its work; the results are the same up to rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Whatever is fastest, without components that are hopeless for a sample.
    Best,
    /// The fastest way to evaluate all densities.
    AllDensities,
    /// All densities, samples side by side.
    #[cfg(test)]
    SamplesAbreast,
    /// All densities, components side by side.
    #[cfg(test)]
    ComponentsAbreast,
}

/// One pass of `model` over all samples, with the sums that update `mode`.
pub(crate) fn em_pass(
    model: &Mixture,
    samples: &Samples<'_>,
    mode: usize,
    precision: Precision,
    path: Path,
) -> Result<Statistics> {
    em_pass_by(model, samples, mode, precision, path, Way::Best)
}

/// The same in a given way.
pub(crate) fn em_pass_by(
    model: &Mixture,
    samples: &Samples<'_>,
    mode: usize,
    precision: Precision,
    path: Path,
    way: Way,
) -> Result<Statistics> {
    if samples.shape() != model.shape() {
        return Err(Error::ShapeMismatch {
            expected: model.shape().to_vec(),
            found: samples.shape().to_vec(),
        });
    }
    if precision.is_double(samples.element(), model) {
        run::<f64>(model, samples, mode, path, way)
    } else {
        run::<f32>(model, samples, mode, path, way)
    }
}

fn run<T: Real>(
    model: &Mixture,
    samples: &Samples<'_>,
    mode: usize,
    path: Path,
    way: Way,
) -> Result<Statistics> {
    let setup = Setup::<T>::new(model, mode, way);
    chunks::sum(
        samples,
        Statistics::bytes(model),
        || Scratch::new(&setup),
        |scratch, range, chunk| {
            let mut sums = Statistics::zero(model, mode);
            let first = range.start;
            path.run(Accumulate { setup: &setup, samples, chunk, first, scratch, sums: &mut sums });
            if sums.is_finite() {
                return Ok(sums);
            }
            samples.check_finite(range.clone())?;
            in_double(model, samples, mode, path, chunk, range.start)
        },
        Statistics::merge,
    )
}

/// A chunk whose squares left the range of single precision, once more in double; the error names the sample that is
/// too large even for that.
fn in_double(
    model: &Mixture,
    samples: &Samples<'_>,
    mode: usize,
    path: Path,
    chunk: Chunk<'_>,
    first: usize,
) -> Result<Statistics> {
    let setup = Setup::<f64>::new(model, mode, Way::AllDensities);
    let mut scratch = Scratch::new(&setup);
    let mut run = |chunk: Chunk<'_>, first: usize| {
        let mut sums = Statistics::zero(model, mode);
        let scratch = &mut scratch;
        path.run(Accumulate { setup: &setup, samples, chunk, first, scratch, sums: &mut sums });
        sums
    };
    let sums = run(chunk, first);
    if sums.is_finite() {
        return Ok(sums);
    }
    let size = samples.sample_len();
    let alone = |n: &usize| !run(chunk.slice(n * size..(n + 1) * size), first + n).is_finite();
    let sample = first + (0..chunk.len() / size).find(alone).unwrap_or(0);
    Err(Error::Overflow { sample })
}

/// A model made ready for a pass.
struct Setup<T> {
    plan: Plan<T>,
    /// Its components side by side, where that is faster than samples side by side.
    stacked: Option<Stacked<T>>,
    /// What tells hopeless components, where that is worth it.
    coarse: Option<Coarse<T>>,
}

impl<T: Real> Setup<T> {
    fn new(model: &Mixture, mode: usize, way: Way) -> Self {
        let plan = Plan::new(model, mode);
        let coarse = if way == Way::Best { Coarse::new(model, &plan.reference) } else { None };
        let stacked = match way {
            Way::Best if coarse.is_some() => true,
            Way::Best | Way::AllDensities => Stacked::is_faster(&plan),
            #[cfg(test)]
            Way::SamplesAbreast => false,
            #[cfg(test)]
            Way::ComponentsAbreast => true,
        };
        Self { stacked: stacked.then(|| Stacked::new(&plan)), plan, coarse }
    }
}

/// What a thread reuses from chunk to chunk.
struct Scratch<'a, T> {
    kernel: Kernel<'a, T>,
    shares: Shares<T>,
}

/// The two ways to evaluate and sum up.
enum Kernel<'a, T> {
    SamplesAbreast {
        block: Block<T>,
        products: Products<T>,
        /// γ times the weight of the sample, zero where it is negligible, `[component][lane]`.
        gamma: Vec<T>,
    },
    ComponentsAbreast {
        stacked: &'a Stacked<T>,
        stack: Stack<T>,
        products: StackProducts<T>,
        bounds: Option<Box<(&'a Coarse<T>, Bounds<T>)>>,
    },
}

impl<'a, T: Real> Scratch<'a, T> {
    fn new(setup: &'a Setup<T>) -> Self {
        let Setup { plan, stacked, coarse } = setup;
        let k = plan.components.len();
        let kernel = match stacked {
            Some(stacked) => {
                let stack = Stack::new(stacked, k);
                let products = StackProducts::new(plan, stacked);
                let bounds = coarse.as_ref().map(|coarse| Box::new((coarse, coarse.scratch())));
                Kernel::ComponentsAbreast { stacked, stack, products, bounds }
            }
            None => {
                let block = Block::new(plan);
                let lanes = block.densities.lanes;
                let gamma = vec![T::from_f64(0.0); k * lanes];
                Kernel::SamplesAbreast { products: Products::new(plan, lanes), gamma, block }
            }
        };
        Self { kernel, shares: Shares::new(plan) }
    }
}

struct Accumulate<'a, 's, T> {
    setup: &'a Setup<T>,
    samples: &'a Samples<'a>,
    chunk: Chunk<'a>,
    first: usize,
    scratch: &'a mut Scratch<'s, T>,
    sums: &'a mut Statistics,
}

impl<T: Real> WithSimd for Accumulate<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Scratch { kernel, shares } = self.scratch;
        shares.touched.fill(false);
        let plan = &self.setup.plan;
        let work = Work {
            plan,
            samples: self.samples,
            chunk: self.chunk,
            first: self.first,
            all: (0..plan.components.len()).collect(),
        };
        match kernel {
            Kernel::SamplesAbreast { block, products, gamma } => {
                work.samples_abreast(simd, block, products, gamma, shares, self.sums);
            }
            Kernel::ComponentsAbreast { stacked, stack, products, bounds } => {
                let bounds = bounds.as_deref_mut();
                work.components_abreast(simd, stacked, stack, products, bounds, shares, self.sums);
            }
        }
        shares.flush(plan, self.sums);
    }
}

/// A chunk of samples to be worked through.
struct Work<'a, T> {
    plan: &'a Plan<T>,
    samples: &'a Samples<'a>,
    chunk: Chunk<'a>,
    /// The number of its first sample.
    first: usize,
    /// All components.
    all: Vec<usize>,
}

impl<T: Real> Work<'_, T> {
    fn blocks(&self, lanes: usize) -> impl Iterator<Item = Picked<'_>> {
        let count = self.chunk.len() / self.plan.sample_len;
        Picked::all(self.chunk, self.samples.scale(), count, lanes)
    }

    #[inline(always)]
    fn samples_abreast<S: Simd>(
        &self,
        simd: S,
        block: &mut Block<T>,
        products: &mut Products<T>,
        gamma: &mut [T],
        shares: &mut Shares<T>,
        sums: &mut Statistics,
    ) {
        let (lanes, size) = (block.densities.lanes, self.plan.sample_len);
        for picked in self.blocks(lanes) {
            block.evaluate(simd, self.plan, picked);
            sums.evaluated += (self.all.len() * picked.count) as u64;
            gamma.fill(T::from_f64(0.0));
            for (lane, n) in picked.of().enumerate() {
                let explained = |k: usize| self.plan.components[k].explained(block.y_of(self.plan, k, lane));
                let sample = self.first + n;
                let densities = &block.densities;
                shares.find(self.plan, densities, &self.all, lane, explained, sample, self.samples, sums);
                let raw = self.chunk.slice(n * size..(n + 1) * size);
                for &(k, share) in &shares.kept {
                    gamma[k * lanes + lane] = share;
                    let mean = &mut shares.means[k * size..(k + 1) * size];
                    add_raw(mean, share, raw, T::from_f64(picked.scale), &self.plan.reference);
                }
            }
            for k in 0..self.all.len() {
                let gamma = &gamma[k * lanes..(k + 1) * lanes];
                if gamma.iter().any(|&g| g != T::from_f64(0.0)) {
                    products.add(simd, self.plan, block, k, picked, gamma);
                }
            }
        }
        for (k, to) in sums.components.iter_mut().enumerate() {
            if shares.touched[k] {
                products.flush(simd, self.plan, k, to);
            }
        }
    }

    #[inline(always)]
    fn components_abreast<S: Simd>(
        &self,
        simd: S,
        stacked: &Stacked<T>,
        stack: &mut Stack<T>,
        products: &mut StackProducts<T>,
        mut bounds: Option<&mut (&Coarse<T>, Bounds<T>)>,
        shares: &mut Shares<T>,
        sums: &mut Statistics,
    ) {
        let (plan, lanes, size) = (self.plan, stack.densities.lanes, self.plan.sample_len);
        let mut some = Vec::with_capacity(self.all.len());
        for picked in self.blocks(lanes) {
            stack.load(simd, stacked, picked, &plan.reference);
            let fetch = stacked.fetch(picked, size);
            match &mut bounds {
                Some((coarse, bounds)) => bounds.find(simd, coarse, stack.x(), picked.count, fetch),
                None => stack.evaluate(simd, plan, stacked, &self.all, picked.count, fetch),
            }
            let mut evaluated = 0;
            for (lane, n) in picked.of().enumerate() {
                let components = match &bounds {
                    Some((_, bounds)) => {
                        stack.evaluate_likely(simd, plan, stacked, lane, bounds.of(lane), &mut some);
                        &some
                    }
                    None => &self.all,
                };
                evaluated += components.len();
                let explained = |k| stack.explained(stacked, k, lane);
                let sample = self.first + n;
                let densities = &stack.densities;
                shares.find(plan, densities, components, lane, explained, sample, self.samples, sums);
                for &(k, share) in &shares.kept {
                    add(
                        &mut shares.means[k * size..(k + 1) * size],
                        share,
                        stack.sample(stacked, lane, size),
                    );
                    products.add(simd, stacked, stack, lane, k, share);
                }
            }
            sums.evaluated += evaluated as u64;
            // The first block of a chunk tells whether the bounds save anything.
            if picked.first == 0 && !are_useful(evaluated, picked.count * self.all.len()) {
                bounds = None;
            }
        }
        for (k, to) in sums.components.iter_mut().enumerate() {
            if shares.touched[k] {
                products.flush(simd, k, to);
            }
        }
    }
}

/// Which sample belongs to which component, and what follows for all sums but the products.
struct Shares<T> {
    /// Σ γ (X − G) per component: one chunk in the working precision, the sum of chunks in double.
    means: Aligned<T>,
    /// Whether a component has been given anything in this chunk.
    touched: Vec<bool>,
    /// γ of one sample, per slot.
    gamma: Vec<f64>,
    /// The components that one sample has a share in that is not negligible, and γ times its weight.
    kept: Vec<(usize, T)>,
}

impl<T: Real> Shares<T> {
    fn new(plan: &Plan<T>) -> Self {
        let k = plan.components.len();
        Self {
            means: Aligned::new(T::from_f64(0.0), k * plan.sample_len),
            touched: vec![false; k],
            gamma: vec![0.0; k],
            kept: Vec::with_capacity(k),
        }
    }

    /// The responsibilities of one sample, from its densities and what its core explains of it under a component.
    #[inline(always)]
    fn find(
        &mut self,
        plan: &Plan<T>,
        densities: &Densities,
        components: &[usize],
        lane: usize,
        explained: impl FnOnce(usize) -> f64,
        sample: usize,
        samples: &Samples<'_>,
        sums: &mut Statistics,
    ) {
        self.kept.clear();
        let lanes = densities.lanes;
        let (best, log_likelihood) =
            densities.responsibilities(plan, components, lane, CUTOFF, &mut self.gamma);
        sums.n_samples += 1;
        let weight = samples.weight(sample);
        if weight == 0.0 {
            return;
        }
        sums.weight += weight;
        sums.log_likelihood += weight * log_likelihood;
        sums.note_likelihood(log_likelihood, sample);
        let likely = components[best];
        let error = densities.squared_error((best, lane), explained(likely));
        sums.squared_error += weight * error;
        sums.components[likely].assigned += 1;
        for (slot, &k) in components.iter().enumerate() {
            if self.gamma[slot] > NEGLIGIBLE {
                let gamma = self.gamma[slot] * weight;
                let to = &mut sums.components[k];
                to.weight += gamma;
                to.squared_distance += gamma * densities.squared_distance[slot * lanes + lane];
                self.touched[k] = true;
                self.kept.push((k, T::from_f64(gamma)));
            }
        }
    }

    /// Brings Σ γ (X − G) of this chunk to double precision, and to Σ γ (X − M).
    #[inline(always)]
    fn flush(&mut self, plan: &Plan<T>, sums: &mut Statistics) {
        let size = plan.sample_len;
        for (k, component) in plan.components.iter().enumerate() {
            if self.touched[k] {
                let to = &mut sums.components[k];
                let (weight, from) = (to.weight, &mut self.means[k * size..(k + 1) * size]);
                for ((to, from), offset) in to.mean_shift.iter_mut().zip(from).zip(&component.offset) {
                    *to = from.to_f64() - weight * offset;
                    *from = T::from_f64(0.0);
                }
            }
        }
    }
}

// Plain loops in these: an iterator's `for_each` may be compiled apart, without the wide instructions.

/// Adds γ (X − G) to a mean.
#[inline(always)]
fn add<T: Real>(mean: &mut [T], gamma: T, x: &[T]) {
    let x = &x[..mean.len()];
    for i in 0..mean.len() {
        mean[i] += gamma * x[i];
    }
}

/// The same for a sample as it is stored.
#[inline(always)]
fn add_raw<T: Real>(mean: &mut [T], gamma: T, raw: Chunk<'_>, scale: T, reference: &[T]) {
    let size = mean.len();
    let reference = &reference[..size];
    macro_rules! add {
        ($x:expr) => {
            for i in 0..size {
                mean[i] += gamma * (T::from_f64(f64::from($x[i])) * scale - reference[i]);
            }
        };
    }
    match raw {
        Chunk::U8(x) => add!(x[..size]),
        Chunk::F32(x) => add!(x[..size]),
        Chunk::F64(x) => add!(x[..size]),
    }
}
