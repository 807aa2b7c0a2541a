//! Components that data support, and the mixture of those alone.

use super::{Event, History, Mixture};

/// The least effective number of samples of a component: one or two samples sit at its mean, and are as likely as its noise is small.
const LEAST_SAMPLES: f64 = 3.0;

/// A mixture for scores of outliers, without components that data do not support.
///
/// ```
/// use matmix::{Component, Event, History, Matrix, Mixture};
///
/// let component = |mean: f64| Component::new(&[2], vec![mean; 2], vec![Matrix::identity(2, 1)], 0.5);
/// let model = Mixture::new(&[2], vec![0.9, 0.1], vec![component(0.0)?, component(9.0)?])?;
/// let history = History { events: vec![Event::NoiseAtFloor { component: 1 }], ..History::default() };
/// let supported = model.supported(&history);
/// assert_eq!((supported.model.weights(), &supported.unsupported[..]), (&[1.0][..], &[1][..]));
/// assert!(supported.in_words().unwrap().starts_with("component 1 has"));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Supported {
    /// The supported components with their weights scaled to a sum of 1; all of the components if none is supported.
    pub model: Mixture,
    /// The components of the whole model that are not supported, in order.
    pub unsupported: Vec<usize>,
    /// Whether those were left out: not if there are no others.
    pub is_reduced: bool,
}

impl Mixture {
    /// The mixture of the components that the data of its fit support: with noise above its floor and at least three samples.
    ///
    /// A component of one sample has its mean there and no variance, so that an outlier becomes the most likely sample.
    pub fn supported(&self, history: &History) -> Supported {
        let has_event = |k: usize| {
            history.events.iter().any(|event| {
                matches!(event, Event::NoiseAtFloor { component } | Event::Starved { component, .. } if *component == k)
            })
        };
        // A history without samples says nothing about their number. A component of weight 0 was removed and has no part in scores.
        let few = |k: usize| {
            let weight = self.weights()[k];
            history.samples > 0 && weight > 0.0 && weight * (history.samples as f64) < LEAST_SAMPLES
        };
        let (unsupported, supported): (Vec<usize>, Vec<usize>) =
            (0..self.n_components()).partition(|&k| has_event(k) || few(k));
        let total: f64 = supported.iter().map(|&k| self.weights()[k]).sum();
        let is_reduced = !unsupported.is_empty() && total > 0.0;
        let model = if is_reduced {
            let weights = supported.iter().map(|&k| self.weights()[k] / total).collect();
            self.with_components(weights, supported.iter().map(|&k| self.components()[k].clone()).collect())
        } else {
            self.clone()
        };
        Supported { model, unsupported, is_reduced }
    }
}

impl Supported {
    /// The warning for the user, unless all components are supported.
    pub fn in_words(&self) -> Option<String> {
        const NAMED: usize = 10;
        const WHY: &str = "noise at its floor or fewer than 3 samples";
        const ADVICE: &str = "fit fewer components or a smaller rank";
        let names: Vec<String> = self.unsupported.iter().take(NAMED).map(usize::to_string).collect();
        let more = self.unsupported.len() - names.len();
        let names = names.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() };
        match (self.unsupported.len(), self.is_reduced) {
            (0, _) => None,
            (_, false) => {
                Some(format!("every component has {WHY}; scores use all of them and may mislead: {ADVICE}"))
            }
            (1, true) => Some(format!("component {names} has {WHY} and is left out of the scores: {ADVICE}")),
            (_, true) => {
                Some(format!("components {names} have {WHY} and are left out of the scores: {ADVICE}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Matrix;
    use crate::model::Component;

    #[test]
    fn floored_starved_and_tiny_components_are_left_out_unless_all_are() {
        let component = Component::new(&[2], vec![0.0; 2], vec![Matrix::identity(2, 1)], 0.5).unwrap();
        let model = Mixture::new(&[2], vec![0.49, 0.3, 0.2, 0.01], vec![component; 4]).unwrap();
        let events = vec![Event::NoiseAtFloor { component: 1 }, Event::Starved { component: 2, weight: 2.0 }];
        let history = History { events, samples: 200, ..History::default() };
        let supported = model.supported(&history);
        assert_eq!((supported.model.weights(), &supported.unsupported[..]), (&[1.0][..], &[1, 2, 3][..]));
        let words = supported.in_words().unwrap();
        assert!(words.starts_with("components 1, 2, 3 have"), "{words}");
        let all = History { samples: 4, ..history };
        let supported = model.supported(&all);
        assert_eq!((&supported.model, supported.is_reduced), (&model, false));
        assert!(supported.in_words().unwrap().starts_with("every component"));
        let none = model.supported(&History::default());
        assert_eq!((&none.model, none.in_words()), (&model, None));
    }
}
