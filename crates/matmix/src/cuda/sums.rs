//! What a fit asks for once: mean and variance, clusters, distances to points; in double precision where sums are made, as on the processor.
//!
//! Sums are made by stretches of samples, each element by a thread of its own, and the sums of stretches are added in order. What leaves the
//! range of numbers is left to the processor, which names the sample.

use std::ops::ControlFlow;
use std::sync::PoisonError;

use cudarc::cublas::{CudaBlas, Gemm};
use cudarc::driver::CudaSlice;

use super::device::{Device, failed};
use super::evaluate::THREADS;
use super::held::{Held, Which};
use super::kernels::{Number, launch};
use super::workspace::{Room, Summing, Workspace};
use crate::data::Element;
use crate::error::Result;
use crate::pass::{Answers, DistancesPass, GroupSums, GroupsPass, MomentSums, MomentsPass, SINGLE_RANGE};

/// Stretches that samples are summed up in, at most, and bytes of their sums.
const STRETCHES: usize = 256;
const STRETCH_BYTES: usize = 128 << 20;

/// Samples of a chunk, at most.
const CHUNK: usize = 1 << 20;

/// What the workspace may take of the memory that is free.
const SHARE: f64 = 0.25;

/// How samples are cut into stretches: how many there are, and the samples of each.
fn stretches(count: usize, numbers: usize) -> (usize, i64) {
    let most = (STRETCH_BYTES / (numbers * size_of::<f64>()).max(1)).clamp(1, STRETCHES);
    let rows = count.div_ceil(most).max(16);
    (count.div_ceil(rows), rows as i64)
}

/// How many samples are worked on at a time, with so many bytes each.
pub(super) fn at_a_time(device: &Device, held: &Held<'_>, bytes: usize) -> Result<usize> {
    let most = SHARE * held.free_bytes(device)? as f64 / (bytes + 2 * held.sample_bytes()) as f64;
    Ok(held.at_a_time((most as usize).clamp(1, CHUNK)))
}

/// Mean, variance and extremes; `None` if there are numbers without squares.
pub(super) fn moments(device: &Device, pass: &MomentsPass, held: &Held<'_>) -> Result<Option<MomentSums>> {
    let kernels = device.kernels::<f64>()?;
    let samples = &*held.samples;
    let (count, size) = (samples.len(), samples.sample_len());
    let origin = device.upload(&pass.origin)?;
    let mut begin = vec![0.0; 2 * size];
    begin.extend(vec![f64::INFINITY; size]);
    begin.extend(vec![f64::NEG_INFINITY; size]);
    let mut found = device.upload(&begin)?;
    let (element, scale, size_i) = (held.element(), samples.scale(), size as i32);
    let mut workspace = f64::workspace(device).lock().unwrap_or_else(PoisonError::into_inner);
    let Workspace { loading, summing, .. } = &mut *workspace;
    let at_a_time = at_a_time(device, held, 0)?;
    held.each_stored(device, &Which::All, 0..count, at_a_time, &mut loading.stored, &mut |range, from| {
        let weights = held.weights(device, &Which::All, range.clone(), &mut loading.weights)?;
        let weights = device.address(weights.as_ref());
        let (parts, rows) = stretches(range.len(), 4 * size);
        let sums = summing.all.of(device, 4 * parts * size)?;
        let n = range.len() as i64;
        launch!(
            device,
            kernels.moments,
            (size.div_ceil(THREADS), parts),
            THREADS,
            &from.address,
            &element,
            &n,
            &size_i,
            &scale,
            &origin,
            &weights,
            &rows,
            &mut *sums,
        );
        for (i, kind) in [0, 0, 1, 2].into_iter().enumerate() {
            let own = sums.slice(i * parts * size..(i + 1) * parts * size);
            let mut to = found.slice_mut(i * size..(i + 1) * size);
            let (parts, length): (i32, i64) = (parts as i32, size as i64);
            launch!(
                device,
                kernels.total,
                (size.div_ceil(THREADS), 1),
                THREADS,
                &own,
                &parts,
                &length,
                &kind,
                &mut to
            );
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let found = device.stream.clone_dtoh(&found).map_err(failed("fetching sums"))?;
    device.stream.synchronize().map_err(failed("fetching sums"))?;
    let mut parts = found.chunks_exact(size);
    let mut next = || parts.next().unwrap_or_default();
    let (sum, squares) = (next().to_vec(), next().iter().sum::<f64>());
    let least = next().iter().copied().fold(f64::INFINITY, f64::min);
    let largest = next().iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !squares.is_finite() {
        return Ok(None);
    }
    let (n_samples, weight) = (count as u64, samples.total_weight());
    Ok(Some(MomentSums { n_samples, weight, sum, squares, range: [least, largest], ..MomentSums::zero(0) }))
}

/// Points on a device, around a reference that samples are held around, too.
struct Points<T> {
    /// points × P, and the squares of each.
    offsets: CudaSlice<T>,
    norms: CudaSlice<f64>,
    count: usize,
}

impl<T: Number> Points<T> {
    fn new(device: &Device, points: &[Vec<f64>], reference: &[T]) -> Result<Self> {
        let offset = |point: &Vec<f64>| -> Vec<T> {
            point.iter().zip(reference).map(|(c, g)| T::from_f64(c - g.to_f64())).collect()
        };
        let offsets: Vec<T> = points.iter().flat_map(offset).collect();
        let square = |point: &[T]| point.iter().map(|c| c.to_f64() * c.to_f64()).sum::<f64>();
        let norms: Vec<f64> = offsets.chunks_exact(reference.len()).map(square).collect();
        Ok(Self { offsets: device.upload(&offsets)?, norms: device.upload(&norms)?, count: points.len() })
    }

    /// ‖x − c‖² of a chunk, count × points.
    fn distances<'r>(
        &self,
        device: &Device,
        x: &cudarc::driver::CudaView<'_, T>,
        norms: &cudarc::driver::CudaView<'_, f64>,
        (count, size): (usize, usize),
        inner: &mut Room<T>,
        distances: &'r mut Room<f64>,
    ) -> Result<&'r mut CudaSlice<f64>>
    where
        CudaBlas: Gemm<T>,
    {
        let each = count * self.count;
        let (inner, distances) = (inner.of(device, each)?, distances.of(device, each)?);
        device.product((count, self.count, size), x, (&self.offsets, true), 0.0, inner)?;
        let (n, points) = (count as i32, self.count as i32);
        launch!(
            device,
            device.kernels::<T>()?.point_distances,
            (each.div_ceil(THREADS), 1),
            THREADS,
            &n,
            &points,
            &*inner,
            norms,
            &self.norms,
            &mut *distances,
        );
        Ok(distances)
    }
}

/// Whether single precision will do: as on the processor.
fn is_double(held: &Held<'_>, points: &[Vec<f64>], reference: &[f64]) -> bool {
    let apart = |c: &Vec<f64>| c.iter().zip(reference).map(|(c, g)| (c - g) * (c - g)).sum::<f64>();
    let apart = points.iter().map(apart).fold(0.0, f64::max) / reference.len() as f64;
    held.samples.element() == Element::F64 || !SINGLE_RANGE.contains(&apart)
}

/// The squared distances of all samples to a few points; `None` if some are none.
pub(super) fn distances(device: &Device, pass: &DistancesPass, held: &Held<'_>) -> Result<Option<Answers>> {
    match is_double(held, &pass.points, &pass.reference) {
        true => distances_in::<f64>(device, pass, held),
        false => distances_in::<f32>(device, pass, held),
    }
}

fn distances_in<T: Number>(device: &Device, pass: &DistancesPass, held: &Held<'_>) -> Result<Option<Answers>>
where
    CudaBlas: Gemm<T>,
{
    let (count, size) = (held.samples.len(), held.samples.sample_len());
    let reference = held.reference::<T>();
    let points = Points::new(device, &pass.points, &reference)?;
    let reference = device.upload(&reference)?;
    let mut workspace = T::workspace(device).lock().unwrap_or_else(PoisonError::into_inner);
    let Workspace { loading, evaluation, .. } = &mut *workspace;
    let mut values = Vec::with_capacity(count * points.count);
    let at_a_time = at_a_time(device, held, size * size_of::<T>() + 16 * points.count)?;
    held.each_chunk(device, &Which::All, 0..count, at_a_time, &reference, loading, &mut |_, loaded| {
        let (inner, to) = (&mut evaluation.inner, &mut evaluation.distances);
        let found = points.distances(device, &loaded.x, &loaded.norms, (loaded.count, size), inner, to)?;
        let found = found.slice(..loaded.count * points.count);
        values.extend(device.stream.clone_dtoh(&found).map_err(failed("fetching distances"))?);
        Ok(ControlFlow::Continue(()))
    })?;
    device.stream.synchronize().map_err(failed("fetching distances"))?;
    Ok(values.iter().all(|x| x.is_finite()).then_some(Answers { width: points.count, values }))
}

/// For every sample the nearest centre, and what k-means sums up; `None` if some distances are none.
pub(super) fn groups(device: &Device, pass: &GroupsPass, held: &Held<'_>) -> Result<Option<GroupSums>> {
    match is_double(held, &pass.centres, &pass.reference) {
        true => groups_in::<f64>(device, pass, held),
        false => groups_in::<f32>(device, pass, held),
    }
}

fn groups_in<T: Number>(device: &Device, pass: &GroupsPass, held: &Held<'_>) -> Result<Option<GroupSums>>
where
    CudaBlas: Gemm<T>,
{
    let kernels = device.kernels::<T>()?;
    let samples = &*held.samples;
    let (count, size, k) = (samples.len(), samples.sample_len(), pass.centres.len());
    let reference = held.reference::<T>();
    let points = Points::new(device, &pass.centres, &reference)?;
    let reference = device.upload(&reference)?;
    let centres = device.upload(&pass.centres.concat())?;
    let mut shifts = device.upload(&vec![0.0; k * size])?;
    let (element, scale, size_i, k_i) = (held.element(), samples.scale(), size as i32, k as i32);
    let mut workspace = T::workspace(device).lock().unwrap_or_else(PoisonError::into_inner);
    let Workspace { loading, evaluation, summing } = &mut *workspace;
    let mut sums = GroupSums::zero(size, k);
    let at_a_time = at_a_time(device, held, size * size_of::<T>() + 16 * k)?;
    let mut fine = true;
    held.each_chunk(device, &Which::All, 0..count, at_a_time, &reference, loading, &mut |first, loaded| {
        let n = loaded.count;
        let (inner, to) = (&mut evaluation.inner, &mut evaluation.distances);
        let distances = points.distances(device, &loaded.x, &loaded.norms, (n, size), inner, to)?;
        let (nearest, squares) = (evaluation.bests.of(device, n)?, evaluation.errors.of(device, n)?);
        let n_i = n as i32;
        launch!(
            device,
            kernels.nearest,
            ((n * 32).div_ceil(THREADS), 1),
            THREADS,
            &loaded.stored,
            &element,
            &n_i,
            &size_i,
            &scale,
            &k_i,
            &*distances,
            &centres,
            &mut *nearest,
            &mut *squares,
        );
        let Summing { block_sums, .. } = summing;
        let (parts, rows) = stretches(n, k * size);
        let own = block_sums.of(device, parts * k * size)?;
        device
            .stream
            .memset_zeros(&mut own.slice_mut(..parts * k * size))
            .map_err(failed("clearing sums"))?;
        let weights = device.address(loaded.weights.as_ref());
        let all = n as i64;
        launch!(
            device,
            kernels.group_sums,
            (size.div_ceil(THREADS), parts),
            THREADS,
            &loaded.stored,
            &element,
            &all,
            &size_i,
            &scale,
            &weights,
            &*nearest,
            &centres,
            &k_i,
            &rows,
            &mut *own,
        );
        let (parts_i, length, kind): (i32, i64, i32) = (parts as i32, (k * size) as i64, 0);
        launch!(
            device,
            kernels.total,
            ((k * size).div_ceil(THREADS), 1),
            THREADS,
            &*own,
            &parts_i,
            &length,
            &kind,
            &mut shifts,
        );
        // One number per sample: added here, in order.
        let nearest = device.stream.clone_dtoh(&nearest.slice(..n)).map_err(failed("fetching groups"))?;
        let squares = device.stream.clone_dtoh(&squares.slice(..n)).map_err(failed("fetching groups"))?;
        device.stream.synchronize().map_err(failed("fetching groups"))?;
        for (i, (&k, square)) in nearest.iter().zip(squares).enumerate() {
            let (group, weight) = (&mut sums.groups[k as usize], samples.weight(first + i));
            group.weight += weight;
            group.squared_distance += weight * square;
            fine &= square.is_finite();
        }
        Ok(if fine { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    let shifts = device.stream.clone_dtoh(&shifts).map_err(failed("fetching sums"))?;
    device.stream.synchronize().map_err(failed("fetching sums"))?;
    for (group, shift) in sums.groups.iter_mut().zip(shifts.chunks_exact(size)) {
        group.shift.copy_from_slice(shift);
    }
    sums.n_samples = count as u64;
    Ok(fine.then_some(sums))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every sample is in a stretch, and the sums of stretches have room.
    #[test]
    fn stretches_cover_all_samples() {
        for (count, numbers) in [(1, 3), (60_000, 784), (1_000_000, 9), (5000, 200 * 4096)] {
            let (parts, rows) = stretches(count, numbers);
            assert!((parts - 1) * (rows as usize) < count && count <= parts * rows as usize);
            assert!(parts == 1 || parts * numbers * 8 <= STRETCH_BYTES);
        }
    }
}
