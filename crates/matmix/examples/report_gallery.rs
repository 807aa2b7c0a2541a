//! Writes a report for every kind of data into a folder, each beside a JSON file with what the library computes for a
//! few cores: `report_gallery FOLDER [DATA.npy [LABELS.txt]]`.
//!
//! The browser tests open these pages and compare; people open them to look. With a `.npy` file of their own it is
//! fitted with K = 10 and cores of rank 4 and reported as `data.html`.

use std::error::Error;
use std::path::Path;

use matmix::data::{Labels, digits};
use matmix::report::{Axis, HeldOut, ReportOptions, recognise, write_report};
use matmix::{Distance, FitOptions, History, Missing, Model, Samples, SelectOptions, fit, select};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(folder) = arguments.first() else {
        return Err("usage: report_gallery FOLDER [DATA.npy [LABELS.txt]]".into());
    };
    let folder = Path::new(folder);
    std::fs::create_dir_all(folder)?;
    if let Some(data) = arguments.get(1) {
        let samples = Samples::from_npy(data)?.scaled(1.0 / 255.0)?;
        let labels = arguments.get(2).map(Labels::read).transpose()?;
        let name = Path::new(data).file_name().map_or(data.clone(), |n| n.to_string_lossy().into_owned());
        let options = ReportOptions { data: name, labels, ..Default::default() };
        return report(folder, "data", &samples, 10, &[4, 4], options);
    }
    images(folder)?;
    markup(folder)?;
    signed(folder)?;
    colour(folder)?;
    slices(folder)?;
    curves(folder)?;
    people(folder)?;
    missing(folder)?;
    gaps(folder)?;
    large(folder)
}

/// Fits, reports and notes what the library makes of a few cores.
fn report(
    folder: &Path,
    name: &str,
    samples: &Samples<'_>,
    components: usize,
    rank: &[usize],
    options: ReportOptions,
) -> Outcome {
    let fitting = FitOptions { components, rank: rank.to_vec(), max_iter: 60, seed: 1, ..Default::default() };
    let fitted = fit(samples, &fitting)?;
    let recognition = match &options.labels {
        Some(labels) => {
            Some(recognise(&Model::Mixture(fitted.model.clone()), samples, labels, Distance::Paper)?)
        }
        None => None,
    };
    // A page that brings a history was chosen before.
    let choice = options.history.and_then(|history| history.choice);
    let history = Some(History { choice, ..fitted.history });
    let options = ReportOptions { history, seed: Some(1), recognition, ..options };
    write_report(&fitted.model, samples, &options, folder.join(format!("{name}.html")))?;
    let size: usize = rank.iter().product();
    let mut cases = Vec::new();
    for k in [0, components - 1] {
        let core: Vec<f64> = (0..size).map(|j| f64::from((j as i32 * 7 + 3) % 11 - 5) / 4.0).collect();
        let matrix = fitted.model.component(k)?.reconstruct(&core);
        cases.push(serde_json::json!({ "component": k, "core": core, "matrix": matrix }));
    }
    std::fs::write(folder.join(format!("{name}.json")), serde_json::to_string(&cases)?)?;
    Ok(())
}

/// A blob of light with soft edges at (y, x), seen in a picture of p × q.
fn blob(p: usize, q: usize, y: f64, x: f64, width: f64) -> impl Fn(usize) -> f64 {
    move |i| {
        let (dy, dx) = ((i / q) as f64 / p as f64 - y, (i % q) as f64 / q as f64 - x);
        (-(dy * dy + dx * dx) / (2.0 * width * width)).exp()
    }
}

fn images(folder: &Path) -> Outcome {
    let digits = digits();
    let options = ReportOptions { data: digits.name, labels: digits.labels, ..Default::default() };
    report(folder, "images", &digits.samples.scaled(1.0 / 255.0)?, 10, &[4, 4], options)
}

/// Every text a user supplies tries to be more than text.
fn markup(folder: &Path) -> Outcome {
    let few: Vec<usize> = (0..1000).step_by(10).collect();
    let samples = digits().samples.scaled(1.0 / 255.0)?.select(&few)?;
    let nasty = [
        "<script>window.broken = 1</script>",
        "</script><script>window.broken = 2</script>",
        "\"><img src=x onerror=\"window.broken = 3\">",
        "<!-- & &amp; \u{2028}",
        "{{ 7 * 7 }}{% raw %}",
    ];
    let options = ReportOptions {
        title: "</title><script>window.broken = 4</script>".into(),
        data: "<b onmouseover=\"window.broken = 5\">file</b>.npy".into(),
        model: "<i>model</i>".into(),
        labels: Some(Labels::new((0..100).map(|i| nasty[i % nasty.len()]))),
        metadata: vec![("<u>key</u>".into(), "</dd><script>window.broken = 6</script>".into())],
        ..Default::default()
    };
    report(folder, "markup", &samples, 2, &[3, 3], options)
}

/// Windows of 16 channels by 128 instants, as of an EEG: three states with rhythms of their own.
fn signed(folder: &Path) -> Outcome {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for n in 0..240usize {
        let state = n % 3;
        let (rhythm, size) = (4.0 + 5.0 * state as f64, random.random_range(4.0..16.0));
        for channel in 0..16 {
            let strength = (channel as f64 / 3.0 + state as f64).sin();
            for instant in 0..128 {
                let phase = std::f64::consts::TAU * rhythm * f64::from(instant) / 128.0;
                let noise: f64 = (0..3).map(|_| random.random_range(-1.0..1.0)).sum();
                values.push((size * strength * phase.sin() + 2.0 * noise) as f32);
            }
        }
        labels.push(["rest", "left", "right"][state].to_owned());
    }
    let samples = Samples::from_vec(&[16, 128], values)?;
    let axes = vec![
        Axis { name: "channel".into(), start: 1.0, step: 1.0, ..Axis::default() },
        Axis { name: "time".into(), unit: "s".into(), start: 0.0, step: 1.0 / 128.0 },
    ];
    let value = Axis { name: "potential".into(), unit: "µV".into(), ..Axis::default() };
    let fit = FitOptions { rank: vec![3, 4], max_iter: 10, ..Default::default() };
    let chosen =
        select(&samples, &SelectOptions { most_components: 4, folds: 2, fit, ..Default::default() })?;
    let options = ReportOptions {
        history: Some(chosen.fit.history),
        data: "windows.npy".into(),
        labels: Some(Labels::new(labels)),
        axes,
        value,
        ..Default::default()
    };
    report(folder, "signed", &samples, 3, &[3, 4], options)
}

fn colour(folder: &Path) -> Outcome {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut values = Vec::new();
    for n in 0..150usize {
        let light = blob(24, 32, random.random_range(0.3..0.7), random.random_range(0.25..0.75), 0.16);
        for i in 0..24 * 32 {
            for channel in 0..3 {
                let tint = if n % 3 == channel { 0.8 } else { 0.25 };
                values.push((255.0 * (0.12 + tint * light(i) + random.random_range(0.0..0.06))) as u8);
            }
        }
    }
    let samples = Samples::from_vec(&[24, 32, 3], values)?.scaled(1.0 / 255.0)?;
    let options = ReportOptions { data: "lights".into(), ..Default::default() };
    report(folder, "colour", &samples, 3, &[4, 4, 2], options)
}

fn slices(folder: &Path) -> Outcome {
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let mut values = Vec::new();
    for n in 0..80usize {
        let (way, height) = (if n % 2 == 0 { 1.0 } else { -1.0 }, random.random_range(0.35..0.65));
        let frames: Vec<_> =
            (0..10).map(|t| blob(24, 24, height, 0.5 + way * (f64::from(t) - 4.5) * 0.07, 0.12)).collect();
        for i in 0..24 * 24 {
            values.extend(frames.iter().map(|f| (10.0 * f(i) + random.random_range(0.0..1.0)) as f32));
        }
    }
    let samples = Samples::from_vec(&[24, 24, 10], values)?;
    let time = Axis { name: "time".into(), unit: "s".into(), start: 0.0, step: 0.04 };
    let place = |name: &str| Axis { name: name.into(), unit: "mm".into(), start: 0.0, step: 0.5 };
    let options = ReportOptions {
        data: "clips.npy".into(),
        axes: vec![place("height"), place("width"), time],
        value: Axis { name: "intensity".into(), unit: "counts".into(), ..Axis::default() },
        ..Default::default()
    };
    report(folder, "slices", &samples, 2, &[3, 4, 2], options)
}

fn curves(folder: &Path) -> Outcome {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let mut values = Vec::new();
    for n in 0..300usize {
        let (peak, height) =
            (0.25 + 0.25 * (n % 3) as f64 + random.random_range(-0.03..0.03), random.random_range(0.7..1.3));
        let drift = random.random_range(-0.3..0.3);
        values.extend((0..120).map(|i| {
            let t = f64::from(i) / 119.0;
            height * (-(t - peak).powi(2) / 0.004).exp()
                + drift * (t - 0.5)
                + random.random_range(-0.03..0.03)
        }));
    }
    let samples = Samples::from_vec(&[120], values)?;
    let options = ReportOptions {
        data: "spectra.npy".into(),
        axes: vec![Axis { name: "wavelength".into(), unit: "nm".into(), start: 400.0, step: 2.5 }],
        value: Axis { name: "absorbance".into(), ..Axis::default() },
        ..Default::default()
    };
    report(folder, "curves", &samples, 3, &[4], options)
}

/// Many labels, names of files, and samples that were held out.
fn people(folder: &Path) -> Outcome {
    let mut random = ChaCha8Rng::seed_from_u64(17);
    let (mut values, mut labels, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..480usize {
        let person = n % 120;
        let place = |i: usize| 0.2 + 0.6 * ((person * i) % 121) as f64 / 120.0;
        let shift = random.random_range(-0.04..0.04);
        let lights =
            [blob(16, 16, place(3) + shift, place(5), 0.12), blob(16, 16, place(7), place(11) + shift, 0.08)];
        values.extend((0..256).map(|i| {
            let light = lights[0](i) + 0.7 * lights[1](i) + random.random_range(0.0..0.15);
            (255.0 * light.min(1.0)) as u8
        }));
        labels.push(format!("person {person:03}"));
        names.push(format!("{person:03}/{}.png", n / 120));
    }
    let all = Samples::from_vec(&[16, 16], values)?.scaled(1.0 / 255.0)?;
    let first: Vec<usize> = (0..420).collect();
    let held_out: Vec<usize> = (420..480).collect();
    let samples = all.clone().select(&first)?;
    let model = fit(&samples, &FitOptions { components: 3, rank: vec![3, 3], ..Default::default() })?.model;
    let options = ReportOptions {
        data: "people".into(),
        labels: Some(Labels::new(labels.iter().take(420).cloned())),
        names: names.into_iter().take(420).collect(),
        held_out: Some(HeldOut::new(&model, &all.select(&held_out)?)?),
        ..Default::default()
    };
    report(folder, "people", &samples, 3, &[3, 3], options)
}

/// Digits of which cells are missing: scattered ones, blocks, in one sample all of them, and one cell in every sample.
fn missing(folder: &Path) -> Outcome {
    let mut random = ChaCha8Rng::seed_from_u64(19);
    let digits = digits();
    let few: Vec<usize> = (0..1000).step_by(4).collect();
    let labels = digits.labels.map(|l| Labels::new(few.iter().map(|&n| l.names[l.index[n]].clone())));
    let samples = digits.samples.scaled(1.0 / 255.0)?.select(&few)?;
    let mut values = samples.to_f64(0..few.len())?;
    for (n, x) in values.chunks_exact_mut(784).enumerate() {
        let (top, left) = (random.random_range(4..14), random.random_range(4..14));
        for (i, x) in x.iter_mut().enumerate() {
            let (row, column) = (i / 28, i % 28);
            let hidden = match n % 4 {
                0 => false,
                1 => (top..top + 10).contains(&row) && (left..left + 10).contains(&column),
                _ => random.random::<f64>() < 0.1 * (n % 7) as f64,
            };
            if hidden || n == 77 || i == 15 * 28 + 15 {
                *x = f64::NAN;
            }
        }
    }
    let samples = Samples::from_vec(&[28, 28], values)?.with_missing(Missing::Nan);
    let names = few.iter().map(|n| format!("digit-{n}.png")).collect();
    let options = ReportOptions { data: "broken".into(), labels, names, ..Default::default() };
    report(folder, "missing", &samples, 4, &[5, 5], options)
}

/// Curves with gaps.
fn gaps(folder: &Path) -> Outcome {
    let mut random = ChaCha8Rng::seed_from_u64(23);
    let mut values = Vec::new();
    for n in 0..120usize {
        let (phase, size) = (random.random_range(0.0..6.0), random.random_range(0.6..1.4));
        let gap = random.random_range(0..540);
        values.extend((0..600usize).map(|i| {
            let hidden = n % 3 != 0 && (gap..gap + 60).contains(&i);
            let value = size * (i as f64 / 48.0 + phase).sin() + random.random_range(-0.1..0.1);
            if hidden { f32::NAN } else { value as f32 }
        }));
    }
    let samples = Samples::from_vec(&[600], values)?.with_missing(Missing::Nan);
    let axes = vec![Axis { name: "time".into(), unit: "s".into(), start: 0.0, step: 0.01 }];
    let value = Axis { name: "height".into(), unit: "m".into(), ..Axis::default() };
    let options = ReportOptions { data: "tides.npy".into(), axes, value, ..Default::default() };
    report(folder, "gaps", &samples, 1, &[3], options)
}

/// Pictures that are too large to travel as they are, and one component.
fn large(folder: &Path) -> Outcome {
    let mut random = ChaCha8Rng::seed_from_u64(13);
    let mut values = Vec::new();
    for _ in 0..40 {
        let light = blob(300, 200, random.random_range(0.3..0.7), random.random_range(0.3..0.7), 0.2);
        values.extend((0..300 * 200).map(|i| (255.0 * light(i)) as u8));
    }
    let samples = Samples::from_vec(&[300, 200], values)?.scaled(1.0 / 255.0)?;
    report(
        folder,
        "large",
        &samples,
        1,
        &[3, 3],
        ReportOptions { data: "plates".into(), ..Default::default() },
    )
}
