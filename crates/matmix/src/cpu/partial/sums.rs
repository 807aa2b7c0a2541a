//! The sums of an EM pass over samples with missing cells: those of the complete samples, in expectation (maths.md, eq. 12a–12c).
//!
//! With x̂ the sample less M₀ whose missing cells are u_iᵀ Q, a = γ u and V of the pattern of missing cells:
//!
//! ```text
//! F += a x̂ ⊗ Q, and the row of a missing cell i + γ u_iᵀ V        G += a Q ⊗ Q + γ V
//! s += a ‖x̂‖² + γ Σ_{i missing} (σ² + u_iᵀ V u_i)                 m += a x̂        b += a Q
//! ```
//!
//! x̂ and Q are a complete sample and its core: where a pass updates every mode they are gathered with the complete samples
//! ([`Joint`]). What V is part of is linear in γ, and V is the same for all samples of a pattern: it is added once per pattern.

use pulp::{Simd, WithSimd};

use super::super::joint::Joint;
use super::super::plan::Plan;
use super::covariance::Covariance;
use super::fibres::Fibres;
use super::fill::{Fill, FillRoom, Observed};
use super::masks::Cells;
use super::modes::Sides;
use super::spread::{AddRows, Spread};
use super::{PartialFound, PartialGroup, PartialModel, PartialPattern};
use crate::linalg::project;
use crate::pass::{ComponentSums, EmSums, LoadingSums, Update};
use crate::simd::Real;

/// The sums of a thread that are not in its [`EmSums`] yet.
pub(in super::super) struct PartialSums<T> {
    update: Update,
    /// Σ γ of the samples of the present pattern, per component.
    pending: Vec<f64>,
    /// What V adds to F of every component that has any.
    spreads: Vec<Option<Box<Spread<T>>>>,
    /// Room for a core, as it is and rounded, and for a sample.
    core: Vec<f64>,
    rounded: Vec<T>,
    filled: Vec<T>,
    fill: FillRoom<T>,
    covariance: Covariance,
    /// What is known about patterns of whole fibres.
    fibres: Fibres<T>,
}

impl<T: Real> PartialSums<T> {
    pub(in super::super) fn new(of: &PartialModel<T>, update: Update) -> Self {
        let (size, rho) = (of.model.sample_len(), of.model.core_len());
        Self {
            update,
            pending: vec![0.0; of.model.n_components()],
            spreads: (0..of.model.n_components()).map(|_| None).collect(),
            core: vec![0.0; rho],
            rounded: vec![T::from_f64(0.0); rho],
            filled: vec![T::from_f64(0.0); size],
            fill: FillRoom::new(of),
            covariance: Covariance::new(rho),
            fibres: Fibres::default(),
        }
    }

    /// A sample with a share in component `k`: γ times its weight. Where every mode is updated it is gathered with the complete ones.
    #[inline(always)]
    pub(in super::super) fn add<S: Simd>(
        &mut self,
        simd: S,
        plan: &Plan<T>,
        found: &PartialFound<'_, T>,
        (k, gamma): (usize, f64),
        joint: Option<&mut Joint<T>>,
        to: &mut ComponentSums,
    ) {
        let (exponent, delta) = (&found.pattern.exponents[k], found.state.deltas[k]);
        let a = gamma * exponent.weight(delta);
        to.log_scale += gamma * exponent.log_weight(delta);
        let (of, state) = (found.of, found.state);
        let sample = Observed { missing: &found.pattern.missing, x: &state.x, less: &state.less };
        match joint {
            Some(joint) => {
                let mut core = std::mem::take(&mut self.core);
                found.core(k, &mut core);
                self.gather(simd, plan, of, sample, &core, (k, gamma, a), joint, to);
                self.core = core;
            }
            None => {
                self.count((k, gamma, a), to);
                found.core(k, &mut self.core);
                let Self { core, rounded, filled, fill: room, .. } = self;
                round(core, rounded);
                simd.vectorize(Fill { plan, of, sample, k, core: rounded, room, out: filled });
                self.add_mode(plan, found, k, a, to);
            }
        }
    }

    /// γ and a of a sample; its V is added with its pattern.
    fn count(&mut self, (k, gamma, a): (usize, f64, f64), to: &mut ComponentSums) {
        to.weight += gamma;
        to.scale += a;
        self.pending[k] += gamma;
    }

    /// A sample with its missing cells filled in, and its core, beside the complete ones.
    #[inline(always)]
    pub(super) fn gather<S: Simd>(
        &mut self,
        simd: S,
        plan: &Plan<T>,
        of: &PartialModel<T>,
        sample: Observed<'_, T>,
        core: &[f64],
        (k, gamma, a): (usize, f64, f64),
        joint: &mut Joint<T>,
        to: &mut ComponentSums,
    ) {
        self.count((k, gamma, a), to);
        if let Some(spread) = &self.spreads[k] {
            spread.fetch(sample.missing);
        }
        let (x, q) = joint.next(k);
        round(core, q);
        let room = &mut self.fill;
        to.squares += a * simd.vectorize(Fill { plan, of, sample, k, core: q, room, out: x });
        if joint.push(simd, k, (0.0, a)) {
            joint.flush(simd, plan, k, to);
        }
    }

    /// Many samples of which the same whole fibres are missing; false if they are none.
    #[inline(always)]
    pub(in super::super) fn add_group<S: Simd>(
        &mut self,
        simd: S,
        plan: &Plan<T>,
        group: &PartialGroup<'_, T>,
        joint: &mut Joint<T>,
        sum: &mut EmSums,
        left_out: &mut Vec<usize>,
    ) -> bool {
        let mut fibres = std::mem::take(&mut self.fibres);
        let smaller = fibres.of(group);
        let is_one = smaller.is_some();
        if let Some(smaller) = smaller {
            smaller.add(simd, plan, group, self, joint, sum, left_out);
        }
        self.fibres = fibres;
        is_one
    }

    /// The same where one mode is updated.
    fn add_mode(
        &mut self,
        plan: &Plan<T>,
        found: &PartialFound<'_, T>,
        k: usize,
        a: f64,
        to: &mut ComponentSums,
    ) {
        let model = &found.of.model;
        let (component, lacking) = (&model.components()[k], &plan.components[k].lacking);
        let (LoadingSums::Mode { cross, weighted_gram, gram }, Update::Mode(d)) =
            (&mut to.loadings, self.update)
        else {
            unreachable!("the sums of a pass that updates one mode")
        };
        let x: Vec<f64> = self.filled.iter().zip(lacking).map(|(x, lacking)| x.to_f64() - lacking).collect();
        let q = &self.core[..];
        to.squares += a * x.iter().map(|x| x * x).sum::<f64>();
        to.shift.iter_mut().zip(&x).for_each(|(to, x)| *to += a * x);
        to.core.iter_mut().zip(q).for_each(|(to, q)| *to += a * q);
        let z = project(&x, model.shape(), component.loadings(), Some(d));
        let sides = Sides::around(model.rank(), d);
        sides.add_product(a, &z, q, None, cross);
        sides.add_product(a, q, q, Some(&component.other_variances(d)), weighted_gram);
        sides.add_product(a, q, q, None, gram);
    }

    /// What the posterior covariance adds for all samples of a pattern.
    #[inline(always)]
    pub(in super::super) fn close<S: Simd>(
        &mut self,
        simd: S,
        plan: &Plan<T>,
        pattern: &PartialPattern<'_, T>,
        sum: &mut EmSums,
    ) {
        for (k, to) in sum.components.iter_mut().enumerate() {
            let gamma = std::mem::take(&mut self.pending[k]);
            if gamma > 0.0 {
                self.covariance.find(simd, pattern, k);
                let Self { update, covariance: v, spreads, .. } = self;
                let (pattern, spread) = ((pattern.of, &pattern.state.missing), &mut spreads[k]);
                let share = (k, gamma);
                simd.vectorize(AddCovariance { plan, pattern, update: *update, v, share, spread, to });
            }
        }
    }

    /// The same with the covariances given.
    #[inline(always)]
    pub(super) fn close_with<S: Simd>(
        &mut self,
        simd: S,
        plan: &Plan<T>,
        pattern: (&PartialModel<T>, &Cells),
        covariances: &[Covariance],
        sum: &mut EmSums,
    ) {
        for (k, (to, v)) in sum.components.iter_mut().zip(covariances).enumerate() {
            let gamma = std::mem::take(&mut self.pending[k]);
            if gamma > 0.0 {
                let (update, share, spread) = (self.update, (k, gamma), &mut self.spreads[k]);
                simd.vectorize(AddCovariance { plan, pattern, update, v, share, spread, to });
            }
        }
    }

    /// Brings what is left to the sums.
    pub(in super::super) fn finish(&mut self, sum: &mut EmSums) {
        for (spread, to) in self.spreads.iter_mut().zip(&mut sum.components) {
            if let (Some(spread), LoadingSums::All { cross, .. }) = (spread, &mut to.loadings) {
                spread.flush(cross.as_mut_slice());
            }
        }
    }
}

/// What V adds for samples of component `k` whose γ sum up to this.
struct AddCovariance<'a, T> {
    plan: &'a Plan<T>,
    pattern: (&'a PartialModel<T>, &'a Cells),
    update: Update,
    v: &'a Covariance,
    share: (usize, f64),
    spread: &'a mut Option<Box<Spread<T>>>,
    to: &'a mut ComponentSums,
}

impl<T: Real> WithSimd for AddCovariance<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { plan, pattern: (of, missing), update, v, share: (k, gamma), spread, to } = self;
        let component = &of.model.components()[k];
        // Σ u_iᵀ V u_i over the missing cells: ⟨diag(s) − T, V⟩, T = Λ − σ² I over the observed ones and Λ V = σ² I.
        let (noise, s) = (component.noise_variance(), &of.core_variances[k]);
        let mut missed = 0.0;
        for (j, s) in s.iter().enumerate() {
            missed += (s + noise) * v.row(j)[j] - noise;
        }
        to.squares += gamma * (missing.len() as f64 * noise + missed.max(0.0));
        match (&mut to.loadings, update) {
            (LoadingSums::All { gram, cross }, _) => {
                for (j, row) in gram.as_mut_slice().chunks_exact_mut(s.len()).enumerate() {
                    let v = &v.row(j)[..row.len()];
                    for l in 0..row.len() {
                        row[l] += gamma * v[l];
                    }
                }
                let spread = spread.get_or_insert_with(|| Box::new(Spread::new(of)));
                spread.take(v, gamma);
                let loadings = &plan.components[k].loadings[of.pairs.len() - 1];
                simd.vectorize(AddRows { of, k, loadings, missing, to: spread });
                if spread.is_due() {
                    spread.flush(cross.as_mut_slice());
                }
            }
            (LoadingSums::Mode { cross, weighted_gram, gram }, Update::Mode(d)) => {
                let sides = Sides::around(of.model.rank(), d);
                sides.add_trace(gamma, v, Some(&component.other_variances(d)), weighted_gram);
                sides.add_trace(gamma, v, None, gram);
                sides.add_rows(gamma, v, component, of.model.shape(), missing.places(), d, cross);
            }
            (LoadingSums::Mode { .. }, Update::All) => unreachable!("sums of one mode"),
        }
    }
}

/// A core in the working precision.
#[inline(always)]
fn round<T: Real>(core: &[f64], out: &mut [T]) {
    for j in 0..core.len() {
        out[j] = T::from_f64(core[j]);
    }
}
