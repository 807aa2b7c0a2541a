//! Questions to a fitted model. They go to wherever the samples are, as passes.

use std::sync::Arc;

use matmix::Model;
use matmix::pass::{Answers, AskPass, Task};
use numpy::PyArrayDyn;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::{Elements, array};
use crate::elsewhere::run_over;
use crate::errors::{choice, to_python};

/// Some questions to a model about every sample. Pickled, they are the bytes of a pass.
#[pyclass(frozen, module = "matmix._matmix")]
pub(crate) struct Question {
    pass: AskPass,
}

impl Question {
    pub(crate) fn new(model: Model, names: &[String]) -> PyResult<Self> {
        let questions = names.iter().map(|name| name.parse().map_err(to_python)).collect::<PyResult<_>>()?;
        Ok(Self { pass: AskPass { model: Arc::new(model), questions } })
    }
}

#[pymethods]
impl Question {
    /// The answers about one block of samples, the first of which has the number `first` in the whole set: shape (N, width),
    /// those to one question after the other.
    #[pyo3(signature = (x, shape, *, preset=None, scale=1.0, first=0, threads=None, missing="error", device="cpu"))]
    fn answers<'py>(
        &self,
        py: Python<'py>,
        x: Elements<'_>,
        shape: Vec<usize>,
        preset: Option<&str>,
        scale: f64,
        first: usize,
        threads: Option<usize>,
        missing: &str,
        device: &str,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let (missing, device) = (choice("missing", missing)?, choice("device", device)?);
        let task: Task = self.pass.clone().into();
        let task = || Ok(task);
        let sums =
            run_over(py, task, &x, &shape, preset, None, None, scale, first, threads, missing, device)?;
        let Answers { width, values } = sums.try_into().map_err(to_python)?;
        let n = values.len() / width.max(1);
        array(py, values, &[n, width])
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let bytes = Task::from(self.pass.clone()).to_bytes();
        Ok((py.get_type::<Self>().getattr("from_bytes")?, (PyBytes::new(py, &bytes),)))
    }

    /// The questions in the bytes of a pass.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        match Task::from_bytes(bytes).map_err(to_python)? {
            Task::Ask(pass) => Ok(Self { pass }),
            other => {
                Err(PyValueError::new_err(format!("the bytes hold a pass of another kind: {}", other.name())))
            }
        }
    }
}
