//! From numbers to colours.

use crate::options::choices;

choices! {
    /// How values are shown.
    ///
    /// ```
    /// use matmix::picture::ColourMap;
    ///
    /// assert_eq!(ColourMap::Grey.colour(2.0, 0.0, 2.0), [255; 3]);
    /// // Red for positive values, blue for as large negative ones.
    /// let [red, _, blue] = ColourMap::Diverging.colour(1.0, -1.0, 1.0);
    /// assert!(red > blue);
    /// let [red, _, blue] = ColourMap::Diverging.colour(-1.0, -1.0, 1.0);
    /// assert!(red < blue);
    /// ```
    pub enum ColourMap {
        /// Black for the smallest value, white for the largest.
        #[default]
        Grey = "grey",
        /// Blue for negative values, near white for zero, red for positive ones: for means that were subtracted,
        /// loadings and differences. The range is symmetric about zero.
        Diverging = "diverging",
    }
}

/// The colour of missing cells, as in the report.
pub(super) const MISSING: [u8; 3] = [236, 96, 176];

impl ColourMap {
    /// The colour of `value` in the range `low..=high`; values outside take the colour of the end, missing cells (NaN) are pink.
    pub fn colour(self, value: f64, low: f64, high: f64) -> [u8; 3] {
        match self {
            _ if value.is_nan() => MISSING,
            ColourMap::Grey => [grey(value, low, high); 3],
            ColourMap::Diverging => {
                let end = low.abs().max(high.abs());
                // Zero is the middle also where there is nothing but zeros.
                diverging(if end > 0.0 { value / end } else { 0.0 })
            }
        }
    }
}

/// A shade between 0 for `low` and 255 for `high`; middle grey where all values are equal.
pub(super) fn grey(value: f64, low: f64, high: f64) -> u8 {
    shade(value, low, high, 255) as u8
}

/// A shade between 0 for `low` and `white` for `high`; middle grey where all values are equal.
pub(super) fn shade(value: f64, low: f64, high: f64, white: u16) -> u16 {
    // Halves, so that a range as wide as the numbers themselves does not overflow.
    let width = high / 2.0 - low / 2.0;
    if width > 0.0 {
        // `as` turns NaN into 0; what lies outside the range stops at the ends.
        (((value / 2.0 - low / 2.0) / width).clamp(0.0, 1.0) * f64::from(white)).round() as u16
    } else {
        white.div_ceil(2)
    }
}

/// The colour of `t` in −1 … 1.
///
/// A straight line in Oklab (Ottosson 2020) from blue over a neutral near-white to red. Both ends are equally dark
/// and equally far from the middle, so that equal steps look equal and neither sign looks larger than the other.
fn diverging(t: f64) -> [u8; 3] {
    let t = if t.is_finite() { t.clamp(-1.0, 1.0) } else { 0.0 };
    const MIDDLE: f64 = 0.97;
    const END: f64 = 0.45;
    const CHROMA: f64 = 0.15;
    // Hue angles at which this chroma exists in sRGB at this lightness.
    let hue: f64 = if t < 0.0 { 258f64.to_radians() } else { 27f64.to_radians() };
    let size = t.abs();
    oklab(MIDDLE + (END - MIDDLE) * size, CHROMA * size * hue.cos(), CHROMA * size * hue.sin())
}

fn oklab(lightness: f64, a: f64, b: f64) -> [u8; 3] {
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b).powi(3);
    let linear = [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s,
    ];
    linear.map(|x| {
        let encoded = if x <= 0.003_130_8 { 12.92 * x } else { 1.055 * x.powf(1.0 / 2.4) - 0.055 };
        (encoded * 255.0).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CIE lightness L* of an sRGB colour: another measure than the one the map is made with.
    fn lightness(colour: [u8; 3]) -> f64 {
        let linear = colour.map(|c| {
            let c = f64::from(c) / 255.0;
            if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        });
        let y = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
        116.0 * y.cbrt() - 16.0
    }

    #[test]
    fn grey_runs_from_black_to_white_and_stops_at_the_ends() {
        let map = ColourMap::Grey;
        assert_eq!(map.colour(-1.0, -1.0, 3.0), [0; 3]);
        assert_eq!(map.colour(3.0, -1.0, 3.0), [255; 3]);
        assert_eq!(map.colour(9.0, -1.0, 3.0), [255; 3]);
        assert_eq!(map.colour(2.0, 2.0, 2.0), [128; 3]);
        assert_eq!(map.colour(f64::NAN, 0.0, 1.0), MISSING);
        assert_eq!(map.colour(f64::MAX, f64::MIN, f64::MAX), [255; 3]);
    }

    #[test]
    fn diverging_is_symmetric_in_lightness_and_neutral_at_zero() {
        let map = ColourMap::Diverging;
        let zero = map.colour(0.0, -2.0, 1.0);
        assert!(
            zero[0].abs_diff(zero[1]) <= 1 && zero[1].abs_diff(zero[2]) <= 1 && zero[0] > 240,
            "{zero:?}"
        );
        let mut last = 101.0;
        for step in 0..=10 {
            let t = f64::from(step) / 10.0;
            let (blue, red) = (map.colour(-t, -1.0, 1.0), map.colour(t, -1.0, 1.0));
            assert!((lightness(blue) - lightness(red)).abs() < 4.0, "{t}: {blue:?} {red:?}");
            assert!(lightness(red) < last - 3.0 || step == 0, "{t}");
            last = lightness(red);
        }
        assert!(map.colour(-1.0, -1.0, 1.0)[2] > 150 && map.colour(1.0, -1.0, 1.0)[0] > 140);
        // No channel is cut off at the ends, where the line would bend.
        for t in [-1.0, 1.0] {
            assert!(
                map.colour(t, -1.0, 1.0).iter().all(|&c| c > 0 && c < 255),
                "{:?}",
                map.colour(t, -1.0, 1.0)
            );
        }
    }
}
