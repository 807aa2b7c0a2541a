//! One GPU: its stream, matrix products, kernels, and memory that is used again.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use cudarc::cublas::sys::cublasOperation_t::{CUBLAS_OP_N, CUBLAS_OP_T};
use cudarc::cublas::{CudaBlas, Gemm, GemmConfig, StridedBatchedConfig};
use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaSlice, CudaStream, CudaView, DevicePtr, DeviceRepr,
    PinnedHostSlice, ValidAsZeroBits,
};
use cudarc::nvrtc::{CompileOptions, Ptx, compile_ptx_with_opts};
use sha2::{Digest, Sha256};

use super::workspace::Workspace;
use crate::cpu::simd::Real;
use crate::data::atomic::write_file;
use crate::error::{Error, Result};

const SOURCE: &str = include_str!("kernels.cu");
const TENSOR_CORES: &str = include_str!("tensor_cores.cu");

/// The first devices that have TF32.
const HAS_TF32: i32 = 8;

/// Shared memory of a block of `contract`, so that a multiprocessor has room for two.
const SHARED: usize = 112 << 10;

/// Where compiled kernels are kept, if not in the user's cache folder.
const CACHE: &str = "MATMIX_CACHE";

pub(super) fn failed(what: impl std::fmt::Display) -> impl FnOnce(cudarc::driver::DriverError) -> Error {
    move |error| Error::Device { problem: format!("the GPU failed ({what}): {error}") }
}

/// A precision kernels are compiled for.
pub(super) trait Number: Real + DeviceRepr + ValidAsZeroBits {
    /// Its name in CUDA C++.
    const NAME: &'static str;

    /// Whether tensor cores with TF32 serve it.
    const ON_TENSOR_CORES: bool;

    fn kernels(device: &Device) -> &OnceLock<Kernels>;

    fn workspace(device: &Device) -> &Mutex<Workspace<Self>>;

    /// Numbers in single precision as numbers of this precision, if it is single.
    fn as_single(x: &CudaSlice<f32>) -> Option<&CudaSlice<Self>>;
}

impl Number for f32 {
    const NAME: &'static str = "float";
    const ON_TENSOR_CORES: bool = true;

    fn kernels(device: &Device) -> &OnceLock<Kernels> {
        &device.single
    }

    fn workspace(device: &Device) -> &Mutex<Workspace<f32>> {
        &device.single_workspace
    }

    fn as_single(x: &CudaSlice<f32>) -> Option<&CudaSlice<Self>> {
        Some(x)
    }
}

impl Number for f64 {
    const NAME: &'static str = "double";
    const ON_TENSOR_CORES: bool = false;

    fn kernels(device: &Device) -> &OnceLock<Kernels> {
        &device.double
    }

    fn workspace(device: &Device) -> &Mutex<Workspace<f64>> {
        &device.double_workspace
    }

    fn as_single(_: &CudaSlice<f32>) -> Option<&CudaSlice<Self>> {
        None
    }
}

/// The kernels in one precision, by the names they have in the source.
#[derive(Debug)]
pub(super) struct Kernels {
    pub(super) load: CudaFunction,
    pub(super) contract_front: CudaFunction,
    pub(super) densities: CudaFunction,
    pub(super) count_shares: CudaFunction,
    pub(super) count_samples: CudaFunction,
    pub(super) scan_shares: CudaFunction,
    pub(super) place_shares: CudaFunction,
    pub(super) gather: CudaFunction,
    pub(super) fold: CudaFunction,
    pub(super) weigh_cores: CudaFunction,
    pub(super) gather_cores: CudaFunction,
    pub(super) tensor_cores: Option<TensorCores>,
}

/// The kernels for tensor cores.
#[derive(Debug)]
pub(super) struct TensorCores {
    pub(super) contract: CudaFunction,
    pub(super) segment_sums: CudaFunction,
    /// Shared memory that `contract` may use, and how many of its blocks fill the device.
    pub(super) shared: usize,
    pub(super) blocks: usize,
}

/// One GPU, ready.
pub(crate) struct Device {
    pub(super) context: Arc<CudaContext>,
    pub(super) stream: Arc<CudaStream>,
    blas: CudaBlas,
    single: OnceLock<Kernels>,
    double: OnceLock<Kernels>,
    single_workspace: Mutex<Workspace<f32>>,
    double_workspace: Mutex<Workspace<f64>>,
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
            problem: format!(
                "no GPU can be used: {missing} was not found; a driver, cuBLAS and NVRTC of CUDA 12 or 13 are needed where the \
                 system looks for libraries (LD_LIBRARY_PATH)"
            ),
        }),
    }
}

impl Device {
    #[allow(unsafe_code)]
    pub(super) fn open(ordinal: usize) -> Result<Self> {
        check_libraries()?;
        let there = CudaContext::device_count().map_err(failed("counting devices"))?;
        if ordinal >= there as usize {
            return Err(Error::Device {
                problem: format!("there is no GPU {ordinal} (from 0); the driver knows of {there}"),
            });
        }
        let context = CudaContext::new(ordinal).map_err(failed("opening it"))?;
        // SAFETY: everything runs on one stream, in the order it is written; nothing needs events to wait for anything.
        unsafe { context.disable_event_tracking() };
        keep_freed_memory(&context);
        // A pass waits twice for less than a millisecond: looking is quicker than being woken.
        let _ = context.set_flags(cudarc::driver::sys::CUctx_flags::CU_CTX_SCHED_SPIN);
        let stream = context.new_stream().map_err(failed("a stream"))?;
        let blas = CudaBlas::new(stream.clone())
            .map_err(|error| Error::Device { problem: format!("cuBLAS could not be begun: {error:?}") })?;
        Ok(Self {
            context,
            stream,
            blas,
            single: OnceLock::new(),
            double: OnceLock::new(),
            single_workspace: Mutex::default(),
            double_workspace: Mutex::default(),
            last_pass: Mutex::new(f64::NAN),
        })
    }

    /// The kernels in one precision, compiled when they are first needed.
    pub(super) fn kernels<T: Number>(&self) -> Result<&Kernels> {
        let place = T::kernels(self);
        if let Some(kernels) = place.get() {
            return Ok(kernels);
        }
        let (major, minor) = self.context.compute_capability().map_err(failed("its capability"))?;
        let on_tensor_cores = T::ON_TENSOR_CORES && major >= HAS_TF32;
        let source = if on_tensor_cores { format!("{SOURCE}\n{TENSOR_CORES}") } else { SOURCE.into() };
        let ptx = compiled(&source, T::NAME, &format!("compute_{major}{minor}"))?;
        let module = self.context.load_module(ptx).map_err(failed("loading the kernels"))?;
        let function = |name: &str| module.load_function(name).map_err(failed(name.to_owned()));
        let tensor_cores = match on_tensor_cores {
            true => Some(self.tensor_cores(function("contract")?, function("segment_sums")?)?),
            false => None,
        };
        let kernels = Kernels {
            load: function("load")?,
            contract_front: function("contract_front")?,
            densities: function("densities")?,
            count_shares: function("count_shares")?,
            count_samples: function("count_samples")?,
            scan_shares: function("scan_shares")?,
            place_shares: function("place_shares")?,
            gather: function("gather")?,
            fold: function("fold")?,
            weigh_cores: function("weigh_cores")?,
            gather_cores: function("gather_cores")?,
            tensor_cores,
        };
        Ok(place.get_or_init(|| kernels))
    }

    fn tensor_cores(&self, contract: CudaFunction, segment_sums: CudaFunction) -> Result<TensorCores> {
        use cudarc::driver::sys::{CUdevice_attribute as Of, CUfunction_attribute as OfFunction};
        let number = |of| self.context.attribute(of).map_err(failed("its properties"));
        let most = number(Of::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as usize;
        let processors = number(Of::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as usize;
        let shared = most.min(SHARED);
        contract
            .set_attribute(OfFunction::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared as i32)
            .map_err(failed("shared memory"))?;
        Ok(TensorCores { contract, segment_sums, shared, blocks: 4 * processors })
    }

    /// Memory of the host that the device copies to without a detour.
    #[allow(unsafe_code)]
    pub(super) fn pinned(&self, len: usize) -> Result<PinnedHostSlice<f64>> {
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
        self.stream.clone_htod(from).map_err(failed(format!("uploading {} bytes", size_of_val(from))))
    }

    /// Memory of the device, nothing in it yet.
    #[allow(unsafe_code)]
    pub(super) fn room<T: DeviceRepr>(&self, len: usize) -> Result<CudaSlice<T>> {
        // SAFETY: all types are plain numbers, and whoever asks for room writes before it reads.
        unsafe { self.stream.alloc(len) }
            .map_err(failed(format!("room for {} bytes", len.saturating_mul(size_of::<T>()))))
    }

    /// Where something lies on the device, as kernels take it; 0 if there is nothing.
    pub(super) fn address<T>(&self, of: Option<&CudaView<'_, T>>) -> u64 {
        of.map_or(0, |of| of.device_ptr(&self.stream).0)
    }

    /// out (m × n) = left (m × k) · right (k × n), or · rightᵀ (n × k), plus `keep` × out; all row by row.
    #[allow(unsafe_code)]
    pub(super) fn product<T: Number>(
        &self,
        (m, n, k): (usize, usize, usize),
        left: &CudaView<'_, T>,
        right: (&CudaSlice<T>, bool),
        keep: f64,
        out: &mut CudaSlice<T>,
    ) -> Result<()>
    where
        CudaBlas: Gemm<T>,
    {
        let (right, transposed) = right;
        let needed = [(left.len(), m * k), (right.len(), k * n), (out.len(), m * n)];
        assert!(needed.iter().all(|(there, needed)| there >= needed), "matrices as large as said");
        // What is row by row here is column by column there: outᵀ = rightᵀ · leftᵀ.
        let gemm = GemmConfig {
            transa: if transposed { CUBLAS_OP_T } else { CUBLAS_OP_N },
            transb: CUBLAS_OP_N,
            m: n as i32,
            n: m as i32,
            k: k as i32,
            alpha: T::from_f64(1.0),
            lda: if transposed { k } else { n } as i32,
            ldb: k as i32,
            beta: T::from_f64(keep),
            ldc: n as i32,
        };
        // SAFETY: the matrices have the sizes that were asserted above.
        unsafe { self.blas.gemm(gemm, right, left, out) }.map_err(|error| multiplying(&error))
    }

    /// out[s] (r × l) = right[s]ᵀ (r × segment) · left[s] (segment × l) for every segment s.
    #[allow(unsafe_code)]
    pub(super) fn segment_products<T: Number>(
        &self,
        segments: usize,
        (segment, l, r): (usize, usize, usize),
        left: &CudaSlice<T>,
        right: &CudaSlice<T>,
        out: &mut CudaSlice<T>,
    ) -> Result<()>
    where
        CudaBlas: Gemm<T>,
    {
        let needed = [(left.len(), segment * l), (right.len(), segment * r), (out.len(), r * l)];
        assert!(needed.iter().all(|(there, one)| *there >= segments * one), "segments as large as said");
        let gemm = GemmConfig {
            transa: CUBLAS_OP_N,
            transb: CUBLAS_OP_T,
            m: l as i32,
            n: r as i32,
            k: segment as i32,
            alpha: T::from_f64(1.0),
            lda: l as i32,
            ldb: r as i32,
            beta: T::from_f64(0.0),
            ldc: l as i32,
        };
        let all = StridedBatchedConfig {
            gemm,
            batch_size: segments as i32,
            stride_a: (segment * l) as i64,
            stride_b: (segment * r) as i64,
            stride_c: (r * l) as i64,
        };
        // SAFETY: the matrices have the sizes that were asserted above.
        unsafe { self.blas.gemm_strided_batched(all, left, right, out) }.map_err(|error| multiplying(&error))
    }
}

/// What is freed stays with this process, so that small arrays cost next to nothing. A driver that cannot do so is slower, no more.
#[allow(unsafe_code)]
fn keep_freed_memory(context: &CudaContext) {
    use cudarc::driver::sys;
    let (mut pool, mut all) = (std::ptr::null_mut(), u64::MAX);
    // SAFETY: the pool is written before it is read, and the attribute is one number of 64 bits.
    unsafe {
        if sys::cuDeviceGetDefaultMemPool(&mut pool, context.cu_device()) == sys::CUresult::CUDA_SUCCESS {
            let threshold = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
            let _ = sys::cuMemPoolSetAttribute(pool, threshold, (&raw mut all).cast());
        }
    }
}

fn multiplying(error: &dyn std::fmt::Debug) -> Error {
    Error::Device { problem: format!("the GPU failed (a matrix product): {error:?}") }
}

/// The kernels for one precision and architecture, from the cache where they are in it.
fn compiled(source: &str, real: &str, architecture: &str) -> Result<Ptx> {
    let options = vec![format!("-DREAL={real}"), format!("--gpu-architecture={architecture}")];
    let key = Sha256::digest(format!("{source}\0{}", options.join("\0")));
    let name: String = key.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let cached = cache_folder().map(|folder| folder.join(format!("{name}.ptx")));
    if let Some(text) = cached.as_ref().and_then(|path| std::fs::read_to_string(path).ok()) {
        return Ok(Ptx::from_src(text));
    }
    let options = CompileOptions { options, name: Some("matmix.cu".into()), ..CompileOptions::default() };
    let ptx = compile_ptx_with_opts(source, options).map_err(|error| Error::Device {
        problem: format!("NVRTC could not compile the kernels for {architecture}: {error:?}"),
    })?;
    // A cache that cannot be written costs a second next time, no more.
    if let Some(path) = cached {
        let _ = path.parent().map(std::fs::create_dir_all);
        let _ = write_file(&path, |to| to.write_all(ptx.to_src().as_bytes()));
    }
    Ok(ptx)
}

fn cache_folder() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder(CACHE)
        .or_else(|| folder("XDG_CACHE_HOME").map(|path| path.join("matmix")))
        .or_else(|| folder("HOME").map(|path| path.join(".cache").join("matmix")))
}

/// Launches a kernel: the device, the kernel, blocks, threads, and its arguments by reference.
macro_rules! launch {
    ($device:expr, $kernel:expr, $grid:expr, $threads:expr, $($argument:expr),+ $(,)?) => {
        $crate::cuda::device::launch!($device, $kernel, ($grid.0, $grid.1, 1), $threads; 0, $($argument),+)
    };
    ($device:expr, $kernel:expr, $grid:expr, $threads:expr; $shared:expr, $($argument:expr),+ $(,)?) => {{
        use cudarc::driver::PushKernelArg as _;
        let mut builder = $device.stream.launch_builder(&$kernel);
        $(builder.arg($argument);)+
        let (x, y, z) = $grid;
        let config = cudarc::driver::LaunchConfig {
            grid_dim: (x as u32, y as u32, z as u32),
            block_dim: ($threads as u32, 1, 1),
            shared_mem_bytes: $shared as u32,
        };
        // SAFETY: the arguments are those of the kernel in kernels.cu, with as much room as its sizes say.
        #[allow(unsafe_code)]
        unsafe { builder.launch(config) }.map_err($crate::cuda::device::failed(stringify!($kernel)))?
    }};
}
pub(super) use launch;
