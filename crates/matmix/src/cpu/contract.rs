//! The kernel: contracts one mode of a block of samples against a loading matrix.
//!
//! A block holds its samples innermost, `x[element][lane]` with one lane per sample, so that contracting mode d
//! is the same loop for every order and every mode:
//!
//! ```text
//! out[o][j][m][lane] += U[i][j] · x[o][i][m][lane]        o: modes before d, m: modes after d
//! ```
//!
//! A tile keeps 2 vectors of lanes × up to 4 columns of U × 1 or 2 fibres in registers and walks along i.

use pulp::{Simd, WithSimd};

use super::plan::Step;
use crate::simd::Aligned;
use crate::simd::tiles::{evenly, greedily, tile};
use crate::simd::{Real, has_many_registers};

/// Columns of the loading matrix per tile.
const TILE_COLS: usize = 4;

/// Vectors of lanes per tile.
const TILE_VECTORS: usize = 2;

/// Fibres per tile where there are registers for them.
pub(crate) const FIBRES: usize = 2;

/// What a contraction begins with.
#[derive(Clone, Copy)]
pub(crate) enum From<'a, T> {
    Zero,
    /// One number per column, every `stride`-th of these from each fibre's place on.
    Offset {
        offset: &'a [T],
        stride: usize,
    },
    /// What is there: all stretches of a fibre but the first.
    There,
}

/// A loading matrix, row-major n × cols, and what its products are added to.
#[derive(Clone, Copy)]
pub(crate) struct Loading<'a, T> {
    pub(crate) u: &'a [T],
    pub(crate) n: usize,
    pub(crate) cols: usize,
    pub(crate) from: From<'a, T>,
}

/// Where a fibre (all i of mode d at fixed o and m, or a stretch of them) is read, what it becomes, and where its
/// offset begins; all three counted in vectors but the last.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) x: usize,
    pub(crate) out: usize,
    pub(crate) offset: usize,
}

/// One or two fibres and what they are contracted with: the more fibres, the more often a number of the loading matrix is
/// used once it is in a register. The strides count vectors from i to i + 1 and from j to j + 1.
struct Fibres<'a, T> {
    loading: Loading<'a, T>,
    places: &'a [Place],
    x: &'a [T],
    x_stride: usize,
    out: &'a mut [T],
    out_stride: usize,
}

/// Contracts one or two fibres at once.
#[inline(always)]
pub(crate) fn contract_fibres<T: Real, S: Simd>(
    simd: S,
    loading: Loading<'_, T>,
    places: &[Place],
    x: &[T],
    x_stride: usize,
    out: &mut [T],
    out_stride: usize,
    vectors: usize,
) {
    let mut fibres = Fibres { loading, places, x, x_stride, out, out_stride };
    for v in (0..vectors).step_by(TILE_VECTORS) {
        for (j, width) in evenly(loading.cols, TILE_COLS) {
            tile!(places.len(), [1 2] x width, [1 2 3 4], fibres.tile[_](simd, v, j));
        }
    }
}

impl<T: Real> Fibres<'_, T> {
    /// J columns from `j0` on, for two vectors of lanes from `v0` on.
    #[inline(always)]
    fn tile<const F: usize, const J: usize, S: Simd>(&mut self, simd: S, v0: usize, j0: usize) {
        const V: usize = TILE_VECTORS;
        let zero = T::splat(simd, T::from_f64(0.0));
        let mut sum = [[[zero; V]; J]; F];
        let Loading { u, n, cols, from } = self.loading;
        let (places, x_stride, out_stride) = (&self.places[..F], self.x_stride, self.out_stride);
        let (x, out) = (T::vectors::<S>(self.x), T::vectors_mut::<S>(self.out));
        match from {
            From::Zero => {}
            From::Offset { offset, stride } => {
                for f in 0..F {
                    for j in 0..J {
                        sum[f][j] = [T::splat(simd, offset[places[f].offset + (j0 + j) * stride]); V];
                    }
                }
            }
            From::There => {
                for f in 0..F {
                    for j in 0..J {
                        let at = places[f].out + (j0 + j) * out_stride + v0;
                        sum[f][j].copy_from_slice(&out[at..at + V]);
                    }
                }
            }
        }
        let length = (n - 1) * x_stride + V;
        let mut rows = [&x[..length]; F];
        for f in 0..F {
            rows[f] = &x[places[f].x + v0..places[f].x + v0 + length];
        }
        for (i, row) in u.chunks_exact(cols).enumerate() {
            let row = &row[j0..j0 + J];
            let at = i * x_stride;
            let mut values = [[zero; V]; F];
            for f in 0..F {
                values[f].copy_from_slice(&rows[f][at..at + V]);
            }
            for j in 0..J {
                let factor = T::splat(simd, row[j]);
                for f in 0..F {
                    for v in 0..V {
                        sum[f][j][v] = T::mul_add(simd, factor, values[f][v], sum[f][j][v]);
                    }
                }
            }
        }
        for f in 0..F {
            for j in 0..J {
                let at = places[f].out + (j0 + j) * out_stride + v0;
                out[at..at + V].copy_from_slice(&sum[f][j]);
            }
        }
    }
}

/// Adds Σ_i mean_i · x_i of J means to `inner`, lane by lane: short runs in the working precision, their sum in double.
#[inline(always)]
pub(crate) fn add_inner_products<T: Real, S: Simd, const J: usize>(
    simd: S,
    means: [&[T]; J],
    x: &[T],
    vectors: usize,
    inner: &mut [f64],
) {
    const V: usize = TILE_VECTORS;
    let x = T::vectors::<S>(x);
    let zero = T::splat(simd, T::from_f64(0.0));
    let lanes = inner.len() / J;
    for v0 in (0..vectors).step_by(V) {
        let mut sum = [[zero; V]; J];
        for (i, row) in x.chunks_exact(vectors).enumerate() {
            let row = &row[v0..v0 + V];
            for j in 0..J {
                let factor = T::splat(simd, means[j][i]);
                for v in 0..V {
                    sum[j][v] = T::mul_add(simd, factor, row[v], sum[j][v]);
                }
            }
        }
        for j in 0..J {
            let sums: &[T] = bytemuck::cast_slice(&sum[j]);
            let first = j * lanes + v0 * sums.len() / V;
            for (to, x) in inner[first..first + sums.len()].iter_mut().zip(sums) {
                *to += x.to_f64();
            }
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

/// Contracts one mode of `x` after the other, each step into its stage.
#[inline(always)]
pub(crate) fn contract_steps<T: Real, S: Simd>(
    simd: S,
    x: &[T],
    steps: &[Step],
    loadings: &[Vec<T>],
    lanes: usize,
    stages: &mut [Aligned<T>],
) {
    for (t, step) in steps.iter().enumerate() {
        let (done, rest) = stages.split_at_mut(t);
        let from = done.last().map_or(x, |stage| stage);
        let sides = (step.before, step.n, step.after);
        contract_mode(simd, from, sides, &loadings[step.mode], step.cols, lanes, &mut rest[0]);
    }
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
        let vectors = lanes * size_of::<T>() / size_of::<T::Vector<S>>();
        let loading = Loading { u, n, cols, from: From::Zero };
        let place = |o: usize, m: usize| Place {
            x: (o * n * after + m) * vectors,
            out: (o * cols * after + m) * vectors,
            offset: 0,
        };
        for o in 0..before {
            let mut m = 0;
            while m + FIBRES <= after && has_many_registers::<S>() {
                let fibres = [place(o, m), place(o, m + 1)];
                let stride = after * vectors;
                contract_fibres(simd, loading, &fibres, x, stride, out, stride, vectors);
                m += FIBRES;
            }
            for m in m..after {
                let stride = after * vectors;
                contract_fibres(simd, loading, &[place(o, m)], x, stride, out, stride, vectors);
            }
        }
    }
}

/// Rows of either side per tile of a product over the lanes.
const PRODUCT_TILE: usize = 4;

/// Adds a bᵀ to `sums`, `[rows of a][rows of b]`, where the columns of both lie in the lanes: `a[before][rows][columns]` and
/// `b[before][rows][columns]`. Each sum stays a vector, one number per lane of the machine, until [`total`] adds them up.
#[inline(always)]
pub(crate) fn multiply<T: Real, S: Simd>(
    simd: S,
    a: &[T],
    b: &[T],
    (before, rows_a, rows_b, columns): (usize, usize, usize, usize),
    sums: &mut [T],
) {
    let vectors = columns * size_of::<T>() / size_of::<T::Vector<S>>();
    // A function of its own, as above: it is called from several places.
    simd.vectorize(Product { a, b, before, vectors, rows: (rows_a, rows_b), sums });
}

struct Product<'a, T> {
    a: &'a [T],
    b: &'a [T],
    before: usize,
    vectors: usize,
    /// Rows of a and of b.
    rows: (usize, usize),
    sums: &'a mut [T],
}

impl<T: Real> WithSimd for Product<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (rows_a, rows_b) = self.rows;
        for (i, height) in greedily(rows_a, [PRODUCT_TILE]) {
            for (j, width) in greedily(rows_b, [PRODUCT_TILE, 2]) {
                tile!(height, [4 1] x width, [4 2 1], self.tile[_](simd, i, j));
            }
        }
    }
}

impl<T: Real> Product<'_, T> {
    /// The sums of rows i0 … i0 + I − 1 of a with rows j0 … j0 + J − 1 of b.
    #[inline(always)]
    fn tile<const I: usize, const J: usize, S: Simd>(&mut self, simd: S, i0: usize, j0: usize) {
        // Plain loops throughout: `array::from_fn` may be compiled apart, without the wide instructions.
        let ((rows_a, rows_b), vectors) = (self.rows, self.vectors);
        let (a, b, sums) = (T::vectors::<S>(self.a), T::vectors::<S>(self.b), T::vectors_mut::<S>(self.sums));
        let zero = T::splat(simd, T::from_f64(0.0));
        let mut sum = [[zero; J]; I];
        for i in 0..I {
            for j in 0..J {
                sum[i][j] = sums[(i0 + i) * rows_b + j0 + j];
            }
        }
        for o in 0..self.before {
            let a = &a[(o * rows_a + i0) * vectors..(o * rows_a + i0 + I) * vectors];
            let b = &b[(o * rows_b + j0) * vectors..(o * rows_b + j0 + J) * vectors];
            for v in 0..vectors {
                for i in 0..I {
                    let x = a[i * vectors + v];
                    for j in 0..J {
                        sum[i][j] = T::mul_add(simd, x, b[j * vectors + v], sum[i][j]);
                    }
                }
            }
        }
        for i in 0..I {
            for j in 0..J {
                sums[(i0 + i) * rows_b + j0 + j] = sum[i][j];
            }
        }
    }
}

/// Adds every vector's lanes up, adds that to `out`, and leaves zeros behind.
#[inline(always)]
pub(crate) fn total<T: Real, S: Simd>(simd: S, sums: &mut [T], out: &mut [f64]) {
    let sums = T::vectors_mut::<S>(sums);
    let zero = T::splat(simd, T::from_f64(0.0));
    for (sum, out) in sums.iter_mut().zip(out) {
        *out += T::sum(simd, *sum).to_f64();
        *sum = zero;
    }
}
