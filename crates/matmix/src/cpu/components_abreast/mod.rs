//! Components side by side: one column of a component's loadings per lane of a vector, samples one after the other.
//!
//! Beside blocks with one sample per lane ([`samples_abreast`](super::samples_abreast)) this needs no transposing, its working
//! set is a few samples, and single components can be evaluated for single samples; but it is only as good as the lanes are full, so
//! one component alone is no case for it.
//!
//! | file | what |
//! |---|---|
//! | [`stacked`] | a model made ready |
//! | [`kernel`] | contractions and inner products |
//! | [`means`] | inner products with the means of many components |
//! | [`products`] | the sums of a pass that updates one mode |

mod kernel;
mod means;
mod products;
mod stacked;

use std::ops::Range;

use pulp::{Simd, WithSimd};

use self::kernel::{Dots, First, GROUP, Later, RUN, TILE_ROWS};
pub(super) use self::means::MeansAbreast;
pub(super) use self::products::StackProducts;
pub(super) use self::stacked::StackedModel;
use self::stacked::place;
use super::bounds::may_matter;
use super::densities::{Densities, squared_distance};
use super::load::{Block, Fetch};
use super::plan::Plan;
use crate::simd::Aligned;
use crate::simd::Real;

/// Samples in a block, at most: so many share a mean once it is in a register.
const MAX_SAMPLES: usize = 8;

/// Bytes of the samples of a block: they stay in the second-level cache with all that is made of them.
const BLOCK_BYTES: usize = 128 << 10;

/// Samples that are contracted together.
const TOGETHER: usize = 4;

/// A block of samples and what the model makes of it.
pub(crate) struct Stack<T> {
    /// X − G, `[sample][element]`.
    x: Aligned<T>,
    /// ‖X − G‖² per sample.
    norms: Vec<f64>,
    /// What comes out of each step of the contraction of X − M, `[sample][row][lane]`.
    stages: Vec<Aligned<T>>,
    /// ⟨X − G, M − G⟩, `[slot][sample]`.
    inner: Vec<f64>,
    /// Σ Y²/(s + σ²) per lane.
    squares: Vec<f64>,
    /// Which units of lanes were contracted for the sample in question.
    contracted: Vec<bool>,
    pub(crate) densities: Densities,
}

impl<T: Real> Stack<T> {
    pub(crate) fn new(stacked: &StackedModel<T>, components: usize) -> Self {
        // Vectors have one row each, and the loadings are as large as they are.
        let most = if stacked.later.is_empty() { 4 * MAX_SAMPLES } else { MAX_SAMPLES };
        let samples = (BLOCK_BYTES / (stacked.stride * size_of::<T>())).clamp(1, most);
        Self::with_samples(stacked, components, samples)
    }

    pub(crate) fn with_samples(stacked: &StackedModel<T>, components: usize, samples: usize) -> Self {
        let zeros = |n: usize| Aligned::new(T::from_f64(0.0), n);
        Self {
            x: zeros(samples * stacked.stride),
            norms: vec![0.0; samples],
            stages: stacked.stages().iter().map(|rows| zeros(samples * rows * stacked.width)).collect(),
            inner: vec![0.0; components * samples],
            squares: vec![0.0; stacked.width],
            contracted: vec![false; stacked.width / T::LANES],
            densities: Densities::new(components, samples),
        }
    }

    /// X − G of all samples, a sample every `stride`.
    pub(crate) fn x(&self) -> &[T] {
        &self.x
    }

    /// X − G of one sample.
    pub(crate) fn sample(&self, stacked: &StackedModel<T>, sample: usize, size: usize) -> &[T] {
        &self.x[sample * stacked.stride..sample * stacked.stride + size]
    }

    /// Reads a block of samples, less the reference.
    pub(crate) fn load<S: Simd>(
        &mut self,
        simd: S,
        stacked: &StackedModel<T>,
        block: &Block<'_>,
        reference: &[T],
    ) {
        simd.vectorize(Load { stack: self, stride: stacked.stride, block, reference });
    }

    /// Takes the cores of other samples for samples, `count` of them.
    #[inline(always)]
    pub(crate) fn take_cores(&mut self, from: &Stack<T>, stacked: &StackedModel<T>, count: usize) {
        let stride = self.x.len() / self.densities.samples;
        let cols = stacked.first.cols;
        for sample in 0..count {
            let x = &mut self.x[sample * stride..(sample + 1) * stride];
            let mut norm = 0.0;
            for (row, y) in from.y(sample).chunks_exact(stacked.width).enumerate() {
                for (j, &y) in y[..cols].iter().enumerate() {
                    x[place(row, j, cols, stacked.inner)] = y;
                    norm += y.to_f64() * y.to_f64();
                }
            }
            self.norms[sample] = norm;
        }
    }

    /// Evaluates all components on the samples that were loaded; component k is in slot k. What comes next is fetched
    /// into cache on the way.
    #[inline(always)]
    pub(crate) fn evaluate<S: Simd>(
        &mut self,
        simd: S,
        plan: &Plan<T>,
        stacked: &StackedModel<T>,
        all: &[usize],
        count: usize,
        fetch: Fetch<'_>,
    ) {
        self.inner.fill(0.0);
        self.multiply_means(simd, stacked, 0..count, all, 0);
        self.contract_all(simd, stacked, count, fetch);
        for sample in 0..count {
            simd.vectorize(Squares {
                stack: self,
                stacked,
                sample,
                lanes: 0..all.len() * stacked.first.cols,
            });
            for &k in all {
                self.density(plan, stacked, sample, k, k);
            }
        }
    }

    /// Contracts the samples that were loaded with all components. What comes next is fetched into cache on the way.
    #[inline(always)]
    pub(crate) fn contract_all<S: Simd>(
        &mut self,
        simd: S,
        stacked: &StackedModel<T>,
        count: usize,
        mut fetch: Fetch<'_>,
    ) {
        // A vector is a row of the first step, and the more rows the better.
        let together = if stacked.later.is_empty() { count } else { TOGETHER };
        for first in (0..count).step_by(together) {
            let (samples, units) = (first..(first + together).min(count), 0..stacked.width / T::LANES);
            let share = samples.len() * fetch.lines().div_ceil(count);
            contract(simd, stacked, &self.x, samples, units, Some((&mut fetch, share)), &mut self.stages);
        }
    }

    /// Contracts samples that lie elsewhere.
    #[inline(always)]
    pub(crate) fn contract<S: Simd>(
        &mut self,
        simd: S,
        stacked: &StackedModel<T>,
        x: &[T],
        samples: Range<usize>,
    ) {
        contract(simd, stacked, x, samples, 0..stacked.width / T::LANES, None, &mut self.stages);
    }

    /// Evaluates the component with the largest bound, then those that may matter beside it; `components` becomes the
    /// list of them.
    pub(crate) fn evaluate_likely<S: Simd>(
        &mut self,
        simd: S,
        plan: &Plan<T>,
        stacked: &StackedModel<T>,
        (sample, class): (usize, Option<u32>),
        bounds: &[f64],
        components: &mut Vec<usize>,
    ) {
        // Of the components that its class leaves, if that is known; there is one. Few bounds are larger than all before, so that few are asked
        // whether it does.
        let mut likely = None;
        let mut largest = f64::NEG_INFINITY;
        for k in 0..bounds.len() {
            if bounds[k] > largest && plan.admits(class, k) {
                (likely, largest) = (Some(k), bounds[k]);
            }
        }
        let likely = likely.or_else(|| (0..bounds.len()).find(|&k| plan.admits(class, k))).unwrap_or(0);
        components.clear();
        components.push(likely);
        self.evaluate_some(simd, plan, stacked, sample, components, 0);
        let largest = self.densities.largest(plan, components, sample);
        for k in 0..bounds.len() {
            if k != likely && may_matter(bounds[k], largest) && plan.admits(class, k) {
                components.push(k);
            }
        }
        self.evaluate_some(simd, plan, stacked, sample, components, 1);
    }

    /// Evaluates some components on one of the samples that were loaded: those from `done` on, each in its place among
    /// them. The ones before have been evaluated already.
    pub(crate) fn evaluate_some<S: Simd>(
        &mut self,
        simd: S,
        plan: &Plan<T>,
        stacked: &StackedModel<T>,
        sample: usize,
        components: &[usize],
        done: usize,
    ) {
        if done == 0 {
            self.contracted.fill(false);
        }
        let samples = self.densities.samples;
        self.inner[done * samples..components.len() * samples].fill(0.0);
        self.multiply_means(simd, stacked, sample..sample + 1, &components[done..], done);
        for &k in &components[done..] {
            let of = stacked.lanes_of(k);
            for unit in of.start / T::LANES..of.end.div_ceil(T::LANES) {
                if !self.contracted[unit] {
                    self.contracted[unit] = true;
                    contract(
                        simd,
                        stacked,
                        &self.x,
                        sample..sample + 1,
                        unit..unit + 1,
                        None,
                        &mut self.stages,
                    );
                }
            }
        }
        for (slot, &k) in components.iter().enumerate().skip(done) {
            simd.vectorize(Squares { stack: self, stacked, sample, lanes: stacked.lanes_of(k) });
            self.density(plan, stacked, sample, k, slot);
        }
    }

    #[inline(always)]
    fn multiply_means<S: Simd>(
        &mut self,
        simd: S,
        stacked: &StackedModel<T>,
        samples: Range<usize>,
        components: &[usize],
        slot: usize,
    ) {
        let stride = self.densities.samples;
        simd.vectorize(Dots {
            x: &self.x,
            samples,
            means: &stacked.means,
            stride: stacked.stride,
            components,
            out: &mut self.inner[slot * stride..],
            out_stride: stride,
        });
    }

    #[inline(always)]
    fn density(&mut self, plan: &Plan<T>, stacked: &StackedModel<T>, sample: usize, k: usize, slot: usize) {
        let mut explained = 0.0;
        for l in stacked.lanes_of(k) {
            explained += self.squares[l];
        }
        let component = &plan.components[k];
        let terms = (self.norms[sample], self.inner[slot * self.densities.samples + sample]);
        let x = &self.x[sample * stacked.stride..][..plan.sample_len];
        let mean = &stacked.means[k * stacked.stride..][..plan.sample_len];
        let directly = || squared_distance(x, mean.iter().copied());
        self.densities.set((slot, sample), component, terms, explained, directly);
    }

    /// ‖X − G‖² of one sample.
    pub(crate) fn norm(&self, sample: usize) -> f64 {
        self.norms[sample]
    }

    /// Y of one sample, `[row of the core][lane]`.
    #[inline(always)]
    pub(crate) fn y(&self, sample: usize) -> &[T] {
        self.stage(self.stages.len() - 1, sample)
    }

    /// Y of one sample under component `k`, row by row: the place of its first number in the core, where they lie `inner` apart.
    #[inline(always)]
    fn y_of(
        &self,
        stacked: &StackedModel<T>,
        k: usize,
        sample: usize,
    ) -> impl Iterator<Item = (usize, &[T])> {
        let (of, width) = (stacked.lanes_of(k), stacked.width);
        let (cols, inner) = (stacked.first.cols, stacked.inner);
        let rows = self.y(sample).chunks_exact(width).enumerate();
        rows.map(move |(row, y)| (place(row, 0, cols, inner), &y[of.clone()]))
    }

    /// Q of one sample under component `k`, in the order of its core.
    #[inline(always)]
    pub(crate) fn core(&self, stacked: &StackedModel<T>, k: usize, sample: usize, out: &mut [T]) {
        let (of, inner) = (stacked.lanes_of(k), stacked.inner);
        let precision = stacked.rounded_precision.chunks_exact(stacked.width);
        for ((first, y), precision) in self.y_of(stacked, k, sample).zip(precision) {
            let precision = &precision[of.clone()];
            for j in 0..y.len() {
                out[first + j * inner] = y[j] * precision[j];
            }
        }
    }

    /// The same in double precision: Y times `precision`, which is in the order of the core, too.
    #[inline(always)]
    pub(crate) fn exact_core(
        &self,
        stacked: &StackedModel<T>,
        k: usize,
        sample: usize,
        precision: &[f64],
        out: &mut [f64],
    ) {
        for (first, y) in self.y_of(stacked, k, sample) {
            for (j, y) in y.iter().enumerate() {
                let at = first + j * stacked.inner;
                out[at] = y.to_f64() * precision[at];
            }
        }
    }

    /// What the core takes off the squared error of one sample under component `k`.
    #[inline(always)]
    pub(crate) fn explained(&self, stacked: &StackedModel<T>, k: usize, sample: usize) -> f64 {
        let (of, width) = (stacked.lanes_of(k), stacked.width);
        let mut explained = 0.0;
        for (y, factor) in self.y(sample).chunks_exact(width).zip(stacked.explained.chunks_exact(width)) {
            for (y, factor) in y[of.clone()].iter().zip(&factor[of.clone()]) {
                explained += y.to_f64() * y.to_f64() * factor;
            }
        }
        explained
    }

    /// Z of one sample, what went into the last step, `[row][lane]`. Vectors have none.
    #[inline(always)]
    fn z(&self, sample: usize) -> &[T] {
        self.stage(self.stages.len() - 2, sample)
    }

    #[inline(always)]
    fn stage(&self, stage: usize, sample: usize) -> &[T] {
        let stage = &self.stages[stage];
        let length = stage.len() / self.densities.samples;
        &stage[sample * length..(sample + 1) * length]
    }
}

/// All steps of the contraction of some samples, for some units of lanes, while so many lines of others are fetched.
#[inline(always)]
fn contract<T: Real, S: Simd>(
    simd: S,
    stacked: &StackedModel<T>,
    x: &[T],
    samples: Range<usize>,
    units: Range<usize>,
    fetch: Option<(&mut Fetch<'_>, usize)>,
    stages: &mut [Aligned<T>],
) {
    let rows = samples.len() * stacked.first.before * stacked.first.after;
    let tiles = rows.div_ceil(TILE_ROWS) * units.len().div_ceil(GROUP);
    let (fetch, lines) = fetch.map_or((None, 0), |(fetch, lines)| (Some(fetch), lines.div_ceil(tiles)));
    simd.vectorize(First {
        x,
        samples: samples.clone(),
        stride: stacked.stride,
        step: stacked.first,
        loading: &stacked.loading,
        start: &stacked.start,
        width: stacked.width,
        units: units.clone(),
        out: &mut stages[0],
        fetch,
        lines,
    });
    for (t, later) in stacked.later.iter().enumerate() {
        let (done, rest) = stages.split_at_mut(t + 1);
        simd.vectorize(Later {
            z: &done[t],
            samples: samples.clone(),
            step: later.step,
            loading: &later.loading,
            width: stacked.width,
            units: units.clone(),
            out: &mut rest[0],
        });
    }
}

struct Load<'a, T> {
    stack: &'a mut Stack<T>,
    stride: usize,
    block: &'a Block<'a>,
    reference: &'a [T],
}

impl<T: Real> WithSimd for Load<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { stack, stride, block, reference } = self;
        for (sample, n) in block.places().enumerate() {
            let out = &mut stack.x[sample * stride..(sample + 1) * stride];
            block.stored.load(n, 0..reference.len(), reference, out);
            stack.norms[sample] = squared_norm(simd, out);
        }
    }
}

/// Σ x², of whole vectors.
#[inline(always)]
fn squared_norm<T: Real, S: Simd>(simd: S, x: &[T]) -> f64 {
    const PARTS: usize = 4;
    let zero = T::splat(simd, T::from_f64(0.0));
    let mut norm = 0.0;
    for run in x.chunks(RUN) {
        let run = T::vectors::<S>(run);
        let mut sums = [zero; PARTS];
        let whole = run.len() / PARTS * PARTS;
        for i in (0..whole).step_by(PARTS) {
            let run = &run[i..i + PARTS];
            for p in 0..PARTS {
                sums[p] = T::mul_add(simd, run[p], run[p], sums[p]);
            }
        }
        for &x in &run[whole..] {
            sums[0] = T::mul_add(simd, x, x, sums[0]);
        }
        for sum in sums {
            norm += T::sum(simd, sum).to_f64();
        }
    }
    norm
}

/// Σ Y²/(s + σ²) of some lanes of one sample.
struct Squares<'a, T> {
    stack: &'a mut Stack<T>,
    stacked: &'a StackedModel<T>,
    sample: usize,
    lanes: Range<usize>,
}

impl<T: Real> WithSimd for Squares<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { stack, stacked, sample, lanes } = self;
        let last = &stack.stages[stack.stages.len() - 1];
        let length = last.len() / stack.densities.samples;
        let y = &last[sample * length..(sample + 1) * length];
        // A few lanes at a time, whose sums stay in registers: as many as the compiler knows, even if some of them belong
        // to components that nobody asked for.
        const FEW: usize = 8;
        let width = stacked.width;
        for first in (lanes.start / FEW * FEW..lanes.end).step_by(FEW) {
            let mut squares = [0.0; FEW];
            for (row, y) in y.chunks_exact(width).enumerate() {
                let precision = &stacked.precision[row * width + first..row * width + first + FEW];
                let y = &y[first..first + FEW];
                for l in 0..FEW {
                    let y = y[l].to_f64();
                    squares[l] += y * y * precision[l];
                }
            }
            stack.squares[first..first + FEW].copy_from_slice(&squares);
        }
    }
}
