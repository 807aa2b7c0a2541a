//! Samples as points in the plane: the two leading principal components of their reconstructions.

use rayon::prelude::*;

use crate::linalg::{Matrix, eigen_symmetric, orthonormal_basis};

/// Points and the share of the variance each of the two axes holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Plane {
    pub(crate) x: Vec<f64>,
    pub(crate) y: Vec<f64>,
    pub(crate) explained: [f64; 2],
}

/// The leading plane of the rows (each of `size` numbers), by subspace iteration.
///
/// A few columns more than the two that are wanted make it converge in a few dozen steps, each two products with the
/// rows; the covariance is never formed, so pictures of many pixels cost no more than they have to.
pub(crate) fn leading_plane(mut rows: Vec<f32>, size: usize) -> Plane {
    const COLUMNS: usize = 6;
    const STEPS: usize = 40;
    let count = rows.len() / size;
    let mut mean = vec![0.0f64; size];
    for row in rows.chunks_exact(size) {
        mean.iter_mut().zip(row).for_each(|(m, &x)| *m += f64::from(x) / count as f64);
    }
    let mut total = 0.0f64;
    for row in rows.chunks_exact_mut(size) {
        for (x, m) in row.iter_mut().zip(&mean) {
            *x -= *m as f32;
            total += f64::from(*x) * f64::from(*x);
        }
    }
    let columns = COLUMNS.min(size);
    // A fixed start that favours nothing: the same report from the same data.
    let mut basis = orthonormal_basis(&Matrix::from_fn(size, columns, |i, j| {
        ((i * 2_654_435_761 + (j + 1) * 40_503) % 10_007) as f64 / 10_007.0 - 0.5
    }));
    for _ in 0..STEPS {
        let scores = project(&rows, size, &basis);
        basis = orthonormal_basis(&back_project(&rows, size, &scores));
    }
    let scores = project(&rows, size, &basis);
    let Some(eigen) = eigen_symmetric(&scores.transpose_times(&scores)) else {
        return Plane { x: vec![0.0; count], y: vec![0.0; count], explained: [0.0; 2] };
    };
    let turned = scores.times(&eigen.vectors);
    let share = |j: usize| match eigen.values.get(j) {
        Some(&value) if total > 0.0 => (value / total).clamp(0.0, 1.0),
        _ => 0.0,
    };
    let axis = |j: usize| {
        let mut axis = if j < columns { turned.col(j) } else { vec![0.0; count] };
        // The sign is arbitrary: let the farthest point lie on the positive side.
        if axis.iter().fold(0.0f64, |far, &v| if v.abs() > far.abs() { v } else { far }) < 0.0 {
            axis.iter_mut().for_each(|v| *v = -*v);
        }
        axis
    };
    Plane { x: axis(0), y: axis(1), explained: [share(0), share(1)] }
}

/// Rows · basis.
fn project(rows: &[f32], size: usize, basis: &Matrix) -> Matrix {
    let columns = basis.cols();
    let data: Vec<f64> = rows
        .par_chunks_exact(size)
        .flat_map_iter(|row| {
            let mut out = vec![0.0; columns];
            for (i, &x) in row.iter().enumerate() {
                out.iter_mut().zip(basis.row(i)).for_each(|(o, b)| *o += f64::from(x) * b);
            }
            out
        })
        .collect();
    Matrix::from_vec(rows.len() / size, columns, data)
}

/// Rowsᵀ · scores.
fn back_project(rows: &[f32], size: usize, scores: &Matrix) -> Matrix {
    let columns = scores.cols();
    let mut out = vec![0.0; size * columns];
    for (n, row) in rows.chunks_exact(size).enumerate() {
        let score = scores.row(n);
        for (to, &x) in out.chunks_exact_mut(columns).zip(row) {
            to.iter_mut().zip(score).for_each(|(o, s)| *o += f64::from(x) * s);
        }
    }
    Matrix::from_vec(size, columns, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points on an ellipse in a known plane of a five-dimensional space, away from the origin.
    #[test]
    fn a_planted_plane_is_found() {
        let points: Vec<(f64, f64)> =
            (0..40).map(|i| (f64::from(i) * 0.157).sin_cos()).map(|(a, b)| (5.0 * a, 2.0 * b)).collect();
        let rows: Vec<f32> = points
            .iter()
            .flat_map(|&(a, b)| [1.0 + 0.6 * a, 2.0, 3.0 + b, 4.0 + 0.8 * a, 5.0])
            .map(|v| v as f32)
            .collect();
        let plane = leading_plane(rows, 5);
        assert!((plane.explained[0] + plane.explained[1] - 1.0).abs() < 1e-6, "{:?}", plane.explained);
        let distance = |n: usize, m: usize| (plane.x[n] - plane.x[m]).hypot(plane.y[n] - plane.y[m]);
        let truth = |n: usize, m: usize| (points[n].0 - points[m].0).hypot(points[n].1 - points[m].1);
        for (n, m) in [(0, 1), (3, 17), (8, 30)] {
            assert!((distance(n, m) - truth(n, m)).abs() < 1e-4);
        }
    }

    #[test]
    fn equal_or_one_dimensional_samples_make_a_plane_too() {
        let plane = leading_plane(vec![1.0; 12], 3);
        assert!(plane.x.iter().chain(&plane.y).all(|v| v.abs() < 1e-6));
        let line = leading_plane(vec![1.0, 2.0, 4.0], 1);
        assert_eq!((line.y.clone(), line.explained[1]), (vec![0.0; 3], 0.0));
    }
}
