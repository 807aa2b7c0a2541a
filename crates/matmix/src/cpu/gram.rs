//! Σ x xᵀ of many vectors x, the kernel of everything whose scatter is large.
//!
//! The vectors are kept in panels of a few columns each, `panel[vector][column]`, a block of them at a time: the vectors
//! are the steps of a product of matrices. Two panels are in the first-level cache, all panels of a block in the second.
//! Every number is one sum over the vectors in their order, so that it does not depend on the width of the machine's
//! vectors.

use pulp::Simd;

use crate::linalg::tile::{self, AddSquare, Left, Part};
use crate::simd::Aligned;
use crate::simd::Real;

/// Vectors per block.
const BLOCK: usize = tile::STEPS;

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
    const WIDTH: usize = tile::width::<T>();

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
        let Self { columns, filled, block, sums } = self;
        let width = Self::WIDTH;
        let panel = |p: usize| &block[p * BLOCK * width..(p * BLOCK + *filled) * width];
        let mut squares = sums.chunks_exact_mut(width * width);
        for a in 0..columns.div_ceil(width) {
            for b in 0..=a {
                let Some(square) = squares.next() else { return };
                // A function of its own: inlined wherever it is called, the tiles would take long to compile.
                simd.vectorize(AddSquare {
                    left: Left::Panel(panel(a)),
                    right: panel(b),
                    rows: width.min(*columns - a * width),
                    columns: width.min(*columns - b * width),
                    part: if a == b { Part::Lower } else { Part::Whole },
                    square,
                    stride: width,
                });
            }
        }
        self.filled = 0;
    }
}

#[cfg(test)]
mod tests {
    use pulp::WithSimd;

    use super::*;
    use crate::simd::Instructions;

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
