//! Memory of a device that a pass works in, kept from pass to pass.

use cudarc::driver::{CudaSlice, DeviceRepr, PinnedHostSlice};

use super::device::{Device, failed};
use crate::error::Result;

/// Room for a number of values: what is there already, if it is enough.
pub(super) struct Room<T>(Option<CudaSlice<T>>);

impl<T> Default for Room<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: DeviceRepr> Room<T> {
    pub(super) fn of(&mut self, device: &Device, len: usize) -> Result<&mut CudaSlice<T>> {
        if self.0.as_ref().is_none_or(|there| there.len() < len) {
            // What is there goes first: both together may be more than the device has.
            self.0 = None;
            self.0 = Some(device.room(len)?);
        }
        match &mut self.0 {
            Some(there) => Ok(there),
            None => unreachable!("it was made above"),
        }
    }
}

/// Memory of the host that a device copies to without a detour.
#[derive(Default)]
pub(super) struct Pinned(Option<PinnedHostSlice<f64>>);

impl Pinned {
    pub(super) fn of(&mut self, device: &Device, len: usize) -> Result<&mut [f64]> {
        if self.0.as_ref().is_none_or(|there| there.len() < len) {
            self.0 = None;
            self.0 = Some(device.pinned(len)?);
        }
        match &mut self.0 {
            Some(there) => Ok(&mut there.as_mut_slice().map_err(failed("host memory"))?[..len]),
            None => unreachable!("it was made above"),
        }
    }
}

/// Everything between samples and sums, for one chunk of samples.
#[derive(Default)]
pub(super) struct Workspace<T> {
    pub(super) loading: Loading<T>,
    pub(super) evaluation: Evaluation<T>,
    pub(super) summing: Summing<T>,
}

/// Samples as they are stored, where they are not held by the device; their numbers; x − reference, its squares, and weights.
#[derive(Default)]
pub(super) struct Loading<T> {
    pub(super) stored: [Room<u8>; 2],
    pub(super) rows: Room<i64>,
    pub(super) x: Room<T>,
    pub(super) norms: Room<f64>,
    pub(super) weights: Room<f64>,
}

/// What a model makes of samples.
#[derive(Default)]
pub(super) struct Evaluation<T> {
    /// Partly contracted samples; contracted ones; ⟨x, M⟩.
    pub(super) z: Room<T>,
    pub(super) y: Room<T>,
    pub(super) inner: Room<T>,
    /// Per sample and component.
    pub(super) distances: Room<f64>,
    pub(super) deltas: Room<f64>,
    pub(super) logs: Room<f64>,
    pub(super) gammas: Room<f64>,
    /// Per sample.
    pub(super) log_likelihoods: Room<f64>,
    pub(super) entropies: Room<f64>,
    pub(super) errors: Room<f64>,
    pub(super) bests: Room<i32>,
}

/// Who has a share in what, and the sums of it.
#[derive(Default)]
pub(super) struct Summing<T> {
    pub(super) counts: Room<i32>,
    pub(super) block_sums: Room<f64>,
    pub(super) all: Room<f64>,
    pub(super) shares: Room<i32>,
    /// Gathered rows, their factors and their products; rebuilt samples and what they are made of.
    pub(super) left: Room<T>,
    pub(super) right: Room<T>,
    pub(super) products: Room<T>,
    pub(super) sums: Room<f64>,
    /// Where numbers, likelihoods and sums are fetched to.
    pub(super) numbers: Pinned,
    pub(super) likelihoods: Pinned,
    pub(super) fetched: Pinned,
}
