//! The program `matmix`: arguments, progress, printing. The mathematics is in the library.

mod commands;
mod data_args;
mod error;
mod fit_args;
mod output;
mod paper;
mod progress;
mod table;

use clap::{CommandFactory, Parser, Subcommand};

/// Mixtures of bilateral probabilistic PCA for samples that are matrices or tensors.
///
/// DATA is a .npy file, several of them ('parts/*.npy'), a .npz file (or file.npz:array), an IDX file (plain or gzip), a
/// MATLAB .mat file (or file.mat:variable), a .csv file, a folder of images, a TIFF file of several pages, - for a .npy or
/// .csv file on standard input, or demo:mnist: 1000 embedded digits to try things on.
#[derive(Debug, Parser)]
#[command(name = "matmix", version, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Say nothing on stderr but errors.
    #[arg(long, short, global = true)]
    quiet: bool,

    /// How many threads to use; all cores if not given. The results do not depend on it.
    #[arg(long, global = true, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1024))]
    threads: Option<usize>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Fit(commands::fit::Fit),
    Transform(commands::transform::Transform),
    Reconstruct(commands::reconstruct::Reconstruct),
    Assign(commands::assign::Assign),
    Score(commands::score::Score),
    Sample(commands::sample::Sample),
    Recognize(commands::recognize::Recognize),
    Info(commands::info::Info),
    Compare(commands::compare::Compare),
    Montage(commands::montage::Montage),
    Report(commands::report::Report),
    Demo(commands::demo::Demo),
    Paper(paper::Paper),
    /// Print the completions of a shell, to be sourced by it.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

fn main() -> std::process::ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => error::report(&error),
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    if let Some(threads) = cli.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    }
    let quiet = cli.quiet;
    match cli.command {
        Command::Fit(c) => c.run(quiet),
        Command::Transform(c) => c.run(quiet),
        Command::Reconstruct(c) => c.run(quiet),
        Command::Assign(c) => c.run(quiet),
        Command::Score(c) => c.run(quiet),
        Command::Sample(c) => c.run(quiet),
        Command::Recognize(c) => c.run(quiet),
        Command::Info(c) => c.run(),
        Command::Compare(c) => c.run(quiet),
        Command::Montage(c) => c.run(quiet),
        Command::Report(c) => c.run(quiet),
        Command::Demo(c) => c.run(quiet),
        Command::Paper(c) => c.run(quiet),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "matmix", &mut script);
            output::bytes(&script)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_contradict_each_other_nowhere() {
        Cli::command().debug_assert();
    }
}
