//! One component of a mixture: X = B ×_1 U^(1) … ×_D U^(D) + M + σ ε.

use std::borrow::Cow;

use super::canonical::{canonicalize, is_canonical, is_nearly_canonical};
use super::check_loadings;
use crate::error::{Error, Result, sides};
use crate::linalg::{Matrix, expand};
use crate::options::choices;

choices! {
    /// The distribution of the samples of a component around its mean.
    ///
    /// ```
    /// use matmix::{FitOptions, Noise, Samples, fit};
    ///
    /// // Thirty pairs around (0, 0), and one that is far away.
    /// let mut numbers: Vec<f64> = (0..60).map(|i| f64::from((i * 37) % 61 - 30)).collect();
    /// numbers.extend([9000.0, 9000.0]);
    /// let samples = Samples::from_vec(&[2], numbers)?;
    /// let mean = |noise| {
    ///     let options = FitOptions { rank: vec![1], noise, ..FitOptions::default() };
    ///     fit(&samples, &options).map(|fitted| fitted.model.components()[0].mean()[0])
    /// };
    /// assert!(mean(Noise::Gaussian)? > 250.0);
    /// assert!(mean(Noise::T)?.abs() < 10.0);
    /// # Ok::<(), matmix::Error>(())
    /// ```
    pub enum Noise {
        /// Gaussian.
        #[default]
        Gaussian = "gaussian",
        /// Multivariate Student-t: one scale per sample and component, so that outliers count less.
        T = "t",
    }
}

/// Mean, loadings and noise variance of one component, in canonical form.
///
/// ```
/// use matmix::{Component, Matrix};
///
/// // X = L B Rᵀ + M + σ ε for 2×2 matrices and cores of 1×1.
/// let (l, r) = (Matrix::from_vec(2, 1, vec![1.0, 2.0]), Matrix::from_vec(2, 1, vec![1.0, 0.0]));
/// let component = Component::new(&[2, 2], vec![10.0; 4], vec![l, r], 0.1)?;
/// // ‖L‖² ‖R‖² = 5 · 1.
/// assert!((component.core_variances()[0] - 5.0).abs() < 1e-12);
/// let rebuilt = component.reconstruct(&[3.0]);
/// assert!(rebuilt.iter().zip([13.0, 10.0, 16.0, 10.0]).all(|(a, b)| (a - b).abs() < 1e-12));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Component {
    mean: Vec<f64>,
    loadings: Vec<Matrix>,
    noise_variance: f64,
    /// ν of Student-t noise.
    degrees_of_freedom: Option<f64>,
}

/// What a parameter of a component is, for whoever treats them alike but for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// M.
    Mean,
    /// U^(d), which may be rotated.
    Loading(usize),
    /// σ², which has a floor.
    Noise,
    /// ν, which is positive.
    Degrees,
}

/// One of the tensors a component is made of: its name in files and in Python (with all components side by side), its shape and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) kind: Kind,
}

/// A parameter of all components of a mixture, side by side.
///
/// ```
/// use matmix::{Component, Matrix, Mixture};
///
/// let component = |mean| Component::new(&[2], vec![mean; 2], vec![Matrix::identity(2, 1)], 0.5);
/// let model = Mixture::new(&[2], vec![0.3, 0.7], vec![component(0.0)?, component(9.0)?])?;
/// let parameters = model.parameters();
/// let named = parameters.iter().map(|p| (&p.name[..], &p.shape[..])).collect::<Vec<_>>();
/// assert_eq!(named, [("means", &[2, 2][..]), ("loadings.1", &[2, 2, 1]), ("noise_variances", &[2])]);
/// assert_eq!((&parameters[0].values, &parameters[2].values), (&vec![0.0, 0.0, 9.0, 9.0], &vec![0.5; 2]));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Stacked {
    /// Its name: `means`, `loadings.1` (of the first mode), `noise_variances` and so on.
    pub name: String,
    /// Its shape: the components, and then that of one of them.
    pub shape: Vec<usize>,
    /// The values of the first component, of the second, and so on.
    pub values: Vec<f64>,
}

impl Kind {
    /// What such a parameter is called in files and in Python.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Mean => "means".into(),
            Self::Loading(d) => format!("loadings.{}", d + 1),
            Self::Noise => "noise_variances".into(),
            Self::Degrees => "degrees_of_freedom".into(),
        }
    }
}

impl Parameter {
    fn new(kind: Kind, shape: &[usize]) -> Self {
        Self { name: kind.name(), shape: shape.to_vec(), kind }
    }

    /// All parameters of components for samples of this shape with cores of this rank, in the order in which they are written. The
    /// one list: bytes that travel, files, the coordinates of the accelerator and Python's attributes follow from it.
    pub(crate) fn all(shape: &[usize], rank: &[usize], noise: Noise) -> Vec<Self> {
        let mut all = vec![Self::new(Kind::Mean, shape)];
        for (d, (&p, &r)) in shape.iter().zip(rank).enumerate() {
            all.push(Self::new(Kind::Loading(d), &[p, r]));
        }
        all.push(Self::new(Kind::Noise, &[]));
        if noise == Noise::T {
            all.push(Self::new(Kind::Degrees, &[]));
        }
        all
    }

    /// How many numbers it has.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }
}

impl Component {
    /// The values of all parameters, in the order of [`Parameter::all`].
    pub(crate) fn values(&self) -> Vec<Cow<'_, [f64]>> {
        let mut values = vec![Cow::Borrowed(&self.mean[..])];
        values.extend(self.loadings.iter().map(|u| Cow::Borrowed(u.as_slice())));
        values.push(Cow::Owned(vec![self.noise_variance]));
        values.extend(self.degrees_of_freedom.map(|degrees| Cow::Owned(vec![degrees])));
        values
    }

    /// A component with the very numbers that `value` gives for each parameter, checked.
    pub(crate) fn assemble(
        shape: &[usize],
        rank: &[usize],
        noise: Noise,
        mut value: impl FnMut(&Parameter) -> Result<Vec<f64>>,
    ) -> Result<Self> {
        let rank = super::ranks_for(shape, rank)?;
        let (mut mean, mut loadings, mut variance, mut degrees) = (vec![], vec![], f64::NAN, None);
        for parameter in Parameter::all(shape, &rank, noise) {
            let values = value(&parameter)?;
            if values.len() != parameter.len() {
                let (name, needed, found) = (&parameter.name, parameter.len(), values.len());
                return Err(Error::Model {
                    problem: format!("`{name}` has {found} numbers instead of {needed}"),
                });
            }
            match parameter.kind {
                Kind::Mean => mean = values,
                Kind::Loading(d) => loadings.push(Matrix::from_vec(shape[d], rank[d], values)),
                Kind::Noise => variance = values[0],
                Kind::Degrees => degrees = Some(values[0]),
            }
        }
        Self::exactly(shape, mean, loadings, variance)?.with_degrees_of_freedom(degrees)
    }

    /// A component from its parameters, which are checked and brought into canonical form: the loadings are
    /// rotated so that U^(d)ᵀU^(d) is diagonal and descending, which changes nothing about the model.
    ///
    /// # Errors
    /// If they do not fit each other or the shape, are not finite, or the noise variance is not positive.
    pub fn new(shape: &[usize], mean: Vec<f64>, loadings: Vec<Matrix>, noise_variance: f64) -> Result<Self> {
        let mut component = Self::exactly(shape, mean, loadings, noise_variance)?;
        if !is_canonical(&component.loadings) {
            canonicalize(&mut component.loadings);
        }
        Ok(component)
    }

    /// A component with the very numbers given, checked: for those that were canonical where they come from.
    pub(crate) fn exactly(
        shape: &[usize],
        mean: Vec<f64>,
        loadings: Vec<Matrix>,
        noise_variance: f64,
    ) -> Result<Self> {
        check_loadings(shape, &loadings)?;
        let size: usize = shape.iter().product();
        let wrong = |problem: String| Err(Error::Model { problem });
        if mean.len() != size {
            return wrong(format!("a mean has {} numbers; shape {} needs {size}", mean.len(), sides(shape)));
        }
        if let Some(i) = mean.iter().position(|x| !x.is_finite()) {
            return wrong(format!("a mean holds {} at position {i}", mean[i]));
        }
        if !(noise_variance.is_finite() && noise_variance > 0.0) {
            return wrong(format!("a noise variance is {noise_variance}; it must be positive"));
        }
        Ok(Self { mean, loadings, noise_variance, degrees_of_freedom: None })
    }

    /// A component whose parameters are known to be valid: what an M-step returns.
    pub(crate) fn from_step(mean: Vec<f64>, loadings: Vec<Matrix>, noise_variance: f64) -> Self {
        Self { mean, loadings, noise_variance, degrees_of_freedom: None }.canonical()
    }

    /// The same component around another mean.
    pub(crate) fn moved_to(&self, mean: Vec<f64>) -> Self {
        Self { mean, ..self.clone() }.canonical()
    }

    /// The same component with Student-t noise of so many degrees of freedom, or with Gaussian noise: the limit of many.
    ///
    /// # Errors
    /// If the number is not positive and finite.
    pub fn with_degrees_of_freedom(self, degrees_of_freedom: Option<f64>) -> Result<Self> {
        match degrees_of_freedom {
            Some(degrees) if !(degrees.is_finite() && degrees > 0.0) => {
                let problem = format!("degrees of freedom are {degrees}; they must be positive and finite");
                Err(Error::Model { problem })
            }
            _ => Ok(Self { degrees_of_freedom, ..self }),
        }
    }

    /// The same component, to the last bit if it is in canonical form but for rounding: what was written by this library.
    pub(crate) fn nearly_canonical(self) -> Self {
        if is_nearly_canonical(&self.loadings) { self } else { self.canonical() }
    }

    /// The same component in canonical form.
    pub(crate) fn canonical(mut self) -> Self {
        canonicalize(&mut self.loadings);
        self
    }

    /// M, in row-major order.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// U^(d), one p_d × r_d matrix per mode: for matrices the row loadings L and the column loadings R.
    pub fn loadings(&self) -> &[Matrix] {
        &self.loadings
    }

    /// σ².
    pub fn noise_variance(&self) -> f64 {
        self.noise_variance
    }

    /// ν of Student-t noise; none if the noise is Gaussian.
    pub fn degrees_of_freedom(&self) -> Option<f64> {
        self.degrees_of_freedom
    }

    /// λ^(d): the squared lengths of the columns of U^(d), descending.
    pub fn eigenvalues(&self, mode: usize) -> Vec<f64> {
        self.loadings[mode].column_norms_squared()
    }

    /// s_j = Π_d λ^(d)_{j_d} in row-major order of the core: the variance each core entry adds to the samples.
    pub fn core_variances(&self) -> Vec<f64> {
        let mut s = vec![1.0];
        for u in &self.loadings {
            let lambda = u.column_norms_squared();
            s = s.iter().flat_map(|&s| lambda.iter().map(move |&l| s * l)).collect();
        }
        s
    }

    /// Π_{e≠d} λ^(e), in row-major order of the other modes: the weights W of maths.md, eq. 11.
    pub(crate) fn other_variances(&self, d: usize) -> Vec<f64> {
        let mut w = vec![1.0];
        for (e, u) in self.loadings.iter().enumerate() {
            if e != d {
                let lambda = u.column_norms_squared();
                w = w.iter().flat_map(|&w| lambda.iter().map(move |&l| w * l)).collect();
            }
        }
        w
    }

    /// B ×_1 U^(1) … ×_D U^(D) + M: the sample a core stands for (L B Rᵀ + M for matrices).
    pub fn reconstruct(&self, core: &[f64]) -> Vec<f64> {
        let mut x = expand(core, &self.loadings);
        x.iter_mut().zip(&self.mean).for_each(|(x, m)| *x += m);
        x
    }

    /// tr C = Σ_j s_j + P σ²: the total variance of the samples around the mean, where u = 1 if the noise is Student-t.
    pub(crate) fn total_variance(&self) -> f64 {
        self.core_variances().iter().sum::<f64>() + self.mean.len() as f64 * self.noise_variance
    }
}
