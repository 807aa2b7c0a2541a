//! What models are and say as arrays of the crate `ndarray`, with their axes, and matrices and cores from them. Samples as arrays are
//! `data/nd.rs`.

use std::borrow::Cow;

use ndarray::{Array2, ArrayBase, ArrayD, ArrayView2, Axis, Data, Dimension, Ix2};

use crate::data::{Samples, row_major, with_axes};
use crate::denoise::PatchDenoiser;
use crate::error::{Error, Result};
use crate::infer::{Projection, Reconstruction};
use crate::linalg::Matrix;
use crate::model::{Component, Drawn, LowRank, Mixture, Model, Stacked};
use crate::pass::{Engine, Imputed};
use crate::recognize::{PatchFisher, PatchRecognizer};

impl Matrix {
    /// The matrix as a view of an array.
    ///
    /// ```
    /// use matmix::Matrix;
    ///
    /// let m = Matrix::from_fn(2, 3, |i, j| (3 * i + j) as f64);
    /// assert_eq!(m.as_array()[[1, 2]], 5.0);
    /// ```
    pub fn as_array(&self) -> ArrayView2<'_, f64> {
        match ArrayView2::from_shape((self.rows(), self.cols()), self.as_slice()) {
            Ok(view) => view,
            Err(_) => unreachable!("a matrix has rows × columns elements"),
        }
    }

    /// A matrix from an array in any order.
    ///
    /// ```
    /// use matmix::Matrix;
    /// use ndarray::array;
    ///
    /// let m = Matrix::from_array(&array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]].t());
    /// assert_eq!((m.rows(), m.cols(), m[(2, 1)]), (3, 2, 6.0));
    /// ```
    pub fn from_array<S: Data<Elem = f64>>(array: &ArrayBase<S, Ix2>) -> Self {
        Self::from_vec(array.nrows(), array.ncols(), row_major(array).into_owned())
    }
}

impl Component {
    /// The mean with the axes of a sample.
    pub fn mean_array(&self) -> ArrayD<f64> {
        mean(self.mean(), self.loadings())
    }
}

impl Stacked {
    /// The values, the first axis that of the components.
    ///
    /// ```
    /// use matmix::{Component, Matrix, Mixture};
    ///
    /// let component = Component::new(&[3, 2], vec![0.0; 6], vec![Matrix::identity(3, 1), Matrix::identity(2, 1)], 0.5)?;
    /// let means = Mixture::new(&[3, 2], vec![1.0], vec![component])?.parameters().swap_remove(0).into_array();
    /// assert_eq!(means.shape(), [1, 3, 2]);
    /// # Ok::<(), matmix::Error>(())
    /// ```
    pub fn into_array(self) -> ArrayD<f64> {
        with_axes(self.shape[0], &self.shape[1..], self.values)
    }
}

/// What a mixture says about samples, the first axis that of the samples. Answers of one number per sample are vectors as they are.
///
/// ```
/// use matmix::{FitOptions, Samples, fit};
/// use ndarray::Array3;
///
/// let images = Array3::from_shape_fn((30, 4, 3), |(n, i, j)| ((n * 37 + i * 11 + j * 5) % 23) as f32);
/// let samples = Samples::from_array(&images)?;
/// let model = fit(&samples, &FitOptions { components: 2, rank: vec![2, 1], ..FitOptions::default() })?.model;
/// assert_eq!(model.responsibilities_array(&samples)?.dim(), (30, 2));
/// assert_eq!(model.denoise_array(&samples)?.shape(), images.shape());
/// // There and back: the cores of the most probable components, and what they stand for.
/// let (cores, components) = model.cores_array(&samples)?;
/// assert_eq!(cores.shape(), [30, 2, 1]);
/// assert_eq!(model.rebuild_array(&cores, &components)?.shape(), images.shape());
/// # Ok::<(), matmix::Error>(())
/// ```
impl Mixture {
    /// [`responsibilities`](Self::responsibilities) as an array, N × K.
    ///
    /// # Errors
    /// Those of [`responsibilities`](Self::responsibilities).
    pub fn responsibilities_array(&self, samples: &dyn Engine) -> Result<Array2<f64>> {
        Ok(rows(samples.len(), self.responsibilities(samples)?))
    }

    /// [`log_densities`](Self::log_densities) as an array, N × K.
    ///
    /// # Errors
    /// Those of [`log_densities`](Self::log_densities).
    pub fn log_densities_array(&self, samples: &dyn Engine) -> Result<Array2<f64>> {
        Ok(rows(samples.len(), self.log_densities(samples)?))
    }

    /// [`class_probabilities`](Self::class_probabilities) as an array, N × C.
    ///
    /// # Errors
    /// Those of [`class_probabilities`](Self::class_probabilities).
    pub fn class_probabilities_array(&self, samples: &dyn Engine) -> Result<Array2<f64>> {
        Ok(rows(samples.len(), self.class_probabilities(samples)?))
    }

    /// [`transform`](Self::transform) as an array, N × K·ρ.
    ///
    /// # Errors
    /// Those of [`transform`](Self::transform).
    pub fn transform_array(&self, samples: &dyn Engine) -> Result<Array2<f64>> {
        Ok(rows(samples.len(), self.transform(samples)?))
    }

    /// [`cores`](Self::cores) as an array, N × r_1 × …, and the component of each.
    ///
    /// # Errors
    /// Those of [`cores`](Self::cores).
    pub fn cores_array(&self, samples: &dyn Engine) -> Result<(ArrayD<f64>, Vec<usize>)> {
        let (cores, components) = self.cores(samples)?;
        Ok((with_axes(samples.len(), self.rank(), cores), components))
    }

    /// [`inverse_transform`](Self::inverse_transform) as an array, N × p_1 × …, of cores as [`transform_array`](Self::transform_array) gives them.
    ///
    /// # Errors
    /// Those of [`inverse_transform`](Self::inverse_transform), and cores of another length.
    pub fn inverse_transform_array<S: Data<Elem = f64>>(
        &self,
        cores: &ArrayBase<S, Ix2>,
    ) -> Result<ArrayD<f64>> {
        let cores = cores_of(cores, &[self.n_components() * self.core_len()])?;
        let values = self.inverse_transform(&cores)?;
        Ok(with_axes(values.len() / self.sample_len(), self.shape(), values))
    }

    /// [`rebuild`](Self::rebuild) as an array, N × p_1 × …, of cores as [`cores_array`](Self::cores_array) gives them.
    ///
    /// # Errors
    /// Those of [`rebuild`](Self::rebuild), and cores of another shape.
    pub fn rebuild_array<S: Data<Elem = f64>, D: Dimension>(
        &self,
        cores: &ArrayBase<S, D>,
        components: &[usize],
    ) -> Result<ArrayD<f64>> {
        let values = self.rebuild(&cores_of(cores, self.rank())?, components)?;
        Ok(with_axes(components.len(), self.shape(), values))
    }

    /// [`posterior_variance`](Self::posterior_variance) as an array, K × r_1 × ….
    pub fn posterior_variance_array(&self) -> ArrayD<f64> {
        with_axes(self.n_components(), self.rank(), self.posterior_variance())
    }

    /// [`reconstruct`](Self::reconstruct) as an array, N × p_1 × ….
    ///
    /// # Errors
    /// Those of [`reconstruct`](Self::reconstruct).
    pub fn reconstruct_array(&self, samples: &dyn Engine, rule: Reconstruction) -> Result<ArrayD<f64>> {
        Ok(with_axes(samples.len(), self.shape(), self.reconstruct(samples, rule)?))
    }

    /// [`denoise`](Self::denoise) as an array, N × p_1 × ….
    ///
    /// # Errors
    /// Those of [`denoise`](Self::denoise).
    pub fn denoise_array(&self, samples: &dyn Engine) -> Result<ArrayD<f64>> {
        Ok(with_axes(samples.len(), self.shape(), self.denoise(samples)?))
    }

    /// [`impute_draws`](Self::impute_draws) as an array, draws × N × p_1 × ….
    ///
    /// # Errors
    /// Those of [`impute_draws`](Self::impute_draws).
    pub fn impute_draws_array(&self, samples: &Samples<'_>, draws: usize, seed: u64) -> Result<ArrayD<f64>> {
        let sides: Vec<usize> = [samples.len()].iter().chain(self.shape()).copied().collect();
        Ok(with_axes(draws, &sides, self.impute_draws(samples, draws, seed)?))
    }
}

impl LowRank {
    /// The mean with the axes of a sample.
    pub fn mean_array(&self) -> ArrayD<f64> {
        mean(self.mean(), self.loadings())
    }

    /// [`transform`](Self::transform) as an array, N × r_1 × ….
    ///
    /// # Errors
    /// Those of [`transform`](Self::transform).
    pub fn transform_array(&self, samples: &dyn Engine) -> Result<ArrayD<f64>> {
        Ok(with_axes(samples.len(), self.rank(), self.transform(samples)?))
    }

    /// [`inverse_transform`](Self::inverse_transform) as an array, N × p_1 × …, of cores as [`transform_array`](Self::transform_array) gives them.
    ///
    /// # Errors
    /// Those of [`inverse_transform`](Self::inverse_transform), and cores of another shape.
    pub fn inverse_transform_array<S: Data<Elem = f64>, D: Dimension>(
        &self,
        cores: &ArrayBase<S, D>,
    ) -> Result<ArrayD<f64>> {
        let values = self.inverse_transform(&cores_of(cores, self.rank())?)?;
        Ok(with_axes(values.len() / self.sample_len(), self.shape(), values))
    }

    /// [`reconstruct`](Self::reconstruct) as an array, N × p_1 × ….
    ///
    /// # Errors
    /// Those of [`reconstruct`](Self::reconstruct).
    pub fn reconstruct_array(&self, samples: &dyn Engine) -> Result<ArrayD<f64>> {
        Ok(with_axes(samples.len(), self.shape(), self.reconstruct(samples)?))
    }
}

impl Model {
    /// [`reconstruct`](Self::reconstruct) as an array, N × p_1 × ….
    ///
    /// # Errors
    /// Those of [`reconstruct`](Self::reconstruct).
    pub fn reconstruct_array(&self, samples: &dyn Engine) -> Result<ArrayD<f64>> {
        Ok(with_axes(samples.len(), self.shape(), self.reconstruct(samples)?))
    }
}

impl PatchDenoiser {
    /// [`denoise`](Self::denoise) as an array, N × p_1 × ….
    ///
    /// # Errors
    /// Those of [`denoise`](Self::denoise).
    pub fn denoise_array(&self, images: &Samples<'_>, noise: f64) -> Result<ArrayD<f64>> {
        Ok(with_axes(images.len(), images.shape(), self.denoise(images, noise)?))
    }
}

impl PatchFisher {
    /// [`features`](Self::features) as an array, N × [`width`](Self::width).
    ///
    /// # Errors
    /// Those of [`features`](Self::features).
    pub fn features_array(&self, images: &Samples<'_>) -> Result<Array2<f32>> {
        Ok(rows(images.len(), self.features(images)?))
    }
}

impl PatchRecognizer {
    /// [`scores`](Self::scores) as an array, N × C.
    ///
    /// # Errors
    /// Those of [`scores`](Self::scores).
    pub fn scores_array(&self, images: &Samples<'_>) -> Result<Array2<f64>> {
        Ok(rows(images.len(), self.scores(images)?))
    }
}

impl Projection {
    /// The cores, N × K × r_1 × …, and the responsibilities, N × K, of a mixture of this rank.
    ///
    /// # Errors
    /// A rank that is not that of the mixture.
    pub fn into_arrays(self, rank: &[usize]) -> Result<(ArrayD<f64>, Array2<f64>)> {
        let count = self.components.len();
        if self.responsibilities.len() * rank.iter().product::<usize>() != self.cores.len() {
            return Err(Error::DataLength { shape: rank.to_vec(), found: self.cores.len() });
        }
        let responsibilities = rows(count, self.responsibilities);
        let sides: Vec<usize> = [responsibilities.ncols()].iter().chain(rank).copied().collect();
        Ok((with_axes(count, &sides, self.cores), responsibilities))
    }
}

impl Imputed {
    /// The values and their deviations, of samples of this shape, as arrays whose first axis counts them.
    ///
    /// # Errors
    /// A shape that is not theirs.
    pub fn into_arrays(self, shape: &[usize]) -> Result<(ArrayD<f64>, ArrayD<f64>)> {
        let count = self.log_likelihood.len();
        if count * shape.iter().product::<usize>() != self.values.len() {
            return Err(Error::DataLength { shape: shape.to_vec(), found: self.values.len() });
        }
        Ok((with_axes(count, shape, self.values), with_axes(count, shape, self.deviations)))
    }
}

impl Drawn {
    /// The samples, of this shape, as an array whose first axis counts them.
    ///
    /// # Errors
    /// A shape that is not theirs.
    pub fn into_array(self, shape: &[usize]) -> Result<ArrayD<f64>> {
        let count = self.components.len();
        if count * shape.iter().product::<usize>() != self.samples.len() {
            return Err(Error::DataLength { shape: shape.to_vec(), found: self.samples.len() });
        }
        Ok(with_axes(count, shape, self.samples))
    }
}

/// A mean with the axes of a sample.
fn mean(values: &[f64], loadings: &[Matrix]) -> ArrayD<f64> {
    let shape: Vec<usize> = loadings.iter().map(Matrix::rows).collect();
    with_axes(1, &shape, values.to_vec()).index_axis_move(Axis(0), 0)
}

/// The elements of cores of this shape, one after the other.
fn cores_of<'a, S: Data<Elem = f64>, D: Dimension>(
    cores: &'a ArrayBase<S, D>,
    shape: &[usize],
) -> Result<Cow<'a, [f64]>> {
    match cores.shape().get(1..) {
        Some(found) if found == shape => Ok(row_major(cores)),
        found => {
            Err(Error::ShapeMismatch { expected: shape.to_vec(), found: found.unwrap_or_default().to_vec() })
        }
    }
}

/// So many rows of equal length; without rows, of none.
fn rows<T>(count: usize, values: Vec<T>) -> Array2<T> {
    let columns = values.len() / count.max(1);
    match Array2::from_shape_vec((count, columns), values) {
        Ok(array) => array,
        Err(_) => unreachable!("rows of equal length"),
    }
}
