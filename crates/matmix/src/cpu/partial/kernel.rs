//! What the observed cells of a sample say about its core under each component of a unit.

use pulp::{Simd, WithSimd};

use super::lanes::{
    Lanes, Unit, by_vectors, lanes, lanes_mut, mul, mul_add, numbers, rows_of, rows_of_mut, splat,
};
use super::{PartialModel, PatternState, SampleState};
use crate::simd::Aligned;
use crate::simd::Real;
use crate::simd::tiles::{greedily, tile};

/// Cells whose squares are summed up before the sum is brought to double precision.
const PATIENCE: usize = 64;

/// Rows of the largest stage of a contraction, of a sample or of a mask.
pub(super) fn room(shape: &[usize], rank: &[usize]) -> usize {
    let stage = |columns: &dyn Fn(usize) -> usize| {
        let (mut rows, mut tail, mut most): (usize, usize, usize) = (shape.iter().product(), 1, 1);
        for (p, &r) in shape.iter().zip(rank).rev() {
            rows /= p;
            tail *= columns(r);
            most = most.max(rows * tail);
        }
        most
    };
    stage(&|r| r).max(stage(&|r| r * (r + 1) / 2))
}

/// h and its square, and ‖x_O − M_O‖², of a sample under the components of a unit.
pub(super) struct Condition<'a, T: Real> {
    pub(super) of: &'a PartialModel<T>,
    pub(super) unit: usize,
    pub(super) pattern: &'a PatternState<T>,
    pub(super) sample: &'a mut SampleState<T>,
    pub(super) rooms: &'a mut [Aligned<T>; 2],
}

impl<T: Real> WithSimd for Condition<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        by_vectors!(T, S, self.run(simd));
    }
}

impl<T: Real> Condition<'_, T> {
    #[inline(always)]
    fn run<S: Simd, const V: usize>(self, simd: S) {
        let Self { of, unit, pattern, sample, rooms } = self;
        let (shape, rank) = (of.model.shape(), of.model.rank());
        let last = shape.len() - 1;
        let (p, r) = (shape[last], rank[last]);
        let SampleState { x, less, h, squares, explained, .. } = sample;
        let [first, second] = rooms;
        let (mut a, mut b) = (lanes_mut::<T, S, V>(first), lanes_mut::<T, S, V>(second));
        let mean = lanes::<T, S, V>(rows_of(&of.mean, unit, x.len()));
        let squares = &mut squares[unit * T::LANES..(unit + 1) * T::LANES];
        squares.fill(0.0);
        let loadings = lanes::<T, S, V>(rows_of(&of.loadings[last], unit, p * r));
        let mut rows = SampleRows { mean, x, less, loadings, side: p, columns: r, squares, out: a };
        for (j, width) in greedily(r, [4, 2]) {
            tile!(width, [4 2 1], rows.contract[](simd, j));
        }
        let (mut groups, mut tail) = (x.len() / p, r);
        for e in (0..last).rev() {
            let (p, r) = (shape[e], rank[e]);
            groups /= p;
            for group in 0..groups {
                let contract = Contract::<S, T, V> {
                    factors: lanes(rows_of(&of.loadings[e], unit, p * r)),
                    columns: r,
                    rows: &of.all_rows[..p],
                    first: 0,
                    input: &a[group * p * tail..(group + 1) * p * tail],
                    tail,
                    out: &mut b[group * r * tail..(group + 1) * r * tail],
                };
                contract.run(simd);
            }
            tail *= r;
            (a, b) = (b, a);
        }
        // y is forward substituted where it lies.
        let rho = tail;
        let y = &mut a[..rho];
        let h = lanes_mut::<T, S, V>(rows_of_mut(h, unit, rho));
        let factor = lanes::<T, S, V>(rows_of(&pattern.factor, unit, rho * rho));
        let inverse = lanes::<T, S, V>(rows_of(&pattern.inverse_diagonal, unit, rho));
        let explained = &mut explained[unit * T::LANES..(unit + 1) * T::LANES];
        explained.fill(0.0);
        let minus = splat::<T, S, V>(simd, -1.0);
        for j in 0..rho {
            let solved = mul::<T, S, V>(simd, y[j], inverse[j]);
            h[j] = solved;
            let taken = mul::<T, S, V>(simd, solved, minus);
            for i in j + 1..rho {
                y[i] = mul_add::<T, S, V>(simd, factor[i * rho + j], taken, y[i]);
            }
            // In double precision: it is taken off a sum that is hardly larger.
            let solved = numbers::<T, S, V>(&solved);
            for l in 0..T::LANES {
                explained[l] += solved[l].to_f64() * solved[l].to_f64();
            }
        }
    }
}

/// The cells of a sample, in rows along the last mode.
struct SampleRows<'a, S: Simd, T: Real, const V: usize> {
    mean: &'a [Lanes<T, S, V>],
    x: &'a [T],
    less: &'a [T],
    /// `[cell of a row][column]`.
    loadings: &'a [Lanes<T, S, V>],
    side: usize,
    columns: usize,
    squares: &'a mut [f64],
    /// `[row][column]`.
    out: &'a mut [Lanes<T, S, V>],
}

impl<S: Simd, T: Real, const V: usize> SampleRows<'_, S, T, V> {
    /// out[j] = Σ over observed cells t of a row of U_tj (x_t − M_t), for J columns, and the squares of x − M with the first of them.
    // Copied one by one: sums whose address is taken do not stay in registers.
    #[allow(clippy::manual_memcpy)]
    #[inline(always)]
    fn contract<const J: usize>(&mut self, simd: S, j0: usize) {
        let Self { mean, x, less, loadings, side, columns, squares, out } = self;
        let zero = splat::<T, S, V>(simd, 0.0);
        let cells = mean.chunks_exact(*side).zip(x.chunks_exact(*side)).zip(less.chunks_exact(*side));
        for (((mean, x), less), out) in cells.zip(out.chunks_exact_mut(*columns)) {
            let mut sums = [zero; J];
            let mut from = 0;
            while from < *side {
                let to = (from + PATIENCE).min(*side);
                let mut square = zero;
                let u = loadings[from * *columns..to * *columns].chunks_exact(*columns);
                let numbers_of = x[from..to].iter().zip(&less[from..to]).zip(&mean[from..to]);
                for (((&x, &less), mean), u) in numbers_of.zip(u) {
                    let u = &u[j0..j0 + J];
                    let (x, less) = (T::splat(simd, x), T::splat(simd, less));
                    for v in 0..V {
                        let rest = T::mul_add(simd, mean[v], less, x);
                        square[v] = T::mul_add(simd, rest, rest, square[v]);
                        for j in 0..J {
                            sums[j][v] = T::mul_add(simd, u[j][v], rest, sums[j][v]);
                        }
                    }
                }
                if j0 == 0 {
                    let square = numbers::<T, S, V>(&square);
                    for l in 0..T::LANES {
                        squares[l] += square[l].to_f64();
                    }
                }
                from = to;
            }
            let out = &mut out[j0..j0 + J];
            for j in 0..J {
                out[j] = sums[j];
            }
        }
    }
}

/// out[j][q] = Σ over some rows t of factors[t][j] · input[t][q].
pub(super) struct Contract<'a, S: Simd, T: Real, const V: usize> {
    /// `[t][columns]`.
    pub(super) factors: &'a [Lanes<T, S, V>],
    pub(super) columns: usize,
    /// Which rows, counted from `first` on.
    pub(super) rows: &'a [usize],
    pub(super) first: usize,
    /// `[t][tail]`.
    pub(super) input: &'a [Lanes<T, S, V>],
    pub(super) tail: usize,
    /// `[j][tail]`.
    pub(super) out: &'a mut [Lanes<T, S, V>],
}

impl<S: Simd, T: Real, const V: usize> Contract<'_, S, T, V> {
    #[inline(always)]
    pub(super) fn run(mut self, simd: S) {
        let widths = if self.tail.is_multiple_of(5) { [5, 2] } else { [4, 2] };
        // One vector of a unit after the other: the sums of a tile stay in 16 registers.
        for v in 0..V {
            for (q, width) in greedily(self.tail, widths) {
                for (j, height) in greedily(self.columns, [2]) {
                    tile!(height, [2 1] x width, [5 4 2 1], self.tile[](simd, v, j, q));
                }
            }
        }
    }

    #[inline(always)]
    fn tile<const J: usize, const Q: usize>(&mut self, simd: S, v: usize, j0: usize, q0: usize) {
        let mut sums = [[T::splat(simd, T::from_f64(0.0)); Q]; J];
        for &row in self.rows {
            let t = row - self.first;
            let factors = &self.factors[t * self.columns + j0..][..J];
            let input = &self.input[t * self.tail + q0..][..Q];
            for q in 0..Q {
                for j in 0..J {
                    sums[j][q] = T::mul_add(simd, factors[j][v], input[q][v], sums[j][q]);
                }
            }
        }
        for j in 0..J {
            let out = &mut self.out[(j0 + j) * self.tail + q0..][..Q];
            for q in 0..Q {
                out[q][v] = sums[j][q];
            }
        }
    }
}
