//! The EM pass on a device: evaluation, and all sums as products of gathered rows.
//!
//! ```text
//! [ F  G  b ]       [ a q ]ᵀ [ x − M   q   1 ]
//! [ m  b  W ]  +=   [  a  ]  [  …      …   … ]        one row per sample and component it has a share in
//! ```
//!
//! Rows are gathered by component in segments of one length, so that one call multiplies them all; the products of segments are
//! added in order, in double precision.

use std::ops::ControlFlow;
use std::sync::PoisonError;

use cudarc::cublas::{CudaBlas, Gemm};

use super::device::{Device, failed};
use super::evaluate::{Evaluated, THREADS, evaluate};
use super::held::{Held, Loaded, Which};
use super::kernels::{Number, SEGMENT_SHARED, launch};
use super::ready::Ready;
use super::workspace::{Summing, Workspace};
use crate::error::{Error, Result};
use crate::linalg::{Matrix, contracted_cross, contracted_gram};
use crate::model::{Density, Mixture};
use crate::parallel;
use crate::pass::{ComponentSums, EmPass, EmSums, LoadingSums, Update};

/// The samples of a block that are counted together, and the sums that are kept of them: as in kernels.cu.
const BLOCK: usize = 256;
const BLOCK_SUMS: usize = 5;

/// Rows of a segment, which are added in the working precision.
const SEGMENTS: std::ops::RangeInclusive<usize> = 32..=512;

/// What the workspace may take of the memory that is free, and in bytes.
const SHARE: f64 = 0.25;
const MOST: f64 = 8e9;

/// Samples of a chunk, at most.
const CHUNK: usize = 1 << 19;

/// One pass over samples that a device holds.
pub(super) fn em(device: &Device, pass: &EmPass, held: &Held<'_>, which: &Which) -> Result<EmSums> {
    let double = pass.precision.is_double(held.samples.element(), &pass.model);
    if !double {
        match em_in::<f32>(device, pass, held, which)? {
            Outcome::Sums(sums) => return Ok(sums),
            // Values that leave the range of single precision are rare: everything once more, in double.
            Outcome::NotFinite(_) => {}
        }
    }
    match em_in::<f64>(device, pass, held, which)? {
        Outcome::Sums(sums) => Ok(sums),
        Outcome::NotFinite(place) => Err(not_finite(held, which.number(place))),
    }
}

/// Why a sample has no likelihood.
pub(super) fn not_finite(held: &Held<'_>, sample: usize) -> Error {
    held.samples.check_finite(sample..sample + 1).err().unwrap_or(Error::Overflow { sample })
}

enum Outcome {
    Sums(EmSums),
    /// A sample has no likelihood: its place among those the pass goes over.
    NotFinite(usize),
}

/// How many samples are worked on at a time, and how many bytes their rows may take.
pub(super) fn chunk<T: Number>(
    device: &Device,
    ready: &Ready<T>,
    held: &Held<'_>,
    count: usize,
) -> Result<(usize, usize)> {
    let bytes = (SHARE * held.free_bytes(device)? as f64).min(MOST);
    let samples = (bytes / (ready.bytes_per_sample() + 2 * held.sample_bytes()) as f64) as usize;
    Ok((held.at_a_time(samples.clamp(1, CHUNK).min(count)), bytes as usize))
}

fn em_in<T: Number>(device: &Device, pass: &EmPass, held: &Held<'_>, which: &Which) -> Result<Outcome>
where
    CudaBlas: Gemm<T>,
{
    let model = &pass.model;
    let reference = held.reference::<T>();
    let ready = Ready::new(device, model, &reference, false)?;
    let reference = device.upload(&reference)?;
    let mut workspace = T::workspace(device).lock().unwrap_or_else(PoisonError::into_inner);
    let Workspace { loading, evaluation, summing } = &mut *workspace;
    let count = which.count(held.samples.len());
    let (chunk, bytes) = chunk(device, &ready, held, count)?;
    let mut sums = EmSums::zero(model, pass.update);
    let (left, right) = ready.widths();
    let zeros = summing.sums.of(device, ready.components * left * right)?;
    device.stream.memset_zeros(zeros).map_err(failed("clearing sums"))?;
    let begin = device.mark()?;
    let mut end = device.mark()?;
    let weights = held.samples.weights();
    let mut wrong = None;
    held.each_chunk(device, which, 0..count, chunk, &reference, loading, &mut |first, loaded| {
        let found = evaluate(device, &ready, &loaded, false, evaluation)?;
        let likelihoods = sum_up(device, &ready, &loaded, &found, bytes, summing, &mut sums)?;
        end = device.mark()?;
        wrong = wrong.or(likelihoods.iter().position(|x| !x.is_finite()).map(|n| first + n));
        for (n, &log_likelihood) in likelihoods.iter().enumerate() {
            let number = which.number(first + n);
            if weights.is_none_or(|w| w[number] > 0.0) {
                sums.note_likelihood(log_likelihood, number);
            }
        }
        Ok(if wrong.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    if let Some(place) = wrong {
        return Ok(Outcome::NotFinite(place));
    }
    sums.n_samples = count as u64;
    sums.evaluated = (count * ready.components) as u64;
    let length = ready.components * left * right;
    let Summing { sums: on_device, fetched, .. } = summing;
    let all = fetched.of(device, length)?;
    device.fetch(&on_device.of(device, length)?.slice(..length), all)?;
    device.stream.synchronize().map_err(failed("fetching sums"))?;
    let all = &*all;
    let took = begin.elapsed_ms(&end).map_err(failed("measuring"))?;
    *device.last_pass.lock().unwrap_or_else(PoisonError::into_inner) = f64::from(took);
    sums.components = parallel::map_if_large(ready.components, all.len(), |k| {
        let values = &all[k * left * right..(k + 1) * left * right];
        let products = Products { values, left, size: ready.size, core: ready.core };
        products.complete(sums.components[k].clone(), model, k, &ready.lacking[k], pass.update)
    });
    Ok(Outcome::Sums(sums))
}

/// Adds what an evaluated chunk is worth; returns ln p of its samples.
fn sum_up<'a, T: Number>(
    device: &Device,
    ready: &Ready<T>,
    chunk: &Loaded<'_, T>,
    found: &Evaluated<'_, T>,
    bytes: usize,
    rooms: &'a mut Summing<T>,
    sums: &mut EmSums,
) -> Result<&'a [f64]>
where
    CudaBlas: Gemm<T>,
{
    let kernels = device.kernels::<T>()?;
    let (count, components) = (chunk.count, ready.components);
    let blocks = count.div_ceil(BLOCK);
    let counts = rooms.counts.of(device, components * blocks)?;
    let block_sums = rooms.block_sums.of(device, (components + 1) * blocks * BLOCK_SUMS)?;
    // The sums of components and of samples as a whole, then how many samples have a share in each component.
    let sums_len = (components + 1) * BLOCK_SUMS;
    let all = rooms.all.of(device, sums_len + components)?;
    let (mut all_sums, mut totals) = all.split_at_mut(sums_len);
    let weights = device.address(chunk.weights.as_ref());
    let (n, k, b) = (count as i32, components as i32, blocks as i32);
    launch!(
        device,
        kernels.count_shares,
        (blocks, components),
        BLOCK,
        &n,
        &k,
        &weights,
        found.gammas,
        found.deltas,
        found.distances,
        found.bests,
        &ready.constants,
        &b,
        &mut *counts,
        &mut *block_sums,
    );
    let at = components * blocks * BLOCK_SUMS;
    let mut of_samples = block_sums.slice_mut(at..at + blocks * BLOCK_SUMS);
    launch!(
        device,
        kernels.count_samples,
        (blocks, 1),
        BLOCK,
        &n,
        &weights,
        found.log_likelihoods,
        found.entropies,
        found.errors,
        &mut of_samples,
    );
    launch!(
        device,
        kernels.scan_shares,
        (components + 1, 1),
        BLOCK,
        &k,
        &b,
        &mut *counts,
        &mut *block_sums,
        &mut totals,
        &mut all_sums,
    );
    let numbers = rooms.numbers.of(device, sums_len + components)?;
    device.fetch(&all.slice(..numbers.len()), numbers)?;
    device.stream.synchronize().map_err(failed("a pass"))?;
    let (numbers, totals) = numbers.split_at(sums_len);
    add_numbers(numbers, sums);

    let segment = segment(count, components);
    let shares = Shares::new(totals, segment);
    if !shares.owners.is_empty() {
        multiply(device, ready, chunk, found, (segment, bytes), &shares, rooms)?;
    }
    let likelihoods = rooms.likelihoods.of(device, count)?;
    device.fetch(&found.log_likelihoods.slice(..count), likelihoods)?;
    device.stream.synchronize().map_err(failed("a pass"))?;
    Ok(likelihoods)
}

/// Gathers the rows of all components and adds their products to the sums on the device.
fn multiply<T: Number>(
    device: &Device,
    ready: &Ready<T>,
    chunk: &Loaded<'_, T>,
    found: &Evaluated<'_, T>,
    (segment, bytes): (usize, usize),
    shares: &Shares,
    rooms: &mut Summing<T>,
) -> Result<()>
where
    CudaBlas: Gemm<T>,
{
    let kernels = device.kernels::<T>()?;
    let (count, components) = (chunk.count, ready.components);
    let blocks = count.div_ceil(BLOCK);
    let weights = device.address(chunk.weights.as_ref());
    let (n, k, b) = (count as i32, components as i32, blocks as i32);
    let counts = rooms.counts.of(device, components * blocks)?;
    let places = rooms.shares.of(device, shares.owners.len() * segment)?;
    device.stream.memset_zeros(places).map_err(failed("clearing places"))?;
    let starts: Vec<i64> = shares.begins.iter().map(|&s| s as i64 * segment as i64).collect();
    let starts = device.upload(&starts)?;
    launch!(
        device,
        kernels.place_shares,
        (blocks, components),
        BLOCK,
        &n,
        &k,
        &weights,
        found.gammas,
        &b,
        &*counts,
        &starts,
        &mut *places,
    );
    let (left_width, right_width) = ready.widths();
    // Tensor cores fetch x − M themselves: what is gathered is cores and their factors.
    let (gathered, factors) = match kernels.tensor_cores {
        // Split in two numbers each.
        Some(_) => (right_width, 2 * right_width),
        None => (left_width, right_width),
    };
    let row_bytes = (gathered + factors) * segment + left_width * right_width;
    let batch = (bytes / (row_bytes * size_of::<T>())).clamp(1, shares.owners.len());
    let left = rooms.left.of(device, batch * segment * gathered)?;
    let right = rooms.right.of(device, batch * segment * factors)?;
    let products = rooms.products.of(device, batch * left_width * right_width)?;
    let to = rooms.sums.of(device, components * left_width * right_width)?;
    let owners = device.upload(&shares.owners)?;
    for first in (0..shares.owners.len()).step_by(batch) {
        let segments = batch.min(shares.owners.len() - first);
        let rows = segments * segment;
        let (from, rows_i, segment_i) = (first as i32, rows as i32, segment as i32);
        let (rho, p, stride) = (ready.core as i32, ready.size as i32, (components * ready.core) as i32);
        let (wide, narrow) = (left_width as i32, right_width as i32);
        if let Some(tensor_cores) = &kernels.tensor_cores {
            launch!(
                device,
                tensor_cores.gather_cores,
                ((rows * 32).div_ceil(THREADS), 1),
                THREADS,
                &*places,
                &owners,
                &from,
                &rows_i,
                &segment_i,
                &k,
                &rho,
                found.y,
                &stride,
                &ready.precision,
                found.gammas,
                found.deltas,
                &weights,
                &ready.constants,
                &narrow,
                &mut *left,
                &mut *right,
            );
            launch!(
                device,
                tensor_cores.segment_sums,
                (left_width.div_ceil(128), segments, ready.core.div_ceil(64)),
                THREADS;
                SEGMENT_SHARED,
                &*places,
                &owners,
                &from,
                &segment_i,
                &rho,
                &p,
                &chunk.x,
                &ready.offsets,
                &*left,
                &*right,
                &wide,
                &narrow,
                &mut *products,
            );
        } else {
            launch!(
                device,
                kernels.gather,
                ((rows * 32).div_ceil(THREADS), 1),
                THREADS,
                &*places,
                &owners,
                &from,
                &rows_i,
                &segment_i,
                &k,
                &rho,
                &p,
                &chunk.x,
                &ready.offsets,
                found.y,
                &stride,
                &ready.precision,
                found.gammas,
                found.deltas,
                &weights,
                &ready.constants,
                &wide,
                &narrow,
                &mut *left,
                &mut *right,
            );
            device.segment_products(segments, (segment, left_width, right_width), left, right, products)?;
        }
        let begins = device.upload(&shares.begins_within(first, segments))?;
        let length = left_width * right_width;
        let length_i = length as i32;
        launch!(
            device,
            kernels.fold,
            (length.div_ceil(THREADS), components),
            THREADS,
            &*products,
            &begins,
            &length_i,
            &mut *to,
        );
    }
    Ok(())
}

/// Rows of a segment: about half a component's share, so that few are empty.
fn segment(count: usize, components: usize) -> usize {
    (count / components / 2).next_power_of_two().clamp(*SEGMENTS.start(), *SEGMENTS.end())
}

/// The segments of all components.
struct Shares {
    /// The component of every segment.
    owners: Vec<i32>,
    /// The first segment of every component, and the end.
    begins: Vec<usize>,
}

impl Shares {
    fn new(totals: &[f64], segment: usize) -> Self {
        let (mut owners, mut begins) = (Vec::new(), vec![0]);
        for (k, &total) in totals.iter().enumerate() {
            owners.extend(std::iter::repeat_n(k as i32, (total as usize).div_ceil(segment)));
            begins.push(owners.len());
        }
        Self { owners, begins }
    }

    /// The first segment of every component, and the end, among `segments` from `first` on.
    fn begins_within(&self, first: usize, segments: usize) -> Vec<i32> {
        self.begins.iter().map(|&s| s.clamp(first, first + segments) as i32 - first as i32).collect()
    }
}

/// Adds what kernels have summed up over blocks: per component, then of samples as a whole.
fn add_numbers(numbers: &[f64], sums: &mut EmSums) {
    let (of_components, of_samples) = numbers.split_at(sums.components.len() * BLOCK_SUMS);
    for (to, from) in sums.components.iter_mut().zip(of_components.chunks_exact(BLOCK_SUMS)) {
        to.weight += from[0];
        to.scale += from[1];
        to.log_scale += from[2];
        to.squares += from[3];
        to.assigned += from[4] as u64;
    }
    sums.weight += of_samples[0];
    sums.log_likelihood += of_samples[1];
    sums.log_likelihood_squares += of_samples[2];
    sums.entropy += of_samples[3];
    sums.squared_error += of_samples[4];
}

/// The product of all rows of a component.
struct Products<'a> {
    values: &'a [f64],
    left: usize,
    size: usize,
    core: usize,
}

impl Products<'_> {
    fn row(&self, j: usize) -> &[f64] {
        &self.values[j * self.left..(j + 1) * self.left]
    }

    /// The sums of component `k` with these: from the rounded mean to the mean, and from all modes to one, if one is asked for.
    fn complete(
        &self,
        mut to: ComponentSums,
        model: &Mixture,
        k: usize,
        lacking: &[f64],
        update: Update,
    ) -> ComponentSums {
        let (size, core) = (self.size, self.core);
        let component = &model.components()[k];
        let total = self.row(core);
        let less = |weight: f64, row: &[f64]| -> Vec<f64> {
            row[..size].iter().zip(lacking).map(|(x, l)| x - weight * l).collect()
        };
        to.shift = less(total[size + core], total);
        to.core = (0..core).map(|j| self.row(j)[size + core]).collect();
        let mut cross = Matrix::zeros(core, size);
        let mut gram = Matrix::zeros(core, core);
        for (j, row) in cross.as_mut_slice().chunks_exact_mut(size).enumerate() {
            row.copy_from_slice(&less(to.core[j], self.row(j)));
        }
        for (j, row) in gram.as_mut_slice().chunks_exact_mut(core).enumerate() {
            row.copy_from_slice(&self.row(j)[size..size + core]);
        }
        for (j, v) in Density::new(component).posterior_variance().iter().enumerate() {
            gram[(j, j)] += to.weight * v;
        }
        to.loadings = match update {
            Update::All => LoadingSums::All { cross, gram },
            Update::Mode(d) => {
                let (shape, rank, loadings) = (model.shape(), model.rank(), component.loadings());
                let between: Vec<Matrix> = loadings.iter().map(|u| u.transpose_times(u)).collect();
                let plain: Vec<Matrix> = rank.iter().map(|&r| Matrix::identity(r, r)).collect();
                LoadingSums::Mode {
                    cross: contracted_cross(&cross, shape, rank, loadings, d),
                    weighted_gram: contracted_gram(&gram, rank, &between, d),
                    gram: contracted_gram(&gram, rank, &plain, d),
                }
            }
        };
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every row of a component is in a segment of its own; batches cut anywhere.
    #[test]
    fn segments_belong_to_components_in_order() {
        let shares = Shares::new(&[70.0, 0.0, 32.0, 1.0], 32);
        assert_eq!(shares.owners, [0, 0, 0, 2, 3]);
        assert_eq!(shares.begins, [0, 3, 3, 4, 5]);
        assert_eq!(shares.begins_within(2, 2), [0, 1, 1, 2, 2]);
    }
}
