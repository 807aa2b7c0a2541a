//! The library's errors as Python's.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;

use matmix::Error;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::pools;

/// What to do about values that cannot be meant.
const SAY_THE_FACTOR: &str = "give samples as the model was fitted to, or say what to multiply with: \
    model.set_params(scale=1/255) for bytes, scale=255 for fractions, scale=1 for values as they are (matmix.load takes it, too)";

/// What the system refused is an `OSError`, or what Python makes of it with its number and the file; everything else is
/// a `ValueError` with the library's words.
pub(crate) fn to_python(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Io { path, action, message, code: Some(code) } => {
            let said = message.strip_suffix(&format!(" (os error {code})")).unwrap_or(&message);
            PyOSError::new_err((code, format!("cannot {action}: {said}"), path.into_os_string()))
        }
        Error::Io { .. } => PyOSError::new_err(text),
        Error::NoMemory { .. } | Error::DeviceMemory { .. } => PyMemoryError::new_err(text),
        Error::Device { .. } => PyRuntimeError::new_err(text),
        Error::Values { .. } => PyValueError::new_err(format!("{text}; {SAY_THE_FACTOR}")),
        _ => PyValueError::new_err(text),
    }
}

/// One of a few by its name; what else there is, in the words of the option's user.
pub(crate) fn choice<T: FromStr<Err = Error>>(option: &str, name: &str) -> PyResult<T> {
    name.parse().map_err(|error| match error {
        Error::Choice { expected, .. } => {
            let expected: Vec<String> = expected.iter().map(|name| format!("'{name}'")).collect();
            let expected = expected.join(", ");
            PyValueError::new_err(format!("option `{option}` is '{name}'; it must be one of {expected}"))
        }
        other => to_python(other),
    })
}

/// Options of the library, which Python hands over as JSON.
pub(crate) fn options<T: DeserializeOwned>(json: &str) -> PyResult<T> {
    // By way of a value: where in a text that no user has seen something stands is nothing to tell.
    let read = serde_json::from_str::<Value>(json).and_then(serde_json::from_value);
    read.map_err(|error| PyValueError::new_err(format!("the options cannot be used: {error}")))
}

/// Works without the interpreter, on threads of this process. A panic, which would be our bug, becomes a `RuntimeError` rather than the
/// `PanicException` that slips through every `except Exception`.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> matmix::Result<T> + Send,
) -> PyResult<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(|| pools::with_threads(work)))).or_runtime_error()
}

/// What is left of a computation that may have panicked.
pub(crate) trait OrPanic<T> {
    fn or_runtime_error(self) -> PyResult<T>;
}

impl<T> OrPanic<T> for Result<matmix::Result<T>, Box<dyn Any + Send>> {
    fn or_runtime_error(self) -> PyResult<T> {
        match self {
            Ok(result) => result.map_err(to_python),
            Err(panic) => {
                let text = panic.downcast_ref::<&str>().map(|s| (*s).to_string());
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
                Err(PyRuntimeError::new_err(format!("a bug in matmix, please report it: {text}")))
            }
        }
    }
}
