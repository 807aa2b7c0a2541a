//! Mixtures of bilateral probabilistic PCA for samples that are matrices or tensors.
//!
//! A set of [`Samples`] goes into [`fit()`], a [`Mixture`] comes out; [`fit_low_rank`] gives a [`LowRank`] instead.
//! [`Preset`] knows the published names. Everything a fitted model can do is a method of it: project, transform,
//! reconstruct, denoise, score, sample. [`Recognizer`] finds the nearest known sample, [`PatchRecognizer`] does so by the patches of
//! images, [`PatchDenoiser`] takes noise out of them, [`ModelFile`] keeps a model.
//!
//! ```
//! use matmix::{FitOptions, Samples, fit};
//!
//! // Thirty 4×3 matrices.
//! let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
//! let samples = Samples::from_vec(&[4, 3], numbers)?;
//! let fitted = fit(&samples, &FitOptions { components: 2, rank: vec![2, 1], ..FitOptions::default() })?;
//! let (cores, components) = fitted.model.cores(&samples)?;
//! assert_eq!((cores.len(), components.len()), (30 * 2, 30));
//! # Ok::<(), matmix::Error>(())
//! ```
//!
//! With the feature `ndarray` samples, models and results are arrays of that crate, too. It is `matmix::ndarray` here: arrays of another
//! version of it are of other types.

#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::missing_errors_doc)]

#[cfg(feature = "ndarray")]
mod arrays;
mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod data;
mod denoise;
mod device;
pub mod error;
pub mod fit;
mod gpu;
mod impute;
mod infer;
#[doc(hidden)]
pub mod linalg;
mod memory;
pub mod model;
mod options;
mod parallel;
pub mod pass;
#[cfg(feature = "images")]
pub mod picture;
pub mod preset;
mod recognize;
#[cfg(feature = "report")]
pub mod report;
mod simd;
mod temper;
mod walk;

#[cfg(feature = "ndarray")]
pub use ndarray;

pub use cpu::Cpu;
pub use data::{Input, Meter, Missing, ModelFile, Samples};
pub use denoise::{PatchDenoiser, PatchDenoiserOptions, estimate_noise};
pub use device::Device;
pub use error::{Error, Result};
pub use fit::{
    Algorithm, Checkpoint, Dof, Fit, FitOptions, LowRankFit, LowRankOptions, OnlineFit, Progress, Search,
    SelectOptions, Selection, Start, StopRule, detector_size, fit, fit_low_rank, fit_low_rank_on, fit_on,
    fit_with, select, select_on,
};
pub use gpu::Gpu;
pub use infer::{Projection, Reconstruction};
pub use linalg::Matrix;
pub use model::{
    Candidate, Choice, Classes, Component, Criteria, Criterion, Drawn, Early, Event, History, LowRank,
    Mixture, Model, Noise, Purpose, SearchMove, SearchStep, Searched, Stacked, StopReason, Supported,
};
pub use pass::{Backend, Engine, Imputed, Precision};
pub use preset::{Preset, PresetFit};
pub use recognize::{
    CoreGallery, Distance, Neighbour, PatchFisher, PatchFisherOptions, PatchRecognizer, Recognition,
    Recognizer, RidgeScores,
};
pub use temper::Temper;

/// The README's examples are run as tests.
#[cfg(all(doctest, feature = "demo"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
