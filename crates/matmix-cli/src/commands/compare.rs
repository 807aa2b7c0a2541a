//! `matmix compare`: all models that fit the data, side by side.

use std::ops::ControlFlow;

use matmix::error::sides;
use matmix::{FitOptions, History, Model, ModelFile, Preset, Samples};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::commands::fit::Figures;
use crate::data_args::DataOptions;
use crate::error::hinted;
use crate::fit_args::{Fitting, preset};
use crate::numbers::real;
use crate::output;
use crate::progress::steps;
use crate::table::{Table, count, measured, number};

/// Fit all models that the data allows and print them side by side.
///
/// All of them keep as many numbers of a sample as -r says, or as nearly as many as they can: models that flatten samples get
/// as many factors as a core has entries, and those that keep whole columns get fewer of them. A fifth of the samples is
/// held back, and what counts is how the models do on those.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix compare demo:mnist -k 5 -r 4x4 --scale 1/255
  matmix compare faces/ --model glram --model mixb2dppca -k 5 --holdout 0.2 --json")]
pub(crate) struct Compare {
    /// The samples.
    #[arg(value_name = "DATA")]
    data: String,
    /// Only these models; may be given several times.
    #[arg(long, value_parser = preset(), value_name = "NAME")]
    model: Vec<Preset>,
    /// Hold back this share of the samples and measure on them; 0 holds back none.
    #[arg(long, value_parser = real, allow_negative_numbers = true, value_name = "SHARE", default_value = "0.2")]
    holdout: f64,
    /// Print an array of JSON objects.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    fitting: Fitting,
    #[command(flatten)]
    options: DataOptions,
}

impl Compare {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        let data = self.options.open(&self.data)?;
        let options = self.fitting.fixed("compare")?;
        let (train, held) = match self.holdout {
            0.0 => (data.samples.clone(), None),
            share => split(&data.samples, share, options.seed)?,
        };
        let wanted = |p: &Preset| {
            if self.model.is_empty() { p.fits_order(train.order()) } else { self.model.contains(p) }
        };
        let presets: Vec<Preset> = Preset::ALL.iter().copied().filter(wanted).collect();
        let bar = steps(quiet, presets.len());
        let mut results = Vec::new();
        for preset in presets {
            bar.set_message(preset.name());
            let options = FitOptions { rank: equal(preset, train.shape(), &options)?, ..options.clone() };
            results.push(Compared::new(preset, &train, held.as_ref(), &options)?);
            bar.inc(1);
        }
        bar.finish_and_clear();
        if self.json {
            return output::json(&results.iter().map(Compared::json).collect::<Value>());
        }
        output::result(&table(&results, held.is_some()).to_string())
    }
}

/// The ranks with which a preset keeps as many numbers as a core of the wanted shape has, or as nearly as many as it can.
fn equal(preset: Preset, shape: &[usize], options: &FitOptions) -> matmix::Result<Vec<usize>> {
    let core = options.rank_for(shape)?;
    Ok(match (preset, shape) {
        // Of a matrix these keep so many columns, as they are.
        (Preset::TwoDPca | Preset::Mp2dPca, &[rows, columns]) => {
            let kept = core.iter().product::<usize>() as f64 / rows as f64;
            vec![core[0], (kept.round() as usize).clamp(1, columns)]
        }
        _ => core,
    })
}

/// Some samples to learn from and some to keep for the test, at random.
fn split<'a>(
    samples: &Samples<'a>,
    share: f64,
    seed: u64,
) -> anyhow::Result<(Samples<'a>, Option<Samples<'a>>)> {
    let n = samples.len();
    let held = (n as f64 * share).round() as usize;
    if !(share > 0.0 && share < 1.0) || held == 0 || held == n {
        let message = format!("--holdout {share}: no such share of {n} samples can be held back");
        return Err(hinted(message, "--holdout takes a share between 0 and 1, such as 0.2, or 0 for none"));
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let (test, train) = order.split_at_mut(held);
    test.sort_unstable();
    train.sort_unstable();
    Ok((samples.clone().select(train)?, Some(samples.clone().select(test)?)))
}

/// One model, fitted and measured.
pub(crate) struct Compared {
    pub(crate) preset: Preset,
    pub(crate) model: Model,
    /// What is kept of one sample: a core, or one per row.
    pub(crate) core: Vec<usize>,
    pub(crate) error: f64,
    pub(crate) held_out_error: f64,
    pub(crate) log_likelihood: f64,
    pub(crate) held_out_log_likelihood: f64,
    pub(crate) bic: f64,
    pub(crate) seconds: f64,
    pub(crate) history: History,
}

impl Compared {
    pub(crate) fn new(
        preset: Preset,
        train: &Samples<'_>,
        held: Option<&Samples<'_>>,
        options: &FitOptions,
    ) -> anyhow::Result<Self> {
        let fit = preset.fit(train, options, &mut |_| ControlFlow::Continue(()))?;
        let rows_each = preset.view(train)?.len() / train.len();
        let figures = Figures::new(&fit, train.len(), rows_each);
        let file = ModelFile { name: Some(preset.name().into()), ..ModelFile::new(fit.model) };
        let (mut held_out_error, mut held_out_log_likelihood) = (f64::NAN, f64::NAN);
        if let Some(held) = held {
            let view = file.view(held)?;
            held_out_error = file.model.reconstruction_error(&view)? * (rows_each as f64).sqrt();
            if let Model::Mixture(m) = &file.model {
                held_out_log_likelihood = m.score(&view)? * rows_each as f64;
            }
        }
        let mut core = file.model.rank().to_vec();
        if rows_each > 1 {
            core.insert(0, rows_each);
        }
        Ok(Self {
            preset,
            model: file.model,
            core,
            error: figures.reconstruction_error,
            held_out_error,
            log_likelihood: figures.log_likelihood,
            held_out_log_likelihood,
            bic: figures.bic,
            seconds: fit.history.seconds,
            history: fit.history,
        })
    }

    fn json(&self) -> Value {
        json!({
            "model": self.preset.name(), "n_components": self.model.n_components(), "rank": self.model.rank(),
            "n_kept": self.core.iter().product::<usize>(),
            "n_parameters": self.model.n_parameters(), "bic": self.bic, "reconstruction_error": self.error,
            "held_out_error": self.held_out_error, "log_likelihood": self.log_likelihood,
            "held_out_log_likelihood": self.held_out_log_likelihood, "seconds": self.seconds,
        })
    }
}

fn table(results: &[Compared], held: bool) -> Table {
    let mut head =
        vec!["model", "K", "core", "kept", "parameters", "error", "log-likelihood", "BIC", "seconds"];
    if held {
        head.insert(6, "held-out error");
        head.insert(8, "held-out");
    }
    let mut table = Table::new(head);
    for r in results {
        // The likelihood of rows that are taken for independent samples is no likelihood of matrices.
        let comparable = |x: f64| if r.preset == Preset::Mp2dPca { f64::NAN } else { x };
        let mut row = vec![
            r.preset.name().to_string(),
            r.model.n_components().to_string(),
            sides(&r.core),
            r.core.iter().product::<usize>().to_string(),
            count(r.model.n_parameters()),
            measured(r.error),
            number(comparable(r.log_likelihood), 2),
            number(comparable(r.bic), 0),
            number(r.seconds, 2),
        ];
        if held {
            row.insert(6, measured(r.held_out_error));
            row.insert(8, number(comparable(r.held_out_log_likelihood), 2));
        }
        table.row(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_models_keep_as_many_numbers_as_they_can_of_those_that_are_wanted() {
        let equal = |preset: Preset, shape: &[usize], rank: &[usize]| {
            super::equal(preset, shape, &FitOptions { rank: rank.to_vec(), ..FitOptions::default() }).unwrap()
        };
        for rank in [&[][..], &[4], &[4, 4]] {
            let kept = |preset: Preset| -> usize {
                preset.rank(&[28, 28], &equal(preset, &[28, 28], rank)).iter().product()
            };
            for preset in [Preset::Pca, Preset::MixPpca, Preset::Glram, Preset::MixB2dPpca] {
                assert_eq!(kept(preset), 16, "{preset} {rank:?}");
            }
            // One whole column is the least they can keep.
            assert_eq!((kept(Preset::TwoDPca), kept(Preset::Mp2dPca)), (28, 1));
        }
        assert_eq!(equal(Preset::TwoDPca, &[8, 20], &[4, 6]), [4, 3]);
    }
}
