//! Which device computes: what programs offer as one option.

use crate::cpu::Cpu;
use crate::data::{Missing, Samples};
use crate::error::{Error, NoGpu, Result};
use crate::gpu::Gpu;
use crate::options::choices;
use crate::pass::Backend;

/// From so many elements × components on a GPU is worth the upload and the start of its libraries, under [`Device::Auto`]: a
/// pass over fewer takes the processor a few milliseconds.
const WORTH_IT: f64 = 5e8;

choices! {
    /// Where passes are computed.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use matmix::{Backend, Device, FitOptions, Samples, fit_on};
    ///
    /// let numbers: Vec<f64> = (0..360).map(|i| f64::from((i * 37) % 101)).collect();
    /// let samples = Samples::from_vec(&[4, 3], numbers)?;
    /// let device: Device = "cpu".parse()?;
    /// let backend = device.backend(&samples, 1)?;
    /// let options = FitOptions { rank: vec![1], ..FitOptions::default() };
    /// let fitted = fit_on(&*backend.over(&samples)?, &options, &mut |_| ControlFlow::Continue(()))?;
    /// assert_eq!((fitted.assigned, backend.name().starts_with("cpu")), (vec![30], true));
    /// # Ok::<(), matmix::Error>(())
    /// ```
    pub enum Device {
        /// The processor. The same seed gives the same bits on every machine with the same instructions.
        #[default]
        Cpu = "cpu",
        /// An NVIDIA GPU.
        Cuda = "cuda",
        /// A GPU where there is one and the work is worth the upload, the processor elsewhere.
        Auto = "auto",
    }
}

impl Device {
    /// The GPUs of this machine.
    ///
    /// # Errors
    /// If none can be looked for: what is missing.
    pub fn gpus() -> Result<Vec<Gpu>> {
        gpus()
    }

    /// What computes passes over these samples, for a model with so many components.
    ///
    /// ```
    /// use matmix::{Device, Samples};
    ///
    /// let samples = Samples::from_vec(&[4, 3], vec![0.5f32; 120])?;
    /// assert!(Device::Auto.backend(&samples, 2)?.name().starts_with("cpu"));
    /// # Ok::<(), matmix::Error>(())
    /// ```
    ///
    /// # Errors
    /// A GPU that was asked for and is not there: what is missing.
    pub fn backend(self, samples: &Samples<'_>, components: usize) -> Result<Box<dyn Backend>> {
        let work = samples.len() as f64 * samples.sample_len() as f64 * components as f64;
        match self {
            Device::Cpu => match samples.device_memory() {
                None => Ok(Box::new(Cpu::best())),
                Some(there) => Err(on_a_gpu(there.device())),
            },
            Device::Cuda => gpu(samples.device_memory().map_or(0, |there| there.device())),
            // What a GPU refuses is not worth an upload.
            Device::Auto if is_for_processors(samples) => Ok(Box::new(Cpu::best())),
            Device::Auto => match samples.device_memory() {
                Some(there) => gpu(there.device()),
                None if work >= WORTH_IT => gpu(0).or_else(|_| Ok(Box::new(Cpu::best()))),
                None => Ok(Box::new(Cpu::best())),
            },
        }
    }
}

/// Samples that are on a GPU already are not brought here behind somebody's back.
fn on_a_gpu(device: usize) -> Error {
    Error::Device {
        why: NoGpu::Refused,
        problem: format!(
            "the samples are in the memory of GPU {device}: device cuda (or auto) works on them there; for the processor, bring them to the host \
             first"
        ),
    }
}

/// Missing cells and known labels are a matter of the processor's evaluator.
fn is_for_processors(samples: &Samples<'_>) -> bool {
    samples.missing() == Missing::Nan || samples.classes().is_some()
}

#[cfg(feature = "cuda")]
fn gpu(number: usize) -> Result<Box<dyn Backend>> {
    Ok(Box::new(crate::cuda::Cuda::new(number)?))
}

#[cfg(feature = "cuda")]
fn gpus() -> Result<Vec<Gpu>> {
    crate::cuda::Cuda::devices()
}

#[cfg(not(feature = "cuda"))]
fn gpu(_: usize) -> Result<Box<dyn Backend>> {
    Err(not_built())
}

#[cfg(not(feature = "cuda"))]
fn gpus() -> Result<Vec<Gpu>> {
    Err(not_built())
}

#[cfg(not(feature = "cuda"))]
fn not_built() -> Error {
    let problem = "no GPU can be used: this was built without the feature `cuda`".into();
    Error::Device { why: NoGpu::NotBuilt, problem }
}
