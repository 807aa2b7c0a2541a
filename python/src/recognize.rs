//! Nearest known samples in the space of the cores, by what a model has answered about samples.

use matmix::{CoreGallery, Distance, Model, Neighbour};
use numpy::{PyArrayDyn, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::{array, places};
use crate::errors::{choice, detached, to_python};

/// Distances, places in the gallery and classes.
type Found<'py> = (Bound<'py, PyArrayDyn<f64>>, Bound<'py, PyArrayDyn<i64>>, Bound<'py, PyArrayDyn<i64>>);

/// What was answered about samples: a row for each.
pub(crate) type Answers<'py> = PyReadonlyArray2<'py, f64>;

/// Known samples by what was answered about them. Pickled, they are bytes from which nothing has to be learned again.
#[pyclass(frozen, module = "matmix._matmix")]
pub(crate) struct Recognizer {
    gallery: CoreGallery,
    components: Option<usize>,
}

impl Recognizer {
    /// Rows of all cores, followed by the responsibilities where the model has some.
    pub(crate) fn new(
        py: Python<'_>,
        model: Model,
        answers: Answers<'_>,
        classes: PyReadonlyArray1<'_, i64>,
        distance: &str,
    ) -> PyResult<Self> {
        let distance: Distance = choice("distance", distance)?;
        let components = matches!(model, Model::Mixture(_)).then(|| model.n_components());
        let (cores, gamma) = split(&answers, components)?;
        let classes = places(&classes, "class")?;
        let gallery = detached(py, || CoreGallery::new(&model, cores, gamma, &classes, distance))?;
        Ok(Self { gallery, components })
    }
}

#[pymethods]
impl Recognizer {
    /// What samples are compared by: what "auto" came to.
    #[getter]
    fn distance(&self) -> &'static str {
        self.gallery.distance().name()
    }

    /// Distances, places in the gallery and classes of the nearest samples, shape (N, count) each, nearest first.
    fn neighbours<'py>(&self, py: Python<'py>, answers: Answers<'_>, count: usize) -> PyResult<Found<'py>> {
        let (cores, gamma) = split(&answers, self.components)?;
        let found = detached(py, || self.gallery.neighbours(cores, gamma, count))?;
        let shape = [found.len(), count];
        let numbers = |of: fn(&Neighbour) -> i64| {
            let numbers: Vec<i64> = found.iter().flatten().map(of).collect();
            array(py, numbers, &shape)
        };
        let distances = found.iter().flatten().map(|n| n.distance).collect();
        Ok((array(py, distances, &shape)?, numbers(|n| n.index as i64)?, numbers(|n| n.class as i64)?))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Pickled<'py>)> {
        let bytes = PyBytes::new(py, &self.gallery.to_bytes());
        Ok((py.get_type::<Self>().getattr("from_bytes")?, (bytes, self.components)))
    }

    /// The gallery in its bytes.
    #[staticmethod]
    fn from_bytes(bytes: &[u8], components: Option<usize>) -> PyResult<Self> {
        Ok(Self { gallery: CoreGallery::from_bytes(bytes).map_err(to_python)?, components })
    }
}

/// What a pickled gallery is made of.
type Pickled<'py> = (Bound<'py, PyBytes>, Option<usize>);

/// Cores and responsibilities, which are 1 where a model has none.
fn split(answers: &Answers<'_>, components: Option<usize>) -> PyResult<(Vec<f64>, Vec<f64>)> {
    let (rows, width) = (answers.shape()[0], answers.shape()[1]);
    let gammas = components.unwrap_or(0);
    if width <= gammas {
        let problem =
            format!("{width} answers about a sample hold no cores beside {gammas} responsibilities");
        return Err(PyValueError::new_err(problem));
    }
    let (mut cores, mut gamma) = (Vec::with_capacity(rows * (width - gammas)), Vec::new());
    for row in answers.as_slice()?.chunks_exact(width) {
        let (of_cores, of_gamma) = row.split_at(width - gammas);
        cores.extend(of_cores);
        gamma.extend(of_gamma);
    }
    if components.is_none() {
        gamma = vec![1.0; rows];
    }
    Ok((cores, gamma))
}
