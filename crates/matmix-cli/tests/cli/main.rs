//! The program as people meet it: every command, every kind of bad input, every promise about bits.
#![allow(clippy::unwrap_used)]

mod bits;
mod classes;
mod commands;
mod data;
mod files;
#[path = "../../../matmix/tests/suite/made.rs"]
mod made;
mod missing;
mod misuse;
mod outputs;
mod patches;
#[path = "../../../matmix/tests/suite/pictures.rs"]
mod pictures;
#[cfg(target_os = "linux")]
mod signals;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The arguments of a small fit.
pub(crate) const SMALL: &[&str] =
    &["demo:mnist", "--take", "200:260", "--scale", "1/255", "-k", "2", "-r", "3x3"];

/// The program in a folder, away from any terminal.
pub(crate) fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_matmix"));
    command.args(args).current_dir(folder).env_remove("NO_COLOR").env("COLUMNS", "100");
    command
}

/// Longer than any run of a test takes.
pub(crate) const TOO_LONG: Duration = Duration::from_secs(120);

pub(crate) fn run(folder: &Path, args: &[&str]) -> Output {
    output(&mut command(folder, args))
}

/// Run a program to its end. After two minutes it is killed, and the test fails.
pub(crate) fn output(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let id = child.id().to_string();
    let (ended, waiting) = mpsc::channel::<()>();
    let watching = std::thread::spawn(move || {
        let too_long = waiting.recv_timeout(TOO_LONG) == Err(mpsc::RecvTimeoutError::Timeout);
        if too_long {
            let (kill, how) =
                if cfg!(windows) { ("taskkill", ["/F", "/PID"]) } else { ("kill", ["-s", "KILL"]) };
            let _ = Command::new(kill).args(how).arg(id).status();
        }
        too_long
    });
    let output = child.wait_with_output().unwrap();
    drop(ended);
    assert!(!watching.join().unwrap(), "{command:?} took longer than {TOO_LONG:?}");
    output
}

/// Runs what must work.
pub(crate) fn ok(folder: &Path, args: &[&str]) -> Output {
    let output = run(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The names of everything in a folder.
pub(crate) fn names(folder: &Path) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    names
}

/// A small model under a name.
pub(crate) fn fit(folder: &Path, name: &str, more: &[&str]) {
    ok(folder, &[&["fit"], SMALL, &["-o", name, "--quiet"], more].concat());
}

/// Everything a person sees of a run.
pub(crate) fn seen(args: &[&str], output: &Output) -> String {
    let mut text = format!("$ matmix {}\nexit code {}\n", args.join(" "), output.status.code().unwrap_or(-1));
    for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        if !bytes.is_empty() {
            text.push_str(&format!("── {name}\n{}", String::from_utf8_lossy(bytes)));
        }
    }
    text
}

/// Compares a run with what is written down. Times differ, and so do the last digits on other processors.
macro_rules! snapshot {
    ($name:expr, $folder:expr, $args:expr) => {{
        let output = crate::run($folder, $args);
        let text = crate::seen($args, &output);
        insta::with_settings!({
            filters => vec![
                (r"in \d+\.\d s", "in [time] s"),
                (r#""seconds": [-\d.e]+"#, r#""seconds": [time]"#),
                (r#""samples_per_second": [-\d.e]+"#, r#""samples_per_second": [rate]"#),
                // The last column of a comparison is a time, too.
                (r"  +\d+\.\d+\n", "  [number]\n"),
                (r"(\d\.\d)\d+", "$1…"),
                (r" +\n", "\n"),
            ],
            omit_expression => true,
            prepend_module_to_snapshot => false,
        }, { insta::assert_snapshot!($name, text) });
        output
    }};
}
pub(crate) use snapshot;
