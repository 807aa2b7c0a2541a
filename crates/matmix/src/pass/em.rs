//! The EM pass: E-step and sums in one walk over the samples.

use pulp::{Simd, WithSimd};

use super::block::Block;
use super::chunks;
use super::plan::{Plan, Precision};
use super::simd::{Path, Real};
use super::statistics::Statistics;
use crate::data::{Chunk, Samples};
use crate::error::{Error, Result};
use crate::model::Mixture;

/// Responsibilities below this add nothing that double precision could hold.
const NEGLIGIBLE: f64 = 1e-12;

/// e^CUTOFF is far below what a double can add to 1, and exponentials are not free.
const CUTOFF: f64 = -60.0;

/// One pass of `model` over all samples, with the sums that update `mode`.
pub(crate) fn em_pass(
    model: &Mixture,
    samples: &Samples<'_>,
    mode: usize,
    precision: Precision,
    path: Path,
) -> Result<Statistics> {
    if samples.shape() != model.shape() {
        return Err(Error::ShapeMismatch {
            expected: model.shape().to_vec(),
            found: samples.shape().to_vec(),
        });
    }
    if precision.is_double(samples.element(), model) {
        run::<f64>(model, samples, mode, path)
    } else {
        run::<f32>(model, samples, mode, path)
    }
}

fn run<T: Real>(model: &Mixture, samples: &Samples<'_>, mode: usize, path: Path) -> Result<Statistics> {
    let plan = Plan::<T>::new(model, mode);
    chunks::sum(
        samples,
        Statistics::bytes(model),
        || Scratch::new(&plan),
        |scratch, range, chunk| {
            let mut sums = Statistics::zero(model, mode);
            path.run(Accumulate {
                plan: &plan,
                samples,
                chunk,
                first: range.start,
                scratch,
                sums: &mut sums,
            });
            if sums.is_finite() {
                return Ok(sums);
            }
            samples.check_finite(range.clone())?;
            in_double(model, samples, mode, path, chunk, range.start)
        },
        Statistics::merge,
    )
}

/// A chunk whose squares left the range of single precision, once more in double; the error names the sample that is
/// too large even for that.
fn in_double(
    model: &Mixture,
    samples: &Samples<'_>,
    mode: usize,
    path: Path,
    chunk: Chunk<'_>,
    first: usize,
) -> Result<Statistics> {
    let plan = Plan::<f64>::new(model, mode);
    let mut scratch = Scratch::new(&plan);
    let mut run = |chunk: Chunk<'_>, first: usize| {
        let mut sums = Statistics::zero(model, mode);
        path.run(Accumulate { plan: &plan, samples, chunk, first, scratch: &mut scratch, sums: &mut sums });
        sums
    };
    let sums = run(chunk, first);
    if sums.is_finite() {
        return Ok(sums);
    }
    let size = samples.sample_len();
    let alone = |n: &usize| !run(chunk.slice(n * size..(n + 1) * size), first + n).is_finite();
    let sample = first + (0..chunk.len() / size).find(alone).unwrap_or(0);
    Err(Error::Overflow { sample })
}

/// What a thread reuses from chunk to chunk.
struct Scratch<T> {
    block: Block<T>,
    /// Σ γ (X − G) per component: one chunk in the working precision, the sum of chunks in double.
    sums: Vec<T>,
    touched: Vec<bool>,
    /// Aᵀ per component, r_d × p_d: of the two orders the one whose inner loop is long.
    crosses: Vec<f64>,
    /// Q with the updated mode innermost, `[others][r_d]`.
    q: Vec<f64>,
    y: Vec<f64>,
    /// Z with the updated mode innermost, `[others][p_d]`.
    z: Vec<f64>,
    gamma: Vec<f64>,
}

impl<T: Real> Scratch<T> {
    fn new(plan: &Plan<T>) -> Self {
        let last = plan.steps[plan.steps.len() - 1];
        let k = plan.components.len();
        Self {
            block: Block::new(plan),
            sums: vec![T::from_f64(0.0); k * plan.sample_len],
            touched: vec![false; k],
            crosses: vec![0.0; k * last.cols * last.n],
            q: vec![0.0; plan.core_len],
            y: vec![0.0; plan.core_len],
            z: vec![0.0; last.before * last.n * last.after],
            gamma: vec![0.0; k],
        }
    }
}

struct Accumulate<'a, T> {
    plan: &'a Plan<T>,
    samples: &'a Samples<'a>,
    chunk: Chunk<'a>,
    first: usize,
    scratch: &'a mut Scratch<T>,
    sums: &'a mut Statistics,
}

impl<T: Real> WithSimd for Accumulate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { plan, samples, chunk, first, scratch, sums } = self;
        let size = plan.sample_len;
        let count = chunk.len() / size;
        let lanes = scratch.block.packed.lanes;
        scratch.touched.fill(false);
        for start in (0..count).step_by(lanes) {
            let end = (start + lanes).min(count);
            let part = chunk.slice(start * size..end * size);
            let next = chunk.slice(end * size..(end + lanes).min(count) * size);
            scratch.block.evaluate(simd, plan, part, next, samples.scale());
            for lane in 0..end - start {
                let sample = first + start + lane;
                let weight = samples.weight(sample);
                let raw = part.slice(lane * size..(lane + 1) * size);
                scratch.add_sample(plan, lane, sample, weight, raw, T::from_f64(samples.scale()), sums);
            }
        }
        scratch.flush(plan, sums);
    }
}

impl<T: Real> Scratch<T> {
    #[inline(always)]
    fn add_sample(
        &mut self,
        plan: &Plan<T>,
        lane: usize,
        sample: usize,
        weight: f64,
        raw: Chunk<'_>,
        scale: T,
        sums: &mut Statistics,
    ) {
        let lanes = self.block.packed.lanes;
        let (best, log_likelihood) = responsibilities(&self.block, plan, lane, CUTOFF, &mut self.gamma);
        sums.n_samples += 1;
        if weight == 0.0 {
            return;
        }
        sums.weight += weight;
        sums.log_likelihood += weight * log_likelihood;
        sums.squared_error += weight * self.block.squared_error[best * lanes + lane];
        sums.note_likelihood(log_likelihood, sample);
        sums.components[best].assigned += 1;
        for k in 0..plan.components.len() {
            if self.gamma[k] > NEGLIGIBLE {
                let gamma = self.gamma[k] * weight;
                self.add_to_component(plan, k, lane, gamma, sums);
                self.add_to_mean(plan, k, gamma, raw, scale);
            }
        }
    }

    /// N_k, s_x, A, H and S.
    #[inline(always)]
    fn add_to_component(&mut self, plan: &Plan<T>, k: usize, lane: usize, gamma: f64, sums: &mut Statistics) {
        let lanes = self.block.packed.lanes;
        let component = &plan.components[k];
        let to = &mut sums.components[k];
        to.weight += gamma;
        to.squared_distance += gamma * self.block.squared_distance[k * lanes + lane];

        let last = plan.steps[plan.steps.len() - 1];
        let (before, p, after, r) = (last.before, last.n, last.after, last.cols);
        self.block.y(plan, k, lane, &mut self.y);
        for o in 0..before {
            for j in 0..r {
                for m in 0..after {
                    let at = (o * r + j) * after + m;
                    self.q[(o * after + m) * r + j] = self.y[at] * component.density.precision[at];
                }
            }
        }
        // Z: what went into the last step, less the projection of the mean.
        let z_len = before * p * after;
        let z = match plan.steps.len() {
            1 => &self.block.packed.x[..],
            t => &self.block.stages[t - 2][k * z_len * lanes..(k + 1) * z_len * lanes],
        };
        for o in 0..before {
            for i in 0..p {
                for m in 0..after {
                    let at = (o * p + i) * after + m;
                    self.z[(o * after + m) * p + i] = z[at * lanes + lane].to_f64() - component.z0[at];
                }
            }
        }
        let cross = &mut self.crosses[k * r * p..(k + 1) * r * p];
        let (weighted, gram) = (to.weighted_gram.as_mut_slice(), to.gram.as_mut_slice());
        for m in 0..before * after {
            let q = &self.q[m * r..(m + 1) * r];
            let z = &self.z[m * p..(m + 1) * p];
            for j in 0..r {
                let (row, factor) = (&mut cross[j * p..(j + 1) * p], gamma * q[j]);
                for i in 0..p {
                    row[i] += factor * z[i];
                }
            }
            let w = component.other_variances[m];
            for (j, &qj) in q.iter().enumerate() {
                let (h, s) = (&mut weighted[j * r..(j + 1) * r], &mut gram[j * r..(j + 1) * r]);
                for (l, &ql) in q.iter().enumerate() {
                    h[l] += gamma * w * qj * ql;
                    s[l] += gamma * qj * ql;
                }
            }
        }
    }

    /// Σ γ (X − G).
    #[inline(always)]
    fn add_to_mean(&mut self, plan: &Plan<T>, k: usize, gamma: f64, raw: Chunk<'_>, scale: T) {
        self.touched[k] = true;
        let size = plan.sample_len;
        let to = &mut self.sums[k * size..(k + 1) * size];
        let reference = &plan.reference[..size];
        let gamma = T::from_f64(gamma);
        // Plain loops: an iterator's `for_each` may be compiled apart, without the wide instructions.
        macro_rules! add {
            ($x:expr) => {
                for i in 0..size {
                    to[i] = to[i] + gamma * (T::from_f64(f64::from($x[i])) * scale - reference[i]);
                }
            };
        }
        match raw {
            Chunk::U8(x) => add!(x[..size]),
            Chunk::F32(x) => add!(x[..size]),
            Chunk::F64(x) => add!(x[..size]),
        }
    }

    /// Brings Σ γ (X − G) of this chunk to Σ γ (X − M) in double precision, and Aᵀ to A.
    #[inline(always)]
    fn flush(&mut self, plan: &Plan<T>, sums: &mut Statistics) {
        let size = plan.sample_len;
        for (k, component) in plan.components.iter().enumerate() {
            if self.touched[k] {
                let to = &mut sums.components[k];
                let (weight, from) = (to.weight, &mut self.sums[k * size..(k + 1) * size]);
                for ((to, from), offset) in to.mean_shift.iter_mut().zip(from).zip(&component.offset) {
                    *to = from.to_f64() - weight * offset;
                    *from = T::from_f64(0.0);
                }
                let (p, r) = (to.cross.rows(), to.cross.cols());
                let from = &mut self.crosses[k * r * p..(k + 1) * r * p];
                for j in 0..r {
                    for i in 0..p {
                        to.cross[(i, j)] = from[j * p + i];
                    }
                }
                from.fill(0.0);
            }
        }
    }
}

/// Fills the responsibilities of one lane, those below e^`cutoff` with zero; returns the most probable component and ln p(X).
#[inline(always)]
pub(crate) fn responsibilities<T: Real>(
    block: &Block<T>,
    plan: &Plan<T>,
    lane: usize,
    cutoff: f64,
    gamma: &mut [f64],
) -> (usize, f64) {
    let lanes = block.packed.lanes;
    let (mut best, mut largest) = (0, f64::NEG_INFINITY);
    for (k, component) in plan.components.iter().enumerate() {
        let joint = component.log_weight + block.log_density[k * lanes + lane];
        gamma[k] = joint;
        if joint > largest {
            (best, largest) = (k, joint);
        }
    }
    let mut sum = 0.0;
    for g in gamma.iter_mut() {
        let difference = *g - largest;
        // NaN falls through and is caught by the caller.
        *g = if difference < cutoff { 0.0 } else { difference.exp() };
        sum += *g;
    }
    for g in gamma.iter_mut() {
        *g /= sum;
    }
    (best, largest + sum.ln())
}
