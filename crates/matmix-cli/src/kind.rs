//! What a file holds, by its content: whatever is replaced should be of the kind that is written.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Model,
    Checkpoint,
    Array,
    Picture,
    Page,
    Table,
    Json,
    /// What is never written, in words.
    Other(&'static str),
}

impl Kind {
    /// In a sentence.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Model => "a model",
            Kind::Checkpoint => "the state of a fit",
            Kind::Array => "a .npy array",
            Kind::Picture => "a PNG picture",
            Kind::Page => "an HTML page",
            Kind::Table => "a table of results",
            Kind::Json => "JSON",
            Kind::Other(name) => name,
        }
    }

    /// Whether people can read it.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Kind::Page | Kind::Table | Kind::Json)
    }

    /// What stands in a file; nothing if that is empty.
    pub(crate) fn of(path: &Path) -> io::Result<Option<Self>> {
        let mut file = File::open(path)?;
        let mut start = Vec::new();
        file.by_ref().take(4096).read_to_end(&mut start)?;
        let begins = |with: &[u8]| start.starts_with(with);
        Ok(Some(match start.get(8) {
            None if start.is_empty() => return Ok(None),
            _ if begins(b"\x93NUMPY") => Kind::Array,
            _ if begins(b"\x89PNG\r\n\x1a\n") => Kind::Picture,
            _ if begins(b"PK") => Kind::Other("a zip archive, such as .npz"),
            _ if begins(b"\x1f\x8b") => Kind::Other("a gzip file"),
            _ if begins(b"MATLAB") => Kind::Other("a MATLAB file"),
            _ if begins(b"\x89HDF") => Kind::Other("an HDF5 file"),
            _ if begins(b"\xff\xd8\xff") => Kind::Other("a JPEG picture"),
            Some(b'{') if start[4..8] == [0; 4] => tensors(file, &start),
            _ => text(&start).unwrap_or(Kind::Other("something else")),
        }))
    }
}

/// A safetensors file: the length of a JSON object, and the object, whose metadata say what it is for.
fn tensors(file: File, start: &[u8]) -> Kind {
    let other = Kind::Other("a safetensors file that matmix did not write");
    let length = u64::from(u32::from_le_bytes([start[0], start[1], start[2], start[3]]));
    let mut header = start[8..].to_vec();
    header.truncate(length as usize);
    let more = length - header.len() as u64;
    if file.take(more).read_to_end(&mut header).is_err() {
        return other;
    }
    let header: serde_json::Value = serde_json::from_slice(&header).unwrap_or_default();
    let told = &header["__metadata__"];
    match (told.get("matmix.checkpoint"), told.get("matmix.format")) {
        (Some(_), _) => Kind::Checkpoint,
        (None, Some(_)) => Kind::Model,
        (None, None) => other,
    }
}

fn text(start: &[u8]) -> Option<Kind> {
    let text = match std::str::from_utf8(start) {
        Ok(text) => text,
        // The end of what was read may be the middle of a letter.
        Err(e) if start.len() - e.valid_up_to() < 4 => std::str::from_utf8(&start[..e.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    let begins = |with: &str| text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    Some(match text.trim_start().chars().next() {
        _ if text.contains('\0') => return None,
        _ if begins("<!doctype html") || begins("<html") => Kind::Page,
        _ if begins("sample,") || begins("probe,") => Kind::Table,
        Some('{' | '[') => Kind::Json,
        _ => Kind::Other("text"),
    })
}

#[cfg(test)]
mod tests {
    use matmix::{Checkpoint, FitOptions, Model, ModelFile, Samples, fit};

    use super::*;

    #[test]
    fn files_are_known_by_their_content() {
        let folder = tempfile::tempdir().unwrap();
        // A name that says nothing.
        let path = folder.path().join("x");
        let of = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            Kind::of(&path).unwrap()
        };
        assert_eq!(of(b""), None);
        assert_eq!(of(b"\x93NUMPY\x01\x00"), Some(Kind::Array));
        assert_eq!(of(b"<!DOCTYPE html>\n"), Some(Kind::Page));
        assert_eq!(of(b"sample,component\n0,1\n"), Some(Kind::Table));
        assert_eq!(of(b"{\"a\": 1}"), Some(Kind::Json));
        assert_eq!(of(b"import sys, os\n"), Some(Kind::Other("text")));
        assert_eq!(of("é".repeat(4096).as_bytes()), Some(Kind::Other("text")));
        assert_eq!(of(&[0, 0, 8, 3, 0, 0, 0, 1, 7]), Some(Kind::Other("something else")));
        let foreign = Some(Kind::Other("a safetensors file that matmix did not write"));
        assert_eq!(of(b"\x02\0\0\0\0\0\0\0{}"), foreign);
        assert_eq!(of(b"\xff\xff\xff\xff\0\0\0\0{}"), foreign);
    }

    #[test]
    fn a_model_and_a_checkpoint_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let (model, state) = (folder.path().join("model"), folder.path().join("state"));
        let samples =
            Samples::from_vec(&[3], (0..60).map(|i| f64::from(i * 7 % 11)).collect::<Vec<_>>()).unwrap();
        let checkpoint = Some(Checkpoint { path: state.clone(), every: 1, resume: false });
        let options = FitOptions { rank: vec![1], max_iter: 3, checkpoint, ..FitOptions::default() };
        let fitted = fit(&samples, &options).unwrap();
        ModelFile::new(Model::Mixture(fitted.model)).save(&model).unwrap();
        assert_eq!(Kind::of(&model).unwrap(), Some(Kind::Model));
        assert_eq!(Kind::of(&state).unwrap(), Some(Kind::Checkpoint));
    }
}
