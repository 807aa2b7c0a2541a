//! Who reads: walking over the samples of a set, in parallel and in a fixed order.
//!
//! A set is cut into chunks of a fixed size and these into runs: a run is walked through by one thread, chunk after
//! chunk, and gives one sum. The sums of runs are added in the order of the runs, those of parts (files, say) along one tree. Where the
//! cuts are depends on the shape of the samples, the sizes of the parts and what is summed up alone: the same bits on any number of threads.
//!
//! | file | what |
//! |---|---|
//! | [`cuts`] | where a set is cut |
//! | [`runs`] | runs in parallel, their results in order |
//! | [`read_ahead`] | loading chunks of samples that are not in memory while others are worked on |
//! | [`stage`] | a part of the samples that every engine agrees on |
//! | [`tree`] | the one order in which the sums of parts are added |

mod cuts;
mod read_ahead;
mod runs;
mod stage;
pub(crate) mod tree;

pub(crate) use cuts::{RUN_LEAST, RUN_OF_LARGE_SUMS, samples_per_run};
pub(crate) use runs::{Job, fold, sum};
pub use stage::Stage;
