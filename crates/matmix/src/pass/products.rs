//! The small products an EM pass sums up for the mode it updates: A, H and S.

use pulp::Simd;

use super::aligned::Aligned;
use super::block::{Block, Picked};
use super::contract::{multiply, total};
use super::plan::Plan;
use super::simd::Real;
use super::statistics::ComponentStatistics;
use crate::data::Chunk;

/// A = Σ γ Z Qᵀ, H = Σ γ Q W Qᵀ and S = Σ γ Q Qᵀ of every component, of one chunk of samples, in the working
/// precision. Samples are lanes here as everywhere: a sum is kept as one number per lane until the chunk ends.
pub(super) struct Products<T> {
    /// p_d, r_d.
    sides: (usize, usize),
    /// `[component][p_d][r_d][lane of the machine]`; for vectors `[component][p_d][width]`.
    cross: Aligned<T>,
    /// `[component][r_d][r_d][lane of the machine]`, H and S.
    weighted: Aligned<T>,
    gram: Aligned<T>,
    /// Q, γ Q and γ Q W of a block, `[core][lane]`.
    q: Aligned<T>,
    gamma_q: Aligned<T>,
    gamma_qw: Aligned<T>,
    /// γ Q of one sample, padded with zeros to whole vectors: only vectors need it.
    row: Aligned<T>,
}

impl<T: Real> Products<T> {
    pub(super) fn new(plan: &Plan<T>, lanes: usize) -> Self {
        let last = plan.steps[plan.steps.len() - 1];
        let (p, r, k) = (last.n, last.cols, plan.components.len());
        let width = r.next_multiple_of(T::LANES);
        let zeros = |n: usize| Aligned::new(T::from_f64(0.0), n);
        Self {
            sides: (p, r),
            cross: zeros(k * p * if plan.steps.len() == 1 { width } else { r * T::LANES }),
            weighted: zeros(k * r * r * T::LANES),
            gram: zeros(k * r * r * T::LANES),
            q: zeros(plan.core_len * lanes),
            gamma_q: zeros(plan.core_len * lanes),
            gamma_qw: zeros(plan.core_len * lanes),
            row: zeros(width),
        }
    }

    /// Adds a block to component `k`; `gamma` has one number per lane.
    #[inline(always)]
    pub(super) fn add<S: Simd>(
        &mut self,
        simd: S,
        plan: &Plan<T>,
        block: &Block<T>,
        k: usize,
        picked: Picked<'_>,
        gamma: &[T],
    ) {
        let component = &plan.components[k];
        let last = plan.steps[plan.steps.len() - 1];
        let (before, after, lanes) = (last.before, last.after, block.densities.lanes);
        let (p, r) = self.sides;
        let y = block.y(plan, k);
        for (j, y) in y.chunks_exact(lanes).enumerate() {
            // j counts [before][r_d][after]; the other modes' variances are counted [before][after].
            let w = T::from_f64(component.other_variances[j / (r * after) * after + j % after]);
            let precision = T::from_f64(component.density.precision[j]);
            let at = j * lanes..(j + 1) * lanes;
            let (q, gamma_q) = (&mut self.q[at.clone()], &mut self.gamma_q[at.clone()]);
            let gamma_qw = &mut self.gamma_qw[at];
            for lane in 0..lanes {
                q[lane] = y[lane] * precision;
                gamma_q[lane] = q[lane] * gamma[lane];
                gamma_qw[lane] = gamma_q[lane] * w;
            }
        }
        let columns = after * lanes;
        let square = k * r * r * T::LANES..(k + 1) * r * r * T::LANES;
        let gram = T::vectors_mut::<S>(&mut self.gram[square.clone()]);
        multiply(simd, &self.gamma_q, &self.q, (before, r, r, columns), gram);
        let weighted = T::vectors_mut::<S>(&mut self.weighted[square]);
        multiply(simd, &self.gamma_qw, &self.q, (before, r, r, columns), weighted);
        if plan.steps.len() == 1 {
            for lane in 0..picked.count {
                if gamma[lane] != T::from_f64(0.0) {
                    self.add_vector(simd, plan, k, picked, lane, lanes);
                }
            }
            return;
        }
        let z = block.z(plan, k);
        let cross = &mut self.cross[k * p * r * T::LANES..(k + 1) * p * r * T::LANES];
        multiply(simd, z, &self.gamma_q, (before, p, r, columns), T::vectors_mut::<S>(cross));
    }

    /// Order 1: Z is the sample itself, which is read once more where it lies.
    #[inline(always)]
    fn add_vector<S: Simd>(
        &mut self,
        simd: S,
        plan: &Plan<T>,
        k: usize,
        picked: Picked<'_>,
        lane: usize,
        lanes: usize,
    ) {
        let (p, r) = self.sides;
        let width = self.row.len();
        for j in 0..r {
            self.row[j] = self.gamma_q[j * lanes + lane];
        }
        let q = T::vectors::<S>(&self.row);
        let vectors = r.div_ceil(size_of::<T::Vector<S>>() / size_of::<T>());
        let stride = q.len();
        let cross = T::vectors_mut::<S>(&mut self.cross[k * p * width..(k + 1) * p * width]);
        let (scale, reference) = (T::from_f64(picked.scale), &plan.reference[..p]);
        let mean = &plan.components[k].mean[..p];
        let first = (picked.first + lane) * p;
        macro_rules! add {
            ($x:expr) => {
                for (i, x) in $x[first..first + p].iter().enumerate() {
                    let z = T::from_f64(f64::from(*x)) * scale - reference[i] - mean[i];
                    let z = T::splat(simd, z);
                    for v in 0..vectors {
                        let sum = &mut cross[i * stride + v];
                        *sum = T::mul_add(simd, z, q[v], *sum);
                    }
                }
            };
        }
        match picked.chunk {
            Chunk::U8(x) => add!(x),
            Chunk::F32(x) => add!(x),
            Chunk::F64(x) => add!(x),
        }
    }

    /// Moves what was added for component `k` to its sums in double precision.
    #[inline(always)]
    pub(super) fn flush<S: Simd>(&mut self, simd: S, plan: &Plan<T>, k: usize, to: &mut ComponentStatistics) {
        let (p, r) = self.sides;
        let square = k * r * r * T::LANES..(k + 1) * r * r * T::LANES;
        let gram = T::vectors_mut::<S>(&mut self.gram[square.clone()]);
        total::<T, S>(simd, gram, to.gram.as_mut_slice());
        let weighted = T::vectors_mut::<S>(&mut self.weighted[square]);
        total::<T, S>(simd, weighted, to.weighted_gram.as_mut_slice());
        if plan.steps.len() > 1 {
            let cross = &mut self.cross[k * p * r * T::LANES..(k + 1) * p * r * T::LANES];
            total::<T, S>(simd, T::vectors_mut::<S>(cross), to.cross.as_mut_slice());
            return;
        }
        let width = self.row.len();
        let cross = &mut self.cross[k * p * width..(k + 1) * p * width];
        for (from, to) in cross.chunks_exact_mut(width).zip(to.cross.as_mut_slice().chunks_exact_mut(r)) {
            for j in 0..r {
                to[j] += from[j].to_f64();
                from[j] = T::from_f64(0.0);
            }
        }
    }
}
