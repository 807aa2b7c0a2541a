//! How much a packed file may unpack to.
//!
//! A megabyte of gzip can become a gigabyte of zeros. Whoever has said how much memory there is has said it; otherwise
//! a file may grow a hundredfold, and a small one to a gibibyte.

use std::path::Path;

use crate::error::{Action, Error, Result};

const FLOOR: u64 = 1 << 30;
const RATIO: u64 = 100;

/// What may come out of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    bytes: u64,
    /// The bytes of the file, if the limit follows from them.
    file: Option<u64>,
}

impl Limit {
    /// For a file of this size, or for a budget.
    pub(crate) fn new(file: u64, budget: Option<u64>) -> Self {
        match budget {
            Some(bytes) => Self { bytes, file: None },
            None => Self { bytes: file.saturating_mul(RATIO).max(FLOOR), file: Some(file) },
        }
    }

    /// For what comes as it is.
    pub(crate) fn unpacked(budget: Option<u64>) -> Self {
        Self { bytes: budget.unwrap_or(u64::MAX), file: None }
    }

    /// For a file on disk.
    pub(crate) fn of(path: &Path, budget: Option<u64>) -> Result<Self> {
        let metadata = std::fs::metadata(path).map_err(|e| Error::io(path, Action::Open, &e))?;
        Ok(Self::new(metadata.len(), budget))
    }

    /// Whether so many bytes may come out.
    pub(crate) fn check(&self, name: &str, needed: u64) -> Result<()> {
        if needed <= self.bytes {
            return Ok(());
        }
        Err(Error::Unpacked { name: name.to_string(), needed, limit: self.bytes, packed: self.file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_decides_and_otherwise_the_size_of_the_file() {
        assert!(Limit::new(1000, Some(7)).check("x", 8).is_err());
        assert!(Limit::new(1000, Some(1 << 40)).check("x", 1 << 40).is_ok());
        assert!(Limit::new(1000, None).check("x", 1 << 30).is_ok());
        let error = Limit::new(1_000_000, None).check("x.gz", 25_000_000_000).unwrap_err().to_string();
        let expected = "x.gz: it would unpack to 25.0 GB, from 1.0 MB; no more than 1.1 GB are unpacked unless a memory \
                        budget allows it";
        assert_eq!(error, expected);
        assert!(Limit::new(1_000_000_000, None).check("x", 90_000_000_000).is_ok());
    }
}
