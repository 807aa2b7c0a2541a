//! What models are and say as arrays of the crate `ndarray`, with their axes. Samples as arrays are `data/nd.rs`.

use ndarray::{Array2, ArrayD, ArrayView2, Axis};

use crate::data::{Samples, with_axes};
use crate::error::{Error, Result};
use crate::infer::Reconstruction;
use crate::linalg::Matrix;
use crate::model::{Component, Drawn, LowRank, Mixture, Stacked};
use crate::pass::Imputed;

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
}

impl Component {
    /// The mean with the axes of a sample.
    pub fn mean_array(&self) -> ArrayD<f64> {
        let shape: Vec<usize> = self.loadings().iter().map(Matrix::rows).collect();
        with_axes(1, &shape, self.mean().to_vec()).index_axis_move(Axis(0), 0)
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
/// assert_eq!(model.transform_array(&samples)?.dim(), (30, 4));
/// assert_eq!(model.denoise_array(&samples)?.shape(), images.shape());
/// # Ok::<(), matmix::Error>(())
/// ```
impl Mixture {
    /// [`responsibilities`](Self::responsibilities) as an array, N × K.
    ///
    /// # Errors
    /// Those of [`responsibilities`](Self::responsibilities).
    pub fn responsibilities_array(&self, samples: &Samples<'_>) -> Result<Array2<f64>> {
        Ok(rows(samples.len(), self.responsibilities(samples)?))
    }

    /// [`log_densities`](Self::log_densities) as an array, N × K.
    ///
    /// # Errors
    /// Those of [`log_densities`](Self::log_densities).
    pub fn log_densities_array(&self, samples: &Samples<'_>) -> Result<Array2<f64>> {
        Ok(rows(samples.len(), self.log_densities(samples)?))
    }

    /// [`transform`](Self::transform) as an array, N × K·ρ.
    ///
    /// # Errors
    /// Those of [`transform`](Self::transform).
    pub fn transform_array(&self, samples: &Samples<'_>) -> Result<Array2<f64>> {
        Ok(rows(samples.len(), self.transform(samples)?))
    }

    /// [`reconstruct`](Self::reconstruct) as an array, N × p_1 × ….
    ///
    /// # Errors
    /// Those of [`reconstruct`](Self::reconstruct).
    pub fn reconstruct_array(&self, samples: &Samples<'_>, rule: Reconstruction) -> Result<ArrayD<f64>> {
        Ok(with_axes(samples.len(), self.shape(), self.reconstruct(samples, rule)?))
    }

    /// [`denoise`](Self::denoise) as an array, N × p_1 × ….
    ///
    /// # Errors
    /// Those of [`denoise`](Self::denoise).
    pub fn denoise_array(&self, samples: &Samples<'_>) -> Result<ArrayD<f64>> {
        Ok(with_axes(samples.len(), self.shape(), self.denoise(samples)?))
    }
}

impl LowRank {
    /// [`transform`](Self::transform) as an array, N × r_1 × ….
    ///
    /// # Errors
    /// Those of [`transform`](Self::transform).
    pub fn transform_array(&self, samples: &Samples<'_>) -> Result<ArrayD<f64>> {
        Ok(with_axes(samples.len(), self.rank(), self.transform(samples)?))
    }

    /// [`reconstruct`](Self::reconstruct) as an array, N × p_1 × ….
    ///
    /// # Errors
    /// Those of [`reconstruct`](Self::reconstruct).
    pub fn reconstruct_array(&self, samples: &Samples<'_>) -> Result<ArrayD<f64>> {
        Ok(with_axes(samples.len(), self.shape(), self.reconstruct(samples)?))
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

/// So many rows of equal length; without rows, of none.
fn rows(count: usize, values: Vec<f64>) -> Array2<f64> {
    let columns = values.len() / count.max(1);
    match Array2::from_shape_vec((count, columns), values) {
        Ok(array) => array,
        Err(_) => unreachable!("rows of equal length"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_their_axes() {
        let u = Matrix::from_fn(2, 1, |i, _| i as f64 + 1.0);
        let component = Component::new(&[2, 2], vec![1.0, 2.0, 3.0, 4.0], vec![u.clone(), u], 0.5).unwrap();
        assert_eq!(component.mean_array()[[1, 0]], 3.0);
        assert_eq!(component.loadings()[0].as_array().shape(), [2, 1]);
        let model = crate::model::Mixture::new(&[2, 2], vec![1.0], vec![component]).unwrap();
        let drawn = model.sample(3, 1);
        let array = drawn.clone().into_array(&[2, 2]).unwrap();
        assert_eq!(array[[2, 1, 1]], drawn.samples[11]);
        assert!(drawn.clone().into_array(&[3, 2]).is_err());
        let samples = Samples::from_vec(&[2, 2], drawn.samples).unwrap();
        let rule = Reconstruction::default();
        let rebuilt = model.reconstruct_array(&samples, rule).unwrap();
        assert_eq!(rebuilt[[2, 1, 0]], model.reconstruct(&samples, rule).unwrap()[10]);
        assert_eq!(model.log_densities_array(&samples).unwrap().dim(), (3, 1));
        let (values, deviations) = model.impute(&samples).unwrap().into_arrays(&[2, 2]).unwrap();
        assert_eq!((values, deviations.sum()), (samples.to_array(0..3).unwrap(), 0.0));
        assert!(model.impute(&samples).unwrap().into_arrays(&[3]).is_err());
        let plain = LowRank::new(&[2, 2], vec![0.0; 4], vec![Matrix::identity(2, 2), Matrix::identity(2, 1)])
            .unwrap();
        assert_eq!(plain.transform_array(&samples).unwrap().shape(), [3, 2, 1]);
        assert_eq!(plain.reconstruct_array(&samples).unwrap().shape(), [3, 2, 2]);
    }
}
