//! Samples on a device: all of them, as they are stored, or, where there is no room, a chunk at a time.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};
use std::sync::Mutex;

use cudarc::driver::{CudaEvent, CudaSlice, CudaView};

use super::device::{Device, failed};
use super::kernels::{Number, launch};
use super::staging::Region;
use super::workspace::{Loading, Room};
use crate::data::{Buffer, Element, Samples};
use crate::error::{Error, Result};

/// Samples that the reference is the median of, at most.
const LOOKED_AT: usize = 65;

/// Samples may take this share of what is free; the rest is for the work on them.
const SHARE: f64 = 0.6;

/// Bytes that are uploaded at a time.
const PIECE: usize = 256 << 20;

/// Bytes of a chunk of samples that are brought to the device while it works on another.
const STREAMED: usize = 128 << 20;

/// Threads of a block in which each warp has a sample.
const THREADS: usize = 256;

/// Samples and what is needed to load them.
pub(super) struct Held<'a> {
    pub(super) samples: Cow<'a, Samples<'a>>,
    /// Some point among them, which everything is computed around.
    reference: Vec<f64>,
    place: Place,
    /// x − reference in single precision and its squares, made when first asked for, if there is room.
    centred: Mutex<Option<(CudaSlice<f32>, CudaSlice<f64>)>>,
    /// Bytes of the device that may be used, at most.
    limit: usize,
}

/// Where samples are, as they are stored.
enum Place {
    /// All of them on the device, in memory of ours.
    Own(CudaSlice<u8>),
    /// All of them on the device, in memory of somebody else, from this address on.
    Lent(u64),
    /// Not on the device: they are brought there chunk by chunk.
    Host,
}

/// A chunk of samples as they are stored, on the device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stored {
    pub(super) address: u64,
    /// Whether they are to be found by their numbers, counted from the address; they follow each other otherwise.
    numbered: bool,
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
        let seen = (*samples).clone().select_part(&looked_at)?.to_f64(0..looked_at.len())?;
        // A median: one sample that is far out, or not finite, moves nothing.
        let median = |i: usize| {
            let mut values: Vec<f64> =
                seen.iter().skip(i).step_by(size).copied().filter(|x| x.is_finite()).collect();
            values.sort_unstable_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(0.0)
        };
        let reference = (0..size).map(median).collect();
        let lent = samples.device_memory().filter(|lent| lent.device == device.context.ordinal());
        let fits = samples.stored_bytes() as f64 <= SHARE * device.free_bytes()?.min(limit) as f64;
        let place = match (lent, fits) {
            (Some(lent), _) => {
                // Whoever made them may still be at it, on a stream of its own.
                device.context.synchronize().map_err(failed("waiting for the samples"))?;
                Place::Lent(lent.address)
            }
            (None, true) => match stored(device, &samples) {
                Ok(all) => Place::Own(all),
                // Others were quicker.
                Err(Error::DeviceMemory { .. }) => Place::Host,
                Err(error) => return Err(error),
            },
            (None, false) => Place::Host,
        };
        Ok(Self { samples, reference, place, centred: Mutex::new(None), limit })
    }

    /// Where all samples are on the device, if they are there.
    fn address(&self, device: &Device) -> Option<u64> {
        match &self.place {
            Place::Own(stored) => Some(device.address(Some(&stored.as_view()))),
            Place::Lent(address) => Some(*address),
            Place::Host => None,
        }
    }

    /// How many samples are worked on at a time: so many, unless they have to be brought to the device first, where two chunks are there at a
    /// time and the first of them is waited for.
    pub(super) fn at_a_time(&self, wanted: usize) -> usize {
        match self.place {
            Place::Host => wanted.min((STREAMED / self.sample_bytes()).max(1)),
            _ => wanted,
        }
    }

    pub(super) fn sample_bytes(&self) -> usize {
        self.samples.sample_len() * self.samples.element().size()
    }

    /// The number that kernels have for the type of the elements.
    pub(super) fn element(&self) -> i32 {
        match self.samples.element() {
            Element::U8 => 0,
            Element::F32 => 1,
            Element::F64 => 2,
        }
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
        let Some(stored) = self.address(device) else { return Ok(()) };
        let mut centred = self.centred.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (count, size) = (self.samples.len(), self.samples.sample_len());
        let bytes = count as f64 * (size * size_of::<f32>() + size_of::<f64>()) as f64;
        if centred.is_some() || bytes > SHARE * self.free_bytes(device)? as f64 {
            return Ok(());
        }
        let (mut x, mut norms) = match (device.room(count * size), device.room(count)) {
            (Ok(x), Ok(norms)) => (x, norms),
            // Others were quicker; it is made chunk by chunk, then.
            (Err(Error::DeviceMemory { .. }), _) | (_, Err(Error::DeviceMemory { .. })) => return Ok(()),
            (Err(error), _) | (_, Err(error)) => return Err(error),
        };
        let reference = device.upload(&self.reference::<f32>())?;
        self.load_rows(device, stored, None, count, &reference, &mut x, &mut norms)?;
        *centred = Some((x, norms));
        Ok(())
    }

    /// Gives up x − reference: its room is needed.
    pub(super) fn drop_centred(&self) -> bool {
        self.centred.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take().is_some()
    }

    fn load_rows<T: Number>(
        &self,
        device: &Device,
        stored: u64,
        rows: Option<&CudaSlice<i64>>,
        count: usize,
        reference: &CudaSlice<T>,
        x: &mut CudaSlice<T>,
        norms: &mut CudaSlice<f64>,
    ) -> Result<()> {
        let element = self.element();
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
            &stored,
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

    /// Has `work` done on the samples in `range` of those the pass goes over, as they are stored, a chunk at a time, until it has enough. Those
    /// that are not on the device come while it works on the chunk before.
    pub(super) fn each_stored(
        &self,
        device: &Device,
        which: &Which,
        range: Range<usize>,
        chunk: usize,
        rooms: &mut [Room<u8>; 2],
        work: &mut dyn FnMut(Range<usize>, Stored) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let chunks: Vec<Range<usize>> =
            range.clone().step_by(chunk.max(1)).map(|first| first..(first + chunk).min(range.end)).collect();
        let bytes = self.sample_bytes();
        if let Some(address) = self.address(device) {
            for chunk in chunks {
                let numbered = matches!(which, Which::Some(_));
                let skipped = if numbered { 0 } else { chunk.start * bytes };
                if work(chunk, Stored { address: address + skipped as u64, numbered })?.is_break() {
                    break;
                }
            }
            return Ok(());
        }
        let len = chunk.min(range.len()) * bytes;
        let mut regions = [Region { address: 0, len }; 2];
        for (region, room) in regions.iter_mut().zip(rooms) {
            region.address = device.address(Some(&room.of(device, len)?.as_view()));
        }
        std::thread::scope(|scope| {
            let chunks = &chunks;
            let begin = |i: usize, after: Option<CudaEvent>| {
                let to = regions[i % 2];
                scope.spawn(move || self.bring(device, which, chunks[i].clone(), to, after.as_ref()))
            };
            // The rooms are there once the stream has come to this point.
            let mark = || device.stream.record_event(None).map_err(failed("a mark"));
            let mut free = [Some(mark()?), Some(mark()?)];
            let mut coming = chunks.first().map(|_| begin(0, free[0].take()));
            let mut result = Ok(ControlFlow::Continue(()));
            for (i, range) in chunks.iter().enumerate() {
                let Some(there) = coming.take() else { break };
                match joined(there).and_then(|there| device.stream.wait(&there).map_err(failed("waiting"))) {
                    Ok(()) => {}
                    Err(error) => {
                        result = Err(error);
                        break;
                    }
                }
                coming = (i + 1 < chunks.len()).then(|| begin(i + 1, free[(i + 1) % 2].take()));
                result = work(range.clone(), Stored { address: regions[i % 2].address, numbered: false });
                if !matches!(result, Ok(ControlFlow::Continue(()))) {
                    break;
                }
                match mark() {
                    Ok(event) => free[i % 2] = Some(event),
                    Err(error) => {
                        result = Err(error);
                        break;
                    }
                }
            }
            // Nothing is under way when the rooms are used again.
            if let Some(Ok(there)) = coming.map(joined) {
                there.synchronize().map_err(failed("uploading samples"))?;
            }
            result.map(|_| ())
        })
    }

    /// Brings some of the samples the pass goes over to the device.
    fn bring(
        &self,
        device: &Device,
        which: &Which,
        range: Range<usize>,
        to: Region,
        after: Option<&CudaEvent>,
    ) -> Result<CudaEvent> {
        let mut buffer = Buffer::new();
        let count = range.len();
        let chosen;
        let chunk = match which {
            Which::All => self.samples.stored(range, &mut buffer)?,
            Which::Some(places) => {
                chosen = (*self.samples).clone().select_part(&places[range])?;
                chosen.stored(0..count, &mut buffer)?
            }
        };
        let mut staging = device.staging.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        staging.upload(device, chunk.bytes(), to, after)
    }

    /// The same with x − reference and its squares, and the weights of the samples.
    pub(super) fn each_chunk<T: Number>(
        &self,
        device: &Device,
        which: &Which,
        range: Range<usize>,
        chunk: usize,
        reference: &CudaSlice<T>,
        rooms: &mut Loading<T>,
        work: &mut Work<'_, T>,
    ) -> Result<()> {
        let Loading { stored, rows, x, norms, weights } = rooms;
        let size = self.samples.sample_len();
        let centred = self.centred.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let centred = match (&*centred, which) {
            (Some((x, norms)), Which::All) => T::as_single(x).map(|x| (x, norms)),
            _ => None,
        };
        self.each_stored(device, which, range, chunk, stored, &mut |range, from| {
            let count = range.len();
            let weights = self.weights(device, which, range.clone(), weights)?;
            let (first, stored) = (range.start, from.address);
            if let Some((x, norms)) = centred {
                let x = x.slice(range.start * size..range.end * size);
                return work(first, Loaded { x, norms: norms.slice(range), weights, stored, count });
            }
            let (x, norms) = (x.of(device, count * size)?, norms.of(device, count)?);
            let rows = match (from.numbered, which) {
                (true, Which::Some(places)) => {
                    let own: Vec<i64> = places[range].iter().map(|&n| n as i64).collect();
                    let rows = rows.of(device, count)?;
                    device.stream.memcpy_htod(&own, rows).map_err(failed("uploading numbers"))?;
                    Some(&*rows)
                }
                _ => None,
            };
            self.load_rows(device, from.address, rows, count, reference, x, norms)?;
            let (x, norms) = (x.slice(..count * size), norms.slice(..count));
            work(first, Loaded { x, norms, weights, stored, count })
        })
    }

    /// The weights of some samples, if there are weights.
    pub(super) fn weights<'r>(
        &self,
        device: &Device,
        which: &Which,
        range: Range<usize>,
        room: &'r mut Room<f64>,
    ) -> Result<Option<CudaView<'r, f64>>> {
        let Some(all) = self.samples.weights() else { return Ok(None) };
        let own: Vec<f64> = range.map(|n| all[which.number(n)]).collect();
        let to = room.of(device, own.len())?;
        device.stream.memcpy_htod(&own, to).map_err(failed("uploading weights"))?;
        Ok(Some(to.slice(..own.len())))
    }
}

fn joined(thread: std::thread::ScopedJoinHandle<'_, Result<CudaEvent>>) -> Result<CudaEvent> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What is done with a chunk of samples, the first of which has this number among those the pass goes over; whether to go on.
type Work<'w, T> = dyn FnMut(usize, Loaded<'_, T>) -> Result<ControlFlow<()>> + 'w;

/// A chunk of samples, ready to be worked on.
pub(super) struct Loaded<'a, T> {
    pub(super) x: CudaView<'a, T>,
    pub(super) norms: CudaView<'a, f64>,
    pub(super) weights: Option<CudaView<'a, f64>>,
    /// Where they are as they are stored, unless they are found by their numbers.
    pub(super) stored: u64,
    pub(super) count: usize,
}

/// All samples as they are stored, on the device.
pub(super) fn stored(device: &Device, samples: &Samples<'_>) -> Result<CudaSlice<u8>> {
    let bytes = samples.sample_len() * samples.element().size();
    let all = device.room(samples.len() * bytes)?;
    // What was freed here before may still be worked on.
    let after = device.stream.record_event(None).map_err(failed("a mark"))?;
    let address = device.address(Some(&all.as_view()));
    let piece = (PIECE / bytes).max(1);
    let mut buffer = Buffer::new();
    let mut staging = device.staging.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for first in (0..samples.len()).step_by(piece) {
        let end = (first + piece).min(samples.len());
        let chunk = samples.stored(first..end, &mut buffer)?;
        let to = Region { address: address + (first * bytes) as u64, len: (end - first) * bytes };
        let there = staging.upload(device, chunk.bytes(), to, Some(&after))?;
        device.stream.wait(&there).map_err(failed("uploading samples"))?;
    }
    device.stream.synchronize().map_err(failed("uploading samples"))?;
    Ok(all)
}
