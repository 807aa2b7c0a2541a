//! The EM pass: the evaluator, and the sums.

use pulp::{Simd, WithSimd};

use super::components_abreast::StackProducts;
use super::evaluator::{Consumer, Evaluated, Evaluator, EvaluatorScratch, Found, Way};
use super::joint::Joint;
use super::load::Stored;
use super::partial::{
    PartialConsumer, PartialFound, PartialGroup, PartialModel, PartialPattern, PartialScratch, PartialSums,
};
use super::plan::{Plan, cheapest_last};
use super::redo::{self, Work};
use super::samples_abreast::{SampleBlock, SampleProducts};
use crate::data::Samples;
use crate::error::Result;
use crate::pass::{EmPass, EmSums, LoadingSums, Update};
use crate::simd::Aligned;
use crate::simd::{Instructions, Real};
use crate::walk::{RUN_LEAST, RUN_OF_LARGE_SUMS};

/// Responsibilities below this add nothing that double precision could hold.
pub(super) const NEGLIGIBLE: f64 = 1e-12;

/// Bytes of the sums of one mode that are added as seldom as makes sense: with 100 components of 28×28 twice as many additions took 4 % of a
/// pass over 6,000 samples.
const LARGE_SUMS: usize = 1 << 19;

/// One pass over all samples.
pub(super) fn em(pass: &EmPass, samples: &Samples<'_>, on: Instructions) -> Result<EmSums> {
    em_by(pass, samples, on, Way::Best(samples.len()))
}

/// The same in a given way.
pub(super) fn em_by(pass: &EmPass, samples: &Samples<'_>, on: Instructions, way: Way) -> Result<EmSums> {
    let double = pass.precision.is_double(samples.element(), &pass.model);
    redo::sum(samples, on, double, &Em { pass, way })
}

struct Em<'a> {
    pass: &'a EmPass,
    way: Way,
}

/// What a thread reuses.
struct EmScratch<T> {
    evaluator: EvaluatorScratch<T>,
    loadings: Loadings<T>,
    /// The components that one sample has a share in that is not negligible: which slot, γ and a = γ u, both times its weight.
    kept: Vec<(usize, f64, f64)>,
    /// For samples with missing cells, when the first of them is met.
    partial: Option<(PartialScratch<T>, PartialSums<T>)>,
}

/// The sums of samples that have not been brought to double precision yet.
enum Loadings<T> {
    /// Every mode.
    Joint(Joint<T>),
    /// One mode, components side by side.
    Stack(StackProducts<T>, Means<T>),
    /// One mode, samples side by side; a of a block, `[component][lane]`.
    Samples(SampleProducts<T>, Means<T>, Vec<T>),
}

/// Σ a (X − G), Σ γ and Σ a per component.
struct Means<T> {
    size: usize,
    means: Aligned<T>,
    weights: Vec<f64>,
    scales: Vec<f64>,
}

impl Work for Em<'_> {
    type Sum = EmSums;
    type Setup<T: Real> = Evaluator<T>;
    type Scratch<T: Real> = EmScratch<T>;

    fn setup<T: Real>(&self) -> Evaluator<T> {
        let model = &self.pass.model;
        let last = match self.pass.update {
            Update::All => cheapest_last(model.shape(), model.rank()),
            Update::Mode(d) => d,
        };
        Evaluator::new(model, last, self.way)
    }

    fn scratch<T: Real>(&self, evaluator: &Evaluator<T>) -> EmScratch<T> {
        let plan = &evaluator.plan;
        let loadings = match (self.pass.update, &evaluator.stacked) {
            (Update::All, _) => Loadings::Joint(Joint::new(plan)),
            (_, Some(stacked)) => Loadings::Stack(StackProducts::new(plan, stacked), Means::new(plan)),
            (_, None) => {
                let lanes = super::samples_abreast::lanes::<T>();
                let weights = vec![T::from_f64(0.0); plan.components.len() * lanes];
                Loadings::Samples(SampleProducts::new(plan, lanes), Means::new(plan), weights)
            }
        };
        let kept = Vec::with_capacity(plan.components.len());
        EmScratch { evaluator: evaluator.scratch(), loadings, kept, partial: None }
    }

    fn zero(&self) -> EmSums {
        EmSums::zero(&self.pass.model, self.pass.update)
    }

    fn add<T: Real>(
        &self,
        on: Instructions,
        evaluator: &Evaluator<T>,
        scratch: &mut EmScratch<T>,
        stored: Stored<'_>,
        sum: &mut EmSums,
        left_out: &mut Vec<usize>,
    ) {
        on.run::<T, _>(Accumulate { evaluator, scratch, stored, sum, left_out });
    }

    fn add_partial<T: Real>(
        &self,
        on: Instructions,
        evaluator: &Evaluator<T>,
        scratch: &mut EmScratch<T>,
        stored: Stored<'_>,
        holes: &[usize],
        sum: &mut EmSums,
        left_out: &mut Vec<usize>,
    ) {
        let of = evaluator.partial(&self.pass.model);
        scratch.partial.get_or_insert_with(|| (of.scratch(), PartialSums::new(of, self.pass.update)));
        on.run::<T, _>(AccumulatePartial { evaluator, of, scratch, stored, holes, sum, left_out });
    }

    fn finish<T: Real>(
        &self,
        on: Instructions,
        evaluator: &Evaluator<T>,
        scratch: &mut EmScratch<T>,
        sum: &mut EmSums,
    ) {
        on.run::<T, _>(Finish { plan: &evaluator.plan, loadings: &mut scratch.loadings, sum });
        if let Some((_, sums)) = &mut scratch.partial {
            sums.finish(sum);
        }
    }

    fn merge(&self, sum: &mut EmSums, following: &EmSums) {
        sum.append(following);
    }

    fn sum_bytes(&self) -> usize {
        let model = &self.pass.model;
        EmSums::bytes(model.shape(), model.rank(), model.n_components(), self.pass.update)
    }

    /// Those of every mode are counted before such a pass is chosen.
    fn least(&self) -> usize {
        let of_one_mode = matches!(self.pass.update, Update::Mode(_));
        if of_one_mode && self.sum_bytes() > LARGE_SUMS { RUN_OF_LARGE_SUMS } else { RUN_LEAST }
    }
}

struct Accumulate<'a, T> {
    evaluator: &'a Evaluator<T>,
    scratch: &'a mut EmScratch<T>,
    stored: Stored<'a>,
    sum: &'a mut EmSums,
    left_out: &'a mut Vec<usize>,
}

impl<T: Real> WithSimd for Accumulate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { evaluator, scratch, stored, sum, left_out } = self;
        let EmScratch { evaluator: room, loadings, kept, .. } = scratch;
        let mut summing = Summing { loadings, kept, sum, left_out };
        evaluator.show(simd, room, stored, &mut summing);
        // The sums of one mode are small; those of every mode are moved when they are due.
        if !matches!(loadings, Loadings::Joint(_)) {
            simd.vectorize(Finish { plan: &evaluator.plan, loadings, sum });
        }
    }
}

struct AccumulatePartial<'a, T> {
    evaluator: &'a Evaluator<T>,
    of: &'a PartialModel<T>,
    scratch: &'a mut EmScratch<T>,
    stored: Stored<'a>,
    holes: &'a [usize],
    sum: &'a mut EmSums,
    left_out: &'a mut Vec<usize>,
}

impl<T: Real> WithSimd for AccumulatePartial<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { evaluator, of, scratch, stored, holes, sum, left_out } = self;
        let EmScratch { partial: Some((room, sums)), loadings, .. } = scratch else { return };
        let joint = match loadings {
            Loadings::Joint(joint) => Some(joint),
            _ => None,
        };
        let mut summing = PartialSumming { plan: &evaluator.plan, sums, joint, sum };
        of.show(simd, room, stored, holes, evaluator.cutoff, &mut summing, left_out);
    }
}

struct Finish<'a, T> {
    plan: &'a Plan<T>,
    loadings: &'a mut Loadings<T>,
    sum: &'a mut EmSums,
}

impl<T: Real> WithSimd for Finish<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        flush(simd, self.plan, self.loadings, self.sum);
    }
}

/// Sums up evaluated samples.
struct Summing<'a, T> {
    loadings: &'a mut Loadings<T>,
    kept: &'a mut Vec<(usize, f64, f64)>,
    sum: &'a mut EmSums,
    left_out: &'a mut Vec<usize>,
}

impl<T: Real> Consumer<T> for Summing<'_, T> {
    #[inline(always)]
    fn sample<S: Simd>(&mut self, simd: S, found: &Found<'_, T>) {
        let sum = &mut *self.sum;
        sum.n_samples += 1;
        sum.evaluated += found.components.len() as u64;
        let weight = found.stored.weight(found.n);
        if weight == 0.0 {
            return;
        }
        let log_likelihood = found.log_likelihood;
        sum.weight += weight;
        sum.log_likelihood += weight * log_likelihood;
        sum.log_likelihood_squares += weight * log_likelihood * log_likelihood;
        sum.note_likelihood(log_likelihood, found.stored.first + found.n);
        sum.squared_error += weight * found.squared_error();
        sum.components[found.components[found.best]].assigned += 1;
        self.kept.clear();
        for (slot, &k) in found.components.iter().enumerate() {
            let gamma = found.gamma[slot];
            if gamma > 0.0 && gamma < 1.0 {
                sum.entropy -= weight * gamma * gamma.ln();
            }
            if gamma > NEGLIGIBLE {
                let to = &mut sum.components[k];
                let gamma = gamma * weight;
                let (density, delta) = (&found.plan.components[k].density, found.mahalanobis(slot));
                let a = gamma * density.weight(delta);
                to.weight += gamma;
                to.scale += a;
                to.log_scale += gamma * density.log_weight(delta);
                to.squares += a * found.squared_distance(slot);
                self.kept.push((k, gamma, a));
            }
        }
        match &mut *self.loadings {
            Loadings::Joint(joint) => {
                for &(k, gamma, a) in &*self.kept {
                    if joint.add(simd, k, (gamma, a), found) {
                        joint.flush(simd, found.plan, k, &mut sum.components[k]);
                    }
                }
            }
            Loadings::Stack(products, means) => {
                for &(k, gamma, a) in &*self.kept {
                    means.add(found, k, gamma, a);
                    if let Evaluated::Components(stacked, stack) = found.evaluated {
                        products.add(simd, stacked, stack, found.sample, k, T::from_f64(a));
                    }
                }
            }
            Loadings::Samples(_, means, weights) => {
                let lanes = weights.len() / found.plan.components.len();
                for &(k, gamma, a) in &*self.kept {
                    means.add(found, k, gamma, a);
                    weights[k * lanes + found.sample] = T::from_f64(a);
                }
            }
        }
    }

    #[inline(always)]
    fn leave_out(&mut self, n: usize) {
        self.left_out.push(n);
    }

    #[inline(always)]
    fn block<S: Simd>(&mut self, simd: S, plan: &Plan<T>, block: &SampleBlock<T>) {
        if let Loadings::Samples(products, _, weights) = &mut *self.loadings {
            let lanes = weights.len() / plan.components.len();
            for (k, weights) in weights.chunks_exact(lanes).enumerate() {
                if weights.iter().any(|&a| a != T::from_f64(0.0)) {
                    products.add(simd, plan, block, k, weights);
                }
            }
            weights.fill(T::from_f64(0.0));
        }
    }
}

/// Sums up samples with missing cells.
struct PartialSumming<'a, T> {
    plan: &'a Plan<T>,
    sums: &'a mut PartialSums<T>,
    /// Where complete samples are gathered, if every mode is updated.
    joint: Option<&'a mut Joint<T>>,
    sum: &'a mut EmSums,
}

impl<T: Real> PartialConsumer<T> for PartialSumming<'_, T> {
    #[inline(always)]
    fn sample<S: Simd>(&mut self, simd: S, found: &PartialFound<'_, T>) {
        let sum = &mut *self.sum;
        sum.evaluated += found.gamma().len() as u64;
        let (sample, likelihood) = ((found.stored, found.n), found.log_likelihood);
        let noted = note(sum, sample, found.observed(), likelihood, found.best, || found.squared_error());
        let Some(weight) = noted else { return };
        add_entropy(sum, weight, found.gamma());
        for (k, &gamma) in found.gamma().iter().enumerate() {
            if gamma > NEGLIGIBLE {
                let joint = self.joint.as_deref_mut();
                self.sums.add(simd, self.plan, found, (k, gamma * weight), joint, &mut sum.components[k]);
            }
        }
    }

    #[inline(always)]
    fn pattern<S: Simd>(&mut self, simd: S, found: &PartialPattern<'_, T>) {
        self.sums.close(simd, self.plan, found, self.sum);
    }

    #[inline(always)]
    fn group<S: Simd>(&mut self, simd: S, group: &PartialGroup<'_, T>, left_out: &mut Vec<usize>) -> bool {
        match self.joint.as_deref_mut() {
            Some(joint) => self.sums.add_group(simd, self.plan, group, joint, self.sum, left_out),
            None => false,
        }
    }
}

/// Takes note of a sample of which so many cells were observed; its weight, if it has one.
pub(super) fn note(
    sum: &mut EmSums,
    (stored, n): (Stored<'_>, usize),
    observed: usize,
    log_likelihood: f64,
    best: usize,
    squared_error: impl FnOnce() -> f64,
) -> Option<f64> {
    sum.n_samples += 1;
    let weight = stored.weight(n);
    if weight == 0.0 {
        return None;
    }
    sum.weight += weight;
    sum.log_likelihood += weight * log_likelihood;
    sum.log_likelihood_squares += weight * log_likelihood * log_likelihood;
    // Densities of few and of many numbers do not compare: how badly a sample fits is counted per number.
    if observed > 0 {
        let per_cell = log_likelihood / observed as f64;
        sum.note_likelihood(per_cell * stored.sample_len as f64, stored.first + n);
    }
    sum.squared_error += weight * squared_error();
    sum.components[best].assigned += 1;
    Some(weight)
}

/// −Σ γ ln γ of a sample of this weight.
pub(super) fn add_entropy(sum: &mut EmSums, weight: f64, gamma: &[f64]) {
    for &gamma in gamma {
        if gamma > 0.0 && gamma < 1.0 {
            sum.entropy -= weight * gamma * gamma.ln();
        }
    }
}

impl<T: Real> Means<T> {
    fn new(plan: &Plan<T>) -> Self {
        let k = plan.components.len();
        Self {
            size: plan.sample_len,
            means: Aligned::new(T::from_f64(0.0), k * plan.sample_len),
            weights: vec![0.0; k],
            scales: vec![0.0; k],
        }
    }

    #[inline(always)]
    fn add(&mut self, found: &Found<'_, T>, k: usize, gamma: f64, a: f64) {
        self.weights[k] += gamma;
        self.scales[k] += a;
        let a = T::from_f64(a);
        let mean = &mut self.means[k * self.size..(k + 1) * self.size];
        match found.evaluated {
            Evaluated::Components(stacked, stack) => {
                let x = &stack.sample(stacked, found.sample, self.size)[..mean.len()];
                // A plain loop: an iterator's `for_each` may be compiled apart, without the wide instructions.
                for i in 0..mean.len() {
                    mean[i] += a * x[i];
                }
            }
            Evaluated::Samples(_) => found.stored.add(found.n, a, &found.plan.reference, mean),
        }
    }

    /// Moves what was added for component `k` to its sums in double precision; its γ.
    #[inline(always)]
    fn flush(&mut self, plan: &Plan<T>, k: usize, shift: &mut [f64]) -> f64 {
        let scale = std::mem::take(&mut self.scales[k]);
        let mean = &mut self.means[k * self.size..(k + 1) * self.size];
        for ((to, from), offset) in shift.iter_mut().zip(mean).zip(&plan.components[k].offset) {
            *to += from.to_f64() - scale * offset;
            *from = T::from_f64(0.0);
        }
        std::mem::take(&mut self.weights[k])
    }
}

/// Moves everything that was added to the sums in double precision.
#[inline(always)]
fn flush<T: Real, S: Simd>(simd: S, plan: &Plan<T>, loadings: &mut Loadings<T>, sum: &mut EmSums) {
    for (k, to) in sum.components.iter_mut().enumerate() {
        if let Loadings::Joint(joint) = loadings {
            if joint.is_pending(k) {
                joint.flush(simd, plan, k, to);
            }
            continue;
        }
        let (Loadings::Stack(_, means) | Loadings::Samples(_, means, _)) = loadings else { continue };
        if means.weights[k] == 0.0 {
            continue;
        }
        let weight = means.flush(plan, k, &mut to.shift);
        let LoadingSums::Mode { cross, weighted_gram, gram } = &mut to.loadings else {
            unreachable!("the sums of a pass that updates one mode")
        };
        match loadings {
            Loadings::Stack(products, _) => {
                products.flush(simd, k, cross, weighted_gram, gram, &mut to.core);
            }
            Loadings::Samples(products, ..) => {
                products.flush(simd, k, cross, weighted_gram, gram, &mut to.core);
            }
            Loadings::Joint(_) => {}
        }
        // What the posterior variance adds: j counts [before][r_d][after], the variances of the others [before][after].
        let last = plan.steps[plan.steps.len() - 1];
        let component = &plan.components[k];
        for (j, v) in component.posterior_variance.iter().enumerate() {
            let i = j / last.after % last.cols;
            let w = component.other_variances[j / (last.cols * last.after) * last.after + j % last.after];
            weighted_gram[(i, i)] += weight * v * w;
            gram[(i, i)] += weight * v;
        }
    }
}
