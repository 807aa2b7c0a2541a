//! Sums and combinations of vectors, on the machine's best instruction set.
//!
//! Nothing is fused and sums are split in the same way everywhere, so that the bits are those of plain code. What is
//! `#[inline(always)]` is compiled for the instruction set of those who call it.

use pulp::{Simd, WithSimd};

use super::BEST;

/// Sums that a long one is split into: enough for several vectors of any machine.
const SUMS: usize = 16;

/// Shorter vectors are done before a better instruction set is found.
const SHORT: usize = 32;

/// Σ a_i b_i.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    if a.len() < SHORT { split_dot(a, b) } else { BEST.run::<f64, _>(Dot(a, b)) }
}

/// ‖x‖, also where the squares of its elements are no numbers.
pub(super) fn norm(x: &[f64]) -> f64 {
    root(dot(x, x), x)
}

/// y += factor · x.
pub(super) fn add_scaled(y: &mut [f64], factor: f64, x: &[f64]) {
    if y.len() < SHORT {
        y.iter_mut().zip(x).for_each(|(y, x)| *y += factor * x);
    } else {
        BEST.run::<f64, _>(AddScaled(y, factor, x));
    }
}

struct Dot<'a>(&'a [f64], &'a [f64]);

impl WithSimd for Dot<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        split_dot(self.0, self.1)
    }
}

struct AddScaled<'a>(&'a mut [f64], f64, &'a [f64]);

impl WithSimd for AddScaled<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        self.0.iter_mut().zip(self.2).for_each(|(y, x)| *y += self.1 * x);
    }
}

/// The root of the sum of the squares of x, where that sum is one.
#[inline(always)]
pub(super) fn root(square: f64, x: &[f64]) -> f64 {
    if square.is_nan() || (1e-200..1e200).contains(&square) { square.sqrt() } else { scaled_norm(x) }
}

#[cold]
fn scaled_norm(x: &[f64]) -> f64 {
    let largest = x.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    if largest == 0.0 || largest.is_infinite() {
        return largest;
    }
    largest * x.iter().map(|x| (x / largest).powi(2)).sum::<f64>().sqrt()
}

/// Σ a_i b_i.
#[inline(always)]
pub(super) fn split_dot(a: &[f64], b: &[f64]) -> f64 {
    let (a, a_rest) = a.as_chunks::<SUMS>();
    let (b, b_rest) = b.as_chunks::<SUMS>();
    let mut sums = [0.0; SUMS];
    for (a, b) in a.iter().zip(b) {
        for i in 0..SUMS {
            sums[i] += a[i] * b[i];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    if a.is_empty() { rest } else { total(sums) + rest }
}

/// y += Σ_k factor(k) · row(k) for k < count, a few rows at a time: y is read and written less often.
#[inline(always)]
pub(super) fn add_combination<'a>(
    y: &mut [f64],
    count: usize,
    factor: impl Fn(usize) -> f64,
    row: impl Fn(usize) -> &'a [f64],
) {
    let few = count / 4 * 4;
    for k in (0..few).step_by(4) {
        let f = [factor(k), factor(k + 1), factor(k + 2), factor(k + 3)];
        let n = y.len();
        let (a, b, c, d) = (&row(k)[..n], &row(k + 1)[..n], &row(k + 2)[..n], &row(k + 3)[..n]);
        for i in 0..n {
            y[i] += (f[0] * a[i] + f[1] * b[i]) + (f[2] * c[i] + f[3] * d[i]);
        }
    }
    for k in few..count {
        let factor = factor(k);
        y.iter_mut().zip(row(k)).for_each(|(y, x)| *y += factor * x);
    }
}

/// Σ a_i x_i, and y += factor · a on the way: a is read once.
#[inline(always)]
pub(super) fn dot_and_add(a: &[f64], x: &[f64], factor: f64, y: &mut [f64]) -> f64 {
    let (a, a_rest) = a.as_chunks::<SUMS>();
    let (x, x_rest) = x.as_chunks::<SUMS>();
    let (y, y_rest) = y.as_chunks_mut::<SUMS>();
    let mut sums = [0.0; SUMS];
    for ((a, x), y) in a.iter().zip(x).zip(y) {
        for i in 0..SUMS {
            sums[i] += a[i] * x[i];
        }
        for i in 0..SUMS {
            y[i] += factor * a[i];
        }
    }
    let mut rest = 0.0;
    for ((a, x), y) in a_rest.iter().zip(x_rest).zip(y_rest) {
        rest += a * x;
        *y += factor * a;
    }
    total(sums) + rest
}

/// (x, y) becomes (c x + s y, c y − s x).
#[inline(always)]
pub(super) fn rotate(x: &mut [f64], y: &mut [f64], c: f64, s: f64) {
    for (x, y) in x.iter_mut().zip(y) {
        (*x, *y) = (c * *x + s * *y, c * *y - s * *x);
    }
}

#[inline(always)]
fn total(mut sums: [f64; SUMS]) -> f64 {
    // Halves, as a vector is added up.
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            sums[i] += sums[i + half];
        }
    }
    sums[0]
}

#[cfg(test)]
mod tests {
    use super::super::made::number;
    use super::*;

    fn vector(len: usize, seed: u64) -> Vec<f64> {
        (0..len).map(|i| number(seed, i)).collect()
    }

    #[test]
    fn sums_and_combinations_of_any_length_are_those_written_out() {
        for len in 0..130 {
            let (a, x, y) = (vector(len, 1), vector(len, 2), vector(len, 3));
            let expected: f64 = a.iter().zip(&x).map(|(a, x)| a * x).sum();
            assert!((dot(&a, &x) - expected).abs() < 1e-14 * (1.0 + len as f64));
            // Long ones are left to a better instruction set, with the same bits.
            assert_eq!(dot(&a, &x), split_dot(&a, &x));

            let added: Vec<f64> = y.iter().zip(&a).map(|(y, a)| y + 0.3 * a).collect();
            let mut sum = y.clone();
            add_scaled(&mut sum, 0.3, &a);
            assert_eq!(sum, added);
            let mut sum = y.clone();
            assert!((dot_and_add(&a, &x, 0.3, &mut sum) - expected).abs() < 1e-14 * (1.0 + len as f64));
            assert_eq!(sum, added);

            for count in 0..7 {
                let rows: Vec<Vec<f64>> = (0..count as u64).map(|k| vector(len, 9 + k)).collect();
                let mut sum = y.clone();
                add_combination(&mut sum, count, |k| 0.5 - k as f64, |k| &rows[k]);
                for i in 0..len {
                    let expected = y[i] + (0..count).map(|k| (0.5 - k as f64) * rows[k][i]).sum::<f64>();
                    assert!((sum[i] - expected).abs() < 1e-14);
                }
            }

            let (mut p, mut q) = (a.clone(), x.clone());
            rotate(&mut p, &mut q, 0.6, 0.8);
            for i in 0..len {
                assert!((p[i] - (0.6 * a[i] + 0.8 * x[i])).abs() < 1e-15);
                assert!((q[i] - (0.6 * x[i] - 0.8 * a[i])).abs() < 1e-15);
            }
        }
    }

    #[test]
    fn lengths_are_found_where_squares_are_no_numbers() {
        for scale in [1e-310, 1e-200, 1e-150, 1.0, 1e150, 1e200, 1e307] {
            for len in [2, 100] {
                let mut x = vec![0.0; len];
                (x[0], x[len - 1]) = (3.0 * scale, -4.0 * scale);
                // Of the smallest numbers only a few digits are left.
                assert!((norm(&x) / scale / 5.0 - 1.0).abs() < if scale < 1e-300 { 1e-11 } else { 1e-15 });
            }
        }
        assert_eq!((norm(&[]), norm(&[0.0; 40])), (0.0, 0.0));
        assert_eq!(norm(&[1.0, f64::INFINITY]), f64::INFINITY);
        assert!(norm(&[1.0, f64::NAN]).is_nan() && norm(&[f64::NAN; 50]).is_nan());
    }
}
