//! Bad input: exit code 2, one clear message with a hint, nothing written.

use std::path::Path;

use matmix::picture::{Grid, write_folder};
use zip::CompressionMethod;

use crate::{fit, made, snapshot};

/// Files of every broken kind.
fn broken(folder: &Path) {
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
    let npy = made::npy_bytes("|u1", "6, 4, 4", &[7; 96]);
    write("short.npy", &npy[..npy.len() - 10]);
    write("texts.npy", &made::npy_bytes("<U3", "6, ", &[0; 72]));
    write("whole.npy", &npy);
    write("floats.npy", &made::npy_bytes("<f4", "6, 4, 4", &[0; 384]));
    let npz = made::npz(CompressionMethod::Deflated, &[("x.npy", npy)]);
    write("whole.npz", &npz);
    write("short.npz", &npz[..npz.len() / 2]);
    let idx = made::idx(8, &[6, 4, 4], &[7; 96]);
    write("short-ubyte", &idx[..50]);
    write("short-ubyte.gz", &made::gzip(&idx)[..20]);
    let mat = made::MatFile::new(false, false).variable("fea", 9, &[6, 16], 2, &[7; 96]).bytes;
    write("short.mat", &mat[..mat.len() - 40]);
    let flat = made::MatFile::new(false, true).variable("fea", 9, &[6, 15], 2, &[7; 90]).bytes;
    write("flat.mat", &flat);
    write("cell.csv", b"1,2\n3,four\n");
    write("x.h5", b"\x89HDF\r\n\x1a\n");
    write("words.txt", b"these are words\n");
    write("two-labels.txt", b"a\nb\n");
    let digits = matmix::data::digits().samples;
    let two = digits.clone().select(&[0, 1]).unwrap();
    write_folder(folder.join("ragged"), &two, &Grid::default()).unwrap();
    let large = Grid { enlarge: 2, ..Grid::default() };
    large.draw_samples(&digits, &[2]).unwrap().write_png(folder.join("ragged/large.png")).unwrap();
    write_folder(folder.join("cut"), &two, &Grid::default()).unwrap();
    let png = std::fs::read(folder.join("cut/001.png")).unwrap();
    std::fs::write(folder.join("cut/001.png"), &png[..png.len() / 2]).unwrap();
    std::fs::create_dir(folder.join("empty")).unwrap();
}

fn names(folder: &Path) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    names
}

/// Runs what must fail, and looks at everything.
fn refused(folder: &Path, name: &str, args: &[&str]) {
    let before = names(folder);
    let output = snapshot!(format!("misuse_{name}"), folder, args);
    assert_eq!(output.status.code(), Some(2), "{name}");
    assert!(output.stdout.is_empty(), "{name}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: "), "{name}: {said}");
    assert!(
        said.contains("\nhint: ") || said.contains("For more information, try '--help'"),
        "{name}: {said}"
    );
    assert_eq!(names(folder), before, "{name} left something behind");
}

#[test]
fn data_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    broken(folder.path());
    for (name, data) in [
        ("missing_file", "nowhere.npy"),
        ("wrong_type", "words.txt"),
        ("texts_npy", "texts.npy"),
        ("truncated_npy", "short.npy"),
        ("truncated_npz", "short.npz"),
        ("truncated_idx", "short-ubyte"),
        ("truncated_gzip", "short-ubyte.gz"),
        ("truncated_mat", "short.mat"),
        ("truncated_png", "cut"),
        ("ragged_images", "ragged"),
        ("empty_folder", "empty"),
        ("unknown_demo", "demo:faces"),
        ("shape_needed", "flat.mat"),
        ("no_such_array", "flat.mat:faces"),
        ("csv_cell", "cell.csv"),
        ("not_read", "x.h5"),
        ("missing_array", "short.npy:x"),
    ] {
        refused(folder.path(), name, &["fit", data, "-k", "1", "-r", "2x2", "-o", "m.mm"]);
    }
    refused(folder.path(), "label_count", &["fit", "whole.npy", "--labels", "two-labels.txt", "-o", "m.mm"]);
    refused(folder.path(), "colour_of_npy", &["fit", "whole.npy", "--colour", "-o", "m.mm"]);
    refused(folder.path(), "exclude_without_labels", &["fit", "whole.npy", "--exclude", "3", "-o", "m.mm"]);
    refused(folder.path(), "exclude_unknown", &["fit", "demo:mnist", "--exclude", "x", "-o", "m.mm"]);
    refused(folder.path(), "wrong_shape", &["fit", "whole.npy", "--shape", "5x5", "-o", "m.mm"]);
    refused(folder.path(), "no_such_pattern", &["fit", "parts-*.npy", "-o", "m.mm"]);
    refused(folder.path(), "mixed_files", &["fit", "whole.npy,floats.npy", "-o", "m.mm"]);
    refused(
        folder.path(),
        "memory_too_small",
        &["fit", "whole.npy", "--memory", "90", "-k", "1", "-o", "m.mm"],
    );
    refused(folder.path(), "memory_of_npz", &["fit", "whole.npz", "--memory", "90", "-k", "1", "-o", "m.mm"]);
    refused(folder.path(), "take_beyond", &["fit", "whole.npy", "--take", "9:", "-o", "m.mm"]);
}

#[test]
fn options_out_of_range() {
    let folder = tempfile::tempdir().unwrap();
    for (name, more) in [
        ("rank_too_large", &["-k", "2", "-r", "40x4"][..]),
        ("rank_not_a_rank", &["-r", "4y4"]),
        ("rank_count", &["-r", "4x4x4"]),
        ("zero_components", &["-k", "0"]),
        ("too_many_components", &["-k", "11", "--limit", "10"]),
        ("unknown_preset", &["--model", "mixb2dpca"]),
        ("unknown_algorithm", &["--algorithm", "fast"]),
        ("negative_tol", &["--tol=-1"]),
        ("no_such_init", &["--init", "warm"]),
        ("zero_scale", &["--scale", "0"]),
        ("memory_without_a_number", &["--memory", "lots"]),
        ("paper_of_vectors", &["--shape", "784", "-k", "2", "--algorithm", "paper"]),
        ("resume_without_checkpoint", &["--resume"]),
        ("zero_threads", &["--threads", "0"]),
        ("take_on_a_cluster", &["--dask", "tcp://127.0.0.1:1", "--take", "0:5"]),
        ("precision_on_a_cluster", &["--dask", "tcp://127.0.0.1:1", "--precision", "double"]),
    ] {
        refused(folder.path(), name, &[&["fit", "demo:mnist", "-o", "m.mm"], more].concat());
    }
    refused(folder.path(), "holdout", &["compare", "demo:mnist", "--holdout", "1.5"]);
    refused(folder.path(), "no_faces", &["paper", "yale"]);
}

#[test]
fn outputs_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::create_dir(path.join("there")).unwrap();
    refused(path, "output_folder_missing", &["fit", "demo:mnist", "-k", "2", "-o", "nowhere/m.mm"]);
    refused(path, "output_is_a_folder", &["fit", "demo:mnist", "-k", "2", "-o", "there"]);
    fit(path, "m.mm", &[]);
    refused(path, "output_kind", &["sample", "m.mm", "-o", "drawn.jpg"]);
    refused(path, "reconstruct_kind", &["reconstruct", "m.mm", "demo:mnist", "-o", "x.npz"]);
    refused(path, "montage_kind", &["montage", "demo:mnist", "-o", "grid.gif"]);
}

#[test]
fn models_that_do_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    broken(path);
    fit(path, "m.mm", &[]);
    fit(path, "g.mm", &["--model", "glram"]);
    refused(path, "other_shape", &["transform", "m.mm", "whole.npy", "-o", "f.npy"]);
    refused(path, "not_a_model", &["score", "words.txt", "demo:mnist"]);
    refused(path, "data_as_model", &["score", "whole.npy", "demo:mnist"]);
    refused(path, "no_such_model", &["score", "nowhere.mm", "demo:mnist"]);
    refused(path, "no_likelihood", &["score", "g.mm", "demo:mnist"]);
    refused(
        path,
        "gallery_without_labels",
        &["recognize", "m.mm", "--gallery", "whole.npy", "--probe", "demo:mnist"],
    );
    let bytes = std::fs::read(path.join("m.mm")).unwrap();
    std::fs::write(path.join("short.mm"), &bytes[..bytes.len() / 2]).unwrap();
    refused(path, "truncated_model", &["info", "short.mm"]);
    refused(
        path,
        "resume_of_another_fit",
        &["fit", "demo:mnist", "-k", "2", "--checkpoint", "m.mm", "--resume", "-o", "n.mm"],
    );
}
