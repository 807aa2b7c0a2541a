//! The scatter of one mode, Σ_n w_n Z_n Z_nᵀ: what `LowRank` takes its eigenvectors from.

use pulp::{Simd, WithSimd};

use super::block::Packed;
use super::chunks;
use super::contract::{add_gram, contract_mode};
use super::plan::{Step, steps};
use super::simd::{Path, Real};
use crate::data::{Chunk, Element, Samples};
use crate::error::{Error, Result};
use crate::linalg::Matrix;

/// Σ w Z Zᵀ with Z = unfold_d((X − M) ×_{e≠d} V^(e)ᵀ), p_d × p_d. Modes whose loadings are `None` are kept whole.
pub(crate) fn scatter(
    samples: &Samples<'_>,
    mean: &[f64],
    loadings: &[Option<Matrix>],
    mode: usize,
    path: Path,
) -> Result<Matrix> {
    if samples.element() != Element::F64 {
        let scatter = match run::<f32>(samples, mean, loadings, mode, path) {
            Err(Error::Overflow { .. }) => None,
            other => Some(other?),
        };
        // Squares that leave the range of single precision, at either end, are done again.
        let per_element = |s: &Matrix| s.trace() / (samples.total_weight() * samples.sample_len() as f64);
        if let Some(scatter) = scatter.filter(|s| (1e-20..=1e20).contains(&per_element(s))) {
            return Ok(scatter);
        }
    }
    run::<f64>(samples, mean, loadings, mode, path)
}

fn run<T: Real>(
    samples: &Samples<'_>,
    mean: &[f64],
    loadings: &[Option<Matrix>],
    mode: usize,
    path: Path,
) -> Result<Matrix> {
    let shape = samples.shape();
    let n = shape[mode];
    let rank: Vec<usize> =
        loadings.iter().zip(shape).map(|(v, &p)| v.as_ref().map_or(p, Matrix::cols)).collect();
    let plan = ScatterPlan {
        steps: steps(shape, &rank, mode)
            .into_iter()
            .filter(|s| s.mode != mode && loadings[s.mode].is_some())
            .collect(),
        loadings: loadings
            .iter()
            .map(|v| {
                let v = v.as_ref().map_or(&[][..], Matrix::as_slice);
                v.iter().map(|&x| T::from_f64(x)).collect()
            })
            .collect(),
        reference: mean.iter().map(|&m| T::from_f64(m)).collect(),
        sides: (rank[..mode].iter().product(), n, rank[mode + 1..].iter().product()),
    };
    let total = chunks::sum(
        samples,
        n * n * size_of::<f64>(),
        || {
            let packed = Packed::<T>::new(samples.sample_len());
            let stages: Vec<Vec<T>> =
                plan.steps.iter().map(|s| vec![T::from_f64(0.0); s.out_len() * packed.lanes]).collect();
            (packed, stages)
        },
        |(packed, stages), range, chunk| {
            let mut sum = vec![0.0; n * n];
            path.run(Scatter {
                plan: &plan,
                samples,
                chunk,
                first: range.start,
                packed,
                stages,
                sum: &mut sum,
            });
            if (0..n).any(|i| !sum[i * n + i].is_finite()) {
                samples.check_finite(range.clone())?;
                return Err(Error::Overflow { sample: samples.largest(range)? });
            }
            Ok(sum)
        },
        |total, sum| total.iter_mut().zip(sum).for_each(|(t, s)| *t += s),
    )?;
    let mut total = Matrix::from_vec(n, n, total);
    for i in 0..n {
        for j in 0..i {
            total[(j, i)] = total[(i, j)];
        }
    }
    Ok(total)
}

struct ScatterPlan<T> {
    steps: Vec<Step>,
    loadings: Vec<Vec<T>>,
    reference: Vec<T>,
    sides: (usize, usize, usize),
}

struct Scatter<'a, T> {
    plan: &'a ScatterPlan<T>,
    samples: &'a Samples<'a>,
    chunk: Chunk<'a>,
    first: usize,
    packed: &'a mut Packed<T>,
    stages: &'a mut [Vec<T>],
    sum: &'a mut [f64],
}

impl<T: Real> WithSimd for Scatter<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { plan, samples, chunk, first, packed, stages, sum } = self;
        let size = plan.reference.len();
        let (count, lanes) = (chunk.len() / size, packed.lanes);
        for start in (0..count).step_by(lanes) {
            let end = (start + lanes).min(count);
            packed.fill(simd, chunk.slice(start * size..end * size), samples.scale(), &plan.reference);
            if samples.weights().is_some() {
                // A weight on both sides of Z Zᵀ is its root on Z.
                for lane in 0..end - start {
                    let root = T::from_f64(samples.weight(first + start + lane).sqrt());
                    packed.x.iter_mut().skip(lane).step_by(lanes).for_each(|x| *x = *x * root);
                }
            }
            for (t, step) in plan.steps.iter().enumerate() {
                let (done, rest) = stages.split_at_mut(t);
                let from = done.last().unwrap_or(&packed.x);
                let sides = (step.before, step.n, step.after);
                contract_mode(simd, from, sides, &plan.loadings[step.mode], step.cols, lanes, &mut rest[0]);
            }
            let z = stages.last().unwrap_or(&packed.x);
            add_gram(simd, z, plan.sides, lanes, sum);
        }
    }
}
