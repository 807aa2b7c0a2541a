//! One component and samples of which some cells are missing: the exact density of what was observed, and what follows for the rest
//! (maths.md, eq. 8d–8g).
//!
//! ```text
//! Λ = σ² I + Σ_{i observed} u_i u_iᵀ = diag(s + σ²) − Σ_{i missing} u_i u_iᵀ       u_i: row i of U^(1) ⊗ … ⊗ U^(D)
//! Q = Λ⁻¹ y,   V = σ² Λ⁻¹,   y = Σ_{i observed} u_i (x_i − M_i),   δ = (‖x_O − M_O‖² − yᵀQ) / σ²
//! ln|C_OO| = (o − ρ) ln σ² + ln|Λ|
//! x_i missing:   mean M_i + u_iᵀ Q,   variance σ² + u_iᵀ V u_i
//! ```
//!
//! Λ, and with it all variances, depends on which cells are missing and not on the others: samples with one pattern share it.
//!
//! A posterior is tempered (eq. 8h) by σ²/τ in the place of the σ² of observed cells; that of a missing cell itself stays.

use super::density::{Exponent, not_negative};
use super::{Component, Mixture};
use crate::linalg::{Matrix, cholesky_lower, expand, project};

/// Which cells of a sample are missing, in ascending order.
pub(crate) type Holes = Vec<usize>;

/// The components of a mixture, made ready for samples with one pattern of missing cells.
pub(crate) struct Pattern<'a> {
    model: &'a Mixture,
    missing: &'a Holes,
    components: Vec<GivenPattern<'a>>,
}

/// One of them.
struct GivenPattern<'a> {
    component: &'a Component,
    log_weight: f64,
    /// σ²/τ, the noise of observed cells.
    noise: f64,
    /// F of Λ = F Fᵀ.
    factor: Matrix,
    exponent: Exponent,
    /// σ² + u_iᵀ V u_i of the missing cells.
    variances: Vec<f64>,
}

/// What is known about one sample with missing cells.
pub(crate) struct Conditional {
    /// γ.
    pub(crate) responsibilities: Vec<f64>,
    /// ln p of what was observed.
    pub(crate) log_likelihood: f64,
    /// One entry per component.
    components: Vec<GivenObserved>,
}

struct GivenObserved {
    /// The posterior mean of the core.
    core: Vec<f64>,
    /// The mean of every missing cell.
    means: Vec<f64>,
    delta: f64,
}

impl<'a> Pattern<'a> {
    /// Factorises, once per component. `None` if a Λ is no longer positive definite, which rounding could only do to a component
    /// whose noise vanishes beside its cores.
    ///
    /// `temper` is τ; 1 is the exact posterior.
    pub(crate) fn new(model: &'a Mixture, missing: &'a Holes, temper: f64) -> Option<Self> {
        let components = model.components().iter().zip(model.weights());
        let components =
            components.map(|(component, weight)| GivenPattern::new(component, weight.ln(), missing, temper));
        Some(Self { model, missing, components: components.collect::<Option<_>>()? })
    }

    /// What the observed cells of `x` say; its missing ones are not looked at.
    pub(crate) fn condition(&self, x: &[f64]) -> Conditional {
        let shape = self.model.shape();
        let components: Vec<GivenObserved> =
            self.components.iter().map(|given| given.condition(shape, x, self.missing)).collect();
        let joint: Vec<f64> = self
            .components
            .iter()
            .zip(&components)
            .map(|(p, found)| p.log_weight + p.log_density(found.delta))
            .collect();
        let largest = joint.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = joint.iter().map(|j| (j - largest).exp()).sum();
        let log_likelihood = largest + sum.ln();
        let responsibilities = joint.iter().map(|j| (j - log_likelihood).exp()).collect();
        // Weights sum to 1 but for rounding: of a sample without a number nothing is said, and nothing is 0 nats.
        let nothing = self.missing.len() == x.len();
        let log_likelihood = if nothing { 0.0 } else { log_likelihood };
        Conditional { responsibilities, log_likelihood, components }
    }

    /// The mean and the variance of every missing cell, over all components.
    pub(crate) fn moments(&self, found: &Conditional) -> Vec<(f64, f64)> {
        let cells = 0..self.missing.len();
        let mean = |i: usize| {
            let components = found.components.iter().zip(&found.responsibilities);
            components.map(|(given, gamma)| gamma * given.means[i]).sum::<f64>()
        };
        let moments = |i: usize| {
            let mean = mean(i);
            let mut variance = 0.0;
            for ((given, of), gamma) in
                self.components.iter().zip(&found.components).zip(&found.responsibilities)
            {
                // 0 · ∞ would be no number: a component without a share has no say.
                if *gamma > 0.0 {
                    let within = given.variances[i] * given.exponent.variance_factor(of.delta);
                    variance += gamma * (within + (of.means[i] - mean).powi(2));
                }
            }
            (mean, variance)
        };
        cells.map(moments).collect()
    }

    /// One draw of all missing cells together: a component, a scale (Student-t), a core, noise. `uniform`, `normal` and `gamma` (shape) are
    /// where chance comes from.
    pub(crate) fn draw(&self, found: &Conditional, chance: &mut dyn Chance) -> Vec<f64> {
        let at = chance.uniform();
        let mut below = 0.0;
        let k = found.responsibilities.iter().position(|gamma| {
            below += gamma;
            at < below
        });
        let k = k.unwrap_or(self.components.len() - 1);
        let (given, of) = (&self.components[k], &found.components[k]);
        let stretch = match given.exponent.posterior_scale(of.delta) {
            None => 1.0,
            Some((shape, rate)) => (chance.gamma(shape) / rate).max(f64::MIN_POSITIVE).powf(-0.5),
        };
        let deviation = given.component.noise_variance().sqrt() * stretch;
        let of_core = given.noise.sqrt() * stretch;
        // b = Q + σ F⁻ᵀ g has covariance σ² (F Fᵀ)⁻¹ = V.
        let mut core: Vec<f64> = (0..of.core.len()).map(|_| chance.normal()).collect();
        solve_upper(&given.factor, &mut core);
        core.iter_mut().zip(&of.core).for_each(|(b, q)| *b = q + of_core * *b);
        let whole = expand(&core, given.component.loadings());
        let mean = given.component.mean();
        self.missing.iter().map(|&i| mean[i] + whole[i] + deviation * chance.normal()).collect()
    }
}

/// Where chance comes from.
pub(crate) trait Chance {
    /// In [0, 1).
    fn uniform(&mut self) -> f64;
    /// Standard normal.
    fn normal(&mut self) -> f64;
    /// Gamma of this shape and rate 1.
    fn gamma(&mut self, shape: f64) -> f64;
}

impl<'a> GivenPattern<'a> {
    fn new(component: &'a Component, log_weight: f64, missing: &Holes, temper: f64) -> Option<Self> {
        let (size, noise) = (component.mean().len(), component.noise_variance() / temper);
        let observed = size - missing.len();
        let s = component.core_variances();
        let rho = s.len();
        let from_observed = || {
            let mut lambda = Matrix::zeros(rho, rho);
            (0..rho).for_each(|j| lambda[(j, j)] = noise);
            let mut rest = missing.iter().copied().peekable();
            for i in 0..size {
                if rest.next_if_eq(&i).is_none() {
                    add_outer(&mut lambda, 1.0, &row(component, i));
                }
            }
            lambda
        };
        // The smaller of the two sets is counted, for speed and so that little cancels.
        let lambda = if missing.len() <= observed {
            let mut lambda = Matrix::zeros(rho, rho);
            s.iter().enumerate().for_each(|(j, s)| lambda[(j, j)] = s + noise);
            missing.iter().for_each(|&i| add_outer(&mut lambda, -1.0, &row(component, i)));
            lambda
        } else {
            from_observed()
        };
        let factor = cholesky_lower(&lambda).or_else(|| cholesky_lower(&from_observed()))?;
        let log_determinant: f64 = (0..rho).map(|j| 2.0 * factor[(j, j)].ln()).sum();
        // Tempered, the observed cells count as τ times as many.
        let counted = temper * observed as f64;
        let log_determinant = log_determinant + (counted - rho as f64) * component.noise_variance().ln();
        let log_determinant = log_determinant + rho as f64 * temper.ln();
        let variance = |&i: &usize| {
            let mut u = row(component, i);
            solve_lower(&factor, &mut u);
            noise * (temper + u.iter().map(|x| x * x).sum::<f64>())
        };
        let variances = missing.iter().map(variance).collect();
        let exponent = Exponent::new(component.degrees_of_freedom(), counted, log_determinant);
        Some(Self { component, log_weight, noise, factor, exponent, variances })
    }

    fn log_density(&self, delta: f64) -> f64 {
        self.exponent.log_density(delta)
    }

    fn condition(&self, shape: &[usize], x: &[f64], missing: &Holes) -> GivenObserved {
        let component = self.component;
        let mut centred: Vec<f64> = x.iter().zip(component.mean()).map(|(x, m)| x - m).collect();
        missing.iter().for_each(|&i| centred[i] = 0.0);
        let mut core = project(&centred, shape, component.loadings(), None);
        solve_lower(&self.factor, &mut core);
        let explained: f64 = core.iter().map(|h| h * h).sum();
        let squares: f64 = centred.iter().map(|x| x * x).sum();
        let delta = not_negative(squares - explained) / self.noise;
        solve_upper(&self.factor, &mut core);
        let whole = expand(&core, component.loadings());
        let means = missing.iter().map(|&i| component.mean()[i] + whole[i]).collect();
        GivenObserved { core, means, delta }
    }
}

/// u_i: the row of the Kronecker product of the loadings that belongs to cell i.
fn row(component: &Component, cell: usize) -> Vec<f64> {
    let mut rest = cell;
    let mut index = vec![0; component.loadings().len()];
    for (at, u) in index.iter_mut().zip(component.loadings()).rev() {
        *at = rest % u.rows();
        rest /= u.rows();
    }
    let mut row = vec![1.0];
    for (u, &i) in component.loadings().iter().zip(&index) {
        row = row.iter().flat_map(|x| u.row(i).iter().map(move |y| x * y)).collect();
    }
    row
}

/// A += f u uᵀ, on and below the diagonal.
fn add_outer(a: &mut Matrix, factor: f64, u: &[f64]) {
    for j in 0..u.len() {
        let scaled = factor * u[j];
        for l in 0..=j {
            a[(j, l)] += scaled * u[l];
        }
    }
}

/// F⁻¹ b in place.
fn solve_lower(factor: &Matrix, b: &mut [f64]) {
    for j in 0..b.len() {
        let row = factor.row(j);
        let known: f64 = row[..j].iter().zip(&b[..j]).map(|(f, b)| f * b).sum();
        b[j] = (b[j] - known) / row[j];
    }
}

/// F⁻ᵀ b in place.
fn solve_upper(factor: &Matrix, b: &mut [f64]) {
    for j in (0..b.len()).rev() {
        b[j] /= factor[(j, j)];
        let done = b[j];
        b[..j].iter_mut().zip(factor.row(j)).for_each(|(b, f)| *b -= f * done);
    }
}
