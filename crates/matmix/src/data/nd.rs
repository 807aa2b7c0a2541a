//! Arrays of the crate `ndarray`: views go in without a copy, results come out with their axes.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use ndarray::{ArrayBase, ArrayD, ArrayView2, Axis, Data, Dimension, IxDyn};

use super::Samples;
use super::source::{InMemory, Scalar};
use crate::error::{Error, Result};
use crate::linalg::Matrix;
use crate::model::{Component, Drawn};

impl<'a> Samples<'a> {
    /// Samples from an array whose first axis counts them. One in row-major order is used where it is; any other is copied.
    ///
    /// ```
    /// use matmix::Samples;
    /// use ndarray::Array3;
    ///
    /// let images = Array3::<f32>::zeros((10, 4, 3));
    /// let samples = Samples::from_array(&images)?;
    /// assert_eq!((samples.len(), samples.shape()), (10, &[4, 3][..]));
    /// # Ok::<(), matmix::Error>(())
    /// ```
    ///
    /// # Errors
    /// An array without a second axis, or with an empty one.
    pub fn from_array<T: Scalar, S: Data<Elem = T>, D: Dimension>(
        array: &'a ArrayBase<S, D>,
    ) -> Result<Self> {
        let shape = array.shape().get(1..).unwrap_or_default().to_vec();
        if shape.is_empty() || shape.contains(&0) {
            return Err(Error::EmptyShape { shape });
        }
        let elements = match array.as_slice() {
            Some(elements) => Cow::Borrowed(elements),
            None => Cow::Owned(array.iter().copied().collect()),
        };
        Self::from_source(Arc::new(InMemory::new(shape, elements)))
    }

    /// Samples `range`, scaled, in double precision, as an array whose first axis counts them.
    ///
    /// # Errors
    /// Samples that cannot be read.
    pub fn to_array(&self, range: Range<usize>) -> Result<ArrayD<f64>> {
        let count = range.len();
        let values = self.to_f64(range)?;
        Ok(with_axes(count, self.shape(), values))
    }
}

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

/// Values, sample after sample, as an array.
fn with_axes(count: usize, shape: &[usize], values: Vec<f64>) -> ArrayD<f64> {
    let axes: Vec<usize> = [count].iter().chain(shape).copied().collect();
    match ArrayD::from_shape_vec(IxDyn(&axes), values) {
        Ok(array) => array,
        Err(_) => unreachable!("as many values as the axes say"),
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array3;

    use super::*;

    #[test]
    fn arrays_in_any_order_are_the_same_samples() {
        let array = Array3::from_shape_fn((5, 3, 2), |(n, i, j)| (100 * n + 10 * i + j) as f64);
        let expected = Samples::from_array(&array).unwrap().to_array(0..5).unwrap();
        assert_eq!(expected, array.clone().into_dyn());
        let mut turned = array.clone();
        turned.swap_axes(1, 2);
        let samples = Samples::from_array(&turned).unwrap();
        assert_eq!(samples.shape(), [2, 3]);
        assert_eq!(samples.to_array(0..5).unwrap(), turned.view().into_dyn());
        assert!(Samples::from_array(&ndarray::Array1::<f32>::zeros(4)).is_err());
        assert!(Samples::from_array(&Array3::<u8>::zeros((4, 0, 2))).is_err());
    }

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
        assert!(drawn.into_array(&[3, 2]).is_err());
    }
}
