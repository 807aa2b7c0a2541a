//! Samples as arrays of the crate `ndarray`: views go in without a copy. What models say as arrays is `arrays.rs`.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use ndarray::{ArrayBase, ArrayD, Data, Dimension, IxDyn};

use super::Samples;
use super::source::{InMemory, Scalar};
use crate::error::{Error, Result};

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
        Self::from_source(Arc::new(InMemory::new(shape, row_major(array))))
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

/// The elements in row-major order: where they are, if they lie like that.
pub(crate) fn row_major<T: Clone, S: Data<Elem = T>, D: Dimension>(array: &ArrayBase<S, D>) -> Cow<'_, [T]> {
    match array.as_slice() {
        Some(elements) => Cow::Borrowed(elements),
        None => Cow::Owned(array.iter().cloned().collect()),
    }
}

/// Values, sample after sample, as an array.
pub(crate) fn with_axes(count: usize, shape: &[usize], values: Vec<f64>) -> ArrayD<f64> {
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
}
