//! Algorithm 1 of the paper, as printed: variational EM for matrices, plain and in double precision.
//!
//! One iteration, in this order (the numbers are the paper's):
//!
//! ```text
//! (a) T = c σ² [tr(RᵀR S) LᵀL + σ² tr(S) I]⁻¹,  then  S = r σ² [tr(LᵀL T) RᵀR + σ² tr(T) I]⁻¹
//! (b) (RᵀR ⊗ LᵀL + σ² I) vec Q_n = vec(Lᵀ (X_n − M) R)                                              (4)
//! (c) γ_nk from the exact Gaussian marginal                                                         (2)
//! (d) π_k = Σ γ / N,  M_k = Σ γ X / Σ γ                                                             (3)
//! (e) L = [Σ γ (X − M) R Qᵀ] [Σ γ (Q RᵀR Qᵀ + T tr(S RᵀR))]⁻¹                                       (8)
//! (f) R = [Σ γ (X − M)ᵀ L Q] [Σ γ (Qᵀ LᵀL Q + S tr(T LᵀL))]⁻¹                                       (9)
//! (g) σ² = Σ γ { ‖X − M‖² − 2 tr(R Qᵀ Lᵀ (X − M)) + tr(⟨Bᵀ LᵀL B⟩ RᵀR) } / (p q N_k)               (10)
//! ```
//!
//! T and S do not depend on n, so there is one of each per component. It is the project's proof of
//! faithfulness, not its default: the separable posterior is an approximation, and the likelihood may fall.

use super::iterate::LoopOptions;
use super::mixture::{About, evaluation};
use super::steps::{Evaluation, Steps, Watch};
use crate::data::{Samples, Tensors, write_mixture};
use crate::error::{Error, Result};
use crate::linalg::{Matrix, SymmetricFactor, solve_symmetric_right};
use crate::model::{Component, History, Mixture};
use crate::parallel;
use crate::pass::{EmSums, Precision};
use crate::walk::Stage;

/// The model and what the algorithm carries from one iteration to the next: the loadings as they are (not in canonical form,
/// which would rotate S) and S itself. T is made from S.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Variational {
    pub(super) mixture: Mixture,
    l: Vec<Matrix>,
    r: Vec<Matrix>,
    s: Vec<Matrix>,
}

impl Variational {
    /// The algorithm begins with S = I.
    fn begin(mixture: Mixture) -> Self {
        let loadings = |d: usize| mixture.components().iter().map(|c| c.loadings()[d].clone()).collect();
        let (l, r): (Vec<Matrix>, Vec<Matrix>) = (loadings(0), loadings(1));
        let s = r.iter().map(|r| Matrix::identity(r.cols(), r.cols())).collect();
        Self { l, r, s, mixture }
    }
}

/// The steps of Algorithm 1.
pub(super) struct PaperSteps<'a> {
    pub(super) about: About<'a>,
    pub(super) samples: &'a Samples<'a>,
}

impl Steps for PaperSteps<'_> {
    type Model = Variational;
    type Sums = EmSums;

    fn start(&mut self, restart: usize, history: &mut History, watch: &mut Watch<'_>) -> Result<Variational> {
        self.about.start(restart, history, watch).map(Variational::begin)
    }

    fn evaluate(&mut self, model: &Variational, stage: Stage) -> Result<Evaluation<EmSums>> {
        let update = crate::pass::Update::Mode(0);
        self.about.pass(&model.mixture, update, Precision::Double, stage).map(evaluation)
    }

    fn update(&mut self, model: &Variational, _: EmSums, _: Stage) -> Result<Variational> {
        iterate(self.samples, model, self.about.floor)
    }

    fn converged(&self, history: &History, options: &LoopOptions) -> bool {
        options.converged(history, self.about.log_unit())
    }

    fn shown<'m>(&self, model: &'m Variational) -> Option<&'m Mixture> {
        Some(&model.mixture)
    }

    fn write(&self, model: &Variational, prefix: &str, to: &mut Tensors) {
        write_mixture(to, prefix, &model.mixture);
        to.add_matrices(&format!("{prefix}paper.l"), &model.l);
        to.add_matrices(&format!("{prefix}paper.r"), &model.r);
        to.add_matrices(&format!("{prefix}paper.s"), &model.s);
    }

    fn read(&mut self, prefix: &str, from: &Tensors) -> Result<Option<Variational>> {
        let Some(mixture) = self.about.read(prefix, from)? else { return Ok(None) };
        let (k, shape, rank) = (mixture.n_components(), mixture.shape(), mixture.rank());
        let stack = |name: &str, rows: usize, cols: usize| -> Result<Vec<Matrix>> {
            let name = format!("{prefix}{name}");
            from.get(&name, &[Some(k), Some(rows), Some(cols)])?;
            from.matrices(&name, k)
        };
        let l = stack("paper.l", shape[0], rank[0])?;
        let r = stack("paper.r", shape[1], rank[1])?;
        let s = stack("paper.s", rank[1], rank[1])?;
        Ok(Some(Variational { mixture, l, r, s }))
    }
}

/// One iteration of Algorithm 1.
fn iterate(samples: &Samples<'_>, model: &Variational, noise_floor: f64) -> Result<Variational> {
    let Variational { mixture, l, r, s } = model;
    // (c) comes first: it needs nothing but the current parameters.
    let gamma = mixture.responsibilities(samples)?;
    let k = mixture.n_components();
    let updated = parallel::map(k, |j| {
        let component = &mixture.components()[j];
        update(samples, component, &gamma, (j, k), &l[j], &r[j], &s[j], noise_floor)
    });
    let mut next = model.clone();
    let (mut weights, mut components) = (Vec::with_capacity(k), Vec::with_capacity(k));
    for (j, updated) in updated.into_iter().enumerate() {
        match updated? {
            Some(new) => {
                weights.push(new.weight);
                let loadings = vec![new.l.clone(), new.r.clone()];
                let like = mixture.components()[j].clone().with_mean(new.mean);
                let like = like.with_loadings(loadings).with_noise_variance(new.noise);
                components.push(like.renewed(mixture.shape())?);
                (next.l[j], next.r[j], next.s[j]) = (new.l, new.r, new.s);
            }
            // Deviation: a component that nothing belongs to has no update in the paper; it is held.
            None => {
                weights.push(0.0);
                components.push(mixture.components()[j].clone());
            }
        }
    }
    next.mixture = Mixture::new(mixture.shape(), weights, components)?;
    Ok(next)
}

struct Update {
    weight: f64,
    mean: Vec<f64>,
    l: Matrix,
    r: Matrix,
    s: Matrix,
    noise: f64,
}

fn update(
    samples: &Samples<'_>,
    component: &Component,
    gamma: &[f64],
    (j, k): (usize, usize),
    l: &Matrix,
    r: &Matrix,
    s: &Matrix,
    noise_floor: f64,
) -> Result<Option<Update>> {
    let (p, q) = (l.rows(), r.rows());
    let noise = component.noise_variance();
    let (ll, rr) = (l.transpose_times(l), r.transpose_times(r));

    // (a)
    let t = shrunk(&ll, rr.inner(s), s.trace(), noise, r.cols() as f64)?;
    let s = shrunk(&rr, ll.inner(&t), t.trace(), noise, l.cols() as f64)?;

    // (b) the Kronecker matrix, in the order of row-major cores.
    let (nr, nc) = (l.cols(), r.cols());
    let system = Matrix::from_fn(nr * nc, nr * nc, |a, b| {
        ll[(a / nc, b / nc)] * rr[(a % nc, b % nc)] + if a == b { noise } else { 0.0 }
    });
    let system = SymmetricFactor::new(&system).ok_or_else(singular)?;
    let core = |x: &Matrix, m: &Matrix| {
        let mut centred = x.clone();
        centred.add_scaled(-1.0, m);
        let y = l.transpose_times(&centred).times(r);
        let solved = system.solve(&Matrix::from_vec(nr * nc, 1, y.as_slice().to_vec()));
        Matrix::from_vec(nr, nc, solved.as_slice().to_vec())
    };

    // (d)
    let n = samples.len();
    let weight_of = |i: usize| gamma[i * k + j] * samples.weight(i);
    let total: f64 = (0..n).map(weight_of).sum();
    if total.is_nan() || total <= 1e-6 * samples.total_weight() / n as f64 {
        return Ok(None);
    }
    let sample = |i: usize| -> Result<Matrix> { Ok(Matrix::from_vec(p, q, samples.to_f64(i..i + 1)?)) };
    let mut mean = Matrix::zeros(p, q);
    for i in 0..n {
        mean.add_scaled(weight_of(i) / total, &sample(i)?);
    }

    // (e) with the old R; Q is around the old mean, as in (b).
    let old_mean = Matrix::from_vec(p, q, component.mean().to_vec());
    let mut cores = Vec::with_capacity(n);
    let (mut cross, mut gram) = (Matrix::zeros(p, nr), Matrix::zeros(nr, nr));
    for i in 0..n {
        let g = weight_of(i);
        let x = sample(i)?;
        let b = core(&x, &old_mean);
        let mut centred = x;
        centred.add_scaled(-1.0, &mean);
        cross.add_scaled(g, &centred.times(r).times_transpose(&b));
        gram.add_scaled(g, &b.times(&rr).times_transpose(&b));
        cores.push(b);
    }
    gram.add_scaled(total * s.inner(&rr), &t);
    let new_l = solve_symmetric_right(&cross, &gram).ok_or_else(singular)?;

    // (f) with the new L.
    let new_ll = new_l.transpose_times(&new_l);
    let (mut cross, mut gram) = (Matrix::zeros(q, nc), Matrix::zeros(nc, nc));
    let mut squares = 0.0;
    for (i, b) in cores.iter().enumerate() {
        let g = weight_of(i);
        let mut centred = sample(i)?;
        centred.add_scaled(-1.0, &mean);
        cross.add_scaled(g, &centred.transpose_times(&new_l).times(b));
        gram.add_scaled(g, &b.transpose_times(&new_ll.times(b)));
        squares += g * centred.inner(&centred);
    }
    gram.add_scaled(total * t.inner(&new_ll), &s);
    let new_r = solve_symmetric_right(&cross, &gram).ok_or_else(singular)?;

    // (g) with the new L and R: Σ γ tr(R Qᵀ Lᵀ (X − M)) = tr(Rᵀ [Σ γ (X − M)ᵀ L Q]).
    let new_rr = new_r.transpose_times(&new_r);
    let noise = (squares - 2.0 * new_r.inner(&cross) + gram.inner(&new_rr)) / ((p * q) as f64 * total);
    // Deviation: the paper's σ² has no floor; without one a component that closes in on a sample divides by zero.
    let noise = if noise > noise_floor { noise } else { noise_floor };
    Ok(Some(Update { weight: total, mean: mean.as_slice().to_vec(), l: new_l, r: new_r, s, noise }))
}

/// factor · σ² [scale · G + σ² · trace · I]⁻¹.
fn shrunk(g: &Matrix, scale: f64, trace: f64, noise: f64, factor: f64) -> Result<Matrix> {
    let n = g.rows();
    let matrix = Matrix::from_fn(n, n, |i, j| scale * g[(i, j)] + if i == j { noise * trace } else { 0.0 });
    let mut inverse = SymmetricFactor::new(&matrix).ok_or_else(singular)?.solve(&Matrix::identity(n, n));
    inverse.scale(factor * noise);
    Ok(inverse)
}

fn singular() -> Error {
    Error::Model {
        problem: "the paper's algorithm met a singular system; try another seed, or the exact algorithm"
            .into(),
    }
}
