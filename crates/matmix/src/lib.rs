//! Mixtures of bilateral probabilistic PCA for samples that are matrices or tensors.
pub mod data;
pub mod error;
pub mod linalg;
pub mod preset;
pub mod report;

pub use data::Samples;
pub use error::{Error, Result};
