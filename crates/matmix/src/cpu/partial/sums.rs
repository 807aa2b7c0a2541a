//! The sums of an EM pass over samples with missing cells: those of the complete samples, in expectation (maths.md, eq. 12a–12c).
//!
//! With x̂ the sample less M₀ whose missing cells are u_iᵀ Q, a = γ u and V of the pattern of missing cells:
//!
//! ```text
//! F += a x̂ ⊗ Q, and the row of a missing cell i + γ u_iᵀ V        G += a Q ⊗ Q + γ V
//! s += a ‖x̂‖² + γ Σ_{i missing} (σ² + u_iᵀ V u_i)                 m += a x̂        b += a Q
//! ```
//!
//! What V is part of is linear in γ, and V is the same for all samples of a pattern: it is added once per pattern.

use pulp::{Simd, WithSimd};

use super::super::aligned::Aligned;
use super::super::simd::{Instructions, Real};
use super::{PartialFound, PartialModel, PartialPattern};
use crate::linalg::{Matrix, project, sides_around};
use crate::model::Component;
use crate::pass::{ComponentSums, EmSums, LoadingSums, Update};

/// Samples of a component that are gathered before they are added to F: it is fetched once for all of them.
const GATHERED: usize = 8;

/// The sums of a thread that are not in its [`EmSums`] yet.
pub(in super::super) struct PartialSums {
    update: Update,
    /// Σ γ of the samples of the present pattern, per component.
    pending: Vec<f64>,
    /// Fᵀ and m of every component that has any.
    crosses: Vec<Option<Box<Cross>>>,
    /// Room for a core, a sample, V, F⁻¹ and V with some of its modes contracted.
    core: Vec<f64>,
    filled: Vec<f64>,
    covariance: Matrix,
    inverse: Matrix,
    along: Vec<f64>,
}

/// F, `[cell][core]`, followed by m as one more column; and samples that have not been added to it.
struct Cross {
    /// Numbers of a row: whole vectors.
    row: usize,
    sums: Aligned<f64>,
    waiting: usize,
    /// x̂ of those that wait, `[sample][cell]`, and a Q and a, `[sample][row]`.
    x: Vec<f64>,
    factors: Aligned<f64>,
}

impl PartialSums {
    pub(in super::super) fn new(components: usize, size: usize, core_len: usize, update: Update) -> Self {
        Self {
            update,
            pending: vec![0.0; components],
            crosses: (0..components).map(|_| None).collect(),
            core: vec![0.0; core_len],
            filled: vec![0.0; size],
            covariance: Matrix::zeros(core_len, core_len),
            inverse: Matrix::zeros(core_len, core_len),
            along: vec![0.0; core_len * core_len],
        }
    }

    /// A sample with a share in component `k`: γ times its weight.
    pub(in super::super) fn add<T: Real>(
        &mut self,
        on: Instructions,
        found: &PartialFound<'_, T>,
        k: usize,
        gamma: f64,
        to: &mut ComponentSums,
    ) {
        on.run::<f64, _>(Add { sums: self, found, k, gamma, to });
        if let Some(cross) = &mut self.crosses[k]
            && cross.waiting == GATHERED
        {
            cross.multiply(on);
        }
    }

    /// What the posterior covariance adds for all samples of a pattern.
    pub(in super::super) fn close<T: Real>(
        &mut self,
        on: Instructions,
        pattern: &PartialPattern<'_, T>,
        sum: &mut EmSums,
    ) {
        for (k, to) in sum.components.iter_mut().enumerate() {
            let gamma = std::mem::take(&mut self.pending[k]);
            if gamma > 0.0 {
                on.run::<f64, _>(Close { sums: self, pattern, k, gamma, to });
            }
        }
    }

    /// Brings what is left to the sums.
    pub(in super::super) fn finish(&mut self, on: Instructions, sum: &mut EmSums) {
        for (cross, to) in self.crosses.iter_mut().zip(&mut sum.components) {
            let (Some(of), LoadingSums::All { cross, .. }) = (cross, &mut to.loadings) else { continue };
            of.multiply(on);
            let (core_len, size) = (cross.rows(), cross.cols());
            for (i, row) in of.sums.chunks_exact(of.row).enumerate() {
                to.shift[i] += row[core_len];
                for (j, x) in row[..core_len].iter().enumerate() {
                    cross.as_mut_slice()[j * size + i] += x;
                }
            }
            of.sums.fill(0.0);
        }
    }
}

/// One sample, for one component.
struct Add<'a, 'f, T> {
    sums: &'a mut PartialSums,
    found: &'a PartialFound<'f, T>,
    k: usize,
    gamma: f64,
    to: &'a mut ComponentSums,
}

impl<T: Real> WithSimd for Add<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { sums, found, k, gamma, to } = self;
        let component = &found.of.model.components()[k];
        let (exponent, delta) = (&found.pattern.exponents[k], found.state.deltas[k]);
        let a = gamma * exponent.weight(delta);
        to.weight += gamma;
        to.scale += a;
        to.log_scale += gamma * exponent.log_weight(delta);
        sums.pending[k] += gamma;
        found.core(k, &mut sums.core);
        fill(found, k, &sums.core, &mut sums.filled, &mut sums.along);
        let (q, x) = (&sums.core[..], &sums.filled[..]);
        to.squares += a * squares(x);
        add_scaled(a, q, &mut to.core);
        match (&mut to.loadings, sums.update) {
            (LoadingSums::All { gram, .. }, _) => {
                for (row, p) in gram.as_mut_slice().chunks_exact_mut(q.len()).zip(q) {
                    add_scaled(a * p, q, row);
                }
                sums.crosses[k].get_or_insert_with(|| Box::new(Cross::new(x.len(), q.len()))).add(x, q, a);
            }
            (LoadingSums::Mode { cross, weighted_gram, gram }, Update::Mode(d)) => {
                add_scaled(a, x, &mut to.shift);
                let z = project(x, found.of.model.shape(), component.loadings(), Some(d));
                let sides = Sides::around(found.of.model.rank(), d);
                sides.add_product(a, &z, q, None, cross);
                sides.add_product(a, q, q, Some(&component.other_variances(d)), weighted_gram);
                sides.add_product(a, q, q, None, gram);
            }
            (LoadingSums::Mode { .. }, Update::All) => unreachable!("sums of one mode"),
        }
    }
}

/// What V adds, for one component.
struct Close<'a, 'f, T> {
    sums: &'a mut PartialSums,
    pattern: &'a PartialPattern<'f, T>,
    k: usize,
    gamma: f64,
    to: &'a mut ComponentSums,
}

impl<T: Real> WithSimd for Close<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { sums, pattern, k, gamma, to } = self;
        let (of, missing) = (pattern.of, &pattern.state.missing[..]);
        let component = &of.model.components()[k];
        let PartialSums { covariance: v, inverse, along, crosses, update, .. } = sums;
        pattern.covariance(k, inverse, v);
        // Σ u_iᵀ V u_i over the missing cells: ⟨diag(s) − T, V⟩, T = Λ − σ² I over the observed ones and Λ V = σ² I.
        let (noise, s) = (component.noise_variance(), &of.core_variances[k]);
        let mut spread = 0.0;
        for (j, s) in s.iter().enumerate() {
            spread += (s + noise) * v[(j, j)] - noise;
        }
        to.squares += gamma * (missing.len() as f64 * noise + spread.max(0.0));
        match (&mut to.loadings, *update) {
            (LoadingSums::All { gram, .. }, _) => {
                add_scaled(gamma, v.as_slice(), gram.as_mut_slice());
                if let Some(cross) = &mut crosses[k] {
                    add_rows(gamma, v, of, k, missing, along, cross);
                }
            }
            (LoadingSums::Mode { cross, weighted_gram, gram }, Update::Mode(d)) => {
                let sides = Sides::around(of.model.rank(), d);
                sides.add_trace(gamma, v, Some(&component.other_variances(d)), weighted_gram);
                sides.add_trace(gamma, v, None, gram);
                sides.add_mode_rows(gamma, v, component, of.model.shape(), missing, d, cross);
            }
            (LoadingSums::Mode { .. }, Update::All) => unreachable!("sums of one mode"),
        }
    }
}

/// to += a x. Plain loops, here and below: an iterator's `for_each` may be compiled apart, without the wide instructions.
#[inline(always)]
fn add_scaled(a: f64, x: &[f64], to: &mut [f64]) {
    let to = &mut to[..x.len()];
    for i in 0..x.len() {
        to[i] += a * x[i];
    }
}

/// ‖x‖², in several sums side by side: a single one would wait for itself.
#[inline(always)]
fn squares(x: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (chunks, rest) = x.as_chunks::<8>();
    for x in chunks {
        for i in 0..8 {
            sums[i] += x[i] * x[i];
        }
    }
    for (i, x) in rest.iter().enumerate() {
        sums[i] += x * x;
    }
    sums.iter().sum()
}

/// x̂ less M₀: x − M where it was observed, u_iᵀ Q where not.
#[inline(always)]
fn fill<T: Real>(found: &PartialFound<'_, T>, k: usize, core: &[f64], out: &mut [f64], along: &mut [f64]) {
    let of = found.of;
    let (x, offset) = (&found.state.x[..out.len()], &of.offsets[k][..out.len()]);
    for i in 0..out.len() {
        out[i] = x[i] - offset[i];
    }
    let Some(last) = of.model.components()[k].loadings().last() else { return };
    let (side, rank) = (last.rows(), last.cols());
    for (prefix, cells) in Rows::of(&found.pattern.missing, side) {
        contracted(of.prefixes[k].row(prefix), core, &mut along[..rank]);
        for &i in cells {
            let mut sum = 0.0;
            for (a, u) in along[..rank].iter().zip(last.row(i - prefix * side)) {
                sum += a * u;
            }
            out[i] = sum;
        }
    }
}

/// Missing cells by all their indices but the last.
struct Rows<'a> {
    missing: &'a [usize],
    side: usize,
}

impl<'a> Rows<'a> {
    fn of(missing: &'a [usize], side: usize) -> Self {
        Self { missing, side }
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = (usize, &'a [usize]);

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, &'a [usize])> {
        let prefix = self.missing.first()? / self.side;
        let end = (prefix + 1) * self.side;
        let mut count = 1;
        while count < self.missing.len() && self.missing[count] < end {
            count += 1;
        }
        let (cells, rest) = self.missing.split_at(count);
        self.missing = rest;
        Some((prefix, cells))
    }
}

/// The row of the Kronecker product of some loadings that belongs to a place in a grid of this shape, without mode `except`.
pub(super) fn kronecker_row(
    loadings: &[Matrix],
    shape: &[usize],
    place: usize,
    except: Option<usize>,
) -> Vec<f64> {
    let (mut row, mut below) = (vec![1.0], shape.iter().product::<usize>());
    let mut rest = place;
    for (d, (u, side)) in loadings.iter().zip(shape).enumerate() {
        below /= side;
        let at = rest / below;
        rest %= below;
        if Some(d) != except {
            row = row.iter().flat_map(|x| u.row(at).iter().map(move |y| x * y)).collect();
        }
    }
    row
}

/// out = Σ_a prefix[a] x[a][…]: `x` is `[prefix][out]`.
#[inline(always)]
fn contracted(prefix: &[f64], x: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    for (p, x) in prefix.iter().zip(x.chunks_exact(out.len())) {
        add_scaled(*p, x, out);
    }
}

/// Adds γ u_iᵀ V to the rows of the missing cells.
#[inline(always)]
fn add_rows<T: Real>(
    gamma: f64,
    v: &Matrix,
    of: &PartialModel<T>,
    k: usize,
    missing: &[usize],
    along: &mut [f64],
    to: &mut Cross,
) {
    let Some(last) = of.model.components()[k].loadings().last() else { return };
    let (side, rank, rho) = (last.rows(), last.cols(), v.rows());
    // [last rank][core]: V with all modes of its rows but the last contracted.
    let along = &mut along[..rank * rho];
    for (prefix, cells) in Rows::of(missing, side) {
        contracted(of.prefixes[k].row(prefix), v.as_slice(), along);
        for &i in cells {
            let to = &mut to.sums[i * to.row..][..rho];
            for (u, along) in last.row(i - prefix * side).iter().zip(along.chunks_exact(rho)) {
                add_scaled(gamma * u, along, to);
            }
        }
    }
}

impl Cross {
    fn new(size: usize, core_len: usize) -> Self {
        let row = (core_len + 1).next_multiple_of(f64::LANES);
        Self {
            row,
            sums: Aligned::new(0.0, size * row),
            waiting: 0,
            x: vec![0.0; GATHERED * size],
            factors: Aligned::new(0.0, GATHERED * row),
        }
    }

    #[inline(always)]
    fn add(&mut self, x: &[f64], q: &[f64], a: f64) {
        let n = self.waiting;
        self.x[n * x.len()..(n + 1) * x.len()].copy_from_slice(x);
        let factors = &mut self.factors[n * self.row..(n + 1) * self.row];
        for (to, q) in factors.iter_mut().zip(q) {
            *to = a * q;
        }
        factors[q.len()] = a;
        self.waiting += 1;
    }

    fn multiply(&mut self, on: Instructions) {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting > 0 {
            on.run::<f64, _>(Multiply { waiting, of: self });
        }
    }
}

/// sums[cell][j] += Σ over the samples that wait of x[sample][cell] · factors[sample][j].
struct Multiply<'a> {
    waiting: usize,
    of: &'a mut Cross,
}

impl WithSimd for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { waiting, of: Cross { row, sums, x, factors, .. } } = self;
        let size = sums.len() / *row;
        let sums = f64::vectors_mut::<S>(sums);
        let factors = f64::vectors::<S>(factors);
        let vectors = sums.len() / size;
        for v in 0..vectors {
            for i in 0..size {
                let mut sum = sums[i * vectors + v];
                for n in 0..waiting {
                    let x = f64::splat(simd, x[n * size + i]);
                    sum = <f64 as Real>::mul_add(simd, x, factors[n * vectors + v], sum);
                }
                sums[i * vectors + v] = sum;
            }
        }
    }
}

/// A core seen from one mode: `[before][own][after]`.
struct Sides {
    before: usize,
    own: usize,
    after: usize,
}

impl Sides {
    fn around(rank: &[usize], d: usize) -> Self {
        let (before, after) = sides_around(rank, d);
        Self { before, own: rank[d], after }
    }

    /// Adds a X_(d) W Y_(d)ᵀ, for tensors that have the sides of a core but for mode d.
    fn add_product(&self, a: f64, x: &[f64], y: &[f64], weights: Option<&[f64]>, to: &mut Matrix) {
        let (rows, columns, after) = (to.rows(), to.cols(), self.after);
        for o in 0..self.before {
            for w in 0..after {
                let factor = a * weights.map_or(1.0, |weights| weights[o * after + w]);
                for i in 0..rows {
                    let x = factor * x[(o * rows + i) * after + w];
                    for j in 0..columns {
                        to[(i, j)] += x * y[(o * columns + j) * after + w];
                    }
                }
            }
        }
    }

    /// Adds γ Σ_m w_m V[(i, m), (j, m)].
    fn add_trace(&self, gamma: f64, v: &Matrix, weights: Option<&[f64]>, to: &mut Matrix) {
        for m in 0..self.before * self.after {
            let factor = gamma * weights.map_or(1.0, |weights| weights[m]);
            for i in 0..self.own {
                for j in 0..self.own {
                    to[(i, j)] += factor * v[(self.place(i, m), self.place(j, m))];
                }
            }
        }
    }

    /// The place in a core of index `i` of the mode and index `m` of all others.
    fn place(&self, i: usize, m: usize) -> usize {
        (m / self.after * self.own + i) * self.after + m % self.after
    }

    /// Adds what u_iᵀ V of the missing cells adds to A = F contracted with the loadings of all other modes.
    ///
    /// ```text
    /// A[x, j] += γ Σ_i U[x, i] Σ_{m, m'} V[(i, m), (j, m')] W_x[m, m'],   W_x = Σ w wᵀ over the missing cells of row x
    /// ```
    fn add_mode_rows(
        &self,
        gamma: f64,
        v: &Matrix,
        component: &Component,
        shape: &[usize],
        missing: &[usize],
        d: usize,
        to: &mut Matrix,
    ) {
        let others = self.before * self.after;
        let (_, below) = sides_around(shape, d);
        let mut grams: Vec<Option<Matrix>> = (0..shape[d]).map(|_| None).collect();
        for &cell in missing {
            let w = kronecker_row(component.loadings(), shape, cell, Some(d));
            let gram = grams[cell / below % shape[d]].get_or_insert_with(|| Matrix::zeros(others, others));
            for (row, a) in gram.as_mut_slice().chunks_exact_mut(others).zip(&w) {
                row.iter_mut().zip(&w).for_each(|(to, b)| *to += a * b);
            }
        }
        let rho = v.rows();
        let mut along = vec![0.0; rho];
        for (x, gram) in grams.iter().enumerate() {
            let Some(gram) = gram else { continue };
            for m in 0..others {
                along.fill(0.0);
                for (i, u) in component.loadings()[d].row(x).iter().enumerate() {
                    let row = v.row(self.place(i, m));
                    along.iter_mut().zip(row).for_each(|(to, v)| *to += gamma * u * v);
                }
                for j in 0..self.own {
                    let sum: f64 = (0..others).map(|l| along[self.place(j, l)] * gram[(m, l)]).sum();
                    to[(x, j)] += sum;
                }
            }
        }
    }
}
