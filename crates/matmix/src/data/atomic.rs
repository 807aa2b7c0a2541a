//! Files appear whole or not at all: written under a temporary name beside the target, then renamed.

use std::io::{BufWriter, Write};
use std::path::Path;

use crate::error::{Error, Result};

/// Lets `write` fill a temporary file in the folder of `path` and renames it to `path` once all is on disk.
pub fn write_file(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> std::io::Result<()>,
) -> Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let io = |e: &std::io::Error| Error::io(path, "write", e);
    let mut options = tempfile::Builder::new();
    options.prefix(".matmix-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // A plain `File::create` would give these; the crate's default of 0600 would surprise whoever shares models.
        options.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = options.tempfile_in(folder).map_err(|e| io(&e))?;
    {
        let mut writer = BufWriter::new(file.as_file_mut());
        write(&mut writer).map_err(|e| io(&e))?;
        writer.flush().map_err(|e| io(&e))?;
    }
    file.as_file().sync_all().map_err(|e| io(&e))?;
    file.persist(path).map_err(|e| io(&e.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        write_file(&path, |w| w.write_all(b"old")).unwrap();
        let failed = write_file(&path, |w| {
            w.write_all(b"half of the n")?;
            Err(std::io::Error::other("the disk is full"))
        });
        assert!(matches!(failed, Err(Error::Io { action: "write", .. })));
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_folder_is_an_error_with_the_path() {
        let path = Path::new("no/such/folder/model.safetensors");
        let error = write_file(path, |_| Ok(())).unwrap_err();
        assert!(error.to_string().starts_with("no/such/folder/model.safetensors: cannot write"), "{error}");
    }
}
