//! The one error type of the library.
//!
//! Variants carry facts, so that a caller can compare them with `assert_eq!`; messages say what was found,
//! where, and what would have been right.

mod named;

use std::path::{Path, PathBuf};

pub use self::named::{Action, Counted, FileKind, ForImages, NoGpu};

/// Whatever data, options or files can cause. Nothing that a user can do makes the library panic.
///
/// ```
/// use matmix::{Error, Samples};
///
/// // Variants carry facts, messages say what would have been right.
/// let error = Samples::from_vec(&[2, 2], vec![0.0; 5]).unwrap_err();
/// assert_eq!(error, Error::DataLength { shape: vec![2, 2], found: 5 });
/// assert_eq!(error.to_string(), "5 numbers do not divide into samples of shape 2×2 (4 numbers each)");
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A set without samples was given where at least one is needed.
    #[error("the set has no samples; at least one is needed")]
    EmptySet,

    /// A sample shape without modes or with an empty side.
    #[error("a sample of shape {} holds nothing; every side must be at least 1", sides(.shape))]
    EmptyShape {
        /// The shape that was given.
        shape: Vec<usize>,
    },

    /// The number of elements is not a multiple of the sample size.
    #[error("{found} numbers do not divide into samples of shape {} ({} numbers each)", sides(.shape), .shape.iter().product::<usize>())]
    DataLength {
        /// The shape of one sample.
        shape: Vec<usize>,
        /// How many numbers were given.
        found: usize,
    },

    /// NaN or infinity in the data.
    #[error("sample {sample} holds {value} at position {position:?}; every value must be finite{}", allowed(*.value))]
    NotFinite {
        /// Which sample, counted from 0.
        sample: usize,
        /// Where in the sample, one index per mode, counted from 0.
        position: Vec<usize>,
        /// What stands there.
        value: f64,
    },

    /// Every cell of every sample that counts is missing.
    #[error("no cell of any sample was observed; at least one is needed")]
    NothingObserved,

    /// Values so large that their squares leave the range of the numbers.
    #[error("sample {sample} is too large to be squared in double precision; scale the data down")]
    Overflow {
        /// Which sample, counted from 0.
        sample: usize,
    },

    /// A GPU that is not there, or that failed.
    #[error("{problem}")]
    Device {
        /// Which of these.
        why: NoGpu,
        /// What happened, and what would be right.
        problem: String,
    },

    /// A GPU without room for what a pass needs.
    #[error(
        "GPU {device} has no room for {wanted} bytes: {free} of its {total} are free; with MATMIX_GPU_MEMORY less is taken at a time, \
         and the processor needs none of it"
    )]
    DeviceMemory {
        /// The number of the GPU, from 0.
        device: usize,
        /// Bytes that were asked for at once.
        wanted: usize,
        /// Bytes that are free.
        free: usize,
        /// All its bytes.
        total: usize,
    },

    /// The samples have another shape than the model or the other set.
    #[error("the samples have shape {}, but {} is needed here", sides(.found), sides(.expected))]
    ShapeMismatch {
        /// The shape that is needed.
        expected: Vec<usize>,
        /// The shape that was given.
        found: Vec<usize>,
    },

    /// A covariance that a Student-t does not have.
    #[error(
        "component {component} has no covariance: its Student-t noise has {degrees} degrees of freedom, and more than 2 are needed; its \
         scale matrix always exists: `scale_matrix`, in Python `get_scale_matrix`"
    )]
    NoCovariance {
        /// The component.
        component: usize,
        /// Its degrees of freedom.
        degrees: f64,
    },

    /// More components than samples.
    #[error(
        "{components} components cannot be fitted to {} (of positive weight); use at most {samples}",
        several(*.samples, "sample")
    )]
    TooManyComponents {
        /// The number of components asked for.
        components: usize,
        /// The number of samples with positive weight.
        samples: usize,
    },

    /// More components than patches.
    #[error(
        "{components} components cannot be fitted to {patches} patches of {}: the images are {}, and there are {images} of them; \
         use smaller patches, larger or more images, or at most {patches} components",
        sides(size),
        sides(image)
    )]
    TooFewPatches {
        /// The number of components asked for.
        components: usize,
        /// The number of patches.
        patches: usize,
        /// The sides of a patch, cut to those of the images.
        size: Vec<usize>,
        /// The number of images.
        images: usize,
        /// The sides of an image.
        image: Vec<usize>,
    },

    /// One rank per mode is needed.
    #[error(
        "{ranks} rank(s) given for samples of order {order}; give one per mode, or a single one for all modes"
    )]
    RankCount {
        /// How many ranks were given.
        ranks: usize,
        /// The order of the samples.
        order: usize,
    },

    /// A number of components, or a range of them, that cannot be.
    #[error("option `components` is {value}; it must be {expected}")]
    Components {
        /// The number or the range.
        value: String,
        /// What would be right.
        expected: &'static str,
    },

    /// A start that does not go with the rest of a fit.
    #[error("option `start` is {value}; it must be {expected}")]
    Start {
        /// What was given.
        value: String,
        /// What would be right.
        expected: &'static str,
    },

    /// A rank outside 1..=side.
    #[error("rank {rank} of mode {mode} does not fit its side of {side}; it must be between 1 and {side}")]
    Rank {
        /// The mode, counted from 0.
        mode: usize,
        /// The rank asked for.
        rank: usize,
        /// The side of the samples in that mode.
        side: usize,
    },

    /// An option outside its range.
    #[error("option `{option}` is {value}; it must be {expected}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// The value given.
        value: String,
        /// What would be right.
        expected: &'static str,
    },

    /// A name that is none of those there are.
    #[error("`{name}` is no {what}; choose one of {}", expected.join(", "))]
    Choice {
        /// The enumeration.
        what: &'static str,
        /// The name that was given.
        name: String,
        /// The names there are.
        expected: Vec<&'static str>,
    },

    /// A checkpoint that was kept by another fit.
    #[error("{}: it is the checkpoint of a fit of other samples or with other options", path.display())]
    OtherFit {
        /// The file.
        path: PathBuf,
    },

    /// The number of sample weights or labels differs from the number of samples.
    #[error("{found} {what} for {expected} samples; exactly one per sample is needed")]
    Count {
        /// What was counted.
        what: Counted,
        /// The number of samples.
        expected: usize,
        /// How many were given.
        found: usize,
    },

    /// A class with fewer labelled samples than components.
    #[error(
        "class {class:?} has {} (of positive weight) for {}; {}",
        several(*.labelled, "labelled sample"),
        several(*.components, "component"),
        fewer_components(*.labelled)
    )]
    TooFewLabelled {
        /// What it is called.
        class: String,
        /// How many samples are known to be of it.
        labelled: usize,
        /// How many components it should have.
        components: usize,
    },

    /// A question about classes to a model that knows none.
    #[error("the components of this model belong to no classes: it was fitted without labels")]
    NoClasses,

    /// A sample weight that is negative or not finite.
    #[error("the weight of sample {sample} is {value}; weights must be finite and not negative")]
    Weight {
        /// Which sample, counted from 0.
        sample: usize,
        /// Its weight.
        value: f64,
    },

    /// All sample weights are zero.
    #[error("all sample weights are zero; at least one must be positive")]
    ZeroWeights,

    /// A sample index beyond the end of the set.
    #[error("sample {index} was asked for, but the set has {len} (0 to {})", .len.saturating_sub(1))]
    Index {
        /// The index asked for.
        index: usize,
        /// The size of the set.
        len: usize,
    },

    /// Something that exists only for samples of one order.
    #[error("{what} needs samples of order {expected}, but these have order {found}")]
    Order {
        /// What was asked for.
        what: &'static str,
        /// The order it needs.
        expected: usize,
        /// The order of the samples.
        found: usize,
    },

    /// Model parameters that describe no model.
    #[error("these parameters are not a model: {problem}")]
    Model {
        /// What is wrong with them.
        problem: String,
    },

    /// No preset of this name.
    #[error("there is no model named `{name}`; choose one of {}", known.join(", "))]
    UnknownPreset {
        /// The name that was given.
        name: String,
        /// Those there are.
        known: Vec<&'static str>,
    },

    /// A P×P matrix was asked for that would not be reasonable to hold.
    #[error("a dense matrix of {size}×{size} would be needed; the limit is {limit}×{limit}")]
    TooLarge {
        /// The size asked for.
        size: usize,
        /// The largest that is made.
        limit: usize,
    },

    /// The sums of a pass over another number of samples than there are.
    #[error(
        "statistics of {found} samples came back for a set of {expected}: a part was lost or counted twice"
    )]
    LostSamples {
        /// The number of samples in the set.
        expected: usize,
        /// The number of samples in the sums.
        found: u64,
    },

    /// Sums that are not those of the pass, or that cannot be added to others.
    #[error("these sums do not belong here: {problem}")]
    Sums {
        /// What they are, and what would be right.
        problem: String,
    },

    /// A task that does not fit the samples it is to run over.
    #[error("this task does not fit the samples: {problem}")]
    Task {
        /// What is wrong with it.
        problem: String,
    },

    /// Bytes that are no task, no sums or no gallery.
    #[error("these bytes are not a readable {what}: {problem}")]
    Bytes {
        /// What they should be: "task", "sums", "gallery".
        what: &'static str,
        /// What was found, and what would be right.
        problem: String,
    },

    /// A memory budget in which not even one chunk of the samples can be worked on.
    #[error(
        "a memory budget of {} is too small: at least {} are needed for two chunks of the samples and the sums of a pass",
        bytes(*.budget), bytes(*.needed)
    )]
    Memory {
        /// The budget in bytes.
        budget: u64,
        /// What would be enough, in bytes.
        needed: u64,
    },

    /// More samples to draw than there is memory for.
    #[error("{samples} samples of {} take {}{}", sides(.shape), bytes(*.needed), left(*.available))]
    NoMemory {
        /// The number of samples; of imputation, times that of draws.
        samples: usize,
        /// The shape of one of them.
        shape: Vec<usize>,
        /// The bytes they take.
        needed: u128,
        /// The bytes there are, where that is known.
        available: Option<u64>,
    },

    /// A pass that somebody asked to stop, see [`Meter::stop`](crate::Meter::stop).
    #[error("the pass was stopped")]
    Stopped,

    /// Whatever runs the passes (a cluster, say) failed.
    #[error("a pass could not be run: {problem}")]
    Engine {
        /// What it said.
        problem: String,
    },

    /// The operating system refused.
    #[error("{}: cannot {action}: {message}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        action: Action,
        /// What the system said.
        message: String,
        /// The number the system has for it (`errno` on Unix).
        code: Option<i32>,
    },

    /// A file that is not what its name or place says it is.
    #[error("{}: not a readable {format}: {problem}", .path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The format expected.
        format: FileKind,
        /// What was found, and what would be right.
        problem: String,
    },

    /// No embedded data of this name.
    #[error("{name}: there is no such embedded data; there is demo:mnist")]
    UnknownDemo {
        /// The name that was given.
        name: String,
    },

    /// A file that was changed while its samples were in use.
    #[error("{}: {change} since it was opened; nobody may change a file while it is in use", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// What happened to it.
        change: Change,
    },

    /// A file of a known kind that is not read.
    #[error("{}: it is {found}, which is not read here; {instead}", .path.display())]
    NotRead {
        /// The file or folder.
        path: PathBuf,
        /// What it is: "an HDF5 file".
        found: &'static str,
        /// What can be done with it.
        instead: &'static str,
    },

    /// A file that holds arrays, but not the one that was asked for, or none that looks like samples.
    #[error("{}: {}; it holds {}", .path.display(), missing(.wanted.as_deref()), listed(.held))]
    NoArray {
        /// The file.
        path: PathBuf,
        /// The name that was asked for, if one was.
        wanted: Option<String>,
        /// What is in the file: names and axes.
        held: Vec<String>,
    },

    /// Vectors that may be images, but nobody said of which shape.
    #[error(
        "{}: the samples in `{array}` have {numbers} numbers, which is no square image; their shape has to be given",
        .path.display()
    )]
    ShapeNeeded {
        /// The file.
        path: PathBuf,
        /// The array in it.
        array: String,
        /// The numbers of one sample.
        numbers: usize,
    },

    /// An option that makes sense for images only.
    #[error("{name}: the option `{option}` is for images; this is {found}")]
    OnlyImages {
        /// The data.
        name: String,
        /// The option.
        option: ForImages,
        /// What the data is.
        found: &'static str,
    },

    /// Samples were to be left out by their label, but have none.
    #[error("{name}: its samples have no labels, so that none can be left out by label")]
    NoLabels {
        /// The data.
        name: String,
    },

    /// A label that no sample has.
    #[error("{name}: no sample has the label `{label}`; the labels are {}", some(.labels))]
    UnknownLabel {
        /// The data.
        name: String,
        /// The label that was given.
        label: String,
        /// Those there are.
        labels: Vec<String>,
    },

    /// Labels in a file for another number of samples.
    #[error("{}: {labels} labels for {samples} samples; exactly one per sample is needed", .path.display())]
    LabelCount {
        /// The file.
        path: PathBuf,
        /// How many labels it holds.
        labels: usize,
        /// How many samples there are.
        samples: usize,
    },

    /// A file that would take more memory than it may once it is unpacked.
    #[error("{name}: {}", unpacked(*.needed, *.limit, *.packed))]
    Unpacked {
        /// The file.
        name: String,
        /// What it takes, in bytes.
        needed: u64,
        /// What it may take: the memory budget, or what follows from its size.
        limit: u64,
        /// The bytes of the file, if the limit follows from them.
        packed: Option<u64>,
    },

    /// A table with something in it that is no number, or with ragged lines.
    #[error("{name}: line {line}, column {column}: {problem}")]
    Cell {
        /// The file.
        name: String,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// What stands there, and what would be right.
        problem: String,
    },

    /// Images of different sizes in one set.
    #[error(
        "{}: it has {}×{} pixels, but {} has {}×{}; all samples need one shape",
        .path.display(), .size.0, .size.1, .other.display(), .other_size.0, .other_size.1
    )]
    ImageSizes {
        /// The first image that differs.
        path: PathBuf,
        /// Its rows and columns.
        size: (usize, usize),
        /// The first image of the set.
        other: PathBuf,
        /// Its rows and columns.
        other_size: (usize, usize),
    },

    /// Values that cannot be meant for a model: bytes where it knows fractions, or the other way round.
    #[error(
        "the values go from {} to {}; the model was fitted to values from {} to {}{}",
        short(.found[0]), short(.found[1]), short(.expected[0]), short(.expected[1]), multiplied(*.scale)
    )]
    Values {
        /// The smallest and the largest that were found.
        found: [f64; 2],
        /// Those of the model's fit.
        expected: [f64; 2],
        /// What the values of the fit had been multiplied with.
        scale: f64,
    },

    /// Data that can be read, but is not what was asked for: another shape, other labels, nothing in it.
    #[error("{name}: {problem}")]
    Data {
        /// The file, the folder or the name of the set.
        name: String,
        /// What was found, and what would be right.
        problem: String,
    },
}

/// What happened to a file.
///
/// ```
/// use matmix::data::npy;
/// use matmix::error::Change;
/// use matmix::{Error, FitOptions, Samples, fit};
///
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("x.npy");
/// npy::write_array(&path, &[5, 2], &[1.0f32; 10])?;
/// let samples = Samples::from_npy(&path)?;
/// // Somebody cuts the file short before the fit begins.
/// let before = path.metadata().unwrap().len();
/// std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(100).unwrap();
/// let error = fit(&samples, &FitOptions { rank: vec![1], ..FitOptions::default() }).unwrap_err();
/// assert_eq!(error, Error::Changed { path, change: Change::Size { before, after: 100 } });
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Another file has its name now.
    Replaced,
    /// It has another size.
    Size {
        /// Its bytes when it was opened.
        before: u64,
        /// Its bytes now.
        after: u64,
    },
    /// Somebody wrote to it.
    Written,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Change::Replaced => f.write_str("another file was put in its place"),
            Change::Size { before, after } if after < before => {
                write!(f, "it has become shorter ({after} bytes instead of {before})")
            }
            Change::Size { before, after } => {
                write!(f, "it has become longer ({after} bytes instead of {before})")
            }
            Change::Written => f.write_str("it was written to"),
        }
    }
}

/// The library's results.
///
/// ```
/// use matmix::{Result, Samples};
///
/// fn mean(shape: &[usize], numbers: &[f64]) -> Result<f64> {
///     let samples = Samples::from_slice(shape, numbers)?;
///     let values = samples.to_f64(0..samples.len())?;
///     Ok(values.iter().sum::<f64>() / values.len() as f64)
/// }
///
/// assert_eq!(mean(&[2], &[1.0, 2.0, 3.0, 6.0]), Ok(3.0));
/// assert!(mean(&[3], &[1.0, 2.0, 3.0, 6.0]).is_err());
/// # Ok::<(), matmix::Error>(())
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn io(path: &Path, action: Action, error: &std::io::Error) -> Self {
        Error::Io { path: path.to_owned(), action, message: error.to_string(), code: error.raw_os_error() }
    }

    pub(crate) fn format(path: &Path, format: FileKind, problem: impl Into<String>) -> Self {
        Error::Format { path: path.to_owned(), format, problem: problem.into() }
    }

    /// The same error about samples that have other numbers in a larger set.
    pub(crate) fn renumbered(self, number: &dyn Fn(usize) -> usize) -> Self {
        match self {
            Error::NotFinite { sample, position, value } => {
                Error::NotFinite { sample: number(sample), position, value }
            }
            Error::Overflow { sample } => Error::Overflow { sample: number(sample) },
            other => other,
        }
    }

    pub(crate) fn data(path: &Path, problem: impl Into<String>) -> Self {
        Error::Data { name: path.display().to_string(), problem: problem.into() }
    }
}

fn short(x: f64) -> String {
    format!("{}", (x * 1e4).round() / 1e4)
}

fn multiplied(scale: f64) -> String {
    match scale {
        1.0 => String::new(),
        _ => format!(", stored values times {}", factor(scale)),
    }
}

fn missing(wanted: Option<&str>) -> String {
    match wanted {
        Some(name) => format!("it has no array `{name}` of real numbers that could be samples"),
        None => "none of its arrays looks like samples (real numbers, one axis for the samples and at least one more)"
            .into(),
    }
}

fn listed(held: &[String]) -> String {
    if held.is_empty() { "nothing".into() } else { held.join(", ") }
}

/// The first dozen.
fn some(names: &[String]) -> String {
    let more = if names.len() > 12 { ", …" } else { "" };
    format!("{}{more}", names.iter().take(12).map(String::as_str).collect::<Vec<_>>().join(", "))
}

fn unpacked(needed: u64, limit: u64, packed: Option<u64>) -> String {
    match packed {
        None => format!(
            "its samples are unpacked into memory and take {}, more than the budget of {}; a .npy file (in C order) can \
             be read piece by piece",
            bytes(needed),
            bytes(limit)
        ),
        Some(packed) => format!(
            "it would unpack to {}, from {}; no more than {} are unpacked unless a memory budget allows it",
            bytes(needed),
            bytes(packed),
            bytes(limit)
        ),
    }
}

/// What to do about a class with so few labelled samples.
fn several(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn fewer_components(labelled: usize) -> String {
    match labelled {
        0 => "label some, or leave the class out".into(),
        _ => format!("label more, or use at most {} of every class", several(labelled, "component")),
    }
}

/// The result of something that can be done without: nothing if it leaves the range of numbers.
pub(crate) fn optional<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(Error::Overflow { .. }) => Ok(None),
        result => result.map(Some),
    }
}

/// Missing cells where there is no distribution to say what they might be.
pub(crate) fn needs_noise() -> Error {
    let expected = "`error` for models without noise: they say nothing about cells that were not observed, a mixture does";
    Error::Option { option: "missing", value: "`nan`".into(), expected }
}

/// What would make a value right that is not finite.
fn allowed(value: f64) -> &'static str {
    match value.is_nan() {
        true => {
            ", or `missing` be `nan` for cells that were not observed: a mixture takes them, models without noise do not"
        }
        false => "",
    }
}

/// `28×28`, the way a shape is written everywhere.
pub fn sides(shape: &[usize]) -> String {
    let sides: Vec<String> = shape.iter().map(usize::to_string).collect();
    if sides.is_empty() { "()".into() } else { sides.join("×") }
}

/// `1/255`, the way a factor is written everywhere.
pub fn factor(scale: f64) -> String {
    match (1.0 / scale).round() {
        whole if 1.0 / whole == scale => format!("1/{whole}"),
        _ => scale.to_string(),
    }
}

/// `64.0 MB`, the way an amount of memory is written everywhere; never less than it is.
pub fn bytes(bytes: impl Into<u128>) -> String {
    let bytes = bytes.into();
    for (power, name) in [(18, "EB"), (15, "PB"), (12, "TB"), (9, "GB"), (6, "MB"), (3, "kB")] {
        let unit = 10u128.pow(power);
        if bytes >= unit {
            let tenths = bytes.saturating_mul(10).div_ceil(unit);
            return format!("{}.{} {name}", tenths / 10, tenths % 10);
        }
    }
    format!("{bytes} bytes")
}

fn left(available: Option<u64>) -> String {
    match available {
        Some(available) => format!(", more than the {} of memory that are free", bytes(available)),
        None => ", more memory than there is".into(),
    }
}
