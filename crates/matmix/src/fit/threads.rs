//! How many threads a fit runs on.

use crate::error::{Error, Result};

/// Runs `work` on a pool of so many threads, or where it is.
pub(super) fn with_threads<R: Send>(threads: Option<usize>, work: impl FnOnce() -> R + Send) -> Result<R> {
    match threads {
        None => Ok(work()),
        Some(threads) => {
            let impossible = |value: String| Error::Option {
                option: "threads",
                value,
                expected: "between 1 and 1024, and no more than this machine can start",
            };
            // Thousands of threads would start, and then do nothing but look for work.
            if !(1..=1024).contains(&threads) {
                return Err(impossible(threads.to_string()));
            }
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let pool = pool.map_err(|e| impossible(format!("{threads} ({e})")))?;
            Ok(pool.install(work))
        }
    }
}
