//! Mean and total variance of a set: one pass, in double precision.

use super::chunks;
use crate::data::{Buffer, Samples};
use crate::error::{Error, Result};

/// Mean and spread of all samples.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moments {
    /// Σ w X / Σ w.
    pub(crate) mean: Vec<f64>,
    /// Σ w ‖X − mean‖² / Σ w.
    pub(crate) variance: f64,
}

/// The moments of a set. Also where NaN and infinity are found before a fit begins.
pub(crate) fn moments(samples: &Samples<'_>) -> Result<Moments> {
    let size = samples.sample_len();
    // Sums of differences from one of the samples do not cancel the way sums of squares would; one that counts, so that
    // it lies among the others.
    let heavier = |a: usize, b: usize| if samples.weight(b) > samples.weight(a) { b } else { a };
    let first = (1..samples.len()).fold(0, heavier);
    let mut origin = samples.to_f64(first..first + 1)?;
    if origin.iter().any(|x| !x.is_finite()) {
        // The pass will find it, or one before it.
        origin.fill(0.0);
    }
    let (mut sum, mut squares, mut weight) = (vec![0.0; size], 0.0, 0.0);
    chunks::fold(
        samples,
        size * size_of::<f64>(),
        Buffer::new,
        |buffer, range| {
            let chunk = samples.stored(range.clone(), buffer)?;
            let (mut sum, mut squares, mut weight) = (vec![0.0; size], 0.0, 0.0);
            for n in 0..range.len() {
                let w = samples.weight(range.start + n);
                weight += w;
                let mut square = 0.0;
                for (i, (s, o)) in sum.iter_mut().zip(&origin).enumerate() {
                    let d = chunk.get(n * size + i) * samples.scale() - o;
                    *s += w * d;
                    square += d * d;
                }
                if !square.is_finite() {
                    samples.check_finite(range.clone())?;
                    return Err(Error::Overflow { sample: range.start + n });
                }
                squares += w * square;
            }
            Ok((sum, squares, weight))
        },
        |(s, q, w)| {
            sum.iter_mut().zip(&s).for_each(|(a, b)| *a += b);
            squares += q;
            weight += w;
        },
    )?;
    let shift: Vec<f64> = sum.iter().map(|s| s / weight).collect();
    let shift_norm: f64 = shift.iter().map(|s| s * s).sum();
    Ok(Moments {
        mean: origin.iter().zip(&shift).map(|(o, s)| o + s).collect(),
        variance: (squares / weight - shift_norm).max(0.0),
    })
}
