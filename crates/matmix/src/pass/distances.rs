//! Squared distances of all samples to a few points, and what k-means sums up on the way.

use pulp::{Simd, WithSimd};

use super::block::Packed;
use super::chunks;
use super::contract::contract_mode;
use super::simd::{Path, Real};
use crate::data::{Buffer, Chunk, Element, Samples};
use crate::error::{Error, Result};

/// What one Lloyd step needs.
#[derive(Debug, Clone)]
pub(crate) struct Assignment {
    /// The nearest centre of each sample.
    pub(crate) nearest: Vec<usize>,
    /// The squared distance to it.
    pub(crate) squared_distance: Vec<f64>,
}

/// The nearest of the `centres` (each P numbers) for every sample; `reference` is near all of them.
pub(crate) fn nearest(
    samples: &Samples<'_>,
    centres: &[Vec<f64>],
    reference: &[f64],
    path: Path,
) -> Result<Assignment> {
    if samples.element() == Element::F64 {
        run::<f64>(samples, centres, reference, path)
    } else {
        run::<f32>(samples, centres, reference, path)
    }
}

fn run<T: Real>(
    samples: &Samples<'_>,
    centres: &[Vec<f64>],
    reference: &[f64],
    path: Path,
) -> Result<Assignment> {
    let (size, k) = (samples.sample_len(), centres.len());
    let reference: Vec<T> = reference.iter().map(|&g| T::from_f64(g)).collect();
    // P × K, so that the centres are the columns of a loading matrix.
    let mut points = vec![T::from_f64(0.0); size * k];
    let mut norms = vec![0.0; k];
    for (j, centre) in centres.iter().enumerate() {
        for (i, &c) in centre.iter().enumerate() {
            let point = T::from_f64(c - reference[i].to_f64());
            points[i * k + j] = point;
            norms[j] += point.to_f64() * point.to_f64();
        }
    }
    let mut all = Assignment { nearest: vec![], squared_distance: vec![] };
    chunks::fold(
        samples,
        16 * chunks::chunk_len(size),
        || {
            let packed = Packed::<T>::new(size);
            let products = vec![T::from_f64(0.0); k * packed.lanes];
            (packed, products, Buffer::new())
        },
        |(packed, products, buffer), range| {
            let chunk = samples.stored(range.clone(), buffer)?;
            let mut out = Assignment { nearest: vec![], squared_distance: vec![] };
            let scale = samples.scale();
            path.run(Nearest {
                chunk,
                scale,
                reference: &reference,
                points: &points,
                norms: &norms,
                packed,
                products,
                out: &mut out,
            });
            if out.squared_distance.iter().any(|d| !d.is_finite()) {
                samples.check_finite(range.clone())?;
                return Err(Error::Overflow { sample: range.start });
            }
            Ok(out)
        },
        |mut part| {
            all.nearest.append(&mut part.nearest);
            all.squared_distance.append(&mut part.squared_distance);
        },
    )?;
    Ok(all)
}

struct Nearest<'a, T> {
    chunk: Chunk<'a>,
    scale: f64,
    reference: &'a [T],
    points: &'a [T],
    norms: &'a [f64],
    packed: &'a mut Packed<T>,
    products: &'a mut [T],
    out: &'a mut Assignment,
}

impl<T: Real> WithSimd for Nearest<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { chunk, scale, reference, points, norms, packed, products, out } = self;
        let (size, k, lanes) = (reference.len(), norms.len(), packed.lanes);
        let count = chunk.len() / size;
        for start in (0..count).step_by(lanes) {
            let end = (start + lanes).min(count);
            packed.fill(chunk.slice(start * size..end * size), scale, reference);
            contract_mode(simd, &packed.x, (1, size, 1), points, k, lanes, products);
            for lane in 0..end - start {
                let (mut best, mut least) = (0, f64::INFINITY);
                for (j, norm) in norms.iter().enumerate() {
                    let distance = norm - 2.0 * products[j * lanes + lane].to_f64();
                    if distance < least {
                        (best, least) = (j, distance);
                    }
                }
                out.nearest.push(best);
                out.squared_distance.push((packed.norms[lane] + least).max(0.0));
            }
        }
    }
}

/// The mean of the samples nearest to each centre, and the weight of each group.
pub(crate) fn group_means(
    samples: &Samples<'_>,
    nearest: &[usize],
    k: usize,
) -> Result<Vec<(f64, Vec<f64>)>> {
    let size = samples.sample_len();
    let mut groups = vec![(0.0, vec![0.0; size]); k];
    chunks::fold(
        samples,
        k * size * size_of::<f64>(),
        Buffer::new,
        |buffer, range| {
            let chunk = samples.stored(range.clone(), buffer)?;
            let mut groups = vec![(0.0, vec![0.0; size]); k];
            for n in 0..range.len() {
                let weight = samples.weight(range.start + n);
                let (total, sum) = &mut groups[nearest[range.start + n]];
                *total += weight;
                let factor = weight * samples.scale();
                match chunk.slice(n * size..(n + 1) * size) {
                    Chunk::U8(x) => sum.iter_mut().zip(x).for_each(|(s, &x)| *s += factor * f64::from(x)),
                    Chunk::F32(x) => sum.iter_mut().zip(x).for_each(|(s, &x)| *s += factor * f64::from(x)),
                    Chunk::F64(x) => sum.iter_mut().zip(x).for_each(|(s, &x)| *s += factor * x),
                }
            }
            Ok(groups)
        },
        |part| {
            for ((total, sum), (t, s)) in groups.iter_mut().zip(part) {
                *total += t;
                sum.iter_mut().zip(s).for_each(|(a, b)| *a += b);
            }
        },
    )?;
    for (total, sum) in &mut groups {
        if *total > 0.0 {
            sum.iter_mut().for_each(|s| *s /= *total);
        }
    }
    Ok(groups)
}
