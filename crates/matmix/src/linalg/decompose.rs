//! Decompositions, through faer.

use faer::linalg::solvers::Solve;
use faer::{Mat, MatRef, Side};

use super::Matrix;
use super::krylov::krylov_eigen;

/// Eigenvalues in descending order and their eigenvectors as columns.
#[derive(Debug, Clone)]
pub struct Eigen {
    /// The eigenvalues, largest first.
    pub values: Vec<f64>,
    /// The eigenvectors, one per column.
    pub vectors: Matrix,
}

pub(super) fn view(a: &Matrix) -> MatRef<'_, f64> {
    MatRef::from_row_major_slice(a.as_slice(), a.rows(), a.cols())
}

pub(super) fn matrix(a: MatRef<'_, f64>) -> Matrix {
    Matrix::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)])
}

/// All eigenpairs of a symmetric matrix; `None` if it holds NaN or infinity.
pub fn eigen_symmetric(a: &Matrix) -> Option<Eigen> {
    if !a.is_finite() {
        return None;
    }
    // The factorisation works on absolute scales in places: bring the matrix near 1 and its values back.
    let largest = a.largest();
    if largest == 0.0 {
        return Some(Eigen { values: vec![0.0; a.rows()], vectors: Matrix::identity(a.rows(), a.rows()) });
    }
    let scaled = Mat::from_fn(a.rows(), a.rows(), |i, j| 0.5 * (a[(i, j)] + a[(j, i)]) / largest);
    let eigen = scaled.self_adjoint_eigen(Side::Lower).ok()?;
    let n = a.rows();
    let (values, vectors) = (eigen.S(), eigen.U());
    Some(Eigen {
        values: (0..n).map(|i| values[n - 1 - i] * largest).collect(),
        vectors: Matrix::from_fn(n, n, |i, j| vectors[(i, n - 1 - j)]),
    })
}

/// From this size on a few eigenpairs are looked for in a Krylov space.
const LARGE: usize = 256;

/// The `count` leading eigenpairs of a symmetric positive semi-definite matrix.
pub fn leading_eigen(a: &Matrix, count: usize) -> Option<Eigen> {
    if a.rows() >= LARGE
        && a.is_finite()
        && let Some(eigen) = krylov_eigen(a, count)
    {
        return Some(eigen);
    }
    let mut eigen = eigen_symmetric(a)?;
    eigen.values.truncate(count);
    eigen.vectors = eigen.vectors.first_cols(count);
    Some(eigen)
}

/// A = W·diag(σ)·Vᵀ with σ descending; (W, σ, V). `None` if it holds NaN or infinity.
pub fn svd_thin(a: &Matrix) -> Option<(Matrix, Vec<f64>, Matrix)> {
    if !a.is_finite() {
        return None;
    }
    let largest = a.largest();
    let k = a.rows().min(a.cols());
    if largest == 0.0 {
        return Some((Matrix::identity(a.rows(), k), vec![0.0; k], Matrix::identity(a.cols(), k)));
    }
    let scaled = Mat::from_fn(a.rows(), a.cols(), |i, j| a[(i, j)] / largest);
    let svd = scaled.thin_svd().ok()?;
    let values = (0..k).map(|i| svd.S()[i] * largest).collect();
    Some((matrix(svd.U()), values, matrix(svd.V())))
}

/// An orthonormal basis of the columns of A (its Q of QR), with as many columns as A.
pub fn orthonormal_basis(a: &Matrix) -> Matrix {
    matrix(view(a).qr().compute_thin_Q().as_ref())
}

/// The lower Cholesky factor of a symmetric positive definite matrix, or `None` if it is not.
pub fn cholesky_lower(a: &Matrix) -> Option<Matrix> {
    if !a.is_finite() {
        return None;
    }
    let llt = view(a).llt(Side::Lower).ok()?;
    let l = llt.L();
    Some(Matrix::from_fn(a.rows(), a.rows(), |i, j| if j <= i { l[(i, j)] } else { 0.0 }))
}

/// X with X·H = A for symmetric positive semi-definite H: Cholesky where that works, otherwise the solution
/// of least norm (A lies in the range of H wherever this is used, so it still solves the normal equations).
pub fn solve_symmetric_right(a: &Matrix, h: &Matrix) -> Option<Matrix> {
    if !(a.is_finite() && h.is_finite()) {
        return None;
    }
    // Jacobi scaling: the diagonal of H spans many orders of magnitude when trailing loadings fade out.
    let n = h.rows();
    let scale: Vec<f64> =
        (0..n).map(|i| if h[(i, i)] > 0.0 { 1.0 / h[(i, i)].sqrt() } else { 0.0 }).collect();
    let scaled = Matrix::from_fn(n, n, |i, j| 0.5 * (h[(i, j)] + h[(j, i)]) * scale[i] * scale[j]);
    let right = Matrix::from_fn(n, a.rows(), |i, j| a[(j, i)] * scale[i]);
    let solved = match view(&scaled).llt(Side::Lower) {
        Ok(llt) => matrix(llt.solve(view(&right)).as_ref()),
        Err(_) => {
            let eigen = eigen_symmetric(&scaled)?;
            let cut = eigen.values[0].max(0.0) * n as f64 * f64::EPSILON;
            let mut in_basis = eigen.vectors.transpose_times(&right);
            for i in 0..n {
                let factor = if eigen.values[i] > cut { 1.0 / eigen.values[i] } else { 0.0 };
                for j in 0..a.rows() {
                    in_basis[(i, j)] *= factor;
                }
            }
            eigen.vectors.times(&in_basis)
        }
    };
    Some(Matrix::from_fn(a.rows(), n, |i, j| solved[(j, i)] * scale[j])).filter(Matrix::is_finite)
}

/// The Cholesky factorisation of a symmetric positive definite matrix, for solving and for its determinant.
#[derive(Debug)]
pub struct SymmetricFactor(faer::linalg::solvers::Llt<f64>);

impl SymmetricFactor {
    /// Factorises, or `None` if the matrix is not positive definite.
    pub fn new(a: &Matrix) -> Option<Self> {
        if !a.is_finite() {
            return None;
        }
        view(a).llt(Side::Lower).ok().map(Self)
    }

    /// ln det A.
    pub fn log_determinant(&self) -> f64 {
        let l = self.0.L();
        (0..l.nrows()).map(|i| 2.0 * l[(i, i)].ln()).sum()
    }

    /// A⁻¹·B.
    pub fn solve(&self, b: &Matrix) -> Matrix {
        matrix(self.0.solve(view(b)).as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: &Matrix, b: &Matrix) -> bool {
        a.as_slice().iter().zip(b.as_slice()).all(|(x, y)| (x - y).abs() < 1e-10)
    }

    #[test]
    fn eigenpairs_rebuild_the_matrix_largest_first() {
        let b = Matrix::from_fn(4, 4, |i, j| ((i * 7 + j * 3) % 5) as f64 - 1.3);
        let a = b.times_transpose(&b);
        let e = eigen_symmetric(&a).unwrap();
        assert!(e.values.windows(2).all(|w| w[0] >= w[1]));
        let scaled = Matrix::from_fn(4, 4, |i, j| e.vectors[(i, j)] * e.values[j]);
        assert!(close(&scaled.times_transpose(&e.vectors), &a));
    }

    #[test]
    fn a_few_eigenpairs_of_a_large_matrix_are_those_of_all() {
        let n = 300;
        let number = |i: usize| ((i as f64 + 1.0) * 0.754_877_666).fract() - 0.5;
        let basis = orthonormal_basis(&Matrix::from_fn(n, n, |i, j| number(i * n + 7 * j * j)));
        // Spectra that fall, faster and slower, one that hardly does (where the Krylov space is not enough), and a matrix
        // of rank 2.
        let spectra: [fn(usize) -> f64; 4] = [
            |j| 0.8f64.powi(j as i32),
            |j| 0.95f64.powi(j as i32),
            |j| 1.0 - 1e-4 * j as f64,
            |j| f64::from(u8::from(j < 2)),
        ];
        for (s, spectrum) in spectra.into_iter().enumerate() {
            let scaled = Matrix::from_fn(n, n, |i, j| basis[(i, j)] * spectrum(j));
            let a = scaled.times_transpose(&basis);
            assert!(krylov_eigen(&a, 3).is_some() == (s != 2), "spectrum {s}");
            let few = leading_eigen(&a, 3).unwrap();
            let all = eigen_symmetric(&a).unwrap();
            for j in 0..3 {
                assert!((few.values[j] - all.values[j]).abs() < 1e-11, "{} {}", few.values[j], all.values[j]);
            }
            let image = a.times(&few.vectors);
            for i in 0..n {
                for j in 0..3 {
                    assert!((image[(i, j)] - few.values[j] * few.vectors[(i, j)]).abs() < 1e-9);
                }
            }
            assert!(close(&few.vectors.transpose_times(&few.vectors), &Matrix::identity(3, 3)));
        }
    }

    #[test]
    fn solving_from_the_right_works_for_definite_and_for_singular_matrices() {
        let b = Matrix::from_fn(3, 3, |i, j| ((i * 5 + j * 3) % 7) as f64 - 2.2);
        let h = b.times_transpose(&b);
        let x = Matrix::from_fn(5, 3, |i, j| i as f64 - 2.0 * j as f64);
        assert!(close(&solve_symmetric_right(&x.times(&h), &h).unwrap(), &x));

        let thin = Matrix::from_fn(3, 1, |i, _| 1.0 + i as f64);
        let singular = thin.times_transpose(&thin);
        let a = x.times(&singular);
        let solution = solve_symmetric_right(&a, &singular).unwrap();
        assert!(close(&solution.times(&singular), &a));
    }

    #[test]
    fn tiny_and_huge_matrices_keep_their_eigenvalues() {
        for scale in [1e-200, 1e-12, 1e12, 1e150] {
            let a = Matrix::from_fn(3, 3, |i, j| if i == j { (3 - i) as f64 * scale } else { 0.0 });
            let e = eigen_symmetric(&a).unwrap();
            assert!((e.values[2] / scale - 1.0).abs() < 1e-12, "{:?}", e.values);
        }
    }
}
