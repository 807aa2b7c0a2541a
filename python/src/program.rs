//! The program `matmix`, which comes with the package.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the program with these arguments, its name first; its exit code.
///
/// The interpreter waits, and so does its treatment of Ctrl-C: signals are the program's own, as if it stood alone.
#[pyfunction]
pub(crate) fn program(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| matmix_cli::program(arguments))
}
