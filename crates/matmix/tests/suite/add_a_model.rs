//! What it takes to add a model: steps for the one loop, and a pass. Here it is k-means, whose pass is there already; restarts,
//! stopping, progress and samples that are anywhere come with the loop.

use std::ops::ControlFlow;

use matmix::fit::{Evaluation, LoopOptions, Steps, Watch, iterate};
use matmix::pass::{GroupSums, GroupsPass, Stage};
use matmix::{Engine, History, Result, Samples, StopReason, StopRule};

struct KMeans<'a> {
    samples: &'a dyn Engine,
    k: usize,
}

impl Steps for KMeans<'_> {
    type Model = Vec<Vec<f64>>;
    type Sums = GroupSums;

    fn start(&mut self, restart: usize, _: &mut History, _: &mut Watch<'_>) -> Result<Vec<Vec<f64>>> {
        let n = self.samples.len();
        let drawn = self.samples.fetch((0..self.k).map(|k| (k * n / self.k + 7 * restart) % n).collect())?;
        let size = drawn.sample_len();
        Ok(drawn.to_f64(0..drawn.len())?.chunks_exact(size).map(<[f64]>::to_vec).collect())
    }

    fn evaluate(&mut self, centres: &Vec<Vec<f64>>, _: Stage) -> Result<Evaluation<GroupSums>> {
        let sums =
            self.samples.sums(&GroupsPass { centres: centres.clone(), reference: centres[0].clone() })?;
        let squares: f64 = sums.groups.iter().map(|group| group.squared_distance).sum();
        Ok(Evaluation {
            log_likelihood: f64::NAN,
            sampling_error: 0.0,
            reconstruction_error: (squares / self.samples.total_weight()).sqrt(),
            assigned: sums.groups.iter().map(|group| group.weight as u64).collect(),
            sums,
        })
    }

    fn update(&mut self, centres: &Vec<Vec<f64>>, sums: GroupSums, _: Stage) -> Result<Vec<Vec<f64>>> {
        let moved = centres.iter().zip(&sums.groups).map(|(centre, group)| {
            let weight = group.weight.max(1.0);
            centre.iter().zip(&group.shift).map(|(c, shift)| c + shift / weight).collect()
        });
        Ok(moved.collect())
    }
}

#[test]
fn a_model_of_a_few_lines_runs_in_the_one_loop() {
    // Three groups of 40 around (0, 0), (10, 0) and (0, 10), each with a mean of exactly that.
    let centres = [[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]];
    let numbers: Vec<f64> = (0..120)
        .flat_map(|i| {
            let (centre, turn) = (centres[i / 40], (i % 40) as f64 * std::f64::consts::TAU / 40.0);
            [centre[0] + turn.cos(), centre[1] + turn.sin()]
        })
        .collect();
    let samples = Samples::from_vec(&[2], numbers).unwrap();
    let options = LoopOptions {
        n_init: 2,
        max_iter: 20,
        tol: 1e-12,
        stop: StopRule::ReconstructionError,
        accelerate: false,
        checkpoint: None,
    };
    let mut seen = 0;
    let fitted = iterate(&mut KMeans { samples: &samples, k: 3 }, &options, &mut |_| {
        seen += 1;
        ControlFlow::Continue(())
    })
    .unwrap();
    for (found, expected) in fitted.model.iter().zip(&centres) {
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
    }
    assert_eq!(fitted.assigned, [40; 3]);
    assert_eq!(fitted.history.stop, Some(StopReason::Converged));
    assert!((fitted.history.reconstruction_error.last().unwrap() - 1.0).abs() < 1e-12);
    assert!(seen >= 4);
}
