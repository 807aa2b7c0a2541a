//! The state of a long fit, on disk, so that a kill costs no more than a few iterations.
//!
//! A resumed fit has the same bits as one that was never interrupted: the file holds the parameters exactly, and the
//! earlier iterates a guess is made from; everything else a fit knows follows from them.

use serde::{Deserialize, Serialize};

use super::accelerate::Accelerator;
use super::iterate::{Finished, State};
use super::options::Checkpoint;
use super::steps::Steps;
use crate::data::Tensors;
use crate::error::{Error, FileKind, Result};
use crate::model::History;
use crate::walk::Stage;

/// What an error calls such a file.
pub(crate) const FORMAT: FileKind = FileKind::Checkpoint;

/// Whoever keeps the state of a fit.
pub(super) struct Keeper<'a> {
    pub(super) checkpoint: &'a Checkpoint,
    /// What the fit is recognised by: a digest of its samples and of every option that decides its bits.
    pub(super) identity: &'a str,
}

/// What was kept.
pub(super) struct Kept<M> {
    pub(super) state: State<M>,
    /// How many iterations were allowed.
    pub(super) max_iter: usize,
}

/// The part of a checkpoint that is not tensors.
#[derive(Serialize, Deserialize)]
struct Meta {
    fit: String,
    max_iter: usize,
    restart: usize,
    halvings: u8,
    history: History,
    longest_guess: f64,
    best: Option<(History, Vec<u64>)>,
}

impl Keeper<'_> {
    /// The state in the file, if there is one to go on from.
    pub(super) fn load<S: Steps>(&self, steps: &mut S) -> Result<Option<Kept<S::Model>>> {
        let path = &self.checkpoint.path;
        if !(self.checkpoint.resume && path.exists()) {
            return Ok(None);
        }
        let tensors = Tensors::read(path, FORMAT)?;
        let wrong = |problem: &str| Err(Error::format(path, FORMAT, problem));
        let meta = tensors.metadata("matmix.checkpoint").and_then(|text| serde_json::from_str(text).ok());
        let Some(meta): Option<Meta> = meta else {
            return wrong("it holds no state of a fit; is it a model file?");
        };
        if meta.fit != self.identity {
            return Err(Error::OtherFit { path: path.clone() });
        }
        let model = steps.read("", &tensors)?;
        let best = match (steps.read("best.", &tensors)?, meta.best) {
            (Some(model), Some((history, assigned))) => Some(Finished { model, history, assigned }),
            _ => None,
        };
        let begun = model.is_some() == meta.history.has_begun();
        if !(begun && meta.longest_guess >= 1.0 && (best.is_some() || meta.restart == 0)) {
            return wrong("its parts do not belong together");
        }
        let mut iterates = None;
        if let Some((model, space)) =
            model.as_ref().zip(steps.extrapolation()).filter(|_| tensors.has("iterates"))
        {
            let len = space.coordinates(model).len();
            let (_, both) = tensors.get("iterates", &[Some(2), Some(len)])?;
            iterates = Some([both[..len].to_vec(), both[len..].to_vec()]);
        }
        let state = State {
            restart: meta.restart,
            model,
            history: meta.history,
            stage: Stage::new(meta.halvings),
            accelerator: Accelerator::from_remembered((meta.longest_guess, iterates)),
            best,
        };
        Ok(Some(Kept { state, max_iter: meta.max_iter }))
    }

    /// Keeps the state, and the model of a restart that is running.
    pub(super) fn save<S: Steps>(
        &self,
        steps: &S,
        state: &State<S::Model>,
        running: Option<&S::Model>,
        max_iter: usize,
    ) -> Result<()> {
        let (longest_guess, iterates) = state.accelerator.remembered();
        let best = state.best.as_ref();
        let meta = Meta {
            fit: self.identity.into(),
            max_iter,
            restart: state.restart,
            halvings: state.stage.halvings(),
            history: state.history.clone(),
            longest_guess,
            best: best.map(|best| (best.history.clone(), best.assigned.clone())),
        };
        let mut tensors = Tensors::new();
        tensors.set_metadata("matmix.checkpoint", serde_json::to_string(&meta).unwrap_or_default());
        if let Some(model) = running {
            steps.write(model, "", &mut tensors);
            if let Some([earlier, last]) = iterates {
                let len = last.len();
                tensors.add("iterates".into(), vec![2, len], [earlier, last].concat());
            }
        }
        if let Some(best) = best {
            steps.write(&best.model, "best.", &mut tensors);
        }
        tensors.write(&self.checkpoint.path)
    }
}
