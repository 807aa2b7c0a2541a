//! Broken files of every format: a reader returns an error or valid samples; it never panics, and never asks for
//! more memory than the file explains.
//!
//! A few hundred files with flipped, cut, doubled and overwritten bytes per format, from a fixed seed.

use std::path::Path;
use std::sync::atomic::Ordering;

use crate::made::{MatFile, gzip, idx, npy_bytes, npz};
use crate::watched::LARGEST;
use image::GrayImage;
use matmix::data::{Labels, OpenOptions, open};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use zip::CompressionMethod;

/// Room that every reader may take: buffers, the tables of a decompressor, the text of a message.
const FLOOR: usize = 1 << 18;

fn mutated(original: &[u8], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..rng.random_range(1..=4) {
        if bytes.is_empty() {
            break;
        }
        // The headers stand in front: half of the blows fall there.
        let end = if rng.random_bool(0.5) { bytes.len().min(160) } else { bytes.len() };
        let at = rng.random_range(0..end);
        match rng.random_range(0..6) {
            0 => bytes[at] ^= 1 << rng.random_range(0..8),
            1 => bytes[at] = rng.next_u32() as u8,
            2 => bytes.truncate(at),
            3 => bytes[at..(at + 4).min(end)].fill(0xff),
            4 => drop(bytes.drain(at..(at + rng.random_range(1..9)).min(end))),
            _ => {
                let again = bytes[at..(at + 16).min(end)].to_vec();
                bytes.splice(at..at, again);
            }
        }
    }
    bytes
}

/// Opens `count` broken versions of a file and returns how many of them were still valid.
fn fuzz(name: &str, original: &[u8], count: usize, allowed: impl Fn(usize) -> usize) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let spec = if name.contains('/') { path.parent().unwrap() } else { path.as_path() };
    let mut rng = ChaCha8Rng::seed_from_u64(original.len() as u64);
    let mut valid = 0;
    for round in 0..count {
        let bytes = mutated(original, &mut rng);
        // A new file each time: overwriting one waits for the disk on some file systems.
        if round > 0 {
            std::fs::remove_file(&path).unwrap();
        }
        std::fs::write(&path, &bytes).unwrap();
        LARGEST.store(0, Ordering::Relaxed);
        let result = open(spec.to_str().unwrap(), &OpenOptions::default());
        match result {
            Ok(set) => {
                let x = set.samples.to_f64(0..set.samples.len()).unwrap();
                assert_eq!(x.len(), set.samples.len() * set.samples.sample_len());
                if let Some(labels) = &set.labels {
                    assert_eq!(labels.len(), set.samples.len());
                }
                valid += 1;
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        let (largest, allowed) = (LARGEST.load(Ordering::Relaxed), FLOOR + allowed(bytes.len()));
        assert!(
            largest <= allowed,
            "{name}, round {round}: {largest} bytes at once for a file of {}",
            bytes.len()
        );
        read_as_labels(&path);
    }
    valid
}

fn read_as_labels(path: &Path) {
    if let Ok(labels) = Labels::read(path) {
        assert!(labels.index.iter().all(|&i| i < labels.names.len()));
    }
}

/// One test, because the memory of two would be counted together.
#[test]
fn broken_files_give_errors_or_valid_samples() {
    let x: Vec<u8> = (0..640).map(|i| (i * 37 % 251) as u8).collect();
    let doubles: Vec<u8> = (0..160).flat_map(|i| f64::from(i).to_le_bytes()).collect();
    // A byte becomes a double at most; a packed byte up to 1,032 bytes of it (the limit of deflate), and a vector
    // that grows doubles its room.
    let plain = |bytes: usize| 16 * bytes;
    let packed = |bytes: usize| 2 * 1032 * 8 * bytes;

    let mut valid = Vec::new();
    let npy = npy_bytes("|u1", "10, 8, 8", &x);
    valid.push(fuzz("x.npy", &npy, 400, plain));
    valid.push(fuzz("x.npy", &npy_bytes("<f8", "10, 4, 4", &doubles), 400, plain));
    valid.push(fuzz("x.npy", &npy_bytes(">i2", "10, 8, 8", &x.repeat(2)), 200, plain));
    valid.push(fuzz("x-ubyte", &idx(8, &[10, 8, 8], &x), 400, plain));
    valid.push(fuzz("x-ubyte", &idx(14, &[10, 4, 4], &doubles), 400, plain));
    valid.push(fuzz("x-ubyte.gz", &gzip(&idx(8, &[10, 8, 8], &x)), 400, packed));
    let labels = npy_bytes("<U2", "10,", &doubles[..80]);
    let arrays = [("images.npy", npy), ("labels.npy", labels)];
    valid.push(fuzz("x.npz", &npz(CompressionMethod::Stored, &arrays), 600, packed));
    valid.push(fuzz("x.npz", &npz(CompressionMethod::Deflated, &arrays), 600, packed));
    for (big, zlib) in [(false, false), (true, false), (false, true)] {
        let mat = MatFile::new(big, zlib)
            .variable("gnd", 9, &[10, 1], 2, &x[..10])
            .variable("fea", 9, &[10, 64], 2, &x)
            .bytes;
        valid.push(fuzz("x.mat", &mat, 400, packed));
    }
    // Some of the broken files only have another number in them.
    assert!(valid.iter().filter(|&&v| v > 0).count() >= 6, "{valid:?}");

    // The pictures' readers belong to others; that they do not panic is what matters here.
    for ending in ["png", "jpg", "bmp", "pgm", "tiff"] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(format!("a.{ending}"));
        GrayImage::from_raw(8, 8, x[..64].to_vec()).unwrap().save(&file).unwrap();
        let original = std::fs::read(&file).unwrap();
        fuzz(&format!("images/a.{ending}"), &original, 150, |_| usize::MAX / 2);
    }
}
