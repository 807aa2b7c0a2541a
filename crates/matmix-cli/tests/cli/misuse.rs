//! Bad input: exit code 2, one clear message with a hint, nothing written.

use std::path::Path;

use matmix::picture::{Grid, write_folder};
use zip::CompressionMethod;

use crate::{fit, made, names, ok, run, snapshot};

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
    write_folder(folder.join("ragged"), &two, None, &Grid::default()).unwrap();
    let large = Grid { enlarge: 2, ..Grid::default() };
    large.draw_samples(&digits, &[2]).unwrap().write_png(folder.join("ragged/large.png")).unwrap();
    write_folder(folder.join("cut"), &two, None, &Grid::default()).unwrap();
    let png = std::fs::read(folder.join("cut/001.png")).unwrap();
    std::fs::write(folder.join("cut/001.png"), &png[..png.len() / 2]).unwrap();
    std::fs::create_dir(folder.join("empty")).unwrap();
}

/// Runs what must fail, and looks at everything.
pub(crate) fn refused(folder: &Path, name: &str, args: &[&str]) -> String {
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
    said
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
        ("components_in_words", &["-k", "two"]),
        ("negative_components", &["-k", "-3"]),
        ("seed_too_large", &["--seed", "18446744073709551616"]),
        ("tol_in_words", &["--tol", "small"]),
        ("half_an_iteration", &["--max-iter", "1.5"]),
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
        ("threads_in_words", &["--threads", "all"]),
        ("take_on_a_cluster", &["--dask", "tcp://127.0.0.1:1", "--take", "0:5"]),
    ] {
        refused(folder.path(), name, &[&["fit", "demo:mnist", "-o", "m.mm"], more].concat());
    }
    refused(folder.path(), "holdout_in_words", &["compare", "demo:mnist", "--holdout", "half"]);
    refused(folder.path(), "holdout", &["compare", "demo:mnist", "--holdout", "1.5"]);
    refused(folder.path(), "no_faces", &["paper", "yale"]);
}

/// What a shell makes of `parts/*.npy` without quotes.
#[test]
fn a_pattern_that_the_shell_has_replaced() {
    let folder = tempfile::tempdir().unwrap();
    broken(folder.path());
    let args = ["fit", "floats.npy", "whole.npy", "-o", "m.mm"];
    refused(folder.path(), "unquoted_pattern", &args);
    refused(folder.path(), "unquoted_pattern_info", &["info", "floats.npy", "whole.npy"]);
    refused(folder.path(), "no_such_argument", &["info", "floats.npy", "nowhere.npy"]);
}

/// `matmix info` does not advise `matmix info`.
#[test]
fn what_info_cannot_read() {
    let folder = tempfile::tempdir().unwrap();
    broken(folder.path());
    for (name, args) in [
        ("info_words", &["info", "words.txt"][..]),
        ("info_missing", &["info", "nowhere.npy"]),
        ("info_ragged", &["info", "ragged"]),
        ("info_colour", &["info", "whole.npy", "--colour"]),
        ("info_shape", &["info", "whole.npy", "--shape", "5x5"]),
    ] {
        let said = refused(folder.path(), name, args);
        assert!(!said.contains("matmix info"), "{name}: {said}");
    }
}

#[test]
fn more_samples_than_memory_holds() {
    let folder = tempfile::tempdir().unwrap();
    fit(folder.path(), "m.mm", &[]);
    let more = "100000000000";
    refused(
        folder.path(),
        "sample_budget",
        &["sample", "m.mm", "-n", "1000", "--memory", "2MB", "-o", "s.npy"],
    );
    // How much is free differs from machine to machine.
    for count in ["18446744073709551615", more] {
        let output = run(folder.path(), &["sample", "m.mm", "-n", count, "-o", "s.npy"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.starts_with(&format!("error: {count} samples of 28×28 take ")), "{said}");
        assert!(said.contains("\nhint: draw fewer samples with -n"), "{said}");
    }
    ok(folder.path(), &["sample", "m.mm", "-n", "9", "--memory", "2MB", "-o", "s.npy"]);
}

/// Names and labels come from files, and must not steer the terminal or a spreadsheet.
#[test]
fn what_stands_in_files_is_only_shown() {
    let folder = tempfile::tempdir().unwrap();
    broken(folder.path());
    std::fs::write(folder.path().join("y.txt"), "\u{1b}[2J\n=1+1\n@x\n-x\n-1\nplain\n").unwrap();
    let evil = "\u{1b}]0;evil\u{7}.npy";
    std::fs::copy(folder.path().join("whole.npy"), folder.path().join(evil)).unwrap();
    snapshot!("info_labels", folder.path(), &["info", "whole.npy", "--labels", "y.txt"]);
    for args in [
        &["info", evil][..],
        &["info", "whole.npy", "--labels", "y.txt", "--json"],
        &["fit", evil, "--shape", "5x5", "-o", "m.mm"],
        &["fit", "\u{1b}[2J.npy", "-o", "m.mm"],
        &["fit", "whole.npy", evil, "-o", "m.mm"],
        &["fit", "whole.npy", "-k", "\u{1b}[2J", "-o", "m.mm"],
        &["score", evil, "whole.npy"],
        &["completions", "\u{1b}[2J"],
    ] {
        let output = run(folder.path(), args);
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(
            !said.is_empty() && !said.contains(|c: char| c.is_control() && c != '\n'),
            "{args:?}: {said}"
        );
    }
    let fit = ["fit", "whole.npy", "-k", "1", "-r", "1", "-o", "m.mm", "-q"];
    ok(folder.path(), &fit);
    let output = ok(folder.path(), &["assign", "m.mm", "whole.npy", "--labels", "y.txt"]);
    let csv = String::from_utf8(output.stdout).unwrap();
    let labels: Vec<&str> = csv.lines().skip(1).map(|line| line.split(',').nth(1).unwrap()).collect();
    assert_eq!(labels, ["\u{1b}[2J", "'=1+1", "'@x", "'-x", "-1", "plain"]);
    let output = ok(folder.path(), &["assign", "m.mm", "whole.npy", "--labels", "y.txt", "--json"]);
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let labels: Vec<&str> =
        all["samples"].as_array().unwrap().iter().map(|s| s["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["\u{1b}[2J", "=1+1", "@x", "-x", "-1", "plain"]);
}

/// What lies beside the data is not run when Python is, whether or not it has what --dask needs.
#[test]
fn a_python_module_beside_the_data_is_not_imported() {
    let folder = tempfile::tempdir().unwrap();
    broken(folder.path());
    for module in ["json", "dask", "numpy", "distributed", "matmix", "warnings", "sitecustomize"] {
        let hostile = format!("open('{module}-was-run', 'w')\n");
        std::fs::write(folder.path().join(format!("{module}.py")), hostile).unwrap();
    }
    let before = names(folder.path());
    run(folder.path(), &["fit", "whole.npy", "--dask", "tcp://127.0.0.1:1", "-o", "m.mm"]);
    assert_eq!(names(folder.path()), before);
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
    let kept = ["fit", "whole.npy", "-k", "1", "-r", "1", "--checkpoint", "state", "-o", "n.mm"];
    ok(path, &[&kept[..], &["--max-iter", "1", "-q"]].concat());
    std::fs::remove_file(path.join("n.mm")).unwrap();
    refused(path, "resume_with_other_options", &[&kept[..], &["--seed", "5", "--resume"]].concat());
}
