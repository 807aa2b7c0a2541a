//! Where words and numbers go: people read stderr, programs read stdout, files appear whole.

use std::io::Write;
use std::path::Path;

use crate::error::hinted;

/// The result of a command, on stdout.
pub(crate) fn result(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// Bytes on stdout.
pub(crate) fn bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

/// One JSON object on stdout.
pub(crate) fn json(value: &serde_json::Value) -> anyhow::Result<()> {
    result(&serde_json::to_string_pretty(value)?)
}

/// Words for people.
pub(crate) fn stderr(text: &str) {
    // Nobody to talk to is no reason to fail.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// A line for people, unless they want quiet.
pub(crate) fn say(quiet: bool, line: &str) {
    if !quiet {
        stderr(&format!("{line}\n"));
    }
}

/// Text in a file, or on stdout if there is none.
pub(crate) fn text(path: Option<&Path>, text: &str) -> anyhow::Result<()> {
    match path {
        Some(path) => Ok(matmix::data::atomic::write_file(path, |out| out.write_all(text.as_bytes()))?),
        None => result(text),
    }
}

/// Whether `path` can be written, asked before hours of work and not after them.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    let refuse = |why: String| {
        let message = format!("{}: cannot write: {why}", path.display());
        Err(hinted(message, "the folder of an output must exist and be writable; give another -o"))
    };
    if path.is_dir() {
        return refuse("it is a folder".into());
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return refuse(format!("there is no folder {}", folder.display()));
    }
    match tempfile::Builder::new().prefix(".matmix-").tempfile_in(folder) {
        Ok(_) => Ok(()),
        Err(e) => refuse(e.to_string()),
    }
}

/// Whether a path ends so, whatever the case.
pub(crate) fn ends_with(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending))
}
