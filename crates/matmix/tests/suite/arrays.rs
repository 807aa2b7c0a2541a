//! Arrays of the crate `ndarray` hold what the plain methods give, with its axes, and come back in any order.

use std::fmt::Debug;

use matmix::ndarray::{Array, Dimension};
use matmix::*;

/// Two components of different ranks along their modes, with classes.
fn mixture() -> Mixture {
    let at = |mean: f64| {
        let loadings = [(4, 2), (3, 2), (2, 1)].map(|(p, r)| {
            Matrix::from_fn(p, r, |i, j| ((3 * i + 5 * j + 1) % 7) as f64 * (1.0 + 0.1 * mean))
        });
        let mean = (0..24).map(|i| mean * f64::from(i)).collect();
        Component::new(&[4, 3, 2], mean, loadings.to_vec(), 0.5).unwrap()
    };
    let classes = Classes::new(vec!["a".into(), "b".into()], vec![1, 0]).unwrap();
    let model = Mixture::new(&[4, 3, 2], vec![0.4, 0.6], vec![at(0.5), at(-0.5)]).unwrap();
    model.with_classes(Some(classes)).unwrap()
}

/// The same values in the same order, with these axes.
fn same<T: Clone + PartialEq + Debug, D: Dimension>(array: Array<T, D>, axes: &[usize], plain: &[T]) {
    assert_eq!(array.shape(), axes);
    assert_eq!(array.iter().cloned().collect::<Vec<_>>(), plain);
}

#[test]
fn what_a_mixture_says_has_its_axes() {
    let model = mixture();
    let drawn = model.sample(5, 1);
    let samples = Samples::from_vec(&[4, 3, 2], drawn.samples.clone()).unwrap();
    same(drawn.clone().into_array(&[4, 3, 2]).unwrap(), &[5, 4, 3, 2], &drawn.samples);
    assert!(drawn.into_array(&[5, 2]).is_err());
    // Not the samples themselves, but whatever has them.
    let engine: &dyn Engine = &samples;
    same(model.responsibilities_array(engine).unwrap(), &[5, 2], &model.responsibilities(engine).unwrap());
    same(model.log_densities_array(engine).unwrap(), &[5, 2], &model.log_densities(engine).unwrap());
    let probabilities = model.class_probabilities(engine).unwrap();
    same(model.class_probabilities_array(engine).unwrap(), &[5, 2], &probabilities);
    same(model.denoise_array(engine).unwrap(), &[5, 4, 3, 2], &model.denoise(engine).unwrap());
    let rule = Reconstruction::MostProbable;
    let rebuilt = model.reconstruct(engine, rule).unwrap();
    same(model.reconstruct_array(engine, rule).unwrap(), &[5, 4, 3, 2], &rebuilt);
    same(Model::from(model.clone()).reconstruct_array(engine).unwrap(), &[5, 4, 3, 2], &rebuilt);
    same(model.posterior_variance_array(), &[2, 2, 2, 1], &model.posterior_variance());
    let projected = model.project(engine).unwrap();
    let (cores, responsibilities) = projected.clone().into_arrays(model.rank()).unwrap();
    same(cores, &[5, 2, 2, 2, 1], &projected.cores);
    same(responsibilities, &[5, 2], &projected.responsibilities);
    assert!(projected.into_arrays(&[3]).is_err());
}

#[test]
fn cores_go_out_and_come_back_in_any_order() {
    let model = mixture();
    let samples = Samples::from_vec(&[4, 3, 2], model.sample(5, 2).samples).unwrap();
    let (plain, components) = model.cores(&samples).unwrap();
    let (cores, found) = model.cores_array(&samples).unwrap();
    same(cores.clone(), &[5, 2, 2, 1], &plain);
    assert_eq!(found, components);
    let rebuilt = model.rebuild(&plain, &components).unwrap();
    // The same numbers, laid out the other way around in memory.
    let turned = cores.t().as_standard_layout().into_owned();
    same(model.rebuild_array(&turned.t(), &components).unwrap(), &[5, 4, 3, 2], &rebuilt);
    let all = model.transform_array(&samples).unwrap();
    let back = model.inverse_transform(&model.transform(&samples).unwrap()).unwrap();
    same(model.inverse_transform_array(&all).unwrap(), &[5, 4, 3, 2], &back);
    let wrong = Error::ShapeMismatch { expected: vec![2, 2, 1], found: vec![8] };
    assert_eq!(model.rebuild_array(&all, &components), Err(wrong));
    assert!(model.inverse_transform_array(&all.to_shape((10, 4)).unwrap()).is_err());

    let loadings: Vec<Matrix> = [(4, 2), (3, 2), (2, 1)].map(|(p, r)| Matrix::identity(p, r)).to_vec();
    let low = LowRank::new(&[4, 3, 2], (0..24).map(f64::from).collect(), loadings).unwrap();
    same(low.mean_array(), &[4, 3, 2], low.mean());
    let cores = low.transform_array(&samples).unwrap();
    let plain = low.transform(&samples).unwrap();
    same(cores.clone(), &[5, 2, 2, 1], &plain);
    let back = low.inverse_transform(&plain).unwrap();
    same(low.inverse_transform_array(&cores).unwrap(), &[5, 4, 3, 2], &back);
    assert!(low.inverse_transform_array(&all).is_err());
    same(low.reconstruct_array(&samples).unwrap(), &[5, 4, 3, 2], &low.reconstruct(&samples).unwrap());
}

#[test]
fn parameters_have_their_axes() {
    let model = mixture();
    let component = &model.components()[1];
    same(component.mean_array(), &[4, 3, 2], component.mean());
    let loading = &component.loadings()[0];
    same(loading.as_array().to_owned(), &[4, 2], loading.as_slice());
    assert_eq!(&Matrix::from_array(&loading.as_array()), loading);
    assert_eq!(Matrix::from_array(&loading.as_array().t()), loading.transpose());
}

#[test]
fn filled_in_samples_have_their_axes() {
    let model = mixture();
    let mut values = model.sample(3, 3).samples;
    values[7] = f64::NAN;
    let samples = Samples::from_vec(&[4, 3, 2], values).unwrap();
    let plain = model.impute(&samples).unwrap();
    let (filled, deviations) = plain.clone().into_arrays(&[4, 3, 2]).unwrap();
    same(filled, &[3, 4, 3, 2], &plain.values);
    same(deviations, &[3, 4, 3, 2], &plain.deviations);
    assert!(plain.into_arrays(&[5]).is_err());
    let draws = model.impute_draws(&samples, 2, 9).unwrap();
    same(model.impute_draws_array(&samples, 2, 9).unwrap(), &[2, 3, 4, 3, 2], &draws);
}

#[test]
fn what_is_made_of_patches_has_its_axes() {
    let pixel = |i: usize| ((i / 144 * 5 + i % 144 / 12 * 7 + i % 12 * 3) % 11) as f32 + (i % 5) as f32;
    let pixels = |images: usize| (0..images * 144).map(pixel).collect::<Vec<_>>();
    let images = Samples::from_vec(&[12, 12], pixels(4)).unwrap();
    let fit = FitOptions { components: 2, max_iter: 3, ..FitOptions::default() };
    let options = PatchFisherOptions { fit: fit.clone(), grid: 1, ..Default::default() };
    let fisher = PatchFisher::fit(&images, &options).unwrap();
    let width = fisher.width(&[12, 12]).unwrap();
    same(fisher.features_array(&images).unwrap(), &[4, width], &fisher.features(&images).unwrap());
    let recognizer = PatchRecognizer::new(fisher, &images, &[0, 1, 2, 0], 0.1).unwrap();
    same(recognizer.scores_array(&images).unwrap(), &[4, 3], &recognizer.scores(&images).unwrap());
    let options = PatchDenoiserOptions { size: vec![5], fit, ..Default::default() };
    let denoiser = PatchDenoiser::fit_noisy(&images, 0.5, &options).unwrap();
    let plain = denoiser.denoise(&images, 0.5).unwrap();
    same(denoiser.denoise_array(&images, 0.5).unwrap(), &[4, 12, 12], &plain);
}
