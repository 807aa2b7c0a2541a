//! A dense textbook Gaussian: everything written out with P×P matrices, nothing shared with the library.
use matmix::{Component, Matrix};

/// A square or rectangular matrix as rows of numbers.
pub(crate) type Rows = Vec<Vec<f64>>;

/// W = U^(1) ⊗ … ⊗ U^(D): P × ρ, rows and columns in row-major order of their indices.
pub(crate) fn loading_matrix(loadings: &[Matrix]) -> Rows {
    let mut w = vec![vec![1.0]];
    for u in loadings {
        let mut next = vec![vec![0.0; w[0].len() * u.cols()]; w.len() * u.rows()];
        for (a, row) in w.iter().enumerate() {
            for (b, &x) in row.iter().enumerate() {
                for i in 0..u.rows() {
                    for j in 0..u.cols() {
                        next[a * u.rows() + i][b * u.cols() + j] = x * u[(i, j)];
                    }
                }
            }
        }
        w = next;
    }
    w
}

/// C = W Wᵀ + σ² I.
pub(crate) fn covariance(component: &Component) -> Rows {
    let w = loading_matrix(component.loadings());
    let n = w.len();
    let mut c = vec![vec![0.0; n]; n];
    for i in 0..n {
        for j in 0..n {
            c[i][j] = w[i].iter().zip(&w[j]).map(|(x, y)| x * y).sum();
        }
        c[i][i] += component.noise_variance();
    }
    c
}

/// The lower Cholesky factor.
pub(crate) fn cholesky(a: &Rows) -> Rows {
    let n = a.len();
    let mut l = vec![vec![0.0; n]; n];
    for i in 0..n {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| l[i][k] * l[j][k]).sum();
            l[i][j] = if i == j { (a[i][i] - sum).sqrt() } else { (a[i][j] - sum) / l[j][j] };
        }
    }
    l
}

/// A⁻¹ b from the Cholesky factor of A.
pub(crate) fn solve(l: &Rows, b: &[f64]) -> Vec<f64> {
    let n = l.len();
    let mut y = b.to_vec();
    for i in 0..n {
        for k in 0..i {
            y[i] -= l[i][k] * y[k];
        }
        y[i] /= l[i][i];
    }
    for i in (0..n).rev() {
        for k in i + 1..n {
            y[i] -= l[k][i] * y[k];
        }
        y[i] /= l[i][i];
    }
    y
}

/// ln N(x | m, C).
pub(crate) fn log_density(component: &Component, x: &[f64]) -> f64 {
    let l = cholesky(&covariance(component));
    let d: Vec<f64> = x.iter().zip(component.mean()).map(|(x, m)| x - m).collect();
    let quadratic: f64 = solve(&l, &d).iter().zip(&d).map(|(a, b)| a * b).sum();
    let log_determinant: f64 = (0..l.len()).map(|i| 2.0 * l[i][i].ln()).sum();
    -0.5 * (x.len() as f64 * (2.0 * std::f64::consts::PI).ln() + log_determinant + quadratic)
}

/// The posterior of vec(B): mean Wᵀ C⁻¹ (x − m) and covariance I − Wᵀ C⁻¹ W.
pub(crate) fn posterior(component: &Component, x: &[f64]) -> (Vec<f64>, Rows) {
    let w = loading_matrix(component.loadings());
    let l = cholesky(&covariance(component));
    let d: Vec<f64> = x.iter().zip(component.mean()).map(|(x, m)| x - m).collect();
    let times_w = |v: &[f64]| -> Vec<f64> {
        (0..w[0].len()).map(|j| w.iter().zip(v).map(|(row, v)| row[j] * v).sum()).collect()
    };
    let mean = times_w(&solve(&l, &d));
    let mut covariance = Vec::new();
    for j in 0..w[0].len() {
        let column: Vec<f64> = w.iter().map(|row| row[j]).collect();
        let mut row: Vec<f64> = times_w(&solve(&l, &column)).iter().map(|x| -x).collect();
        row[j] += 1.0;
        covariance.push(row);
    }
    (mean, covariance)
}

/// ln Σ exp.
pub(crate) fn log_sum_exp(x: &[f64]) -> f64 {
    let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + x.iter().map(|x| (x - largest).exp()).sum::<f64>().ln()
}
