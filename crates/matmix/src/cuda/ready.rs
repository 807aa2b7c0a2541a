//! A model made ready on a device.

use cudarc::driver::CudaSlice;

use super::device::Device;
use super::kernels::Number;
use crate::error::Result;
use crate::linalg::{Matrix, project};
use crate::model::{Density, Mixture};
use crate::parallel;

/// A byte that is moved takes as long as so many operations of a matrix product, about (an H200: 50·10¹² operations and 4·10¹² bytes a second).
const OPERATIONS_PER_BYTE: f64 = 12.0;

/// Operations of the kernel that contracts what a matrix product has left take longer than those of the product.
const FRONT_FACTOR: f64 = 3.0;

/// Columns of a tile of all loadings at the back, at most; tiles of the product a warp has at a time; warps of a block.
const TILE_COLUMNS: usize = 128;
const ABREAST: usize = 5;
const WARPS: usize = 8;

/// Ranks in front are padded to whole groups of this many: one thread's share.
const GROUP: usize = 8;

/// The modes of a sample in two groups, each with Kronecker products as loadings: those at the back are contracted by one matrix product for
/// all components, those in front by a kernel. With nothing in front the product does it all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) front_side: usize,
    pub(super) back_side: usize,
    pub(super) front_rank: usize,
    pub(super) back_rank: usize,
}

impl Split {
    fn after(modes: usize, shape: &[usize], rank: &[usize]) -> Self {
        Self {
            front_side: shape[..modes].iter().product(),
            back_side: shape[modes..].iter().product(),
            front_rank: rank[..modes].iter().product(),
            back_rank: rank[modes..].iter().product(),
        }
    }

    /// Whatever takes the least time for so many components, and how many modes are in front. `fused`: what is between never leaves a
    /// multiprocessor.
    fn best(shape: &[usize], rank: &[usize], components: usize, bytes: usize, fused: bool) -> (usize, Self) {
        let time = |modes: &usize| {
            let Split { front_side, back_side, front_rank, back_rank } = Self::after(*modes, shape, rank);
            let first = 2.0 * (front_side * back_side * back_rank) as f64;
            let second = 2.0 * FRONT_FACTOR * (front_side * front_rank * back_rank) as f64;
            // Written and read again.
            let between = (2 * bytes * front_side * back_rank) as f64 * OPERATIONS_PER_BYTE;
            let between = if fused { 0.0 } else { between };
            components as f64 * (first + between + if *modes > 0 { second } else { 0.0 })
        };
        let modes = (usize::from(fused)..shape.len()).min_by(|a, b| time(a).total_cmp(&time(b))).unwrap_or(0);
        (modes, Self::after(modes, shape, rank))
    }

    pub(super) fn padded_rank(&self) -> usize {
        self.front_rank.next_multiple_of(GROUP)
    }

    /// Whether the product leaves nothing to the kernel.
    pub(super) fn is_dense(&self) -> bool {
        self.front_side == 1
    }
}

/// The tiles that tensor cores contract samples in: as in tensor_cores.cu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tiles {
    /// Components whose loadings are held in shared memory, and samples that are worked on together.
    pub(super) components: usize,
    pub(super) samples: usize,
    /// Bytes of shared memory.
    pub(super) shared: usize,
}

impl Tiles {
    /// Tiles that keep all warps of a block busy and fit shared memory, if there are any.
    fn new(split: &Split, components: usize, shared: usize) -> Option<Self> {
        let (rows, deep) = (split.front_side.next_multiple_of(16), split.back_side.next_multiple_of(8));
        let most = (TILE_COLUMNS / split.back_rank).clamp(1, components);
        let apart = |numbers: usize| if numbers % 16 == 8 { numbers } else { numbers + 8 };
        let tiles = |k: usize, samples: usize| {
            let wide = (k * split.back_rank).div_ceil(8);
            let groups = wide.div_ceil(ABREAST);
            let wide = 8 * groups * wide.div_ceil(groups);
            let front = k * split.front_side * split.front_rank.next_multiple_of(4);
            let numbers = 2 * deep * wide + samples * rows * (apart(deep) + apart(wide)) + front;
            Tiles { components: k, samples, shared: numbers * size_of::<f32>() }
        };
        // Evenly: the last tile is as full as the others.
        let groups = components.div_ceil(most);
        let k = components.div_ceil(groups);
        let tasks = rows / 16 * (k * split.back_rank).div_ceil(8 * ABREAST);
        let wanted = WARPS.div_ceil(tasks);
        (1..=wanted)
            .rev()
            .map(|samples| tiles(k, samples))
            .find(|t| t.shared <= shared)
            .or_else(|| (1..k).rev().map(|k| tiles(k, 1)).find(|t| t.shared <= shared))
    }
}

/// A model on a device, around a reference that samples are held around, too.
pub(super) struct Ready<T> {
    pub(super) components: usize,
    pub(super) core: usize,
    pub(super) size: usize,
    pub(super) split: Split,
    /// How tensor cores contract, if they do.
    pub(super) tiles: Option<Tiles>,
    /// (sides at the back) × (component, rank at the back).
    pub(super) back: CudaSlice<T>,
    /// component × side in front × padded rank.
    pub(super) front: CudaSlice<T>,
    /// M − reference, component × P, and what its core would be, component × ρ.
    pub(super) offsets: CudaSlice<T>,
    pub(super) starts: CudaSlice<T>,
    /// 1/(s + σ²) and (s + 2σ²)/(s + σ²)², component × ρ.
    pub(super) precision: CudaSlice<f64>,
    pub(super) explained: CudaSlice<f64>,
    /// The numbers of `Constants` in kernels.cu.
    pub(super) constants: CudaSlice<f64>,
    /// What rounding took off M − reference, component × P: the sums are those of the rounded mean.
    pub(super) lacking: Vec<Vec<f64>>,
}

/// What is made of one component on the host.
struct Made<T> {
    back: Matrix,
    front: Matrix,
    offset: Vec<T>,
    lacking: Vec<f64>,
    start: Vec<T>,
    density: Density,
    constants: Vec<f64>,
}

impl<T: Number> Ready<T> {
    /// `dense`: one matrix holds all loadings, so that samples can be rebuilt by a product, too.
    pub(super) fn new(device: &Device, model: &Mixture, reference: &[T], dense: bool) -> Result<Self> {
        let (shape, rank, k) = (model.shape(), model.rank(), model.n_components());
        let (modes, split) = match dense {
            true => (0, Split::after(0, shape, rank)),
            false => Split::best(shape, rank, k, size_of::<T>(), false),
        };
        let tensor_cores = device.kernels::<T>()?.tensor_cores.as_ref().filter(|_| !dense && shape.len() > 1);
        let fused = tensor_cores.and_then(|cores| {
            let (modes, split) = Split::best(shape, rank, k, size_of::<T>(), true);
            Tiles::new(&split, k, cores.shared).map(|tiles| (modes, split, tiles))
        });
        let (modes, split, tiles) = fused.map_or((modes, split, None), |(m, s, tiles)| (m, s, Some(tiles)));
        let operations = k * model.sample_len() * model.core_len();
        let made: Vec<Made<T>> = parallel::map_if_large(k, operations, |k| {
            let (component, weight) = (&model.components()[k], model.weights()[k]);
            let exact: Vec<f64> =
                component.mean().iter().zip(reference).map(|(m, g)| m - g.to_f64()).collect();
            let offset: Vec<T> = exact.iter().map(|&m| T::from_f64(m)).collect();
            let rounded: Vec<f64> = offset.iter().map(|m| m.to_f64()).collect();
            let density = Density::new(component);
            let start = project(&rounded, shape, component.loadings(), None);
            let [noise, constant, degrees, half, rest] = density.numbers();
            let mean_norm = rounded.iter().map(|m| m * m).sum();
            Made {
                back: kronecker(&component.loadings()[modes..]),
                front: kronecker(&component.loadings()[..modes]),
                lacking: exact.iter().zip(&rounded).map(|(m, r)| m - r).collect(),
                start: start.into_iter().map(T::from_f64).collect(),
                constants: vec![mean_norm, noise, weight.ln(), constant, degrees, half, rest],
                offset,
                density,
            }
        });
        let columns = k * split.back_rank;
        let mut back = vec![T::from_f64(0.0); split.back_side * columns];
        let padded = split.padded_rank();
        let mut front = vec![T::from_f64(0.0); k * split.front_side * padded];
        for (k, made) in made.iter().enumerate() {
            for b in 0..split.back_side {
                let to = &mut back[b * columns + k * split.back_rank..][..split.back_rank];
                to.iter_mut().zip(made.back.row(b)).for_each(|(to, x)| *to = T::from_f64(*x));
            }
            for a in 0..split.front_side {
                let to = &mut front[(k * split.front_side + a) * padded..][..split.front_rank];
                to.iter_mut().zip(made.front.row(a)).for_each(|(to, x)| *to = T::from_f64(*x));
            }
        }
        let numbers = |of: &dyn Fn(&Made<T>) -> Vec<f64>| -> Vec<f64> { made.iter().flat_map(of).collect() };
        let rounded = |of: &dyn Fn(&Made<T>) -> Vec<T>| -> Vec<T> { made.iter().flat_map(of).collect() };
        Ok(Self {
            components: k,
            core: model.core_len(),
            size: model.sample_len(),
            split,
            tiles,
            back: device.upload(&back)?,
            front: device.upload(&front)?,
            offsets: device.upload(&rounded(&|m| m.offset.clone()))?,
            starts: device.upload(&rounded(&|m| m.start.clone()))?,
            precision: device.upload(&numbers(&|m| m.density.precision.clone()))?,
            explained: device.upload(&numbers(&|m| m.density.explained.clone()))?,
            constants: device.upload(&numbers(&|m| m.constants.clone()))?,
            lacking: made.into_iter().map(|m| m.lacking).collect(),
        })
    }

    /// Numbers of a gathered row, x − M, q and 1, and of its factors, a q and a; both in whole vectors.
    pub(super) fn widths(&self) -> (usize, usize) {
        ((self.size + self.core + 1).next_multiple_of(4), (self.core + 1).next_multiple_of(4))
    }

    /// Bytes of the workspace that one sample takes, about, but for its rows.
    pub(super) fn bytes_per_sample(&self) -> usize {
        let between = if self.split.is_dense() { 0 } else { self.split.front_side * self.split.back_rank };
        let numbers = self.size + self.components * (between + self.core + 1);
        numbers * size_of::<T>() + (4 * self.components + 8) * size_of::<f64>()
    }
}

/// U^(1) ⊗ U^(2) ⊗ …, rows and columns in row-major order; [1] of no matrices.
fn kronecker(loadings: &[Matrix]) -> Matrix {
    loadings.iter().fold(Matrix::identity(1, 1), |left, right| {
        Matrix::from_fn(left.rows() * right.rows(), left.cols() * right.cols(), |i, j| {
            left[(i / right.rows(), j / right.cols())] * right[(i % right.rows(), j % right.cols())]
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Kronecker product of all loadings turns a sample into what contracting mode after mode does.
    #[test]
    fn groups_of_modes_contract_like_modes() {
        let shape = [3, 4, 2];
        let u = |p: usize, r: usize| Matrix::from_fn(p, r, |i, j| ((7 * i + 3 * j) % 5) as f64 - 1.5);
        let loadings = [u(3, 2), u(4, 3), u(2, 1)];
        let x: Vec<f64> = (0..24).map(|i| f64::from(i % 7) - 2.0).collect();
        let expected = project(&x, &shape, &loadings, None);
        let whole = kronecker(&loadings);
        let found = whole.transpose_times(&Matrix::from_fn(24, 1, |i, _| x[i]));
        assert!(found.as_slice().iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12));
    }

    /// Small cores of large images are worth two steps; vectors have one.
    #[test]
    fn the_split_follows_the_sizes() {
        assert_eq!(Split::best(&[64, 64], &[8, 8], 10, 4, false).0, 1);
        assert_eq!(Split::best(&[784], &[16], 10, 4, false).0, 0);
        assert_eq!(Split::best(&[4, 4], &[3, 3], 1, 4, false).0, 0);
        assert_eq!(Split::best(&[4, 4], &[3, 3], 1, 4, true).0, 1);
    }

    /// Tiles are as full as they can be, and there are none for what does not fit.
    #[test]
    fn tiles_fit_shared_memory() {
        let split = Split::after(1, &[64, 64], &[8, 8]);
        let tiles = Tiles::new(&split, 10, 112 << 10).unwrap();
        assert_eq!((tiles.components, tiles.samples), (10, 1));
        let small = Tiles::new(&Split::after(1, &[28, 28], &[4, 4]), 10, 100 << 10).unwrap();
        assert_eq!((small.components, small.samples), (10, 4));
        assert_eq!(Tiles::new(&Split::after(1, &[500, 500], &[8, 8]), 10, 100 << 10), None);
    }
}
