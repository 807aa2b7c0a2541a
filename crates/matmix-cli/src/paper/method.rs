//! The models the paper compares, with its settings.

use std::ops::ControlFlow;

use matmix::fit::Observer;
use matmix::{Algorithm, FitOptions, Preset, PresetFit, Samples, Search, Start, StopRule};

/// T: the largest number of iterations.
pub(super) const ITERATIONS: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Glram,
    /// As many factors as mixB2DPPCA's core has entries.
    MixPpca,
    /// r factors.
    MixPpcaFew,
    MixB2d,
    /// Not the paper's: Fisher vectors over patches.
    Patches,
}

impl Method {
    /// Those of the paper.
    pub(super) const ALL: [Method; 4] = [Method::Glram, Method::MixPpca, Method::MixPpcaFew, Method::MixB2d];
    pub(super) const MIXTURES: [Method; 3] = [Method::MixPpca, Method::MixPpcaFew, Method::MixB2d];

    pub(super) fn name(self) -> &'static str {
        match self {
            Method::Glram => "GLRAM",
            Method::MixPpca => "mixPPCA (r·c)",
            Method::MixPpcaFew => "mixPPCA (r)",
            Method::MixB2d => "mixB2DPPCA",
            Method::Patches => "patches",
        }
    }

    /// As it stands in the results.
    pub(super) fn key(self) -> &'static str {
        match self {
            Method::Glram => "glram",
            Method::MixPpca => "mixppca-rc",
            Method::MixPpcaFew => "mixppca-r",
            Method::MixB2d => "mixb2dppca",
            Method::Patches => "patches",
        }
    }

    pub(super) fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().chain([Method::Patches]).find(|m| m.key() == key)
    }

    pub(super) fn preset(self) -> Preset {
        match self {
            Method::Glram => Preset::Glram,
            Method::MixPpca | Method::MixPpcaFew => Preset::MixPpca,
            Method::MixB2d | Method::Patches => Preset::MixB2dPpca,
        }
    }

    /// How many iterations lie behind a list of errors; that of a mixture begins with its start.
    pub(super) fn iterations(self, errors: &[f64]) -> usize {
        errors.len().saturating_sub(usize::from(self != Method::Glram))
    }

    /// The samples as the model sees them.
    pub(super) fn view<'a>(self, samples: &Samples<'a>) -> matmix::Result<Samples<'a>> {
        self.preset().view(samples)
    }

    /// Fits it to matrices with r = c. `tol` is the paper's ε on e; 0 runs all T iterations.
    pub(super) fn fit(
        self,
        samples: &Samples<'_>,
        k: usize,
        r: usize,
        algorithm: Algorithm,
        tol: f64,
        seed: u64,
        observer: &mut Observer<'_>,
    ) -> matmix::Result<PresetFit> {
        let faithful = algorithm == Algorithm::Paper;
        let options = FitOptions {
            components: k,
            rank: if self == Method::MixPpcaFew { vec![r] } else { vec![r, r] },
            // The mixture of PPCA is Tipping and Bishop's in either case, from the same kind of start.
            algorithm: if faithful && self == Method::MixB2d { Algorithm::Paper } else { Algorithm::Exact },
            start: if faithful { Start::Random } else { Start::KMeans },
            // Nobody in the paper looks for a better start.
            search: Search::None,
            max_iter: ITERATIONS,
            // Iterations are counted as the paper counts them.
            accelerate: false,
            // The paper's ε has the unit of e; the tolerance of the library is relative.
            tol: if self == Method::Glram { 1e-8 } else { 0.0 },
            stop: StopRule::ReconstructionError,
            seed,
            // The grid is what runs in parallel.
            threads: Some(1),
            ..FitOptions::default()
        };
        let mut before = f64::INFINITY;
        let observer: &mut Observer<'_> = &mut |progress| {
            let error = progress.reconstruction_error;
            let change = (std::mem::replace(&mut before, error) - error).abs();
            match observer(progress) {
                ControlFlow::Continue(()) if change <= tol && tol > 0.0 && self != Method::Glram => {
                    ControlFlow::Break(())
                }
                flow => flow,
            }
        };
        match self {
            // With one number for matrices the preset would take its square.
            Method::MixPpcaFew => self.preset().fit(&self.view(samples)?, &options, observer),
            _ => self.preset().fit(samples, &options, observer),
        }
    }
}
