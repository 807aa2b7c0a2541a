//! Columns of the loadings that have fallen to the noise, and the model without them.
//!
//! Column j of U^(d) adds the variances x_m σ² = λ_j w_m to the noise along its direction, w being the variances of the cores of the other
//! modes. A PPCA direction with a variance of (1 + x) σ² is worth ½ (x − ln(1 + x)) per sample beyond the noise, so that a column is worth
//!
//! ```text
//! gain = ½ N_k Σ_m (x_m − ln(1 + x_m))
//! ```
//!
//! A column that is fitted to nothing but noise gains something, too: about a nat for each of its p_d − j free numbers. It has
//! fallen to the noise if it gains less than BIC charges for them, ½ (p_d − j) ln N_k.

use super::{Component, Mixture};
use crate::error::Result;

impl Mixture {
    /// The ranks that a fit to so many samples needs: of each mode as many columns as gain more in some component than BIC charges for
    /// them, and one at least. The others have fallen to the noise in every component.
    pub fn needed_rank(&self, samples: f64) -> Vec<usize> {
        let needed = |d: usize| {
            let components = self.components().iter().zip(self.weights());
            components
                .map(|(component, weight)| component.columns_above_noise(d, weight * samples))
                .max()
                .unwrap_or(1)
        };
        (0..self.shape().len()).map(needed).collect()
    }

    /// The model with the first columns of its loadings only. What the others explained is noise again, so that the variance of the samples
    /// stays what it was.
    ///
    /// # Errors
    /// Ranks that are larger than those there are, or none.
    pub fn pruned(&self, rank: &[usize]) -> Result<Self> {
        let wrong = rank.len() != self.rank().len()
            || rank.iter().zip(self.rank()).any(|(new, old)| *new == 0 || new > old);
        if wrong {
            let value = crate::error::sides(rank);
            let expected = "between 1 and the rank there is, one for each mode";
            return Err(crate::Error::Option { option: "rank", value, expected });
        }
        let components = self.components().iter().map(|component| component.pruned(self.shape(), rank));
        Self::exactly(self.shape(), self.weights().to_vec(), components.collect::<Result<_>>()?)
    }
}

impl Component {
    /// How many columns of mode d gain more than BIC charges for them, with so many samples; one at least.
    fn columns_above_noise(&self, d: usize, samples: f64) -> usize {
        let others = self.other_variances(d);
        let side = self.loadings()[d].rows();
        let is_above = |(j, lambda): (usize, &f64)| {
            let worth = |w: &f64| {
                let x = lambda * w / self.noise_variance();
                x - x.ln_1p()
            };
            let gain = 0.5 * samples * others.iter().map(worth).sum::<f64>();
            gain > 0.5 * (side - j) as f64 * samples.max(1.0).ln()
        };
        let columns = self.eigenvalues(d);
        columns.iter().enumerate().filter(|&column| is_above(column)).count().max(1)
    }

    fn pruned(&self, shape: &[usize], rank: &[usize]) -> Result<Self> {
        let loadings: Vec<_> = self.loadings().iter().zip(rank).map(|(u, &r)| u.first_cols(r)).collect();
        let shorter = self.clone().with_loadings(loadings);
        let lost = (self.total_variance() - shorter.total_variance()).max(0.0);
        let noise = self.noise_variance() + lost / self.mean().len() as f64;
        shorter.with_noise_variance(noise).checked(shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Samples;
    use crate::linalg::Matrix;

    fn number(i: usize) -> f64 {
        ((i as f64 + 1.0) * 0.618_033_988_749).fract() - 0.5
    }

    /// Loadings of mode 1 whose last column has this length.
    fn model(last: f64) -> Mixture {
        let shape = [5, 4];
        let column = |j: usize| if j == 2 { last } else { 3.0 };
        let rows = crate::linalg::orthonormal_basis(&Matrix::from_fn(5, 3, |i, j| number(i + 7 * j)));
        let rows = Matrix::from_fn(5, 3, |i, j| rows[(i, j)] * column(j));
        let columns = Matrix::from_fn(4, 2, |i, j| number(3 * i + 11 * j));
        let mean = (0..20).map(|i| number(5 * i)).collect();
        let component = Component::new(&shape, mean, vec![rows, columns], 0.3).unwrap();
        Mixture::new(&shape, vec![1.0], vec![component]).unwrap()
    }

    fn samples() -> Samples<'static> {
        Samples::from_vec(&[5, 4], (0..400).map(|i| 2.0 * number(17 * i)).collect::<Vec<f64>>()).unwrap()
    }

    #[test]
    fn a_column_of_no_length_changes_nothing() {
        let (whole, samples) = (model(0.0), samples());
        let pruned = whole.pruned(&[2, 2]).unwrap();
        assert_eq!(pruned.rank(), [2, 2]);
        let (before, after) = (whole.score(&samples).unwrap(), pruned.score(&samples).unwrap());
        assert!((before - after).abs() < 1e-9 * before.abs(), "{before} {after}");
        assert_eq!(whole.needed_rank(1e6), [2, 2]);
    }

    /// The gain of a column is the likelihood it adds, by the covariances written out: N(0, C) samples under C and under the model
    /// without it differ by their Kullback–Leibler divergence, ½ (tr(C₀⁻¹C) − P + ln|C₀| − ln|C|), which for directions beside the
    /// noise is ½ Σ (x − ln(1 + x)).
    #[test]
    fn a_column_is_worth_the_divergence_it_makes() {
        let whole = model(1.5);
        let component = &whole.components()[0];
        let lambda = component.eigenvalues(0)[2];
        let x: Vec<f64> = component.eigenvalues(1).iter().map(|w| lambda * w / 0.3).collect();
        let gain: f64 = x.iter().map(|x| 0.5 * (x - x.ln_1p())).sum();
        let loadings = vec![component.loadings()[0].first_cols(2), component.loadings()[1].clone()];
        let without = component.clone().with_loadings(loadings).checked(&[5, 4]);
        let without = Mixture::new(&[5, 4], vec![1.0], vec![without.unwrap()]).unwrap();
        let (c, c0) = (whole.covariance(0).unwrap(), without.covariance(0).unwrap());
        let eigen = |m: &Matrix| crate::linalg::eigen_symmetric(m).unwrap();
        let log_determinant = |m: &Matrix| eigen(m).values.iter().map(|v| v.ln()).sum::<f64>();
        let inverse = crate::linalg::solve_symmetric_right(&Matrix::identity(20, 20), &c0).unwrap();
        let product = inverse.times(&c);
        let trace: f64 = (0..20).map(|i| product[(i, i)]).sum();
        let divergence = 0.5 * (trace - 20.0 + log_determinant(&c0) - log_determinant(&c));
        assert!((gain - divergence).abs() < 1e-9, "{gain} {divergence}");
        // It is needed as soon as there are samples enough to pay for its three numbers.
        let needed = |n: f64| whole.needed_rank(n)[0];
        let paid = |n: f64| n * gain > 1.5 * n.ln();
        for n in [2.0, 3.0, 5.0, 8.0, 13.0, 100.0] {
            assert_eq!(needed(n) == 3, paid(n), "{n}");
        }
    }

    #[test]
    fn what_was_explained_is_noise_again() {
        let whole = model(1.5);
        let pruned = whole.pruned(&[2, 1]).unwrap();
        let trace = |m: &Mixture| (0..20).map(|i| m.covariance(0).unwrap()[(i, i)]).sum::<f64>();
        assert!((trace(&whole) - trace(&pruned)).abs() < 1e-9);
        for rank in [&[4, 2][..], &[0, 2], &[2]] {
            assert!(whole.pruned(rank).is_err(), "{rank:?}");
        }
    }
}
