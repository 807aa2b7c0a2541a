//! Missing cells of samples, given the others.

use crate::model::Mixture;
use crate::temper::Temper;

/// Asks what the cells of samples that are NaN may be, given those that are not.
///
/// ```
/// use matmix::pass::Impute;
/// use matmix::{Backend, Component, Cpu, Matrix, Mixture, Samples, Temper};
///
/// let component = Component::new(&[2], vec![1.0, 2.0], vec![Matrix::from_vec(2, 1, vec![1.0, 1.0])], 1.0)?;
/// let model = Mixture::new(&[2], vec![1.0], vec![component])?;
/// let samples = Samples::from_vec(&[2], vec![3.0, f64::NAN])?;
/// let pass = Impute { model: &model, temper: Temper::None };
/// let found = Cpu::best().impute(&pass, &samples)?;
/// let draws = Cpu::best().impute_draws(&pass, &samples, 2000, 1)?;
/// // The mean of what is drawn is the mean that is told.
/// let mean = draws.chunks(2).map(|drawn| drawn[1]).sum::<f64>() / 2000.0;
/// assert!((mean - found.values[1]).abs() < 0.1, "{mean}");
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Impute<'a> {
    /// The mixture.
    pub model: &'a Mixture,
    /// How far the observed cells are trusted.
    pub temper: Temper,
}

/// Samples whose missing cells were filled in.
///
/// ```
/// use matmix::{Component, Matrix, Mixture, Samples};
///
/// // Two numbers of variance 2 and covariance 1, with means 1 and 2.
/// let component = Component::new(&[2], vec![1.0, 2.0], vec![Matrix::from_vec(2, 1, vec![1.0, 1.0])], 1.0)?;
/// let model = Mixture::new(&[2], vec![1.0], vec![component])?;
/// let filled = model.impute(&Samples::from_vec(&[2], vec![3.0, f64::NAN])?)?;
/// // The second given the first: 2 + ½ (3 − 1), with a variance of 2 − ½.
/// assert!((filled.values[1] - 3.0).abs() < 1e-12);
/// assert!((filled.deviations[1].powi(2) - 1.5).abs() < 1e-12);
/// assert_eq!((filled.missing, filled.values[0], filled.deviations[0]), (1, 3.0, 0.0));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Imputed {
    /// N × P: what was observed as it was, what was missing by its conditional mean.
    pub values: Vec<f64>,
    /// N × P: the standard deviation of every cell given what was observed of its sample; 0 where it was observed. It is infinite where a
    /// Student-t has no variance.
    pub deviations: Vec<f64>,
    /// ln p of what was observed of every sample; 0 for a sample of which nothing was.
    pub log_likelihood: Vec<f64>,
    /// How many cells were missing.
    pub missing: usize,
    /// The samples of which nothing was observed.
    pub empty: Vec<usize>,
    /// The samples whose posterior was tempered: with [`Temper::Auto`] those of which a large region is missing.
    pub tempered: Vec<usize>,
}
