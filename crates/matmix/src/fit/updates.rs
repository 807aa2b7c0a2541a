//! An iteration of EM: how many passes it is, one that updates every mode or one per mode, and what follows from them.

use super::maximize::{Constraints, maximize};
use crate::error::Result;
use crate::model::Mixture;
use crate::pass::{Backend, EmSums, Update};
use crate::walk::samples_per_run;

/// The passes of one iteration of a model over so many samples: one that updates every mode, or one per mode, whichever costs less.
pub(super) fn updates(
    (shape, rank, components): (&[usize], &[usize], usize),
    samples: usize,
    backend: &dyn Backend,
) -> Vec<Update> {
    let per_run = if backend.adds_in_place() { usize::MAX } else { samples_per_run(samples) };
    let overhead = backend.overhead();
    if shape.len() == 1 || joint_pays_off(shape, rank, components, per_run, overhead) {
        vec![Update::All]
    } else {
        (0..shape.len()).map(Update::Mode).collect()
    }
}

/// One iteration: a pass for each of the updates, and the M-step of its sums.
pub(super) fn iteration(
    mut model: Mixture,
    updates: &[Update],
    constraints: impl Fn(&EmSums) -> Constraints,
    mut pass: impl FnMut(&Mixture, Update) -> Result<EmSums>,
) -> Result<Mixture> {
    for &update in updates {
        let sums = pass(&model, update)?;
        model = maximize(&model, &sums, &constraints(&sums));
    }
    Ok(model)
}

/// Bytes of sums beyond which a pass that updates every mode is not considered.
const JOINT_BYTES: usize = 256 << 20;

/// Bytes of sums that stay in a processor's cache, and the multiply-adds that a number of larger ones is worth where they are made: for every
/// run it is cleared, brought to double precision and added to those of other runs (measured: 2.5 to 5 ns with AVX-512).
const CACHED_BYTES: usize = 2 << 20;
const ADDING: usize = 100;

/// Whether one pass with the sums of all modes costs less than a pass per mode, in multiply-adds per sample: the sums of all modes
/// cost P ρ for each component that a sample really belongs to, one as a rule, and their size for every run.
fn joint_pays_off(
    shape: &[usize],
    rank: &[usize],
    components: usize,
    per_run: usize,
    overhead: usize,
) -> bool {
    let (size, core_len): (usize, usize) = (shape.iter().product(), rank.iter().product());
    let narrowest = rank.iter().copied().min().unwrap_or(1);
    let pass = components * size * narrowest + overhead * size;
    let bytes = EmSums::bytes(shape, rank, components, Update::All);
    let adding = if bytes <= CACHED_BYTES { 0 } else { ADDING * (bytes / size_of::<f64>()) / per_run.max(1) };
    let joint = size * core_len + adding;
    bytes <= JOINT_BYTES && pass + joint < shape.len() * pass
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Cpu;

    /// Sums of all modes are worth a pass where there are many samples for their size.
    #[test]
    fn one_pass_updates_every_mode_where_its_sums_cost_less_than_another_pass() {
        let passes = |side: usize, rank: usize, k: usize, samples: usize| {
            updates((&[side, side], &[rank, rank], k), samples, &Cpu::best()).len()
        };
        assert_eq!([1000, 10_000, 60_000].map(|n| passes(28, 4, 10, n)), [1, 1, 1]);
        assert_eq!([1000, 60_000].map(|n| passes(28, 4, 200, n)), [2, 1], "2.5 million numbers");
        assert_eq!([10_000, 2_000_000].map(|n| passes(64, 8, 16, n)), [2, 1], "four million numbers");
        assert_eq!(passes(28, 4, 1, 60_000), 1, "the sums cost less than another look at the samples");
        assert_eq!(passes(28, 8, 1, 60_000), 2, "the sums cost more than that");
        assert_eq!(passes(512, 16, 4, 500), 2);
    }
}
