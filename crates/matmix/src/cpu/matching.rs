//! Bounds of the distances between two blocks of features, in single precision: the kernel of recognition.

use pulp::{Simd, WithSimd};

use super::contract::contract_mode;
use crate::simd::Real;

/// Probes per block: four of the widest vectors.
pub(crate) const MATCHED: usize = 4 * <f32 as Real>::LANES;

/// Half the distance from 1 to the next number in single precision.
const UNIT: f32 = f32::EPSILON / 2.0;

/// Below this the squares of single precision have lost their digits.
const TINY: f32 = 1e-36;

/// Some features of a gallery.
#[derive(Debug, Clone)]
pub(crate) struct MatchBlock {
    /// `[component][element][column]`.
    pub(crate) features: Vec<f32>,
    /// (1 − c)·‖b‖² of each component, `[component][column]`, where c bounds the rounding.
    pub(crate) norms: Vec<f32>,
    /// γ, `[component][column]`.
    pub(crate) gamma: Vec<f32>,
}

/// c: |computed − exact| ≤ c·(‖a‖² + ‖b‖²) for a squared distance from products of vectors of this length. The product
/// contributes its length in units, the rounded features and norms a few more; the rest is room.
pub(crate) fn match_rounding(len: usize) -> f32 {
    (2.0 * len as f32 + 32.0) * UNIT
}

/// What a thread works with.
pub(crate) struct MatchScratch {
    /// ⟨a, b⟩ of one component, `[column][lane]`.
    pub(crate) products: Vec<f32>,
    /// The distance no pair falls below, `[column][lane]`.
    pub(crate) bounds: Vec<f32>,
    /// Σ γ_a γ_b, and the smallest distance of a component.
    pub(crate) weights: Vec<f32>,
    pub(crate) smallest: Vec<f32>,
    /// What a bound must not exceed, per lane.
    pub(crate) limits: [f32; MATCHED],
    /// The smallest bound of the block and its column, per lane.
    pub(crate) least: [f32; MATCHED],
    pub(crate) least_at: [u32; MATCHED],
    /// The columns of the block that no limit excludes in all lanes.
    pub(crate) columns: Vec<u32>,
}

impl MatchScratch {
    pub(crate) fn new(columns: usize) -> Self {
        let zeros = || vec![0f32; columns * MATCHED];
        Self {
            products: zeros(),
            bounds: zeros(),
            weights: zeros(),
            smallest: zeros(),
            limits: [f32::INFINITY; MATCHED],
            least: [f32::INFINITY; MATCHED],
            least_at: [u32::MAX; MATCHED],
            columns: Vec::new(),
        }
    }
}

pub(crate) struct MatchBounds<'a> {
    pub(crate) block: &'a MatchBlock,
    /// Features, norms and γ of the probes, lanes innermost.
    pub(crate) probes: (&'a [f32], &'a [f32], &'a [f32]),
    /// Components, elements of a core, columns.
    pub(crate) sides: (usize, usize, usize),
    /// Whether the components are weighted by the products of γ.
    pub(crate) weighted: bool,
    /// Whether the features are unit vectors of one component, which are compared by their angle.
    pub(crate) cosine: bool,
    pub(crate) scratch: &'a mut MatchScratch,
}

impl WithSimd for MatchBounds<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { block, probes: (features, norms, gamma), sides, weighted, cosine, scratch } = self;
        let (components, len, columns) = sides;
        let used = columns * MATCHED;
        let MatchScratch { products, bounds, weights, smallest, limits, least, least_at, columns: open } =
            scratch;
        let (products, bounds) = (&mut products[..used], &mut bounds[..used]);
        let (weights, smallest) = (&mut weights[..used], &mut smallest[..used]);
        bounds.fill(0.0);
        weights.fill(0.0);
        smallest.fill(f32::INFINITY);
        for k in 0..components {
            let a = &features[k * len * MATCHED..(k + 1) * len * MATCHED];
            let b = &block.features[k * len * columns..(k + 1) * len * columns];
            contract_mode(simd, a, (1, len, 1), b, columns, MATCHED, products);
            let a_norms = &norms[k * MATCHED..(k + 1) * MATCHED];
            let a_gamma = &gamma[k * MATCHED..(k + 1) * MATCHED];
            for j in 0..columns {
                let b_norm = block.norms[k * columns + j];
                let b_gamma = block.gamma[k * columns + j];
                let at = j * MATCHED..(j + 1) * MATCHED;
                let (p, to) = (&products[at.clone()], &mut bounds[at.clone()]);
                match (cosine, weighted) {
                    (true, _) => {
                        // Unit vectors: the rounding is that of their squares.
                        let room = 2.0 * match_rounding(len);
                        for lane in 0..MATCHED {
                            to[lane] = 1.0 - p[lane] - room;
                        }
                    }
                    (false, false) => {
                        for lane in 0..MATCHED {
                            to[lane] += apart(a_norms[lane], b_norm, p[lane]);
                        }
                    }
                    (false, true) => {
                        let (w, s) = (&mut weights[at.clone()], &mut smallest[at]);
                        for lane in 0..MATCHED {
                            let d = apart(a_norms[lane], b_norm, p[lane]);
                            let weight = a_gamma[lane] * b_gamma;
                            to[lane] += weight * d;
                            w[lane] += weight;
                            // NaN must stay.
                            s[lane] = if d >= s[lane] || s[lane].is_nan() { s[lane] } else { d };
                        }
                    }
                }
            }
        }
        // The rounding of the sum over the components and of the weights.
        let less = 1.0 - (4.0 * components as f32 + 32.0) * UNIT;
        match (cosine, weighted) {
            (true, _) => {}
            (false, false) => bounds.iter_mut().for_each(|d| *d *= less),
            (false, true) => {
                for ((d, w), s) in bounds.iter_mut().zip(weights).zip(smallest) {
                    // Weights too small for single precision: no weighted mean is below its smallest term.
                    *d = less * if *w > 1e-30 { *d / *w } else { *s };
                }
            }
        }
        *least = [f32::INFINITY; MATCHED];
        *least_at = [u32::MAX; MATCHED];
        open.clear();
        for (j, row) in bounds.chunks_exact(MATCHED).enumerate() {
            let mut excluded = true;
            for lane in 0..MATCHED {
                let smaller = row[lane] < least[lane];
                least[lane] = if smaller { row[lane] } else { least[lane] };
                least_at[lane] = if smaller { j as u32 } else { least_at[lane] };
                excluded &= row[lane] > limits[lane];
            }
            if !excluded {
                open.push(j as u32);
            }
        }
    }
}

/// What ‖a − b‖ is at least. NaN where the norms are.
#[inline(always)]
fn apart(a_norm: f32, b_norm: f32, product: f32) -> f32 {
    let square = a_norm + b_norm - 2.0 * product - TINY;
    // Not `max`, which would turn NaN into 0: in a sum over the components only NaN excludes nothing.
    let square = if square < 0.0 { 0.0 } else { square };
    square.sqrt()
}
