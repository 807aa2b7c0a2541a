//! Drawing new samples from a mixture.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use super::Mixture;

/// Samples drawn from a model, each with the component it came from.
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
    pub fn sample(&self, n: usize, seed: u64) -> Drawn {
        self.draw(n, seed, true)
    }

    /// Draws `n` samples without the noise: what the components can express.
    pub fn sample_noiseless(&self, n: usize, seed: u64) -> Drawn {
        self.draw(n, seed, false)
    }

    fn draw(&self, n: usize, seed: u64, noisy: bool) -> Drawn {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut drawn = Drawn { samples: Vec::with_capacity(n * self.sample_len()), components: vec![] };
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
            let core: Vec<f64> = (0..self.core_len()).map(|_| rng.sample(StandardNormal)).collect();
            let mut x = component.reconstruct(&core);
            let deviation = component.noise_variance().sqrt();
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
