//! The program `matmix`: arguments, progress, printing. The mathematics is in the library.

mod commands;
mod data_args;
mod device_args;
mod error;
mod fit_args;
mod interrupt;
mod kind;
mod numbers;
mod output;
mod paper;
mod patch_args;
mod progress;
mod table;
mod verdict;
mod visible;

use std::ffi::OsString;

use clap::{CommandFactory, Parser, Subcommand};

use crate::error::{Doing, hinted};

/// Mixtures of bilateral probabilistic PCA for samples that are matrices or tensors.
///
/// DATA is a .npy file, several of them ('parts/*.npy'), a .npz file (or file.npz:array), an IDX file (plain or gzip), a
/// MATLAB .mat file (or file.mat:variable), a .csv file, a folder of images, a TIFF file of several pages, - for a .npy or
/// .csv file on standard input, or demo:mnist: 1000 embedded digits to try things on.
#[derive(Debug, Parser)]
#[command(name = "matmix", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  matmix fit demo:mnist -k 10 -r 4x4 --scale 1/255 -o digits.mm
  matmix report digits.mm demo:mnist -o report.html")]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Say nothing on stderr but errors.
    #[arg(long, short, global = true)]
    quiet: bool,

    /// How many threads to use; all cores if not given. The results do not depend on it.
    #[arg(long, global = true, value_name = "N", value_parser = numbers::threads, allow_negative_numbers = true)]
    threads: Option<usize>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Fit(commands::fit::Fit),
    Select(commands::select::Select),
    Transform(commands::transform::Transform),
    Reconstruct(commands::reconstruct::Reconstruct),
    Impute(commands::impute::Impute),
    Denoise(commands::denoise::Denoise),
    Assign(commands::assign::Assign),
    Classify(commands::classify::Classify),
    Cluster(commands::cluster::Cluster),
    Score(commands::score::Score),
    Outliers(commands::outliers::Outliers),
    Sample(commands::sample::Sample),
    Recognize(commands::recognize::Recognize),
    Info(commands::info::Info),
    Compare(commands::compare::Compare),
    Montage(commands::montage::Montage),
    Report(commands::report::Report),
    Demo(commands::demo::Demo),
    Paper(paper::Paper),
    /// Print the completions of a shell, to be sourced by it.
    #[command(
        after_help = "Examples:\n  matmix completions bash > ~/.local/share/bash-completion/completions/matmix"
    )]
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page of the program, or of one of its commands.
    #[command(
        after_help = "Examples:\n  matmix man | man -l -\n  matmix man fit > ~/.local/share/man/man1/matmix-fit.1"
    )]
    Man {
        /// Which command.
        command: Option<String>,
    },
}

/// Runs the program with these arguments, its name first, and gives its exit code.
pub fn program(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> u8 {
    interrupt::watch();
    let code = match Cli::try_parse_from(arguments) {
        Err(error) => error::report_arguments(&error),
        Ok(cli) => {
            let doing = if matches!(cli.command, Command::Info(_)) { Doing::Info } else { Doing::Anything };
            run(cli).map_or_else(|error| error::report(&error, doing), |()| 0)
        }
    };
    // A fit that was stopped has kept its model, and has still been stopped.
    interrupt::by().map_or(code, |signal| signal.exit_code())
}

fn run(cli: Cli) -> anyhow::Result<()> {
    if let Some(threads) = cli.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    }
    let quiet = cli.quiet;
    match cli.command {
        Command::Fit(c) => c.run(quiet),
        Command::Select(c) => c.run(quiet),
        Command::Transform(c) => c.run(quiet),
        Command::Reconstruct(c) => c.run(quiet),
        Command::Impute(c) => c.run(quiet),
        Command::Denoise(c) => c.run(quiet),
        Command::Assign(c) => c.run(quiet),
        Command::Classify(c) => c.run(quiet),
        Command::Cluster(c) => c.run(quiet),
        Command::Score(c) => c.run(quiet),
        Command::Outliers(c) => c.run(quiet),
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
        Command::Man { command } => man(command.as_deref()),
    }
}

/// One page, as roff.
fn man(command: Option<&str>) -> anyhow::Result<()> {
    let mut all = Cli::command();
    all.build();
    let page = match command {
        None => all,
        Some(name) => all.find_subcommand(name).cloned().ok_or_else(|| {
            let names: Vec<&str> = all.get_subcommands().map(clap::Command::get_name).collect();
            let message = format!("there is no command `{name}`");
            hinted(message, format!("the commands are {}", names.join(", ")))
        })?,
    };
    let mut roff = Vec::new();
    clap_mangen::Man::new(page).render(&mut roff)?;
    output::bytes(&roff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_contradict_each_other_nowhere() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example_that_it_understands() {
        let mut all = Cli::command();
        all.build();
        let commands = all.get_subcommands().filter(|c| c.get_name() != "help");
        for command in std::iter::once(&all).chain(commands) {
            let name = command.get_name();
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let lines: Vec<&str> = help.lines().filter(|line| line.starts_with("  matmix ")).collect();
            assert!(!lines.is_empty(), "{name}");
            for line in lines {
                Cli::try_parse_from(shell_words(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
            }
        }
    }

    /// Words with or without single quotes, up to a redirection.
    fn shell_words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quoted = false;
        for c in line.trim().chars() {
            match c {
                '\'' => quoted = !quoted,
                '>' | '|' if !quoted => break,
                ' ' if !quoted => words.push(String::new()),
                c => words.last_mut().unwrap().push(c),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }
}
