//! Samples on a device: all of them, as they are stored, or, where there is no room, a chunk at a time.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Mutex;

use cudarc::driver::{CudaSlice, CudaView};

use super::device::{Device, Number, failed, launch};
use super::workspace::Loading;
use crate::data::{Buffer, Element, Samples};
use crate::error::Result;

/// Samples that the reference is the median of, at most.
const LOOKED_AT: usize = 65;

/// Samples may take this share of what is free; the rest is for the work on them.
const SHARE: f64 = 0.6;

/// Bytes that are uploaded at a time.
const PIECE: usize = 256 << 20;

/// Threads of a block in which each warp has a sample.
const THREADS: usize = 256;

/// Samples and what is needed to load them.
pub(super) struct Held<'a> {
    pub(super) samples: Cow<'a, Samples<'a>>,
    /// Some point among them, which everything is computed around.
    reference: Vec<f64>,
    /// As they are stored, if there is room for all.
    stored: Option<CudaSlice<u8>>,
    /// x − reference in single precision and its squares, made when first asked for, if there is room.
    centred: Mutex<Option<(CudaSlice<f32>, CudaSlice<f64>)>>,
    /// Bytes of the device that may be used, at most.
    limit: usize,
}

/// Which of the samples a pass goes over.
pub(super) enum Which {
    All,
    Some(Vec<usize>),
}

impl Which {
    pub(super) fn count(&self, all: usize) -> usize {
        match self {
            Which::All => all,
            Which::Some(places) => places.len(),
        }
    }

    pub(super) fn number(&self, n: usize) -> usize {
        match self {
            Which::All => n,
            Which::Some(places) => places[n],
        }
    }
}

impl<'a> Held<'a> {
    /// Takes the samples to the device, if there is room for them.
    pub(super) fn new(device: &Device, samples: Cow<'a, Samples<'a>>, limit: usize) -> Result<Self> {
        samples.check_unchanged()?;
        let (count, size) = (samples.len(), samples.sample_len());
        let step = count.div_ceil(LOOKED_AT).max(1);
        let looked_at: Vec<usize> = (0..count).step_by(step).collect();
        let mut seen = Vec::with_capacity(looked_at.len());
        for &n in &looked_at {
            seen.push(samples.to_f64(n..n + 1)?);
        }
        // A median: one sample that is far out, or not finite, moves nothing.
        let median = |i: usize| {
            let mut values: Vec<f64> = seen.iter().map(|x| x[i]).filter(|x| x.is_finite()).collect();
            values.sort_unstable_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(0.0)
        };
        let reference = (0..size).map(median).collect();
        let bytes = samples.stored_bytes() as f64;
        let stored = match bytes <= SHARE * device.free_bytes()?.min(limit) as f64 {
            true => Some(stored(device, &samples)?),
            false => None,
        };
        Ok(Self { samples, reference, stored, centred: Mutex::new(None), limit })
    }

    /// Bytes of the device that are free for work on these samples.
    pub(super) fn free_bytes(&self, device: &Device) -> Result<usize> {
        Ok(device.free_bytes()?.min(self.limit))
    }

    /// The reference, rounded.
    pub(super) fn reference<T: Number>(&self) -> Vec<T> {
        self.reference.iter().map(|&g| T::from_f64(g)).collect()
    }

    /// Keeps x − reference on the device, where there is room for it beside the samples.
    pub(super) fn keep_centred(&self, device: &Device) -> Result<()> {
        let Some(stored) = &self.stored else { return Ok(()) };
        let mut centred = self.centred.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (count, size) = (self.samples.len(), self.samples.sample_len());
        let bytes = count as f64 * (size * size_of::<f32>() + size_of::<f64>()) as f64;
        if centred.is_some() || bytes > SHARE * self.free_bytes(device)? as f64 {
            return Ok(());
        }
        let (mut x, mut norms) = (device.room(count * size)?, device.room(count)?);
        let reference = device.upload(&self.reference::<f32>())?;
        self.load_rows(device, stored, None, count, &reference, &mut x, &mut norms)?;
        *centred = Some((x, norms));
        Ok(())
    }

    fn load_rows<T: Number>(
        &self,
        device: &Device,
        stored: &CudaSlice<u8>,
        rows: Option<&CudaSlice<i64>>,
        count: usize,
        reference: &CudaSlice<T>,
        x: &mut CudaSlice<T>,
        norms: &mut CudaSlice<f64>,
    ) -> Result<()> {
        let element: i32 = match self.samples.element() {
            Element::U8 => 0,
            Element::F32 => 1,
            Element::F64 => 2,
        };
        let kernels = device.kernels::<T>()?;
        let rows = device.address(rows.map(CudaSlice::as_view).as_ref());
        let (n, size) = (count as i32, self.samples.sample_len() as i32);
        let scale = T::from_f64(self.samples.scale());
        let blocks = (count * 32).div_ceil(THREADS);
        launch!(
            device,
            kernels.load,
            (blocks, 1),
            THREADS,
            stored,
            &element,
            &rows,
            &n,
            &size,
            &scale,
            reference,
            x,
            norms
        );
        Ok(())
    }

    /// Has `work` done on x − reference and its squares of the samples in `range` of those the pass goes over, and their weights.
    pub(super) fn with_chunk<T: Number>(
        &self,
        device: &Device,
        which: &Which,
        range: Range<usize>,
        reference: &CudaSlice<T>,
        rooms: &mut Loading<T>,
        work: &mut dyn FnMut(Loaded<'_, T>) -> Result<()>,
    ) -> Result<()> {
        let Loading { stored, rows, x, norms, weights } = rooms;
        let (count, size) = (range.len(), self.samples.sample_len());
        let number = |n: usize| which.number(n);
        let weights = match self.samples.weights() {
            Some(all) => {
                let own: Vec<f64> = range.clone().map(|n| all[number(n)]).collect();
                let to = weights.of(device, count)?;
                device.stream.memcpy_htod(&own, to).map_err(failed("uploading weights"))?;
                Some(to.slice(..count))
            }
            None => None,
        };
        let centred = self.centred.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let (Some((x, norms)), Which::All) = (&*centred, which)
            && let Some(x) = T::as_single(x)
        {
            let x = x.slice(range.start * size..range.end * size);
            return work(Loaded { x, norms: norms.slice(range.clone()), weights, count });
        }
        let (x, norms) = (x.of(device, count * size)?, norms.of(device, count)?);
        match &self.stored {
            Some(held) => {
                let own: Vec<i64> = range.map(|n| number(n) as i64).collect();
                let rows = rows.of(device, count)?;
                device.stream.memcpy_htod(&own, rows).map_err(failed("uploading numbers"))?;
                self.load_rows(device, held, Some(rows), count, reference, x, norms)?;
            }
            None => {
                let to = stored.of(device, count * size * self.samples.element().size())?;
                let mut buffer = Buffer::new();
                match which {
                    Which::All => {
                        let chunk = self.samples.stored(range, &mut buffer)?;
                        device.stream.memcpy_htod(chunk.bytes(), to).map_err(failed("uploading samples"))?;
                    }
                    Which::Some(places) => {
                        let chosen = (*self.samples).clone().select_part(&places[range])?;
                        let chunk = chosen.stored(0..count, &mut buffer)?;
                        device.stream.memcpy_htod(chunk.bytes(), to).map_err(failed("uploading samples"))?;
                    }
                }
                self.load_rows(device, to, None, count, reference, x, norms)?;
            }
        }
        work(Loaded { x: x.slice(..count * size), norms: norms.slice(..count), weights, count })
    }
}

/// A chunk of samples, ready to be worked on.
pub(super) struct Loaded<'a, T> {
    pub(super) x: CudaView<'a, T>,
    pub(super) norms: CudaView<'a, f64>,
    pub(super) weights: Option<CudaView<'a, f64>>,
    pub(super) count: usize,
}

/// All samples as they are stored, on the device.
fn stored(device: &Device, samples: &Samples<'_>) -> Result<CudaSlice<u8>> {
    let bytes = samples.sample_len() * samples.element().size();
    let mut all = device.room(samples.len() * bytes)?;
    let piece = (PIECE / bytes).max(1);
    let mut buffer = Buffer::new();
    for first in (0..samples.len()).step_by(piece) {
        let end = (first + piece).min(samples.len());
        let chunk = samples.stored(first..end, &mut buffer)?;
        let mut to = all.slice_mut(first * bytes..end * bytes);
        device.stream.memcpy_htod(chunk.bytes(), &mut to).map_err(failed("uploading samples"))?;
    }
    device.stream.synchronize().map_err(failed("uploading samples"))?;
    Ok(all)
}
