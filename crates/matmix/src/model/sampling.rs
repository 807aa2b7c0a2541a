//! Drawing new samples from a mixture.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Gamma, StandardNormal};

use super::Mixture;
use crate::error::Result;
use crate::memory::Request;

/// Samples drawn from a model, each with the component it came from.
///
/// ```
/// use matmix::{Component, Matrix, Mixture, Samples};
///
/// let around = |mean: f64| Component::new(&[2], vec![mean; 2], vec![Matrix::identity(2, 1)], 0.1);
/// let model = Mixture::new(&[2], vec![1.0, 1.0], vec![around(0.0)?, around(50.0)?])?;
/// let drawn = model.sample(20, 7);
/// assert_eq!((drawn.samples.len(), drawn.components.len()), (40, 20));
/// // Components that far apart are told from one another without a mistake.
/// assert_eq!(model.assign(&Samples::from_vec(&[2], drawn.samples)?)?, drawn.components);
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Drawn {
    /// n × P, sample after sample.
    pub samples: Vec<f64>,
    /// The component of each sample.
    pub components: Vec<usize>,
}

impl Mixture {
    /// Draws `n` samples: a component, a core, noise. The same seed gives the same samples, and the first
    /// samples of a longer draw are those of a shorter one.
    ///
    /// # Panics
    ///
    /// If there is no memory for so many; [`try_sample`](Self::try_sample) asks first.
    pub fn sample(&self, n: usize, seed: u64) -> Drawn {
        let empty = Drawn { samples: Vec::with_capacity(n * self.sample_len()), components: vec![] };
        self.draw(empty, n, &mut ChaCha8Rng::seed_from_u64(seed), true)
    }

    /// The same with a generator of the caller's, which goes on from where it is.
    ///
    /// ```
    /// use matmix::{Component, Matrix, Mixture};
    /// use rand::SeedableRng;
    ///
    /// let component = Component::new(&[2], vec![1.0, 2.0], vec![Matrix::identity(2, 1)], 0.1)?;
    /// let model = Mixture::new(&[2], vec![1.0], vec![component])?;
    /// let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(7);
    /// assert_eq!(model.sample_with(3, &mut rng), model.sample(3, 7));
    /// assert_ne!(model.sample_with(3, &mut rng), model.sample(3, 7));
    /// # Ok::<(), matmix::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As [`sample`](Self::sample) does.
    pub fn sample_with(&self, n: usize, rng: &mut impl Rng) -> Drawn {
        let empty = Drawn { samples: Vec::with_capacity(n * self.sample_len()), components: vec![] };
        self.draw(empty, n, rng, true)
    }

    /// Draws `n` samples without the noise: what the components can express.
    ///
    /// # Panics
    ///
    /// As [`sample`](Self::sample) does.
    pub fn sample_noiseless(&self, n: usize, seed: u64) -> Drawn {
        let empty = Drawn { samples: Vec::with_capacity(n * self.sample_len()), components: vec![] };
        self.draw(empty, n, &mut ChaCha8Rng::seed_from_u64(seed), false)
    }

    /// The same samples with (`noise`) or without noise, or how much memory they would take if there is not that much.
    ///
    /// # Errors
    /// If there is not.
    pub fn try_sample(&self, n: usize, seed: u64, noise: bool) -> Result<Drawn> {
        let request = Request { samples: n, shape: self.shape(), needed: self.drawn_bytes(n) };
        request.check()?;
        let samples = request.reserve(n.saturating_mul(self.sample_len()))?;
        let empty = Drawn { samples, components: request.reserve(n)? };
        Ok(self.draw(empty, n, &mut ChaCha8Rng::seed_from_u64(seed), noise))
    }

    /// How many bytes `n` samples and their components take.
    pub fn drawn_bytes(&self, n: usize) -> u128 {
        let each = self.sample_len() * size_of::<f64>() + size_of::<usize>();
        n as u128 * each as u128
    }

    fn draw(&self, mut drawn: Drawn, n: usize, rng: &mut impl Rng, noisy: bool) -> Drawn {
        for _ in 0..n {
            let at: f64 = rng.random();
            let mut below = 0.0;
            let k = self.weights().iter().position(|w| {
                below += w;
                at < below
            });
            // Rounding can leave the sum of the weights just below 1.
            let k = k.unwrap_or(self.n_components() - 1);
            let component = &self.components()[k];
            // u ~ Gamma(ν/2, rate ν/2); everything about the mean is longer by 1/√u.
            let tail = component.degrees_of_freedom().and_then(|nu| Gamma::new(0.5 * nu, 2.0 / nu).ok());
            let stretch = tail.map(|tail| rng.sample(tail).max(f64::MIN_POSITIVE).powf(-0.5));
            let mut core: Vec<f64> = (0..self.core_len()).map(|_| rng.sample(StandardNormal)).collect();
            if let Some(stretch) = stretch {
                core.iter_mut().for_each(|b| *b *= stretch);
            }
            let mut x = component.reconstruct(&core);
            let deviation = component.noise_variance().sqrt() * stretch.unwrap_or(1.0);
            for x in &mut x {
                // Drawn even when it is not added, so that both draws show the same cores.
                let noise: f64 = rng.sample(StandardNormal);
                if noisy {
                    *x += deviation * noise;
                }
            }
            drawn.samples.extend(x);
            drawn.components.push(k);
        }
        drawn
    }
}
