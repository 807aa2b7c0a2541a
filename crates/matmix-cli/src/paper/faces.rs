//! The faces: recognition for every r = c and K of the paper's tables, and reconstruction with K = 5.

use std::ops::ControlFlow;

use matmix::data::Labels;
use matmix::{Distance, Recognizer};

use super::digits::average;
use super::figure::{Panel, Series, chart};
use super::method::{ITERATIONS, Method};
use super::published::{Published, Value, table as published};
use super::split::{Split, split};
use super::store::{DISTANCES, Job, Row};
use super::{Experiment, Setting, mean_std, patches, rows};
use crate::commands::montage::spaced;
use crate::error::hinted;
use crate::table::{Table, plural};

/// ε of the recognition experiments.
const TOLERANCE: f64 = 1e-3;
/// K and r = c of the reconstruction experiment.
const RECONSTRUCTION: (usize, usize) = (5, 4);

pub(super) fn run(setting: &Setting) -> anyhow::Result<String> {
    let labels = setting.data.labels.as_ref().ok_or_else(|| {
        let message = format!("{}: the faces have no labels", setting.data.name);
        hinted(message, "a .mat file needs `gnd` beside `fea`; a folder needs one folder per person")
    })?;
    let splits: Vec<Split> = (0..setting.repeats)
        .map(|repeat| {
            let repeat = if setting.same_split { 0 } else { repeat };
            split(setting.experiment, labels, repeat, setting.seed)
        })
        .collect::<anyhow::Result<_>>()?;
    let published = published(setting.experiment);
    let work = |job: &Job| match job.method {
        Method::Patches => patches::measure(setting, labels, &splits[job.repeat], job),
        _ => measure(setting, labels, &splits[job.repeat], job),
    };
    let mut all = patches::jobs(setting);
    if !setting.only_patches {
        all.extend(jobs(setting, &published));
    }
    let results = setting.store()?.run(&all, setting.quiet, work)?;
    let by_patches = patches::report(&published, &results);
    if setting.only_patches {
        return Ok(format!("# {}: recognition accuracy in percent\n\n{by_patches}", published.title));
    }
    let table = table(&published, &results);
    setting.write("table.csv", &table.csv())?;
    let mut report = format!(
        "# {}: recognition accuracy in percent\n\n\
         {} images for training and {} for testing, pixels times {:.4}, T = {ITERATIONS}, ε = {TOLERANCE}, {}{}, algorithm `{}`; mean ±\n\
         standard deviation. Nearest neighbour with the paper's distance; `data` compares cores in units of the data,\n\
         `weighted` is the paper's footnote, `fisher` a discriminant learned on the training images, beyond the paper.\n\
         For GLRAM `data` is the paper's distance.\n\n{}\n",
        published.title,
        splits[0].train.len(),
        splits[0].test.len(),
        setting.data.samples.scale(),
        plural(setting.repeats, "repeat"),
        if setting.same_split { " on one split" } else { "" },
        setting.algorithm.name(),
        table.markdown(),
    );
    report.push_str(&summary(&published, &results));
    report.push_str(&format!("\n{by_patches}"));
    if has_reconstruction(setting.experiment) {
        report.push_str(&reconstruction(setting, &results, &splits[0])?);
    }
    Ok(report)
}

/// The paper shows reconstructions of Yale and AR.
fn has_reconstruction(experiment: Experiment) -> bool {
    experiment != Experiment::Feret
}

fn jobs(setting: &Setting, published: &Published) -> Vec<Job> {
    let mut jobs = Vec::new();
    for repeat in 0..setting.repeats {
        for line in published.lines {
            let r = line.r;
            jobs.push(Job { method: Method::Glram, k: 1, r, repeat });
            for k in published.components {
                jobs.extend(Method::MIXTURES.map(|method| Job { method, k, r, repeat }));
            }
        }
        if has_reconstruction(setting.experiment) {
            let (k, r) = RECONSTRUCTION;
            jobs.extend(Method::MIXTURES.map(|method| Job { method, k, r, repeat }));
        }
    }
    jobs
}

/// Fits one model to the training images and measures it on both sets.
fn measure(setting: &Setting, labels: &Labels, split: &Split, job: &Job) -> anyhow::Result<Row> {
    let train = setting.data.samples.clone().select(&split.train)?;
    let test = job.method.view(&setting.data.samples.clone().select(&split.test)?)?;
    let curve = job.k == RECONSTRUCTION.0;
    let mut errors = Vec::new();
    let seed = setting.seed + job.repeat as u64;
    let tol = if curve { 0.0 } else { TOLERANCE };
    let fit = job.method.fit(&train, job.k, job.r, setting.algorithm, tol, seed, &mut |p| {
        if curve {
            errors.push(p.model.map_or(f64::NAN, |m| m.reconstruction_error(&test).unwrap_or(f64::NAN)));
        }
        ControlFlow::Continue(())
    })?;
    let train = job.method.view(&train)?;
    let classes = |places: &[usize]| places.iter().map(|&n| labels.index[n]).collect::<Vec<_>>();
    let (known, asked) = (classes(&split.train), classes(&split.test));
    let mut accuracy = [f64::NAN; 4];
    for (value, distance) in accuracy.iter_mut().zip(DISTANCES) {
        *value = Recognizer::new(&fit.model, &train, &known, distance)?.evaluate(&test, &asked)?.accuracy;
    }
    Ok(Row {
        job: *job,
        iterations: job.method.iterations(&fit.history.reconstruction_error),
        seconds: fit.history.seconds,
        train_error: fit.history.reconstruction_error.last().copied().unwrap_or(f64::NAN),
        test_error: fit.model.reconstruction_error(&test)?,
        accuracy,
        errors,
    })
}

fn of(results: &[Row], method: Method, k: usize, r: usize) -> impl Iterator<Item = &Row> {
    let wanted = move |row: &&Row| {
        row.job.method == method && row.job.r == r && (method == Method::Glram || row.job.k == k)
    };
    results.iter().filter(wanted)
}

/// Mean and deviation with this distance.
fn ours(results: &[Row], method: Method, k: usize, r: usize, distance: Distance) -> Value {
    let accuracy =
        |row: &Row| DISTANCES.iter().zip(row.accuracy).find(|(d, _)| **d == distance).map(|(_, a)| a);
    mean_std(&of(results, method, k, r).filter_map(accuracy).collect::<Vec<_>>())
}

pub(super) fn percent((mean, std): Value) -> String {
    format!("{:.1} ± {:.1}", 100.0 * mean, 100.0 * std)
}

fn table(published: &Published, results: &[Row]) -> Table {
    let mut table = Table::new([
        "r = c",
        "K",
        "GLRAM published",
        "ours",
        "fisher",
        "mixPPCA published",
        "ours, r·c",
        "ours, r",
        "mixB2DPPCA published",
        "ours",
        "data",
        "weighted",
        "fisher",
    ]);
    for line in published.lines {
        for (k, (ppca, b2d)) in published.components.into_iter().zip(line.mixtures) {
            let ours = |method, distance| percent(ours(results, method, k, line.r, distance));
            table.row([
                line.r.to_string(),
                k.to_string(),
                format!("{:.1}", 100.0 * line.glram),
                ours(Method::Glram, Distance::Paper),
                ours(Method::Glram, Distance::Fisher),
                percent(ppca),
                ours(Method::MixPpca, Distance::Paper),
                ours(Method::MixPpcaFew, Distance::Paper),
                percent(b2d),
                ours(Method::MixB2d, Distance::Paper),
                ours(Method::MixB2d, Distance::Data),
                ours(Method::MixB2d, Distance::Weighted),
                ours(Method::MixB2d, Distance::Fisher),
            ]);
        }
    }
    table
}

/// The number of cells with the published order of the models, by the paper's distance and in units of the data.
fn summary(published: &Published, results: &[Row]) -> String {
    let others = [Method::Glram, Method::MixPpca, Method::MixPpcaFew];
    let mut cells = 0;
    let mut theirs = [0; 3];
    let mut here = [[0; 2]; 3];
    let mut apart = 0.0;
    for line in published.lines {
        for (k, (ppca, b2d)) in published.components.into_iter().zip(line.mixtures) {
            let mean = |method, distance| ours(results, method, k, line.r, distance).0;
            cells += 1;
            apart += (mean(Method::MixB2d, Distance::Paper) - b2d.0).abs();
            for (j, other) in others.into_iter().enumerate() {
                // The paper does not say how many factors its mixture of PPCA has.
                let printed = if other == Method::Glram { line.glram } else { ppca.0 };
                theirs[j] += usize::from(b2d.0 > printed);
                for (here, distance) in here[j].iter_mut().zip([Distance::Paper, Distance::Data]) {
                    *here += usize::from(mean(Method::MixB2d, distance) > mean(other, distance));
                }
            }
        }
    }
    let mut table = Table::new(["claim", "published", "ours", "data"]);
    for (j, other) in others.into_iter().enumerate() {
        table.row([
            format!("mixB2DPPCA above {}", other.name()),
            format!("{} of {cells}", theirs[j]),
            format!("{} of {cells}", here[j][0]),
            format!("{} of {cells}", here[j][1]),
        ]);
    }
    format!(
        "{}\nThe accuracy of mixB2DPPCA is {:.1} points from the published one, on average over the cells.\n",
        table.markdown(),
        100.0 * apart / cells as f64
    )
}

/// The error on the images kept for testing, over the iterations, and rows of them.
fn reconstruction(setting: &Setting, results: &[Row], split: &Split) -> anyhow::Result<String> {
    let (k, r) = RECONSTRUCTION;
    let tests = |method| of(results, method, k, r).map(|row| row.test_error).collect::<Vec<_>>();
    let glram = mean_std(&tests(Method::Glram)).0;
    let mut series = vec![Series { name: Method::Glram.name(), values: vec![glram; ITERATIONS + 1] }];
    let mut table = Table::new(["model", "e, training", "e, testing"]);
    for method in Method::ALL {
        let trains: Vec<f64> = of(results, method, k, r).map(|row| row.train_error).collect();
        let cell = |values: &[f64]| {
            let (mean, std) = mean_std(values);
            format!("{mean:.3} ± {std:.3}")
        };
        table.row([method.name().to_string(), cell(&trains), cell(&tests(method))]);
        if method != Method::Glram {
            let curves: Vec<&Vec<f64>> = of(results, method, k, r).map(|row| &row.errors).collect();
            series.push(Series { name: method.name(), values: average(&curves) });
        }
    }
    let panel = Panel { title: format!("K = {k}, r = c = {r}"), series };
    setting.write("error.svg", &chart(&[panel], "error e on the testing images"))?;
    let train = setting.data.samples.clone().select(&split.train)?;
    let test = setting.data.samples.clone().select(&split.test)?;
    let shown = test.clone().select(&spaced(test.len(), 8))?;
    let mut models = Vec::new();
    for method in [Method::Glram, Method::MixPpca, Method::MixPpcaFew, Method::MixB2d] {
        let fit = method
            .fit(&train, k, r, setting.algorithm, 0.0, setting.seed, &mut |_| ControlFlow::Continue(()))?;
        models.push((method.preset(), fit.model));
    }
    rows(&shown, &models, 2)?.write_png(setting.folder.join("reconstructions.png"))?;
    Ok(format!(
        "\n## Reconstruction, K = {k}, r = c = {r}, {ITERATIONS} iterations\n\n{}\n\
         error.svg is the figure; reconstructions.png has testing images in the first row, then GLRAM, mixPPCA with r·c\n\
         factors, mixPPCA with r factors, mixB2DPPCA.\n",
        table.markdown()
    ))
}
