//! The same mixture with other ranks: columns are dropped from the end, and added along what a mode has left over.

use super::super::passes;
use super::super::search::{Climbed, Ground};
use crate::error::{Error, Result};
use crate::linalg::{Matrix, leading_eigen, orthonormal_basis};
use crate::model::{Component, Mixture};
use crate::parallel;

/// A new column is at least this share of the noise: one of no length would never grow.
const LEAST_SIGNAL: f64 = 1e-2;

/// Cores of at most so many entries, as nearly equal in all modes as the largest ranks allow.
pub(super) fn equal_ranks(most: &[usize], entries: usize) -> Vec<usize> {
    let mut rank = vec![1; most.len()];
    let mut grown = true;
    while grown {
        grown = false;
        for d in 0..most.len() {
            let more = rank.iter().product::<usize>() / rank[d] * (rank[d] + 1);
            if rank[d] < most[d] && more <= entries {
                rank[d] += 1;
                grown = true;
            }
        }
    }
    rank
}

/// Ranks that differ in one mode: by half as much again or by one upwards, at most to the largest, by one downwards. Where a core may have so many entries
/// only, the widest of the other modes make room.
pub(super) fn ranks_beside(
    rank: &[usize],
    most: &[usize],
    far: bool,
    keep: Option<usize>,
) -> Vec<Vec<usize>> {
    let mut beside = Vec::new();
    for d in 0..rank.len() {
        let step = if far { (rank[d] / 2).max(1) } else { 1 };
        for r in [rank[d] + step, rank[d].saturating_sub(1)] {
            let mut other = rank.to_vec();
            other[d] = r.min(most[d]);
            while keep.is_some_and(|keep| other.iter().product::<usize>() > keep) {
                let others = (0..rank.len()).filter(|&e| e != d && other[e] > 1);
                let widest = others.max_by_key(|&e| other[e]).unwrap_or(d);
                other[widest] -= 1;
            }
            if other[d] > 0 && other != rank && !beside.contains(&other) {
                beside.push(other);
            }
        }
    }
    beside
}

/// The model of a climb as one of other ranks, to go on from: what is kept keeps its loadings, and what is added are the leading
/// directions of the residual scatter of its mode, given the loadings of the others.
pub(super) fn with_rank(ground: &Ground<'_>, now: &Climbed, rank: &[usize]) -> Result<Mixture> {
    let groups = now.groups(ground.samples);
    let model = &now.model;
    let components = parallel::map(groups.len(), |k| {
        let mut loadings = model.components()[k].loadings().to_vec();
        for (d, &r) in rank.iter().enumerate() {
            match loadings[d].cols() {
                before if r < before => loadings[d] = loadings[d].first_cols(r),
                before if r > before => {
                    let more =
                        directions(ground, &groups[k], &model.components()[k], &loadings, d, r - before)?;
                    loadings[d] = beside(&loadings[d], &more);
                }
                _ => {}
            }
        }
        model.components()[k].clone().with_loadings(loadings).renewed(model.shape())
    });
    let components = components.into_iter().collect::<Result<Vec<_>>>()?;
    Mixture::new(model.shape(), model.weights().to_vec(), components)
}

/// So many columns for mode d beside those that are there, as long as what the samples of the component have along them beyond the noise.
fn directions(
    ground: &Ground<'_>,
    members: &[usize],
    component: &Component,
    loadings: &[Matrix],
    d: usize,
    count: usize,
) -> Result<Matrix> {
    let p = loadings[d].rows();
    let bases: Vec<Option<Matrix>> = loadings.iter().map(|u| Some(orthonormal_basis(u))).collect();
    let others = || (0..loadings.len()).filter(|&e| e != d);
    let entries: usize = others().map(|e| loadings[e].cols()).product();
    let noise = component.noise_variance();
    let mut scatter = Matrix::zeros(p, p);
    if !members.is_empty() {
        let samples = ground.samples.clone().select(members)?;
        let held = ground.backend.over(&samples)?;
        let sums = passes::scatters(&*held, component.mean(), &bases, &[d])?;
        scatter.add_scaled(1.0 / samples.total_weight(), &sums.scatters[0]);
    }
    // Where there is nothing left, any direction beside those that are there.
    for i in 0..p {
        scatter[(i, i)] += LEAST_SIGNAL * noise * entries as f64;
    }
    let own = bases[d].as_ref().map_or_else(|| Matrix::zeros(p, 0), Clone::clone);
    let mut beyond = Matrix::identity(p, p);
    beyond.add_scaled(-1.0, &own.times_transpose(&own));
    let left = beyond.times(&scatter.times(&beyond));
    let eigen = leading_eigen(&left, count).ok_or(Error::Overflow { sample: 0 })?;
    let lengths: f64 = others().map(|e| loadings[e].column_norms_squared().iter().sum::<f64>()).product();
    // The loadings of a component of one sample may have no length: no column of this mode makes a signal with them, however long it is.
    let order = loadings.len() as i32;
    let least = (LEAST_SIGNAL * noise).powf(f64::from(order - 1) / f64::from(order));
    let mean_length = (lengths / entries as f64).max(least);
    let along = |j: usize| {
        let signal = (eigen.values[j] / entries as f64 - noise).max(LEAST_SIGNAL * noise);
        (signal / mean_length).sqrt()
    };
    let column: Vec<f64> = (0..count).map(along).collect();
    Ok(Matrix::from_fn(p, count, |i, j| eigen.vectors[(i, j)] * column[j]))
}

/// The columns of both.
fn beside(a: &Matrix, b: &Matrix) -> Matrix {
    let cols = a.cols();
    Matrix::from_fn(a.rows(), cols + b.cols(), |i, j| if j < cols { a[(i, j)] } else { b[(i, j - cols)] })
}

#[cfg(test)]
mod tests {
    use super::super::super::mixture::About;
    use super::*;
    use crate::data::Samples;
    use crate::fit::FitOptions;

    #[test]
    fn columns_beside_loadings_of_no_length_are_no_longer_than_the_noise() {
        let numbers: Vec<f64> = (0..120).map(|i| f64::from((i * 37) % 101)).collect();
        let samples = Samples::from_vec(&[3, 2, 2], numbers).unwrap();
        let options = FitOptions { rank: vec![1], ..FitOptions::default() };
        let about = About::new(&samples, &options).unwrap();
        let ground = Ground::new(&about, &samples);
        let loadings = [3, 2, 2].map(|p| Matrix::zeros(p, 1)).to_vec();
        let one = Component::new(&[3, 2, 2], vec![50.0; 12], loadings, 900.0).unwrap();
        let now = ground.climb(Mixture::new(&[3, 2, 2], vec![1.0], vec![one]).unwrap(), 0).unwrap();
        let wider = with_rank(&ground, &now, &[2, 2, 2]).unwrap();
        let entries = wider.components()[0].loadings().iter().flat_map(|u| u.as_slice());
        let longest = entries.fold(0.0, |most: f64, x| most.max(x.abs()));
        assert!(longest < 900.0, "{longest}");
        assert!(ground.settle(wider, 1e-4, 4).is_ok());
    }

    #[test]
    fn ranks_beside_differ_in_one_mode_unless_others_have_to_make_room() {
        assert_eq!(ranks_beside(&[4, 2], &[5, 9], true, None), [[5, 2], [3, 2], [4, 3], [4, 1]]);
        assert_eq!(ranks_beside(&[1, 1], &[5, 1], false, None), [[2, 1]]);
        // Sixteen entries: five rows leave three columns.
        assert_eq!(ranks_beside(&[4, 4], &[9, 9], false, Some(16)), [[5, 3], [3, 4], [3, 5], [4, 3]]);
        assert_eq!(ranks_beside(&[2, 1], &[9, 9], true, Some(2)), [[1, 1], [1, 2]]);
        assert_eq!(ranks_beside(&[3], &[9], true, Some(3)), [[2]]);
    }

    #[test]
    fn equal_ranks_fill_the_entries_there_may_be() {
        assert_eq!(equal_ranks(&[28, 28], 16), [4, 4]);
        assert_eq!(equal_ranks(&[28, 28], 20), [5, 4]);
        assert_eq!(equal_ranks(&[28, 2], 20), [10, 2]);
        assert_eq!(equal_ranks(&[5, 5, 5], 1), [1, 1, 1]);
        assert_eq!(equal_ranks(&[3, 3], 100), [3, 3]);
    }
}
