//! Sums of the differences between samples and a point: what means and variances are made of, in double precision.

use pulp::{Simd, WithSimd};

use super::simd::Path;
use crate::data::Chunk;

/// Sums of squares that are made side by side: a single one would wait for itself.
const SUMS: usize = 8;

/// Adds w (x − origin) to `sum` and returns ‖x − origin‖², for one sample as it is stored, times `scale`.
pub(super) fn add_difference(
    path: Path,
    x: Chunk<'_>,
    scale: f64,
    origin: &[f64],
    weight: f64,
    sum: &mut [f64],
) -> f64 {
    path.run(Difference { x, scale, origin, weight, sum })
}

struct Difference<'a> {
    x: Chunk<'a>,
    scale: f64,
    origin: &'a [f64],
    weight: f64,
    sum: &'a mut [f64],
}

impl WithSimd for Difference<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        match self.x {
            Chunk::U8(x) => add(x, self.scale, self.origin, self.weight, self.sum),
            Chunk::F32(x) => add(x, self.scale, self.origin, self.weight, self.sum),
            Chunk::F64(x) => add(x, self.scale, self.origin, self.weight, self.sum),
        }
    }
}

#[inline(always)]
fn add<E: Copy + Into<f64>>(x: &[E], scale: f64, origin: &[f64], weight: f64, sum: &mut [f64]) -> f64 {
    let mut squares = [0.0; SUMS];
    let (x, x_rest) = x.as_chunks::<SUMS>();
    let (origin, origin_rest) = origin.as_chunks::<SUMS>();
    let (sum, sum_rest) = sum.as_chunks_mut::<SUMS>();
    for ((x, o), s) in x.iter().zip(origin).zip(sum) {
        // Arrays of their own, one loop each: these become vectors.
        let (mut d, mut next) = ([0.0; SUMS], *s);
        for i in 0..SUMS {
            d[i] = x[i].into() * scale - o[i];
        }
        for i in 0..SUMS {
            next[i] += weight * d[i];
        }
        for i in 0..SUMS {
            squares[i] += d[i] * d[i];
        }
        *s = next;
    }
    for i in 0..x_rest.len() {
        let d = x_rest[i].into() * scale - origin_rest[i];
        sum_rest[i] += weight * d;
        squares[i] += d * d;
    }
    let mut square = 0.0;
    for s in squares {
        square += s;
    }
    square
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_every_element_type_are_those_written_out_on_every_instruction_set() {
        for size in [1, 7, 8, 29] {
            let bytes: Vec<u8> = (0..size).map(|i| (i * 37 % 251) as u8).collect();
            let (single, double): (Vec<f32>, Vec<f64>) =
                bytes.iter().map(|&x| (f32::from(x), f64::from(x))).unzip();
            // Halves and quarters: every sum is exact, in whatever order it is made.
            let origin: Vec<f64> = (0..size).map(|i| i as f64 * 0.5).collect();
            let before: Vec<f64> = (0..size).map(|i| i as f64).collect();
            let difference = |i: usize| 0.25 * double[i] - origin[i];
            let expected: Vec<f64> = (0..size).map(|i| before[i] + 3.0 * difference(i)).collect();
            let square: f64 = (0..size).map(|i| difference(i) * difference(i)).sum();
            for path in Path::available() {
                for x in [Chunk::U8(&bytes), Chunk::F32(&single), Chunk::F64(&double)] {
                    let mut sum = before.clone();
                    let found = add_difference(path, x, 0.25, &origin, 3.0, &mut sum);
                    assert_eq!((found, &sum), (square, &expected), "{path:?}, {size} elements");
                }
            }
        }
    }
}
