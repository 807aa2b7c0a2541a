//! Broken files for every reader: it returns an error or valid samples. It never panics, never hangs, and never takes
//! more memory than the file explains.
//!
//! `make fuzz` does the same for as long as one likes.

#![allow(clippy::unwrap_used)]

mod allocations;
mod harness;
#[path = "../suite/made.rs"]
mod made;
mod models;
mod mutate;
#[path = "../suite/pictures.rs"]
mod pictures;
#[allow(dead_code)]
#[path = "../suite/planted.rs"]
mod planted;

use harness::{as_it_is, fuzz, fuzz_file, replace};
use made::{MatFile, gzip, idx, npy_bytes, npz};
use matmix::data::{Labels, OpenOptions};
use matmix::pass::{AnySums, EmPass, MomentsPass, RowsPass, ScatterPass, Stage, Task, Update};
use matmix::{Checkpoint, FitOptions, Matrix, ModelFile, Precision, Samples, fit};
use planted::random_mixture;
use zip::CompressionMethod;

fn numbers() -> Vec<u8> {
    (0..640).map(|i| (i * 37 % 251) as u8).collect()
}

fn doubles() -> Vec<u8> {
    (0..160).flat_map(|i| f64::from(i).to_le_bytes()).collect()
}

/// The files in `tests/images` that end so.
fn images(endings: &[&str]) -> Vec<Vec<u8>> {
    let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/images"));
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| endings.iter().any(|ending| path.extension().is_some_and(|e| e == *ending)));
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Makes the checksums of the chunks of a PNG file right again.
fn checked_chunks(mut png: Vec<u8>) -> Vec<u8> {
    let mut at = 8;
    while let Some(length) =
        png.get(at..at + 4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]) as usize)
    {
        let Some(body) = png.get(at + 4..at + 8 + length) else { break };
        let mut crc = flate2::Crc::new();
        crc.update(body);
        let end = at + 8 + length;
        let Some(sum) = png.get_mut(end..end + 4) else { break };
        sum.copy_from_slice(&crc.sum().to_be_bytes());
        at = end + 4;
    }
    png
}

/// Makes the checksum at the end of a task or of sums right again.
fn checked(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(end) = bytes.len().checked_sub(4) {
        let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..end]) as u32;
        bytes[end..].copy_from_slice(&sum.to_le_bytes());
    }
    bytes
}

#[test]
fn npy() {
    let half: Vec<u8> = numbers().into_iter().map(|b| b & 0x3b).collect();
    let fortran = npy_bytes("|u1", "10, 8, 8", &numbers());
    let fortran = String::from_utf8_lossy(&fortran[10..]).find("False").map(|at| {
        let mut bytes = fortran.clone();
        bytes.splice(10 + at..10 + at + 5, *b"True ");
        bytes
    });
    let seeds = [
        npy_bytes("|u1", "10, 8, 8", &numbers()),
        npy_bytes("<f8", "10, 4, 4", &doubles()),
        npy_bytes(">i2", "10, 32", &numbers()),
        npy_bytes("<f2", "10, 32", &half),
        fortran.unwrap(),
    ];
    fuzz_file("npy", "x.npy", &seeds, &OpenOptions::default(), as_it_is);
}

#[test]
fn npz_archives() {
    let arrays = [
        ("images.npy", npy_bytes("|u1", "10, 8, 8", &numbers())),
        ("labels.npy", npy_bytes("<U2", "10,", &b"a\0\0\0b\0\0\0".repeat(10))),
    ];
    let seeds = [npz(CompressionMethod::Stored, &arrays), npz(CompressionMethod::Deflated, &arrays)];
    fuzz_file("npz", "x.npz", &seeds, &OpenOptions::default(), as_it_is);
    // Broken arrays in whole archives.
    let member = [npy_bytes("|u1", "10, 8, 8", &numbers()), npy_bytes("<f8", "10, 16", &doubles())];
    let packed = |bytes: Vec<u8>| {
        let labels = npy_bytes("|u1", "10,", &[7; 10]);
        npz(CompressionMethod::Deflated, &[("x.npy", bytes), ("y.npy", labels)])
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npz");
    fuzz("npz members", &member, as_it_is, |bytes| {
        replace(&path, &packed(bytes.to_vec()));
        matmix::data::open(path.to_str().unwrap(), &OpenOptions::default()).is_ok()
    });
}

#[test]
fn idx_files() {
    let seeds =
        [idx(8, &[10, 8, 8], &numbers()), idx(14, &[10, 4, 4], &doubles()), idx(11, &[10, 32], &numbers())];
    fuzz_file("idx", "x-ubyte", &seeds, &OpenOptions::default(), as_it_is);
    let packed: Vec<Vec<u8>> = seeds.iter().map(|seed| gzip(seed)).collect();
    fuzz_file("idx gzip", "x-ubyte.gz", &packed, &OpenOptions::default(), as_it_is);
    // Broken files in whole streams.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.gz");
    fuzz("idx in gzip", &seeds, as_it_is, |bytes| {
        replace(&path, &gzip(bytes));
        matmix::data::open(path.to_str().unwrap(), &OpenOptions::default()).is_ok()
    });
}

#[test]
fn mat() {
    let file = |big, packed| {
        MatFile::new(big, packed)
            .variable("note", 4, &[1, 2], 4, b"h\0i\0")
            .variable("gnd", 9, &[10, 1], 2, &numbers()[..10])
            .variable("fea", 9, &[10, 64], 2, &numbers())
            .bytes
    };
    let seeds = [file(false, false), file(true, false), file(false, true)];
    fuzz_file("mat", "x.mat", &seeds, &OpenOptions::default(), as_it_is);
}

#[test]
fn csv() {
    let seeds = [
        b"a,b,c\n1,2,3\n-4.5,5e3,\"6\"\n".to_vec(),
        b"# by hand\n1 2 3\n4 5 6\n".to_vec(),
        b"\xef\xbb\xbf1;2\r\n3;4\r\n\r\n".to_vec(),
        b"1\t2\t3\t4\n5\t6\t7\t8".to_vec(),
    ];
    fuzz_file("csv", "x.csv", &seeds, &OpenOptions::default(), as_it_is);
}

#[test]
fn labels() {
    let seeds = [
        b"one\ntwo\nthree\n".to_vec(),
        b"\xef\xbb\xbf7\r\n11\r\n\r\n".to_vec(),
        npy_bytes("<U3", "4,", &b"a\0\0\0\xfc\0\0\0\0\0\0\0".repeat(4)),
        npy_bytes("|S2", "4,", b"aabbccdd"),
        npy_bytes("<f8", "20, 1", &doubles()[..160]),
        idx(8, &[20], &numbers()[..20]),
        gzip(&idx(8, &[200], &numbers()[..200])),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("labels");
    fuzz("labels", &seeds, as_it_is, |bytes| {
        replace(&path, bytes);
        let labels = Labels::read(&path);
        if let Ok(labels) = &labels {
            assert!(labels.index.iter().all(|&i| i < labels.names.len()));
        }
        labels.is_ok()
    });
}

fn options() -> [OpenOptions; 2] {
    [OpenOptions::default(), OpenOptions { colour: true, resize: Some((5, 7)), ..OpenOptions::default() }]
}

#[test]
fn png() {
    let mut seeds = images(&["png"]);
    let exif = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    seeds.push(pictures::png(2, 3, 6, 16, &[(b"eXIf", exif), (b"gAMA", &[0, 0, 0xb1, 0x8f])], &[7; 48]));
    seeds.push(pictures::png(
        2,
        3,
        3,
        8,
        &[(b"PLTE", &[1, 2, 3, 4, 5, 6]), (b"tRNS", &[0])],
        &[0, 1, 0, 1, 0, 1],
    ));
    fuzz_file("png", "images/a.png", &seeds, &options()[0], checked_chunks);
}

#[test]
fn jpeg() {
    fuzz_file("jpeg", "images/a.jpg", &images(&["jpg"]), &options()[1], as_it_is);
}

#[test]
fn tiff() {
    fuzz_file("tiff", "images/a.tif", &images(&["tif"]), &options()[0], as_it_is);
}

#[test]
fn bmp() {
    fuzz_file("bmp", "images/a.bmp", &images(&["bmp"]), &options()[1], as_it_is);
}

#[test]
fn pnm() {
    fuzz_file("pnm", "images/a.pnm", &images(&["pgm", "ppm", "pbm"]), &options()[0], as_it_is);
}

#[test]
fn model_files() {
    let seeds: Vec<Vec<u8>> = models::files().iter().map(ModelFile::to_bytes).collect();
    fuzz("model file", &seeds, models::with_length, |bytes| {
        let read = ModelFile::from_bytes("m.mm", bytes);
        read.as_ref().is_ok_and(|file| {
            models::used(file);
            true
        })
    });
}

#[test]
fn checkpoints() {
    let samples =
        Samples::from_vec(&[2, 3], (0..60).map(|i| f64::from(i * 7 % 11)).collect::<Vec<_>>()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.mm");
    let checkpoint = Some(Checkpoint { path: path.clone(), every: 1, resume: true });
    let options = FitOptions { rank: vec![1, 1], max_iter: 2, checkpoint, ..FitOptions::default() };
    fit(&samples, &options).unwrap();
    let seeds = [std::fs::read(&path).unwrap()];
    fuzz("checkpoint", &seeds, as_it_is, |bytes| {
        replace(&path, bytes);
        fit(&samples, &options).is_ok()
    });
}

fn tasks() -> Vec<Task> {
    vec![
        MomentsPass { origin: vec![0.5; 6], digest: true }.into(),
        RowsPass { indices: vec![0, 3, 4] }.into(),
        ScatterPass {
            mean: vec![0.5; 6],
            loadings: vec![None, Some(Matrix::identity(3, 2))],
            modes: vec![0, 1],
        }
        .into(),
        EmPass {
            model: random_mixture(1, &[2, 3], &[1, 1], 2),
            update: Update::All,
            precision: Precision::Auto,
            stage: Stage::ALL,
        }
        .into(),
    ]
}

#[test]
fn task_bytes() {
    let seeds: Vec<Vec<u8>> = tasks().iter().map(Task::to_bytes).collect();
    fuzz("task", &seeds, checked, |bytes| Task::from_bytes(bytes).is_ok());
}

#[test]
fn sums_bytes() {
    let samples =
        Samples::from_vec(&[2, 3], (0..60).map(|i| f64::from(i * 7 % 11)).collect::<Vec<_>>()).unwrap();
    let seeds: Vec<Vec<u8>> =
        tasks().iter().map(|task| task.run(&matmix::Cpu::best(), &samples, 0).unwrap().to_bytes()).collect();
    fuzz("sums", &seeds, checked, |bytes| AnySums::from_bytes(bytes).is_ok());
}
