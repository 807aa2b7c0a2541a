//! Runs a reader on broken files and watches it: panics, memory, time.
//!
//! 20,000 files per reader from a fixed seed. With `MATMIX_FUZZ_SECONDS` in the environment a reader is given new ones
//! until so many seconds are over; `MATMIX_FUZZ_SEED` is where they begin. A file that a reader fails on is kept in the
//! folder for temporary files of the build, and the message names it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use matmix::data::{OpenOptions, open};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::allocations;
use crate::mutate::mutated;

const ROUNDS: usize = 20_000;
/// No file may take longer.
const HANG: Duration = Duration::from_secs(5);
/// What a reader may hold beside eight times the file.
const FLOOR: usize = 64 << 20;

/// What is being read, for the watchman.
static CURRENT: Mutex<Option<(Instant, &'static str, Vec<u8>)>> = Mutex::new(None);
/// One reader at a time: the memory of two would be counted together.
static TURN: Mutex<()> = Mutex::new(());

/// Lets `read` loose on broken versions of the seeds. It says whether a file was valid; `repair` makes right again what
/// would keep a reader from looking any further (a checksum, a packed stream).
pub(crate) fn fuzz(
    reader: &'static str,
    seeds: &[Vec<u8>],
    repair: impl Fn(Vec<u8>) -> Vec<u8>,
    read: impl Fn(&[u8]) -> bool,
) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    watch();
    for (i, seed) in seeds.iter().enumerate() {
        assert!(read(seed), "{reader}: seed {i} is not valid");
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seconds = number("MATMIX_FUZZ_SECONDS").map(Duration::from_secs);
    let first = number("MATMIX_FUZZ_SEED").unwrap_or(1);
    let begun = Instant::now();
    let (mut rounds, mut valid, mut slowest, mut largest) = (0usize, 0usize, Duration::ZERO, 0usize);
    let mut rng = ChaCha8Rng::seed_from_u64(first);
    while seconds.map_or(rounds < ROUNDS, |seconds| begun.elapsed() < seconds) {
        let bytes = mutated(seeds, &mut rng);
        // Half of them go deeper.
        let bytes = if rounds % 2 == 0 { repair(bytes) } else { bytes };
        set_current(Some((Instant::now(), reader, bytes.clone())));
        let held = allocations::begin();
        let started = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| read(&bytes)));
        slowest = slowest.max(started.elapsed());
        let taken = allocations::most() - held;
        set_current(None);
        largest = largest.max(taken);
        match result {
            Ok(true) => valid += 1,
            Ok(false) => {}
            Err(_) => panic!(
                "{reader}, seed {first}, round {rounds}: it panics; see {}",
                keep(reader, &bytes).display()
            ),
        }
        assert!(
            taken <= 8 * bytes.len() + FLOOR,
            "{reader}, seed {first}, round {rounds}: {taken} bytes held for a file of {}; see {}",
            bytes.len(),
            keep(reader, &bytes).display()
        );
        rounds += 1;
    }
    println!(
        "{reader}: {rounds} files from seed {first} in {:.1} s, {valid} still valid, the slowest {:.1} ms, the most memory {:.1} MB",
        begun.elapsed().as_secs_f64(),
        slowest.as_secs_f64() * 1e3,
        largest as f64 / 1e6
    );
    // A reader that refuses everything is looked at by nobody.
    assert!(valid > 0, "{reader}: not one of {rounds} files was valid");
}

/// The same for whatever [`open`] opens under this name, in a folder of its own where the name says so.
pub(crate) fn fuzz_file(
    reader: &'static str,
    name: &str,
    seeds: &[Vec<u8>],
    options: &OpenOptions,
    repair: impl Fn(Vec<u8>) -> Vec<u8>,
) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let spec = if name.contains('/') { path.parent().unwrap() } else { path.as_path() };
    fuzz(reader, seeds, repair, |bytes| {
        replace(&path, bytes);
        match open(spec.to_str().unwrap(), options) {
            Ok(set) => {
                let x = set.samples.to_f64(0..set.samples.len()).unwrap();
                assert_eq!(x.len(), set.samples.len() * set.samples.sample_len());
                assert!(set.labels.as_ref().is_none_or(|labels| labels.len() == set.samples.len()));
                assert!(set.names.as_ref().is_none_or(|names| names.len() == set.samples.len()));
                true
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                false
            }
        }
    });
}

/// A new file each time: overwriting one waits for the disk on some file systems.
pub(crate) fn replace(path: &Path, bytes: &[u8]) {
    let _ = std::fs::remove_file(path);
    std::fs::write(path, bytes).unwrap();
}

pub(crate) fn as_it_is(bytes: Vec<u8>) -> Vec<u8> {
    bytes
}

fn set_current(current: Option<(Instant, &'static str, Vec<u8>)>) {
    *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = current;
}

/// Ends the process when a file takes too long: nothing else ends a reader that hangs.
fn watch() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        // One thread for the readers that would use several.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(1).build_global();
        std::thread::spawn(|| {
            loop {
                std::thread::sleep(HANG / 10);
                let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if let Some((since, reader, bytes)) = current
                    && since.elapsed() > HANG
                {
                    eprintln!(
                        "{reader} has not come back for {HANG:?}; see {}",
                        keep(reader, &bytes).display()
                    );
                    std::process::exit(101);
                }
            }
        });
    });
}

/// Keeps a file that a reader fails on.
fn keep(reader: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{}", reader.replace(' ', "-")));
    std::fs::write(&path, bytes).unwrap();
    path
}
