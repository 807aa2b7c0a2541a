//! The same pixels and the same seed give the same bits: whatever the format, the threads, or who was killed.

use std::path::Path;
use std::time::{Duration, Instant};

use matmix::data::{Buffer, Chunk, OpenOptions, npy, open};
use matmix::picture::{Grid, ValueRange, write_folder};
use zip::CompressionMethod;

use crate::{SMALL, command, fit, made, ok};

pub(crate) fn bytes(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).unwrap()
}

#[test]
fn every_format_gives_the_same_model_for_the_same_pixels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let options = OpenOptions { take: Some(200..260), ..OpenOptions::default() };
    let samples = open("demo:mnist", &options).unwrap().samples;
    let pixels: Vec<u8> = samples.to_f64(0..60).unwrap().iter().map(|&x| x as u8).collect();
    npy::write_array(path.join("x.npy"), &[60, 28, 28], &pixels).unwrap();
    npy::write_array(path.join("flat.npy"), &[60, 784], &pixels).unwrap();
    let member = made::npy_bytes("|u1", "60, 28, 28", &pixels);
    let other = made::npy_bytes("|u1", "3, 2, 2", &[0; 12]);
    let archive =
        made::npz(CompressionMethod::Deflated, &[("images.npy", member.clone()), ("other.npy", other)]);
    std::fs::write(path.join("two.npz"), archive).unwrap();
    std::fs::write(path.join("one.npz"), made::npz(CompressionMethod::Stored, &[("x.npy", member)])).unwrap();
    let idx = made::idx(8, &[60, 28, 28], &pixels);
    std::fs::write(path.join("x-images-idx3-ubyte"), &idx).unwrap();
    std::fs::write(path.join("x-images-idx3-ubyte.gz"), made::gzip(&idx)).unwrap();
    // MATLAB: one image per line, itself column by column, and the whole array column by column.
    let fea: Vec<u8> = (0..784)
        .flat_map(|j| (0..60).map(move |n| (n, (j % 28) * 28 + j / 28)))
        .map(|(n, pixel)| pixels[n * 784 + pixel])
        .collect();
    let mat = made::MatFile::new(false, true).variable("fea", 9, &[60, 784], 2, &fea);
    std::fs::write(path.join("x.mat"), mat.bytes).unwrap();
    let grid = Grid { range: ValueRange::Given(0.0, 255.0), ..Grid::default() };
    write_folder(path.join("pictures"), &samples, None, &grid).unwrap();

    fit(path, "expected.mm", &[]);
    let expected = bytes(path, "expected.mm");
    for data in [
        &["x.npy"][..],
        &["flat.npy", "--shape", "28x28"],
        &["two.npz:images"],
        &["one.npz"],
        &["x-images-idx3-ubyte"],
        &["x-images-idx3-ubyte.gz"],
        &["x.mat"],
        &["pictures"],
    ] {
        let fit = ["--scale", "1/255", "-k", "2", "-r", "3x3", "-o", "m.mm", "-q"];
        ok(path, &[&["fit"], data, &fit].concat());
        assert!(bytes(path, "m.mm") == expected, "{data:?}");
    }
}

/// 3,000 digits are five chunks: with two megabytes they are read piece by piece.
#[test]
fn a_memory_budget_changes_nothing_and_files_are_parts_of_one_set() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let digits = matmix::data::digits().samples;
    let mut buffer = Buffer::new();
    let Chunk::U8(pixels) = digits.stored(0..1000, &mut buffer).unwrap() else { panic!("bytes") };
    npy::write_array(path.join("all.npy"), &[3000, 28, 28], &pixels.repeat(3)).unwrap();
    std::fs::create_dir(path.join("parts")).unwrap();
    for part in ["parts/a.npy", "parts/b.npy", "parts/c.npy"] {
        npy::write_array(path.join(part), &[1000, 28, 28], pixels).unwrap();
    }
    let common =
        ["--scale", "1/255", "-k", "2", "-r", "3x3", "--max-iter", "2", "--threads", "1", "-q", "-o"];
    for (data, expected, streamed) in
        [("all.npy", "all.mm", "all-2MB.mm"), ("parts/*.npy", "parts.mm", "parts-2MB.mm")]
    {
        ok(path, &[&["fit", data], &common[..], &[expected]].concat());
        ok(path, &[&["fit", data], &common[..], &[streamed, "--memory", "2MB"]].concat());
        assert!(bytes(path, expected) == bytes(path, streamed), "{data}");
    }
    ok(path, &[&["fit", "parts/a.npy,parts/b.npy,parts/c.npy"], &common[..], &["list.mm"]].concat());
    assert!(bytes(path, "parts.mm") == bytes(path, "list.mm"));
    for (name, memory) in [("mapped.npy", "1GB"), ("streamed.npy", "2MB")] {
        ok(path, &["transform", "all.mm", "parts/*.npy", "-o", name, "-q", "--memory", memory]);
    }
    assert!(bytes(path, "mapped.npy") == bytes(path, "streamed.npy"));
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for (name, threads) in [("one.mm", "1"), ("two.mm", "2")] {
        fit(folder.path(), name, &["--threads", threads]);
    }
    assert!(bytes(folder.path(), "one.mm") == bytes(folder.path(), "two.mm"));
}

/// A fit that takes a while and has a checkpoint after every iteration.
pub(crate) const LONG: &[&str] = &[
    "fit",
    "demo:mnist",
    "--limit",
    "300",
    "--scale",
    "1/255",
    "-k",
    "3",
    "-r",
    "4x4",
    "--tol",
    "0",
    "--max-iter",
    "300",
    "--checkpoint-every",
    "1",
];

pub(crate) fn wait_for(path: &Path) {
    let started = Instant::now();
    while !path.exists() {
        assert!(started.elapsed() < Duration::from_secs(60), "{} did not appear", path.display());
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_killed_fit_goes_on_to_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let args = [LONG, &["--checkpoint", "state", "-o", "killed.mm"]].concat();
    let mut child = command(path, &args).spawn().unwrap();
    wait_for(&path.join("state"));
    // SIGKILL on Unix.
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success());
    assert!(!path.join("killed.mm").exists(), "it was killed in the middle");
    ok(path, &[&args[..], &["--resume", "-q"]].concat());
    ok(path, &[LONG, &["--checkpoint", "other", "-o", "whole.mm", "-q"]].concat());
    assert!(bytes(path, "killed.mm") == bytes(path, "whole.mm"));
}

/// Kills at random times, one after the other: twenty of them, or as many as MATMIX_KILLS says (`make soak`).
#[test]
fn a_fit_that_is_killed_again_and_again_goes_on_to_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let kills = std::env::var("MATMIX_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    let state = ["--checkpoint", "state", "--resume", "-q"];
    let args = [LONG, &state, &["-o", "killed.mm"]].concat();
    // Fractions of the golden ratio: spread evenly, and the same every time.
    for kill in 1..=kills {
        let wait = 5.0 + 150.0 * (f64::from(kill) * 0.618_034).fract();
        let mut child = command(path, &args).spawn().unwrap();
        std::thread::sleep(Duration::from_micros((wait * 1e3) as u64));
        let _ = child.kill();
        child.wait().unwrap();
    }
    ok(path, &args);
    ok(path, &[LONG, &["--checkpoint", "other", "-o", "whole.mm", "-q"]].concat());
    assert!(bytes(path, "killed.mm") == bytes(path, "whole.mm"));
}

#[test]
fn the_same_command_twice_writes_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    ok(path, &[&["fit"], SMALL, &["-o", "a.mm", "--init", "random"]].concat());
    ok(path, &[&["fit"], SMALL, &["-o", "b.mm", "--init", "random"]].concat());
    assert!(bytes(path, "a.mm") == bytes(path, "b.mm"));
    ok(path, &["sample", "a.mm", "-n", "3", "-o", "a.npy"]);
    ok(path, &["sample", "b.mm", "-n", "3", "-o", "b.npy"]);
    assert!(bytes(path, "a.npy") == bytes(path, "b.npy"));
}
