//! What a model was chosen from, by what, and why: travels with the history of its fit.

use serde::{Deserialize, Serialize};

use crate::options::choices;

choices! {
    /// What a good model is good at.
    ///
    /// ```
    /// use matmix::{Criterion, FitOptions, Samples, SelectOptions, select};
    ///
    /// // Two groups of fifty.
    /// let numbers: Vec<f64> = (0..600).map(|i| f64::from((i * i * 37) % 101 + i / 300 * 500)).collect();
    /// let samples = Samples::from_vec(&[3, 2], numbers)?;
    /// let fit = FitOptions { rank: vec![1], ..FitOptions::default() };
    /// let criterion = Criterion::Bic;
    /// let selected = select(&samples, &SelectOptions { most_components: 3, criterion, fit, ..Default::default() })?;
    /// let least = selected.best().cost(criterion);
    /// assert!(selected.choice.candidates.iter().all(|candidate| candidate.cost(criterion) >= least));
    /// # Ok::<(), matmix::Error>(())
    /// ```
    pub enum Criterion {
        /// Explaining samples it has not seen: their mean log-likelihood.
        #[default]
        HeldOut = "held-out",
        /// Rebuilding samples it has not seen from as many values as a core has entries.
        Error = "error",
        /// −2 ln L + m ln N for m parameters.
        Bic = "bic",
        /// −2 ln L + 2m.
        Aic = "aic",
        /// BIC plus twice the entropy of the responsibilities: components that do not overlap.
        Icl = "icl",
    }
}

impl Criterion {
    /// Whether samples are held out for it.
    pub fn holds_out(self) -> bool {
        matches!(self, Self::HeldOut | Self::Error)
    }
}

choices! {
    /// What a model is for.
    ///
    /// ```
    /// use matmix::{Criterion, Purpose};
    ///
    /// assert_eq!("clustering".parse::<Purpose>()?.criterion(), Criterion::Icl);
    /// # Ok::<(), matmix::Error>(())
    /// ```
    pub enum Purpose {
        /// To tell how probable samples are.
        #[default]
        Density = "density",
        /// To keep samples in few values each.
        Compression = "compression",
        /// To tell samples apart into groups.
        Clustering = "clustering",
        /// To take noise out of samples.
        Denoising = "denoising",
    }
}

impl Purpose {
    /// The criterion that serves it.
    pub fn criterion(self) -> Criterion {
        match self {
            Self::Density | Self::Denoising => Criterion::HeldOut,
            Self::Compression => Criterion::Error,
            Self::Clustering => Criterion::Icl,
        }
    }
}

/// One number of components and ranks that was tried.
///
/// ```
/// use matmix::{Criterion, FitOptions, Samples, SelectOptions, select};
///
/// let numbers: Vec<f64> = (0..600).map(|i| f64::from((i * 37) % 101 + i / 300 * 500)).collect();
/// let samples = Samples::from_vec(&[3, 2], numbers)?;
/// let fit = FitOptions { rank: vec![1], ..FitOptions::default() };
/// let selected = select(&samples, &SelectOptions { most_components: 2, fit, ..Default::default() })?;
/// // Samples that were not seen are far better explained by two components.
/// let [one, two] = &selected.choice.candidates[..] else { panic!("one component and two") };
/// assert!(two.held_out > one.held_out && two.parameters > one.parameters);
/// assert_eq!(one.cost(Criterion::HeldOut), -one.held_out.unwrap());
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// K.
    pub components: usize,
    /// The shape of the cores.
    pub rank: Vec<usize>,
    /// The number of free parameters.
    pub parameters: usize,
    /// The mean log-likelihood per sample it was fitted to.
    pub log_likelihood: f64,
    /// The mean log-likelihood per sample held out, if samples were.
    pub held_out: Option<f64>,
    /// The standard error of the difference between this and the best candidate, on the samples held out, in what decides.
    pub standard_error: Option<f64>,
    /// e = √(Σ‖X − X̂‖²/N) of the samples it is judged by: those held out, if there are any.
    pub error: f64,
    /// The share of their variance that it explains: 1 − Σ‖X − X̂‖²/Σ‖X − M‖².
    pub explained: f64,
    /// −2 ln L + m ln N, if it was fitted to all samples.
    pub bic: Option<f64>,
    /// −2 ln L + 2m.
    pub aic: Option<f64>,
    /// BIC plus twice the entropy of the responsibilities.
    pub icl: Option<f64>,
}

impl Candidate {
    /// What the criterion says: less is better.
    pub fn cost(&self, criterion: Criterion) -> f64 {
        let value = match criterion {
            Criterion::HeldOut => self.held_out.map(|held_out| -held_out),
            Criterion::Error => Some(self.error),
            Criterion::Bic => self.bic,
            Criterion::Aic => self.aic,
            Criterion::Icl => self.icl,
        };
        value.unwrap_or(f64::NAN)
    }

    /// The same as people read it: a likelihood that rises with how good it is, or a cost.
    pub fn value(&self, criterion: Criterion) -> f64 {
        match criterion {
            Criterion::HeldOut => self.held_out.unwrap_or(f64::NAN),
            other => self.cost(other),
        }
    }

    /// Numbers that are kept of each sample: the entries of its core.
    pub fn values_kept(&self) -> usize {
        self.rank.iter().product()
    }
}

/// All candidates of a selection, and which of them was chosen, by what and why.
///
/// ```
/// use matmix::{FitOptions, Samples, SelectOptions, select};
///
/// let numbers: Vec<f64> = (0..600).map(|i| f64::from((i * 37) % 101 + i / 300 * 500)).collect();
/// let samples = Samples::from_vec(&[3, 2], numbers)?;
/// let fit = FitOptions { rank: vec![1], ..FitOptions::default() };
/// let selected = select(&samples, &SelectOptions { most_components: 2, fit, ..Default::default() })?;
/// let choice = &selected.choice;
/// assert_eq!(choice.candidates[choice.chosen].components, selected.fit.model.n_components());
/// // The model keeps what it was chosen from.
/// assert_eq!(selected.fit.history.choice.as_ref(), Some(choice));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Choice {
    /// All that were tried, by rank and then by number of components.
    pub candidates: Vec<Candidate>,
    /// Which of them was chosen.
    pub chosen: usize,
    /// What decided.
    pub criterion: Criterion,
    /// What the model is for, if that was said.
    pub purpose: Option<Purpose>,
    /// What the table says, in a sentence or two.
    pub advice: String,
    /// The chosen components with cores half as large again, where ranks were given: what more rank would gain. It was not up for choice.
    pub beyond: Option<Candidate>,
    /// The scree of each mode: the shares of the variance around the means of the chosen components that lie along a mode's
    /// directions, descending; their mean where components differ. None for a mode of more than 1,024 elements.
    pub scree: Vec<Vec<f64>>,
    /// Passes of the largest candidate over the samples that all candidates together cost, all folds included.
    pub passes: f64,
}

impl Choice {
    /// The candidate that was chosen; nothing if there is none.
    pub fn best(&self) -> Option<&Candidate> {
        self.candidates.get(self.chosen)
    }

    /// Where a candidate stands between the worst, 0, and the best, 1.
    pub fn standing(&self, candidate: &Candidate) -> f64 {
        let costs = self.candidates.iter().map(|c| c.cost(self.criterion)).filter(|c| c.is_finite());
        let (least, most) = costs.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), c| (a.min(c), b.max(c)));
        let standing = (most - candidate.cost(self.criterion)) / (most - least);
        if standing.is_finite() { standing.clamp(0.0, 1.0) } else { f64::from(u8::from(most == least)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_purpose_has_a_criterion_that_serves_it() {
        let criteria = Purpose::ALL.iter().map(|purpose| purpose.criterion().name());
        assert_eq!(criteria.collect::<Vec<_>>(), ["held-out", "error", "icl", "held-out"]);
    }

    #[test]
    fn candidates_stand_between_the_worst_and_the_best() {
        let candidate = |error| Candidate {
            components: 1,
            rank: vec![2, 3],
            parameters: 1,
            log_likelihood: 0.0,
            held_out: None,
            standard_error: None,
            error,
            explained: 0.5,
            bic: None,
            aic: None,
            icl: None,
        };
        let candidates = vec![candidate(3.0), candidate(1.0), candidate(2.5)];
        let choice = Choice { candidates, chosen: 1, criterion: Criterion::Error, ..Choice::default() };
        let standing: Vec<f64> = choice.candidates.iter().map(|c| choice.standing(c)).collect();
        assert_eq!(standing, [0.0, 1.0, 0.25]);
        assert_eq!(choice.best().map(|c| (c.error, c.values_kept())), Some((1.0, 6)));
        // One candidate alone is the best.
        let alone =
            Choice { candidates: vec![candidate(1.0)], criterion: Criterion::Error, ..Choice::default() };
        assert_eq!(alone.standing(&alone.candidates[0]), 1.0);
    }
}
