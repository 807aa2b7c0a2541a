//! The exact density of a component and the posterior of a core (maths.md, eq. 5–8 and 8a–8c).

use super::Component;
use super::gamma::{log_gamma_ratio, log_less_digamma};

/// A difference that is a sum of squares: rounding may leave a trace below zero. Unlike `max`, it keeps NaN, which is how
/// samples that are not finite are noticed.
#[inline(always)]
pub(crate) fn not_negative(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { x }
}

/// The largest power of four not above `x`: dividing a variance by it, or data by its root, rounds nothing. 1 unless `x` is positive and
/// normal.
pub(crate) fn power_of_four(x: f64) -> f64 {
    const MANTISSA: u32 = f64::MANTISSA_DIGITS - 1;
    if !(x.is_normal() && x > 0.0) {
        return 1.0;
    }
    // The bias is odd: odd exponents are even powers of two.
    f64::from_bits((((x.to_bits() >> MANTISSA) - 1) | 1) << MANTISSA)
}

/// What follows from the Mahalanobis distance δ of a sample of o numbers alone.
///
/// ```text
/// Gaussian:   ln p = −½ (o ln 2π + ln|C| + δ)                                                     u = 1
/// Student-t:  ln p = ln Γ((ν+o)/2) − ln Γ(ν/2) − (o/2) ln(νπ) − ½ ln|C| − ((ν+o)/2) ln(1 + δ/ν)     u = (ν+o)/(ν+δ)
/// ```
#[derive(Debug, Clone)]
pub(crate) struct Exponent {
    /// ln p at δ = 0.
    constant: f64,
    /// ν, (ν + o)/2 and ln((ν+o)/2) − ψ((ν+o)/2) of Student-t noise.
    tail: Option<Tail>,
}

#[derive(Debug, Clone, Copy)]
struct Tail {
    degrees: f64,
    half: f64,
    log_less_digamma: f64,
}

impl Exponent {
    /// From the degrees of freedom (none: Gaussian), o and ln|C|.
    pub(crate) fn new(degrees_of_freedom: Option<f64>, observed: f64, log_determinant: f64) -> Self {
        let gaussian = -0.5 * (observed * (2.0 * std::f64::consts::PI).ln() + log_determinant);
        let Some(degrees) = degrees_of_freedom else {
            return Self { constant: gaussian, tail: None };
        };
        // ln Γ((ν+o)/2) − ln Γ(ν/2) − (o/2) ln(ν/2) beside the Gaussian constant.
        let half = 0.5 * (degrees + observed);
        let tail = Tail { degrees, half, log_less_digamma: log_less_digamma(half) };
        Self { constant: gaussian + log_gamma_ratio(0.5 * degrees, 0.5 * observed), tail: Some(tail) }
    }

    /// That of a sample of which nothing is known: E[u] = 1.
    pub(crate) fn prior(component: &Component) -> Self {
        Self::new(component.degrees_of_freedom(), 0.0, 0.0)
    }

    /// ln p at δ = 0, and ν, (ν + o)/2 and ln((ν+o)/2) − ψ((ν+o)/2) of Student-t noise (0 for Gaussian): for a device, which has no room
    /// for this type.
    #[cfg(feature = "cuda")]
    pub(crate) fn numbers(&self) -> [f64; 4] {
        let tail = self.tail.map_or([0.0; 3], |tail| [tail.degrees, tail.half, tail.log_less_digamma]);
        [self.constant, tail[0], tail[1], tail[2]]
    }

    /// ln p(X|k) from δ. It never rises with δ, so that a lower bound of δ is an upper bound of it.
    #[inline(always)]
    pub(crate) fn log_density(&self, delta: f64) -> f64 {
        match self.tail {
            None => self.constant - 0.5 * delta,
            Some(tail) => self.constant - tail.half * (delta / tail.degrees).ln_1p(),
        }
    }

    /// E[u|X]: how much a sample at distance δ counts in the sums of a component it belongs to.
    #[inline(always)]
    pub(crate) fn weight(&self, delta: f64) -> f64 {
        self.tail.map_or(1.0, |tail| 2.0 * tail.half / (tail.degrees + delta))
    }

    /// What the posterior covariance of Student-t noise is of the one where u = 1: E[1/u|X] = (ν+δ)/(ν+o−2), or ∞ where it has none.
    pub(crate) fn variance_factor(&self, delta: f64) -> f64 {
        self.tail.map_or(1.0, |tail| {
            let rest = 2.0 * (tail.half - 1.0);
            if rest > 0.0 { (tail.degrees + delta) / rest } else { f64::INFINITY }
        })
    }

    /// u given X is Gamma of this shape and rate: (ν+o)/2 and (ν+δ)/2.
    pub(crate) fn posterior_scale(&self, delta: f64) -> Option<(f64, f64)> {
        self.tail.map(|tail| (tail.half, 0.5 * (tail.degrees + delta)))
    }

    /// E[ln u|X] = ψ((ν+o)/2) − ln((ν+δ)/2).
    #[inline(always)]
    pub(crate) fn log_weight(&self, delta: f64) -> f64 {
        self.tail.map_or(0.0, |tail| self.weight(delta).ln() - tail.log_less_digamma)
    }
}

/// What the density and the posterior of one component need, computed once per pass.
///
/// ```text
/// Q = Y ⊘ (s + σ²)        v = σ² ⊘ (s + σ²)        δ = (‖X − M‖² − Σ Y_j²/(s_j + σ²)) / σ²
/// ln|C| = (P − ρ) ln σ² + Σ ln(s_j + σ²)
/// ```
///
/// Everything that follows from the distance δ of a sample is asked of here: a pass, its bounds and whoever infers
/// know nothing of the exponent.
#[derive(Debug, Clone)]
pub(crate) struct Density {
    /// 1 / (s_j + σ²).
    pub(crate) precision: Vec<f64>,
    /// (s_j + 2σ²) / (s_j + σ²)²: what Y_j² takes off the squared reconstruction error.
    pub(crate) explained: Vec<f64>,
    noise_variance: f64,
    /// 1 / σ².
    noise_precision: f64,
    exponent: Exponent,
}

impl Density {
    /// Prepares the density of a component.
    pub(crate) fn new(component: &Component) -> Self {
        Self::relative(component, 1.0)
    }

    /// The same for samples divided by the root of `unit`: comparisons between components are then bitwise identical in every unit of the data.
    pub(crate) fn relative(component: &Component, unit: f64) -> Self {
        Self::with_degrees(component, component.degrees_of_freedom(), unit)
    }

    /// The same as if its noise were Gaussian.
    pub(crate) fn gaussian(component: &Component) -> Self {
        Self::with_degrees(component, None, 1.0)
    }

    fn with_degrees(component: &Component, degrees_of_freedom: Option<f64>, unit: f64) -> Self {
        let s = component.core_variances();
        let noise = component.noise_variance();
        let size = component.mean().len() as f64;
        let log_determinant = (size - s.len() as f64) * (noise / unit).ln()
            + s.iter().map(|s| ((s + noise) / unit).ln()).sum::<f64>();
        Self {
            precision: s.iter().map(|s| 1.0 / (s + noise)).collect(),
            explained: s.iter().map(|s| (s + 2.0 * noise) / ((s + noise) * (s + noise))).collect(),
            noise_variance: noise,
            noise_precision: 1.0 / noise,
            exponent: Exponent::new(degrees_of_freedom, size, log_determinant),
        }
    }

    /// 1/σ², and the numbers of its [`Exponent`].
    #[cfg(feature = "cuda")]
    pub(crate) fn numbers(&self) -> [f64; 5] {
        let [constant, degrees, half, rest] = self.exponent.numbers();
        [self.noise_precision, constant, degrees, half, rest]
    }

    /// The Mahalanobis distance δ (squared) from ‖X − M‖² and Σ Y_j²/(s_j + σ²).
    #[inline(always)]
    pub(crate) fn mahalanobis(&self, squared_distance: f64, explained: f64) -> f64 {
        not_negative(squared_distance - explained) * self.noise_precision
    }

    /// ln p(X|k) from δ.
    #[inline(always)]
    pub(crate) fn log_density(&self, delta: f64) -> f64 {
        self.exponent.log_density(delta)
    }

    /// E[u|X] from δ.
    #[inline(always)]
    pub(crate) fn weight(&self, delta: f64) -> f64 {
        self.exponent.weight(delta)
    }

    /// E[ln u|X] from δ.
    #[inline(always)]
    pub(crate) fn log_weight(&self, delta: f64) -> f64 {
        self.exponent.log_weight(delta)
    }

    /// v = σ² ⊘ (s + σ²): the posterior variance of each entry of the core. The entries are independent. With Student-t noise it is
    /// the variance where u = 1.
    pub(crate) fn posterior_variance(&self) -> Vec<f64> {
        self.precision.iter().map(|p| p * self.noise_variance).collect()
    }
}
