//! The content of a report against the library's own answers.

use base64::Engine as _;
use matmix::data::{Labels, digits};
use matmix::report::content::{Bytes, Floats, Summary};
use matmix::report::{Axis, HeldOut, ReportOptions, gather, page, recognise, write_report};
use matmix::{
    Criterion, Distance, Error, Event, Fit, FitOptions, Missing, Noise, Reconstruction, Samples,
    SelectOptions, StopReason, fit, select,
};

fn fitted() -> (Samples<'static>, Labels, Fit) {
    let digits = digits();
    let few: Vec<usize> = (0..1000).step_by(4).collect();
    let samples = digits.samples.scaled(1.0 / 255.0).unwrap().select(&few).unwrap();
    let labels = digits.labels.unwrap();
    let labels = Labels { names: labels.names, index: few.iter().map(|&n| labels.index[n]).collect() };
    let options = FitOptions { components: 4, rank: vec![3, 4], max_iter: 5, tol: 0.0, ..Default::default() };
    let fitted = fit(&samples, &options).unwrap();
    (samples, labels, fitted)
}

fn numbers(floats: &Floats) -> Vec<f64> {
    let text = serde_json::to_value(floats).unwrap();
    let bytes = base64::engine::general_purpose::STANDARD.decode(text.as_str().unwrap()).unwrap();
    bytes.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))).collect()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-5 * (1.0 + a.abs().max(b.abs()))
}

#[test]
fn the_figures_are_those_of_the_library() {
    let (samples, labels, Fit { model, history, .. }) = fitted();
    let options = ReportOptions {
        labels: Some(labels),
        history: Some(history),
        seed: Some(3),
        ..ReportOptions::default()
    };
    let content = gather(&model, &samples, &options).unwrap();
    let (stored, summary) = (&content.samples, &content.summary);
    let criteria = model.evaluate(&samples).unwrap();
    assert!(close(summary.log_likelihood, criteria.log_likelihood) && close(summary.bic, criteria.bic));
    assert!(close(summary.reconstruction_error, model.reconstruction_error(&samples).unwrap()));
    assert_eq!(summary.stages, Some(vec![(1.0, 5)]));
    assert_eq!((summary.seed, summary.model.as_str()), (Some(3), "mixB2DPPCA"));
    assert_eq!(summary.compression_ratio, 784.0 / 12.0);

    let (cores, components) = model.cores(&samples).unwrap();
    let likelihood = model.score_samples(&samples).unwrap();
    let squared = model.squared_errors(&samples).unwrap();
    let (core, found, error) =
        (numbers(&stored.core), numbers(&stored.log_likelihood), numbers(&stored.error));
    assert_eq!(stored.index.len(), 250);
    for (position, &n) in stored.index.iter().enumerate() {
        assert_eq!(stored.component[position], components[n]);
        assert!(close(found[position], likelihood[n]) && close(error[position], squared[n].sqrt()));
        let (a, b) = (&core[12 * position..12 * (position + 1)], &cores[12 * n..12 * (n + 1)]);
        assert!(a.iter().zip(b).all(|(a, b)| close(*a, *b)));
    }
    let least = likelihood.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(close(found[content.outliers[0]], least));
    assert_eq!(content.components.iter().map(|c| c.samples).sum::<usize>(), 250);
    assert_eq!(content.histogram.counts.iter().sum::<usize>(), 250);
    let agreement = content.agreement.unwrap();
    assert_eq!(agreement.counts.iter().flatten().sum::<usize>(), 250);
    assert!((0.0..=1.0).contains(&agreement.normalised_mutual_information));
}

#[test]
fn a_fit_that_did_not_converge_is_told_and_so_is_every_event() {
    let (samples, _, Fit { model, mut history, .. }) = fitted();
    assert_eq!(history.stop, Some(StopReason::MaxIterations));
    history.events =
        vec![Event::Moved { iteration: 2, component: 1, split: 9 }, Event::NoiseAtFloor { component: 3 }];
    let (passes, rate) = (history.passes, history.samples_per_second().unwrap());
    let searched = history.search.as_ref().unwrap().in_words();
    assert!(searched.contains(" splits, ") && searched.ends_with(" of the passes"), "{searched}");
    let options = ReportOptions { history: Some(history), ..ReportOptions::default() };
    let mut content = gather(&model, &samples, &options).unwrap();
    let fact = |summary: &Summary, name: &str| {
        summary.facts().into_iter().find(|fact| fact.name == name).map(|fact| fact.value).unwrap()
    };
    assert_eq!(fact(&content.summary, "Search"), searched);
    assert_eq!(fact(&content.summary, "Iterations"), "5");
    assert_eq!(fact(&content.summary, "Passes over all samples"), format!("{passes:.1}"));
    assert_eq!(content.summary.samples_per_second, Some(rate));
    content.summary.stages = Some(vec![(0.0625, 4), (0.125, 2), (1.0, 3)]);
    assert_eq!(fact(&content.summary, "Iterations"), "9, of them 4 on 1/16, 2 on 1/8 of the samples");
    assert_eq!(content.warnings.len(), 4);
    assert!(content.warnings[0].starts_with("The fit has not converged: "));
    assert!(content.warnings[1].starts_with("Noise variance at its floor in component 3: "));
    assert!(content.warnings[2].starts_with("No samples in component 1 after iteration 2: "));
    assert!(content.warnings[3].contains("left out of the scores"), "{:?}", content.warnings);
    assert_eq!((content.components[1].notes.len(), content.components[0].notes.len()), (1, 0));
    let page = page(&content).unwrap();
    assert!(content.warnings.iter().all(|warning| page.contains(warning.as_str())));
}

#[test]
fn noise_is_called_noise() {
    let noise = Samples::from_vec(&[6, 5], crate::planted::normals(3, 400 * 30)).unwrap();
    let options = FitOptions { components: 3, rank: vec![2, 2], ..FitOptions::default() };
    let model = fit(&noise, &options).unwrap().model;
    let content = gather(&model, &noise, &ReportOptions::default()).unwrap();
    assert_eq!(content.warnings.len(), 1);
    assert!(content.warnings[0].contains("no better than one mean"), "{}", content.warnings[0]);
}

#[test]
fn without_history_nothing_is_invented() {
    let (samples, _, Fit { model, .. }) = fitted();
    let content = gather(&model, &samples, &ReportOptions::default()).unwrap();
    assert!(content.history.is_empty() && content.warnings.is_empty());
    assert_eq!((&content.summary.stages, content.summary.seconds), (&None, None));
    let page = page(&content).unwrap();
    assert!(page.contains("not recorded") && !page.contains("id=\"convergence\""));
}

#[test]
fn the_same_report_twice_has_the_same_bytes() {
    let (samples, labels, Fit { model, .. }) = fitted();
    let options = ReportOptions { labels: Some(labels), ..ReportOptions::default() };
    let write = || page(&gather(&model, &samples, &options).unwrap()).unwrap();
    assert_eq!(write(), write());
}

#[test]
fn user_text_is_escaped_in_text_and_in_data() {
    let (samples, _, Fit { model, .. }) = fitted();
    let nasty = "</script><script>alert(1)</script>&\u{2028}";
    let options = ReportOptions {
        data: nasty.into(),
        labels: Some(Labels::new((0..250).map(|_| nasty))),
        metadata: vec![(nasty.into(), nasty.into())],
        ..ReportOptions::default()
    };
    let page = page(&gather(&model, &samples, &options).unwrap()).unwrap();
    assert!(!page.contains("<script>alert"));
    assert_eq!(page.matches("</script>").count(), 2);
}

#[test]
fn a_page_has_room_only_for_so_much_and_says_so() {
    let (samples, _, Fit { model, .. }) = fitted();
    let options = ReportOptions { points: 120, picture_bytes: 20_000, ..ReportOptions::default() };
    let content = gather(&model, &samples, &options).unwrap();
    assert_eq!(content.samples.index.len(), 120);
    assert!(content.samples.pictures < 120 && content.view.block.iter().all(|&b| b > 1));
    let told: Vec<&str> = content.summary.metadata.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(told, ["Pictures", "Originals"]);
    assert!(content.map.method.starts_with("120 of 250 samples"));
    assert!(page(&content).unwrap().len() < 400_000);
}

#[test]
fn weights_count_as_copies_and_one_sample_is_enough() {
    let values: Vec<f64> = (0..60).map(|i| f64::from((i * 7) % 13)).collect();
    let samples = Samples::from_slice(&[3, 2], &values).unwrap();
    let model = fit(&samples, &FitOptions { rank: vec![1], ..FitOptions::default() }).unwrap().model;
    let twice: Vec<usize> = (0..10).chain(0..3).collect();
    let copies = samples.clone().select(&twice).unwrap();
    let weights = (0..10).map(|n| if n < 3 { 2.0 } else { 1.0 }).collect();
    let weighted = samples.clone().with_weights(weights).unwrap();
    let of = |samples: &Samples<'_>| gather(&model, samples, &ReportOptions::default()).unwrap().summary;
    let (a, b) = (of(&copies), of(&weighted));
    assert!(close(a.log_likelihood, b.log_likelihood) && close(a.bic, b.bic));
    assert!(close(a.reconstruction_error, b.reconstruction_error) && close(a.explained, b.explained));
    let one = samples.select(&[4]).unwrap();
    let content = gather(&model, &one, &ReportOptions::default()).unwrap();
    assert_eq!((content.samples.index, content.reconstructions), (vec![0], vec![0]));
}

#[test]
fn what_cannot_be_reported_is_an_error_and_leaves_no_file() {
    let (_, _, Fit { model, .. }) = fitted();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    let other = Samples::from_vec(&[2, 2], vec![0.0f32; 8]).unwrap();
    let error = write_report(&model, &other, &ReportOptions::default(), &path).unwrap_err();
    assert_eq!(error, Error::ShapeMismatch { expected: vec![28, 28], found: vec![2, 2] });
    let mut values = vec![0.0f64; 2 * 784];
    values[800] = f64::NAN;
    let holed = Samples::from_vec(&[28, 28], values).unwrap();
    let error = write_report(&model, &holed, &ReportOptions::default(), &path).unwrap_err();
    assert!(matches!(error, Error::NotFinite { sample: 1, .. }), "{error}");
    assert!(!path.exists());
}

#[test]
fn names_held_out_samples_and_mistakes_are_those_that_were_given() {
    let (samples, labels, Fit { model, .. }) = fitted();
    let held_out = HeldOut::new(&model, &samples).unwrap();
    assert!(close(held_out.log_likelihood, model.score(&samples).unwrap()));
    assert!(close(held_out.reconstruction_error, model.reconstruction_error(&samples).unwrap()));
    let found = recognise(&model.clone().into(), &samples, &labels, Distance::Paper).unwrap();
    let wrong: usize = found.counts.iter().flatten().sum::<usize>()
        - found.counts.iter().enumerate().map(|(i, row)| row[i]).sum::<usize>();
    assert_eq!(found.mistakes.len(), wrong);
    assert!(wrong > 12 && found.mistakes.iter().all(|m| labels.index[m.sample] != labels.index[m.nearest]));
    let options = ReportOptions {
        labels: Some(labels.clone()),
        names: (0..250).map(|n| format!("{n}.png")).collect(),
        recognition: Some(found),
        held_out: Some(held_out.clone()),
        ..ReportOptions::default()
    };
    let content = gather(&model, &samples, &options).unwrap();
    let stored = &content.samples;
    assert!(stored.index.iter().zip(&stored.name).all(|(n, name)| *name == format!("{n}.png")));
    // The samples of the fit "held out" are explained as the samples of the fit are.
    assert!(close(held_out.explained, content.summary.explained));
    let mistakes = content.recognition.unwrap().mistakes;
    assert_eq!(mistakes.len(), 12);
    for mistake in mistakes {
        assert_ne!(stored.label[mistake.sample], stored.label[mistake.nearest]);
        assert!(mistake.sample.max(mistake.nearest) < stored.pictures);
    }
    let few = ReportOptions { names: vec!["a".into()], ..ReportOptions::default() };
    assert!(gather(&model, &samples, &few).unwrap_err().to_string().starts_with("1 names for 250 samples"));
    for bad in ["time=1", "time=0:x", "time=2:2"] {
        assert!(Axis::parse(bad, 5).unwrap_err().to_string().contains("such as"), "{bad}");
    }
}

#[test]
fn what_was_chosen_has_a_section_with_the_chosen_one_marked() {
    let (samples, _, plain) = fitted();
    let fit = FitOptions { rank: vec![3], max_iter: 5, ..Default::default() };
    let options = SelectOptions { most_components: 3, criterion: Criterion::Bic, fit, ..Default::default() };
    let chosen = select(&samples, &options).unwrap();
    let written = |model, history| {
        let options = ReportOptions { history: Some(history), ..ReportOptions::default() };
        page(&gather(model, &samples, &options).unwrap()).unwrap()
    };
    let page = written(&chosen.fit.model, chosen.fit.history.clone());
    let section =
        &page[page.find("<section id=\"choice\"").unwrap()..page.find("<section id=\"components\"").unwrap()];
    assert_eq!(section.matches("<td class=\"shade-").count(), 3);
    let marked = format!("chosen\" aria-label=\"{:.0}, chosen\">", chosen.best().bic.unwrap());
    assert_eq!(
        (section.matches(&marked).count(), section.matches(" chosen\" aria").count()),
        (1, 1),
        "{section}"
    );
    assert!(section.contains("BIC, less is better") && section.contains("Mode 1: 3 of 28 directions have"));
    // Nothing was chosen for the other model.
    assert!(!written(&plain.model, plain.history).contains("id=\"choice\""));
}

/// The digits of `fitted` with cells missing: one in every sample, all of the last, and in all but the first fifty some at random.
fn broken() -> (Samples<'static>, Vec<f64>) {
    let (samples, ..) = fitted();
    let mut values = samples.to_f64(0..250).unwrap();
    for (i, value) in values.iter_mut().enumerate() {
        let (n, cell) = (i / 784, i % 784);
        let hidden = n >= 50 && (i * 7919 % 1009) < 4 * n;
        if hidden || n == 249 || cell == 30 {
            *value = f64::NAN;
        }
    }
    (Samples::from_vec(&[28, 28], values.clone()).unwrap().with_missing(Missing::Nan), values)
}

fn bytes(of: &Bytes) -> Vec<u8> {
    let text = serde_json::to_value(of).unwrap();
    base64::engine::general_purpose::STANDARD.decode(text.as_str().unwrap()).unwrap()
}

#[test]
fn missing_cells_are_counted_shown_and_filled_in() {
    let (samples, values) = broken();
    let options = FitOptions { components: 2, rank: vec![4, 4], max_iter: 5, ..Default::default() };
    let model = fit(&samples, &options).unwrap().model;
    let names = (0..250).map(|n| format!("{n}.png")).collect();
    let held_out = Some(HeldOut::new(&model, &samples).unwrap());
    let content = gather(&model, &samples, &ReportOptions { names, held_out, ..Default::default() }).unwrap();
    let missing = content.missing.clone().unwrap();
    let holes: Vec<usize> = values.chunks(784).map(|x| x.iter().filter(|x| x.is_nan()).count()).collect();
    assert_eq!((missing.cells, missing.of), (holes.iter().sum(), 250 * 784));
    assert_eq!((missing.samples, missing.empty, missing.never), (250, 1, 1));
    assert_eq!(missing.never_named, ["(1, 2)"]);
    let share = numbers(&missing.share);
    let lacking = values.iter().skip(400).step_by(784).filter(|x| x.is_nan()).count();
    assert!(close(share[400], lacking as f64 / 250.0) && close(share[30], 1.0));
    assert_eq!((missing.lacking[0].index, missing.lacking[0].missing), (249, 784));
    assert_eq!(missing.lacking[0].name, "249.png");

    // What was filled in is what the library fills in, and not of the sample of which nothing is known.
    let imputed = model.impute(&samples).unwrap();
    assert_eq!(missing.filled.len(), 12);
    for filled in &missing.filled {
        let n = content.samples.index[filled.sample];
        assert_ne!(n, 249);
        let own = n * 784..(n + 1) * 784;
        let (x, sd) = (numbers(&filled.values), numbers(&filled.deviations));
        assert!(x.iter().zip(&imputed.values[own.clone()]).all(|(a, b)| close(*a, *b)));
        assert!(sd.iter().zip(&imputed.deviations[own]).all(|(a, b)| close(*a, *b)));
    }
    // The holes of the pictures are those of the samples.
    let bits = bytes(&content.samples.holes);
    for (position, &n) in content.samples.index.iter().enumerate().take(content.samples.pictures) {
        assert_eq!(content.samples.missing[position], holes[n]);
        for cell in 0..784 {
            let bit = position * 784 + cell;
            assert_eq!(bits[bit / 8] >> (bit % 8) & 1 == 1, values[n * 784 + cell].is_nan());
        }
    }
    // Outliers are those with the least score.
    let scores = model.typicality(&samples).unwrap();
    let least = (0..250).min_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
    assert_eq!(content.samples.index[content.outliers[0]], least);
    assert_eq!(content.histogram.counts.iter().sum::<usize>(), 250);
    // Errors count observed cells.
    let rebuilt = model.reconstruct(&samples, Reconstruction::default()).unwrap();
    let squares = |n: usize| -> f64 {
        let pairs = values[n * 784..].iter().zip(&rebuilt[n * 784..(n + 1) * 784]);
        pairs.filter(|(x, _)| !x.is_nan()).map(|(x, y)| (x - y) * (x - y)).sum()
    };
    let total: f64 = (0..250).map(squares).sum();
    let found = content.summary.reconstruction_error;
    assert!((found - (total / 250.0).sqrt()).abs() < 1e-4 * found, "{found}");
    assert_eq!(content.warnings.len(), 2, "{:?}", content.warnings);
    let page = page(&content).unwrap();
    assert!(page.contains("id=\"missing\"") && page.contains("249.png"));
}

#[test]
fn without_missing_cells_the_page_says_nothing_of_them() {
    let (samples, _, Fit { model, .. }) = fitted();
    let content = gather(&model, &samples.with_missing(Missing::Nan), &ReportOptions::default()).unwrap();
    assert!(content.missing.is_none() && content.samples.missing.is_empty());
    assert!(!page(&content).unwrap().contains("id=\"missing\""));
}

#[test]
fn missing_cells_go_with_heavy_tails_weights_and_large_pictures() {
    let (samples, _) = broken();
    let options =
        FitOptions { components: 2, rank: vec![3, 3], max_iter: 3, noise: Noise::T, ..Default::default() };
    let model = fit(&samples, &options).unwrap().model;
    let weights = (0..250).map(|n| f64::from(n % 3)).collect();
    let samples = samples.with_weights(weights).unwrap();
    let options = ReportOptions { points: 120, picture_bytes: 20_000, ..ReportOptions::default() };
    let content = gather(&model, &samples, &options).unwrap();
    assert!(content.view.block.iter().all(|&b| b > 1));
    assert_eq!(content.missing.as_ref().unwrap().filled.len(), 12);
    page(&content).unwrap();
    let error = gather(&model, &samples.with_missing(Missing::Error), &options).unwrap_err();
    assert!(error.to_string().contains("`missing` be `nan`"), "{error}");
}
