//! Where words and numbers go: people read stderr, programs read stdout, files appear whole.

use std::fmt::Debug;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use matmix::Samples;
use matmix::data::{DataSet, Element, Scalar, Values, atomic, npy};
use matmix::picture::{Grid, ValueRange, png_names, write_folder};

use crate::error::hinted;
use crate::kind::Kind;
use crate::table::Rows;
use crate::visible::{visible, visible_json};

/// The result of a command, on stdout.
pub(crate) fn result(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(visible(text).as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// Bytes on stdout.
pub(crate) fn bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

/// One JSON object on stdout.
pub(crate) fn json(value: &serde_json::Value) -> anyhow::Result<()> {
    bytes(json_text(value)?.as_bytes())
}

/// A JSON object on lines of its own.
pub(crate) fn json_text(value: &serde_json::Value) -> anyhow::Result<String> {
    Ok(visible_json(serde_json::to_string_pretty(value)?) + "\n")
}

/// Words for people; whatever a terminal would obey is ours.
pub(crate) fn stderr(text: &str) {
    // Nobody to talk to is no reason to fail.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// A line for people, unless they want quiet.
pub(crate) fn say(quiet: bool, line: &str) {
    if !quiet {
        stderr(&format!("{}\n", visible(line)));
    }
}

/// Text in a file.
pub(crate) fn text(path: &Path, text: &str) -> anyhow::Result<()> {
    Ok(atomic::write_file(path, |out| out.write_all(text.as_bytes()))?)
}

/// What may be replaced.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Overwrite {
    /// Replace a file even if it holds something else than what is written, or is the data itself.
    #[arg(long)]
    force: bool,
}

impl Overwrite {
    /// Refuses to let a file of `kind` take the place of another kind, or of one of the inputs.
    pub(crate) fn allows(&self, path: &Path, kind: Kind, inputs: &[PathBuf]) -> anyhow::Result<()> {
        if self.force || !path.is_file() {
            return Ok(());
        }
        let refuse = |why: String| {
            let message = format!("{}: {why}", path.display());
            Err(hinted(message, "give another name, or --force to replace it nevertheless"))
        };
        if inputs.iter().any(|input| is_part_of(path, input)) {
            return refuse("it belongs to the data that is read, and would be replaced".into());
        }
        match Kind::of(path) {
            Ok(Some(found)) if found != kind => {
                refuse(format!("it holds {}, and would be replaced by {}", found.name(), kind.name()))
            }
            Err(e) => refuse(format!("what it holds cannot be read ({e}), and it would be replaced")),
            Ok(_) => Ok(()),
        }
    }

    /// Refuses to fill the folder that is read with other pictures.
    pub(crate) fn allows_folder(&self, path: &Path, inputs: &[PathBuf]) -> anyhow::Result<()> {
        let is_input = |input: &PathBuf| is_same(path, input);
        if self.force || !inputs.iter().any(is_input) {
            return Ok(());
        }
        let message = format!(
            "{}: it is the data that is read, and would be filled with other pictures",
            path.display()
        );
        Err(hinted(message, "give another folder, or --force to write there nevertheless"))
    }
}

/// Whether both names stand for the same file.
fn is_same(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let place = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
        place(a).is_some() && place(a) == place(b)
    }
    #[cfg(not(unix))]
    {
        let place = |path: &Path| path.canonicalize().ok();
        place(a).is_some() && place(a) == place(b)
    }
}

/// Whether a file is an input, or lies in the folder that is one.
fn is_part_of(path: &Path, input: &Path) -> bool {
    let inside = || match (path.canonicalize(), input.canonicalize()) {
        (Ok(path), Ok(input)) => path.starts_with(input),
        _ => false,
    };
    is_same(path, input) || input.is_dir() && inside()
}

/// What hands over numbers, piece by piece, until all are there or one cannot be written.
pub(crate) type Pieces<'a, T> =
    dyn FnMut(&mut (dyn FnMut(&[T]) -> io::Result<()> + Send)) -> io::Result<()> + 'a;

/// Where the one output of a command goes, looked at before hours of work and not after them.
#[derive(Debug)]
pub(crate) struct Target {
    /// Stdout if there is none.
    path: Option<PathBuf>,
    kind: Kind,
}

impl Target {
    /// `path`, or stdout for `-`.
    pub(crate) fn new(
        path: &Path,
        kind: Kind,
        inputs: &[PathBuf],
        overwrite: &Overwrite,
    ) -> anyhow::Result<Self> {
        if path == Path::new("-") {
            if !kind.is_text() && io::stdout().is_terminal() {
                let message = format!("-o -: {} is nothing for a terminal", kind.name());
                return Err(hinted(message, "pass it on with | or >, or name a file with -o"));
            }
            return Ok(Self { path: None, kind });
        }
        check(path)?;
        overwrite.allows(path, kind, inputs)?;
        Ok(Self { path: Some(path.to_owned()), kind })
    }

    /// An array, as CSV if the name ends so.
    pub(crate) fn numbers(path: &Path, inputs: &[PathBuf], overwrite: &Overwrite) -> anyhow::Result<Self> {
        let kind = if ends_with(path, "csv") { Kind::Table } else { Kind::Array };
        Self::new(path, kind, inputs, overwrite)
    }

    /// What was asked for, or stdout if nothing was.
    pub(crate) fn or_stdout(
        path: Option<&Path>,
        kind: Kind,
        inputs: &[PathBuf],
        overwrite: &Overwrite,
    ) -> anyhow::Result<Self> {
        Self::new(path.unwrap_or(Path::new("-")), kind, inputs, overwrite)
    }

    /// Whether it is stdout, where nothing else may be said then.
    pub(crate) fn is_stdout(&self) -> bool {
        self.path.is_none()
    }

    /// Refuses to be on stdout together with --json; `file` is a name that it could have instead.
    pub(crate) fn beside_json(&self, json: bool, file: &str) -> anyhow::Result<()> {
        if json && self.is_stdout() {
            let hint = format!("one of them can be on stdout: -o {file} --json");
            return Err(hinted("-o - cannot be used together with --json", hint));
        }
        Ok(())
    }

    /// Writes all of it, or nothing if it is a file.
    pub(crate) fn write(
        &self,
        write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let Some(path) = &self.path else {
            let mut out = io::BufWriter::new(io::stdout());
            write(&mut out)?;
            return Ok(out.flush()?);
        };
        Ok(atomic::write_file(path, write)?)
    }

    /// Writes text; on a terminal, nothing in it is obeyed.
    pub(crate) fn write_text(&self, text: &str) -> anyhow::Result<()> {
        if self.is_stdout() && io::stdout().is_terminal() {
            return result(text);
        }
        self.write(|out| out.write_all(text.as_bytes()))
    }

    /// Writes an array as it comes, chunk by chunk: it may be larger than memory.
    pub(crate) fn write_chunks<T: Scalar>(
        &self,
        axes: &[usize],
        make: impl FnMut(&mut (dyn FnMut(&[T]) + Send)) -> matmix::Result<()>,
    ) -> anyhow::Result<()> {
        self.write_pieces(make, |out, pieces| npy::write_to(out, axes, |put| pieces(put)))
    }

    /// Write an array, or CSV with one line per row.
    pub(crate) fn write_rows<T: Scalar + Debug>(
        &self,
        axes: &[usize],
        rows: &Rows<'_>,
        make: impl FnMut(&mut (dyn FnMut(&[T]) + Send)) -> matmix::Result<()>,
    ) -> anyhow::Result<()> {
        match self.kind {
            Kind::Table => self.write_pieces(make, |out, pieces| rows.write_to(out, pieces)),
            _ => self.write_chunks(axes, make),
        }
    }

    /// Hands on why no more could be made, and not what became of the file then.
    fn write_pieces<T>(
        &self,
        mut make: impl FnMut(&mut (dyn FnMut(&[T]) + Send)) -> matmix::Result<()>,
        write: impl FnOnce(&mut (dyn Write + Send), &mut Pieces<'_, T>) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let mut failed = None;
        let written = self.write(|out| {
            write(out, &mut |put| {
                let mut full = Ok(());
                let done = make(&mut |x| {
                    if full.is_ok() {
                        full = put(x);
                    }
                });
                done.map_err(|e| {
                    let message = e.to_string();
                    failed = Some(e);
                    io::Error::other(message)
                })?;
                full
            })
        });
        match failed {
            Some(error) => Err(error.into()),
            None => written,
        }
    }

    /// Says what was written, with more words about it.
    pub(crate) fn say_wrote(&self, quiet: bool, before: &str, after: &str) {
        match &self.path {
            Some(path) => say(quiet, &format!("{before}wrote {}{after}", path.display())),
            None => say(quiet, &format!("{before}wrote to stdout{after}")),
        }
    }
}

/// Where samples go.
pub(crate) enum Goes {
    /// One array of all.
    Array(Target),
    /// One picture of the only one.
    Picture(Target),
    /// A PNG of each.
    Folder(Folder),
}

impl Goes {
    /// Choose by the name of the output: `X.npy` or a folder, and `X.png` with `pictures`. Devices and pipes take the array, as stdout does.
    pub(crate) fn new(
        path: &Path,
        pictures: bool,
        inputs: &[PathBuf],
        overwrite: &Overwrite,
    ) -> anyhow::Result<Self> {
        let target = |kind| Target::new(path, kind, inputs, overwrite);
        if pictures && ends_with(path, "png") {
            return target(Kind::Picture).map(Self::Picture);
        }
        if path == Path::new("-") || is_stream(path) || ends_with(path, "npy") {
            return target(Kind::Array).map(Self::Array);
        }
        if path.is_file() || path.extension().is_some() && !path.is_dir() {
            let (what, hint) = match pictures {
                true => (
                    "neither a PNG picture, a .npy file nor a folder",
                    "-o CLEAN.png writes a picture, -o X.npy an array",
                ),
                false => (
                    "neither a .npy file nor a folder",
                    "-o X.npy writes an array, -o FOLDER one PNG per sample",
                ),
            };
            return Err(hinted(format!("{}: {what}", path.display()), hint));
        }
        overwrite.allows_folder(path, inputs)?;
        Ok(Self::Folder(Folder {
            path: path.to_owned(),
            inputs: inputs.to_vec(),
            overwrite: overwrite.clone(),
        }))
    }

    /// Check the files of a folder before the computation: only pictures are replaced.
    pub(crate) fn check(&self, data: &DataSet) -> anyhow::Result<()> {
        let Self::Folder(Folder { path, inputs, overwrite }) = self else { return Ok(()) };
        let names = png_names(data.samples.len(), data.names.as_deref());
        names.iter().map(|name| path.join(name)).filter(|file| file.exists()).try_for_each(|file| {
            check(&file)?;
            overwrite.allows(&file, Kind::Picture, inputs)
        })
    }

    /// Report the output.
    pub(crate) fn say_wrote(&self, quiet: bool, before: &str) {
        match self {
            Self::Array(target) | Self::Picture(target) => target.say_wrote(quiet, before, ""),
            Self::Folder(folder) => say(quiet, &format!("{before}wrote {}", folder.path.display())),
        }
    }
}

/// A folder of pictures.
pub(crate) struct Folder {
    path: PathBuf,
    inputs: Vec<PathBuf>,
    overwrite: Overwrite,
}

impl Folder {
    /// Write the results for `data`: its names, its range of values.
    pub(crate) fn write(&self, samples: &Samples<'_>, data: &DataSet, quiet: bool) -> anyhow::Result<()> {
        write_folder(&self.path, samples, data.names.as_deref(), &drawn(data, quiet)?)?;
        Ok(())
    }
}

/// The range and depth of output pictures: those of the input images. Other data is drawn from its smallest to its largest value, with a
/// note.
pub(crate) fn drawn(data: &DataSet, quiet: bool) -> anyhow::Result<Grid> {
    let scale = data.samples.scale();
    let bytes = (data.samples.element() == Element::U8).then_some(255.0);
    if let Some(white) = data.white.or(bytes).filter(|_| scale > 0.0) {
        let range = ValueRange::Given(0.0, white * scale);
        return Ok(Grid { range, sixteen_bits: white > 255.0, ..Grid::default() });
    }
    let Values { low, high, .. } = Values::of(&data.samples)?;
    say(
        quiet,
        &format!(
            "note: pictures show {low} as black and {high} as white, with 8 bits; -o X.npy keeps the values"
        ),
    );
    Ok(Grid { range: ValueRange::Given(low, high), ..Grid::default() })
}

/// Whether a path is a device, a pipe or an open file. These are written through.
pub(crate) fn is_stream(path: &Path) -> bool {
    atomic::is_stream(path)
}

/// Whether `path` can be written.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        let message = format!("{}: cannot write: there is no folder {}", path.display(), folder.display());
        return Err(hinted(message, "the folder of an output must exist and be writable; give another -o"));
    }
    Ok(atomic::check(path)?)
}

/// Makes a folder for several outputs if it is not there.
pub(crate) fn make_folder(path: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(path).map_err(|e| {
        let message = format!("{}: cannot make the folder: {e}", path.display());
        hinted(message, "give another folder with -o")
    })
}

/// Whether a picture can be written under this name; `example` has one that will do.
pub(crate) fn check_png(path: &Path, example: &str) -> anyhow::Result<()> {
    match ends_with(path, "png") || is_stream(path) {
        true => Ok(()),
        false => {
            let message = format!("{}: pictures are written as PNG", path.display());
            Err(hinted(message, format!("give a name that ends in .png: {example}")))
        }
    }
}

/// Whether a path ends so, whatever the case.
pub(crate) fn ends_with(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending))
}
