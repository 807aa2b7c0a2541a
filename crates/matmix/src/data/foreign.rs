//! Formats that are recognised, but not read: whoever comes with one is told what it is and what can be done.

use std::path::Path;

use crate::error::Error;

struct Kind {
    found: &'static str,
    endings: &'static [&'static str],
    /// Where in the file which bytes stand.
    marks: &'static [(usize, &'static [u8])],
    instead: &'static str,
}

const SAVE: &str = "save its array as a .npy file";
const KINDS: [Kind; 11] = [
    Kind {
        found: "an HDF5 file",
        endings: &["h5", "hdf5", "hdf"],
        marks: &[(0, b"\x89HDF\r\n\x1a\n")],
        instead: "the Python package reads arrays of HDF5 files piece by piece, and a .npy file is read everywhere",
    },
    Kind {
        found: "a NIfTI file",
        endings: &["nii", "nii.gz"],
        marks: &[(344, b"n+1\0"), (4, b"n+2\0\r\n\x1a\n")],
        instead: "save its volumes as a .npy file with the samples along the first axis (in Python with nibabel)",
    },
    Kind {
        found: "a Parquet file",
        endings: &["parquet"],
        marks: &[(0, b"PAR1")],
        instead: "save its numbers as a .npy or .csv file",
    },
    Kind {
        found: "a video",
        endings: &["mp4", "m4v", "mov", "avi", "mkv", "webm", "mpg", "mpeg"],
        marks: &[(8, b"AVI "), (0, b"\x1a\x45\xdf\xa3"), (4, b"ftypisom"), (4, b"ftypmp4"), (4, b"ftypqt")],
        instead: "write its frames as images into a folder, or as one .npy file",
    },
    Kind {
        found: "a DICOM file",
        endings: &["dcm"],
        marks: &[(128, b"DICM")],
        instead: "save its pixels as TIFF images or as a .npy file (in Python with pydicom)",
    },
    Kind { found: "a FITS file", endings: &["fits", "fit"], marks: &[(0, b"SIMPLE  =")], instead: SAVE },
    Kind {
        found: "a spreadsheet",
        endings: &["xlsx", "xls", "ods"],
        marks: &[],
        instead: "save its numbers as a .csv file",
    },
    Kind {
        found: "a file of Python or PyTorch objects",
        endings: &["pkl", "pickle", "pt", "pth"],
        marks: &[],
        instead: SAVE,
    },
    Kind { found: "an Arrow file", endings: &["feather", "arrow"], marks: &[(0, b"ARROW1")], instead: SAVE },
    Kind {
        found: "a file of audio",
        endings: &["wav", "mp3", "flac", "ogg"],
        marks: &[(8, b"WAVE")],
        instead: "save its spectrograms as a .npy file",
    },
    Kind {
        found: "an archive",
        endings: &["zip", "tar", "tgz", "7z", "rar", "tar.gz"],
        marks: &[(257, b"ustar")],
        instead: "unpack it first",
    },
];
const ZARR: &str = "the Python package reads zarr arrays piece by piece, and a .npy file is read everywhere";

/// How many bytes of a file tell what it is.
pub(super) const START: usize = 352;

/// What a file called `path` that begins with `start` is, if it is one of these.
pub(super) fn recognised(path: &Path, start: &[u8]) -> Option<Error> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let called = |ending: &&str| name.strip_suffix(*ending).is_some_and(|rest| rest.ends_with('.'));
    let marked = |(at, bytes): &(usize, &[u8])| start.get(*at..).is_some_and(|rest| rest.starts_with(bytes));
    let kind = KINDS.iter().find(|kind| kind.marks.iter().any(marked));
    let kind = kind.or_else(|| KINDS.iter().find(|kind| kind.endings.iter().any(called)))?;
    Some(Error::NotRead { path: path.to_owned(), found: kind.found, instead: kind.instead })
}

/// A folder that is something else than a place for files.
pub(super) fn recognised_folder(path: &Path) -> Option<Error> {
    let zarr = [".zarray", ".zgroup", "zarr.json"].iter().any(|name| path.join(name).is_file());
    zarr.then(|| Error::NotRead { path: path.to_owned(), found: "a zarr array or group", instead: ZARR })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_tell_before_the_name() {
        let found = |name: &str, start: &[u8]| match recognised(Path::new(name), start) {
            Some(Error::NotRead { found, .. }) => found,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(found("x.h5", b""), "an HDF5 file");
        assert_eq!(found("x.bin", b"\x89HDF\r\n\x1a\n...."), "an HDF5 file");
        assert_eq!(found("brain.NII.gz", b"\x1f\x8b"), "a NIfTI file");
        assert_eq!(found("brain", &[&[0; 344][..], b"n+1\0"].concat()), "a NIfTI file");
        assert_eq!(found("film.mp4", b"\0\0\0\x20ftypisom"), "a video");
        assert_eq!(found("film.zip", b"\0\0\0\x20ftypisom"), "a video");
        assert_eq!(found("x.parquet", b"PAR1"), "a Parquet file");
        assert_eq!(recognised(Path::new("nii"), b""), None);
        assert_eq!(recognised(Path::new("x.npy"), b"\x93NUMPY"), None);
    }

    #[test]
    fn a_folder_of_zarr_is_known_by_what_lies_in_it() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(recognised_folder(folder.path()), None);
        std::fs::write(folder.path().join("zarr.json"), "{}").unwrap();
        let error = recognised_folder(folder.path()).unwrap().to_string();
        assert!(
            error.contains("it is a zarr array or group, which is not read here; the Python package"),
            "{error}"
        );
    }
}
