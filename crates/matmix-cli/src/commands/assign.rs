//! `matmix assign`: which component each sample belongs to.

use std::path::PathBuf;

use crate::data_args::{DataOptions, Seen};
use crate::output;
use crate::progress::working;
use crate::table::{field, plural};

/// Write the most probable component and all responsibilities of every sample as CSV.
#[derive(Debug, clap::Args)]
pub(crate) struct Assign {
    /// The model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The samples.
    #[arg(value_name = "DATA")]
    data: String,
    /// The CSV file to write; stdout if not given.
    #[arg(long, short, value_name = "A.csv")]
    output: Option<PathBuf>,
    #[command(flatten)]
    options: DataOptions,
}

impl Assign {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        if let Some(path) = &self.output {
            output::check(path)?;
        }
        let seen = Seen::new(&self.model, &self.data, &self.options)?;
        let mixture = seen.mixture("responsibilities")?;
        let spinner = working(
            quiet,
            format!("assigning {}", plural(seen.data.samples.len(), "sample")),
            &seen.data.samples,
        );
        let k = mixture.n_components();
        let gamma = mixture.responsibilities(&seen.view)?;
        drop(spinner);
        let labels = seen.data.labels.as_ref();
        let mut text = String::from("sample");
        if seen.parts > 1 {
            text.push_str(",row");
        }
        if labels.is_some() {
            text.push_str(",label");
        }
        text.push_str(",component");
        (0..k).for_each(|j| text.push_str(&format!(",responsibility_{j}")));
        text.push('\n');
        for (n, row) in gamma.chunks_exact(k).enumerate() {
            let sample = n / seen.parts;
            text.push_str(&sample.to_string());
            if seen.parts > 1 {
                text.push_str(&format!(",{}", n % seen.parts));
            }
            if let Some(labels) = labels {
                text.push_str(&format!(",{}", field(labels.name(sample))));
            }
            // The first of equals, as the library decides it.
            let best = (0..k).fold(0, |best, j| if row[j] > row[best] { j } else { best });
            text.push_str(&format!(",{best}"));
            row.iter().for_each(|g| text.push_str(&format!(",{g:.6}")));
            text.push('\n');
        }
        output::text(self.output.as_deref(), &text)?;
        if let Some(path) = &self.output {
            output::say(quiet, &format!("wrote {}", path.display()));
        }
        Ok(())
    }
}
