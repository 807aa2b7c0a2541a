//! `LowRank` against textbook PCA, GLRAM and 2DPCA written out with dense matrices.

use crate::planted::{assert_close, drawn, normals, numbers, random_mixture};
use matmix::linalg::{eigen_symmetric, expand, project};
use matmix::{
    FitOptions, LowRank, LowRankFit, LowRankOptions, Matrix, Model, Preset, Samples, StopReason, fit_low_rank,
};
use std::ops::ControlFlow;

fn options(rank: &[usize], centred: bool) -> LowRankOptions {
    LowRankOptions { rank: rank.to_vec(), centred, max_iter: 60, tol: 0.0, ..LowRankOptions::default() }
}

fn matrices(samples: &Samples<'_>) -> Vec<Matrix> {
    let (p, q) = (samples.shape()[0], samples.shape()[1]);
    numbers(samples).chunks_exact(p * q).map(|x| Matrix::from_vec(p, q, x.to_vec())).collect()
}

fn weights(samples: &Samples<'_>) -> Vec<f64> {
    (0..samples.len()).map(|n| samples.weight(n)).collect()
}

fn mean(samples: &Samples<'_>) -> Vec<f64> {
    let mut mean = vec![0.0; samples.sample_len()];
    for (x, w) in numbers(samples).chunks_exact(samples.sample_len()).zip(weights(samples)) {
        mean.iter_mut().zip(x).for_each(|(m, x)| *m += w * x / samples.total_weight());
    }
    mean
}

/// sqrt(Σ w ‖X − X̂‖²/Σ w), from the reconstructions and nothing else.
fn error(samples: &Samples<'_>, rebuilt: &[f64]) -> f64 {
    let size = samples.sample_len();
    let mut sum = 0.0;
    for ((x, y), w) in
        numbers(samples).chunks_exact(size).zip(rebuilt.chunks_exact(size)).zip(weights(samples))
    {
        sum += w * x.iter().zip(y).map(|(x, y)| (x - y) * (x - y)).sum::<f64>();
    }
    (sum / samples.total_weight()).sqrt()
}

fn leading(a: &Matrix, count: usize) -> Matrix {
    eigen_symmetric(a).unwrap().vectors.first_cols(count)
}

#[track_caller]
fn assert_orthonormal(model: &LowRank) {
    for u in model.loadings() {
        let gram = u.transpose_times(u);
        assert_close(gram.as_slice(), Matrix::identity(u.cols(), u.cols()).as_slice(), 1e-10, "UᵀU = I");
    }
}

fn last(fit: &LowRankFit) -> f64 {
    *fit.reconstruction_error.last().unwrap()
}

#[test]
fn pca_is_the_dense_eigen_decomposition() {
    // More samples than elements, fewer, as many, and all of them with weights.
    for (n, p, weighted) in [(60, 7, false), (5, 9, false), (8, 8, false), (60, 7, true), (6, 11, true)] {
        let samples = Samples::from_vec(&[p], normals(n as u64, n * p)).unwrap();
        let samples = match weighted {
            true => samples.with_weights((0..n).map(|i| 0.3 + (i % 4) as f64).collect()).unwrap(),
            false => samples,
        };
        let mean = mean(&samples);
        let mut covariance = Matrix::zeros(p, p);
        for (x, w) in numbers(&samples).chunks_exact(p).zip(weights(&samples)) {
            let d = Matrix::from_fn(p, 1, |i, _| x[i] - mean[i]);
            covariance.add_scaled(w / samples.total_weight(), &d.times_transpose(&d));
        }
        let eigen = eigen_symmetric(&covariance).unwrap();
        let rank = 3;
        let fit = fit_low_rank(&samples, &options(&[rank], true)).unwrap();
        let model = &fit.model;
        assert_eq!(fit.stop, StopReason::Converged);
        assert_orthonormal(model);
        assert_close(model.mean(), &mean, 1e-12, "mean");
        assert_close(&model.explained_variance()[0], &eigen.values[..rank], 1e-10, "variances");
        assert!((model.total_variance() - covariance.trace()).abs() < 1e-10);
        for j in 0..rank {
            let along: f64 = (0..p).map(|i| model.loadings()[0][(i, j)] * eigen.vectors[(i, j)]).sum();
            assert!((along.abs() - 1.0).abs() < 1e-8, "axis {j}: {along}");
        }
        let lost: f64 = eigen.values[rank..].iter().sum::<f64>().max(0.0).sqrt();
        let rebuilt = model.reconstruct(&samples).unwrap();
        assert_close(&[last(&fit), error(&samples, &rebuilt)], &[lost, lost], 1e-7, "error");
        let ratios: f64 = model.explained_variance_ratio()[0].iter().sum();
        assert!((ratios - eigen.values[..rank].iter().sum::<f64>() / covariance.trace()).abs() < 1e-10);
    }
}

/// GLRAM with dense matrices: L from Σ X R Rᵀ Xᵀ, R from Σ Xᵀ L Lᵀ X, in turn.
fn glram(samples: &[Matrix], ranks: (usize, usize), iterations: usize) -> Vec<f64> {
    let (p, q) = (samples[0].rows(), samples[0].cols());
    let mut whole = Matrix::zeros(q, q);
    samples.iter().for_each(|x| whole.add_scaled(1.0, &x.transpose_times(x)));
    let mut r = leading(&whole, ranks.1);
    let mut errors = Vec::new();
    for _ in 0..iterations {
        let mut rows = Matrix::zeros(p, p);
        for x in samples {
            let xr = x.times(&r);
            rows.add_scaled(1.0, &xr.times_transpose(&xr));
        }
        let l = leading(&rows, ranks.0);
        let mut columns = Matrix::zeros(q, q);
        for x in samples {
            let lx = l.transpose_times(x);
            columns.add_scaled(1.0, &lx.transpose_times(&lx));
        }
        r = leading(&columns, ranks.1);
        let mut sum = 0.0;
        for x in samples {
            let mut rest = l.times(&l.transpose_times(x)).times(&r).times_transpose(&r);
            rest.add_scaled(-1.0, x);
            sum += rest.inner(&rest);
        }
        errors.push((sum / samples.len() as f64).sqrt());
    }
    errors
}

#[test]
fn glram_is_the_alternation_written_out() {
    for (shape, rank) in [([6, 5], [2, 3]), ([4, 9], [1, 1]), ([7, 7], [6, 2])] {
        let samples = drawn(&random_mixture(1, &shape, &[2, 2], 2), 40, 2);
        let fit = fit_low_rank(&samples, &LowRankOptions { max_iter: 12, ..options(&rank, false) }).unwrap();
        let expected = glram(&matrices(&samples), (rank[0], rank[1]), 12);
        let found = &fit.reconstruction_error;
        assert_close(found, &expected[..found.len()], 1e-8, "error after each alternation");
        assert_close(&[last(&fit)], &expected[11..], 1e-6, "error at the end");
        assert_orthonormal(&fit.model);
        assert!(fit.model.mean().iter().all(|&m| m == 0.0), "Ye's GLRAM is not centred");
        let rebuilt = fit.model.reconstruct(&samples).unwrap();
        assert_close(
            &[error(&samples, &rebuilt)],
            &[last(&fit)],
            1e-9,
            "the error is that of the reconstruction",
        );

        // Centred, it is the same alternation on the centred samples.
        let centre = mean(&samples);
        let centred: Vec<f64> =
            numbers(&samples).iter().enumerate().map(|(i, x)| x - centre[i % centre.len()]).collect();
        let centred = Samples::from_vec(&shape, centred).unwrap();
        let fit = fit_low_rank(&samples, &LowRankOptions { max_iter: 12, ..options(&rank, true) }).unwrap();
        let expected = glram(&matrices(&centred), (rank[0], rank[1]), 12);
        let found = &fit.reconstruction_error;
        assert_close(found, &expected[..found.len()], 1e-8, "centred");
    }
}

#[test]
fn the_error_never_increases() {
    for (shape, rank) in [
        (vec![6, 5], vec![2, 2]),
        (vec![4, 3, 5], vec![2, 1, 3]),
        (vec![4, 3, 5], vec![2, 3, 2]),
        (vec![3, 4, 2, 3], vec![1, 2, 1, 2]),
    ] {
        for seed in 0..4 {
            let size: usize = shape.iter().product();
            let samples = Samples::from_vec(&shape, normals(seed, 30 * size)).unwrap();
            for centred in [true, false] {
                let fit = fit_low_rank(&samples, &options(&rank, centred)).unwrap();
                let errors = &fit.reconstruction_error;
                assert!(errors.windows(2).all(|e| e[1] <= e[0] * (1.0 + 1e-12)), "{errors:?}");
                let rebuilt = fit.model.reconstruct(&samples).unwrap();
                assert_close(&[error(&samples, &rebuilt)], &[last(&fit)], 1e-9, "error");
                assert_close(
                    &[fit.model.reconstruction_error(&samples).unwrap()],
                    &[last(&fit)],
                    1e-9,
                    "error",
                );
                assert_orthonormal(&fit.model);
            }
        }
    }
}

#[test]
fn one_reduced_mode_is_exact_in_one_step() {
    let samples = drawn(&random_mixture(3, &[5, 6], &[2, 2], 2), 50, 4);
    let fit = fit_low_rank(&samples, &options(&[5, 2], true)).unwrap();
    assert_eq!((fit.reconstruction_error.len(), fit.stop), (1, StopReason::Converged));
    assert_eq!(fit.model.loadings()[0], Matrix::identity(5, 5));
    // 2DPCA: the eigenvectors of Σ (X − M)ᵀ(X − M).
    let m = Matrix::from_vec(5, 6, mean(&samples));
    let mut scatter = Matrix::zeros(6, 6);
    for mut x in matrices(&samples) {
        x.add_scaled(-1.0, &m);
        scatter.add_scaled(1.0 / 50.0, &x.transpose_times(&x));
    }
    let eigen = eigen_symmetric(&scatter).unwrap();
    assert_close(&fit.model.explained_variance()[1], &eigen.values[..2], 1e-10, "variances");
    let lost = eigen.values[2..].iter().sum::<f64>().sqrt();
    assert_close(&[last(&fit)], &[lost], 1e-10, "error");
    // The preset is that.
    let asked = FitOptions { rank: vec![3, 2], ..FitOptions::default() };
    let preset = Preset::TwoDPca.fit(&samples, &asked, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(preset.model, Model::LowRank(fit.model));
}

#[test]
fn ranks_equal_to_the_shape_lose_nothing() {
    for shape in [vec![5], vec![4, 3], vec![2, 3, 4], vec![2, 2, 3, 2]] {
        let size: usize = shape.iter().product();
        let samples = Samples::from_vec(&shape, normals(5, 20 * size)).unwrap();
        for centred in [true, false] {
            let fit = fit_low_rank(&samples, &options(&shape, centred)).unwrap();
            assert_eq!(fit.reconstruction_error, [0.0]);
            let rebuilt = fit.model.reconstruct(&samples).unwrap();
            assert_close(&rebuilt, &numbers(&samples), 1e-12, "the samples themselves");
            let cores = fit.model.transform(&samples).unwrap();
            assert_close(
                &fit.model.inverse_transform(&cores).unwrap(),
                &numbers(&samples),
                1e-12,
                "and back",
            );
            for mode in fit.model.explained_variance() {
                assert_close(
                    &[mode.iter().sum()],
                    &[fit.model.total_variance()],
                    1e-10,
                    "all of the variance",
                );
            }
        }
    }
}

#[test]
fn what_is_explained_and_what_is_lost_add_up() {
    for (shape, rank) in [(vec![7], vec![3]), (vec![6, 5], vec![2, 3]), (vec![4, 3, 5], vec![2, 2, 2])] {
        let size: usize = shape.iter().product();
        let samples = Samples::from_vec(&shape, normals(6, 40 * size)).unwrap();
        for centred in [true, false] {
            let fit = fit_low_rank(&samples, &options(&rank, centred)).unwrap();
            let model = &fit.model;
            // Of orthonormal loadings: ‖X − M‖² = ‖B‖² + ‖X − X̂‖².
            let cores = model.transform(&samples).unwrap();
            let kept = cores.iter().map(|b| b * b).sum::<f64>() / 40.0;
            assert_close(&[kept + last(&fit).powi(2)], &[model.total_variance()], 1e-10, "total");
            // The mode that was last updated saw the final loadings of all others.
            let explained: f64 = model.explained_variance().last().unwrap().iter().sum();
            assert_close(&[explained], &[kept], 1e-10, "explained");
            for (mode, ratios) in model.explained_variance().iter().zip(model.explained_variance_ratio()) {
                assert!(mode.is_sorted_by(|a, b| a >= b) && mode.iter().all(|&v| v >= 0.0));
                assert!(ratios.iter().sum::<f64>() <= 1.0 + 1e-12);
            }
            assert_eq!(model.rank(), rank);
        }
    }
}

/// The transform is (X − M) ×_d V^(d)ᵀ and its inverse B ×_d V^(d) + M, for any order.
#[test]
fn cores_are_mode_products() {
    let samples = Samples::from_vec(&[3, 4, 2], normals(7, 25 * 24)).unwrap();
    let model = fit_low_rank(&samples, &options(&[2, 3, 1], true)).unwrap().model;
    let cores = model.transform(&samples).unwrap();
    for (x, core) in numbers(&samples).chunks_exact(24).zip(cores.chunks_exact(6)) {
        let centred: Vec<f64> = x.iter().zip(model.mean()).map(|(x, m)| x - m).collect();
        assert_close(core, &project(&centred, &[3, 4, 2], model.loadings(), None), 1e-12, "core");
        let mut back = expand(core, model.loadings());
        back.iter_mut().zip(model.mean()).for_each(|(x, m)| *x += m);
        assert_close(&model.reconstruct_core(core), &back, 1e-12, "back");
    }
}

#[test]
fn an_uncentred_fit_spends_a_direction_on_the_mean() {
    let x: Vec<f64> = normals(8, 100 * 6)
        .iter()
        .enumerate()
        .map(|(i, x)| x + if i % 6 == 2 { 50.0 } else { 0.0 })
        .collect();
    let samples = Samples::from_vec(&[6], x).unwrap();
    let raw = fit_low_rank(&samples, &options(&[1], false)).unwrap().model;
    assert!(raw.loadings()[0][(2, 0)] > 0.999, "the mean itself, with its largest entry positive");
    let centred = fit_low_rank(&samples, &options(&[1], true)).unwrap().model;
    assert!(centred.total_variance() < 8.0 && raw.total_variance() > 2400.0);
}

#[test]
fn degenerate_data_is_fitted() {
    // All samples the same.
    for (shape, rank) in [(vec![5], vec![2]), (vec![4, 3], vec![2, 2]), (vec![2, 3, 2], vec![1, 2, 1])] {
        let size: usize = shape.iter().product();
        for value in [0.0f64, 3.5, -1e6] {
            for count in [1, 2, 9] {
                let samples = Samples::from_vec(&shape, vec![value; count * size]).unwrap();
                let fit = fit_low_rank(&samples, &options(&rank, true)).unwrap();
                assert_orthonormal(&fit.model);
                assert!(last(&fit).abs() <= 1e-9 * value.abs(), "{}", last(&fit));
                assert!(fit.model.explained_variance_ratio().iter().flatten().all(|r| r.is_finite()));
                let rebuilt = fit.model.reconstruct(&samples).unwrap();
                assert_close(&rebuilt, &vec![value; count * size], 1e-12, "constant");
                assert!(fit_low_rank(&samples, &options(&rank, false)).is_ok());
            }
        }
    }
    // Fewer samples than the rank: the rest is completed to a basis.
    for (shape, rank) in [(vec![9], vec![6]), (vec![6, 5], vec![4, 4])] {
        let size: usize = shape.iter().product();
        let samples = Samples::from_vec(&shape, normals(9, 3 * size)).unwrap();
        let fit = fit_low_rank(&samples, &options(&rank, true)).unwrap();
        assert_orthonormal(&fit.model);
        let rebuilt = fit.model.reconstruct(&samples).unwrap();
        assert_close(&[error(&samples, &rebuilt)], &[last(&fit)], 1e-7, "error");
        if shape.len() == 1 {
            assert!(last(&fit) < 1e-7, "three samples lie in a plane: {}", last(&fit));
            assert!(fit.model.explained_variance()[0][2..].iter().all(|&v| v < 1e-12));
        }
    }
    // One direction only.
    let line: Vec<f64> = (0..40).flat_map(|i| [i as f64, 2.0 * i as f64, -f64::from(i)]).collect();
    let fit = fit_low_rank(&Samples::from_vec(&[3], line).unwrap(), &options(&[2], true)).unwrap();
    assert_orthonormal(&fit.model);
    assert!(last(&fit) < 1e-6, "{}", last(&fit));
}
