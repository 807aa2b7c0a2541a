//! Matrices for the tests, and plain algorithms to compare with.

use super::Matrix;

/// Numbers between −½ and ½ without a pattern.
pub(super) fn number(seed: u64, i: usize) -> f64 {
    let mut x = (seed << 32 | i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64 - 0.5
}

pub(super) fn matrix(rows: usize, cols: usize, seed: u64) -> Matrix {
    Matrix::from_fn(rows, cols, |i, j| number(seed, i * cols + j))
}

/// An orthogonal matrix: the identity, its rows turned pair by pair.
pub(super) fn orthogonal(n: usize, seed: u64) -> Matrix {
    let mut q = Matrix::identity(n, n);
    for round in 0..4 {
        for i in 0..n {
            let j = (i + 1 + (round * 7 + i * i) % n.max(2)) % n;
            if i == j {
                continue;
            }
            let (s, c) = (20.0 * number(seed, round * n + i)).sin_cos();
            for k in 0..n {
                let (x, y) = (q[(i, k)], q[(j, k)]);
                (q[(i, k)], q[(j, k)]) = (c * x + s * y, c * y - s * x);
            }
        }
    }
    q
}

/// Q·diag(values)·Qᵀ.
pub(super) fn symmetric(values: &[f64], seed: u64) -> Matrix {
    let (n, q) = (values.len(), orthogonal(values.len(), seed));
    Matrix::from_fn(n, n, |i, j| (0..n).map(|k| q[(i, k)] * values[k] * q[(j, k)]).sum())
}

/// A·B as it is defined.
pub(super) fn plain_product(a: &Matrix, b: &Matrix) -> Matrix {
    Matrix::from_fn(a.rows(), b.cols(), |i, j| (0..a.cols()).map(|l| a[(i, l)] * b[(l, j)]).sum())
}

/// The columns of A times factors.
pub(super) fn scaled_columns(a: &Matrix, factors: &[f64]) -> Matrix {
    Matrix::from_fn(a.rows(), a.cols(), |i, j| a[(i, j)] * factors[j])
}

/// The largest difference of two matrices of equal shape.
pub(super) fn difference(a: &Matrix, b: &Matrix) -> f64 {
    assert_eq!((a.rows(), a.cols()), (b.rows(), b.cols()));
    a.as_slice().iter().zip(b.as_slice()).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

/// How far AᵀA is from the identity.
pub(super) fn off_orthonormal(a: &Matrix) -> f64 {
    difference(&plain_product(&a.transpose(), a), &Matrix::identity(a.cols(), a.cols()))
}

/// The eigenvalues of a symmetric matrix, largest first, by Jacobi's rotations from both sides.
pub(super) fn plain_eigenvalues(a: &Matrix) -> Vec<f64> {
    let (n, mut a) = (a.rows(), a.clone());
    for _ in 0..30 {
        for i in 0..n {
            for j in i + 1..n {
                let angle = 0.5 * (2.0 * a[(i, j)]).atan2(a[(i, i)] - a[(j, j)]);
                let (s, c) = angle.sin_cos();
                for k in 0..n {
                    let (x, y) = (a[(i, k)], a[(j, k)]);
                    (a[(i, k)], a[(j, k)]) = (c * x + s * y, c * y - s * x);
                }
                for k in 0..n {
                    let (x, y) = (a[(k, i)], a[(k, j)]);
                    (a[(k, i)], a[(k, j)]) = (c * x + s * y, c * y - s * x);
                }
            }
        }
    }
    let mut values: Vec<f64> = (0..n).map(|i| a[(i, i)]).collect();
    values.sort_by(|x, y| y.total_cmp(x));
    values
}

/// What `run` returns on one, two and five threads.
pub(super) fn on_threads<T: Send>(run: impl Fn() -> T + Send + Sync) -> [T; 3] {
    [1, 2, 5].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(&run)
    })
}
