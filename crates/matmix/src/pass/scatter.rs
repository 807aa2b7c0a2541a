//! Scatters, Σ_n w_n Z_n Z_nᵀ: what low-rank loadings take their eigenvectors from.

use super::wire::{Reader, Writer};
use super::{Pass, Sums, check_point, same};
use crate::error::{Error, Result, sides};
use crate::linalg::Matrix;

/// For each of the modes d, Σ w Z Zᵀ with Z = unfold_d((X − M) ×_{e≠d} V^(e)ᵀ); if there are none, Σ w y yᵀ of the flattened
/// cores y = (X − M) ×_e V^(e)ᵀ.
///
/// ```
/// use matmix::pass::ScatterPass;
/// use matmix::{Backend, Cpu, Samples};
///
/// let samples = Samples::from_vec(&[2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
/// let pass = ScatterPass { mean: vec![0.0; 4], loadings: vec![None, None], modes: vec![0, 1] };
/// let sums = Cpu::best().scatter(&pass, &samples)?;
/// // X Xᵀ and Xᵀ X.
/// assert_eq!(sums.scatters[0].as_slice(), [5.0, 11.0, 11.0, 25.0]);
/// assert_eq!(sums.scatters[1].as_slice(), [10.0, 14.0, 14.0, 20.0]);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ScatterPass {
    /// M: what is subtracted from every sample.
    pub mean: Vec<f64>,
    /// V: of the loadings a mode's own do not count; `None` keeps a mode whole.
    pub loadings: Vec<Option<Matrix>>,
    /// The modes, counted from 0; none for the cores.
    pub modes: Vec<usize>,
}

/// Σ w Z Zᵀ of some modes.
///
/// ```
/// use matmix::pass::{ScatterPass, Sums};
/// use matmix::{Backend, Cpu, Samples};
///
/// // Vectors: the scatter is Σ x xᵀ, and its trace is the sum of their squares.
/// let pass = ScatterPass { mean: vec![0.0; 2], loadings: vec![None], modes: vec![0] };
/// let run = |numbers: [f64; 2]| Cpu::best().scatter(&pass, &Samples::from_slice(&[2], &numbers)?);
/// let mut sums = run([1.0, 2.0])?;
/// sums.merge(&run([3.0, 4.0])?)?;
/// assert_eq!(sums.scatters[0].as_slice(), [10.0, 14.0, 14.0, 20.0]);
/// assert_eq!((sums.n_samples, sums.squares), (2, 30.0));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ScatterSums {
    /// How many samples were seen.
    pub n_samples: u64,
    /// One scatter per mode, p_d × p_d, or that of the cores.
    pub scatters: Vec<Matrix>,
    /// Σ w ‖X − M‖².
    pub squares: f64,
}

impl ScatterPass {
    /// The sides of its scatters for samples of this shape.
    fn sides(&self, shape: &[usize]) -> Vec<usize> {
        if !self.modes.is_empty() {
            return self.modes.iter().map(|&d| shape[d]).collect();
        }
        let kept = |(v, &p): (&Option<Matrix>, &usize)| v.as_ref().map_or(p, Matrix::cols);
        vec![self.loadings.iter().zip(shape).map(kept).product()]
    }

    /// The sides of its scatters, as far as it knows the shape of the samples itself.
    fn own_sides(&self) -> Option<Vec<usize>> {
        // A mode kept whole has as many elements as the others leave over.
        let known: usize = self.loadings.iter().flatten().map(Matrix::rows).product();
        let rest = self.mean.len().checked_div(known)?;
        if self.loadings.iter().filter(|v| v.is_none()).count() > 1 {
            return None;
        }
        let shape: Vec<usize> = self.loadings.iter().map(|v| v.as_ref().map_or(rest, Matrix::rows)).collect();
        Some(self.sides(&shape))
    }
}

impl Pass for ScatterPass {
    type Sums = ScatterSums;

    fn check(&self, shape: &[usize]) -> Result<()> {
        let wrong = |problem: String| Err(Error::Task { problem });
        check_point("mean", &self.mean, shape)?;
        if let Some(&mode) = self.modes.iter().find(|&&mode| mode >= shape.len()) {
            return wrong(format!("mode {mode} (from 0) of samples of order {}", shape.len()));
        }
        let fits = |(u, &side): (&Option<Matrix>, &usize)| {
            u.as_ref().is_none_or(|u| u.rows() == side && (1..=side).contains(&u.cols()))
        };
        if self.loadings.len() != shape.len() || !self.loadings.iter().zip(shape).all(fits) {
            return wrong(format!("the loadings are not for samples of {}", sides(shape)));
        }
        Ok(())
    }

    fn fits(&self, sums: &ScatterSums) -> bool {
        let found: Vec<usize> = sums.scatters.iter().map(Matrix::rows).collect();
        self.own_sides().map_or(found.len() == self.modes.len().max(1), |sides| sides == found)
    }

    fn write(&self, to: &mut Writer) {
        to.sizes(&self.modes);
        to.reals(&self.mean);
        to.size(self.loadings.len());
        for u in &self.loadings {
            to.byte(u8::from(u.is_some()));
            u.iter().for_each(|u| to.matrix(u));
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let (modes, mean) = (from.sizes()?, from.reals()?);
        let loading = |from: &mut Reader<'_>| match from.byte()? {
            0 => Ok(None),
            1 => from.matrix().map(Some),
            other => Err(from.wrong(format!("loadings are there or not, but {other} was found"))),
        };
        let loadings = (0..from.count(1)?).map(|_| loading(from)).collect::<Result<_>>()?;
        Ok(Self { mean, loadings, modes })
    }
}

impl Sums for ScatterSums {
    fn n_samples(&self) -> u64 {
        self.n_samples
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        same("scatters", self.scatters.len(), other.scatters.len())?;
        for (a, b) in self.scatters.iter().zip(&other.scatters) {
            same("rows", a.rows(), b.rows())?;
        }
        self.n_samples += other.n_samples;
        self.scatters.iter_mut().zip(&other.scatters).for_each(|(a, b)| a.add_scaled(1.0, b));
        self.squares += other.squares;
        Ok(())
    }

    fn write(&self, to: &mut Writer) {
        to.number(self.n_samples);
        to.real(self.squares);
        to.size(self.scatters.len());
        self.scatters.iter().for_each(|scatter| to.matrix(scatter));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let (n_samples, squares) = (from.number()?, from.real()?);
        let scatters: Vec<Matrix> = (0..from.count(16)?).map(|_| from.matrix()).collect::<Result<_>>()?;
        if scatters.iter().any(|s| s.rows() != s.cols()) {
            return Err(from.wrong("a scatter is not square"));
        }
        Ok(Self { n_samples, scatters, squares })
    }
}
