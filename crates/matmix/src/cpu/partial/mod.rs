//! Samples of which cells are missing: their exact densities under all components, side by side (maths.md, eq. 8d–8g).
//!
//! ```text
//! Λ = σ² I + Σ_{i observed} u_i u_iᵀ = diag(s + σ²) − Σ_{i missing} u_i u_iᵀ = F Fᵀ
//! h = F⁻¹ y,   y = Σ_{i observed} u_i (x_i − M_i),   δ = (‖x_O − M_O‖² − ‖h‖²) / σ²
//! ```
//!
//! The mask is the same for all components, so these lie side by side in the lanes of the vectors ([`lanes`]). Samples of a chunk with the
//! same cells missing are looked at one after the other and share the factor F, and all that follows from it alone.
//!
//! | file | what |
//! |---|---|
//! | [`model`] | a mixture made ready |
//! | [`masks`] | which cells of which samples are missing |
//! | [`factor`], [`lanes`] | Λ and F of a pattern of missing cells; where a number of a component lies |
//! | [`kernel`] | y and h of a sample |
//! | [`covariance`] | V = σ² Λ⁻¹ |
//! | [`fill`] | a sample with its missing cells filled in |
//! | [`fibres`] | patterns of whole fibres that many samples have: a complete sample of a smaller mixture |
//! | [`sums`] | the sums of an EM pass: with [`spread`] if it updates every mode, with [`modes`] if one |

mod covariance;
mod factor;
mod fibres;
mod fill;
mod kernel;
mod lanes;
mod masks;
mod model;
mod modes;
mod spread;
mod sums;

use pulp::Simd;

use super::load::Stored;
use crate::model::{Exponent, not_negative};
use crate::simd::Aligned;
use crate::simd::Real;
use factor::Factorise;
use kernel::Condition;
use lanes::place;
use masks::{Cells, Masks};

pub(super) use model::PartialModel;
pub(super) use sums::PartialSums;

/// What a thread reuses.
pub(super) struct PartialScratch<T> {
    masks: Masks,
    pattern: PatternState<T>,
    sample: SampleState<T>,
    /// Stages of a contraction, of one unit.
    rooms: [Aligned<T>; 2],
}

/// What follows from which cells are missing.
struct PatternState<T> {
    /// The missing cells; and the observed ones, where these are counted.
    missing: Cells,
    observed: Cells,
    /// Room for the rows that hold counted cells.
    touched: [Vec<usize>; 2],
    /// F, `[unit][row][column][lane]` on and below the diagonal.
    factor: Aligned<T>,
    /// 1 / F_jj, `[unit][core][lane]`.
    inverse_diagonal: Aligned<T>,
    /// ln|Λ| in the unit of variance of the model, `[unit][lane]`.
    log_determinants: Vec<f64>,
    exponents: Vec<Exponent>,
}

/// What follows from the observed cells of one sample.
struct SampleState<T> {
    /// x − G as it is stored, and with 0 where it is missing.
    raw: Vec<T>,
    x: Vec<T>,
    /// −1 where it was observed, 0 where it was not: what a mean is multiplied with to take it off.
    less: Vec<T>,
    /// h, `[unit][core][lane]`.
    h: Aligned<T>,
    /// ‖h‖² and ‖x_O − M_O‖², `[unit][lane]`.
    explained: Vec<f64>,
    squares: Vec<f64>,
    deltas: Vec<f64>,
    log_densities: Vec<f64>,
    gamma: Vec<f64>,
    /// Q under the most probable component.
    core: Vec<f64>,
}

/// Whoever wants to know what a mixture makes of samples with missing cells.
pub(super) trait PartialConsumer<T: Real> {
    /// One sample.
    fn sample<S: Simd>(&mut self, simd: S, found: &PartialFound<'_, T>);

    /// All samples with one pattern of missing cells have been shown.
    fn pattern<S: Simd>(&mut self, _simd: S, _found: &PartialPattern<'_, T>) {}

    /// Samples with one pattern of missing cells, before any of them is evaluated: true if it has done with them.
    fn group<S: Simd>(&mut self, _simd: S, _group: &PartialGroup<'_, T>, _left_out: &mut Vec<usize>) -> bool {
        false
    }
}

/// Samples with one pattern of missing cells.
pub(super) struct PartialGroup<'a, T> {
    of: &'a PartialModel<T>,
    stored: Stored<'a>,
    masks: &'a Masks,
    /// Their places among the samples whose masks were read, and the places of those among all that are stored.
    members: &'a [usize],
    holes: &'a [usize],
    cutoff: f64,
}

/// One pattern of missing cells.
pub(super) struct PartialPattern<'a, T> {
    of: &'a PartialModel<T>,
    state: &'a PatternState<T>,
}

/// One evaluated sample.
pub(super) struct PartialFound<'a, T> {
    of: &'a PartialModel<T>,
    pattern: &'a PatternState<T>,
    state: &'a SampleState<T>,
    pub(super) stored: Stored<'a>,
    /// Its place among those that were stored.
    pub(super) n: usize,
    /// The most probable component.
    pub(super) best: usize,
    pub(super) log_likelihood: f64,
}

impl<T: Real> PartialModel<T> {
    pub(super) fn scratch(&self) -> PartialScratch<T> {
        let (size, rho, k) = (self.model.sample_len(), self.model.core_len(), self.model.n_components());
        let zeros = |rows: usize| Aligned::new(T::from_f64(0.0), rows * T::LANES);
        let lanes = self.units * T::LANES;
        let room = kernel::room(self.model.shape(), self.model.rank());
        PartialScratch {
            masks: Masks::default(),
            pattern: PatternState {
                missing: Cells::default(),
                observed: Cells::default(),
                touched: [Vec::new(), Vec::new()],
                factor: zeros(self.units * rho * rho),
                inverse_diagonal: zeros(self.units * rho),
                log_determinants: vec![0.0; lanes],
                exponents: Vec::with_capacity(k),
            },
            sample: SampleState {
                raw: vec![T::from_f64(0.0); size],
                x: vec![T::from_f64(0.0); size],
                less: vec![T::from_f64(0.0); size],
                h: zeros(self.units * rho),
                explained: vec![0.0; lanes],
                squares: vec![0.0; lanes],
                deltas: vec![0.0; k],
                log_densities: vec![0.0; k],
                gamma: vec![0.0; k],
                core: vec![0.0; rho],
            },
            rooms: [zeros(room), zeros(room)],
        }
    }

    /// Evaluates the samples that have missing cells, those with the same pattern together, and shows them to `consumer`.
    /// Responsibilities below e^`cutoff` of the largest are zero.
    #[inline(always)]
    pub(super) fn show<S: Simd, C: PartialConsumer<T>>(
        &self,
        simd: S,
        scratch: &mut PartialScratch<T>,
        stored: Stored<'_>,
        holes: &[usize],
        cutoff: f64,
        consumer: &mut C,
        left_out: &mut Vec<usize>,
    ) {
        let PartialScratch { masks, pattern, sample, rooms } = scratch;
        masks.read(stored, holes);
        for members in masks.groups() {
            let group = PartialGroup { of: self, stored, masks, members, holes, cutoff };
            if consumer.group(simd, &group, left_out) {
                continue;
            }
            self.factorise(simd, pattern, rooms, masks, members[0]);
            for &at in members {
                let n = holes[at];
                self.load(sample, stored, n);
                for unit in 0..self.units {
                    simd.vectorize(Condition { of: self, unit, pattern, sample, rooms });
                }
                let (best, log_likelihood) = self.responsibilities(pattern, sample, stored.class(n), cutoff);
                if log_likelihood.is_finite() {
                    self.find_core(pattern, &sample.h, best, &mut sample.core);
                    let state = &*sample;
                    let found = PartialFound { of: self, pattern, state, stored, n, best, log_likelihood };
                    consumer.sample(simd, &found);
                } else {
                    left_out.push(n);
                }
            }
            consumer.pattern(simd, &PartialPattern { of: self, state: pattern });
        }
    }

    #[inline(always)]
    fn load(&self, sample: &mut SampleState<T>, stored: Stored<'_>, n: usize) {
        let size = self.reference.len();
        stored.load(n, 0..size, &self.reference, &mut sample.raw);
        let raw = &sample.raw[..size];
        let (x, less) = (&mut sample.x[..size], &mut sample.less[..size]);
        let (zero, minus) = (T::from_f64(0.0), T::from_f64(-1.0));
        // From one place to another: a store that depends on what is there takes long on some machines.
        for i in 0..size {
            let is_missing = raw[i].is_nan();
            x[i] = if is_missing { zero } else { raw[i] };
            less[i] = if is_missing { zero } else { minus };
        }
    }

    #[inline(always)]
    fn factorise<S: Simd>(
        &self,
        simd: S,
        pattern: &mut PatternState<T>,
        rooms: &mut [Aligned<T>; 2],
        masks: &Masks,
        at: usize,
    ) {
        let (size, rho, (_, side)) = (self.model.sample_len(), self.model.core_len(), self.last());
        masks.cells(at, true, (size, side), &mut pattern.missing);
        let observed = size - pattern.missing.len();
        // The smaller of the two sets is counted, for speed and so that little cancels; if too much did, the other.
        let count_missing = pattern.missing.len() <= observed;
        for count_missing in [count_missing, false] {
            if !count_missing {
                masks.cells(at, false, (size, side), &mut pattern.observed);
            }
            for unit in 0..self.units {
                simd.vectorize(Factorise { of: self, unit, pattern, rooms, count_missing });
            }
            if !count_missing || pattern.log_determinants.iter().all(|x| x.is_finite()) {
                break;
            }
        }
        pattern.exponents.clear();
        for (k, component) in self.model.components().iter().enumerate() {
            let rest = (observed as f64 - rho as f64) * self.log_noises[k];
            let (degrees, log_determinant) = (component.degrees_of_freedom(), pattern.log_determinants[k]);
            pattern.exponents.push(Exponent::new(degrees, observed as f64, log_determinant + rest));
        }
    }

    /// The posterior mean Q of the core under component `k`: F⁻ᵀ h.
    #[inline(always)]
    fn find_core(&self, pattern: &PatternState<T>, h: &[T], k: usize, out: &mut [f64]) {
        let rho = out.len();
        for (j, q) in out.iter_mut().enumerate() {
            *q = h[place::<T>(k, j, rho)].to_f64();
        }
        for j in (0..rho).rev() {
            out[j] *= pattern.inverse_diagonal[place::<T>(k, j, rho)].to_f64();
            for i in 0..j {
                out[i] -= pattern.factor[place::<T>(k, j * rho + i, rho * rho)].to_f64() * out[j];
            }
        }
    }

    /// What densities in the unit of variance of the model lack.
    fn log_unit(&self, pattern: &PatternState<T>) -> f64 {
        let observed = self.model.sample_len() - pattern.missing.len();
        -0.5 * observed as f64 * self.unit_variance.ln()
    }

    /// The responsibilities, the most probable component and ln p of what was observed, its class included if that is known.
    fn responsibilities(
        &self,
        pattern: &PatternState<T>,
        sample: &mut SampleState<T>,
        class: Option<u32>,
        cutoff: f64,
    ) -> (usize, f64) {
        let (mut best, mut largest) = (0, f64::NEG_INFINITY);
        for (k, component) in self.model.components().iter().enumerate() {
            let squares = sample.squares[k] - sample.explained[k];
            let delta = not_negative(squares) / component.noise_variance();
            let log_density = pattern.exponents[k].log_density(delta);
            let admitted = self.admission.admits(class, k);
            let joint = if admitted { self.log_weights[k] + log_density } else { f64::NEG_INFINITY };
            sample.deltas[k] = delta;
            sample.log_densities[k] = log_density;
            sample.gamma[k] = joint;
            // NaN is kept, so that it is noticed.
            if joint > largest || joint.is_nan() {
                (best, largest) = (k, joint);
            }
        }
        let mut sum = 0.0;
        for gamma in &mut sample.gamma {
            let difference = *gamma - largest;
            *gamma = if difference < cutoff { 0.0 } else { difference.exp() };
            sum += *gamma;
        }
        sample.gamma.iter_mut().for_each(|gamma| *gamma /= sum);
        // Of a sample without a number nothing is said, and nothing is 0 nats; unless its class is.
        let unlabelled = class.is_none() || self.model.classes().is_none();
        let nothing = unlabelled && pattern.missing.len() == self.model.sample_len();
        (best, if nothing { 0.0 } else { largest + sum.ln() + self.log_unit(pattern) })
    }
}

impl<T: Real> PartialFound<'_, T> {
    pub(super) fn gamma(&self) -> &[f64] {
        &self.state.gamma
    }

    pub(super) fn log_density(&self, k: usize) -> f64 {
        self.state.log_densities[k] + self.of.log_unit(self.pattern)
    }

    /// Component, γ and δ, over the observed cells, of all components.
    pub(super) fn distances(&self) -> impl Iterator<Item = (usize, f64, f64)> {
        self.gamma().iter().zip(&self.state.deltas).enumerate().map(|(k, (&gamma, &delta))| (k, gamma, delta))
    }

    /// How many cells were observed.
    pub(super) fn observed(&self) -> usize {
        self.of.model.sample_len() - self.pattern.missing.len()
    }

    /// The posterior mean Q of the core under component `k`.
    pub(super) fn core(&self, k: usize, out: &mut [f64]) {
        match k == self.best {
            true => out.copy_from_slice(&self.state.core),
            false => self.of.find_core(self.pattern, &self.state.h, k, out),
        }
    }

    /// ‖x_O − x̂_O‖² over the observed cells, rebuilt by the most probable component: ‖x_O − M_O‖² − yᵀQ − σ²‖Q‖².
    pub(super) fn squared_error(&self) -> f64 {
        let noise = self.of.model.components()[self.best].noise_variance();
        let norm: f64 = self.state.core.iter().map(|q| q * q).sum();
        not_negative(noise * (self.state.deltas[self.best] - norm))
    }
}
