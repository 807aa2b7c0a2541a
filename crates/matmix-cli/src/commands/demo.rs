//! `matmix demo`: which model for what, on the embedded digits, in a few seconds.

use std::path::{Path, PathBuf};

use matmix::data::{Labels, digits};
use matmix::error::sides;
use matmix::picture::{Grid, Image, ValueRange};
use matmix::report::{ReportOptions, write_report};
use matmix::{FitOptions, Model, Preset, Samples};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use crate::commands::compare::Compared;
use crate::commands::montage::spaced;
use crate::kind::Kind;
use crate::output::{self, Overwrite, Target};
use crate::progress::steps;
use crate::table::{Table, count, number};

/// The digits of the smaller set: six of each.
const FEW: usize = 60;

/// The standard deviation of the noise, of values between 0 and 1: about that of the digits themselves.
const NOISE: f64 = 0.3;

/// What is fitted: to all digits but those kept for the test, and to a few.
const MANY_SAMPLES: [(Preset, &[usize]); 5] = [
    (Preset::MixPpca, &[16]),
    (Preset::Glram, &[8, 8]),
    (Preset::MixB2dPpca, &[4, 4]),
    (Preset::MixB2dPpca, &[8, 8]),
    (Preset::MixB2dPpca, &[14, 14]),
];
const FEW_SAMPLES: [(Preset, &[usize]); 3] =
    [(Preset::Pca, &[FEW - 1]), (Preset::Glram, &[8, 8]), (Preset::MixB2dPpca, &[8, 8])];

/// See on 1000 embedded digits which model is good for what: densities, errors and noise at several ranks.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  matmix demo
  matmix demo -o /tmp/digits")]
pub(crate) struct Demo {
    /// The folder for the pictures and the report; made if it is not there.
    #[arg(long, short, value_name = "FOLDER", default_value = "demo")]
    output: PathBuf,
    #[command(flatten)]
    overwrite: Overwrite,
}

impl Demo {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        output::make_folder(&self.output)?;
        let target = |name: &str, kind| {
            let path = self.output.join(name);
            Target::new(&path, kind, &[], &self.overwrite).map(|_| path)
        };
        let montage = target("montage.png", Kind::Picture)?;
        let denoised = target("denoised.png", Kind::Picture)?;
        let page = target("report.html", Kind::Page)?;
        let digits = digits();
        let samples = digits.samples.scaled(1.0 / 255.0)?;
        let labels = digits.labels.unwrap_or_else(|| Labels::new(vec![String::new(); samples.len()]));
        // Every fifth digit is kept for the test; the set is sorted by digit, so that each is there as often.
        let (test, train): (Vec<usize>, Vec<usize>) = (0..samples.len()).partition(|n| n % 5 == 4);
        let (seen, unseen) = (samples.clone().select(&train)?, samples.select(&test)?);
        let few = seen.clone().select(&spaced(seen.len(), FEW))?;

        let bar = steps(quiet, MANY_SAMPLES.len() + FEW_SAMPLES.len() + 2);
        let fitted = |to: &Samples<'_>, components, preset: Preset, rank: &[usize]| {
            bar.set_message(preset.name());
            let options = FitOptions { components, rank: rank.to_vec(), ..FitOptions::default() };
            let compared = Compared::new(preset, to, Some(&unseen), &options);
            bar.inc(1);
            compared
        };
        let all = |to: &Samples<'_>, components, wanted: &[(Preset, &[usize])]| {
            wanted
                .iter()
                .map(|&(preset, rank)| fitted(to, components, preset, rank))
                .collect::<anyhow::Result<Vec<_>>>()
        };
        let many = all(&seen, 10, &MANY_SAMPLES)?;
        // A component needs samples to learn from.
        let few = all(&few, 3, &FEW_SAMPLES)?;
        let (noisy_seen, noisy) = (with_noise(&seen, 1)?, with_noise(&unseen, 2)?);
        let (pca, mixture) = (
            fitted(&noisy_seen, 1, Preset::Ppca, &[64])?,
            fitted(&noisy_seen, 10, Preset::MixB2dPpca, &[14, 14])?,
        );
        bar.set_message("pictures");
        let shown: Vec<&Compared> = [0, 2, 3, 4].iter().map(|&i| &many[i]).collect();
        rebuilt(&unseen, &shown)?.write_png(&montage)?;
        let cleaned = [denoise(&pca, &noisy)?, denoise(&mixture, &noisy)?];
        before_and_after(&unseen, &noisy, &cleaned)?.write_png(&denoised)?;
        let told = &many[2];
        if let Model::Mixture(model) = &told.model {
            let options = ReportOptions {
                data: "demo:mnist".into(),
                model: told.preset.name().into(),
                labels: Some(labels.select(&train)?),
                history: Some(told.history.clone()),
                seed: Some(FitOptions::default().seed),
                ..ReportOptions::default()
            };
            write_report(model, &seen, &options, &page)?;
        }
        bar.finish_and_clear();
        let left = [noise_left(&cleaned[0], &unseen, &noisy)?, noise_left(&cleaned[1], &unseen, &noisy)?];
        output::result(&words(&many, &few, left, &[&montage, &denoised, &page]))
    }
}

/// The same samples with noise added.
fn with_noise(samples: &Samples<'_>, seed: u64) -> matmix::Result<Samples<'static>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut x = samples.to_f64(0..samples.len())?;
    x.iter_mut().for_each(|x| *x += NOISE * rng.sample::<f64, _>(StandardNormal));
    Samples::from_vec(samples.shape(), x)
}

/// Noisy samples as a model of noisy samples sees them without their noise.
fn denoise(by: &Compared, noisy: &Samples<'_>) -> anyhow::Result<Vec<f64>> {
    let view = by.preset.view(noisy)?;
    Ok(match &by.model {
        Model::Mixture(model) => model.denoise(&view)?,
        model => model.reconstruct(&view)?,
    })
}

/// ‖what is left‖² / ‖the noise‖².
fn noise_left(cleaned: &[f64], clean: &Samples<'_>, noisy: &Samples<'_>) -> matmix::Result<f64> {
    let (clean, noisy) = (clean.to_f64(0..clean.len())?, noisy.to_f64(0..noisy.len())?);
    let from = |x: &[f64]| x.iter().zip(&clean).map(|(x, c)| (x - c) * (x - c)).sum::<f64>();
    Ok(from(cleaned) / from(&noisy))
}

/// Ten of these samples, evenly spaced, as tiles.
fn ten(x: &[f64], samples: &Samples<'_>) -> Vec<Vec<f64>> {
    let size = samples.sample_len();
    spaced(samples.len(), 10).into_iter().map(|n| x[n * size..(n + 1) * size].to_vec()).collect()
}

fn draw(shape: &[usize], rows: &[Vec<Vec<f64>>]) -> matmix::Result<Image> {
    Grid { enlarge: 3, gap: 6, range: ValueRange::Given(0.0, 1.0), ..Grid::default() }.draw_rows(shape, rows)
}

/// Unseen digits in the first row, what models make of them below.
fn rebuilt(unseen: &Samples<'_>, results: &[&Compared]) -> anyhow::Result<Image> {
    let mut rows = vec![ten(&unseen.to_f64(0..unseen.len())?, unseen)];
    for result in results {
        rows.push(ten(&result.model.reconstruct(&result.preset.view(unseen)?)?, unseen));
    }
    Ok(draw(unseen.shape(), &rows)?)
}

/// Noisy digits, what is left of them without their noise, and the digits as they were.
fn before_and_after(clean: &Samples<'_>, noisy: &Samples<'_>, cleaned: &[Vec<f64>]) -> anyhow::Result<Image> {
    let mut rows = vec![ten(&noisy.to_f64(0..noisy.len())?, noisy)];
    rows.extend(cleaned.iter().map(|x| ten(x, clean)));
    rows.push(ten(&clean.to_f64(0..clean.len())?, clean));
    Ok(draw(clean.shape(), &rows)?)
}

fn words(many: &[Compared], few: &[Compared], left: [f64; 2], written: &[&Path; 3]) -> String {
    let mut table =
        Table::new(["digits", "model", "core", "parameters", "ln p, seen", "ln p, unseen", "error, unseen"]);
    let of_many = many.iter().map(|r| (800, r));
    for (digits, r) in of_many.chain(few.iter().map(|r| (FEW, r))) {
        let name = match r.preset {
            Preset::Glram => "GLRAM",
            Preset::Pca => "PCA",
            Preset::MixPpca => "mixture of PPCA",
            _ => "mixB2DPPCA",
        };
        table.row([
            digits.to_string(),
            name.to_string(),
            sides(r.model.rank()),
            count(r.model.n_parameters()),
            number(r.log_likelihood, 0),
            number(r.held_out_log_likelihood, 0),
            number(r.held_out_error, 2),
        ]);
    }
    let [montage, denoised, page] = written.map(|path| path.display().to_string());
    let [pca, mixture] = left.map(|share| (100.0 * share).round());
    format!(
        "Models of 28×28 digits, fitted to 800 of them (ten components each) or to {FEW} (three). What counts is how they do\n\
         on 200 digits that they have never seen: ln p, the mean log-likelihood, and the error of what is rebuilt.\n\n\
         {table}\n\
         A density: mixB2DPPCA, once its rank is chosen. Its likelihood grows with the rank and is about the same on\n\
         seen and unseen digits; the mixture of PPCA has many times the parameters and learns its digits by heart.\n\
         Few numbers of many digits: the mixture of PPCA, which rebuilds best from 16 of them.\n\
         Few digits: mixB2DPPCA, which has the smallest error of those that have seen {FEW}.\n\
         Noise: fitted to noisy digits alone, mixB2DPPCA with cores of 14×14 leaves {mixture} % of it, PPCA with 64 factors {pca} %.\n\n\
         {montage}   unseen digits; below them what is rebuilt by the mixture of PPCA from 16\n\
         {:width$}   numbers, and by mixB2DPPCA from 4×4, 8×8 and 14×14\n\
         {denoised}  noisy digits; below them without their noise, by PPCA and by mixB2DPPCA; and as\n\
         {:width$}   they were\n\
         {page}   the mixture with cores of 4×4 in a browser: components, loadings, a latent\n\
         {:width$}   explorer, outliers\n\n\
         Try your own images next: `matmix fit FOLDER -k 10 -r 8x8 --scale 1/255 -o MODEL`, with a rank of about half the\n\
         sides for a density, or chosen by `matmix select`; then `matmix report MODEL FOLDER -o report.html`.\n",
        "",
        "",
        "",
        width = montage.chars().count(),
    )
}
