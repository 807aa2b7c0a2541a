//! The library from the outside: one program, because linking one for every file would take longer than running them.

#![allow(clippy::unwrap_used)]

mod acceleration;
mod add_a_model;
#[cfg(feature = "ndarray")]
mod arrays;
mod battery;
mod choices;
mod classes;
mod denoise;
mod dense;
mod digits;
mod engine;
mod errors;
mod formats;
mod images;
mod impute;
mod invariance;
mod larger;
mod low_rank;
mod made;
mod masks;
mod missing;
mod missing_fit;
mod model_file;
mod monotone;
mod online;
mod oracle;
mod paper_algorithm;
mod parts;
mod patch_fisher;
mod pictures;
mod planted;
mod precision;
mod recognition;
mod recovery;
mod report;
mod reproducible;
mod resume;
mod search;
mod select;
mod student_t;
mod support;
mod typicality;
mod units;
