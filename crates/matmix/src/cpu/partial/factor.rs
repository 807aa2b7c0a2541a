//! Λ of a pattern of missing cells and its Cholesky factor, for each component of a unit.
//!
//! ```text
//! Σ u uᵀ [(a, b), (a', b')] = Σ_ij mask_ij L_ia L_ia' R_jb R_jb'          matrices; the other orders alike
//! ```
//!
//! The mask is contracted with pairs of columns of the loadings, mode by mode, last mode first, the way a sample is with the columns.

use pulp::{Simd, WithSimd};

use super::kernel::Contract;
use super::lanes::{
    Lanes, Unit, by_vectors, lanes, lanes_mut, mul, mul_add, numbers, rows_of, rows_of_mut, splat,
};
use super::masks::{Cells, Rows};
use super::{PartialModel, PatternState};
use crate::simd::Aligned;
use crate::simd::Real;
use crate::simd::tiles::{greedily, tile};

/// Pivots are multiplied and their product's logarithm is taken once it leaves this range: logarithms are slow.
const PIVOTS: std::ops::Range<f64> = 1e-100..1e100;

/// The most components of a unit.
const MOST_LANES: usize = 16;

/// F of Λ = F Fᵀ, and ln|Λ|, of the components of a unit.
pub(super) struct Factorise<'a, T: Real> {
    pub(super) of: &'a PartialModel<T>,
    pub(super) unit: usize,
    pub(super) pattern: &'a mut PatternState<T>,
    pub(super) rooms: &'a mut [Aligned<T>; 2],
    /// Whether the missing cells are counted, or the observed ones.
    pub(super) count_missing: bool,
}

impl<T: Real> WithSimd for Factorise<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        by_vectors!(T, S, self.run(simd));
    }
}

impl<T: Real> Factorise<'_, T> {
    #[inline(always)]
    fn run<S: Simd, const V: usize>(self, simd: S) {
        let Self { of, unit, pattern, rooms, count_missing } = self;
        let [first, second] = rooms;
        let (mut a, mut b) = (lanes_mut::<T, S, V>(first), lanes_mut::<T, S, V>(second));
        let (shape, rank) = (of.model.shape(), of.model.rank());
        let last = shape.len() - 1;
        let PatternState { missing, observed, touched, .. } = &mut *pattern;
        let counted = if count_missing { &*missing } else { &*observed };
        // Only rows that hold a counted cell are looked at, and of the next mode only rows of these.
        let [rows, next] = touched;
        rows.clear();
        rows.extend(counted.rows().map(|(row, _)| row));
        let mut tail = of.pairs[last];
        let loadings = lanes(rows_of(&of.loadings[last], unit, shape[last] * rank[last]));
        let squares =
            Squares::<S, T, V> { loadings, side: shape[last], columns: rank[last], counted, out: a };
        squares.run(simd);
        for e in (0..last).rev() {
            let (p, pairs) = (shape[e], of.pairs[e]);
            next.clear();
            for (group, rows) in Rows::of(rows, p) {
                next.push(group);
                let contract = Contract::<S, T, V> {
                    factors: lanes(rows_of(&of.products[e], unit, p * pairs)),
                    columns: pairs,
                    rows,
                    first: group * p,
                    input: &a[group * p * tail..(group + 1) * p * tail],
                    tail,
                    out: &mut b[group * pairs * tail..(group + 1) * pairs * tail],
                };
                contract.run(simd);
            }
            std::mem::swap(rows, next);
            tail *= pairs;
            (a, b) = (b, a);
        }
        if counted.len() == 0 {
            a[..tail].fill(splat::<T, S, V>(simd, 0.0));
        }
        assemble::<S, T, V>(simd, of, unit, pattern, &a[..tail], count_missing);
        decompose::<S, T, V>(simd, of, unit, pattern);
    }
}

/// out[(a, b)] = Σ over the counted cells t of a row of U_ta U_tb, for the pairs b ≤ a of columns.
struct Squares<'a, S: Simd, T: Real, const V: usize> {
    /// `[cell of a row][columns]`.
    loadings: &'a [Lanes<T, S, V>],
    side: usize,
    columns: usize,
    counted: &'a Cells,
    /// `[row][pair]`.
    out: &'a mut [Lanes<T, S, V>],
}

impl<S: Simd, T: Real, const V: usize> Squares<'_, S, T, V> {
    #[inline(always)]
    fn run(mut self, simd: S) {
        // One vector of a unit after the other: the ten sums of four columns stay in 16 registers.
        for v in 0..V {
            for (a, height) in greedily(self.columns, [4, 2]) {
                tile!(height, [4 2 1], self.triangle[](simd, v, a));
                // Those beside the triangle, with the columns before it.
                for (down, height) in greedily(height, [2]) {
                    for (b, width) in greedily(a, [4, 2]) {
                        tile!(height, [2 1] x width, [4 2 1], self.rectangle[](simd, v, a + down, b));
                    }
                }
            }
        }
    }

    /// The pairs of N columns from `a0` on.
    #[inline(always)]
    fn triangle<const N: usize>(&mut self, simd: S, v: usize, a0: usize) {
        let (columns, pairs) = (self.columns, self.columns * (self.columns + 1) / 2);
        for (row, cells) in self.counted.rows() {
            let mut sums = [[T::splat(simd, T::from_f64(0.0)); N]; N];
            for &cell in cells {
                let u = &self.loadings[(cell - row * self.side) * columns + a0..][..N];
                for a in 0..N {
                    for b in 0..=a {
                        sums[a][b] = T::mul_add(simd, u[a][v], u[b][v], sums[a][b]);
                    }
                }
            }
            let out = &mut self.out[row * pairs..(row + 1) * pairs];
            for a in 0..N {
                for b in 0..=a {
                    out[(a0 + a) * (a0 + a + 1) / 2 + a0 + b][v] = sums[a][b];
                }
            }
        }
    }

    /// The pairs of A columns from `a0` on with B columns from `b0` on.
    #[inline(always)]
    fn rectangle<const A: usize, const B: usize>(&mut self, simd: S, v: usize, a0: usize, b0: usize) {
        let (columns, pairs) = (self.columns, self.columns * (self.columns + 1) / 2);
        for (row, cells) in self.counted.rows() {
            let mut sums = [[T::splat(simd, T::from_f64(0.0)); B]; A];
            for &cell in cells {
                let at = (cell - row * self.side) * columns;
                let (left, right) = (&self.loadings[at + a0..][..A], &self.loadings[at + b0..][..B]);
                for a in 0..A {
                    for b in 0..B {
                        sums[a][b] = T::mul_add(simd, left[a][v], right[b][v], sums[a][b]);
                    }
                }
            }
            let out = &mut self.out[row * pairs..(row + 1) * pairs];
            for a in 0..A {
                for b in 0..B {
                    out[(a0 + a) * (a0 + a + 1) / 2 + b0 + b][v] = sums[a][b];
                }
            }
        }
    }
}

/// Λ from Σ u uᵀ over the counted cells.
#[inline(always)]
fn assemble<S: Simd, T: Real, const V: usize>(
    simd: S,
    of: &PartialModel<T>,
    unit: usize,
    pattern: &mut PatternState<T>,
    sums: &[Lanes<T, S, V>],
    count_missing: bool,
) {
    let rho = of.model.core_len();
    let variances = lanes::<T, S, V>(rows_of(&of.variances, unit, rho));
    let noise = lanes::<T, S, V>(rows_of(&of.noise, unit, 1))[0];
    let factor = lanes_mut::<T, S, V>(rows_of_mut(&mut pattern.factor, unit, rho * rho));
    let (zero, one) = (splat::<T, S, V>(simd, 0.0), splat::<T, S, V>(simd, 1.0));
    let sign = splat::<T, S, V>(simd, if count_missing { -1.0 } else { 1.0 });
    let mut entries = of.entries.iter();
    for j in 0..rho {
        let row = &mut factor[j * rho..=j * rho + j];
        for (to, &entry) in row.iter_mut().zip(&mut entries) {
            *to = mul_add::<T, S, V>(simd, sums[entry], sign, zero);
        }
        let base = if count_missing { mul_add::<T, S, V>(simd, noise, one, variances[j]) } else { noise };
        row[j] = mul_add::<T, S, V>(simd, row[j], one, base);
    }
}

/// Cholesky, in place: column after column, each from those before it.
#[inline(always)]
fn decompose<S: Simd, T: Real, const V: usize>(
    simd: S,
    of: &PartialModel<T>,
    unit: usize,
    pattern: &mut PatternState<T>,
) {
    let rho = of.model.core_len();
    let count = T::LANES.min(of.model.n_components() - unit * T::LANES);
    let inverse = lanes_mut::<T, S, V>(rows_of_mut(&mut pattern.inverse_diagonal, unit, rho));
    let factor = lanes_mut::<T, S, V>(rows_of_mut(&mut pattern.factor, unit, rho * rho));
    let mut lower = Lower::<S, T, V> {
        factor,
        rho,
        pivot: splat::<T, S, V>(simd, 1.0),
        below: splat::<T, S, V>(simd, 1.0),
    };
    let logs = &mut pattern.log_determinants[unit * T::LANES..][..count];
    logs.fill(0.0);
    let precision = 1.0 / of.unit_variance;
    let mut products = [1.0; MOST_LANES];
    for j in 0..rho {
        for (i, height) in greedily(rho - j, [4, 2]) {
            tile!(height, [4 2 1], lower.column[](simd, j + i, j));
        }
        inverse[j] = lower.below;
        let pivots = numbers::<T, S, V>(&lower.pivot);
        let mut inside = true;
        for l in 0..T::LANES {
            products[l] *= pivots[l].to_f64() * precision;
            inside &= PIVOTS.contains(&products[l]);
        }
        if !inside || j == rho - 1 {
            // Something negative, or nothing, has no logarithm and makes the sum none, too.
            for (log, product) in logs.iter_mut().zip(&mut products) {
                *log += std::mem::replace(product, 1.0).ln();
            }
        }
    }
}

/// Λ that becomes F.
struct Lower<'a, S: Simd, T: Real, const V: usize> {
    factor: &'a mut [Lanes<T, S, V>],
    rho: usize,
    /// F_jj² and 1 / F_jj of the column in question.
    pivot: Lanes<T, S, V>,
    below: Lanes<T, S, V>,
}

impl<S: Simd, T: Real, const V: usize> Lower<'_, S, T, V> {
    /// F_ij = (Λ_ij − Σ_{l<j} F_il F_jl) / F_jj of some rows from `i` on; the first of them is the pivot.
    #[inline(always)]
    fn column<const I: usize>(&mut self, simd: S, i: usize, j: usize) {
        let rho = self.rho;
        let mut sums = [splat::<T, S, V>(simd, 0.0); I];
        for l in 0..j {
            let along = self.factor[j * rho + l];
            for row in 0..I {
                let f = self.factor[(i + row) * rho + l];
                sums[row] = mul_add::<T, S, V>(simd, f, along, sums[row]);
            }
        }
        let minus = splat::<T, S, V>(simd, -1.0);
        for row in 0..I {
            let at = (i + row) * rho + j;
            sums[row] = mul_add::<T, S, V>(simd, sums[row], minus, self.factor[at]);
        }
        if i == j {
            self.pivot = sums[0];
            for v in 0..V {
                self.below[v] = T::inverse_root(simd, sums[0][v]);
            }
        }
        for row in 0..I {
            self.factor[(i + row) * rho + j] = mul::<T, S, V>(simd, sums[row], self.below);
        }
    }
}
