//! Fitting a mixture and asking it about samples.

use std::path::PathBuf;
use std::sync::Arc;

use matmix::data::Labels;
use matmix::report::{Axis, HeldOut, ReportOptions, recognise, write_report};
use matmix::{
    Device, FitOptions, History, Meter, Missing, Mixture, Model, ModelFile, OnlineFit, Preset, SelectOptions,
    Stacked, Start, StopReason, Temper,
};
use numpy::{PyArray1, PyArray2, PyArrayDyn, PyReadonlyArray1};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::arrays::{Elements, Held, Integers, Numbers, array, indices, matrix, places, sides};
use crate::ask::Question;
use crate::data::file;
use crate::errors::{choice, detached, to_python};
use crate::input::ModelInput;
use crate::progress::{detector_size_listening, fit_listening, select_listening};
use crate::recognize::{Answers, Recognizer};

/// A fitted mixture.
#[pyclass(frozen, module = "matmix._matmix")]
pub(crate) struct MixtureModel {
    pub(crate) model: Mixture,
}

type Array<'py> = Bound<'py, PyArrayDyn<f64>>;

/// One number per cell or sample, for Python.
type Vector<'py> = Bound<'py, PyArray1<f64>>;

/// Where a fit begins: the name of a start, or a model.
#[derive(FromPyObject)]
pub(crate) enum Beginning<'py> {
    Model(Bound<'py, MixtureModel>),
    Name(String),
}

/// The options of a fit in the words of the library, as JSON.
fn fit_options(
    json: &str,
    start: &Beginning<'_>,
    preset: Option<&str>,
    shape: &[usize],
) -> PyResult<FitOptions> {
    let mut options: FitOptions = crate::errors::options(json)?;
    options.rank = preset_rank(preset, shape, options.rank)?;
    options.start = match start {
        Beginning::Model(model) => Start::Model(Box::new(model.get().model.clone())),
        Beginning::Name(name) => choice("init_params", name)?,
    };
    Ok(options)
}

/// The options of a fit in the words of the library, as JSON, as a model file keeps them.
#[pyfunction]
pub(crate) fn described(options: &str, start: Beginning<'_>) -> PyResult<String> {
    Ok(fit_options(options, &start, None, &[])?.described().to_string())
}

/// The warning of a fit that ended for this reason, if any, and those of its events (JSON).
#[pyfunction]
pub(crate) fn fit_warnings(stop: &str, events: &str) -> PyResult<(Option<&'static str>, Vec<String>)> {
    let stop: StopReason = choice("stop", stop)?;
    let history = History { events: crate::errors::options(events)?, ..History::default() };
    Ok((stop.warning(), history.warnings()))
}

/// Fits a mixture: the model, its history as JSON and whether Ctrl-C ended it.
#[pyfunction]
#[pyo3(signature = (x, shape, *, preset, weights, scale, options, start, device, callback, classes=None))]
pub(crate) fn fit_mixture(
    py: Python<'_>,
    x: Held<'_>,
    shape: Vec<usize>,
    preset: Option<&str>,
    weights: Option<Numbers<'_>>,
    scale: f64,
    options: &str,
    start: Beginning<'_>,
    device: &str,
    callback: Option<&Bound<'_, PyAny>>,
    classes: Option<Integers<'_>>,
) -> PyResult<(MixtureModel, String, bool)> {
    let meter = Arc::new(Meter::new());
    let options = fit_options(options, &start, preset, &shape)?;
    let device: Device = choice("device", device)?;
    let abandon = || {
        meter.stop();
        x.abandon(py)
    };
    let (fit, interrupted) = match &x {
        Held::Here(_) if device == Device::Cuda && classes.is_some() => {
            let message = "known labels cannot be kept to by a GPU; the processor can: device='cpu'";
            return Err(PyRuntimeError::new_err(message));
        }
        Held::Here(elements) if classes.is_none() => {
            let samples = elements.samples(&shape, preset, weights.as_ref(), scale)?;
            let samples = samples.with_missing(options.missing).with_meter(meter.clone());
            let backend = detached(py, || device.backend(&samples, options.components))?;
            let engine = backend.over(&samples).map_err(to_python)?;
            fit_listening(py, &*engine, &options, callback, &abandon)?
        }
        // Those who hold samples elsewhere were told the device.
        held => {
            let (weights, classes, missing) = (weights.as_ref(), classes.as_ref(), options.missing);
            let engine = held.labelled_engine(&shape, preset, weights, classes, scale, missing, &meter)?;
            held.fitted(fit_listening(py, &*engine, &options, callback, &abandon))?
        }
    };
    let history = serde_json::to_string(&fit.history).unwrap_or_default();
    Ok((MixtureModel { model: fit.model }, history, interrupted))
}

/// Chooses and fits a mixture: the model, its history with the candidates as JSON, and whether Ctrl-C ended it.
#[pyfunction]
#[pyo3(signature = (x, shape, *, preset, weights, scale, options, selection, callback))]
pub(crate) fn select_mixture(
    py: Python<'_>,
    x: Held<'_>,
    shape: Vec<usize>,
    preset: Option<&str>,
    weights: Option<Numbers<'_>>,
    scale: f64,
    options: &str,
    selection: &str,
    callback: Option<&Bound<'_, PyAny>>,
) -> PyResult<(MixtureModel, String, bool)> {
    let meter = Arc::new(Meter::new());
    let fit = fit_options(options, &Beginning::Name(Start::default().name().into()), preset, &shape)?;
    let engine = x.engine(&shape, preset, weights.as_ref(), scale, fit.missing, &meter)?;
    let selection = SelectOptions { fit, ..crate::errors::options(selection)? };
    let abandon = || {
        meter.stop();
        x.abandon(py)
    };
    let (chosen, interrupted) = x.fitted(select_listening(py, &*engine, &selection, callback, &abandon))?;
    let history = serde_json::to_string(&chosen.fit.history).unwrap_or_default();
    Ok((MixtureModel { model: chosen.fit.model }, history, interrupted))
}

/// Components and factors of the default model for outliers, and whether Ctrl-C ended their choice.
#[pyfunction]
#[pyo3(signature = (x, shape, *, preset, weights, scale, options))]
pub(crate) fn detector_size(
    py: Python<'_>,
    x: Held<'_>,
    shape: Vec<usize>,
    preset: &str,
    weights: Option<Numbers<'_>>,
    scale: f64,
    options: &str,
) -> PyResult<(usize, usize, bool)> {
    let meter = Arc::new(Meter::new());
    let options: FitOptions = crate::errors::options(options)?;
    let engine = x.engine(&shape, Some(preset), weights.as_ref(), scale, options.missing, &meter)?;
    let abandon = || {
        meter.stop();
        x.abandon(py)
    };
    let ((components, factors), interrupted) =
        x.fitted(detector_size_listening(py, &*engine, &options, &abandon))?;
    Ok((components, factors, interrupted))
}

/// One batch of a fit in batches: the model, how many batches it has seen, and the batch's mean log-likelihood.
#[pyfunction]
#[pyo3(signature = (x, shape, *, preset, weights, scale, options, start, device, model, batches))]
pub(crate) fn fit_batch(
    py: Python<'_>,
    x: Elements<'_>,
    shape: Vec<usize>,
    preset: Option<&str>,
    weights: Option<Numbers<'_>>,
    scale: f64,
    options: &str,
    start: Beginning<'_>,
    device: &str,
    model: Option<&Bound<'_, MixtureModel>>,
    batches: u64,
) -> PyResult<(MixtureModel, u64, f64)> {
    let options = fit_options(options, &start, preset, &shape)?;
    let device: Device = choice("device", device)?;
    let samples = x.samples(&shape, preset, weights.as_ref(), scale)?.with_missing(options.missing);
    let so_far = model.map(|model| OnlineFit::resume(model.get().model.clone(), batches));
    let online = detached(py, || {
        let backend = device.backend(&samples, options.components)?;
        let engine = backend.over(&samples)?;
        match so_far {
            None => OnlineFit::begin_on(&*engine, &options),
            Some(mut online) => online.step_on(&*engine, &options).map(|()| online),
        }
    })?;
    Ok((MixtureModel { model: online.model }, online.batches, online.log_likelihood))
}

/// The ranks as a preset understands them.
pub(crate) fn preset_rank(preset: Option<&str>, shape: &[usize], rank: Vec<usize>) -> PyResult<Vec<usize>> {
    match preset {
        Some(name) => Ok(name.parse::<Preset>().map_err(to_python)?.rank(shape, &rank)),
        None => Ok(rank),
    }
}

#[pymethods]
impl MixtureModel {
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

    /// π, shape (K,).
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.model.weights())
    }

    /// Every parameter of the components by its name, (K, …) each; one that there is of every mode is a list, one that they do
    /// without is None.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for Stacked { name, shape, values, .. } in self.model.parameters() {
            let values = array(py, values, &shape)?;
            let Some((name, _mode)) = name.split_once('.') else {
                all.set_item(name, values)?;
                continue;
            };
            match all.get_item(name)? {
                Some(modes) => modes.cast::<PyList>()?.append(values)?,
                None => all.set_item(name, [values])?,
            }
        }
        for name in self.model.absent_parameters() {
            all.set_item(name, py.None())?;
        }
        Ok(all)
    }

    /// The names of the classes and the class of every component, shape (K,), or None.
    #[getter]
    fn classes<'py>(&self, py: Python<'py>) -> Option<(Vec<String>, Bound<'py, PyArray1<i64>>)> {
        let classes = self.model.classes()?;
        Some((classes.names().to_vec(), indices(py, classes.components().to_vec())))
    }

    /// The number of free parameters.
    #[getter]
    fn n_parameters(&self) -> usize {
        self.model.n_parameters()
    }

    /// Questions about samples, by their names.
    fn question(&self, names: Vec<String>) -> PyResult<Question> {
        Question::new(self.model.clone().into(), &names)
    }

    /// The mixture of the components that the data of its fit support, and the warning about the others.
    fn supported(&self, history: &str) -> PyResult<(Self, Option<String>)> {
        let history =
            serde_json::from_str(history).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let supported = self.model.supported(&history);
        let words = supported.in_words();
        Ok((Self { model: supported.model }, words))
    }

    /// A gallery of known samples from their cores and responsibilities, a row and a class for each.
    fn recognizer(
        &self,
        py: Python<'_>,
        answers: Answers<'_>,
        classes: PyReadonlyArray1<'_, i64>,
        distance: &str,
    ) -> PyResult<Recognizer> {
        Recognizer::new(py, self.model.clone().into(), answers, classes, distance)
    }

    /// The samples that cores of all components (N, K·ρ) stand for, shape (N, p_1, …).
    fn inverse_transform<'py>(&self, py: Python<'py>, cores: Numbers<'_>) -> PyResult<Array<'py>> {
        let cores = cores.as_slice()?;
        let out = detached(py, || self.model.inverse_transform(cores))?;
        let n = out.len() / self.model.sample_len();
        array(py, out, &sides(&[n], self.model.shape()))
    }

    /// The samples that cores (N, ρ) of these components stand for, shape (N, p_1, …).
    fn rebuild<'py>(
        &self,
        py: Python<'py>,
        cores: Numbers<'_>,
        components: PyReadonlyArray1<'_, i64>,
    ) -> PyResult<Array<'py>> {
        let (cores, components) = (cores.as_slice()?, places(&components, "component")?);
        let out = detached(py, || self.model.rebuild(cores, &components))?;
        array(py, out, &sides(&[components.len()], self.model.shape()))
    }

    /// The posterior variance of the cores, shape (K, r_1, …).
    fn posterior_variance<'py>(&self, py: Python<'py>) -> PyResult<Array<'py>> {
        let shape = sides(&[self.model.n_components()], self.model.rank());
        array(py, self.model.posterior_variance(), &shape)
    }

    /// Log-likelihood, BIC, AIC and ICL.
    #[pyo3(signature = (x, shape, preset=None, *, scale=1.0, missing="error", device="cpu"))]
    fn evaluate(
        &self,
        py: Python<'_>,
        x: Held<'_>,
        shape: Vec<usize>,
        preset: Option<&str>,
        scale: f64,
        missing: &str,
        device: &str,
    ) -> PyResult<(f64, f64, f64, f64)> {
        let missing: Missing = choice("missing", missing)?;
        let device: Device = choice("device", device)?;
        let c = match &x {
            Held::Here(elements) => {
                let samples = elements.samples(&shape, preset, None, scale)?.with_missing(missing);
                detached(py, || {
                    let backend = device.backend(&samples, self.model.n_components())?;
                    self.model.evaluate(&*backend.over(&samples)?)
                })?
            }
            Held::Elsewhere(_) => {
                let engine = x.engine(&shape, preset, None, scale, missing, &Arc::new(Meter::new()))?;
                x.fitted(detached(py, || self.model.evaluate(&*engine)))?
            }
        };
        Ok((c.log_likelihood, c.bic, c.aic, c.icl))
    }

    /// Samples whose missing cells have their conditional means, and the standard deviation of each cell, both of the size of `x`; how
    /// many samples had their posterior tempered.
    #[pyo3(signature = (x, shape, preset=None, *, scale=1.0, temper="auto"))]
    fn impute<'py>(
        &self,
        py: Python<'py>,
        x: Elements<'_>,
        shape: Vec<usize>,
        preset: Option<&str>,
        scale: f64,
        temper: &str,
    ) -> PyResult<(Vector<'py>, Vector<'py>, usize)> {
        let temper: Temper = temper.parse().map_err(to_python)?;
        let samples = x.samples(&shape, preset, None, scale)?;
        let found = detached(py, || self.model.impute_by(&samples, temper))?;
        let [values, deviations] = [found.values, found.deviations].map(|x| PyArray1::from_vec(py, x));
        Ok((values, deviations, found.tempered.len()))
    }

    /// The same samples, their missing cells drawn so many times: all draws one after the other.
    #[pyo3(signature = (x, shape, preset=None, *, scale=1.0, draws, seed, temper="auto"))]
    fn impute_draws<'py>(
        &self,
        py: Python<'py>,
        x: Elements<'_>,
        shape: Vec<usize>,
        preset: Option<&str>,
        scale: f64,
        draws: usize,
        seed: u64,
        temper: &str,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let temper: Temper = temper.parse().map_err(to_python)?;
        let samples = x.samples(&shape, preset, None, scale)?;
        let drawn = detached(py, || self.model.impute_draws_by(&samples, draws, seed, temper))?;
        Ok(PyArray1::from_vec(py, drawn))
    }

    /// New samples, shape (n, p_1, …), and the components they come from.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        seed: u64,
        noise: bool,
    ) -> PyResult<(Array<'py>, Bound<'py, PyArray1<i64>>)> {
        let drawn = detached(py, || self.model.try_sample(n, seed, noise))?;
        let samples = array(py, drawn.samples, &sides(&[n], self.model.shape()))?;
        Ok((samples, indices(py, drawn.components)))
    }

    /// C_k, shape (P, P).
    fn scale_matrix<'py>(&self, py: Python<'py>, component: usize) -> PyResult<Bound<'py, PyArray2<f64>>> {
        matrix(py, &detached(py, || self.model.scale_matrix(component))?)
    }

    /// The covariance of the samples of a component, shape (P, P).
    fn covariance<'py>(&self, py: Python<'py>, component: usize) -> PyResult<Bound<'py, PyArray2<f64>>> {
        matrix(py, &detached(py, || self.model.covariance(component))?)
    }

    /// Writes the HTML report.
    #[pyo3(signature = (x, shape, preset=None, *, scale, path, options, labels, axes, value, recognize, held_out, history, missing="error"))]
    fn report(
        &self,
        py: Python<'_>,
        x: Elements<'_>,
        shape: Vec<usize>,
        preset: Option<&str>,
        scale: f64,
        path: PathBuf,
        options: &str,
        labels: Option<Vec<String>>,
        axes: Vec<String>,
        value: &str,
        recognize: Option<&str>,
        held_out: Option<(Elements<'_>, Vec<usize>, f64)>,
        history: &str,
        missing: &str,
    ) -> PyResult<()> {
        let missing = choice("missing", missing)?;
        let samples = x.samples(&shape, preset, None, scale)?.with_missing(missing);
        let held_out = match held_out {
            Some((x, shape, scale)) => {
                let samples = x.samples(&shape, preset, None, scale)?.with_missing(missing);
                Some(detached(py, || HeldOut::new(&self.model, &samples))?)
            }
            None => None,
        };
        let sides = samples.shape().iter().copied().chain(std::iter::repeat(1));
        let axis = |(text, side): (&String, usize)| Axis::parse(text, side).map_err(to_python);
        let axes = axes.iter().zip(sides).map(axis).collect::<PyResult<_>>()?;
        let labels = labels.map(Labels::new);
        let recognition = match (recognize, &labels) {
            (Some(distance), Some(labels)) => {
                let distance = choice("recognize", distance)?;
                Some(detached(py, || recognise(&self.model.clone().into(), &samples, labels, distance))?)
            }
            _ => None,
        };
        let options = ReportOptions {
            model: preset.unwrap_or_default().into(),
            labels,
            axes,
            value: Axis::parse(value, 1).map_err(to_python)?,
            recognition,
            held_out,
            history: serde_json::from_str(history).ok(),
            ..crate::errors::options(options)?
        };
        detached(py, || write_report(&self.model, &samples, &options, &path))
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
        let file = file(Model::Mixture(self.model.clone()), name, input, options, history);
        detached(py, || file.save(&path))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let bytes = ModelFile::new(Model::Mixture(self.model.clone())).to_bytes();
        Ok((py.get_type::<Self>().getattr("from_bytes")?, (PyBytes::new(py, &bytes),)))
    }

    /// The model in the bytes of a model file.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        match ModelFile::from_bytes("pickled model", bytes).map_err(to_python)?.model {
            Model::Mixture(model) => Ok(Self { model }),
            _ => Err(PyValueError::new_err("the bytes hold another model, not a mixture")),
        }
    }
}
