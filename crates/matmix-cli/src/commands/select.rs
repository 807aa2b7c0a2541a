//! `matmix select`: how many components, of what rank.

use std::path::PathBuf;

use matmix::error::sides;
use matmix::{
    Choice, Criterion, FitOptions, Model, Preset, PresetFit, Purpose, Samples, SelectOptions, Selection,
    select_on,
};
use serde_json::json;

use crate::data_args::{DataOptions, Sides, rank};
use crate::error::hinted;
use crate::fit_args::{Components, Fitting, choice, file_of, preset, warn};
use crate::kind::Kind;
use crate::numbers::{real, whole};
use crate::output::{self, Overwrite, Target};
use crate::progress::FitLine;
use crate::table::{Table, count, measured, number};

/// Choose the number of components, and the ranks with --rank auto, and show what was tried.
///
/// Candidates are not fitted one by one: the path over K splits and merges components, the path over ranks adds and drops
/// columns. The chosen one is then fitted to all samples, and written if -o is given.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix select demo:mnist --scale 1/255 -k 1..12
  matmix select faces/ -k 1..20 --rank auto --criterion bic --json
  matmix select faces/ --for compression --keep 64 --plot faces.png
  matmix select data.npy -k 1 --explain 0.9
  matmix select data.npy -k 5 --rank auto -o model.mm")]
pub(crate) struct Select {
    /// The samples.
    #[arg(value_name = "DATA")]
    data: String,
    /// A file for the chosen model; - is stdout.
    #[arg(long, short, value_name = "MODEL")]
    output: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    /// What decides: the likelihood of samples held out, their error, or a criterion on all samples.
    #[arg(long, value_parser = choice(Criterion::ALL), default_value_t)]
    criterion: Criterion,
    /// What the model is for, instead of --criterion: density and denoising by the likelihood of samples held out, compression by
    /// their error, clustering by ICL.
    #[arg(long = "for", value_parser = choice(Purpose::ALL), value_name = "PURPOSE", conflicts_with = "criterion")]
    purpose: Option<Purpose>,
    /// For compression: choose ranks, too, with at most so many values kept of each sample.
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N")]
    keep: Option<usize>,
    /// Take the smallest ranks that explain this share of the variance, as PCA does.
    #[arg(long, value_parser = real, allow_negative_numbers = true, value_name = "0.9", conflicts_with = "rank")]
    explain: Option<f64>,
    /// The largest ranks that are tried with --rank auto: one for all modes or one per mode; the sides of a sample if not given.
    #[arg(long, value_parser = rank, value_name = "RANK")]
    most_rank: Option<Sides>,
    /// Draw the candidates and the scree of every mode: a PNG picture.
    #[arg(long, value_name = "FILE.png")]
    plot: Option<PathBuf>,
    /// In how many parts samples are held out, one after the other; 1 holds out a fifth, once.
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N", default_value_t = SelectOptions::default().folds)]
    folds: usize,
    /// Take the best candidate, also if a simpler one is worse by less than a standard error.
    #[arg(long)]
    best: bool,
    /// Print one JSON object with all candidates.
    #[arg(long)]
    json: bool,
    /// The model by its published name; the probabilistic one of the data's order if not given.
    #[arg(long, value_parser = preset(), value_name = "NAME", help_heading = "Fit")]
    model: Option<Preset>,
    #[command(flatten)]
    fitting: Fitting,
    #[command(flatten)]
    options: DataOptions,
}

impl Select {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        let inputs = self.options.inputs(&self.data);
        let target = match &self.output {
            Some(path) => Some(Target::new(path, Kind::Model, &inputs, &self.overwrite)?),
            None => None,
        };
        if target.as_ref().is_some_and(Target::is_stdout) {
            let message = "-o - cannot be used here: the candidates are on stdout";
            return Err(hinted(message, "give the model file a name: -o MODEL"));
        }
        let plot = match &self.plot {
            Some(path) => {
                output::check_png(path, "--plot curve.png")?;
                Some(Target::new(path, Kind::Picture, &inputs, &self.overwrite)?)
            }
            None => None,
        };
        let data = self.options.open(&self.data)?;
        let samples = &data.samples;
        let Some(options) = self.fitting.selection(Some(Components::auto())) else {
            unreachable!("there is a range")
        };
        let options = SelectOptions {
            criterion: self.criterion,
            purpose: self.purpose,
            keep: self.keep,
            most_rank: self.most_rank.clone().map(|rank| rank.0).unwrap_or_default(),
            explain: self.explain,
            choose_rank: options.choose_rank || self.keep.is_some() && options.fit.rank.is_empty(),
            folds: self.folds,
            one_standard_error: !self.best,
            ..options
        };
        let preset =
            self.model.unwrap_or_else(|| Preset::for_order(samples.order(), options.most_components));
        let (chosen, fit) = chosen(preset, samples, &options, quiet)?;
        warn(&fit.history, options.fit.tol, quiet);
        if let Some(target) = &target {
            let file = file_of(&fit, self.options.remembered(&data, None)?, &settled(&chosen, &options.fit));
            target.write(|out| out.write_all(&file.to_bytes()))?;
            target.say_wrote(quiet, "", "");
        }
        let choice = &chosen.choice;
        if let Some(plot) = &plot {
            let png = choice.picture()?.to_png()?;
            plot.write(|out| out.write_all(&png))?;
            plot.say_wrote(quiet, "", "");
        }
        if self.json {
            return output::json(&json!({
                "model": preset.name(),
                "criterion": choice.criterion.name(),
                "purpose": choice.purpose,
                "candidates": choice.candidates,
                "chosen": choice.chosen,
                "beyond": choice.beyond,
                "n_components": chosen.best().components,
                "rank": chosen.best().rank,
                "scree": choice.scree,
                "advice": choice.advice,
                "passes": choice.passes,
                "log_likelihood": chosen.fit.log_likelihood(),
            }));
        }
        output::result(&format!("{}\n{}\n{}\n", table(choice), screes(choice), choice.advice))
    }
}

/// The candidates of a preset, and the chosen one as a fit of it.
pub(crate) fn chosen(
    preset: Preset,
    samples: &Samples<'_>,
    options: &SelectOptions,
    quiet: bool,
) -> anyhow::Result<(Selection, PresetFit)> {
    if !preset.is_mixture() {
        let message = format!("{preset} has no likelihood to choose by");
        return Err(hinted(message, "give --model ppca, psopca, mixppca or mixb2dppca, or K and ranks"));
    }
    let view = preset.view(samples)?;
    let rank = preset.rank(samples.shape(), &options.fit.rank);
    let options = SelectOptions {
        least_components: preset.components(options.least_components),
        most_components: preset.components(options.most_components),
        fit: FitOptions { rank, ..options.fit.clone() },
        ..options.clone()
    };
    let mut line = FitLine::new(quiet, samples);
    let chosen = select_on(&view, &options, &mut |p| line.show(p));
    line.clear();
    let chosen = chosen?;
    let fit = &chosen.fit;
    let fitted = PresetFit {
        preset,
        model: Model::Mixture(fit.model.clone()),
        history: fit.history.clone(),
        assigned: fit.assigned.clone(),
        missing: fit.missing,
        never_observed: fit.never_observed,
    };
    Ok((chosen, fitted))
}

/// The options of the fit, with the components and ranks that were chosen.
pub(crate) fn settled(chosen: &Selection, options: &FitOptions) -> FitOptions {
    let best = chosen.best();
    FitOptions { components: best.components, rank: best.rank.clone(), ..options.clone() }
}

/// How long the bar of the best candidate is.
const BAR: f64 = 24.0;

/// The candidates; the bars on the right are the curve of what decides, on its side.
fn table(choice: &Choice) -> Table {
    let mut head = vec!["", "K", "core", "parameters", "log-likelihood", "explained"];
    head.extend(match choice.criterion {
        Criterion::HeldOut => &["held-out", "± from best", ""][..],
        Criterion::Error => &["error", "± from best", ""],
        _ => &["BIC", "AIC", "ICL", ""],
    });
    let mut table = Table::new(head);
    let value = |x: Option<f64>, digits| number(x.unwrap_or(f64::NAN), digits);
    for (at, c) in choice.candidates.iter().enumerate() {
        let mut row = vec![
            if at == choice.chosen { ">".into() } else { String::new() },
            c.components.to_string(),
            sides(&c.rank),
            count(c.parameters),
            number(c.log_likelihood, 2),
            format!("{:.1} %", 100.0 * c.explained),
        ];
        match choice.criterion {
            Criterion::HeldOut => row.extend([value(c.held_out, 2), value(c.standard_error, 2)]),
            Criterion::Error => {
                row.extend([measured(c.error), measured(c.standard_error.unwrap_or(f64::NAN))])
            }
            _ => row.extend([value(c.bic, 0), value(c.aic, 0), value(c.icl, 0)]),
        }
        row.push(bar(choice.standing(c)));
        table.row(row);
    }
    table
}

/// A bar for a share, to an eighth of a letter; even the worst has one.
fn bar(share: f64) -> String {
    let eighths = (8.0 * BAR * share).round().max(1.0) as usize;
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + part
}

/// Columns that a line has room for.
const COLUMNS: usize = 40;

/// The scree of every mode on a line, and how much of it the chosen rank has.
fn screes(choice: &Choice) -> String {
    let Some(best) = choice.best() else { return String::new() };
    let line = |(d, (scree, &rank)): (usize, (&Vec<f64>, &usize))| {
        let most = scree.first().copied().unwrap_or(1.0);
        let height =
            |share: &f64| ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][((share / most * 8.0) as usize).min(7)];
        let drawn: String = scree.iter().take(COLUMNS).map(height).collect();
        let share: f64 = scree.iter().take(rank).sum();
        let (mode, of) = (d, scree.len());
        format!("scree of mode {mode}  {drawn}  {rank} of {of} columns have {:.1} %\n", 100.0 * share)
    };
    let modes = choice.scree.iter().zip(&best.rank).enumerate();
    modes.filter(|(_, (scree, _))| !scree.is_empty()).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(bar(1.0).chars().count(), 24);
        assert_eq!(bar(0.0), "▏");
        assert_eq!(bar(0.5), "█".repeat(12));
        assert_eq!(bar(0.02), "▌");
    }

    #[test]
    fn a_scree_says_how_much_the_chosen_columns_have() {
        let candidate = matmix::Candidate {
            components: 2,
            rank: vec![1],
            parameters: 5,
            log_likelihood: 0.0,
            held_out: None,
            standard_error: None,
            error: 1.0,
            explained: 0.6,
            bic: None,
            aic: None,
            icl: None,
        };
        let scree = vec![vec![0.6, 0.3, 0.1]];
        let choice = Choice { candidates: vec![candidate], scree, ..Choice::default() };
        assert_eq!(screes(&choice), "scree of mode 0  █▅▂  1 of 3 columns have 60.0 %\n");
    }
}
