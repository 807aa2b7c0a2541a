//! Where samples come from and go to.
//!
//! [`Samples`] is the set everything else works on. It reads its elements through a [`Source`], so that an
//! array in memory, a memory-mapped file and a folder of images look the same to a pass.

pub mod atomic;
mod model_file;
pub mod npy;
mod samples;
mod source;
pub(crate) mod tensors;

pub use model_file::{Model, ModelFile};
pub use samples::Samples;
pub use source::{Buffer, Chunk, Element, Scalar, Source};
