//! Samples of which cells are missing: their exact densities under all components, side by side (maths.md, eq. 8d–8g).
//!
//! ```text
//! Λ = σ² I + Σ_{i observed} u_i u_iᵀ = diag(s + σ²) − Σ_{i missing} u_i u_iᵀ = F Fᵀ
//! h = F⁻¹ y,   y = Σ_{i observed} u_i (x_i − M_i),   δ = (‖x_O − M_O‖² − ‖h‖²) / σ²
//! ```
//!
//! The mask is the same for all components, so these lie in the lanes of the vectors: the mask is contracted with pairs of columns of the
//! loadings, mode by mode, the way a sample is with the columns ([`kernel`]). Samples of a chunk with the same cells missing are
//! looked at one after the other and share the factor F, and all that follows from it alone ([`sums`]).

mod kernel;
mod sums;

use super::aligned::Aligned;
use super::load::Stored;
use super::plan::Admission;
use super::simd::{Instructions, Real};
use crate::linalg::Matrix;
use crate::model::{Component, Exponent, Mixture, not_negative};
use kernel::{Condition, Factorise};

pub(super) use sums::PartialSums;

/// A mixture made ready for samples with missing cells.
pub(super) struct PartialModel<T> {
    model: Mixture,
    /// G, subtracted from every sample, and M − G of every component.
    reference: Vec<f64>,
    offsets: Vec<Vec<f64>>,
    log_weights: Vec<f64>,
    admission: Admission,
    core_variances: Vec<Vec<f64>>,
    /// The rows of the Kronecker product of the loadings of all modes but the last, of every component.
    prefixes: Vec<Matrix>,
    /// Numbers of a row that has one for each component: whole vectors.
    lanes: usize,
    /// M − G, `[cell][lane]`.
    mean: Aligned<T>,
    /// U^(d), `[p_d][r_d][lane]`, of every mode.
    loadings: Vec<Aligned<T>>,
    /// s and σ², `[core][lane]` and `[lane]`.
    variances: Aligned<T>,
    noise: Aligned<T>,
    /// The pairs (a, b), b ≤ a, of columns of every mode.
    pairs: Vec<Vec<(usize, usize)>>,
    /// 0, 1, … up to the longest side: all rows of a mode.
    all_rows: Vec<usize>,
    /// Where the entry (j, l), l ≤ j, of Σ u uᵀ is among the products of pairs.
    entries: Vec<usize>,
}

/// What a thread reuses.
pub(super) struct PartialScratch<T> {
    /// One bit per cell for every sample of a chunk that has missing ones, and the order in which samples are looked at.
    masks: Vec<u64>,
    order: Vec<usize>,
    pattern: PatternState<T>,
    sample: SampleState<T>,
    /// Stages of a contraction.
    rooms: [Aligned<T>; 2],
}

/// What follows from which cells are missing.
struct PatternState<T> {
    /// The missing cells, ascending.
    missing: Vec<usize>,
    /// 0 for those, 1 for the others.
    kept: Vec<T>,
    /// F, `[row][column][lane]` on and below the diagonal.
    factor: Aligned<T>,
    /// 1 / F_jj.
    inverse_diagonal: Aligned<T>,
    log_determinants: Vec<f64>,
    exponents: Vec<Exponent>,
}

/// What follows from the observed cells of one sample.
struct SampleState<T> {
    /// x − G, 0 where it is missing.
    x: Vec<f64>,
    /// h, `[core][lane]`.
    h: Aligned<T>,
    squares: Vec<f64>,
    deltas: Vec<f64>,
    log_densities: Vec<f64>,
    gamma: Vec<f64>,
}

/// Whoever wants to know what a mixture makes of samples with missing cells.
pub(super) trait PartialConsumer<T: Real> {
    /// One sample.
    fn sample(&mut self, found: &PartialFound<'_, T>);

    /// All samples with one pattern of missing cells have been shown.
    fn pattern(&mut self, _found: &PartialPattern<'_, T>) {}
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
    pub(super) fn new(model: &Mixture) -> Self {
        let (components, lanes) = (model.components(), model.n_components().next_multiple_of(T::LANES));
        let reference = model.overall_mean();
        let offset =
            |c: &Component| c.mean().iter().zip(&reference).map(|(m, g)| m - g).collect::<Vec<f64>>();
        let offsets: Vec<Vec<f64>> = components.iter().map(offset).collect();
        let abreast = |rows: usize, rest: f64, of: &dyn Fn(usize, usize) -> f64| {
            let mut all = Aligned::new(T::from_f64(rest), rows * lanes);
            for k in 0..components.len() {
                (0..rows).for_each(|row| all[row * lanes + k] = T::from_f64(of(k, row)));
            }
            all
        };
        let variances: Vec<Vec<f64>> = components.iter().map(Component::core_variances).collect();
        let loadings = (0..model.shape().len()).map(|d| {
            let rows = model.shape()[d] * model.rank()[d];
            abreast(rows, 0.0, &|k, row| components[k].loadings()[d].as_slice()[row])
        });
        let pairs: Vec<Vec<(usize, usize)>> = model
            .rank()
            .iter()
            .map(|&r| (0..r).flat_map(|a| (0..=a).map(move |b| (a, b))).collect())
            .collect();
        Self {
            mean: abreast(model.sample_len(), 0.0, &|k, i| offsets[k][i]),
            loadings: loadings.collect(),
            variances: abreast(model.core_len(), 0.0, &|k, j| variances[k][j]),
            // Lanes without a component are factorised like the others: they must not be singular.
            noise: abreast(1, 1.0, &|k, _| components[k].noise_variance()),
            entries: entries(model.rank(), &pairs),
            pairs,
            all_rows: (0..model.shape().iter().copied().max().unwrap_or(1)).collect(),
            prefixes: components.iter().map(|c| prefixes(c, model.shape())).collect(),
            core_variances: variances,
            admission: Admission::new(model),
            log_weights: model.weights().iter().map(|w| w.ln()).collect(),
            lanes,
            offsets,
            reference,
            model: model.clone(),
        }
    }

    pub(super) fn scratch(&self) -> PartialScratch<T> {
        let (size, rho, k) = (self.model.sample_len(), self.model.core_len(), self.model.n_components());
        let zeros = |rows: usize| Aligned::new(T::from_f64(0.0), rows * self.lanes);
        let room = kernel::room(self.model.shape(), self.model.rank());
        PartialScratch {
            masks: Vec::new(),
            order: Vec::new(),
            pattern: PatternState {
                missing: Vec::new(),
                kept: vec![T::from_f64(1.0); size],
                factor: zeros(rho * rho),
                inverse_diagonal: zeros(rho),
                log_determinants: vec![0.0; k],
                exponents: Vec::with_capacity(k),
            },
            sample: SampleState {
                x: vec![0.0; size],
                h: zeros(rho),
                squares: vec![0.0; k],
                deltas: vec![0.0; k],
                log_densities: vec![0.0; k],
                gamma: vec![0.0; k],
            },
            rooms: [zeros(room), zeros(room)],
        }
    }

    /// Evaluates the samples that have missing cells, those with the same pattern together, and shows them to `consumer`.
    /// Responsibilities below e^`cutoff` of the largest are zero.
    pub(super) fn show(
        &self,
        on: Instructions,
        scratch: &mut PartialScratch<T>,
        stored: Stored<'_>,
        holes: &[usize],
        cutoff: f64,
        consumer: &mut dyn PartialConsumer<T>,
        left_out: &mut Vec<usize>,
    ) {
        let words = self.model.sample_len().div_ceil(64);
        self.read_masks(scratch, stored, holes, words);
        let mut before: Option<usize> = None;
        for at in 0..holes.len() {
            let which = scratch.order[at];
            let n = holes[which];
            let PartialScratch { masks, pattern, sample, rooms, .. } = scratch;
            let mask = |which: usize| &masks[which * words..(which + 1) * words];
            if before.is_none_or(|before| mask(before) != mask(which)) {
                if before.is_some() {
                    consumer.pattern(&PartialPattern { of: self, state: pattern });
                }
                self.factorise(on, pattern, rooms, mask(which));
            }
            before = Some(which);
            stored.load(n, 0..self.reference.len(), &self.reference, &mut sample.x);
            pattern.missing.iter().for_each(|&i| sample.x[i] = 0.0);
            on.run::<T, _>(Condition { of: self, pattern, sample, rooms });
            let (best, log_likelihood) = self.responsibilities(pattern, sample, stored.class(n), cutoff);
            match log_likelihood.is_finite() {
                true => {
                    let state = &*sample;
                    consumer.sample(&PartialFound {
                        of: self,
                        pattern,
                        state,
                        stored,
                        n,
                        best,
                        log_likelihood,
                    });
                }
                false => left_out.push(n),
            }
        }
        if before.is_some() {
            consumer.pattern(&PartialPattern { of: self, state: &scratch.pattern });
        }
    }

    /// The masks of the samples, and the order in which equal ones follow each other.
    fn read_masks(&self, scratch: &mut PartialScratch<T>, stored: Stored<'_>, holes: &[usize], words: usize) {
        let PartialScratch { masks, order, sample, .. } = scratch;
        masks.clear();
        for &n in holes {
            stored.load(n, 0..self.reference.len(), &self.reference, &mut sample.x);
            let word = |cells: &[f64]| {
                cells.iter().enumerate().fold(0, |word, (i, x)| word | u64::from(x.is_nan()) << i)
            };
            masks.extend(sample.x.chunks(64).map(word));
        }
        order.clear();
        order.extend(0..holes.len());
        order.sort_by(|&a, &b| {
            masks[a * words..(a + 1) * words].cmp(&masks[b * words..(b + 1) * words]).then(a.cmp(&b))
        });
    }

    fn factorise(
        &self,
        on: Instructions,
        pattern: &mut PatternState<T>,
        rooms: &mut [Aligned<T>; 2],
        mask: &[u64],
    ) {
        pattern.missing.clear();
        for (i, kept) in pattern.kept.iter_mut().enumerate() {
            let is_missing = mask[i / 64] >> (i % 64) & 1 == 1;
            *kept = T::from_f64(if is_missing { 0.0 } else { 1.0 });
            if is_missing {
                pattern.missing.push(i);
            }
        }
        let (size, rho) = (self.model.sample_len(), self.model.core_len());
        let observed = size - pattern.missing.len();
        // The smaller of the two sets is counted, for speed and so that little cancels; if too much did, the other.
        let count_missing = pattern.missing.len() <= observed;
        for count_missing in [count_missing, false] {
            on.run::<T, _>(Factorise { of: self, pattern, rooms, count_missing });
            if !count_missing || pattern.log_determinants.iter().all(|x| x.is_finite()) {
                break;
            }
        }
        pattern.exponents.clear();
        for (component, log_determinant) in self.model.components().iter().zip(&pattern.log_determinants) {
            let rest = (observed as f64 - rho as f64) * component.noise_variance().ln();
            let degrees = component.degrees_of_freedom();
            pattern.exponents.push(Exponent::new(degrees, observed as f64, log_determinant + rest));
        }
    }

    /// The responsibilities, the most probable component and ln p of what was observed, its class included if that is known.
    fn responsibilities(
        &self,
        pattern: &PatternState<T>,
        sample: &mut SampleState<T>,
        class: Option<u32>,
        cutoff: f64,
    ) -> (usize, f64) {
        let rho = self.model.core_len();
        let (mut best, mut largest) = (0, f64::NEG_INFINITY);
        for (k, component) in self.model.components().iter().enumerate() {
            let h = |j: usize| sample.h[j * self.lanes + k].to_f64();
            let explained: f64 = (0..rho).map(|j| h(j) * h(j)).sum();
            let delta = not_negative(sample.squares[k] - explained) / component.noise_variance();
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
        (best, if nothing { 0.0 } else { largest + sum.ln() })
    }
}

/// The rows of the Kronecker product of the loadings of all modes but the last.
fn prefixes(component: &Component, shape: &[usize]) -> Matrix {
    let before = &component.loadings()[..shape.len() - 1];
    let shape = &shape[..before.len()];
    let (rows, columns) = (shape.iter().product(), before.iter().map(Matrix::cols).product());
    let all = (0..rows).flat_map(|place| sums::kronecker_row(before, shape, place, None)).collect();
    Matrix::from_vec(rows, columns, all)
}

/// Where the entries of Σ u uᵀ on and below the diagonal are among the products of pairs, row by row.
fn entries(rank: &[usize], pairs: &[Vec<(usize, usize)>]) -> Vec<usize> {
    let rho: usize = rank.iter().product();
    let mut entries = Vec::with_capacity(rho * (rho + 1) / 2);
    for j in 0..rho {
        for l in 0..=j {
            let (mut at, mut rest) = (0, (rho, j, l));
            for (&r, pairs) in rank.iter().zip(pairs) {
                let below = rest.0 / r;
                let (a, b) = (rest.1 / below, rest.2 / below);
                rest = (below, rest.1 % below, rest.2 % below);
                let (a, b) = (a.max(b), a.min(b));
                at = at * pairs.len() + a * (a + 1) / 2 + b;
            }
            entries.push(at);
        }
    }
    entries
}

impl<T: Real> PartialPattern<'_, T> {
    /// V = σ² Λ⁻¹ of component `k`; `inverse` is room for F⁻¹.
    #[inline(always)]
    fn covariance(&self, k: usize, inverse: &mut Matrix, v: &mut Matrix) {
        let (rho, lanes) = (self.of.model.core_len(), self.of.lanes);
        let factor = |i: usize, j: usize| self.state.factor[(i * rho + j) * lanes + k].to_f64();
        inverse.as_mut_slice().fill(0.0);
        v.as_mut_slice().fill(0.0);
        let noise = self.of.model.components()[k].noise_variance();
        // Row i of F⁻¹ is (e_i − Σ_{l<i} F_il row l) / F_ii, and Λ⁻¹ the sum of the outer products of its rows.
        for i in 0..rho {
            let (above, row) = inverse.as_mut_slice().split_at_mut(i * rho);
            let row = &mut row[..=i];
            row[i] = 1.0;
            for l in 0..i {
                let (f, above) = (factor(i, l), &above[l * rho..=l * rho + l]);
                for j in 0..=l {
                    row[j] -= f * above[j];
                }
            }
            let below = 1.0 / factor(i, i);
            for x in &mut *row {
                *x *= below;
            }
            for a in 0..=i {
                let (scaled, to) = (noise * row[a], &mut v.as_mut_slice()[a * rho..=a * rho + a]);
                for j in 0..=a {
                    to[j] += scaled * row[j];
                }
            }
        }
        for i in 0..rho {
            for j in 0..i {
                v[(j, i)] = v[(i, j)];
            }
        }
    }
}

impl<T: Real> PartialFound<'_, T> {
    pub(super) fn gamma(&self) -> &[f64] {
        &self.state.gamma
    }

    pub(super) fn log_density(&self, k: usize) -> f64 {
        self.state.log_densities[k]
    }

    /// How many cells were observed.
    pub(super) fn observed(&self) -> usize {
        self.of.model.sample_len() - self.pattern.missing.len()
    }

    /// The posterior mean Q of the core under component `k`: F⁻ᵀ h.
    pub(super) fn core(&self, k: usize, out: &mut [f64]) {
        let (rho, lanes) = (out.len(), self.of.lanes);
        for (j, q) in out.iter_mut().enumerate() {
            *q = self.state.h[j * lanes + k].to_f64();
        }
        for j in (0..rho).rev() {
            out[j] *= self.pattern.inverse_diagonal[j * lanes + k].to_f64();
            for i in 0..j {
                out[i] -= self.pattern.factor[(j * rho + i) * lanes + k].to_f64() * out[j];
            }
        }
    }

    /// ‖x_O − x̂_O‖² over the observed cells, rebuilt by the most probable component: ‖x_O − M_O‖² − yᵀQ − σ²‖Q‖².
    pub(super) fn squared_error(&self, core: &mut [f64]) -> f64 {
        self.core(self.best, core);
        let noise = self.of.model.components()[self.best].noise_variance();
        let norm: f64 = core.iter().map(|q| q * q).sum();
        not_negative(noise * (self.state.deltas[self.best] - norm))
    }
}
