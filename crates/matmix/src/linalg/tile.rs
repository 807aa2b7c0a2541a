//! The kernel of every large product of matrices: a square of sums from two panels.
//!
//! A panel holds a few columns of a matrix, `panel[step][column]`. A tile of the square stays in registers while it walks
//! along the steps of both panels. Every number is one sum over the steps in their order, so that it does not depend on
//! the width of the machine's vectors.

use pulp::{Simd, WithSimd};

use crate::simd::{Real, has_many_registers};

/// Steps of a panel: two panels are nearly in the first-level cache.
pub(crate) const STEPS: usize = 96;

/// Columns of a panel, three vectors of 64 bytes, which are the rows and the columns of a square.
pub(crate) const fn width<T>() -> usize {
    3 * 64 / size_of::<T>()
}

/// The part of a matrix that is wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Part {
    Whole,
    /// The diagonal and what is below it.
    Lower,
    /// The diagonal and what is above it.
    Upper,
}

/// The columns of the left matrix of a square.
#[derive(Clone, Copy)]
pub(crate) enum Left<'a, T> {
    Panel(&'a [T]),
    /// Where they lie: contiguous steps of each, which begin `stride` elements after each other.
    Lines {
        data: &'a [T],
        stride: usize,
    },
}

/// Adds leftᵀ·right to a square.
pub(crate) struct AddSquare<'a, T> {
    pub(crate) left: Left<'a, T>,
    /// A panel.
    pub(crate) right: &'a [T],
    /// How many columns of the left count.
    pub(crate) rows: usize,
    /// How many columns of the right count.
    pub(crate) columns: usize,
    /// The other parts are anything afterwards.
    pub(crate) part: Part,
    /// Its rows begin `stride` elements after each other.
    pub(crate) square: &'a mut [T],
    pub(crate) stride: usize,
}

impl<T: Real> WithSimd for AddSquare<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // As many tiles as a square has rows and columns, on every machine.
        if has_many_registers::<S>() {
            self.add_tiles::<S, 8, 3>(simd);
        } else {
            self.add_tiles::<S, 6, 2>(simd);
        }
    }
}

impl<T: Real> AddSquare<'_, T> {
    /// I rows and V machine vectors of columns at a time.
    #[inline(always)]
    fn add_tiles<S: Simd, const I: usize, const V: usize>(self, simd: S) {
        let lanes = size_of::<T::Vector<S>>() / size_of::<T>();
        let (width, vectors) = (width::<T>(), width::<T>() / lanes);
        let right = T::vectors::<S>(self.right);
        let steps = right.len() / vectors;
        for i0 in (0..self.rows).step_by(I) {
            let columns = match self.part {
                Part::Whole => 0..self.columns,
                Part::Lower => 0..self.columns.min(i0 + I),
                Part::Upper => i0..self.columns,
            };
            for v0 in (columns.start / (V * lanes) * V..columns.end.div_ceil(lanes)).step_by(V) {
                let at = |i: usize| {
                    let first = (i0 + i) * self.stride + v0 * lanes;
                    first..first + V * lanes
                };
                let mut sum = [[T::splat(simd, T::from_f64(0.0)); V]; I];
                for i in 0..I {
                    sum[i].copy_from_slice(T::vectors::<S>(&self.square[at(i)]));
                }
                let right = right.chunks_exact(vectors).map(|right| &right[v0..v0 + V]);
                match self.left {
                    Left::Panel(left) => {
                        for (left, right) in left.chunks_exact(width).zip(right) {
                            let left = &left[i0..i0 + I];
                            for i in 0..I {
                                let factor = T::splat(simd, left[i]);
                                for v in 0..V {
                                    sum[i][v] = T::mul_add(simd, factor, right[v], sum[i][v]);
                                }
                            }
                        }
                    }
                    Left::Lines { data, stride } => {
                        let mut lines = [&data[..0]; I];
                        for i in 0..I {
                            // The last row in place of those that are not there.
                            lines[i] = &data[(i0 + i).min(self.rows - 1) * stride..][..steps];
                        }
                        for (s, right) in (0..steps).zip(right) {
                            for i in 0..I {
                                let factor = T::splat(simd, lines[i][s]);
                                for v in 0..V {
                                    sum[i][v] = T::mul_add(simd, factor, right[v], sum[i][v]);
                                }
                            }
                        }
                    }
                }
                for (i, sum) in sum.iter().enumerate() {
                    T::vectors_mut::<S>(&mut self.square[at(i)]).copy_from_slice(sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Instructions;

    /// Small whole numbers: every sum is exact.
    fn check<T: Real>() {
        let width = width::<T>();
        let number = |i: usize| ((i * 29 + i / 7) % 13) as f64 - 6.0;
        for (rows, columns, steps) in [(width, width, 40), (width - 1, 5, 3), (1, width, 1), (7, 1, STEPS)] {
            let panel = |offset: usize| -> Vec<T> {
                (0..steps * width).map(|i| T::from_f64(number(i + offset))).collect()
            };
            let (left, right) = (panel(0), panel(5));
            let lines: Vec<T> = (0..rows * steps).map(|i| left[i % steps * width + i / steps]).collect();
            for left in [Left::Panel(&left), Left::Lines { data: &lines, stride: steps }] {
                for part in [Part::Whole, Part::Lower, Part::Upper] {
                    let compiled =
                        |on: &Instructions| *on != Instructions::Portable || T::EPSILON == f64::EPSILON;
                    let mut paths: Vec<_> =
                        Instructions::available().into_iter().filter(compiled).map(Some).collect();
                    // The tiles of the widest vectors and most registers, on any machine.
                    paths.push(None);
                    for path in paths {
                        let mut square = vec![T::from_f64(1.0); width * width];
                        let add = AddSquare {
                            left,
                            right: &right,
                            rows,
                            columns,
                            part,
                            square: &mut square,
                            stride: width,
                        };
                        match path {
                            Some(path) => path.run::<T, _>(add),
                            None => add.add_tiles::<_, 8, 3>(pulp::Scalar512b),
                        }
                        for i in 0..rows {
                            for j in 0..columns {
                                let is_wanted = match part {
                                    Part::Whole => true,
                                    Part::Lower => j <= i,
                                    Part::Upper => j >= i,
                                };
                                let product = |s: usize| number(s * width + i) * number(s * width + j + 5);
                                let sum: f64 = 1.0 + (0..steps).map(product).sum::<f64>();
                                let found = square[i * width + j].to_f64();
                                assert!(
                                    !is_wanted || found == sum,
                                    "{path:?} {part:?} {i} {j}: {found} {sum}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn squares_are_those_written_out_on_every_instruction_set() {
        check::<f32>();
        check::<f64>();
    }
}
