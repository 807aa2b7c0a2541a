//! NumPy arrays as samples and results as NumPy arrays, without copies.

use std::sync::Arc;

use matmix::data::Element;
use matmix::{Engine, Matrix, Meter, Missing, Preset, Samples};
use numpy::{
    PyArray1, PyArray2, PyArrayDyn, PyArrayMethods, PyReadonlyArray1, PyReadonlyArrayDyn,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::elsewhere::Elsewhere;
use crate::errors::to_python;
use crate::on_gpu::OnGpu;

/// An array of doubles with one axis.
pub(crate) type Numbers<'py> = PyReadonlyArray1<'py, f64>;

/// An array of integers with one axis.
pub(crate) type Integers<'py> = PyReadonlyArray1<'py, i64>;

/// The classes of samples, −1 where they are not known.
pub(crate) fn classes(numbers: Option<&Integers<'_>>) -> PyResult<Option<Vec<Option<u32>>>> {
    let Some(numbers) = numbers else { return Ok(None) };
    Ok(Some(numbers.as_slice()?.iter().map(|&class| u32::try_from(class).ok()).collect()))
}

/// What NumPy calls the element types.
const DTYPES: [(Element, &str); 3] =
    [(Element::U8, "uint8"), (Element::F32, "float32"), (Element::F64, "float64")];

/// An element type by the name that NumPy has for it.
pub(crate) fn dtype(element: Element) -> &'static str {
    DTYPES.iter().find(|(known, _)| *known == element).map_or(element.name(), |(_, name)| name)
}

/// The way back.
pub(crate) fn element(dtype: &str) -> PyResult<Element> {
    let found = DTYPES.iter().find(|(_, name)| *name == dtype);
    let unknown = || PyValueError::new_err(format!("{dtype} is not an element type"));
    found.map(|(element, _)| *element).ok_or_else(unknown)
}

/// An array of one of the element types the library works on, borrowed for as long as this lives.
pub(crate) enum Elements<'py> {
    U8(PyReadonlyArrayDyn<'py, u8>),
    F32(PyReadonlyArrayDyn<'py, f32>),
    F64(PyReadonlyArrayDyn<'py, f64>),
    /// In the memory of a GPU.
    OnGpu(OnGpu<'py>),
}

impl<'py> FromPyObject<'_, 'py> for Elements<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.cast::<PyArrayDyn<u8>>() {
            return Ok(Self::U8(array.try_readonly()?));
        }
        if let Ok(array) = object.cast::<PyArrayDyn<f32>>() {
            return Ok(Self::F32(array.try_readonly()?));
        }
        if let Ok(array) = object.cast::<PyArrayDyn<f64>>() {
            return Ok(Self::F64(array.try_readonly()?));
        }
        if let Some(array) = OnGpu::of(&object)? {
            return Ok(Self::OnGpu(array));
        }
        Err(PyTypeError::new_err("a NumPy array of uint8, float32 or float64 is needed"))
    }
}

impl Elements<'_> {
    /// The samples in the array, each of `shape` and multiplied with `scale`, as `preset` sees them.
    pub(crate) fn samples(
        &self,
        shape: &[usize],
        preset: Option<&str>,
        weights: Option<&Numbers<'_>>,
        scale: f64,
    ) -> PyResult<Samples<'_>> {
        let samples = match self {
            Self::U8(x) => Samples::from_slice(shape, row_major(x)?),
            Self::F32(x) => Samples::from_slice(shape, row_major(x)?),
            Self::F64(x) => Samples::from_slice(shape, row_major(x)?),
            Self::OnGpu(x) => Ok(x.samples(shape)?),
        };
        let samples = match weights {
            Some(weights) => {
                let weights = weights.as_slice()?.to_vec();
                samples.and_then(|s| s.with_weights(weights))
            }
            None => samples,
        };
        let samples = samples.and_then(|s| s.scaled(scale));
        match preset {
            Some(name) => samples.and_then(|s| name.parse::<Preset>()?.view(&s)),
            None => samples,
        }
        .map_err(to_python)
    }
}

/// Where the samples of a fit are.
pub(crate) enum Held<'py> {
    Here(Elements<'py>),
    Elsewhere(Bound<'py, Elsewhere>),
}

impl<'py> FromPyObject<'_, 'py> for Held<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<Elsewhere>() {
            Ok(elsewhere) => Ok(Self::Elsewhere(elsewhere.to_owned())),
            Err(_) => object.extract().map(Self::Here),
        }
    }
}

impl Held<'_> {
    /// What runs the passes of a fit to these samples; those of this process are multiplied with `scale`, have NaN that means what is
    /// said and can be ended by the meter, those that are elsewhere know all of this themselves.
    pub(crate) fn engine(
        &self,
        shape: &[usize],
        preset: Option<&str>,
        weights: Option<&Numbers<'_>>,
        scale: f64,
        missing: Missing,
        meter: &Arc<Meter>,
    ) -> PyResult<Box<dyn Engine + '_>> {
        self.labelled_engine(shape, preset, weights, None, scale, missing, meter)
    }

    /// The same with what is known of the classes of the samples.
    pub(crate) fn labelled_engine(
        &self,
        shape: &[usize],
        preset: Option<&str>,
        weights: Option<&Numbers<'_>>,
        known: Option<&Integers<'_>>,
        scale: f64,
        missing: Missing,
        meter: &Arc<Meter>,
    ) -> PyResult<Box<dyn Engine + '_>> {
        let known = classes(known)?;
        Ok(match self {
            Self::Here(elements) => {
                let samples = elements.samples(shape, preset, weights, scale)?;
                let samples = samples.with_missing(missing).with_meter(meter.clone());
                Box::new(match known {
                    Some(known) => samples.with_classes(known).map_err(to_python)?,
                    None => samples,
                })
            }
            Self::Elsewhere(elsewhere) => {
                Box::new(elsewhere.get().engine(shape, preset, weights)?.with_classes(known)?)
            }
        })
    }

    /// Asks a pass that runs elsewhere to end: the user has.
    pub(crate) fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        match self {
            Self::Here(_) => Ok(()),
            Self::Elsewhere(elsewhere) => elsewhere.get().abandon(py),
        }
    }

    /// The result of a fit to these samples, or what was raised where they are.
    pub(crate) fn fitted<T>(&self, fit: PyResult<T>) -> PyResult<T> {
        match self {
            Self::Here(_) => fit,
            Self::Elsewhere(elsewhere) => fit.map_err(|error| elsewhere.get().raised().unwrap_or(error)),
        }
    }
}

fn row_major<'a, T: numpy::Element>(array: &'a PyReadonlyArrayDyn<'_, T>) -> PyResult<&'a [T]> {
    if !array.is_c_contiguous() {
        return Err(PyValueError::new_err("the array must be C-contiguous"));
    }
    array.as_slice().map_err(|e| PyValueError::new_err(e.to_string()))
}

/// A vector as an array of this shape; the vector's memory becomes the array's.
pub(crate) fn array<'py, T: numpy::Element>(
    py: Python<'py>,
    elements: Vec<T>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    PyArray1::from_vec(py, elements).reshape(shape)
}

/// A matrix as an array.
pub(crate) fn matrix<'py>(py: Python<'py>, m: &Matrix) -> PyResult<Bound<'py, PyArray2<f64>>> {
    PyArray1::from_slice(py, m.as_slice()).reshape([m.rows(), m.cols()])
}

/// Indices as NumPy counts them.
pub(crate) fn indices(py: Python<'_>, of: Vec<usize>) -> Bound<'_, PyArray1<i64>> {
    PyArray1::from_iter(py, of.into_iter().map(|k| k as i64))
}

/// Indices as Rust counts them.
pub(crate) fn places(of: &PyReadonlyArray1<'_, i64>, what: &str) -> PyResult<Vec<usize>> {
    let wrong = |k: i64| PyValueError::new_err(format!("{what} {k} was given; it must not be negative"));
    of.as_slice()?.iter().map(|&k| usize::try_from(k).map_err(|_| wrong(k))).collect()
}

/// `first`, followed by the sides of `rest`.
pub(crate) fn sides(first: &[usize], rest: &[usize]) -> Vec<usize> {
    [first, rest].concat()
}
