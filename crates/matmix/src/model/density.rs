//! The exact density of a component and the posterior of a core (maths.md, eq. 5–8).

use super::Component;

/// A difference that is a sum of squares: rounding may leave a trace below zero. Unlike `max`, it keeps NaN, which is how
/// samples that are not finite are noticed.
#[inline(always)]
pub(crate) fn not_negative(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { x }
}

/// What the density and the posterior of one component need, computed once per pass.
///
/// ```text
/// Q = Y ⊘ (s + σ²)        v = σ² ⊘ (s + σ²)        δ = (‖X − M‖² − Σ Y_j²/(s_j + σ²)) / σ²
/// ln p(X|k) = −½ [ P ln 2π + (P − ρ) ln σ² + Σ ln(s_j + σ²) + δ ]
/// ```
///
/// Everything that follows from the distance δ of a sample is asked of here: a pass, its bounds and whoever infers
/// know nothing of the exponent.
#[derive(Debug, Clone)]
pub struct Density {
    /// 1 / (s_j + σ²).
    pub(crate) precision: Vec<f64>,
    /// (s_j + 2σ²) / (s_j + σ²)²: what Y_j² takes off the squared reconstruction error.
    pub(crate) explained: Vec<f64>,
    noise_variance: f64,
    /// 1 / σ².
    noise_precision: f64,
    constant: f64,
}

impl Density {
    /// Prepares the density of a component.
    pub fn new(component: &Component) -> Self {
        let s = component.core_variances();
        let noise = component.noise_variance();
        let size = component.mean().len() as f64;
        let log_determinant =
            (size - s.len() as f64) * noise.ln() + s.iter().map(|s| (s + noise).ln()).sum::<f64>();
        Self {
            precision: s.iter().map(|s| 1.0 / (s + noise)).collect(),
            explained: s.iter().map(|s| (s + 2.0 * noise) / ((s + noise) * (s + noise))).collect(),
            noise_variance: noise,
            noise_precision: 1.0 / noise,
            constant: -0.5 * (size * (2.0 * std::f64::consts::PI).ln() + log_determinant),
        }
    }

    /// The Mahalanobis distance δ (squared) from ‖X − M‖² and Σ Y_j²/(s_j + σ²).
    #[inline(always)]
    pub(crate) fn mahalanobis(&self, squared_distance: f64, explained: f64) -> f64 {
        not_negative(squared_distance - explained) * self.noise_precision
    }

    /// ln p(X|k) from δ. It never rises with δ, so that a lower bound of δ is an upper bound of it.
    #[inline(always)]
    pub(crate) fn log_density(&self, delta: f64) -> f64 {
        self.constant - 0.5 * delta
    }

    /// E[u|X]: how much a sample at distance δ counts in the sums of a component it belongs to.
    #[inline(always)]
    pub(crate) fn weight(&self, _delta: f64) -> f64 {
        1.0
    }

    /// Q = Y ⊘ (s + σ²): the posterior mean of the core from Y = (X − M) ×_1 U^(1)ᵀ … ×_D U^(D)ᵀ.
    pub fn posterior_mean(&self, y: &[f64]) -> Vec<f64> {
        y.iter().zip(&self.precision).map(|(y, p)| y * p).collect()
    }

    /// v = σ² ⊘ (s + σ²): the posterior variance of each entry of the core. The entries are independent.
    pub fn posterior_variance(&self) -> Vec<f64> {
        self.precision.iter().map(|p| p * self.noise_variance).collect()
    }
}
