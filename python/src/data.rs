//! What the library reads: samples of every format, the embedded digits, model files.

use std::path::PathBuf;

use matmix::data::{Buffer, Chunk, DataSet, Element, OpenOptions};
use matmix::{History, Model, ModelFile, Samples};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::arrays::{array, indices, sides};
use crate::errors::detached;
use crate::input::ModelInput;
use crate::low_rank::LowRankModel;
use crate::mixture::MixtureModel;

/// Samples, class of each sample and class names if there are any, name, format, how it was read.
type Opened<'py> =
    (Bound<'py, PyAny>, Option<(Bound<'py, PyArray1<i64>>, Vec<String>)>, String, &'static str, Reading<'py>);

/// The rows and columns that images were brought to, whether they kept their colours, what told that a cell was not observed, and which
/// were if one mask said it for all samples.
type Reading<'py> = (Option<(usize, usize)>, bool, Option<String>, Option<Bound<'py, PyArray1<bool>>>);

/// The files that a name, a list of names (`a.npy,b.npy`) or a pattern (`parts/*.npy`) stands for.
#[pyfunction]
pub(crate) fn files_of(spec: &str) -> Vec<PathBuf> {
    matmix::data::files_of(spec)
}

/// Opens whatever the program opens; `like` what a model takes for input.
#[pyfunction]
#[pyo3(signature = (spec, *, options, like))]
pub(crate) fn open<'py>(
    py: Python<'py>,
    spec: &str,
    options: &str,
    like: Option<&Bound<'_, ModelInput>>,
) -> PyResult<Opened<'py>> {
    let options: OpenOptions = crate::errors::options(options)?;
    let like = like.map(|like| &like.get().input);
    let set = detached(py, || match like {
        Some(input) => input.open(spec, &options),
        None => matmix::data::open(spec, &options),
    })?;
    let read = like.map_or(options.clone(), |input| input.images(&options));
    opened(py, set, &read)
}

/// The embedded digits.
#[pyfunction]
pub(crate) fn digits(py: Python<'_>) -> PyResult<Opened<'_>> {
    let set = detached(py, || Ok(matmix::data::digits()))?;
    opened(py, set, &OpenOptions::default())
}

enum Loaded {
    U8(Vec<u8>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

fn opened<'py>(py: Python<'py>, set: DataSet, read: &OpenOptions) -> PyResult<Opened<'py>> {
    let x = stored(py, &set.samples)?;
    let labels = set.labels.map(|l| (indices(py, l.index), l.names));
    let missing = read.missing.map(|missing| missing.to_string());
    let mask = set.mask.map(|mask| PyArray1::from_vec(py, mask));
    Ok((x, labels, set.name, set.format, (read.resize, read.colour, missing, mask)))
}

/// The samples as an array of what they are stored as; where they are multiplied, bytes become single precision.
pub(crate) fn stored<'py>(py: Python<'py>, samples: &Samples<'_>) -> PyResult<Bound<'py, PyAny>> {
    let n = samples.len();
    let elements = detached(py, || {
        if samples.scale() != 1.0 {
            let scaled = samples.to_f64(0..n)?;
            return Ok(match samples.element() {
                Element::F64 => Loaded::F64(scaled),
                _ => Loaded::F32(scaled.into_iter().map(|x| x as f32).collect()),
            });
        }
        let mut buffer = Buffer::new();
        Ok(match samples.stored(0..n, &mut buffer)? {
            Chunk::U8(x) => Loaded::U8(x.to_vec()),
            Chunk::F32(x) => Loaded::F32(x.to_vec()),
            Chunk::F64(x) => Loaded::F64(x.to_vec()),
            other => Loaded::F64((0..other.len()).map(|i| other.get(i)).collect()),
        })
    })?;
    let shape = sides(&[n], samples.shape());
    Ok(match elements {
        Loaded::U8(x) => array(py, x, &shape)?.into_any(),
        Loaded::F32(x) => array(py, x, &shape)?.into_any(),
        Loaded::F64(x) => array(py, x, &shape)?.into_any(),
    })
}

/// Reads a model file: the model, its preset's name, what it takes for input, its options and its history as JSON, or empty, and whether
/// it holds the gallery of a recogniser.
#[pyfunction]
pub(crate) fn load_model(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyTuple>> {
    let file = detached(py, || ModelFile::load(&path))?;
    let model = match file.model {
        Model::Mixture(model) => Bound::new(py, MixtureModel { model })?.into_any(),
        Model::LowRank(model) => Bound::new(py, LowRankModel { model })?.into_any(),
        _ => return Err(PyValueError::new_err("models of this kind have no class in Python")),
    };
    let options = if file.options.is_null() { String::new() } else { file.options.to_string() };
    let history = file.history.and_then(|h| serde_json::to_string(&h).ok()).unwrap_or_default();
    let input = file.input.map(|input| ModelInput { input });
    (model, file.name, input, options, history, file.gallery.is_some()).into_pyobject(py)
}

/// A model file from what Python knows: options and history are JSON or empty.
pub(crate) fn file(
    model: Model,
    name: Option<String>,
    input: Option<&Bound<'_, ModelInput>>,
    options: &str,
    history: &str,
) -> ModelFile {
    let input = input.map(|input| input.get().input.clone());
    let history: Option<History> = serde_json::from_str(history).ok();
    let options = serde_json::from_str(options).unwrap_or_default();
    ModelFile { model, name, input, options, history, gallery: None }
}
