//! What Student-t densities need of Γ: differences of logarithms in which nothing cancels, however large the degrees of freedom.

/// From here on the asymptotic series have all digits.
const LARGE: f64 = 10.0;

/// How far an argument has to be raised to be large, step by step.
fn steps_to_large(a: f64) -> usize {
    (LARGE - a).ceil().max(0.0) as usize
}

/// ln Γ(x) − (x − ½) ln x + x − ½ ln 2π for large x.
fn stirling_rest(x: f64) -> f64 {
    let y = 1.0 / (x * x);
    (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))) / x
}

/// ln Γ(a + b) − ln Γ(a) − b ln a for a > 0 and b ≥ 0. It vanishes like b²/2a for large a, without ever being the difference of two
/// large numbers.
pub(super) fn log_gamma_ratio(a: f64, b: f64) -> f64 {
    let n = steps_to_large(a);
    let (large, mut ratio) = (a + n as f64, 0.0);
    for i in 0..n {
        ratio -= (b / (a + i as f64)).ln_1p();
    }
    let z = large + b;
    ratio += b * (n as f64 / a).ln_1p();
    ratio + (z - 0.5) * (b / large).ln_1p() - b + stirling_rest(z) - stirling_rest(large)
}

/// ln a − ψ(a) for a > 0: positive, and falling from ∞ to 0.
pub(crate) fn log_less_digamma(a: f64) -> f64 {
    let n = steps_to_large(a);
    let (large, mut difference) = (a + n as f64, -(n as f64 / a).ln_1p());
    for i in 0..n {
        difference += 1.0 / (a + i as f64);
    }
    let y = 1.0 / (large * large);
    let series = 1.0 / 12.0 - y * (1.0 / 120.0 - y * (1.0 / 252.0 - y * (1.0 / 240.0 - y / 132.0)));
    difference + 0.5 / large + y * series
}

/// ψ′(a) for a > 0: the variance of the logarithm of a Gamma variable of this shape.
pub(super) fn trigamma(a: f64) -> f64 {
    let n = steps_to_large(a);
    let large = a + n as f64;
    let steps: f64 = (0..n).map(|i| (a + i as f64).powi(-2)).sum();
    let y = 1.0 / (large * large);
    let series = 1.0 / 6.0 - y * (1.0 / 30.0 - y * (1.0 / 42.0 - y * (1.0 / 30.0 - y * (5.0 / 66.0))));
    steps + 1.0 / large + 0.5 * y + series * y / large
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Γ(a + b)/Γ(a) is a product for whole b.
    #[test]
    fn whole_steps_are_products() {
        for a in [0.25, 0.5, 1.0, 3.7, 9.99, 10.0, 250.0] {
            for b in [0usize, 1, 2, 7, 40] {
                let product: f64 = (0..b).map(|i| (1.0 + i as f64 / a).ln()).sum();
                let found = log_gamma_ratio(a, b as f64);
                assert!(
                    (found - product).abs() < 1e-12 * product.abs().max(1.0),
                    "{a} {b}: {found} {product}"
                );
            }
        }
        // Γ(1)/Γ(½) = 1/√π.
        let half = log_gamma_ratio(0.5, 0.5) + 0.5 * 0.5f64.ln();
        assert!((half + 0.5 * std::f64::consts::PI.ln()).abs() < 1e-13);
    }

    #[test]
    fn nothing_cancels_for_large_arguments() {
        for a in [1e6, 1e9, 1e12] {
            let (found, b) = (log_gamma_ratio(a, 392.0), 392.0);
            // (b² − b)/2a and smaller terms.
            let expected = b * (b - 1.0) / (2.0 * a);
            assert!((found / expected - 1.0).abs() < 3.0 * b / a + 1e-3, "{a}: {found} {expected}");
            assert!((log_less_digamma(a) * 2.0 * a - 1.0).abs() < 1.0 / a);
        }
    }

    /// ψ(1) = −γ, ψ(½) = −γ − 2 ln 2, and ψ is the slope of ln Γ.
    #[test]
    fn digamma_is_the_slope() {
        let euler = 0.577_215_664_901_532_9;
        assert!((log_less_digamma(1.0) - euler).abs() < 1e-13);
        let ln2 = std::f64::consts::LN_2;
        assert!((log_less_digamma(0.5) - (-ln2 + euler + 2.0 * ln2)).abs() < 1e-13);
        for a in [0.3, 2.0, 8.0, 30.0, 500.0] {
            let h = 1e-4 * a;
            let slope = (log_gamma_ratio(a - h, 2.0 * h) + 2.0 * h * (a - h).ln()) / (2.0 * h);
            assert!((a.ln() - slope - log_less_digamma(a)).abs() < 1e-7, "{a}");
        }
    }

    /// ψ′(1) = π²/6, ψ′(½) = π²/2, and ψ′ is the slope of ψ.
    #[test]
    fn trigamma_is_the_slope_of_digamma() {
        let square = std::f64::consts::PI.powi(2);
        assert!((trigamma(1.0) - square / 6.0).abs() < 1e-13);
        assert!((trigamma(0.5) - square / 2.0).abs() < 1e-13);
        for a in [0.3, 2.0, 8.0, 30.0, 500.0] {
            let h = 1e-4 * a;
            let digamma = |a: f64| a.ln() - log_less_digamma(a);
            let slope = (digamma(a + h) - digamma(a - h)) / (2.0 * h);
            assert!((slope / trigamma(a) - 1.0).abs() < 1e-6, "{a}");
        }
    }
}
