//! A linear discriminant with Ledoit–Wolf shrinkage, for recognition.
//!
//! A gallery has far fewer samples than its features have entries, so the covariance within the classes is shrunk
//! towards a multiple of the identity by the amount of Ledoit & Wolf (2004), and the discriminant directions are found
//! in the span of the samples.

use crate::error::{Error, Result};
use crate::linalg::{Matrix, SymmetricFactor, eigen_symmetric};
use crate::pass::{Reader, Writer};

/// Directions that separate classes; features are compared by the cosine along them.
#[derive(Debug, Clone)]
pub(crate) struct Fisher {
    mean: Vec<f64>,
    /// features × directions.
    directions: Matrix,
}

impl Fisher {
    /// Learns from n feature vectors with their classes.
    pub(crate) fn learn(features: &[f64], n: usize, classes: &[usize]) -> Result<Self> {
        let dim = features.len() / n;
        let n_classes = classes.iter().max().map_or(0, |m| m + 1);
        let mut counts = vec![0usize; n_classes];
        classes.iter().for_each(|&c| counts[c] += 1);
        if counts.iter().filter(|&&c| c > 0).count() < 2 {
            return Err(Error::Option {
                option: "distance",
                value: "fisher on a gallery of one class".into(),
                expected: "data, paper or weighted, or a gallery of at least two classes",
            });
        }
        let mut mean = vec![0.0; dim];
        let mut class_means = Matrix::zeros(n_classes, dim);
        for (x, &c) in features.chunks_exact(dim).zip(classes) {
            for (i, x) in x.iter().enumerate() {
                mean[i] += x / n as f64;
                class_means[(c, i)] += x / counts[c] as f64;
            }
        }
        // Residuals within the classes and means between them, one per row.
        let within = Matrix::from_fn(n, dim, |i, j| features[i * dim + j] - class_means[(classes[i], j)]);
        let between = Matrix::from_fn(n_classes, dim, |c, j| {
            if counts[c] == 0 { 0.0 } else { (counts[c] as f64).sqrt() * (class_means[(c, j)] - mean[j]) }
        });
        let (shrinkage, level) = ledoit_wolf(&within);
        // S_w = (1−a) WᵀW/n + a·m·I. Directions v = S_w⁻¹ Bᵀ u with B S_w⁻¹ Bᵀ u = λ u (classes × classes), S_w⁻¹ by
        // the Woodbury identity through the n × n Gram matrix.
        // With one sample per class there is nothing within the classes: all that is left of S_w is a multiple of I.
        let count = features.len() as f64;
        let spread = (within.inner(&within) + between.inner(&between)) / count;
        let ridge = (shrinkage * level).max(1e-12 * spread);
        let factor = (1.0 - shrinkage) / n as f64;
        let gram = within.times_transpose(&within);
        let inner = Matrix::from_fn(n, n, |i, j| factor * gram[(i, j)] + if i == j { ridge } else { 0.0 });
        let wb = within.times_transpose(&between);
        let degenerate = || Error::Option {
            option: "distance",
            value: "fisher on a gallery whose cores are all the same".into(),
            expected: "data, paper or weighted",
        };
        // What rounding leaves of features that are all the same.
        if spread <= 1e-28 * features.iter().map(|x| x * x).sum::<f64>() / count {
            return Err(degenerate());
        }
        let solved = SymmetricFactor::new(&inner).ok_or_else(degenerate)?.solve(&wb);
        // S_w⁻¹ Bᵀ = (Bᵀ − factor · Wᵀ (factor·W Wᵀ + ridge)⁻¹ W Bᵀ) / ridge.
        let correction = within.transpose_times(&solved);
        let inverse =
            Matrix::from_fn(dim, n_classes, |i, c| (between[(c, i)] - factor * correction[(i, c)]) / ridge);
        let small = between.times(&inverse);
        let eigen = eigen_symmetric(&small).ok_or_else(degenerate)?;
        let kept = eigen.values.iter().take_while(|v| **v > 1e-10 * eigen.values[0].max(0.0)).count();
        let kept = kept.clamp(1, n_classes - 1);
        let mut directions = inverse.times(&eigen.vectors.first_cols(kept));
        // Unit variance within the classes along each direction: vᵀ S_w v = λ for v = S_w⁻¹ Bᵀ u.
        for j in 0..kept {
            let scale = 1.0 / eigen.values[j].max(f64::MIN_POSITIVE).sqrt();
            for i in 0..dim {
                directions[(i, j)] *= scale;
            }
        }
        if !directions.is_finite() {
            return Err(degenerate());
        }
        Ok(Self { mean, directions })
    }

    /// How many directions there are.
    pub(crate) fn directions(&self) -> usize {
        self.directions.cols()
    }

    pub(crate) fn write(&self, to: &mut Writer) {
        to.reals(&self.mean);
        to.matrix(&self.directions);
    }

    /// The way back, of features of this length.
    pub(crate) fn read(from: &mut Reader<'_>, length: usize) -> Result<Self> {
        let (mean, directions) = (from.reals()?, from.matrix()?);
        if mean.len() != length || directions.rows() != length {
            return Err(from.wrong("their directions are of features of another length"));
        }
        Ok(Self { mean, directions })
    }

    /// The features along the directions, as a unit vector.
    pub(crate) fn project(&self, x: &[f64]) -> Vec<f64> {
        let mut y = vec![0.0; self.directions.cols()];
        for (i, (x, m)) in x.iter().zip(&self.mean).enumerate() {
            for (y, v) in y.iter_mut().zip(self.directions.row(i)) {
                *y += (x - m) * v;
            }
        }
        let norm = y.iter().map(|y| y * y).sum::<f64>().sqrt();
        if norm > 0.0 {
            y.iter_mut().for_each(|y| *y /= norm);
        }
        y
    }
}

/// The shrinkage of Ledoit & Wolf (2004) for centred rows, and the mean variance it shrinks towards.
///
/// ```text
/// a = min(1, β / δ),  δ = ‖S − m I‖²/p,  β = (1/n²) Σ ‖x xᵀ − S‖² / p,  m = tr S / p
/// ```
fn ledoit_wolf(x: &Matrix) -> (f64, f64) {
    let (n, p) = (x.rows() as f64, x.cols() as f64);
    let gram = x.times_transpose(x);
    let level = gram.trace() / (n * p);
    // ‖S‖² = ‖X Xᵀ‖²/n², and Σ ‖x xᵀ‖² is the sum of the squared diagonal.
    let s_norm = gram.inner(&gram) / (n * n);
    let fourth: f64 = (0..x.rows()).map(|i| gram[(i, i)] * gram[(i, i)]).sum();
    let delta = s_norm / p - level * level;
    let beta = (fourth / n - s_norm) / (n * p);
    let shrinkage = if delta > 0.0 { (beta / delta).clamp(0.0, 1.0) } else { 1.0 };
    (shrinkage, level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shrinkage_by_hand() {
        // Two samples on the axes: S = I/2·…; everything can be computed on paper.
        let x = Matrix::from_vec(2, 2, vec![1.0, 0.0, 0.0, 1.0]);
        // S = I/2, m = 1/2, δ = 0: nothing to shrink towards but itself.
        assert_eq!(ledoit_wolf(&x), (1.0, 0.5));
        let x = Matrix::from_vec(2, 2, vec![2.0, 0.0, 0.0, 1.0]);
        // S = diag(2, ½), m = 1.25, ‖S‖² = 4.25, δ = 4.25/2 − 1.5625 = 0.5625, β = (17/2 − 4.25)/4 = 1.0625.
        assert_eq!(ledoit_wolf(&x), (1.0, 1.25));
    }

    /// The textbook: S, its distance from m·I, and the scatter of the x xᵀ around it, all as dense matrices.
    #[test]
    fn shrinkage_equals_the_dense_textbook() {
        for (n, p) in [(5, 3), (12, 4), (4, 9), (40, 7)] {
            let number = |i: usize, j: usize| ((i * p + j) as f64 * 0.618_033_988_7).fract() - 0.5;
            // Features of different spread, so that there is something not to shrink.
            let x = Matrix::from_fn(n, p, |i, j| number(i, j) * (1.0 + 3.0 * j as f64));
            let mut s = x.transpose_times(&x);
            s.scale(1.0 / n as f64);
            let m = s.trace() / p as f64;
            let mut off = s.clone();
            (0..p).for_each(|i| off[(i, i)] -= m);
            let delta = off.inner(&off) / p as f64;
            let mut beta = 0.0;
            for i in 0..n {
                let row = Matrix::from_vec(p, 1, x.row(i).to_vec());
                let mut around = row.times_transpose(&row);
                around.add_scaled(-1.0, &s);
                beta += around.inner(&around) / (n * n * p) as f64;
            }
            let (shrinkage, level) = ledoit_wolf(&x);
            assert!((level - m).abs() < 1e-12 * m);
            let expected = (beta / delta).min(1.0);
            assert!((shrinkage - expected).abs() < 1e-10, "{n}×{p}: {shrinkage} instead of {expected}");
            assert!(shrinkage > 0.0 && (n < 40 || shrinkage < 1.0));
        }
    }

    /// S_w through the Woodbury identity is S_w through dense matrices: the leading direction solves the
    /// generalised eigenproblem S_b v = λ S_w v.
    #[test]
    fn directions_solve_the_dense_eigenproblem() {
        let (n, p) = (30, 6);
        let classes: Vec<usize> = (0..n).map(|i| i % 3).collect();
        let x: Vec<f64> = (0..n * p)
            .map(|i| {
                let (row, j) = (i / p, i % p);
                (i as f64 * 0.754_877_666).fract() + if classes[row] == j { 1.5 } else { 0.0 }
            })
            .collect();
        let fisher = Fisher::learn(&x, n, &classes).unwrap();
        assert_eq!(fisher.directions.cols(), 2);
        let mean = |c: usize, j: usize| -> f64 {
            let rows: Vec<usize> = (0..n).filter(|&i| classes[i] == c).collect();
            rows.iter().map(|i| x[i * p + j]).sum::<f64>() / rows.len() as f64
        };
        let within = Matrix::from_fn(n, p, |i, j| x[i * p + j] - mean(classes[i], j));
        let (a, m) = ledoit_wolf(&within);
        let mut s_w = within.transpose_times(&within);
        s_w.scale((1.0 - a) / n as f64);
        (0..p).for_each(|i| s_w[(i, i)] += a * m);
        let overall = |j: usize| (0..n).map(|i| x[i * p + j]).sum::<f64>() / n as f64;
        let between = Matrix::from_fn(3, p, |c, j| 10f64.sqrt() * (mean(c, j) - overall(j)));
        let s_b = between.transpose_times(&between);
        for j in 0..2 {
            let v = Matrix::from_vec(p, 1, fisher.directions.col(j));
            let (left, right) = (s_b.times(&v), s_w.times(&v));
            // Unit variance within the classes.
            assert!((v.inner(&right) - 1.0).abs() < 1e-9, "{}", v.inner(&right));
            let lambda = v.inner(&left);
            for i in 0..p {
                assert!((left[(i, 0)] - lambda * right[(i, 0)]).abs() < 1e-8 * lambda);
            }
        }
    }

    #[test]
    fn classes_apart_along_a_noisy_feature_are_found() {
        // The class is in the second feature; the first has ten times its spread.
        let mut x = Vec::new();
        let mut classes = Vec::new();
        for i in 0..40 {
            let class = i % 2;
            x.extend([((i * 37) % 19) as f64 - 9.0, class as f64 + ((i * 13) % 7) as f64 / 100.0]);
            classes.push(class);
        }
        let fisher = Fisher::learn(&x, 40, &classes).unwrap();
        let v = fisher.directions.col(0);
        assert!(v[1].abs() > 20.0 * v[0].abs(), "{v:?}");
    }
}
