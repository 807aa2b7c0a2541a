//! Matrices where they lie, and panels of their columns for the kernel of the products.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::BEST;
use super::tile::{Left, width};
use crate::simd::Aligned;
use crate::simd::MAX_TILE;
use crate::simd::Real;

/// A matrix where it lies: a [`Matrix`](super::Matrix), a part of one, or either transposed.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a, T> {
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// Columns are contiguous instead of rows.
    pub(super) by_columns: bool,
    data: &'a [T],
    stride: usize,
}

impl<'a, T> View<'a, T> {
    /// Rows that begin `stride` elements after each other.
    pub(super) fn new(data: &'a [T], rows: usize, cols: usize, stride: usize) -> Self {
        Self { rows, cols, by_columns: false, data, stride }
    }

    pub(super) fn transpose(self) -> Self {
        Self { rows: self.cols, cols: self.rows, by_columns: !self.by_columns, ..self }
    }

    /// Contiguous elements: column `i` if columns are contiguous, otherwise row `i`.
    #[inline(always)]
    pub(super) fn line(&self, i: usize) -> &'a [T] {
        let len = if self.by_columns { self.rows } else { self.cols };
        &self.data[i * self.stride..][..len]
    }

    /// Contiguous columns from one on, with their rows from one on.
    pub(super) fn lines(&self, column: usize, row: usize) -> Left<'a, T> {
        Left::Lines { data: &self.data[column * self.stride + row..], stride: self.stride }
    }
}

/// Some columns of a matrix in panels, and some of its rows, which are the steps of a product.
pub(super) struct Panels<T> {
    panels: Aligned<T>,
    /// The most steps there is room for.
    room: usize,
    steps: Range<usize>,
    columns: Range<usize>,
}

impl<T: Real> Panels<T> {
    /// Empty ones with room for so many.
    pub(super) fn new(steps: usize, columns: usize) -> Self {
        let panels = Aligned::new(T::from_f64(0.0), columns.div_ceil(width::<T>()) * steps * width::<T>());
        Self { panels, room: steps, steps: 0..0, columns: 0..0 }
    }

    pub(super) fn fill(&mut self, x: View<'_, T>, steps: Range<usize>, columns: Range<usize>) {
        (self.steps, self.columns) = (steps, columns);
        BEST.run::<T, _>(Fill(self, x));
    }

    /// The columns of each panel.
    pub(super) fn columns(&self) -> impl Iterator<Item = Range<usize>> {
        pieces(self.columns.clone(), width::<T>())
    }

    /// Some steps of a panel.
    pub(super) fn get(&self, number: usize, steps: Range<usize>) -> &[T] {
        let at = |step: usize| (number * self.room + step - self.steps.start) * width::<T>();
        &self.panels[at(steps.start)..at(steps.end)]
    }
}

/// A range in pieces of a length; the last may be shorter.
pub(super) fn pieces(range: Range<usize>, length: usize) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(length).map(move |first| first..(first + length).min(range.end))
}

struct Fill<'a, T>(&'a mut Panels<T>, View<'a, T>);

impl<T: Real> WithSimd for Fill<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self(Panels { panels, room, steps, columns }, x) = self;
        let (panel_len, width) = (*room * width::<T>(), width::<T>());
        if x.by_columns {
            for (panel, columns) in panels.chunks_exact_mut(panel_len).zip(pieces(columns.clone(), width)) {
                fill_across::<T, S>(x, steps.clone(), columns, panel);
            }
            return;
        }
        // Row after row, as they lie.
        for (s, step) in steps.clone().enumerate() {
            let whole = x.line(step)[columns.clone()].chunks_exact(width);
            let rest = whole.remainder();
            let mut to = panels.chunks_exact_mut(panel_len).map(|panel| &mut panel[s * width..][..width]);
            for (from, to) in whole.zip(&mut to) {
                // Vectors: a call would take longer.
                let (from, to) = (T::vectors::<S>(from), T::vectors_mut::<S>(to));
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }
            if let Some(to) = to.next() {
                to[..rest.len()].copy_from_slice(rest);
            }
        }
    }
}

/// Fills a panel with contiguous columns.
#[inline(always)]
fn fill_across<T: Real, S: Simd>(
    x: View<'_, T>,
    steps: Range<usize>,
    columns: Range<usize>,
    panel: &mut [T],
) {
    let (width, tile) = (width::<T>(), T::TILE);
    let (whole_steps, whole_columns) = (steps.len() / tile * tile, columns.len() / tile * tile);
    let mut values = [[T::from_f64(0.0); MAX_TILE]; MAX_TILE];
    for i in (0..whole_columns).step_by(tile) {
        for s in (0..whole_steps).step_by(tile) {
            for r in 0..tile {
                let from = &x.line(columns.start + i + r)[steps.start + s..][..tile];
                values[r][..tile].copy_from_slice(from);
            }
            let squares = &mut [T::from_f64(0.0); MAX_TILE];
            let to = &mut panel[s * width + i..];
            T::transpose::<S, _>((&values, 0), to, width, &[0, 1, 2, 3, 4, 5, 6, 7], squares);
        }
    }
    for i in 0..columns.len() {
        let begin = if i < whole_columns { whole_steps } else { 0 };
        let from = &x.line(columns.start + i)[steps.clone()];
        for s in begin..steps.len() {
            panel[s * width + i] = from[s];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every element of a panel is that of the matrix, whichever way it lies and wherever the panels begin.
    fn check<T: Real + std::fmt::Debug + PartialEq>() {
        let (rows, cols, stride) = (37, 61, 64);
        let data: Vec<T> = (0..rows * stride).map(|i| T::from_f64(i as f64)).collect();
        let x = View::new(&data, rows, cols, stride);
        for (view, steps, columns) in
            [(x, 5..30, 2..60), (x, 0..37, 0..61), (x.transpose(), 3..58, 1..37), (x.transpose(), 0..1, 0..1)]
        {
            let mut panels = Panels::new(steps.len() + 3, columns.len());
            panels.fill(view, steps.clone(), columns.clone());
            let mut seen = 0;
            for (number, own) in panels.columns().enumerate() {
                let panel = panels.get(number, steps.clone());
                for (s, step) in steps.clone().enumerate() {
                    for (c, column) in own.clone().enumerate() {
                        let (i, j) = if view.by_columns { (column, step) } else { (step, column) };
                        assert_eq!(panel[s * width::<T>() + c], data[i * stride + j], "{step}, {column}");
                        seen += 1;
                    }
                }
            }
            assert_eq!(seen, steps.len() * columns.len());
        }
    }

    #[test]
    fn panels_hold_the_columns_of_a_matrix_that_lies_either_way() {
        check::<f32>();
        check::<f64>();
    }
}
