//! The options of a fit that several commands share.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use matmix::{Dof, FitOptions, Noise, Precision, Preset, StopRule};

use crate::data_args::{Sides, rank};
use crate::numbers::{real, whole};

/// One of the choices the library has, by its name.
pub(crate) fn choice<T>(all: &'static [T]) -> impl TypedValueParser<Value = T>
where
    T: Into<&'static str> + std::str::FromStr<Err = matmix::Error> + Copy + Send + Sync,
{
    PossibleValuesParser::new(all.iter().map(|&choice| choice.into())).try_map(|name| name.parse::<T>())
}

/// A preset by its name.
pub(crate) fn preset() -> impl TypedValueParser<Value = Preset> {
    choice(&Preset::ALL)
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
    /// The distribution of samples around the mean of their component: t has heavier tails, so that outliers count less.
    #[arg(long, value_parser = choice(Noise::ALL), default_value_t)]
    noise: Noise,
    /// The degrees of freedom of --noise t: estimated for every component, shared by all of them, or a number.
    #[arg(long, allow_negative_numbers = true, value_name = "DOF", default_value_t)]
    dof: Dof,
    /// The largest number of iterations.
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N", default_value_t = 100)]
    max_iter: usize,
    /// How small a change stops the fit; 0 runs all iterations.
    #[arg(long, value_parser = real, allow_negative_numbers = true, value_name = "TOL", default_value = "1e-6")]
    tol: f64,
    /// The change of what: of the mean log-likelihood, relative to it, or of the reconstruction error, as in the paper.
    #[arg(long, value_parser = choice(StopRule::ALL), default_value_t)]
    stop: StopRule,
    /// Only plain iterations: no guesses where they are heading.
    #[arg(long)]
    no_acceleration: bool,
    /// Every iteration sees all samples, also the early ones.
    #[arg(long)]
    no_stages: bool,
    /// Begin so many times and keep the fit with the largest log-likelihood.
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N", default_value_t = 1)]
    n_init: usize,
    /// The seed of everything random.
    #[arg(long, value_parser = whole::<u64>, allow_negative_numbers = true, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// The precision in which samples are contracted: auto is single for bytes and floats unless rounding would show.
    #[arg(long, value_parser = choice(Precision::ALL), default_value_t)]
    precision: Precision,
    /// The smallest noise variance of a component, relative to the data's mean variance per element.
    #[arg(long, value_parser = real, allow_negative_numbers = true, value_name = "SHARE", default_value = "1e-6")]
    noise_floor: f64,
}

impl Fitting {
    pub(crate) fn options(&self) -> FitOptions {
        FitOptions {
            components: self.components,
            rank: self.rank.as_ref().map(|r| r.0.clone()).unwrap_or_default(),
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
