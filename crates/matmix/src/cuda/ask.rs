//! Questions to a mixture, on the device.

use std::ops::ControlFlow;
use std::sync::PoisonError;

use cudarc::cublas::{CudaBlas, Gemm};
use cudarc::driver::{CudaSlice, DeviceRepr};

use super::device::{Device, failed};
use super::em::{chunk, not_finite};
use super::evaluate::{Evaluated, THREADS, evaluate};
use super::held::{Held, Which};
use super::kernels::{Number, launch};
use super::ready::Ready;
use super::workspace::{Summing, Workspace};
use crate::error::Result;
use crate::model::Mixture;
use crate::pass::{Answers, AskPass, Precision, Question};

/// Samples whose answers are fetched at a time: those of whole samples are large.
const AT_A_TIME: usize = 1 << 14;

pub(super) fn ask(
    device: &Device,
    pass: &AskPass,
    model: &Mixture,
    held: &Held<'_>,
    each: &mut (dyn FnMut(Answers) + Send),
) -> Result<()> {
    let double = Precision::Auto.is_double(held.samples.element(), model);
    let mut done = 0;
    if !double && ask_in::<f32>(device, pass, model, held, &mut done, each)?.is_none() {
        return Ok(());
    }
    match ask_in::<f64>(device, pass, model, held, &mut done, each)? {
        None => Ok(()),
        Some(sample) => Err(not_finite(held, sample)),
    }
}

/// Answers about all samples from `done` on; the first of those that have no likelihood, if there is one.
fn ask_in<T: Number>(
    device: &Device,
    pass: &AskPass,
    model: &Mixture,
    held: &Held<'_>,
    done: &mut usize,
    each: &mut (dyn FnMut(Answers) + Send),
) -> Result<Option<usize>>
where
    CudaBlas: Gemm<T>,
{
    let rebuilds = pass.questions.iter().any(|q| matches!(q, Question::Rebuilt | Question::Denoised));
    let reference = held.reference::<T>();
    let ready = Ready::new(device, model, &reference, rebuilds)?;
    let around: Vec<f64> = reference.iter().map(|g| g.to_f64()).collect();
    let reference = device.upload(&reference)?;
    let mut workspace = T::workspace(device).lock().unwrap_or_else(PoisonError::into_inner);
    let Workspace { loading, evaluation, summing } = &mut *workspace;
    let count = held.samples.len();
    let at_a_time = chunk(device, &ready, held, count)?.0.min(AT_A_TIME);
    let mut wrong = None;
    let begin = *done;
    held.each_chunk(
        device,
        &Which::All,
        begin..count,
        at_a_time,
        &reference,
        loading,
        &mut |first, loaded| {
            let found = evaluate(device, &ready, &loaded, pass.needs_all(), evaluation)?;
            let fetched = Fetched::new(device, &found, loaded.count)?;
            wrong = fetched.log_likelihoods.iter().position(|x| !x.is_finite()).map(|n| first + n);
            if wrong.is_some() {
                return Ok(ControlFlow::Break(()));
            }
            let mut answers = Answers::none(pass.width());
            answers.make_room(loaded.count);
            let mut column = 0;
            for &question in &pass.questions {
                let width = question.width(&pass.model);
                let values = match question {
                    Question::Rebuilt | Question::Denoised => {
                        let best = question == Question::Rebuilt;
                        rebuild(device, &ready, &found, loaded.count, best, &around, summing)?
                    }
                    other => fetched.answer(device, &ready, &found, other, loaded.count)?,
                };
                for (n, values) in values.chunks_exact(width).enumerate() {
                    answers.row(n)[column..column + width].copy_from_slice(values);
                }
                column += width;
            }
            each(answers);
            *done = first + loaded.count;
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(wrong)
}

/// What most questions need.
struct Fetched {
    log_likelihoods: Vec<f64>,
    bests: Vec<i32>,
}

fn fetch<T: DeviceRepr>(device: &Device, from: &CudaSlice<T>, len: usize) -> Result<Vec<T>> {
    device.stream.clone_dtoh(&from.slice(..len)).map_err(failed("fetching answers"))
}

impl Fetched {
    fn new<T: Number>(device: &Device, found: &Evaluated<'_, T>, count: usize) -> Result<Self> {
        Ok(Self {
            log_likelihoods: fetch(device, found.log_likelihoods, count)?,
            bests: fetch(device, found.bests, count)?,
        })
    }

    fn answer<T: Number>(
        &self,
        device: &Device,
        ready: &Ready<T>,
        found: &Evaluated<'_, T>,
        question: Question,
        count: usize,
    ) -> Result<Vec<f64>> {
        let each = count * ready.components;
        Ok(match question {
            Question::Component => self.bests.iter().map(|&k| f64::from(k)).collect(),
            // No cell of these samples is missing.
            Question::LogLikelihood | Question::Typicality => self.log_likelihoods.clone(),
            Question::Entropy => fetch(device, found.entropies, count)?,
            Question::SquaredError => fetch(device, found.errors, count)?,
            Question::LogDensities => fetch(device, found.logs, each)?,
            Question::Responsibilities => fetch(device, found.gammas, each)?,
            Question::Core | Question::AllCores => {
                let precision: Vec<f64> = fetch(device, &ready.precision, ready.components * ready.core)?;
                let y = fetch(device, found.y, each * ready.core)?;
                let q = y.chunks_exact(precision.len()).flat_map(|y| y.iter().zip(&precision));
                let q: Vec<f64> = q.map(|(y, p)| y.to_f64() * p).collect();
                match question {
                    Question::AllCores => q,
                    _ => {
                        let own = |(n, &k): (usize, &i32)| {
                            &q[(n * ready.components + k as usize) * ready.core..][..ready.core]
                        };
                        self.bests.iter().enumerate().flat_map(own).copied().collect()
                    }
                }
            }
            Question::Rebuilt | Question::Denoised => unreachable!("rebuilt by a product"),
        })
    }
}

/// X̂ = reference + [γ q] · [U]ᵀ + [γ] · [M − reference]: of the most probable component alone, or expected.
fn rebuild<T: Number>(
    device: &Device,
    ready: &Ready<T>,
    found: &Evaluated<'_, T>,
    count: usize,
    best: bool,
    reference: &[f64],
    rooms: &mut Summing<T>,
) -> Result<Vec<f64>>
where
    CudaBlas: Gemm<T>,
{
    let kernels = device.kernels::<T>()?;
    let (components, core, size) = (ready.components, ready.core, ready.size);
    let all = components * core;
    let (n, k, rho, stride) = (count as i32, components as i32, core as i32, all as i32);
    let alone = i32::from(best);
    let out = rooms.products.of(device, count * size)?;
    let cores = rooms.left.of(device, count * all)?;
    let shares = rooms.right.of(device, count * components)?;
    for (to, from, width) in [(&mut *cores, 0i32, all), (&mut *shares, all as i32, components)] {
        let width_i = width as i32;
        launch!(
            device,
            kernels.weigh_cores,
            ((count * width).div_ceil(THREADS), 1),
            THREADS,
            &n,
            &k,
            &rho,
            found.y,
            &stride,
            &ready.precision,
            found.gammas,
            found.bests,
            &alone,
            &from,
            &width_i,
            to,
        );
    }
    device.product((count, size, all), &cores.slice(..count * all), (&ready.back, true), 0.0, out)?;
    let shares = shares.slice(..count * components);
    device.product((count, size, components), &shares, (&ready.offsets, false), 1.0, out)?;
    let out = fetch(device, out, count * size)?;
    Ok(out.chunks_exact(size).flat_map(|x| x.iter().zip(reference).map(|(x, g)| x.to_f64() + g)).collect())
}
