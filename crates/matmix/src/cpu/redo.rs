//! One rule for numbers that leave the range of single precision: the samples they belong to are done in double.
//!
//! A pass is written once, generic over the number type, and says which samples it had to leave out because what it made of
//! them was not finite (or too small to have digits left). Those are looked at for NaN and infinity, done again in double and, if even
//! that is not enough, named in an error. Where NaN means a missing cell, samples that have one are worked on by themselves.

use std::ops::Range;
use std::sync::OnceLock;

use super::load::Stored;
use crate::data::{Chunk, Missing, Samples, samples_with_nan};
use crate::error::{Error, Result, needs_noise};
use crate::pass::SINGLE_RANGE;
use crate::simd::{Instructions, Real};
use crate::walk::{self, Job, RUN_LEAST};

/// What a pass does with samples, in either precision.
pub(super) trait Work: Sync {
    /// Whether it can do anything with samples that have missing cells.
    const PARTIAL: bool = true;
    /// What it sums up.
    type Sum: Send;
    /// A model made ready, or whatever else is made once per pass.
    type Setup<T: Real>: Sync + Send;
    /// What a thread reuses.
    type Scratch<T: Real>: Send;

    fn setup<T: Real>(&self) -> Self::Setup<T>;

    fn scratch<T: Real>(&self, setup: &Self::Setup<T>) -> Self::Scratch<T>;

    fn zero(&self) -> Self::Sum;

    /// Works through the samples that `stored` chooses. Those that cannot be worked on in this precision are left out and pushed to
    /// `left_out`, by their places among all that are stored.
    fn add<T: Real>(
        &self,
        on: Instructions,
        setup: &Self::Setup<T>,
        scratch: &mut Self::Scratch<T>,
        stored: Stored<'_>,
        sum: &mut Self::Sum,
        left_out: &mut Vec<usize>,
    );

    /// Works through those samples that have missing cells, by their places among `stored`. What cannot be worked on is left out, as
    /// above.
    fn add_partial<T: Real>(
        &self,
        _on: Instructions,
        _setup: &Self::Setup<T>,
        _scratch: &mut Self::Scratch<T>,
        _stored: Stored<'_>,
        holes: &[usize],
        _sum: &mut Self::Sum,
        left_out: &mut Vec<usize>,
    ) {
        left_out.extend(holes);
    }

    /// Brings what is left in the scratch space to the sum.
    fn finish<T: Real>(
        &self,
        _on: Instructions,
        _setup: &Self::Setup<T>,
        _scratch: &mut Self::Scratch<T>,
        _sum: &mut Self::Sum,
    ) {
    }

    fn merge(&self, sum: &mut Self::Sum, following: &Self::Sum);

    /// The memory one sum takes, roughly.
    fn sum_bytes(&self) -> usize;

    /// The samples that are summed up before their sum is added to others, about, at least.
    fn least(&self) -> usize {
        RUN_LEAST
    }
}

/// Whether numbers of type `T` have room for squares of this size, and digits left below them.
pub(super) fn has_room_for<T: Real>(mean_square: f64) -> bool {
    let is_single = T::EPSILON > f64::EPSILON;
    mean_square.is_finite() && (!is_single || mean_square == 0.0 || SINGLE_RANGE.contains(&mean_square))
}

/// The sum over all samples, in double precision or, as far as it goes, in single.
pub(super) fn sum<W: Work>(
    samples: &Samples<'_>,
    on: Instructions,
    double: bool,
    work: &W,
) -> Result<W::Sum> {
    walk::sum(samples, &Both::new(samples, on, double, work))
}

/// The same with the sum of every chunk handed to `take`, in order.
pub(super) fn fold<W: Work>(
    samples: &Samples<'_>,
    on: Instructions,
    double: bool,
    work: &W,
    take: impl FnMut(W::Sum) + Send,
) -> Result<()> {
    walk::fold(samples, &Both::new(samples, on, double, work), take)
}

struct Both<'a, W: Work> {
    samples: &'a Samples<'a>,
    on: Instructions,
    work: &'a W,
    single: Option<W::Setup<f32>>,
    double: OnceLock<W::Setup<f64>>,
}

struct Scratches<W: Work> {
    single: Option<W::Scratch<f32>>,
    double: Option<W::Scratch<f64>>,
    left_out: Vec<usize>,
}

impl<'a, W: Work> Both<'a, W> {
    fn new(samples: &'a Samples<'a>, on: Instructions, double: bool, work: &'a W) -> Self {
        // Plain code is compiled for double precision only: machines without vectors are rare, and kernels long.
        let double = double || on == Instructions::Portable;
        let single = (!double).then(|| work.setup());
        let ready = OnceLock::new();
        if double {
            let _ = ready.set(work.setup());
        }
        Self { samples, on, work, single, double: ready }
    }

    /// The setup in double precision, made when it is first needed. It is made outside the lock: whoever makes it works in parallel and
    /// may be given another run to do meanwhile, which would wait for itself. Two that make it make the same.
    fn setup(&self) -> &W::Setup<f64> {
        if let Some(setup) = self.double.get() {
            return setup;
        }
        let made = self.work.setup();
        self.double.get_or_init(|| made)
    }

    fn in_double(
        &self,
        scratch: &mut Option<W::Scratch<f64>>,
        stored: Stored<'_>,
        holes: &[usize],
        sum: &mut W::Sum,
        left_out: &mut Vec<usize>,
    ) {
        let setup = self.setup();
        let scratch = scratch.get_or_insert_with(|| self.work.scratch(setup));
        self.work_on(setup, scratch, stored, holes, sum, left_out);
    }

    /// Samples that are complete, then those with holes.
    fn work_on<T: Real>(
        &self,
        setup: &W::Setup<T>,
        scratch: &mut W::Scratch<T>,
        stored: Stored<'_>,
        holes: &[usize],
        sum: &mut W::Sum,
        left_out: &mut Vec<usize>,
    ) {
        if holes.is_empty() {
            return self.work.add(self.on, setup, scratch, stored, sum, left_out);
        }
        let is_complete = |n: &usize| holes.binary_search(n).is_err();
        let complete: Vec<usize> = (0..stored.count()).filter(is_complete).collect();
        if !complete.is_empty() {
            self.work.add(self.on, setup, scratch, stored.choosing(&complete), sum, left_out);
        }
        self.work.add_partial(self.on, setup, scratch, stored, holes, sum, left_out);
    }
}

impl<W: Work> Job for Both<'_, W> {
    type Scratch = Scratches<W>;
    type Sum = W::Sum;

    fn scratch(&self) -> Scratches<W> {
        let single = self.single.as_ref().map(|setup| self.work.scratch(setup));
        Scratches { single, double: None, left_out: Vec::new() }
    }

    fn zero(&self) -> W::Sum {
        self.work.zero()
    }

    fn add(
        &self,
        scratch: &mut Scratches<W>,
        range: Range<usize>,
        chunk: Chunk<'_>,
        sum: &mut W::Sum,
    ) -> Result<()> {
        let Scratches { single, double, left_out } = scratch;
        let stored = Stored::new(self.samples, range, chunk);
        let holes = match self.samples.missing() {
            Missing::Error => Vec::new(),
            Missing::Nan => samples_with_nan(chunk, stored.sample_len),
        };
        if !W::PARTIAL && !holes.is_empty() {
            return Err(needs_noise());
        }
        left_out.clear();
        match (&self.single, single) {
            (Some(setup), Some(scratch)) => self.work_on(setup, scratch, stored, &holes, sum, left_out),
            _ => self.in_double(double, stored, &holes, sum, left_out),
        }
        for n in std::mem::take(left_out) {
            self.samples.check_finite(stored.first + n..stored.first + n + 1)?;
            let mut once_more = Vec::new();
            if self.single.is_some() {
                let holes: &[usize] = if holes.binary_search(&n).is_ok() { &[0] } else { &[] };
                self.in_double(double, stored.only(n), holes, sum, &mut once_more);
            }
            if self.single.is_none() || !once_more.is_empty() {
                return Err(Error::Overflow { sample: stored.first + n });
            }
        }
        Ok(())
    }

    fn finish(&self, scratch: &mut Scratches<W>, sum: &mut W::Sum) {
        if let (Some(setup), Some(scratch)) = (&self.single, &mut scratch.single) {
            self.work.finish(self.on, setup, scratch, sum);
        }
        if let (Some(setup), Some(scratch)) = (self.double.get(), &mut scratch.double) {
            self.work.finish(self.on, setup, scratch, sum);
        }
    }

    fn merge(&self, sum: &mut W::Sum, following: &W::Sum) {
        self.work.merge(sum, following);
    }

    fn sum_bytes(&self) -> usize {
        self.work.sum_bytes()
    }

    fn least(&self) -> usize {
        self.work.least()
    }
}
