//! The sums of a pass that updates every mode, contracted to what one mode needs: tensors whose modes come in pairs.

use super::{Matrix, sides_around};

/// A_d, p_d × r_d: Fᵀ (ρ × P) contracted with the loadings of all modes but d.
pub(crate) fn contracted_cross(
    f: &Matrix,
    shape: &[usize],
    rank: &[usize],
    loadings: &[Matrix],
    d: usize,
) -> Matrix {
    let mut a = Matrix::zeros(shape[d], rank[d]);
    let mut index = vec![0; rank.len()];
    for j in 0..f.rows() {
        let (mut rest, mut sides) = (f.row(j).to_vec(), shape.to_vec());
        // Last mode first: what it leaves lies together.
        for e in (0..shape.len()).rev().filter(|&e| e != d) {
            rest = along_column(&rest, &sides, e, &loadings[e], index[e]);
            sides[e] = 1;
        }
        for (i, x) in rest.iter().enumerate() {
            a[(i, index[d])] += x;
        }
        advance(&mut index, rank);
    }
    a
}

/// Mode e of a tensor multiplied with one column of its loadings.
fn along_column(x: &[f64], sides: &[usize], e: usize, u: &Matrix, column: usize) -> Vec<f64> {
    let (before, after) = sides_around(sides, e);
    let mut out = vec![0.0; before * after];
    for o in 0..before {
        let to = &mut out[o * after..(o + 1) * after];
        for i in 0..sides[e] {
            let factor = u[(i, column)];
            let from = &x[(o * sides[e] + i) * after..][..after];
            to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * from);
        }
    }
    out
}

/// H_d, r_d × r_d: G (ρ × ρ) contracted with a matrix r_e × r_e for every mode e but d.
pub(crate) fn contracted_gram(g: &Matrix, rank: &[usize], between: &[Matrix], d: usize) -> Matrix {
    let mut h = Matrix::zeros(rank[d], rank[d]);
    let (mut left, mut right) = (vec![0; rank.len()], vec![0; rank.len()]);
    for j in 0..g.rows() {
        for l in 0..g.cols() {
            let mut factor = g[(j, l)];
            for e in (0..rank.len()).filter(|&e| e != d) {
                factor *= between[e][(left[e], right[e])];
            }
            h[(left[d], right[d])] += factor;
            advance(&mut right, rank);
        }
        advance(&mut left, rank);
    }
    h
}

/// The next index of a core, in row-major order.
fn advance(index: &mut [usize], rank: &[usize]) {
    for (i, &r) in index.iter_mut().zip(rank).rev() {
        *i += 1;
        if *i < r {
            return;
        }
        *i = 0;
    }
}
