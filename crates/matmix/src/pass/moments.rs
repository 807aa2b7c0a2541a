//! Mean, variance and extremes of a set, and a digest of its content. Also where NaN and infinity are found before a fit begins.

use super::wire::{Reader, Writer};
use super::{Pass, Sums, add_unseen, check_point, same};
use crate::error::Result;

/// Sums for mean and variance.
///
/// ```
/// use matmix::pass::MomentsPass;
/// use matmix::{Backend, Cpu, Samples};
///
/// let samples = Samples::from_vec(&[2], vec![1.0, 2.0, 3.0, 6.0])?;
/// let sums = Cpu::best().moments(&MomentsPass { origin: vec![1.0, 2.0], digest: false }, &samples, 0)?;
/// // 0 + 2 and 0 + 4 from the origin: the mean is (2, 4).
/// assert_eq!((sums.sum, sums.squares), (vec![2.0, 4.0], 20.0));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct MomentsPass {
    /// What is subtracted from every sample first: one of them, so that the sums do not cancel.
    pub origin: Vec<f64>,
    /// Whether the content is to be identified, too.
    pub digest: bool,
}

/// What mean and variance are made of.
///
/// ```
/// use matmix::pass::{MomentsPass, Sums};
/// use matmix::{Backend, Cpu, Samples};
///
/// let numbers = [1.0, 2.0, 3.0, 6.0, 5.0, 1.0];
/// let pass = MomentsPass { origin: vec![0.0; 2], digest: true };
/// let run = |x, first| Cpu::best().moments(&pass, &Samples::from_slice(&[2], x)?, first);
/// // The sums of two parts, of which the second begins with sample 1, are those of the whole.
/// let mut sums = run(&numbers[..2], 0)?;
/// sums.merge(&run(&numbers[2..], 1)?)?;
/// assert_eq!(sums, run(&numbers, 0)?);
/// let mean: Vec<f64> = sums.sum.iter().map(|sum| sum / sums.weight).collect();
/// assert_eq!((mean, sums.range), (vec![3.0, 3.0], [1.0, 6.0]));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct MomentSums {
    /// How many samples were seen.
    pub n_samples: u64,
    /// Σ w.
    pub weight: f64,
    /// Σ w (X − origin), over observed cells.
    pub sum: Vec<f64>,
    /// Σ w ‖X − origin‖², over observed cells.
    pub squares: f64,
    /// Σ w of the samples of which a cell is missing, per cell; empty if none is.
    pub unseen: Vec<f64>,
    /// What was missing.
    pub missing: MissingCells,
    /// The least and the largest value of all elements.
    pub range: [f64; 2],
    /// The sum of the hashes of all samples, each hashed with its number and weight: equal for equal sets, whatever parts they
    /// are in, and different if two samples are exchanged. Zero if it was not asked for.
    pub digest: u128,
}

/// How much of a set was not observed.
///
/// ```
/// use matmix::pass::{MissingCells, MomentsPass};
/// use matmix::{Backend, Cpu, Missing, Samples};
///
/// let numbers = vec![f64::NAN, 1.0, f64::NAN, f64::NAN, 2.0, 3.0];
/// let samples = Samples::from_vec(&[2], numbers)?.with_missing(Missing::Nan);
/// let sums = Cpu::best().moments(&MomentsPass { origin: vec![0.0; 2], digest: false }, &samples, 0)?;
/// assert_eq!(sums.missing, MissingCells { cells: 3, samples: 2, empty: 1 });
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MissingCells {
    /// Cells.
    pub cells: u64,
    /// Samples with a missing cell.
    pub samples: u64,
    /// Samples of which nothing was observed.
    pub empty: u64,
}

/// Mean and spread of all samples.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moments {
    /// Σ w X / Σ w, each cell over those samples of which it was observed.
    pub(crate) mean: Vec<f64>,
    /// Σ w ‖X − mean‖² / Σ w; of the observed cells, times P over their mean number.
    pub(crate) variance: f64,
    /// Σ w, and how much of it is missing, per cell; empty if nothing is.
    pub(crate) weight: f64,
    pub(crate) unseen: Vec<f64>,
    pub(crate) missing: MissingCells,
    /// The least and the largest value.
    pub(crate) range: [f64; 2],
    pub(crate) digest: u128,
}

impl MomentSums {
    /// The sums of no samples.
    pub(crate) fn zero(size: usize) -> Self {
        let range = [f64::INFINITY, f64::NEG_INFINITY];
        Self {
            n_samples: 0,
            weight: 0.0,
            sum: vec![0.0; size],
            squares: 0.0,
            unseen: vec![],
            missing: MissingCells::default(),
            range,
            digest: 0,
        }
    }

    pub(crate) fn append(&mut self, other: &MomentSums) {
        self.n_samples += other.n_samples;
        self.weight += other.weight;
        self.sum.iter_mut().zip(&other.sum).for_each(|(a, b)| *a += b);
        self.squares += other.squares;
        add_unseen(&mut self.unseen, &other.unseen);
        self.missing.cells += other.missing.cells;
        self.missing.samples += other.missing.samples;
        self.missing.empty += other.missing.empty;
        self.range = [self.range[0].min(other.range[0]), self.range[1].max(other.range[1])];
        self.digest = self.digest.wrapping_add(other.digest);
    }

    /// Mean and variance of the samples.
    pub(crate) fn moments(&self, origin: &[f64]) -> Moments {
        let shift: Vec<f64> = self.sum.iter().map(|s| s / self.weight).collect();
        let shift_norm: f64 = shift.iter().map(|s| s * s).sum();
        let (weight, unseen) = (self.weight, self.unseen.clone());
        let mut moments = Moments {
            mean: origin.iter().zip(&shift).map(|(o, s)| o + s).collect(),
            variance: (self.squares / self.weight - shift_norm).max(0.0),
            weight,
            unseen,
            missing: self.missing,
            range: self.range,
            digest: self.digest,
        };
        if !self.unseen.is_empty() {
            self.over_observed(origin, &mut moments);
        }
        moments
    }

    /// Mean and variance where cells are missing. A cell that nobody observed has the mean of all that were.
    fn over_observed(&self, origin: &[f64], to: &mut Moments) {
        let size = origin.len();
        let seen: Vec<f64> = (0..size).map(|i| to.seen(i)).collect();
        let total: f64 = seen.iter().sum();
        let values: f64 = (0..size).map(|i| self.sum[i] + seen[i] * origin[i]).sum();
        let overall = if total > 0.0 { values / total } else { 0.0 };
        let mut squares = self.squares;
        for i in 0..size {
            let shift = if seen[i] > 0.0 { self.sum[i] / seen[i] } else { overall - origin[i] };
            squares -= seen[i] * shift * shift;
            to.mean[i] = origin[i] + shift;
        }
        to.variance = if total > 0.0 { (squares * size as f64 / total).max(0.0) } else { 0.0 };
    }
}

/// What of a weight is more than rounding: sums of weights that should be equal differ by less.
const OBSERVED: f64 = 1e-9;

impl Moments {
    /// Σ w of the samples of which a cell was observed.
    pub(crate) fn seen(&self, cell: usize) -> f64 {
        let seen = self.weight - self.unseen.get(cell).copied().unwrap_or(0.0);
        if seen > OBSERVED * self.weight { seen } else { 0.0 }
    }

    /// Which share of all cells was observed.
    pub(crate) fn share(&self) -> f64 {
        if self.unseen.is_empty() {
            return 1.0;
        }
        let cells = self.mean.len();
        (0..cells).map(|i| self.seen(i)).sum::<f64>() / (self.weight * cells as f64)
    }

    /// Mean number of samples that observed a cell, over all cells observed at all; `unit` is the weight of one sample.
    pub(crate) fn observations(&self, unit: f64) -> f64 {
        let seen = (0..self.mean.len()).map(|i| self.seen(i)).filter(|&seen| seen > 0.0);
        let (cells, total) = seen.fold((0, 0.0), |(cells, total), seen| (cells + 1, total + seen));
        total / (unit * f64::from(cells))
    }

    /// The variance of all observed values around the mean of all of them.
    pub(crate) fn spread(&self) -> f64 {
        let (mut total, mut sum) = (0.0, 0.0);
        for (i, mean) in self.mean.iter().enumerate() {
            total += self.seen(i);
            sum += self.seen(i) * mean;
        }
        let overall = sum / total;
        let between = self.mean.iter().enumerate().map(|(i, mean)| self.seen(i) * (mean - overall).powi(2));
        self.variance / self.mean.len() as f64 + between.sum::<f64>() / total
    }

    /// The mean where cells are missing, with as much of `reference` as one sample weighs: a cell that few have observed is
    /// not believed to be what those few say.
    pub(crate) fn mean_towards(&self, reference: &[f64], unit: f64) -> Vec<f64> {
        if self.unseen.is_empty() {
            return self.mean.clone();
        }
        let mean = |(i, (m, g)): (usize, (&f64, &f64))| {
            let seen = self.seen(i);
            (seen * m + unit * g) / (seen + unit)
        };
        self.mean.iter().zip(reference).enumerate().map(mean).collect()
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
        to.reals(&self.unseen);
        [self.missing.cells, self.missing.samples, self.missing.empty].into_iter().for_each(|x| to.number(x));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let n_samples = from.number()?;
        let (weight, squares, range) = (from.real()?, from.real()?, [from.real()?, from.real()?]);
        let digest = u128::from(from.number()?) | u128::from(from.number()?) << 64;
        let (sum, unseen) = (from.reals()?, from.reals()?);
        if !unseen.is_empty() && unseen.len() != sum.len() {
            return Err(from.wrong("what is missing does not fit the samples"));
        }
        let missing = MissingCells { cells: from.number()?, samples: from.number()?, empty: from.number()? };
        Ok(Self { n_samples, weight, sum, squares, unseen, missing, range, digest })
    }
}
