//! What is said about data before anything is done with it, and data that comes through a pipe.

use std::io::Write;
use std::process::Stdio;

use matmix::data::npy;
use zip::CompressionMethod;

use crate::{command, made, ok, snapshot};

#[test]
fn choices_are_said_unless_quiet_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let x = made::npy_bytes("|u1", "4, 2, 2", &[1; 16]);
    let arrays = [("x.npy", x.clone()), ("z.npy", x), ("y.npy", made::npy_bytes("|u1", "4,", &[0, 1, 0, 1]))];
    std::fs::write(at("several.npz"), made::npz(CompressionMethod::Deflated, &arrays)).unwrap();
    snapshot!("notes", folder.path(), &["info", "several.npz"]);
    let quiet = ok(folder.path(), &["info", "several.npz", "--quiet"]);
    assert!(quiet.stderr.is_empty(), "{}", String::from_utf8_lossy(&quiet.stderr));
}

#[test]
fn standard_input_is_data() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    npy::write_array(&path, &[3, 2, 2], &(0..12).map(f64::from).collect::<Vec<_>>()).unwrap();
    let piped = |args: &[&str], bytes: &[u8]| {
        let mut command = command(folder.path(), args);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let npy = std::fs::read(&path).unwrap();
    let (code, said, _) = piped(&["info", "-"], &npy);
    assert_eq!((code, said.lines().next()), (0, Some("standard input (.npy)")), "{said}");
    assert!(said.contains("3 of 2×2, stored as f64"), "{said}");
    let (code, said, noted) = piped(&["info", "-", "--shape", "2x2"], b"a,b,c,d\n1,2,3,4\n5,6,7,8\n");
    assert_eq!((code, said.lines().next()), (0, Some("standard input (CSV)")), "{said}");
    assert_eq!(
        noted,
        "note: standard input: the first line (`a,b,c,d`) is taken for the names of the columns\n"
    );
    let (code, _, error) = piped(&["info", "-", "--memory", "50"], &npy);
    assert_eq!(code, 2);
    assert!(
        error.starts_with("error: standard input: its samples are unpacked into memory and take 96 bytes"),
        "{error}"
    );
    let (code, _, error) = piped(&["info", "-"], b"");
    assert_eq!(code, 2);
    assert!(error.starts_with("error: standard input: there are no numbers in it"), "{error}");
}
