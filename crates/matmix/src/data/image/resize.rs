//! Other rows and columns: a triangle filter, widened where pixels are lost, so that none of them is ignored.

/// A value that can be weighed.
pub(super) trait Weighed: Copy {
    fn value(self) -> f32;
}

impl Weighed for u8 {
    fn value(self) -> f32 {
        f32::from(self)
    }
}

impl Weighed for u16 {
    fn value(self) -> f32 {
        f32::from(self)
    }
}

impl Weighed for f32 {
    fn value(self) -> f32 {
        self
    }
}

/// The picture `x` of `from` rows, columns and channels, with other rows and columns.
pub(super) fn resized<T: Weighed>(
    x: &[T],
    from: (usize, usize, usize),
    rows: usize,
    columns: usize,
) -> Vec<f32> {
    let (from_rows, from_columns, channels) = from;
    let width = from_columns * channels;
    // First the rows, all columns of one at a time; then within each row.
    let mut tall = vec![0f32; rows * width];
    for (i, out) in tall.chunks_exact_mut(width).enumerate() {
        let (first, weights) = weights(from_rows, rows, i);
        for (row, weight) in x.chunks_exact(width).skip(first).zip(&weights) {
            out.iter_mut().zip(row).for_each(|(out, &x)| *out += weight * x.value());
        }
    }
    let mut out = vec![0f32; rows * columns * channels];
    for j in 0..columns {
        let (first, weights) = weights(from_columns, columns, j);
        for (i, row) in tall.chunks_exact(width).enumerate() {
            let pixel = &mut out[(i * columns + j) * channels..][..channels];
            for (x, weight) in row[first * channels..].chunks_exact(channels).zip(&weights) {
                pixel.iter_mut().zip(x).for_each(|(out, &x)| *out += weight * x);
            }
        }
    }
    out
}

/// Which of `from` pixels make up pixel `at` of `to`: the first one and their weights, which sum to one.
fn weights(from: usize, to: usize, at: usize) -> (usize, Vec<f32>) {
    let ratio = from as f64 / to as f64;
    let reach = ratio.max(1.0);
    let centre = (at as f64 + 0.5) * ratio;
    let first = ((centre - reach).floor().max(0.0) as usize).min(from - 1);
    let end = ((centre + reach).ceil() as usize).clamp(first + 1, from);
    let weight = |i: usize| (1.0 - (i as f64 + 0.5 - centre).abs() / reach).max(0.0);
    let sum: f64 = (first..end).map(weight).sum();
    (first, (first..end).map(|i| (weight(i) / sum) as f32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pixel_counts_and_a_flat_picture_stays_flat() {
        for (from, to) in [(7, 3), (3, 7), (5, 5), (1, 4), (100, 1), (64, 63)] {
            let mut total = vec![0f64; from];
            for at in 0..to {
                let (first, weights) = weights(from, to, at);
                assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-5);
                weights.iter().enumerate().for_each(|(i, &w)| total[first + i] += f64::from(w));
            }
            assert!(total.iter().all(|&w| w > 0.0), "{from} to {to}: {total:?}");
        }
        let flat = resized(&[7u8; 30], (5, 3, 2), 4, 9);
        assert!(flat.iter().all(|x| (x - 7.0).abs() < 1e-5), "{flat:?}");
    }

    #[test]
    fn halving_weighs_neighbours_as_a_triangle_does() {
        // Pixel 1 of 2 from 4 is centred at 3 and reaches from 1 to 5: pixels 1, 2, 3 have the distances 1.5, 0.5, 0.5.
        let out = resized(&[0f32, 10.0, 20.0, 30.0], (1, 4, 1), 1, 2);
        let expected = (0.25 * 10.0 + 0.75 * 20.0 + 0.75 * 30.0) / 1.75;
        assert!((out[1] - expected).abs() < 1e-5, "{out:?}");
        // Channels and rows do not mix.
        let two = resized(&[0f32, 100.0, 10.0, 110.0, 20.0, 120.0, 30.0, 130.0], (4, 1, 2), 2, 1);
        assert!((two[2] - expected).abs() < 1e-4 && (two[3] - expected - 100.0).abs() < 1e-4, "{two:?}");
    }
}
