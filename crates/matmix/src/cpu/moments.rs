//! Mean, variance and extremes of a set, and a digest of its content: one pass, in double precision.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::load::Stored;
use crate::data::{Chunk, Missing, Samples, samples_with_nan};
use crate::error::{Error, Result};
use crate::pass::{MomentSums, MomentsPass};
use crate::simd::Instructions;
use crate::walk::{self, Job};

/// Sums that are made side by side: a single one would wait for itself.
const SUMS: usize = 8;

/// The sums of a set whose first sample has the number `first`.
pub(super) fn moments(
    pass: &MomentsPass,
    samples: &Samples<'_>,
    first: usize,
    on: Instructions,
) -> Result<MomentSums> {
    walk::sum(samples, &Moments { pass, samples, first, on })
}

struct Moments<'a> {
    pass: &'a MomentsPass,
    samples: &'a Samples<'a>,
    first: usize,
    on: Instructions,
}

impl Job for Moments<'_> {
    /// Room for a sample.
    type Scratch = Vec<f64>;
    type Sum = MomentSums;

    fn scratch(&self) -> Vec<f64> {
        vec![0.0; self.pass.origin.len()]
    }

    fn zero(&self) -> MomentSums {
        MomentSums::zero(self.pass.origin.len())
    }

    fn add(
        &self,
        x: &mut Vec<f64>,
        range: Range<usize>,
        chunk: Chunk<'_>,
        sums: &mut MomentSums,
    ) -> Result<()> {
        let stored = Stored::new(self.samples, range.clone(), chunk);
        let holes = match self.samples.missing() {
            Missing::Error => Vec::new(),
            Missing::Nan => samples_with_nan(chunk, stored.sample_len),
        };
        for n in 0..stored.count() {
            let weight = stored.weight(n);
            let origin = &self.pass.origin;
            let range = &mut sums.range;
            let square = match holes.binary_search(&n) {
                Err(_) => add_difference(self.on, stored, n, origin, weight, x, &mut sums.sum, range),
                Ok(_) => add_observed(stored, n, origin, x, sums),
            };
            if !square.is_finite() {
                self.samples.check_finite(stored.first + n..stored.first + n + 1)?;
                return Err(Error::Overflow { sample: stored.first + n });
            }
            sums.n_samples += 1;
            sums.weight += weight;
            sums.squares += weight * square;
            if self.pass.digest {
                let size = stored.sample_len;
                let bytes = chunk.slice(n * size..(n + 1) * size).bytes();
                let number = (self.first + stored.first + n) as u64;
                sums.digest = sums.digest.wrapping_add(hash(bytes, number, weight));
            }
        }
        Ok(())
    }

    fn merge(&self, sum: &mut MomentSums, following: &MomentSums) {
        sum.append(following);
    }

    fn sum_bytes(&self) -> usize {
        self.pass.origin.len() * size_of::<f64>()
    }
}

/// The same as [`add_difference`] of the observed cells of a sample; takes note of the others.
fn add_observed(
    stored: Stored<'_>,
    n: usize,
    origin: &[f64],
    room: &mut [f64],
    sums: &mut MomentSums,
) -> f64 {
    let weight = stored.weight(n);
    stored.load(n, 0..origin.len(), origin, room);
    sums.unseen.resize(origin.len(), 0.0);
    let (mut square, mut missing) = (0.0, 0);
    for (i, &x) in room.iter().enumerate() {
        if x.is_nan() {
            sums.unseen[i] += weight;
            missing += 1;
            continue;
        }
        sums.sum[i] += weight * x;
        square += x * x;
        let x = x + origin[i];
        sums.range = [sums.range[0].min(x), sums.range[1].max(x)];
    }
    sums.missing.cells += missing;
    sums.missing.samples += 1;
    sums.missing.empty += u64::from(missing == origin.len() as u64);
    square
}

/// What a sample, its number and its weight are recognised by.
fn hash(bytes: &[u8], number: u64, weight: f64) -> u128 {
    let seed = number ^ weight.to_bits().rotate_left(32);
    xxhash_rust::xxh3::xxh3_128_with_seed(bytes, seed)
}

/// Adds w (x − origin) of sample `n` to `sum`, takes note of its extremes and returns ‖x − origin‖²; `room` is one for a sample.
pub(super) fn add_difference(
    on: Instructions,
    stored: Stored<'_>,
    n: usize,
    origin: &[f64],
    weight: f64,
    room: &mut [f64],
    sum: &mut [f64],
    range: &mut [f64; 2],
) -> f64 {
    on.run::<f64, _>(Difference { stored, n, origin, weight, room, sum, range })
}

struct Difference<'a> {
    stored: Stored<'a>,
    n: usize,
    origin: &'a [f64],
    weight: f64,
    room: &'a mut [f64],
    sum: &'a mut [f64],
    range: &'a mut [f64; 2],
}

impl WithSimd for Difference<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let Self { stored, n, origin, weight, room, sum, range } = self;
        stored.load(n, 0..origin.len(), origin, room);
        let mut squares = [0.0; SUMS];
        let (mut least, mut largest) = ([f64::INFINITY; SUMS], [f64::NEG_INFINITY; SUMS]);
        let (d, d_rest) = room.as_chunks::<SUMS>();
        let (g, g_rest) = origin.as_chunks::<SUMS>();
        let (sum, sum_rest) = sum.as_chunks_mut::<SUMS>();
        for ((d, g), s) in d.iter().zip(g).zip(sum) {
            // Arrays of their own, one loop each: these become vectors.
            for i in 0..SUMS {
                s[i] += weight * d[i];
            }
            for i in 0..SUMS {
                squares[i] += d[i] * d[i];
            }
            for i in 0..SUMS {
                let x = d[i] + g[i];
                least[i] = if x < least[i] { x } else { least[i] };
                largest[i] = if x > largest[i] { x } else { largest[i] };
            }
        }
        for i in 0..d_rest.len() {
            sum_rest[i] += weight * d_rest[i];
            squares[i] += d_rest[i] * d_rest[i];
            least[i] = least[i].min(d_rest[i] + g_rest[i]);
            largest[i] = largest[i].max(d_rest[i] + g_rest[i]);
        }
        for i in 0..SUMS {
            range[0] = range[0].min(least[i]);
            range[1] = range[1].max(largest[i]);
        }
        squares.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_those_written_out_on_every_instruction_set() {
        for size in [1, 7, 8, 29] {
            let bytes: Vec<u8> = (0..size).map(|i| (i * 37 % 251) as u8).collect();
            let double: Vec<f64> = bytes.iter().map(|&x| f64::from(x)).collect();
            // Halves and quarters: every sum is exact, in whatever order it is made.
            let origin: Vec<f64> = (0..size).map(|i| i as f64 * 0.5).collect();
            let before: Vec<f64> = (0..size).map(|i| i as f64).collect();
            let difference = |i: usize| 0.25 * double[i] - origin[i];
            let expected: Vec<f64> = (0..size).map(|i| before[i] + 3.0 * difference(i)).collect();
            let square: f64 = (0..size).map(|i| difference(i) * difference(i)).sum();
            let extremes = double
                .iter()
                .fold([f64::INFINITY, f64::NEG_INFINITY], |[a, b], &x| [a.min(0.25 * x), b.max(0.25 * x)]);
            let samples = Samples::from_slice(&[size], &bytes).unwrap().scaled(0.25).unwrap();
            let stored = Stored::new(&samples, 0..1, Chunk::U8(&bytes));
            for on in Instructions::available() {
                let (mut sum, mut room) = (before.clone(), vec![0.0; size]);
                let mut range = [f64::INFINITY, f64::NEG_INFINITY];
                let found = add_difference(on, stored, 0, &origin, 3.0, &mut room, &mut sum, &mut range);
                assert_eq!((found, &sum, range), (square, &expected, extremes), "{on}, {size} elements");
            }
        }
    }

    #[test]
    fn a_digest_knows_samples_their_order_and_their_weights_but_not_their_parts() {
        let x: Vec<f64> = (0..60).map(|i| f64::from(i) * 0.1).collect();
        let samples = Samples::from_slice(&[3], &x).unwrap();
        let pass = MomentsPass { origin: vec![0.0; 3], digest: true };
        let digest = |samples: &Samples<'_>, first| {
            moments(&pass, samples, first, Instructions::best()).unwrap().digest
        };
        let whole = digest(&samples, 0);
        let parts = [(0..7, 0), (7..20, 7)]
            .map(|(part, first)| digest(&samples.clone().select(&part.collect::<Vec<_>>()).unwrap(), first));
        assert_eq!(parts[0].wrapping_add(parts[1]), whole);
        let mut order: Vec<usize> = (0..20).collect();
        order.swap(3, 11);
        assert_ne!(digest(&samples.clone().select(&order).unwrap(), 0), whole);
        let weighted = samples.clone().with_weights((0..20).map(|n| f64::from(n % 2)).collect()).unwrap();
        assert_ne!(digest(&weighted, 0), whole);
    }
}
