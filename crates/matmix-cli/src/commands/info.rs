//! `matmix info`: what is in a file.

use std::path::Path;

use matmix::data::{DataSet, Values};
use matmix::error::{factor, sides};
use matmix::{Backend as _, Cpu, Device, Input, Missing, Model, ModelFile};
use serde_json::{Value, json};

use crate::data_args::{DataOptions, is_model};
use crate::output;
use crate::table::{Table, count, measured, number, plural};

/// Say what a model file or a data set holds.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix info digits.mm
  matmix info faces/ --json")]
pub(crate) struct Info {
    /// A model file or data.
    #[arg(value_name = "MODEL|DATA", required_unless_present = "devices")]
    what: Option<String>,
    /// Tell which devices there are to compute on.
    #[arg(long, conflicts_with = "what")]
    devices: bool,
    /// Print it as one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    options: DataOptions,
}

impl Info {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let Some(what) = &self.what else { return devices(self.json) };
        if is_model(Path::new(what)) {
            let file = ModelFile::load(what)?;
            return if self.json { output::json(&model_json(&file)) } else { output::result(&model(&file)) };
        }
        let data = self.options.open(what)?;
        let seen = Values::of(&data.samples)?;
        if self.json {
            return output::json(&json!({
                "name": data.name, "format": data.format, "n_samples": data.samples.len(),
                "shape": data.samples.shape(), "element": data.samples.element().name(),
                "minimum": seen.low, "maximum": seen.high, "mean": seen.mean,
                "n_missing": seen.missing,
                "labels": data.labels.as_ref().map(|l| &l.names),
            }));
        }
        output::result(&data_words(&data, &seen, self.options.reading.missing()))
    }
}

/// What there is to compute on.
fn devices(json: bool) -> anyhow::Result<()> {
    let processor = Cpu::best().name();
    let (gpus, missing) = match Device::gpus() {
        Ok(found) => (found, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let listed = gpus.iter().map(|gpu| {
        let (major, minor) = gpu.capability;
        let (total, free) = gpu.memory;
        let gib = |bytes: usize| bytes as f64 / f64::from(1 << 30);
        let words = format!(
            "  cuda:{}   {}, compute capability {major}.{minor}, {:.1} GiB of {:.1} free\n",
            gpu.number,
            gpu.name,
            gib(free),
            gib(total)
        );
        let value = json!({
            "number": gpu.number, "name": gpu.name, "capability": format!("{major}.{minor}"),
            "memory": total, "free": free,
        });
        (words, value)
    });
    let (words, values): (Vec<String>, Vec<Value>) = listed.unzip();
    if json {
        return output::json(&json!({ "cpu": processor, "cuda": values, "missing": missing }));
    }
    let missing = missing.map_or(String::new(), |problem| format!("  {problem}\n"));
    output::result(&format!("  {processor}\n{}{missing}", words.concat()))
}

fn data_words(data: &DataSet, values: &Values, missing: Missing) -> String {
    let samples = &data.samples;
    let mut text = format!("{} ({})\n", data.name, data.format);
    text.push_str(&format!(
        "  samples  {} of {}, stored as {}\n",
        count(samples.len()),
        sides(samples.shape()),
        samples.element().name()
    ));
    let cells = samples.len() * samples.sample_len();
    match values.missing < cells {
        true => {
            let mean = measured(values.mean);
            text.push_str(&format!("  values   {} to {}, mean {mean}\n", values.low, values.high));
        }
        false => text.push_str("  values   none\n"),
    }
    if values.missing > 0 {
        let percent = 100.0 * values.missing as f64 / cells as f64;
        let hint =
            if missing == Missing::Nan { "" } else { ": NaN; --missing nan fits a model without them" };
        text.push_str(&format!(
            "  missing  {} of {} cells ({percent:.1} %){hint}\n",
            count(values.missing),
            count(cells)
        ));
    }
    match &data.labels {
        None => text.push_str("  labels   none\n"),
        Some(labels) => {
            let mut counts = vec![0; labels.names.len()];
            labels.index.iter().for_each(|&i| counts[i] += 1);
            let listed: Vec<String> =
                labels.names.iter().zip(&counts).take(20).map(|(name, n)| format!("{name} ({n})")).collect();
            let more = if labels.names.len() > 20 { ", …" } else { "" };
            text.push_str(&format!("  labels   {}: {}{more}\n", labels.names.len(), listed.join(", ")));
        }
    }
    text
}

fn model(file: &ModelFile) -> String {
    let model = &file.model;
    let name = file.name.as_deref().unwrap_or(match model {
        Model::Mixture(_) => "mixture",
        Model::LowRank(_) => "low rank",
        _ => "model",
    });
    let mut text = format!(
        "{name}: {} of cores {} for samples of {}, {} parameters\n",
        plural(model.n_components(), "component"),
        sides(model.rank()),
        sides(model.shape()),
        count(model.n_parameters()),
    );
    if let Some(input) = &file.input {
        text.push_str(&format!("  input        {}\n", taken(input)));
    }
    let options = file.options_in_words();
    if !options.is_empty() {
        let listed: Vec<String> = options.iter().map(|(name, value)| format!("{name} {value}")).collect();
        text.push_str(&format!("  fitted with  {}\n", listed.join(", ")));
    }
    if let Some(history) = &file.history {
        let last = |series: &[f64]| number(series.last().copied().unwrap_or(f64::NAN), 4);
        let stop = history.stop.map_or("unknown", |s| s.name());
        text.push_str(&format!(
            "  history      {} iterations ({stop}), log-likelihood {}, reconstruction error {}\n",
            history.n_iterations().max(history.reconstruction_error.len().saturating_sub(1)),
            last(&history.log_likelihood),
            measured(history.reconstruction_error.last().copied().unwrap_or(f64::NAN)),
        ));
    }
    match model {
        Model::Mixture(m) => {
            let tails = m.degrees_of_freedom();
            let mut titles = vec!["component", "weight", "noise variance", "largest s"];
            titles.extend(tails.as_ref().map(|_| "degrees of freedom"));
            titles.extend(m.classes().map(|_| "class"));
            let mut table = Table::new(titles);
            for (k, c) in m.components().iter().enumerate() {
                // s_1 = Π λ_1: the variance along the first entry of the core.
                let largest: f64 = c
                    .loadings()
                    .iter()
                    .map(|u| (0..u.rows()).map(|i| u[(i, 0)] * u[(i, 0)]).sum::<f64>())
                    .product();
                let mut row = vec![
                    k.to_string(),
                    number(m.weights()[k], 4),
                    format!("{:.4e}", c.noise_variance()),
                    measured(largest),
                ];
                row.extend(tails.as_ref().map(|tails| number(tails[k], 2)));
                row.extend(m.classes().map(|c| c.names()[c.components()[k]].clone()));
                table.row(row);
            }
            text.push_str(&format!("\n{table}"));
        }
        Model::LowRank(m) => {
            let mut table = Table::new(["mode", "side", "rank", "share of the variance per loading"]);
            for (d, ratios) in m.explained_variance_ratio().iter().enumerate() {
                let shares: Vec<String> = ratios.iter().take(8).map(|r| format!("{r:.3}")).collect();
                let more = if ratios.len() > 8 { " …" } else { "" };
                table.row([
                    d.to_string(),
                    m.shape()[d].to_string(),
                    m.rank()[d].to_string(),
                    shares.join(" ") + more,
                ]);
            }
            text.push_str(&format!("\n{table}"));
        }
        _ => {}
    }
    text
}

/// What a model takes for input, in words.
fn taken(input: &Input) -> String {
    let mut text = format!("samples of {}, stored as {}", sides(&input.shape), input.element);
    if input.scale != 1.0 {
        text.push_str(&format!(", times {}", factor(input.scale)));
    }
    if let Some((rows, columns)) = input.resize {
        text.push_str(&format!(", images brought to {rows}×{columns}"));
    }
    if input.colour {
        text.push_str(", with their colours");
    }
    if let Some(missing) = &input.missing {
        text.push_str(&format!(", missing cells told by {missing}"));
    }
    if !input.mask.is_empty() {
        let hidden: usize = input.mask.iter().skip(1).step_by(2).sum();
        text.push_str(&format!(", {} of a mask left out", plural(hidden, "cell")));
    }
    if let Some(patches) = &input.patches {
        let (size, stride) = (sides(&patches.size), sides(&patches.stride));
        text.push_str(&format!(", in windows of {size}, {stride} apart"));
        match (patches.floor, patches.centred) {
            (Some(_), _) => text.push_str(", of like contrast"),
            (None, true) => text.push_str(", without their means"),
            (None, false) => {}
        }
    }
    text
}

fn model_json(file: &ModelFile) -> Value {
    let mut told = json!({
        "model": file.name, "shape": file.model.shape(), "rank": file.model.rank(),
        "n_components": file.model.n_components(), "n_parameters": file.model.n_parameters(),
        "weights": null, "noise_variance": null, "degrees_of_freedom": null, "input": file.input, "options": file.options, "history": file.history,
    });
    tell_parameters(&file.model, &mut told);
    told
}

/// Weights, classes and every parameter that is one number per component, under the names they have in files; null is what a component
/// does without.
pub(crate) fn tell_parameters(model: &Model, told: &mut Value) {
    let Model::Mixture(m) = model else {
        return;
    };
    told["weights"] = json!(m.weights());
    for parameter in m.parameters().iter().filter(|parameter| parameter.shape.len() == 1) {
        // Readers of this output have known it by this name.
        let name = if parameter.name == "noise_variances" { "noise_variance" } else { &parameter.name };
        told[name] = json!(parameter.values);
    }
    m.absent_parameters().into_iter().for_each(|name| told[name] = Value::Null);
    if let Some(classes) = m.classes() {
        told["classes"] = json!(classes);
    }
}
