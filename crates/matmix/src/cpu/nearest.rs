//! Squared distances of all samples to a few points, and what k-means sums up on the way.

use pulp::{Simd, WithSimd};

use super::chunks;
use super::contract::contract_mode;
use super::differences::add_difference;
use super::pack::PackedWhole;
use super::simd::{Path, Real};
use super::sums::{Group, GroupSums};
use crate::data::{Chunk, Element, Samples};
use crate::error::{Error, Result};
use crate::model::not_negative;

/// The nearest of the `centres` (each P numbers) for every sample; `reference` is near all of them.
pub(crate) fn nearest(
    samples: &Samples<'_>,
    centres: &[Vec<f64>],
    reference: &[f64],
    path: Path,
) -> Result<Vec<usize>> {
    let keep = |_: Chunk<'_>, _: usize, nearest| nearest;
    let bytes = size_of::<usize>() * chunks::chunk_len(samples.sample_len());
    run(samples, centres, reference, path, bytes, take_nearest, keep, |all, more| all.extend_from_slice(more))
}

/// The squared distance of every sample to every one of a few points, N × points.
pub(crate) fn squared_distances(
    samples: &Samples<'_>,
    points: &[Vec<f64>],
    reference: &[f64],
    path: Path,
) -> Result<Vec<f64>> {
    let take = |distances: &[f64], out: &mut Vec<f64>| out.extend_from_slice(distances);
    let keep = |_: Chunk<'_>, _: usize, distances| distances;
    let bytes = size_of::<f64>() * points.len() * chunks::chunk_len(samples.sample_len());
    run(samples, points, reference, path, bytes, take, keep, |all, more| all.extend_from_slice(more))
}

/// For every sample the nearest centre; per centre the weight, shift and squared distance of its samples.
pub(crate) fn groups(
    samples: &Samples<'_>,
    centres: &[Vec<f64>],
    reference: &[f64],
    path: Path,
) -> Result<GroupSums> {
    let size = samples.sample_len();
    let none = Group { weight: 0.0, shift: vec![0.0; size], squared_distance: 0.0 };
    let sum = |chunk: Chunk<'_>, first: usize, nearest: Vec<usize>| {
        let n_samples = nearest.len() as u64;
        let mut sums = GroupSums { n_samples, groups: vec![none.clone(); centres.len()] };
        for (n, &k) in nearest.iter().enumerate() {
            let (group, weight) = (&mut sums.groups[k], samples.weight(first + n));
            group.weight += weight;
            let x = chunk.slice(n * size..(n + 1) * size);
            let square = add_difference(path, x, samples.scale(), &centres[k], weight, &mut group.shift);
            group.squared_distance += weight * square;
        }
        sums
    };
    let bytes = size_of::<f64>() * centres.len() * size;
    run(samples, centres, reference, path, bytes, take_nearest, sum, GroupSums::merge)
}

fn take_nearest(distances: &[f64], out: &mut Vec<usize>) {
    let mut best = 0;
    for (j, d) in distances.iter().enumerate() {
        if *d < distances[best] {
            best = j;
        }
    }
    out.push(best);
}

/// Hands the squared distances of each sample to `take`, which keeps what it needs of them; what was kept of a chunk
/// goes to `finish` together with the chunk and the number of its first sample, and what comes out of that is added up.
fn run<R: Send, S: Send>(
    samples: &Samples<'_>,
    centres: &[Vec<f64>],
    reference: &[f64],
    path: Path,
    result_bytes: usize,
    take: impl Fn(&[f64], &mut Vec<R>) + Sync + Send,
    finish: impl Fn(Chunk<'_>, usize, Vec<R>) -> S + Sync + Send,
    add: impl Fn(&mut S, &S),
) -> Result<S> {
    let apart = |c: &Vec<f64>| c.iter().zip(reference).map(|(c, g)| (c - g) * (c - g)).sum::<f64>();
    let apart = centres.iter().map(apart).fold(0.0, f64::max) / samples.sample_len() as f64;
    // Squares that leave the range of single precision, at either end, need double.
    if samples.element() != Element::F64 && (1e-20..=1e20).contains(&apart) {
        match run_in::<f32, R, S>(samples, centres, reference, path, result_bytes, &take, &finish, &add) {
            Err(Error::Overflow { .. }) => {}
            other => return other,
        }
    }
    run_in::<f64, R, S>(samples, centres, reference, path, result_bytes, take, finish, add)
}

fn run_in<T: Real, R: Send, S: Send>(
    samples: &Samples<'_>,
    centres: &[Vec<f64>],
    reference: &[f64],
    path: Path,
    result_bytes: usize,
    take: impl Fn(&[f64], &mut Vec<R>) + Sync + Send,
    finish: impl Fn(Chunk<'_>, usize, Vec<R>) -> S + Sync + Send,
    add: impl Fn(&mut S, &S),
) -> Result<S> {
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
    chunks::sum(
        samples,
        result_bytes,
        || {
            let packed = PackedWhole::<T>::new(size);
            let products = vec![T::from_f64(0.0); k * packed.lanes];
            (packed, products)
        },
        |(packed, products), range, chunk| {
            let scale = samples.scale();
            let (reference, points, norms) = (&reference[..], &points[..], &norms[..]);
            let mut out = Vec::new();
            let mut finite = true;
            let take = |distances: &[f64]| {
                finite &= distances.iter().all(|d| d.is_finite());
                take(distances, &mut out);
            };
            path.run(Distances { chunk, scale, reference, points, norms, packed, products, take });
            if !finite {
                samples.check_finite(range.clone())?;
                return Err(Error::Overflow { sample: samples.largest(range)? });
            }
            Ok(finish(chunk, range.start, out))
        },
        add,
    )
}

struct Distances<'a, T, F> {
    chunk: Chunk<'a>,
    scale: f64,
    reference: &'a [T],
    points: &'a [T],
    norms: &'a [f64],
    packed: &'a mut PackedWhole<T>,
    products: &'a mut [T],
    take: F,
}

impl<T: Real, F: FnMut(&[f64])> WithSimd for Distances<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { chunk, scale, reference, points, norms, packed, products, mut take } = self;
        let (size, k, lanes) = (reference.len(), norms.len(), packed.lanes);
        let count = chunk.len() / size;
        let mut distances = vec![0.0; k];
        for start in (0..count).step_by(lanes) {
            let end = (start + lanes).min(count);
            packed.fill(simd, chunk, start..end, scale, reference);
            contract_mode(simd, packed.x(), (1, size, 1), points, k, lanes, products);
            for lane in 0..end - start {
                for (j, (distance, norm)) in distances.iter_mut().zip(norms).enumerate() {
                    let inner = products[j * lanes + lane].to_f64();
                    *distance = not_negative(packed.norms()[lane] - 2.0 * inner + norm);
                }
                take(&distances);
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
        || (),
        |(), range, chunk| {
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
