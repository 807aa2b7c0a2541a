//! The small products a pass that updates one mode of matrices or tensors sums up: A, H, S and b.

use pulp::Simd;

use super::super::contract::{multiply, total};
use super::super::plan::Plan;
use super::block::SampleBlock;
use crate::linalg::Matrix;
use crate::simd::Aligned;
use crate::simd::Real;

/// A = Σ a Z Qᵀ, H = Σ a Q W Qᵀ, S = Σ a Q Qᵀ and b = Σ a Q of every component, of some samples, in the working precision. A
/// sample has a lane here as everywhere in this folder: a sum is kept as one number per lane until it is asked for.
pub(crate) struct SampleProducts<T> {
    /// p_d, r_d.
    sides: (usize, usize),
    /// `[component][p_d][r_d][lane of the machine]`.
    cross: Aligned<T>,
    /// `[component][r_d][r_d][lane of the machine]`, H and S.
    weighted: Aligned<T>,
    gram: Aligned<T>,
    /// `[component][core][lane of the machine]`.
    cores: Aligned<T>,
    /// Q, a Q and a Q W of a block, `[core][lane]`.
    q: Aligned<T>,
    weighted_q: Aligned<T>,
    weighted_qw: Aligned<T>,
}

impl<T: Real> SampleProducts<T> {
    pub(crate) fn new(plan: &Plan<T>, lanes: usize) -> Self {
        let last = plan.steps[plan.steps.len() - 1];
        let (p, r, k) = (last.n, last.cols, plan.components.len());
        let zeros = |n: usize| Aligned::new(T::from_f64(0.0), n);
        Self {
            sides: (p, r),
            cross: zeros(k * p * r * T::LANES),
            weighted: zeros(k * r * r * T::LANES),
            gram: zeros(k * r * r * T::LANES),
            cores: zeros(k * plan.core_len * T::LANES),
            q: zeros(plan.core_len * lanes),
            weighted_q: zeros(plan.core_len * lanes),
            weighted_qw: zeros(plan.core_len * lanes),
        }
    }

    /// Adds a block to component `k`; `weights` has one a per lane.
    #[inline(always)]
    pub(crate) fn add<S: Simd>(
        &mut self,
        simd: S,
        plan: &Plan<T>,
        block: &SampleBlock<T>,
        k: usize,
        weights: &[T],
    ) {
        let component = &plan.components[k];
        let last = plan.steps[plan.steps.len() - 1];
        let (before, after, lanes) = (last.before, last.after, block.densities.samples);
        let (p, r) = self.sides;
        let y = block.y(plan, k);
        for (j, y) in y.chunks_exact(lanes).enumerate() {
            // j counts [before][r_d][after]; the other modes' variances are counted [before][after].
            let w = T::from_f64(component.other_variances[j / (r * after) * after + j % after]);
            let precision = T::from_f64(component.density.precision[j]);
            let at = j * lanes..(j + 1) * lanes;
            let (q, weighted_q) = (&mut self.q[at.clone()], &mut self.weighted_q[at.clone()]);
            let weighted_qw = &mut self.weighted_qw[at];
            for lane in 0..lanes {
                q[lane] = y[lane] * precision;
                weighted_q[lane] = q[lane] * weights[lane];
                weighted_qw[lane] = weighted_q[lane] * w;
            }
        }
        let cores = &mut self.cores[k * plan.core_len * T::LANES..(k + 1) * plan.core_len * T::LANES];
        multiply(simd, &self.q, weights, (1, plan.core_len, 1, lanes), cores);
        let columns = after * lanes;
        let square = k * r * r * T::LANES..(k + 1) * r * r * T::LANES;
        let gram = &mut self.gram[square.clone()];
        multiply(simd, &self.weighted_q, &self.q, (before, r, r, columns), gram);
        let weighted = &mut self.weighted[square];
        multiply(simd, &self.weighted_qw, &self.q, (before, r, r, columns), weighted);
        let z = block.z(plan, k);
        let cross = &mut self.cross[k * p * r * T::LANES..(k + 1) * p * r * T::LANES];
        multiply(simd, z, &self.weighted_q, (before, p, r, columns), cross);
    }

    /// Moves what was added for component `k` to A, H, S and b in double precision.
    #[inline(always)]
    pub(crate) fn flush<S: Simd>(
        &mut self,
        simd: S,
        k: usize,
        cross: &mut Matrix,
        weighted: &mut Matrix,
        gram: &mut Matrix,
        core: &mut [f64],
    ) {
        let (p, r) = self.sides;
        total(simd, &mut self.cores[k * core.len() * T::LANES..(k + 1) * core.len() * T::LANES], core);
        let square = k * r * r * T::LANES..(k + 1) * r * r * T::LANES;
        total(simd, &mut self.gram[square.clone()], gram.as_mut_slice());
        total(simd, &mut self.weighted[square], weighted.as_mut_slice());
        let from = &mut self.cross[k * p * r * T::LANES..(k + 1) * p * r * T::LANES];
        total(simd, from, cross.as_mut_slice());
    }
}
