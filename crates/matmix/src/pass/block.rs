//! A block of samples, one per lane: packing, contraction and densities.

use pulp::{Simd, WithSimd};

use super::contract::{Fibre, contract_fibre, contract_mode};
use super::plan::{Plan, Step};
use super::simd::Real;
use super::transpose::MAX_TILE;
use crate::data::Chunk;
use crate::model::not_negative;

/// Bytes of packed samples per block: they should stay in the second-level cache with what is made of them.
const BLOCK_BYTES: usize = 256 << 10;

/// Elements packed at a time, so that the lanes written stay in the first-level cache.
const PACK_ELEMENTS: usize = 64;

/// A squared distance below this share of the squares it is the difference of has lost too many digits: components
/// that lie far apart compared with their spread.
const CANCELLED: f64 = 1e-3;

/// Asks for these bytes to be brought into cache. While a block is contracted nothing else is read, so the next one
/// can arrive meanwhile; packing would wait for every line of it otherwise.
#[inline(always)]
fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(64) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch is a hint: it reads nothing, writes nothing and cannot fault, and the address lies in
        // a live slice.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

/// The number of lanes of a block of samples with `sample_len` elements.
pub(crate) fn lanes_for<T: Real>(sample_len: usize) -> usize {
    let fitting = BLOCK_BYTES / (sample_len * size_of::<T>()).max(1);
    (fitting / T::LANES * T::LANES).clamp(T::LANES, 4 * T::LANES)
}

/// Packed samples less a reference: `x[element][lane]`; lanes without a sample are zero.
pub(crate) struct Packed<T> {
    pub(crate) lanes: usize,
    pub(crate) count: usize,
    pub(crate) x: Vec<T>,
    /// ‖X − G‖² per lane.
    pub(crate) norms: Vec<f64>,
}

impl<T: Real> Packed<T> {
    pub(crate) fn new(sample_len: usize) -> Self {
        let lanes = lanes_for::<T>(sample_len);
        Self { lanes, count: 0, x: vec![T::from_f64(0.0); sample_len * lanes], norms: vec![0.0; lanes] }
    }

    /// Packs the samples of `chunk` (at most as many as there are lanes), scaled, less `reference`.
    pub(crate) fn fill<S: Simd>(&mut self, simd: S, chunk: Chunk<'_>, scale: f64, reference: &[T]) {
        simd.vectorize(Fill { packed: self, chunk, scale, reference });
    }

    #[inline(always)]
    fn transpose<S: Simd, E: Copy>(&mut self, x: &[E], reference: &[T], centre: impl Fn(E, T) -> T) {
        let (size, lanes, tile) = (reference.len(), self.lanes, T::TILE);
        let whole = (self.count / tile * tile, size / tile * tile);
        let mut rows = [[T::from_f64(0.0); MAX_TILE]; MAX_TILE];
        for start in (0..whole.1).step_by(PACK_ELEMENTS) {
            let end = (start + PACK_ELEMENTS).min(whole.1);
            for n in (0..whole.0).step_by(tile) {
                for i in (start..end).step_by(tile) {
                    let g = &reference[i..i + tile];
                    for (r, row) in rows[..tile].iter_mut().enumerate() {
                        let from = &x[(n + r) * size + i..(n + r) * size + i + tile];
                        for c in 0..tile {
                            row[c] = centre(from[c], g[c]);
                        }
                    }
                    T::transpose::<S>(&rows, &mut self.x[i * lanes + n..], lanes);
                }
            }
        }
        // What does not fill a tile: the last samples, and the last elements of all samples.
        for n in 0..self.count {
            let first = if n < whole.0 { whole.1 } else { 0 };
            for i in first..size {
                self.x[i * lanes + n] = centre(x[n * size + i], reference[i]);
            }
        }
    }

    /// ‖X − G‖²: short runs in the working precision, their sum in double.
    #[inline(always)]
    fn measure(&mut self) {
        self.norms.fill(0.0);
        let mut run = vec![T::from_f64(0.0); self.lanes];
        for rows in self.x.chunks(self.lanes * 2 * PACK_ELEMENTS) {
            run.fill(T::from_f64(0.0));
            for row in rows.chunks_exact(self.lanes) {
                for (r, &x) in run.iter_mut().zip(row) {
                    *r = *r + x * x;
                }
            }
            for (norm, r) in self.norms.iter_mut().zip(&run) {
                *norm += r.to_f64();
            }
        }
    }
}

struct Fill<'a, T> {
    packed: &'a mut Packed<T>,
    chunk: Chunk<'a>,
    scale: f64,
    reference: &'a [T],
}

impl<T: Real> WithSimd for Fill<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { packed, chunk, scale, reference } = self;
        packed.count = chunk.len() / reference.len();
        if packed.count < packed.lanes {
            packed.x.fill(T::from_f64(0.0));
        }
        let scale = T::from_f64(scale);
        match chunk {
            Chunk::U8(x) => {
                packed.transpose::<S, _>(x, reference, |x, g| T::from_f64(f64::from(x)) * scale - g)
            }
            Chunk::F32(x) => {
                packed.transpose::<S, _>(x, reference, |x, g| T::from_f64(f64::from(x)) * scale - g)
            }
            Chunk::F64(x) => packed.transpose::<S, _>(x, reference, |x, g| T::from_f64(x) * scale - g),
        }
        packed.measure();
    }
}

impl<T: Real> Packed<T> {
    /// ‖X − G − m‖² of one lane, difference by difference.
    #[cold]
    fn squared_distance(&self, lane: usize, m: &[T]) -> f64 {
        let x = self.x.iter().skip(lane).step_by(self.lanes);
        x.zip(m).map(|(&x, &m)| (x - m).to_f64()).map(|d| d * d).sum()
    }
}

/// A packed block and what the model makes of it.
pub(crate) struct Block<T> {
    pub(crate) packed: Packed<T>,
    /// What comes out of each step of the contraction, `[component][element][lane]`.
    pub(crate) stages: Vec<Vec<T>>,
    /// ⟨X − G, M − G⟩, `[component][lane]`.
    inner: Vec<f64>,
    /// ‖X − M‖², `[component][lane]`.
    pub(crate) squared_distance: Vec<f64>,
    /// ln p(X|k), `[component][lane]`.
    pub(crate) log_density: Vec<f64>,
    /// ‖X − X̂‖², `[component][lane]`.
    pub(crate) squared_error: Vec<f64>,
}

impl<T: Real> Block<T> {
    pub(crate) fn new(plan: &Plan<T>) -> Self {
        let packed = Packed::new(plan.sample_len);
        let per_lane = plan.components.len() * packed.lanes;
        let stages = plan.steps.iter().map(|s| vec![T::from_f64(0.0); s.out_len() * per_lane]).collect();
        Self {
            packed,
            stages,
            inner: vec![0.0; per_lane],
            squared_distance: vec![0.0; per_lane],
            log_density: vec![0.0; per_lane],
            squared_error: vec![0.0; per_lane],
        }
    }

    /// The E-step on one block: contracts it with every component and evaluates the densities.
    /// `next` is what the following block will read: it is fetched into cache on the way.
    pub(crate) fn evaluate<S: Simd>(
        &mut self,
        simd: S,
        plan: &Plan<T>,
        chunk: Chunk<'_>,
        next: Chunk<'_>,
        scale: f64,
    ) {
        simd.vectorize(Evaluate { block: self, plan, chunk, next, scale });
    }

    #[inline(always)]
    fn evaluate_on<S: Simd>(
        &mut self,
        simd: S,
        plan: &Plan<T>,
        chunk: Chunk<'_>,
        next: Chunk<'_>,
        scale: f64,
    ) {
        self.packed.fill(simd, chunk, scale, &plan.reference);
        self.contract_first(simd, plan, next.bytes());
        let lanes = self.packed.lanes;
        for t in 1..plan.steps.len() {
            let step = plan.steps[t];
            let (done, rest) = self.stages.split_at_mut(t);
            let (from, to) = (&done[t - 1], &mut rest[0]);
            let (in_len, out_len) = (plan.steps[t - 1].out_len() * lanes, step.out_len() * lanes);
            for (k, component) in plan.components.iter().enumerate() {
                contract_mode(
                    simd,
                    &from[k * in_len..(k + 1) * in_len],
                    (step.before, step.n, step.after),
                    &component.loadings[step.mode],
                    step.cols,
                    lanes,
                    &mut to[k * out_len..(k + 1) * out_len],
                );
            }
        }
        self.densities(plan);
    }

    /// The first step reads the samples: every component takes its turn on a fibre while it is in cache.
    #[inline(always)]
    fn contract_first<S: Simd>(&mut self, simd: S, plan: &Plan<T>, next: &[u8]) {
        let Step { mode, before, n, after, cols } = plan.steps[0];
        let lanes = self.packed.lanes;
        let vectors = lanes * size_of::<T>() / size_of::<T::Vector<S>>();
        let out_len = plan.steps[0].out_len() * vectors;
        let x = T::vectors::<S>(&self.packed.x);
        let out = T::vectors_mut::<S>(&mut self.stages[0]);
        self.inner.fill(0.0);
        let share = next.len().div_ceil(before * after);
        for o in 0..before {
            for m in 0..after {
                let first = (o * after + m) * share;
                prefetch(&next[first.min(next.len())..(first + share).min(next.len())]);
                let x = &x[(o * n * after + m) * vectors..];
                for (k, component) in plan.components.iter().enumerate() {
                    let fibre = Fibre {
                        u: &component.loadings[mode],
                        n,
                        cols,
                        mean: &component.mean[o * n * after + m..],
                        mean_stride: after,
                    };
                    contract_fibre::<T, S, true>(
                        simd,
                        &fibre,
                        x,
                        after * vectors,
                        &mut out[k * out_len + (o * cols * after + m) * vectors..(k + 1) * out_len],
                        after * vectors,
                        vectors,
                        &mut self.inner[k * lanes..(k + 1) * lanes],
                    );
                }
            }
        }
    }

    #[inline(always)]
    fn densities(&mut self, plan: &Plan<T>) {
        let lanes = self.packed.lanes;
        let mut explained = vec![0.0; lanes];
        let mut removed = vec![0.0; lanes];
        let y = self.stages.last().map_or(&[][..], Vec::as_slice);
        for (k, component) in plan.components.iter().enumerate() {
            explained.fill(0.0);
            removed.fill(0.0);
            let y = &y[k * plan.core_len * lanes..(k + 1) * plan.core_len * lanes];
            for (j, row) in y.chunks_exact(lanes).enumerate() {
                let (y0, precision) = (component.y0[j], component.density.precision[j]);
                let factor = component.density.explained[j];
                for lane in 0..lanes {
                    let y = row[lane].to_f64() - y0;
                    explained[lane] += y * y * precision;
                    removed[lane] += y * y * factor;
                }
            }
            let at = k * lanes..(k + 1) * lanes;
            let (distance, inner) = (&mut self.squared_distance[at.clone()], &self.inner[at.clone()]);
            let (density, error) = (&mut self.log_density[at.clone()], &mut self.squared_error[at]);
            for lane in 0..lanes {
                let squares = self.packed.norms[lane] + component.mean_norm;
                let mut d = squares - 2.0 * inner[lane];
                if d < CANCELLED * squares {
                    d = self.packed.squared_distance(lane, &component.mean);
                }
                distance[lane] = d;
                density[lane] = component.density.log_density(d, explained[lane]);
                error[lane] = not_negative(d - removed[lane]);
            }
        }
    }

    /// Y of one lane under component `k`, less the projection of the mean.
    #[inline(always)]
    pub(crate) fn y(&self, plan: &Plan<T>, k: usize, lane: usize, out: &mut [f64]) {
        let lanes = self.packed.lanes;
        let y = self.stages.last().map_or(&[][..], Vec::as_slice);
        let y = &y[k * plan.core_len * lanes..];
        for ((out, j), y0) in out.iter_mut().zip(0..).zip(&plan.components[k].y0) {
            *out = y[j * lanes + lane].to_f64() - y0;
        }
    }
}

struct Evaluate<'a, T> {
    block: &'a mut Block<T>,
    plan: &'a Plan<T>,
    chunk: Chunk<'a>,
    next: Chunk<'a>,
    scale: f64,
}

impl<T: Real> WithSimd for Evaluate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.block.evaluate_on(simd, self.plan, self.chunk, self.next, self.scale);
    }
}
