//! Where samples come from and go to.
//!
//! [`Samples`] is the set everything else works on. It reads its elements through a [`Source`], so that an
//! array in memory, a memory-mapped file and a folder of images look the same to a pass. [`open`] makes such a set
//! of whatever a person names.

pub mod atomic;
mod csv;
mod digits;
mod elements;
mod file;
mod files;
mod flat;
mod folder;
mod foreign;
mod idx;
pub(crate) mod image;
mod images;
mod input;
mod labels;
mod limit;
#[cfg(test)]
#[path = "../../tests/suite/made.rs"]
mod made;
mod mat;
mod meter;
mod model_file;
mod notes;
pub mod npy;
mod npz;
mod open;
mod patches;
mod patterns;
#[cfg(test)]
#[path = "../../tests/suite/pictures.rs"]
mod pictures;
mod reading;
mod samples;
mod source;
mod spec;
pub(crate) mod tensors;
mod walk;
mod windows;

pub use digits::digits;
pub use input::Input;
pub use labels::Labels;
pub use meter::{Meter, Reading};
pub use model_file::ModelFile;
pub use notes::Note;
pub use open::{DataSet, OpenOptions, files_of, open};
pub use patches::Patches;
pub use patterns::matching;
pub use samples::Samples;
pub use source::{Buffer, Chunk, Element, Residence, Scalar, Source};
pub use spec::{parse_memory, parse_range, parse_resize, parse_scale, parse_shape};
pub use tensors::Tensors;
pub(crate) use tensors::{read_mixture, write_mixture};
pub(crate) use windows::Windows;
