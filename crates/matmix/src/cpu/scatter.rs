//! Scatters, Σ_n w_n Z_n Z_nᵀ: what `LowRank` takes its eigenvectors from.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::aligned::Aligned;
use super::chunks;
use super::contract::{contract_steps, multiply, total};
use super::gram::Gram;
use super::pack::{PackedWhole, lanes};
use super::plan::{Step, cheapest_last, steps};
use super::simd::{Path, Real};
use crate::data::{Chunk, Element, Samples};
use crate::error::{Error, Result};
use crate::linalg::{Matrix, add_rows_gram};

/// What one pass finds: a scatter per mode that was asked for, and Σ w ‖X − M‖².
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scatters {
    pub(crate) scatters: Vec<Matrix>,
    pub(crate) squares: f64,
}

/// For each of the `modes` d, Σ w Z Zᵀ with Z = unfold_d((X − M) ×_{e≠d} V^(e)ᵀ), p_d × p_d; if there are none, Σ w y yᵀ
/// of the flattened cores y = (X − M) ×_e V^(e)ᵀ. Modes whose loadings are `None` are kept whole.
pub(crate) fn scatters(
    samples: &Samples<'_>,
    mean: &[f64],
    loadings: &[Option<Matrix>],
    modes: &[usize],
    path: Path,
) -> Result<Scatters> {
    if samples.element() != Element::F64 {
        let found = match run::<f32>(samples, mean, loadings, modes, path) {
            Err(Error::Overflow { .. }) => None,
            other => Some(other?),
        };
        // Squares that leave the range of single precision, at either end, are done again.
        let per_element = |s: &Matrix| s.trace() / (samples.total_weight() * samples.sample_len() as f64);
        let in_range = |s: &Matrix| (1e-20..=1e20).contains(&per_element(s));
        if let Some(found) = found.filter(|found| found.scatters.iter().all(in_range)) {
            return Ok(found);
        }
    }
    run::<f64>(samples, mean, loadings, modes, path)
}

fn run<T: Real>(
    samples: &Samples<'_>,
    mean: &[f64],
    loadings: &[Option<Matrix>],
    modes: &[usize],
    path: Path,
) -> Result<Scatters> {
    let plan = ScatterPlan::<T>::new(samples.shape(), mean, loadings, modes);
    let zero = || Sums {
        triangles: plan.targets.iter().map(|t| vec![0.0; t.rows() * (t.rows() + 1) / 2]).collect(),
        squares: 0.0,
    };
    let numbers: usize = plan.targets.iter().map(|t| t.rows() * (t.rows() + 1) / 2).sum();
    let total = chunks::sum(
        samples,
        numbers * size_of::<f64>(),
        || Scratch::new(&plan),
        |scratch, range, chunk| {
            let mut sums = zero();
            let part = Part { plan: &plan, samples, chunk, first: range.start };
            path.run(AddChunk { part, scratch, sums: &mut sums });
            if !sums.is_finite() {
                samples.check_finite(range.clone())?;
                return Err(Error::Overflow { sample: samples.largest(range)? });
            }
            Ok(sums)
        },
        Sums::merge,
    )?;
    let scatter = |(triangle, target): (&Vec<f64>, &Target)| {
        let mut scatter = Matrix::zeros(target.rows(), target.rows());
        for i in 0..target.rows() {
            for (j, &x) in triangle[i * (i + 1) / 2..][..=i].iter().enumerate() {
                scatter[(i, j)] = x;
                scatter[(j, i)] = x;
            }
        }
        scatter
    };
    let scatters = total.triangles.iter().zip(&plan.targets).map(scatter).collect();
    Ok(Scatters { scatters, squares: total.squares })
}

/// The lower triangles of the scatters row by row, and the sum of squares.
struct Sums {
    triangles: Vec<Vec<f64>>,
    squares: f64,
}

/// Numbers of large sums that a thread adds at a time.
const ADDED_AT_A_TIME: usize = 1 << 15;

impl Sums {
    fn merge(&mut self, other: &Sums) {
        for (to, from) in self.triangles.iter_mut().zip(&other.triangles) {
            // Each number on its own: the threads change nothing about it.
            let parts = to.par_chunks_mut(ADDED_AT_A_TIME).zip(from.par_chunks(ADDED_AT_A_TIME));
            parts.for_each(|(to, from)| to.iter_mut().zip(from).for_each(|(t, f)| *t += f));
        }
        self.squares += other.squares;
    }

    fn is_finite(&self) -> bool {
        let diagonal = |t: &Vec<f64>| {
            (1..).map(|i| i * (i + 1) / 2 - 1).take_while(|&at| at < t.len()).all(|at| t[at].is_finite())
        };
        self.squares.is_finite() && self.triangles.iter().all(diagonal)
    }
}

/// Up to this many rows the sums stay in the first- and second-level cache as one number per lane; beyond, a general
/// matrix product is faster.
const SMALL: usize = 64;

/// One of the scatters of a pass.
struct Target {
    steps: Vec<Step>,
    /// The reduced samples are `[before][rows][after]`.
    sides: (usize, usize, usize),
}

impl Target {
    fn rows(&self) -> usize {
        self.sides.1
    }

    /// Whether it is a large scatter of vectors.
    fn is_of_vectors(&self) -> bool {
        let (before, rows, after) = self.sides;
        before * after == 1 && rows > SMALL
    }

    /// Whether the vectors are the samples as they lie.
    fn is_of_samples(&self) -> bool {
        self.is_of_vectors() && self.steps.is_empty()
    }
}

struct ScatterPlan<T> {
    targets: Vec<Target>,
    loadings: Vec<Vec<T>>,
    reference: Vec<T>,
}

impl<T: Real> ScatterPlan<T> {
    fn new(shape: &[usize], mean: &[f64], loadings: &[Option<Matrix>], modes: &[usize]) -> Self {
        let rank: Vec<usize> =
            loadings.iter().zip(shape).map(|(v, &p)| v.as_ref().map_or(p, Matrix::cols)).collect();
        let contracted = |except: Option<usize>| {
            let last = except.unwrap_or_else(|| cheapest_last(shape, &rank));
            let all = steps(shape, &rank, last).into_iter();
            all.filter(|s| Some(s.mode) != except && loadings[s.mode].is_some()).collect()
        };
        let of_mode = |&d: &usize| Target {
            steps: contracted(Some(d)),
            sides: (rank[..d].iter().product(), shape[d], rank[d + 1..].iter().product()),
        };
        let of_cores = || Target { steps: contracted(None), sides: (1, rank.iter().product(), 1) };
        let narrow = |v: &Matrix| v.as_slice().iter().map(|&x| T::from_f64(x)).collect();
        Self {
            targets: if modes.is_empty() { vec![of_cores()] } else { modes.iter().map(of_mode).collect() },
            loadings: loadings.iter().map(|v| v.as_ref().map_or(vec![], narrow)).collect(),
            reference: mean.iter().map(|&m| T::from_f64(m)).collect(),
        }
    }
}

/// What a thread reuses from chunk to chunk.
struct Scratch<T> {
    /// `None` if all scatters are of the samples as they lie.
    packed: Option<PackedWhole<T>>,
    targets: Vec<TargetScratch<T>>,
    /// One sample.
    row: Vec<T>,
}

struct TargetScratch<T> {
    stages: Vec<Aligned<T>>,
    sums: ChunkSums<T>,
}

/// Σ Z Zᵀ of a chunk in the working precision.
enum ChunkSums<T> {
    /// One number per lane of the machine.
    Lanes(Aligned<T>),
    /// Row-major.
    Matrix(Vec<T>),
    /// Of vectors.
    Vectors(Gram<T>),
}

impl<T: Real> Scratch<T> {
    fn new(plan: &ScatterPlan<T>) -> Self {
        let zeros = |n: usize| vec![T::from_f64(0.0); n];
        let aligned = |n: usize| Aligned::new(T::from_f64(0.0), n);
        let lanes = lanes::<T>();
        let target = |target: &Target| TargetScratch {
            stages: target.steps.iter().map(|s| aligned(s.out_len() * lanes)).collect(),
            sums: match target.rows() {
                n if n <= SMALL => ChunkSums::Lanes(aligned(n * n * T::LANES)),
                n if target.is_of_vectors() => ChunkSums::Vectors(Gram::new(n)),
                n => ChunkSums::Matrix(zeros(n * n)),
            },
        };
        let as_they_lie = plan.targets.iter().all(Target::is_of_samples);
        Self {
            packed: (!as_they_lie).then(|| PackedWhole::new(plan.reference.len())),
            targets: plan.targets.iter().map(target).collect(),
            row: zeros(plan.reference.len()),
        }
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

struct AddChunk<'a, T> {
    part: Part<'a, T>,
    scratch: &'a mut Scratch<T>,
    sums: &'a mut Sums,
}

impl<T: Real> WithSimd for AddChunk<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { part, scratch, sums } = self;
        let Scratch { packed, targets, row } = scratch;
        match packed {
            Some(packed) => part.add_blocks(simd, packed, targets, row, sums),
            None => part.add_rows(simd, targets, row, sums),
        }
        for (target, out) in targets.iter_mut().zip(&mut sums.triangles) {
            target.sums.finish(simd, out);
        }
    }
}

impl<T: Real> Part<'_, T> {
    /// The samples one after the other, as they lie.
    #[inline(always)]
    fn add_rows<S: Simd>(&self, simd: S, targets: &mut [TargetScratch<T>], row: &mut [T], sums: &mut Sums) {
        let size = row.len();
        for n in 0..self.chunk.len() / size {
            let weight = self.samples.weight(self.first + n);
            let (x, scale) = (self.chunk.slice(n * size..(n + 1) * size), self.samples.scale());
            sums.squares += weight * centre(simd, x, scale, &self.plan.reference, weight.sqrt(), row);
            for target in &mut *targets {
                if let ChunkSums::Vectors(gram) = &mut target.sums {
                    gram.add(simd, row);
                }
            }
        }
    }

    /// The samples block by block, packed as lanes and contracted.
    #[inline(always)]
    fn add_blocks<S: Simd>(
        &self,
        simd: S,
        packed: &mut PackedWhole<T>,
        targets: &mut [TargetScratch<T>],
        row: &mut [T],
        sums: &mut Sums,
    ) {
        let Part { plan, samples, chunk, first } = *self;
        let (count, lanes) = (chunk.len() / row.len(), packed.lanes);
        for start in (0..count).step_by(lanes) {
            let end = (start + lanes).min(count);
            packed.fill(simd, chunk, start..end, samples.scale(), &plan.reference);
            // What is packed next is read while this block is worked on.
            let mut fetch = packed.fetch(chunk, end..(end + lanes).min(count));
            fetch.advance(fetch.lines());
            for lane in 0..end - start {
                sums.squares += samples.weight(first + start + lane) * packed.norms()[lane];
            }
            if samples.weights().is_some() {
                // A weight on both sides of Z Zᵀ is its root on Z.
                for lane in 0..end - start {
                    let root = T::from_f64(samples.weight(first + start + lane).sqrt());
                    packed.x_mut().iter_mut().skip(lane).step_by(lanes).for_each(|x| *x *= root);
                }
            }
            for (target, scratch) in plan.targets.iter().zip(&mut *targets) {
                let TargetScratch { stages, sums } = scratch;
                contract_steps(simd, packed.x(), &target.steps, &plan.loadings, lanes, stages);
                let z = stages.last().map_or(packed.x(), |z| z);
                let (before, n, after) = target.sides;
                match sums {
                    ChunkSums::Lanes(sums) => {
                        multiply(simd, z, z, (before, n, n, after * lanes), T::vectors_mut::<S>(sums));
                    }
                    ChunkSums::Matrix(sums) => {
                        for slab in z.chunks_exact(n * after * lanes) {
                            add_rows_gram(slab, n, sums);
                        }
                    }
                    ChunkSums::Vectors(gram) => {
                        let row = &mut row[..n];
                        for lane in 0..end - start {
                            for (to, from) in row.iter_mut().zip(z[lane..].iter().step_by(lanes)) {
                                *to = *from;
                            }
                            gram.add(simd, row);
                        }
                    }
                }
            }
        }
    }
}

impl<T: Real> ChunkSums<T> {
    /// Adds the lower triangle to `out`, row by row, and begins anew.
    #[inline(always)]
    fn finish<S: Simd>(&mut self, simd: S, out: &mut [f64]) {
        let (rows, whole) = match self {
            ChunkSums::Vectors(gram) => return gram.finish(simd, out),
            ChunkSums::Lanes(sums) => {
                let rows = (sums.len() / T::LANES).isqrt();
                let mut whole = vec![0.0; rows * rows];
                total::<T, S>(simd, T::vectors_mut::<S>(sums), &mut whole);
                (rows, whole)
            }
            ChunkSums::Matrix(sums) => {
                let whole = sums.iter().map(|x| x.to_f64()).collect();
                sums.fill(T::from_f64(0.0));
                (sums.len().isqrt(), whole)
            }
        };
        for i in 0..rows {
            let row = &mut out[i * (i + 1) / 2..][..=i];
            row.iter_mut().zip(&whole[i * rows..]).for_each(|(to, from)| *to += from);
        }
    }
}

/// Writes a sample less the reference, times `root`, to `out`; returns ‖X − M‖².
#[inline(always)]
fn centre<T: Real, S: Simd>(
    simd: S,
    x: Chunk<'_>,
    scale: f64,
    reference: &[T],
    root: f64,
    out: &mut [T],
) -> f64 {
    simd.vectorize(Centre { x, scale, reference, root, out })
}

struct Centre<'a, T> {
    x: Chunk<'a>,
    scale: f64,
    reference: &'a [T],
    root: f64,
    out: &'a mut [T],
}

/// Squares that are added in the working precision before their sum is added in double.
const SQUARES: usize = 64;

impl<T: Real> WithSimd for Centre<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let Self { x, scale, reference, root, out } = self;
        let (scale, root) = (T::from_f64(scale), T::from_f64(root));
        match x {
            Chunk::U8(x) => centred(x, scale, reference, root, out),
            Chunk::F32(x) => centred(x, scale, reference, root, out),
            Chunk::F64(x) => centred(x, scale, reference, root, out),
        }
    }
}

#[inline(always)]
fn centred<T: Real, E: Copy + Into<f64>>(x: &[E], scale: T, reference: &[T], root: T, out: &mut [T]) -> f64 {
    const N: usize = 8;
    let mut square = 0.0;
    for ((x, g), out) in x.chunks(SQUARES).zip(reference.chunks(SQUARES)).zip(out.chunks_mut(SQUARES)) {
        let mut squares = [T::from_f64(0.0); N];
        let (x, x_rest) = x.as_chunks::<N>();
        let (g, g_rest) = g.as_chunks::<N>();
        let (out, out_rest) = out.as_chunks_mut::<N>();
        for ((x, g), out) in x.iter().zip(g).zip(out) {
            // Arrays of their own, one loop each: these become vectors.
            let mut d = [T::from_f64(0.0); N];
            for i in 0..N {
                d[i] = T::from_f64(x[i].into()) * scale - g[i];
            }
            for i in 0..N {
                squares[i] += d[i] * d[i];
            }
            for i in 0..N {
                d[i] *= root;
            }
            *out = d;
        }
        for i in 0..x_rest.len() {
            let d = T::from_f64(x_rest[i].into()) * scale - g_rest[i];
            squares[i] += d * d;
            out_rest[i] = d * root;
        }
        for s in squares {
            square += s.to_f64();
        }
    }
    square
}
