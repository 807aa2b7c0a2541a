//! One file per command.

pub(crate) mod assign;
pub(crate) mod classify;
pub(crate) mod cluster;
pub(crate) mod compare;
pub(crate) mod dask;
pub(crate) mod demo;
pub(crate) mod denoise;
pub(crate) mod fit;
pub(crate) mod impute;
pub(crate) mod info;
pub(crate) mod montage;
pub(crate) mod outliers;
pub(crate) mod recognize;
pub(crate) mod reconstruct;
pub(crate) mod report;
pub(crate) mod sample;
pub(crate) mod score;
pub(crate) mod select;
pub(crate) mod transform;
