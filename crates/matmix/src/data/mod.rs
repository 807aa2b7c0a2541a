//! Where samples come from and go to.
//!
//! [`Samples`] is the set everything else works on. It reads its elements through a [`Source`], so that an
//! array in memory, a memory-mapped file and a folder of images look the same to a pass. [`open`] makes such a set
//! of whatever a person names.
//!
//! | file | what |
//! |---|---|
//! | `samples`, `source`, `reading`, `values` | a set, what holds its samples, how they are read, what their values are |
//! | `elements`, `missing`, `marked`, `mask`, `meter` | the types of numbers; missing cells, and what tells them; how far a pass has come |
//! | `open`, `spec`, `patterns`, `notes`, `foreign`, `limit` | from what a person types to a set: options as text, patterns of names, what was decided, formats that are not read, how much may be unpacked |
//! | `npy`, `npz`, `idx`, `csv`, `mat`, `flat` | files of numbers; those whose samples stand one after the other |
//! | `folder`, `tree`, `images`, `image` | files of images, in folders and below; decoding them |
//! | `file`, `files`, `atomic` | files that must not change meanwhile, many as one set, and files that appear whole or not at all |
//! | `patches`, `windows`, `contrast` | the windows of images as samples, and what is done to them |
//! | `labels`, `known` | what samples are called, and labels of which some are not known |
//! | `model_file`, `tensors`, `input`, `gallery` | model files, the tensors in them, what a model takes for input, what a recogniser has learned |
//! | `digits` | the embedded digits |
//! | `nd` | samples as arrays of the crate `ndarray` |

pub mod atomic;
mod contrast;
#[cfg(feature = "formats")]
mod csv;
#[cfg(feature = "demo")]
mod digits;
#[cfg_attr(not(feature = "formats"), allow(dead_code))]
mod elements;
mod file;
#[cfg_attr(not(feature = "formats"), allow(dead_code))]
mod files;
mod flat;
#[cfg(feature = "formats")]
mod folder;
#[cfg(feature = "formats")]
mod foreign;
mod gallery;
#[cfg(feature = "formats")]
mod idx;
#[cfg(feature = "formats")]
mod image;
#[cfg(feature = "formats")]
mod images;
mod input;
#[cfg(feature = "formats")]
mod known;
#[cfg(feature = "formats")]
mod labels;
#[cfg_attr(not(feature = "formats"), allow(dead_code))]
mod limit;
#[cfg(all(test, feature = "formats"))]
#[path = "../../tests/suite/made.rs"]
mod made;
mod marked;
#[cfg(feature = "formats")]
mod mask;
#[cfg(feature = "formats")]
mod mat;
mod meter;
mod missing;
mod model_file;
#[cfg(feature = "ndarray")]
mod nd;
#[cfg(feature = "formats")]
mod notes;
#[cfg_attr(not(feature = "formats"), allow(dead_code))]
pub mod npy;
#[cfg(feature = "formats")]
mod npz;
#[cfg(feature = "formats")]
mod open;
mod patches;
#[cfg_attr(not(feature = "formats"), allow(dead_code))]
mod patterns;
#[cfg(all(test, feature = "formats"))]
#[path = "../../tests/suite/pictures.rs"]
mod pictures;
mod reading;
mod samples;
mod source;
mod spec;
pub(crate) mod tensors;
#[cfg(feature = "formats")]
mod tree;
mod values;
mod windows;

pub use contrast::Contrast;
#[cfg(feature = "demo")]
pub use digits::digits;
#[cfg(feature = "formats")]
pub use folder::open_picture;
pub use gallery::Gallery;
pub(crate) use input::spread;
pub use input::{Glance, Input};
#[cfg(feature = "formats")]
pub use known::KnownLabels;
#[cfg(feature = "formats")]
pub use labels::Labels;
pub use marked::{FillValue, Unobserved};
pub use meter::{Meter, Reading};
pub use missing::Missing;
pub(crate) use missing::samples_with_nan;
pub use model_file::ModelFile;
#[cfg(feature = "ndarray")]
pub(crate) use nd::{row_major, with_axes};
#[cfg(feature = "formats")]
pub use notes::Note;
#[cfg(feature = "formats")]
pub use open::{DataSet, OpenOptions, files_of, open};
pub use patches::Patches;
pub(crate) use patches::complete;
pub use patterns::matching;
pub use samples::Samples;
#[doc(hidden)]
pub use source::DeviceMemory;
pub use source::{Buffer, Chunk, Element, Residence, Scalar, Source};
pub use spec::{parse_memory, parse_range, parse_resize, parse_scale, parse_shape};
pub use tensors::Tensors;
pub(crate) use tensors::{read_mixture, write_mixture};
pub use values::Values;
pub(crate) use windows::Windows;
