//! Nearest known samples in the space of the cores.

use matmix::{Distance, Missing, Model};
use numpy::{PyArray1, PyArrayDyn, PyReadonlyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::arrays::{Elements, array, indices, places};
use crate::errors::{choice, detached};
use crate::low_rank::LowRankModel;
use crate::mixture::MixtureModel;

/// Distances, and places in the gallery.
type Found<'py> = (Bound<'py, PyArrayDyn<f64>>, Bound<'py, PyArrayDyn<i64>>);

/// A gallery of known samples.
#[pyclass(frozen, module = "matmix._matmix")]
pub(crate) struct Recognizer {
    recognizer: matmix::Recognizer,
}

#[pymethods]
impl Recognizer {
    #[new]
    #[pyo3(signature = (model, x, shape, preset, scale, classes, distance, missing="error"))]
    fn new(
        py: Python<'_>,
        model: &Bound<'_, PyAny>,
        x: Elements<'_>,
        shape: Vec<usize>,
        preset: Option<&str>,
        scale: f64,
        classes: PyReadonlyArray1<'_, i64>,
        distance: &str,
        missing: &str,
    ) -> PyResult<Self> {
        let model = if let Ok(mixture) = model.cast::<MixtureModel>() {
            Model::Mixture(mixture.get().model.clone())
        } else if let Ok(low_rank) = model.cast::<LowRankModel>() {
            Model::LowRank(low_rank.get().model.clone())
        } else {
            return Err(PyTypeError::new_err("a MixtureModel or a LowRankModel is needed"));
        };
        let distance: Distance = choice("distance", distance)?;
        let missing: Missing = choice("missing", missing)?;
        let samples = x.samples(&shape, preset, None, scale)?.with_missing(missing);
        let classes = places(&classes, "class")?;
        let recognizer = detached(py, || matmix::Recognizer::new(&model, &samples, &classes, distance))?;
        Ok(Self { recognizer })
    }

    /// What samples are compared by: what "auto" came to.
    #[getter]
    fn distance(&self) -> &'static str {
        self.recognizer.distance().name()
    }

    /// Distances and places in the gallery of the nearest samples, shape (N, count) each, nearest first.
    #[pyo3(signature = (x, shape, preset, scale, count, missing="error"))]
    fn neighbours<'py>(
        &self,
        py: Python<'py>,
        x: Elements<'_>,
        shape: Vec<usize>,
        preset: Option<&str>,
        scale: f64,
        count: usize,
        missing: &str,
    ) -> PyResult<Found<'py>> {
        let missing: Missing = choice("missing", missing)?;
        let samples = x.samples(&shape, preset, None, scale)?.with_missing(missing);
        let found = detached(py, || self.recognizer.neighbours(&samples, count))?;
        let all = || found.iter().flatten();
        let distances = all().map(|n| n.distance).collect();
        let places = all().map(|n| n.index as i64).collect();
        let shape = [found.len(), count];
        Ok((array(py, distances, &shape)?, array(py, places, &shape)?))
    }

    /// The classes of the nearest samples, shape (N,).
    #[pyo3(signature = (x, shape, preset, scale, missing="error"))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        x: Elements<'_>,
        shape: Vec<usize>,
        preset: Option<&str>,
        scale: f64,
        missing: &str,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let missing: Missing = choice("missing", missing)?;
        let samples = x.samples(&shape, preset, None, scale)?.with_missing(missing);
        Ok(indices(py, detached(py, || self.recognizer.predict(&samples))?))
    }
}
