//! Files that hold data: regular ones, each known by what it was when it was first opened.

use std::fs::{File, Metadata};
use std::path::Path;
use std::time::SystemTime;

use crate::error::{Action, Change, Error, Result};

/// What tells a file from another one, and from itself before somebody wrote to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Device and number on it; the time of its making where a system has no such numbers.
    file: Option<(u64, u64)>,
    made: Option<SystemTime>,
    pub(crate) bytes: u64,
    modified: Option<SystemTime>,
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let (file, made) = {
            use std::os::unix::fs::MetadataExt;
            (Some((metadata.dev(), metadata.ino())), None)
        };
        #[cfg(not(unix))]
        let (file, made) = (None, metadata.created().ok());
        Self { file, made, bytes: metadata.len(), modified: metadata.modified().ok() }
    }

    /// What has happened since, if anything.
    fn change(&self, now: &Self) -> Option<Change> {
        if (self.file, self.made) != (now.file, now.made) {
            return Some(Change::Replaced);
        }
        if self.bytes != now.bytes {
            return Some(Change::Size { before: self.bytes, after: now.bytes });
        }
        (self.modified != now.modified).then_some(Change::Written)
    }
}

/// Opens a regular file: from a pipe or a device one would wait for ever, or read for ever.
pub(crate) fn open(path: &Path) -> Result<(File, Identity)> {
    let io = |e: &std::io::Error| Error::io(path, Action::Open, e);
    // Looked at before it is opened: opening a pipe waits for somebody to write.
    check_regular(path, &std::fs::metadata(path).map_err(|e| io(&e))?)?;
    let file = File::open(path).map_err(|e| io(&e))?;
    let metadata = file.metadata().map_err(|e| io(&e))?;
    check_regular(path, &metadata)?;
    let identity = Identity::of(&metadata);
    Ok((file, identity))
}

/// Opens a file that was open before, if it is still what it was.
pub(crate) fn open_again(path: &Path, before: &Identity) -> Result<File> {
    let (file, now) = open(path)?;
    match before.change(&now) {
        Some(change) => Err(Error::Changed { path: path.to_owned(), change }),
        None => Ok(file),
    }
}

/// Whether a file that is mapped is still what it was. One that has another in its place is: the map is of the old
/// one.
pub(crate) fn check_mapped(path: &Path, before: &Identity) -> Result<()> {
    let Ok(metadata) = std::fs::metadata(path) else { return Ok(()) };
    match before.change(&Identity::of(&metadata)) {
        None | Some(Change::Replaced) => Ok(()),
        Some(change) => Err(Error::Changed { path: path.to_owned(), change }),
    }
}

fn check_regular(path: &Path, metadata: &Metadata) -> Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let what = if metadata.is_dir() { "it is a folder" } else { "it is a pipe or a device, not a file" };
    Err(Error::Io { path: path.to_owned(), action: Action::Open, message: what.into(), code: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_to_a_file_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "four").unwrap();
        let (_, before) = open(&path).unwrap();
        let change = |before| match open_again(&path, before) {
            Ok(_) => None,
            Err(Error::Changed { change, .. }) => Some(change),
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(change(&before), None);
        assert_eq!(check_mapped(&path, &before), Ok(()));
        std::fs::write(&path, "fives").unwrap();
        assert_eq!(change(&before), Some(Change::Size { before: 4, after: 5 }));
        assert!(check_mapped(&path, &before).is_err());
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(4).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(change(&before), Some(Change::Written));
        // What a map holds of a file is not touched by putting another in its place.
        std::fs::write(folder.path().join("y"), "four").unwrap();
        std::fs::rename(folder.path().join("y"), &path).unwrap();
        assert_eq!(change(&before), Some(Change::Replaced));
        assert_eq!(check_mapped(&path, &before), Ok(()));
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_no_file() {
        let error = open(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(error, "/dev/zero: cannot open: it is a pipe or a device, not a file");
    }
}
