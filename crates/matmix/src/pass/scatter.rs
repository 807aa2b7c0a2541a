//! The scatter of one mode, Σ_n w_n Z_n Z_nᵀ: what `LowRank` takes its eigenvectors from.

use pulp::{Simd, WithSimd};

use super::aligned::Aligned;
use super::chunks;
use super::contract::{contract_steps, multiply, total};
use super::pack::PackedWhole;
use super::plan::{Step, steps};
use super::simd::{Path, Real};
use crate::data::{Chunk, Element, Samples};
use crate::error::{Error, Result};
use crate::linalg::{Matrix, add_columns_gram, add_rows_gram};

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
        || Scratch::new(&plan),
        |scratch, range, chunk| {
            let mut sum = vec![0.0; n * n];
            let part = Part { plan: &plan, samples, chunk, first: range.start };
            part.add(path, scratch, &mut sum);
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

/// Up to this many rows the sums stay in the first- and second-level cache as one number per lane; beyond, a general
/// matrix product is faster.
const SMALL: usize = 64;

struct ScatterPlan<T> {
    steps: Vec<Step>,
    loadings: Vec<Vec<T>>,
    reference: Vec<T>,
    sides: (usize, usize, usize),
}

/// What a thread reuses from chunk to chunk.
struct Scratch<T> {
    packed: PackedWhole<T>,
    stages: Vec<Aligned<T>>,
    /// Σ Z Zᵀ of a chunk in the working precision: as one number per lane of the machine if it is small.
    sums: Vec<T>,
}

impl<T: Real> Scratch<T> {
    fn new(plan: &ScatterPlan<T>) -> Self {
        let packed = PackedWhole::<T>::new(plan.reference.len());
        let zeros = |n: usize| vec![T::from_f64(0.0); n];
        let stages =
            plan.steps.iter().map(|s| Aligned::new(T::from_f64(0.0), s.out_len() * packed.lanes)).collect();
        let n = plan.sides.1;
        let sums = zeros(n * n * if n <= SMALL { T::LANES } else { 1 });
        Self { packed, stages, sums }
    }
}

/// A chunk of samples and what is to be done with it.
#[derive(Clone, Copy)]
struct Part<'a, T> {
    plan: &'a ScatterPlan<T>,
    samples: &'a Samples<'a>,
    chunk: Chunk<'a>,
    first: usize,
}

impl<T: Real> Part<'_, T> {
    fn add(self, path: Path, scratch: &mut Scratch<T>, sum: &mut [f64]) {
        let (before, n, after) = self.plan.sides;
        if n > SMALL && before * after == 1 {
            // Vectors: the samples are the rows of a matrix as they lie.
            let rows = self.centred();
            add_columns_gram(&rows, n, &mut scratch.sums);
        } else {
            path.run(Scatter { part: self, scratch, sum: &mut *sum });
        }
        if n > SMALL {
            for (to, from) in sum.iter_mut().zip(&mut scratch.sums) {
                *to += from.to_f64();
                *from = T::from_f64(0.0);
            }
        }
    }

    /// The samples less the reference, each times the root of its weight.
    fn centred(&self) -> Vec<T> {
        let (size, scale) = (self.plan.reference.len(), T::from_f64(self.samples.scale()));
        let reference = &self.plan.reference[..];
        let mut out = vec![T::from_f64(0.0); self.chunk.len()];
        for (n, row) in out.chunks_exact_mut(size).enumerate() {
            let root = T::from_f64(self.samples.weight(self.first + n).sqrt());
            macro_rules! centre {
                ($x:expr) => {
                    for (i, x) in $x[n * size..(n + 1) * size].iter().enumerate() {
                        row[i] = (T::from_f64(f64::from(*x)) * scale - reference[i]) * root;
                    }
                };
            }
            match self.chunk {
                Chunk::U8(x) => centre!(x),
                Chunk::F32(x) => centre!(x),
                Chunk::F64(x) => centre!(x),
            }
        }
        out
    }
}

struct Scatter<'a, T> {
    part: Part<'a, T>,
    scratch: &'a mut Scratch<T>,
    sum: &'a mut [f64],
}

impl<T: Real> WithSimd for Scatter<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Part { plan, samples, chunk, first } = self.part;
        let Scratch { packed, stages, sums, .. } = self.scratch;
        let size = plan.reference.len();
        let (count, lanes) = (chunk.len() / size, packed.lanes);
        let (before, n, after) = plan.sides;
        for start in (0..count).step_by(lanes) {
            let end = (start + lanes).min(count);
            packed.fill(simd, chunk, start..end, samples.scale(), &plan.reference);
            if samples.weights().is_some() {
                // A weight on both sides of Z Zᵀ is its root on Z.
                for lane in 0..end - start {
                    let root = T::from_f64(samples.weight(first + start + lane).sqrt());
                    packed.x_mut().iter_mut().skip(lane).step_by(lanes).for_each(|x| *x *= root);
                }
            }
            contract_steps(simd, packed.x(), &plan.steps, &plan.loadings, lanes, stages);
            let z = stages.last().map_or(packed.x(), |z| z);
            if n <= SMALL {
                multiply(simd, z, z, (before, n, n, after * lanes), T::vectors_mut::<S>(sums));
            } else {
                for slab in z.chunks_exact(n * after * lanes) {
                    add_rows_gram(slab, n, sums);
                }
            }
        }
        if n <= SMALL {
            total::<T, S>(simd, T::vectors_mut::<S>(sums), self.sum);
        }
    }
}
