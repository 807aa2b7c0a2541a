//! One component of a mixture: X = B ×_1 U^(1) … ×_D U^(D) + M + σ ε.

use std::borrow::Cow;
use std::ops::RangeInclusive;

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

/// Estimated degrees of freedom stay within these: beyond, a component is Gaussian, or nothing.
pub(crate) const DEGREES: RangeInclusive<f64> = 0.5..=1e4;

/// What a parameter of a component is. A new one is a variant here and what the compiler then asks for in this file: whoever else
/// handles parameters asks for the list.
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

/// One of the tensors a component is made of: its name in files and in Python (with all components side by side), its shape and what
/// has to be known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    /// How many of its numbers are free: those that rotations of the latent axes and moving scale between the modes leave
    /// undetermined are not.
    pub(crate) free: usize,
    /// Whether a component can do without it.
    optional: bool,
    /// Whether its numbers are positive, so that their logarithms may be any.
    positive: bool,
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
    /// All that a component for samples of so many modes can have, in the order in which they are written.
    pub(crate) fn all(order: usize) -> impl Iterator<Item = Self> {
        let loadings = (0..order).map(Self::Loading);
        std::iter::once(Self::Mean).chain(loadings).chain([Self::Noise, Self::Degrees])
    }

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
    fn new(kind: Kind, shape: &[usize], rank: &[usize]) -> Self {
        let (shape, free, optional, positive) = match kind {
            Kind::Mean => (shape.to_vec(), shape.iter().product(), false, false),
            Kind::Loading(d) => {
                let (p, r) = (shape[d], rank[d]);
                let undetermined = r * (r - 1) / 2 + usize::from(d > 0);
                (vec![p, r], p * r - undetermined, false, false)
            }
            Kind::Noise => (vec![], 1, false, true),
            Kind::Degrees => (vec![], 1, true, true),
        };
        Self { kind, name: kind.name(), shape, free, optional, positive }
    }

    /// All parameters of components for samples of this shape with cores of this rank, in the order in which they are written; of those
    /// that a component can do without the ones that `has` is true of. The one list: bytes that travel, files, the coordinates of the
    /// accelerator and Python's attributes follow from it.
    ///
    /// # Errors
    /// If the ranks do not fit the shape.
    pub(crate) fn all(shape: &[usize], rank: &[usize], has: impl Fn(&Self) -> bool) -> Result<Vec<Self>> {
        let rank = super::ranks_for(shape, rank)?;
        let all = Kind::all(shape.len()).map(|kind| Self::new(kind, shape, &rank));
        Ok(all.filter(|parameter| !parameter.optional || has(parameter)).collect())
    }

    /// How many numbers it has.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether a component can do without it.
    pub(crate) fn is_optional(&self) -> bool {
        self.optional
    }

    /// One of its numbers as one that may be any; a noise variance is counted in `unit`.
    pub(crate) fn coordinate(&self, number: f64, unit: f64) -> f64 {
        match self.kind {
            Kind::Noise => (number / unit).ln(),
            _ if self.positive => number.ln(),
            _ => number,
        }
    }

    /// The number that a coordinate stands for, within what it may be: no noise variance is below `floor`. One that did not move
    /// from `before` keeps its bits.
    pub(crate) fn number(
        &self,
        coordinate: f64,
        before: f64,
        (floor, unit, min_degrees): (f64, f64, f64),
    ) -> f64 {
        let stayed = self.coordinate(before, unit) == coordinate;
        let number = match self.kind {
            _ if stayed => before,
            Kind::Noise => coordinate.exp() * unit,
            _ if self.positive => coordinate.exp(),
            _ => coordinate,
        };
        match self.kind {
            Kind::Mean | Kind::Loading(_) => number,
            Kind::Noise => number.max(floor),
            Kind::Degrees if stayed => number,
            Kind::Degrees => number.clamp(min_degrees, *DEGREES.end()),
        }
    }
}

impl Component {
    /// The parameters it has, and those it could have.
    pub(crate) fn parameters(&self) -> (Vec<Parameter>, Vec<Parameter>) {
        let side = |of: fn(&Matrix) -> usize| self.loadings.iter().map(of).collect::<Vec<_>>();
        let (shape, rank) = (side(Matrix::rows), side(Matrix::cols));
        let all = Kind::all(shape.len()).map(|kind| Parameter::new(kind, &shape, &rank));
        all.partition(|parameter| self.has(parameter.kind))
    }

    /// Whether it has such a parameter.
    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.value(kind).is_some()
    }

    /// The numbers of a parameter, if it has it.
    pub(crate) fn value(&self, kind: Kind) -> Option<Cow<'_, [f64]>> {
        let number = |x: f64| Cow::Owned(vec![x]);
        match kind {
            Kind::Mean => Some(Cow::Borrowed(&self.mean[..])),
            Kind::Loading(d) => self.loadings.get(d).map(|u| Cow::Borrowed(u.as_slice())),
            Kind::Noise => Some(number(self.noise_variance)),
            Kind::Degrees => self.degrees_of_freedom.map(number),
        }
    }

    /// Gives it a parameter.
    fn set(&mut self, parameter: &Parameter, values: Vec<f64>) {
        match parameter.kind {
            Kind::Mean => self.mean = values,
            Kind::Loading(d) => {
                self.loadings[d] = Matrix::from_vec(parameter.shape[0], parameter.shape[1], values);
            }
            Kind::Noise => self.noise_variance = values[0],
            Kind::Degrees => self.degrees_of_freedom = Some(values[0]),
        }
    }

    /// What is wrong with a parameter of a component for samples of so many numbers.
    fn problem_of(&self, kind: Kind, size: usize) -> Option<String> {
        match kind {
            Kind::Mean if self.mean.len() != size => {
                let (found, shape) =
                    (self.mean.len(), self.loadings.iter().map(Matrix::rows).collect::<Vec<_>>());
                Some(format!("a mean has {found} numbers; shape {} needs {size}", sides(&shape)))
            }
            Kind::Mean => {
                let at = self.mean.iter().position(|x| !x.is_finite())?;
                Some(format!("a mean holds {} at position {at}", self.mean[at]))
            }
            // All of them are checked at once, against the shape.
            Kind::Loading(_) => None,
            Kind::Noise => {
                let variance = self.noise_variance;
                let fits = variance.is_finite() && variance > 0.0;
                (!fits).then(|| format!("a noise variance is {variance}; it must be positive"))
            }
            Kind::Degrees => {
                let degrees = self.degrees_of_freedom.filter(|nu| !(nu.is_finite() && *nu > 0.0))?;
                Some(format!("degrees of freedom are {degrees}; they must be positive and finite"))
            }
        }
    }

    /// How much a change of a coordinate of a parameter changes the density of the samples, of which the component has this share:
    /// the diagonal of the Fisher information, roughly.
    pub(crate) fn worth(&self, kind: Kind, weight: f64) -> f64 {
        let precision = weight / self.noise_variance;
        match kind {
            Kind::Mean => precision,
            Kind::Loading(d) => {
                let others = self.loadings.iter().enumerate().filter(|(e, _)| *e != d);
                precision * others.map(|(_, u)| u.inner(u)).product::<f64>()
            }
            Kind::Noise => 0.5 * self.mean.len() as f64 * weight,
            Kind::Degrees => weight,
        }
    }

    /// A component with the very numbers that `value` gives for each parameter of the list, checked.
    pub(crate) fn assemble(
        shape: &[usize],
        parameters: &[Parameter],
        mut value: impl FnMut(&Parameter) -> Result<Vec<f64>>,
    ) -> Result<Self> {
        let loadings = vec![Matrix::zeros(0, 0); shape.len()];
        let mut component =
            Self { mean: vec![], loadings, noise_variance: f64::NAN, degrees_of_freedom: None };
        for parameter in parameters {
            let values = value(parameter)?;
            if values.len() != parameter.len() {
                let (name, needed, found) = (&parameter.name, parameter.len(), values.len());
                return Err(Error::Model {
                    problem: format!("`{name}` has {found} numbers instead of {needed}"),
                });
            }
            component.set(parameter, values);
        }
        component.checked(shape)
    }

    /// A component from its parameters, which are checked and brought into canonical form: the loadings are
    /// rotated so that U^(d)ᵀU^(d) is diagonal and descending, which changes nothing about the model.
    ///
    /// # Errors
    /// If they do not fit each other or the shape, are not finite, or the noise variance is not positive.
    pub fn new(shape: &[usize], mean: Vec<f64>, loadings: Vec<Matrix>, noise_variance: f64) -> Result<Self> {
        Self { mean, loadings, noise_variance, degrees_of_freedom: None }.renewed(shape)
    }

    /// The same component around another mean. This, other loadings and other noise are how a component is made like another: all
    /// that it has beside them stays. [`checked`](Self::checked), [`renewed`](Self::renewed) or [`canonical`](Self::canonical) follows.
    pub(crate) fn with_mean(self, mean: Vec<f64>) -> Self {
        Self { mean, ..self }
    }

    /// The same component with other loadings.
    pub(crate) fn with_loadings(self, loadings: Vec<Matrix>) -> Self {
        Self { loadings, ..self }
    }

    /// The same component with other noise.
    pub(crate) fn with_noise_variance(self, noise_variance: f64) -> Self {
        Self { noise_variance, ..self }
    }

    /// This component with all that another has beside mean, loadings and noise.
    pub(crate) fn like(self, other: &Self) -> Self {
        let Self { mean, loadings, noise_variance, .. } = self;
        Self { mean, loadings, noise_variance, ..other.clone() }
    }

    /// This component with what two others have beside mean, loadings and noise: between the two, as one takes the mean of scales
    /// where numbers are positive.
    pub(crate) fn between(self, pair: [&Self; 2], shares: [f64; 2], shape: &[usize]) -> Result<Self> {
        let mut one = self.like(pair[0]);
        for parameter in one.parameters().0.iter().filter(|parameter| parameter.optional) {
            let Some((a, b)) = pair[0].value(parameter.kind).zip(pair[1].value(parameter.kind)) else {
                continue;
            };
            let mean = |(&a, &b): (&f64, &f64)| {
                let (from, to) = (parameter.coordinate(a, 1.0), parameter.coordinate(b, 1.0));
                let mean = shares[0] * from + shares[1] * to;
                if parameter.positive { mean.exp() } else { mean }
            };
            let values = a.iter().zip(b.iter()).map(mean).collect();
            one.set(parameter, values);
        }
        one.checked(shape)
    }

    /// The same component with the very numbers it has, if they are valid for samples of this shape: for those that were canonical
    /// where they come from.
    ///
    /// # Errors
    /// If they do not fit each other or the shape, are not finite, or those that have to be positive are not.
    pub(crate) fn checked(self, shape: &[usize]) -> Result<Self> {
        check_loadings(shape, &self.loadings)?;
        let size = shape.iter().product();
        match Kind::all(shape.len()).find_map(|kind| self.problem_of(kind, size)) {
            Some(problem) => Err(Error::Model { problem }),
            None => Ok(self),
        }
    }

    /// The same component, checked and in canonical form; to the last bit if it was.
    ///
    /// # Errors
    /// As [`checked`](Self::checked).
    pub(crate) fn renewed(self, shape: &[usize]) -> Result<Self> {
        let checked = self.checked(shape)?;
        if is_canonical(&checked.loadings) { Ok(checked) } else { Ok(checked.canonical()) }
    }

    /// The same component with Student-t noise of so many degrees of freedom, or with Gaussian noise: the limit of many.
    ///
    /// # Errors
    /// If the number is not positive and finite.
    pub fn with_degrees_of_freedom(self, degrees_of_freedom: Option<f64>) -> Result<Self> {
        let component = Self { degrees_of_freedom, ..self };
        match component.problem_of(Kind::Degrees, component.mean.len()) {
            Some(problem) => Err(Error::Model { problem }),
            None => Ok(component),
        }
    }

    /// The component that an M-step makes of it, whose parameters are known to be valid.
    pub(crate) fn stepped(&self, mean: Vec<f64>, loadings: Vec<Matrix>, noise_variance: f64) -> Self {
        self.clone().with_mean(mean).with_loadings(loadings).with_noise_variance(noise_variance).canonical()
    }

    /// The same component around another mean.
    pub(crate) fn moved_to(&self, mean: Vec<f64>) -> Self {
        self.clone().with_mean(mean).canonical()
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
