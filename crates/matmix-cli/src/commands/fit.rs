//! `matmix fit`: from data to a model file.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use matmix::error::sides;
use matmix::pass::MissingCells;
use matmix::{
    Algorithm, Checkpoint, Device, FitOptions, History, Missing, Model, ModelFile, Noise, Preset, PresetFit,
    SelectOptions, Start, StopReason,
};
use serde_json::{Value, json};

use super::info::tell_parameters;
use super::{classify, dask, select};
use crate::data_args::DataOptions;
use crate::device_args::DeviceArgs;
use crate::error::hinted;
use crate::fit_args::{Fitting, choice, file_of, preset, warn};
use crate::interrupt;
use crate::kind::Kind;
use crate::numbers::whole;
use crate::output::{self, Overwrite, Target};
use crate::patch_args::PatchArgs;
use crate::progress::{FitLine, working};
use crate::table::{Table, measured, number, plural};

/// Fit a model to data and write it to a file.
///
/// Values are used as they are stored unless --scale is given; for images of bytes --scale 1/255 is usual. Ctrl-C (or
/// SIGTERM, or SIGHUP) ends a fit after the iteration under way and keeps the best model so far; a second one ends it at
/// once. The exit code is then 130 (143, 129).
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix fit demo:mnist -k 10 -r 4x4 --scale 1/255 -o digits.mm
  matmix fit 'parts/*.npy' -k 10 -r 4x4 --memory 2GB -o model.mm
  matmix fit faces/ -k 5 -r 8 --checkpoint fit.state --resume -o faces.mm
  matmix fit faces/ --patches 6 --stride 2 -k 16 -o patches.mm
  matmix fit known.npy --supervised --labels known.txt -k 2 -r 8x8 -o classes.mm")]
pub(crate) struct Fit {
    /// The samples: a .npy, .npz, IDX or .mat file, a folder of images, demo:mnist, or several .npy files as one set
    /// ('parts/*.npy' in quotes, or a.npy,b.npy).
    #[arg(value_name = "DATA")]
    data: String,
    /// The model file to write; - is stdout.
    #[arg(long, short, value_name = "MODEL")]
    output: PathBuf,
    #[command(flatten)]
    overwrite: Overwrite,
    /// Print the figures of the fit as one JSON object on stdout.
    #[arg(long)]
    json: bool,
    /// The model by its published name; the probabilistic one of the data's order if not given.
    #[arg(long, value_parser = preset(), value_name = "NAME", help_heading = "Fit")]
    model: Option<Preset>,
    #[command(flatten)]
    fitting: Fitting,
    /// Keep to the labels of the samples (those of the data, or --labels): every class has components of its own, -k of them, and `matmix
    /// classify` tells classes by them. Labels that are empty or NaN are not known; such samples may be of any class.
    #[arg(long, conflicts_with_all = ["dask", "patches"], help_heading = "Fit")]
    supervised: bool,
    /// With --supervised: the label of samples whose class is not known, such as -1.
    #[arg(
        long,
        value_name = "LABEL",
        allow_hyphen_values = true,
        requires = "supervised",
        help_heading = "Fit"
    )]
    unlabeled: Option<String>,
    /// exact: the exact posterior, any order, the likelihood never falls; paper: Algorithm 1 of the paper as printed, matrices only.
    #[arg(long, value_parser = choice(Algorithm::ALL), default_value_t, help_heading = "Fit")]
    algorithm: Algorithm,
    /// Where to begin: kmeans, random (the paper's) or a model file, whose scale, sizes of images and missing cells are then those of
    /// this fit, too, unless options say otherwise.
    #[arg(long, value_name = "kmeans|random|FILE", default_value_t = Start::default().to_string(), help_heading = "Fit")]
    init: String,
    /// Keep the state of the fit in this file while it runs.
    #[arg(long, value_name = "FILE", help_heading = "Fit")]
    checkpoint: Option<PathBuf>,
    /// After how many iterations the state is kept.
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N", default_value_t = 10, requires = "checkpoint", help_heading = "Fit")]
    checkpoint_every: usize,
    /// Go on from the checkpoint if it is there; the result has the same bits as if nothing had happened.
    #[arg(long, requires = "checkpoint", help_heading = "Fit")]
    resume: bool,
    /// Fit on the Dask cluster with this scheduler, by way of the Python package. DATA is then a .npy file or a pattern in
    /// quotes, such as 'data/*.npy', and every worker must find the files under the same names.
    #[arg(long, value_name = "tcp://HOST:PORT", help_heading = "Fit")]
    dask: Option<String>,
    #[command(flatten)]
    patches: PatchArgs,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    options: DataOptions,
}

impl Fit {
    pub(crate) fn run(mut self, quiet: bool) -> anyhow::Result<()> {
        self.options.reading.gaps = self.supervised;
        let target = self.target()?;
        let began = self.began()?;
        let mut options = self.fit_options(began.as_ref())?;
        if self.dask.is_some() && self.fitting.selection(None).is_some() {
            let message = "-k auto, -k 1..20 and --rank auto cannot be used together with --dask";
            return Err(hinted(message, "matmix.select of the Python package takes a Dask array"));
        }
        if let Some(address) = &self.dask {
            return self.run_on_cluster(address, &options, quiet);
        }
        let mut data = match &began {
            Some(file) => self.options.open_for(file, &self.data)?,
            None => self.options.open(&self.data)?,
        };
        if data.samples.missing() == Missing::Nan {
            // A model to begin with may know of missing cells that no option speaks of.
            options.missing = Missing::Nan;
        }
        if self.supervised {
            self.check_supervised()?;
            (data.samples, options.classes) = classify::labeled(&data, self.unlabeled.as_deref(), quiet)?;
        }
        let images = &data.samples;
        let windows = self.patches.of(images, &options)?;
        let samples = windows.as_ref().map_or(images, |(samples, _)| samples);
        let selection = self.fitting.selection(None);
        let most = selection.as_ref().map_or(options.n_components(), |selection| selection.most_components);
        let preset = self.model.unwrap_or_else(|| Preset::for_order(samples.order(), most));
        self.notes(preset, &options, quiet);
        if selection.is_some() && self.device.device == Device::Cuda {
            let message = "--device cuda cannot be used together with a choice of components or ranks";
            return Err(hinted(
                message,
                "choose with `matmix select` first, then fit what was chosen on the GPU",
            ));
        }
        let backend = self.device.backend(samples, options.n_components())?;
        let fit = if let Some(selection) = selection {
            let selection = SelectOptions { fit: options.clone(), ..selection };
            let (chosen, fit) = select::chosen(preset, samples, &selection, quiet)?;
            output::say(quiet, &chosen.choice.advice);
            options = select::settled(&chosen, &options);
            fit
        } else if preset.is_mixture() {
            let mut line = FitLine::new(quiet, samples);
            let fit = preset.fit_by(&*backend, samples, &options, &mut |p| line.show(p));
            line.clear();
            fit?
        } else {
            // No iteration of these takes long enough to be stopped in between.
            let _working = working(quiet, format!("fitting {preset}"), samples);
            preset.fit_by(&*backend, samples, &options, &mut |_| std::ops::ControlFlow::Continue(()))?
        };
        let input = self.options.remembered(&data, began.as_ref())?;
        let input = match &windows {
            Some((_, patches)) => input.with_patches(patches.clone()),
            None => input,
        };
        let file = file_of(&fit, input, &options);
        target.write(|out| out.write_all(&file.to_bytes()))?;
        interrupt::kept();
        let view = preset.view(samples)?;
        let rows_each = view.len() / samples.len();
        let figures = Figures::new(&fit, samples.len(), rows_each);
        self.tell(&fit, &figures, samples.len(), samples.shape(), quiet);
        if self.json {
            output::json(&figures.json(&fit, samples.len(), samples.shape(), options.seed))?;
        }
        Ok(())
    }

    /// What goes by whole fits of whole samples only.
    fn check_supervised(&self) -> anyhow::Result<()> {
        if self.fitting.selection(None).is_some() {
            let message = "-k auto, -k 1..20 and --rank auto cannot be used together with --supervised";
            return Err(hinted(message, "compare a few by the accuracy that `matmix classify` finds"));
        }
        match self.model.filter(|preset| !preset.is_mixture() || *preset == Preset::Mp2dPca) {
            Some(preset) => {
                let message = format!("--supervised needs a mixture of whole samples, which {preset} is not");
                Err(hinted(
                    message,
                    "--model mixb2dppca or mixppca, psopca or ppca with one component per class",
                ))
            }
            None => Ok(()),
        }
    }

    fn run_on_cluster(&self, address: &str, options: &FitOptions, quiet: bool) -> anyhow::Result<()> {
        let patches = self.patches.is_given().then_some("--patches");
        if let Some(option) = self.options.other_than_scale().or(patches) {
            let message = format!("{option} cannot be used together with --dask");
            return Err(hinted(
                message,
                "the Python package, which --dask runs through, can prepare a Dask array",
            ));
        }
        // Whatever signal comes is for the fit, which keeps its model.
        interrupt::keep();
        let answer = dask::ask(&json!({
            "address": address,
            "data": self.data,
            "output": self.output,
            "model": self.model.map(Preset::name),
            "options": options,
            "init": self.init,
            "device": self.device.device,
            "scale": self.options.reading.scale(),
            "verbose": u8::from(!quiet && std::io::stderr().is_terminal()),
            "describe": options.described(),
        }));
        interrupt::kept();
        let answer = answer?;
        let file = ModelFile::load(&self.output)?;
        let preset: Preset = file.name.as_deref().unwrap_or_default().parse()?;
        let seconds = answer["seconds"].as_f64().unwrap_or_default();
        let history = History { seconds, ..file.history.unwrap_or_default() };
        let (model, assigned, missing) = (file.model, vec![], MissingCells::default());
        let fit = PresetFit { preset, model, history, assigned, missing, never_observed: 0 };
        let axes = answer["shape"].as_array().into_iter().flatten();
        let shape: Vec<usize> = axes.filter_map(Value::as_u64).map(|side| side as usize).collect();
        let rows_each = shape.iter().product::<usize>() / fit.model.shape().iter().product::<usize>();
        let samples = answer["n_samples"].as_u64().unwrap_or_default() as usize;
        let figures = Figures::new(&fit, samples, rows_each);
        self.tell(&fit, &figures, samples, &shape, quiet);
        if self.json {
            output::json(&figures.json(&fit, samples, &shape, options.seed))?;
        }
        Ok(())
    }

    /// Where the model goes; neither it nor the checkpoint takes the place of anything else.
    fn target(&self) -> anyhow::Result<Target> {
        let inputs = self.options.inputs(&self.data);
        let target = Target::new(&self.output, Kind::Model, &inputs, &self.overwrite)?;
        if target.is_stdout() && (self.json || self.dask.is_some()) {
            let other = if self.json { "--json" } else { "--dask" };
            let message = format!("-o - cannot be used together with {other}");
            return Err(hinted(message, "give the model file a name: -o MODEL"));
        }
        let Some(state) = &self.checkpoint else { return Ok(target) };
        if *state == self.output {
            let message = format!("{}: it cannot be both the model and the checkpoint", state.display());
            return Err(hinted(message, "give --checkpoint and -o different names"));
        }
        output::check(state)?;
        // What is resumed is looked at by the fit.
        if !self.resume {
            self.overwrite.allows(state, Kind::Checkpoint, &inputs)?;
        }
        Ok(target)
    }

    /// The model file that the fit begins from, if it does.
    fn began(&self) -> anyhow::Result<Option<ModelFile>> {
        match self.init.parse::<Start>() {
            Ok(_) => Ok(None),
            Err(_) => start_from(Path::new(&self.init)).map(Some),
        }
    }

    fn fit_options(&self, began: Option<&ModelFile>) -> anyhow::Result<FitOptions> {
        let start = match began.map(|file| &file.model) {
            Some(Model::Mixture(model)) => Start::Model(Box::new(model.clone())),
            _ => self.init.parse()?,
        };
        let checkpoint = self.checkpoint.as_ref().map(|path| Checkpoint {
            path: path.clone(),
            every: self.checkpoint_every,
            resume: self.resume,
        });
        let missing = self.options.reading.missing();
        Ok(FitOptions { algorithm: self.algorithm, start, checkpoint, missing, ..self.fitting.options() })
    }

    /// What was asked for and is not used.
    fn notes(&self, preset: Preset, options: &FitOptions, quiet: bool) {
        let note = |text: String| output::say(quiet, &format!("note: {text}"));
        if self.fitting.selection(None).is_none()
            && preset.components(options.components) != options.components
        {
            note(format!("{preset} has one component; -k {} is not used", options.components));
        }
        if !preset.is_mixture() && options.noise != Noise::default() {
            note(format!("{preset} has no noise; --noise {} is not used", options.noise));
        }
        if !preset.is_mixture() && self.checkpoint.is_some() {
            note(format!("{preset} takes a few steps only; no checkpoint is kept"));
        }
    }

    fn tell(&self, fit: &PresetFit, figures: &Figures, samples: usize, shape: &[usize], quiet: bool) {
        let say = |line: &str| output::say(quiet, line);
        let model = &fit.model;
        say(&format!(
            "{} fitted to {} of {}: {}, cores {}",
            fit.preset,
            plural(samples, "sample"),
            sides(shape),
            plural(model.n_components(), "component"),
            sides(model.rank()),
        ));
        let how = match (figures.stop, interrupt::by()) {
            (StopReason::Converged, by) if by.is_none() || self.fitting.options().n_init == 1 => {
                "converged".into()
            }
            // It may have been in another restart than that of the best model.
            (_, Some(signal)) => format!("stopped by {signal}, the best model so far is kept,"),
            (StopReason::Stopped, None) => "stopped, the best model so far is kept,".into(),
            _ => String::from("not yet converged"),
        };
        let likelihood = match model {
            Model::Mixture(_) => format!("log-likelihood {:.4} per sample, ", figures.log_likelihood),
            _ => String::new(),
        };
        let Figures { passes, seconds, reconstruction_error: error, .. } = figures;
        let iterations = plural(figures.iterations, "iteration");
        say(&format!(
            "{how} after {iterations} ({passes:.1} passes) in {seconds:.1} s: {likelihood}reconstruction error {}",
            measured(*error)
        ));
        if fit.missing.cells > 0 {
            say(&missing(fit, samples, shape));
        }
        if let Model::Mixture(m) = model {
            let mut titles = vec!["component", "weight", "noise variance", "samples"];
            titles.extend(m.classes().map(|_| "class"));
            let mut table = Table::new(titles);
            for (k, part) in m.components().iter().enumerate() {
                let samples = fit.assigned.get(k).map_or("–".into(), u64::to_string);
                let noise = format!("{:.4e}", part.noise_variance());
                let mut row = vec![k.to_string(), number(m.weights()[k], 4), noise, samples];
                row.extend(m.classes().map(|c| c.names()[c.components()[k]].clone()));
                table.row(row);
            }
            say(&format!("\n{table}"));
        }
        if let Some(searched) = &fit.history.search {
            say(&format!("search: {}", searched.in_words()));
        }
        for remark in fit.history.remarks() {
            say(&format!("note: {remark}"));
        }
        warn(&fit.history, self.fitting.options().tol, quiet);
        if self.output != Path::new("-") {
            say(&format!("wrote {}", self.output.display()));
        }
    }
}

fn start_from(path: &Path) -> anyhow::Result<ModelFile> {
    if !path.exists() {
        let message = format!("--init {}: there is no such model file", path.display());
        return Err(hinted(message, "--init takes kmeans, random or the name of a model file"));
    }
    match ModelFile::load(path)? {
        file @ ModelFile { model: Model::Mixture(_), .. } => Ok(file),
        _ => {
            let message = format!("--init {}: a fit can only begin with a mixture", path.display());
            Err(hinted(message, "--init takes kmeans, random or the model file of a mixture"))
        }
    }
}

/// What was not observed.
fn missing(fit: &PresetFit, samples: usize, shape: &[usize]) -> String {
    let (of, all) = (fit.missing, (samples * shape.iter().product::<usize>()) as f64);
    let mut line = format!(
        "{} of {} missing ({:.1} %)",
        plural(of.cells as usize, "cell"),
        plural(of.samples as usize, "sample"),
        100.0 * of.cells as f64 / all
    );
    if of.empty > 0 {
        line +=
            &format!("; nothing was observed of {}, which say nothing", plural(of.empty as usize, "sample"));
    }
    if fit.never_observed > 0 {
        line += &format!("; {} observed in no sample at all", plural(fit.never_observed, "cell"));
    }
    line
}

/// The figures of a fit, per sample of the data: a model of rows counts a sample as the sum of its rows.
pub(crate) struct Figures {
    pub(crate) stop: StopReason,
    pub(crate) iterations: usize,
    pub(crate) log_likelihood: f64,
    pub(crate) reconstruction_error: f64,
    pub(crate) bic: f64,
    /// Passes over the whole set.
    pub(crate) passes: f64,
    pub(crate) samples_per_second: f64,
    pub(crate) seconds: f64,
}

/// The iterations of a fit by the share of the samples they saw.
fn stages(history: &matmix::History) -> Value {
    let stage = |(share, iterations): (f64, usize)| json!({ "share": share, "n_iterations": iterations });
    history.stages().map(stage).collect()
}

impl Figures {
    /// Those of a fit to so many samples, each of which is so many to the model.
    pub(crate) fn new(fit: &PresetFit, samples: usize, rows_each: usize) -> Self {
        let history = &fit.history;
        let last = |series: &[f64]| series.last().copied().unwrap_or(f64::NAN);
        let iterations = match fit.model {
            Model::Mixture(_) => history.n_iterations(),
            _ => history.reconstruction_error.len(),
        };
        Self {
            stop: history.stop.unwrap_or(StopReason::MaxIterations),
            iterations,
            log_likelihood: last(&history.log_likelihood) * rows_each as f64,
            reconstruction_error: last(&history.reconstruction_error) * (rows_each as f64).sqrt(),
            bic: match &fit.model {
                Model::Mixture(m) => m.bic(last(&history.log_likelihood), (samples * rows_each) as f64),
                _ => f64::NAN,
            },
            passes: history.passes,
            samples_per_second: history.samples_per_second().unwrap_or(f64::NAN) / rows_each as f64,
            seconds: history.seconds,
        }
    }

    fn json(&self, fit: &PresetFit, samples: usize, shape: &[usize], seed: u64) -> Value {
        let mut told = json!({
            "model": fit.preset.name(),
            "n_samples": samples,
            "shape": shape,
            "rank": fit.model.rank(),
            "n_components": fit.model.n_components(),
            "n_parameters": fit.model.n_parameters(),
            "n_iterations": self.iterations,
            "stages": stages(&fit.history),
            "stop_reason": self.stop.name(),
            "log_likelihood": self.log_likelihood,
            "reconstruction_error": self.reconstruction_error,
            "bic": self.bic,
            "passes": self.passes,
            "search": fit.history.search,
            "samples_per_second": self.samples_per_second,
            "seconds": self.seconds,
            "seed": seed,
            "weights": [],
            "noise_variance": [],
            "assigned": fit.assigned,
            "missing_cells": fit.missing.cells,
            "events": fit.history.events,
        });
        tell_parameters(&fit.model, &mut told);
        told
    }
}
