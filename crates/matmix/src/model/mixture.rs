//! The mixture: weights and components, checked once.

use std::sync::Arc;

use super::{Classes, Component, Kind, Noise, Stacked, power_of_four};
use crate::error::{Counted, Error, Result};
use crate::linalg::Matrix;

/// A mixture of K multilinear probabilistic PCA components for samples of one shape.
///
/// With K = 1 it is probabilistic PCA (order 1), PSOPCA (order 2) or tensor PPCA; with more components the
/// mixture of PPCA (order 1), mixB2DPPCA (order 2) and their generalisation to any order.
///
/// Sample n is drawn from component k with probability π_k and is then
///
/// ```text
/// X = B ×_1 U^(1) … ×_D U^(D) + M + σ ε      (X = L B Rᵀ + M + σ ε for matrices)
/// ```
///
/// Reference: F. Ju, Y. Sun, J. Gao, S. Liu, Y. Hu, *Mixture of Bilateral-Projection Two-dimensional
/// Probabilistic Principal Component Analysis*, arXiv 1601.01431.
///
/// ```
/// use matmix::{Component, Matrix, Mixture, Samples};
///
/// let around = |mean: f64| {
///     Component::new(&[2, 2], vec![mean; 4], vec![Matrix::identity(2, 1), Matrix::identity(2, 1)], 0.1)
/// };
/// let model = Mixture::new(&[2, 2], vec![1.0, 3.0], vec![around(0.0)?, around(10.0)?])?;
/// assert_eq!(model.weights(), [0.25, 0.75]);
/// let samples = Samples::from_vec(&[2, 2], vec![0.5, 0.1, 0.0, -0.2, 9.0, 10.1, 9.9, 10.0])?;
/// assert_eq!(model.assign(&samples)?, [0, 1]);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Mixture {
    shape: Vec<usize>,
    rank: Vec<usize>,
    weights: Vec<f64>,
    components: Vec<Component>,
    classes: Option<Arc<Classes>>,
}

/// What a fitted model costs and what it gains: smaller is better for all but the log-likelihood.
///
/// ```
/// use matmix::{FitOptions, Samples, fit};
///
/// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
/// let samples = Samples::from_vec(&[4, 3], numbers)?;
/// let model = fit(&samples, &FitOptions { components: 2, rank: vec![1], ..FitOptions::default() })?.model;
/// let criteria = model.evaluate(&samples)?;
/// let m = model.n_parameters() as f64;
/// assert!((criteria.bic - (m * 30f64.ln() - 2.0 * criteria.log_likelihood)).abs() < 1e-6);
/// assert!(criteria.icl >= criteria.bic);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Criteria {
    /// Σ_n ln p(X_n), weighted.
    pub log_likelihood: f64,
    /// −2 ln L + m ln N.
    pub bic: f64,
    /// −2 ln L + 2m.
    pub aic: f64,
    /// BIC plus twice the entropy of the responsibilities: prefers components that do not overlap.
    pub icl: f64,
}

impl Mixture {
    /// A mixture from its parts. The weights must be positive and are normalised to a sum of 1.
    ///
    /// # Errors
    /// If there are none, they do not fit each other or the shape, a weight is negative or not finite, or all are zero.
    pub fn new(shape: &[usize], weights: Vec<f64>, components: Vec<Component>) -> Result<Self> {
        let mut model = Self::exactly(shape, weights, components)?;
        let total: f64 = model.weights.iter().sum();
        // A stored model sums to 1 up to rounding and keeps its bits.
        if (total - 1.0).abs() > 1e-12 {
            model.weights.iter_mut().for_each(|w| *w /= total);
        }
        Ok(model)
    }

    /// The same, with the very weights given if they sum to 1 but for rounding: what was written by this library.
    pub(crate) fn nearly(shape: &[usize], weights: Vec<f64>, components: Vec<Component>) -> Result<Self> {
        let total: f64 = weights.iter().sum();
        match (total - 1.0).abs() <= 1e-9 {
            true => Self::exactly(shape, weights, components),
            false => Self::new(shape, weights, components),
        }
    }

    /// A mixture with the very numbers given, checked: for weights that summed to 1 where they come from.
    pub(crate) fn exactly(shape: &[usize], weights: Vec<f64>, components: Vec<Component>) -> Result<Self> {
        let wrong = |problem: String| Err(Error::Model { problem });
        let Some(first) = components.first() else {
            return wrong("it has no components".into());
        };
        if weights.len() != components.len() {
            return wrong(format!("{} weights for {} components", weights.len(), components.len()));
        }
        let rank: Vec<usize> = first.loadings().iter().map(Matrix::cols).collect();
        for component in &components {
            let sides: Vec<usize> = component.loadings().iter().map(Matrix::rows).collect();
            let ranks: Vec<usize> = component.loadings().iter().map(Matrix::cols).collect();
            if sides != shape || ranks != rank {
                return wrong("its components differ in shape or rank".into());
            }
            if let Some(kind) = Kind::all(shape.len()).find(|&kind| component.has(kind) != first.has(kind)) {
                let name = kind.name().replace('_', " ");
                return wrong(format!("some of its components have {name} and some have none"));
            }
        }
        if let Some(w) = weights.iter().find(|w| !(w.is_finite() && **w >= 0.0)) {
            return wrong(format!("a component weight is {w}; weights must be finite and not negative"));
        }
        let total: f64 = weights.iter().sum();
        if !(total.is_finite() && total > 0.0) {
            return wrong("its component weights sum to nothing".into());
        }
        Ok(Self { shape: shape.to_vec(), rank, weights, components, classes: None })
    }

    /// The same mixture, whose components belong to classes, or to none.
    ///
    /// # Errors
    /// If there is not one class for every component.
    pub fn with_classes(mut self, classes: Option<Classes>) -> Result<Self> {
        if let Some(classes) = &classes
            && classes.components().len() != self.n_components()
        {
            let (expected, found) = (self.n_components(), classes.components().len());
            return Err(Error::Count { what: Counted::ComponentClasses, expected, found });
        }
        self.classes = classes.map(Arc::new);
        Ok(self)
    }

    /// The classes its components belong to, where labels were known when it was fitted.
    pub fn classes(&self) -> Option<&Classes> {
        self.classes.as_deref()
    }

    /// The shape of the samples.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The shape of the cores: one rank per mode.
    pub fn rank(&self) -> &[usize] {
        &self.rank
    }

    /// K.
    pub fn n_components(&self) -> usize {
        self.components.len()
    }

    /// P: the number of elements of a sample.
    pub fn sample_len(&self) -> usize {
        self.shape.iter().product()
    }

    /// ρ: the number of elements of a core.
    pub fn core_len(&self) -> usize {
        self.rank.iter().product()
    }

    /// π: the weights of the components, summing to 1.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The components.
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// The kind of noise all components have.
    pub fn noise(&self) -> Noise {
        match self.components[0].degrees_of_freedom() {
            Some(_) => Noise::T,
            None => Noise::Gaussian,
        }
    }

    /// Every parameter of the components, all of them side by side, under the names they have in files and in Python.
    pub fn parameters(&self) -> Vec<Stacked> {
        let (all, _) = self.components[0].parameters();
        let values = |kind| self.components.iter().filter_map(move |component| component.value(kind));
        all.into_iter()
            .map(|parameter| Stacked {
                name: parameter.name,
                shape: std::iter::once(self.n_components()).chain(parameter.shape).collect(),
                values: values(parameter.kind).flat_map(|values| values.into_owned()).collect(),
            })
            .collect()
    }

    /// The names of the parameters that components can have and these have not.
    ///
    /// ```
    /// use matmix::{Component, Matrix, Mixture};
    ///
    /// let component = Component::new(&[2], vec![0.0; 2], vec![Matrix::identity(2, 1)], 0.5)?;
    /// let model = Mixture::new(&[2], vec![1.0], vec![component])?;
    /// // Gaussian noise has none.
    /// assert_eq!(model.absent_parameters(), ["degrees_of_freedom"]);
    /// # Ok::<(), matmix::Error>(())
    /// ```
    pub fn absent_parameters(&self) -> Vec<String> {
        self.components[0].parameters().1.into_iter().map(|parameter| parameter.name).collect()
    }

    /// ν of every component with Student-t noise.
    pub fn degrees_of_freedom(&self) -> Option<Vec<f64>> {
        self.components.iter().map(Component::degrees_of_freedom).collect()
    }

    /// Component `k`, or an error that says how many there are.
    ///
    /// # Errors
    /// If there is no such component.
    pub fn component(&self, k: usize) -> Result<&Component> {
        self.components.get(k).ok_or(Error::Option {
            option: "component",
            value: k.to_string(),
            expected: "less than the number of components",
        })
    }

    /// Σ_k π_k M_k: the mean of all samples. Subtracted from every sample before anything else, so that single precision is spent
    /// on what differs between samples.
    pub(crate) fn overall_mean(&self) -> Vec<f64> {
        let mut mean = vec![0.0; self.sample_len()];
        for (weight, component) in self.weights.iter().zip(&self.components) {
            for (g, m) in mean.iter_mut().zip(component.mean()) {
                *g += weight * m;
            }
        }
        mean
    }

    /// A power of four near the noise variances: densities relative to it have the same bits in every unit of the data.
    pub(crate) fn unit_variance(&self) -> f64 {
        power_of_four(self.components.iter().map(Component::noise_variance).fold(0.0, f64::max))
    }

    /// The number of free parameters: weights and what the components are made of, less what rotations of the latent axes and moving
    /// scale between the modes leave undetermined.
    pub fn n_parameters(&self) -> usize {
        let each: usize = self.components[0].parameters().0.iter().map(|parameter| parameter.free).sum();
        self.n_components() * each + self.n_components() - 1
    }

    /// BIC from the mean log-likelihood of N samples.
    pub fn bic(&self, mean_log_likelihood: f64, n: f64) -> f64 {
        self.criteria(n * mean_log_likelihood, 0.0, n).bic
    }

    /// BIC, AIC and ICL from a total log-likelihood, the entropy of the responsibilities and N.
    pub(crate) fn criteria(&self, log_likelihood: f64, entropy: f64, n: f64) -> Criteria {
        let m = self.n_parameters() as f64;
        let bic = -2.0 * log_likelihood + m * n.ln();
        Criteria { log_likelihood, bic, aic: -2.0 * log_likelihood + 2.0 * m, icl: bic + 2.0 * entropy }
    }

    /// The covariance of the samples of component k over the row-major elements, for small P only: the scale matrix, with Student-t noise
    /// ν/(ν − 2) times as much.
    ///
    /// # Errors
    /// If there is no such component, P is larger than 8,192, or the noise is a Student-t with ν ≤ 2: it has no covariance.
    pub fn covariance(&self, k: usize) -> Result<Matrix> {
        let degrees = self.component(k)?.degrees_of_freedom();
        let factor = match degrees {
            None => 1.0,
            Some(degrees) if degrees > 2.0 => degrees / (degrees - 2.0),
            Some(degrees) => return Err(Error::NoCovariance { component: k, degrees }),
        };
        let mut c = self.scale_matrix(k)?;
        c.scale(factor);
        Ok(c)
    }

    /// C_k = U^(1)U^(1)ᵀ ⊗ … ⊗ U^(D)U^(D)ᵀ + σ² I over the row-major elements, for small P only: the covariance of a Gaussian component,
    /// and the scale matrix of one with Student-t noise.
    ///
    /// # Errors
    /// If there is no such component, or P is larger than 8,192.
    pub fn scale_matrix(&self, k: usize) -> Result<Matrix> {
        const LIMIT: usize = 8192;
        let size = self.sample_len();
        if size > LIMIT {
            return Err(Error::TooLarge { size, limit: LIMIT });
        }
        let component = self.component(k)?;
        let mut c = Matrix::identity(1, 1);
        for u in component.loadings() {
            let g = u.times_transpose(u);
            let (n, p) = (c.rows(), g.rows());
            c = Matrix::from_fn(n * p, n * p, |i, j| c[(i / p, j / p)] * g[(i % p, j % p)]);
        }
        for i in 0..size {
            c[(i, i)] += component.noise_variance();
        }
        Ok(c)
    }

    /// The same model with its components in another order.
    ///
    /// # Errors
    /// If the order does not name every component once.
    pub fn permuted(&self, order: &[usize]) -> Result<Self> {
        let mut seen: Vec<usize> = order.to_vec();
        seen.sort_unstable();
        if seen != (0..self.n_components()).collect::<Vec<_>>() {
            return Err(Error::Option {
                option: "order",
                value: format!("{order:?}"),
                expected: "a permutation of the components",
            });
        }
        let weights = order.iter().map(|&k| self.weights[k]).collect();
        let components = order.iter().map(|&k| self.components[k].clone()).collect();
        let classes = self.classes.as_ref().map(|classes| Arc::new(classes.permuted(order)));
        Ok(Self { weights, components, classes, ..self.clone() })
    }

    /// Replaces weights and components: what an M-step returns. The classes stay, unless there are more components now, or fewer.
    pub(crate) fn with_components(&self, weights: Vec<f64>, components: Vec<Component>) -> Self {
        let classes = self.classes.clone().filter(|_| components.len() == self.n_components());
        Self { shape: self.shape.clone(), rank: self.rank.clone(), weights, components, classes }
    }
}
