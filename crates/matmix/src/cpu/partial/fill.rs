//! A sample whose missing cells are filled in with what a component expects there.

use pulp::{Simd, WithSimd};

use super::super::plan::Plan;
use super::PartialModel;
use super::masks::Cells;
use crate::simd::Aligned;
use crate::simd::Real;
use crate::simd::tiles::{greedily, tile};

/// Room to fill a sample in.
pub(super) struct FillRoom<T> {
    /// Q with all its modes but the last expanded.
    along: Vec<T>,
    /// A row of cells, whole vectors, and u_iᵀ Q of all rows that have missing cells.
    line: Aligned<T>,
    expected: Vec<T>,
}

impl<T: Real> FillRoom<T> {
    pub(super) fn new(of: &PartialModel<T>) -> Self {
        let (rank, side) = of.last();
        Self {
            along: vec![T::from_f64(0.0); rank],
            line: Aligned::new(T::from_f64(0.0), side.next_multiple_of(T::LANES)),
            expected: vec![T::from_f64(0.0); of.model.sample_len()],
        }
    }
}

/// What was observed of a sample.
#[derive(Clone, Copy)]
pub(super) struct Observed<'a, T> {
    pub(super) missing: &'a Cells,
    /// x − G, whatever it is where it is missing.
    pub(super) x: &'a [T],
    /// 0 where it is missing.
    pub(super) less: &'a [T],
}

/// x̂ less the rounded M₀: x − M where it was observed, u_iᵀ Q where not; its square.
pub(super) struct Fill<'a, T> {
    pub(super) plan: &'a Plan<T>,
    pub(super) of: &'a PartialModel<T>,
    pub(super) sample: Observed<'a, T>,
    pub(super) k: usize,
    pub(super) core: &'a [T],
    pub(super) room: &'a mut FillRoom<T>,
    pub(super) out: &'a mut [T],
}

impl<T: Real> WithSimd for Fill<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let Self { plan, of, sample, k, core, room: FillRoom { along, line, expected }, out } = self;
        let (_, side) = of.last();
        for (row, _) in sample.missing.rows() {
            contracted(of.prefix(k, row), core, along);
            expand(simd, along, &of.columns[k], line);
            expected[row * side..(row + 1) * side].copy_from_slice(&line[..side]);
        }
        let size = out.len();
        let (x, less, expected) = (&sample.x[..size], &sample.less[..size], &expected[..size]);
        let component = &plan.components[k];
        let (offset, lacking) = (&component.rounded_offset[..size], &component.lacking[..size]);
        // Plain loops, here and below: an iterator's `for_each` may be compiled apart, without the wide instructions.
        for i in 0..size {
            let observed = x[i] - offset[i];
            // What rounding took off the mean comes off all cells when the sums are moved: here it was not taken off.
            let missing = expected[i] + T::from_f64(lacking[i]);
            out[i] = if less[i] == T::from_f64(0.0) { missing } else { observed };
        }
        squares(out)
    }
}

/// out = Σ_a prefix[a] x[a][…]: `x` is `[prefix][out]`.
#[inline(always)]
fn contracted<T: Real>(prefix: &[T], x: &[T], out: &mut [T]) {
    out.fill(T::from_f64(0.0));
    for (&p, x) in prefix.iter().zip(x.chunks_exact(out.len())) {
        for j in 0..out.len() {
            out[j] += p * x[j];
        }
    }
}

/// out = Σ_j factors[j] rows[j][…], whole vectors.
#[inline(always)]
pub(super) fn expand<T: Real, S: Simd>(simd: S, factors: &[T], rows: &[T], out: &mut [T]) {
    let (rows, out) = (T::vectors::<S>(rows), T::vectors_mut::<S>(out));
    let stride = out.len();
    out.fill(T::splat(simd, T::from_f64(0.0)));
    for (at, count) in greedily(stride, [4, 2]) {
        let (rows, out) = (&rows[at..], &mut out[at..at + count]);
        tile!(count, [4 2 1], add[_, _](simd, factors, rows, stride, out));
    }
}

/// N vectors out += Σ_j factors[j] rows[j][…], a row every `stride`.
// Copied one by one: sums whose address is taken do not stay in registers.
#[allow(clippy::manual_memcpy)]
#[inline(always)]
pub(super) fn add<const N: usize, T: Real, S: Simd>(
    simd: S,
    factors: &[T],
    rows: &[T::Vector<S>],
    stride: usize,
    out: &mut [T::Vector<S>],
) {
    let out = &mut out[..N];
    let mut sums = [T::splat(simd, T::from_f64(0.0)); N];
    for n in 0..N {
        sums[n] = out[n];
    }
    let mut at = 0;
    for &factor in factors {
        let (factor, row) = (T::splat(simd, factor), &rows[at..at + N]);
        for n in 0..N {
            sums[n] = T::mul_add(simd, factor, row[n], sums[n]);
        }
        at += stride;
    }
    for n in 0..N {
        out[n] = sums[n];
    }
}

/// ‖x‖², in several sums side by side: a single one would wait for itself.
#[inline(always)]
fn squares<T: Real>(x: &[T]) -> f64 {
    let mut sums = [0.0; 16];
    let (chunks, rest) = x.as_chunks::<16>();
    for x in chunks {
        for i in 0..16 {
            sums[i] += x[i].to_f64() * x[i].to_f64();
        }
    }
    for (i, x) in rest.iter().enumerate() {
        sums[i] += x.to_f64() * x.to_f64();
    }
    sums.iter().sum()
}
