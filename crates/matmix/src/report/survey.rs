//! Two looks at all samples: their mean and the range of their values, then how far they are from means.

use std::ops::Range;

use crate::data::Samples;
use crate::error::{Error, Result};

/// What a pass over the values finds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Survey {
    /// The mean of all samples, weighted.
    pub(crate) mean: Vec<f64>,
    /// The smallest value.
    pub(crate) low: f64,
    /// The largest value.
    pub(crate) high: f64,
    /// The value below which one in a thousand lies: the dark end of a colour scale that a few spikes cannot spoil.
    pub(crate) middle_low: f64,
    /// The value above which one in a thousand lies.
    pub(crate) middle_high: f64,
    /// How many cells are missing of each sample.
    pub(crate) holes: Vec<usize>,
    /// How many samples lack each cell.
    pub(crate) lacking: Vec<usize>,
}

impl Survey {
    /// How many cells are missing in all.
    pub(crate) fn missing(&self) -> usize {
        self.holes.iter().sum()
    }

    /// How many cells were observed of sample `n`.
    pub(crate) fn observed(&self, n: usize) -> usize {
        self.mean.len() - self.holes[n]
    }
}

/// Reads every sample once. Infinity is an error, and NaN where it is not a missing cell: no figure could show them.
///
/// The mean of a cell is that of the samples that have it; one that none has gets the mean of all others.
pub(crate) fn survey(samples: &Samples<'_>) -> Result<Survey> {
    const KEPT: usize = 1 << 20;
    let size = samples.sample_len();
    let stride = (samples.len() * size).div_ceil(KEPT) | 1;
    let total = samples.total_weight();
    let mut found = Survey {
        mean: vec![0.0; size],
        low: f64::INFINITY,
        high: f64::NEG_INFINITY,
        holes: vec![0; samples.len()],
        lacking: vec![0; size],
        ..Survey::default()
    };
    // The share of the weight that each cell does not have.
    let mut lost = vec![0.0; size];
    let mut kept = Vec::new();
    in_pieces(samples, |range, values| {
        if values.iter().any(|v| !v.is_finite()) {
            samples.check_finite(range.clone())?;
        }
        for (n, x) in range.clone().zip(values.chunks_exact(size)) {
            let share = samples.weight(n) / total;
            for (i, &v) in x.iter().enumerate() {
                if v.is_nan() {
                    lost[i] += share;
                    found.lacking[i] += 1;
                    found.holes[n] += 1;
                } else {
                    found.mean[i] += share * v;
                }
            }
        }
        for (i, &v) in values.iter().enumerate().filter(|(_, v)| !v.is_nan()) {
            found.low = found.low.min(v);
            found.high = found.high.max(v);
            if (range.start * size + i).is_multiple_of(stride) {
                kept.push(v);
            }
        }
        Ok(())
    })?;
    if found.low > found.high {
        return Err(Error::NothingObserved);
    }
    level(&mut found.mean, &lost);
    if kept.is_empty() {
        kept = vec![found.low, found.high];
    }
    kept.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| kept[((kept.len() - 1) as f64 * share).round() as usize];
    (found.middle_low, found.middle_high) = (at(0.001), at(0.999));
    Ok(found)
}

/// Makes means of sums that lack these shares of their weight; a cell that lacks all of it gets the mean of the others.
fn level(sums: &mut [f64], lost: &[f64]) {
    // What rounding leaves of a share of nothing.
    const NOTHING: f64 = 1e-9;
    if lost.iter().all(|&lost| lost == 0.0) {
        return;
    }
    let seen: f64 = lost.iter().map(|lost| 1.0 - lost).sum();
    let middle = if seen > NOTHING { sums.iter().sum::<f64>() / seen } else { 0.0 };
    for (sum, lost) in sums.iter_mut().zip(lost) {
        *sum = if 1.0 - lost > NOTHING { *sum / (1.0 - lost) } else { middle };
    }
}

/// ‖X_n − M‖² of the observed cells of every sample, for both of the means that `means` gives for its number.
pub(crate) fn squared_distances<'m>(
    samples: &Samples<'_>,
    means: impl Fn(usize) -> [&'m [f64]; 2],
) -> Result<[Vec<f64>; 2]> {
    let mut found = [Vec::with_capacity(samples.len()), Vec::with_capacity(samples.len())];
    in_pieces(samples, |range, values| {
        for (n, x) in range.zip(values.chunks_exact(samples.sample_len())) {
            for (found, mean) in found.iter_mut().zip(means(n)) {
                let observed = x.iter().zip(mean).filter(|(x, _)| !x.is_nan());
                found.push(observed.map(|(x, m)| (x - m) * (x - m)).sum());
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// Reads the samples a bounded number at a time.
fn in_pieces(samples: &Samples<'_>, mut see: impl FnMut(Range<usize>, &[f64]) -> Result<()>) -> Result<()> {
    let at_once = ((1 << 20) / samples.sample_len()).clamp(1, samples.len());
    for start in (0..samples.len()).step_by(at_once) {
        let range = start..(start + at_once).min(samples.len());
        see(range.clone(), &samples.to_f64(range)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Missing;

    #[test]
    fn mean_and_range_are_found_and_a_spike_does_not_set_the_scale() {
        let mut values: Vec<f64> = (0..4000).map(|i| f64::from(i % 100)).collect();
        values[1234] = 1e6;
        let samples = Samples::from_vec(&[20], values.clone()).unwrap();
        let found = survey(&samples).unwrap();
        let mean: f64 = values.iter().skip(1).step_by(20).sum::<f64>() / 200.0;
        assert!((found.mean[1] - mean).abs() < 1e-12 * mean);
        let zero = [0.0; 20];
        let [from_mean, norms] = squared_distances(&samples, |_| [&found.mean, &zero]).unwrap();
        let norm: f64 = values[20..40].iter().map(|v| v * v).sum();
        assert_eq!((norms.len(), norms[1]), (200, norm));
        // Σ‖X − M‖² = Σ‖X‖² − N‖M‖².
        let square: f64 = found.mean.iter().map(|m| m * m).sum();
        let expected = norms.iter().sum::<f64>() - 200.0 * square;
        assert!((from_mean.iter().sum::<f64>() - expected).abs() < 1e-9 * expected);
        assert_eq!((found.low, found.high), (0.0, 1e6));
        assert!(found.middle_high <= 99.0 && found.middle_low == 0.0);
    }

    #[test]
    fn a_nan_is_an_error_with_its_place() {
        let mut values = vec![0.0f64; 60];
        values[41] = f64::NAN;
        let samples = Samples::from_vec(&[20], values).unwrap();
        assert!(matches!(survey(&samples), Err(Error::NotFinite { sample: 2, .. })));
    }

    #[test]
    fn missing_cells_are_counted_and_leave_the_means_of_the_others() {
        let nan = f64::NAN;
        let values = vec![1.0, nan, nan, 3.0, 4.0, nan, nan, nan, nan, 5.0, 6.0, nan];
        let samples = Samples::from_vec(&[3], values).unwrap();
        assert!(survey(&samples).is_err());
        let samples = samples.with_missing(Missing::Nan);
        let found = survey(&samples).unwrap();
        assert_eq!((found.holes.as_slice(), found.lacking.as_slice()), (&[2, 1, 3, 1][..], &[1, 2, 4][..]));
        assert_eq!((found.missing(), found.observed(2), found.low, found.high), (7, 0, 1.0, 6.0));
        // 3, 5, and of all five numbers 3.8.
        let expected = [3.0, 5.0, 3.8];
        assert!(found.mean.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{:?}", found.mean);
        let [distances, _] = squared_distances(&samples, |_| [&expected, &expected]).unwrap();
        assert_eq!(distances, [4.0, 1.0, 0.0, 5.0]);
        let nothing = Samples::from_vec(&[2], vec![nan; 4]).unwrap().with_missing(Missing::Nan);
        assert_eq!(survey(&nothing), Err(Error::NothingObserved));
    }
}
