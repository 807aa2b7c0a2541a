//! Patterns in which whole fibres are missing: rows and columns of matrices, slices that a sensor did not deliver, any cells of vectors.
//!
//! Where the observed cells are all combinations of some indices I₁ × … × I_D, Λ keeps its Kronecker form:
//!
//! ```text
//! Σ_{i observed} u_i u_iᵀ = ⊗ U_Iᵀ U_I = K diag(s') Kᵀ,   K = ⊗ R^(d),   U_I^(d) R^(d) with orthogonal columns
//! Q = K Q',   V = K diag(v') Kᵀ
//! ```
//!
//! with Q', s' and v' of a smaller mixture that has loadings U_I^(d) R^(d) and the observed cells of the means, and of which the sample is a complete
//! one. Many samples with such a pattern are evaluated by the kernels of complete samples; making the smaller mixture ready is worth it for many
//! only, and it is kept for the chunks to come.

use pulp::Simd;

use super::super::em::{NEGLIGIBLE, add_entropy, note};
use super::super::evaluator::{Consumer, Evaluator, EvaluatorScratch, Found, Way};
use super::super::joint::Joint;
use super::super::load::Stored;
use super::super::plan::{Plan, cheapest_last};
use super::covariance::Covariance;
use super::fill::Observed;
use super::masks::Cells;
use super::sums::PartialSums;
use super::{PartialGroup, PartialModel};
use crate::linalg::{Matrix, expand, svd_thin};
use crate::model::Mixture;
use crate::pass::EmSums;
use crate::simd::Real;

/// Samples of a chunk with one pattern, and numbers of a core, from which on a smaller mixture is worth it: one factor of a smaller core is as
/// fast for all samples that share it.
const LEAST: usize = 32;
const LEAST_CORE: usize = 32;

/// How many smaller mixtures a thread keeps.
const KEPT: usize = 8;

/// The smaller mixtures a thread has made, the one that was needed last at the end.
pub(super) struct Fibres<T> {
    known: Vec<Smaller<T>>,
}

impl<T> Default for Fibres<T> {
    fn default() -> Self {
        Self { known: Vec::new() }
    }
}

/// A mixture of the observed cells of a pattern.
pub(super) struct Smaller<T> {
    mask: Vec<u64>,
    observed: Vec<usize>,
    missing: Cells,
    evaluator: Evaluator<T>,
    room: EvaluatorScratch<T>,
    /// R^(d) of every mode and V, component by component.
    rotations: Vec<Vec<Matrix>>,
    covariances: Vec<Covariance>,
    /// 0 where a cell is missing; room for a sample and for a core.
    less: Vec<T>,
    x: Vec<T>,
    core: Vec<f64>,
}

impl<T: Real> Fibres<T> {
    /// The smaller mixture for samples with one pattern, if they are many and what they lack is whole fibres.
    pub(super) fn of(&mut self, group: &PartialGroup<'_, T>) -> Option<&mut Smaller<T>> {
        if group.members.len() < LEAST || group.of.model.core_len() < LEAST_CORE {
            return None;
        }
        let mask = group.masks.of(group.members[0]);
        let smaller = match self.known.iter().position(|smaller| smaller.mask == mask) {
            Some(at) => self.known.remove(at),
            None => Smaller::new(group)?,
        };
        if self.known.len() == KEPT {
            self.known.remove(0);
        }
        self.known.push(smaller);
        self.known.last_mut()
    }
}

impl<T: Real> Smaller<T> {
    fn new(group: &PartialGroup<'_, T>) -> Option<Self> {
        let (of, at) = (group.of, group.members[0]);
        let (model, size, (_, side)) = (&of.model, of.model.sample_len(), of.last());
        let (mut missing, mut observed) = (Cells::default(), Cells::default());
        group.masks.cells(at, true, (size, side), &mut missing);
        group.masks.cells(at, false, (size, side), &mut observed);
        let sides = observed.sides(model.shape())?;
        let shape: Vec<usize> = sides.iter().map(Vec::len).collect();
        // With fewer rows than columns some of the core would be left to what is expected of it.
        if shape.iter().zip(model.rank()).any(|(p, r)| p < r) {
            return None;
        }
        let mut rotations = Vec::with_capacity(model.n_components());
        let mut components = Vec::with_capacity(model.n_components());
        for component in model.components() {
            let mut loadings = Vec::with_capacity(shape.len());
            let mut turned = Vec::with_capacity(shape.len());
            for (u, rows) in component.loadings().iter().zip(&sides) {
                let part = Matrix::from_fn(rows.len(), u.cols(), |i, j| u[(rows[i], j)]);
                let (w, sigma, r) = svd_thin(&part)?;
                loadings.push(Matrix::from_fn(w.rows(), w.cols(), |i, j| w[(i, j)] * sigma[j]));
                turned.push(r);
            }
            let mean = observed.places().iter().map(|&i| component.mean()[i]).collect();
            let smaller = component.clone().with_mean(mean).with_loadings(loadings);
            components.push(smaller.checked(&shape).ok()?);
            rotations.push(turned);
        }
        let smaller = Mixture::exactly(&shape, model.weights().to_vec(), components).ok()?;
        let smaller = smaller.with_classes(model.classes().cloned()).ok()?;
        let all = group.cutoff == f64::NEG_INFINITY;
        let way = if all { Way::AllDensities } else { Way::Best(group.stored.count()) };
        let evaluator = Evaluator::new(&smaller, cheapest_last(&shape, model.rank()), way);
        let variances = evaluator.plan.components.iter().map(|c| &c.posterior_variance);
        let mut less = vec![T::from_f64(-1.0); size];
        missing.places().iter().for_each(|&i| less[i] = T::from_f64(0.0));
        Some(Self {
            mask: group.masks.of(at).to_vec(),
            observed: observed.places().to_vec(),
            missing,
            room: evaluator.scratch(),
            covariances: rotations.iter().zip(variances).map(|(r, v)| Covariance::rotated(r, v)).collect(),
            evaluator,
            rotations,
            less,
            x: vec![T::from_f64(0.0); size],
            core: vec![0.0; model.core_len()],
        })
    }

    /// Adds the samples of a group to the sums of an EM pass.
    #[inline(always)]
    pub(super) fn add<S: Simd>(
        &mut self,
        simd: S,
        plan: &Plan<T>,
        group: &PartialGroup<'_, T>,
        sums: &mut PartialSums<T>,
        joint: &mut Joint<T>,
        sum: &mut EmSums,
        left_out: &mut Vec<usize>,
    ) {
        let which: Vec<usize> = group.members.iter().map(|&at| group.holes[at]).collect();
        let copied = group.stored.cells(&which, &self.observed);
        let Self { missing, evaluator, room, rotations, less, x, core, .. } = self;
        let mut summing = Summing {
            plan,
            of: group.of,
            stored: group.stored,
            which: &which,
            missing,
            less,
            rotations,
            x,
            core,
            sums: &mut *sums,
            joint,
            sum: &mut *sum,
            left_out,
        };
        evaluator.show(simd, room, copied.stored(group.stored), &mut summing);
        sums.close_with(simd, plan, (group.of, &self.missing), &self.covariances, sum);
    }
}

/// Sums up samples that were evaluated by a smaller mixture.
struct Summing<'a, T> {
    plan: &'a Plan<T>,
    of: &'a PartialModel<T>,
    /// The samples themselves, and which of them the smaller ones are.
    stored: Stored<'a>,
    which: &'a [usize],
    missing: &'a Cells,
    less: &'a [T],
    rotations: &'a [Vec<Matrix>],
    x: &'a mut [T],
    core: &'a mut [f64],
    sums: &'a mut PartialSums<T>,
    joint: &'a mut Joint<T>,
    sum: &'a mut EmSums,
    left_out: &'a mut Vec<usize>,
}

impl<T: Real> Consumer<T> for Summing<'_, T> {
    #[inline(always)]
    fn sample<S: Simd>(&mut self, simd: S, found: &Found<'_, T>) {
        let (n, size) = (self.which[found.n], self.x.len());
        let (sum, best) = (&mut *self.sum, found.components[found.best]);
        sum.evaluated += found.components.len() as u64;
        let observed = size - self.missing.len();
        let (stored, likelihood) = (self.stored, found.log_likelihood);
        let Some(weight) = note(sum, (stored, n), observed, likelihood, best, || found.squared_error())
        else {
            return;
        };
        add_entropy(sum, weight, found.gamma);
        stored.load(n, 0..size, &self.of.reference, self.x);
        let sample = Observed { missing: self.missing, x: self.x, less: self.less };
        for (slot, &k) in found.components.iter().enumerate() {
            let gamma = found.gamma[slot] * weight;
            if found.gamma[slot] > NEGLIGIBLE {
                let (density, delta) = (&found.plan.components[k].density, found.mahalanobis(slot));
                let a = gamma * density.weight(delta);
                let to = &mut sum.components[k];
                to.log_scale += gamma * density.log_weight(delta);
                found.core(k, self.core);
                let core = expand(self.core, &self.rotations[k]);
                let share = (k, gamma, a);
                self.sums.gather(simd, self.plan, self.of, sample, &core, share, self.joint, to);
            }
        }
    }

    #[inline(always)]
    fn leave_out(&mut self, n: usize) {
        self.left_out.push(self.which[n]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::masks::Masks;
    use super::super::modes::kronecker_row;
    use super::*;
    use crate::data::Chunk;
    use crate::model::Component;

    fn model(rank: usize) -> Mixture {
        let loading = |p: usize, by: f64| {
            Matrix::from_fn(p, rank, |i, j| {
                (by * (i * rank + j + 1) as f64).sin() + if i == j { 2.0 } else { 0.0 }
            })
        };
        let component = |k: f64| {
            let mean = (0..72).map(|i| (k + f64::from(i)).cos()).collect();
            Component::new(&[9, 8], mean, vec![loading(9, k), loading(8, k + 0.5)], 0.3 + k).unwrap()
        };
        Mixture::new(&[9, 8], vec![0.4, 0.6], vec![component(0.7), component(1.3)]).unwrap()
    }

    /// What is made of `count` samples that lack these cells.
    fn smaller(model: &Mixture, count: usize, is_missing: impl Fn(usize) -> bool) -> Option<Smaller<f64>> {
        let number = |i: usize| if is_missing(i % 72) { f64::NAN } else { i as f64 };
        let x: Vec<f64> = (0..72 * count).map(number).collect();
        let stored = Stored::plain(Chunk::F64(&x), 72);
        let evaluator = Evaluator::new(model, 0, Way::Best(count));
        let (of, holes) = (evaluator.partial(model), (0..count).collect::<Vec<_>>());
        let mut masks = Masks::default();
        masks.read(stored, &holes);
        let members = masks.groups().next().unwrap();
        let mut fibres = Fibres::default();
        let group = PartialGroup { of, stored, masks: &masks, members, holes: &holes, cutoff: -30.0 };
        let found = fibres.of(&group).is_some();
        assert_eq!(fibres.known.len(), usize::from(found));
        fibres.known.pop()
    }

    #[test]
    fn many_samples_without_whole_fibres_have_a_smaller_mixture() {
        let model = model(6);
        // Rows 1 and 4, column 2.
        let is_missing = |i: usize| [1, 4].contains(&(i / 8)) || i % 8 == 2;
        let found = smaller(&model, LEAST, is_missing).unwrap();
        assert_eq!((found.observed.len(), found.missing.len()), (49, 23));
        for (component, v) in model.components().iter().zip(&found.covariances) {
            let observed = (0..72).filter(|&i| !is_missing(i));
            let rows: Vec<Vec<f64>> =
                observed.map(|i| kronecker_row(component.loadings(), &[9, 8], i, None)).collect();
            let noise = component.noise_variance();
            // Λ V = σ² I.
            for j in 0..36 {
                let gram: Vec<f64> = (0..36).map(|m| rows.iter().map(|u| u[j] * u[m]).sum::<f64>()).collect();
                for l in 0..36 {
                    let product: f64 = gram.iter().enumerate().map(|(m, g)| g * v.row(m)[l]).sum();
                    let expected = if j == l { noise } else { 0.0 };
                    assert!((product + noise * v.row(j)[l] - expected).abs() < 1e-10);
                }
            }
        }
    }

    #[test]
    fn few_samples_other_cells_small_cores_and_too_few_rows_have_none() {
        let rows = |i: usize| i / 8 < 2;
        let large = model(6);
        assert!(smaller(&large, LEAST, rows).is_some());
        assert!(smaller(&large, LEAST - 1, rows).is_none());
        assert!(smaller(&large, LEAST, |i| i == 7).is_none());
        assert!(smaller(&large, LEAST, |i| i / 8 > 4).is_none());
        assert!(smaller(&large, LEAST, |_| true).is_none());
        assert!(smaller(&model(5), LEAST, rows).is_none());
    }
}
