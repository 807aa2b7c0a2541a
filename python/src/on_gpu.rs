//! Arrays in the memory of a GPU, without a copy: what offers `__cuda_array_interface__` (CuPy, PyTorch, JAX, Numba).

use std::sync::Arc;

use matmix::Samples;
use matmix::cuda::DeviceArray;
use matmix::data::Element;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::to_python;

/// What says that an object is such an array.
const INTERFACE: &str = "__cuda_array_interface__";

/// An array in the memory of a GPU, whose owner lives as long as this.
pub(crate) struct OnGpu<'py> {
    address: u64,
    len: usize,
    element: Element,
    _owner: Bound<'py, PyAny>,
}

impl<'py> OnGpu<'py> {
    /// The array that an object is, if it is one of a GPU's memory.
    pub(crate) fn of(object: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        if !object.hasattr(INTERFACE)? {
            return Ok(None);
        }
        let interface = object.getattr(INTERFACE)?.cast_into::<PyDict>()?;
        let needed = |name: &str| -> PyResult<Bound<'py, PyAny>> {
            let missing = || PyValueError::new_err(format!("{INTERFACE} has no entry '{name}'"));
            interface.get_item(name)?.ok_or_else(missing)
        };
        let given = |name: &str| -> PyResult<Option<Bound<'py, PyAny>>> {
            Ok(interface.get_item(name)?.filter(|value| !value.is_none()))
        };
        if given("mask")?.is_some() {
            return Err(PyValueError::new_err("an array on a GPU that leaves cells out cannot be used"));
        }
        let shape: Vec<usize> = needed("shape")?.extract()?;
        let typestr: String = needed("typestr")?.extract()?;
        let (address, _): (u64, bool) = needed("data")?.extract()?;
        let element = match typestr.as_str() {
            "|u1" | "|b1" | "<u1" => Element::U8,
            "<f4" => Element::F32,
            "<f8" => Element::F64,
            other => {
                let message = format!(
                    "an array on a GPU must be of uint8, float32 or float64, and this is of {other}: convert it there, such as by X.float() \
                     or X.astype('float32')"
                );
                return Err(PyTypeError::new_err(message));
            }
        };
        let strides: Option<Vec<i64>> = given("strides")?.map(|strides| strides.extract()).transpose()?;
        if strides.is_some_and(|strides| !follow_each_other(&shape, &strides, element.size())) {
            let message = "an array on a GPU must be C-contiguous: X.contiguous(), or cupy.ascontiguousarray(X), is one";
            return Err(PyValueError::new_err(message));
        }
        let len = shape.iter().try_fold(1usize, |len, &side| len.checked_mul(side));
        let too_large = || PyValueError::new_err("the array has more elements than memory could hold");
        Ok(Some(Self { address, len: len.ok_or_else(too_large)?, element, _owner: object.clone() }))
    }

    /// The samples in it.
    #[allow(unsafe_code)]
    pub(crate) fn samples(&self, shape: &[usize]) -> PyResult<Samples<'_>> {
        let size = shape.iter().product::<usize>().max(1);
        if !self.len.is_multiple_of(size) {
            let message = format!("{} numbers do not divide into samples of shape {shape:?}", self.len);
            return Err(PyValueError::new_err(message));
        }
        // SAFETY: the interface says that so many elements are there, and their owner is kept for as long as these samples live. It is the
        // caller's part, as with an array of the host, not to write to them meanwhile.
        let array = unsafe { DeviceArray::new(self.address, shape, self.len / size, self.element) };
        array.and_then(|array| Samples::from_source(Arc::new(array))).map_err(to_python)
    }
}

/// Whether elements that are so many bytes apart lie one after the other, in row-major order.
fn follow_each_other(shape: &[usize], strides: &[i64], size: usize) -> bool {
    let mut expected = size as i64;
    for (&side, &stride) in shape.iter().zip(strides).rev() {
        if side != 1 && stride != expected {
            return false;
        }
        expected = expected.saturating_mul(side as i64);
    }
    shape.len() == strides.len()
}
