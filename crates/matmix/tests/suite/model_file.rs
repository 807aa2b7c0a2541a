//! The model file keeps every bit, is the same for the same model, and a damaged one is an error, never a panic and
//! never an allocation the file does not explain.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use crate::planted::{drawn, random_mixture};
use matmix::error::FileKind;
use matmix::{
    Algorithm, Checkpoint, Error, Event, FitOptions, Input, LowRankOptions, Mixture, Model, ModelFile,
    Samples, fit, fit_low_rank, fit_with,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn saved(file: &ModelFile) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    file.save(&path).unwrap();
    std::fs::read(path).unwrap()
}

fn read(bytes: &[u8]) -> Result<ModelFile, Error> {
    ModelFile::from_bytes("model.safetensors", bytes)
}

fn fitted(shape: &[usize], rank: &[usize], components: usize) -> ModelFile {
    let samples = drawn(&random_mixture(1, shape, rank, components), 80, 2);
    let options = FitOptions { components, rank: rank.to_vec(), max_iter: 4, ..FitOptions::default() };
    let fit = fit(&samples, &options).unwrap();
    // The time a fit took is the one thing that changes from run to run; what is damaged here should not.
    let history = matmix::History { seconds: 0.25, ..fit.history };
    ModelFile {
        model: Model::Mixture(fit.model),
        name: Some("mixb2dppca".into()),
        input: Some(Input::of(shape, &samples).unwrap()),
        options: serde_json::json!({ "rank": rank, "tol": 1e-6, "of": "\"ü\" \\ \n" }),
        history: Some(history),
        gallery: None,
    }
}

fn low_rank(shape: &[usize], rank: &[usize], centred: bool) -> ModelFile {
    let samples = drawn(&random_mixture(1, shape, rank, 1), 80, 2);
    let options = LowRankOptions { rank: rank.to_vec(), centred, ..LowRankOptions::default() };
    ModelFile::new(Model::LowRank(fit_low_rank(&samples, &options).unwrap().model))
}

/// All numbers of a model, bit by bit: `==` would not tell 0 from −0.
fn bits(model: &Model) -> Vec<u64> {
    let mut all = Vec::new();
    match model {
        Model::Mixture(m) => {
            all.extend(m.weights());
            for c in m.components() {
                all.extend(c.mean());
                c.loadings().iter().for_each(|u| all.extend(u.as_slice()));
                all.push(c.noise_variance());
            }
        }
        Model::LowRank(m) => {
            all.extend(m.mean());
            m.loadings().iter().for_each(|u| all.extend(u.as_slice()));
            m.explained_variance().iter().for_each(|e| all.extend(e));
            all.push(m.total_variance());
        }
        _ => panic!("another kind of model"),
    }
    all.into_iter().map(f64::to_bits).collect()
}

fn all_kinds() -> Vec<ModelFile> {
    vec![
        fitted(&[5], &[2], 3),
        fitted(&[4, 3], &[2, 1], 2),
        fitted(&[3, 2, 4], &[2, 1, 3], 2),
        fitted(&[2, 3, 2, 2], &[1, 2, 2, 1], 1),
        low_rank(&[6], &[3], true),
        low_rank(&[5, 4], &[2, 4], true),
        low_rank(&[5, 4], &[2, 3], false),
        low_rank(&[3, 2, 4], &[2, 1, 3], true),
    ]
}

#[test]
fn what_is_saved_is_loaded_to_the_last_bit() {
    for file in all_kinds() {
        let bytes = saved(&file);
        let loaded = read(&bytes).unwrap();
        assert_eq!(bits(&loaded.model), bits(&file.model));
        assert_eq!(loaded, file);
        // And once more: what was loaded makes the same file.
        assert_eq!(saved(&loaded), bytes);
    }
}

#[test]
fn equal_models_are_equal_files() {
    for file in all_kinds() {
        let bytes = saved(&file);
        for _ in 0..5 {
            assert_eq!(saved(&file.clone()), bytes);
        }
    }
    assert_ne!(saved(&fitted(&[5], &[2], 3)), saved(&fitted(&[5], &[2], 2)));
}

#[test]
fn a_loaded_model_says_the_same_about_samples() {
    let file = fitted(&[4, 3], &[2, 1], 2);
    let Model::Mixture(model) = &file.model else { panic!("a mixture") };
    let Model::Mixture(loaded) = read(&saved(&file)).unwrap().model else { panic!("a mixture") };
    let samples = drawn(model, 50, 3);
    assert_eq!(loaded.project(&samples).unwrap(), model.project(&samples).unwrap());
}

/// A safetensors file taken apart, to be put together wrongly.
#[derive(Clone)]
struct Parts {
    metadata: BTreeMap<String, String>,
    tensors: BTreeMap<String, (String, Vec<usize>, Vec<u8>)>,
}

impl Parts {
    fn of(bytes: &[u8]) -> Self {
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let header: BTreeMap<String, serde_json::Value> =
            serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        let body = &bytes[8 + length..];
        let mut parts = Parts { metadata: BTreeMap::new(), tensors: BTreeMap::new() };
        for (name, value) in header {
            if name == "__metadata__" {
                parts.metadata = serde_json::from_value(value).unwrap();
                continue;
            }
            let shape: Vec<usize> = serde_json::from_value(value["shape"].clone()).unwrap();
            let at: [usize; 2] = serde_json::from_value(value["data_offsets"].clone()).unwrap();
            let kind = value["dtype"].as_str().unwrap().to_string();
            parts.tensors.insert(name, (kind, shape, body[at[0]..at[1]].to_vec()));
        }
        parts
    }

    fn bytes(&self) -> Vec<u8> {
        let mut header = serde_json::json!({ "__metadata__": self.metadata });
        let mut body = Vec::new();
        for (name, (kind, shape, data)) in &self.tensors {
            let at = [body.len(), body.len() + data.len()];
            header[name] = serde_json::json!({ "dtype": kind, "shape": shape, "data_offsets": at });
            body.extend(data);
        }
        let mut text = header.to_string();
        while !text.len().is_multiple_of(8) {
            text.push(' ');
        }
        [&(text.len() as u64).to_le_bytes(), text.as_bytes(), &body].concat()
    }

    fn with(mut self, name: &str, shape: &[usize], numbers: &[f64]) -> Self {
        let data = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.tensors.insert(name.into(), ("F64".into(), shape.to_vec(), data));
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.tensors.remove(name).unwrap();
        self
    }
}

#[test]
fn the_tensors_and_the_format_are_enough() {
    for file in all_kinds() {
        let mut parts = Parts::of(&saved(&file));
        parts.metadata.retain(|key, _| key == "matmix.format");
        let loaded = read(&parts.bytes()).unwrap();
        assert_eq!(bits(&loaded.model), bits(&file.model));
        assert_eq!((loaded.name, loaded.options, loaded.history), (None, serde_json::Value::Null, None));
    }
    // A LowRank without what its fit found out is a LowRank.
    let file = low_rank(&[5, 4], &[2, 3], true);
    let mut parts = Parts::of(&saved(&file));
    parts.tensors.retain(|name, _| name == "mean" || name.starts_with("loadings"));
    let Model::LowRank(loaded) = read(&parts.bytes()).unwrap().model else { panic!("a LowRank") };
    assert_eq!(
        (loaded.total_variance(), loaded.explained_variance()),
        (0.0, &[vec![0.0; 2], vec![0.0; 3]][..])
    );
}

#[track_caller]
fn refused(bytes: &[u8], expected: &str) {
    match read(bytes) {
        Err(Error::Format { path, format, problem }) => {
            assert_eq!((path.as_path(), format), (Path::new("model.safetensors"), FileKind::Model));
            assert!(problem.contains(expected), "{problem}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_kind_of_damage_has_its_message() {
    let whole = saved(&fitted(&[4, 3], &[2, 1], 2));
    let good = Parts::of(&whole);
    assert!(read(&good.bytes()).is_ok(), "the surgery itself does no harm");

    refused(b"", "it is no safetensors file, or a damaged one");
    refused(b"\x93NUMPY", "it is no safetensors file, or a damaged one");
    refused(&whole[..whole.len() - 1], "it is no safetensors file, or a damaged one");
    refused(&[&whole[..], b"more"].concat(), "it is no safetensors file, or a damaged one");

    let told = |key: &str, value: &str| {
        let mut parts = good.clone();
        parts.metadata.insert(key.into(), value.into());
        parts.bytes()
    };
    refused(&told("matmix.format", "2"), "its format is version 2; this program knows version 1");
    refused(&told("matmix.model", "forest"), "its model is `forest`; `mixture` and `low_rank` are known");
    refused(&told("matmix.checkpoint", "{}"), "it is the checkpoint of a fit");
    let mut foreign = good.clone();
    foreign.metadata.clear();
    refused(&foreign.bytes(), "it has no `matmix.format`; it was not written by matmix");
    // Metadata that is not for the reader may be anything.
    let loaded = read(&told("matmix.history", "[[")).unwrap();
    assert_eq!(loaded.history, None);

    for name in ["weights", "loadings.1", "loadings.2", "noise_variances"] {
        let expected = format!("it has no tensor `{name}`; it has ");
        refused(&good.clone().without(name).bytes(), &expected);
    }
    refused(&good.clone().without("means").bytes(), "tensor `means` is missing");
    let mut single = good.clone();
    let (kind, _, data) = single.tensors.get_mut("weights").unwrap();
    *kind = "F32".into();
    data.truncate(8);
    refused(&single.bytes(), "tensor `weights` is F32; F64 is needed");

    let with = |name: &str, shape: &[usize], numbers: &[f64]| good.clone().with(name, shape, numbers).bytes();
    refused(&with("weights", &[3], &[0.2; 3]), "tensor `means` is 2×4×3; it should be 3×?×?");
    refused(&with("weights", &[1, 2], &[0.5; 2]), "tensor `weights` is 1×2; it should be ?");
    refused(&with("weights", &[2], &[0.0; 2]), "its component weights sum to nothing");
    refused(&with("weights", &[2], &[1.5, -0.5]), "a component weight is -0.5");
    refused(&with("weights", &[2], &[f64::NAN, 0.5]), "tensor `weights` holds NaN at element 0");
    refused(&with("means", &[2], &[0.0; 2]), "tensor `means` is missing or has no axis for the samples");
    refused(&with("means", &[2, 4, 0], &[]), "tensor `means` is 2×4×0; it should be 2×?×?");
    refused(&with("loadings.1", &[2, 5, 2], &[0.1; 20]), "tensor `loadings.1` is 2×5×2; it should be 2×4×?");
    refused(&with("loadings.1", &[2, 4, 5], &[0.1; 40]), "rank 5 of mode 0 does not fit its side of 4");
    refused(
        &with("noise_variances", &[2], &[0.1, -0.1]),
        "component 1: these parameters are not a model: a noise",
    );
    refused(&with("noise_variances", &[2], &[0.1, 0.0]), "it must be positive");
    let infinite = with("noise_variances", &[2], &[0.1, f64::INFINITY]);
    refused(&infinite, "tensor `noise_variances` holds inf at element 1");

    let low = Parts::of(&saved(&low_rank(&[5, 4], &[2, 3], true)));
    refused(&low.clone().without("mean").bytes(), "it has no tensor `mean`");
    refused(&low.clone().with("mean", &[], &[1.0]).bytes(), "a sample of shape () holds nothing");
    refused(&low.clone().with("loadings.2", &[4, 3], &[0.5; 12]).bytes(), "mode 1 are not orthonormal");
    refused(
        &low.clone().with("explained.1", &[3], &[0.5; 3]).bytes(),
        "tensor `explained.1` is 3; it should be 2",
    );
}

/// Loadings that were turned by hand are brought into canonical form, not believed.
#[test]
fn a_mask_of_another_size_than_a_sample_is_refused() {
    let good = Parts::of(&saved(&fitted(&[4, 3], &[2, 1], 2)));
    let with = |runs: &str| {
        let mut parts = good.clone();
        let input = &parts.metadata["matmix.input"];
        let input = format!("{},\"mask\":[{runs}]}}", input.strip_suffix('}').unwrap());
        parts.metadata.insert("matmix.input".into(), input);
        parts.bytes()
    };
    assert!(read(&with("0,4,8")).is_ok());
    let told = "what it takes for input cannot be read: its mask is of";
    refused(&with("4,7"), &format!("{told} 11 cells, but its samples are of 4×3"));
    // Both sums are 12 modulo 2^64.
    let too_many = format!("{told} more cells than can be counted, but its samples are of 4×3");
    refused(&with("9223372036854775808,9223372036854775808,12"), &too_many);
    refused(&with("34359738368,18446744039349813260"), &too_many);
}

#[test]
fn loadings_in_another_basis_are_the_same_model() {
    let file = fitted(&[4, 3], &[2, 1], 1);
    let Model::Mixture(model) = &file.model else { panic!("a mixture") };
    let u = &model.components()[0].loadings()[0];
    let (s, c) = (0.6, 0.8);
    let turned: Vec<f64> =
        (0..4).flat_map(|i| [c * u[(i, 0)] - s * u[(i, 1)], s * u[(i, 0)] + c * u[(i, 1)]]).collect();
    let bytes = Parts::of(&saved(&file)).with("loadings.1", &[1, 4, 2], &turned).bytes();
    let Model::Mixture(loaded) = read(&bytes).unwrap().model else { panic!("a mixture") };
    let samples = drawn(model, 30, 4);
    let expected = model.score_samples(&samples).unwrap();
    crate::planted::assert_close(&loaded.score_samples(&samples).unwrap(), &expected, 1e-10, "scores");
}

fn checkpoint_options(algorithm: Algorithm, path: &Path) -> FitOptions {
    FitOptions {
        components: 2,
        rank: vec![2, 1],
        algorithm,
        max_iter: 3,
        n_init: 2,
        tol: 0.0,
        checkpoint: Some(Checkpoint { path: path.to_owned(), every: 1, resume: true }),
        ..FitOptions::default()
    }
}

/// A folder that is gone by the time a checkpoint is due costs the checkpoint, not the fit: same model, and the history says so once.
#[test]
fn a_checkpoint_that_cannot_be_written_any_more_does_not_cost_the_fit() {
    let samples = random_mixture(3, &[4, 3], &[2, 1], 2).sample(60, 1);
    let samples = Samples::from_vec(&[4, 3], samples.samples).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    let options =
        FitOptions { n_init: 1, ..checkpoint_options(Algorithm::Exact, &inside.join("checkpoint")) };
    let mut removed = false;
    let fitted = fit_with(&samples, &options, &mut |progress| {
        if progress.iteration == 2 && !removed {
            std::fs::remove_dir_all(&inside).unwrap();
            removed = true;
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    let plain = fit(&samples, &FitOptions { checkpoint: None, ..options }).unwrap();
    assert_eq!(fitted.model, plain.model);
    let told: Vec<_> = fitted.history.events.iter().filter(|e| matches!(e, Event::NotKept { .. })).collect();
    assert!(
        matches!(told[..], [Event::NotKept { iteration: 2, problem }] if problem.contains("checkpoint")),
        "{told:?}"
    );
}

/// A checkpoint of the second restart, and the samples it belongs to.
fn checkpoint(algorithm: Algorithm) -> (Samples<'static>, Vec<u8>) {
    let samples = drawn(&random_mixture(5, &[4, 3], &[2, 1], 2), 60, 6);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint");
    let mut stop = |p: &matmix::Progress<'_>| match (p.restart, p.iteration) {
        (1, 2) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    fit_with(&samples, &checkpoint_options(algorithm, &path), &mut stop).unwrap();
    (samples, std::fs::read(path).unwrap())
}

#[test]
fn checkpoints_and_models_are_not_taken_for_each_other() {
    let (samples, bytes) = checkpoint(Algorithm::Exact);
    refused(&bytes, "it is the checkpoint of a fit; go on with the fit to get its model");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint");
    let resume = |bytes: &[u8], options: &dyn Fn(FitOptions) -> FitOptions| {
        std::fs::write(&path, bytes).unwrap();
        fit(&samples, &options(checkpoint_options(Algorithm::Exact, &path))).map(|_| ())
    };
    let problem = |found: Result<(), Error>| match found {
        Err(Error::Format { format: FileKind::Checkpoint, problem, .. }) => problem,
        other => panic!("{other:?}"),
    };
    let model = saved(&fitted(&[4, 3], &[2, 1], 2));
    assert_eq!(problem(resume(&model, &|o| o)), "it holds no state of a fit; is it a model file?");
    // Another seed, other data: another fit.
    let is_other =
        |found: Result<(), Error>| assert!(matches!(found, Err(Error::OtherFit { .. })), "{found:?}");
    is_other(resume(&bytes, &|o| FitOptions { seed: 1, ..o }));
    is_other(resume(&bytes, &|o| FitOptions { rank: vec![1, 1], ..o }));
    let selected = samples.clone().select(&(0..59).collect::<Vec<_>>()).unwrap();
    std::fs::write(&path, &bytes).unwrap();
    is_other(fit(&selected, &checkpoint_options(Algorithm::Exact, &path)).map(|_| ()));
    // More restarts than before are still the same fit.
    assert_eq!(resume(&bytes, &|o| FitOptions { n_init: 3, ..o }), Ok(()));
    let parts = Parts::of(&bytes);
    let torn = parts.clone().without("best.weights").bytes();
    assert_eq!(problem(resume(&torn, &|o| o)), "its parts do not belong together");
    let torn = parts.without("tries").bytes();
    assert!(problem(resume(&torn, &|o| o)).contains("it has no tensor `tries`"));
    let (samples, bytes) = checkpoint(Algorithm::Paper);
    std::fs::write(&path, Parts::of(&bytes).with("paper.l", &[2, 1, 1], &[1.0; 2]).bytes()).unwrap();
    let torn = fit(&samples, &checkpoint_options(Algorithm::Paper, &path)).map(|_| ());
    assert!(problem(torn).contains("tensor `paper.l` is 2×1×1; it should be 2×4×2"));
}

fn damaged(original: &[u8], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = original.to_vec();
    let header = 8 + u64::from_le_bytes(original[..8].try_into().unwrap()) as usize;
    for _ in 0..rng.random_range(1..=3) {
        // The header is where the harm is done: half of the blows fall there, and some on its length.
        let end = match rng.random_range(0..8) {
            0 => 8,
            1..=4 => header,
            _ => usize::MAX,
        };
        let end = end.min(bytes.len());
        if end == 0 {
            break;
        }
        let at = rng.random_range(0..end);
        match rng.random_range(0..6) {
            0 | 1 => bytes[at] ^= 1 << rng.random_range(0..8),
            2 => bytes[at] = *b"0123456789,[]{}\"".get(rng.random_range(0..16)).unwrap(),
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at..(at + rng.random_range(1..9)).min(end))),
            _ => {
                let again = bytes[at..(at + 12).min(end)].to_vec();
                bytes.splice(at..at, again);
            }
        }
    }
    bytes
}

/// What is true of every model, however it came in.
fn assert_valid(model: &Mixture) {
    assert!((model.weights().iter().sum::<f64>() - 1.0).abs() < 1e-9);
    for c in model.components() {
        assert!(c.noise_variance() > 0.0 && c.mean().iter().all(|m| m.is_finite()));
    }
}

#[test]
fn damaged_files_are_errors_or_valid_models() {
    let mut rng = ChaCha8Rng::seed_from_u64(77);
    let (mut valid, mut wrong) = (0, 0);
    for original in [saved(&fitted(&[4, 3], &[2, 1], 2)), saved(&low_rank(&[5, 4], &[2, 3], true))] {
        for _ in 0..1500 {
            let bytes = damaged(&original, &mut rng);
            match read(&bytes) {
                Ok(ModelFile { model: Model::Mixture(model), .. }) => {
                    valid += 1;
                    assert_valid(&model);
                }
                Ok(_) => valid += 1,
                Err(Error::Format { .. }) => wrong += 1,
                Err(other) => panic!("{other:?}"),
            }
        }
    }
    // Both happen: a flipped bit in a mean is another model.
    assert!(valid > 100 && wrong > 500, "{valid} {wrong}");
}

#[test]
fn damaged_checkpoints_are_errors_or_resume() {
    let mut rng = ChaCha8Rng::seed_from_u64(78);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint");
    let mut resumed = 0;
    for algorithm in [Algorithm::Exact, Algorithm::Paper] {
        let (samples, original) = checkpoint(algorithm);
        for _ in 0..150 {
            std::fs::write(&path, damaged(&original, &mut rng)).unwrap();
            if let Ok(fit) = fit(&samples, &checkpoint_options(algorithm, &path)) {
                resumed += 1;
                assert_valid(&fit.model);
            }
        }
    }
    assert!(resumed > 10, "{resumed}");
}
