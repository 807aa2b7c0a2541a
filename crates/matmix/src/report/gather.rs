//! Model and samples → content: the only part of the report that knows the model.

use super::agreement::agreement;
use super::chosen::chosen;
use super::content::{
    Bytes, Component, Content, Entry, Floats, Map, MissingCells, Step, StoredSamples, Summary,
};
use super::findings::{Cast, Findings, histogram};
use super::layout::{self, Blocks};
use super::missing::{self, missing_cells};
use super::options::ReportOptions;
use super::plane::leading_plane;
use super::recognition::Confusion;
use super::spectra::spectra;
use super::survey::{Survey, squared_distances, survey};
use crate::data::{Element, Samples};
use crate::error::{Error, Result, sides};
use crate::infer::ask;
use crate::linalg::{Matrix, expand};
use crate::model::{History, Mixture, Searched, StopReason};
use crate::pass::Question;

/// How many core entries of a component can be moved in the explorer.
const ENTRIES: usize = 32;

/// Everything the report of `model` on `samples` shows.
///
/// # Errors
/// If the options do not fit the samples, or the samples the model; if a sample is not finite or cannot be read.
pub fn gather(model: &Mixture, samples: &Samples<'_>, options: &ReportOptions) -> Result<Content> {
    options.validate(samples)?;
    if samples.shape() != model.shape() {
        return Err(Error::ShapeMismatch {
            expected: model.shape().to_vec(),
            found: samples.shape().to_vec(),
        });
    }
    let survey = survey(samples)?;
    let supported = model.supported(options.history.as_ref().unwrap_or(&History::default()));
    let findings = Findings::new(model, &supported, samples)?;
    let own = |n: usize| model.components()[findings.component[n]].mean();
    let [spread, mut distance] = squared_distances(samples, |n| [&survey.mean, own(n)])?;
    if survey.missing() > 0 {
        // Those with fewer observed cells are not nearer for that.
        distance.iter_mut().enumerate().for_each(|(n, d)| *d = far(*d, survey.observed(n)));
    }
    let relative = |n: usize| ratio(findings.squared_error[n], spread[n]).sqrt();
    let relative_error: Vec<f64> = (0..samples.len()).map(relative).collect();
    let recognition = options.recognition.as_ref();
    let mistakes = recognition.map_or(&[][..], |r| &r.mistakes);
    if mistakes.iter().any(|m| m.sample.max(m.nearest) >= samples.len()) {
        return Err(Error::Option {
            option: "recognition",
            value: "mistakes of other samples".into(),
            expected: "an experiment on these samples",
        });
    }
    let (holes, size) = (&survey.holes, samples.sample_len());
    let components = model.n_components();
    let cast =
        Cast::new(&findings, &distance, &relative_error, components, mistakes, holes, size, options.points);

    // Means, and what was filled in with its deviations, are numbers of four bytes; pictures are one byte an element.
    let pictures = cast.roles + 4 * model.n_components() + 8 * cast.filled.len();
    let (view, blocks) = layout::view(
        samples.shape(),
        samples.element(),
        samples.scale(),
        &survey,
        options,
        pictures,
        options.picture_bytes,
    );

    let total = |of: &[f64]| -> f64 { of.iter().enumerate().map(|(n, v)| samples.weight(n) * v).sum() };
    let log_likelihood = total(&findings.log_likelihood);
    let squared_error = total(&findings.squared_error);
    let criteria = model.criteria(log_likelihood, findings.entropy, samples.total_weight());
    let (stored, map) = stored(model, samples, &findings, &relative_error, &survey, &cast, &blocks, options)?;
    let missing = missing_cells(model, samples, &survey, &cast, &blocks, options)?;
    let on_page: Vec<usize> = cast.index.iter().map(|&n| findings.component[n]).collect();
    let spectra = spectra(model, &samples.clone().select(&cast.index)?, &on_page)?;
    let history = options.history.as_ref();
    let data = if options.data.is_empty() { "unnamed".to_owned() } else { options.data.clone() };
    let summary = Summary {
        samples: samples.len(),
        shape: samples.shape().to_vec(),
        element: samples.element().name().to_owned(),
        model: if options.model.is_empty() { published_name(model) } else { options.model.clone() },
        components: model.n_components(),
        ranks: model.rank().to_vec(),
        compression_ratio: model.sample_len() as f64 / model.core_len() as f64,
        free_parameters: model.n_parameters(),
        log_likelihood,
        reconstruction_error: ratio(squared_error, samples.total_weight()).sqrt(),
        explained: 1.0 - ratio(squared_error, total(&spread)),
        bic: criteria.bic,
        search: history.and_then(|h| h.search.as_ref()).map(Searched::in_words),
        stages: history.map(|h| h.stages().collect()),
        passes: history.map(|h| h.passes).filter(|&passes| passes > 0.0),
        samples_per_second: history.and_then(History::samples_per_second),
        stop_reason: history.and_then(|h| h.stop).map(|stop| in_words(stop).to_owned()),
        // A model file does not say how long its fit took: the same fit gives the same file.
        seconds: history.map(|h| h.seconds).filter(|&seconds| seconds > 0.0),
        seed: options.seed,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        metadata: metadata(options, &blocks, &stored),
        held_out: options.held_out.clone(),
        missing: missing.as_ref().map(MissingCells::in_words),
        data: data.clone(),
    };
    Ok(Content {
        title: if options.title.is_empty() { data } else { options.title.clone() },
        summary,
        warnings: warnings(history)
            .into_iter()
            .chain(supported.in_words())
            .chain(missing.iter().flat_map(missing::warnings))
            .chain(idle(model, criteria.bic, total(&spread), samples, &survey))
            .collect(),
        history: history.map(steps).unwrap_or_default(),
        chosen: history.and_then(|history| history.choice.as_ref()).and_then(chosen),
        components: spectra
            .into_iter()
            .enumerate()
            .map(|(k, spectra)| component(model, k, &findings, &cast, &blocks, spectra, history))
            .collect(),
        samples: stored,
        reconstructions: cast.spread,
        outliers: cast.outliers,
        histogram: histogram(&findings.standing),
        map,
        agreement: options
            .labels
            .as_ref()
            .map(|labels| agreement(&findings.component, model.n_components(), labels)),
        recognition: recognition.map(|r| Confusion { mistakes: cast.mistakes, ..r.clone() }),
        missing,
        view,
    })
}

/// A quotient of two sums of squares; nothing of nothing is nothing.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part.max(0.0) / whole } else { 0.0 }
}

/// A sum of squares for each cell that was observed; endless where none was.
fn far(squares: f64, observed: usize) -> f64 {
    if observed > 0 { squares / observed as f64 } else { f64::INFINITY }
}

/// One pass over the chosen samples: cores, places on the map, and pictures as far as they fit.
fn stored(
    model: &Mixture,
    samples: &Samples<'_>,
    findings: &Findings,
    relative_error: &[f64],
    survey: &Survey,
    cast: &Cast,
    blocks: &Blocks,
    options: &ReportOptions,
) -> Result<(StoredSamples, Map)> {
    const MAP_NUMBERS: usize = 8_000_000;
    let chosen = samples.clone().select(&cast.index)?;
    let coarse = Blocks::within(samples.shape(), None, chosen.len(), MAP_NUMBERS);
    let reduced: Vec<_> = model.components().iter().map(|c| Reduced::new(c, &coarse)).collect();
    let (components, core_len) = (model.n_components(), model.core_len());
    let (mut cores, mut rows) = (Vec::new(), Vec::new());
    let questions = [Question::Component, Question::Responsibilities, Question::AllCores];
    let [best, gamma, all] = ask(model.clone().into(), &chosen, questions)?;
    for (i, &best) in best.iter().enumerate() {
        let of = |k: usize| &all[(i * components + k) * core_len..][..core_len];
        cores.extend_from_slice(of(best as usize));
        let mut sum = vec![0.0; coarse.len()];
        for (k, part) in reduced.iter().enumerate() {
            let gamma = gamma[i * components + k];
            if gamma > 1e-6 {
                sum.iter_mut().zip(part.reconstruct(of(k))).for_each(|(s, x)| *s += gamma * x);
            }
        }
        rows.extend(sum.iter().map(|&v| v as f32));
    }
    let plane = leading_plane(rows, coarse.len());
    let labels = options.labels.as_ref();
    let pictures = (options.picture_bytes / blocks.len()).max(cast.roles).min(cast.index.len());
    let Quantised { pixels, low, high, holes } = quantised(&chosen, pictures, blocks)?;
    let partial = survey.missing() > 0;
    let column = |of: &[f64]| Floats::new(cast.index.iter().map(|&n| of[n]));
    let stored = StoredSamples {
        component: cast.index.iter().map(|&n| findings.component[n]).collect(),
        responsibility: column(&findings.responsibility),
        label: labels.map(|l| cast.index.iter().map(|&n| l.index[n]).collect()).unwrap_or_default(),
        label_names: labels.map(|l| l.names.clone()).unwrap_or_default(),
        log_likelihood: column(&findings.log_likelihood),
        score: column(&findings.standing),
        error: Floats::new(cast.index.iter().map(|&n| findings.squared_error[n].max(0.0).sqrt())),
        relative_error: column(relative_error),
        core: Floats::new(cores),
        x: Floats::new(plane.x),
        y: Floats::new(plane.y),
        pictures,
        pixels: Bytes::new(&pixels),
        low: Floats::new(low),
        high: Floats::new(high),
        missing: cast.index.iter().filter(|_| partial).map(|&n| survey.holes[n]).collect(),
        holes: if partial { missing::packed(&holes) } else { Bytes::default() },
        name: cast.index.iter().filter_map(|&n| options.names.get(n).cloned()).collect(),
        index: cast.index.clone(),
    };
    let of_all = if stored.index.len() < samples.len() {
        format!("{} of {} samples", stored.index.len(), samples.len())
    } else {
        "All samples".to_owned()
    };
    let method = format!(
        "{of_all} on the first two principal components of their responsibility-weighted reconstructions."
    );
    Ok((stored, Map { method, explained: plane.explained }))
}

/// A component in the shape of smaller pictures.
struct Reduced {
    mean: Vec<f64>,
    loadings: Vec<Matrix>,
}

impl Reduced {
    fn new(component: &crate::model::Component, blocks: &Blocks) -> Self {
        let loadings =
            component.loadings().iter().enumerate().map(|(d, u)| blocks.reduce_rows(d, u)).collect();
        Self { mean: blocks.reduce(component.mean()), loadings }
    }

    fn reconstruct(&self, core: &[f64]) -> Vec<f64> {
        let mut x = expand(core, &self.loadings);
        x.iter_mut().zip(&self.mean).for_each(|(x, m)| *x += m);
        x
    }
}

/// Samples as bytes.
struct Quantised {
    pixels: Vec<u8>,
    /// The value of byte 0, one per sample.
    low: Vec<f64>,
    /// The value of byte 255, one per sample.
    high: Vec<f64>,
    /// Which of the pixels were not observed.
    holes: Vec<bool>,
}

/// The first `count` samples as bytes.
///
/// Images of bytes keep their bytes; anything else uses all 256 steps for the range of each sample.
fn quantised(samples: &Samples<'_>, count: usize, blocks: &Blocks) -> Result<Quantised> {
    let exact = samples.element() == Element::U8 && samples.scale() > 0.0;
    let mut found = Quantised {
        pixels: Vec::with_capacity(count * blocks.len()),
        low: Vec::with_capacity(count),
        high: Vec::with_capacity(count),
        holes: Vec::with_capacity(count * blocks.len()),
    };
    for n in 0..count {
        let x = blocks.reduce_observed(&samples.to_f64(n..n + 1)?);
        let (low, high) = if exact {
            (0.0, 255.0 * samples.scale())
        } else {
            // In single precision, as the page will read them; nothing observed is nothing to be seen.
            let low = x.iter().copied().fold(f64::INFINITY, f64::min);
            let high = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if low <= high { (f64::from(low as f32), f64::from(high as f32)) } else { (0.0, 0.0) }
        };
        let step = if high > low { 255.0 / (high - low) } else { 0.0 };
        // NaN becomes 0.
        found.pixels.extend(x.iter().map(|v| ((v - low) * step).round().clamp(0.0, 255.0) as u8));
        found.holes.extend(x.iter().map(|v| v.is_nan()));
        found.low.push(low);
        found.high.push(high);
    }
    Ok(found)
}

fn component(
    model: &Mixture,
    k: usize,
    findings: &Findings,
    cast: &Cast,
    blocks: &Blocks,
    spectra: Vec<Vec<f64>>,
    history: Option<&History>,
) -> Component {
    let of = &model.components()[k];
    let reduced = Reduced::new(of, blocks);
    let variances = of.core_variances();
    let total: f64 = variances.iter().sum();
    let mut order: Vec<usize> = (0..variances.len()).collect();
    order.sort_by(|&a, &b| variances[b].total_cmp(&variances[a]));
    let entries = order
        .iter()
        .take(ENTRIES)
        .map(|&flat| Entry { position: position(flat, model.rank()), share: ratio(variances[flat], total) })
        .collect();
    let notes = history
        .map(|h| {
            h.events.iter().filter(|e| e.component() == Some(k)).map(|e| sentence(&e.in_words())).collect()
        })
        .unwrap_or_default();
    Component {
        weight: model.weights()[k],
        noise_variance: of.noise_variance(),
        samples: findings.component.iter().filter(|&&c| c == k).count(),
        mean: Floats::new(reduced.mean),
        loadings: reduced.loadings.iter().map(|u| Floats::new(u.as_slice().iter().copied())).collect(),
        entries,
        spectra,
        typical: cast.typical[k].clone(),
        untypical: cast.untypical[k].clone(),
        notes,
    }
}

/// The index in each mode of entry `flat` of a row-major core.
fn position(mut flat: usize, rank: &[usize]) -> Vec<usize> {
    let mut position = vec![0; rank.len()];
    for (at, &r) in position.iter_mut().zip(rank).rev() {
        *at = flat % r;
        flat /= r;
    }
    position
}

fn steps(history: &History) -> Vec<Step> {
    let errors = history.reconstruction_error.iter();
    let pairs = history.log_likelihood.iter().zip(errors).enumerate();
    // Infinities cannot be written as JSON numbers; a step without a figure is left out.
    pairs
        .filter(|(_, (l, e))| l.is_finite() && e.is_finite())
        .map(|(iteration, (&log_likelihood, &error))| Step { iteration, log_likelihood, error })
        .collect()
}

fn warnings(history: Option<&History>) -> Vec<String> {
    let Some(history) = history else { return vec![] };
    let stop = history.stop.and_then(StopReason::warning).map(str::to_owned);
    stop.into_iter().chain(history.warnings()).chain(history.remarks()).map(|text| sentence(&text)).collect()
}

/// Words of the library as a sentence of the page.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str())
}

/// Says so if a single mean with the same noise everywhere does as well: then there is nothing to see in the pictures.
fn idle(model: &Mixture, bic: f64, spread: f64, samples: &Samples<'_>, survey: &Survey) -> Option<String> {
    let (n, size) = (samples.total_weight(), model.sample_len() as f64);
    let missing: f64 = (0..samples.len()).map(|i| samples.weight(i) * survey.holes[i] as f64).sum();
    let observed = n * size - missing;
    let variance = spread / observed;
    let log_likelihood = -0.5 * observed * ((2.0 * std::f64::consts::PI * variance).ln() + 1.0);
    let plain = -2.0 * log_likelihood + (size + 1.0) * n.ln();
    (bic >= plain).then(|| {
        "By BIC this model explains these samples no better than one mean with the same noise everywhere: its pictures may \
         show nothing but noise."
            .to_owned()
    })
}

fn in_words(stop: StopReason) -> &'static str {
    match stop {
        StopReason::Converged => "it converged",
        StopReason::MaxIterations => "it reached its limit of iterations",
        StopReason::Stopped => "it was asked to stop",
    }
}

/// The name the literature has for a mixture of this order and size.
fn published_name(model: &Mixture) -> String {
    match (model.shape().len(), model.n_components()) {
        (1, 1) => "PPCA",
        (1, _) => "mixture of PPCA",
        (2, 1) => "PSOPCA",
        (2, _) => "mixB2DPPCA",
        (_, 1) => "tensor PPCA",
        _ => "mixture of multilinear PPCA",
    }
    .to_owned()
}

/// The caller's facts, and what the page had to leave out.
fn metadata(options: &ReportOptions, blocks: &Blocks, stored: &StoredSamples) -> Vec<(String, String)> {
    let mut facts = options.metadata.clone();
    if !blocks.is_identity() {
        facts.push(("Pictures".into(), format!("means of blocks of {}", sides(blocks.sides()))));
    }
    if stored.pictures < stored.index.len() {
        let text = format!("for {} of the {} samples of the page", stored.pictures, stored.index.len());
        facts.push(("Originals".into(), text));
    }
    facts
}
