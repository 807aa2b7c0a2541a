//! A program that must end at once takes its temporaries along. In a file of its own: nothing can be written afterwards.

#![allow(clippy::unwrap_used)]

use matmix::data::atomic::{remove_temporaries, write_file};
use matmix::error::Action;
use matmix::{Error, Samples};

#[test]
fn temporaries_are_removed_while_they_are_being_written_and_none_comes_after() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    std::fs::write(&path, "old").unwrap();
    let count = || std::fs::read_dir(folder.path()).unwrap().count();
    let late = write_file(&path, |out| {
        out.write_all(b"new")?;
        assert_eq!(count(), 2);
        remove_temporaries();
        assert_eq!(count(), 1);
        Ok(())
    });
    assert!(matches!(late, Err(Error::Io { action: Action::Write, .. })), "{late:?}");
    assert!(write_file(&folder.path().join("other"), |_| Ok(())).is_err());
    assert_eq!(count(), 1);
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert!(Samples::from_npy(&path).is_err());
}
