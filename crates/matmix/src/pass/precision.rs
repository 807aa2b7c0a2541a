//! Single or double: the precision samples are contracted in.

use crate::data::Element;
use crate::model::Mixture;
use crate::options::choices;

choices! {
    /// The precision the samples are contracted in. Parameters, sums and the M-step are always double.
    ///
    /// ```
    /// use matmix::{FitOptions, Precision, Samples, fit};
    ///
    /// let numbers: Vec<f32> = (0u16..360).map(|i| f32::from((i * 37) % 101)).collect();
    /// let samples = Samples::from_vec(&[4, 3], numbers)?;
    /// let error = |precision| {
    ///     let options = FitOptions { rank: vec![2, 1], max_iter: 5, tol: 0.0, precision, ..FitOptions::default() };
    ///     fit(&samples, &options).map(|fitted| fitted.reconstruction_error())
    /// };
    /// assert!((error(Precision::Single)? / error(Precision::Double)? - 1.0).abs() < 1e-4);
    /// # Ok::<(), matmix::Error>(())
    /// ```
    pub enum Precision {
        /// Single for `u8` and `f32` data unless the model's noise is so small that rounding would show; double for `f64` data.
        #[default]
        Auto = "auto",
        /// Single, whatever the data and the model.
        Single = "single",
        /// Double, whatever the data.
        Double = "double",
    }
}

/// Above this ratio of total variance to noise, the differences of a density in single precision are mostly
/// rounding: ½ · ε · 100 · P is about 3e-6 nats per element.
const SINGLE_LIMIT: f64 = 100.0;

/// Mean squares per element that single precision has room for, and digits left below.
pub(crate) const SINGLE_RANGE: std::ops::RangeInclusive<f64> = 1e-20..=1e20;

impl Precision {
    /// Whether a pass with this model over elements of this type runs in double precision. A function of
    /// the model and the element type alone, so that a resumed fit takes the same turns.
    pub(crate) fn is_double(self, element: Element, model: &Mixture) -> bool {
        match self {
            Precision::Double => true,
            Precision::Single => false,
            Precision::Auto if element == Element::F64 => true,
            Precision::Auto => rounding_shows(model, SINGLE_LIMIT),
        }
    }
}

/// Whether single precision has no room for a model, or its total variance is more than `limit` times its noise.
pub(crate) fn rounding_shows(model: &Mixture, limit: f64) -> bool {
    let reference = model.overall_mean();
    let size = model.sample_len() as f64;
    let (mut total, mut noise) = (0.0f64, f64::INFINITY);
    for (weight, component) in model.weights().iter().zip(model.components()) {
        let offset: f64 = component.mean().iter().zip(&reference).map(|(m, g)| (m - g) * (m - g)).sum();
        total += weight * (component.total_variance() + offset);
        noise = noise.min(component.noise_variance());
    }
    let per_element = total / size;
    !SINGLE_RANGE.contains(&per_element) || per_element > limit * noise
}
