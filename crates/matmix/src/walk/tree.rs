//! The one order in which the sums of parts are added.
//!
//! Sums of floating-point numbers depend on their order in the last bits. Parts are therefore added in groups of
//! [`FAN_IN`] neighbours, the results in groups of as many, and so on until one is left. Which sums are added to which
//! depends on the number and order of the parts alone, never on who finishes first: threads, processes and
//! machines get the same bits.

use std::ops::Range;

use crate::error::Result;

/// How many neighbours are added at a time.
pub(crate) const FAN_IN: usize = 8;

/// The additions for so many parts, level by level: each range is one sum to make, from those of the level below it,
/// from left to right. The first level adds parts, the last one has one range. One part needs no level.
///
/// ```
/// use matmix::pass::tree_levels as levels;
///
/// assert_eq!(levels(10), [vec![0..8, 8..10], vec![0..2]]);
/// ```
pub fn levels(parts: usize) -> Vec<Vec<Range<usize>>> {
    let mut levels = Vec::new();
    let mut width = parts;
    while width > 1 {
        let level: Vec<_> = (0..width).step_by(FAN_IN).map(|i| i..(i + FAN_IN).min(width)).collect();
        width = level.len();
        levels.push(level);
    }
    levels
}

/// The tree for whatever can be added.
#[derive(Debug)]
pub(crate) struct Reduction<R> {
    /// Per level the sum that is being made and how many went into it.
    levels: Vec<Option<(R, usize)>>,
}

impl<R> Default for Reduction<R> {
    fn default() -> Self {
        Self { levels: Vec::new() }
    }
}

impl<R> Reduction<R> {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn push(&mut self, sum: R, add: &mut impl FnMut(&mut R, &R) -> Result<()>) -> Result<()> {
        let (mut level, mut carried) = (0, sum);
        loop {
            if level == self.levels.len() {
                self.levels.push(None);
            }
            match &mut self.levels[level] {
                empty @ None => {
                    *empty = Some((carried, 1));
                    return Ok(());
                }
                Some((sum, count)) => {
                    add(sum, &carried)?;
                    *count += 1;
                    if *count < FAN_IN {
                        return Ok(());
                    }
                }
            }
            let Some((whole, _)) = self.levels[level].take() else { return Ok(()) };
            (level, carried) = (level + 1, whole);
        }
    }

    pub(crate) fn finish(self, add: &mut impl FnMut(&mut R, &R) -> Result<()>) -> Result<Option<R>> {
        let mut last: Option<R> = None;
        for level in self.levels {
            last = match (level, last) {
                (Some((mut sum, _)), Some(rest)) => {
                    add(&mut sum, &rest)?;
                    Some(sum)
                }
                (level, last) => level.map(|(sum, _)| sum).or(last),
            };
        }
        Ok(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of very different size, so that another order shows.
    fn part(n: usize) -> f64 {
        (n as f64 * 0.7).sin() * 10f64.powi((n % 17) as i32)
    }

    fn by_levels(parts: usize) -> f64 {
        let mut sums: Vec<f64> = (0..parts).map(part).collect();
        for level in levels(parts) {
            sums = level
                .into_iter()
                .map(|range| sums[range].iter().copied().reduce(|a, b| a + b).unwrap())
                .collect();
        }
        assert_eq!(sums.len(), 1);
        sums[0]
    }

    #[test]
    fn streamed_and_level_by_level_are_the_same_bits() {
        let mut add = |a: &mut f64, b: &f64| {
            *a += b;
            Ok(())
        };
        for parts in (1..200).chain([511, 512, 513, 1000]) {
            let mut tree = Reduction::new();
            for n in 0..parts {
                tree.push(part(n), &mut add).unwrap();
                assert!(tree.levels.len() <= 2 + n.max(1).ilog(FAN_IN) as usize);
            }
            assert_eq!(tree.finish(&mut add).unwrap(), Some(by_levels(parts)), "{parts} parts");
        }
        assert_eq!(Reduction::<f64>::new().finish(&mut add).unwrap(), None);
    }

    #[test]
    fn the_order_of_addition_matters_to_these_sums() {
        assert_ne!((1..100).fold(part(0), |sum, n| sum + part(n)), by_levels(100));
    }
}
