//! What a model takes for input, for Python to keep and to hand back.

use std::sync::Arc;

use matmix::data::{OpenOptions, Unobserved};
use matmix::{Input, Meter, Missing};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::arrays::{Elements, Held, dtype};
use crate::data::stored;
use crate::errors::{detached, to_python};

/// What a model takes for input: the shape, the values and, for images, how they are read.
#[pyclass(frozen, eq, module = "matmix._matmix", name = "Input")]
#[derive(Clone, PartialEq)]
pub(crate) struct ModelInput {
    pub(crate) input: Input,
}

#[pymethods]
impl ModelInput {
    /// What these samples are, each of `shape` and multiplied with `scale`; how images were read, if they are images; what told that a
    /// cell was not observed, and which were if one mask said it for all samples.
    #[staticmethod]
    #[pyo3(signature = (x, shape, scale, *, resize=None, colour=false, missing=None, mask=None))]
    fn of(
        py: Python<'_>,
        x: Held<'_>,
        shape: Vec<usize>,
        scale: f64,
        resize: Option<(usize, usize)>,
        colour: bool,
        missing: Option<&str>,
        mask: Option<PyReadonlyArray1<'_, bool>>,
    ) -> PyResult<Self> {
        let mask = mask.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        let missing = missing.map(|text| text.parse().map_err(to_python)).transpose()?;
        let read = OpenOptions { resize, colour, missing, ..Default::default() };
        let engine = x.engine(&shape, None, None, scale, Missing::Error, &Arc::new(Meter::new()))?;
        let input = x.fitted(detached(py, || Input::of(&shape, &*engine)))?;
        Ok(Self { input: input.with_mask(mask).with_images(&read) })
    }

    /// What samples have to be multiplied with to be what those of the fit were.
    fn factor(&self, py: Python<'_>, x: Held<'_>, shape: Vec<usize>) -> PyResult<f64> {
        let engine = x.engine(&shape, None, None, 1.0, Missing::Error, &Arc::new(Meter::new()))?;
        x.fitted(detached(py, || self.input.factor(&*engine)))
    }

    /// Whether cells of samples of this shape are to be left out as those of the fit were: those behind its mask or, unless they were
    /// `told` apart already, those of a value that stands for that.
    fn hides(&self, shape: Vec<usize>, told: bool) -> bool {
        self.input.has_mask_of(shape.iter().product())
            || !told && matches!(self.input.missing, Some(Unobserved::Value(_)))
    }

    /// The samples with NaN in these cells.
    fn observed<'py>(
        &self,
        py: Python<'py>,
        x: Elements<'_>,
        shape: Vec<usize>,
        told: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let samples = x.samples(&shape, None, None, 1.0)?;
        let samples = if told { samples.with_missing(Missing::Nan) } else { samples };
        stored(py, &self.input.observed(samples).map_err(to_python)?)
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

    /// What told in the data that a cell was not observed: `nan`, a number, `below:0` or `alpha`; None if nothing did but a mask.
    #[getter]
    fn missing(&self) -> Option<String> {
        self.input.missing.map(|missing| missing.to_string())
    }

    /// Whether each cell was observed, one after the other, if a mask said it for all samples.
    #[getter]
    fn mask<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<bool>>> {
        let runs = self.input.mask.iter().enumerate();
        let cells = runs.flat_map(|(place, &length)| std::iter::repeat_n(place % 2 == 0, length));
        (!self.input.mask.is_empty()).then(|| PyArray1::from_iter(py, cells))
    }

    /// Whether windows are of like contrast, so that a factor of the images makes no difference to them.
    #[getter]
    fn like_contrast(&self) -> bool {
        self.input.patches.as_ref().is_some_and(|patches| patches.floor.is_some())
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
        if let Some(missing) = self.missing() {
            text += &format!(", missing='{missing}'");
        }
        if !self.input.mask.is_empty() {
            let hidden: usize = self.input.mask.iter().skip(1).step_by(2).sum();
            text += &format!(", masked={hidden}");
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
        let read = serde_json::from_str::<serde_json::Value>(json).and_then(serde_json::from_value);
        Ok(Self { input: read.map_err(wrong)? })
    }
}
