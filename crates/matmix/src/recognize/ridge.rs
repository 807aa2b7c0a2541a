//! Ridge regression on the classes, in kernel form: there are far fewer images than features.
//!
//! ```text
//! directions = Fᵀ (F Fᵀ + λ I)⁻¹ Y,   λ = ridge · mean diagonal of F Fᵀ
//! ```
//!
//! with centred features F (n × p) and centred indicators of the classes Y (n × classes). Images are compared by the cosine of what is
//! predicted for them.

use crate::error::{Counted, Error, Result};
use crate::linalg::{Matrix, SymmetricFactor};
use crate::parallel;

/// Rows of a tile of the Gram matrix.
const TILE: usize = 64;

/// Directions that predict classes.
///
/// ```
/// use matmix::RidgeScores;
///
/// // Four samples of two classes, which differ in their second feature.
/// let features = [5.0f32, 0.1, -3.0, 0.0, 4.0, 1.0, -4.0, 1.1];
/// let scores = RidgeScores::learn(&features, &[0, 0, 1, 1], 0.01)?;
/// let found = scores.project(&[0.0, 0.9])?;
/// assert!(found[1] > found[0]);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RidgeScores {
    mean: Vec<f64>,
    /// features × classes.
    directions: Matrix,
}

impl RidgeScores {
    /// Learns from features, sample after sample, and the class of each sample (a number from 0).
    ///
    /// # Errors
    /// Fewer than two classes, features that are all the same, a ridge that is not above 0.
    pub fn learn(features: &[f32], classes: &[usize], ridge: f64) -> Result<Self> {
        if !(ridge.is_finite() && ridge > 0.0) {
            let expected = "a finite number above 0";
            return Err(Error::Option { option: "ridge", value: ridge.to_string(), expected });
        }
        let n = classes.len();
        if n == 0 || features.is_empty() {
            return Err(Error::EmptySet);
        }
        if !features.len().is_multiple_of(n) {
            return Err(Error::Count { what: Counted::Labels, expected: features.len() / n, found: n });
        }
        super::check_classes(classes)?;
        if classes.iter().all(|c| *c == classes[0]) {
            let expected = "samples of at least two classes";
            return Err(Error::Option { option: "classes", value: "one for all samples".into(), expected });
        }
        let dim = features.len() / n;
        let mut mean = vec![0.0; dim];
        for row in features.chunks_exact(dim) {
            mean.iter_mut().zip(row).for_each(|(m, x)| *m += f64::from(*x));
        }
        mean.iter_mut().for_each(|m| *m /= n as f64);
        let mut gram = gram(features, &mean, n);
        let level = gram.trace() / n as f64;
        let squares: f64 = features.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
        let same = Error::Model { problem: "the features of all samples are the same".into() };
        // What rounding leaves of features that are all the same.
        if !level.is_finite() || level <= 1e-12 * squares / n as f64 {
            return Err(same);
        }
        (0..n).for_each(|i| gram[(i, i)] += ridge * level);
        let n_classes = classes.iter().max().map_or(0, |c| c + 1);
        let mut share = vec![0.0; n_classes];
        classes.iter().for_each(|&c| share[c] += 1.0 / n as f64);
        let wanted = Matrix::from_fn(n, n_classes, |i, c| f64::from(u8::from(classes[i] == c)) - share[c]);
        let solved = SymmetricFactor::new(&gram).ok_or(same)?.solve(&wanted);
        let mut directions = Matrix::zeros(dim, n_classes);
        for first in (0..n).step_by(TILE) {
            let rows = first..(first + TILE).min(n);
            let part = Matrix::from_fn(rows.len(), n_classes, |i, c| solved[(first + i, c)]);
            directions.add_scaled(1.0, &centred(features, &mean, rows).transpose_times(&part));
        }
        Ok(Self { mean, directions })
    }

    /// What is predicted for samples, one unit vector with a number per class each.
    ///
    /// # Errors
    /// Features of another length.
    pub fn project(&self, features: &[f32]) -> Result<Vec<f64>> {
        let dim = self.mean.len();
        if !features.len().is_multiple_of(dim) {
            return Err(Error::DataLength { shape: vec![dim], found: features.len() });
        }
        let n = features.len() / dim;
        let tiles = parallel::map(n.div_ceil(TILE), |tile| {
            let rows = tile * TILE..((tile + 1) * TILE).min(n);
            let mut found = centred(features, &self.mean, rows).times(&self.directions);
            let classes = found.cols();
            for row in found.as_mut_slice().chunks_exact_mut(classes) {
                let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
                if norm > 0.0 {
                    row.iter_mut().for_each(|x| *x /= norm);
                }
            }
            found
        });
        Ok(tiles.iter().flat_map(|tile| tile.as_slice()).copied().collect())
    }

    /// From what [`mean_and_directions`](Self::mean_and_directions) gave.
    pub(super) fn from_mean_and_directions(mean: Vec<f64>, directions: Matrix) -> Self {
        Self { mean, directions }
    }

    /// The mean of the features, and the directions: features × classes.
    pub(super) fn mean_and_directions(&self) -> (&[f64], &Matrix) {
        (&self.mean, &self.directions)
    }

    /// How many classes there are.
    pub fn n_classes(&self) -> usize {
        self.directions.cols()
    }
}

fn centred(features: &[f32], mean: &[f64], rows: std::ops::Range<usize>) -> Matrix {
    let dim = mean.len();
    Matrix::from_fn(rows.len(), dim, |i, j| f64::from(features[(rows.start + i) * dim + j]) - mean[j])
}

/// F Fᵀ by tiles: each is a product of its own, whatever thread makes it.
fn gram(features: &[f32], mean: &[f64], n: usize) -> Matrix {
    let tiles = n.div_ceil(TILE);
    let pairs: Vec<(usize, usize)> = (0..tiles).flat_map(|a| (0..=a).map(move |b| (a, b))).collect();
    let rows = |tile: usize| tile * TILE..((tile + 1) * TILE).min(n);
    let found = parallel::map(pairs.len(), |at| {
        let (a, b) = pairs[at];
        centred(features, mean, rows(a)).times_transpose(&centred(features, mean, rows(b)))
    });
    let mut gram = Matrix::zeros(n, n);
    for ((a, b), tile) in pairs.into_iter().zip(found) {
        for (i, row) in rows(a).enumerate() {
            for (j, col) in rows(b).enumerate() {
                gram[(row, col)] = tile[(i, j)];
                gram[(col, row)] = tile[(i, j)];
            }
        }
    }
    gram
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the space of the features: (FᵀF + λI)⁻¹ Fᵀ Y, the textbook's form, is the same.
    #[test]
    fn directions_are_those_of_the_textbook() {
        let (n, dim) = (70, 6);
        let classes: Vec<usize> = (0..n).map(|i| i * 7 % 11 % 3).collect();
        let features: Vec<f32> = (0..n * dim)
            .map(|i| (i as f32 * 0.618_034).fract() + if i % dim == classes[i / dim] { 0.7 } else { 0.0 })
            .collect();
        let found = RidgeScores::learn(&features, &classes, 0.1).unwrap();
        let mean = |j: usize| (0..n).map(|i| f64::from(features[i * dim + j])).sum::<f64>() / n as f64;
        let f = Matrix::from_fn(n, dim, |i, j| f64::from(features[i * dim + j]) - mean(j));
        let count = |c: usize| classes.iter().filter(|x| **x == c).count() as f64;
        let y = Matrix::from_fn(n, 3, |i, c| f64::from(u8::from(classes[i] == c)) - count(c) / n as f64);
        let mut inner = f.transpose_times(&f);
        let ridge = 0.1 * inner.trace() / n as f64;
        (0..dim).for_each(|i| inner[(i, i)] += ridge);
        let expected = SymmetricFactor::new(&inner).unwrap().solve(&f.transpose_times(&y));
        for (a, b) in found.directions.as_slice().iter().zip(expected.as_slice()) {
            assert!((a - b).abs() < 1e-10, "{a} {b}");
        }
        let unit = found.project(&features).unwrap();
        assert_eq!(unit.len(), n * 3);
        assert!(unit.chunks_exact(3).all(|x| (x.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-12));
    }

    #[test]
    fn what_cannot_be_learned_from_is_told() {
        let x = [1.0f32, 2.0, 3.0, 4.0];
        assert!(RidgeScores::learn(&x, &[0, 0], 0.1).is_err());
        assert!(RidgeScores::learn(&x, &[0, 1, 1], 0.1).is_err());
        assert!(RidgeScores::learn(&x, &[0, 1], 0.0).is_err());
        assert!(RidgeScores::learn(&[1.0; 4], &[0, 1], 0.1).is_err());
        assert!(RidgeScores::learn(&[f32::NAN; 4], &[0, 1], 0.1).is_err());
        assert!(RidgeScores::learn(&[], &[], 0.1).is_err());
        let fine = RidgeScores::learn(&x, &[0, 1], 0.1).unwrap();
        assert!(fine.project(&[1.0; 3]).is_err());
    }
}
