//! One GPU: its stream and its memory; what went wrong with it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudarc::cublas::CudaBlas;
use cudarc::driver::{
    CudaContext, CudaEvent, CudaSlice, CudaStream, CudaView, DevicePtr, DeviceRepr, DriverError,
    PinnedHostSlice,
};

use super::kernels::Kernels;
use super::staging::Staging;
use super::workspace::Workspace;
use crate::error::{Error, NoGpu, Result};

pub(super) fn failed(what: impl std::fmt::Display) -> impl FnOnce(DriverError) -> Error {
    move |error| {
        let (why, lost) = if is_lost(&error) {
            let begin_anew = "; this process cannot use it any longer: begin it anew, and a fit with a checkpoint goes on from the state it kept last";
            (NoGpu::Lost, begin_anew)
        } else {
            (NoGpu::Failed, "")
        };
        Error::Device { why, problem: format!("the GPU failed ({what}): {error}{lost}") }
    }
}

/// Whether every later call of this process will fail, too: a kernel that went wrong, a device that is gone.
fn is_lost(error: &DriverError) -> bool {
    use cudarc::driver::sys::CUresult as Of;
    matches!(
        error.0,
        Of::CUDA_ERROR_ILLEGAL_ADDRESS
            | Of::CUDA_ERROR_LAUNCH_FAILED
            | Of::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | Of::CUDA_ERROR_MISALIGNED_ADDRESS
            | Of::CUDA_ERROR_INVALID_PC
            | Of::CUDA_ERROR_HARDWARE_STACK_ERROR
            | Of::CUDA_ERROR_ASSERT
            | Of::CUDA_ERROR_LAUNCH_TIMEOUT
            | Of::CUDA_ERROR_ECC_UNCORRECTABLE
            | Of::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | Of::CUDA_ERROR_DEVICE_UNAVAILABLE
            | Of::CUDA_ERROR_NO_DEVICE
            | Of::CUDA_ERROR_UNKNOWN
    )
}

/// One GPU, ready.
pub(crate) struct Device {
    pub(super) context: Arc<CudaContext>,
    pub(super) stream: Arc<CudaStream>,
    pub(super) blas: CudaBlas,
    pub(super) single: OnceLock<Kernels>,
    pub(super) double: OnceLock<Kernels>,
    pub(super) single_workspace: Mutex<Workspace<f32>>,
    pub(super) double_workspace: Mutex<Workspace<f64>>,
    /// How samples come from the host.
    pub(super) staging: Mutex<Staging>,
    /// What the last EM pass took on the device, in milliseconds.
    pub(super) last_pass: Mutex<f64>,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({})", self.context.ordinal())
    }
}

/// The libraries a pass needs, or which of them is not there.
#[allow(unsafe_code)]
pub(super) fn check_libraries() -> Result<()> {
    // SAFETY: these look for a library by its name and open it; its initialisers are NVIDIA's own.
    let found = unsafe {
        [
            ("the NVIDIA driver (libcuda)", cudarc::driver::sys::is_culib_present()),
            ("cuBLAS (libcublas)", cudarc::cublas::sys::is_culib_present()),
            ("NVRTC (libnvrtc)", cudarc::nvrtc::sys::is_culib_present()),
        ]
    };
    match found.into_iter().find(|(_, present)| !present) {
        None => Ok(()),
        Some((missing, _)) => Err(Error::Device {
            why: NoGpu::Absent,
            problem: format!(
                "no GPU can be used: {missing} was not found; a driver, cuBLAS and NVRTC of CUDA 12 or 13 are needed where the \
                 system looks for libraries (LD_LIBRARY_PATH)"
            ),
        }),
    }
}

/// The devices this process has opened: opening one, and loading its kernels, takes longer than most passes. A process that was
/// forked has none.
static OPENED: Mutex<Vec<(u32, Arc<Device>)>> = Mutex::new(Vec::new());

impl Device {
    /// Device `ordinal`, opened once per process.
    pub(super) fn get(ordinal: usize) -> Result<Arc<Self>> {
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        let here = std::process::id();
        let known = opened.iter().find(|(process, d)| *process == here && d.context.ordinal() == ordinal);
        if let Some((_, known)) = known {
            return Ok(known.clone());
        }
        let device = Arc::new(Self::open(ordinal)?);
        opened.push((here, device.clone()));
        Ok(device)
    }

    #[allow(unsafe_code)]
    fn open(ordinal: usize) -> Result<Self> {
        check_libraries()?;
        let there = CudaContext::device_count().map_err(failed("counting devices"))?;
        if ordinal >= there as usize {
            return Err(Error::Device {
                why: NoGpu::Absent,
                problem: format!("there is no GPU {ordinal} (from 0); the driver knows of {there}"),
            });
        }
        let context = CudaContext::new(ordinal).map_err(failed("opening it"))?;
        // SAFETY: everything runs on one stream, in the order it is written, but for copies of samples, which have events of their own
        // (`staging.rs`).
        unsafe { context.disable_event_tracking() };
        keep_freed_memory(&context);
        // A pass waits twice for less than a millisecond: looking is quicker than being woken.
        let _ = context.set_flags(cudarc::driver::sys::CUctx_flags::CU_CTX_SCHED_SPIN);
        let stream = context.new_stream().map_err(failed("a stream"))?;
        let blas = CudaBlas::new(stream.clone()).map_err(|error| Error::Device {
            why: NoGpu::Absent,
            problem: format!("cuBLAS could not be begun: {error:?}"),
        })?;
        Ok(Self {
            context,
            stream,
            blas,
            single: OnceLock::new(),
            double: OnceLock::new(),
            single_workspace: Mutex::default(),
            double_workspace: Mutex::default(),
            staging: Mutex::default(),
            last_pass: Mutex::new(f64::NAN),
        })
    }

    /// Memory of the host that the device copies to and from without a detour.
    #[allow(unsafe_code)]
    pub(super) fn pinned<T: DeviceRepr>(&self, len: usize) -> Result<PinnedHostSlice<T>> {
        // SAFETY: numbers of any bits are numbers, and they are written before they are read.
        unsafe { self.context.alloc_pinned_with_flags(len, 0) }.map_err(failed("host memory"))
    }

    /// Copies numbers to the host; they are there once the stream has come to this point.
    pub(super) fn fetch(&self, from: &CudaView<'_, f64>, to: &mut [f64]) -> Result<()> {
        self.stream.memcpy_dtoh(from, to).map_err(failed("fetching sums"))
    }

    /// A mark in the stream, to measure time between two of them.
    pub(super) fn mark(&self) -> Result<CudaEvent> {
        let timed = Some(cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT);
        self.stream.record_event(timed).map_err(failed("a mark"))
    }

    /// Bytes that are free on the device.
    pub(super) fn free_bytes(&self) -> Result<usize> {
        Ok(self.context.mem_get_info().map_err(failed("its memory"))?.0)
    }

    /// Memory of the device with these numbers in it.
    pub(super) fn upload<T: DeviceRepr>(&self, from: &[T]) -> Result<CudaSlice<T>> {
        let bytes = size_of_val(from);
        self.stream.clone_htod(from).map_err(|error| self.no_room(bytes, "uploading", error))
    }

    /// Memory of the device, nothing in it yet.
    #[allow(unsafe_code)]
    pub(super) fn room<T: DeviceRepr>(&self, len: usize) -> Result<CudaSlice<T>> {
        // SAFETY: all types are plain numbers, and whoever asks for room writes before it reads.
        unsafe { self.stream.alloc(len) }
            .map_err(|error| self.no_room(len.saturating_mul(size_of::<T>()), "room", error))
    }

    /// Why there is no memory for so many bytes.
    fn no_room(&self, wanted: usize, what: &str, error: DriverError) -> Error {
        match (error.0, self.context.mem_get_info()) {
            (cudarc::driver::sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY, Ok((free, total))) => {
                Error::DeviceMemory { device: self.context.ordinal(), wanted, free, total }
            }
            _ => failed(format!("{what}, {wanted} bytes"))(error),
        }
    }

    /// Gives back what passes have worked in.
    pub(super) fn give_back(&self) {
        *self.single_workspace.lock().unwrap_or_else(PoisonError::into_inner) = Workspace::default();
        *self.double_workspace.lock().unwrap_or_else(PoisonError::into_inner) = Workspace::default();
        let _ = self.stream.synchronize();
        with_pool(&self.context, |pool| {
            // SAFETY: the pool is the device's own, and nothing of it that is in use is given back.
            #[allow(unsafe_code)]
            let _ = unsafe { cudarc::driver::sys::cuMemPoolTrimTo(pool, 0) };
        });
    }

    /// Where something lies on the device, as kernels take it; 0 if there is nothing.
    pub(super) fn address<T>(&self, of: Option<&CudaView<'_, T>>) -> u64 {
        of.map_or(0, |of| of.device_ptr(&self.stream).0)
    }
}

/// Does something with the pool that a device's memory comes from; a driver that has none is slower, no more.
#[allow(unsafe_code)]
fn with_pool(context: &CudaContext, work: impl FnOnce(cudarc::driver::sys::CUmemoryPool)) {
    use cudarc::driver::sys;
    let mut pool = std::ptr::null_mut();
    // SAFETY: the pool is written before it is read.
    let found = unsafe { sys::cuDeviceGetDefaultMemPool(&mut pool, context.cu_device()) };
    if found == sys::CUresult::CUDA_SUCCESS {
        work(pool);
    }
}

/// What is freed stays with this process, so that small arrays cost next to nothing.
fn keep_freed_memory(context: &CudaContext) {
    use cudarc::driver::sys;
    with_pool(context, |pool| {
        let mut all = u64::MAX;
        let threshold = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the attribute is one number of 64 bits.
        #[allow(unsafe_code)]
        let _ = unsafe { sys::cuMemPoolSetAttribute(pool, threshold, (&raw mut all).cast()) };
    });
}
