//! Files appear whole or not at all: written under a temporary name beside the target, then renamed.
//!
//! A link stays a link and what it points to is replaced; a file that is replaced passes on its permissions and, where
//! the system allows it, its owner. What is no regular file (a device, a pipe) cannot be replaced and is written
//! through. The temporaries that are there at any time are known, so that a program that must end at once can
//! take them along.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::NamedTempFile;

use crate::error::{Action, Error, Result};

/// Lets `write` fill a temporary file in the folder of `path` and renames it to `path` once all is on disk.
///
/// # Errors
/// If the file cannot be written; what was there before stays.
pub fn write_file(path: &Path, write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> Result<()> {
    let mut write = Some(write);
    put(path, &mut |out| write.take().map_or(Ok(()), |write| write(out)))
}

/// What is written, once.
type Writing<'a> = dyn FnMut(&mut (dyn Write + Send)) -> io::Result<()> + 'a;

/// [`write_file`] for all who write: what they write is compiled with them, how it comes to stand there once.
fn put(path: &Path, write: &mut Writing<'_>) -> Result<()> {
    let mut written = || -> io::Result<()> {
        match Place::of(path)? {
            Place::Stream => fill(&mut OpenOptions::new().append(true).open(path)?, write),
            Place::File { target, replaced } => {
                let mut temporary = Temporary::beside(&target, replaced.is_some())?;
                let file = temporary.file.as_file_mut();
                fill(file, write)?;
                file.sync_all()?;
                if let Some(old) = &replaced {
                    inherit(file, old)?;
                }
                temporary.file.persist(&target).map_err(|e| e.error)?;
                Ok(())
            }
        }
    };
    written().map_err(|e| Error::io(path, Action::Write, &e))
}

/// Whether a file could be written at `path`, asked before hours of work and not after them.
///
/// # Errors
/// If it could not: there is no such folder, it may not be written to, or `path` is a folder.
pub fn check(path: &Path) -> Result<()> {
    let found = match Place::of(path) {
        Ok(Place::Stream) => Ok(()),
        Ok(Place::File { target, replaced }) => Temporary::beside(&target, replaced.is_some()).map(drop),
        Err(error) => Err(error),
    };
    found.map_err(|e| Error::io(path, Action::Write, &e))
}

/// Whether what stands at `path`, links followed, cannot be replaced but is written through: a device, a pipe, an open file.
pub fn is_stream(path: &Path) -> bool {
    matches!(Place::of(path), Ok(Place::Stream))
}

/// Removes the temporaries of all files that are being written, for a program that is about to end: none of these
/// files will appear any more, nor can another one be begun.
pub fn remove_temporaries() {
    for path in live().take().into_iter().flatten() {
        let _ = std::fs::remove_file(path);
    }
}

fn fill(file: &mut File, write: &mut Writing<'_>) -> io::Result<()> {
    let mut writer = BufWriter::new(file);
    write(&mut writer)?;
    writer.flush()
}

/// What stands at a path, links followed.
enum Place {
    /// A regular file, or nothing yet.
    File { target: PathBuf, replaced: Option<Metadata> },
    /// Something to be written to as it is.
    Stream,
}

impl Place {
    fn of(path: &Path) -> io::Result<Self> {
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder")),
            Ok(found) if found.is_file() => Ok(match followed(path) {
                Some(target) => Place::File { target, replaced: Some(found) },
                None => Place::Stream,
            }),
            Ok(_) => Ok(Place::Stream),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Ok(Place::File { target: followed(path).unwrap_or_else(|| path.to_owned()), replaced: None })
            }
            Err(e) => Err(e),
        }
    }
}

/// Where a chain of links ends; nowhere if it leads to an open file of some process, as /dev/stdout does: whoever
/// opened that file would never see a new one in its place.
fn followed(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    // No system follows more of them.
    for _ in 0..64 {
        if std::fs::canonicalize(folder(&path)).is_ok_and(|folder| folder.starts_with("/proc")) {
            return None;
        }
        match std::fs::read_link(&path) {
            Ok(next) => path = folder(&path).join(next),
            Err(_) => break,
        }
    }
    Some(path)
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A file that is removed unless it is renamed.
struct Temporary {
    file: NamedTempFile,
    /// Let go of after `file`, which removes itself.
    _known: Known,
}

impl Temporary {
    fn beside(target: &Path, private: bool) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            // What a plain `File::create` would give; what replaces a file must not be readable by more people than that,
            // not even while it is being written.
            options.mode(if private { 0o600 } else { 0o666 });
        }
        let mut known = None;
        let file = tempfile::Builder::new().prefix(".matmix-").make_in(folder(target), |path| {
            known = Some(Known::new(path)?);
            options.open(path)
        })?;
        match known {
            Some(known) => Ok(Self { file, _known: known }),
            None => unreachable!("a file was opened under a name"),
        }
    }
}

/// The names of all temporaries that are there; none once the program is ending.
static LIVE: Mutex<Option<Vec<PathBuf>>> = Mutex::new(Some(Vec::new()));

fn live() -> MutexGuard<'static, Option<Vec<PathBuf>>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A name on the list of temporaries.
struct Known(PathBuf);

impl Known {
    fn new(path: &Path) -> io::Result<Self> {
        let ending = || io::Error::new(io::ErrorKind::Interrupted, "the program is ending");
        live().as_mut().ok_or_else(ending)?.push(path.to_owned());
        Ok(Self(path.to_owned()))
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        if let Some(names) = live().as_mut() {
            names.retain(|name| *name != self.0);
        }
    }
}

/// Gives a new file the owner, the group and the permissions of the one it replaces. Who may not give files away
/// becomes the owner; a group that cannot be kept must not leave its rights to another one.
#[cfg(unix)]
fn inherit(file: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let new = file.metadata()?;
    let mut mode = old.mode() & 0o7777;
    if new.uid() != old.uid() && fchown(file, Some(old.uid()), None).is_err() {
        mode &= !0o6000;
    }
    if new.gid() != old.gid() && fchown(file, None, Some(old.gid())).is_err() {
        mode = mode & !0o6070 | (mode & 0o007) << 3;
    }
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn inherit(file: &File, old: &Metadata) -> io::Result<()> {
    file.set_permissions(old.permissions())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        write_file(&path, |w| w.write_all(b"old")).unwrap();
        let failed = write_file(&path, |w| {
            w.write_all(b"half of the n")?;
            Err(io::Error::other("the disk is full"))
        });
        assert!(matches!(failed, Err(Error::Io { action: Action::Write, code: None, .. })));
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        check(&path).unwrap();
        assert_eq!(names(folder.path()), ["a.txt"]);
    }

    #[test]
    fn a_missing_folder_is_an_error_with_the_path_and_what_the_system_said() {
        let path = Path::new("no/such/folder/model.safetensors");
        for error in [write_file(path, |_| Ok(())).unwrap_err(), check(path).unwrap_err()] {
            let said =
                "no/such/folder/model.safetensors: cannot write: No such file or directory (os error 2)";
            assert_eq!(error.to_string(), said);
            assert!(matches!(error, Error::Io { code: Some(2), .. }), "{error:?}");
        }
    }

    #[test]
    fn a_folder_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        for error in [write_file(folder.path(), |_| Ok(())), check(folder.path())] {
            assert!(error.unwrap_err().to_string().ends_with("cannot write: it is a folder"));
        }
    }

    #[cfg(unix)]
    mod unix {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

        use super::*;

        /// Of files, and of links to files: absolute, relative, in other folders, to other links, to nothing yet.
        #[test]
        fn links_stay_links_and_their_targets_are_replaced() {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            std::fs::create_dir(at("there")).unwrap();
            std::fs::write(at("there/a"), "old").unwrap();
            symlink(at("there/a"), at("absolute")).unwrap();
            symlink("there/a", at("relative")).unwrap();
            symlink("../relative", at("there/round")).unwrap();
            symlink("there/b", at("dangling")).unwrap();
            for (name, target) in [
                ("absolute", "there/a"),
                ("relative", "there/a"),
                ("there/round", "there/a"),
                ("dangling", "there/b"),
            ] {
                let before = at(target).metadata().ok().map(|m| m.ino());
                write_file(&at(name), |w| w.write_all(name.as_bytes())).unwrap();
                assert!(at(name).symlink_metadata().unwrap().is_symlink(), "{name}");
                assert_eq!(std::fs::read_to_string(at(target)).unwrap(), name);
                assert_ne!(at(target).metadata().ok().map(|m| m.ino()), before, "{name}: in one step");
            }
            assert_eq!(names(folder.path()), ["absolute", "dangling", "relative", "there"]);
            assert_eq!(names(&at("there")), ["a", "b", "round"]);
            symlink("loop", at("loop")).unwrap();
            assert!(write_file(&at("loop"), |_| Ok(())).is_err());
        }

        #[test]
        fn a_file_that_is_replaced_keeps_its_permissions() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("secret");
            let mode = |path: &Path| path.metadata().unwrap().mode() & 0o7777;
            std::fs::write(&path, "old").unwrap();
            for kept in [0o600, 0o640, 0o666] {
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(kept)).unwrap();
                write_file(&path, |w| {
                    let temporary = names(folder.path()).into_iter().find(|n| n.starts_with(".matmix-"));
                    assert_eq!(mode(&folder.path().join(temporary.unwrap())), 0o600, "nobody else looks in");
                    w.write_all(b"new")
                })
                .unwrap();
                assert_eq!(mode(&path), kept);
            }
            // A new one is like any other new file.
            std::fs::write(folder.path().join("plain"), "").unwrap();
            write_file(&folder.path().join("new"), |_| Ok(())).unwrap();
            assert_eq!(mode(&folder.path().join("new")), mode(&folder.path().join("plain")));
        }

        #[test]
        fn a_pipe_is_written_through() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("pipe");
            assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
            symlink("pipe", folder.path().join("link")).unwrap();
            for name in ["pipe", "link"] {
                check(&folder.path().join(name)).unwrap();
                let reader = std::thread::spawn({
                    let path = path.clone();
                    move || std::fs::read(path).unwrap()
                });
                write_file(&folder.path().join(name), |w| w.write_all(b"all of it")).unwrap();
                assert_eq!(reader.join().unwrap(), b"all of it");
            }
            assert_eq!(names(folder.path()), ["link", "pipe"]);
        }

        /// Where the tests may make one: only an administrator could replace a device.
        #[test]
        fn a_device_stays_a_device() {
            use std::os::unix::fs::FileTypeExt;
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("null");
            let made = std::process::Command::new("mknod").arg(&path).args(["c", "1", "3"]).output();
            if !made.is_ok_and(|made| made.status.success())
                || OpenOptions::new().write(true).open(&path).is_err()
            {
                return;
            }
            check(&path).unwrap();
            write_file(&path, |w| w.write_all(b"gone")).unwrap();
            assert!(path.metadata().unwrap().file_type().is_char_device());
            assert_eq!(names(folder.path()), ["null"]);
        }
    }
}
