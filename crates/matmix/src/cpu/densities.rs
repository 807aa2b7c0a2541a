//! What a block of samples is worth to the components: densities, and responsibilities from them.

use super::plan::{Plan, PlannedComponent};
use crate::model::not_negative;
use crate::simd::Real;

/// A squared distance below this share of the squares it is the difference of has lost too many digits: components
/// that lie far apart compared with their spread.
const CANCELLED: f64 = 1e-3;

/// Densities of the samples of a block under the components that were evaluated, one per slot.
pub(crate) struct Densities {
    /// How many samples a block has room for.
    pub(crate) samples: usize,
    /// ‖X − M‖², `[slot][sample]`.
    pub(crate) squared_distance: Vec<f64>,
    /// The Mahalanobis distance δ, `[slot][sample]`.
    pub(crate) mahalanobis: Vec<f64>,
    /// ln p(X|k) less the [`Plan::log_unit`], `[slot][sample]`.
    pub(crate) log_density: Vec<f64>,
}

/// ‖X − M‖² difference by difference.
#[cold]
pub(crate) fn squared_distance<T: Real>(x: &[T], mean: impl Iterator<Item = T>) -> f64 {
    x.iter().zip(mean).map(|(&x, m)| (x - m).to_f64()).map(|d| d * d).sum()
}

impl Densities {
    pub(crate) fn new(slots: usize, samples: usize) -> Self {
        let zeros = || vec![0.0; slots * samples];
        Self { samples, squared_distance: zeros(), mahalanobis: zeros(), log_density: zeros() }
    }

    /// Evaluates one density from ‖X − G‖², ⟨X − G, M − G⟩ and Σ Y²/(s + σ²); `directly` computes ‖X − M‖² where it
    /// cannot be had from the first two.
    #[inline(always)]
    pub(crate) fn set<T>(
        &mut self,
        (slot, sample): (usize, usize),
        component: &PlannedComponent<T>,
        (norm, inner): (f64, f64),
        explained: f64,
        directly: impl FnOnce() -> f64,
    ) {
        let squares = norm + component.mean_norm;
        let mut distance = squares - 2.0 * inner;
        if distance < CANCELLED * squares {
            distance = directly();
        }
        let at = slot * self.samples + sample;
        let delta = component.density.mahalanobis(distance, explained);
        self.squared_distance[at] = distance;
        self.mahalanobis[at] = delta;
        self.log_density[at] = component.density.log_density(delta);
    }

    /// ‖X − X̂‖², from what the core takes off ‖X − M‖².
    #[inline(always)]
    pub(crate) fn squared_error(&self, (slot, sample): (usize, usize), explained: f64) -> f64 {
        not_negative(self.squared_distance[slot * self.samples + sample] - explained)
    }

    /// Fills the responsibilities of one sample, those below e^`cutoff` with zero, and those of components that its class, if that
    /// is known, does not have; returns the slot of the most probable component and ln p(X), or ln p(X, c).
    #[inline(always)]
    pub(crate) fn responsibilities<T: Real>(
        &self,
        plan: &Plan<T>,
        components: &[usize],
        (sample, class): (usize, Option<u32>),
        cutoff: f64,
        gamma: &mut [f64],
    ) -> (usize, f64) {
        let gamma = &mut gamma[..components.len()];
        let (mut best, mut largest) = (0, f64::NEG_INFINITY);
        for (slot, (&k, gamma)) in components.iter().zip(gamma.iter_mut()).enumerate() {
            let joint = match plan.admits(class, k) {
                true => plan.components[k].log_weight + self.log_density[slot * self.samples + sample],
                false => f64::NEG_INFINITY,
            };
            *gamma = joint;
            if joint > largest {
                (best, largest) = (slot, joint);
            }
        }
        let mut sum = 0.0;
        for g in gamma.iter_mut() {
            let difference = *g - largest;
            // NaN falls through and is caught by the caller.
            *g = if difference < cutoff { 0.0 } else { difference.exp() };
            sum += *g;
        }
        for g in gamma.iter_mut() {
            *g /= sum;
        }
        (best, largest + sum.ln() + plan.log_unit)
    }

    /// The largest ln π_k p(X|k) of one sample.
    #[inline(always)]
    pub(crate) fn largest<T: Real>(&self, plan: &Plan<T>, components: &[usize], sample: usize) -> f64 {
        let mut largest = f64::NEG_INFINITY;
        for (slot, &k) in components.iter().enumerate() {
            let joint = plan.components[k].log_weight + self.log_density[slot * self.samples + sample];
            // NaN stays, so that everything is looked at.
            largest = if joint <= largest { largest } else { joint };
        }
        largest
    }
}
