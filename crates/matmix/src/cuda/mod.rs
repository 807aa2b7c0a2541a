//! What computes: an NVIDIA GPU.
//!
//! Samples are uploaded once and stay, as they are stored; parameters and M-steps stay on the host, in double precision. A pass is a handful of
//! matrix products (cuBLAS) with kernels between them (`kernels.cu`, compiled by NVRTC when first used and kept in the user's cache
//! folder). Libraries are opened when a GPU is asked for: the crate builds without a CUDA toolkit and runs without a GPU.
//!
//! | file | what |
//! |---|---|
//! | [`device`] | one GPU: stream, matrix products, compiled kernels |
//! | [`held`] | samples on the device |
//! | [`ready`] | a model on the device |
//! | [`evaluate`] | what the model makes of samples |
//! | [`em`], [`ask`] | the passes |
//! | [`workspace`] | memory that is used again |
//! | `kernels.cu` | the kernels |

mod ask;
mod device;
mod em;
mod evaluate;
mod held;
mod ready;
mod workspace;

use std::borrow::Cow;
use std::sync::Arc;

use cudarc::driver::CudaContext;

use crate::cpu::Cpu;
use crate::data::{Element, Missing, Samples};
use crate::device::Gpu;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::pass::{
    Answers, AnySums, AskPass, Backend, DistancesPass, EmPass, EmSums, Engine, GroupSums, GroupsPass,
    MomentSums, MomentsPass, ScatterPass, ScatterSums, Task,
};
use device::{Device, failed};
use held::{Held, Which};

/// A GPU, as a [`Backend`].
///
/// EM passes and questions to mixtures are computed on it; what a fit asks for once (moments, the clusters of a start, scatters) is
/// computed by the processor.
///
/// ```
/// use matmix::cuda::Cuda;
///
/// // Without a GPU this is an error that says what is missing.
/// match Cuda::new(0) {
///     Ok(gpu) => println!("{gpu:?}"),
///     Err(error) => println!("{error}"),
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Cuda {
    device: Arc<Device>,
    cpu: Cpu,
    /// Bytes that may be used, about.
    memory_limit: usize,
}

impl Cuda {
    /// GPU `number`, from 0.
    ///
    /// # Errors
    /// What is missing: the driver, a library, or the GPU itself.
    pub fn new(number: usize) -> Result<Self> {
        Ok(Self { device: Arc::new(Device::open(number)?), cpu: Cpu::best(), memory_limit: usize::MAX })
    }

    /// The same GPU with about so many bytes of its memory: for a machine that is shared. What does not fit is uploaded chunk by chunk in every pass.
    pub fn with_memory_limit(mut self, bytes: usize) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// The GPUs of this machine.
    ///
    /// # Errors
    /// If none can be looked for: which library is missing.
    pub fn devices() -> Result<Vec<Gpu>> {
        device::check_libraries()?;
        let count = CudaContext::device_count().map_err(failed("counting devices"))?;
        let found = |number: usize| {
            let context = CudaContext::new(number)?;
            let (free, total) = context.mem_get_info()?;
            let capability = context.compute_capability()?;
            Ok(Gpu { number, name: context.name()?, capability, memory: (total, free) })
        };
        (0..count as usize).map(|n| found(n).map_err(failed(format!("asking GPU {n}")))).collect()
    }

    /// What the last EM pass took on the device, in milliseconds, without the host's part in it; NaN if there was none.
    pub fn last_pass_ms(&self) -> f64 {
        *self.device.last_pass.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn held<'a>(&self, samples: Cow<'a, Samples<'a>>) -> Result<Held<'a>> {
        if samples.missing() == Missing::Nan {
            let problem = "missing cells cannot be worked on by a GPU; the processor can: device cpu".into();
            return Err(Error::Device { problem });
        }
        if samples.classes().is_some() {
            let problem = "known labels cannot be kept to by a GPU; the processor can: device cpu".into();
            return Err(Error::Device { problem });
        }
        Held::new(&self.device, samples, self.memory_limit)
    }
}

impl Backend for Cuda {
    fn name(&self) -> String {
        let name = self.device.context.name().unwrap_or_else(|_| "unknown".into());
        format!("cuda:{} ({name})", self.device.context.ordinal())
    }

    fn em(&self, pass: &EmPass, samples: &Samples<'_>) -> Result<EmSums> {
        em::em(&self.device, pass, &self.held(Cow::Borrowed(samples))?, &Which::All)
    }

    fn moments(&self, pass: &MomentsPass, samples: &Samples<'_>, first: usize) -> Result<MomentSums> {
        self.cpu.moments(pass, samples, first)
    }

    fn scatter(&self, pass: &ScatterPass, samples: &Samples<'_>) -> Result<ScatterSums> {
        self.cpu.scatter(pass, samples)
    }

    fn groups(&self, pass: &GroupsPass, samples: &Samples<'_>) -> Result<GroupSums> {
        self.cpu.groups(pass, samples)
    }

    fn distances(&self, pass: &DistancesPass, samples: &Samples<'_>) -> Result<Answers> {
        self.cpu.distances(pass, samples)
    }

    fn ask(
        &self,
        pass: &AskPass,
        samples: &Samples<'_>,
        each: &mut (dyn FnMut(Answers) + Send),
    ) -> Result<()> {
        match &*pass.model {
            Model::Mixture(model) => {
                ask::ask(&self.device, pass, model, &self.held(Cow::Borrowed(samples))?, each)
            }
            Model::LowRank(_) => self.cpu.ask(pass, samples, each),
        }
    }

    fn over<'a>(&'a self, samples: &'a Samples<'a>) -> Result<Box<dyn Engine + 'a>> {
        let held = self.held(Cow::Borrowed(samples))?;
        held.keep_centred(&self.device)?;
        Ok(Box::new(OnDevice { cuda: self, samples, held }))
    }
}

/// Samples that a GPU holds.
struct OnDevice<'a> {
    cuda: &'a Cuda,
    samples: &'a Samples<'a>,
    held: Held<'a>,
}

impl Engine for OnDevice<'_> {
    fn shape(&self) -> &[usize] {
        self.samples.shape()
    }

    fn len(&self) -> usize {
        self.samples.len()
    }

    fn element(&self) -> Element {
        self.samples.element()
    }

    fn scale(&self) -> f64 {
        self.samples.scale()
    }

    fn weights(&self) -> Option<&[f64]> {
        self.samples.weights()
    }

    fn run(&self, task: &Task) -> Result<AnySums> {
        let device = &self.cuda.device;
        match task {
            Task::Em(pass) => {
                crate::pass::Pass::check(pass, self.samples.shape())?;
                let which = match pass.stage.halvings() {
                    0 => Which::All,
                    _ => Which::Some(pass.stage.places(self.samples, 0)),
                };
                if which.count(self.len()) == 0 {
                    return Ok(AnySums::Em(EmSums::zero(&pass.model, pass.update)));
                }
                em::em(device, pass, &self.held, &which).map(AnySums::Em)
            }
            other => other.run(self.cuda, self.samples, 0),
        }
    }

    fn backend(&self) -> &dyn Backend {
        self.cuda
    }

    fn local(&self) -> Option<&Samples<'_>> {
        Some(self.samples)
    }
}
