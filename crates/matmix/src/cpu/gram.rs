//! Σ x xᵀ of many vectors x, the kernel of everything whose scatter is large.
//!
//! The vectors are kept in panels of a few columns each, `panel[vector][column]`, a block of them at a time. A tile of
//! the product stays in registers while it walks along the vectors of a block: two panels are in the first-level cache,
//! all panels of a block in the second. Every number is one sum over the vectors in their order, so that it does not
//! depend on the width of the machine's vectors.

use pulp::{Simd, WithSimd};

use super::aligned::Aligned;
use super::simd::Real;

/// Vectors per block: two panels of 16 KB each.
const BLOCK: usize = 128;

/// Vectors of 64 bytes per row of a panel.
const ROW_VECTORS: usize = 2;

/// Machine vectors per tile.
const TILE_VECTORS: usize = 2;

/// Σ x xᵀ in the working precision.
pub(super) struct Gram<T> {
    columns: usize,
    /// How many vectors the block holds.
    filled: usize,
    block: Aligned<T>,
    /// One square of sums per pair of panels, those of the lower triangle row by row.
    sums: Aligned<T>,
}

impl<T: Real> Gram<T> {
    /// Columns per panel.
    const WIDTH: usize = ROW_VECTORS * T::LANES;

    pub(super) fn new(columns: usize) -> Self {
        let panels = columns.div_ceil(Self::WIDTH);
        let zeros = |n: usize| Aligned::new(T::from_f64(0.0), n);
        Self {
            columns,
            filled: 0,
            block: zeros(panels * BLOCK * Self::WIDTH),
            sums: zeros(panels * (panels + 1) / 2 * Self::WIDTH * Self::WIDTH),
        }
    }

    /// Adds x xᵀ.
    #[inline(always)]
    pub(super) fn add<S: Simd>(&mut self, simd: S, x: &[T]) {
        for (panel, x) in self.block.chunks_exact_mut(BLOCK * Self::WIDTH).zip(x.chunks(Self::WIDTH)) {
            let at = self.filled * Self::WIDTH;
            panel[at..at + x.len()].copy_from_slice(x);
        }
        self.filled += 1;
        if self.filled == BLOCK {
            self.add_block(simd);
        }
    }

    /// Adds the lower triangle of all that was added, row by row, to `out`, and begins anew.
    #[inline(always)]
    pub(super) fn finish<S: Simd>(&mut self, simd: S, out: &mut [f64]) {
        self.add_block(simd);
        let mut at = 0;
        for i in 0..self.columns {
            let (a, row) = (i / Self::WIDTH, i % Self::WIDTH);
            for b in 0..=a {
                let first = ((a * (a + 1) / 2 + b) * Self::WIDTH + row) * Self::WIDTH;
                let width = Self::WIDTH.min(i + 1 - b * Self::WIDTH);
                for (to, from) in out[at..at + width].iter_mut().zip(&mut self.sums[first..first + width]) {
                    *to += from.to_f64();
                }
                at += width;
            }
        }
        self.sums.fill(T::from_f64(0.0));
    }

    #[inline(always)]
    fn add_block<S: Simd>(&mut self, simd: S) {
        // A function of its own: inlined wherever it is called, the tiles would take long to compile.
        simd.vectorize(AddBlock(self));
        self.filled = 0;
    }
}

struct AddBlock<'a, T>(&'a mut Gram<T>);

impl<T: Real> WithSimd for AddBlock<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Gram { columns, filled, block, sums } = self.0;
        let width = Gram::<T>::WIDTH;
        let panel = |p: usize| &block[p * BLOCK * width..(p * BLOCK + *filled) * width];
        let mut squares = sums.chunks_exact_mut(width * width);
        for a in 0..columns.div_ceil(width) {
            let rows = width.min(*columns - a * width);
            for b in 0..=a {
                let Some(square) = squares.next() else { return };
                let square = T::vectors_mut::<S>(square);
                let (left, right) = (panel(a), T::vectors::<S>(panel(b)));
                if S::REGISTER_COUNT >= 32 {
                    add_square::<T, S, 8>(simd, left, right, rows, square);
                } else {
                    add_square::<T, S, 4>(simd, left, right, rows, square);
                }
            }
        }
    }
}

/// Adds the products of the first `rows` columns of one panel with all of another, I columns at a time.
#[inline(always)]
fn add_square<T: Real, S: Simd, const I: usize>(
    simd: S,
    left: &[T],
    right: &[T::Vector<S>],
    rows: usize,
    square: &mut [T::Vector<S>],
) {
    const V: usize = TILE_VECTORS;
    let width = Gram::<T>::WIDTH;
    let vectors = width * size_of::<T>() / size_of::<T::Vector<S>>();
    let zero = T::splat(simd, T::from_f64(0.0));
    for i0 in (0..rows).step_by(I) {
        for v0 in (0..vectors).step_by(V) {
            let mut sum = [[zero; V]; I];
            for i in 0..I {
                for v in 0..V {
                    sum[i][v] = square[(i0 + i) * vectors + v0 + v];
                }
            }
            for (left, right) in left.chunks_exact(width).zip(right.chunks_exact(vectors)) {
                let (left, right) = (&left[i0..i0 + I], &right[v0..v0 + V]);
                for i in 0..I {
                    let factor = T::splat(simd, left[i]);
                    for v in 0..V {
                        sum[i][v] = T::mul_add(simd, factor, right[v], sum[i][v]);
                    }
                }
            }
            for i in 0..I {
                for v in 0..V {
                    square[(i0 + i) * vectors + v0 + v] = sum[i][v];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::simd::Instructions;
    use super::*;

    struct Sum<'a, T>(&'a [T], &'a mut Gram<T>);

    impl<T: Real> WithSimd for Sum<'_, T> {
        type Output = Vec<f64>;

        fn with_simd<S: Simd>(self, simd: S) -> Vec<f64> {
            let Sum(x, gram) = self;
            let n = gram.columns;
            x.chunks_exact(n).for_each(|x| gram.add(simd, x));
            let mut out = vec![1.0; n * (n + 1) / 2];
            gram.finish(simd, &mut out);
            out
        }
    }

    /// Small whole numbers: every sum is exact.
    fn check<T: Real>() {
        for columns in [1, 5, 16, 31, 33, 100] {
            let gram = &mut Gram::<T>::new(columns);
            // No block, a part of one, whole ones and a part; the sums of one set must not leak into the next.
            for rows in [0, 3, 2 * BLOCK + 7, BLOCK] {
                let number = |i: usize| ((i * 29 + columns) % 13) as f64 - 6.0;
                let x: Vec<T> = (0..rows * columns).map(|i| T::from_f64(number(i))).collect();
                let mut expected = Vec::new();
                for i in 0..columns {
                    for j in 0..=i {
                        let products = (0..rows).map(|n| number(n * columns + i) * number(n * columns + j));
                        expected.push(1.0 + products.sum::<f64>());
                    }
                }
                for on in Instructions::available() {
                    if on == Instructions::Portable && T::EPSILON > f64::EPSILON {
                        continue;
                    }
                    assert_eq!(on.run::<T, _>(Sum(&x, gram)), expected, "{on}, {rows} × {columns}");
                }
            }
        }
    }

    #[test]
    fn the_sums_are_those_written_out_on_every_instruction_set() {
        check::<f32>();
        check::<f64>();
    }
}
