//! How models are fitted: one EM loop, its starts, stops, restarts and checkpoints.

pub mod accelerate;
mod checkpoint;
mod em;
mod engine;
mod few_samples;
mod history;
mod low_rank;
mod maximize;
mod mode_scatter;
mod online;
mod options;
mod paper;
mod reseed;
mod start;

pub use checkpoint::Checkpoint;
pub use em::{Fit, Observer, Progress, fit, fit_on, fit_with};
pub use engine::Engine;
pub use history::{Event, History, StopReason};
pub use low_rank::{LowRankFit, LowRankOptions, fit_low_rank, fit_low_rank_on};
pub use online::OnlineFit;
pub use options::{Algorithm, FitOptions, Start, StopRule};
