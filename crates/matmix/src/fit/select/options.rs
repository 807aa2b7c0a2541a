//! What a user can choose about a selection.

use serde::{Deserialize, Serialize};

use super::super::options::{Algorithm, Checkpoint, FitOptions, Start};
use super::scree::LONGEST;
use crate::error::{Error, Result, sides};
use crate::model::{Criterion, Purpose, ranks_for};
use crate::pass::Engine;

/// The options of a selection. `..SelectOptions::default()` fills in the rest.
///
/// ```
/// use matmix::{FitOptions, Samples, SelectOptions, select};
///
/// let numbers: Vec<f64> = (0..600).map(|i| f64::from((i * 37) % 101 + i / 300 * 500)).collect();
/// let samples = Samples::from_vec(&[3, 2], numbers)?;
/// let fit = FitOptions { rank: vec![1], ..FitOptions::default() };
/// let options = SelectOptions { least_components: 2, most_components: 4, folds: 1, fit, ..Default::default() };
/// let selected = select(&samples, &options)?;
/// let tried: Vec<usize> = selected.choice.candidates.iter().map(|c| c.components).collect();
/// assert_eq!(tried, [2, 3, 4]);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SelectOptions {
    /// The fewest components that are tried.
    pub least_components: usize,
    /// The most.
    pub most_components: usize,
    /// Whether ranks are chosen, too: from those of `fit` on, a mode at a time.
    pub choose_rank: bool,
    /// The largest ranks that are tried where they are chosen: one number for all modes or one per mode. Empty means the sides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub most_rank: Vec<usize>,
    /// What decides, unless a purpose does.
    pub criterion: Criterion,
    /// What the model is for: the criterion that serves it decides.
    pub purpose: Option<Purpose>,
    /// How many values may be kept of each sample where ranks are chosen by the error; as many as a core of the ranks of `fit` has if
    /// nothing is said.
    pub keep: Option<usize>,
    /// The share of the variance that the ranks have to explain: the smallest such cores are taken instead of the ranks of `fit`, and K is
    /// chosen by the criterion.
    pub explain: Option<f64>,
    /// In how many parts the samples are held out, one after the other; 1 holds out a fifth, once.
    pub folds: usize,
    /// Whether the model with the fewest parameters is chosen of those that are worse than the best held out by less than the standard
    /// error of the difference.
    pub one_standard_error: bool,
    /// How the chosen model is fitted; its ranks are those of every candidate, or those to begin with.
    pub fit: FitOptions,
}

impl Default for SelectOptions {
    fn default() -> Self {
        Self {
            least_components: 1,
            most_components: 10,
            choose_rank: false,
            most_rank: vec![],
            criterion: Criterion::default(),
            purpose: None,
            keep: None,
            explain: None,
            folds: 3,
            one_standard_error: true,
            fit: FitOptions::default(),
        }
    }
}

impl SelectOptions {
    /// What decides.
    pub fn criterion(&self) -> Criterion {
        self.purpose.map_or(self.criterion, Purpose::criterion)
    }

    /// Whether a simpler candidate than the best may be chosen.
    pub(super) fn is_cautious(&self) -> bool {
        self.one_standard_error && self.criterion().holds_out()
    }

    /// Whether ranks are not those given.
    pub(super) fn chooses_rank(&self) -> bool {
        self.choose_rank || self.explain.is_some()
    }

    /// The largest rank of every mode.
    pub(super) fn most_rank(&self, shape: &[usize]) -> Result<Vec<usize>> {
        if self.most_rank.is_empty() {
            return Ok(shape.to_vec());
        }
        ranks_for(shape, &self.most_rank)
    }

    /// The most entries a core may have: more of them always lessen the error.
    pub(super) fn values_kept(&self, shape: &[usize]) -> Result<Option<usize>> {
        if self.criterion() != Criterion::Error {
            return Ok(None);
        }
        Ok(Some(match self.keep {
            Some(keep) => keep,
            None => self.fit.rank_for(shape)?.iter().product(),
        }))
    }

    pub(super) fn validate(&self, engine: &dyn Engine) -> Result<()> {
        let wrong = |option, value: String, expected| Err(Error::Option { option, value, expected });
        let SelectOptions { least_components: least, most_components: most, .. } = *self;
        if least == 0 || least > most {
            let value = format!("{least}..{most}");
            return Err(Error::Components { value, expected: "a range from at least 1 up" });
        }
        let fit = FitOptions { components: least, ..self.fit.clone() };
        if !matches!(fit.start, Start::KMeans) {
            let value = format!("`{}`", fit.start);
            return Err(Error::Start { value, expected: "`kmeans`: a selection finds its own starts" });
        }
        if fit.algorithm != Algorithm::Exact {
            return wrong("algorithm", format!("`{}`", fit.algorithm), "`exact` for a selection");
        }
        if !fit.classes.is_empty() {
            let names = format!("{} names", fit.classes.len());
            return wrong("classes", names, "empty: a selection knows no labels");
        }
        if let Some(Checkpoint { path, .. }) = &fit.checkpoint {
            return wrong("checkpoint", path.display().to_string(), "left out of a selection");
        }
        fit.validate(engine)?;
        let holds_out = self.criterion().holds_out();
        if holds_out && (self.folds == 0 || 2 * self.folds > engine.n_effective()) {
            let value = format!("{} for {} samples", self.folds, engine.n_effective());
            return wrong("folds", value, "at least 1, and at most half as many as samples");
        }
        self.validate_ranks(engine.shape())
    }

    fn validate_ranks(&self, shape: &[usize]) -> Result<()> {
        let wrong = |option, value: String, expected| Err(Error::Option { option, value, expected });
        if !self.most_rank.is_empty() && !self.choose_rank {
            return wrong("most_rank", sides(&self.most_rank), "left out unless ranks are chosen");
        }
        let most = self.most_rank(shape)?;
        if !self.fit.rank.is_empty() && self.fit.rank_for(shape)?.iter().zip(&most).any(|(r, most)| r > most)
        {
            return wrong("most_rank", sides(&most), "at least the ranks to begin with");
        }
        if let Some(keep) = self.keep {
            if self.criterion() != Criterion::Error || !self.choose_rank {
                let expected = "left out unless ranks are chosen for compression, by the error";
                return wrong("keep", keep.to_string(), expected);
            }
            if keep == 0 {
                return wrong("keep", "0".into(), "at least 1");
            }
        }
        if let Some(share) = self.explain {
            if !(share > 0.0 && share < 1.0) {
                return wrong("explain", share.to_string(), "a share between 0 and 1, such as 0.9");
            }
            if shape.iter().any(|&side| side > LONGEST) {
                let expected = "left out where a mode has more than 1,024 elements";
                return wrong("explain", share.to_string(), expected);
            }
            if self.choose_rank {
                let expected = "left out where ranks are chosen by a criterion: it chooses them, too";
                return wrong("explain", share.to_string(), expected);
            }
        }
        Ok(())
    }
}
