//! Outputs: every command follows one rule for names, devices, pipes and folders of pictures.

use std::path::Path;

use matmix::data::{OpenOptions, npy, open};

use crate::bits::bytes;
use crate::{names, ok, pictures, run};

/// Values of a picture of 16×16, of which each seed has others.
fn noise(seed: usize, low: usize, width: usize) -> Vec<usize> {
    (0..256).map(|i| low + (i * 7919 + seed * 104_729 + i * i * 31) % 1009 % width).collect()
}

fn save_grey(path: &Path, seed: usize, low: usize) {
    let pixels: Vec<u8> = noise(seed, low, 60).iter().map(|&x| x as u8).collect();
    pictures::save(path, 16, 16, &pixels);
}

/// A grey PNG of 16 bits around 30000.
fn deep(seed: usize) -> Vec<u8> {
    let body: Vec<u8> = noise(seed, 29_800, 400).iter().flat_map(|&x| (x as u16).to_be_bytes()).collect();
    pictures::png(16, 16, 0, 16, &[], &body)
}

fn values(path: &Path) -> Vec<f64> {
    let data = open(path.parent().unwrap().to_str().unwrap(), &OpenOptions::default()).unwrap();
    let n = data.names.unwrap().iter().position(|name| path.ends_with(name)).unwrap();
    data.samples.to_f64(n..n + 1).unwrap()
}

fn mean(path: &Path) -> f64 {
    values(path).iter().sum::<f64>() / 256.0
}

/// The commands that write a folder of pictures.
const TO_FOLDERS: &[&[&str]] = &[
    &["denoise", "in", "--sigma", "3", "-k", "1"],
    &["reconstruct", "m.mm", "in"],
    &["impute", "m.mm", "in"],
];

#[test]
fn every_picture_has_a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let shades = [("a.bmp", 20), ("a.png", 80), ("a.pgm", 130), ("a.bmp.png", 190), ("b.pgm", 50)];
    for (i, (name, low)) in shades.iter().enumerate() {
        save_grey(&path.join("in").join(name), i, *low);
    }
    ok(path, &["fit", "in", "-k", "1", "-r", "2", "-o", "m.mm", "-q"]);
    for (i, args) in TO_FOLDERS.iter().enumerate() {
        let out = format!("out{i}");
        ok(path, &[args, &["-o", &out, "-q"][..]].concat());
        assert_eq!(names(&path.join(&out)), ["a.bmp-2.png", "a.bmp.png", "a.pgm.png", "a.png", "b.png"]);
        let came =
            [("a.bmp-2.png", 20), ("a.png", 80), ("a.pgm.png", 130), ("a.bmp.png", 190), ("b.png", 50)];
        for (name, low) in came {
            let mean = mean(&path.join(&out).join(name));
            assert!(
                (mean - f64::from(low) - 30.0).abs() < 8.0,
                "{args:?}: {name} is of another picture: {mean}"
            );
        }
    }
}

#[cfg(unix)]
#[test]
fn files_in_an_output_folder_are_replaced_only_by_their_kind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    (0..2).for_each(|i| save_grey(&path.join(format!("in/{i}.png")), i, 50));
    ok(path, &["fit", "in", "-k", "1", "-r", "2", "-o", "m.mm", "-q"]);
    std::fs::create_dir(path.join("out")).unwrap();
    for (number, prepare) in [
        ("0", &(|| std::fs::write(path.join("out/0.png"), "precious").unwrap()) as &dyn Fn()),
        ("1", &|| std::os::unix::fs::symlink("../notes.txt", path.join("out/1.png")).unwrap()),
    ] {
        std::fs::write(path.join("notes.txt"), "precious").unwrap();
        prepare();
        for args in TO_FOLDERS {
            let output = run(path, &[args, &["-o", "out", "-q"][..]].concat());
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
            let words = format!("out/{number}.png: it holds text, and would be replaced by a PNG picture");
            assert!(said.contains(&words) && said.contains("--force"), "{said}");
            assert_eq!(
                names(&path.join("out")),
                [format!("{number}.png").as_str()],
                "nothing else is written"
            );
            assert_eq!(bytes(path, &format!("out/{number}.png")), b"precious");
        }
        ok(path, &[TO_FOLDERS[0], &["-o", "out", "-q", "--force"][..]].concat());
        assert!(bytes(path, &format!("out/{number}.png")).starts_with(b"\x89PNG"));
        // Pictures may be replaced by pictures.
        ok(path, &[TO_FOLDERS[1], &["-o", "out", "-q"][..]].concat());
        std::fs::remove_dir_all(path.join("out")).unwrap();
        std::fs::create_dir(path.join("out")).unwrap();
    }
}

/// A model of small samples, and the samples.
fn prepared(path: &Path) {
    let x: Vec<f64> = (0..24 * 20).map(|i| f64::from((i * i + 7 * i) % 31)).collect();
    npy::write_array(path.join("x.npy"), &[24, 5, 4], &x).unwrap();
    ok(path, &["fit", "x.npy", "--missing", "nan", "-k", "2", "-r", "2x3", "-o", "m.mm", "-q"]);
}

/// A device, a pipe and an open file take what stdout takes.
#[cfg(target_os = "linux")]
#[test]
fn devices_and_pipes_are_outputs_of_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    prepared(path);
    save_grey(&path.join("a.png"), 0, 50);
    assert!(std::process::Command::new("mkfifo").arg(path.join("pipe")).status().unwrap().success());
    for args in [
        &["transform", "m.mm", "x.npy"][..],
        &["score", "m.mm", "x.npy"],
        &["impute", "m.mm", "x.npy"],
        &["reconstruct", "m.mm", "x.npy"],
        &["denoise", "a.png", "--sigma", "3", "-k", "1"],
        &["sample", "m.mm"],
        &["montage", "x.npy"],
        &["fit", "x.npy", "-k", "1", "-r", "1"],
        &["report", "m.mm", "x.npy"],
    ] {
        let to = |out: &str| ok(path, &[args, &["-o", out, "-q"]].concat());
        to("/dev/null");
        let expected = to("-").stdout;
        // stdout is a pipe here, and its name one of many for it.
        if args[0] != "score" {
            assert!(to("/dev/stdout").stdout == expected, "{args:?}");
        }
        let reader = std::thread::spawn({
            let pipe = path.join("pipe");
            move || std::fs::read(pipe).unwrap()
        });
        to("pipe");
        assert!(reader.join().unwrap() == expected, "{args:?}");
    }
}

#[test]
fn cluster_looks_at_all_names_before_it_fits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    prepared(path);
    std::fs::create_dir(path.join("out")).unwrap();
    std::fs::write(path.join("out/cluster-0.png"), "mine").unwrap();
    let args = ["cluster", "x.npy", "-k", "2", "-r", "1", "-o", "out", "-q"];
    let output = run(path, &args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("cluster-0.png: it holds text, and would be replaced by a PNG picture"), "{said}");
    assert_eq!(names(&path.join("out")), ["cluster-0.png"]);
    ok(path, &[&args[..], &["--sheet", "0"]].concat());
    assert_eq!(bytes(path, "out/cluster-0.png"), b"mine");
    ok(path, &[&args[..], &["--force"]].concat());
    // Its own pictures may be replaced.
    ok(path, &args);
}

#[test]
fn pictures_of_16_bits_stay_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::create_dir(path.join("in")).unwrap();
    (0..3).for_each(|i| std::fs::write(path.join(format!("in/{i}.png")), deep(i)).unwrap());
    // The smallest values of any picture, and the largest.
    std::fs::create_dir(path.join("one")).unwrap();
    ok(path, &["denoise", "in/1.png", "--sigma", "2", "-k", "1", "-o", "one/1.png", "-q"]);
    ok(path, &["fit", "in", "-k", "1", "-r", "16x16", "-o", "m.mm", "-q"]);
    let mut outputs = vec!["one".to_string()];
    for (i, args) in TO_FOLDERS.iter().enumerate() {
        outputs.push(format!("out{i}"));
        ok(path, &[args, &["-o", &outputs[i + 1], "-q"][..]].concat());
    }
    let before = values(&path.join("in/1.png"));
    for out in outputs {
        let after = values(&path.join(&out).join("1.png"));
        let worst = before.iter().zip(&after).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(after.iter().any(|&x| x > 255.0) && worst < 300.0, "{out}: {worst}");
        assert_eq!(bytes(path, &format!("{out}/1.png"))[24], 16, "{out}: bits per channel");
    }
}

/// Rows of numbers have no white: a note names the values drawn as black and white.
#[test]
fn the_range_of_pictures_of_other_numbers_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    prepared(path);
    let output = ok(path, &["reconstruct", "m.mm", "x.npy", "-o", "out"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("note: pictures show 0 as black and 30 as white, with 8 bits; -o X.npy keeps"),
        "{said}"
    );
}

#[test]
fn what_ends_in_csv_is_csv() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    prepared(path);
    // A .npy file of doubles ends with them.
    let array = |name: &str, count: usize| -> Vec<f64> {
        let bytes = bytes(path, name);
        let doubles = bytes[bytes.len() - 8 * count..].chunks_exact(8);
        doubles.map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect()
    };
    for (args, head) in [
        (&["score", "m.mm", "x.npy"][..], "sample,log_likelihood"),
        (&["transform", "m.mm", "x.npy"], "sample,core_0_0,core_0_1,core_0_2,core_1_0,core_1_1,core_1_2"),
        (&["transform", "m.mm", "x.npy", "--all"], "sample,component_0_core_0_0,component_0_core_0_1"),
    ] {
        for out in ["out.npy", "out.csv"] {
            ok(path, &[args, &["-o", out, "-q"]].concat());
        }
        let text = String::from_utf8(bytes(path, "out.csv")).unwrap();
        assert!(text.starts_with(head), "{text}");
        assert_eq!(text.lines().count(), 25);
        // The numbers are the same, to the last digit, and before them stands which sample it is.
        let width = text.lines().next().unwrap().split(',').count();
        let expected = array("out.npy", 24 * (width - 1));
        for (n, line) in text.lines().skip(1).enumerate() {
            let row: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
            assert_eq!(row[0], n as f64);
            assert_eq!(row[1..], expected[n * (width - 1)..][..width - 1], "{args:?}");
        }
    }
    // Where samples are files, their names stand there, too.
    (0..3).for_each(|i| save_grey(&path.join(format!("in/{i}.png")), i, 50));
    ok(path, &["fit", "in", "-k", "1", "-r", "2", "-o", "f.mm", "-q"]);
    ok(path, &["score", "f.mm", "in", "-o", "f.csv", "-q"]);
    let text = String::from_utf8(bytes(path, "f.csv")).unwrap();
    assert!(text.starts_with("sample,name,log_likelihood\n0,0.png,-"), "{text}");
}

/// Samples of NA, the index column of pandas and integers that doubles cannot hold are read as such or refused.
#[test]
fn what_files_of_numbers_hold_is_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("na.csv"), "NA,NA\n3,4\n5,6\n").unwrap();
    std::fs::write(path.join("pandas.csv"), ",x,y\n0,1,2\n1,3,4\n").unwrap();
    let said = |args: &[&str]| {
        let output = run(path, args);
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let info = said(&["info", "na.csv", "--missing", "nan", "--json"]);
    assert!(info.contains("\"n_samples\": 3"), "{info}");
    let info = said(&["info", "pandas.csv"]);
    assert!(info.contains("the first column has no name; it is read as an index, not as data"), "{info}");
    assert!(info.contains("samples  2 of 2, "), "{info}");
    let large: Vec<u8> = [1i64, 2, 3, (1 << 53) + 1].iter().flat_map(|x| x.to_le_bytes()).collect();
    std::fs::write(path.join("large.npy"), crate::made::npy_bytes("<i8", "2, 2", &large)).unwrap();
    let refused = said(&["fit", "large.npy", "-k", "1", "-r", "1", "-o", "m.mm"]);
    assert!(refused.contains("it holds 9007199254740993, which double precision rounds"), "{refused}");
}

/// 2,024 bytes that would have a decoder take 220 MB.
#[test]
fn a_list_of_an_unknown_type_in_a_big_tiff_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let entry = |tag: u16, kind: u16, count: u64, value: u64| {
        [&tag.to_le_bytes()[..], &kind.to_le_bytes(), &count.to_le_bytes(), &value.to_le_bytes()].concat()
    };
    let mut file = [&b"II+\0\x08\0\0\0"[..], &16u64.to_le_bytes(), &3u64.to_le_bytes()].concat();
    [entry(256, 4, 1, 18), entry(0, 0, 1, 0), entry(257, 4, 1, 12)].iter().for_each(|one| file.extend(one));
    file.resize(2024, 0);
    std::fs::create_dir(path.join("in")).unwrap();
    std::fs::write(path.join("in/a.tif"), file).unwrap();
    let output = run(path, &["info", "in"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("in/a.tif: not a readable image: a list in it is of the unknown type 0"), "{said}");
}

/// Its transparency is where other files have a mask for it.
#[test]
fn a_bmp_file_without_a_mask_may_have_transparent_places() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let bmp = |fourth: [u8; 2]| {
        let mut file = b"BM".to_vec();
        let numbers = [0u32, 0, 54, 40, 2, 1, 1 | 32 << 16, 0, 0, 0, 0, 0, 0];
        numbers.iter().for_each(|n| file.extend(n.to_le_bytes()));
        file.extend([7, 7, 7, fourth[0], 9, 9, 9, fourth[1]]);
        file
    };
    for (fourth, said) in [([0, 255], true), ([0, 0], false), ([255, 255], false)] {
        std::fs::create_dir_all(path.join("in")).unwrap();
        std::fs::write(path.join("in/a.bmp"), bmp(fourth)).unwrap();
        let output = ok(path, &["info", "in"]);
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(text.contains("the image a.bmp has transparent places"), said, "{text}");
    }
}

#[test]
fn what_cannot_be_denoised_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    pictures::save(path.join("small.png"), 6, 6, &(0..36).map(|i| (i * i % 251) as u8).collect::<Vec<_>>());
    let said = |args: &[&str]| {
        let output = run(path, &[args, &["-q"]].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let words = "error: 16 components cannot be fitted to 1 patches of 6×6: the images are 6×6, and there are 1 of them";
    for args in [
        &["denoise", "small.png", "--sigma", "3", "-o", "clean.png"][..],
        &["denoise", "small.png", "-o", "clean.png"],
    ] {
        let said = said(args);
        assert!(said.contains(words), "{said}");
    }
    npy::write_array(path.join("x.npy"), &[1, 6, 6], &[3.0; 36]).unwrap();
    let text = said(&["fit", "x.npy", "--patches", "8", "-k", "2", "-r", "1", "-o", "m.mm"]);
    assert!(text.contains("2 components cannot be fitted to 1 patches of 6×6"), "{text}");
    // Without noise, and with values that single precision does not hold.
    let text = said(&["denoise", "x.npy", "-o", "y.npy"]);
    assert!(text.contains("option `sigma` is 0; it must be given"), "{text}");
    let tiny: Vec<f64> = noise(0, 0, 60).iter().map(|&x| x as f64 * 1e-60).collect();
    npy::write_array(path.join("tiny.npy"), &[1, 16, 16], &tiny).unwrap();
    let text = said(&["denoise", "tiny.npy", "-k", "1", "-o", "y.npy"]);
    assert!(
        text.contains("it must be between 1e-30 and 1e30, as patches are computed in single precision"),
        "{text}"
    );
}
