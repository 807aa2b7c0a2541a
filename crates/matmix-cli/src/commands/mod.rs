//! One file per command.
//!
//! | file | what |
//! |---|---|
//! | `fit`, `dask`, `select` | a model, here or on a cluster; how many components, of what rank |
//! | `assign`, `classify`, `cluster`, `score`, `outliers` | what a model says about samples |
//! | `transform`, `reconstruct`, `denoise`, `impute`, `sample` | samples to cores, and samples a model makes |
//! | `recognize` | whose face it is |
//! | `compare`, `demo` | models side by side |
//! | `info`, `montage`, `report` | what is in a file; pictures; a page |

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
