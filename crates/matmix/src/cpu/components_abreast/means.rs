//! Inner products of samples with the means of all components, one component per lane.
//!
//! Beside [`Dots`](super::kernel::Dots) nothing is added up across lanes, and what comes out lies component after component; but it
//! takes many components to fill the lanes, and sums are as long as a sample.

use pulp::Simd;

use super::super::plan::{Plan, Step};
use super::kernel::{First, GROUP};
use super::stacked::in_groups;
use crate::simd::Aligned;
use crate::simd::Real;

/// The means of a model as the loadings of a contraction: one column per component.
pub(crate) struct MeansAbreast<T> {
    step: Step,
    /// Components, and lanes up to whole vectors of 64 bytes.
    pub(crate) width: usize,
    /// M − G, `[group of lanes][element][lane of the group]`.
    loading: Aligned<T>,
    /// What the sums begin with.
    zeros: Aligned<T>,
}

impl<T: Real> MeansAbreast<T> {
    pub(crate) fn new(plan: &Plan<T>) -> Self {
        let n = plan.sample_len;
        let width = plan.components.len().next_multiple_of(T::LANES);
        let zeros = |n: usize| Aligned::new(T::from_f64(0.0), n);
        let mut means = zeros(n * width);
        for (k, component) in plan.components.iter().enumerate() {
            for (i, &m) in component.offset.iter().enumerate() {
                means[i * width + k] = T::from_f64(m);
            }
        }
        let step = Step { mode: 0, before: 1, n, after: 1, cols: 1 };
        Self { step, width, loading: in_groups(&means, width, GROUP), zeros: zeros(width) }
    }

    /// ⟨X − G, M − G⟩ of `count` samples that come every `stride`, `[sample][lane]`.
    #[inline(always)]
    pub(crate) fn multiply<S: Simd>(&self, simd: S, x: &[T], stride: usize, count: usize, out: &mut [T]) {
        simd.vectorize(First {
            x,
            samples: 0..count,
            stride,
            step: self.step,
            loading: &self.loading,
            start: &self.zeros,
            width: self.width,
            units: 0..self.width / T::LANES,
            out,
            fetch: None,
            lines: 0,
        });
    }
}
