//! What happens to files that are there already: nothing is replaced by accident, and nothing stays behind.

use std::path::Path;

use matmix::data::npy;

use crate::bits::bytes;
use crate::misuse::refused;
use crate::{command, fit, names, ok, output};

/// A small set with labels, a model of it and a folder of images.
fn prepared() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let digits = matmix::data::digits().samples;
    let few = digits.clone().select(&(200..206).collect::<Vec<_>>()).unwrap();
    npy::write_array(folder.path().join("x.npy"), &[6, 28, 28], &few.to_f64(0..6).unwrap()).unwrap();
    std::fs::write(folder.path().join("y.txt"), "a\nb\nc\na\nb\nc\n").unwrap();
    matmix::picture::write_folder(folder.path().join("faces"), &few, None, &Default::default()).unwrap();
    fit(folder.path(), "m.mm", &[]);
    folder
}

const FIT: &[&str] = &["fit", "x.npy", "-k", "1", "-r", "2", "--max-iter", "2"];

#[test]
fn nothing_is_replaced_by_something_else() {
    let folder = prepared();
    let path = folder.path();
    std::fs::hard_link(path.join("x.npy"), path.join("same.npy")).unwrap();
    std::fs::write(path.join("notes.csv"), "do not lose this\n").unwrap();
    let before: Vec<_> =
        ["x.npy", "y.txt", "m.mm", "notes.csv", "faces/000.png"].map(|f| bytes(path, f)).into();
    let seen = ["m.mm", "x.npy"];
    let with = |command: &'static str, more: &[&'static str]| [&[command], &seen[..], more].concat();
    for (name, args) in [
        ("checkpoint_is_data", [FIT, &["-o", "n.mm", "--checkpoint", "x.npy"]].concat()),
        ("checkpoint_is_model", [FIT, &["-o", "n.mm", "--checkpoint", "m.mm"]].concat()),
        ("checkpoint_is_output", [FIT, &["-o", "n.mm", "--checkpoint", "n.mm"]].concat()),
        ("model_over_data", [FIT, &["-o", "x.npy"]].concat()),
        ("model_over_labels", [FIT, &["--labels", "y.txt", "-o", "y.txt"]].concat()),
        ("cores_over_data", with("transform", &["-o", "x.npy"])),
        ("cores_over_data_by_another_name", with("transform", &["-o", "same.npy"])),
        ("cores_over_model", with("transform", &["-o", "m.mm"])),
        ("scores_over_model", with("score", &["-o", "m.mm"])),
        ("table_over_notes", with("assign", &["-o", "notes.csv"])),
        ("page_over_notes", with("report", &["-o", "notes.csv"])),
        ("picture_in_the_data", vec!["montage", "faces", "-o", "faces/000.png"]),
        ("pictures_over_the_data", vec!["reconstruct", "m.mm", "faces", "-o", "faces"]),
        ("model_to_stdout_with_json", [FIT, &["-o", "-", "--json"]].concat()),
    ] {
        refused(path, name, &args);
    }
    let after: Vec<_> =
        ["x.npy", "y.txt", "m.mm", "notes.csv", "faces/000.png"].map(|f| bytes(path, f)).into();
    assert!(before == after);
    // Whoever insists.
    ok(path, &with("assign", &["-o", "notes.csv", "--force", "-q"]));
    assert!(bytes(path, "notes.csv").starts_with(b"sample,component"));
    ok(path, &[FIT, &["-o", "y.txt", "--checkpoint", "same.npy", "--force", "-q"]].concat());
    ok(path, &["info", "y.txt"]);
}

#[test]
fn what_is_of_the_same_kind_is_replaced() {
    let folder = prepared();
    let path = folder.path();
    std::fs::write(path.join("empty.mm"), "").unwrap();
    for _ in 0..2 {
        ok(path, &[FIT, &["-o", "m.mm", "--checkpoint", "state", "-q"]].concat());
        ok(path, &[FIT, &["-o", "empty.mm", "--checkpoint", "state", "--resume", "-q"]].concat());
        for args in [
            &["transform", "m.mm", "x.npy", "-o", "a.npy"][..],
            &["score", "m.mm", "x.npy", "-o", "a.npy"],
            &["reconstruct", "m.mm", "x.npy", "-o", "a.npy"],
            &["reconstruct", "m.mm", "x.npy", "-o", "rebuilt"],
            &["sample", "m.mm", "-o", "a.npy"],
            &["sample", "m.mm", "-o", "a.png"],
            &["montage", "faces", "-o", "a.png"],
            &["assign", "m.mm", "x.npy", "-o", "a.csv"],
            &["assign", "m.mm", "x.npy", "-o", "a.json", "--json"],
            &["report", "m.mm", "x.npy", "-o", "a.html"],
        ] {
            ok(path, &[args, &["-q"]].concat());
        }
    }
}

/// What `-` gives on stdout is what a file would hold, and nothing else.
#[test]
fn a_dash_is_stdout() {
    let folder = prepared();
    let path = folder.path();
    for args in [
        &["fit", "x.npy", "-k", "1", "-r", "2"][..],
        &["transform", "m.mm", "x.npy"],
        &["reconstruct", "m.mm", "x.npy"],
        &["score", "m.mm", "x.npy", "--worst", "2"],
        &["assign", "m.mm", "x.npy"],
        &["sample", "m.mm", "-n", "3"],
        &["montage", "x.npy"],
        &["report", "m.mm", "x.npy"],
        &["recognize", "m.mm", "--gallery", "faces", "--gallery-labels", "y.txt", "--probe", "x.npy"],
        &[
            "recognize",
            "m.mm",
            "--gallery",
            "faces",
            "--gallery-labels",
            "y.txt",
            "--probe",
            "x.npy",
            "--probe-labels",
            "y.txt",
        ],
    ] {
        let name = match args[0] {
            "fit" => "out.mm",
            "montage" => "out.png",
            "report" => "out.html",
            "assign" | "recognize" => "out.csv",
            _ => "out.npy",
        };
        ok(path, &[args, &["-o", name]].concat());
        let output = ok(path, &[args, &["-o", "-"]].concat());
        assert!(output.stdout == bytes(path, name), "{args:?}");
        assert!(!path.join("-").exists());
    }
}

#[cfg(unix)]
#[test]
fn pipes_and_links_stay_what_they_are() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let folder = prepared();
    let path = folder.path();
    ok(path, &["transform", "m.mm", "x.npy", "-o", "plain.npy"]);
    assert!(std::process::Command::new("mkfifo").arg(path.join("pipe.npy")).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = path.join("pipe.npy");
        move || std::fs::read(pipe).unwrap()
    });
    ok(path, &["transform", "m.mm", "x.npy", "-o", "pipe.npy"]);
    assert!(reader.join().unwrap() == bytes(path, "plain.npy"));
    std::fs::create_dir(path.join("elsewhere")).unwrap();
    symlink("elsewhere/f.npy", path.join("link.npy")).unwrap();
    for _ in 0..2 {
        ok(path, &["transform", "m.mm", "x.npy", "-o", "link.npy"]);
        assert!(path.join("link.npy").symlink_metadata().unwrap().is_symlink());
        assert!(bytes(path, "elsewhere/f.npy") == bytes(path, "plain.npy"));
        let mode = || path.join("elsewhere/f.npy").metadata().unwrap().mode() & 0o777;
        std::fs::set_permissions(path.join("elsewhere/f.npy"), PermissionsExt::from_mode(0o600)).unwrap();
        ok(path, &["transform", "m.mm", "x.npy", "-o", "link.npy"]);
        assert_eq!(mode(), 0o600);
    }
    // A link to the data is the data.
    symlink("x.npy", path.join("to-data.npy")).unwrap();
    refused(path, "link_to_the_data", &["transform", "m.mm", "x.npy", "-o", "to-data.npy"]);
}

/// A limit on the size of files stands for a disk that is full.
#[cfg(unix)]
#[test]
fn a_full_disk_is_an_error_and_leaves_nothing_behind() {
    let folder = prepared();
    let path = folder.path();
    std::fs::write(path.join("old.npy"), "\u{93}NUMPY").unwrap();
    let before = names(path);
    let limited = |args: &[&str]| {
        let program = command(path, args);
        let mut limited = std::process::Command::new("sh");
        limited
            .args(["-c", "ulimit -f 16; exec \"$@\"", "sh"])
            .arg(program.get_program())
            .args(program.get_args());
        output(limited.current_dir(path))
    };
    for args in [
        &["sample", "m.mm", "-n", "1000", "-o", "s.npy"][..],
        &["reconstruct", "m.mm", "demo:mnist", "-o", "s.npy"],
        &["fit", "demo:mnist", "-k", "3", "-r", "4x4", "-o", "n.mm", "--max-iter", "2"],
        &[
            "fit",
            "x.npy",
            "-k",
            "2",
            "-r",
            "4x4",
            "-o",
            "n.mm",
            "--checkpoint",
            "state",
            "--checkpoint-every",
            "1",
        ],
    ] {
        let output = limited(args);
        let said = String::from_utf8_lossy(&output.stderr).to_string();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains("cannot write: File too large"), "{args:?}: {said}");
        assert!(said.contains("hint: make room there"), "{args:?}: {said}");
        assert_eq!(names(path), before, "{args:?}");
    }
    assert_eq!(std::fs::read(Path::new(&path.join("old.npy"))).unwrap(), "\u{93}NUMPY".as_bytes());
}
