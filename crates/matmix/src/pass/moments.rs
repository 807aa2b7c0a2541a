//! Mean, variance and extremes of a set, and a digest of its content. Also where NaN and infinity are found before a fit begins.

use super::wire::{Reader, Writer};
use super::{Pass, Sums, check_point, same};
use crate::error::Result;

/// Sums for mean and variance.
#[derive(Debug, Clone, PartialEq)]
pub struct MomentsPass {
    /// What is subtracted from every sample first: one of them, so that the sums do not cancel.
    pub origin: Vec<f64>,
    /// Whether the content is to be identified, too.
    pub digest: bool,
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
    /// The least and the largest value of all elements.
    pub range: [f64; 2],
    /// The sum of the hashes of all samples, each hashed with its number and weight: equal for equal sets, whatever parts they
    /// are in, and different if two samples are exchanged. Zero if it was not asked for.
    pub digest: u128,
}

/// Mean and spread of all samples.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moments {
    /// Σ w X / Σ w.
    pub(crate) mean: Vec<f64>,
    /// Σ w ‖X − mean‖² / Σ w.
    pub(crate) variance: f64,
    /// The least and the largest value.
    pub(crate) range: [f64; 2],
    pub(crate) digest: u128,
}

impl MomentSums {
    /// The sums of no samples.
    pub(crate) fn zero(size: usize) -> Self {
        let range = [f64::INFINITY, f64::NEG_INFINITY];
        Self { n_samples: 0, weight: 0.0, sum: vec![0.0; size], squares: 0.0, range, digest: 0 }
    }

    pub(crate) fn append(&mut self, other: &MomentSums) {
        self.n_samples += other.n_samples;
        self.weight += other.weight;
        self.sum.iter_mut().zip(&other.sum).for_each(|(a, b)| *a += b);
        self.squares += other.squares;
        self.range = [self.range[0].min(other.range[0]), self.range[1].max(other.range[1])];
        self.digest = self.digest.wrapping_add(other.digest);
    }

    /// Mean and variance of the samples.
    pub(crate) fn moments(&self, origin: &[f64]) -> Moments {
        let shift: Vec<f64> = self.sum.iter().map(|s| s / self.weight).collect();
        let shift_norm: f64 = shift.iter().map(|s| s * s).sum();
        Moments {
            mean: origin.iter().zip(&shift).map(|(o, s)| o + s).collect(),
            variance: (self.squares / self.weight - shift_norm).max(0.0),
            range: self.range,
            digest: self.digest,
        }
    }
}

impl Pass for MomentsPass {
    type Sums = MomentSums;

    fn check(&self, shape: &[usize]) -> Result<()> {
        check_point("origin", &self.origin, shape)
    }

    fn fits(&self, sums: &MomentSums) -> bool {
        sums.sum.len() == self.origin.len()
    }

    fn write(&self, to: &mut Writer) {
        to.byte(u8::from(self.digest));
        to.reals(&self.origin);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        Ok(Self { digest: from.byte()? != 0, origin: from.reals()? })
    }
}

impl Sums for MomentSums {
    fn n_samples(&self) -> u64 {
        self.n_samples
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        same("numbers per sample", self.sum.len(), other.sum.len())?;
        self.append(other);
        Ok(())
    }

    fn write(&self, to: &mut Writer) {
        to.number(self.n_samples);
        [self.weight, self.squares, self.range[0], self.range[1]].into_iter().for_each(|x| to.real(x));
        to.number(self.digest as u64);
        to.number((self.digest >> 64) as u64);
        to.reals(&self.sum);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let n_samples = from.number()?;
        let (weight, squares, range) = (from.real()?, from.real()?, [from.real()?, from.real()?]);
        let digest = u128::from(from.number()?) | u128::from(from.number()?) << 64;
        Ok(Self { n_samples, weight, sum: from.reals()?, squares, range, digest })
    }
}
