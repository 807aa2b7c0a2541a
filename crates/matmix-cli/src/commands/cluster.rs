//! `matmix cluster`: samples sorted into the components of a mixture, with a picture of each.

use std::path::{Path, PathBuf};

use matmix::picture::Grid;
use matmix::{FitOptions, Preset, SelectOptions};
use serde_json::{Value, json};

use super::assign;
use super::montage::spaced;
use super::select;
use crate::data_args::{DataOptions, Seen, view};
use crate::device_args::DeviceArgs;
use crate::error::hinted;
use crate::fit_args::{Fitting, file_of, preset, warn};
use crate::interrupt;
use crate::kind::Kind;
use crate::numbers::whole;
use crate::output::{self, Overwrite, Target};
use crate::progress::{FitLine, working};
use crate::table::{Table, number, plural};

/// Sort samples into clusters: fit a mixture to them, or take one, and show what its components hold.
///
/// With -o FOLDER it writes clusters.csv (the cluster and all responsibilities of every sample, by file name where the samples are
/// images), a contact sheet of every cluster, and the model, if one was fitted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix cluster photos/ -k 12 -o clusters
  matmix cluster demo:mnist -k 10 --scale 1/255 --kind mixppca --search auto -o clusters
  matmix cluster new/ -m clusters/model.mm -o new-clusters
  matmix cluster data.npy -k auto --json")]
pub(crate) struct Cluster {
    /// The samples.
    #[arg(value_name = "DATA")]
    data: String,
    /// A model file of a mixture that was fitted before; otherwise one is fitted to the samples.
    #[arg(long, short, value_name = "MODEL", conflicts_with_all = [
        "kind", "components", "rank", "noise", "dof", "max_iter", "tol", "stop", "no_acceleration", "no_stages", "search",
        "prune", "n_init",
        "seed", "precision", "noise_floor",
    ])]
    model: Option<PathBuf>,
    /// The folder to write; made if it is not there.
    #[arg(long, short, value_name = "FOLDER")]
    output: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    /// The most samples on a contact sheet, evenly spaced over those of the cluster; 0 draws none.
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N", default_value_t = 64)]
    sheet: usize,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
    /// The mixture by its published name; the one of the data's order if not given.
    #[arg(long, value_parser = preset(), value_name = "NAME", help_heading = "Fit")]
    kind: Option<Preset>,
    #[command(flatten)]
    fitting: Fitting,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    options: DataOptions,
}

/// One cluster, as it is told.
struct Group {
    members: Vec<usize>,
    weight: f64,
    /// The most frequent label, and how many samples have it.
    label: Option<(String, usize)>,
    sheet: Option<String>,
}

impl Cluster {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        if self.model.is_none() && !self.fitting.says_components() {
            let message = "how many clusters?";
            return Err(hinted(
                message,
                "-k 10 fits so many, -k auto chooses, -m MODEL takes a mixture there is",
            ));
        }
        let inputs = self.options.inputs(&self.data);
        let target = |name: &str, kind| match &self.output {
            Some(folder) => Target::new(&folder.join(name), kind, &inputs, &self.overwrite).map(Some),
            None => Ok(None),
        };
        if let Some(folder) = &self.output {
            self.overwrite.allows_folder(folder, &inputs)?;
            output::make_folder(folder)?;
        }
        let table = target("clusters.csv", Kind::Table)?;
        if let Some(folder) = self.output.as_deref().filter(|_| self.sheet > 0) {
            self.check_sheets(folder, &inputs)?;
        }
        let kept = if self.model.is_none() { target("model.mm", Kind::Model)? } else { None };
        let seen = match &self.model {
            Some(path) => Seen::new(path, &self.data, &self.options)?,
            None => self.fitted(quiet)?,
        };
        if seen.rows_each > 1 {
            let message =
                "a model of rows or patches has a component for each of them and none for a whole sample";
            return Err(hinted(message, "`matmix assign` lists the components of rows and patches"));
        }
        if let Some(kept) = kept {
            kept.write(|out| out.write_all(&seen.file.to_bytes()))?;
        }
        interrupt::kept();
        let mixture = seen.mixture("clusters")?;
        let k = mixture.n_components();
        let spinner = working(
            quiet,
            format!("sorting {}", plural(seen.data.samples.len(), "sample")),
            &seen.data.samples,
        );
        let backend = self.device.backend(&seen.view, k)?;
        let gamma = mixture.responsibilities(&*backend.over(&seen.view)?)?;
        let mut groups = groups(&seen, &gamma, mixture.weights());
        if let Some(folder) = self.output.as_deref().filter(|_| self.sheet > 0) {
            self.sheets(folder, &seen, &mut groups, &inputs)?;
        }
        drop(spinner);
        if let Some(table) = &table {
            table.write_text(&assign::csv(&seen, &gamma, k))?;
        }
        if let Some(folder) = &self.output {
            output::say(quiet, &format!("wrote {}", folder.display()));
        }
        if self.json {
            let mut told = assign::object(&seen, &gamma, k);
            told["clusters"] = groups.iter().enumerate().map(|(j, group)| group.json(j)).collect();
            return output::json(&told);
        }
        output::result(&words(&groups, seen.data.samples.len()))
    }

    /// A mixture of these samples.
    fn fitted(&self, quiet: bool) -> anyhow::Result<Seen> {
        let data = self.options.open(&self.data)?;
        let samples = &data.samples;
        let missing = self.options.reading.missing();
        let mut options = FitOptions { missing, ..self.fitting.options() };
        let selection = self.fitting.selection(None);
        let most = selection.as_ref().map_or(options.components, |selection| selection.most_components);
        let preset = self.kind.unwrap_or_else(|| Preset::for_order(samples.order(), most));
        if !preset.is_mixture() {
            let message = format!("{preset} is no mixture, and has no clusters");
            return Err(hinted(message, "--kind takes mixb2dppca or mixppca here"));
        }
        let fit = if let Some(selection) = selection {
            let selection = SelectOptions { fit: options.clone(), ..selection };
            let (chosen, fit) = select::chosen(preset, samples, &selection, quiet)?;
            output::say(quiet, &chosen.choice.advice);
            options = select::settled(&chosen, &options);
            fit
        } else {
            let backend = self.device.backend(samples, options.components)?;
            let mut line = FitLine::new(quiet, samples);
            let fit = preset.fit_by(&*backend, samples, &options, &mut |p| line.show(p));
            line.clear();
            fit?
        };
        warn(&fit.history, options.tol, quiet);
        let file = file_of(&fit, self.options.remembered(&data, None)?, &options);
        let view = view(&file, Path::new("the model"), &data)?;
        let rows_each = view.len() / samples.len();
        Ok(Seen { file, data, view, rows_each })
    }

    /// Check the contact sheets in the folder before the fit: for any number of clusters, each must hold a picture.
    fn check_sheets(&self, folder: &Path, inputs: &[PathBuf]) -> anyhow::Result<()> {
        let entries = folder.read_dir().into_iter().flatten().flatten();
        let mut sheets: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| is_sheet(path)).collect();
        sheets.sort();
        sheets.iter().try_for_each(|path| Target::new(path, Kind::Picture, inputs, &self.overwrite).map(drop))
    }

    /// A picture of every cluster that has samples.
    fn sheets(
        &self,
        folder: &Path,
        seen: &Seen,
        groups: &mut [Group],
        inputs: &[PathBuf],
    ) -> anyhow::Result<()> {
        let digits = groups.len().saturating_sub(1).to_string().len();
        // Pixels of thumbnails can be seen; whole pictures fill a screen as they are.
        let enlarge = if seen.shape().iter().all(|&side| side <= 64) { 2 } else { 1 };
        let grid = Grid { enlarge, ..Grid::default() };
        for (j, group) in groups.iter_mut().enumerate().filter(|(_, group)| !group.members.is_empty()) {
            let some = spaced(group.members.len(), self.sheet).into_iter().map(|i| group.members[i]);
            let image = grid.draw_samples(&seen.data.samples, &some.collect::<Vec<_>>())?;
            let path = folder.join(format!("cluster-{j:0digits$}.png"));
            let png = image.to_png()?;
            Target::new(&path, Kind::Picture, inputs, &self.overwrite)?.write(|out| out.write_all(&png))?;
            group.sheet = Some(path.display().to_string());
        }
        Ok(())
    }
}

impl Group {
    fn json(&self, cluster: usize) -> Value {
        let mut told = json!({ "cluster": cluster, "n_samples": self.members.len(), "weight": self.weight });
        if let Some((label, count)) = &self.label {
            told["label"] = label.as_str().into();
            told["n_with_label"] = (*count).into();
        }
        if let Some(sheet) = &self.sheet {
            told["sheet"] = sheet.as_str().into();
        }
        told
    }
}

/// Whether a file has the name of a contact sheet.
fn is_sheet(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let number = name.strip_prefix("cluster-").and_then(|rest| rest.strip_suffix(".png"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// The samples of every component.
fn groups(seen: &Seen, gamma: &[f64], weights: &[f64]) -> Vec<Group> {
    let mut members = vec![Vec::new(); weights.len()];
    for (n, row) in gamma.chunks_exact(weights.len()).enumerate() {
        members[assign::best(row)].push(n);
    }
    let label = |members: &[usize]| {
        let labels = seen.data.labels.as_ref()?;
        let mut counts = vec![0; labels.names.len()];
        members.iter().for_each(|&n| counts[labels.index[n]] += 1);
        // The first of equals.
        let (most, &count) = counts.iter().enumerate().rev().max_by_key(|(_, count)| **count)?;
        (count > 0).then(|| (labels.names[most].clone(), count))
    };
    let group = |(members, &weight): (Vec<usize>, &f64)| {
        let label = label(&members);
        Group { members, weight, label, sheet: None }
    };
    members.into_iter().zip(weights).map(group).collect()
}

fn words(groups: &[Group], samples: usize) -> String {
    let labelled = groups.iter().any(|group| group.label.is_some());
    let mut head = vec!["cluster", "samples", "share"];
    head.extend(labelled.then_some("most of them"));
    let mut table = Table::new(head);
    for (j, group) in groups.iter().enumerate() {
        let (count, share) = (group.members.len(), group.members.len() as f64 / samples as f64);
        let mut row = vec![j.to_string(), count.to_string(), number(share, 3)];
        if labelled {
            row.push(group.label.as_ref().map_or("–".into(), |(label, of)| format!("{label} ({of})")));
        }
        table.row(row);
    }
    table.to_string()
}
