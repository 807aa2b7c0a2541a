//! A model made ready for a stack.

use std::ops::Range;

use super::super::load::{Block, Fetch};
use super::super::plan::{Plan, PlannedComponent, Step};
use super::BLOCK_BYTES;
use super::kernel::GROUP;
use crate::simd::Aligned;
use crate::simd::Real;

/// Fewer lanes, or emptier ones, are not worth it.
const MIN_LANES: usize = 24;
const MIN_FILLED: f64 = 0.7;

/// A [`Plan`] with its components side by side: lane k · cols + j belongs to column j of the first step's loadings of
/// component k. What is left of a vector is zero.
pub(crate) struct StackedModel<T> {
    pub(super) first: Step,
    /// Lanes, whole vectors of 64 bytes.
    pub(crate) width: usize,
    /// U of the first step, `[group of lanes][i][lane of the group]`.
    pub(super) loading: Aligned<T>,
    /// What the contraction of a sample begins with, `[row][lane]`.
    pub(super) start: Aligned<T>,
    pub(super) later: Vec<LaterStep<T>>,
    /// M − G, `[component][element]`, a component every `stride`.
    pub(super) means: Aligned<T>,
    pub(crate) stride: usize,
    /// 1/(s + σ²), `[row of the core][lane]`.
    pub(super) precision: Vec<f64>,
    /// 1/(s + σ²) in the working precision.
    pub(crate) rounded_precision: Vec<T>,
    /// (s + 2σ²)/(s + σ²)²: what Y² takes off the squared error, `[row of the core][lane]`.
    pub(super) explained: Vec<f64>,
    /// Π λ of the modes that are not updated, `[row of the core without that mode][lane]`.
    pub(super) other_variances: Vec<T>,
    /// Elements of a core per index of the first mode: its modes after the first.
    pub(super) inner: usize,
    /// All elements of a sample.
    whole: Vec<Range<usize>>,
}

pub(super) struct LaterStep<T> {
    /// Its sides count rows, because the first mode is in the lanes.
    pub(super) step: Step,
    /// `[unit of lanes][i][j][lane of the unit]`.
    pub(super) loading: Aligned<T>,
}

impl<T: Real> StackedModel<T> {
    pub(crate) fn new(plan: &Plan<T>) -> Self {
        let first = plan.steps[0];
        let cols = first.cols;
        let width = (plan.components.len() * cols).next_multiple_of(T::LANES);
        let stride = plan.sample_len.next_multiple_of(T::LANES);
        let zero = T::from_f64(0.0);
        let later: Vec<LaterStep<T>> = plan.steps[1..]
            .iter()
            .map(|&step| {
                let (mut before, mut after) = (step.before, step.after);
                *(if first.mode < step.mode { &mut before } else { &mut after }) /= cols;
                let loading = spread(plan, step.n * step.cols, zero, |c, row, _| c.loadings[step.mode][row]);
                LaterStep { step: Step { before, after, ..step }, loading: in_groups(&loading, width, 1) }
            })
            .collect();
        let inner: usize = plan.steps.iter().filter(|s| s.mode > first.mode).map(|s| s.cols).product();
        let rows = plan.core_len / cols;
        let precision =
            spread(plan, rows, 0.0, |c, row, j| c.density.precision[place(row, j, cols, inner)]).to_vec();
        let explained =
            spread(plan, rows, 0.0, |c, row, j| c.density.explained[place(row, j, cols, inner)]).to_vec();
        let mut means = Aligned::new(T::from_f64(0.0), plan.components.len() * stride);
        for (to, component) in means.chunks_exact_mut(stride).zip(&plan.components) {
            to.iter_mut().zip(&component.offset).for_each(|(to, &m)| *to = T::from_f64(m));
        }
        let last = plan.steps[plan.steps.len() - 1];
        let other_variances = if plan.steps.len() == 1 {
            vec![]
        } else {
            // The updated mode left out, the others stand in their order.
            let others = plan.steps.iter().filter(|s| s.mode != last.mode && s.mode > first.mode);
            let inner = others.map(|s| s.cols).product();
            let variance = |c: &PlannedComponent<T>, row: usize, j: usize| {
                T::from_f64(c.other_variances[place(row, j, cols, inner)])
            };
            spread(plan, rows / last.cols, zero, variance).to_vec()
        };
        let (before, after) = (first.before, first.after);
        let loading = spread(plan, first.n, zero, |c, i, j| c.loadings[first.mode][i * cols + j]);
        Self {
            first,
            width,
            loading: in_groups(&loading, width, GROUP),
            start: spread(plan, before * after, zero, |c, row, j| c.start[place(row, j, cols, after)]),
            later,
            means,
            stride,
            rounded_precision: precision.iter().map(|&x| T::from_f64(x)).collect(),
            precision,
            explained,
            other_variances,
            inner,
            whole: std::iter::once(0..plan.sample_len).collect(),
        }
    }

    /// Whether components side by side can be expected to be faster than samples side by side.
    pub(crate) fn is_faster(plan: &Plan<T>) -> bool {
        let lanes = plan.components.len() * plan.steps[0].cols;
        let filled = lanes as f64 / lanes.next_multiple_of(T::LANES) as f64;
        let fits = plan.sample_len * size_of::<T>() <= BLOCK_BYTES;
        fits && lanes >= MIN_LANES && filled >= MIN_FILLED
    }

    /// Brings the samples of the next block into cache.
    pub(crate) fn fetch<'a>(&'a self, block: &Block<'a>) -> Fetch<'a> {
        block.fetch_next(&self.whole)
    }

    /// Rows that come out of each step.
    pub(super) fn stages(&self) -> Vec<usize> {
        let first = self.first.before * self.first.after;
        std::iter::once(first).chain(self.later.iter().map(|l| l.step.out_len())).collect()
    }

    /// M − G of a component.
    pub(crate) fn mean(&self, component: usize) -> &[T] {
        &self.means[component * self.stride..(component + 1) * self.stride]
    }

    pub(crate) fn lanes_of(&self, component: usize) -> Range<usize> {
        component * self.first.cols..(component + 1) * self.first.cols
    }
}

/// Where column j of the first mode is in row `row` of a tensor whose rows leave that mode out: `inner` elements follow it.
pub(super) fn place(row: usize, j: usize, cols: usize, inner: usize) -> usize {
    (row / inner * cols + j) * inner + row % inner
}

/// `rows` of lanes, from what belongs to a component, a row and a column of the first step.
fn spread<T: Real, N: Copy>(
    plan: &Plan<T>,
    rows: usize,
    zero: N,
    value: impl Fn(&PlannedComponent<T>, usize, usize) -> N,
) -> Aligned<N> {
    let cols = plan.steps[0].cols;
    let width = (plan.components.len() * cols).next_multiple_of(T::LANES);
    let mut out = Aligned::new(zero, rows * width);
    for (k, component) in plan.components.iter().enumerate() {
        for row in 0..rows {
            for j in 0..cols {
                out[row * width + k * cols + j] = value(component, row, j);
            }
        }
    }
    out
}

/// Rows of `width` lanes, cut into groups of so many units of lanes: `[group][row][lane of the group]`.
pub(super) fn in_groups<T: Real>(rows: &[T], width: usize, units: usize) -> Aligned<T> {
    let mut out = Aligned::new(T::from_f64(0.0), rows.len());
    let mut at = 0;
    for first in (0..width).step_by(units * T::LANES) {
        let lanes = first..(first + units * T::LANES).min(width);
        for row in rows.chunks_exact(width) {
            out[at..at + lanes.len()].copy_from_slice(&row[lanes.clone()]);
            at += lanes.len();
        }
    }
    out
}
