//! The state of a long fit, on disk, so that a kill costs no more than a few iterations.
//!
//! A resumed fit has the same bits as one that was never interrupted: the file holds the parameters exactly, and the
//! earlier iterates a guess is made from; everything else a fit knows follows from them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::accelerate::{Accelerator, coordinates};
use super::em::Loop;
use super::history::History;
use super::options::Start;
use super::paper::Variational;
use crate::data::tensors::{Tensors, read_mixture, write_mixture};
use crate::error::{Error, Result};
use crate::linalg::Matrix;
use crate::model::Mixture;

const FORMAT: &str = "checkpoint";

/// Where, how often, and whether to go on from what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The file; replaced as a whole each time.
    pub path: PathBuf,
    /// After how many iterations.
    pub every: usize,
    /// Whether to go on from the file if it is there. A missing file is a fresh start; one of another fit is an error.
    pub resume: bool,
}

/// Everything that passes from one iteration to the next.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The restart that is running, or the next one.
    pub(super) restart: usize,
    /// Its model, if it has begun.
    pub(super) model: Option<Mixture>,
    pub(super) history: History,
    pub(super) reseeds: Vec<usize>,
    pub(super) paper: Option<Variational>,
    pub(super) accelerator: Accelerator,
    /// The best finished restart: model, history and how many samples belong to each component.
    pub(super) best: Option<(Mixture, History, Vec<u64>)>,
}

/// The part of a checkpoint that is not tensors.
#[derive(Serialize, Deserialize)]
struct Meta {
    fit: serde_json::Value,
    restart: usize,
    history: History,
    reseeds: Vec<usize>,
    longest_guess: f64,
    best: Option<(History, Vec<u64>)>,
}

impl State {
    /// The state in the file, if there is one to go on from.
    pub(super) fn load(fit: &Loop<'_>) -> Result<Option<Self>> {
        let Some(checkpoint) = fit.options.checkpoint.as_ref().filter(|c| c.resume && c.path.exists()) else {
            return Ok(None);
        };
        let path = &checkpoint.path;
        let tensors = Tensors::read(path, FORMAT)?;
        let meta: Meta = tensors
            .metadata("matmix.checkpoint")
            .and_then(|text| serde_json::from_str(text).ok())
            .ok_or_else(|| Error::format(path, FORMAT, "it holds no state of a fit; is it a model file?"))?;
        if meta.fit != identity(fit) {
            let problem = "it belongs to a fit of other data or options; remove it or give another file";
            return Err(Error::format(path, FORMAT, problem));
        }
        let read = |prefix: &str| -> Result<Option<Mixture>> {
            if !tensors.has(&format!("{prefix}weights")) {
                return Ok(None);
            }
            read_mixture(&tensors, prefix).map(Some)
        };
        let model = read("")?;
        let best = match (read("best.")?, meta.best) {
            (Some(model), Some((history, assigned))) => Some((model, history, assigned)),
            _ => None,
        };
        let k = fit.options.components;
        let fits =
            |m: &Mixture| m.shape() == fit.engine.shape() && m.rank() == fit.rank && m.n_components() == k;
        let whole = model.iter().all(fits) && best.iter().all(|b| fits(&b.0)) && meta.reseeds.len() <= k;
        let begun = model.is_some() != meta.history.log_likelihood.is_empty();
        let sound = meta.longest_guess >= 1.0;
        if !(whole && begun && sound && (best.is_some() || meta.restart == 0)) {
            return Err(Error::format(path, FORMAT, "its parts do not belong together"));
        }
        let mut paper = None;
        if tensors.has("paper.l") {
            let (shape, rank) = (fit.engine.shape(), &fit.rank);
            let stack = |name: &str, rows: usize, cols: usize| -> Result<Vec<Matrix>> {
                tensors.get(name, &[Some(k), Some(rows), Some(cols)])?;
                tensors.matrices(name, k)
            };
            if shape.len() != 2 {
                return Err(Error::format(path, FORMAT, "its parts do not belong together"));
            }
            paper = Some(Variational {
                l: stack("paper.l", shape[0], rank[0])?,
                r: stack("paper.r", shape[1], rank[1])?,
                s: stack("paper.s", rank[1], rank[1])?,
            });
        }
        let mut iterates = None;
        if let Some(model) = model.as_ref().filter(|_| tensors.has("iterates")) {
            let len = coordinates(model).len();
            let (_, both) = tensors.get("iterates", &[Some(2), Some(len)])?;
            iterates = Some([both[..len].to_vec(), both[len..].to_vec()]);
        }
        let accelerator = Accelerator::from_remembered((meta.longest_guess, iterates));
        let mut reseeds = meta.reseeds;
        reseeds.resize(k, 0);
        let (restart, history) = (meta.restart, meta.history);
        Ok(Some(State { restart, model, history, reseeds, paper, accelerator, best }))
    }

    /// Saves the running restart if enough iterations have passed.
    pub(super) fn save_if_due(&mut self, fit: &Loop<'_>, model: &Mixture) -> Result<()> {
        match &fit.options.checkpoint {
            Some(c) if self.history.n_iterations().is_multiple_of(c.every) => self.save_running(fit, model),
            _ => Ok(()),
        }
    }

    /// Saves the running restart as it is now.
    pub(super) fn save_running(&mut self, fit: &Loop<'_>, model: &Mixture) -> Result<()> {
        self.model = Some(model.clone());
        let saved = self.save(fit);
        self.model = None;
        saved
    }

    /// Saves the state as it is.
    pub(super) fn save(&self, fit: &Loop<'_>) -> Result<()> {
        let Some(checkpoint) = &fit.options.checkpoint else {
            return Ok(());
        };
        let (longest_guess, iterates) = self.accelerator.remembered();
        let meta = Meta {
            fit: identity(fit),
            restart: self.restart,
            history: self.history.clone(),
            reseeds: self.reseeds.clone(),
            longest_guess,
            best: self.best.as_ref().map(|(_, history, assigned)| (history.clone(), assigned.clone())),
        };
        let mut tensors = Tensors::new();
        tensors.set_metadata("matmix.checkpoint", serde_json::to_string(&meta).unwrap_or_default());
        if let Some(model) = &self.model {
            write_mixture(&mut tensors, "", model);
            if let Some(paper) = &self.paper {
                tensors.add_matrices("paper.l", &paper.l);
                tensors.add_matrices("paper.r", &paper.r);
                tensors.add_matrices("paper.s", &paper.s);
            }
            if let Some([earlier, last]) = iterates {
                let len = last.len();
                tensors.add("iterates".into(), vec![2, len], [earlier, last].concat());
            }
        }
        if let Some((model, ..)) = &self.best {
            write_mixture(&mut tensors, "best.", model);
        }
        tensors.write(&checkpoint.path)
    }
}

/// What makes two fits the same: the data (by size, shape and moments) and every option that changes the bits.
fn identity(fit: &Loop<'_>) -> serde_json::Value {
    let options = fit.options;
    let start = match &options.start {
        Start::KMeans => "kmeans".to_string(),
        Start::Random => "random".to_string(),
        Start::Model(model) => {
            let bits = model.weights().iter().chain(model.components().iter().flat_map(|c| c.mean()));
            format!("model {:016x}", bits.fold(0u64, |h, x| h.rotate_left(7) ^ x.to_bits()))
        }
    };
    serde_json::json!({
        "samples": fit.engine.len(),
        "shape": fit.engine.shape(),
        "weight": fit.engine.total_weight().to_bits(),
        "variance": fit.moments.variance.to_bits(),
        "components": options.components,
        "rank": fit.rank,
        "algorithm": format!("{:?}", options.algorithm),
        "accelerate": options.accelerate,
        "start": start,
        "seed": options.seed,
        "stop": format!("{:?}", options.stop),
        "tol": options.tol.to_bits(),
        "precision": format!("{:?}", options.precision),
        "noise_floor": options.noise_floor.to_bits(),
    })
}
