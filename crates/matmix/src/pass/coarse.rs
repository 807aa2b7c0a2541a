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

use super::block::{Block, Origin, Picked};
use super::contract::contract_steps;
use super::pack::{Fetch, PACKING, Packed, Panel};
use super::plan::{Plan, Step, steps};
use super::simd::Real;
use crate::linalg::{Matrix, add_rows_gram, leading_eigen, project};
use crate::model::{Component, Mixture};

/// e^−45 is far below what double precision can add to 1, with room for the rounding of the bounds.
const HOPELESS: f64 = 45.0;

/// The elements of a compressed sample are this fraction of those of a sample: on digits a ninth leaves 2 components
/// out of 30 (1.1 are not negligible), a sixteenth 3, a quarter 1.4.
const COMPRESSION: f64 = 9.0;

/// Bounds that leave more than this share of the components are not worth their cost.
const USEFUL: f64 = 0.6;

/// Cheap bounds for all components of a model.
pub(crate) struct Coarse<T> {
    /// How samples are packed and compressed: W per mode.
    panel: Panel,
    compress: Vec<Step>,
    bases: Vec<Vec<T>>,
    /// The compressed model.
    plan: Plan<T>,
    /// ln π_k plus what turns the compressed density into the bound.
    constants: Vec<f64>,
}

/// What a thread needs for it.
pub(crate) struct Bounds<T> {
    packed: Packed<T>,
    stages: Vec<Vec<T>>,
    block: Block<T>,
    norms: Vec<f64>,
    all: Vec<usize>,
    /// The bound on ln π_k p(X|k), `[sample of the chunk][component]`.
    values: Vec<f64>,
    /// The component with the largest bound, per sample of the chunk.
    likely: Vec<u32>,
}

impl<T: Real> Coarse<T> {
    /// Bounds for this model, if they can be expected to cost much less than what they save.
    pub(crate) fn new(model: &Mixture, reference: &[f64]) -> Option<Self> {
        let (shape, rank) = (model.shape(), model.rank());
        let factor = COMPRESSION.powf(1.0 / shape.len() as f64);
        let sides: Vec<usize> = shape
            .iter()
            .zip(rank)
            .map(|(&p, &r)| ((p as f64 / factor).ceil() as usize).max(r).min(p))
            .collect();
        let compress = steps(shape, &sides, 0);
        let components = model.n_components() as f64;
        let whole = components * cost(shape, &steps(shape, rank, 0), true);
        let cheap = components * cost(&sides, &steps(&sides, rank, 0), true);
        let once = cost(shape, &compress, false) + (PACKING * model.sample_len()) as f64;
        if once + cheap > 0.5 * whole {
            return None;
        }
        let bases = bases(model, reference, &sides)?;
        let parts: Option<Vec<Component>> =
            model.components().iter().map(|c| compressed(c, shape, &sides, reference, &bases)).collect();
        let small = Mixture::new(&sides, model.weights().to_vec(), parts?).ok()?;
        let plan = Plan::new(&small, 0);
        let constants = model
            .weights()
            .iter()
            .zip(model.components())
            .zip(&plan.components)
            .map(|((weight, component), small)| {
                weight.ln() + crate::model::Density::new(component).peak() - small.density.peak()
            })
            .collect();
        let bases = bases.iter().map(|w| w.as_slice().iter().map(|&x| T::from_f64(x)).collect()).collect();
        Some(Self { panel: Panel::whole(model.sample_len()), compress, bases, plan, constants })
    }

    pub(crate) fn scratch(&self) -> Bounds<T> {
        let packed = Packed::new([&self.panel]);
        let lanes = packed.lanes;
        Bounds {
            stages: self.compress.iter().map(|s| vec![T::from_f64(0.0); s.out_len() * lanes]).collect(),
            packed,
            block: Block::new(&self.plan),
            norms: vec![0.0; lanes],
            all: (0..self.plan.components.len()).collect(),
            values: Vec::new(),
            likely: Vec::new(),
        }
    }
}

impl<T: Real> Bounds<T> {
    /// Forgets the chunk before.
    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.likely.clear();
    }

    /// Bounds for the next samples of the chunk, which must come in order.
    #[inline(always)]
    pub(crate) fn add<S: Simd>(&mut self, simd: S, coarse: &Coarse<T>, reference: &[T], picked: Picked<'_>) {
        let lanes = self.packed.lanes;
        self.packed.fill(simd, &coarse.panel, picked.chunk, picked.of, picked.scale, reference);
        let mut fetch = Fetch::new(picked.chunk, reference.len(), &coarse.panel, picked.next);
        let share = fetch.lines().div_ceil(2);
        fetch.advance(share);
        let (steps, stages) = (&coarse.compress, &mut self.stages);
        contract_steps(simd, &self.packed.x, steps, &coarse.bases, lanes, stages);
        fetch.advance(share);
        let x = self.stages.last().map_or(&[][..], Vec::as_slice);
        self.norms.fill(0.0);
        for row in x.chunks_exact(lanes) {
            for lane in 0..lanes {
                let value = row[lane].to_f64();
                self.norms[lane] += value * value;
            }
        }
        let origin = Origin::Lanes { x, norms: &self.norms };
        self.block.evaluate(simd, &coarse.plan, origin, &self.all, 0);
        let k = self.all.len();
        for lane in 0..picked.of.len() {
            let (mut best, mut largest) = (0, f64::NEG_INFINITY);
            for c in 0..k {
                let bound = self.block.log_density[c * lanes + lane] + coarse.constants[c];
                self.values.push(bound);
                if bound > largest {
                    (best, largest) = (c, bound);
                }
            }
            self.likely.push(best as u32);
        }
    }

    /// The component with the largest bound for a sample of the chunk.
    pub(crate) fn likely(&self, sample: u32) -> usize {
        self.likely[sample as usize] as usize
    }

    /// Whether component `k` may matter for a sample whose largest density so far is `largest`. Not a number means
    /// that it has to be looked at.
    #[inline(always)]
    pub(crate) fn may_matter(&self, sample: u32, k: usize, largest: f64) -> bool {
        let bound = self.values[sample as usize * self.all.len() + k];
        bound >= largest - HOPELESS || bound.is_nan() || largest.is_nan()
    }

    /// Whether the bounds of these samples, whose densities are all known, would have saved enough.
    pub(crate) fn are_useful(&self, samples: &[u32], largest: &[f64]) -> bool {
        let k = self.all.len();
        let left: usize = samples
            .iter()
            .zip(largest)
            .map(|(&n, &largest)| (0..k).filter(|&c| self.may_matter(n, c, largest)).count())
            .sum();
        (left as f64) < USEFUL * (samples.len() * k) as f64
    }
}

/// Multiply-adds per sample of a contraction, with those of the distance to the mean if it is needed.
fn cost(shape: &[usize], steps: &[Step], distance: bool) -> f64 {
    let contraction: usize = steps.iter().map(|s| s.before * s.n * s.after * s.cols).sum();
    (contraction + if distance { shape.iter().product() } else { 0 }) as f64
}

/// Per mode the directions in which the model says samples vary most, within components and between them.
fn bases(model: &Mixture, reference: &[f64], sides: &[usize]) -> Option<Vec<Matrix>> {
    let shape = model.shape();
    (0..shape.len())
        .map(|d| {
            let (p, after) = (shape[d], shape[d + 1..].iter().product::<usize>());
            let (mut scatter, mut between) = (Matrix::zeros(p, p), Matrix::zeros(p, p));
            for (&weight, component) in model.weights().iter().zip(model.components()) {
                let root = weight.sqrt();
                let mean: Vec<f64> =
                    component.mean().iter().zip(reference).map(|(m, g)| root * (m - g)).collect();
                for slab in mean.chunks_exact(p * after) {
                    add_rows_gram(slab, p, between.as_mut_slice());
                }
                let others: f64 = component.other_variances(d).iter().sum();
                let u = &component.loadings()[d];
                scatter.add_scaled(weight * others, &u.times_transpose(u));
            }
            for i in 0..p {
                for j in 0..=i {
                    scatter[(i, j)] += between[(i, j)];
                    scatter[(j, i)] = scatter[(i, j)];
                }
            }
            Some(leading_eigen(&scatter, sides[d])?.vectors)
        })
        .collect()
}

/// A component of compressed samples.
fn compressed(
    component: &Component,
    shape: &[usize],
    sides: &[usize],
    reference: &[f64],
    bases: &[Matrix],
) -> Option<Component> {
    let mean: Vec<f64> = component.mean().iter().zip(reference).map(|(m, g)| m - g).collect();
    let mean = project(&mean, shape, bases, None);
    let loadings = component.loadings().iter().zip(bases).map(|(u, w)| w.transpose_times(u)).collect();
    Component::new(sides, mean, loadings, component.noise_variance()).ok()
}
