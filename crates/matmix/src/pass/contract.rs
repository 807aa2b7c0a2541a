//! The kernel: contracts one mode of a block of samples against a loading matrix.
//!
//! A block holds its samples innermost, `x[element][lane]` with one lane per sample, so that contracting mode d
//! is the same loop for every order and every mode:
//!
//! ```text
//! out[o][j][m][lane] += U[i][j] · x[o][i][m][lane]        o: modes before d, m: modes after d
//! ```
//!
//! A tile keeps up to 4 vectors of lanes × 4 columns of U in registers and walks along i.

use pulp::{Simd, WithSimd};

use super::simd::Real;

/// Columns of the loading matrix per tile.
const TILE_COLS: usize = 4;

/// One "fibre" of the block: all i of mode d at fixed o and m, against the n × cols matrix `u`.
pub(crate) struct Fibre<'a, T> {
    /// Row-major n × cols.
    pub(crate) u: &'a [T],
    pub(crate) n: usize,
    pub(crate) cols: usize,
    /// The mean along this fibre, every `mean_stride`-th element; empty when it is not wanted.
    pub(crate) mean: &'a [T],
    pub(crate) mean_stride: usize,
}

/// Contracts one fibre. `x` and `out` begin at the fibre; their strides count vectors from i to i + 1 and from
/// j to j + 1. With MEAN, Σ_i mean_i · x_i is added to `inner` lane by lane.
#[inline(always)]
pub(crate) fn contract_fibre<T: Real, S: Simd, const MEAN: bool>(
    simd: S,
    fibre: &Fibre<'_, T>,
    x: &[T::Vector<S>],
    x_stride: usize,
    out: &mut [T::Vector<S>],
    out_stride: usize,
    vectors: usize,
    inner: &mut [f64],
) {
    // Sixteen registers hold half the tile.
    let widest = if S::REGISTER_COUNT >= 32 { 4 } else { 2 };
    let mut v = 0;
    while v < vectors {
        let left = vectors - v;
        if left >= 4 && widest == 4 {
            lanes::<T, S, 4, MEAN>(simd, fibre, &x[v..], x_stride, &mut out[v..], out_stride, v, inner);
            v += 4;
        } else if left >= 2 {
            lanes::<T, S, 2, MEAN>(simd, fibre, &x[v..], x_stride, &mut out[v..], out_stride, v, inner);
            v += 2;
        } else {
            lanes::<T, S, 1, MEAN>(simd, fibre, &x[v..], x_stride, &mut out[v..], out_stride, v, inner);
            v += 1;
        }
    }
}

/// All columns for V vectors of lanes.
#[inline(always)]
fn lanes<T: Real, S: Simd, const V: usize, const MEAN: bool>(
    simd: S,
    fibre: &Fibre<'_, T>,
    x: &[T::Vector<S>],
    x_stride: usize,
    out: &mut [T::Vector<S>],
    out_stride: usize,
    first: usize,
    inner: &mut [f64],
) {
    // Columns are shared out evenly: 5 are 3 + 2, not 4 + 1.
    let tiles = fibre.cols.div_ceil(TILE_COLS);
    let mut j = 0;
    for t in 0..tiles {
        let width = (fibre.cols - j).div_ceil(tiles - t);
        let at = (j, out_stride);
        // The mean goes along with the first tile.
        macro_rules! tiles {
            ($($width:literal),*) => {
                match (width, MEAN && t == 0) {
                    $(
                        ($width, false) => tile::<T, S, V, $width, false>(simd, fibre, x, x_stride, out, at, first, inner),
                        ($width, true) => tile::<T, S, V, $width, MEAN>(simd, fibre, x, x_stride, out, at, first, inner),
                    )*
                    _ => unreachable!("a tile is at most {TILE_COLS} columns wide"),
                }
            };
        }
        tiles!(1, 2, 3, 4);
        j += width;
    }
}

#[inline(always)]
fn tile<T: Real, S: Simd, const V: usize, const J: usize, const MEAN: bool>(
    simd: S,
    fibre: &Fibre<'_, T>,
    x: &[T::Vector<S>],
    x_stride: usize,
    out: &mut [T::Vector<S>],
    (j0, out_stride): (usize, usize),
    first: usize,
    inner: &mut [f64],
) {
    let zero = T::splat(simd, T::from_f64(0.0));
    let mut sum = [[zero; V]; J];
    let mut mean_sum = [zero; V];
    let (n, cols) = (fibre.n, fibre.cols);
    let u = &fibre.u[j0..];
    for i in 0..n {
        let x = &x[i * x_stride..i * x_stride + V];
        let row = &u[i * cols..i * cols + J];
        for j in 0..J {
            let factor = T::splat(simd, row[j]);
            for v in 0..V {
                sum[j][v] = T::mul_add(simd, factor, x[v], sum[j][v]);
            }
        }
        if MEAN {
            let factor = T::splat(simd, fibre.mean[i * fibre.mean_stride]);
            for v in 0..V {
                mean_sum[v] = T::mul_add(simd, factor, x[v], mean_sum[v]);
            }
        }
    }
    for j in 0..J {
        let at = (j0 + j) * out_stride;
        out[at..at + V].copy_from_slice(&sum[j]);
    }
    if MEAN {
        // A fibre is short; over the whole sample the sum goes on in double precision.
        let sums: &[T] = bytemuck::cast_slice(&mean_sum);
        let width = sums.len() / V;
        for (to, x) in inner[first * width..].iter_mut().zip(sums) {
            *to += x.to_f64();
        }
    }
}

/// Contracts the mode of side n of the block `x[before][n][after][lanes]` against `u` (n × cols): every step of a
/// contraction but the first.
#[inline(always)]
pub(crate) fn contract_mode<T: Real, S: Simd>(
    simd: S,
    x: &[T],
    sides: (usize, usize, usize),
    u: &[T],
    cols: usize,
    lanes: usize,
    out: &mut [T],
) {
    // A function of its own: inlined wherever it is called, the tiles would take minutes to compile.
    simd.vectorize(ContractMode { x, sides, u, cols, lanes, out });
}

struct ContractMode<'a, T> {
    x: &'a [T],
    sides: (usize, usize, usize),
    u: &'a [T],
    cols: usize,
    lanes: usize,
    out: &'a mut [T],
}

impl<T: Real> WithSimd for ContractMode<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { x, sides: (before, n, after), u, cols, lanes, out } = self;
        let x = T::vectors::<S>(x);
        let out = T::vectors_mut::<S>(out);
        let vectors = lanes * size_of::<T>() / size_of::<T::Vector<S>>();
        let fibre = Fibre { u, n, cols, mean: &[], mean_stride: 0 };
        for o in 0..before {
            for m in 0..after {
                contract_fibre::<T, S, false>(
                    simd,
                    &fibre,
                    &x[(o * n * after + m) * vectors..],
                    after * vectors,
                    &mut out[(o * cols * after + m) * vectors..],
                    after * vectors,
                    vectors,
                    &mut [],
                );
            }
        }
    }
}

/// Adds Z_(d) Z_(d)ᵀ, summed over the lanes, to the n × n matrix `sum`; Z is `x[before][n][after][lanes]`.
#[inline(always)]
pub(crate) fn add_gram<T: Real, S: Simd>(
    simd: S,
    x: &[T],
    (before, n, after): (usize, usize, usize),
    lanes: usize,
    sum: &mut [f64],
) {
    let x = T::vectors::<S>(x);
    let vectors = after * lanes * size_of::<T>() / size_of::<T::Vector<S>>();
    let mut i = 0;
    while i < n {
        let height = (n - i).min(4);
        let mut j = 0;
        while j <= i {
            let width = (n - j).min(4);
            match (height, width) {
                (4, 4) => gram_tile::<T, S, 4>(simd, x, before, n, vectors, (i, j), (4, 4), sum),
                at_edge => gram_tile::<T, S, 1>(simd, x, before, n, vectors, (i, j), at_edge, sum),
            }
            j += 4;
        }
        i += 4;
    }
}

/// The part of the lower triangle that begins at (i0, j0) and is `size` large, in B×B tiles.
#[inline(always)]
fn gram_tile<T: Real, S: Simd, const B: usize>(
    simd: S,
    x: &[T::Vector<S>],
    before: usize,
    n: usize,
    vectors: usize,
    (i0, j0): (usize, usize),
    size: (usize, usize),
    sum: &mut [f64],
) {
    let zero = T::splat(simd, T::from_f64(0.0));
    for i in (i0..i0 + size.0).step_by(B) {
        for j in (j0..j0 + size.1).step_by(B) {
            let mut acc = [[zero; B]; B];
            for o in 0..before {
                let x = &x[o * n * vectors..(o + 1) * n * vectors];
                let a: [&[T::Vector<S>]; B] =
                    std::array::from_fn(|b| &x[(i + b) * vectors..(i + b + 1) * vectors]);
                let c: [&[T::Vector<S>]; B] =
                    std::array::from_fn(|b| &x[(j + b) * vectors..(j + b + 1) * vectors]);
                for v in 0..vectors {
                    for p in 0..B {
                        for q in 0..B {
                            acc[p][q] = T::mul_add(simd, a[p][v], c[q][v], acc[p][q]);
                        }
                    }
                }
            }
            for p in 0..B {
                for q in 0..B {
                    sum[(i + p) * n + j + q] += T::sum(simd, acc[p][q]).to_f64();
                }
            }
        }
    }
}
