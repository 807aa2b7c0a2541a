//! The digits: reconstruction error over the iterations for K = 2, 5, 10, and the reconstructed images.

use std::ops::ControlFlow;

use super::figure::{Panel, Series, chart};
use super::method::{ITERATIONS, Method};
use super::store::{Job, Row};
use super::{Setting, mean_std, rows};
use crate::commands::montage::spaced;
use crate::output;
use crate::table::{Table, plural};

const COMPONENTS: [usize; 3] = [2, 5, 10];
/// r = c.
const RANK: usize = 4;

pub(super) fn run(setting: &Setting) -> anyhow::Result<String> {
    let samples = &setting.data.samples;
    let mut jobs = vec![Job { method: Method::Glram, k: 1, r: RANK, repeat: 0 }];
    for repeat in 0..setting.repeats {
        for method in Method::MIXTURES {
            jobs.extend(COMPONENTS.map(|k| Job { method, k, r: RANK, repeat }));
        }
    }
    let fit =
        |job: &Job| {
            let seed = setting.seed + job.repeat as u64;
            // The paper sets nothing but T here: all iterations are run.
            job.method
                .fit(samples, job.k, job.r, setting.algorithm, 0.0, seed, &mut |_| ControlFlow::Continue(()))
        };
    let results = setting.store()?.run(&jobs, setting.quiet, |job| {
        let fit = fit(job)?;
        let errors = fit.history.reconstruction_error;
        Ok(Row {
            job: *job,
            iterations: job.method.iterations(&errors),
            seconds: fit.history.seconds,
            train_error: errors.last().copied().unwrap_or(f64::NAN),
            test_error: f64::NAN,
            accuracy: [f64::NAN; 4],
            errors,
        })
    })?;
    let svg = chart(&panels(&results), "reconstruction error e");
    setting.write("error.svg", &svg)?;
    let table = table(&results);
    setting.write("table.csv", &table.csv())?;
    let shown = samples.clone().select(&spaced(samples.len(), 10))?;
    let mut models = Vec::new();
    for method in [Method::Glram, Method::MixPpca, Method::MixPpcaFew, Method::MixB2d] {
        output::say(setting.quiet, &format!("drawing {}", method.name()));
        models.push((method.preset(), fit(&Job { method, k: 10, r: RANK, repeat: 0 })?.model));
    }
    rows(&shown, &models, 2)?.write_png(setting.folder.join("reconstructions.png"))?;
    Ok(format!(
        "# Digits: reconstruction error e after {ITERATIONS} iterations, r = c = {RANK}\n\n\
         {} images of 28×28, pixels times {:.4}, {}, algorithm `{}`; mean ± standard deviation. The paper gives its errors as\n\
         curves without numbers (its Figure 2), so that its claims stand beside ours.\n\n{}\n{}\n\
         error.svg is the figure (mean over the repeats); reconstructions.png has the originals in the first row, then\n\
         GLRAM, mixPPCA with r·c factors, mixPPCA with r factors, mixB2DPPCA, all with K = 10.\n",
        samples.len(),
        samples.scale(),
        plural(setting.repeats, "repeat"),
        setting.algorithm.name(),
        table.markdown(),
        claims(&results),
    ))
}

fn last<'a>(results: &'a [Row], method: Method, k: usize) -> impl Iterator<Item = f64> + 'a {
    let of = move |r: &&Row| r.job.method == method && (method == Method::Glram || r.job.k == k);
    results.iter().filter(of).map(|r| r.train_error)
}

fn mean(results: &[Row], method: Method, k: usize) -> f64 {
    mean_std(&last(results, method, k).collect::<Vec<_>>()).0
}

fn table(results: &[Row]) -> Table {
    let mut table = Table::new(["model", "K = 2", "K = 5", "K = 10"]);
    for method in Method::ALL {
        let cell = |k: usize| {
            let (mean, std) = mean_std(&last(results, method, k).collect::<Vec<_>>());
            if method == Method::Glram { format!("{mean:.3}") } else { format!("{mean:.3} ± {std:.3}") }
        };
        table.row([method.name().to_string(), cell(2), cell(5), cell(10)]);
    }
    table
}

/// The paper's sentences about its Figure 2, and whether they hold here.
fn claims(results: &[Row]) -> String {
    let mut table = Table::new(["published", "here"]);
    let says = |held: bool| if held { "yes" } else { "no" };
    for k in COMPONENTS {
        let (b2d, glram) = (mean(results, Method::MixB2d, k), mean(results, Method::Glram, k));
        table.row([
            format!("K = {k}: e(mixB2DPPCA) < e(GLRAM)"),
            format!("{}: {b2d:.3} against {glram:.3}", says(b2d < glram)),
        ]);
    }
    let b2d = mean(results, Method::MixB2d, 10);
    for (method, factors) in [(Method::MixPpcaFew, "r factors"), (Method::MixPpca, "r·c factors")] {
        let other = mean(results, method, 10);
        table.row([
            format!("K = 10: e(mixB2DPPCA) < e(mixture of PPCA), {factors}"),
            format!("{}: {b2d:.3} against {other:.3}", says(b2d < other)),
        ]);
    }
    table.markdown()
}

fn panels(results: &[Row]) -> Vec<Panel> {
    let glram = mean(results, Method::Glram, 1);
    COMPONENTS
        .map(|k| {
            let mut series = vec![Series { name: Method::Glram.name(), values: vec![glram; ITERATIONS + 1] }];
            for method in Method::MIXTURES {
                let curves: Vec<&Vec<f64>> = results
                    .iter()
                    .filter(|r| r.job.method == method && r.job.k == k)
                    .map(|r| &r.errors)
                    .collect();
                series.push(Series { name: method.name(), values: average(&curves) });
            }
            Panel { title: format!("K = {k}"), series }
        })
        .into()
}

/// The mean curve; one that ended early stays where it was.
pub(super) fn average(curves: &[&Vec<f64>]) -> Vec<f64> {
    let longest = curves.iter().map(|c| c.len()).max().unwrap_or(0);
    let at = |c: &&Vec<f64>, t: usize| c.get(t).or(c.last()).copied().unwrap_or(f64::NAN);
    (0..longest).map(|t| curves.iter().map(|c| at(c, t)).sum::<f64>() / curves.len() as f64).collect()
}
