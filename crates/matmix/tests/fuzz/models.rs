//! Model files of every kind, and the use of every model that was read from a broken one.

use matmix::data::{FillValue, Unobserved};
use matmix::{
    Classes, Component, FitOptions, Input, LowRankOptions, Missing, Mixture, Model, ModelFile, PatchDenoiser,
    PatchDenoiserOptions, PatchFisher, PatchFisherOptions, PatchRecognizer, Reconstruction, Samples, Temper,
    fit_low_rank,
};

use crate::planted::{drawn, random_mixture};

/// Samples of more cells than these are not made: a file of patches may be about images of any size.
const CELLS: usize = 4096;

fn of(model: impl Into<Model>, name: &str, shape: &[usize]) -> ModelFile {
    let numbers: Vec<u8> = (0..4 * shape.iter().product::<usize>()).map(|i| (i * 37 % 251) as u8).collect();
    let samples = Samples::from_vec(shape, numbers).unwrap().scaled(1.0 / 255.0).unwrap();
    let options = FitOptions { rank: vec![1], ..FitOptions::default() }.described();
    let input = Some(Input::of(shape, &samples).unwrap());
    ModelFile { name: Some(name.into()), input, options, ..ModelFile::new(model.into()) }
}

fn student(model: &Mixture) -> Mixture {
    let heavy = |component: &Component| component.clone().with_degrees_of_freedom(Some(3.5)).unwrap();
    let components = model.components().iter().map(heavy).collect();
    Mixture::new(model.shape(), model.weights().to_vec(), components).unwrap()
}

fn images() -> Samples<'static> {
    let pixel = |n: usize, i: usize| if n.is_multiple_of(2) { i / 8 % 3 } else { i % 3 };
    let pixels: Vec<f32> = (0..6 * 64).map(|i| (pixel(i / 64, i % 64) * 50 + i % 7) as f32).collect();
    Samples::from_vec(&[8, 8], pixels).unwrap()
}

/// Vectors, matrices and tensors, Gaussian and t, with classes, a mask, a fill value; patches, a gallery; without noise.
pub(crate) fn files() -> Vec<ModelFile> {
    let matrices = random_mixture(1, &[4, 3], &[2, 1], 2);
    let plain = of(matrices.clone(), "mixb2dppca", &[4, 3]);
    let vectors = of(student(&random_mixture(2, &[12], &[2], 2)), "mixppca", &[4, 3]);
    let tensors = of(student(&random_mixture(3, &[3, 2, 2], &[1, 2, 1], 1)), "", &[3, 2, 2]);
    let rows = of(random_mixture(4, &[3], &[1], 2), "mp2dpca", &[4, 3]);
    let classes = Classes::new(vec!["a".into(), "b".into()], vec![1, 0]).unwrap();
    let classes = of(matrices.with_classes(Some(classes)).unwrap(), "mixb2dppca", &[4, 3]);
    let known = plain.input.clone().unwrap();
    let masked = Some(known.clone().with_mask(Some(&std::array::from_fn::<_, 12, _>(|i| i % 5 != 0))));
    let masked = ModelFile { input: masked, ..plain.clone() };
    let mut filled = known;
    filled.missing = Some(Unobserved::Value(FillValue::Is(255.0)));
    let filled = ModelFile { input: Some(filled), ..plain.clone() };
    let low_rank = |shape: &[usize], rank: &[usize], name: &str, looked_at: &[usize]| {
        let samples = drawn(&random_mixture(1, looked_at, rank, 1), 40, 2);
        let options = LowRankOptions { rank: rank.to_vec(), ..LowRankOptions::default() };
        of(fit_low_rank(&samples, &options).unwrap().model, name, shape)
    };
    let fit = || FitOptions { components: 2, rank: vec![1], max_iter: 2, ..FitOptions::default() };
    let images = images();
    let options = PatchFisherOptions { fit: fit(), size: vec![4], grid: 2, ..PatchFisherOptions::default() };
    let fisher = PatchFisher::fit(&images, &options).unwrap();
    let patches = fisher.to_file(&images).unwrap();
    let names = ["across", "down"].map(String::from);
    let gallery = PatchRecognizer::new(fisher, &images, &[0, 1, 0, 1, 0, 1], 0.1).unwrap();
    let options = PatchDenoiserOptions { fit: fit(), size: vec![4], ..PatchDenoiserOptions::default() };
    let denoiser = PatchDenoiser::fit(&images, &options).unwrap();
    vec![
        vectors,
        tensors,
        rows,
        classes,
        masked,
        filled,
        low_rank(&[4, 3], &[2, 3], "glram", &[4, 3]),
        low_rank(&[4, 3], &[3], "pca", &[12]),
        patches,
        gallery.to_file(&images, &names).unwrap(),
        denoiser.to_file(&images).unwrap(),
        plain,
    ]
}

/// Corrects the length of the header, so that a changed header is read.
pub(crate) fn with_length(mut bytes: Vec<u8>) -> Vec<u8> {
    let Some(rest) = bytes.get(8..) else { return bytes };
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<serde_json::Value>();
    if let Some(Ok(_)) = values.next() {
        let end = values.byte_offset();
        let spaces = rest[end..].iter().take_while(|&&byte| byte == b' ').count();
        let length = (end + spaces) as u64;
        bytes[..8].copy_from_slice(&length.to_le_bytes());
    }
    bytes
}

/// Asks a model that was read everything there is to ask, about samples of a shape that fits. Errors are fine.
pub(crate) fn used(file: &ModelFile) {
    let _ = (file.options_in_words(), file.history.as_ref().map(|history| history.n_iterations()));
    // A model that was read can be written and read again.
    ModelFile::from_bytes("again", &file.to_bytes()).unwrap();
    let shape = file.input.as_ref().map_or(file.model.shape(), |input| &input.shape);
    let Some(size) =
        shape.iter().try_fold(1usize, |size, &side| size.checked_mul(side)).filter(|&s| s <= CELLS)
    else {
        return;
    };
    for broken in [false, true] {
        let values: Vec<u8> = (0..3 * size).map(|i| (i * 37 % 256) as u8).collect();
        let mut samples = Samples::from_vec(shape, values.clone()).unwrap();
        if broken {
            let values: Vec<f64> =
                values.iter().map(|&x| if x % 3 == 0 { f64::NAN } else { f64::from(x) }).collect();
            samples = Samples::from_vec(shape, values).unwrap().with_missing(Missing::Nan);
        }
        let Ok(view) = file.prepare(&samples, None) else { continue };
        match &file.model {
            Model::Mixture(model) => ask_mixture(model, &view),
            Model::LowRank(model) => {
                let _ = (model.transform(&view), model.squared_errors(&view), model.reconstruct(&view));
            }
            _ => unreachable!("another kind of model"),
        }
        let Ok(images) = file.scaled(&samples, None) else { continue };
        if let Ok(recognizer) = PatchRecognizer::from_file(file) {
            let _ = (recognizer.scores(&images), recognizer.predict(&images));
        } else if let Ok(fisher) = PatchFisher::from_file(file, 2) {
            let _ = fisher.features(&images);
        }
        if let Ok(denoiser) = PatchDenoiser::from_file(file) {
            let _ = denoiser.denoise(&images, 0.1);
        }
    }
}

fn ask_mixture(model: &Mixture, view: &Samples<'_>) {
    let n = view.len();
    if let Ok(scores) = model.score_samples(view) {
        assert_eq!(scores.len(), n);
    }
    let _ = (model.log_densities(view), model.project(view), model.class_probabilities(view));
    let _ = (model.squared_errors(view), model.reconstruct(view, Reconstruction::Weighted));
    let _ = (model.denoise(view), model.evaluate(view), model.posterior_variance(), model.n_parameters());
    if let Ok(filled) = model.impute_by(view, Temper::Auto) {
        assert_eq!(filled.values.len(), n * model.sample_len());
    }
    let _ = (model.impute_draws(view, 2, 1), model.try_sample(2, 1, true), model.covariance(0));
    let _ = model.impute_draws(view, usize::MAX / 2, 1).unwrap_err();
}
