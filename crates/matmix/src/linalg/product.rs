//! Products of matrices: plain loops for small ones, panels and their kernel for large ones.
//!
//! Every number is one sum over the steps, in an order that depends on the sizes alone.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::panel::{Panels, View, pieces};
use super::stretches::over_stretches;
use super::tile::{AddSquare, Left, Part, STEPS, width};
use super::vector::{add_combination, split_dot};
use super::{BEST, Matrix};
use crate::simd::Aligned;
use crate::simd::Real;

/// Products of more multiplications are worth the panels.
const PACKED: usize = 1 << 12;

/// Products of more multiplications are worth several threads, for at most so many stretches of rows.
const PARALLEL: usize = 1 << 21;
const STRETCHES: usize = 16;

/// Panels of the left matrix that are filled at a time: they stay in the second-level cache.
const LEFT_PANELS: usize = 4;

/// Numbers of the right matrix that are in panels at a time, unless one step has more.
const RIGHT_NUMBERS: usize = 1 << 19;

impl View<'_, f64> {
    /// Aᵀ·B.
    pub(super) fn transpose_times(self, b: View<'_, f64>) -> Matrix {
        let mut out = Matrix::zeros(self.cols, b.cols);
        add_product(self, b, Part::Whole, out.as_mut_slice(), b.cols);
        out
    }

    /// A·B.
    pub(super) fn times(self, b: View<'_, f64>) -> Matrix {
        self.transpose().transpose_times(b)
    }
}

/// Adds a part of leftᵀ·right to `out`, whose rows begin `stride` elements after each other.
pub(super) fn add_product(
    left: View<'_, f64>,
    right: View<'_, f64>,
    part: Part,
    out: &mut [f64],
    stride: usize,
) {
    assert_eq!(left.rows, right.rows, "inner dimensions agree");
    let (steps, rows, columns) = (left.rows, left.cols, right.cols);
    let size = steps * rows * columns;
    if size <= PACKED {
        if size > 0 {
            BEST.run::<f64, _>(AddPlainly { left, right, part, out, stride });
        }
        return;
    }
    let stretches = if size > PARALLEL { STRETCHES } else { 1 };
    let stretch = rows.div_ceil(stretches).next_multiple_of(width::<f64>());
    let room = (RIGHT_NUMBERS / columns).next_multiple_of(STEPS).min(steps);
    let mut panels = Panels::new(room, columns);
    for steps in pieces(0..steps, room) {
        panels.fill(right, steps.clone(), 0..columns);
        over_stretches(out, stretch * stride, &|number, out| {
            let own = number * stretch..((number + 1) * stretch).min(rows);
            add_stretch(left, own, &panels, steps.clone(), part, out, stride);
        });
    }
}

/// Adds some steps of some rows.
fn add_stretch(
    left: View<'_, f64>,
    rows: Range<usize>,
    right: &Panels<f64>,
    steps: Range<usize>,
    part: Part,
    out: &mut [f64],
    stride: usize,
) {
    let at_a_time = LEFT_PANELS * width::<f64>();
    let room = if left.by_columns { 0 } else { steps.len().min(STEPS) };
    let mut panels = Panels::new(room, at_a_time.min(rows.len()));
    for steps in pieces(steps, STEPS) {
        for few in pieces(rows.clone(), at_a_time) {
            if !left.by_columns {
                panels.fill(left, steps.clone(), few.clone());
            }
            for (number, own) in pieces(few, width::<f64>()).enumerate() {
                let left = match left.by_columns {
                    true => left.lines(own.start, steps.start),
                    false => Left::Panel(panels.get(number, steps.clone())),
                };
                let out = &mut out[(own.start - rows.start) * stride..];
                add_squares(left, own, right, steps.clone(), part, out, stride);
            }
        }
    }
}

/// Adds the lower triangle of x·xᵀ to `out`, for contiguous rows of both. Sequential: those who call this already run side
/// by side.
pub(crate) fn add_rows_gram<T: Real>(x: &[T], rows: usize, out: &mut [T]) {
    let steps = x.len() / rows;
    let x = View::new(x, rows, steps, steps).transpose();
    let mut panels = Panels::new(steps.min(STEPS), rows);
    for steps in pieces(0..steps, STEPS) {
        panels.fill(x, steps.clone(), 0..rows);
        for (number, own) in panels.columns().enumerate() {
            let out = &mut out[own.start * rows..];
            let left = Left::Panel(panels.get(number, steps.clone()));
            add_squares(left, own, &panels, steps.clone(), Part::Lower, out, rows);
        }
    }
}

/// Adds the wanted part of a square's rows of leftᵀ·right, for all columns.
fn add_squares<T: Real>(
    left: Left<'_, T>,
    rows: Range<usize>,
    right: &Panels<T>,
    steps: Range<usize>,
    part: Part,
    out: &mut [T],
    stride: usize,
) {
    let width = width::<T>();
    let mut apart = Aligned::new(T::from_f64(0.0), width * width);
    for (number, columns) in right.columns().enumerate() {
        let wanted = |row: usize| part.of(columns.clone(), row);
        if wanted(rows.start).is_empty() && wanted(rows.end - 1).is_empty() {
            continue;
        }
        let on_diagonal = columns.start == rows.start;
        let right = right.get(number, steps.clone());
        let part = if on_diagonal { part } else { Part::Whole };
        let add = |square: &mut [T], stride: usize| {
            let (rows, columns) = (rows.len(), columns.len());
            BEST.run::<T, _>(AddSquare { left, right, rows, columns, part, square, stride });
        };
        if part == Part::Whole && rows.len() == width && columns.len() == width {
            add(&mut out[columns.start..], stride);
            continue;
        }
        // Not all of the square is there, or wanted.
        let lines = apart.chunks_exact_mut(width).zip(out.chunks(stride).take(rows.len()));
        lines.for_each(|(line, out)| line[..columns.len()].copy_from_slice(&out[columns.clone()]));
        add(&mut apart, width);
        let lines = apart.chunks_exact(width).zip(out.chunks_mut(stride));
        for ((line, out), row) in lines.zip(rows.clone()) {
            let wanted = wanted(row);
            let from = &line[wanted.start - columns.start..][..wanted.len()];
            out[wanted].copy_from_slice(from);
        }
    }
}

impl Part {
    /// The wanted ones of these columns of a row.
    fn of(self, columns: Range<usize>, row: usize) -> Range<usize> {
        match self {
            Part::Whole => columns,
            Part::Lower => columns.start..(row + 1).clamp(columns.start, columns.end),
            Part::Upper => row.clamp(columns.start, columns.end)..columns.end,
        }
    }
}

/// Adds a part of leftᵀ·right to `out`, one row of it after the other.
struct AddPlainly<'a> {
    left: View<'a, f64>,
    right: View<'a, f64>,
    part: Part,
    out: &'a mut [f64],
    stride: usize,
}

impl WithSimd for AddPlainly<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { left, right, part, out, stride } = self;
        for (i, out) in out.chunks_mut(stride).take(left.cols).enumerate() {
            let wanted = part.of(0..right.cols, i);
            let factor = |l: usize| if left.by_columns { left.line(i)[l] } else { left.line(l)[i] };
            if !right.by_columns {
                let own = &mut out[wanted.clone()];
                add_combination(own, left.rows, factor, |l| &right.line(l)[wanted.clone()]);
            } else if left.by_columns {
                for j in wanted {
                    out[j] += split_dot(left.line(i), right.line(j));
                }
            } else {
                for j in wanted {
                    out[j] += (0..left.rows).map(|l| factor(l) * right.line(j)[l]).sum::<f64>();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{matrix, on_threads, plain_product};
    use super::*;

    /// Small whole numbers, whose sums are exact in any order.
    fn whole(rows: usize, cols: usize, seed: usize) -> Matrix {
        Matrix::from_fn(rows, cols, |i, j| ((i * 31 + j * 17 + i * j + seed) % 11) as f64 - 5.0)
    }

    /// Sizes of plain loops, of one panel, of several with rests, of several rounds, and of many threads.
    const SIZES: [(usize, usize, usize); 8] = [
        (1, 1, 1),
        (3, 7, 2),
        (5, 300, 4),
        (24, 96, 24),
        (25, 97, 49),
        (130, 20, 131),
        (300, 150, 70),
        (30, 3000, 200),
    ];

    #[test]
    fn products_are_those_written_out_whichever_way_the_matrices_lie() {
        for (rows, steps, columns) in SIZES {
            let (a, b) = (whole(rows, steps, 1), whole(steps, columns, 2));
            let expected = plain_product(&a, &b);
            let (at, bt) = (a.transpose(), b.transpose());
            assert_eq!(a.times(&b), expected, "{rows} × {steps} × {columns}");
            assert_eq!(at.transpose_times(&b), expected);
            assert_eq!(a.times_transpose(&bt), expected);
            assert_eq!(at.view().transpose_times(bt.view().transpose()), expected);
        }
    }

    #[test]
    fn only_the_wanted_part_is_added_to() {
        for (rows, steps, columns) in SIZES {
            let (a, b) = (whole(rows, steps, 3), whole(steps, columns, 4));
            let product = plain_product(&a, &b);
            let stride = columns + 3;
            for part in [Part::Whole, Part::Lower, Part::Upper] {
                let before = whole(rows, stride, 5);
                let mut out = before.clone();
                // The last row may end where its columns do.
                let end = rows * stride - 3;
                add_product(a.view().transpose(), b.view(), part, &mut out.as_mut_slice()[..end], stride);
                for i in 0..rows {
                    for j in 0..stride {
                        let added = j < columns
                            && match part {
                                Part::Whole => true,
                                Part::Lower => j <= i,
                                Part::Upper => j >= i,
                            };
                        let expected = before[(i, j)] + if added { product[(i, j)] } else { 0.0 };
                        assert_eq!(
                            out[(i, j)],
                            expected,
                            "{part:?} of {rows} × {steps} × {columns}: {i}, {j}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn products_with_nothing_are_nothing() {
        assert_eq!(Matrix::zeros(3, 0).times(&Matrix::zeros(0, 2)), Matrix::zeros(3, 2));
        assert_eq!(Matrix::zeros(0, 3).times(&Matrix::zeros(3, 2)), Matrix::zeros(0, 2));
        assert_eq!(Matrix::zeros(2, 3).times(&Matrix::zeros(3, 0)), Matrix::zeros(2, 0));
    }

    #[test]
    fn products_have_the_same_bits_on_any_number_of_threads() {
        let (a, b) = (matrix(301, 400, 1), matrix(400, 90, 2));
        const { assert!(301 * 400 * 90 > PARALLEL) };
        let [one, two, five] = on_threads(|| (a.times(&b), b.transpose_times(&a.transpose())));
        assert!(one == two && two == five);
    }

    fn check_gram<T: Real>() {
        for (rows, columns) in [(1, 1), (5, 7), (24, 96), (49, 200), (100, 97)] {
            let number = |i: usize| ((i * 29) % 13) as f64 - 6.0;
            let x: Vec<T> = (0..rows * columns).map(|i| T::from_f64(number(i))).collect();
            let mut out = vec![T::from_f64(1.0); rows * rows];
            add_rows_gram(&x, rows, &mut out);
            for i in 0..rows {
                for j in 0..rows {
                    let sum: f64 =
                        (0..columns).map(|c| number(i * columns + c) * number(j * columns + c)).sum();
                    let expected = if j <= i { 1.0 + sum } else { 1.0 };
                    assert_eq!(out[i * rows + j].to_f64(), expected, "{rows} × {columns}: {i}, {j}");
                }
            }
        }
    }

    #[test]
    fn the_products_of_all_rows_are_those_written_out() {
        check_gram::<f32>();
        check_gram::<f64>();
    }
}
