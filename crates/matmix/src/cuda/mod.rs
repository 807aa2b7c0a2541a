//! What computes: an NVIDIA GPU.
//!
//! Samples are uploaded once and stay, as they are stored; parameters and M-steps stay on the host, in double precision. A pass is a handful of
//! matrix products (cuBLAS) with kernels between them (`kernels.cu`, compiled by NVRTC when first used and kept in the user's cache
//! folder). Libraries are opened when a GPU is asked for: the crate builds without a CUDA toolkit and runs without a GPU.
//!
//! | file | what |
//! |---|---|
//! | `device` | one GPU: its stream and its memory |
//! | `kernels`, `products` | what runs on it: compiled kernels, matrix products |
//! | `held` | samples on the device |
//! | `staging` | how they get there |
//! | `array` | samples that are there already, in memory of somebody else |
//! | `ready` | a model on the device |
//! | `evaluate` | what the model makes of samples |
//! | `em`, `ask`, `sums`, `scatter` | the passes |
//! | `workspace` | memory that is used again |
//! | `kernels.cu`, `tensor_cores.cu` | the kernels; those of the two large products, on tensor cores |

mod array;
mod ask;
mod device;
mod em;
mod evaluate;
mod held;
mod kernels;
mod products;
mod ready;
mod scatter;
mod staging;
mod sums;
mod workspace;

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::CudaContext;

use crate::cpu::Cpu;
use crate::data::{Element, Missing, Samples};
use crate::error::{Error, NoGpu, Result};
use crate::gpu::Gpu;
use crate::model::Model;
use crate::pass::{
    Answers, AnySums, AskPass, Backend, DistancesPass, EmPass, EmSums, Engine, Filter, GroupSums, GroupsPass,
    Impute, Imputed, MomentSums, MomentsPass, Pass, Pool, ScatterPass, ScatterSums, Task,
};
pub use array::DeviceArray;
use device::{Device, failed};
use held::{Held, Which};

/// Samples with fewer elements are summed up by the processor, where they are: it is done before they have been uploaded.
const FEW: usize = 1 << 22;

/// Bytes of a GPU's memory that may be used, about: what [`Cuda::with_memory_limit`] says, for those who do not call it.
const MEMORY: &str = "MATMIX_GPU_MEMORY";

/// A GPU, as a [`Backend`].
///
/// Passes over samples that it holds, or that lie in its memory already ([`DeviceArray`]), are computed on it. What a fit asks for once (moments, groups,
/// scatters) is computed by the processor where samples are few, or are not held.
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
        let memory_limit = match std::env::var(MEMORY) {
            Ok(text) => text.trim().parse().map_err(|_| Error::Option {
                option: MEMORY,
                value: text.clone(),
                expected: "a number of bytes",
            })?,
            Err(_) => usize::MAX,
        };
        Ok(Self { device: Device::get(number)?, cpu: Cpu::best(), memory_limit })
    }

    /// The same GPU with about so many bytes of its memory: for a machine that is shared. What does not fit is uploaded chunk by chunk in every pass.
    pub fn with_memory_limit(mut self, bytes: usize) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// The same samples in the memory of this GPU, as they are stored: passes on it find them there, and nothing is uploaded again. Selections of them are
    /// copied back to the host.
    ///
    /// # Errors
    /// No room for them, and whatever reading them can cause.
    pub fn upload(&self, samples: &Samples<'_>) -> Result<Samples<'static>> {
        let array = DeviceArray::of(&self.device, samples).map_err(|error| self.named(error))?;
        let there =
            Samples::from_source(Arc::new(array))?.scaled(samples.scale())?.with_missing(samples.missing());
        let there = match samples.classes() {
            Some(classes) => there.with_classes(classes.to_vec())?,
            None => there,
        };
        match samples.weights() {
            Some(weights) => there.with_part_weights(weights.to_vec()),
            None => Ok(there),
        }
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

    /// What the last EM pass took on the device, in milliseconds, without the host's part in it; NaN if there was none. For a benchmark.
    #[doc(hidden)]
    pub fn last_pass_ms(&self) -> f64 {
        *self.device.last_pass.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Takes so many bytes of its memory, and gives back what passes have kept, until what is returned is dropped. For tests.
    #[doc(hidden)]
    pub fn occupy(&self, bytes: usize) -> Result<Box<dyn std::any::Any>> {
        self.device.give_back();
        Ok(Box::new(self.device.room::<u8>(bytes)?))
    }

    /// Makes this GPU one that is lost to this process, by a kernel that goes wrong. For tests.
    #[doc(hidden)]
    pub fn lose(&self) -> Result<()> {
        self.device.lose()
    }

    /// What is not for a GPU.
    fn check(samples: &Samples<'_>) -> Result<()> {
        let problem = if samples.missing() == Missing::Nan {
            "missing cells cannot be worked on by a GPU; the processor can: device cpu"
        } else if samples.classes().is_some() {
            "known labels cannot be kept to by a GPU; the processor can: device cpu"
        } else {
            return Ok(());
        };
        Err(Error::Device { why: NoGpu::Refused, problem: problem.into() })
    }

    fn held<'a>(&self, samples: &'a Samples<'a>) -> Result<Held<'a>> {
        Self::check(samples)?;
        Held::new(&self.device, Cow::Borrowed(samples), self.memory_limit).map_err(|error| self.named(error))
    }

    /// An error with the name of the GPU it is about.
    fn named(&self, error: Error) -> Error {
        match error {
            Error::Device { why, problem } => {
                Error::Device { why, problem: format!("{}: {problem}", self.name()) }
            }
            other => other,
        }
    }

    /// The sums of a pass over samples that lie in the memory of this GPU, if they do and it can be computed there.
    fn where_they_lie<S>(
        &self,
        samples: &Samples<'_>,
        pass: impl Fn(&Device, &Held<'_>) -> Result<Option<S>>,
    ) -> Result<Option<S>> {
        let here = self.device.context.ordinal();
        match samples.device_memory().is_some_and(|lent| lent.device == here) {
            true => self.work(&self.held(samples)?, pass),
            false => Ok(None),
        }
    }

    /// Has work done on samples; where there is no room for it, once more with all the room there is.
    fn work<S>(&self, held: &Held<'_>, pass: impl Fn(&Device, &Held<'_>) -> Result<S>) -> Result<S> {
        let result = match pass(&self.device, held) {
            Err(Error::DeviceMemory { .. }) => {
                self.device.give_back();
                held.drop_centred();
                pass(&self.device, held)
            }
            other => other,
        };
        result.map_err(|error| self.named(error))
    }
}

impl Backend for Cuda {
    fn name(&self) -> String {
        let name = self.device.context.name().unwrap_or_else(|_| "unknown".into());
        format!("cuda:{} ({name})", self.device.context.ordinal())
    }

    fn for_few(&self) -> Option<&dyn Backend> {
        Some(&self.cpu)
    }

    fn adds_in_place(&self) -> bool {
        true
    }

    /// The processor's: that of a device has not been measured.
    fn overhead(&self) -> usize {
        self.cpu.overhead()
    }

    fn em(&self, pass: &EmPass, samples: &Samples<'_>) -> Result<EmSums> {
        self.work(&self.held(samples)?, |device, held| em::em(device, pass, held, &Which::All))
    }

    fn moments(&self, pass: &MomentsPass, samples: &Samples<'_>, first: usize) -> Result<MomentSums> {
        // A digest is made of bytes, one sample after the other.
        let found = match pass.digest {
            true => None,
            false => self.where_they_lie(samples, |device, held| sums::moments(device, pass, held))?,
        };
        found.map_or_else(|| self.cpu.moments(pass, samples, first), Ok)
    }

    fn scatter(&self, pass: &ScatterPass, samples: &Samples<'_>) -> Result<ScatterSums> {
        let found = self.where_they_lie(samples, |device, held| scatter::scatter(device, pass, held))?;
        found.map_or_else(|| self.cpu.scatter(pass, samples), Ok)
    }

    fn groups(&self, pass: &GroupsPass, samples: &Samples<'_>) -> Result<GroupSums> {
        let found = self.where_they_lie(samples, |device, held| sums::groups(device, pass, held))?;
        found.map_or_else(|| self.cpu.groups(pass, samples), Ok)
    }

    fn distances(&self, pass: &DistancesPass, samples: &Samples<'_>) -> Result<Answers> {
        let found = self.where_they_lie(samples, |device, held| sums::distances(device, pass, held))?;
        found.map_or_else(|| self.cpu.distances(pass, samples), Ok)
    }

    fn ask(
        &self,
        pass: &AskPass,
        samples: &Samples<'_>,
        each: &mut (dyn FnMut(Answers) + Send),
    ) -> Result<()> {
        match &*pass.model {
            Model::Mixture(model) => {
                let held = self.held(samples)?;
                ask::ask(&self.device, pass, model, &held, each).map_err(|error| self.named(error))
            }
            Model::LowRank(_) => self.cpu.ask(pass, samples, each),
        }
    }

    // These are not worth a device: a few products per number that is read, or a factorisation per sample.
    fn filter(
        &self,
        question: &Filter<'_>,
        samples: &Samples<'_>,
        each: &mut (dyn FnMut(Vec<f64>) + Send),
    ) -> Result<()> {
        self.cpu.filter(question, samples, each)
    }

    fn pool(
        &self,
        question: &Pool<'_>,
        images: &Samples<'_>,
        each: &mut (dyn FnMut(Vec<f32>) + Send),
    ) -> Result<()> {
        self.cpu.pool(question, images, each)
    }

    fn impute(&self, question: &Impute<'_>, samples: &Samples<'_>) -> Result<Imputed> {
        self.cpu.impute(question, samples)
    }

    fn impute_draws(
        &self,
        question: &Impute<'_>,
        samples: &Samples<'_>,
        draws: usize,
        seed: u64,
    ) -> Result<Vec<f64>> {
        self.cpu.impute_draws(question, samples, draws, seed)
    }

    fn over<'a>(&'a self, samples: &'a Samples<'a>) -> Result<Box<dyn Engine + 'a>> {
        Self::check(samples)?;
        let engine = OnDevice { cuda: self, samples, held: Mutex::new(None) };
        if !engine.are_few() {
            engine.with(|_, _| Ok(()))?;
        }
        Ok(Box::new(engine))
    }
}

/// Samples that a GPU holds; few ones from the first pass on that it computes.
struct OnDevice<'a> {
    cuda: &'a Cuda,
    samples: &'a Samples<'a>,
    held: Mutex<Option<Held<'a>>>,
}

impl OnDevice<'_> {
    fn are_few(&self) -> bool {
        let elements = self.samples.len().saturating_mul(self.samples.sample_len());
        elements < FEW && self.samples.device_memory().is_none()
    }

    fn with<S>(&self, pass: impl Fn(&Device, &Held<'_>) -> Result<S>) -> Result<S> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let held = match &mut *held {
            Some(held) => held,
            none => {
                let new = self.cuda.held(self.samples)?;
                new.keep_centred(&self.cuda.device).map_err(|error| self.cuda.named(error))?;
                none.insert(new)
            }
        };
        self.cuda.work(held, pass)
    }

    /// The sums of a pass, if it is worth the device, and can be computed there.
    fn worth<S: Into<AnySums>>(
        &self,
        pass: impl Fn(&Device, &Held<'_>) -> Result<Option<S>>,
    ) -> Result<Option<AnySums>> {
        match self.are_few() {
            true => Ok(None),
            false => Ok(self.with(pass)?.map(Into::into)),
        }
    }
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
        let shape = self.samples.shape();
        let found = match task {
            Task::Em(pass) => {
                pass.check(shape)?;
                let which = match pass.stage.halvings() {
                    0 => Which::All,
                    _ => Which::Some(pass.stage.places(self.samples, 0)),
                };
                if which.count(self.len()) == 0 {
                    return Ok(AnySums::Em(EmSums::zero(&pass.model, pass.update)));
                }
                return self.with(|device, held| em::em(device, pass, held, &which)).map(AnySums::Em);
            }
            Task::Ask(pass) if !self.are_few() => match &*pass.model {
                Model::Mixture(model) => {
                    pass.check(shape)?;
                    Some(self.with(|device, held| {
                        let mut all = Answers { width: pass.width(), values: Vec::new() };
                        ask::ask(device, pass, model, held, &mut |more| all.values.extend(more.values))?;
                        Ok(AnySums::Answers(all))
                    })?)
                }
                Model::LowRank(_) => None,
            },
            Task::Moments(pass) if !pass.digest => {
                pass.check(shape)?;
                self.worth(|device, held| sums::moments(device, pass, held))?
            }
            Task::Groups(pass) => {
                pass.check(shape)?;
                self.worth(|device, held| sums::groups(device, pass, held))?
            }
            Task::Distances(pass) => {
                pass.check(shape)?;
                self.worth(|device, held| sums::distances(device, pass, held))?
            }
            Task::Scatter(pass) => {
                pass.check(shape)?;
                self.worth(|device, held| scatter::scatter(device, pass, held))?
            }
            _ => None,
        };
        match found {
            Some(sums) => Ok(sums),
            None => task.run(&self.cuda.cpu, self.samples, 0),
        }
    }

    fn backend(&self) -> &dyn Backend {
        self.cuda
    }

    fn local(&self) -> Option<&Samples<'_>> {
        Some(self.samples)
    }
}
