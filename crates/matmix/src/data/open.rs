//! From what a person types to a set of samples: `faces/`, `x.npy`, `parts/*.npy`, `x.npz:images`, `-`, `demo:mnist`.

use std::io::{BufReader, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

#[cfg(feature = "demo")]
use super::digits::digits;
use super::labels::Labels;
use super::limit::Limit;
use super::marked::Unobserved;
use super::mask;
use super::notes::Note;
use super::samples::Samples;
use super::source::Residence;
use super::{csv, file, files, folder, foreign, idx, image, mat, npy, npz, tree};

use crate::error::{Action, Error, ForImages, Result, sides};

/// How standard input is called.
const STDIN: &str = "-";

/// How data is to be opened.
///
/// ```
/// use matmix::data::{OpenOptions, npy, open};
///
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("x.npy");
/// npy::write_array(&path, &[10, 4], &(0u8..40).collect::<Vec<_>>())?;
/// // Vectors of four as 2×2 matrices, halved, without the first three.
/// let options =
///     OpenOptions { shape: Some(vec![2, 2]), take: Some(3..10), scale: Some(0.5), ..OpenOptions::default() };
/// let samples = open(path.to_str().unwrap(), &options)?.samples;
/// assert_eq!((samples.len(), samples.shape()), (7, &[2, 2][..]));
/// assert_eq!(samples.to_f64(0..1)?, [6.0, 6.5, 7.0, 7.5]);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenOptions {
    /// The shape of one sample, where the data does not say it or says another one of the same size.
    pub shape: Option<Vec<usize>>,
    /// A file of labels, one per sample: text, `.npy` or IDX. It replaces whatever labels the data brings along.
    pub labels: Option<PathBuf>,
    /// Whether lines of that file may be empty: labels that are not [known](super::KnownLabels).
    pub gaps: bool,
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
    /// What tells that a cell was not observed; none is as [`Unobserved::Never`], and for data of a model what told it when that was
    /// fitted.
    pub missing: Option<Unobserved>,
    /// What says which cells were observed, those where it is not 0: a picture or an array in the shape of a sample for all of them, a
    /// folder of pictures, a TIFF file of several pages or an array with one for each. Where samples are files, the pictures of a folder
    /// have their names, but for the endings. It is for the whole set, of which samples are chosen afterwards. NaN is then a missing
    /// cell, too.
    pub mask: Option<String>,
}

impl OpenOptions {
    /// Whether the options make sense on their own.
    ///
    /// # Errors
    /// If one of them does not; it is named.
    pub fn validate(&self) -> Result<()> {
        let wrong = |option, value: String, expected| Err(Error::Option { option, value, expected });
        if let Some(shape) = &self.shape {
            let size = shape.iter().try_fold(1usize, |n, &side| n.checked_mul(side));
            if shape.is_empty() || size.is_none_or(|size| size == 0) {
                return wrong("shape", sides(shape), "sides of at least 1, such as 28x28");
            }
        }
        if let Some((rows, columns)) = self.resize
            && !rows.checked_mul(columns).is_some_and(|pixels| (1..=image::PIXELS).contains(&pixels))
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
///
/// ```
/// use matmix::data::{OpenOptions, open};
///
/// let folder = tempfile::tempdir().unwrap();
/// let [numbers, labels] = ["x.csv", "y.txt"].map(|name| folder.path().join(name));
/// std::fs::write(&numbers, "1,2\n3,4\n5,6\n").unwrap();
/// std::fs::write(&labels, "b\na\nb\n").unwrap();
/// let options = OpenOptions { labels: Some(labels), ..OpenOptions::default() };
/// let data = open(numbers.to_str().unwrap(), &options)?;
/// assert_eq!((data.samples.len(), data.format), (3, "CSV"));
/// assert_eq!(data.labels.unwrap().index, [1, 0, 1]);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DataSet {
    /// The samples.
    pub samples: Samples<'static>,
    /// One label per sample.
    pub labels: Option<Labels>,
    /// What to call the set: the file and, where it holds several, the array.
    pub name: String,
    /// The format it was found in: `.npy`, `.npz`, `IDX`, `MATLAB`, `CSV`, `images`, `TIFF`.
    pub format: &'static str,
    /// What each sample is called, where samples are files: its path below the folder, `#` and the number of the page
    /// in a file with several.
    pub names: Option<Vec<String>>,
    /// The choices that were made on the way.
    pub notes: Vec<Note>,
    /// Which cells were observed, if one mask said it for all samples.
    pub mask: Option<Vec<bool>>,
    /// The stored value of white, where samples are images of whole numbers: 255, or 65535 if any image has 16 bits.
    pub white: Option<f64>,
}

/// What a reader finds in a file.
pub(super) struct Found {
    pub(super) samples: Samples<'static>,
    pub(super) labels: Option<Labels>,
    /// Which of several arrays.
    pub(super) array: Option<String>,
    pub(super) names: Option<Vec<String>>,
    pub(super) white: Option<f64>,
    pub(super) notes: Vec<Note>,
    /// How many samples there are to choose from, and which were chosen, where a reader did that itself.
    pub(super) chosen: Option<(usize, Vec<usize>)>,
}

impl Found {
    /// Samples and nothing else.
    pub(super) fn plain(samples: Samples<'static>) -> Self {
        Self { samples, labels: None, array: None, names: None, white: None, notes: Vec::new(), chosen: None }
    }
}

/// Opens `spec`: a `.npy` file, several of them as one set (`a.npy,b.npy` or `parts/*.npy`, each file a part), a `.npz`
/// (or `file.npz:array`), IDX, MATLAB (or `file.mat:variable`) or `.csv` file, a folder of images, a TIFF file of several
/// pages, `-` for a `.npy` or `.csv` file on standard input, or `demo:mnist`.
///
/// ```
/// use matmix::data::{OpenOptions, open};
///
/// let options = OpenOptions { exclude: vec!["0".into()], limit: Some(50), scale: Some(1.0 / 255.0), ..Default::default() };
/// let ones = open("demo:mnist", &options)?;
/// assert_eq!(ones.labels.unwrap().names, ["1"]);
/// # Ok::<(), matmix::Error>(())
/// ```
///
/// # Errors
/// If there is nothing there, it is none of these or damaged, it holds no samples, or the options do not fit it.
pub fn open(spec: &str, options: &OpenOptions) -> Result<DataSet> {
    options.validate()?;
    open_one(spec, options).map_err(|error| match error {
        // These know of no file; the others say where the trouble is.
        Error::EmptySet
        | Error::EmptyShape { .. }
        | Error::DataLength { .. }
        | Error::Count { .. }
        | Error::Index { .. } => Error::Data { name: called(spec).to_string(), problem: error.to_string() },
        other => other,
    })
}

/// What messages call the data.
fn called(spec: &str) -> &str {
    if spec == STDIN { "standard input" } else { spec }
}

fn open_one(spec: &str, options: &OpenOptions) -> Result<DataSet> {
    let read = |path| if options.gaps { Labels::read_with_gaps(path) } else { Labels::read(path) };
    let given = options.labels.as_deref().map(read).transpose()?;
    let files = files::named(spec)?;
    let (path, array) = split(spec);
    let kind = match &files {
        Some(_) => Kind::Files,
        None => Kind::of(spec, &path, array)?,
    };
    if !kind.is_images() && (options.colour || options.resize.is_some()) {
        let option = if options.colour { ForImages::Colour } else { ForImages::Resize };
        return Err(Error::OnlyImages { name: called(spec).to_string(), option, found: kind.name() });
    }
    if !kind.is_images() && matches!(options.missing, Some(Unobserved::Alpha(_))) {
        let (name, option) = (called(spec).to_string(), ForImages::Alpha);
        return Err(Error::OnlyImages { name, option, found: kind.name() });
    }
    let mut format = kind.name();
    let budget = options.memory_budget;
    let found = match kind {
        #[cfg(not(feature = "demo"))]
        Kind::Demo => {
            return Err(Error::data(
                &path,
                "the embedded digits are left out of this build (feature `demo`)",
            ));
        }
        #[cfg(feature = "demo")]
        Kind::Demo => {
            let digits = digits();
            format = digits.format;
            Found { labels: digits.labels, ..Found::plain(digits.samples) }
        }
        Kind::Folder => folder::open(&path, given.as_ref(), options)?,
        Kind::Stack => folder::open_stack(&path, given.as_ref(), options)?,
        Kind::Files => {
            let files = files.unwrap_or_default();
            if let Some(other) = files.iter().find(|f| f.extension().is_none_or(|e| e != "npy")) {
                return Err(Error::data(other, "only .npy files can be parts of one set"));
            }
            check_order(spec, &files, budget)?;
            Found::plain(Samples::from_npy_files(&files)?)
        }
        Kind::Npy => {
            check_order(spec, std::slice::from_ref(&path), budget)?;
            Found::plain(Samples::from_npy(&path)?)
        }
        Kind::Csv => csv::open(&path, budget)?,
        Kind::Stdin => {
            let (found, is) = from_stream(called(spec), &mut std::io::stdin().lock(), budget)?;
            format = is;
            found
        }
        Kind::Npz => npz::open(&path, array, given.is_none(), Limit::of(&path, budget)?)?,
        Kind::Mat => {
            mat::open(&path, array, options.shape.as_deref(), given.as_ref(), Limit::of(&path, budget)?)?
        }
        Kind::Idx => open_idx(spec, &path, given.is_none(), budget)?,
    };
    let name = match &found.array {
        Some(array) => format!("{}:{array}", path.display()),
        None => called(spec).to_string(),
    };
    let Found { mut samples, mut labels, names, white, notes, mut chosen, .. } = found;
    let len = chosen.as_ref().map_or(samples.len(), |(len, _)| *len);
    if !kind.is_images() {
        if let Some(labels) = &given {
            check_given(labels, samples.len(), options)?;
        }
        labels = given.or(labels);
        if let Some(places) = choose(called(spec), samples.len(), labels.as_ref(), options)? {
            samples = samples.select(&places)?;
            labels = labels.map(|l| l.select(&places)).transpose()?.map(Labels::without_empty_classes);
            chosen = Some((len, places));
        }
    }
    let stored = samples.shape().to_vec();
    if let Some(shape) = &options.shape {
        let (found, wanted) = (samples.shape().to_vec(), shape.iter().product::<usize>());
        samples = samples.reshaped(shape).map_err(|_| Error::Data {
            name: called(spec).to_string(),
            problem: format!(
                "its samples are {} ({} numbers each); the shape {} ({wanted} numbers) does not fit them",
                sides(&found),
                found.iter().product::<usize>(),
                sides(shape),
            ),
        })?;
    }
    let shape = samples.shape().to_vec();
    let places = chosen.as_ref().map(|(_, places)| places.as_slice());
    let of = mask::Data { shapes: [&shape, &stored], len, chosen: places, names: names.as_deref() };
    let (mut samples, mask) = mask::marked(samples, &of, options)?;
    if let Some(scale) = options.scale {
        samples = samples.scaled(scale)?;
    }
    if let Some(budget) = options.memory_budget {
        if samples.residence() == Residence::Memory && kind != Kind::Demo {
            Limit::unpacked(Some(budget)).check(called(spec), samples.stored_bytes())?;
        }
        samples = samples.with_memory_budget(budget);
    }
    Ok(DataSet { samples, labels, name, format, names, notes, mask, white })
}

/// Whether there is memory for the files that have to be put in order first.
fn check_order(name: &str, files: &[PathBuf], budget: Option<u64>) -> Result<()> {
    let Some(budget) = budget else { return Ok(()) };
    let bytes: Result<Vec<Option<u64>>> = files.iter().map(|file| npy::reordered_bytes(file)).collect();
    let sum = bytes?.into_iter().flatten().fold(0u64, u64::saturating_add);
    Limit::unpacked(Some(budget)).check(name, sum)
}

/// The samples of an IDX file, and the labels that lie beside it.
fn open_idx(spec: &str, path: &Path, find_labels: bool, budget: Option<u64>) -> Result<Found> {
    // Better before it is unpacked than when there is no memory left.
    if let Some(bytes) = idx::packed_bytes(path)? {
        Limit::of(path, budget)?.check(spec, bytes)?;
    }
    let samples = idx::open(path)?;
    let Some(beside) = idx::labels_beside(path).filter(|_| find_labels) else {
        return Ok(Found::plain(samples));
    };
    let labels = Labels::read(&beside)?;
    if labels.len() != samples.len() {
        let (from, labels) = (beside.display().to_string(), labels.len());
        let notes = vec![Note::OtherLabels { from, labels, samples: samples.len() }];
        return Ok(Found { notes, ..Found::plain(samples) });
    }
    let notes = vec![Note::Labels { from: format!("those of {}", beside.display()) }];
    Ok(Found { labels: Some(labels), notes, ..Found::plain(samples) })
}

/// A `.npy` or `.csv` file that arrives as a stream, and which of them it is.
pub(super) fn from_stream(
    name: &str,
    stream: &mut dyn Read,
    budget: Option<u64>,
) -> Result<(Found, &'static str)> {
    let limit = Limit::unpacked(budget);
    let mut start = Vec::new();
    let read = stream.take(npy::MAGIC.len() as u64).read_to_end(&mut start);
    read.map_err(|e| Error::io(Path::new(name), Action::Read, &e))?;
    let whole = start.as_slice().chain(stream);
    if start != npy::MAGIC {
        return Ok((csv::read(name, BufReader::new(whole), limit)?, Kind::Csv.name()));
    }
    let array = npy::read(name, whole, limit)?;
    let Some((_, shape @ [_, ..])) = array.shape.split_first() else {
        let problem = format!(
            "its shape is {}; samples need at least two axes, sample × mode 0 (× mode 1 …)",
            sides(&array.shape)
        );
        return Err(Error::Data { name: name.to_string(), problem });
    };
    Ok((Found::plain(array.elements.into_samples(shape)?), Kind::Npy.name()))
}

/// A wrong number of labels is the trouble of the file they come from.
pub(super) fn check_given(labels: &Labels, samples: usize, options: &OpenOptions) -> Result<()> {
    match &options.labels {
        Some(path) => check_file(labels, samples, path),
        None => labels.check_count(samples),
    }
}

fn check_file(labels: &Labels, samples: usize, path: &Path) -> Result<()> {
    match labels.len() {
        found if found == samples => Ok(()),
        found => Err(Error::LabelCount { path: path.to_owned(), labels: found, samples }),
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
        let labels = labels.ok_or_else(|| Error::NoLabels { name: name.to_string() })?;
        let mut out = vec![false; labels.names.len()];
        for label in &options.exclude {
            let class = labels.names.iter().position(|n| n == label).ok_or_else(|| Error::UnknownLabel {
                name: name.to_string(),
                label: label.clone(),
                labels: labels.names.clone(),
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
    Stack,
    Npy,
    Files,
    Npz,
    Idx,
    Mat,
    Csv,
    Stdin,
}

impl Kind {
    /// Whether colour and size are a matter of choice.
    fn is_images(self) -> bool {
        matches!(self, Kind::Folder | Kind::Stack)
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Demo => "the embedded data",
            Kind::Folder => "images",
            Kind::Stack => "TIFF",
            Kind::Npy => ".npy",
            Kind::Files => ".npy files",
            Kind::Npz => ".npz",
            Kind::Idx => "IDX",
            Kind::Mat => "MATLAB",
            Kind::Csv => "CSV",
            Kind::Stdin => "standard input",
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
        if spec == STDIN {
            return Ok(Kind::Stdin);
        }
        if path.is_dir() {
            return foreign::recognised_folder(path).map_or(Ok(Kind::Folder), Err);
        }
        let (file, _) = file::open(path)?;
        let mut start = Vec::new();
        let read = file.take(foreign::START as u64).read_to_end(&mut start);
        read.map_err(|e| Error::io(path, Action::Read, &e))?;
        let ending = |ending: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending));
        let named_idx = path.to_string_lossy().ends_with("-ubyte") || ending("idx");
        if array.is_some() && !ending("npz") && !ending("mat") {
            return Err(Error::data(path, "only .npz and .mat files hold arrays with names"));
        }
        match start.as_slice() {
            _ if ending("npy") => Ok(Kind::Npy),
            _ if ending("npz") => Ok(Kind::Npz),
            _ if ending("mat") => Ok(Kind::Mat),
            _ if ending("csv") || ending("tsv") => Ok(Kind::Csv),
            _ if tree::is_stack(path) => Ok(Kind::Stack),
            s if s.starts_with(npy::MAGIC) => Ok(Kind::Npy),
            s if s.starts_with(b"MATLAB") => Ok(Kind::Mat),
            s if foreign::recognised(path, s).is_some() => {
                foreign::recognised(path, s).map_or(Ok(Kind::Idx), Err)
            }
            s if idx::looks_like_gzip(s) || idx::looks_like(s) || named_idx => Ok(Kind::Idx),
            s if s.starts_with(b"PK\x03\x04") => Ok(Kind::Npz),
            _ if tree::is_image(path) => {
                Err(Error::data(path, "it is one image; give the folder that holds the images"))
            }
            _ => Err(Error::data(
                path,
                "it is none of the formats that are read: .npy, .npz, IDX (plain or gzip), MATLAB .mat, .csv, a folder of \
                 images, a TIFF file of several pages",
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
