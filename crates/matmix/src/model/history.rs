//! What happened during a fit.

use serde::{Deserialize, Serialize};

/// Why a fit ended. None of them loses the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The change of an iteration was small enough.
    Converged,
    /// The last iteration allowed was still changing the model.
    MaxIterations,
    /// The callback asked to stop.
    Stopped,
}

impl StopReason {
    /// `converged`, `max_iterations` or `stopped`.
    pub fn name(self) -> &'static str {
        match self {
            StopReason::Converged => "converged",
            StopReason::MaxIterations => "max_iterations",
            StopReason::Stopped => "stopped",
        }
    }
}

/// Something a user should know about a fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A component that explained next to nothing was begun anew at a badly explained sample.
    Reseeded {
        /// After which iteration.
        iteration: usize,
        /// Which component.
        component: usize,
        /// The sample it was moved to.
        sample: usize,
    },
    /// At the end, a component has too few samples to determine its loadings; they were held.
    Starved {
        /// Which component.
        component: usize,
        /// N_k.
        weight: f64,
    },
    /// At the end, a component's noise variance is at its floor.
    NoiseAtFloor {
        /// Which component.
        component: usize,
    },
}

/// Log-likelihood and reconstruction error over the iterations; entry 0 is the start.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct History {
    /// The mean log-likelihood per sample of the model after t iterations.
    pub log_likelihood: Vec<f64>,
    /// e(t) of the model after t iterations.
    pub reconstruction_error: Vec<f64>,
    /// What a user should know.
    #[serde(default)]
    pub events: Vec<Event>,
    /// Why the fit ended; absent in a checkpoint.
    #[serde(default)]
    pub stop: Option<StopReason>,
    /// Which of the restarts this is, counted from 0.
    #[serde(default)]
    pub restart: usize,
    /// How long the fit took.
    #[serde(default)]
    pub seconds: f64,
}

impl History {
    /// The number of iterations.
    pub fn n_iterations(&self) -> usize {
        self.log_likelihood.len().saturating_sub(1)
    }

    pub(crate) fn push(&mut self, log_likelihood: f64, reconstruction_error: f64) {
        self.log_likelihood.push(log_likelihood);
        self.reconstruction_error.push(reconstruction_error);
    }
}
