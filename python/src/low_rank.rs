//! Fitting a low-rank model and asking it about samples.

use std::path::PathBuf;
use std::sync::Arc;

use matmix::{LowRank, LowRankOptions, Meter, Missing, Model, ModelFile};
use numpy::{PyArray1, PyArray2, PyArrayDyn, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::{Held, Numbers, array, matrix, sides};
use crate::ask::Question;
use crate::data::file;
use crate::errors::{detached, to_python};
use crate::input::ModelInput;
use crate::mixture::preset_rank;
use crate::pools;
use crate::recognize::{Answers, Recognizer};

/// A fitted low-rank model.
#[pyclass(frozen, module = "matmix._matmix")]
pub(crate) struct LowRankModel {
    pub(crate) model: LowRank,
}

type Array<'py> = Bound<'py, PyArrayDyn<f64>>;

/// Fits a low-rank model: the model, e after each alternation, passes over all samples and why it ended.
#[pyfunction]
#[pyo3(signature = (x, shape, *, preset, weights, scale, options))]
pub(crate) fn fit_low_rank(
    py: Python<'_>,
    x: Held<'_>,
    shape: Vec<usize>,
    preset: Option<&str>,
    weights: Option<Numbers<'_>>,
    scale: f64,
    options: &str,
) -> PyResult<(LowRankModel, Vec<f64>, f64, &'static str)> {
    let engine =
        x.engine(&shape, preset, weights.as_ref(), scale, Missing::Error, &Arc::new(Meter::new()))?;
    let mut options: LowRankOptions = crate::errors::options(options)?;
    options.rank = preset_rank(preset, &shape, options.rank)?;
    options.threads = pools::threads(options.threads);
    let fit = x.fitted(detached(py, || matmix::fit_low_rank_on(&*engine, &options)))?;
    Ok((LowRankModel { model: fit.model }, fit.reconstruction_error, fit.passes, fit.stop.name()))
}

#[pymethods]
impl LowRankModel {
    /// The shape of the samples.
    #[getter]
    fn shape(&self) -> Vec<usize> {
        self.model.shape().to_vec()
    }

    /// The shape of the cores.
    #[getter]
    fn rank(&self) -> Vec<usize> {
        self.model.rank().to_vec()
    }

    /// M, shape (p_1, …).
    #[getter]
    fn mean<'py>(&self, py: Python<'py>) -> PyResult<Array<'py>> {
        array(py, self.model.mean().to_vec(), self.model.shape())
    }

    /// V^(d), shape (p_d, r_d), for each mode.
    #[getter]
    fn loadings<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyArray2<f64>>>> {
        self.model.loadings().iter().map(|u| matrix(py, u)).collect()
    }

    /// The variance along each loading, for each mode.
    #[getter]
    fn explained_variance<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyArray1<f64>>> {
        self.model.explained_variance().iter().map(|v| PyArray1::from_slice(py, v)).collect()
    }

    /// Its share of the total variance.
    #[getter]
    fn explained_variance_ratio<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyArray1<f64>>> {
        self.model.explained_variance_ratio().into_iter().map(|v| PyArray1::from_vec(py, v)).collect()
    }

    /// Questions about samples, by their names.
    fn question(&self, names: Vec<String>) -> PyResult<Question> {
        Question::new(self.model.clone().into(), &names)
    }

    /// A gallery of known samples from their cores, a row and a class for each.
    fn recognizer(
        &self,
        py: Python<'_>,
        answers: Answers<'_>,
        classes: PyReadonlyArray1<'_, i64>,
        distance: &str,
    ) -> PyResult<Recognizer> {
        Recognizer::new(py, self.model.clone().into(), answers, classes, distance)
    }

    /// The samples that cores stand for, shape (N, p_1, …).
    fn inverse_transform<'py>(&self, py: Python<'py>, cores: Numbers<'_>) -> PyResult<Array<'py>> {
        let cores = cores.as_slice()?;
        let out = detached(py, || self.model.inverse_transform(cores))?;
        let n = out.len() / self.model.sample_len();
        array(py, out, &sides(&[n], self.model.shape()))
    }

    /// Writes the model file.
    fn save(
        &self,
        py: Python<'_>,
        path: PathBuf,
        name: Option<String>,
        input: Option<&Bound<'_, ModelInput>>,
        options: &str,
        history: &str,
    ) -> PyResult<()> {
        let file = file(Model::LowRank(self.model.clone()), name, input, options, history);
        detached(py, || file.save(&path))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let bytes = ModelFile::new(Model::LowRank(self.model.clone())).to_bytes();
        Ok((py.get_type::<Self>().getattr("from_bytes")?, (PyBytes::new(py, &bytes),)))
    }

    /// The model in the bytes of a model file.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        match ModelFile::from_bytes("pickled model", bytes).map_err(to_python)?.model {
            Model::LowRank(model) => Ok(Self { model }),
            _ => Err(PyValueError::new_err("the bytes hold another model than a low-rank one")),
        }
    }
}
