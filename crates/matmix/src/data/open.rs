//! From what a person types to a set of samples: `faces/`, `x.npy`, `parts/*.npy`, `x.npz:images`, `demo:mnist`.

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::digits::digits;
use super::labels::Labels;
use super::samples::Samples;
use super::source::Residence;
use super::{files, folder, idx, mat, npz};
use crate::error::{Error, Result, sides};

/// How data is to be opened.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OpenOptions {
    /// The shape of one sample, where the data does not say it or says another one of the same size.
    pub shape: Option<Vec<usize>>,
    /// A file of labels, one per sample: text, `.npy` or IDX. It replaces whatever labels the data brings along.
    pub labels: Option<PathBuf>,
    /// Keep the three channels of colour images as a third mode.
    pub colour: bool,
    /// Bring images to these rows and columns.
    pub resize: Option<(usize, usize)>,
    /// Multiply every value.
    pub scale: Option<f64>,
    /// Take these samples only, counted from 0 as they stand in the data; an end beyond the last one is the last.
    pub take: Option<Range<usize>>,
    /// Of those, leave out the samples with one of these labels.
    pub exclude: Vec<String>,
    /// Of those, keep the first so many.
    pub limit: Option<usize>,
    /// About how many bytes a pass over the samples may take, see [`Samples::with_memory_budget`]. A folder of images up
    /// to this size (1 GiB if it is not given) is decoded into memory, a larger one whenever a part of it is read.
    pub memory_budget: Option<u64>,
}

impl OpenOptions {
    /// Whether the options make sense on their own.
    pub fn validate(&self) -> Result<()> {
        let wrong = |option, value: String, expected| Err(Error::Option { option, value, expected });
        if let Some(shape) = &self.shape {
            let size = shape.iter().try_fold(1usize, |n, &side| n.checked_mul(side));
            if shape.is_empty() || size.is_none_or(|size| size == 0) {
                return wrong("shape", sides(shape), "sides of at least 1, such as 28x28");
            }
        }
        if let Some((rows, columns)) = self.resize
            && !rows.checked_mul(columns).is_some_and(|pixels| (1..=folder::PIXELS).contains(&pixels))
        {
            return wrong(
                "resize",
                sides(&[rows, columns]),
                "sides of at least 1 and no more than 2^27 pixels",
            );
        }
        if self.limit == Some(0) {
            return wrong("limit", "0".into(), "at least 1");
        }
        if let Some(range) = self.take.as_ref().filter(|range| range.is_empty()) {
            return wrong(
                "take",
                format!("{}:{}", range.start, range.end),
                "a range that holds at least one sample",
            );
        }
        Ok(())
    }
}

/// Samples, their labels if they have any, and where they come from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DataSet {
    /// The samples.
    pub samples: Samples<'static>,
    /// One label per sample.
    pub labels: Option<Labels>,
    /// What to call the set: the file and, where it holds several, the array.
    pub name: String,
    /// The format it was found in: `.npy`, `.npz`, `IDX`, `MATLAB`, `images`.
    pub format: &'static str,
}

/// What a reader finds in a file.
pub(super) struct Found {
    pub(super) samples: Samples<'static>,
    pub(super) labels: Option<Labels>,
    /// Which of several arrays.
    pub(super) array: Option<String>,
}

/// Opens `spec`: a `.npy` file, several of them as one set (`a.npy,b.npy` or `parts/*.npy`, each file a part), a `.npz` (or `file.npz:array`), IDX or MATLAB file (or `file.mat:variable`), a folder of
/// images, or `demo:mnist`.
///
/// ```
/// use matmix::data::{OpenOptions, open};
///
/// let options = OpenOptions { exclude: vec!["0".into()], limit: Some(50), scale: Some(1.0 / 255.0), ..Default::default() };
/// let ones = open("demo:mnist", &options)?;
/// assert_eq!(ones.labels.unwrap().names, ["1"]);
/// # Ok::<(), matmix::Error>(())
/// ```
pub fn open(spec: &str, options: &OpenOptions) -> Result<DataSet> {
    options.validate()?;
    open_one(spec, options).map_err(|error| match error {
        // These say where the trouble is; the others know of no file.
        Error::Io { .. }
        | Error::Format { .. }
        | Error::Data { .. }
        | Error::LabelCount { .. }
        | Error::UnknownDemo { .. }
        | Error::Option { .. } => error,
        other => Error::Data { name: spec.to_string(), problem: other.to_string() },
    })
}

fn open_one(spec: &str, options: &OpenOptions) -> Result<DataSet> {
    let problem = |problem: String| Error::Data { name: spec.to_string(), problem };
    let given = options.labels.as_deref().map(Labels::read).transpose()?;
    let files = files::named(spec)?;
    let (path, array) = split(spec);
    let kind = match &files {
        Some(_) => Kind::Files,
        None => Kind::of(spec, &path, array)?,
    };
    if kind != Kind::Folder && (options.colour || options.resize.is_some()) {
        let option = if options.colour { "--colour" } else { "--resize" };
        return Err(problem(format!("{option} is for folders of images; this is {}", kind.name())));
    }
    let mut format = kind.name();
    // Better before it is unpacked than when there is no memory left.
    let packed = match (options.memory_budget, kind) {
        (Some(_), Kind::Npz) => Some(npz::sample_bytes(&path, array)?),
        (Some(_), Kind::Idx) => idx::packed_bytes(&path)?,
        _ => None,
    };
    let affordable = |bytes: u64| match options.memory_budget {
        Some(budget) if bytes > budget => Err(problem(format!(
            "its samples are unpacked into memory and take {}, more than the budget of {}; a .npy file (in C order) can \
             be read piece by piece",
            crate::error::bytes(bytes),
            crate::error::bytes(budget)
        ))),
        _ => Ok(()),
    };
    packed.map_or(Ok(()), affordable)?;
    let found = match kind {
        Kind::Demo => {
            let digits = digits();
            format = digits.format;
            Found { samples: digits.samples, labels: digits.labels, array: None }
        }
        Kind::Folder => {
            folder::open(&path, given.as_ref(), options).map_err(|error| about_labels(error, options))?
        }
        Kind::Files => {
            let files = files.unwrap_or_default();
            if let Some(other) = files.iter().find(|f| f.extension().is_none_or(|e| e != "npy")) {
                return Err(Error::data(other, "only .npy files can be parts of one set"));
            }
            Found { samples: Samples::from_npy_files(&files)?, labels: None, array: None }
        }
        Kind::Npy => Found { samples: Samples::from_npy(&path)?, labels: None, array: None },
        Kind::Npz => npz::open(&path, array, given.is_none())?,
        Kind::Mat => mat::open(&path, array, options.shape.as_deref(), given.as_ref())?,
        Kind::Idx => {
            let samples = idx::open(&path)?;
            let beside = idx::labels_beside(&path).filter(|_| given.is_none());
            let labels = beside.as_deref().map(Labels::read).transpose()?;
            if let (Some(labels), Some(file)) = (&labels, &beside) {
                labels
                    .check_count(samples.len())
                    .map_err(|e| Error::data(file, format!("{e}, as in {spec}")))?;
            }
            Found { samples, labels, array: None }
        }
    };
    let name = match &found.array {
        Some(array) => format!("{}:{array}", path.display()),
        None => spec.to_string(),
    };
    let (mut samples, mut labels) = (found.samples, found.labels);
    if kind != Kind::Folder {
        labels = given.or(labels);
        if let Some(labels) = &labels {
            labels.check_count(samples.len()).map_err(|e| about_labels(e, options))?;
        }
        if let Some(chosen) = choose(spec, samples.len(), labels.as_ref(), options)? {
            samples = samples.select(&chosen)?;
            labels = labels.map(|l| l.select(&chosen)).transpose()?.map(Labels::without_empty_classes);
        }
    }
    if let Some(shape) = &options.shape {
        let (found, wanted) = (samples.shape().to_vec(), shape.iter().product::<usize>());
        samples = samples.reshaped(shape).map_err(|_| {
            problem(format!(
                "its samples are {} ({} numbers each); the shape {} ({wanted} numbers) does not fit them",
                sides(&found),
                found.iter().product::<usize>(),
                sides(shape),
            ))
        })?;
    }
    if let Some(scale) = options.scale {
        samples = samples.scaled(scale)?;
    }
    if let Some(budget) = options.memory_budget {
        if samples.residence() == Residence::Memory && kind != Kind::Demo {
            affordable(samples.stored_bytes())?;
        }
        samples = samples.with_memory_budget(budget);
    }
    Ok(DataSet { samples, labels, name, format })
}

/// A wrong number of labels is the trouble of the file they come from.
fn about_labels(error: Error, options: &OpenOptions) -> Error {
    match (error, &options.labels) {
        (Error::Count { what: "labels", expected, found }, Some(file)) => {
            Error::LabelCount { path: file.clone(), expected, found }
        }
        (other, _) => other,
    }
}

/// Which samples `options` asks for, in terms of places in the whole set; none if all of them.
pub(super) fn choose(
    name: &str,
    len: usize,
    labels: Option<&Labels>,
    options: &OpenOptions,
) -> Result<Option<Vec<usize>>> {
    if options.take.is_none() && options.limit.is_none() && options.exclude.is_empty() {
        return Ok(None);
    }
    let mut chosen: Vec<usize> = match &options.take {
        Some(range) if range.start >= len => return Err(Error::Index { index: range.start, len }),
        Some(range) => (range.start..range.end.min(len)).collect(),
        None => (0..len).collect(),
    };
    if !options.exclude.is_empty() {
        let wrong = |problem: String| Error::Data { name: name.to_string(), problem };
        let labels = labels.ok_or_else(|| {
            wrong(
                "its samples have no labels, so that none can be left out by label; give some with --labels"
                    .into(),
            )
        })?;
        let mut out = vec![false; labels.names.len()];
        for name in &options.exclude {
            let class = labels.names.iter().position(|n| n == name).ok_or_else(|| {
                let some: Vec<&str> = labels.names.iter().take(12).map(String::as_str).collect();
                let more = if labels.names.len() > some.len() { ", …" } else { "" };
                wrong(format!("no sample has the label `{name}`; the labels are {}{more}", some.join(", ")))
            })?;
            out[class] = true;
        }
        chosen.retain(|&i| !out[labels.index[i]]);
    }
    chosen.truncate(options.limit.unwrap_or(usize::MAX));
    if chosen.is_empty() { Err(Error::EmptySet) } else { Ok(Some(chosen)) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Demo,
    Folder,
    Npy,
    Files,
    Npz,
    Idx,
    Mat,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Demo => "the embedded data",
            Kind::Folder => "images",
            Kind::Npy => ".npy",
            Kind::Files => ".npy files",
            Kind::Npz => ".npz",
            Kind::Idx => "IDX",
            Kind::Mat => "MATLAB",
        }
    }

    /// The ending decides, so that a broken file is told what it should have been; where it says nothing, the
    /// first bytes do.
    fn of(spec: &str, path: &Path, array: Option<&str>) -> Result<Self> {
        if let Some(name) = spec.strip_prefix("demo:") {
            return match name {
                "mnist" => Ok(Kind::Demo),
                _ => Err(Error::UnknownDemo { name: spec.to_string() }),
            };
        }
        if path.is_dir() {
            return Ok(Kind::Folder);
        }
        let mut file = std::fs::File::open(path).map_err(|e| Error::io(path, "open", &e))?;
        let ending = |ending: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending));
        let named_idx = path.to_string_lossy().ends_with("-ubyte") || ending("idx");
        if array.is_some() && !ending("npz") && !ending("mat") {
            return Err(Error::data(path, "only .npz and .mat files hold arrays with names"));
        }
        if ending("npy") {
            return Ok(Kind::Npy);
        }
        if ending("npz") {
            return Ok(Kind::Npz);
        }
        if ending("mat") {
            return Ok(Kind::Mat);
        }
        let mut start = Vec::new();
        file.by_ref().take(16).read_to_end(&mut start).map_err(|e| Error::io(path, "read", &e))?;
        match start.as_slice() {
            s if idx::looks_like_gzip(s) || idx::looks_like(s) || named_idx => Ok(Kind::Idx),
            s if s.starts_with(b"\x93NUMPY") => Ok(Kind::Npy),
            s if s.starts_with(b"PK\x03\x04") => Ok(Kind::Npz),
            s if s.starts_with(b"MATLAB") => Ok(Kind::Mat),
            _ if folder::is_image(path) => {
                Err(Error::data(path, "it is one image; give the folder that holds the images"))
            }
            _ => Err(Error::data(
                path,
                "it is none of the formats that are read: .npy, .npz, IDX (plain or gzip), MATLAB .mat, a folder of images",
            )),
        }
    }
}

/// The files that `spec` names; none if they are embedded. A folder is one of them.
pub fn files_of(spec: &str) -> Vec<PathBuf> {
    match files::named(spec) {
        Ok(Some(files)) => files,
        _ if spec.starts_with("demo:") => vec![],
        _ => vec![split(spec).0],
    }
}

/// The file and, for `file.npz:name` and `file.mat:name`, the name. A file that is really called so comes first.
fn split(spec: &str) -> (PathBuf, Option<&str>) {
    let whole = Path::new(spec);
    if !whole.exists() {
        for ending in [".npz:", ".mat:"] {
            if let Some(at) = spec.find(ending) {
                let colon = at + ending.len() - 1;
                return (PathBuf::from(&spec[..colon]), Some(&spec[colon + 1..]));
            }
        }
    }
    (whole.to_path_buf(), None)
}
