//! How models are fitted: the one loop and its steps, starts, stops, restarts and checkpoints.
//!
//! | file | what |
//! |---|---|
//! | `options` | what a user can choose |
//! | `steps` | what the loop asks of whatever it fits |
//! | `iterate` | the one loop, and its state |
//! | `mixture` | a mixture by exact EM |
//! | `updates` | how many passes an iteration is |
//! | `maximize` | the M-step: parameters from sums |
//! | `select` | how many components, of what rank |
//! | `detector` | the size of the default model for outliers |
//! | `start` | where a mixture begins |
//! | `by_class` | where it begins if labels of samples are known |
//! | `search` | a better place to begin, by splits and merges |
//! | `support` | components that the data do not support are removed |
//! | `accelerate` | guesses where iterations are heading |
//! | `paper` | the paper's algorithm, as printed |
//! | `low_rank`, `mode_scatter`, `few_samples` | orthonormal loadings without noise |
//! | `online` | a mixture batch by batch |
//! | `passes` | passes besides those of the loop |
//! | `checkpoint`, `identity` | the state of a long fit on disk, and what it is recognised by |
//! | `threads` | how many threads |

#[doc(hidden)]
pub mod accelerate;
mod by_class;
mod checkpoint;
mod detector;
mod few_samples;
mod identity;
mod iterate;
mod low_rank;
mod maximize;
mod mixture;
mod mode_scatter;
mod online;
mod options;
mod paper;
mod passes;
mod search;
mod select;
mod start;
mod steps;
mod support;
mod threads;
mod updates;

pub use detector::detector_size;
pub use iterate::{Finished, LoopOptions, Observer, Progress, iterate};
pub use low_rank::{LowRankFit, LowRankOptions, fit_low_rank, fit_low_rank_on};
pub use mixture::{Fit, fit, fit_on, fit_with};
pub use online::OnlineFit;
pub use options::{Algorithm, Checkpoint, Dof, FitOptions, Search, Start, StopRule};
pub use select::{SelectOptions, Selection, select, select_on};
pub use steps::{Evaluation, Extrapolation, Steps, Watch};
