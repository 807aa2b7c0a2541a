//! Either of the two model types.

use super::{LowRank, Mixture};

/// Either of the two model types.
///
/// ```
/// use matmix::{LowRank, Matrix, Model};
///
/// let loadings = vec![Matrix::identity(4, 2), Matrix::identity(3, 1)];
/// let model = Model::from(LowRank::new(&[4, 3], vec![0.0; 12], loadings)?);
/// assert!(matches!(model, Model::LowRank(_)));
/// assert_eq!((model.sample_len(), model.core_len(), model.n_components()), (12, 2, 1));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Model {
    /// A mixture with a noise model.
    Mixture(Mixture),
    /// Orthonormal loadings.
    LowRank(LowRank),
}

impl Model {
    /// The shape of the samples it is for.
    pub fn shape(&self) -> &[usize] {
        match self {
            Model::Mixture(m) => m.shape(),
            Model::LowRank(m) => m.shape(),
        }
    }

    /// The shape of its cores.
    pub fn rank(&self) -> &[usize] {
        match self {
            Model::Mixture(m) => m.rank(),
            Model::LowRank(m) => m.rank(),
        }
    }

    /// K; a `LowRank` is one component.
    pub fn n_components(&self) -> usize {
        match self {
            Model::Mixture(m) => m.n_components(),
            Model::LowRank(_) => 1,
        }
    }

    /// P: the number of elements of a sample.
    pub fn sample_len(&self) -> usize {
        self.shape().iter().product()
    }

    /// ρ: the number of elements of a core.
    pub fn core_len(&self) -> usize {
        self.rank().iter().product()
    }

    /// The number of free parameters.
    pub fn n_parameters(&self) -> usize {
        match self {
            Model::Mixture(m) => m.n_parameters(),
            Model::LowRank(m) => m.n_parameters(),
        }
    }
}

impl From<Mixture> for Model {
    fn from(model: Mixture) -> Self {
        Model::Mixture(model)
    }
}

impl From<LowRank> for Model {
    fn from(model: LowRank) -> Self {
        Model::LowRank(model)
    }
}
