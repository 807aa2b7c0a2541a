//! How the variance within a component is spread over the directions of each mode: is the rank enough?

use crate::data::Samples;
use crate::error::Result;
use crate::linalg::eigen_symmetric;
use crate::model::Mixture;
use crate::pass::{Engine, ScatterPass};

/// Longer modes are not decomposed: the page would wait for them, and nobody reads a thousand columns.
const LONGEST: usize = 256;

/// For every component and mode the shares of the variance around the component's mean along the mode's principal
/// directions, the largest first. Empty for modes that are too long, and for components without samples or variance.
///
/// `component[n]` is the most probable component of sample `n`.
pub(crate) fn spectra(
    model: &Mixture,
    samples: &Samples<'_>,
    component: &[usize],
) -> Result<Vec<Vec<Vec<f64>>>> {
    let modes: Vec<usize> = (0..model.shape().len()).filter(|&d| model.shape()[d] <= LONGEST).collect();
    let of_component = |k: usize| -> Result<Vec<Vec<f64>>> {
        let mut all = vec![vec![]; model.shape().len()];
        let own: Vec<usize> = (0..component.len()).filter(|&n| component[n] == k).collect();
        if own.is_empty() || modes.is_empty() {
            return Ok(all);
        }
        let mean = model.components()[k].mean().to_vec();
        let pass = ScatterPass { mean, loadings: vec![None; all.len()], modes: modes.clone() };
        let own = samples.clone().select(&own)?;
        let engine: &dyn Engine = &own;
        for (&d, scatter) in modes.iter().zip(&engine.sums(&pass)?.scatters) {
            // A scatter is positive but for rounding.
            let values: Vec<f64> = eigen_symmetric(scatter)
                .map(|eigen| eigen.values.into_iter().map(|v| v.max(0.0)).collect())
                .unwrap_or_default();
            let total: f64 = values.iter().sum();
            if total > 0.0 {
                all[d] = values.iter().map(|v| v / total).collect();
            }
        }
        Ok(all)
    };
    (0..model.n_components()).map(of_component).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Matrix;
    use crate::model::Component;

    /// Samples of one component that move along one direction of the first mode and two of the second.
    #[test]
    fn the_directions_that_move_are_counted() {
        let mean = vec![1.0; 12];
        let loadings = vec![Matrix::from_fn(3, 1, |_, _| 1.0), Matrix::from_fn(4, 1, |_, _| 1.0)];
        let component = |mean| Component::new(&[3, 4], mean, loadings.clone(), 0.1).unwrap();
        let model =
            Mixture::new(&[3, 4], vec![0.5, 0.5], vec![component(mean), component(vec![9.0; 12])]).unwrap();
        let values: Vec<f64> = (0..8)
            .flat_map(|n| {
                let (a, b) = ([3.0, -3.0][n % 2], [1.0, -1.0][n / 2 % 2]);
                (0..12).map(move |i| 1.0 + if i / 4 == 1 { [a, b, 0.0, 0.0][i % 4] } else { 0.0 })
            })
            .collect();
        let samples = Samples::from_vec(&[3, 4], values).unwrap();
        let found = spectra(&model, &samples, &[0; 8]).unwrap();
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(close(&found[0][0], &[1.0, 0.0, 0.0]), "{found:?}");
        assert!(close(&found[0][1], &[0.9, 0.1, 0.0, 0.0]), "{found:?}");
        assert!(found[1].iter().all(Vec::is_empty));
    }
}
