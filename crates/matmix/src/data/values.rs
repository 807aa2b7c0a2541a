//! The values of a set at a glance.

use super::samples::Samples;
use crate::error::Result;
use crate::parallel;

/// Ends and mean of all values of a set, as they are after scaling.
///
/// ```
/// use matmix::Samples;
/// use matmix::data::Values;
///
/// let samples = Samples::from_vec(&[1, 2], vec![4u8, 0, 2, 6])?.scaled(0.5)?;
/// assert_eq!(Values::of(&samples)?, Values { low: 0.0, high: 3.0, mean: 1.5, missing: 0 });
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Values {
    /// The smallest value.
    pub low: f64,
    /// The largest value.
    pub high: f64,
    /// The mean of all values.
    pub mean: f64,
    /// The number of cells without a value: NaN.
    pub missing: usize,
}

impl Values {
    /// Reads every sample once. NaN is left out, as a missing cell is; where nothing is left the ends are infinite and the mean is NaN.
    ///
    /// # Errors
    /// If the samples cannot be read.
    pub fn of(samples: &Samples<'_>) -> Result<Self> {
        /// How many values are read at a time: what they become in double precision stays in cache.
        const AT_ONCE: usize = 1 << 16;
        let step = (AT_ONCE / samples.sample_len()).max(1);
        let pieces = parallel::map(samples.len().div_ceil(step), |i| {
            let range = i * step..((i + 1) * step).min(samples.len());
            samples.to_f64(range).map(|values| Sums::of(&values))
        });
        let mut all = Sums::default();
        for piece in pieces {
            all.add(&piece?);
        }
        let cells = samples.len() * samples.sample_len();
        Ok(Self {
            low: all.low,
            high: all.high,
            mean: all.sum / all.count,
            missing: cells - all.count as usize,
        })
    }
}

/// What pieces of a set add up to.
struct Sums {
    low: f64,
    high: f64,
    sum: f64,
    count: f64,
}

impl Default for Sums {
    fn default() -> Self {
        Self { low: f64::INFINITY, high: f64::NEG_INFINITY, sum: 0.0, count: 0.0 }
    }
}

impl Sums {
    fn of(values: &[f64]) -> Self {
        let mut sums = Self::default();
        for &x in values.iter().filter(|x| !x.is_nan()) {
            sums.add(&Self { low: x, high: x, sum: x, count: 1.0 });
        }
        sums
    }

    fn add(&mut self, other: &Self) {
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
        self.sum += other.sum;
        self.count += other.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_counts_and_missing_cells_do_not() {
        // Three pieces, the last of them short; the ends are in the first and in the last.
        let n = 150_000;
        let mut x: Vec<f64> = (0..n).map(|i| f64::from(i) - 7.0).collect();
        let found = Values::of(&Samples::from_slice(&[3], &x).unwrap()).unwrap();
        let middle = f64::from(n - 1) / 2.0 - 7.0;
        assert_eq!(found, Values { low: -7.0, high: f64::from(n - 8), mean: middle, missing: 0 });
        // Of a symmetric set both ends go.
        x[0] = f64::NAN;
        x[n as usize - 1] = f64::NAN;
        let found = Values::of(&Samples::from_vec(&[3], x).unwrap()).unwrap();
        assert_eq!(found, Values { low: -6.0, high: f64::from(n - 9), mean: middle, missing: 2 });
        let nothing = Values::of(&Samples::from_vec(&[1], vec![f32::NAN; 2]).unwrap()).unwrap();
        assert!(nothing.low > nothing.high && nothing.mean.is_nan() && nothing.missing == 2);
    }
}
