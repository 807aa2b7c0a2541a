//! The eigenvalues of a symmetric tridiagonal matrix by the QR iteration with implicit shifts, and its eigenvectors.
//!
//! The iteration itself is cheap; turning the vectors is not. So the rotations of many steps are put off and then done for a
//! few coordinates at a time, which stay in cache.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::eigen::Eigen;
use super::stretches::over_stretches;
use super::tridiagonal::Tridiagonal;
use super::{BEST, Matrix};
use crate::simd::Real;

/// Steps per eigenvalue, at most; about two are needed.
const STEPS: usize = 40;

/// Coordinates that are turned at a time.
const STRIP: usize = 32;

/// Machine vectors of coordinates that stay in registers.
const V: usize = 4;

/// Rotations that are put off: they stay in the second-level cache.
const PUT_OFF: usize = 1 << 13;

/// So many coordinates are worth several threads.
const PARALLEL: usize = 128;

/// All eigenpairs of Q·T·Qᵀ, largest first. `None` if that takes too many steps.
pub(super) fn eigen_of_tridiagonal(t: Tridiagonal) -> Option<Eigen> {
    let Tridiagonal { diagonal: mut d, beside: mut e, reflectors } = t;
    let n = d.len();
    let mut vectors = Turned::new(&reflectors.first_cols(n));
    drop(reflectors);
    let largest = d.iter().chain(&e).fold(0.0, |largest: f64, x| largest.max(x.abs()));
    // Far beneath all rounding: it only keeps the numbers away from the smallest there are.
    let nothing = largest * f64::EPSILON * f64::EPSILON;
    let (mut steps, mut end) = (STEPS * n, n);
    while end > 1 {
        let is_zero = |i: usize| e[i].abs() <= nothing.max(f64::EPSILON * (d[i].abs() + d[i + 1].abs()));
        let last_zero = (0..end - 1).rev().find(|&i| is_zero(i));
        if let Some(i) = last_zero {
            e[i] = 0.0;
        }
        let start = last_zero.map_or(0, |i| i + 1);
        if start + 1 == end {
            end -= 1;
            continue;
        }
        steps = steps.checked_sub(1)?;
        step(&mut d[start..end], &mut e[start..end - 1], &mut vectors.rotations);
        vectors.steps.push(start..end);
        if vectors.rotations.len() >= PUT_OFF {
            vectors.catch_up();
        }
    }
    vectors.catch_up();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| d[j].total_cmp(&d[i]));
    Some(Eigen { values: order.iter().map(|&i| d[i]).collect(), vectors: vectors.columns(&order) })
}

/// One step with Wilkinson's shift on a stretch that does not fall into parts, and the rotations (c, s) of its neighbouring
/// columns, from the first two on.
fn step(d: &mut [f64], e: &mut [f64], rotations: &mut Vec<(f64, f64)>) {
    let last = e.len();
    let half = 0.5 * (d[last - 1] - d[last]);
    let corner = e[last - 1];
    let shift = d[last] - corner * (corner / (half + hypot(half, corner).copysign(half)));
    let (mut x, mut z) = (d[0] - shift, e[0]);
    for k in 0..last {
        let r = hypot(x, z);
        let (c, s) = if r > 0.0 { (x / r, z / r) } else { (1.0, 0.0) };
        if k > 0 {
            e[k - 1] = r;
        }
        let change = s * (d[k + 1] - d[k]) + 2.0 * c * e[k];
        d[k] += s * change;
        d[k + 1] -= s * change;
        e[k] = c * change - e[k];
        if k + 1 < last {
            // The bulge, which the next rotation moves on.
            (x, z) = (e[k], s * e[k + 1]);
            e[k + 1] *= c;
        }
        rotations.push((c, s));
    }
}

/// √(x² + z²), the long way only where it is needed.
fn hypot(x: f64, z: f64) -> f64 {
    let square = x * x + z * z;
    if square > 1e-280 { square.sqrt() } else { x.hypot(z) }
}

/// Vectors, and the rotations that still have to be done to them.
struct Turned {
    count: usize,
    coordinates: usize,
    /// `[strip][vector][coordinate]`.
    strips: Vec<f64>,
    rotations: Vec<(f64, f64)>,
    /// Which vectors were turned, neighbour with neighbour, by each step.
    steps: Vec<Range<usize>>,
}

impl Turned {
    /// The columns of a matrix.
    fn new(q: &Matrix) -> Self {
        let (coordinates, count) = (q.rows(), q.cols());
        let mut strips = vec![0.0; coordinates.div_ceil(STRIP) * count * STRIP];
        for i in 0..coordinates {
            let strip = &mut strips[i / STRIP * count * STRIP..];
            for (vector, &x) in strip.chunks_exact_mut(STRIP).zip(q.row(i)) {
                vector[i % STRIP] = x;
            }
        }
        Self { count, coordinates, strips, rotations: Vec::new(), steps: Vec::new() }
    }

    fn catch_up(&mut self) {
        let Self { count, coordinates, strips, rotations, steps } = self;
        if steps.is_empty() {
            return;
        }
        let strip = *count * STRIP;
        let stretch = if *coordinates < PARALLEL { strips.len() } else { strip };
        over_stretches(strips, stretch, &|_, strips| {
            for strip in strips.chunks_exact_mut(strip) {
                BEST.run::<f64, _>(Turn { strip, rotations, steps });
            }
        });
        rotations.clear();
        steps.clear();
    }

    /// As columns in this order.
    fn columns(&self, order: &[usize]) -> Matrix {
        Matrix::from_fn(self.coordinates, self.count, |i, j| {
            self.strips[(i / STRIP * self.count + order[j]) * STRIP + i % STRIP]
        })
    }
}

struct Turn<'a> {
    strip: &'a mut [f64],
    rotations: &'a [(f64, f64)],
    steps: &'a [Range<usize>],
}

impl WithSimd for Turn<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // `[vector][part][machine vector]`.
        let (strip, _) = f64::vectors_mut::<S>(self.strip).as_chunks_mut::<V>();
        let parts = STRIP / (V * S::F64_LANES);
        for part in 0..parts {
            let mut rotations = self.rotations.iter();
            for step in self.steps {
                let mut vectors =
                    strip[step.start * parts + part..step.end * parts].iter_mut().step_by(parts);
                let Some(mut to) = vectors.next() else { continue };
                let mut above = *to;
                for (own, &(c, s)) in vectors.zip(&mut rotations) {
                    let [c, s, minus_s] = [c, s, -s].map(|x| simd.splat_f64s(x));
                    for v in 0..V {
                        let below = own[v];
                        to[v] = simd.mul_add_e_f64s(c, above[v], simd.mul_f64s(s, below));
                        above[v] = simd.mul_add_e_f64s(minus_s, above[v], simd.mul_f64s(c, below));
                    }
                    to = own;
                }
                *to = above;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::householder::Reflectors;
    use super::super::made::{number, off_orthonormal};
    use super::super::vector::rotate;
    use super::*;

    fn eigen(diagonal: Vec<f64>, beside: Vec<f64>) -> Eigen {
        let n = diagonal.len();
        let reflectors = Reflectors { vectors: Matrix::zeros(0, n), tau: vec![], offset: 1 };
        let eigen = eigen_of_tridiagonal(Tridiagonal {
            diagonal: diagonal.clone(),
            beside: beside.clone(),
            reflectors,
        })
        .unwrap();
        assert!(eigen.values.windows(2).all(|w| w[0] >= w[1]));
        assert!(off_orthonormal(&eigen.vectors) < 1e-13, "{n}");
        let largest = diagonal.iter().chain(&beside).fold(0.0, |l: f64, x| l.max(x.abs()));
        for j in 0..n {
            let v = eigen.vectors.col(j);
            for i in 0..n {
                let mut image = diagonal[i] * v[i];
                image += if i > 0 { beside[i - 1] * v[i - 1] } else { 0.0 };
                image += if i + 1 < n { beside[i] * v[i + 1] } else { 0.0 };
                assert!((image - eigen.values[j] * v[i]).abs() <= 1e-13 * largest, "{n}: {i} {j}");
            }
        }
        eigen
    }

    /// Whatever the width of a vector.
    #[test]
    fn rotations_that_were_put_off_are_those_written_out() {
        let strip: Vec<f64> = (0..9 * STRIP).map(|i| number(1, i)).collect();
        let steps = [0..9, 2..4, 3..9, 0..2];
        let turns: usize = steps.iter().map(|s| s.len() - 1).sum();
        let rotations: Vec<(f64, f64)> = (0..turns).map(|i| (9.0 * number(2, i)).sin_cos()).collect();
        let mut expected = strip.clone();
        let pairs = steps.iter().flat_map(|s| s.start..s.end - 1);
        for (i, &(c, s)) in pairs.zip(&rotations) {
            let (before, after) = expected.split_at_mut((i + 1) * STRIP);
            rotate(&mut before[i * STRIP..], &mut after[..STRIP], c, s);
        }
        let check = |turn: fn(Turn<'_>)| {
            let mut found = strip.clone();
            turn(Turn { strip: &mut found, rotations: &rotations, steps: &steps });
            assert!(found.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 1e-15));
        };
        check(|turn| BEST.run::<f64, _>(turn));
        check(|turn| turn.with_simd(pulp::Scalar128b));
        check(|turn| turn.with_simd(pulp::Scalar256b));
        check(|turn| turn.with_simd(pulp::Scalar512b));
    }

    /// Second differences: the eigenvalues are 2 + 2 cos(π k / (n + 1)).
    #[test]
    fn second_differences_have_the_known_eigenvalues() {
        for n in [1, 2, 3, 10, 31, 32, 33, 100, 200] {
            let found = eigen(vec![2.0; n], vec![-1.0; n - 1]).values;
            for (k, value) in found.iter().enumerate() {
                let expected = 2.0 + 2.0 * (std::f64::consts::PI * (k + 1) as f64 / (n + 1) as f64).cos();
                assert!((value - expected).abs() < 1e-14 * 10.0, "{n}: {value} {expected}");
            }
        }
    }

    /// Wilkinson's matrix: its largest two eigenvalues agree to fourteen digits.
    #[test]
    fn nearly_equal_eigenvalues_have_their_own_vectors() {
        let found = eigen((0..21).map(|i| (10.0 - f64::from(i)).abs()).collect(), vec![1.0; 20]).values;
        assert!((found[0] - 10.746_194_182_903_39).abs() < 1e-13 && (found[1] - found[0]).abs() < 1e-13);
        assert!((found[20] + 1.125_441_522_119_984).abs() < 1e-13);
    }

    #[test]
    fn matrices_that_fall_into_parts_and_numbers_of_any_size_are_done() {
        assert_eq!(eigen(vec![1.0, 3.0, 2.0], vec![0.0, 0.0]).values, [3.0, 2.0, 1.0]);
        assert_eq!(eigen(vec![0.0; 4], vec![0.0; 3]).values, [0.0; 4]);
        let two = eigen(vec![1.0, 1.0, 5.0, 5.0], vec![1.0, 0.0, 2.0]).values;
        assert!(two.iter().zip([7.0, 3.0, 2.0, 0.0]).all(|(x, y)| (x - y).abs() < 1e-14));
        eigen(vec![1.0, 1e-200, 1e-100, 1e-300], vec![1e-250, 1e-160, 1e-300]);
        eigen(vec![0.0; 50], vec![1e-300; 49]);
        eigen(vec![0.0; 51], vec![1.0; 50]);
        eigen((0..40).map(|i| 10f64.powi(-i)).collect(), (0..39).map(|i| 10f64.powi(-i - 1)).collect());
    }
}
