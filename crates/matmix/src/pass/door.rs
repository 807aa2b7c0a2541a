//! Whoever is given a backend asks it, and no other: all of it goes through one door.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Mutex;

use super::{
    Answers, AskPass, Backend, DistancesPass, EmPass, EmSums, Engine, Filter, GroupSums, GroupsPass, Impute,
    Imputed, MomentSums, MomentsPass, Pool, ScatterPass, ScatterSums,
};
use crate::cpu::{Cpu, Local};
use crate::data::{Missing, Patches, Samples};
use crate::denoise::{PatchDenoiser, PatchDenoiserOptions};
use crate::error::Result;
use crate::fit::{FitOptions, OnlineFit, Search, fit, fit_on};
use crate::model::StopReason;
use crate::recognize::{PatchFisher, PatchFisherOptions};
use crate::temper::Temper;

/// The processor, with a list of what it was asked for.
#[derive(Debug)]
struct Listening {
    cpu: Cpu,
    heard: Mutex<BTreeSet<&'static str>>,
}

impl Listening {
    fn hear(&self, what: &'static str) -> &Cpu {
        self.heard.lock().unwrap().insert(what);
        &self.cpu
    }

    /// What it was asked for since it was last looked at.
    fn heard(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.heard.lock().unwrap()).into_iter().collect()
    }
}

type Each<'e, T> = &'e mut (dyn FnMut(T) + Send);

impl Backend for Listening {
    fn name(&self) -> String {
        "listening".into()
    }

    fn overhead(&self) -> usize {
        self.cpu.overhead()
    }

    fn em(&self, pass: &EmPass, samples: &Samples<'_>) -> Result<EmSums> {
        self.hear("em").em(pass, samples)
    }

    fn moments(&self, pass: &MomentsPass, samples: &Samples<'_>, first: usize) -> Result<MomentSums> {
        self.hear("moments").moments(pass, samples, first)
    }

    fn scatter(&self, pass: &ScatterPass, samples: &Samples<'_>) -> Result<ScatterSums> {
        self.hear("scatter").scatter(pass, samples)
    }

    fn groups(&self, pass: &GroupsPass, samples: &Samples<'_>) -> Result<GroupSums> {
        self.hear("groups").groups(pass, samples)
    }

    fn distances(&self, pass: &DistancesPass, samples: &Samples<'_>) -> Result<Answers> {
        self.hear("distances").distances(pass, samples)
    }

    fn ask(&self, pass: &AskPass, samples: &Samples<'_>, each: Each<'_, Answers>) -> Result<()> {
        self.hear("ask").ask(pass, samples, each)
    }

    fn filter(&self, question: &Filter<'_>, samples: &Samples<'_>, each: Each<'_, Vec<f64>>) -> Result<()> {
        self.hear("filter").filter(question, samples, each)
    }

    fn pool(&self, question: &Pool<'_>, images: &Samples<'_>, each: Each<'_, Vec<f32>>) -> Result<()> {
        self.hear("pool").pool(question, images, each)
    }

    fn impute(&self, question: &Impute<'_>, samples: &Samples<'_>) -> Result<Imputed> {
        self.hear("impute").impute(question, samples)
    }

    fn impute_draws(
        &self,
        question: &Impute<'_>,
        samples: &Samples<'_>,
        draws: usize,
        seed: u64,
    ) -> Result<Vec<f64>> {
        self.hear("draws").impute_draws(question, samples, draws, seed)
    }

    fn over<'a>(&'a self, samples: &'a Samples<'a>) -> Result<Box<dyn Engine + 'a>> {
        Ok(Box::new(Local { samples, backend: self }))
    }
}

fn listening() -> Listening {
    Listening { cpu: Cpu::best(), heard: Mutex::default() }
}

fn images() -> Samples<'static> {
    let pixel = |i: usize| (i / 16 / 4 % 2) as f64 + 0.1 * ((i * i * 7919 % 1009) as f64 / 504.0 - 1.0);
    Samples::from_vec(&[16, 16], (0..3 * 256).map(pixel).collect::<Vec<_>>()).unwrap()
}

fn options() -> FitOptions {
    FitOptions { components: 2, rank: vec![2], max_iter: 3, search: Search::None, ..FitOptions::default() }
}

#[test]
fn patches_are_fitted_filtered_and_pooled_by_the_backend_that_is_given() {
    let (backend, images) = (listening(), images());
    let wanted = PatchDenoiserOptions { size: vec![4], fit: options(), ..Default::default() };
    let denoiser = PatchDenoiser::fit_by(&backend, &images, &wanted).unwrap();
    assert!(backend.heard().contains(&"em"));
    assert_eq!(denoiser, PatchDenoiser::fit(&images, &wanted).unwrap());
    PatchDenoiser::fit_noisy_by(&backend, &images, 0.1, &wanted).unwrap();
    assert!(backend.heard().contains(&"em"));
    let mut clean = Vec::new();
    denoiser.denoise_chunks(&backend, &images, 0.1, &mut |image| clean.extend(image)).unwrap();
    assert_eq!(backend.heard(), ["filter"]);
    assert_eq!(clean, denoiser.denoise(&images, 0.1).unwrap());

    let wanted = PatchFisherOptions { size: vec![4], grid: 2, fit: options(), ..Default::default() };
    let fisher = PatchFisher::fit_by(&backend, &images, &wanted).unwrap();
    assert!(backend.heard().contains(&"em"));
    assert_eq!(fisher, PatchFisher::fit(&images, &wanted).unwrap());
    let mut vectors = Vec::new();
    fisher.features_chunks(&backend, &images, |some| vectors.extend(some)).unwrap();
    assert_eq!(backend.heard(), ["pool"]);
    assert_eq!(vectors, fisher.features(&images).unwrap());
}

#[test]
fn missing_cells_are_filled_in_by_the_backend_that_is_given() {
    let (backend, patches) = (listening(), Patches::new(4).of(&images()).unwrap());
    let model = fit(&patches, &options()).unwrap().model;
    let mut cells = patches.to_f64(0..3).unwrap();
    cells[4] = f64::NAN;
    cells[16..26].fill(f64::NAN);
    let broken = Samples::from_vec(&[4, 4], cells).unwrap().with_missing(Missing::Nan);
    // The posteriors of two samples are tempered, and their likelihoods asked for apart.
    let found = model.impute_on(&backend, &broken, Temper::Fixed(0.1)).unwrap();
    assert_eq!((&found.tempered[..], backend.heard()), (&[0, 1][..], vec!["ask", "impute"]));
    assert_eq!(found, model.impute_by(&broken, Temper::Fixed(0.1)).unwrap());
    let draws = model.impute_draws_on(&backend, &broken, 2, 1, Temper::None).unwrap();
    assert_eq!(backend.heard(), ["draws"]);
    assert_eq!(draws, model.impute_draws_by(&broken, 2, 1, Temper::None).unwrap());
}

#[test]
fn batches_are_fitted_by_the_backend_that_is_given() {
    let (backend, patches) = (listening(), Patches::new(4).of(&images()).unwrap());
    let mut there = OnlineFit::begin_on(&*backend.over(&patches).unwrap(), &options()).unwrap();
    assert!(backend.heard().contains(&"em"));
    there.step_on(&*backend.over(&patches).unwrap(), &options()).unwrap();
    assert_eq!(backend.heard(), ["em", "moments"]);
    let mut here = OnlineFit::begin(&patches, &options()).unwrap();
    here.step(&patches, &options()).unwrap();
    assert_eq!(there, here);
}

#[test]
fn components_are_judged_by_the_engines_backend() {
    let (backend, patches) = (listening(), Patches::new(4).of(&images()).unwrap());
    let options = FitOptions { max_iter: 500, ..options() };
    let there =
        fit_on(&*backend.over(&patches).unwrap(), &options, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(there.stop(), StopReason::Converged);
    // The support of components is computed at convergence.
    assert!(backend.heard().contains(&"ask"));
    assert_eq!(there.model, fit(&patches, &options).unwrap().model);
}
