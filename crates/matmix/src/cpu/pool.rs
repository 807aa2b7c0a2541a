//! Fisher vectors of images: the evaluator over their windows, sums over the cells of a grid.
//!
//! An image is worked on by one thread, from its first window to its last: windows are cut out a few lines at a time, evaluated and added
//! to the cells of their line in the working precision; a line that is done is added to the cells of the image in double. Nothing but
//! those cells is kept.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::evaluator::{Consumer, Evaluator, EvaluatorScratch, Found, Way};
use super::load::Stored;
use super::plan::cheapest_last;
use crate::data::{Chunk, Samples};
use crate::error::{Error, Result};
use crate::pass::{Pool, rounding_shows};
use crate::simd::{Instructions, Real};
use crate::walk::{self, Job};

/// Windows that are cut out at a time, about: they stay in the second-level cache.
const BATCH: usize = 1024;

/// Windows of a chunk, at least.
const CHUNK: usize = 2048;

/// Responsibilities below this are nothing to a sum of thousands.
const NEGLIGIBLE: f64 = 1e-7;

/// Above this ratio of total variance to noise the densities of single precision are mostly rounding, even to sums of thousands.
const BLURRED: f64 = 1e4;

/// The Fisher vectors of all images, a few images at a time and in order.
pub(super) fn pool(
    of: &Pool<'_>,
    images: &Samples<'_>,
    on: Instructions,
    each: &mut (dyn FnMut(Vec<f32>) + Send),
) -> Result<()> {
    // Plain code is compiled for double precision only.
    if on == Instructions::Portable || rounding_shows(of.model, BLURRED) {
        walk::fold(images, &Pooling::<f64>::new(of, images, on), each)
    } else {
        walk::fold(images, &Pooling::<f32>::new(of, images, on), each)
    }
}

struct Pooling<'a, T> {
    of: &'a Pool<'a>,
    images: &'a Samples<'a>,
    on: Instructions,
    evaluator: Evaluator<T>,
    /// The mode along which windows follow one another: the last in which there is more than one.
    line: usize,
    /// 1/√π of every component.
    factors: Vec<f64>,
    /// v, the posterior variance of the cores, K × ρ.
    variance: Vec<f64>,
}

struct PoolScratch<T> {
    evaluator: EvaluatorScratch<T>,
    windows: Vec<f32>,
    sums: Sums<T>,
}

/// For each cell and component Σ wγ, Σ wγ q and Σ wγ q².
struct Sums<T> {
    /// Of the line at hand.
    line: Vec<T>,
    /// Of the image so far.
    cells: Vec<f64>,
    /// Room for a core.
    core: Vec<T>,
    /// Whether a window's numbers left the range of the working precision.
    failed: bool,
}

impl<'a, T: Real> Pooling<'a, T> {
    fn new(of: &'a Pool<'a>, images: &'a Samples<'a>, on: Instructions) -> Self {
        let model = of.model;
        let windows = of.windows.count() * images.len();
        let last = cheapest_last(model.shape(), model.rank());
        let line = of.windows.positions.iter().rposition(|&n| n > 1).unwrap_or(0);
        Self {
            of,
            images,
            on,
            evaluator: Evaluator::new(model, last, Way::Best(windows)),
            line,
            factors: model.weights().iter().map(|w| if *w > 0.0 { 1.0 / w.sqrt() } else { 0.0 }).collect(),
            variance: model.posterior_variance(),
        }
    }

    /// The sums of a cell.
    fn cell_len(&self) -> usize {
        self.of.model.n_components() * (1 + 2 * self.of.model.core_len())
    }

    fn line_len(&self) -> usize {
        self.of.windows.positions[self.line]
    }

    /// Sums up the windows of one image.
    fn image<P: Copy + Into<f64>>(&self, image: &[P], scratch: &mut PoolScratch<T>) {
        let PoolScratch { evaluator, windows, sums } = scratch;
        let (count, size) = (self.of.windows.count(), self.of.windows.len());
        let batch = (BATCH / self.line_len()).max(1) * self.line_len();
        sums.cells.fill(0.0);
        for first in (0..count).step_by(batch) {
            windows.clear();
            for n in first..(first + batch).min(count) {
                self.of.windows.push_normalised(
                    image,
                    n,
                    (self.images.scale(), Some(self.of.floor)),
                    windows,
                );
            }
            let stored = Stored::plain(Chunk::F32(windows), size);
            self.on.run::<T, _>(Batch { pool: self, evaluator, stored, first, sums });
        }
    }

    /// From sums to a Fisher vector: cell after cell, component after component, the first order and then the second.
    fn vector(&self, cells: &[f64], out: &mut Vec<f32>) {
        let rho = self.of.model.core_len();
        let signed_root = |x: f64| x.signum() * x.abs().sqrt();
        for cell in cells.chunks_exact(self.cell_len()) {
            let first = out.len();
            let mut square = 0.0;
            for (k, sums) in cell.chunks_exact(1 + 2 * rho).enumerate() {
                let (gamma, q) = sums.split_at(1);
                let (q, qq) = q.split_at(rho);
                let v = &self.variance[k * rho..(k + 1) * rho];
                let mean = q.iter().map(|q| q * self.factors[k]);
                let factor = self.factors[k] * std::f64::consts::FRAC_1_SQRT_2;
                let variance = qq.iter().zip(v).map(|(qq, v)| (qq + gamma[0] * (v - 1.0)) * factor);
                for x in mean.chain(variance) {
                    square += x.abs();
                    out.push(signed_root(x) as f32);
                }
            }
            let norm = square.sqrt();
            if norm > 0.0 {
                out[first..].iter_mut().for_each(|x| *x = (f64::from(*x) / norm) as f32);
            }
        }
    }
}

impl<T: Real> Job for Pooling<'_, T> {
    type Scratch = PoolScratch<T>;
    type Sum = Vec<f32>;

    fn scratch(&self) -> PoolScratch<T> {
        let cells: usize = self.of.cells.iter().map(|c| c.count).product();
        let sums = Sums {
            line: vec![T::from_f64(0.0); self.of.cells[self.line].count * self.cell_len()],
            cells: vec![0.0; cells * self.cell_len()],
            core: vec![T::from_f64(0.0); self.of.model.core_len()],
            failed: false,
        };
        PoolScratch { evaluator: self.evaluator.scratch(), windows: Vec::new(), sums }
    }

    fn zero(&self) -> Vec<f32> {
        Vec::new()
    }

    fn add(
        &self,
        scratch: &mut PoolScratch<T>,
        range: Range<usize>,
        chunk: Chunk<'_>,
        sum: &mut Vec<f32>,
    ) -> Result<()> {
        let size = self.images.sample_len();
        for (i, n) in range.enumerate() {
            match chunk.slice(i * size..(i + 1) * size) {
                Chunk::U8(x) => self.image(x, scratch),
                Chunk::F32(x) => self.image(x, scratch),
                Chunk::F64(x) => self.image(x, scratch),
            }
            if std::mem::take(&mut scratch.sums.failed) {
                self.images.check_finite(n..n + 1)?;
                return Err(Error::Overflow { sample: n });
            }
            self.vector(&scratch.sums.cells, sum);
        }
        Ok(())
    }

    fn merge(&self, sum: &mut Vec<f32>, following: &Vec<f32>) {
        sum.extend_from_slice(following);
    }

    fn sum_bytes(&self) -> usize {
        self.most() * self.of.width() * size_of::<f32>()
    }

    fn most(&self) -> usize {
        (CHUNK / self.of.windows.count()).max(1)
    }
}

struct Batch<'a, T> {
    pool: &'a Pooling<'a, T>,
    evaluator: &'a mut EvaluatorScratch<T>,
    stored: Stored<'a>,
    /// The number of the first window.
    first: usize,
    sums: &'a mut Sums<T>,
}

impl<T: Real> WithSimd for Batch<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { pool, evaluator, stored, first, sums } = self;
        pool.evaluator.show(simd, evaluator, stored, &mut Adding { pool, first, sums });
    }
}

struct Adding<'a, T> {
    pool: &'a Pooling<'a, T>,
    first: usize,
    sums: &'a mut Sums<T>,
}

impl<T: Real> Consumer<T> for Adding<'_, T> {
    #[inline(always)]
    fn sample<S: Simd>(&mut self, _: S, found: &Found<'_, T>) {
        let (pool, n) = (self.pool, self.first + found.n);
        let Sums { line, core, .. } = &mut *self.sums;
        let (components, rho) = (pool.factors.len(), core.len());
        let (outer, at) = (n / pool.line_len(), n % pool.line_len());
        for (&k, &gamma) in found.components.iter().zip(found.gamma) {
            if gamma < NEGLIGIBLE {
                continue;
            }
            found.rounded_core(k, core);
            for &(cell, weight) in &pool.of.cells[pool.line].of[at] {
                let weight = T::from_f64(gamma * weight);
                let sums = &mut line[(cell * components + k) * (1 + 2 * rho)..][..1 + 2 * rho];
                sums[0] += weight;
                let (q, qq) = sums[1..].split_at_mut(rho);
                // Plain loops over slices of one length: these become vectors.
                let (q, qq, core) = (&mut q[..rho], &mut qq[..rho], &core[..rho]);
                for i in 0..rho {
                    let weighted = weight * core[i];
                    q[i] += weighted;
                    qq[i] += weighted * core[i];
                }
            }
        }
        if at + 1 == pool.line_len() {
            self.end_line(outer);
        }
    }

    #[inline(always)]
    fn leave_out(&mut self, _: usize) {
        self.sums.failed = true;
    }
}

impl<T: Real> Adding<'_, T> {
    /// Adds a line to the cells it counts for in the modes before it.
    #[inline(always)]
    fn end_line(&mut self, mut outer: usize) {
        let Sums { line, cells, .. } = &mut *self.sums;
        let pool = self.pool;
        let mut targets = vec![(0, 1.0)];
        let mut stride = 1;
        for d in (0..pool.line).rev() {
            let positions = pool.of.windows.positions[d];
            let of = &pool.of.cells[d];
            let here = &of.of[outer % positions];
            targets = targets
                .iter()
                .flat_map(|(at, w)| here.iter().map(move |(cell, weight)| (at + cell * stride, w * weight)))
                .collect();
            outer /= positions;
            stride *= of.count;
        }
        for (target, weight) in targets {
            let to = &mut cells[target * line.len()..][..line.len()];
            for i in 0..line.len() {
                to[i] += weight * line[i].to_f64();
            }
        }
        line.fill(T::from_f64(0.0));
    }
}
