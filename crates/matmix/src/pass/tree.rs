//! The one order in which the sums of parts are added.
//!
//! Sums of floating-point numbers depend on their order in the last bits. Parts are therefore added in groups of
//! [`FAN_IN`] neighbours, the results in groups of as many, and so on until one is left. Which sums are added to which
//! depends on the number and order of the parts alone, never on who finishes first: threads, processes and
//! machines get the same bits.

use std::ops::Range;

use super::sums::Sums;
use crate::error::Result;

/// How many neighbours are added at a time.
pub const FAN_IN: usize = 8;

/// The additions for so many parts, level by level: each range is one sum to make, from those of the level below it,
/// from left to right. The first level adds parts, the last one has one range. One part needs no level.
///
/// ```
/// use matmix::pass::tree::levels;
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

/// Takes the sums of parts in their order and adds them as [`levels`] says, holding no more than one sum per level.
#[derive(Debug)]
pub struct Tree(Reduction<Sums>);

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Tree {
    /// A tree without sums.
    pub fn new() -> Self {
        Self(Reduction::new())
    }

    /// Adds the sums of the next part.
    pub fn push(&mut self, sums: Sums) -> Result<()> {
        self.0.push(sums, &mut Sums::merge)
    }

    /// The sums of all parts; `None` if there were none.
    pub fn finish(self) -> Result<Option<Sums>> {
        self.0.finish(&mut Sums::merge)
    }
}

/// The tree for whatever can be added.
#[derive(Debug)]
pub(super) struct Reduction<R> {
    /// Per level the sum that is being made and how many went into it.
    levels: Vec<Option<(R, usize)>>,
}

impl<R> Reduction<R> {
    pub(super) fn new() -> Self {
        Self { levels: Vec::new() }
    }

    pub(super) fn push(&mut self, sum: R, add: &mut impl FnMut(&mut R, &R) -> Result<()>) -> Result<()> {
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

    pub(super) fn finish(self, add: &mut impl FnMut(&mut R, &R) -> Result<()>) -> Result<Option<R>> {
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
    use crate::pass::moments::MomentSums;

    fn part(n: usize) -> Sums {
        // Numbers of very different size, so that another order shows.
        let value = (n as f64 * 0.7).sin() * 10f64.powi((n % 17) as i32);
        Sums::Moments(MomentSums { n_samples: 1, weight: value, sum: vec![value, -value], squares: value })
    }

    fn by_levels(parts: usize) -> Sums {
        let mut sums: Vec<Sums> = (0..parts).map(part).collect();
        for level in levels(parts) {
            sums = level
                .into_iter()
                .map(|range| {
                    let mut sum = sums[range.start].clone();
                    sums[range.start + 1..range.end].iter().for_each(|s| sum.merge(s).unwrap());
                    sum
                })
                .collect();
        }
        assert_eq!(sums.len(), 1);
        sums.remove(0)
    }

    #[test]
    fn streamed_and_level_by_level_are_the_same_bits() {
        for parts in (1..200).chain([511, 512, 513, 1000]) {
            let mut tree = Tree::new();
            for n in 0..parts {
                tree.push(part(n)).unwrap();
                assert!(tree.0.levels.len() <= 2 + n.max(1).ilog(FAN_IN) as usize);
            }
            let streamed = tree.finish().unwrap().unwrap();
            assert_eq!(streamed, by_levels(parts), "{parts} parts");
            assert_eq!(streamed.n_samples(), parts as u64);
        }
        assert_eq!(Tree::new().finish().unwrap(), None);
    }

    #[test]
    fn the_order_of_addition_matters_to_these_sums() {
        let mut plain = part(0);
        (1..100).for_each(|n| plain.merge(&part(n)).unwrap());
        assert_ne!(plain, by_levels(100));
    }
}
