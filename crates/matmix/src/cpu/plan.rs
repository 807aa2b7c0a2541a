//! A model made ready for the blocks of one pass: rounded to the working precision, centred on a reference.

use super::samples_abreast::Panel;
use crate::linalg::mode_contraction;
use crate::model::{Classes, Component, Density, Mixture};
use crate::parallel;
use crate::simd::Real;

/// One step of a contraction: which mode, between what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) mode: usize,
    pub(crate) before: usize,
    pub(crate) n: usize,
    pub(crate) after: usize,
    pub(crate) cols: usize,
}

impl Step {
    /// Elements per sample that come out of this step.
    pub(crate) fn out_len(&self) -> usize {
        self.before * self.cols * self.after
    }
}

/// The steps that contract all modes of `shape` to `rank`, mode `last` at the end.
pub(crate) fn steps(shape: &[usize], rank: &[usize], last: usize) -> Vec<Step> {
    // Cheapest first: a step costs elements × rank and divides the elements by side / rank.
    let mut others: Vec<usize> = (0..shape.len()).filter(|&e| e != last).collect();
    let cost = |e: usize| rank[e] as f64 / (1.0 - rank[e] as f64 / (shape[e] as f64 + 1.0));
    others.sort_by(|&a, &b| cost(a).total_cmp(&cost(b)).then(b.cmp(&a)));
    let mut sides = shape.to_vec();
    others
        .into_iter()
        .chain([last])
        .map(|mode| {
            let step = Step {
                mode,
                before: sides[..mode].iter().product(),
                n: sides[mode],
                after: sides[mode + 1..].iter().product(),
                cols: rank[mode],
            };
            sides[mode] = rank[mode];
            step
        })
        .collect()
}

/// The mode to contract last when no mode is being updated: the one that makes the contraction cheapest.
pub(crate) fn cheapest_last(shape: &[usize], rank: &[usize]) -> usize {
    let cost = |d: &usize| -> usize {
        let mut elements: usize = shape.iter().product();
        steps(shape, rank, *d)
            .iter()
            .map(|s| {
                let cost = elements * s.cols;
                elements = s.out_len();
                cost
            })
            .sum()
    };
    (0..shape.len()).min_by_key(cost).unwrap_or(0)
}

/// A mixture ready for a pass that updates `mode`, in precision `T`.
pub(crate) struct Plan<T> {
    pub(crate) sample_len: usize,
    pub(crate) core_len: usize,
    pub(crate) steps: Vec<Step>,
    /// How the samples are packed for the first step.
    pub(crate) panels: Vec<Panel>,
    /// G, subtracted from every sample.
    pub(crate) reference: Vec<T>,
    pub(crate) components: Vec<PlannedComponent<T>>,
    /// Added to log-densities of the components: they are relative to the unit variance of the model.
    pub(crate) log_unit: f64,
    admission: Admission,
}

/// One component of a [`Plan`].
pub(crate) struct PlannedComponent<T> {
    /// U^(d), row-major, in the working precision.
    pub(crate) loadings: Vec<Vec<T>>,
    /// M − G in the working precision, in the order of the rows of the panels.
    pub(crate) mean: Vec<T>,
    /// M − G in double precision, rounded, and what rounding took off.
    pub(crate) offset: Vec<f64>,
    pub(crate) rounded_offset: Vec<T>,
    pub(crate) lacking: Vec<f64>,
    /// ‖M − G‖² of the rounded mean.
    pub(crate) mean_norm: f64,
    /// (M − G) after the first step, with its sign turned: what the contraction of a sample begins with, so that
    /// everything after it is centred.
    pub(crate) start: Vec<T>,
    pub(crate) density: Density,
    /// v of the core.
    pub(crate) posterior_variance: Vec<f64>,
    pub(crate) log_weight: f64,
    /// Π_{e≠d} λ^(e) for the mode that is updated.
    pub(crate) other_variances: Vec<f64>,
}

impl<T: Real> Plan<T> {
    pub(crate) fn new(model: &Mixture, mode: usize) -> Self {
        Self::around(model, mode, &model.overall_mean())
    }

    /// The same with another reference.
    pub(crate) fn around(model: &Mixture, mode: usize, reference: &[f64]) -> Self {
        let reference: Vec<T> = reference.iter().map(|&g| T::from_f64(g)).collect();
        let steps = steps(model.shape(), model.rank(), mode);
        let first = steps[0];
        let panels = Panel::all(&first);
        let unit = model.unit_variance();
        let operations = model.n_components() * model.sample_len() * first.cols;
        let components = parallel::map_if_large(model.n_components(), operations, |k| {
            let (component, weight) = (&model.components()[k], model.weights()[k]);
            plan_component(model.shape(), (component, weight, unit), mode, &first, &panels, &reference)
        });
        Self {
            sample_len: model.sample_len(),
            core_len: model.core_len(),
            panels,
            steps,
            reference,
            components,
            log_unit: -0.5 * model.sample_len() as f64 * unit.ln(),
            admission: Admission::new(model),
        }
    }

    /// Whether a sample of this class, if it is known, can be one of component `k`.
    #[inline(always)]
    pub(crate) fn admits(&self, class: Option<u32>, k: usize) -> bool {
        self.admission.admits(class, k)
    }
}

/// Which components the class of a sample leaves: all of them if it is not known, or if the model knows no classes.
pub(crate) struct Admission {
    classes: Option<Vec<u32>>,
}

impl Admission {
    pub(crate) fn new(model: &Mixture) -> Self {
        let of = |classes: &Classes| classes.components().iter().map(|&class| class as u32).collect();
        Self { classes: model.classes().map(of) }
    }

    #[inline(always)]
    pub(crate) fn admits(&self, class: Option<u32>, k: usize) -> bool {
        match (&self.classes, class) {
            (Some(classes), Some(class)) => classes[k] == class,
            _ => true,
        }
    }
}

impl<T: Real> PlannedComponent<T> {
    /// What a core takes off the squared error, from all of Y.
    #[inline(always)]
    pub(crate) fn explained(&self, y: impl Iterator<Item = T>) -> f64 {
        let mut explained = 0.0;
        for (y, factor) in y.zip(&self.density.explained) {
            explained += y.to_f64() * y.to_f64() * factor;
        }
        explained
    }
}

fn plan_component<T: Real>(
    shape: &[usize],
    (component, weight, unit): (&Component, f64, f64),
    mode: usize,
    first: &Step,
    panels: &[Panel],
    reference: &[T],
) -> PlannedComponent<T> {
    // The pass sees the rounded mean: with the same rounding in every term, what cancels still cancels.
    let offset: Vec<f64> = component.mean().iter().zip(reference).map(|(m, g)| m - g.to_f64()).collect();
    let rounded_offset: Vec<T> = offset.iter().map(|&m| T::from_f64(m)).collect();
    let rounded: Vec<f64> = rounded_offset.iter().map(|m| m.to_f64()).collect();
    let mut mean = vec![T::from_f64(0.0); rounded.len()];
    for panel in panels {
        for (element, &row) in panel.runs.iter().flat_map(Clone::clone).zip(&panel.rows) {
            mean[panel.start + row as usize] = T::from_f64(rounded[element]);
        }
    }
    let density = Density::relative(component, unit);
    let start = mode_contraction(&rounded, shape, first.mode, &component.loadings()[first.mode]);
    PlannedComponent {
        loadings: component
            .loadings()
            .iter()
            .map(|u| u.as_slice().iter().map(|&x| T::from_f64(x)).collect())
            .collect(),
        mean_norm: rounded.iter().map(|m| m * m).sum(),
        start: start.into_iter().map(|x| T::from_f64(-x)).collect(),
        mean,
        lacking: offset.iter().zip(&rounded).map(|(m, r)| m - r).collect(),
        offset,
        rounded_offset,
        posterior_variance: density.posterior_variance(),
        density,
        log_weight: weight.ln(),
        other_variances: component.other_variances(mode),
    }
}
