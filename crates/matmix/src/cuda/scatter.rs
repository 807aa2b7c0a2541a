//! Scatters, Σ w Z Zᵀ, on a device: all in double precision, which the devices this is for multiply in as fast as in single.
//!
//! A mode is contracted by a product of its own when it is the last one, and the modes of a chunk of samples are turned until each
//! was: after all of them they stand as they did before.

use std::ops::ControlFlow;
use std::sync::PoisonError;

use cudarc::driver::CudaSlice;

use super::device::{Device, failed};
use super::evaluate::THREADS;
use super::held::{Held, Which};
use super::kernels::{Number, launch};
use super::sums::at_a_time;
use super::workspace::Workspace;
use crate::error::Result;
use crate::linalg::Matrix;
use crate::pass::{ScatterPass, ScatterSums};

/// One pass over all samples; `None` if there are numbers without squares.
pub(super) fn scatter(device: &Device, pass: &ScatterPass, held: &Held<'_>) -> Result<Option<ScatterSums>> {
    let samples = &*held.samples;
    let (count, size, shape) = (samples.len(), samples.sample_len(), samples.shape());
    let upload = |v: &Option<Matrix>| v.as_ref().map(|v| device.upload(v.as_slice())).transpose();
    let loadings: Vec<Option<CudaSlice<f64>>> = pass.loadings.iter().map(upload).collect::<Result<_>>()?;
    let targets: Vec<Option<usize>> = match pass.modes.is_empty() {
        true => vec![None],
        false => pass.modes.iter().copied().map(Some).collect(),
    };
    // What is left of each mode, for each of the scatters.
    let kept = |target: Option<usize>| -> Vec<usize> {
        let side = |(d, (v, &p)): (usize, (&Option<Matrix>, &usize))| match v {
            Some(v) if Some(d) != target => v.cols(),
            _ => p,
        };
        pass.loadings.iter().zip(shape).enumerate().map(side).collect()
    };
    let sides = |target: Option<usize>| target.map_or_else(|| kept(None).iter().product(), |d| shape[d]);
    let zeros = |&target: &Option<usize>| device.upload(&vec![0.0; sides(target) * sides(target)]);
    let mut scatters: Vec<CudaSlice<f64>> = targets.iter().map(zeros).collect::<Result<_>>()?;
    let mut squares = 0.0;
    let mean = device.upload(&pass.mean)?;
    let mut workspace = f64::workspace(device).lock().unwrap_or_else(PoisonError::into_inner);
    let Workspace { loading, summing, .. } = &mut *workspace;
    let chunk = at_a_time(device, held, 3 * size * size_of::<f64>())?;
    let kernels = device.kernels::<f64>()?;
    held.each_chunk(device, &Which::All, 0..count, chunk, &mean, loading, &mut |first, loaded| {
        let (n, length) = (loaded.count, loaded.count * size);
        let norms = device.stream.clone_dtoh(&loaded.norms).map_err(failed("fetching squares"))?;
        device.stream.synchronize().map_err(failed("fetching squares"))?;
        squares += norms.iter().enumerate().map(|(i, norm)| samples.weight(first + i) * norm).sum::<f64>();
        // A sample that counts for nothing has to be finite, too.
        if !norms.iter().all(|x| x.is_finite()) || !squares.is_finite() {
            squares = f64::NAN;
            return Ok(ControlFlow::Break(()));
        }
        for (&target, to) in targets.iter().zip(&mut scatters) {
            let (a, b) = (summing.left.of(device, length)?, summing.right.of(device, length)?);
            let (mut from, mut other) = (a, b);
            device.stream.memcpy_dtod(&loaded.x, &mut from.slice_mut(..length)).map_err(failed("copying"))?;
            if let Some(weights) = &loaded.weights {
                let (length_i, size_i): (i64, i32) = (length as i64, size as i32);
                let blocks = (length.div_ceil(THREADS), 1);
                launch!(device, kernels.weigh, blocks, THREADS, &length_i, &size_i, weights, &mut *from);
            }
            let turn =
                |from: &CudaSlice<f64>, to: &mut CudaSlice<f64>, length: usize, (r, c): (usize, usize)| {
                    let (length_i, r, c): (i64, i32, i32) = (length as i64, r as i32, c as i32);
                    let blocks = (length.div_ceil(THREADS), 1);
                    launch!(device, kernels.turn, blocks, THREADS, from, &length_i, &r, &c, to);
                    Ok::<(), crate::Error>(())
                };
            let mut there = length;
            let contracted = |d: usize| loadings[d].as_ref().filter(|_| Some(d) != target);
            if (0..shape.len()).any(|d| contracted(d).is_some()) {
                for (d, &side) in shape.iter().enumerate() {
                    turn(from, other, there, (side, there / n / side))?;
                    std::mem::swap(&mut from, &mut other);
                    if let (Some(v), Some(of)) = (contracted(d), &pass.loadings[d]) {
                        let (rows, rank) = (there / side, of.cols());
                        device.product((rows, rank, side), &from.slice(..there), (v, false), 0.0, other)?;
                        std::mem::swap(&mut from, &mut other);
                        there = rows * rank;
                    }
                }
            }
            let side = sides(target);
            if let Some(d) = target {
                let after: usize = kept(target)[d + 1..].iter().product();
                if after > 1 {
                    turn(from, other, there, (side, after))?;
                    std::mem::swap(&mut from, &mut other);
                }
            }
            device.add_gram(there / side, side, &from.slice(..there), to)?;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if squares.is_nan() {
        return Ok(None);
    }
    let fetch = |(&target, scatter): (&Option<usize>, &CudaSlice<f64>)| {
        let values = device.stream.clone_dtoh(scatter).map_err(failed("fetching sums"))?;
        device.stream.synchronize().map_err(failed("fetching sums"))?;
        let side = sides(target);
        Ok(Matrix::from_fn(side, side, |i, j| values[i.max(j) * side + i.min(j)]))
    };
    let scatters = targets.iter().zip(&scatters).map(fetch).collect::<Result<Vec<_>>>()?;
    Ok(Some(ScatterSums { n_samples: count as u64, scatters, squares }))
}
