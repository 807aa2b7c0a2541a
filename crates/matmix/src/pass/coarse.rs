//! Work that need not be done: components that are hopeless for a sample are found out cheaply.
//!
//! Let W be a matrix with orthonormal columns, one per mode, the same for all components. The Mahalanobis distance of
//! the compressed sample WᵀX under the compressed component is never larger than that of the sample itself: a marginal
//! cannot be less likely, relative to its peak, than the whole. So
//!
//! ```text
//! ln p(X|k) ≤ peak_k − ½ d²(WᵀX | k)
//! ```
//!
//! and the right side costs a fraction of the left: compressing a sample is shared by all components, and a compressed
//! component is a bilateral model again, with loadings WᵀU, evaluated by the same kernels. A component whose bound
//! lies [`HOPELESS`] below the density of another is not evaluated; its responsibility would have been rounded away.
//!
//! Nothing is remembered from pass to pass, so that a resumed or distributed fit takes the same turns.

use pulp::Simd;
use rayon::prelude::*;

use super::aligned::Aligned;
use super::pack::Fetch;
use super::plan::{Plan, Step, steps};
use super::simd::Real;
use super::stack::{MeansAbreast, Stack, Stacked};
use crate::linalg::{Matrix, add_rows_gram, leading_eigen, project};
use crate::model::{Component, Density, Mixture, not_negative};

/// e^−40 is far below what double precision can add to 1, many times over, with room for the rounding of the bounds.
const HOPELESS: f64 = 40.0;

/// The elements of a compressed sample are one of these fractions of those of a sample. The smaller they are the less the
/// bounds cost and the more components they leave: on digits a sixteenth leaves 3 out of 30, a ninth 2, a quarter 1.4 (and
/// 1.1 are not negligible).
const COMPRESSIONS: [f64; 3] = [16.0, 9.0, 5.0];

/// Pairs of components from which it is guessed how many are left.
const PAIRS: usize = 12;

/// A component that is evaluated alone costs more than its share of all.
const ALONE: f64 = 2.0;

/// Bounds are not tried if they are expected to leave more than this share of the work.
const WORTH: f64 = 0.6;

/// Bounds that leave more than this share of the components of the first samples of a chunk are given up.
const USEFUL: f64 = 0.35;

/// What the sums behind a squared distance may have lost, in units of the rounding of their terms.
const ROUNDING: f64 = 64.0;

/// Cheap bounds for all components of a model.
pub(crate) struct Coarse<T> {
    /// W: one component of its own, whose core is the compressed sample.
    compress: Stacked<T>,
    /// The compressed model.
    stacked: Stacked<T>,
    means: MeansAbreast<T>,
    components: Vec<CoarseComponent>,
}

/// What turns the distances of a compressed sample into the bound on one component.
struct CoarseComponent {
    /// ln π_k plus the largest value of the density.
    largest: f64,
    /// 1/(2 σ²).
    half_precision: f64,
    /// ‖M − G‖², compressed.
    mean_norm: f64,
}

/// What a thread needs for it.
pub(crate) struct Bounds<T> {
    compressed: Stack<T>,
    stack: Stack<T>,
    /// ⟨X − G, M − G⟩, compressed, `[sample of the block][lane of a component]`.
    inner: Aligned<T>,
    /// Σ Y²/(s + σ²) per lane.
    squares: Aligned<T>,
    /// The bound on ln π_k p(X|k), `[sample of the block][component]`.
    values: Vec<f64>,
}

impl<T: Real> Coarse<T> {
    /// Bounds for this model, if they can be expected to cost much less than what they save.
    pub(crate) fn new(model: &Mixture, reference: &[T]) -> Option<Self> {
        let (shape, rank) = (model.shape(), model.rank());
        let components = model.n_components() as f64;
        let whole = components * cost(shape, &steps(shape, rank, 0), true);
        // What the bounds and the one component that is evaluated after them cost, smallest first.
        let mut candidates: Vec<(Vec<usize>, f64)> = COMPRESSIONS
            .iter()
            .map(|compression| {
                let factor = compression.powf(1.0 / shape.len() as f64);
                let side = |(&p, &r): (&usize, &usize)| ((p as f64 / factor).ceil() as usize).max(r).min(p);
                let sides: Vec<usize> = shape.iter().zip(rank).map(side).collect();
                let mut once = steps(shape, &sides, 0);
                // The lanes of the first step are there, whether they are used or not.
                once[0].cols = once[0].cols.next_multiple_of(T::LANES);
                let once = cost(shape, &once, false);
                let each = components * cost(&sides, &steps(&sides, rank, 0), true);
                (sides, once + each + ALONE * whole / components)
            })
            .filter(|(_, cost)| *cost < WORTH * whole)
            .collect();
        let (largest, _) = candidates.last()?.clone();
        // The bounds see the samples less the rounded reference, as the plan does.
        let rounded: Vec<f64> = reference.iter().map(|g| g.to_f64()).collect();
        let bases = bases(model, &rounded, &largest)?;
        let compressed: Vec<Compressed> =
            model.components().par_iter().map(|c| Compressed::new(c, shape, &rounded, &bases)).collect();
        let peak = |(weight, component): (&f64, &Component)| weight.ln() + Density::new(component).peak();
        let peaks: Vec<f64> = model.weights().iter().zip(model.components()).map(peak).collect();
        candidates.retain_mut(|(sides, cost)| {
            let left = expected_to_be_left(&compressed, &peaks, model.sample_len(), sides);
            *cost += ALONE * (left - 1.0 / components).max(0.0) * whole;
            *cost < WORTH * whole
        });
        let (sides, _) = candidates.into_iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let parts: Option<Vec<Component>> = compressed.par_iter().map(|c| c.component(&sides)).collect();
        let small = Mixture::new(&sides, model.weights().to_vec(), parts?).ok()?;
        let plan = Plan::around(&small, 0, &vec![0.0; small.sample_len()]);
        let parts = model.components().iter().zip(&plan.components).zip(&peaks);
        let components = parts.map(|((component, small), &largest)| CoarseComponent {
            largest,
            half_precision: 0.5 / component.noise_variance(),
            mean_norm: small.mean_norm,
        });
        let components = components.collect();
        let narrowed = bases.iter().zip(&sides).map(|(w, &s)| w.first_cols(s)).collect();
        let compress = Component::new(shape, rounded.clone(), narrowed, 1.0).ok()?;
        let compress = Mixture::new(shape, vec![1.0], vec![compress]).ok()?;
        let compress = Stacked::new(&Plan::around(&compress, 0, &rounded));
        Some(Self { compress, stacked: Stacked::new(&plan), means: MeansAbreast::new(&plan), components })
    }

    pub(crate) fn scratch(&self) -> Bounds<T> {
        let compressed = Stack::new(&self.compress, 1);
        let samples = compressed.densities.lanes;
        let zeros = |n: usize| Aligned::new(T::from_f64(0.0), n);
        Bounds {
            compressed,
            // No densities come of it.
            stack: Stack::with_samples(&self.stacked, 0, samples),
            inner: zeros(samples * self.means.width),
            squares: zeros(self.stacked.width),
            values: vec![0.0; samples * self.components.len()],
        }
    }
}

impl<T: Real> Bounds<T> {
    /// Bounds for the samples `x` of a block, less the reference; what comes next is fetched into cache on the way.
    #[inline(always)]
    pub(crate) fn find<S: Simd>(
        &mut self,
        simd: S,
        coarse: &Coarse<T>,
        x: &[T],
        count: usize,
        fetch: Fetch<'_>,
    ) {
        self.compressed.contract(simd, &coarse.compress, x, 0..count);
        self.stack.take_cores(&self.compressed, &coarse.compress, count);
        let Coarse { stacked, means, components, .. } = coarse;
        means.multiply(simd, self.stack.x(), stacked.stride, count, &mut self.inner);
        self.stack.contract_all(simd, stacked, count, fetch);
        for lane in 0..count {
            self.square(stacked, lane);
            let (norm, inner) = (self.stack.norm(lane), &self.inner[lane * means.width..]);
            let values = &mut self.values[lane * components.len()..(lane + 1) * components.len()];
            for (k, component) in components.iter().enumerate() {
                let mut explained = T::from_f64(0.0);
                for l in stacked.lanes_of(k) {
                    explained += self.squares[l];
                }
                // In the working precision, but never above what it should be: a bound that is too large costs time, one
                // that is too small a component.
                let squares = norm + component.mean_norm;
                let lost = ROUNDING * T::EPSILON * squares;
                let distance = squares - 2.0 * inner[k].to_f64() - explained.to_f64() - lost;
                values[k] = component.largest - component.half_precision * not_negative(distance);
            }
        }
    }

    /// Σ Y²/(s + σ²) of all lanes of a compressed sample.
    #[inline(always)]
    fn square(&mut self, stacked: &Stacked<T>, lane: usize) {
        let width = stacked.width;
        self.squares.fill(T::from_f64(0.0));
        let rows = self.stack.y(lane).chunks_exact(width);
        for (y, precision) in rows.zip(stacked.rounded_precision.chunks_exact(width)) {
            // A plain loop: an iterator's `for_each` may be compiled apart, without the wide instructions.
            let squares = &mut self.squares[..width];
            for l in 0..width {
                squares[l] += y[l] * y[l] * precision[l];
            }
        }
    }

    /// The bounds on all components for a sample of the block.
    pub(crate) fn of(&self, lane: usize) -> &[f64] {
        let count = self.values.len() / self.compressed.densities.lanes;
        &self.values[lane * count..(lane + 1) * count]
    }
}

/// Whether bounds have saved enough if they left so many of so many densities.
pub(crate) fn are_useful(evaluated: usize, all: usize) -> bool {
    evaluated as f64 <= USEFUL * all as f64
}

/// Whether a component with this bound may matter for a sample whose largest density so far is `largest`. Not a number
/// means that it has to be looked at.
#[inline(always)]
pub(crate) fn may_matter(bound: f64, largest: f64) -> bool {
    bound >= largest - HOPELESS || bound.is_nan() || largest.is_nan()
}

/// Multiply-adds per sample of a contraction, with those of the distance to the mean if it is needed.
fn cost(shape: &[usize], steps: &[Step], distance: bool) -> f64 {
    let contraction: usize = steps.iter().map(|s| s.before * s.n * s.after * s.cols).sum();
    (contraction + if distance { shape.iter().product() } else { 0 }) as f64
}

/// Per mode the directions in which the model says samples vary most, within components and between them.
fn bases(model: &Mixture, reference: &[f64], sides: &[usize]) -> Option<Vec<Matrix>> {
    let shape = model.shape();
    let scatter_of = |d: usize, component: &Component, weight: f64| {
        let (p, after) = (shape[d], shape[d + 1..].iter().product::<usize>());
        let mut scatter = Matrix::zeros(p, p);
        let root = weight.sqrt();
        let mean: Vec<f64> = component.mean().iter().zip(reference).map(|(m, g)| root * (m - g)).collect();
        for slab in mean.chunks_exact(p * after) {
            add_rows_gram(slab, p, scatter.as_mut_slice());
        }
        let others: f64 = component.other_variances(d).iter().sum();
        let mut u = component.loadings()[d].clone();
        u.scale((weight * others).sqrt());
        add_rows_gram(u.as_slice(), p, scatter.as_mut_slice());
        scatter
    };
    let modes = (0..shape.len()).into_par_iter().map(|d| {
        let parts = model.components().par_iter().zip(model.weights());
        let parts: Vec<Matrix> = parts.map(|(component, &weight)| scatter_of(d, component, weight)).collect();
        let mut scatter = Matrix::zeros(shape[d], shape[d]);
        parts.iter().for_each(|part| scatter.add_scaled(1.0, part));
        scatter.mirror_lower();
        Some(leading_eigen(&scatter, sides[d])?.vectors)
    });
    modes.collect()
}

/// A component of samples compressed by bases. Its leading parts are what fewer directions of the same bases would have
/// made of it; its loadings are not canonical yet.
struct Compressed {
    sides: Vec<usize>,
    mean: Vec<f64>,
    loadings: Vec<Matrix>,
    noise_variance: f64,
}

impl Compressed {
    fn new(component: &Component, shape: &[usize], reference: &[f64], bases: &[Matrix]) -> Self {
        let mean: Vec<f64> = component.mean().iter().zip(reference).map(|(m, g)| m - g).collect();
        Self {
            sides: bases.iter().map(Matrix::cols).collect(),
            mean: project(&mean, shape, bases, None),
            loadings: component.loadings().iter().zip(bases).map(|(u, w)| w.transpose_times(u)).collect(),
            noise_variance: component.noise_variance(),
        }
    }

    fn mean(&self, sides: &[usize]) -> Vec<f64> {
        let place = |mut at: usize| {
            let (mut place, mut stride) = (0, 1);
            for (&side, &from) in sides.iter().zip(&self.sides).rev() {
                place += at % side * stride;
                at /= side;
                stride *= from;
            }
            place
        };
        (0..sides.iter().product()).map(|at| self.mean[place(at)]).collect()
    }

    fn component(&self, sides: &[usize]) -> Option<Component> {
        let leading =
            |(u, &p): (&Matrix, &usize)| Matrix::from_vec(p, u.cols(), u.as_slice()[..p * u.cols()].to_vec());
        let loadings = self.loadings.iter().zip(sides).map(leading).collect();
        Component::new(sides, self.mean(sides), loadings, self.noise_variance).ok()
    }
}

/// The share of the components that the bounds of samples compressed to these sides can be expected to leave: a sample of
/// one component lies √P standard deviations from its mean, and what another component's bound sees of it is the
/// distance of the compressed means beside the compressed deviation. `peaks` are the largest values of ln π_k p(X|k).
fn expected_to_be_left(components: &[Compressed], peaks: &[f64], sample_len: usize, sides: &[usize]) -> f64 {
    let count = components.len();
    let dimensions: usize = sides.iter().product();
    let pairs = PAIRS.min(count);
    let left = (0..pairs).into_par_iter().filter(|pair| {
        let (one, other) = (pair * count / pairs, (pair * count / pairs + 1 + pair) % count);
        let Some(to) = components[other].component(sides) else { return true };
        let offset: Vec<f64> =
            components[one].mean(sides).iter().zip(to.mean()).map(|(a, b)| a - b).collect();
        let y = project(&offset, sides, to.loadings(), None);
        let density = Density::new(&to);
        let explained: f64 = y.iter().zip(&density.precision).map(|(y, p)| y * y * p).sum();
        let distance: f64 = offset.iter().map(|x| x * x).sum();
        let seen = density.peak() - density.log_density(distance, explained) + 0.5 * dimensions as f64;
        one != other && peaks[other] - seen >= peaks[one] - 0.5 * sample_len as f64 - HOPELESS
    });
    left.count() as f64 / pairs as f64
}
