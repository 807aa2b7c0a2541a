//! The options of a fit that several commands share.

use std::sync::LazyLock;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use matmix::{
    Dof, FitOptions, History, Input, ModelFile, Noise, Precision, Preset, PresetFit, Search, SelectOptions,
    StopReason, StopRule,
};

use crate::data_args::{Sides, rank};
use crate::error::hinted;
use crate::numbers::{TOO_LARGE, is_too_large, real, whole};
use crate::output;

/// One of the choices the library has, by its name.
pub(crate) fn choice<T>(all: &'static [T]) -> impl TypedValueParser<Value = T>
where
    T: Into<&'static str> + std::str::FromStr<Err = matmix::Error> + Copy + Send + Sync,
{
    PossibleValuesParser::new(all.iter().map(|&choice| choice.into())).try_map(|name| name.parse::<T>())
}

/// A preset by its name.
pub(crate) fn preset() -> impl TypedValueParser<Value = Preset> {
    choice(Preset::ALL)
}

/// The file of what was fitted. It does not say how long that took: the same fit gives the same file.
pub(crate) fn file_of(fit: &PresetFit, input: Input, options: &FitOptions) -> ModelFile {
    let components = fit.preset.components(options.components);
    ModelFile {
        name: Some(fit.preset.name().into()),
        input: Some(input),
        options: FitOptions { components, ..options.clone() }.described(),
        history: Some(History { seconds: 0.0, ..fit.history.clone() }),
        ..ModelFile::new(fit.model.clone())
    }
}

/// Print the warnings of a fit with this tolerance.
pub(crate) fn warn(history: &History, tol: f64, quiet: bool) {
    // A tolerance of 0 asks for all iterations; a stopped fit is reported where it is stopped.
    let stop = history.stop.filter(|stop| *stop == StopReason::MaxIterations && tol > 0.0);
    let stop = stop.and_then(StopReason::warning).map(str::to_owned);
    for warning in stop.into_iter().chain(history.warnings()) {
        output::say(quiet, &format!("warning: {warning}"));
    }
}

/// K, or the numbers it is chosen from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Components {
    pub(crate) least: usize,
    pub(crate) most: usize,
}

impl Components {
    /// Those that are tried if nobody says how many.
    pub(crate) fn auto() -> Self {
        let SelectOptions { least_components: least, most_components: most, .. } = SelectOptions::default();
        Self { least, most }
    }
}

/// `10`, `auto` or `1..20`.
fn components(text: &str) -> Result<Components, String> {
    let wrong = "it must be a whole number, such as 10, the numbers to choose from, such as 1..20, or auto";
    let (least, most) = match text.trim() {
        "auto" => return Ok(Components::auto()),
        text => text.split_once("..").unwrap_or((text, text)),
    };
    match (least.trim().parse::<usize>(), most.trim().parse::<usize>()) {
        (Ok(least), Ok(most)) if least <= most => Ok(Components { least, most }),
        (Ok(_), Ok(_)) => Err("the numbers to choose from must not fall, as in 1..20".into()),
        (Err(error), _) if is_too_large(&error) => Err(TOO_LARGE.into()),
        _ => Err(wrong.into()),
    }
}

/// Ranks, or that they are to be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ranks {
    Auto,
    Given(Sides),
}

fn ranks(text: &str) -> Result<Ranks, String> {
    match text.trim() {
        "auto" => Ok(Ranks::Auto),
        text => rank(text).map(Ranks::Given).map_err(|problem| problem + ", or auto"),
    }
}

/// As people write numbers that are so small.
static TOL: LazyLock<String> = LazyLock::new(|| format!("{:e}", FitOptions::default().tol));
static NOISE_FLOOR: LazyLock<String> = LazyLock::new(|| format!("{:e}", FitOptions::default().noise_floor));

/// What is fitted and for how long.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Fit")]
pub(crate) struct Fitting {
    /// K: the number of components of a mixture. To have it chosen: auto, or the numbers to choose from, such as 1..20.
    #[arg(long, short = 'k', value_parser = components, allow_negative_numbers = true, value_name = "K")]
    components: Option<Components>,
    /// The shape of the cores: one rank per mode, or one for all; 4 per mode if not given; auto to have it chosen. Models that
    /// flatten the samples get as many factors as such a core has entries.
    #[arg(long, short, value_parser = ranks, value_name = "4x4")]
    rank: Option<Ranks>,
    /// The distribution of samples around the mean of their component: t has heavier tails, so that outliers count less.
    #[arg(long, value_parser = choice(Noise::ALL), default_value_t)]
    noise: Noise,
    /// The degrees of freedom of --noise t: estimated for every component, shared by all of them, or a number.
    #[arg(long, allow_negative_numbers = true, value_name = "DOF", default_value_t)]
    dof: Dof,
    /// The largest number of iterations.
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N", default_value_t = FitOptions::default().max_iter)]
    max_iter: usize,
    /// Convergence tolerance: relative change that ends the fit; 0 runs all iterations.
    #[arg(long, value_parser = real, allow_negative_numbers = true, value_name = "TOL", default_value = TOL.as_str())]
    tol: f64,
    /// The change of what: of the mean log-likelihood or of the reconstruction error, the same in every unit of the data.
    #[arg(long, value_parser = choice(StopRule::ALL), default_value_t)]
    stop: StopRule,
    /// Only plain iterations: no guesses where they are heading.
    #[arg(long)]
    no_acceleration: bool,
    /// Every iteration sees all samples, also the early ones.
    #[arg(long)]
    no_stages: bool,
    /// auto: look for better clusters than those of k-means, by splits and merges, before the first iteration.
    #[arg(long, value_parser = choice(Search::ALL), default_value_t)]
    search: Search,
    /// Drop columns of the loadings that explain no more than noise would in any component, and go on without them.
    #[arg(long)]
    prune: bool,
    /// Begin so many times and keep the fit with the largest log-likelihood.
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N", default_value_t = FitOptions::default().n_init)]
    n_init: usize,
    /// The seed of everything random.
    #[arg(long, value_parser = whole::<u64>, allow_negative_numbers = true, value_name = "SEED", default_value_t = FitOptions::default().seed)]
    seed: u64,
    /// The precision in which samples are contracted: auto is single for bytes and floats unless rounding would show.
    #[arg(long, value_parser = choice(Precision::ALL), default_value_t)]
    precision: Precision,
    /// The smallest noise variance of a component, relative to the data's mean variance per element.
    #[arg(long, value_parser = real, allow_negative_numbers = true, value_name = "SHARE", default_value = NOISE_FLOOR.as_str())]
    noise_floor: f64,
}

impl Fitting {
    /// Whether K, or what it is chosen from, was given.
    pub(crate) fn says_components(&self) -> bool {
        self.components.is_some()
    }

    /// What is to be chosen, if anything is; K is chosen from `components` where it is not given.
    pub(crate) fn selection(&self, components: Option<Components>) -> Option<SelectOptions> {
        let one = Components { least: 1, most: 1 };
        let Components { least, most } = self.components.or(components).unwrap_or(one);
        let choose_rank = self.rank == Some(Ranks::Auto);
        (choose_rank || least != most || components.is_some()).then(|| SelectOptions {
            least_components: least,
            most_components: most,
            choose_rank,
            fit: self.options(),
            ..SelectOptions::default()
        })
    }

    /// Nothing may be left to be chosen.
    pub(crate) fn fixed(&self, command: &str) -> anyhow::Result<FitOptions> {
        match self.selection(None) {
            None => Ok(self.options()),
            Some(_) => {
                let message =
                    format!("matmix {command} takes one K and one rank; there is nothing to choose them by");
                Err(hinted(message, "choose them first: matmix select DATA -k auto --rank auto"))
            }
        }
    }

    /// The options, with the fewest components that are given and without ranks that are to be chosen.
    pub(crate) fn options(&self) -> FitOptions {
        FitOptions {
            components: self.components.map_or(1, |components| components.least),
            rank: match &self.rank {
                Some(Ranks::Given(sides)) => sides.0.clone(),
                _ => vec![],
            },
            search: self.search,
            prune: self.prune,
            noise: self.noise,
            dof: self.dof,
            n_init: self.n_init,
            max_iter: self.max_iter,
            accelerate: !self.no_acceleration,
            tol: self.tol,
            stop: self.stop,
            stages: !self.no_stages,
            seed: self.seed,
            precision: self.precision,
            noise_floor: self.noise_floor,
            ..FitOptions::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(clap::Parser)]
    struct Alone {
        #[command(flatten)]
        fitting: Fitting,
    }

    #[test]
    fn the_defaults_are_the_librarys() {
        let Alone { fitting } = Alone::parse_from(["fit"]);
        assert_eq!(fitting.options(), FitOptions::default());
        assert_eq!((fitting.selection(None), fitting.says_components()), (None, false));
        let range = fitting.selection(Some(Components::auto()));
        assert_eq!(range, Some(SelectOptions::default()));
    }

    /// An option of the library that has no argument would be fitted with its default for good.
    #[test]
    fn every_option_of_the_library_has_an_argument() {
        let other = |option: &str| match option {
            "start" => Some("init"),
            // Those that are on: the argument turns them off.
            "accelerate" => Some("no_acceleration"),
            "stages" => Some("no_stages"),
            // What the labels of the data are.
            "classes" => Some("supervised"),
            _ => None,
        };
        let mut program = crate::Cli::command();
        program.build();
        let fit = program.find_subcommand("fit").unwrap();
        let arguments: Vec<&str> = fit.get_arguments().map(|argument| argument.get_id().as_str()).collect();
        let options = serde_json::to_value(FitOptions::default()).unwrap();
        let options = options.as_object().unwrap().keys().map(String::as_str).chain(["classes"]);
        for option in options {
            let argument = other(option).unwrap_or(option);
            assert!(arguments.contains(&argument), "{option}: {arguments:?}");
        }
    }

    #[test]
    fn components_are_a_number_or_some_to_choose_from() {
        assert_eq!(components("10"), Ok(Components { least: 10, most: 10 }));
        assert_eq!(components(" 1..20"), Ok(Components { least: 1, most: 20 }));
        assert_eq!(components("auto"), Ok(Components::auto()));
        for text in ["", "two", "1..", "..3", "1..x", "-1", "3..2", "1...4"] {
            assert!(components(text).is_err(), "{text}");
        }
        assert_eq!(ranks("auto"), Ok(Ranks::Auto));
        assert_eq!(ranks("4x3"), Ok(Ranks::Given(Sides(vec![4, 3]))));
        assert!(ranks("none").is_err());
    }
}
