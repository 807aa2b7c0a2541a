//! The accelerators: each guesses from a few iterates where they are heading.

use matmix::fit::accelerate::Squarem;
use matmix::linalg::{Matrix, solve_symmetric_right};

/// x, F(x) and where to go instead of F(x).
pub(crate) trait Accelerator {
    /// A guess from the iterates so far, if it is time for one.
    fn guess(&mut self, x: &[f64], image: &[f64], metric: &[f64]) -> Option<Vec<f64>>;
    /// Whether the last guess was kept.
    fn kept(&mut self, kept: bool);
    /// Forgets the iterates so far.
    fn restart(&mut self);
}

/// No guesses.
pub(crate) struct Plain;

impl Accelerator for Plain {
    fn guess(&mut self, _: &[f64], _: &[f64], _: &[f64]) -> Option<Vec<f64>> {
        None
    }
    fn kept(&mut self, _: bool) {}
    fn restart(&mut self) {}
}

/// x + η (F(x) − x) with η that grows until it was too much (Salakhutdinov and Roweis 2003), or to a limit: below 2,
/// a step near the optimum cannot overshoot.
pub(crate) struct Overrelaxed {
    factor: f64,
    limit: f64,
}

impl Overrelaxed {
    pub(crate) fn up_to(limit: f64) -> Self {
        Self { factor: 1.0, limit }
    }
}

impl Accelerator for Overrelaxed {
    fn guess(&mut self, x: &[f64], image: &[f64], _: &[f64]) -> Option<Vec<f64>> {
        if self.factor == 1.0 {
            self.factor = 1.1;
            return None;
        }
        Some(x.iter().zip(image).map(|(x, f)| x + self.factor * (f - x)).collect())
    }
    fn kept(&mut self, kept: bool) {
        self.factor = if kept { (1.1 * self.factor).min(self.limit) } else { 1.0 };
    }
    fn restart(&mut self) {
        self.factor = 1.0;
    }
}

/// The library's own.
impl Accelerator for Squarem {
    fn guess(&mut self, x: &[f64], image: &[f64], metric: &[f64]) -> Option<Vec<f64>> {
        self.guess(x, image, metric)
    }
    fn kept(&mut self, kept: bool) {
        self.kept(kept);
    }
    fn restart(&mut self) {
        self.restart();
    }
}

/// Anderson mixing: the combination of the last iterates whose step is the shortest, and F's step from there.
pub(crate) struct Anderson {
    depth: usize,
    last: Option<(Vec<f64>, Vec<f64>)>,
    /// Differences of steps and of images.
    differences: Vec<(Vec<f64>, Vec<f64>)>,
}

impl Anderson {
    pub(crate) fn new(depth: usize) -> Self {
        Self { depth, last: None, differences: Vec::new() }
    }
}

impl Accelerator for Anderson {
    fn guess(&mut self, x: &[f64], image: &[f64], metric: &[f64]) -> Option<Vec<f64>> {
        let step = difference(image, x);
        if let Some((last_step, last_image)) = self.last.replace((step.clone(), image.to_vec())) {
            self.differences.push((difference(&step, &last_step), difference(image, &last_image)));
        }
        if self.differences.len() > self.depth {
            self.differences.remove(0);
        }
        let count = self.differences.len();
        let gram = |i: usize, j: usize| inner(metric, &self.differences[i].0, &self.differences[j].0);
        let mut normal = Matrix::from_fn(count, count, gram);
        let ridge = 1e-10 * normal.trace();
        (0..count).for_each(|i| normal[(i, i)] += ridge);
        let right = Matrix::from_fn(1, count, |_, j| inner(metric, &self.differences[j].0, &step));
        let gamma = (count > 0).then(|| solve_symmetric_right(&right, &normal)).flatten()?;
        let mut guess = image.to_vec();
        for (j, (_, images)) in self.differences.iter().enumerate() {
            guess.iter_mut().zip(images).for_each(|(g, d)| *g -= gamma[(0, j)] * d);
        }
        Some(guess)
    }
    fn kept(&mut self, kept: bool) {
        if !kept {
            self.restart();
        }
    }
    fn restart(&mut self) {
        self.last = None;
        self.differences.clear();
    }
}

fn inner(metric: &[f64], a: &[f64], b: &[f64]) -> f64 {
    metric.iter().zip(a).zip(b).map(|((m, a), b)| m * a * b).sum()
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}
