//! Available memory, and the check that drawn samples fit into it.

use crate::error::{Error, Result};

/// Samples to draw, checked against the available memory before anything is allocated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// The number of samples.
    pub(crate) samples: usize,
    /// The shape of one sample.
    pub(crate) shape: &'a [usize],
    /// The bytes that all of them take.
    pub(crate) needed: u128,
}

impl Request<'_> {
    /// # Errors
    /// If the samples take more memory than there is.
    pub(crate) fn check(&self) -> Result<()> {
        let available = available();
        match available {
            Some(bytes) if self.needed > u128::from(bytes) => Err(self.error(available)),
            _ => Ok(()),
        }
    }

    /// An empty vector with capacity for `elements`.
    ///
    /// # Errors
    /// If the system refuses the memory.
    pub(crate) fn reserve<T>(&self, elements: usize) -> Result<Vec<T>> {
        let mut empty = Vec::new();
        empty.try_reserve_exact(elements).map_err(|_| self.error(available()))?;
        Ok(empty)
    }

    fn error(&self, available: Option<u64>) -> Error {
        // A limit of the process may be lower than the memory of the machine.
        let available = available.filter(|&bytes| self.needed > u128::from(bytes));
        Error::NoMemory { samples: self.samples, shape: self.shape.to_vec(), needed: self.needed, available }
    }
}

/// The bytes that can be had without taking them from others, where the system tells.
pub(crate) fn available() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn parse(told: &str) -> Option<u64> {
    let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_linux_tells_is_understood_and_anything_else_is_unknown() {
        let told = "MemTotal:       24608268 kB\nMemFree:        20000000 kB\nMemAvailable:   23456789 kB\n";
        assert_eq!(parse(told), Some(23_456_789 * 1024));
        for told in [
            "",
            "MemAvailable:",
            "MemAvailable: x kB",
            "MemAvailable: 99999999999999999999 kB",
            "MemAvailable: 1",
        ] {
            assert_eq!(parse(told), None, "{told}");
        }
    }
}
