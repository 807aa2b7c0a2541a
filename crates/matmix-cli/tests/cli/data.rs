//! What is said about data before anything is done with it, and data that comes through a pipe.

use std::io::Write;
use std::ops::ControlFlow;
use std::process::Stdio;

use matmix::data::{OpenOptions, npy};
use matmix::{FitOptions, Input, Model, ModelFile, Preset};
use zip::CompressionMethod;

use crate::{command, made, ok, pictures, snapshot};

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
fn missing_cells_are_counted_whether_asked_for_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut values = vec![1.0; 12];
    (values[1], values[11]) = (f64::NAN, f64::NAN);
    npy::write_array(folder.path().join("some.npy"), &[3, 2, 2], &values).unwrap();
    npy::write_array(folder.path().join("none.npy"), &[3, 2, 2], &[f64::NAN; 12]).unwrap();
    let told = |args: &[&str]| {
        let args = [&["info"], args].concat();
        String::from_utf8(ok(folder.path(), &args).stdout).unwrap()
    };
    let plain = told(&["some.npy"]);
    let line = "  missing  2 of 12 cells (16.7 %): NaN; --missing nan fits a model without them\n";
    assert!(plain.contains(line), "{plain}");
    assert!(told(&["some.npy", "--missing", "nan"]).contains("  missing  2 of 12 cells (16.7 %)\n"));
    let none = told(&["none.npy"]);
    assert!(none.contains("  values   none\n  missing  12 of 12 cells (100.0 %): "), "{none}");
    let json: serde_json::Value = serde_json::from_str(&told(&["some.npy", "--json"])).unwrap();
    assert_eq!(json["n_missing"], 2);
}

#[test]
fn labels_of_another_number_of_samples_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let (x, y) = (made::npy_bytes("|u1", "4, 2, 2", &[1; 16]), made::npy_bytes("|u1", "3,", &[0, 1, 0]));
    let arrays = [("x.npy", x), ("labels.npy", y)];
    std::fs::write(folder.path().join("x.npz"), made::npz(CompressionMethod::Deflated, &arrays)).unwrap();
    let output = ok(folder.path(), &["info", "x.npz"]);
    let told = String::from_utf8(output.stderr).unwrap();
    let note = "its array `labels` has 3 labels for 4 samples and was not taken (--labels gives others)";
    assert_eq!(told, format!("note: x.npz:x: {note}\n"));
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

/// What `score` finds, as a number.
fn mean_score(folder: &std::path::Path, args: &[&str]) -> f64 {
    let output = ok(folder, &[&["score"], args, &["--json", "-q"]].concat());
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    told["mean_log_likelihood"].as_f64().unwrap()
}

/// A folder of twelve colour images of 6 rows and 4 columns.
fn images_in(folder: &std::path::Path) {
    std::fs::create_dir(folder).unwrap();
    for i in 0..12 {
        let rgb: Vec<u8> = (0..6 * 4 * 3).map(|j| ((i * i * 31 + j * j * 7) % 251) as u8).collect();
        std::fs::write(folder.join(format!("{i:02}.png")), pictures::png(6, 4, 2, 8, &[], &rgb)).unwrap();
    }
}

/// The factor, the size of images, their colours and the rows of a model are asked for once, when it is fitted; the library
/// prepares new data the same way.
#[test]
fn a_model_remembers_what_it_was_fitted_to() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    images_in(&at("images"));
    let fit: [&[&str]; 4] = [
        &["--scale", "1/255"],
        &["--scale", "1/255", "--resize", "3x5"],
        &["--colour", "--resize", "4x4", "--model", "mixb2dppca"],
        &["--scale", "1/255", "--model", "mp2dpca"],
    ];
    for options in fit {
        let common = ["fit", "images", "-k", "1", "-r", "1", "-o", "m.mm", "-q", "--force"];
        ok(folder.path(), &[&common[..], options].concat());
        let reading: Vec<&str> = match options.iter().position(|o| *o == "--model") {
            Some(at) => options[..at].to_vec(),
            None => options.to_vec(),
        };
        let plainly = mean_score(folder.path(), &["m.mm", "images"]);
        assert_eq!(plainly, mean_score(folder.path(), &[&["m.mm", "images"], &reading[..]].concat()));
        // In the library, from the same file.
        let file = ModelFile::load(at("m.mm")).unwrap();
        let images = file.input.as_ref().unwrap().images(&Default::default());
        let data = matmix::data::open(at("images").to_str().unwrap(), &images).unwrap();
        let view = file.prepare(&data.samples, None).unwrap();
        let Model::Mixture(model) = &file.model else { panic!("it has a noise model") };
        let scores = model.score_samples(&view).unwrap();
        let mean = scores.iter().sum::<f64>() / data.samples.len() as f64;
        assert!((mean - plainly).abs() < 1e-9 * plainly.abs(), "{options:?}: {mean} {plainly}");
        assert!(mean.abs() < 1000.0, "{options:?}: {mean}");
        // What was read is what is written.
        file.save(at("again.mm")).unwrap();
        assert_eq!(std::fs::read(at("m.mm")).unwrap(), std::fs::read(at("again.mm")).unwrap());
    }
    // Values between 0 and 1 for a model of bytes over 255, and bytes for a model of values between 0 and 1.
    ok(folder.path(), &["fit", "images", "--scale", "1/255", "-k", "1", "-r", "1", "-o", "b.mm", "-q"]);
    let fractions: Vec<f64> = (0..240).map(|i| f64::from(i % 17) / 17.0).collect();
    npy::write_array(at("x.npy"), &[10, 6, 4], &fractions).unwrap();
    ok(folder.path(), &["fit", "x.npy", "-k", "1", "-r", "1", "-o", "f.mm", "-q"]);
    snapshot!("fractions_for_bytes", folder.path(), &["score", "b.mm", "x.npy"]);
    snapshot!("bytes_for_fractions", folder.path(), &["score", "f.mm", "images"]);
    ok(folder.path(), &["score", "b.mm", "x.npy", "--scale", "1"]);
}

/// One set is drawn above what several models make of it: they have to take it the same way.
#[test]
fn models_that_prepare_data_in_different_ways_are_not_drawn_together() {
    let folder = tempfile::tempdir().unwrap();
    images_in(&folder.path().join("images"));
    let fit = |name: &str, more: &[&str]| {
        let common = ["fit", "images", "-k", "1", "-r", "1", "--max-iter", "3", "-q", "-o", name];
        ok(folder.path(), &[&common[..], more].concat());
    };
    fit("scaled.mm", &["--scale", "1/255"]);
    fit("raw.mm", &[]);
    fit("small.mm", &["--resize", "3x2"]);
    fit("nan.mm", &["--missing", "nan"]);
    let draw =
        |one, other| ["montage", "images", "--model", one, "--model", other, "-o", "grid.png", "--force"];
    snapshot!("montage_of_two_factors", folder.path(), &draw("scaled.mm", "raw.mm"));
    snapshot!("montage_of_two_sizes", folder.path(), &draw("raw.mm", "small.mm"));
    assert!(!folder.path().join("grid.png").exists());
    ok(folder.path(), &draw("raw.mm", "nan.mm"));
    // Whoever says how is heard.
    ok(folder.path(), &[&draw("scaled.mm", "raw.mm")[..], &["--scale", "1/255"]].concat());
}

/// The other direction: what the library fitted and wrote, asked in the shell without another word.
#[test]
fn a_model_that_the_library_fitted_is_asked_in_the_shell() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    images_in(&at("images"));
    let scale = Some(1.0 / 255.0);
    let cases = [
        ("mixb2dppca", OpenOptions { scale, ..Default::default() }),
        ("mixb2dppca", OpenOptions { scale, resize: Some((3, 5)), ..Default::default() }),
        ("mixb2dppca", OpenOptions { colour: true, resize: Some((4, 4)), ..Default::default() }),
        ("mp2dpca", OpenOptions { scale, resize: Some((5, 3)), ..Default::default() }),
    ];
    for (name, reading) in cases {
        let data = matmix::data::open(at("images").to_str().unwrap(), &reading).unwrap();
        let preset: Preset = name.parse().unwrap();
        let options = FitOptions { components: 1, rank: vec![1], ..Default::default() };
        let fitted = preset.fit(&data.samples, &options, &mut |_| ControlFlow::Continue(())).unwrap();
        let Model::Mixture(model) = &fitted.model else { panic!("{name} has a noise model") };
        let scores = model.score_samples(&preset.view(&data.samples).unwrap()).unwrap();
        let input = Input::of(data.samples.shape(), &data.samples).unwrap().with_images(&reading);
        let file = ModelFile { name: Some(name.into()), input: Some(input), ..ModelFile::new(fitted.model) };
        file.save(at("m.mm")).unwrap();
        let there = mean_score(folder.path(), &["m.mm", "images"]);
        let mean = scores.iter().sum::<f64>() / data.samples.len() as f64;
        assert!((mean - there).abs() < 1e-9 * mean.abs(), "{name}, {reading:?}: {mean} here, {there} there");
        assert!(mean.abs() < 1000.0, "{name}: {mean}");
    }
}
