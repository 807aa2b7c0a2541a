//! The kernel of samples with missing cells: components in the lanes, one vector of them at a time.

use bytemuck::{cast_slice, cast_slice_mut};
use pulp::{Simd, WithSimd};

use super::super::aligned::Aligned;
use super::super::simd::Real;
use super::super::tiles::evenly;
use super::{PartialModel, PatternState, SampleState};

/// Cells whose squares are summed up before the sum is brought to double precision.
const PATIENCE: usize = 32;

/// Pivots are multiplied and their product's logarithm is taken once it leaves this range: logarithms are slow.
const PIVOTS: std::ops::Range<f64> = 1e-100..1e100;

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
    let widest = shape.last().copied().unwrap_or(1);
    stage(&|r| r).max(stage(&|r| r * (r + 1) / 2)).max(widest)
}

/// out[j][q] = Σ_t c(t, j) · input[t][q] over some rows t: c is a column of the loadings, or the product of a pair of them.
struct Contract<'a, S: Simd, T: Real> {
    /// `[t][columns][stride]`.
    loadings: &'a [T::Vector<S>],
    columns: usize,
    pairs: Option<&'a [(usize, usize)]>,
    rows: &'a [usize],
    /// `[t][tail][stride]`.
    input: &'a [T::Vector<S>],
    tail: usize,
    /// `[j][tail][stride]`.
    out: &'a mut [T::Vector<S>],
    /// Vectors of a row, and which of them.
    stride: usize,
    v: usize,
}

impl<S: Simd, T: Real> Contract<'_, S, T> {
    #[inline(always)]
    fn run(mut self, simd: S) {
        let count = self.pairs.map_or(self.columns, <[_]>::len);
        let most = if self.tail == 1 { 4 } else { 2 };
        for (j, height) in evenly(count, most) {
            for (q, width) in evenly(self.tail, 4) {
                match (height, width) {
                    (4, _) => self.tile::<4, 1>(simd, j, q),
                    (3, _) => self.tile::<3, 1>(simd, j, q),
                    (2, 1) => self.tile::<2, 1>(simd, j, q),
                    (2, 2) => self.tile::<2, 2>(simd, j, q),
                    (2, 3) => self.tile::<2, 3>(simd, j, q),
                    (2, _) => self.tile::<2, 4>(simd, j, q),
                    (_, 1) => self.tile::<1, 1>(simd, j, q),
                    (_, 2) => self.tile::<1, 2>(simd, j, q),
                    (_, 3) => self.tile::<1, 3>(simd, j, q),
                    _ => self.tile::<1, 4>(simd, j, q),
                }
            }
        }
    }

    #[inline(always)]
    fn tile<const J: usize, const Q: usize>(&mut self, simd: S, j0: usize, q0: usize) {
        let (stride, v, tail) = (self.stride, self.v, self.tail);
        let zero = T::splat(simd, T::from_f64(0.0));
        let mut sums = [[zero; Q]; J];
        for &t in self.rows {
            let (from, of) = ((t * tail + q0) * stride + v, t * self.columns);
            for j in 0..J {
                let factor = match self.pairs {
                    None => self.loadings[(of + j0 + j) * stride + v],
                    Some(pairs) => {
                        let (a, b) = pairs[j0 + j];
                        let (a, b) =
                            (self.loadings[(of + a) * stride + v], self.loadings[(of + b) * stride + v]);
                        T::mul_add(simd, a, b, zero)
                    }
                };
                for q in 0..Q {
                    sums[j][q] = T::mul_add(simd, factor, self.input[from + q * stride], sums[j][q]);
                }
            }
        }
        for j in 0..J {
            for q in 0..Q {
                self.out[((j0 + j) * tail + q0 + q) * stride + v] = sums[j][q];
            }
        }
    }
}

/// The vectors of a row, how many of them hold components, and the lanes of one.
#[inline(always)]
fn vectors_of<S: Simd, T: Real>(of: &PartialModel<T>) -> (usize, usize, usize) {
    let width = size_of::<T::Vector<S>>() / size_of::<T>();
    (of.lanes / width, of.model.n_components().div_ceil(width), width)
}

/// y, h and ‖x_O − M_O‖² of a sample under all components.
pub(super) struct Condition<'a, T: Real> {
    pub(super) of: &'a PartialModel<T>,
    pub(super) pattern: &'a PatternState<T>,
    pub(super) sample: &'a mut SampleState<T>,
    pub(super) rooms: &'a mut [Aligned<T>; 2],
}

impl<T: Real> WithSimd for Condition<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { of, pattern, sample, rooms } = self;
        let (stride, used, width) = vectors_of::<S, T>(of);
        let (shape, rank) = (of.model.shape(), of.model.rank());
        let last = shape.len() - 1;
        let (p, r, prefixes) = (shape[last], rank[last], of.reference.len() / shape[last]);
        let mean = T::vectors::<S>(&of.mean);
        let [first, second] = rooms;
        let (mut a, mut b) = (T::vectors_mut::<S>(first), T::vectors_mut::<S>(second));
        let zero = T::splat(simd, T::from_f64(0.0));
        sample.squares.fill(0.0);
        for v in 0..used {
            for prefix in 0..prefixes {
                let mut norm = zero;
                for t in 0..p {
                    let i = prefix * p + t;
                    let x = T::splat(simd, T::from_f64(sample.x[i]));
                    let less = T::splat(simd, T::from_f64(0.0) - pattern.kept[i]);
                    let rest = T::mul_add(simd, mean[i * stride + v], less, x);
                    norm = T::mul_add(simd, rest, rest, norm);
                    b[t * stride + v] = rest;
                    if t % PATIENCE == PATIENCE - 1 || t == p - 1 {
                        let norms: &[T] = cast_slice(std::slice::from_ref(&norm));
                        for (to, from) in sample.squares[v * width..].iter_mut().zip(norms) {
                            *to += from.to_f64();
                        }
                        norm = zero;
                    }
                }
                let contract = Contract::<S, T> {
                    loadings: T::vectors::<S>(&of.loadings[last]),
                    columns: r,
                    pairs: None,
                    rows: &of.all_rows[..p],
                    input: b,
                    tail: 1,
                    out: &mut a[prefix * r * stride..],
                    stride,
                    v,
                };
                contract.run(simd);
            }
        }
        let (mut groups, mut tail) = (prefixes, r);
        for e in (0..last).rev() {
            let (p, r) = (shape[e], rank[e]);
            groups /= p;
            for v in 0..used {
                for group in 0..groups {
                    let contract = Contract::<S, T> {
                        loadings: T::vectors::<S>(&of.loadings[e]),
                        columns: r,
                        pairs: None,
                        rows: &of.all_rows[..p],
                        input: &a[group * p * tail * stride..],
                        tail,
                        out: &mut b[group * r * tail * stride..],
                        stride,
                        v,
                    };
                    contract.run(simd);
                }
            }
            tail *= r;
            (a, b) = (b, a);
        }
        let rho = tail;
        let h = T::vectors_mut::<S>(&mut sample.h);
        let (factor, inverse) =
            (T::vectors::<S>(&pattern.factor), T::vectors::<S>(&pattern.inverse_diagonal));
        let minus = T::splat(simd, T::from_f64(-1.0));
        for v in 0..used {
            for j in 0..rho {
                let at = j * stride + v;
                let solved = T::mul_add(simd, a[at], inverse[at], zero);
                h[at] = solved;
                let solved = T::mul_add(simd, solved, minus, zero);
                for i in j + 1..rho {
                    let rest = &mut a[i * stride + v];
                    *rest = T::mul_add(simd, factor[(i * rho + j) * stride + v], solved, *rest);
                }
            }
        }
    }
}

/// F of Λ = F Fᵀ, and ln|Λ|, of all components.
pub(super) struct Factorise<'a, T: Real> {
    pub(super) of: &'a PartialModel<T>,
    pub(super) pattern: &'a mut PatternState<T>,
    pub(super) rooms: &'a mut [Aligned<T>; 2],
    pub(super) count_missing: bool,
}

impl<T: Real> WithSimd for Factorise<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { of, pattern, rooms, count_missing } = self;
        let (stride, used, _) = vectors_of::<S, T>(of);
        let is_counted = |i: usize| (pattern.kept[i] == T::from_f64(0.0)) == count_missing;
        let (shape, rank) = (of.model.shape(), of.model.rank());
        let [first, second] = rooms;
        let (mut a, mut b) = (T::vectors_mut::<S>(first), T::vectors_mut::<S>(second));
        // Stage after stage: the groups of rows that hold a counted cell, and those rows.
        let mut touched: Vec<bool> = (0..of.reference.len()).map(is_counted).collect();
        let mut rows = Vec::new();
        let mut tail = 1;
        let one = T::splat(simd, T::from_f64(1.0));
        for d in (0..shape.len()).rev() {
            let (p, pairs) = (shape[d], &of.pairs[d][..]);
            if tail == 1 && d == shape.len() - 1 {
                // The mask itself: a counted cell is 1.
                a[..p * stride].fill(one);
            }
            let groups = touched.len() / p;
            let mut any = vec![false; groups];
            for (group, any) in any.iter_mut().enumerate() {
                rows.clear();
                rows.extend((0..p).filter(|t| touched[group * p + t]));
                *any = !rows.is_empty();
                if rows.is_empty() {
                    continue;
                }
                let from = if d == shape.len() - 1 { 0 } else { group * p * tail * stride };
                for v in 0..used {
                    let contract = Contract::<S, T> {
                        loadings: T::vectors::<S>(&of.loadings[d]),
                        columns: rank[d],
                        pairs: Some(pairs),
                        rows: &rows,
                        input: &a[from..],
                        tail,
                        out: &mut b[group * pairs.len() * tail * stride..],
                        stride,
                        v,
                    };
                    contract.run(simd);
                }
            }
            touched = any;
            tail *= pairs.len();
            (a, b) = (b, a);
        }
        if !touched[0] {
            a[..tail * stride].fill(T::splat(simd, T::from_f64(0.0)));
        }
        assemble::<S, T>(simd, of, pattern, a, count_missing, used, stride);
        decompose::<S, T>(simd, of, pattern);
    }
}

/// Λ from Σ u uᵀ over the counted cells.
#[inline(always)]
fn assemble<S: Simd, T: Real>(
    simd: S,
    of: &PartialModel<T>,
    pattern: &mut PatternState<T>,
    sums: &[T::Vector<S>],
    count_missing: bool,
    used: usize,
    stride: usize,
) {
    let rho = of.model.core_len();
    let (variances, noise) = (T::vectors::<S>(&of.variances), T::vectors::<S>(&of.noise));
    let factor = T::vectors_mut::<S>(&mut pattern.factor);
    let (zero, one) = (T::splat(simd, T::from_f64(0.0)), T::splat(simd, T::from_f64(1.0)));
    let sign = T::splat(simd, T::from_f64(if count_missing { -1.0 } else { 1.0 }));
    for j in 0..rho {
        for l in 0..=j {
            let entry = of.entries[j * (j + 1) / 2 + l];
            for v in 0..used {
                let base = match (j == l, count_missing) {
                    (false, _) => zero,
                    (true, true) => T::mul_add(simd, noise[v], one, variances[j * stride + v]),
                    (true, false) => noise[v],
                };
                factor[(j * rho + l) * stride + v] = T::mul_add(simd, sums[entry * stride + v], sign, base);
            }
        }
    }
}

/// Cholesky, in place.
#[inline(always)]
fn decompose<S: Simd, T: Real>(simd: S, of: &PartialModel<T>, pattern: &mut PatternState<T>) {
    let (stride, used, width) = vectors_of::<S, T>(of);
    let (rho, components) = (of.model.core_len(), of.model.n_components());
    let inverse = T::vectors_mut::<S>(&mut pattern.inverse_diagonal);
    let mut lower = Lower::<S, T> { factor: T::vectors_mut::<S>(&mut pattern.factor), rho, stride, v: 0 };
    let zero = T::splat(simd, T::from_f64(0.0));
    for v in 0..used {
        lower.v = v;
        let count = width.min(components - v * width);
        let logs = &mut pattern.log_determinants[v * width..][..count];
        logs.fill(0.0);
        let mut products = [1.0; 16];
        for j in 0..rho {
            let [pivot] = lower.rest::<1>(simd, j, j);
            let (mut root, mut below) = (pivot, pivot);
            {
                let roots: &mut [T] = cast_slice_mut(std::slice::from_mut(&mut root));
                let belows: &mut [T] = cast_slice_mut(std::slice::from_mut(&mut below));
                for l in 0..width {
                    let x = roots[l].to_f64();
                    let square_root = x.sqrt();
                    roots[l] = T::from_f64(square_root);
                    belows[l] = T::from_f64(1.0 / square_root);
                    products[l] *= x;
                }
            }
            for (l, log) in logs.iter_mut().enumerate() {
                // Something negative, or nothing, has no logarithm and makes the sum none, too.
                if !PIVOTS.contains(&products[l]) || j == rho - 1 {
                    *log += products[l].ln();
                    products[l] = 1.0;
                }
            }
            lower.factor[(j * rho + j) * stride + v] = root;
            inverse[j * stride + v] = below;
            for (i, height) in evenly(rho - j - 1, 4) {
                match height {
                    4 => lower.column::<4>(simd, j + 1 + i, j, below, zero),
                    3 => lower.column::<3>(simd, j + 1 + i, j, below, zero),
                    2 => lower.column::<2>(simd, j + 1 + i, j, below, zero),
                    _ => lower.column::<1>(simd, j + 1 + i, j, below, zero),
                }
            }
        }
    }
}

/// Λ that becomes F, one vector of lanes.
struct Lower<'a, S: Simd, T: Real> {
    factor: &'a mut [T::Vector<S>],
    rho: usize,
    stride: usize,
    v: usize,
}

impl<S: Simd, T: Real> Lower<'_, S, T> {
    /// Λ_ij − Σ_{l<j} F_il F_jl for some rows from `i` on.
    #[inline(always)]
    fn rest<const I: usize>(&self, simd: S, i: usize, j: usize) -> [T::Vector<S>; I] {
        let at = |i: usize, j: usize| (i * self.rho + j) * self.stride + self.v;
        let zero = T::splat(simd, T::from_f64(0.0));
        let mut sums = [zero; I];
        for l in 0..j {
            let along = self.factor[at(j, l)];
            for row in 0..I {
                sums[row] = T::mul_add(simd, self.factor[at(i + row, l)], along, sums[row]);
            }
        }
        let minus = T::splat(simd, T::from_f64(-1.0));
        for row in 0..I {
            sums[row] = T::mul_add(simd, sums[row], minus, self.factor[at(i + row, j)]);
        }
        sums
    }

    #[inline(always)]
    fn column<const I: usize>(
        &mut self,
        simd: S,
        i: usize,
        j: usize,
        below: T::Vector<S>,
        zero: T::Vector<S>,
    ) {
        let rest = self.rest::<I>(simd, i, j);
        for row in 0..I {
            let at = ((i + row) * self.rho + j) * self.stride + self.v;
            self.factor[at] = T::mul_add(simd, rest[row], below, zero);
        }
    }
}
