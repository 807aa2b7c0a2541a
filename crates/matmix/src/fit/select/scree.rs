//! How variance is spread over the directions of every mode: the scree, and the smallest cores that explain a share of it.

use super::super::passes;
use crate::data::Samples;
use crate::error::{Error, Result};
use crate::linalg::{Matrix, eigen_symmetric, project, sides_around};
use crate::parallel;
use crate::pass::Backend;

/// Multiply-adds that are spent on turning samples: of more samples every so many-th is turned, which is enough for a share.
const OPERATIONS: usize = 20_000_000_000;

/// Longer modes are not decomposed: their scatter alone would take longer than all candidates.
pub(super) const LONGEST: usize = 1024;

/// Samples that are turned at a time.
const STRETCH: usize = 256;

/// The variance of samples in groups, around the means of the groups.
pub(super) struct Spectrum {
    /// For each mode, the shares of the variance within groups that lie along its directions, descending; none for a mode that is too long.
    pub(super) scree: Vec<Vec<f64>>,
    /// The directions of every mode that is not too long and the mean of each group that has samples.
    turned: Vec<Turned>,
    shape: Vec<usize>,
}

/// A group in the axes of its own directions.
struct Turned {
    members: Vec<usize>,
    mean: Vec<f64>,
    directions: Vec<Matrix>,
}

impl Spectrum {
    /// That of the samples at these places.
    pub(super) fn new(samples: &Samples<'_>, backend: &dyn Backend, groups: &[Vec<usize>]) -> Result<Self> {
        let shape = samples.shape().to_vec();
        let modes: Vec<usize> = (0..shape.len()).filter(|&d| shape[d] <= LONGEST).collect();
        let mut scree = vec![vec![]; shape.len()];
        modes.iter().for_each(|&d| scree[d] = vec![0.0; shape[d]]);
        let mut turned = Vec::new();
        if modes.is_empty() {
            return Ok(Self { scree, turned, shape });
        }
        for members in groups.iter().filter(|members| !members.is_empty()) {
            let part = samples.clone().select(members)?;
            let held = backend.over(&part)?;
            let mean = passes::moments(&*held, false)?.mean;
            let sums = passes::scatters(&*held, &mean, &vec![None; shape.len()], &modes)?;
            let mut directions = Vec::new();
            for (scatter, &d) in sums.scatters.iter().zip(&modes) {
                let eigen = eigen_symmetric(scatter).ok_or(Error::Overflow { sample: 0 })?;
                scree[d].iter_mut().zip(&eigen.values).for_each(|(sum, value)| *sum += value.max(0.0));
                directions.push(eigen.vectors);
            }
            turned.push(Turned { members: members.clone(), mean, directions });
        }
        for mode in &mut scree {
            let total: f64 = mode.iter().sum();
            mode.iter_mut().for_each(|value| *value /= total.max(f64::MIN_POSITIVE));
        }
        Ok(Self { scree, turned, shape })
    }

    /// The ranks of the smallest cores that explain this share of the variance of all samples, what lies between the groups counting as
    /// explained; of several, those that explain most. No mode may be too long.
    pub(super) fn smallest(&self, samples: &Samples<'_>, share: f64) -> Result<Vec<usize>> {
        let (within, squares) = self.entries(samples)?;
        let left: f64 = within.iter().sum();
        // Of the variance of all samples this much may be left over; what is between the groups is not.
        let allowed = (1.0 - share) * squares;
        let sums = summed(within, &self.shape);
        let mut best: Option<(usize, f64, Vec<usize>)> = None;
        for (at, &explained) in sums.iter().enumerate() {
            let rank = ranks_at(at, &self.shape);
            let size = rank.iter().product();
            let smaller = |(other, most, _): &(usize, f64, Vec<usize>)| {
                size < *other || size == *other && explained > *most
            };
            // Rounding must not ask for the last column of all.
            if left - explained <= allowed + 1e-12 * squares && best.as_ref().is_none_or(smaller) {
                best = Some((size, explained, rank));
            }
        }
        Ok(best.map_or_else(|| self.shape.clone(), |(_, _, rank)| rank))
    }

    /// The mean square of every entry of the samples in the axes of their group, and that of whole samples around the mean of all.
    fn entries(&self, samples: &Samples<'_>) -> Result<(Vec<f64>, f64)> {
        let size: usize = self.shape.iter().product();
        let each = size * self.shape.iter().sum::<usize>();
        let skip = (samples.len().saturating_mul(each) / OPERATIONS).max(1);
        let (mut sums, mut weight) = (vec![0.0; size], 0.0);
        let mut centre = vec![0.0; size];
        let mut spread = 0.0;
        for Turned { members, mean, directions } in &self.turned {
            let some: Vec<usize> = members.iter().copied().step_by(skip).collect();
            let found = parallel::map(some.len().div_ceil(STRETCH), |at| -> Result<Vec<f64>> {
                let mut sums = vec![0.0; size];
                for &n in some.iter().skip(at * STRETCH).take(STRETCH) {
                    let mut x = samples.to_f64(n..n + 1)?;
                    x.iter_mut().zip(mean).for_each(|(x, m)| *x -= m);
                    // A missing cell has the mean, as in the scatters.
                    x.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = 0.0);
                    let y = project(&x, &self.shape, directions, None);
                    let w = samples.weight(n);
                    sums.iter_mut().zip(&y).for_each(|(sum, y)| *sum += w * y * y);
                }
                Ok(sums)
            });
            for part in found {
                sums.iter_mut().zip(&part?).for_each(|(sum, part)| *sum += part);
            }
            let own: f64 = some.iter().map(|&n| samples.weight(n)).sum();
            weight += own;
            centre.iter_mut().zip(mean).for_each(|(c, m)| *c += own * m);
            spread += own * mean.iter().map(|m| m * m).sum::<f64>();
        }
        sums.iter_mut().for_each(|sum| *sum /= weight);
        centre.iter_mut().for_each(|c| *c /= weight);
        let between = (spread / weight - centre.iter().map(|c| c * c).sum::<f64>()).max(0.0);
        let squares = sums.iter().sum::<f64>() + between;
        Ok((sums, squares))
    }
}

/// For every place the sum of all entries up to it in every mode.
fn summed(mut entries: Vec<f64>, shape: &[usize]) -> Vec<f64> {
    for d in 0..shape.len() {
        let (before, after) = sides_around(shape, d);
        for o in 0..before {
            for i in 1..shape[d] {
                for m in 0..after {
                    let at = (o * shape[d] + i) * after + m;
                    entries[at] += entries[at - after];
                }
            }
        }
    }
    entries
}

/// The ranks that end with the entry at a place.
fn ranks_at(mut at: usize, shape: &[usize]) -> Vec<usize> {
    let mut rank = vec![0; shape.len()];
    for d in (0..shape.len()).rev() {
        rank[d] = at % shape[d] + 1;
        at /= shape[d];
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Cpu;
    use crate::linalg::{expand, orthonormal_basis};

    fn number(i: usize) -> f64 {
        ((i as f64 + 1.0) * 0.618_033_988_749).fract() - 0.5
    }

    #[test]
    fn sums_up_to_a_place_are_those_of_all_before_it() {
        let sums = summed((1..=6).map(f64::from).collect(), &[2, 3]);
        assert_eq!(sums, [1.0, 3.0, 6.0, 5.0, 12.0, 21.0]);
        assert_eq!(ranks_at(5, &[2, 3]), [2, 3]);
        assert_eq!(ranks_at(1, &[2, 3]), [1, 2]);
    }

    /// Samples whose cores have known variances, in known axes around two means: their shares are written down by hand.
    #[test]
    fn the_smallest_cores_are_those_of_the_entries_that_vary() {
        let shape = [5, 4];
        let axes: Vec<Matrix> = shape
            .iter()
            .map(|&p| orthonormal_basis(&Matrix::from_fn(p, p, |i, j| number(7 * i + 3 * j * j + p))))
            .collect();
        // 64 patterns of signs, orthogonal to each other and to a constant: every entry of the core varies by itself.
        let sign = |n: usize, e: usize| if (n & e).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
        let deviations = [(0, 0, 4.0), (0, 1, 2.0), (1, 0, 1.0), (2, 1, 0.5)];
        let mut elements = Vec::new();
        for n in 0..128 {
            let mut core = vec![0.0; 20];
            for (e, (i, j, deviation)) in deviations.iter().enumerate() {
                core[i * 4 + j] = deviation * sign(n % 64, 1 << e);
            }
            let mean = if n < 64 { 3.0 } else { -3.0 };
            elements.extend(expand(&core, &axes).into_iter().map(|x| x + mean));
        }
        let samples = Samples::from_vec(&shape, elements).unwrap();
        let groups: Vec<Vec<usize>> = vec![(0..64).collect(), vec![], (64..128).collect()];
        let spectrum = Spectrum::new(&samples, &Cpu::best(), &groups).unwrap();
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        // Rows: 16 + 4, 1 and 1/4 of 21.25; columns: 17 and 4.25.
        assert!(close(spectrum.scree[0][0], 20.0 / 21.25) && close(spectrum.scree[0][2], 0.25 / 21.25));
        assert!(close(spectrum.scree[1][0], 17.0 / 21.25) && close(spectrum.scree[1][1], 4.25 / 21.25));
        // Of all variance, 21.25 + 9 · 20 between the means; what may be missing is 1 − share of it.
        let whole = 21.25 + 180.0;
        let smallest = |missing: f64| spectrum.smallest(&samples, 1.0 - missing / whole).unwrap();
        assert_eq!(smallest(5.26), [1, 1]);
        assert_eq!(smallest(5.24), [1, 2]);
        assert_eq!(smallest(1.24), [2, 2]);
        assert_eq!(smallest(0.24), [3, 2]);
        // In one group what lies between the means has to be explained, too.
        let one = Spectrum::new(&samples, &Cpu::best(), &[(0..128).collect()]).unwrap();
        assert_eq!(one.smallest(&samples, 0.1).unwrap(), [1, 1]);
        let more = one.smallest(&samples, 1.0 - 5.26 / whole).unwrap();
        assert!(more.iter().product::<usize>() > 1, "{more:?}");
    }
}
