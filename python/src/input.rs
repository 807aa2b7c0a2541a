//! What a model takes for input, for Python to keep and to hand back.

use std::sync::Arc;

use matmix::data::OpenOptions;
use matmix::{Input, Meter, Missing};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::arrays::{Held, dtype};
use crate::errors::{detached, to_python};

/// What a model takes for input: the shape, the values and, for images, how they are read.
#[pyclass(frozen, eq, module = "matmix._matmix", name = "Input")]
#[derive(Clone, PartialEq)]
pub(crate) struct ModelInput {
    pub(crate) input: Input,
}

#[pymethods]
impl ModelInput {
    /// What these samples are, each of `shape` and multiplied with `scale`; and how images were read, if they are images.
    #[staticmethod]
    #[pyo3(signature = (x, shape, scale, *, resize=None, colour=false, missing=None))]
    fn of(
        py: Python<'_>,
        x: Held<'_>,
        shape: Vec<usize>,
        scale: f64,
        resize: Option<(usize, usize)>,
        colour: bool,
        missing: Option<&str>,
    ) -> PyResult<Self> {
        let missing = missing.map(|text| text.parse().map_err(to_python)).transpose()?;
        let read = OpenOptions { resize, colour, missing, ..Default::default() };
        let engine = x.engine(&shape, None, None, scale, Missing::Error, &Arc::new(Meter::new()))?;
        let input = x.fitted(detached(py, || Input::of(&shape, &*engine)))?;
        Ok(Self { input: input.with_images(&read) })
    }

    /// What samples have to be multiplied with to be what those of the fit were.
    fn factor(&self, py: Python<'_>, x: Held<'_>, shape: Vec<usize>) -> PyResult<f64> {
        let engine = x.engine(&shape, None, None, 1.0, Missing::Error, &Arc::new(Meter::new()))?;
        x.fitted(detached(py, || self.input.factor(&*engine)))
    }

    /// The shape of one sample as it was given to the fit.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.input.shape)
    }

    /// What every value was multiplied with.
    #[getter]
    fn scale(&self) -> f64 {
        self.input.scale
    }

    /// What the values were stored as.
    #[getter]
    fn dtype(&self) -> &'static str {
        dtype(self.input.element)
    }

    /// The smallest and the largest value after that, among some of the samples; None if no cell of these was observed.
    #[getter]
    fn range(&self) -> Option<(f64, f64)> {
        self.input.range.map(Into::into)
    }

    /// The rows and columns that images were brought to.
    #[getter]
    fn resize(&self) -> Option<(usize, usize)> {
        self.input.resize
    }

    /// Whether images kept their channels as a third mode.
    #[getter]
    fn colour(&self) -> bool {
        self.input.colour
    }

    /// The sides and steps of the windows that are the model's samples, if it is a model of patches.
    #[getter]
    fn patches(&self) -> Option<(Vec<usize>, Vec<usize>)> {
        self.input.patches.as_ref().map(|patches| (patches.size.clone(), patches.stride.clone()))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (shape, scale) = (self.shape(py)?, self.scale());
        let mut text = format!("Input(shape={shape}, dtype={}, scale={scale:.6}", self.dtype());
        if let Some((low, high)) = self.range() {
            text += &format!(", range=({low}, {high})");
        }
        if let Some((rows, columns)) = self.resize() {
            text += &format!(", resize=({rows}, {columns})");
        }
        if self.colour() {
            text += ", colour=True";
        }
        if let Some((size, stride)) = self.patches() {
            text += &format!(", patches={size:?}, stride={stride:?}");
        }
        Ok(text + ")")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyString>,))> {
        let json = serde_json::to_string(&self.input).unwrap_or_default();
        Ok((py.get_type::<Self>().getattr("from_json")?, (PyString::new(py, &json),)))
    }

    /// The way back from what is pickled.
    #[staticmethod]
    fn from_json(json: &str) -> PyResult<Self> {
        let wrong =
            |error| PyValueError::new_err(format!("what a model takes for input cannot be read: {error}"));
        Ok(Self { input: serde_json::from_str(json).map_err(wrong)? })
    }
}
