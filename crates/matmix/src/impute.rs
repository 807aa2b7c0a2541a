//! Cells that are missing (NaN) in new samples, filled in by what a fitted mixture knows about the rest: conditional means, standard
//! deviations and draws, exact unless the posterior is tempered ([`Temper`]).

use crate::data::{Missing, Samples};
use crate::error::Result;
use crate::model::Mixture;
use crate::pass::{Backend, Engine, Impute, Imputed};
use crate::temper::Temper;

/// # Errors
/// Samples of another shape, and infinite ones.
impl Mixture {
    /// Fills in the cells that are NaN: the mean and the standard deviation of each given all observed cells of its sample, over all
    /// components. Samples with the same cells missing share their factorisation. Where a large region is missing, the observed cells are
    /// trusted less than exactly, see [`Temper::Auto`].
    ///
    /// ```
    /// use matmix::{FitOptions, Samples, fit};
    ///
    /// let numbers: Vec<f64> = (0..240).map(|i| f64::from((i * 37) % 101)).collect();
    /// let samples = Samples::from_slice(&[4, 3], &numbers)?;
    /// let model = fit(&samples, &FitOptions { rank: vec![2, 1], ..FitOptions::default() })?.model;
    /// let mut broken = numbers.clone();
    /// broken[5] = f64::NAN;
    /// let filled = model.impute(&Samples::from_vec(&[4, 3], broken)?)?;
    /// assert!(filled.values[5].is_finite() && filled.deviations[5] > 0.0);
    /// assert_eq!(filled.values[6], numbers[6]);
    /// # Ok::<(), matmix::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the samples have another shape than the model, or a cell is infinite.
    pub fn impute(&self, samples: &Samples<'_>) -> Result<Imputed> {
        self.impute_by(samples, Temper::default())
    }

    /// The same, with observed cells trusted as far as `temper` says. The log-likelihoods are exact in any case.
    ///
    /// # Errors
    /// As [`impute`](Self::impute), and a temper that is none.
    pub fn impute_by(&self, samples: &Samples<'_>, temper: Temper) -> Result<Imputed> {
        self.impute_on(Engine::backend(samples), samples, temper)
    }

    /// The same, computed by this backend.
    ///
    /// # Errors
    /// As [`impute_by`](Self::impute_by), and whatever keeps the backend from it.
    pub fn impute_on(&self, backend: &dyn Backend, samples: &Samples<'_>, temper: Temper) -> Result<Imputed> {
        let mut found = backend.impute(&Impute { model: self, temper }, samples)?;
        if !found.tempered.is_empty() {
            let own = samples.clone().with_missing(Missing::Nan).select_part(&found.tempered)?;
            let exact = self.score_samples(&*backend.over(&own)?)?;
            found.tempered.iter().zip(exact).for_each(|(&n, exact)| found.log_likelihood[n] = exact);
        }
        Ok(found)
    }

    /// Draws all missing cells of every sample together, `draws` times: draws × N × P, observed cells as they were. What is computed from
    /// each of them and then averaged knows how uncertain the missing cells are (multiple imputation). The draws of a sample depend on
    /// the seed and its number alone.
    ///
    /// # Errors
    /// As [`impute_draws_by`](Self::impute_draws_by).
    pub fn impute_draws(&self, samples: &Samples<'_>, draws: usize, seed: u64) -> Result<Vec<f64>> {
        self.impute_draws_by(samples, draws, seed, Temper::default())
    }

    /// The same, with observed cells trusted as far as `temper` says.
    ///
    /// # Errors
    /// As [`impute_by`](Self::impute_by), and [`Error::NoMemory`](crate::Error::NoMemory) if the draws do not fit into memory.
    pub fn impute_draws_by(
        &self,
        samples: &Samples<'_>,
        draws: usize,
        seed: u64,
        temper: Temper,
    ) -> Result<Vec<f64>> {
        self.impute_draws_on(Engine::backend(samples), samples, draws, seed, temper)
    }

    /// The same, computed by this backend.
    ///
    /// # Errors
    /// As [`impute_on`](Self::impute_on), and as [`impute_draws_by`](Self::impute_draws_by).
    pub fn impute_draws_on(
        &self,
        backend: &dyn Backend,
        samples: &Samples<'_>,
        draws: usize,
        seed: u64,
        temper: Temper,
    ) -> Result<Vec<f64>> {
        backend.impute_draws(&Impute { model: self, temper }, samples, draws, seed)
    }
}
