//! `matmix select`: how many components, of what rank.

use std::path::PathBuf;

use matmix::error::sides;
use matmix::{
    Criterion, FitOptions, Input, Model, ModelFile, Preset, PresetFit, Samples, SelectOptions, Selection,
    select_on,
};
use serde_json::json;

use crate::data_args::DataOptions;
use crate::error::hinted;
use crate::fit_args::{AUTO, Fitting, choice, preset};
use crate::kind::Kind;
use crate::numbers::whole;
use crate::output::{self, Overwrite, Target};
use crate::progress::FitLine;
use crate::table::{Table, count, number};

/// Choose the number of components, and the ranks with --rank auto, and show what was tried.
///
/// Candidates are not fitted one by one: the path over K splits and merges components, the path over ranks adds and drops
/// columns. The chosen one is then fitted to all samples, and written if -o is given.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix select demo:mnist --scale 1/255 -k 1..12
  matmix select faces/ -k 1..20 --rank auto --criterion bic --json
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
    /// What decides: the likelihood of samples held out, or a criterion on all of them.
    #[arg(long, value_parser = choice(Criterion::ALL), default_value_t)]
    criterion: Criterion,
    /// In how many parts samples are held out, one after the other; 1 holds out a fifth, once.
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N", default_value_t = 3)]
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
        let data = self.options.open(&self.data)?;
        let samples = &data.samples;
        let Some(options) = self.fitting.selection(Some(AUTO)) else { unreachable!("there is a range") };
        let options = SelectOptions {
            criterion: self.criterion,
            folds: self.folds,
            one_standard_error: !self.best,
            ..options
        };
        let preset =
            self.model.unwrap_or_else(|| Preset::for_order(samples.order(), options.most_components));
        let (chosen, fit) = chosen(preset, samples, &options, quiet)?;
        if let Some(target) = &target {
            let best = chosen.best();
            let described = FitOptions {
                components: best.components,
                rank: best.rank.clone(),
                threads: None,
                ..options.fit.clone()
            };
            let file = ModelFile {
                model: fit.model.clone(),
                name: Some(preset.name().into()),
                input: Some(Input::of(samples.shape(), samples)?.with_images(&self.options.opened())),
                options: serde_json::to_value(described).unwrap_or_default(),
                history: Some(matmix::History { seconds: 0.0, ..fit.history.clone() }),
            };
            target.write(|out| out.write_all(&file.to_bytes()))?;
            target.say_wrote(quiet, "", "");
        }
        if self.json {
            return output::json(&json!({
                "model": preset.name(),
                "criterion": chosen.criterion.name(),
                "candidates": chosen.candidates,
                "chosen": chosen.chosen,
                "n_components": chosen.best().components,
                "rank": chosen.best().rank,
                "advice": chosen.advice,
                "passes": chosen.passes,
                "log_likelihood": chosen.fit.log_likelihood(),
            }));
        }
        output::result(&format!("{}\n{}\n", table(&chosen), chosen.advice))
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

fn table(chosen: &Selection) -> Table {
    let held = chosen.criterion == Criterion::HeldOut;
    let mut head = vec!["", "K", "core", "parameters", "log-likelihood"];
    head.extend(if held { &["held-out", "± from best"][..] } else { &["BIC", "AIC", "ICL"] });
    let mut table = Table::new(head);
    let value = |x: Option<f64>, digits| number(x.unwrap_or(f64::NAN), digits);
    for (at, c) in chosen.candidates.iter().enumerate() {
        let mut row = vec![
            if at == chosen.chosen { ">".into() } else { String::new() },
            c.components.to_string(),
            sides(&c.rank),
            count(c.parameters),
            number(c.log_likelihood, 2),
        ];
        match held {
            true => row.extend([value(c.held_out, 2), value(c.standard_error, 2)]),
            false => row.extend([value(c.bic, 0), value(c.aic, 0), value(c.icl, 0)]),
        }
        table.row(row);
    }
    table
}
