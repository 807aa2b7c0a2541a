//! The EM pass: E-step and sums in one walk over the samples.

use pulp::{Simd, WithSimd};

use super::block::{Block, Origin, Picked};
use super::chunks;
use super::coarse::{Bounds, Coarse};
use super::plan::{Plan, Precision};
use super::products::Products;
use super::simd::{Path, Real};
use super::statistics::Statistics;
use crate::data::{Chunk, Samples};
use crate::error::{Error, Result};
use crate::model::Mixture;

/// Responsibilities below this add nothing that double precision could hold.
const NEGLIGIBLE: f64 = 1e-12;

/// e^CUTOFF is far below what a double can add to 1, and exponentials are not free.
const CUTOFF: f64 = -60.0;

/// One pass of `model` over all samples, with the sums that update `mode`.
pub(crate) fn em_pass(
    model: &Mixture,
    samples: &Samples<'_>,
    mode: usize,
    precision: Precision,
    path: Path,
) -> Result<Statistics> {
    em_pass_over(model, samples, mode, precision, path, true)
}

/// The same, with or without skipping hopeless components.
pub(crate) fn em_pass_over(
    model: &Mixture,
    samples: &Samples<'_>,
    mode: usize,
    precision: Precision,
    path: Path,
    skipping: bool,
) -> Result<Statistics> {
    if samples.shape() != model.shape() {
        return Err(Error::ShapeMismatch {
            expected: model.shape().to_vec(),
            found: samples.shape().to_vec(),
        });
    }
    if precision.is_double(samples.element(), model) {
        run::<f64>(model, samples, mode, path, skipping)
    } else {
        run::<f32>(model, samples, mode, path, skipping)
    }
}

fn run<T: Real>(
    model: &Mixture,
    samples: &Samples<'_>,
    mode: usize,
    path: Path,
    skipping: bool,
) -> Result<Statistics> {
    let (plan, coarse) =
        if skipping { Plan::<T>::with_bounds(model, mode) } else { (Plan::new(model, mode), None) };
    chunks::sum(
        samples,
        Statistics::bytes(model),
        || Scratch::new(&plan, coarse.as_ref()),
        |scratch, range, chunk| {
            let mut sums = Statistics::zero(model, mode);
            path.run(Accumulate {
                plan: &plan,
                coarse: coarse.as_ref(),
                samples,
                chunk,
                first: range.start,
                scratch,
                sums: &mut sums,
            });
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
    let plan = Plan::<f64>::new(model, mode);
    let mut scratch = Scratch::new(&plan, None);
    let mut run = |chunk: Chunk<'_>, first: usize| {
        let mut sums = Statistics::zero(model, mode);
        let scratch = &mut scratch;
        path.run(Accumulate { plan: &plan, coarse: None, samples, chunk, first, scratch, sums: &mut sums });
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

/// What a thread reuses from chunk to chunk.
struct Scratch<T> {
    block: Block<T>,
    /// Which components need not be looked at, where finding out is worth it.
    bounds: Option<Bounds<T>>,
    /// Σ γ (X − G) per component: one chunk in the working precision, the sum of chunks in double.
    means: Vec<T>,
    /// A, H and S likewise.
    products: Products<T>,
    /// Whether a component has been given anything in this chunk.
    touched: Vec<bool>,
    /// γ of one sample, per slot.
    gamma: Vec<f64>,
    /// γ times the weight of the sample, zero where it is negligible, `[slot][lane]`.
    shares: Vec<T>,
    /// The largest ln π_k p(X|k) so far, per lane.
    largest: Vec<f64>,
}

impl<T: Real> Scratch<T> {
    fn new(plan: &Plan<T>, coarse: Option<&Coarse<T>>) -> Self {
        let k = plan.components.len();
        let block = Block::new(plan);
        Self {
            means: vec![T::from_f64(0.0); k * plan.sample_len],
            products: Products::new(plan, block.lanes),
            touched: vec![false; k],
            gamma: vec![0.0; k],
            shares: vec![T::from_f64(0.0); k * block.lanes],
            largest: vec![0.0; block.lanes],
            bounds: coarse.map(Coarse::scratch),
            block,
        }
    }
}

struct Accumulate<'a, T> {
    plan: &'a Plan<T>,
    coarse: Option<&'a Coarse<T>>,
    samples: &'a Samples<'a>,
    chunk: Chunk<'a>,
    first: usize,
    scratch: &'a mut Scratch<T>,
    sums: &'a mut Statistics,
}

impl<T: Real> WithSimd for Accumulate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { plan, coarse, samples, chunk, first, scratch, sums } = self;
        let size = plan.sample_len;
        let count = chunk.len() / size;
        let lanes = scratch.block.lanes;
        let scale = samples.scale();
        scratch.touched.fill(false);
        let mut order: Vec<u32> = (0..count as u32).collect();
        let all: Vec<usize> = (0..plan.components.len()).collect();
        let bounded = scratch.find_bounds(simd, plan, coarse, chunk, scale, &all, &mut order);
        let mut components = all;
        for start in (0..count).step_by(lanes) {
            let end = (start + lanes).min(count);
            let (of, next) = (&order[start..end], &order[end..(end + lanes).min(count)]);
            let picked = Picked { chunk, scale, of, next };
            if bounded {
                scratch.evaluate_some(simd, plan, picked, &mut components);
            } else {
                scratch.block.evaluate(simd, plan, Origin::Chunk(picked), &components, 0);
            }
            sums.evaluated += (components.len() * of.len()) as u64;
            scratch.shares[..components.len() * lanes].fill(T::from_f64(0.0));
            for (lane, &n) in of.iter().enumerate() {
                let sample = first + n as usize;
                let raw = chunk.slice(n as usize * size..(n as usize + 1) * size);
                scratch.add_sample(plan, &components, lane, sample, samples.weight(sample), raw, scale, sums);
            }
            for (slot, &k) in components.iter().enumerate() {
                let gamma = &scratch.shares[slot * lanes..(slot + 1) * lanes];
                if gamma.iter().any(|&g| g != T::from_f64(0.0)) {
                    scratch.products.add(simd, plan, &scratch.block, (slot, k), picked, gamma);
                }
            }
        }
        scratch.flush(simd, plan, sums);
    }
}

impl<T: Real> Scratch<T> {
    /// Bounds on the densities of all samples of a chunk, and an order of the samples in which neighbours are likely to
    /// belong to the same component. False if the bounds of the first block would not have saved enough.
    #[inline(always)]
    fn find_bounds<S: Simd>(
        &mut self,
        simd: S,
        plan: &Plan<T>,
        coarse: Option<&Coarse<T>>,
        chunk: Chunk<'_>,
        scale: f64,
        all: &[usize],
        order: &mut [u32],
    ) -> bool {
        let Some((coarse, bounds)) = coarse.zip(self.bounds.as_mut()) else { return false };
        let lanes = self.block.lanes;
        bounds.clear();
        for start in (0..order.len()).step_by(lanes) {
            let end = (start + lanes).min(order.len());
            let (of, next) = (&order[start..end], &order[end..(end + lanes).min(order.len())]);
            let picked = Picked { chunk, scale, of, next };
            bounds.add(simd, coarse, &plan.reference, picked);
            if start == 0 {
                self.block.evaluate(simd, plan, Origin::Chunk(picked), all, 0);
                find_largest(&self.block, plan, all, &mut self.largest);
                if !bounds.are_useful(of, &self.largest) {
                    return false;
                }
            }
        }
        order.sort_by_key(|&n| bounds.likely(n));
        true
    }

    /// Evaluates the components that have the largest bound for some sample of the block, then those that may still
    /// matter beside them; `components` becomes the list of both.
    #[inline(always)]
    fn evaluate_some<S: Simd>(
        &mut self,
        simd: S,
        plan: &Plan<T>,
        picked: Picked<'_>,
        components: &mut Vec<usize>,
    ) {
        let Some(bounds) = &self.bounds else { unreachable!("bounds were found") };
        components.clear();
        components.extend(picked.of.iter().map(|&n| bounds.likely(n)));
        // The samples are sorted by this.
        components.dedup();
        let likely = components.len();
        self.block.evaluate(simd, plan, Origin::Chunk(picked), components, 0);
        find_largest(&self.block, plan, components, &mut self.largest);
        for k in 0..plan.components.len() {
            let matters = |(&n, &largest): (&u32, &f64)| bounds.may_matter(n, k, largest);
            if !components[..likely].contains(&k) && picked.of.iter().zip(&self.largest).any(matters) {
                components.push(k);
            }
        }
        if components.len() > likely {
            self.block.evaluate(simd, plan, Origin::Chunk(picked), components, likely);
        }
    }

    /// Everything about one sample but the products, which are made for all samples of a block together.
    #[inline(always)]
    fn add_sample(
        &mut self,
        plan: &Plan<T>,
        components: &[usize],
        lane: usize,
        sample: usize,
        weight: f64,
        raw: Chunk<'_>,
        scale: f64,
        sums: &mut Statistics,
    ) {
        let lanes = self.block.lanes;
        let (best, log_likelihood) =
            responsibilities(&self.block, plan, components, lane, CUTOFF, &mut self.gamma);
        sums.n_samples += 1;
        if weight == 0.0 {
            return;
        }
        sums.weight += weight;
        sums.log_likelihood += weight * log_likelihood;
        sums.squared_error += weight * self.block.squared_error[best * lanes + lane];
        sums.note_likelihood(log_likelihood, sample);
        sums.components[components[best]].assigned += 1;
        for (slot, &k) in components.iter().enumerate() {
            if self.gamma[slot] > NEGLIGIBLE {
                let gamma = self.gamma[slot] * weight;
                let to = &mut sums.components[k];
                to.weight += gamma;
                to.squared_distance += gamma * self.block.squared_distance[slot * lanes + lane];
                self.shares[slot * lanes + lane] = T::from_f64(gamma);
                self.touched[k] = true;
                self.add_to_mean(plan, k, gamma, raw, T::from_f64(scale));
            }
        }
    }

    /// Σ γ (X − G).
    #[inline(always)]
    fn add_to_mean(&mut self, plan: &Plan<T>, k: usize, gamma: f64, raw: Chunk<'_>, scale: T) {
        let size = plan.sample_len;
        let to = &mut self.means[k * size..(k + 1) * size];
        let reference = &plan.reference[..size];
        let gamma = T::from_f64(gamma);
        // Plain loops: an iterator's `for_each` may be compiled apart, without the wide instructions.
        macro_rules! add {
            ($x:expr) => {
                for i in 0..size {
                    to[i] += gamma * (T::from_f64(f64::from($x[i])) * scale - reference[i]);
                }
            };
        }
        match raw {
            Chunk::U8(x) => add!(x[..size]),
            Chunk::F32(x) => add!(x[..size]),
            Chunk::F64(x) => add!(x[..size]),
        }
    }

    /// Brings the sums of this chunk to double precision, and Σ γ (X − G) to Σ γ (X − M).
    #[inline(always)]
    fn flush<S: Simd>(&mut self, simd: S, plan: &Plan<T>, sums: &mut Statistics) {
        let size = plan.sample_len;
        for (k, component) in plan.components.iter().enumerate() {
            if self.touched[k] {
                let to = &mut sums.components[k];
                let (weight, from) = (to.weight, &mut self.means[k * size..(k + 1) * size]);
                for ((to, from), offset) in to.mean_shift.iter_mut().zip(from).zip(&component.offset) {
                    *to = from.to_f64() - weight * offset;
                    *from = T::from_f64(0.0);
                }
                self.products.flush(simd, plan, k, to);
            }
        }
    }
}

/// The largest ln π_k p(X|k) per lane.
#[inline(always)]
fn find_largest<T: Real>(block: &Block<T>, plan: &Plan<T>, components: &[usize], largest: &mut [f64]) {
    largest.fill(f64::NEG_INFINITY);
    for (slot, &k) in components.iter().enumerate() {
        let weight = plan.components[k].log_weight;
        let density = &block.log_density[slot * block.lanes..(slot + 1) * block.lanes];
        for (largest, density) in largest.iter_mut().zip(density) {
            let joint = weight + density;
            *largest = if joint > *largest { joint } else { *largest };
        }
    }
}

/// Fills the responsibilities of one lane, those below e^`cutoff` with zero; returns the slot of the most probable
/// component and ln p(X).
#[inline(always)]
pub(crate) fn responsibilities<T: Real>(
    block: &Block<T>,
    plan: &Plan<T>,
    components: &[usize],
    lane: usize,
    cutoff: f64,
    gamma: &mut [f64],
) -> (usize, f64) {
    let lanes = block.lanes;
    let gamma = &mut gamma[..components.len()];
    let (mut best, mut largest) = (0, f64::NEG_INFINITY);
    for (slot, (&k, gamma)) in components.iter().zip(gamma.iter_mut()).enumerate() {
        let joint = plan.components[k].log_weight + block.log_density[slot * lanes + lane];
        *gamma = joint;
        if joint > largest {
            (best, largest) = (slot, joint);
        }
    }
    let mut sum = 0.0;
    for g in gamma.iter_mut() {
        let difference = *g - largest;
        // NaN falls through and is caught by the caller.
        *g = if difference < cutoff { 0.0 } else { difference.exp() };
        sum += *g;
    }
    for g in gamma.iter_mut() {
        *g /= sum;
    }
    (best, largest + sum.ln())
}
