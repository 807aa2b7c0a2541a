//! Work that need not be done: components that are hopeless for a sample are found out cheaply.
//!
//! Let W be a matrix with orthonormal columns, one per mode, the same for all components. The Mahalanobis distance of
//! the compressed sample WᵀX under the compressed component is never larger than that of the sample itself: a marginal
//! cannot be less likely, relative to its peak, than the whole. So
//!
//! ```text
//! δ_k(X) ≥ δ_k(WᵀX)        ln p(X|k) ≤ ln p_k at that distance
//! ```
//!
//! and the right side costs a fraction of the left: compressing a sample is shared by all components, and a compressed
//! component is a bilateral model again, with loadings WᵀU, evaluated by the same kernels. A component whose bound
//! lies [`HOPELESS`] below the density of another is not evaluated; its responsibility would have been rounded away.
//!
//! Nothing is remembered from pass to pass, so that a resumed or distributed fit takes the same turns.

use pulp::Simd;

use super::components_abreast::{MeansAbreast, Stack, StackedModel};
use super::load::Fetch;
use super::plan::{Plan, Step, steps};
use crate::linalg::{Matrix, add_rows_gram, leading_eigen, project, rough_eigen_of_rows};
use crate::model::{Component, Density, Mixture};
use crate::parallel;
use crate::simd::Aligned;
use crate::simd::Real;

/// A component whose density is e^−40 of another's counts for nothing: double precision could not add it to 1, many times
/// over. The same limit is used where nothing is skipped, so that skipping changes no bit.
pub(crate) const HOPELESS: f64 = 40.0;

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

/// Setting up may take this share of what the pass takes, at most.
const SETTING_UP: f64 = 0.5;

/// Up to this side the scatter of a mode is formed and decomposed; beyond, its eigenvectors are sought without it.
const SCATTER_SIDE: usize = 256;

/// Products with all vectors that finding a few rough eigenvectors takes.
const ROUGH_PRODUCTS: f64 = 8.0;

/// What the sums behind a squared distance may have lost, in units of the rounding of their terms.
const ROUNDING: f64 = 64.0;

/// Cheap bounds for all components of a model.
pub(crate) struct Coarse<T> {
    /// W: one component of its own, whose core is the compressed sample.
    compress: StackedModel<T>,
    /// The compressed model.
    stacked: StackedModel<T>,
    means: MeansAbreast<T>,
    components: Vec<CoarseComponent>,
}

/// What turns the distances of a compressed sample into the bound on one component.
struct CoarseComponent {
    /// ln π_k.
    log_weight: f64,
    /// The density of the component itself, not of the compressed one.
    density: Density,
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
    /// Bounds for a pass of this model over so many samples, if they can be expected to cost much less than what they save.
    pub(crate) fn new(model: &Mixture, reference: &[T], samples: usize) -> Option<Self> {
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
            .filter(|(sides, _)| setting_up(model, sides) < SETTING_UP * whole * samples as f64)
            .collect();
        let (largest, _) = candidates.last()?.clone();
        // The bounds see the samples less the rounded reference, as the plan does.
        let rounded: Vec<f64> = reference.iter().map(|g| g.to_f64()).collect();
        let bases = bases(model, &rounded, &largest)?;
        let full = model.components();
        let compressed = parallel::map(full.len(), |k| Compressed::new(&full[k], shape, &rounded, &bases));
        let unit = model.unit_variance();
        let densities: Vec<Density> = full.iter().map(|c| Density::relative(c, unit)).collect();
        candidates.retain_mut(|(sides, cost)| {
            let left = expected_to_be_left(model, &compressed, &densities, sides);
            *cost += ALONE * (left - 1.0 / components).max(0.0) * whole;
            *cost < WORTH * whole
        });
        let (sides, _) = candidates.into_iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let small = parallel::map(compressed.len(), |k| compressed[k].component(&sides));
        let small = small.into_iter().collect::<Option<Vec<Component>>>()?;
        let small = Mixture::new(&sides, model.weights().to_vec(), small).ok()?;
        let plan = Plan::around(&small, 0, &vec![0.0; small.sample_len()]);
        let components = densities.into_iter().zip(&plan.components).zip(model.weights());
        let components = components.map(|((density, small), weight)| CoarseComponent {
            log_weight: weight.ln(),
            density,
            mean_norm: small.mean_norm,
        });
        let components = components.collect();
        let narrowed = bases.iter().zip(&sides).map(|(w, &s)| w.first_cols(s)).collect();
        let compress = Component::new(shape, rounded.clone(), narrowed, 1.0).ok()?;
        let compress = Mixture::new(shape, vec![1.0], vec![compress]).ok()?;
        let compress = StackedModel::new(&Plan::around(&compress, 0, &rounded));
        Some(Self {
            compress,
            stacked: StackedModel::new(&plan),
            means: MeansAbreast::new(&plan),
            components,
        })
    }

    pub(crate) fn scratch(&self) -> Bounds<T> {
        let compressed = Stack::new(&self.compress, 1);
        let samples = compressed.densities.samples;
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
        for sample in 0..count {
            self.square(stacked, sample);
            let (norm, inner) = (self.stack.norm(sample), &self.inner[sample * means.width..]);
            let values = &mut self.values[sample * components.len()..(sample + 1) * components.len()];
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
                let delta = component.density.mahalanobis(distance, 0.0);
                values[k] = component.log_weight + component.density.log_density(delta);
            }
        }
    }

    /// Σ Y²/(s + σ²) of all lanes of a compressed sample.
    #[inline(always)]
    fn square(&mut self, stacked: &StackedModel<T>, sample: usize) {
        let width = stacked.width;
        self.squares.fill(T::from_f64(0.0));
        let rows = self.stack.y(sample).chunks_exact(width);
        for (y, precision) in rows.zip(stacked.rounded_precision.chunks_exact(width)) {
            // A plain loop: an iterator's `for_each` may be compiled apart, without the wide instructions.
            let squares = &mut self.squares[..width];
            for l in 0..width {
                squares[l] += y[l] * y[l] * precision[l];
            }
        }
    }

    /// The bounds on all components for a sample of the block.
    pub(crate) fn of(&self, sample: usize) -> &[f64] {
        let count = self.values.len() / self.compressed.densities.samples;
        &self.values[sample * count..(sample + 1) * count]
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

/// Multiply-adds it takes to find bases with so many directions.
fn setting_up(model: &Mixture, sides: &[usize]) -> f64 {
    let (size, components) = (model.sample_len(), model.n_components());
    let mode = |(d, (&p, &side)): (usize, (&usize, &usize))| {
        let vectors = (components * (size / p + model.rank()[d])) as f64;
        let p = p as f64;
        if p <= SCATTER_SIDE as f64 {
            vectors * p * p + 4.0 * p * p * p
        } else {
            ROUGH_PRODUCTS * vectors * p * side as f64 + p * (side * side) as f64
        }
    };
    model.shape().iter().zip(sides).enumerate().map(mode).sum()
}

/// Per mode the directions in which the model says samples vary most, within components and between them.
fn bases(model: &Mixture, reference: &[f64], sides: &[usize]) -> Option<Vec<Matrix>> {
    (0..sides.len())
        .map(|d| match model.shape()[d] <= SCATTER_SIDE {
            true => scatter_basis(model, reference, d, sides[d]),
            false => rough_basis(model, reference, d, sides[d]),
        })
        .collect()
}

/// The means and loadings of a component, whose scatter along mode d is that of its samples but for the noise: the mean
/// with its sides, then p_d × r_d loadings.
fn scattered(model: &Mixture, reference: &[f64], d: usize, k: usize) -> (Vec<f64>, Matrix) {
    let (component, weight) = (&model.components()[k], model.weights()[k]);
    let root = weight.sqrt();
    let mean = component.mean().iter().zip(reference).map(|(m, g)| root * (m - g)).collect();
    let others: f64 = component.other_variances(d).iter().sum();
    let mut u = component.loadings()[d].clone();
    u.scale((weight * others).sqrt());
    (mean, u)
}

fn scatter_basis(model: &Mixture, reference: &[f64], d: usize, side: usize) -> Option<Matrix> {
    let (p, after) = (model.shape()[d], model.shape()[d + 1..].iter().product::<usize>());
    let scatters = parallel::map(model.n_components(), |k| {
        let (mean, u) = scattered(model, reference, d, k);
        let mut scatter = Matrix::zeros(p, p);
        for slab in mean.chunks_exact(p * after) {
            add_rows_gram(slab, p, scatter.as_mut_slice());
        }
        add_rows_gram(u.as_slice(), p, scatter.as_mut_slice());
        scatter
    });
    let mut scatter = Matrix::zeros(p, p);
    scatters.iter().for_each(|own| scatter.add_scaled(1.0, own));
    scatter.mirror_lower();
    Some(leading_eigen(&scatter, side)?.vectors)
}

/// The same where a scatter would be large: any orthonormal directions make a bound, the best only a better one.
fn rough_basis(model: &Mixture, reference: &[f64], d: usize, side: usize) -> Option<Matrix> {
    let (p, after) = (model.shape()[d], model.shape()[d + 1..].iter().product::<usize>());
    let mut rows = Vec::new();
    for k in 0..model.n_components() {
        let (mean, u) = scattered(model, reference, d, k);
        for slab in mean.chunks_exact(p * after) {
            for m in 0..after {
                rows.extend(slab[m..].iter().step_by(after));
            }
        }
        rows.extend(u.transpose().as_slice());
    }
    let rows = Matrix::from_vec(rows.len() / p, p, rows);
    Some(rough_eigen_of_rows(rows, side)?.vectors)
}

/// A component of samples compressed by bases. Its leading blocks are what fewer directions of the same bases would have
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
/// distance of the compressed means beside the compressed deviation.
fn expected_to_be_left(
    model: &Mixture,
    components: &[Compressed],
    densities: &[Density],
    sides: &[usize],
) -> f64 {
    let count = components.len();
    let dimensions = sides.iter().product::<usize>() as f64;
    let pairs = PAIRS.min(count);
    let joint = |k: usize, delta: f64| model.weights()[k].ln() + densities[k].log_density(delta);
    let left = parallel::map(pairs, |pair| {
        let (one, other) = (pair * count / pairs, (pair * count / pairs + 1 + pair) % count);
        let Some(to) = components[other].component(sides) else { return true };
        let offset: Vec<f64> =
            components[one].mean(sides).iter().zip(to.mean()).map(|(a, b)| a - b).collect();
        let y = project(&offset, sides, to.loadings(), None);
        let density = Density::new(&to);
        let explained: f64 = y.iter().zip(&density.precision).map(|(y, p)| y * y * p).sum();
        let distance: f64 = offset.iter().map(|x| x * x).sum();
        let seen = density.mahalanobis(distance, explained) + dimensions;
        one != other && joint(other, seen) >= joint(one, model.sample_len() as f64) - HOPELESS
    });
    left.iter().filter(|&&left| left).count() as f64 / pairs as f64
}
