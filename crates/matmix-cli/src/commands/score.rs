//! `matmix score`: how likely samples are.

use std::path::PathBuf;

use matmix::data::npy;

use crate::data_args::{DataOptions, Seen};
use crate::output;
use crate::progress::working;
use crate::table::{Table, plural};

/// The log-likelihood of every sample; the least likely ones are those a model has not seen the like of.
#[derive(Debug, clap::Args)]
pub(crate) struct Score {
    /// The model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The samples.
    #[arg(value_name = "DATA")]
    data: String,
    /// A .npy file for the log-likelihood of every sample.
    #[arg(long, short, value_name = "S.npy")]
    output: Option<PathBuf>,
    /// List the N least likely samples.
    #[arg(long, value_name = "N")]
    worst: Option<usize>,
    #[command(flatten)]
    options: DataOptions,
}

impl Score {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        if let Some(path) = &self.output {
            output::check(path)?;
        }
        let seen = Seen::new(&self.model, &self.data, &self.options)?;
        let mixture = seen.mixture("likelihood")?;
        let n = seen.data.samples.len();
        let spinner = working(quiet, format!("scoring {}", plural(n, "sample")), &seen.data.samples);
        let parts = mixture.score_samples(&seen.view)?;
        drop(spinner);
        // The rows of a sample are independent in a model of rows: their log-likelihoods add up.
        let scores: Vec<f64> = parts.chunks_exact(seen.parts).map(|p| p.iter().sum()).collect();
        if let Some(path) = &self.output {
            npy::write_array(path, &[n], &scores)?;
            output::say(quiet, &format!("wrote {}", path.display()));
        }
        let mean = scores.iter().sum::<f64>() / n as f64;
        let mut text = format!("mean log-likelihood {mean:.4} over {}\n", plural(n, "sample"));
        if let Some(worst) = self.worst {
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]).then(a.cmp(&b)));
            let mut head = vec!["sample", "log-likelihood"];
            if seen.data.labels.is_some() {
                head.insert(1, "label");
            }
            let mut table = Table::new(head);
            for &i in order.iter().take(worst) {
                let mut row = vec![i.to_string(), format!("{:.4}", scores[i])];
                if let Some(labels) = &seen.data.labels {
                    row.insert(1, labels.name(i).to_string());
                }
                table.row(row);
            }
            text.push_str(&format!("\n{table}"));
        }
        output::result(&text)
    }
}
