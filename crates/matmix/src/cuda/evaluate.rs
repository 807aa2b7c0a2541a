//! What a model makes of a chunk of samples, on the device.

use cudarc::cublas::{CudaBlas, Gemm};
use cudarc::driver::CudaSlice;

use super::device::Device;
use super::held::Loaded;
use super::kernels::{Number, launch};
use super::ready::Ready;
use super::workspace::Evaluation;
use crate::error::Result;

/// Threads of a block in which each warp has a sample, or each thread an output.
pub(super) const THREADS: usize = 256;

/// What a block of `inner_products` has at a time, as in tensor_cores.cu; more components than a few are better served by a matrix product.
const INNER_SAMPLES: usize = 32;
const INNER_COMPONENTS: usize = 10;
const FEW: usize = 2 * INNER_COMPONENTS;

/// Responsibilities below e^−this, relative to the largest, are zero: as on the processor.
const HOPELESS: f64 = crate::cpu::HOPELESS;

/// An evaluated chunk; everything is as long as the chunk at least.
pub(super) struct Evaluated<'a, T> {
    pub(super) y: &'a CudaSlice<T>,
    pub(super) distances: &'a CudaSlice<f64>,
    pub(super) deltas: &'a CudaSlice<f64>,
    pub(super) logs: &'a CudaSlice<f64>,
    pub(super) gammas: &'a CudaSlice<f64>,
    pub(super) log_likelihoods: &'a CudaSlice<f64>,
    pub(super) entropies: &'a CudaSlice<f64>,
    pub(super) errors: &'a CudaSlice<f64>,
    pub(super) bests: &'a CudaSlice<i32>,
}

/// Contracts the samples of a chunk with all components and evaluates their densities. `all`: also responsibilities that are hopeless.
pub(super) fn evaluate<'a, T: Number>(
    device: &Device,
    ready: &Ready<T>,
    chunk: &Loaded<'_, T>,
    all: bool,
    rooms: &'a mut Evaluation<T>,
) -> Result<Evaluated<'a, T>>
where
    CudaBlas: Gemm<T>,
{
    let Ready { components, core, size, split, .. } = *ready;
    let kernels = device.kernels::<T>()?;
    let count = chunk.count;
    let columns = components * split.back_rank;
    let y = rooms.y.of(device, count * components * core)?;
    let (sides, back) = (split.front_side as i32, split.back_rank as i32);
    let (ranks, padded) = (split.front_rank as i32, split.padded_rank() as i32);
    let (n, k, rho, p) = (count as i32, components as i32, core as i32, size as i32);
    let fused = kernels.tensor_cores.as_ref().zip(ready.tiles);
    let product = (count * split.front_side, columns, split.back_side);
    if let Some((kernel, tiles)) = fused {
        let blocks = count.div_ceil(tiles.samples).min(kernel.blocks);
        let (back_sides, per_tile, together) =
            (split.back_side as i32, tiles.components as i32, tiles.samples as i32);
        launch!(
            device,
            kernel.contract,
            (blocks, components.div_ceil(tiles.components), 1),
            THREADS;
            tiles.shared,
            &chunk.x,
            &ready.back,
            &ready.front,
            &ready.starts,
            &n,
            &sides,
            &back_sides,
            &k,
            &per_tile,
            &ranks,
            &padded,
            &back,
            &together,
            &mut *y,
        );
    } else if split.is_dense() {
        device.product(product, &chunk.x, (&ready.back, false), 0.0, y)?;
    } else {
        let z = rooms.z.of(device, count * split.front_side * columns)?;
        device.product(product, &chunk.x, (&ready.back, false), 0.0, z)?;
        let threads = count * columns * (split.padded_rank() / 8);
        launch!(
            device,
            kernels.contract_front,
            (threads.div_ceil(THREADS), 1),
            THREADS,
            &*z,
            &ready.front,
            &n,
            &sides,
            &k,
            &ranks,
            &padded,
            &back,
            &mut *y
        );
    }
    let inner = rooms.inner.of(device, count * components)?;
    match &kernels.tensor_cores {
        Some(kernel) if size % 4 == 0 && components <= FEW => {
            let blocks = count.div_ceil(INNER_SAMPLES);
            launch!(
                device,
                kernel.inner_products,
                (blocks, components.div_ceil(INNER_COMPONENTS)),
                THREADS,
                &chunk.x,
                &ready.offsets,
                &n,
                &p,
                &k,
                &mut *inner,
            );
        }
        _ => device.product((count, components, size), &chunk.x, (&ready.offsets, true), 0.0, inner)?,
    }
    let each = count * components;
    let distances = rooms.distances.of(device, each)?;
    let deltas = rooms.deltas.of(device, each)?;
    let logs = rooms.logs.of(device, each)?;
    let gammas = rooms.gammas.of(device, each)?;
    let log_likelihoods = rooms.log_likelihoods.of(device, count)?;
    let entropies = rooms.entropies.of(device, count)?;
    let errors = rooms.errors.of(device, count)?;
    let bests = rooms.bests.of(device, count)?;
    let width = core.next_power_of_two().clamp(4, 32) as i32;
    // Tensor cores have taken the means off already.
    let starts = if fused.is_some() { 0 } else { device.address(Some(&ready.starts.as_view())) };
    let stride = (components * core) as i32;
    let cutoff = if all { f64::NEG_INFINITY } else { -HOPELESS };
    launch!(
        device,
        kernels.densities,
        ((count * 32).div_ceil(THREADS), 1),
        THREADS,
        &n,
        &k,
        &rho,
        &p,
        &width,
        &mut *y,
        &stride,
        &*inner,
        &k,
        &chunk.norms,
        &chunk.x,
        &ready.offsets,
        &starts,
        &ready.precision,
        &ready.explained,
        &ready.constants,
        &cutoff,
        &mut *distances,
        &mut *deltas,
        &mut *logs,
        &mut *gammas,
        &mut *log_likelihoods,
        &mut *entropies,
        &mut *errors,
        &mut *bests,
    );
    Ok(Evaluated { y, distances, deltas, logs, gammas, log_likelihoods, entropies, errors, bests })
}
