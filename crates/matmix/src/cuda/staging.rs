//! Samples on their way to a device: through memory of the host that it copies from by itself, on a stream of its own, while it
//! works on the samples before them.

use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaStream, PinnedHostSlice};

use super::device::{Device, failed};
use crate::error::Result;

/// Bytes that are copied at a time, and how many such pieces are under way.
const PIECE: usize = 32 << 20;
const PIECES: usize = 2;

/// Bytes that are worth a thread: one that copies moves so many while another is begun a few times over.
const WORTH_A_THREAD: usize = 1 << 20;

/// Threads that copy to pinned memory, at most: a single one is slower than the bus.
const THREADS: usize = 8;

/// A stretch of a device's memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Region {
    pub(super) address: u64,
    pub(super) len: usize,
}

/// Pinned memory and the stream that copies from it.
#[derive(Default)]
pub(super) struct Staging {
    stream: Option<Arc<CudaStream>>,
    pieces: [Option<Piece>; PIECES],
    next: usize,
}

/// Memory that is copied from, and when the last copy from it has ended.
struct Piece {
    memory: PinnedHostSlice<u8>,
    copied: Option<CudaEvent>,
}

impl Staging {
    /// Copies `bytes` to the beginning of a region, once `after` has happened; they are there when the event that is returned has.
    #[allow(unsafe_code)]
    pub(super) fn upload(
        &mut self,
        device: &Device,
        bytes: &[u8],
        to: Region,
        after: Option<&CudaEvent>,
    ) -> Result<CudaEvent> {
        assert!(bytes.len() <= to.len, "a region as large as what is copied to it");
        // Whoever calls may be a thread that has not worked with the device yet.
        device.context.bind_to_thread().map_err(failed("opening it"))?;
        let stream = match &self.stream {
            Some(stream) => stream.clone(),
            None => self
                .stream
                .insert(device.context.new_stream().map_err(failed("a stream for copies"))?)
                .clone(),
        };
        if let Some(after) = after {
            stream.wait(after).map_err(failed("waiting for room"))?;
        }
        for (i, from) in bytes.chunks(PIECE).enumerate() {
            let number = self.next;
            self.next = (self.next + 1) % PIECES;
            let mut piece = match self.pieces[number].take() {
                Some(piece) if piece.memory.len() >= from.len() => piece,
                // The smaller one goes first.
                _ => {
                    Piece { memory: device.pinned(from.len().next_power_of_two().min(PIECE))?, copied: None }
                }
            };
            if let Some(copied) = piece.copied.take() {
                copied.synchronize().map_err(failed("copying samples"))?;
            }
            let memory = &mut piece.memory.as_mut_slice().map_err(failed("host memory"))?[..from.len()];
            copy(from, memory);
            // SAFETY: the region has room for all bytes, and the piece is not written to before the event below has happened.
            unsafe {
                let address = to.address + (i * PIECE) as u64;
                cudarc::driver::result::memcpy_htod_async(address, memory, stream.cu_stream())
            }
            .map_err(failed("uploading samples"))?;
            piece.copied = Some(stream.record_event(None).map_err(failed("a mark"))?);
            self.pieces[number] = Some(piece);
        }
        stream.record_event(None).map_err(failed("a mark"))
    }
}

/// The same bytes, by several threads where there are many. Not those of the pool: they may all be waiting for this.
fn copy(from: &[u8], to: &mut [u8]) {
    let most = std::thread::available_parallelism().map_or(1, |n| n.get().div_ceil(2)).min(THREADS);
    let threads = (from.len() / WORTH_A_THREAD).clamp(1, most);
    let each = from.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let mut parts = from.chunks(each).zip(to.chunks_mut(each));
        let own = parts.next();
        for (from, to) in parts {
            scope.spawn(move || to.copy_from_slice(from));
        }
        if let Some((from, to)) = own {
            to.copy_from_slice(from);
        }
    });
}

#[cfg(test)]
mod tests {
    #[test]
    fn copies_by_several_threads_are_copies() {
        for len in [0, 1, super::WORTH_A_THREAD, 3 * super::WORTH_A_THREAD + 5] {
            let from: Vec<u8> = (0..len).map(|i| (i * 31 % 251) as u8).collect();
            let mut to = vec![0; len];
            super::copy(&from, &mut to);
            assert!(from == to, "{len} bytes");
        }
    }
}
