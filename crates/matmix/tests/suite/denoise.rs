//! Images without their noise: against the formula written out with dense covariances, and against what was there before the noise.

use crate::planted::normals;
use matmix::data::Patches;
use matmix::{
    Component, Error, FitOptions, Matrix, Mixture, ModelFile, PatchDenoiser, PatchDenoiserOptions, Samples,
    estimate_noise,
};

/// Numbers between 0 and 1 that look random.
fn scattered(i: usize) -> f64 {
    ((i as f64 + 0.5) * 0.754_877_666_246_693 + (i as f64).sqrt() * 0.569_840_290_998_053).fract()
}

/// A picture of discs and stripes.
fn picture(rows: usize, columns: usize) -> Vec<f64> {
    let pixel = |i: usize, j: usize| {
        let (y, x) = (i as f64, j as f64);
        let disc = f64::from(u8::from((y - 20.0).powi(2) + (x - 22.0).powi(2) < 150.0));
        let stripes = if j > 30 { f64::from(u8::from(((i + j) / 6).is_multiple_of(2))) } else { 0.2 };
        0.2 + 0.5 * disc + 0.3 * stripes * f64::from(u8::from(disc == 0.0))
    };
    (0..rows * columns).map(|at| pixel(at / columns, at % columns)).collect()
}

fn mean_square(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / a.len() as f64
}

fn model() -> Mixture {
    let component = |k: usize| {
        let loadings =
            (0..2).map(|d| Matrix::from_fn(3, 2, |i, j| scattered(97 * k + 31 * d + 5 * i + j) - 0.5));
        let mean = (0..9).map(|i| 0.2 * scattered(1000 * k + i)).collect();
        Component::new(&[3, 3], mean, loadings.collect(), 0.003 * (1 + 2 * k) as f64).unwrap()
    };
    Mixture::new(&[3, 3], vec![0.4, 0.6], vec![component(0), component(1)]).unwrap()
}

/// Gauss's elimination: a⁻¹ b and ln|a|.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> (Vec<f64>, f64) {
    let (n, mut log_determinant) = (b.len(), 0.0);
    for i in 0..n {
        log_determinant += a[i][i].ln();
        for j in i + 1..n {
            let factor = a[j][i] / a[i][i];
            for k in i..n {
                a[j][k] -= factor * a[i][k];
            }
            b[j] -= factor * b[i];
        }
    }
    for i in (0..n).rev() {
        b[i] = (b[i] - (i + 1..n).map(|j| a[i][j] * b[j]).sum::<f64>()) / a[i][i];
    }
    (b, log_determinant)
}

/// E[clean patch | noisy patch] with dense covariances: M + C (C + σ² I)⁻¹ (X − M), weighted by the densities.
fn expected(model: &Mixture, x: &[f64], noise: f64) -> Vec<f64> {
    let mut parts = Vec::new();
    for (k, component) in model.components().iter().enumerate() {
        let covariance = model.covariance(k).unwrap();
        let noisy: Vec<Vec<f64>> = (0..9)
            .map(|i| (0..9).map(|j| covariance[(i, j)] + if i == j { noise * noise } else { 0.0 }).collect())
            .collect();
        let centred: Vec<f64> = x.iter().zip(component.mean()).map(|(x, m)| x - m).collect();
        let (solved, log_determinant) = solve(noisy, centred.clone());
        let delta: f64 = solved.iter().zip(&centred).map(|(a, b)| a * b).sum();
        let weight = model.weights()[k] * (-0.5 * (delta + log_determinant)).exp();
        let clean: Vec<f64> = (0..9)
            .map(|i| component.mean()[i] + (0..9).map(|j| covariance[(i, j)] * solved[j]).sum::<f64>())
            .collect();
        parts.push((weight, clean));
    }
    let total: f64 = parts.iter().map(|(weight, _)| weight).sum();
    (0..9).map(|i| parts.iter().map(|(weight, clean)| weight * clean[i]).sum::<f64>() / total).collect()
}

#[test]
fn an_image_is_the_mean_of_the_posterior_means_of_its_patches() {
    let (rows, columns, noise) = (6, 7, 0.15);
    let pixels: Vec<f64> = (0..2 * rows * columns).map(scattered).collect();
    let images = Samples::from_slice(&[rows, columns], &pixels).unwrap();
    let denoiser = PatchDenoiser::new(model(), Patches::new(3).with_stride(2).centred()).unwrap();
    let found = denoiser.denoise(&images, noise).unwrap();
    for (image, found) in pixels.chunks(rows * columns).zip(found.chunks(rows * columns)) {
        let (mut sums, mut counts) = (vec![0.0; image.len()], vec![0.0; image.len()]);
        for (i, j) in (0..rows - 2).flat_map(|i| (0..columns - 2).map(move |j| (i, j))) {
            let places: Vec<usize> =
                (0..3).flat_map(|a| (0..3).map(move |b| (i + a) * columns + j + b)).collect();
            let mean = places.iter().map(|&at| image[at]).sum::<f64>() / 9.0;
            let patch: Vec<f64> = places.iter().map(|&at| image[at] - mean).collect();
            for (x, &at) in expected(denoiser.model(), &patch, noise).iter().zip(&places) {
                sums[at] += x + mean;
                counts[at] += 1.0;
            }
        }
        for (found, (sum, count)) in found.iter().zip(sums.iter().zip(&counts)) {
            assert!((found - sum / count).abs() < 1e-5, "{found} {}", sum / count);
        }
    }
}

#[test]
fn noise_is_found_and_most_of_it_is_taken_out() {
    let clean = picture(64, 64);
    for noise in [0.1, 0.2] {
        let pixels: Vec<f64> = clean.iter().zip(normals(3, 64 * 64)).map(|(x, e)| x + noise * e).collect();
        let noisy = Samples::from_slice(&[64, 64], &pixels).unwrap();
        // Edges count as noise, and half of this picture is edges.
        let estimated = estimate_noise(&noisy).unwrap() / noise;
        assert!((0.95..1.25).contains(&estimated), "{estimated}");
        let smooth: Vec<f64> = normals(4, 64 * 64)
            .iter()
            .enumerate()
            .map(|(i, e)| ((i / 64) * (i % 64)) as f64 * 1e-4 + noise * e)
            .collect();
        let estimated = estimate_noise(&Samples::from_slice(&[64, 64], &smooth).unwrap()).unwrap() / noise;
        assert!((0.95..1.05).contains(&estimated), "{estimated}");
        let options = PatchDenoiserOptions {
            fit: FitOptions { components: 6, max_iter: 15, ..FitOptions::default() },
            ..Default::default()
        };
        let denoiser = PatchDenoiser::fit_noisy(&noisy, noise, &options).unwrap();
        let found = denoiser.denoise(&noisy, noise).unwrap();
        let (before, after) = (mean_square(&pixels, &clean), mean_square(&found, &clean));
        assert!(after < 0.25 * before, "{noise}: {before} {after}");
        // What is kept is a model of patches without noise, and finds the same.
        let file = denoiser.to_file(&noisy).unwrap();
        let again = PatchDenoiser::from_file(&ModelFile::from_bytes("x", &file.to_bytes()).unwrap()).unwrap();
        assert_eq!(again.denoise(&noisy, noise).unwrap(), found);
        // One that has seen the picture without noise knows more.
        let better = PatchDenoiser::fit(&Samples::from_slice(&[64, 64], &clean).unwrap(), &options).unwrap();
        assert!(mean_square(&better.denoise(&noisy, noise).unwrap(), &clean) < 1.1 * after);
    }
}

#[test]
fn the_same_bits_on_any_number_of_threads_and_image_by_image() {
    let pixels: Vec<f32> = (0..3 * 40 * 33).map(|i| scattered(i) as f32).collect();
    let images = Samples::from_slice(&[40, 33], &pixels).unwrap();
    let denoiser = PatchDenoiser::new(model(), Patches::new(3).centred()).unwrap();
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| denoiser.denoise(&images, 0.1).unwrap())
    };
    let all = on(1);
    assert_eq!((on(2), on(8)), (all.clone(), all.clone()));
    let second = denoiser.denoise(&images.select(&[1]).unwrap(), 0.1).unwrap();
    assert_eq!(second, all[40 * 33..2 * 40 * 33]);
}

#[test]
fn what_cannot_be_is_told() {
    let images = Samples::from_vec(&[8, 8], (0..64).map(scattered).collect::<Vec<_>>()).unwrap();
    let denoiser = PatchDenoiser::new(model(), Patches::new(3).centred()).unwrap();
    for noise in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-60, 1e60] {
        assert!(matches!(denoiser.denoise(&images, noise), Err(Error::Option { option: "sigma", .. })));
    }
    assert!(PatchDenoiser::new(model(), Patches::new(3)).is_err());
    let like = Patches::new(3).normalised(&images, 0.1, 0).unwrap();
    assert!(PatchDenoiser::new(model(), like).is_err());
    let small = Samples::from_vec(&[2, 8], vec![0.5; 16]).unwrap();
    assert!(matches!(denoiser.denoise(&small, 0.1), Err(Error::ShapeMismatch { .. })));
    let broken = Samples::from_vec(&[8, 8], vec![f64::NAN; 64]).unwrap();
    assert!(matches!(denoiser.denoise(&broken, 0.1), Err(Error::NotFinite { .. })));
    assert!(estimate_noise(&broken).is_err());
    assert!(estimate_noise(&Samples::from_vec(&[8, 8], vec![3u8; 64]).unwrap()).is_err());
    assert!(estimate_noise(&Samples::from_vec(&[2, 2], vec![3u8; 4]).unwrap()).is_err());
}
