//! The options every command that reads DATA shares.

use std::ops::Range;
use std::path::{Path, PathBuf};

use matmix::data::{
    DataSet, FillValue, Note, OpenOptions, Unobserved, files_of, open_picture, parse_memory, parse_range,
    parse_resize, parse_scale, parse_shape,
};
use matmix::error::sides;
use matmix::{Error, Input, Missing, Model, ModelFile, Samples};

use crate::error::hinted;
use crate::interrupt;
use crate::numbers::{real, whole};
use crate::output;

/// A list of sides as one argument: `28x28`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sides(pub(crate) Vec<usize>);

/// A shape, such as 28x28.
pub(crate) fn shape(text: &str) -> Result<Sides, String> {
    parse_shape(text)
        .map(Sides)
        .map_err(|_| "it must be sides of at least 1, such as 28x28, 32x32x3 or 784".into())
}

/// The ranks of the cores, such as 4x4 or 4.
pub(crate) fn rank(text: &str) -> Result<Sides, String> {
    let wrong = "it must be one rank for all modes or one per mode, each at least 1, such as 4 or 4x4";
    parse_shape(text).map(Sides).map_err(|_| wrong.into())
}

/// A factor, such as 1/255.
pub(crate) fn scale(text: &str) -> Result<f64, String> {
    parse_scale(text).map_err(|_| "it must be a number other than 0 or a fraction, such as 1/255".into())
}

fn resize(text: &str) -> Result<(usize, usize), String> {
    parse_resize(text).map_err(|_| "it must be rows x columns, such as 64x64".into())
}

/// An amount of memory, such as 2GB.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    parse_memory(text).map_err(|_| {
        "it must be a number of bytes with or without a unit, such as 2GB, 512MiB or 1000000".into()
    })
}

/// A run of samples, such as 0:500.
pub(crate) fn range(text: &str) -> Result<Range<usize>, String> {
    parse_range(text)
        .map_err(|_| "it must be first:end, the end not included, such as 0:500, :500 or 500:".into())
}

/// What tells that a cell was not observed, such as nan.
fn unobserved(text: &str) -> Result<Unobserved, String> {
    text.parse().map_err(|_| "it must be nan, error, a number such as 255, alpha or alpha:0.5".into())
}

/// How values and shapes are read: the same for all sets of one command.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct Reading {
    /// Multiply every value; 1/255 is usual for bytes. With a model, the factor of its fit if not given.
    #[arg(long, value_parser = scale, value_name = "FACTOR", allow_hyphen_values = true)]
    scale: Option<f64>,
    /// The shape of one sample, where the data does not say it.
    #[arg(long, value_parser = shape, value_name = "28x28")]
    shape: Option<Sides>,
    /// Bring images of a folder to these rows and columns.
    #[arg(long, value_parser = resize, value_name = "64x64")]
    resize: Option<(usize, usize)>,
    /// Keep the channels of colour images as a third mode.
    #[arg(long, alias = "color")]
    colour: bool,
    /// Leave out the samples with this label; may be given several times.
    #[arg(long, value_name = "LABEL")]
    exclude: Vec<String>,
    /// Keep only the first N samples.
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N")]
    limit: Option<usize>,
    /// What tells that a cell was not observed: nan, a value as it is stored (255, say), or alpha for transparent places of images
    /// (alpha:0.5 for all that are less than half opaque). A mixture is fitted to, and asked about, what was observed. Without it (error)
    /// NaN is a mistake; a model takes new data the way it was fitted.
    #[arg(long, value_parser = unobserved, allow_negative_numbers = true, value_name = "nan")]
    missing: Option<Unobserved>,
    /// Cells below this value, as it is stored, were not observed.
    #[arg(long, value_parser = real, allow_negative_numbers = true, value_name = "VALUE", conflicts_with = "missing")]
    missing_below: Option<f64>,
    /// What says which cells were observed, those where it is not 0: an image or an array for all samples, or a folder of images (called
    /// like the samples), a stack or an array with one for each.
    #[arg(long, value_name = "MASK")]
    mask: Option<String>,
    /// How much memory a pass over the data may take; a larger set of files is read piece by piece.
    #[arg(long, value_parser = memory, value_name = "2GB")]
    memory: Option<u64>,
    /// Whether some labels may be missing: a command that can do without them says so.
    #[arg(skip)]
    pub(crate) gaps: bool,
    /// Whether notes about the data are unwanted.
    #[arg(from_global)]
    quiet: bool,
}

impl Reading {
    /// Opens one set with its own labels and range.
    pub(crate) fn open(
        &self,
        spec: &str,
        labels: Option<&Path>,
        take: Option<&Range<usize>>,
    ) -> anyhow::Result<DataSet> {
        let options = self.options(labels, take);
        self.tell(matmix::data::open(spec, &options)?)
    }

    /// How one set is opened.
    pub(crate) fn options(&self, labels: Option<&Path>, take: Option<&Range<usize>>) -> OpenOptions {
        OpenOptions {
            shape: self.shape.as_ref().map(|s| s.0.clone()),
            labels: labels.map(Path::to_path_buf),
            gaps: self.gaps,
            colour: self.colour,
            resize: self.resize,
            scale: self.scale,
            take: take.cloned(),
            exclude: self.exclude.clone(),
            limit: self.limit,
            memory_budget: self.memory,
            missing: self.unobserved(),
            mask: self.mask.clone(),
        }
    }

    fn unobserved(&self) -> Option<Unobserved> {
        self.missing_below.map(|value| Unobserved::Value(FillValue::Below(value))).or(self.missing)
    }

    /// Opens one set the way the samples of a model were: images brought to the same size, values multiplied with the same
    /// factor, unless the options say otherwise.
    pub(crate) fn open_for(
        &self,
        file: &ModelFile,
        spec: &str,
        labels: Option<&Path>,
        take: Option<&Range<usize>>,
    ) -> anyhow::Result<DataSet> {
        let options = OpenOptions { scale: None, ..self.options(labels, take) };
        let data = match &file.input {
            Some(input) => input.open(spec, &options)?,
            None => matmix::data::open(spec, &options)?,
        };
        let mut data = self.tell(data)?;
        data.samples = file.scaled(&data.samples, self.scale)?;
        Ok(data)
    }

    /// Opens one set as a model of its own samples takes it, or one picture as a set of one sample.
    pub(crate) fn open_pictures(
        &self,
        file: Option<&ModelFile>,
        spec: &str,
        labels: Option<&Path>,
        take: Option<&Range<usize>>,
    ) -> anyhow::Result<DataSet> {
        let options = OpenOptions { scale: None, ..self.options(labels, take) };
        let picture = match file.and_then(|file| file.input.as_ref()) {
            Some(input) => input.open_picture(Path::new(spec), &options)?,
            None => open_picture(Path::new(spec), &options)?,
        };
        let Some(data) = picture else {
            return match file {
                Some(file) => self.open_for(file, spec, labels, take),
                None => self.open(spec, labels, take),
            };
        };
        let mut data = self.tell(data)?;
        data.samples = match (file, self.scale) {
            (Some(file), scale) => file.scaled(&data.samples, scale)?,
            (None, Some(scale)) => data.samples.scaled(scale)?,
            (None, None) => data.samples,
        };
        Ok(data)
    }

    /// What a model of a set that was opened so remembers of its input: how images were read, by these options or, where they do not say,
    /// by the model that it began from.
    pub(crate) fn remembered(&self, input: Input, began: Option<&ModelFile>, data: &DataSet) -> Input {
        let options = self.options(None, None);
        let read = match began.and_then(|file| file.input.as_ref()) {
            Some(before) => before.images(&options),
            None => options,
        };
        input.with_mask(data.mask.as_deref()).with_images(&read)
    }

    /// Refuses a model that would have the same data opened in another way than the first.
    pub(crate) fn check_alike(
        &self,
        first: (&ModelFile, &Path),
        other: (&ModelFile, &Path),
    ) -> anyhow::Result<()> {
        let options = self.options(None, None);
        let way = |file: &ModelFile| {
            let input = file.input.as_ref();
            let scale = self.scale.or(input.map(|input| input.scale)).unwrap_or(1.0);
            let read = input.map_or(options.clone(), |input| input.images(&options));
            // NaN is taken for a missing cell by whoever meets one.
            let missing =
                read.missing.filter(|missing| !matches!(missing, Unobserved::Never | Unobserved::Nan));
            (scale, read.resize, read.colour, missing, input.map_or(vec![], |input| input.mask.clone()))
        };
        let (one, two) = (way(first.0), way(other.0));
        let differs = [
            ("the factor of the values", "--scale", one.0 != two.0),
            ("the size of images", "--resize", one.1 != two.1),
            ("the colours of images", "--colour", one.2 != two.2),
            ("what tells that a cell was not observed", "--missing", one.3 != two.3),
            ("the mask of their samples", "", one.4 != two.4),
        ];
        let Some((what, option, _)) = differs.into_iter().find(|(.., differs)| *differs) else {
            return Ok(());
        };
        let message = format!("{} and {} differ in {what}", first.1.display(), other.1.display());
        let hint = match option {
            "" => "draw a picture for each".to_owned(),
            _ => format!("draw a picture for each, or say with {option} what it is for both"),
        };
        Err(hinted(message, &hint))
    }

    fn tell(&self, mut data: DataSet) -> anyhow::Result<DataSet> {
        for note in &data.notes {
            output::say(self.quiet, &format!("note: {}: {note}{}", data.name, remedy(note)));
        }
        // For the bar that shows how far a pass has come, and for whoever wants it to end.
        data.samples = data.samples.with_meter(interrupt::meter());
        Ok(data)
    }

    /// What NaN is, once whatever was not observed is.
    pub(crate) fn missing(&self) -> Missing {
        match &self.mask {
            Some(_) => Missing::Nan,
            None => self.unobserved().unwrap_or_default().missing(),
        }
    }

    pub(crate) fn scale(&self) -> f64 {
        self.scale.unwrap_or(1.0)
    }
}

/// What to do if a choice was not the right one.
fn remedy(note: &Note) -> &'static str {
    match note {
        Note::Grey { .. } => " (--colour keeps the colours)",
        Note::Labels { .. } | Note::OtherLabels { .. } => " (--labels gives others)",
        Note::Transparency { .. } => " (--missing alpha leaves them out)",
        Note::Square { .. } | Note::Axis { .. } => " (--shape gives another shape)",
        _ => "",
    }
}

/// All options of one set.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct DataOptions {
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Take only these samples, counted from 0, the end not included.
    #[arg(long, value_parser = range, value_name = "0:500")]
    take: Option<Range<usize>>,
    /// A file with one label per sample: text lines, .npy or IDX.
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
}

impl DataOptions {
    /// The first option that was given, --scale aside.
    pub(crate) fn other_than_scale(&self) -> Option<&'static str> {
        let reading = &self.reading;
        [
            ("--shape", reading.shape.is_some()),
            ("--resize", reading.resize.is_some()),
            ("--colour", reading.colour),
            ("--exclude", !reading.exclude.is_empty()),
            ("--limit", reading.limit.is_some()),
            ("--missing VALUE", matches!(reading.missing, Some(Unobserved::Value(_)))),
            ("--missing alpha", matches!(reading.missing, Some(Unobserved::Alpha(_)))),
            ("--missing-below", reading.missing_below.is_some()),
            ("--mask", reading.mask.is_some()),
            ("--memory", reading.memory.is_some()),
            ("--take", self.take.is_some()),
            ("--labels", self.labels.is_some()),
        ]
        .into_iter()
        .find_map(|(option, given)| given.then_some(option))
    }

    /// All files that are read.
    pub(crate) fn inputs(&self, spec: &str) -> Vec<PathBuf> {
        let mask = self.reading.mask.as_deref().map(files_of).unwrap_or_default();
        files_of(spec).into_iter().chain(mask).chain(self.labels.clone()).collect()
    }

    /// As [`Reading::open_pictures`].
    pub(crate) fn open_pictures(&self, file: Option<&ModelFile>, spec: &str) -> anyhow::Result<DataSet> {
        self.reading.open_pictures(file, spec, self.labels.as_deref(), self.take.as_ref())
    }

    /// As [`Reading::open_for`].
    pub(crate) fn open_for(&self, file: &ModelFile, spec: &str) -> anyhow::Result<DataSet> {
        self.reading.open_for(file, spec, self.labels.as_deref(), self.take.as_ref())
    }

    pub(crate) fn open(&self, spec: &str) -> anyhow::Result<DataSet> {
        self.reading.open(spec, self.labels.as_deref(), self.take.as_ref())
    }

    /// The input of a model of an opened set; `began` is the model that its fit began from.
    pub(crate) fn remembered(&self, data: &DataSet, began: Option<&ModelFile>) -> matmix::Result<Input> {
        Ok(self.reading.remembered(Input::of(data.samples.shape(), &data.samples)?, began, data))
    }
}

/// A model and data as the model sees it.
pub(crate) struct Seen {
    pub(crate) file: ModelFile,
    pub(crate) data: DataSet,
    /// The data flattened, or split into rows, as the model needs it.
    pub(crate) view: Samples<'static>,
    /// How many samples of the view one sample of the data is: 1, or its number of rows.
    pub(crate) rows_each: usize,
}

impl Seen {
    pub(crate) fn new(model: &Path, data: &str, options: &DataOptions) -> anyhow::Result<Self> {
        let file = load_model(model)?;
        let data = options.open_for(&file, data)?;
        let view = view(&file, model, &data)?;
        let rows_each = view.len() / data.samples.len();
        Ok(Self { file, data, view, rows_each })
    }

    /// The mixture, or why there is none.
    pub(crate) fn mixture(&self, what: &str) -> anyhow::Result<&matmix::Mixture> {
        match &self.file.model {
            Model::Mixture(m) => Ok(m),
            _ => {
                let name = self.file.name.as_deref().unwrap_or("this model");
                let message = format!("{name} has no noise model, and so no {what}");
                Err(hinted(message, "fit a mixture: --model ppca, psopca, mixppca, mp2dpca or mixb2dppca"))
            }
        }
    }

    /// The shape of one sample of the data, for arrays that are written: what was read is what comes back.
    pub(crate) fn shape(&self) -> &[usize] {
        self.data.samples.shape()
    }

    /// What a sample is called, where samples are files.
    pub(crate) fn name(&self, sample: usize) -> Option<&str> {
        self.data.names.as_ref().map(|names| names[sample].as_str())
    }

    /// The axes of an array with one entry per sample: N, and the rows where the model is one of rows.
    pub(crate) fn axes(&self) -> Vec<usize> {
        let n = self.data.samples.len();
        if self.rows_each == 1 { vec![n] } else { vec![n, self.rows_each] }
    }
}

/// Reads a model file.
pub(crate) fn load_model(path: &Path) -> anyhow::Result<ModelFile> {
    if !path.exists() {
        let message = format!("{}: there is no such model file", path.display());
        return Err(hinted(message, "`matmix fit DATA -k 10 -r 4x4 -o MODEL` makes one"));
    }
    Ok(ModelFile::load(path)?)
}

/// The data as the model sees it, or which of the two does not fit the other.
pub(crate) fn view(file: &ModelFile, model: &Path, data: &DataSet) -> anyhow::Result<Samples<'static>> {
    file.view(&data.samples).map_err(|error| match error {
        Error::ShapeMismatch { expected, found } => hinted(
            format!(
                "{}: its samples have shape {}, but {} is a model of {}",
                data.name,
                sides(&found),
                model.display(),
                sides(&expected)
            ),
            "--shape and --resize change the shape of the data; `matmix info` says what a model or a set holds",
        ),
        other => other.into(),
    })
}

/// Refuses a model of patches where whole samples come back: windows overlap.
pub(crate) fn check_whole(file: &ModelFile) -> anyhow::Result<()> {
    if file.input.as_ref().is_none_or(|input| input.patches.is_none()) {
        return Ok(());
    }
    let message = "a model of patches rebuilds windows that overlap, not whole samples";
    Err(hinted(message, "fit without --patches for a model of whole samples"))
}

/// The shape a model's samples had before a preset flattened them, if the model file tells.
pub(crate) fn shape_of(file: &ModelFile) -> Vec<usize> {
    let shape = file.model.shape();
    match &file.input {
        // A model of rows knows nothing of the others.
        Some(input) if input.shape.iter().product::<usize>() == shape.iter().product::<usize>() => {
            input.shape.clone()
        }
        _ => shape.to_vec(),
    }
}

/// Whether a file looks like a model (safetensors: eight bytes of length, then JSON) and not like data.
pub(crate) fn is_model(path: &Path) -> bool {
    use std::io::Read;
    let mut start = [0; 9];
    // A pipe that is only looked at has lost what was read.
    path.is_file()
        && std::fs::File::open(path).and_then(|mut f| f.read_exact(&mut start)).is_ok()
        && start[8] == b'{'
}
