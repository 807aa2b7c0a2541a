//! What a person reads when something is wrong: one message, one hint, exit code 2.

use std::io::IsTerminal;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use matmix::Error;
use matmix::error::{Action, Counted, FileKind, ForImages, NoGpu};

use crate::interrupt;
use crate::visible::visible;

/// An error of the program's own, with what to do about it.
#[derive(Debug)]
struct Hinted {
    message: String,
    hint: String,
}

impl std::fmt::Display for Hinted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Hinted {}

/// An error with a hint.
pub(crate) fn hinted(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Hinted { message: message.into(), hint: hint.into() })
}

/// What the user is doing, as far as hints depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Looking at a file: to advise it would lead nowhere.
    Info,
    Anything,
}

/// Prints the error and its hint; the exit code of the program.
pub(crate) fn report(error: &anyhow::Error, doing: Doing) -> u8 {
    // A reader that went away (`matmix assign … | head`) is not an error of ours.
    let closed = |e: &std::io::Error| e.kind() == std::io::ErrorKind::BrokenPipe;
    if error.downcast_ref::<std::io::Error>().is_some_and(closed) {
        return 0;
    }
    let stopped = interrupt::by().filter(|_| matches!(error.downcast_ref(), Some(Error::Stopped)));
    if let Some(signal) = stopped.or_else(interrupt::ending) {
        interrupt::say_stopped(signal);
        return signal.exit_code();
    }
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    let paint = |word: &str, code: &str| match colour {
        true => format!("\u{1b}[{code}m{word}\u{1b}[0m"),
        false => word.to_string(),
    };
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    let mut text = format!("{} {}\n", paint("error:", "1;31"), visible(&causes.join(": ")));
    if let Some(hint) = hint(error, doing) {
        text.push_str(&format!("{} {}\n", paint("hint:", "1;36"), visible(&hint)));
    }
    crate::output::stderr(&text);
    2
}

/// Prints what is wrong with the arguments, or the help that was asked for; the exit code of the program.
pub(crate) fn report_arguments(error: &clap::Error) -> u8 {
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg)
        && std::path::Path::new(argument).exists()
    {
        let message = format!("{argument}: one argument too many; all samples are one argument");
        let hint = "put a pattern in quotes ('parts/*.npy'), or list files with commas (a.npy,b.npy)";
        return report(&hinted(message, hint), Doing::Anything);
    }
    // A reader of the help that went away is not an error of ours, either.
    let steers = |argument: std::ffi::OsString| argument.to_string_lossy().contains(char::is_control);
    if error.use_stderr() && std::env::args_os().any(steers) {
        crate::output::stderr(&visible(&error.render().to_string()));
    } else {
        let _ = error.print();
    }
    error.exit_code() as u8
}

/// Whether that is how the system says that there is no room for a file.
fn is_full(code: i32) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(std::io::Error::from_raw_os_error(code).kind(), FileTooLarge | QuotaExceeded | StorageFull)
}

const LABELS: &str = "--labels takes one label per sample: text lines, .npy or IDX";
const DATA: &str = "DATA is a .npy, .npz, IDX, .mat or .csv file, a folder of images, - or demo:mnist";

fn hint(error: &anyhow::Error, doing: Doing) -> Option<String> {
    if let Some(hinted) = error.downcast_ref::<Hinted>() {
        return Some(hinted.hint.clone());
    }
    let hint = match error.downcast_ref::<Error>()? {
        Error::ImageSizes { other_size: (rows, columns), .. } => {
            return Some(format!("--resize {rows}x{columns} brings all images to one size"));
        }
        Error::Changed { .. } => {
            "begin again; what a file is to become is better written to another one first"
        }
        Error::Io { code: Some(code), .. } if is_full(*code) => "make room there, or give another -o",
        Error::Io { action: Action::Write | Action::Make, .. } => {
            "the folder of an output must exist and be writable; give another -o"
        }
        Error::Io { .. } => return Some(format!("check the name; {DATA}")),
        Error::Format { format: FileKind::Model, .. } => {
            "`matmix fit DATA -k 10 -r 4x4 -o MODEL` makes a model file"
        }
        Error::Format { format: FileKind::Checkpoint, .. } | Error::OtherFit { .. } => {
            "without --resume the fit begins anew; a file that holds something else is only replaced with --force"
        }
        Error::Format { format: FileKind::Labels, .. }
        | Error::LabelCount { .. }
        | Error::Count { what: Counted::Labels, .. } => LABELS,
        Error::Format { .. } => "the file may be incomplete or of another kind; copy or download it again",
        Error::Rank { .. } | Error::RankCount { .. } => {
            "-r takes one rank per mode, each no larger than that side of the samples: -r 4x4"
        }
        Error::NoClasses => "`matmix fit DATA --supervised -o MODEL` fits one that does",
        Error::TooFewLabelled { labelled: 0, .. } => "--exclude leaves the class out",
        Error::TooFewLabelled { .. } => "-k is the number of components of every class",
        Error::TooManyComponents { .. } => "ask for fewer components with -k",
        Error::Components { .. } => "-k is the number of components: -k 10",
        Error::Start { .. } => "--init FILE, -k and -r must describe the same model",
        Error::Option { .. } => "`matmix help COMMAND` lists the options and what they take",
        Error::NotFinite { value, .. } if value.is_nan() => {
            "--missing nan makes it a cell that was not observed; --take leaves samples out"
        }
        Error::NotFinite { .. } => "leave such samples out with --take, or repair the data",
        Error::Memory { .. } => {
            "--memory is what a pass may take; fewer --threads and components need less of it"
        }
        Error::NoMemory { .. } => {
            "draw fewer samples with -n, or impute fewer times with --draws; another --seed draws others"
        }
        Error::Values { .. } => {
            "--scale says what to multiply with: 1/255 for bytes, 255 for fractions, 1 for values as they are"
        }
        Error::Overflow { .. } => "--scale multiplies every value",
        Error::UnknownDemo { .. } => "demo:mnist holds 1000 digits of 28×28",
        Error::NoLabels { .. } => LABELS,
        Error::NoArray { path, .. } => {
            return Some(format!("name the array behind a colon: {}:NAME", path.display()));
        }
        Error::ShapeNeeded { numbers, .. } => {
            return Some(format!("--shape ROWSxCOLUMNS says it, or --shape {numbers} for vectors"));
        }
        Error::OnlyImages { option, .. } => {
            let option = match option {
                ForImages::Colour => "--colour",
                ForImages::Resize => "--resize",
                ForImages::Alpha => "--missing alpha",
                _ => return None,
            };
            return Some(format!("leave out {option}; --shape gives samples another shape"));
        }
        Error::UnknownLabel { .. } => "`matmix info DATA` lists the labels",
        Error::Unpacked { packed: None, .. } => "give more --memory, or save the samples as a .npy file",
        Error::Unpacked { .. } => "--memory 8GB, say, allows as much",
        Error::Cell { .. } => {
            "a .csv file has one sample per line, numbers only; a first line with names is passed over"
        }
        Error::NotRead { .. } => DATA,
        // The processor computes whatever a GPU does not.
        Error::DeviceMemory { .. }
        | Error::Device { why: NoGpu::NotBuilt | NoGpu::Absent | NoGpu::Failed, .. }
            if doing != Doing::Info =>
        {
            "--device cpu computes on the processor"
        }
        // They say themselves what to do.
        Error::Device { .. } | Error::LostSamples { .. } | Error::Engine { .. } | Error::Stopped => {
            return None;
        }
        _ if doing == Doing::Info => DATA,
        Error::ShapeMismatch { .. } => {
            "`matmix info MODEL` says what a model is for; --shape and --resize change the shape of the data"
        }
        Error::Order { .. } => {
            "--shape gives samples another shape; `matmix info DATA` says what they are now"
        }
        _ => "`matmix info DATA` says what is read; --shape, --resize, --take and --labels change it",
    };
    Some(hint.into())
}
