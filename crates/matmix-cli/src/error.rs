//! What a person reads when something is wrong: one message, one hint, exit code 2.

use std::io::IsTerminal;
use std::process::ExitCode;

use matmix::Error;

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

/// Prints the error and its hint; the exit code of the program.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    // A reader that went away (`matmix assign … | head`) is not an error of ours.
    let closed = |e: &std::io::Error| e.kind() == std::io::ErrorKind::BrokenPipe;
    if error.downcast_ref::<std::io::Error>().is_some_and(closed) {
        return ExitCode::SUCCESS;
    }
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    let paint = |word: &str, code: &str| match colour {
        true => format!("\u{1b}[{code}m{word}\u{1b}[0m"),
        false => word.to_string(),
    };
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    let mut text = format!("{} {}\n", paint("error:", "1;31"), causes.join(": "));
    if let Some(hint) = hint(error) {
        text.push_str(&format!("{} {hint}\n", paint("hint:", "1;36")));
    }
    crate::output::stderr(&text);
    ExitCode::from(2)
}

fn hint(error: &anyhow::Error) -> Option<String> {
    if let Some(hinted) = error.downcast_ref::<Hinted>() {
        return Some(hinted.hint.clone());
    }
    let error = error.downcast_ref::<Error>()?;
    let hint = match error {
        Error::ImageSizes { other_size: (rows, columns), .. } => {
            return Some(format!("--resize {rows}x{columns} brings all images to one size"));
        }
        Error::Changed { .. } => {
            "begin again; what a file is to become is better written to another one first"
        }
        Error::Io { action: "write" | "make", .. } => {
            "the folder of an output must exist and be writable; give another -o"
        }
        Error::Io { .. } => {
            "check the name; DATA is a .npy, .npz, IDX, .mat or .csv file, a folder of images, - or demo:mnist"
        }
        Error::Format { format: "model file", .. } => {
            "`matmix fit DATA -k 10 -r 4x4 -o MODEL` makes a model file"
        }
        Error::Format { format: "checkpoint", .. } => {
            "without --resume the fit begins anew and replaces the file"
        }
        Error::Format { format: "label file", .. } => {
            "--labels takes one label per sample: text lines, .npy or IDX"
        }
        Error::Format { .. } => "the file may be incomplete or of another kind; copy or download it again",
        Error::ShapeMismatch { .. } => {
            "`matmix info MODEL` says what a model is for; --shape and --resize change the shape of the data"
        }
        Error::Rank { .. } | Error::RankCount { .. } => {
            "-r takes one rank per mode, each no larger than that side of the samples: -r 4x4"
        }
        Error::TooManyComponents { .. } => "ask for fewer components with -k",
        Error::Option { option: "components", .. } => "-k is the number of components: -k 10",
        Error::Option { option: "start", .. } => "--init FILE, -k and -r must describe the same model",
        Error::Option { .. } => "`matmix help COMMAND` lists the options and what they take",
        Error::Order { .. } => {
            "--shape gives samples another shape; `matmix info DATA` says what they are now"
        }
        Error::NotFinite { .. } => "leave such samples out with --take, or repair the data",
        Error::Memory { .. } => {
            "--memory is what a pass may take; fewer --threads and components need less of it"
        }
        Error::Overflow { .. } => "--scale multiplies every value",
        Error::Count { what: "labels", .. } | Error::LabelCount { .. } | Error::NoLabels { .. } => {
            "--labels takes one label per sample: text lines, .npy or IDX"
        }
        Error::NoArray { path, .. } => {
            return Some(format!("name the array behind a colon: {}:NAME", path.display()));
        }
        Error::ShapeNeeded { numbers, .. } => {
            return Some(format!("--shape ROWSxCOLUMNS says it, or --shape {numbers} for vectors"));
        }
        Error::OnlyImages { option, .. } => {
            return Some(format!("leave out --{option}; --shape gives samples another shape"));
        }
        Error::UnknownLabel { .. } => "`matmix info DATA` lists the labels",
        Error::Unpacked { packed: None, .. } => "give more --memory, or save the samples as a .npy file",
        Error::Unpacked { .. } => "--memory 8GB, say, allows as much",
        Error::Cell { .. } => {
            "a .csv file has one sample per line, numbers only; a first line with names is passed over"
        }
        Error::NotRead { .. } => {
            "DATA is a .npy, .npz, IDX, .mat or .csv file, a folder of images, - or demo:mnist"
        }
        Error::Data { name, .. } if name.starts_with("demo:") => "demo:mnist holds 1000 digits of 28×28",
        _ => "`matmix info DATA` says what is read; --shape, --resize, --take and --labels change it",
    };
    Some(hint.into())
}
