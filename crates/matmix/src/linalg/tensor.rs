//! Mode products of one dense tensor, in double precision.
//!
//! Tensors are row-major: the last mode varies fastest. For the many samples of a pass there is a kernel
//! in [`cpu`](crate::cpu); this is for means, cores and whatever is done once per component.

use super::Matrix;

/// The sides before and after mode `d`: a tensor is then indexed `[before][d][after]`.
pub fn sides_around(shape: &[usize], d: usize) -> (usize, usize) {
    (shape[..d].iter().product(), shape[d + 1..].iter().product())
}

/// X ×_d A, with A of size n × p_d: contracts mode d (counted from 0) of X against the columns of A.
pub fn mode_product(x: &[f64], shape: &[usize], d: usize, a: &Matrix) -> Vec<f64> {
    let (before, after) = sides_around(shape, d);
    let (p, n) = (shape[d], a.rows());
    assert_eq!(x.len(), before * p * after, "as many elements as the shape says");
    assert_eq!(a.cols(), p, "the matrix fits the mode");
    let mut out = vec![0.0; before * n * after];
    if after == 1 {
        // The last mode: the innermost loop runs along the columns of Aᵀ instead of a single element. Each sum is made in
        // the same order, so it has the same bits.
        let transposed = a.transpose();
        for (to, x) in out.chunks_exact_mut(n).zip(x.chunks_exact(p)) {
            for (i, &x) in x.iter().enumerate() {
                for (t, &factor) in to.iter_mut().zip(transposed.row(i)) {
                    *t += factor * x;
                }
            }
        }
        return out;
    }
    for o in 0..before {
        for j in 0..n {
            let to = &mut out[(o * n + j) * after..(o * n + j + 1) * after];
            for i in 0..p {
                let factor = a[(j, i)];
                let from = &x[(o * p + i) * after..(o * p + i + 1) * after];
                for (t, &f) in to.iter_mut().zip(from) {
                    *t += factor * f;
                }
            }
        }
    }
    out
}

/// X ×_d Uᵀ, with U of size p_d × n: contracts mode d (counted from 0) of X against the rows of U.
pub fn mode_contraction(x: &[f64], shape: &[usize], d: usize, u: &Matrix) -> Vec<f64> {
    let (before, after) = sides_around(shape, d);
    let (p, n) = (shape[d], u.cols());
    assert_eq!(x.len(), before * p * after, "as many elements as the shape says");
    assert_eq!(u.rows(), p, "the matrix fits the mode");
    let mut out = vec![0.0; before * n * after];
    for (from, to) in x.chunks_exact(p * after).zip(out.chunks_exact_mut(n * after)) {
        for (from, row) in from.chunks_exact(after).zip(u.as_slice().chunks_exact(n)) {
            // The longer of the two loops inside.
            if after == 1 {
                for (t, &factor) in to.iter_mut().zip(row) {
                    *t += factor * from[0];
                }
            } else {
                for (to, &factor) in to.chunks_exact_mut(after).zip(row) {
                    for (t, &f) in to.iter_mut().zip(from) {
                        *t += factor * f;
                    }
                }
            }
        }
    }
    out
}

/// X ×_1 U^(1)ᵀ … ×_D U^(D)ᵀ, leaving out mode `except` if one is given: what a sample's core is made from.
pub fn project(x: &[f64], shape: &[usize], loadings: &[Matrix], except: Option<usize>) -> Vec<f64> {
    let mut sides = shape.to_vec();
    let mut y = x.to_vec();
    for (d, u) in loadings.iter().enumerate() {
        if Some(d) != except {
            y = mode_contraction(&y, &sides, d, u);
            sides[d] = u.cols();
        }
    }
    y
}

/// B ×_1 U^(1) … ×_D U^(D): a core back in the space of the samples (L B Rᵀ for matrices).
pub fn expand(core: &[f64], loadings: &[Matrix]) -> Vec<f64> {
    let mut sides: Vec<usize> = loadings.iter().map(Matrix::cols).collect();
    let mut x = core.to_vec();
    for (d, u) in loadings.iter().enumerate() {
        x = mode_product(&x, &sides, d, u);
        sides[d] = u.rows();
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Order 2 is L B Rᵀ, written out.
    #[test]
    fn expanding_a_matrix_is_l_b_r_transposed() {
        let l = Matrix::from_fn(3, 2, |i, j| (1 + i * 2 + j) as f64);
        let r = Matrix::from_fn(4, 2, |i, j| (i as f64 - j as f64) / 3.0);
        let b = Matrix::from_fn(2, 2, |i, j| (3 * i + j) as f64 - 1.5);
        let expected = l.times(&b).times_transpose(&r);
        let found = expand(b.as_slice(), &[l.clone(), r.clone()]);
        assert!(found.iter().zip(expected.as_slice()).all(|(a, b)| (a - b).abs() < 1e-12));
        let back = project(expected.as_slice(), &[3, 4], &[l.clone(), r.clone()], None);
        let dense = l.transpose_times(&expected).times(&r);
        assert!(back.iter().zip(dense.as_slice()).all(|(a, b)| (a - b).abs() < 1e-9));
    }

    /// The last mode has a loop of its own; followed by another mode, the general one gives the same bits.
    #[test]
    fn the_last_mode_has_the_same_bits_as_any_other() {
        let x: Vec<f64> = (0..35).map(|i| (f64::from(i) * 0.618_033_988_7).fract() - 0.5).collect();
        let a = Matrix::from_fn(3, 7, |i, j| ((i * 7 + j) as f64 * 0.754_877_666).fract() - 0.5);
        let last = mode_product(&x, &[5, 7], 1, &a);
        let inner: Vec<f64> = x.iter().flat_map(|&x| [x, 2.0 * x]).collect();
        let general = mode_product(&inner, &[5, 7, 2], 1, &a);
        assert!(last.iter().eq(general.iter().step_by(2)));
        assert_eq!(last.len(), 15);
    }

    #[test]
    fn the_middle_mode_of_three_is_contracted_in_place() {
        let x: Vec<f64> = (0..24).map(f64::from).collect();
        let a = Matrix::from_fn(1, 3, |_, i| [1.0, 10.0, 100.0][i]);
        let y = mode_product(&x, &[2, 3, 4], 1, &a);
        for o in 0..2 {
            for m in 0..4 {
                let at = |i: usize| x[(o * 3 + i) * 4 + m];
                assert_eq!(y[o * 4 + m], at(0) + 10.0 * at(1) + 100.0 * at(2));
            }
        }
    }
}
