//! A part of the samples that every engine agrees on.
//!
//! Early iterations of a fit need not see all samples. A sample belongs to stage s if a fixed hash of its number is
//! below 2⁻ˢ: stages are nested, the same in memory, in files and on a cluster, and samples that come sorted do no harm.

use crate::data::Samples;

/// One in 2ˢ of the samples, chosen by their numbers alone. Stage 0 is all of them.
///
/// ```
/// use matmix::pass::Stage;
///
/// let quarter = Stage::new(2);
/// assert_eq!((quarter.share(), quarter.doubled(), Stage::ALL.count(1000)), (0.25, Stage::new(1), 1000));
/// // Who belongs to a stage belongs to every larger one.
/// assert!((0..1000).filter(|&n| quarter.holds(n)).all(|n| Stage::new(1).holds(n)));
/// assert_eq!(quarter.count(1000), (0..1000).filter(|&n| quarter.holds(n)).count());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Stage(u8);

impl Stage {
    /// All samples.
    pub const ALL: Stage = Stage(0);

    /// One sample in 2ˢ.
    pub fn new(halvings: u8) -> Self {
        Self(halvings.min(63))
    }

    /// The smallest part of `n` samples that has at least so many of them; all, if that would be most of them.
    pub(crate) fn of_at_least(least: f64, n: f64) -> Self {
        let halvings = (n / least).log2().floor();
        // Half of the samples are not worth a stage.
        if halvings >= 2.0 { Self::new(halvings as u8) } else { Self::ALL }
    }

    /// s.
    pub fn halvings(self) -> u8 {
        self.0
    }

    /// The share of the samples that is expected to belong to it: 2⁻ˢ.
    pub fn share(self) -> f64 {
        0.5f64.powi(i32::from(self.0))
    }

    /// The next larger one.
    pub fn doubled(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// Whether sample `n` of the whole set belongs to it.
    pub fn holds(self, n: usize) -> bool {
        self.0 == 0 || hash(n as u64) >> (64 - u32::from(self.0)) == 0
    }

    /// How many of samples `0..n` belong to it.
    pub fn count(self, n: usize) -> usize {
        if self.0 == 0 { n } else { (0..n).filter(|&i| self.holds(i)).count() }
    }

    /// Those of `samples` that belong to it, by their places; the first of `samples` has the number `first`.
    pub(crate) fn places(self, samples: &Samples<'_>, first: usize) -> Vec<usize> {
        (0..samples.len()).filter(|&n| self.holds(first + n)).collect()
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): every bit of the number changes every bit of the hash.
fn hash(n: u64) -> u64 {
    let mut z = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_nested_and_hold_their_share() {
        let n = 100_000;
        for s in 1..8 {
            let (stage, larger) = (Stage::new(s), Stage::new(s).doubled());
            assert!((0..n).filter(|&i| stage.holds(i)).all(|i| larger.holds(i)));
            let (count, expected) = (stage.count(n) as f64, stage.share() * n as f64);
            // Five standard deviations.
            assert!((count - expected).abs() < 5.0 * expected.sqrt(), "stage {s}: {count}");
            // Every residue class has its share, too: sets are often periodic.
            let sevenths = (0..n).step_by(7).filter(|&i| stage.holds(i)).count() as f64;
            assert!((sevenths - expected / 7.0).abs() < 5.0 * (expected / 7.0).sqrt());
        }
        assert_eq!(Stage::ALL.count(17), 17);
    }
}
