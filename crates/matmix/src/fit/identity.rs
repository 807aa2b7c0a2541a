//! What a fit is recognised by: a digest of everything that decides its bits.

use hmac_sha256::Hash;

use super::options::{FitOptions, Start};
use crate::pass::{Engine, Task};

/// A SHA-256 over the samples (their number, shape, type, scale, classes and a digest of their content and weights) and every option that
/// decides the fit, a start model to its last bit included. What does not decide it (threads, where the state is kept, how many
/// restarts and iterations there may be) is left out, and so is what computes: a fit that a GPU has begun may be ended without one.
pub(super) fn identity(engine: &dyn Engine, options: &FitOptions, rank: &[usize], content: u128) -> String {
    let mut hash = Hash::new();
    let mut add = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    add(b"matmix fit 1");
    add(&(engine.len() as u64).to_le_bytes());
    engine.shape().iter().for_each(|side| add(&(*side as u64).to_le_bytes()));
    add(engine.element().name().as_bytes());
    add(&engine.scale().to_bits().to_le_bytes());
    add(&content.to_le_bytes());
    let decisive = FitOptions {
        rank: rank.to_vec(),
        missing: engine.missing(),
        threads: None,
        checkpoint: None,
        max_iter: 0,
        n_init: 0,
        ..options.clone()
    };
    add(&serde_json::to_vec(&decisive).unwrap_or_default());
    if let Some(classes) = engine.classes() {
        let number = |class: &Option<u32>| class.map_or(-1, i64::from).to_le_bytes();
        add(&classes.iter().flat_map(number).collect::<Vec<u8>>());
    }
    if let Start::Model(model) = &options.start {
        // As it travels: names, sizes and exact numbers.
        let pass = crate::pass::AskPass::one((**model).clone().into(), Default::default());
        add(&Task::from(pass).to_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
