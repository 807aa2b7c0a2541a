//! Fewer passes: guesses where the iterations are heading.
//!
//! An iteration is a map F of models. SQUAREM looks at x, F(x) and F(F(x)) and goes on from where a line through them
//! leads instead of from F(F(x)). A guess is kept if its likelihood is not below that of F(x), which is known: the evaluation
//! of a guess is the first pass of the next iteration, so that only a refused one costs anything. docs/performance.md
//! has what it saves, and what else was tried.
//!
//! | file | what |
//! |---|---|
//! | `coordinates` | a mixture as a vector that may be extrapolated, and back |
//!
//! Not part of the interface: public for `examples/acceleration/`, which compares it with what else was tried.

mod coordinates;

pub use coordinates::{MixtureSpace, aligned, coordinates, metric, model_at};

use super::steps::Extrapolation;

/// No guesses until an iteration gains less than this for every number of a sample, in nats: before that, samples are
/// still looking for their component, and a long step can take them to another one.
pub const LATE: f64 = 3e-5;

/// How much longer or shorter the longest step becomes.
const FACTOR: f64 = 4.0;

/// SQUAREM with step length S3 (Varadhan and Roland 2008), its longest step adapted as in their program.
#[derive(Debug, Clone, PartialEq)]
pub struct Squarem {
    /// x, while F(x) is where the next iteration begins.
    start: Option<Vec<f64>>,
    longest: f64,
    at_longest: bool,
}

impl Default for Squarem {
    fn default() -> Self {
        Self { start: None, longest: FACTOR, at_longest: false }
    }
}

impl Squarem {
    /// Told of every iteration: where it began, where it led, and what a change of each coordinate is worth. Every
    /// other one is the time for a guess.
    pub fn guess(&mut self, x: &[f64], image: &[f64], metric: &[f64]) -> Option<Vec<f64>> {
        let Some(start) = self.start.take() else {
            self.start = Some(x.to_vec());
            return None;
        };
        let (mut step_length, mut turn_length) = (0.0, 0.0);
        for i in 0..x.len() {
            let step = x[i] - start[i];
            let turn = (image[i] - x[i]) - step;
            step_length += metric[i] * step * step;
            turn_length += metric[i] * turn * turn;
        }
        let a = f64::sqrt(step_length / turn_length).clamp(1.0, self.longest);
        self.at_longest = a == self.longest;
        if self.at_longest && a == 1.0 {
            self.longest = FACTOR;
        }
        let guess = |i: usize| {
            let step = x[i] - start[i];
            start[i] + 2.0 * a * step + a * a * ((image[i] - x[i]) - step)
        };
        // With a = 1 the guess is F(F(x)) itself.
        (a.is_finite() && a > 1.0).then(|| (0..x.len()).map(guess).collect())
    }

    /// Whether the last guess was kept.
    pub fn kept(&mut self, kept: bool) {
        if !kept {
            self.longest = (self.longest / FACTOR).max(1.0);
        } else if self.at_longest {
            // A number that can be written down, whatever happens.
            self.longest = (self.longest * FACTOR).min(f64::MAX);
        }
    }

    /// Forgets the iterates so far.
    pub fn restart(&mut self) {
        self.start = None;
    }
}

/// What a fit remembers between iterations to make guesses.
#[derive(Debug, Default)]
pub(super) struct Accelerator {
    squarem: Squarem,
    /// The model as it lies to the one before, while SQUAREM remembers that.
    at: Option<Vec<f64>>,
}

/// The part of an accelerator that changes: its longest step, and the iterate before last and the last, if it has them.
pub(super) type Remembered = (f64, Option<[Vec<f64>; 2]>);

impl Accelerator {
    /// A guess after the iteration that led from `model` to `next`, if it is time for one.
    pub(super) fn guess<M>(&mut self, space: &dyn Extrapolation<M>, model: &M, next: &M) -> Option<M> {
        let x = self.at.take().unwrap_or_else(|| space.coordinates(model));
        let image = space.aligned(next, &x);
        let guess = self.squarem.guess(&x, &image, &space.metric(next));
        if self.squarem.start.is_some() {
            self.at = Some(image);
        }
        let guess = space.at(next, &guess?);
        if guess.is_none() {
            self.kept(false);
        }
        guess
    }

    pub(super) fn kept(&mut self, kept: bool) {
        self.squarem.kept(kept);
    }

    /// Forgets the iterates so far: what comes next does not follow from them.
    pub(super) fn restart(&mut self) {
        self.squarem.restart();
        self.at = None;
    }

    pub(super) fn remembered(&self) -> Remembered {
        let pair = self.squarem.start.clone().zip(self.at.clone()).map(|(start, at)| [start, at]);
        (self.squarem.longest, pair)
    }

    pub(super) fn from_remembered((longest, pair): Remembered) -> Self {
        let (start, at) = pair.map(|[start, at]| (start, at)).unzip();
        Self { squarem: Squarem { start, longest, at_longest: false }, at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Matrix;
    use crate::model::{Component, Mixture};

    fn model(turn: f64) -> Mixture {
        let number = |i: usize| ((i as f64 + 1.0) * 0.618_033_989).fract() - 0.5;
        let (sin, cos) = f64::sin_cos(turn);
        let rotation = Matrix::from_vec(2, 2, vec![cos, -sin, sin, cos]);
        let part = |k: usize| {
            let loadings = [4, 3].map(|p| Matrix::from_fn(p, 2, |i, j| number(7 * k + 3 * i + j)));
            let mean: Vec<f64> = (0..12).map(|i| number(i + k)).collect();
            let part = Component::new(&[4, 3], mean, loadings.to_vec(), 0.1 + 0.1 * k as f64).unwrap();
            let turned = part.loadings().iter().map(|u| u.times(&rotation)).collect();
            part.with_loadings(turned).checked(&[4, 3]).unwrap()
        };
        Mixture::new(&[4, 3], vec![0.25, 0.75], vec![part(0), part(1)]).unwrap()
    }

    #[test]
    fn a_model_and_its_coordinates_are_the_same() {
        let model = model(0.0);
        let back = model_at(&model, &coordinates(&model, 1.0), (0.0, 1.0, 0.5)).unwrap();
        for (a, b) in coordinates(&back, 1.0).iter().zip(&aligned(&model, &coordinates(&back, 1.0), 1.0)) {
            assert!((a - b).abs() < 1e-12, "{a} {b}");
        }
        assert_eq!(metric(&model).len(), coordinates(&model, 1.0).len());
        let floored = model_at(&model, &coordinates(&model, 1.0), (0.15, 1.0, 0.5)).unwrap();
        assert_eq!(floored.components()[0].noise_variance(), 0.15);
        // Above the floor noise that did not move keeps its bits.
        assert_eq!(floored.components()[1].noise_variance(), model.components()[1].noise_variance());
    }

    #[test]
    fn loadings_that_were_only_turned_are_turned_back() {
        let (model, turned) = (model(0.0), model(0.7));
        let x = coordinates(&model, 1.0);
        assert!(coordinates(&turned, 1.0).iter().zip(&x).any(|(a, b)| (a - b).abs() > 0.1));
        assert!(aligned(&turned, &x, 1.0).iter().zip(&x).all(|(a, b)| (a - b).abs() < 1e-12));
    }

    /// F(x) = x + c (x* − x): its iterates lie on a line, and the guess is the end of it.
    #[test]
    fn a_straight_line_is_followed_to_its_end() {
        let end = [3.0, -1.0, 0.5];
        let rates = [0.4; 3];
        let next = |x: &[f64]| -> Vec<f64> { (0..3).map(|i| x[i] + rates[i] * (end[i] - x[i])).collect() };
        let mut squarem = Squarem::default();
        let x0 = vec![0.0; 3];
        let x1 = next(&x0);
        assert_eq!(squarem.guess(&x0, &x1, &[1.0; 3]), None);
        let guess = squarem.guess(&x1, &next(&x1), &[1.0; 3]).unwrap();
        assert!(guess.iter().zip(end).all(|(g, e)| (g - e).abs() < 1e-12), "{guess:?}");
    }

    #[test]
    fn steps_become_shorter_when_refused_and_longer_when_not_long_enough() {
        let mut squarem = Squarem::default();
        let mut guess = |kept: bool| {
            // A step of 1, then one of 0.99: the end is 100 steps away.
            squarem.guess(&[0.0], &[1.0], &[1.0]);
            let guess = squarem.guess(&[1.0], &[1.99], &[1.0]);
            if guess.is_some() {
                squarem.kept(kept);
            }
            guess.map(|g| g[0].round())
        };
        let far = |a: f64| Some((2.0 * a - 0.01 * a * a).round());
        assert_eq!(
            [guess(true), guess(true), guess(false), guess(false)],
            [far(4.0), far(16.0), far(64.0), far(16.0)]
        );
        assert_eq!([guess(false), guess(true)], [far(4.0), None]);
        // A refused step of the least length is forgiven, or there would never be another.
        assert_eq!(guess(true), far(4.0));
    }
}
