//! One look at all samples: their norms and the range of their values.

use crate::data::Samples;
use crate::error::Result;

/// What a pass over the values finds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Survey {
    /// ‖X_n‖² of every sample.
    pub(crate) squared_norm: Vec<f64>,
    /// The smallest value.
    pub(crate) low: f64,
    /// The largest value.
    pub(crate) high: f64,
    /// The value below which one in a thousand lies: the dark end of a colour scale that a few spikes cannot spoil.
    pub(crate) middle_low: f64,
    /// The value above which one in a thousand lies.
    pub(crate) middle_high: f64,
}

/// Reads every sample once, a bounded number at a time. NaN and infinity are errors: no figure could show them.
pub(crate) fn survey(samples: &Samples<'_>) -> Result<Survey> {
    const KEPT: usize = 1 << 20;
    let size = samples.sample_len();
    let at_once = ((1 << 20) / size).clamp(1, samples.len());
    let stride = (samples.len() * size).div_ceil(KEPT) | 1;
    let mut found = Survey { low: f64::INFINITY, high: f64::NEG_INFINITY, ..Survey::default() };
    let mut kept = Vec::new();
    for start in (0..samples.len()).step_by(at_once) {
        let range = start..(start + at_once).min(samples.len());
        let values = samples.to_f64(range.clone())?;
        if values.iter().any(|v| !v.is_finite()) {
            samples.check_finite(range)?;
        }
        found.squared_norm.extend(values.chunks_exact(size).map(|x| x.iter().map(|v| v * v).sum::<f64>()));
        for (i, &v) in values.iter().enumerate() {
            found.low = found.low.min(v);
            found.high = found.high.max(v);
            if (start * size + i).is_multiple_of(stride) {
                kept.push(v);
            }
        }
    }
    kept.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| kept[((kept.len() - 1) as f64 * share).round() as usize];
    (found.middle_low, found.middle_high) = (at(0.001), at(0.999));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn norms_and_range_are_found_and_a_spike_does_not_set_the_scale() {
        let mut values: Vec<f64> = (0..4000).map(|i| f64::from(i % 100)).collect();
        values[1234] = 1e6;
        let samples = Samples::from_vec(&[20], values.clone()).unwrap();
        let found = survey(&samples).unwrap();
        let norm: f64 = values[20..40].iter().map(|v| v * v).sum();
        assert_eq!((found.squared_norm.len(), found.squared_norm[1]), (200, norm));
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
}
