//! A mixture made ready for samples with missing cells.

use super::super::plan::{Admission, Plan};
use super::lanes::place;
use super::modes::kronecker_row;
use crate::model::{Component, Mixture};
use crate::simd::Aligned;
use crate::simd::Real;

/// A mixture made ready for samples with missing cells. What has one number per component lies in units of components.
pub(in super::super) struct PartialModel<T> {
    pub(super) model: Mixture,
    /// How many units of components there are.
    pub(super) units: usize,
    /// G, subtracted from every sample, and M − G, `[unit][cell][lane]`.
    pub(super) reference: Vec<T>,
    pub(super) mean: Aligned<T>,
    pub(super) log_weights: Vec<f64>,
    /// The unit of variance that densities are relative to, and ln σ² in it.
    pub(super) unit_variance: f64,
    pub(super) log_noises: Vec<f64>,
    pub(super) admission: Admission,
    pub(super) core_variances: Vec<Vec<f64>>,
    /// Of every component the rows of the Kronecker product of the loadings of all modes but the last.
    pub(super) prefixes: Vec<Vec<T>>,
    /// The columns of the loadings of the last mode, whole vectors.
    pub(super) columns: Vec<Aligned<T>>,
    /// U^(d), `[unit][p_d][r_d][lane]`, of every mode.
    pub(super) loadings: Vec<Aligned<T>>,
    /// How many pairs (a, b), b ≤ a, of columns each mode has, and their products, `[unit][p_d][pair][lane]`, of every mode but the last.
    pub(super) pairs: Vec<usize>,
    pub(super) products: Vec<Aligned<T>>,
    /// s and σ², `[unit][core][lane]` and `[unit][lane]`.
    pub(super) variances: Aligned<T>,
    pub(super) noise: Aligned<T>,
    /// 0, 1, … up to the longest side: all rows of a mode.
    pub(super) all_rows: Vec<usize>,
    /// Where the entry (j, l), l ≤ j, of Σ u uᵀ is among the products of pairs.
    pub(super) entries: Vec<usize>,
}

impl<T: Real> PartialModel<T> {
    pub(in super::super) fn new(model: &Mixture, plan: &Plan<T>) -> Self {
        let (components, (shape, rank)) = (model.components(), (model.shape(), model.rank()));
        let units = model.n_components().div_ceil(T::LANES);
        let unit_variance = model.unit_variance();
        let abreast = |rows: usize, rest: f64, of: &dyn Fn(usize, usize) -> f64| {
            let mut all = Aligned::new(T::from_f64(rest), units * rows * T::LANES);
            for k in 0..components.len() {
                (0..rows).for_each(|row| all[place::<T>(k, row, rows)] = T::from_f64(of(k, row)));
            }
            all
        };
        let variances: Vec<Vec<f64>> = components.iter().map(Component::core_variances).collect();
        let loadings = |d: usize| {
            abreast(shape[d] * rank[d], 0.0, &|k, row| components[k].loadings()[d].as_slice()[row])
        };
        let pairs = |d: usize| -> Vec<(usize, usize)> {
            (0..rank[d]).flat_map(|a| (0..=a).map(move |b| (a, b))).collect()
        };
        let products = |d: usize| {
            let pairs = pairs(d);
            abreast(shape[d] * pairs.len(), 0.0, &|k, row| {
                let (a, b) = pairs[row % pairs.len()];
                let u = components[k].loadings()[d].row(row / pairs.len());
                u[a] * u[b]
            })
        };
        let last = shape.len() - 1;
        let columns = |component: &Component| {
            let u = &component.loadings()[last];
            let stride = u.rows().next_multiple_of(T::LANES);
            let mut columns = Aligned::new(T::from_f64(0.0), u.cols() * stride);
            for (i, j) in (0..u.rows()).flat_map(|i| (0..u.cols()).map(move |j| (i, j))) {
                columns[j * stride + i] = T::from_f64(u[(i, j)]);
            }
            columns
        };
        let pair_counts: Vec<usize> = rank.iter().map(|r| r * (r + 1) / 2).collect();
        Self {
            units,
            reference: plan.reference.clone(),
            mean: abreast(model.sample_len(), 0.0, &|k, i| plan.components[k].offset[i]),
            loadings: (0..=last).map(loadings).collect(),
            products: (0..last).map(products).collect(),
            variances: abreast(model.core_len(), 0.0, &|k, j| variances[k][j]),
            // Lanes without a component are factorised like the others: they must not be singular.
            noise: abreast(1, unit_variance, &|k, _| components[k].noise_variance()),
            entries: entries(rank, &pair_counts),
            pairs: pair_counts,
            all_rows: (0..shape.iter().copied().max().unwrap_or(1)).collect(),
            prefixes: components.iter().map(|c| prefixes(c, shape)).collect(),
            columns: components.iter().map(columns).collect(),
            core_variances: variances,
            admission: Admission::new(model),
            log_weights: model.weights().iter().map(|w| w.ln()).collect(),
            log_noises: components.iter().map(|c| (c.noise_variance() / unit_variance).ln()).collect(),
            unit_variance,
            model: model.clone(),
        }
    }

    /// Row `row` of the Kronecker product of the loadings of all modes but the last, of component `k`.
    #[inline(always)]
    pub(super) fn prefix(&self, k: usize, row: usize) -> &[T] {
        let (rank, _) = self.last();
        let columns = self.model.core_len() / rank;
        &self.prefixes[k][row * columns..(row + 1) * columns]
    }

    /// The rank and the side of the last mode.
    pub(super) fn last(&self) -> (usize, usize) {
        let last = self.pairs.len() - 1;
        (self.model.rank()[last], self.model.shape()[last])
    }
}

/// The rows of the Kronecker product of the loadings of all modes but the last.
fn prefixes<T: Real>(component: &Component, shape: &[usize]) -> Vec<T> {
    let before = &component.loadings()[..shape.len() - 1];
    let shape = &shape[..before.len()];
    let rows = (0..shape.iter().product()).flat_map(|place| kronecker_row(before, shape, place, None));
    rows.map(T::from_f64).collect()
}

/// Where the entries of Σ u uᵀ on and below the diagonal are among the products of pairs, row by row.
fn entries(rank: &[usize], pairs: &[usize]) -> Vec<usize> {
    let rho: usize = rank.iter().product();
    let mut entries = Vec::with_capacity(rho * (rho + 1) / 2);
    for j in 0..rho {
        for l in 0..=j {
            let (mut at, mut rest) = (0, (rho, j, l));
            for (&r, &pairs) in rank.iter().zip(pairs) {
                let below = rest.0 / r;
                let (a, b) = (rest.1 / below, rest.2 / below);
                rest = (below, rest.1 % below, rest.2 % below);
                let (a, b) = (a.max(b), a.min(b));
                at = at * pairs + a * (a + 1) / 2 + b;
            }
            entries.push(at);
        }
    }
    entries
}
