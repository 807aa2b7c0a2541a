//! Two components for samples that differ in their covariance and not in their mean: k-means on the scatters of single samples.
//!
//! Samples of one mean and of several covariances form no clusters in their own space. But a sample of several modes shows its covariance by itself: the scatter
//! Z Zᵀ of one of its modes, Z = unfold_d(X − M), has an entry for every pair of rows and sums over all columns. Divided by its trace, so that
//! loud samples do not decide, it is close to that of other samples of the same covariance. Along the leading directions of all samples a few
//! numbers say it.

use rand_chacha::ChaCha8Rng;

use super::super::passes;
use super::super::start::{self, Clusters, Effort};
use super::ground::Ground;
use crate::data::Samples;
use crate::error::{Error, Result};
use crate::linalg::{Matrix, leading_eigen, mode_contraction, orthonormal_basis, sides_around};
use crate::model::{Component, Mixture};
use crate::parallel;

/// Most samples that are clustered: two components need no more for a start.
const SAMPLES: usize = 256;

/// Leading directions of each mode. Three states of synthetic EEG (8 channels, 64 instants, 8 seeds): k-means labels 93 % of the samples correctly
/// with 4 directions and 95 % with 8.
const DIRECTIONS: usize = 8;

/// Longer modes are not decomposed: their directions are those of the component.
const LONGEST: usize = 512;

/// A start of two components for the samples of one.
pub(super) fn by_shapes(
    ground: &Ground<'_>,
    samples: &Samples<'_>,
    one: &Component,
    effort: Effort,
    rng: &mut ChaCha8Rng,
) -> Result<Mixture> {
    let every = samples.len().div_ceil(SAMPLES);
    let few = samples.clone().select(&(0..samples.len()).step_by(every).collect::<Vec<_>>())?;
    let held = ground.backend.over(&few)?;
    let moments = passes::moments(&*held, false)?;
    let shape = few.shape();
    let modes: Vec<usize> = (0..shape.len()).filter(|&d| shape[d] <= LONGEST).collect();
    let sums = passes::scatters(&*held, &moments.mean, &vec![None; shape.len()], &modes)?;
    let mut directions: Vec<Matrix> = one.loadings().iter().map(orthonormal_basis).collect();
    for (&d, scatter) in modes.iter().zip(&sums.scatters) {
        let eigen = leading_eigen(scatter, DIRECTIONS.min(shape[d])).ok_or(Error::Overflow { sample: 0 })?;
        directions[d] = eigen.vectors;
    }
    let shapes = parallel::map(few.len(), |n| {
        let mut x = few.to_f64(n..n + 1)?;
        x.iter_mut().zip(&moments.mean).for_each(|(x, m)| *x -= m);
        // A missing cell has the mean.
        x.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = 0.0);
        Ok(directions.iter().enumerate().flat_map(|(d, v)| normalized_scatter(&x, shape, d, v)).collect())
    });
    let shapes = shapes.into_iter().collect::<Result<Vec<Vec<f64>>>>()?;
    let width = shapes[0].len();
    let points = Samples::from_vec(&[width], shapes.concat())?;
    let points = match few.weights() {
        Some(weights) => points.with_weights(weights.to_vec())?,
        None => points,
    };
    let over = ground.backend.over(&points)?;
    let (_, groups) = start::cluster(&points, &*over, 2, &vec![0.0; width], effort, rng)?;
    let mut members = vec![vec![]; 2];
    groups.iter().enumerate().for_each(|(n, &k)| members[k].push(n));
    let found = Clusters { samples: &few, held: &*held, whole: true, members, known: None, counts: None };
    found.mixture(&*held, ground.rank, ground.constraints.noise_floor, &moments)
}

/// The lower triangle of Vᵀ Z Zᵀ V, Z = unfold_d(x), divided by the trace; its entries off the diagonal count twice.
fn normalized_scatter(x: &[f64], shape: &[usize], d: usize, v: &Matrix) -> Vec<f64> {
    let z = mode_contraction(x, shape, d, v);
    let (before, after) = sides_around(shape, d);
    let count = v.cols();
    let row = |b: usize, i: usize| &z[(b * count + i) * after..][..after];
    let entry = |i: usize, j: usize| -> f64 {
        (0..before).flat_map(|b| row(b, i).iter().zip(row(b, j))).map(|(a, b)| a * b).sum()
    };
    let trace: f64 = (0..count).map(|i| entry(i, i)).sum();
    let scale = 1.0 / trace.max(f64::MIN_POSITIVE);
    let twice = |i: usize, j: usize| if i == j { 1.0 } else { std::f64::consts::SQRT_2 };
    (0..count)
        .flat_map(|i| (0..=i).map(move |j| (i, j)))
        .map(|(i, j)| twice(i, j) * scale * entry(i, j))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_normalized_scatter_is_that_of_the_unfolded_sample() {
        // 2×3: rows (1, 2, 2) and (0, 3, 4).
        let x = [1.0, 2.0, 2.0, 0.0, 3.0, 4.0];
        let rows = normalized_scatter(&x, &[2, 3], 0, &Matrix::identity(2, 2));
        let root = std::f64::consts::SQRT_2;
        let expected = [9.0 / 34.0, 14.0 * root / 34.0, 25.0 / 34.0];
        assert!(rows.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{rows:?}");
        // The first two columns: (1, 0) and (2, 3).
        let columns = normalized_scatter(&x, &[2, 3], 1, &Matrix::identity(3, 2));
        let expected = [1.0 / 14.0, 2.0 * root / 14.0, 13.0 / 14.0];
        assert!(columns.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{columns:?}");
        assert_eq!(normalized_scatter(&[0.0; 6], &[2, 3], 0, &Matrix::identity(2, 2)), [0.0; 3]);
    }
}
