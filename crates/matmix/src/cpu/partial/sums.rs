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

use pulp::Simd;

use super::super::joint::Joint;
use super::super::plan::Plan;
use super::super::simd::Real;
use super::covariance::Covariance;
use super::fill::{Fill, FillRoom};
use super::modes::Sides;
use super::spread::{AddRows, Spread};
use super::{PartialFound, PartialModel, PartialPattern};
use crate::linalg::project;
use crate::pass::{ComponentSums, EmSums, LoadingSums, Update};

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
        to.weight += gamma;
        to.scale += a;
        to.log_scale += gamma * exponent.log_weight(delta);
        self.pending[k] += gamma;
        found.core(k, &mut self.core);
        let Self { core, rounded, filled, fill, .. } = self;
        match joint {
            Some(joint) => {
                if let Some(spread) = &self.spreads[k] {
                    spread.fetch(&found.pattern.missing);
                }
                let (x, q) = joint.next(k);
                round(core, q);
                to.squares += a * simd.vectorize(Fill { plan, found, k, core: q, room: fill, out: x });
                // Its V is added with its pattern.
                if joint.push(simd, k, (0.0, a)) {
                    joint.flush(simd, plan, k, to);
                }
            }
            None => {
                round(core, rounded);
                simd.vectorize(Fill { plan, found, k, core: rounded, room: fill, out: filled });
                self.add_mode(plan, found, k, a, to);
            }
        }
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
                self.add_covariance(simd, plan, pattern, (k, gamma), to);
            }
        }
    }

    #[inline(always)]
    fn add_covariance<S: Simd>(
        &mut self,
        simd: S,
        plan: &Plan<T>,
        pattern: &PartialPattern<'_, T>,
        (k, gamma): (usize, f64),
        to: &mut ComponentSums,
    ) {
        let (of, missing, v) = (pattern.of, &pattern.state.missing, &self.covariance);
        let component = &of.model.components()[k];
        // Σ u_iᵀ V u_i over the missing cells: ⟨diag(s) − T, V⟩, T = Λ − σ² I over the observed ones and Λ V = σ² I.
        let (noise, s) = (component.noise_variance(), &of.core_variances[k]);
        let mut spread = 0.0;
        for (j, s) in s.iter().enumerate() {
            spread += (s + noise) * v.row(j)[j] - noise;
        }
        to.squares += gamma * (missing.len() as f64 * noise + spread.max(0.0));
        match (&mut to.loadings, self.update) {
            (LoadingSums::All { gram, cross }, _) => {
                for (j, row) in gram.as_mut_slice().chunks_exact_mut(s.len()).enumerate() {
                    let v = &v.row(j)[..row.len()];
                    for l in 0..row.len() {
                        row[l] += gamma * v[l];
                    }
                }
                let spread = self.spreads[k].get_or_insert_with(|| Box::new(Spread::new(of)));
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

    /// Brings what is left to the sums.
    pub(in super::super) fn finish(&mut self, sum: &mut EmSums) {
        for (spread, to) in self.spreads.iter_mut().zip(&mut sum.components) {
            if let (Some(spread), LoadingSums::All { cross, .. }) = (spread, &mut to.loadings) {
                spread.flush(cross.as_mut_slice());
            }
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
