//! Mean and total variance of a set: one pass, in double precision.

use super::chunks;
use super::differences::add_difference;
use super::simd::Path;
use crate::data::Samples;
use crate::error::{Error, Result};

/// Mean and spread of all samples.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moments {
    /// Σ w X / Σ w.
    pub(crate) mean: Vec<f64>,
    /// Σ w ‖X − mean‖² / Σ w.
    pub(crate) variance: f64,
}

/// What mean and variance are made of.
#[derive(Debug, Clone, PartialEq)]
pub struct MomentSums {
    /// How many samples were seen.
    pub n_samples: u64,
    /// Σ w.
    pub weight: f64,
    /// Σ w (X − origin).
    pub sum: Vec<f64>,
    /// Σ w ‖X − origin‖².
    pub squares: f64,
}

impl MomentSums {
    fn zero(size: usize) -> Self {
        Self { n_samples: 0, weight: 0.0, sum: vec![0.0; size], squares: 0.0 }
    }

    pub(super) fn merge(&mut self, other: &MomentSums) {
        self.n_samples += other.n_samples;
        self.weight += other.weight;
        self.sum.iter_mut().zip(&other.sum).for_each(|(a, b)| *a += b);
        self.squares += other.squares;
    }

    /// Mean and variance of the samples.
    pub(crate) fn moments(&self, origin: &[f64]) -> Moments {
        let shift: Vec<f64> = self.sum.iter().map(|s| s / self.weight).collect();
        let shift_norm: f64 = shift.iter().map(|s| s * s).sum();
        Moments {
            mean: origin.iter().zip(&shift).map(|(o, s)| o + s).collect(),
            variance: (self.squares / self.weight - shift_norm).max(0.0),
        }
    }
}

/// The sums of a set. Also where NaN and infinity are found before a fit begins.
pub(crate) fn sums(samples: &Samples<'_>, origin: &[f64], path: Path) -> Result<MomentSums> {
    let size = samples.sample_len();
    chunks::sum(
        samples,
        size * size_of::<f64>(),
        || (),
        |(), range, chunk| {
            let mut sums = MomentSums { n_samples: range.len() as u64, ..MomentSums::zero(size) };
            for n in 0..range.len() {
                let w = samples.weight(range.start + n);
                sums.weight += w;
                let x = chunk.slice(n * size..(n + 1) * size);
                let square = add_difference(path, x, samples.scale(), origin, w, &mut sums.sum);
                if !square.is_finite() {
                    samples.check_finite(range.clone())?;
                    return Err(Error::Overflow { sample: range.start + n });
                }
                sums.squares += w * square;
            }
            Ok(sums)
        },
        MomentSums::merge,
    )
}
