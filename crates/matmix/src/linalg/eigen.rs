//! Eigenvalues and eigenvectors of symmetric matrices.

use super::Matrix;
use super::implicit_qr::eigen_of_tridiagonal;
use super::krylov::krylov_eigen;
use super::tridiagonal::Tridiagonal;

/// Eigenvalues in descending order and their eigenvectors as columns.
#[derive(Debug, Clone)]
pub struct Eigen {
    /// The eigenvalues, largest first.
    pub values: Vec<f64>,
    /// The eigenvectors, one per column.
    pub vectors: Matrix,
}

/// All eigenpairs of a symmetric matrix; `None` if it holds NaN or infinity.
pub fn eigen_symmetric(a: &Matrix) -> Option<Eigen> {
    if !a.is_finite() {
        return None;
    }
    let unit = a.unit();
    let mut eigen = eigen_of_tridiagonal(Tridiagonal::new(a.symmetric_part(1.0 / unit)))?;
    eigen.values.iter_mut().for_each(|v| *v *= unit);
    Some(eigen)
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

#[cfg(test)]
mod tests {
    use super::super::made::{
        difference, matrix, number, off_orthonormal, on_threads, orthogonal, plain_eigenvalues,
        plain_product, scaled_columns, symmetric,
    };
    use super::*;

    /// Orthonormal vectors, largest values first, that rebuild the matrix to as many digits as its largest element has.
    fn check(a: &Matrix, eigen: &Eigen) {
        let n = a.rows();
        assert!(eigen.values.windows(2).all(|w| w[0] >= w[1]));
        assert!(off_orthonormal(&eigen.vectors) < 1e-14 * (n + 10) as f64);
        let back = plain_product(&scaled_columns(&eigen.vectors, &eigen.values), &eigen.vectors.transpose());
        assert!(
            difference(&back, a) <= 1e-14 * (n + 10) as f64 * a.largest(),
            "{n}: {}",
            difference(&back, a)
        );
    }

    #[test]
    fn eigenvalues_are_those_of_a_plain_algorithm() {
        for n in 1..30 {
            let b = matrix(n, n, n as u64);
            let a = Matrix::from_fn(n, n, |i, j| b[(i, j)] + b[(j, i)]);
            let eigen = eigen_symmetric(&a).unwrap();
            check(&a, &eigen);
            let expected = plain_eigenvalues(&a);
            assert!(eigen.values.iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-13), "{n}");
        }
    }

    /// λ³ − tr λ² + (sum of the minors) λ − det.
    #[test]
    fn eigenvalues_are_the_roots_of_the_characteristic_polynomial() {
        for seed in 0..50 {
            let x = |i: usize| 4.0 * number(seed, i);
            let (a, b, c, d, e, f) = (x(0), x(1), x(2), x(3), x(4), x(5));
            let m = Matrix::from_vec(3, 3, vec![a, b, c, b, d, e, c, e, f]);
            let minors = a * d - b * b + a * f - c * c + d * f - e * e;
            let determinant = a * (d * f - e * e) - b * (b * f - e * c) + c * (b * e - d * c);
            let [p, q, r] = eigen_symmetric(&m).unwrap().values[..] else { unreachable!() };
            assert!((p + q + r - (a + d + f)).abs() < 1e-13);
            assert!((p * q + q * r + r * p - minors).abs() < 1e-13);
            assert!((p * q * r - determinant).abs() < 1e-13);
        }
    }

    #[test]
    fn planted_eigenvalues_are_found() {
        type Spectrum = fn(usize, usize) -> f64;
        let spectra: [Spectrum; 5] = [
            |i, _| 0.8f64.powi(i as i32),
            // Repeated ones, among them zeros, and ones of either sign.
            |i, n| [3.0, 1.0, 0.0][3 * i / n],
            |i, n| 1.0 - 2.0 * i as f64 / n as f64,
            |_, _| 2.0,
            |i, _| if i == 0 { 1.0 } else { 0.0 },
        ];
        for n in [1, 2, 5, 34, 90, 200] {
            for (s, spectrum) in spectra.into_iter().enumerate() {
                let values: Vec<f64> = (0..n).map(|i| spectrum(i, n)).collect();
                let a = symmetric(&values, s as u64);
                let eigen = eigen_symmetric(&a).unwrap();
                check(&a, &eigen);
                assert!(eigen.values.iter().zip(&values).all(|(x, y)| (x - y).abs() < 1e-13), "{n} {s}");
            }
        }
    }

    #[test]
    fn tiny_and_huge_matrices_keep_their_eigenvalues() {
        for scale in [1e-300, 1e-200, 1e-150, 1e-12, 1e12, 1e150, 1e300] {
            let diagonal = Matrix::from_fn(3, 3, |i, j| if i == j { (3 - i) as f64 * scale } else { 0.0 });
            let mut full = symmetric(&[3.0, 2.0, 1.0], 4);
            full.scale(scale);
            for a in [diagonal, full] {
                let e = eigen_symmetric(&a).unwrap();
                check(&a, &e);
                assert!((e.values[2] / scale - 1.0).abs() < 1e-12, "{:?}", e.values);
            }
        }
    }

    #[test]
    fn what_is_nothing_or_no_number_is_told() {
        assert_eq!(eigen_symmetric(&Matrix::zeros(0, 0)).unwrap().values, [0.0; 0]);
        let zero = eigen_symmetric(&Matrix::zeros(40, 40)).unwrap();
        assert_eq!((zero.values, zero.vectors), (vec![0.0; 40], Matrix::identity(40, 40)));
        let one = eigen_symmetric(&Matrix::from_vec(1, 1, vec![-3.0])).unwrap();
        assert_eq!((one.values[0], one.vectors[(0, 0)].abs()), (-3.0, 1.0));
        for bad in [f64::NAN, f64::INFINITY] {
            let mut a = symmetric(&[2.0; 300], 1);
            a[(7, 250)] = bad;
            assert!(eigen_symmetric(&a).is_none() && leading_eigen(&a, 2).is_none());
        }
    }

    #[test]
    fn all_eigenpairs_have_the_same_bits_on_any_number_of_threads() {
        let a = symmetric(&(0..260).map(|i| 1.0 / (1.0 + f64::from(i))).collect::<Vec<f64>>(), 9);
        let [one, two, five] = on_threads(|| {
            let eigen = eigen_symmetric(&a).unwrap();
            (eigen.values, eigen.vectors)
        });
        assert!(one == two && two == five);
    }

    #[test]
    fn a_few_eigenpairs_of_a_large_matrix_are_those_of_all() {
        let n = 300;
        let basis = orthogonal(n, 5);
        // Spectra that fall, faster and slower, one that hardly does (where the Krylov space is not enough), and a matrix
        // of rank 2.
        let spectra: [fn(usize) -> f64; 4] = [
            |j| 0.8f64.powi(j as i32),
            |j| 0.95f64.powi(j as i32),
            |j| 1.0 - 1e-4 * j as f64,
            |j| f64::from(u8::from(j < 2)),
        ];
        for (s, spectrum) in spectra.into_iter().enumerate() {
            let values: Vec<f64> = (0..n).map(spectrum).collect();
            let a = scaled_columns(&basis, &values).times_transpose(&basis);
            assert!(krylov_eigen(&a, 3).is_some() == (s != 2), "spectrum {s}");
            let few = leading_eigen(&a, 3).unwrap();
            let all = eigen_symmetric(&a).unwrap();
            for j in 0..3 {
                assert!((few.values[j] - all.values[j]).abs() < 1e-11, "{} {}", few.values[j], all.values[j]);
            }
            let image = a.times(&few.vectors);
            assert!(difference(&image, &scaled_columns(&few.vectors, &few.values)) < 1e-9);
            assert!(off_orthonormal(&few.vectors) < 1e-10);
        }
    }
}
