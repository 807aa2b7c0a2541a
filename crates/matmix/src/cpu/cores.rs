//! Questions to a `LowRank`: cores and the way back, a block of samples at a time.

use pulp::{Simd, WithSimd};

use super::contract::{contract_mode, contract_steps};
use super::load::Stored;
use super::plan::{Step, cheapest_last, steps};
use super::redo::{self, Work, has_room_for};
use super::samples_abreast::{PackedWhole, lanes};
use crate::data::{Element, Samples};
use crate::error::Result;
use crate::linalg::{Matrix, expand, project};
use crate::model::LowRank;
use crate::parallel;
use crate::pass::{Answers, AskPass, Question};
use crate::simd::Aligned;
use crate::simd::{Instructions, Real};

/// Answers the questions of a pass about all samples, a chunk at a time.
pub(super) fn ask(
    pass: &AskPass,
    model: &LowRank,
    samples: &Samples<'_>,
    on: Instructions,
    each: impl FnMut(Answers) + Send,
) -> Result<()> {
    redo::fold(samples, on, samples.element() == Element::F64, &Ask { pass, model }, each)
}

struct Ask<'a> {
    pass: &'a AskPass,
    model: &'a LowRank,
}

impl Work for Ask<'_> {
    const PARTIAL: bool = false;
    type Sum = Answers;
    type Setup<T: Real> = CorePlan<T>;
    type Scratch<T: Real> = CoreBlock<T>;

    fn setup<T: Real>(&self) -> CorePlan<T> {
        CorePlan::new(self.model)
    }

    fn scratch<T: Real>(&self, plan: &CorePlan<T>) -> CoreBlock<T> {
        CoreBlock::new(plan)
    }

    fn zero(&self) -> Answers {
        Answers::none(self.pass.width())
    }

    fn add<T: Real>(
        &self,
        on: Instructions,
        plan: &CorePlan<T>,
        block: &mut CoreBlock<T>,
        stored: Stored<'_>,
        sum: &mut Answers,
        left_out: &mut Vec<usize>,
    ) {
        sum.make_room(stored.place + stored.count());
        on.run::<T, _>(Contract { ask: self, plan, stored, block, sum, left_out });
    }

    fn merge(&self, sum: &mut Answers, following: &Answers) {
        sum.append(following);
    }

    fn sum_bytes(&self) -> usize {
        Answers::chunk_bytes(self.pass.width())
    }
}

/// The samples that cores (N × ρ) stand for, N × P.
pub(super) fn rebuild(model: &LowRank, cores: &[f64], on: Instructions) -> Vec<f64> {
    let plan = CorePlan::<f64>::new(model);
    let (size, rho) = (model.sample_len(), model.core_len());
    let lanes = lanes::<f64>();
    let mut out = vec![0.0; cores.len() / rho * size];
    parallel::stretches(&mut out, lanes * size, |first, out| {
        let mut block = CoreBlock::new(&plan);
        let first = first / size;
        let cores = &cores[first * rho..(first * rho + out.len() / size * rho)];
        for (lane, core) in cores.chunks_exact(rho).enumerate() {
            block.cores.iter_mut().skip(lane).step_by(lanes).zip(core).for_each(|(to, b)| *to = *b);
        }
        on.run::<f64, _>(Expand { plan: &plan, block: &mut block });
        for (i, (row, m)) in block.rebuilt().chunks_exact(lanes).zip(&plan.origin).enumerate() {
            out.iter_mut().skip(i).step_by(size).zip(row).for_each(|(to, x)| *to = x + m);
        }
    });
    out
}

/// The loadings in the working precision and the order in which they are applied.
struct CorePlan<T> {
    /// From samples to cores; modes kept whole are left out.
    down: Vec<Step>,
    /// The same steps undone, last first.
    up: Vec<Step>,
    /// V^(d) and its transpose, row-major.
    loadings: Vec<Vec<T>>,
    transposed: Vec<Vec<T>>,
    /// G: the mean as the working precision has it. It is subtracted from every sample.
    reference: Vec<T>,
    /// The core of M − G, which is not zero where G is rounded.
    core_offset: Vec<f64>,
    /// M − G less what the loadings see of it, plus G: what a core of X − G is rebuilt on.
    origin: Vec<f64>,
}

impl<T: Real> CorePlan<T> {
    fn new(model: &LowRank) -> Self {
        let (shape, rank) = (model.shape(), model.rank());
        // A mode kept whole has the identity as its loadings: nothing to contract.
        let whole = |u: &Matrix| u.rows() == u.cols() && *u == Matrix::identity(u.rows(), u.cols());
        let mut down = steps(shape, rank, cheapest_last(shape, rank));
        down.retain(|s| !whole(&model.loadings()[s.mode]));
        let up = down.iter().rev().map(|s| Step { n: s.cols, cols: s.n, ..*s }).collect();
        let rounded = |u: &Matrix| u.as_slice().iter().map(|&x| T::from_f64(x)).collect();
        let reference: Vec<T> = model.mean().iter().map(|&m| T::from_f64(m)).collect();
        let offset: Vec<f64> = model.mean().iter().zip(&reference).map(|(m, g)| m - g.to_f64()).collect();
        let core_offset = project(&offset, shape, model.loadings(), None);
        let seen = expand(&core_offset, model.loadings());
        Self {
            down,
            up,
            loadings: model.loadings().iter().map(rounded).collect(),
            transposed: model.loadings().iter().map(|u| rounded(&u.transpose())).collect(),
            reference,
            core_offset,
            origin: model.mean().iter().zip(&seen).map(|(m, s)| m - s).collect(),
        }
    }
}

/// The packed samples of a block and what the steps make of them, `[element][lane]`.
struct CoreBlock<T> {
    packed: PackedWhole<T>,
    /// What comes out of each step down but the last.
    partial: Vec<Aligned<T>>,
    cores: Aligned<T>,
    /// What comes out of each step up.
    expanded: Vec<Aligned<T>>,
}

impl<T: Real> CoreBlock<T> {
    fn new(plan: &CorePlan<T>) -> Self {
        let packed = PackedWhole::new(plan.reference.len());
        let zeros = |len: usize| Aligned::new(T::from_f64(0.0), len * packed.lanes);
        let mut partial: Vec<Aligned<T>> = plan.down.iter().map(|s| zeros(s.out_len())).collect();
        let cores = partial.pop().unwrap_or_else(|| zeros(plan.reference.len()));
        let expanded = plan.up.iter().map(|s| zeros(s.out_len())).collect();
        Self { packed, partial, cores, expanded }
    }

    /// X̂ − origin of every lane, after [`expand`](Self::expand).
    fn rebuilt(&self) -> &Aligned<T> {
        self.expanded.last().unwrap_or(&self.cores)
    }

    #[inline(always)]
    fn project<S: Simd>(&mut self, simd: S, plan: &CorePlan<T>) {
        let lanes = self.packed.lanes;
        for (t, step) in plan.down.iter().enumerate() {
            let (done, rest) = self.partial.split_at_mut(t);
            let from = done.last().map_or(self.packed.x(), |x| x);
            let to = rest.first_mut().unwrap_or(&mut self.cores);
            let sides = (step.before, step.n, step.after);
            contract_mode(simd, from, sides, &plan.loadings[step.mode], step.cols, lanes, to);
        }
        if plan.down.is_empty() {
            self.cores.copy_from_slice(self.packed.x());
        }
    }

    #[inline(always)]
    fn expand<S: Simd>(&mut self, simd: S, plan: &CorePlan<T>) {
        let lanes = self.packed.lanes;
        contract_steps(simd, &self.cores, &plan.up, &plan.transposed, lanes, &mut self.expanded);
    }
}

struct Expand<'a, T> {
    plan: &'a CorePlan<T>,
    block: &'a mut CoreBlock<T>,
}

impl<T: Real> WithSimd for Expand<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.block.expand(simd, self.plan);
    }
}

struct Contract<'a, T> {
    ask: &'a Ask<'a>,
    plan: &'a CorePlan<T>,
    stored: Stored<'a>,
    block: &'a mut CoreBlock<T>,
    sum: &'a mut Answers,
    left_out: &'a mut Vec<usize>,
}

impl<T: Real> WithSimd for Contract<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { ask, plan, stored, block, sum, left_out } = self;
        let (size, lanes) = (plan.reference.len(), block.packed.lanes);
        let only_cores = ask.pass.questions.iter().all(|&q| q == Question::Core);
        for of in stored.blocks(lanes) {
            block.packed.fill(simd, &of, &plan.reference);
            block.project(simd, plan);
            if !only_cores {
                block.expand(simd, plan);
            }
            for (lane, n) in of.places().enumerate() {
                if !has_room_for::<T>(block.packed.norms()[lane] / size as f64) {
                    left_out.push(n);
                    continue;
                }
                block.answer(ask, plan, lane, sum.row(stored.place + n));
            }
        }
    }
}

impl<T: Real> CoreBlock<T> {
    /// The answers about the sample of a lane.
    fn answer(&self, ask: &Ask<'_>, plan: &CorePlan<T>, lane: usize, row: &mut [f64]) {
        let lanes = self.packed.lanes;
        let of = |x: &Aligned<T>, i: usize| x[i * lanes + lane].to_f64();
        let rebuilt = self.rebuilt();
        let mut rest = row;
        for question in &ask.pass.questions {
            let (out, left) = rest.split_at_mut(question.width(&ask.pass.model));
            rest = left;
            match question {
                Question::Core => {
                    let offsets = plan.core_offset.iter().enumerate();
                    out.iter_mut().zip(offsets).for_each(|(to, (j, y0))| *to = of(&self.cores, j) - y0);
                }
                Question::Rebuilt => {
                    let origin = plan.origin.iter().enumerate();
                    out.iter_mut().zip(origin).for_each(|(to, (i, m))| *to = of(rebuilt, i) + m);
                }
                // Difference by difference: ‖X − M‖² − ‖B‖² would leave rounding where the model is exact.
                _ => {
                    let x = self.packed.x();
                    let offsets = plan.origin.iter().zip(&plan.reference).map(|(o, g)| o - g.to_f64());
                    let difference = |(i, offset): (usize, f64)| {
                        (x[i * lanes + lane] - rebuilt[i * lanes + lane]).to_f64() - offset
                    };
                    out[0] = offsets.enumerate().map(difference).map(|d| d * d).sum();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Scalar;
    use crate::linalg::svd_thin;

    fn number(i: usize) -> f64 {
        (i as f64 * 0.618_033_988_749_895).fract() - 0.5
    }

    fn model(shape: &[usize], rank: &[usize], far: f64) -> LowRank {
        let size: usize = shape.iter().product();
        let loadings = shape
            .iter()
            .zip(rank)
            .enumerate()
            .map(|(d, (&p, &r))| {
                if p == r {
                    return Matrix::identity(p, p);
                }
                svd_thin(&Matrix::from_fn(p, r, |i, j| number(31 * d + 7 * i * r + j))).unwrap().0
            })
            .collect();
        LowRank::new(shape, (0..size).map(|i| far + number(i + 5)).collect(), loadings).unwrap()
    }

    fn answers(model: &LowRank, samples: &Samples<'_>, question: Question, on: Instructions) -> Vec<f64> {
        let mut found = Vec::new();
        let pass = AskPass::one(model.clone().into(), question);
        ask(&pass, model, samples, on, |x| found.extend(x.values)).unwrap();
        found
    }

    /// Cores, rebuilt samples and squared errors of one sample after the other, by the plain mode products.
    fn plain(model: &LowRank, samples: &Samples<'_>) -> [Vec<f64>; 3] {
        let mut out = [vec![], vec![], vec![]];
        for n in 0..samples.len() {
            let x = samples.to_f64(n..n + 1).unwrap();
            let centred: Vec<f64> = x.iter().zip(model.mean()).map(|(x, m)| x - m).collect();
            let core = project(&centred, model.shape(), model.loadings(), None);
            let rebuilt = model.reconstruct_core(&core);
            out[2].push(x.iter().zip(&rebuilt).map(|(x, y)| (x - y) * (x - y)).sum());
            out[0].extend(core);
            out[1].extend(rebuilt);
        }
        out
    }

    /// On every instruction set, whatever is wanted is what the plain products say, up to `tolerance` times the size
    /// of the numbers.
    fn check<E: Scalar>(model: &LowRank, elements: Vec<E>, scale: f64, tolerance: f64) {
        let samples = Samples::from_vec(model.shape(), elements).unwrap().scaled(scale).unwrap();
        let expected = plain(model, &samples);
        let spread = expected[0].iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let level = model.mean().iter().fold(spread, |m, x| m.max(x.abs()));
        let largest = expected[2].iter().copied().fold(spread * level, f64::max);
        let sizes = [level, level, largest];
        for path in Instructions::available() {
            for (i, wanted) in
                [Question::Core, Question::Rebuilt, Question::SquaredError].into_iter().enumerate()
            {
                let found = answers(model, &samples, wanted, path);
                assert_eq!(found.len(), expected[i].len());
                for (x, y) in found.iter().zip(&expected[i]) {
                    assert!((x - y).abs() <= tolerance * sizes[i], "{path:?} {wanted:?}: {x} instead of {y}");
                }
            }
            let back = rebuild(model, &expected[0], path);
            assert_eq!(back.len(), expected[1].len());
            for (x, y) in back.iter().zip(&expected[1]) {
                assert!((x - y).abs() <= 1e-13 * level, "{path:?} back: {x} instead of {y}");
            }
        }
    }

    #[test]
    fn blocks_equal_one_sample_at_a_time() {
        let shapes: [(&[usize], &[usize]); 6] = [
            (&[9], &[3]),
            (&[6, 5], &[2, 3]),
            (&[6, 5], &[6, 2]),
            (&[6, 5], &[6, 5]),
            (&[4, 3, 5], &[2, 3, 1]),
            (&[40, 70], &[4, 3]),
        ];
        for (shape, rank) in shapes {
            let size: usize = shape.iter().product();
            for n in [1, 63, 150] {
                let x: Vec<f64> = (0..n * size).map(|i| number(3 * i) * 4.0).collect();
                check(&model(shape, rank, 0.0), x.clone(), 1.0, 1e-13);
                check(&model(shape, rank, 0.0), x.iter().map(|&x| x as f32).collect(), 0.5, 2e-6);
                let bytes = (0..n * size).map(|i| (i * 37 % 251) as u8).collect();
                check(&model(shape, rank, 0.5), bytes, 1.0 / 255.0, 2e-6);
            }
        }
    }

    /// A mean that single precision cannot hold, and squares it cannot.
    #[test]
    fn far_large_and_small_numbers_keep_their_digits() {
        let far = model(&[6, 5], &[2, 3], 1000.1);
        let x: Vec<f32> = (0..70 * 30).map(|i| (1000.1 + number(3 * i)) as f32).collect();
        check(&far, x, 1.0, 2e-8);
        for size in [1e-30, 1e25] {
            let small = LowRank::new(&[6, 5], vec![0.0; 30], far.loadings().to_vec()).unwrap();
            let x: Vec<f32> = (0..70 * 30).map(|i| (size * number(3 * i)) as f32).collect();
            check(&small, x, 1.0, 1e-13);
        }
    }

    /// A sample the loadings span has no error, not one of rounded squares.
    #[test]
    fn what_can_be_rebuilt_has_no_error() {
        let model = model(&[8, 7], &[2, 3], 2.0);
        let cores: Vec<f64> = (0..100 * 6).map(|i| 50.0 * number(i)).collect();
        let samples = Samples::from_vec(&[8, 7], rebuild(&model, &cores, Instructions::best())).unwrap();
        let errors = answers(&model, &samples, Question::SquaredError, Instructions::best());
        assert!(errors.iter().all(|&e| e < 1e-24), "{errors:?}");
    }
}
