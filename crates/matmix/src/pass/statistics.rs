//! The sums of an EM pass: values that add.

use crate::linalg::Matrix;
use crate::model::Mixture;

/// How many of the least likely samples a pass remembers, for re-seeding.
const WORST: usize = 32;

/// What one pass that updates one mode has found out about all samples (maths.md, eq. 9–12).
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    /// The mode this pass updates, counted from 0.
    pub mode: usize,
    /// How many samples were seen.
    pub n_samples: u64,
    /// The sum of their weights.
    pub weight: f64,
    /// Σ_n w_n ln p(X_n).
    pub log_likelihood: f64,
    /// Σ_n w_n ‖X_n − X̂_n‖², each sample reconstructed by its most probable component.
    pub squared_error: f64,
    /// One entry per component.
    pub components: Vec<ComponentStatistics>,
    /// The least likely samples of positive weight: (ln p(X_n), n), least first.
    pub worst: Vec<(f64, usize)>,
}

/// The sums of one component.
#[derive(Debug, Clone, PartialEq)]
pub struct ComponentStatistics {
    /// N_k = Σ γ.
    pub weight: f64,
    /// How many samples have this as their most probable component.
    pub assigned: u64,
    /// ΔM = Σ γ (X − M).
    pub mean_shift: Vec<f64>,
    /// s_x = Σ γ ‖X − M‖².
    pub squared_distance: f64,
    /// A = Σ γ Z Q_(d)ᵀ, p_d × r_d.
    pub cross: Matrix,
    /// H = Σ γ Q_(d) W Q_(d)ᵀ, r_d × r_d.
    pub weighted_gram: Matrix,
    /// S = Σ γ Q_(d) Q_(d)ᵀ, r_d × r_d.
    pub gram: Matrix,
}

impl ComponentStatistics {
    pub(super) fn like(&self, other: &ComponentStatistics) -> bool {
        let sizes = |c: &ComponentStatistics| {
            let sides = |m: &Matrix| (m.rows(), m.cols());
            (c.mean_shift.len(), sides(&c.cross), sides(&c.weighted_gram), sides(&c.gram))
        };
        sizes(self) == sizes(other)
    }
}

impl Statistics {
    /// Empty sums for a pass of `model` that updates `mode`.
    pub fn zero(model: &Mixture, mode: usize) -> Self {
        let (p, r) = (model.shape()[mode], model.rank()[mode]);
        let component = ComponentStatistics {
            weight: 0.0,
            assigned: 0,
            mean_shift: vec![0.0; model.sample_len()],
            squared_distance: 0.0,
            cross: Matrix::zeros(p, r),
            weighted_gram: Matrix::zeros(r, r),
            gram: Matrix::zeros(r, r),
        };
        Self {
            mode,
            n_samples: 0,
            weight: 0.0,
            log_likelihood: 0.0,
            squared_error: 0.0,
            components: vec![component; model.n_components()],
            worst: Vec::new(),
        }
    }

    /// Adds the sums of other samples.
    ///
    /// # Panics
    /// If the two come from passes over different modes or models.
    pub fn merge(&mut self, other: &Statistics) {
        assert_eq!(self.mode, other.mode, "sums of the same pass");
        assert_eq!(self.components.len(), other.components.len(), "sums of the same model");
        self.n_samples += other.n_samples;
        self.weight += other.weight;
        self.log_likelihood += other.log_likelihood;
        self.squared_error += other.squared_error;
        for (a, b) in self.components.iter_mut().zip(&other.components) {
            a.weight += b.weight;
            a.assigned += b.assigned;
            a.mean_shift.iter_mut().zip(&b.mean_shift).for_each(|(a, b)| *a += b);
            a.squared_distance += b.squared_distance;
            a.cross.add_scaled(1.0, &b.cross);
            a.weighted_gram.add_scaled(1.0, &b.weighted_gram);
            a.gram.add_scaled(1.0, &b.gram);
        }
        self.worst.extend(&other.worst);
        self.worst.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        self.worst.truncate(WORST);
    }

    /// Whether the other sums come from a pass of the same mode over a model of the same size.
    pub(crate) fn like(&self, other: &Statistics) -> bool {
        self.mode == other.mode
            && self.components.len() == other.components.len()
            && self.components.iter().zip(&other.components).all(|(a, b)| a.like(b))
    }

    /// Remembers a sample if it is among the least likely so far.
    pub(crate) fn note_likelihood(&mut self, log_likelihood: f64, sample: usize) {
        if self.worst.len() == WORST && self.worst.last().is_some_and(|w| log_likelihood >= w.0) {
            return;
        }
        let at = self.worst.partition_point(|w| w.0 <= log_likelihood);
        self.worst.insert(at, (log_likelihood, sample));
        self.worst.truncate(WORST);
    }

    /// Whether every density could be evaluated.
    pub(crate) fn is_finite(&self) -> bool {
        self.log_likelihood.is_finite() && self.squared_error.is_finite()
    }

    /// The mean log-likelihood per sample.
    pub fn mean_log_likelihood(&self) -> f64 {
        self.log_likelihood / self.weight
    }

    /// e = sqrt(Σ ‖X − X̂‖² / N), the paper's reconstruction error.
    pub fn reconstruction_error(&self) -> f64 {
        (self.squared_error / self.weight).sqrt()
    }

    /// The memory one such value takes, roughly.
    pub(crate) fn bytes(model: &Mixture) -> usize {
        let widest = model.shape().iter().zip(model.rank()).map(|(p, r)| p * r + 2 * r * r).max();
        model.n_components() * (model.sample_len() + widest.unwrap_or(0)) * size_of::<f64>()
    }
}
