//! Squared distances of all samples to a few points, and what k-means sums up on the way.

use pulp::{Simd, WithSimd};

use super::contract::contract_mode;
use super::load::Stored;
use super::moments::add_difference;
use super::redo::{self, Work};
use super::samples_abreast::PackedWhole;
use crate::data::{Element, Samples};
use crate::error::Result;
use crate::model::not_negative;
use crate::pass::{Answers, DistancesPass, GroupSums, GroupsPass, SINGLE_RANGE};
use crate::simd::Aligned;
use crate::simd::{Instructions, Real};

/// The squared distance of every sample to every one of a few points.
pub(super) fn distances(pass: &DistancesPass, samples: &Samples<'_>, on: Instructions) -> Result<Answers> {
    let work = Near { points: &pass.points, reference: &pass.reference, sums: AsAnswers };
    let mut all = AsAnswers.zero(pass.reference.len(), pass.points.len());
    redo::fold(samples, on, work.is_double(samples), &work, |more| AsAnswers.merge(&mut all, &more))?;
    Ok(all)
}

/// For every sample the nearest centre; per centre the weight, shift and squared distance of its samples.
pub(super) fn groups(pass: &GroupsPass, samples: &Samples<'_>, on: Instructions) -> Result<GroupSums> {
    let work = Near { points: &pass.centres, reference: &pass.reference, sums: AsGroups };
    redo::sum(samples, on, work.is_double(samples), &work)
}

/// What becomes of the distances of a sample.
trait Taking: Sync {
    type Sum: Send;

    fn zero(&self, size: usize, points: usize) -> Self::Sum;

    fn take(
        &self,
        on: Instructions,
        points: &[Vec<f64>],
        stored: Stored<'_>,
        n: usize,
        distances: &[f64],
        room: &mut [f64],
        sum: &mut Self::Sum,
    );

    /// The same of a sample with missing cells: `x` with NaN where they are, and how many times as far as its observed cells it is away.
    fn take_partial(
        &self,
        points: &[Vec<f64>],
        stored: Stored<'_>,
        n: usize,
        distances: &[f64],
        x: &[f64],
        sum: &mut Self::Sum,
    );

    fn merge(&self, sum: &mut Self::Sum, following: &Self::Sum);
}

struct AsAnswers;

impl AsAnswers {
    fn put(stored: Stored<'_>, n: usize, distances: &[f64], sum: &mut Answers) {
        let place = stored.place + n;
        sum.make_room(place + 1);
        sum.row(place).copy_from_slice(distances);
    }
}

impl Taking for AsAnswers {
    type Sum = Answers;

    fn zero(&self, _: usize, points: usize) -> Answers {
        Answers::none(points)
    }

    fn take(
        &self,
        _: Instructions,
        _: &[Vec<f64>],
        stored: Stored<'_>,
        n: usize,
        distances: &[f64],
        _: &mut [f64],
        sum: &mut Answers,
    ) {
        Self::put(stored, n, distances, sum);
    }

    fn take_partial(
        &self,
        _: &[Vec<f64>],
        stored: Stored<'_>,
        n: usize,
        distances: &[f64],
        _: &[f64],
        sum: &mut Answers,
    ) {
        Self::put(stored, n, distances, sum);
    }

    fn merge(&self, sum: &mut Answers, following: &Answers) {
        sum.append(following);
    }
}

struct AsGroups;

impl Taking for AsGroups {
    type Sum = GroupSums;

    fn zero(&self, size: usize, points: usize) -> GroupSums {
        GroupSums::zero(size, points)
    }

    fn take(
        &self,
        on: Instructions,
        points: &[Vec<f64>],
        stored: Stored<'_>,
        n: usize,
        distances: &[f64],
        room: &mut [f64],
        sum: &mut GroupSums,
    ) {
        let nearest = least(distances);
        let (group, weight) = (&mut sum.groups[nearest], stored.weight(n));
        let (centre, shift, mut range) = (&points[nearest], &mut group.shift, [0.0; 2]);
        let square = add_difference(on, stored, n, centre, weight, room, shift, &mut range);
        group.weight += weight;
        group.squared_distance += weight * square;
        sum.n_samples += 1;
    }

    fn take_partial(
        &self,
        points: &[Vec<f64>],
        stored: Stored<'_>,
        n: usize,
        distances: &[f64],
        x: &[f64],
        sum: &mut GroupSums,
    ) {
        let nearest = least(distances);
        let (group, weight) = (&mut sum.groups[nearest], stored.weight(n));
        group.unseen.resize(x.len(), 0.0);
        for (i, (x, c)) in x.iter().zip(&points[nearest]).enumerate() {
            match x.is_nan() {
                true => group.unseen[i] += weight,
                false => group.shift[i] += weight * (x - c),
            }
        }
        group.weight += weight;
        group.squared_distance += weight * distances[nearest];
        sum.n_samples += 1;
    }

    fn merge(&self, sum: &mut GroupSums, following: &GroupSums) {
        sum.append(following);
    }
}

/// Which distance is the least; the first of equal ones.
fn least(distances: &[f64]) -> usize {
    (1..distances.len()).fold(0, |least, j| if distances[j] < distances[least] { j } else { least })
}

struct Near<'a, K> {
    points: &'a [Vec<f64>],
    reference: &'a [f64],
    sums: K,
}

impl<K> Near<'_, K> {
    /// Squares that leave the range of single precision, at either end, need double.
    fn is_double(&self, samples: &Samples<'_>) -> bool {
        let apart = |c: &Vec<f64>| c.iter().zip(self.reference).map(|(c, g)| (c - g) * (c - g)).sum::<f64>();
        let apart = self.points.iter().map(apart).fold(0.0, f64::max) / samples.sample_len() as f64;
        samples.element() == Element::F64 || !SINGLE_RANGE.contains(&apart)
    }
}

struct NearSetup<T> {
    reference: Vec<T>,
    /// P × points, so that the points are the columns of a loading matrix.
    points: Vec<T>,
    norms: Vec<f64>,
}

struct NearScratch<T> {
    packed: PackedWhole<T>,
    products: Aligned<T>,
    distances: Vec<f64>,
    room: Vec<f64>,
}

impl<K: Taking> Work for Near<'_, K> {
    type Sum = K::Sum;
    type Setup<T: Real> = NearSetup<T>;
    type Scratch<T: Real> = NearScratch<T>;

    fn setup<T: Real>(&self) -> NearSetup<T> {
        let (size, k) = (self.reference.len(), self.points.len());
        let reference: Vec<T> = self.reference.iter().map(|&g| T::from_f64(g)).collect();
        let mut points = vec![T::from_f64(0.0); size * k];
        let mut norms = vec![0.0; k];
        for (j, point) in self.points.iter().enumerate() {
            for (i, &c) in point.iter().enumerate() {
                let point = T::from_f64(c - reference[i].to_f64());
                points[i * k + j] = point;
                norms[j] += point.to_f64() * point.to_f64();
            }
        }
        NearSetup { reference, points, norms }
    }

    fn scratch<T: Real>(&self, setup: &NearSetup<T>) -> NearScratch<T> {
        let packed = PackedWhole::<T>::new(setup.reference.len());
        let (k, lanes) = (setup.norms.len(), packed.lanes);
        let products = Aligned::new(T::from_f64(0.0), k * lanes);
        NearScratch { packed, products, distances: vec![0.0; k], room: vec![0.0; setup.reference.len()] }
    }

    fn zero(&self) -> K::Sum {
        self.sums.zero(self.reference.len(), self.points.len())
    }

    fn add<T: Real>(
        &self,
        on: Instructions,
        setup: &NearSetup<T>,
        scratch: &mut NearScratch<T>,
        stored: Stored<'_>,
        sum: &mut K::Sum,
        left_out: &mut Vec<usize>,
    ) {
        let lanes = scratch.packed.lanes;
        for block in stored.blocks(lanes) {
            let NearScratch { packed, products, distances, room } = scratch;
            on.run::<T, _>(Products { setup, block: &block, packed, products });
            for (lane, n) in block.places().enumerate() {
                for (j, (distance, norm)) in distances.iter_mut().zip(&setup.norms).enumerate() {
                    let inner = products[j * lanes + lane].to_f64();
                    *distance = not_negative(packed.norms()[lane] - 2.0 * inner + norm);
                }
                if distances.iter().all(|d| d.is_finite()) {
                    self.sums.take(on, self.points, stored, n, distances, room, sum);
                } else {
                    left_out.push(n);
                }
            }
        }
    }

    /// Distances over the observed cells, times P over their number. A sample of which nothing was observed is near to all.
    fn add_partial<T: Real>(
        &self,
        _: Instructions,
        _: &NearSetup<T>,
        scratch: &mut NearScratch<T>,
        stored: Stored<'_>,
        holes: &[usize],
        sum: &mut K::Sum,
        left_out: &mut Vec<usize>,
    ) {
        let NearScratch { distances, room, .. } = scratch;
        let zeros = vec![0.0; room.len()];
        for &n in holes {
            stored.load(n, 0..room.len(), &zeros, room);
            let observed = room.iter().filter(|x| !x.is_nan()).count();
            let factor = if observed > 0 { room.len() as f64 / observed as f64 } else { 0.0 };
            for (distance, point) in distances.iter_mut().zip(self.points) {
                let squares = room.iter().zip(point).map(|(x, c)| (x - c) * (x - c));
                *distance = factor * squares.filter(|d| !d.is_nan()).sum::<f64>();
            }
            match distances.iter().all(|d| d.is_finite()) {
                true => self.sums.take_partial(self.points, stored, n, distances, room, sum),
                false => left_out.push(n),
            }
        }
    }

    fn merge(&self, sum: &mut K::Sum, following: &K::Sum) {
        self.sums.merge(sum, following);
    }

    fn sum_bytes(&self) -> usize {
        size_of::<f64>() * self.points.len() * self.reference.len()
    }
}

/// Inner products of a block of samples with all points.
struct Products<'a, T> {
    setup: &'a NearSetup<T>,
    block: &'a super::load::Block<'a>,
    packed: &'a mut PackedWhole<T>,
    products: &'a mut [T],
}

impl<T: Real> WithSimd for Products<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { setup, block, packed, products } = self;
        let (size, k, lanes) = (setup.reference.len(), setup.norms.len(), packed.lanes);
        packed.fill(simd, block, &setup.reference);
        contract_mode(simd, packed.x(), (1, size, 1), &setup.points, k, lanes, products);
    }
}
