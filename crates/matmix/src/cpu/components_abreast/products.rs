//! The small products a pass that updates one mode of matrices or tensors sums up: A, H, S and b.

use pulp::{Simd, WithSimd};

use super::super::plan::Plan;
use super::stacked::place;
use super::{Stack, StackedModel};
use crate::linalg::Matrix;
use crate::simd::Aligned;
use crate::simd::tiles::{evenly, greedily, tile};
use crate::simd::{Real, has_many_registers};

/// Entries that wait until they are multiplied together, so that the sums are not fetched for each.
const WAITING: usize = 8;

/// Vectors and columns per tile of the product.
const TILE_VECTORS: usize = 3;
const TILE_COLUMNS: usize = 4;

/// A = Σ a Z Qᵀ, S = Σ a Q Qᵀ and H = Σ a Q W Qᵀ of every component, of some samples, in the working precision: one product,
/// of Z, Q and Q W below each other with a Q. b = Σ a Q comes along.
///
/// Z and Q have as many columns as the first step, times the indices of all other modes that are not updated; for each of the
/// latter, a sample makes one entry. Lanes are rows times columns, and the columns are added up when the sums are asked for.
pub(crate) struct StackProducts<T> {
    /// p_d and r_d.
    sides: (usize, usize),
    /// Columns, and columns with zeros up to a power of two, so that they fit the vectors.
    cols: usize,
    padded: usize,
    /// Indices of the modes behind the first that is contracted, of the core.
    inner: usize,
    /// Numbers of the left and the right side of an entry.
    left: usize,
    right: usize,
    /// How many entries of a component wait.
    waiting: Vec<usize>,
    /// Z, Q and Q W, `[component][entry][row][column]`.
    rows: Aligned<T>,
    /// a Q, `[component][entry][r_d][column]`, repeated so that it fills a vector.
    factors: Aligned<T>,
    /// `[component][r_d][row][column]`.
    sums: Aligned<T>,
    /// `[component][indices of the core without the column][column]`.
    cores: Vec<T>,
}

impl<T: Real> StackProducts<T> {
    pub(crate) fn new(plan: &Plan<T>, stacked: &StackedModel<T>) -> Self {
        let last = plan.steps[plan.steps.len() - 1];
        let (p, r, k) = (last.n, last.cols, plan.components.len());
        let cols = stacked.first.cols;
        let padded = cols.next_power_of_two();
        let left = ((p + 2 * r) * padded).next_multiple_of(T::LANES.max(padded));
        let right = r * padded.max(T::LANES);
        let zeros = |n: usize| Aligned::new(T::from_f64(0.0), n);
        Self {
            sides: (p, r),
            cols,
            padded,
            inner: stacked.inner,
            left,
            right,
            waiting: vec![0; k],
            rows: zeros(k * WAITING * left),
            factors: zeros(k * WAITING * right),
            sums: zeros(k * r * left),
            cores: vec![T::from_f64(0.0); k * plan.core_len],
        }
    }

    /// Adds a sample of the block with weight a to component `k`.
    #[inline(always)]
    pub(crate) fn add<S: Simd>(
        &mut self,
        simd: S,
        stacked: &StackedModel<T>,
        stack: &Stack<T>,
        sample: usize,
        k: usize,
        weight: T,
    ) {
        let ((p, r), cols, padded) = (self.sides, self.cols, self.padded);
        let first = stacked.lanes_of(k).start;
        let y = stack.y(sample);
        let (before, after) = stacked.later.last().map_or((1, 1), |l| (l.step.before, l.step.after));
        let core_rows = before * r * after;
        for o in 0..before {
            for m in 0..after {
                if self.waiting[k] == WAITING {
                    self.multiply(simd, k);
                }
                let entry = k * WAITING + self.waiting[k];
                self.waiting[k] += 1;
                let rows = &mut self.rows[entry * self.left..(entry + 1) * self.left];
                let (z, q) = rows.split_at_mut(p * padded);
                let (q, qw) = q.split_at_mut(r * padded);
                let factors = &mut self.factors[entry * self.right..(entry + 1) * self.right];
                let from = &stack.z(sample)[(o * p * after + m) * stacked.width + first..];
                copy_rows(from, after * stacked.width, z, cols, padded);
                let w = &stacked.other_variances[(o * after + m) * stacked.width + first..][..cols];
                let repeated = self.right / r;
                for a in 0..r {
                    let row = (o * r + a) * after + m;
                    let at = row * stacked.width + first;
                    let core = &mut self.cores[(k * core_rows + row) * cols..][..cols];
                    let (y, precision) = (&y[at..at + cols], &stacked.rounded_precision[at..at + cols]);
                    let factors = &mut factors[a * repeated..(a + 1) * repeated];
                    let mut to = [&mut q[a * padded..], &mut qw[a * padded..], &mut *factors, core];
                    for (j, count) in greedily(cols, [8, 4]) {
                        tile!(count, [8 4 1], weigh[_](y, precision, w, weight, j, &mut to));
                    }
                    for j in padded..repeated {
                        factors[j] = factors[j - padded];
                    }
                }
            }
        }
    }

    /// Multiplies what is waiting for component `k`.
    #[inline(always)]
    fn multiply<S: Simd>(&mut self, simd: S, k: usize) {
        let (_, r) = self.sides;
        let waiting = std::mem::take(&mut self.waiting[k]);
        simd.vectorize(Multiply {
            rows: &self.rows[k * WAITING * self.left..][..waiting * self.left],
            factors: &self.factors[k * WAITING * self.right..][..waiting * self.right],
            sums: &mut self.sums[k * r * self.left..(k + 1) * r * self.left],
            left: self.left,
            right: self.right,
            columns: r,
            padded: self.padded,
        });
    }

    /// Moves what was added for component `k` to A, H, S and b in double precision.
    #[inline(always)]
    pub(crate) fn flush<S: Simd>(
        &mut self,
        simd: S,
        k: usize,
        cross: &mut Matrix,
        weighted: &mut Matrix,
        gram: &mut Matrix,
        core: &mut [f64],
    ) {
        self.multiply(simd, k);
        let (cols, inner) = (self.cols, self.inner);
        let cores = &mut self.cores[k * core.len()..(k + 1) * core.len()];
        for (row, from) in cores.chunks_exact_mut(cols).enumerate() {
            for j in 0..cols {
                core[place(row, j, cols, inner)] += from[j].to_f64();
                from[j] = T::from_f64(0.0);
            }
        }
        let (p, r) = self.sides;
        let sums = &mut self.sums[k * r * self.left..(k + 1) * r * self.left];
        let total = |row: usize, a: usize| -> f64 {
            let at = a * self.left + row * self.padded;
            sums[at..at + self.cols].iter().map(|x| x.to_f64()).sum()
        };
        for i in 0..p {
            for a in 0..r {
                cross[(i, a)] += total(i, a);
            }
        }
        for a in 0..r {
            for b in 0..r {
                gram[(a, b)] += total(p + b, a);
                weighted[(b, a)] += total(p + r + b, a);
            }
        }
        sums.fill(T::from_f64(0.0));
    }
}

/// C numbers of a row of the core, from `j` on: q, q w, a q, and a q added to b. All are read before any is written, so that they make a vector.
#[inline(always)]
fn weigh<const C: usize, T: Real>(
    y: &[T],
    precision: &[T],
    w: &[T],
    weight: T,
    j: usize,
    [q, qw, factors, core]: &mut [&mut [T]; 4],
) {
    let at = j..j + C;
    let (y, precision, w) = (&y[at.clone()], &precision[at.clone()], &w[at.clone()]);
    let core = &mut core[at.clone()];
    let mut of = [[T::from_f64(0.0); C]; 4];
    for j in 0..C {
        of[0][j] = y[j] * precision[j];
        of[1][j] = of[0][j] * w[j];
        of[2][j] = of[0][j] * weight;
        of[3][j] = core[j] + of[2][j];
    }
    q[at.clone()].copy_from_slice(&of[0]);
    qw[at.clone()].copy_from_slice(&of[1]);
    factors[at].copy_from_slice(&of[2]);
    core.copy_from_slice(&of[3]);
}

/// Copies `cols` numbers of every row; rows come every `stride` and go every `padded`.
#[inline(always)]
fn copy_rows<T: Real>(from: &[T], stride: usize, to: &mut [T], cols: usize, padded: usize) {
    match cols {
        2 => copy_rows_of::<T, 2>(from, stride, to, padded),
        3 => copy_rows_of::<T, 3>(from, stride, to, padded),
        4 => copy_rows_of::<T, 4>(from, stride, to, padded),
        8 => copy_rows_of::<T, 8>(from, stride, to, padded),
        16 => copy_rows_of::<T, 16>(from, stride, to, padded),
        _ => {
            for (i, to) in to.chunks_exact_mut(padded).enumerate() {
                to[..cols].copy_from_slice(&from[i * stride..i * stride + cols]);
            }
        }
    }
}

/// The same for a number of columns that the compiler knows.
#[inline(always)]
fn copy_rows_of<T: Real, const C: usize>(from: &[T], stride: usize, to: &mut [T], padded: usize) {
    for (i, to) in to.chunks_exact_mut(padded).enumerate() {
        to[..C].copy_from_slice(&from[i * stride..i * stride + C]);
    }
}

/// sums[a][lane] += Σ over entries of rows[entry][lane] · factors[entry][a][lane modulo their length].
struct Multiply<'a, T> {
    rows: &'a [T],
    factors: &'a [T],
    sums: &'a mut [T],
    left: usize,
    right: usize,
    columns: usize,
    /// Numbers after which a factor repeats.
    padded: usize,
}

impl<T: Real> WithSimd for Multiply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let per_vector = size_of::<T::Vector<S>>() / size_of::<T>();
        let vectors = self.left / per_vector;
        // A factor of several vectors goes with every so manieth vector of the rows, unless they are the same.
        let period = (self.padded / per_vector).max(1);
        // Together only where they go with the same vector of a factor.
        let most = match (period, has_many_registers::<S>()) {
            (1, true) => TILE_VECTORS,
            (1, false) => 2,
            _ => 1,
        };
        for (v, width) in greedily(vectors, [most, most.min(2)]) {
            for (a, height) in evenly(self.columns, TILE_COLUMNS) {
                tile!(S: width, [3 2 1] or [2 1] x height, [1 2 3 4], self.tile[_](simd, v, a, v % period));
            }
        }
    }
}

impl<T: Real> Multiply<'_, T> {
    #[inline(always)]
    fn tile<const V: usize, const A: usize, S: Simd>(&mut self, simd: S, v: usize, a: usize, phase: usize) {
        let per_vector = size_of::<T::Vector<S>>() / size_of::<T>();
        let (left, right) = (self.left / per_vector, self.right / per_vector);
        let stride = right / self.columns;
        let (rows, factors) = (T::vectors::<S>(self.rows), T::vectors::<S>(self.factors));
        let sums = T::vectors_mut::<S>(self.sums);
        let mut sum = [[T::splat(simd, T::from_f64(0.0)); V]; A];
        for j in 0..A {
            sum[j].copy_from_slice(&sums[(a + j) * left + v..(a + j) * left + v + V]);
        }
        for (rows, factors) in rows.chunks_exact(left).zip(factors.chunks_exact(right)) {
            let rows = &rows[v..v + V];
            let factors = &factors[a * stride + phase..(a + A - 1) * stride + phase + 1];
            for j in 0..A {
                let factor = factors[j * stride];
                for i in 0..V {
                    sum[j][i] = T::mul_add(simd, rows[i], factor, sum[j][i]);
                }
            }
        }
        for j in 0..A {
            sums[(a + j) * left + v..(a + j) * left + v + V].copy_from_slice(&sum[j]);
        }
    }
}
