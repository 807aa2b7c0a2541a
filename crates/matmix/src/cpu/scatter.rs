//! Scatters, Σ_n w_n Z_n Z_nᵀ: what `LowRank` takes its eigenvectors from.

use pulp::{Simd, WithSimd};

use super::contract::{contract_steps, multiply, total};
use super::gram::Gram;
use super::load::Stored;
use super::plan::{Step, cheapest_last, steps};
use super::redo::{self, Work, has_room_for};
use super::samples_abreast::{PackedWhole, lanes};
use crate::data::{Element, Samples};
use crate::error::Result;
use crate::linalg::{Matrix, add_rows_gram};
use crate::parallel;
use crate::pass::{ScatterPass, ScatterSums};
use crate::simd::Aligned;
use crate::simd::{Instructions, Real};
use crate::walk::{RUN_LEAST, RUN_OF_LARGE_SUMS};

/// One pass over all samples.
pub(super) fn scatter(pass: &ScatterPass, samples: &Samples<'_>, on: Instructions) -> Result<ScatterSums> {
    let work = Scatter { pass, shape: samples.shape(), targets: Target::all(samples.shape(), pass) };
    let sums = redo::sum(samples, on, samples.element() == Element::F64, &work)?;
    Ok(work.finished(sums, samples.len()))
}

struct Scatter<'a> {
    pass: &'a ScatterPass,
    shape: &'a [usize],
    targets: Vec<Target>,
}

impl Scatter<'_> {
    fn finished(&self, sums: Sums, n_samples: usize) -> ScatterSums {
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
        let scatters = sums.triangles.iter().zip(&self.targets).map(scatter).collect();
        ScatterSums { n_samples: n_samples as u64, scatters, squares: sums.squares }
    }
}

impl Work for Scatter<'_> {
    type Sum = Sums;
    type Setup<T: Real> = ScatterPlan<T>;
    type Scratch<T: Real> = Scratch<T>;

    fn setup<T: Real>(&self) -> ScatterPlan<T> {
        debug_assert_eq!(self.shape.len(), self.pass.loadings.len());
        let narrow = |v: &Matrix| v.as_slice().iter().map(|&x| T::from_f64(x)).collect();
        ScatterPlan {
            loadings: self.pass.loadings.iter().map(|v| v.as_ref().map_or(vec![], narrow)).collect(),
            reference: self.pass.mean.iter().map(|&m| T::from_f64(m)).collect(),
        }
    }

    fn scratch<T: Real>(&self, plan: &ScatterPlan<T>) -> Scratch<T> {
        Scratch::new(plan, &self.targets)
    }

    fn zero(&self) -> Sums {
        let triangle = |t: &Target| vec![0.0; t.rows() * (t.rows() + 1) / 2];
        Sums { triangles: self.targets.iter().map(triangle).collect(), squares: 0.0 }
    }

    fn add<T: Real>(
        &self,
        on: Instructions,
        plan: &ScatterPlan<T>,
        scratch: &mut Scratch<T>,
        stored: Stored<'_>,
        sums: &mut Sums,
        left_out: &mut Vec<usize>,
    ) {
        on.run::<T, _>(AddChunk { plan, targets: &self.targets, stored, scratch, sums, left_out });
    }

    /// A missing cell has the mean: it adds nothing, and whoever asks knows how much was missing.
    fn add_partial<T: Real>(
        &self,
        on: Instructions,
        plan: &ScatterPlan<T>,
        scratch: &mut Scratch<T>,
        stored: Stored<'_>,
        holes: &[usize],
        sums: &mut Sums,
        left_out: &mut Vec<usize>,
    ) {
        let filled = stored.filled(holes, &self.pass.mean);
        let before = left_out.len();
        self.add(on, plan, scratch, filled.stored(stored), sums, left_out);
        left_out[before..].iter_mut().for_each(|n| *n = holes[*n]);
    }

    fn merge(&self, sums: &mut Sums, following: &Sums) {
        sums.merge(following);
    }

    fn sum_bytes(&self) -> usize {
        self.targets.iter().map(|t| t.rows() * (t.rows() + 1) / 2 * size_of::<f64>()).sum()
    }

    /// A vector is one multiplication per number of its sums.
    fn least(&self) -> usize {
        if self.targets.iter().any(Target::is_of_vectors) { RUN_OF_LARGE_SUMS } else { RUN_LEAST }
    }
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
            let add = |first: usize, to: &mut [f64]| {
                to.iter_mut().zip(&from[first..]).for_each(|(t, f)| *t += f);
            };
            if to.len() > ADDED_AT_A_TIME {
                parallel::stretches(to, ADDED_AT_A_TIME, add);
            } else {
                add(0, to);
            }
        }
        self.squares += other.squares;
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

impl Target {
    fn all(shape: &[usize], pass: &ScatterPass) -> Vec<Self> {
        let ScatterPass { loadings, modes, .. } = pass;
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
        if modes.is_empty() { vec![of_cores()] } else { modes.iter().map(of_mode).collect() }
    }
}

/// Loadings and mean in the working precision.
struct ScatterPlan<T> {
    loadings: Vec<Vec<T>>,
    reference: Vec<T>,
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
    fn new(plan: &ScatterPlan<T>, targets: &[Target]) -> Self {
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
        let as_they_lie = targets.iter().all(Target::is_of_samples);
        Self {
            packed: (!as_they_lie).then(|| PackedWhole::new(plan.reference.len())),
            targets: targets.iter().map(target).collect(),
            row: zeros(plan.reference.len()),
        }
    }
}

struct AddChunk<'a, T> {
    plan: &'a ScatterPlan<T>,
    targets: &'a [Target],
    stored: Stored<'a>,
    scratch: &'a mut Scratch<T>,
    sums: &'a mut Sums,
    left_out: &'a mut Vec<usize>,
}

impl<T: Real> WithSimd for AddChunk<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        match self.scratch.packed {
            Some(_) => self.add_blocks(simd),
            None => self.add_rows(simd),
        }
        for (target, out) in self.scratch.targets.iter_mut().zip(&mut self.sums.triangles) {
            target.sums.finish(simd, out);
        }
    }
}

impl<T: Real> AddChunk<'_, T> {
    /// The samples one after the other, as they lie.
    #[inline(always)]
    fn add_rows<S: Simd>(&mut self, simd: S) {
        let Self { plan, stored, scratch, sums, left_out, .. } = self;
        let Scratch { targets, row, .. } = &mut **scratch;
        let size = row.len();
        for n in stored.walk() {
            let weight = stored.weight(n);
            let square = centre(simd, *stored, n, &plan.reference, weight.sqrt(), row);
            if !has_room_for::<T>(square / size as f64) {
                left_out.push(n);
                continue;
            }
            sums.squares += weight * square;
            for target in &mut *targets {
                if let ChunkSums::Vectors(gram) = &mut target.sums {
                    gram.add(simd, row);
                }
            }
        }
    }

    /// The samples block by block, packed as lanes and contracted.
    #[inline(always)]
    fn add_blocks<S: Simd>(&mut self, simd: S) {
        let Self { plan, targets: of, stored, scratch, sums, left_out } = self;
        let Scratch { packed: Some(packed), targets, row } = &mut **scratch else { return };
        let (lanes, size) = (packed.lanes, row.len());
        for block in stored.blocks(lanes) {
            packed.fill(simd, &block, &plan.reference);
            // What is packed next is read while this block is worked on.
            let mut fetch = packed.fetch(&block);
            fetch.advance(fetch.lines());
            for (lane, n) in block.places().enumerate() {
                let (weight, square) = (stored.weight(n), packed.norms()[lane]);
                let fine = has_room_for::<T>(square / size as f64);
                if fine {
                    sums.squares += weight * square;
                } else {
                    left_out.push(n);
                }
                if !fine || stored.is_weighted() {
                    // A weight on both sides of Z Zᵀ is its root on Z.
                    let root = T::from_f64(weight.sqrt());
                    let lane = packed.x_mut().iter_mut().skip(lane).step_by(lanes);
                    lane.for_each(|x| *x = if fine { *x * root } else { T::from_f64(0.0) });
                }
            }
            for (target, scratch) in of.iter().zip(&mut *targets) {
                let TargetScratch { stages, sums } = scratch;
                contract_steps(simd, packed.x(), &target.steps, &plan.loadings, lanes, stages);
                let z = stages.last().map_or(packed.x(), |z| z);
                let (before, n, after) = target.sides;
                match sums {
                    ChunkSums::Lanes(sums) => multiply(simd, z, z, (before, n, n, after * lanes), sums),
                    ChunkSums::Matrix(sums) => {
                        for slab in z.chunks_exact(n * after * lanes) {
                            add_rows_gram(slab, n, sums);
                        }
                    }
                    ChunkSums::Vectors(gram) => {
                        let row = &mut row[..n];
                        for lane in 0..block.count() {
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
                total(simd, sums, &mut whole);
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

/// Writes sample `n` less the reference, times `root`, to `out`; returns ‖X − M‖².
#[inline(always)]
fn centre<T: Real, S: Simd>(
    simd: S,
    stored: Stored<'_>,
    n: usize,
    reference: &[T],
    root: f64,
    out: &mut [T],
) -> f64 {
    simd.vectorize(Centre { stored, n, reference, root, out })
}

struct Centre<'a, T> {
    stored: Stored<'a>,
    n: usize,
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
        const N: usize = 8;
        let Self { stored, n, reference, root, out } = self;
        stored.load(n, 0..reference.len(), reference, out);
        let root = T::from_f64(root);
        let mut square = 0.0;
        for out in out.chunks_mut(SQUARES) {
            let mut squares = [T::from_f64(0.0); N];
            let (whole, rest) = out.as_chunks_mut::<N>();
            for d in whole {
                // Loops of their own: these become vectors.
                for i in 0..N {
                    squares[i] += d[i] * d[i];
                }
                for i in 0..N {
                    d[i] *= root;
                }
            }
            for (d, square) in rest.iter_mut().zip(&mut squares) {
                *square += *d * *d;
                *d *= root;
            }
            for s in squares {
                square += s.to_f64();
            }
        }
        square
    }
}
