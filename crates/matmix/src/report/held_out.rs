//! How well a model does on samples that it was not fitted to.

use serde::{Deserialize, Serialize};

use super::survey::{squared_distances, survey};
use super::words::{grouped, short, with_digits};
use crate::data::Samples;
use crate::error::Result;
use crate::model::Mixture;

/// What a model makes of samples that it was not fitted to.
///
/// ```
/// use matmix::report::{HeldOut, ReportOptions};
/// use matmix::{FitOptions, Samples, fit};
///
/// let values: Vec<f64> = (0..480).map(|i| f64::from(i * 37 % 101)).collect();
/// let all = Samples::from_vec(&[4, 3], values)?;
/// let [training, others] = [0..30, 30..40].map(|part| part.collect::<Vec<usize>>());
/// let options = FitOptions { components: 1, rank: vec![2, 1], ..FitOptions::default() };
/// let model = fit(&all.clone().select(&training)?, &options)?.model;
/// let held_out = HeldOut::new(&model, &all.select(&others)?)?;
/// assert_eq!(held_out.samples, 10);
/// let options = ReportOptions { held_out: Some(held_out), ..ReportOptions::default() };
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldOut {
    /// How many there are.
    pub samples: usize,
    /// Their mean log-likelihood.
    pub log_likelihood: f64,
    /// √(Σ‖X − X̂‖²/N).
    pub reconstruction_error: f64,
    /// 1 − Σ‖X − X̂‖²/Σ‖X − M‖², M being their mean.
    pub explained: f64,
}

impl HeldOut {
    /// Asks the model.
    ///
    /// # Errors
    /// Samples of another shape, and whatever reading them can cause.
    pub fn new(model: &Mixture, samples: &Samples<'_>) -> Result<Self> {
        let mean = survey(samples)?.mean;
        let [spread, _] = squared_distances(samples, |_| [&mean, &mean])?;
        let errors = model.squared_errors(samples)?;
        let total = |of: &[f64]| -> f64 { of.iter().enumerate().map(|(n, v)| samples.weight(n) * v).sum() };
        let (error, spread) = (total(&errors), total(&spread));
        Ok(Self {
            samples: samples.len(),
            log_likelihood: model.score(samples)?,
            reconstruction_error: (error / samples.total_weight()).sqrt(),
            explained: if spread > 0.0 { 1.0 - error / spread } else { 0.0 },
        })
    }

    pub(super) fn in_words(&self) -> String {
        format!(
            "log-likelihood {} per sample, error {} ({} % of the variance explained), {} samples",
            with_digits(self.log_likelihood),
            short(self.reconstruction_error),
            short(100.0 * self.explained),
            grouped(self.samples)
        )
    }
}
