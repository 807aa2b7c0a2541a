//! The options of a fit that several commands share.

use clap::ValueEnum;
use matmix::{Algorithm, FitOptions, Precision, Preset, StopRule};

use crate::data_args::{Sides, rank};
use crate::numbers::{real, whole};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AlgorithmArg {
    /// Exact posterior, any order; the likelihood never falls.
    Exact,
    /// Algorithm 1 of the paper as printed; matrices only.
    Paper,
}

impl AlgorithmArg {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Paper => "paper",
        }
    }
}

impl From<AlgorithmArg> for Algorithm {
    fn from(arg: AlgorithmArg) -> Self {
        match arg {
            AlgorithmArg::Exact => Algorithm::Exact,
            AlgorithmArg::Paper => Algorithm::Paper,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StopArg {
    /// Small relative change of the mean log-likelihood.
    Likelihood,
    /// Small change of the reconstruction error, as in the paper.
    Error,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PrecisionArg {
    /// Single for bytes and floats unless rounding would show, double for doubles.
    Auto,
    Single,
    Double,
}

/// A preset by its name.
pub(crate) fn preset() -> impl clap::builder::TypedValueParser<Value = Preset> {
    use clap::builder::TypedValueParser;
    clap::builder::PossibleValuesParser::new(Preset::names()).try_map(|name| name.parse::<Preset>())
}

/// What is fitted and for how long.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Fit")]
pub(crate) struct Fitting {
    /// K: the number of components of a mixture.
    #[arg(long, short = 'k', value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "K", default_value_t = 1)]
    components: usize,
    /// The shape of the cores: one rank per mode, or one for all; 4 per mode if not given. Models that flatten the
    /// samples get as many factors as such a core has entries.
    #[arg(long, short, value_parser = rank, value_name = "4x4")]
    rank: Option<Sides>,
    /// The largest number of iterations.
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N", default_value_t = 100)]
    max_iter: usize,
    /// How small a change stops the fit; 0 runs all iterations.
    #[arg(long, value_parser = real, allow_negative_numbers = true, value_name = "TOL", default_value = "1e-6")]
    tol: f64,
    /// The change of what.
    #[arg(long, value_enum, default_value = "likelihood")]
    stop: StopArg,
    /// Only plain iterations: no guesses where they are heading.
    #[arg(long)]
    no_acceleration: bool,
    /// Begin so many times and keep the fit with the largest log-likelihood.
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N", default_value_t = 1)]
    n_init: usize,
    /// The seed of everything random.
    #[arg(long, value_parser = whole::<u64>, allow_negative_numbers = true, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// The precision in which samples are contracted.
    #[arg(long, value_enum, default_value = "auto")]
    precision: PrecisionArg,
}

impl Fitting {
    pub(crate) fn options(&self) -> FitOptions {
        FitOptions {
            components: self.components,
            rank: self.rank.as_ref().map(|r| r.0.clone()).unwrap_or_default(),
            n_init: self.n_init,
            max_iter: self.max_iter,
            accelerate: !self.no_acceleration,
            tol: self.tol,
            stop: match self.stop {
                StopArg::Likelihood => StopRule::LogLikelihood,
                StopArg::Error => StopRule::ReconstructionError,
            },
            seed: self.seed,
            precision: match self.precision {
                PrecisionArg::Auto => Precision::Auto,
                PrecisionArg::Single => Precision::Single,
                PrecisionArg::Double => Precision::Double,
            },
            ..FitOptions::default()
        }
    }
}
