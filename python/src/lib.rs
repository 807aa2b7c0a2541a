//! `matmix._matmix`: what the Python package `matmix` is made of.
//!
//! Thin on purpose: arrays are borrowed, the interpreter is released, results are handed over without a copy. The
//! mathematics, the defaults and the checks of the numbers are in the library; whatever makes the package look like
//! scikit-learn is in Python.

mod arrays;
mod ask;
mod data;
mod elsewhere;
mod errors;
mod input;
mod low_rank;
mod mixture;
mod names;
mod on_gpu;
mod patches;
mod pools;
mod program;
mod progress;
mod recognize;

use pyo3::prelude::*;

/// The native part of matmix.
#[pymodule]
mod _matmix {
    #[pymodule_export]
    use super::ask::Question;
    #[pymodule_export]
    use super::data::{digits, files_of, load_model, open};
    #[pymodule_export]
    use super::elsewhere::{
        Elsewhere, SumTree, count_skipped, merge_sums, run_task, tree_levels, wanted_rows,
    };
    #[pymodule_export]
    use super::input::ModelInput;
    #[pymodule_export]
    use super::low_rank::{LowRankModel, fit_low_rank};
    #[pymodule_export]
    use super::mixture::{
        MixtureModel, described, detector_size, fit_batch, fit_mixture, fit_warnings, select_mixture,
    };
    #[pymodule_export]
    use super::names::{PublishedModel, default_preset};
    #[pymodule_export]
    use super::patches::{
        PatchDenoiserModel, PatchFisherModel, PatchGallery, PatchWindows, estimate_noise, fit_patch_denoiser,
        fit_patch_fisher,
    };
    #[pymodule_export]
    use super::program::program;
    #[pymodule_export]
    use super::progress::Progress;
    #[pymodule_export]
    use super::recognize::Recognizer;

    use super::*;

    #[pymodule_init]
    fn init(m: &Bound<'_, PyModule>) -> PyResult<()> {
        super::pools::begin();
        super::names::add(m)?;
        m.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
