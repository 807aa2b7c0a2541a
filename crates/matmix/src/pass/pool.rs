//! What a mixture over the windows of images says about them, summed up over the cells of a grid.

use crate::data::{Patches, Windows};
use crate::error::{Error, Result};
use crate::model::Mixture;

/// Asks for the Fisher vectors of images: sums over the windows of each, cell by cell of a grid of overlapping triangular windows.
///
/// ```
/// use matmix::data::Patches;
/// use matmix::pass::Pool;
/// use matmix::{Backend, Component, Cpu, Matrix, Mixture, Samples};
///
/// let component = Component::new(&[2, 2], vec![0.0; 4], vec![Matrix::identity(2, 1); 2], 1.0)?;
/// let model = Mixture::new(&[2, 2], vec![1.0], vec![component])?;
/// let images = Samples::from_vec(&[6, 6], (0..72).map(f64::from).collect::<Vec<_>>())?;
/// let patches = Patches::new(2).normalised(&images, 0.1, 0)?;
/// let pass = Pool::new(&model, &patches, images.shape(), 2)?;
/// let mut all = Vec::new();
/// Cpu::best().pool(&pass, &images, &mut |some| all.extend(some))?;
/// // Two images, 2×2 cells, one component, the first and the second order of a core of one number.
/// assert_eq!((pass.width(), all.len()), (4 * 2, 2 * 8));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Pool<'a> {
    /// A mixture over the windows.
    pub(crate) model: &'a Mixture,
    pub(crate) windows: Windows,
    /// c of their contrast.
    pub(crate) floor: f64,
    /// The cells along each mode.
    pub(crate) cells: Vec<Cells>,
}

impl<'a> Pool<'a> {
    /// For images of this shape, with at most `grid` cells along each mode.
    ///
    /// # Errors
    /// If such an image has no such patches, or the mixture is not one over them.
    pub fn new(model: &'a Mixture, patches: &Patches, image: &[usize], grid: usize) -> Result<Self> {
        let windows = patches.windows(image)?;
        if windows.size != model.shape() {
            return Err(Error::ShapeMismatch { expected: model.shape().to_vec(), found: windows.size });
        }
        let cells = windows.positions.iter().map(|&n| Cells::new(n, grid)).collect();
        Ok(Self { model, windows, floor: patches.floor.unwrap_or(0.0), cells })
    }

    /// The numbers of a Fisher vector.
    pub fn width(&self) -> usize {
        let cells: usize = self.cells.iter().map(|c| c.count).product();
        cells * self.model.n_components() * 2 * self.model.core_len()
    }
}

/// For every position along a mode, the cells it counts for and by how much; the weights of a cell add up to 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cells {
    pub(crate) count: usize,
    pub(crate) of: Vec<Vec<(usize, f64)>>,
}

impl Cells {
    /// At most `count` cells over so many positions. A cell's window has its top in the middle of the cell and ends in the middles of
    /// its neighbours:
    ///
    /// ```text
    /// w_ci ∝ max(0, 1 − |(i + ½) g/n − (c + ½)|),   Σ_i w_ci = 1
    /// ```
    pub(crate) fn new(positions: usize, count: usize) -> Self {
        let count = count.clamp(1, positions.max(1));
        let weight = |cell: usize, i: usize| {
            let at = (i as f64 + 0.5) / positions as f64 * count as f64;
            (1.0 - (at - (cell as f64 + 0.5)).abs()).max(0.0)
        };
        let mut of = vec![Vec::new(); positions];
        for cell in 0..count {
            let sum: f64 = (0..positions).map(|i| weight(cell, i)).sum();
            for (i, of) in of.iter_mut().enumerate() {
                let weight = weight(cell, i);
                if weight > 0.0 {
                    of.push((cell, weight / sum));
                }
            }
        }
        Self { count, of }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_weighs_one_and_every_position_counts() {
        for (positions, count) in [(59, 5), (3, 5), (1, 5), (7, 7), (10, 1), (23, 4)] {
            let cells = Cells::new(positions, count);
            assert_eq!(cells.count, count.min(positions));
            for cell in 0..cells.count {
                let weights = cells.of.iter().flatten().filter(|(c, _)| *c == cell);
                assert!((weights.map(|(_, w)| w).sum::<f64>() - 1.0).abs() < 1e-12);
            }
            assert!(cells.of.iter().all(|of| (1..=2).contains(&of.len())), "{positions} {count}");
        }
        // Four positions, two cells: tops at 1 and 3 of 4, by hand.
        let two = Cells::new(4, 2);
        let first: Vec<f64> =
            two.of.iter().map(|of| of.iter().find(|(c, _)| *c == 0).map_or(0.0, |c| c.1)).collect();
        assert_eq!(first, [0.75 / 1.75, 0.75 / 1.75, 0.25 / 1.75, 0.0]);
    }
}
