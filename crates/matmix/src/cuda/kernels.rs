//! The kernels of a device: compiled by NVRTC when first used, kept in the user's cache folder, launched by one macro.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use cudarc::driver::{CudaFunction, CudaSlice, DeviceRepr, ValidAsZeroBits};
use cudarc::nvrtc::{CompileOptions, Ptx, compile_ptx_with_opts};

use super::device::{Device, failed};
use super::workspace::Workspace;
use crate::data::atomic::write_file;
use crate::error::{Error, NoGpu, Result};
use crate::simd::Real;

const SOURCE: &str = include_str!("kernels.cu");
const TENSOR_CORES: &str = include_str!("tensor_cores.cu");

/// The first devices that have TF32.
const HAS_TF32: i32 = 8;

/// Shared memory of a block of `contract`, so that a multiprocessor has room for two.
const SHARED: usize = 112 << 10;

/// Shared memory of a block of `segment_sums`: `Segment` in tensor_cores.cu.
pub(super) const SEGMENT_SHARED: usize = 4 * (3 * 16 * (128 + 8 + 2 * (64 + 8)) + 2 * 512);

/// Where compiled kernels are kept, if not in the user's cache folder.
const CACHE: &str = "MATMIX_CACHE";

/// A kernel that goes wrong, as one that reads beyond its memory does: no call of this process succeeds after it. For tests.
const TRAP: &str = "extern \"C\" __global__ void trap(int) { asm volatile(\"trap;\"); }";

/// Launches a kernel: the device, the kernel, blocks, threads, and its arguments by reference.
macro_rules! launch {
    ($device:expr, $kernel:expr, $grid:expr, $threads:expr, $($argument:expr),+ $(,)?) => {
        $crate::cuda::kernels::launch!($device, $kernel, ($grid.0, $grid.1, 1), $threads; 0, $($argument),+)
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
    pub(super) pick_rows: CudaFunction,
    pub(super) moments: CudaFunction,
    pub(super) point_distances: CudaFunction,
    pub(super) nearest: CudaFunction,
    pub(super) group_sums: CudaFunction,
    pub(super) total: CudaFunction,
    pub(super) weigh: CudaFunction,
    pub(super) turn: CudaFunction,
    pub(super) tensor_cores: Option<TensorCores>,
}

/// The kernels of tensor_cores.cu.
#[derive(Debug)]
pub(super) struct TensorCores {
    pub(super) contract: CudaFunction,
    pub(super) inner_products: CudaFunction,
    pub(super) gather_cores: CudaFunction,
    pub(super) segment_sums: CudaFunction,
    /// Shared memory that `contract` may use, and how many of its blocks fill the device.
    pub(super) shared: usize,
    pub(super) blocks: usize,
}

impl Device {
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
            true => Some(self.tensor_cores(function)?),
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
            pick_rows: function("pick_rows")?,
            moments: function("moments")?,
            point_distances: function("point_distances")?,
            nearest: function("nearest")?,
            group_sums: function("group_sums")?,
            total: function("total")?,
            weigh: function("weigh")?,
            turn: function("turn")?,
            tensor_cores,
        };
        Ok(place.get_or_init(|| kernels))
    }

    fn tensor_cores(&self, function: impl Fn(&str) -> Result<CudaFunction>) -> Result<TensorCores> {
        use cudarc::driver::sys::{CUdevice_attribute as Of, CUfunction_attribute as OfFunction};
        let number = |of| self.context.attribute(of).map_err(failed("its properties"));
        let most = number(Of::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as usize;
        let processors = number(Of::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as usize;
        let shared = most.min(SHARED);
        let with_shared = |name: &str, bytes: usize| -> Result<CudaFunction> {
            let function = function(name)?;
            function
                .set_attribute(OfFunction::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes as i32)
                .map_err(failed("shared memory"))?;
            Ok(function)
        };
        Ok(TensorCores {
            contract: with_shared("contract", shared)?,
            inner_products: function("inner_products")?,
            gather_cores: function("gather_cores")?,
            segment_sums: with_shared("segment_sums", SEGMENT_SHARED)?,
            shared,
            blocks: 4 * processors,
        })
    }

    /// Makes the device one that is lost to this process.
    pub(super) fn lose(&self) -> Result<()> {
        let (major, minor) = self.context.compute_capability().map_err(failed("its capability"))?;
        let ptx = compiled(TRAP, "float", &format!("compute_{major}{minor}"))?;
        let module = self.context.load_module(ptx).map_err(failed("loading a kernel"))?;
        let trap = module.load_function("trap").map_err(failed("trap"))?;
        let nothing = 0i32;
        launch!(self, trap, (1, 1), 1, &nothing);
        Ok(())
    }
}

/// The kernels for one precision and architecture, from the cache where they are in it.
fn compiled(source: &str, real: &str, architecture: &str) -> Result<Ptx> {
    let options = vec![format!("-DREAL={real}"), format!("--gpu-architecture={architecture}")];
    let key = hmac_sha256::Hash::hash(format!("{source}\0{}", options.join("\0")).as_bytes());
    let name: String = key.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let cached = cache_folder().map(|folder| folder.join(format!("{name}.ptx")));
    if let Some(text) = cached.as_ref().and_then(|path| std::fs::read_to_string(path).ok()) {
        return Ok(Ptx::from_src(text));
    }
    let options = CompileOptions { options, name: Some("matmix.cu".into()), ..CompileOptions::default() };
    let ptx = compile_ptx_with_opts(source, options).map_err(|error| Error::Device {
        why: NoGpu::Absent,
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
