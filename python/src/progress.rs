//! Fitting on another thread, while this one listens for Ctrl-C and calls back into Python.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use matmix::fit::Observer;
use matmix::{Engine, Fit, FitOptions, SelectOptions, Selection, detector_size, fit_on, select_on};
use pyo3::exceptions::{PyKeyboardInterrupt, PyStopIteration};
use pyo3::prelude::*;

use crate::errors::OrPanic;
use crate::pools;

/// How long Ctrl-C may go unnoticed.
const PATIENCE: Duration = Duration::from_millis(50);

/// Where a fit stands: what a callback is given after the start (iteration 0) and after each iteration.
#[pyclass(frozen, get_all, module = "matmix._matmix")]
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    /// Which restart, counted from 0.
    restart: usize,
    /// How many there are.
    n_init: usize,
    /// Which iteration; 0 is the start.
    iteration: usize,
    /// How many there may be.
    max_iter: usize,
    /// The share of the samples that the iteration has seen.
    share: f64,
    /// Passes over the whole set so far: one over a part counts as its share.
    passes: f64,
    /// How long the fit has taken so far, in seconds.
    seconds: f64,
    /// The mean log-likelihood per sample.
    log_likelihood: f64,
    /// The reconstruction error e.
    reconstruction_error: f64,
    /// What a search before the first iteration has just done (begin, split, merge, exchange, breathe, rank), or nothing.
    step: Option<&'static str>,
    /// How many components there are now, if that is known.
    n_components: Option<usize>,
}

#[pymethods]
impl Progress {
    fn __repr__(&self) -> String {
        format!(
            "Progress(restart={}, n_init={}, iteration={}, max_iter={}, share={}, passes={}, seconds={}, log_likelihood={}, reconstruction_error={}, step={}, n_components={})",
            self.restart,
            self.n_init,
            self.iteration,
            self.max_iter,
            self.share,
            self.passes,
            self.seconds,
            self.log_likelihood,
            self.reconstruction_error,
            self.step.map_or("None".into(), |step| format!("'{step}'")),
            self.n_components.map_or("None".into(), |k| k.to_string()),
        )
    }
}

/// A fit and whether Ctrl-C ended it.
///
/// Python delivers signals to its main thread only, and a callback may draw; so the fit runs elsewhere, and everything
/// that is Python's business happens on the thread that called. The first Ctrl-C stops the fit and keeps the model; a
/// second one is raised as soon as the pass under way has heard of it by `abandon`, an exception of the callback once the
/// iteration has ended.
pub(crate) fn fit_listening(
    py: Python<'_>,
    engine: &dyn Engine,
    options: &FitOptions,
    callback: Option<&Bound<'_, PyAny>>,
    abandon: &dyn Fn() -> PyResult<()>,
) -> PyResult<(Fit, bool)> {
    let options = &FitOptions { threads: pools::threads(options.threads), ..options.clone() };
    listening(py, callback, abandon, |observer| fit_on(engine, options, observer))
}

/// The same for a selection, which listens between the steps of its search and while the chosen model is fitted.
pub(crate) fn select_listening(
    py: Python<'_>,
    engine: &dyn Engine,
    options: &SelectOptions,
    callback: Option<&Bound<'_, PyAny>>,
    abandon: &dyn Fn() -> PyResult<()>,
) -> PyResult<(Selection, bool)> {
    let threads = pools::threads(options.fit.threads);
    let fit = FitOptions { threads, ..options.fit.clone() };
    let options = &SelectOptions { fit, ..options.clone() };
    listening(py, callback, abandon, |observer| select_on(engine, options, observer))
}

/// The same for the size of the default model for outliers; there is no callback.
pub(crate) fn detector_size_listening(
    py: Python<'_>,
    engine: &dyn Engine,
    options: &FitOptions,
    abandon: &dyn Fn() -> PyResult<()>,
) -> PyResult<((usize, usize), bool)> {
    let options = &FitOptions { threads: pools::threads(options.threads), ..options.clone() };
    listening(py, None, abandon, |observer| detector_size(engine, None, None, options, observer))
}

/// Whatever reports to an observer, on a thread of its own.
fn listening<T: Send>(
    py: Python<'_>,
    callback: Option<&Bound<'_, PyAny>>,
    abandon: &dyn Fn() -> PyResult<()>,
    work: impl FnOnce(&mut Observer<'_>) -> matmix::Result<T> + Send,
) -> PyResult<(T, bool)> {
    let stop = AtomicBool::new(false);
    let (report, mut reports) = mpsc::channel::<Progress>();
    let (answer, answers) = mpsc::channel::<()>();
    let asks = callback.is_some();
    std::thread::scope(|scope| {
        let stop = &stop;
        let worker = scope.spawn(move || {
            catch_unwind(AssertUnwindSafe(move || {
                work(&mut move |now: &matmix::Progress<'_>| {
                    if asks && report.send(snapshot(now)).is_ok() {
                        // Whoever answers has first set `stop`; nobody left to answer is no reason to go on.
                        if answers.recv().is_err() {
                            return ControlFlow::Break(());
                        }
                    }
                    match stop.load(Ordering::Acquire) {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    }
                })
            }))
        });
        let mut interrupted = false;
        let mut raised = None;
        loop {
            let heard;
            (reports, heard) = py.detach(move || {
                let heard = reports.recv_timeout(PATIENCE);
                (reports, heard)
            });
            if let Err(error) = py.check_signals() {
                if error.is_instance_of::<PyKeyboardInterrupt>(py) && !interrupted {
                    interrupted = true;
                } else {
                    raised.get_or_insert(error);
                    if let Err(error) = abandon() {
                        raised.get_or_insert(error);
                    }
                }
                stop.store(true, Ordering::Release);
            }
            match heard {
                Ok(progress) => {
                    if let (Some(callback), false) = (callback, stop.load(Ordering::Acquire)) {
                        match ask(callback, progress) {
                            Ok(false) => {}
                            Ok(true) => stop.store(true, Ordering::Release),
                            Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => {
                                interrupted = true;
                                stop.store(true, Ordering::Release);
                            }
                            Err(error) => {
                                raised.get_or_insert(error);
                                stop.store(true, Ordering::Release);
                            }
                        }
                    }
                    let _ = answer.send(());
                }
                Err(RecvTimeoutError::Timeout) => {}
                // The worker has dropped its end: it is done.
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let fit = py.detach(|| worker.join().and_then(|result| result)).or_runtime_error();
        match raised {
            Some(error) => Err(error),
            None => Ok((fit?, interrupted)),
        }
    })
}

fn snapshot(now: &matmix::Progress<'_>) -> Progress {
    Progress {
        restart: now.restart,
        n_init: now.n_init,
        iteration: now.iteration,
        max_iter: now.max_iter,
        share: now.share,
        passes: now.passes,
        seconds: now.seconds,
        log_likelihood: now.log_likelihood,
        reconstruction_error: now.reconstruction_error,
        step: now.search.map(|step| step.kind.name()),
        n_components: match (now.search, now.model) {
            (Some(step), _) => Some(step.components),
            (None, model) => model.map(|model| model.n_components()),
        },
    }
}

/// Whether the callback asks to stop: by a true value or by `StopIteration`.
fn ask(callback: &Bound<'_, PyAny>, progress: Progress) -> PyResult<bool> {
    match callback.call1((progress,)) {
        Ok(answer) => answer.is_truthy(),
        Err(error) if error.is_instance_of::<PyStopIteration>(callback.py()) => Ok(true),
        Err(error) => Err(error),
    }
}
