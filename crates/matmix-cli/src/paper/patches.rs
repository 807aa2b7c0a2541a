//! Beyond the paper: the same splits, recognised by the patches of the images.

use matmix::data::Labels;
use matmix::{FitOptions, PatchFisher, PatchFisherOptions, PatchRecognizer};

use super::faces::percent;
use super::method::Method;
use super::published::Published;
use super::split::Split;
use super::store::{Job, Row};
use super::{Setting, mean_std};
use crate::table::Table;

/// With one component there is no mixture: what is the mixture good for?
const COMPONENTS: [usize; 4] = [1, 4, 16, 32];

/// The side of the cores.
const RANK: usize = 4;

/// The ridge of the regression on the people.
const RIDGE: f64 = 0.1;

pub(super) fn jobs(setting: &Setting) -> Vec<Job> {
    let of = |repeat| COMPONENTS.map(|k| Job { method: Method::Patches, k, r: RANK, repeat });
    (0..setting.repeats).flat_map(of).collect()
}

/// Fits a mixture to patches of the training images and recognises the others.
pub(super) fn measure(setting: &Setting, labels: &Labels, split: &Split, job: &Job) -> anyhow::Result<Row> {
    let started = std::time::Instant::now();
    let of = |places: &[usize]| -> matmix::Result<_> {
        let classes: Vec<usize> = places.iter().map(|&n| labels.index[n]).collect();
        Ok((setting.data.samples.clone().select(places)?, classes))
    };
    let ((train, known), (test, asked)) = (of(&split.train)?, of(&split.test)?);
    let usual = PatchFisherOptions::default();
    let fit = FitOptions {
        components: job.k,
        rank: vec![job.r],
        seed: setting.seed + job.repeat as u64,
        // The grid is what runs in parallel.
        threads: Some(1),
        ..usual.fit.clone()
    };
    let fisher = PatchFisher::fit(&train, &PatchFisherOptions { fit, ..usual })?;
    let found = PatchRecognizer::new(fisher, &train, &known, RIDGE)?.evaluate(&test, &asked)?;
    Ok(Row {
        job: *job,
        iterations: 0,
        seconds: started.elapsed().as_secs_f64(),
        train_error: f64::NAN,
        test_error: f64::NAN,
        accuracy: [found.accuracy, f64::NAN, f64::NAN, f64::NAN],
        errors: vec![],
    })
}

/// The rows of the table, beside the best that was published.
pub(super) fn report(published: &Published, results: &[Row]) -> String {
    let mixtures = || published.lines.iter().flat_map(|line| line.mixtures);
    let best = mixtures().map(|(_, b2d)| b2d).max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::NAN, 0.0));
    let mut table = Table::new(["patches, K", "ours", "best published"]);
    for k in COMPONENTS {
        let accuracy: Vec<f64> = results
            .iter()
            .filter(|row| row.job.method == Method::Patches && row.job.k == k)
            .map(|row| row.accuracy[0])
            .collect();
        table.row([k.to_string(), percent(mean_std(&accuracy)), percent(best)]);
    }
    format!(
        "## By patches\n\n\
         Not the paper's method: Fisher vectors over patches of 6×6 (cores {RANK}×{RANK}, 5×5 cells), ridge regression on the people, the\n\
         nearest training image by the cosine; the same splits. The best published value is mixB2DPPCA's.\n\n{}\n",
        table.markdown()
    )
}
