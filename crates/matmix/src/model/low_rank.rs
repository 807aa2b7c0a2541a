//! Low rank without a noise model: PCA, 2DPCA, GLRAM and multilinear PCA in one type.

use crate::error::{Error, Result, sides};
use crate::linalg::{Matrix, expand};
use crate::model::check_loadings;

/// Orthonormal loadings for every mode: X ≈ B ×_1 V^(1) … ×_D V^(D) + M with B = (X − M) ×_1 V^(1)ᵀ ….
///
/// Order 1 is PCA, order 2 GLRAM (Ye 2005, which is not centred) or 2DPCA when one mode is kept whole, higher
/// orders multilinear PCA.
///
/// ```
/// use matmix::{LowRank, Matrix, Samples};
///
/// // The first two numbers of vectors of three, less a mean.
/// let model = LowRank::new(&[3], vec![1.0; 3], vec![Matrix::identity(3, 2)])?;
/// let samples = Samples::from_vec(&[3], vec![1.0, 2.0, 3.0])?;
/// assert_eq!(model.transform(&samples)?, [0.0, 1.0]);
/// assert_eq!(model.reconstruct(&samples)?, [1.0, 2.0, 1.0]);
/// assert_eq!(model.squared_errors(&samples)?, [4.0]);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LowRank {
    shape: Vec<usize>,
    rank: Vec<usize>,
    mean: Vec<f64>,
    loadings: Vec<Matrix>,
    explained: Vec<Vec<f64>>,
    total_variance: f64,
}

impl LowRank {
    /// A model from its parts; the loadings must have orthonormal columns. The mean is zero where the
    /// samples were not centred.
    ///
    /// # Errors
    /// If they do not fit each other or the shape, are not finite, or the columns are not orthonormal.
    pub fn new(shape: &[usize], mean: Vec<f64>, loadings: Vec<Matrix>) -> Result<Self> {
        let wrong = |problem: String| Err(Error::Model { problem });
        let rank = check_loadings(shape, &loadings)?;
        let size: usize = shape.iter().product();
        if mean.len() != size {
            return wrong(format!(
                "the mean has {} numbers; shape {} needs {size}",
                mean.len(),
                sides(shape)
            ));
        }
        if mean.iter().any(|x| !x.is_finite()) {
            return wrong("the mean holds NaN or infinity".into());
        }
        for (d, u) in loadings.iter().enumerate() {
            let gram = u.transpose_times(u);
            let off = (0..u.cols())
                .flat_map(|i| (0..u.cols()).map(move |j| (i, j)))
                .map(|(i, j)| (gram[(i, j)] - f64::from(u8::from(i == j))).abs())
                .fold(0.0, f64::max);
            if off.is_nan() || off > 1e-6 {
                return wrong(format!("the columns of the loadings of mode {d} are not orthonormal"));
            }
        }
        let explained = rank.iter().map(|&r| vec![0.0; r]).collect();
        Ok(Self { shape: shape.to_vec(), rank, mean, loadings, explained, total_variance: 0.0 })
    }

    /// Attaches what the fit found out about the variance.
    pub(crate) fn with_variance(mut self, explained: Vec<Vec<f64>>, total: f64) -> Self {
        self.explained = explained;
        self.total_variance = total;
        self
    }

    /// The shape of the samples.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The shape of the cores.
    pub fn rank(&self) -> &[usize] {
        &self.rank
    }

    /// P: the number of elements of a sample.
    pub fn sample_len(&self) -> usize {
        self.shape.iter().product()
    }

    /// ρ: the number of elements of a core.
    pub fn core_len(&self) -> usize {
        self.rank.iter().product()
    }

    /// What is subtracted from the samples first: their mean, or zero.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// V^(d), one p_d × r_d matrix with orthonormal columns per mode.
    pub fn loadings(&self) -> &[Matrix] {
        &self.loadings
    }

    /// For each mode the mean square of the samples (less their mean) along each of its loadings, after the
    /// other modes were reduced. Descending, except along a mode kept whole, where it is that of each row. For order 1
    /// the variances of PCA.
    pub fn explained_variance(&self) -> &[Vec<f64>] {
        &self.explained
    }

    /// The mean of ‖X − M‖² over the samples it was fitted to.
    pub fn total_variance(&self) -> f64 {
        self.total_variance
    }

    /// The share of the total variance each loading of each mode explains.
    pub fn explained_variance_ratio(&self) -> Vec<Vec<f64>> {
        let total = if self.total_variance > 0.0 { self.total_variance } else { 1.0 };
        self.explained.iter().map(|mode| mode.iter().map(|v| v / total).collect()).collect()
    }

    /// The number of free parameters, as counted for [`Mixture`](super::Mixture): mean and loadings.
    pub fn n_parameters(&self) -> usize {
        let mean = if self.mean.iter().any(|&m| m != 0.0) { self.sample_len() } else { 0 };
        let loadings: usize = self
            .shape
            .iter()
            .zip(&self.rank)
            .filter(|(p, r)| p != r)
            .map(|(&p, &r)| p * r - r * (r + 1) / 2)
            .sum();
        mean + loadings
    }

    /// B ×_1 V^(1) … ×_D V^(D) + M.
    pub fn reconstruct_core(&self, core: &[f64]) -> Vec<f64> {
        let mut x = expand(core, &self.loadings);
        x.iter_mut().zip(&self.mean).for_each(|(x, m)| *x += m);
        x
    }
}
