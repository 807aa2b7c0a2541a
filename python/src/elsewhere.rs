//! Samples that are elsewhere: in files that Python reads block by block, on machines that Dask knows.
//!
//! The fit stays the library's; only its passes leave. A pass is bytes, so are its sums, and whoever runs them adds
//! them in the order of the tree.

use std::sync::{Mutex, PoisonError};

use matmix::data::Element;
use matmix::error::Counted;
use matmix::pass::{self, AnySums, Task};
use matmix::{Backend, Cpu, Device, Engine, Error, Missing, Preset, Samples};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::{Elements, Integers, Numbers, classes, element};
use crate::errors::{choice, detached, to_python};
use crate::pools::pool;

/// N samples of one element type that a callable runs passes over: bytes of a task in, bytes of its sums out.
#[pyclass(frozen, module = "matmix._matmix")]
pub(crate) struct Elsewhere {
    run: Py<PyAny>,
    n: usize,
    element: Element,
    scale: f64,
    missing: Missing,
    /// What the callable raised, to be raised again once the fit has ended because of it.
    raised: Mutex<Option<PyErr>>,
    /// Called when nobody waits for the fit any longer: a second Ctrl-C does not wait for a cluster.
    abandon: Py<PyAny>,
}

#[pymethods]
impl Elsewhere {
    #[new]
    #[pyo3(signature = (run, abandon, n, dtype, scale=1.0, missing="error"))]
    fn new(
        run: Py<PyAny>,
        abandon: Py<PyAny>,
        n: usize,
        dtype: &str,
        scale: f64,
        missing: &str,
    ) -> PyResult<Self> {
        let missing = choice("missing", missing)?;
        Ok(Self { run, n, element: element(dtype)?, scale, missing, raised: Mutex::new(None), abandon })
    }
}

impl Elsewhere {
    /// What runs the passes of a fit to samples of `shape`, as `preset` sees them.
    pub(crate) fn engine(
        &self,
        shape: &[usize],
        preset: Option<&str>,
        weights: Option<&Numbers<'_>>,
    ) -> PyResult<Remote<'_>> {
        let one = one_sample(shape, preset)?;
        let rows_each = one.len();
        let weights = match weights {
            Some(weights) => Some(checked_weights(weights.as_slice()?, self.n, rows_each)?),
            None => None,
        };
        let (shape, len) = (one.shape().to_vec(), self.n * rows_each);
        Ok(Remote { elsewhere: self, shape, len, weights, classes: None, cpu: Cpu::best() })
    }

    /// Nobody waits for the fit any longer.
    pub(crate) fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        self.abandon.call0(py).map(drop)
    }

    /// What the callable raised, if that is why the fit failed.
    pub(crate) fn raised(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn checked_weights(weights: &[f64], n: usize, rows_each: usize) -> PyResult<Vec<f64>> {
    // The library checks weights together with samples; any samples will do.
    let any = Samples::from_vec(&[1], vec![0u8; n]).and_then(|s| s.with_weights(weights.to_vec()));
    any.map_err(to_python)?;
    Ok(weights.iter().flat_map(|&w| std::iter::repeat_n(w, rows_each)).collect())
}

fn viewed<'a>(samples: &Samples<'a>, preset: Option<&str>) -> PyResult<Samples<'a>> {
    match preset {
        Some(name) => name.parse::<Preset>().and_then(|preset| preset.view(samples)).map_err(to_python),
        None => Ok(samples.clone()),
    }
}

/// The engine of samples that are elsewhere.
pub(crate) struct Remote<'a> {
    elsewhere: &'a Elsewhere,
    shape: Vec<usize>,
    len: usize,
    weights: Option<Vec<f64>>,
    classes: Option<Vec<Option<u32>>>,
    cpu: Cpu,
}

impl Remote<'_> {
    /// The same samples with what is known of their classes.
    pub(crate) fn with_classes(mut self, classes: Option<Vec<Option<u32>>>) -> PyResult<Self> {
        match &classes {
            Some(classes) if classes.len() != self.len => {
                let (what, expected, found) = (Counted::Classes, self.len, classes.len());
                return Err(to_python(Error::Count { what, expected, found }));
            }
            _ => self.classes = classes,
        }
        Ok(self)
    }
}

impl Engine for Remote<'_> {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn len(&self) -> usize {
        self.len
    }

    fn element(&self) -> Element {
        self.elsewhere.element
    }

    fn scale(&self) -> f64 {
        self.elsewhere.scale
    }

    fn missing(&self) -> Missing {
        self.elsewhere.missing
    }

    fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    fn classes(&self) -> Option<&[Option<u32>]> {
        self.classes.as_deref()
    }

    fn backend(&self) -> &dyn Backend {
        &self.cpu
    }

    fn run(&self, task: &Task) -> matmix::Result<AnySums> {
        let bytes = task.to_bytes();
        let answer = Python::attach(|py| -> PyResult<Vec<u8>> {
            let answer = self.elsewhere.run.call1(py, (PyBytes::new(py, &bytes),))?;
            Ok(answer.bind(py).cast::<PyBytes>()?.as_bytes().to_vec())
        });
        match answer {
            Ok(bytes) => AnySums::from_bytes(&bytes),
            Err(error) => {
                let problem = error.to_string();
                *self.elsewhere.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                Err(Error::Engine { problem })
            }
        }
    }
}

/// Runs a task over one block of samples, the first of which has the number `first` in the whole set, and returns the
/// bytes of its sums.
#[pyfunction]
#[pyo3(signature = (task, x, shape, *, preset, weights, scale, first, threads, missing="error", classes=None, device="cpu"))]
pub(crate) fn run_task<'py>(
    py: Python<'py>,
    task: &[u8],
    x: Elements<'_>,
    shape: Vec<usize>,
    preset: Option<&str>,
    weights: Option<Numbers<'_>>,
    scale: f64,
    first: usize,
    threads: Option<usize>,
    missing: &str,
    classes: Option<Integers<'_>>,
    device: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let task = || Task::from_bytes(task);
    let (missing, device) = (choice("missing", missing)?, choice("device", device)?);
    let sums =
        run_over(py, task, &x, &shape, preset, weights, classes, scale, first, threads, missing, device)?;
    Ok(PyBytes::new(py, &sums.to_bytes()))
}

/// The same with a task, and sums, that need not travel.
pub(crate) fn run_over(
    py: Python<'_>,
    task: impl FnOnce() -> matmix::Result<Task> + Send,
    x: &Elements<'_>,
    shape: &[usize],
    preset: Option<&str>,
    weights: Option<Numbers<'_>>,
    known: Option<Integers<'_>>,
    scale: f64,
    first: usize,
    threads: Option<usize>,
    missing: Missing,
    device: Device,
) -> PyResult<AnySums> {
    let mut plain = x.samples(shape, None, None, scale)?.with_missing(missing);
    if let Some(weights) = weights {
        plain = plain.with_part_weights(weights.as_slice()?.to_vec()).map_err(to_python)?;
    }
    if let Some(known) = classes(known.as_ref())? {
        plain = plain.with_classes(known).map_err(to_python)?;
    }
    let samples = viewed(&plain, preset)?;
    let first = first * (samples.len() / plain.len());
    detached(py, || {
        let task = task()?;
        let backend = device.backend(&samples, components(&task))?;
        let run = || task.run(&*backend, &samples, first);
        match threads {
            Some(_) => pool(threads)?.install(run),
            None => run(),
        }
    })
}

/// How many components, or points, a task compares every sample with.
fn components(task: &Task) -> usize {
    match task {
        Task::Em(pass) => pass.model.n_components(),
        Task::Ask(pass) => pass.model.n_components(),
        Task::Groups(pass) => pass.centres.len(),
        Task::Distances(pass) => pass.points.len(),
        _ => 1,
    }
}

/// Adds the sums of neighbouring parts, from left to right.
#[pyfunction]
pub(crate) fn merge_sums<'py>(py: Python<'py>, sums: Vec<Vec<u8>>) -> PyResult<Bound<'py, PyBytes>> {
    let merged = detached(py, || {
        let mut parts = sums.iter();
        let Some(first) = parts.next() else { return Err(Error::EmptySet) };
        let mut whole = AnySums::from_bytes(first)?;
        for part in parts {
            whole.merge(&AnySums::from_bytes(part)?)?;
        }
        Ok(whole.to_bytes())
    })?;
    Ok(PyBytes::new(py, &merged))
}

/// Which parts are added at which level: (start, end) of each sum among those of the level below.
#[pyfunction]
pub(crate) fn tree_levels(parts: usize) -> Vec<Vec<(usize, usize)>> {
    let ends = |level: Vec<std::ops::Range<usize>>| level.into_iter().map(|r| (r.start, r.end)).collect();
    pass::tree_levels(parts).into_iter().map(ends).collect()
}

/// The sums of parts that come one after the other, added as `tree_levels` says.
#[pyclass(module = "matmix._matmix")]
#[derive(Default)]
pub(crate) struct SumTree {
    tree: pass::SumTree,
}

#[pymethods]
impl SumTree {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Adds the sums of the next part.
    fn push(&mut self, py: Python<'_>, sums: &[u8]) -> PyResult<()> {
        detached(py, || AnySums::from_bytes(sums).and_then(|sums| self.tree.push(sums)))
    }

    /// The sums of all parts.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let tree = std::mem::take(&mut self.tree);
        let whole = detached(py, || tree.finish()?.ok_or(Error::EmptySet).map(|whole| whole.to_bytes()))?;
        Ok(PyBytes::new(py, &whole))
    }
}

/// How many samples of the library one sample of Python is: 1, or its rows when those are the samples.
fn rows_each(shape: &[usize], preset: Option<&str>) -> PyResult<usize> {
    Ok(one_sample(shape, preset)?.len())
}

/// One sample of nothing, which tells what the preset makes of all of them.
fn one_sample(shape: &[usize], preset: Option<&str>) -> PyResult<Samples<'static>> {
    let one = Samples::from_vec(shape, vec![0u8; shape.iter().product()]).map_err(to_python)?;
    viewed(&one, preset)
}

/// The numbers of the samples that a task asks for, if it asks for some only: no other has to be read.
#[pyfunction]
pub(crate) fn wanted_rows(
    task: &[u8],
    shape: Vec<usize>,
    preset: Option<&str>,
) -> PyResult<Option<Vec<usize>>> {
    let rows_each = rows_each(&shape, preset)?;
    match Task::from_bytes(task).map_err(to_python)? {
        Task::Rows(rows) => Ok(Some(rows.indices.into_iter().map(|n| n / rows_each).collect())),
        _ => Ok(None),
    }
}

/// The same rows as found among `skipped` samples more, in blocks that were known to hold none of them.
#[pyfunction]
pub(crate) fn count_skipped<'py>(
    py: Python<'py>,
    sums: &[u8],
    skipped: usize,
    shape: Vec<usize>,
    preset: Option<&str>,
) -> PyResult<Bound<'py, PyBytes>> {
    let skipped = skipped * rows_each(&shape, preset)?;
    let mut sums = AnySums::from_bytes(sums).map_err(to_python)?;
    if let AnySums::Rows(rows) = &mut sums {
        rows.n_samples += skipped as u64;
    }
    Ok(PyBytes::new(py, &sums.to_bytes()))
}
