//! Damaged files: a program of its own, because its allocator watches what every test asks for.

#![allow(clippy::unwrap_used)]

#[path = "../suite/made.rs"]
mod made;
#[path = "../suite/planted.rs"]
mod planted;

mod fuzz_formats;
mod model_file;
mod watched;
