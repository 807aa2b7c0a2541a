//! Mixtures of bilateral probabilistic PCA for samples that are matrices or tensors.

#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr))]

pub mod data;
pub mod error;
mod fisher;
pub mod fit;
mod infer;
pub mod linalg;
pub mod model;
pub mod pass;
pub mod picture;
pub mod preset;
mod recognize;
pub mod report;

pub use data::{Model, ModelFile, Samples};
pub use error::{Error, Result};
pub use fit::{
    Algorithm, Checkpoint, Event, Fit, FitOptions, History, LowRankFit, LowRankOptions, Progress, Start,
    StopReason, StopRule, fit, fit_low_rank, fit_with,
};
pub use infer::{Projection, Reconstruction};
pub use linalg::Matrix;
pub use model::{Component, Criteria, Drawn, LowRank, Mixture};
pub use pass::Precision;
pub use preset::{Preset, PresetFit};
pub use recognize::{Distance, Neighbour, Recognition, Recognizer};
