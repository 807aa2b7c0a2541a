//! `matmix recognize`: whose face is it?

use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use matmix::data::{DataSet, Labels, files_of};
use matmix::picture::{Grid, ValueRange};
use matmix::{
    Distance, FitOptions, Input, ModelFile, Neighbour, PatchFisher, PatchFisherOptions, PatchRecognizer,
    Preset, Recognizer,
};
use serde_json::json;

use super::montage::spaced;
use super::reconstruct;
use crate::data_args::{self, Reading, Sides, load_model, range, shape};
use crate::error::hinted;
use crate::fit_args::{choice, file_of};
use crate::kind::Kind;
use crate::numbers::{real, whole};
use crate::output::{self, Overwrite, Target};
use crate::progress::working;
use crate::table::{field, plural};
use crate::verdict::Verdict;

/// The most mistakes that are drawn.
const DRAWN: usize = 24;

/// Find for every probe the nearest sample of a gallery.
///
/// By the cores of a model of whole samples; or, with --method patches, by Fisher vectors over the patches of images and a regression on the
/// labels of the gallery: slower, and better on images. Without MODEL one is fitted to the gallery: for cores the model that `matmix fit`
/// makes without options.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix recognize --gallery known/ --probe new/
  matmix recognize --method patches --gallery known/ --probe new/ --mistakes wrong.png
  matmix recognize --method patches --gallery known/ --probe new/ --save known.mm
  matmix recognize known.mm --probe newer/
  matmix recognize faces.mm --gallery known/ --probe new/ -o found.csv
  matmix recognize faces.mm --gallery a.npy --gallery-labels a.txt --probe b.npy --distance paper")]
pub(crate) struct Recognize {
    /// The model file, a model of patches for --method patches; fitted to the gallery if not given.
    #[arg(value_name = "MODEL")]
    model: Option<PathBuf>,
    /// The samples whose labels are known; not needed where the model file holds a gallery (--save).
    #[arg(long, value_name = "DATA", required_unless_present = "model")]
    gallery: Option<String>,
    /// The samples to recognise.
    #[arg(long, value_name = "DATA")]
    probe: String,
    /// What samples are compared by; the cores if not given.
    #[arg(long, value_enum)]
    method: Option<Method>,
    /// How cores are compared. data: in units of the data, the sum over all components; paper: as published, in units of the prior;
    /// weighted: the published one by responsibilities; fisher: a discriminant learned on the gallery; auto: fisher where the
    /// gallery has two or more samples of every label (and at most 4096), data otherwise.
    #[arg(long, value_parser = choice(Distance::ALL), default_value_t)]
    distance: Distance,
    /// The labels of the gallery: text lines, .npy or IDX.
    #[arg(long, value_name = "FILE")]
    gallery_labels: Option<PathBuf>,
    /// The labels of the probes.
    #[arg(long, value_name = "FILE")]
    probe_labels: Option<PathBuf>,
    /// Take only these samples of the gallery.
    #[arg(long, value_parser = range, value_name = "0:500")]
    gallery_take: Option<Range<usize>>,
    /// Take only these samples of the probes.
    #[arg(long, value_parser = range, value_name = "500:")]
    probe_take: Option<Range<usize>>,
    /// A CSV file for what was found for every probe; - is stdout.
    #[arg(long, short, value_name = "FOUND.csv")]
    output: Option<PathBuf>,
    /// A picture of mistakes: probes above, what they were taken for below.
    #[arg(long, value_name = "WRONG.png")]
    mistakes: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    /// Print the accuracy as one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    patches: PatchMethod,
    #[command(flatten)]
    reading: Reading,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    /// The cores of whole samples.
    Cores,
    /// The patches of images.
    Patches,
}

/// The options of --method patches.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Method patches")]
struct PatchMethod {
    /// K: the number of components of the mixture over patches.
    #[arg(long, short = 'k', value_parser = whole::<usize>, value_name = "K", default_value_t = PatchFisherOptions::default().fit.components)]
    components: usize,
    /// The size of the patches.
    #[arg(long, value_parser = shape, value_name = "6|6x6", default_value = "6")]
    patches: Sides,
    /// How far one patch is from the next.
    #[arg(long, value_parser = shape, value_name = "1", default_value = "1")]
    stride: Sides,
    /// The cells along each mode over which patches are summed up.
    #[arg(long, value_parser = whole::<usize>, value_name = "N", default_value_t = PatchFisherOptions::default().grid)]
    grid: usize,
    /// How strongly the regression is held back, relative to the mean square of the features.
    #[arg(long, value_parser = real, value_name = "SHARE", default_value = "0.1")]
    ridge: f64,
    /// The seed of everything random.
    #[arg(long, value_parser = whole::<u64>, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Keep the mixture over patches and the gallery in this model file: `matmix recognize MODEL --probe DATA` needs nothing else.
    #[arg(long, value_name = "MODEL")]
    save: Option<PathBuf>,
}

impl PatchMethod {
    fn options(&self) -> PatchFisherOptions {
        let usual = PatchFisherOptions::default();
        PatchFisherOptions {
            size: self.patches.0.clone(),
            stride: self.stride.0.clone(),
            grid: self.grid,
            fit: FitOptions { components: self.components, seed: self.seed, ..usual.fit },
            ..usual
        }
    }
}

impl Recognize {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        let inputs: Vec<PathBuf> = self
            .gallery
            .iter()
            .chain([&self.probe])
            .flat_map(|spec| files_of(spec))
            .chain(self.gallery_labels.clone())
            .chain(self.probe_labels.clone())
            .collect();
        let target = Target::or_stdout(self.output.as_deref(), Kind::Table, &inputs, &self.overwrite)?;
        target.beside_json(self.json && self.output.is_some(), "FOUND.csv")?;
        let named = |path: &Option<PathBuf>, kind| match path {
            Some(path) => Target::new(path, kind, &inputs, &self.overwrite).map(Some),
            None => Ok(None),
        };
        let (picture, kept) =
            (named(&self.mistakes, Kind::Picture)?, named(&self.patches.save, Kind::Model)?);
        let file = self.model.as_deref().map(load_model).transpose()?;
        let open = |spec: &str, labels: &Option<PathBuf>, take| match &file {
            Some(file) => self.reading.open_for(file, spec, labels.as_deref(), take),
            None => self.reading.open(spec, labels.as_deref(), take),
        };
        let gallery = match &self.gallery {
            Some(spec) => Some(open(spec, &self.gallery_labels, self.gallery_take.as_ref())?),
            None => None,
        };
        let probe = open(&self.probe, &self.probe_labels, self.probe_take.as_ref())?;
        let known = match &gallery {
            Some(gallery) => Some(gallery.labels.as_ref().ok_or_else(|| {
                let message = format!("{}: the gallery has no labels", gallery.name);
                hinted(message, "give them with --gallery-labels FILE")
            })?),
            None => None,
        };
        if kept.is_some() && self.method != Some(Method::Patches) {
            let message = "--save keeps a mixture over patches with its gallery";
            return Err(hinted(
                message,
                "add --method patches, or keep a model of whole samples with `matmix fit`",
            ));
        }
        if gallery.is_none() && picture.is_some() {
            let message = "--mistakes shows images of the gallery, which a model file does not hold";
            return Err(hinted(message, "name them with --gallery DATA"));
        }
        let spinner =
            working(quiet, format!("comparing {}", plural(probe.samples.len(), "probe")), &probe.samples);
        let kept_before = file.as_ref().and_then(|file| file.gallery.as_ref());
        let (by, nearest) = match (self.method, &file, gallery.as_ref().zip(known)) {
            (_, Some(file), None) => (None, known_to(file, &probe)?),
            (Some(Method::Patches), file, Some((gallery, known))) => {
                (None, self.by_patches(file.as_ref(), gallery, known, &probe, kept)?)
            }
            (_, file, Some((gallery, known))) => {
                let (distance, nearest) = match file {
                    Some(file) => self.by_cores(file, gallery, known, &probe)?,
                    None => self.by_cores(&self.fitted_to(gallery)?, gallery, known, &probe)?,
                };
                (Some(distance), nearest)
            }
            (_, None, None) => {
                return Err(hinted("a gallery is missing", "name known samples with --gallery DATA"));
            }
        };
        drop(spinner);
        let (names, size) = match (known, kept_before) {
            (Some(known), _) => (&known.names[..], known.len()),
            (None, Some(gallery)) => (&gallery.names[..], gallery.classes.len()),
            (None, None) => (&[][..], 0),
        };
        let found: Vec<&str> = nearest.iter().map(|n| names[n.class].as_str()).collect();
        let mut csv = String::from("probe,");
        let name =
            |data: &DataSet, i: usize| data.names.as_ref().map_or(String::new(), |n| field(&n[i]) + ",");
        for (column, there) in [("name,", probe.names.is_some()), ("label,", probe.labels.is_some())] {
            csv.push_str(if there { column } else { "" });
        }
        csv.push_str("found,neighbour,");
        let neighbours = gallery.as_ref().filter(|gallery| gallery.names.is_some());
        csv.push_str(if neighbours.is_some() { "neighbour_name,distance\n" } else { "distance\n" });
        for (i, n) in nearest.iter().enumerate() {
            let label = probe.labels.as_ref().map_or(String::new(), |l| field(l.name(i)) + ",");
            let own = name(&probe, i);
            let other = neighbours.map_or(String::new(), |gallery| name(gallery, n.index));
            let (found, at, distance) = (field(found[i]), n.index, n.distance);
            csv.push_str(&format!("{i},{own}{label}{found},{at},{other}{distance}\n"));
        }
        let Some(labels) = &probe.labels else {
            return target.write_text(&csv);
        };
        if self.output.is_some() {
            target.write_text(&csv)?;
            target.say_wrote(quiet, "", "");
        }
        let n = labels.len();
        let verdict = Verdict {
            names: &labels.names,
            pairs: (0..n).map(|i| (labels.name(i), found[i])).collect(),
            words: ("probe", "recognised"),
        };
        if let (Some(picture), Some(gallery)) = (&picture, &gallery) {
            let wrong: Vec<usize> = (0..n).filter(|&i| labels.name(i) != found[i]).collect();
            draw(picture, gallery, &probe, &nearest, &wrong, quiet)?;
        }
        let (hits, accuracy) = (verdict.hits(), verdict.accuracy());
        if self.json {
            let mut told = json!({
                "accuracy": accuracy, "recognised": hits, "probes": n, "gallery": size,
            });
            match by {
                None => told["method"] = "patches".into(),
                Some(distance) => told["distance"] = distance.name().into(),
            }
            return output::json(&told);
        }
        let text = format!("by {}: {}", by.map_or("patches", Distance::name), verdict.text());
        if self.output.is_some() && target.is_stdout() {
            output::say(quiet, text.trim_end());
            return Ok(());
        }
        output::result(&text)
    }

    /// The model that `matmix fit` makes of the gallery without options.
    fn fitted_to(&self, gallery: &DataSet) -> anyhow::Result<ModelFile> {
        let options =
            FitOptions { seed: self.patches.seed, missing: self.reading.missing(), ..FitOptions::default() };
        let preset = Preset::for_order(gallery.samples.order(), options.components);
        let fit = preset.fit(&gallery.samples, &options, &mut |_| ControlFlow::Continue(()))?;
        let input = Input::of(gallery.samples.shape(), &gallery.samples)?;
        Ok(file_of(&fit, self.reading.remembered(input, None, gallery), &options))
    }

    fn by_cores(
        &self,
        file: &ModelFile,
        gallery: &DataSet,
        known: &Labels,
        probe: &DataSet,
    ) -> anyhow::Result<(Distance, Vec<Neighbour>)> {
        let path = self.model.as_deref().unwrap_or(Path::new("the model fitted to the gallery"));
        let (g, p) = (view(file, path, gallery)?, view(file, path, probe)?);
        let recognizer = Recognizer::new(&file.model, &g, &known.index, self.distance)?;
        let found = recognizer.neighbours(&p, 1)?;
        Ok((recognizer.distance(), found.into_iter().map(|nearest| nearest[0]).collect()))
    }

    fn by_patches(
        &self,
        fitted: Option<&ModelFile>,
        gallery: &DataSet,
        known: &Labels,
        probe: &DataSet,
        kept: Option<Target>,
    ) -> anyhow::Result<Vec<Neighbour>> {
        let fisher = match fitted {
            Some(fitted) => PatchFisher::from_file(fitted, self.patches.grid).map_err(|error| {
                let hint = "leave the model out to have one fitted to the gallery, or make one with `matmix fit --patches 6`";
                hinted(error.to_string(), hint)
            })?,
            None => PatchFisher::fit(&gallery.samples, &self.patches.options())?,
        };
        let recognizer = PatchRecognizer::new(fisher, &gallery.samples, &known.index, self.patches.ridge)?;
        if let Some(kept) = kept {
            let mut known = recognizer.to_file(&gallery.samples, &known.names)?;
            known.options = match fitted {
                Some(fitted) => fitted.options.clone(),
                None => self.patches.options().fit.described(),
            };
            known.input = known.input.map(|input| self.reading.remembered(input, fitted, gallery));
            kept.write(|out| out.write_all(&known.to_bytes()))?;
        }
        let found = recognizer.neighbours(&probe.samples, 1)?;
        Ok(found.into_iter().map(|nearest| nearest[0]).collect())
    }
}

/// Recognises among the images whose features the model file holds.
fn known_to(file: &ModelFile, probe: &DataSet) -> anyhow::Result<Vec<Neighbour>> {
    let recognizer = PatchRecognizer::from_file(file).map_err(|error| {
        hinted(
            error.to_string(),
            "name known samples with --gallery DATA, or keep some with --method patches --save MODEL",
        )
    })?;
    Ok(recognizer.neighbours(&probe.samples, 1)?.into_iter().map(|nearest| nearest[0]).collect())
}

/// Draws some of the probes that were not recognised above the neighbours they were taken for.
fn draw(
    target: &Target,
    gallery: &DataSet,
    probe: &DataSet,
    nearest: &[Neighbour],
    wrong: &[usize],
    quiet: bool,
) -> anyhow::Result<()> {
    if wrong.is_empty() {
        output::say(quiet, "every probe was recognised: there are no mistakes to draw");
        return Ok(());
    }
    let some: Vec<usize> = spaced(wrong.len(), DRAWN).into_iter().map(|i| wrong[i]).collect();
    let rows: Vec<Vec<Vec<f64>>> = vec![
        some.iter().map(|&i| probe.samples.to_f64(i..i + 1)).collect::<matmix::Result<_>>()?,
        some.iter()
            .map(|&i| gallery.samples.to_f64(nearest[i].index..nearest[i].index + 1))
            .collect::<matmix::Result<_>>()?,
    ];
    let chosen = probe.samples.clone().select(&some)?;
    let ValueRange::Given(low, high) = reconstruct::range(&chosen)? else { return Ok(()) };
    let grid = Grid { range: ValueRange::Given(low, high), ..Grid::default() };
    let image = grid.draw_rows(probe.samples.shape(), &rows)?;
    let png = image.to_png()?;
    target.write(|out| out.write_all(&png))?;
    let drawn = format!(" ({} of {})", some.len(), plural(wrong.len(), "mistake"));
    target.say_wrote(quiet, "", &drawn);
    Ok(())
}

/// The samples as the model sees them, if it sees each of them as one.
fn view(file: &ModelFile, path: &Path, data: &DataSet) -> anyhow::Result<matmix::Samples<'static>> {
    let view = data_args::view(file, path, data)?;
    if view.len() != data.samples.len() {
        let message =
            "a model of rows or patches has no core for a whole sample, so that none can be recognised";
        let hint = "fit --model mixb2dppca or mixppca for recognition; a model of patches goes with --method patches";
        return Err(hinted(message, hint));
    }
    Ok(view)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(clap::Parser)]
    struct Alone {
        #[command(flatten)]
        method: PatchMethod,
    }

    #[test]
    fn the_defaults_are_the_librarys() {
        let Alone { method } = Alone::parse_from(["recognize"]);
        assert_eq!(method.options(), PatchFisherOptions::default());
    }
}
