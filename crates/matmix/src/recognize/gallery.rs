//! Known samples by what a model says about them: all that is needed to find the nearest, wherever new samples are.

use super::fisher::Fisher;
use super::search::Index;
use super::{Distance, Neighbour, check_classes, check_count};
use crate::cpu::Cpu;
use crate::error::{Counted, Error, Result};
use crate::model::Model;
use crate::parallel;
use crate::pass::{Content, Engine, Reader, Writer};

/// The largest gallery whose discriminant is learned without being asked for.
const LEARNED: usize = 1 << 12;

/// The cores and responsibilities of known samples with their classes: a [`Recognizer`](super::Recognizer) without its model.
///
/// Whoever asks the model about new samples elsewhere ([`AskPass`](crate::pass::AskPass)) finds the nearest by its answers. As bytes it
/// can travel to where they are; nothing is learned again there.
///
/// ```
/// use matmix::{CoreGallery, Distance, LowRank, Matrix};
///
/// // Two samples under one component with cores of two numbers.
/// let model = LowRank::new(&[2], vec![0.0; 2], vec![Matrix::identity(2, 2)])?.into();
/// let (cores, responsibilities) = (vec![3.0, 4.0, 0.0, 1.0], vec![1.0, 1.0]);
/// let known = CoreGallery::new(&model, cores, responsibilities, &[7, 8], Distance::Paper)?;
/// let there = CoreGallery::from_bytes(&known.to_bytes())?;
/// let found = there.neighbours(vec![0.0, 0.0], vec![1.0], 2)?;
/// let [near, far] = [0, 1].map(|i| (found[0][i].class, found[0][i].distance));
/// assert_eq!((near, far), ((8, 1.0), (7, 5.0)));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct CoreGallery {
    distance: Distance,
    /// How many responsibilities and numbers in all cores a new sample has.
    sides: [usize; 2],
    /// The compared values: cores after `transform`.
    features: Features,
    index: Index,
    classes: Vec<usize>,
    transform: Transform,
}

/// The transformation of a sample's cores before comparison, once for each sample.
#[derive(Debug, Clone)]
enum Transform {
    /// Nothing.
    None,
    /// Every latent value of all components times its standard deviation in the data.
    Scale(Vec<f64>),
    /// The discriminant.
    Fisher(Fisher),
}

impl CoreGallery {
    /// Learns a gallery from the cores of its samples under all components of a model, N × K·ρ, their responsibilities, N × K, and one
    /// class (a number from 0) per sample. A low-rank model is one component, whose responsibilities are 1.
    ///
    /// # Errors
    /// If these do not fit each other or the model, there are too many classes, or `Fisher` is the distance and cannot be learned.
    pub fn new(
        model: &Model,
        cores: Vec<f64>,
        responsibilities: Vec<f64>,
        classes: &[usize],
        distance: Distance,
    ) -> Result<Self> {
        check_classes(classes)?;
        let features = Features::new(cores, responsibilities, model.n_components(), model.core_len())?;
        if classes.is_empty() || classes.len() != features.n {
            return Err(Error::Count {
                what: Counted::Labels,
                expected: features.n.max(1),
                found: classes.len(),
            });
        }
        Self::of(model, features, classes, distance)
    }

    /// The same from features; one class per sample.
    pub(super) fn of(
        model: &Model,
        features: Features,
        classes: &[usize],
        distance: Distance,
    ) -> Result<Self> {
        let sides = [features.components, features.components * features.core_len];
        let learn = || Fisher::learn(&features.cores, features.n, classes);
        let fisher = match distance {
            Distance::Fisher => Some(learn()?),
            // Whatever keeps it from being learned is no mistake of somebody who has not asked for it.
            Distance::Auto if several_of_each(classes) && classes.len() <= LEARNED => learn().ok(),
            _ => None,
        };
        let (distance, transform) = match (distance, fisher) {
            (_, Some(fisher)) => (Distance::Fisher, Transform::Fisher(fisher)),
            (Distance::Auto | Distance::Data, None) => {
                (Distance::Data, Transform::Scale(standard_deviations(model)))
            }
            (distance, None) => (distance, Transform::None),
        };
        let features = transform.apply(features);
        let index = Index::new(&features, distance);
        Ok(Self { distance, sides, features, index, classes: classes.to_vec(), transform })
    }

    /// What samples are compared by: never `Auto`, but what that came to.
    pub fn distance(&self) -> Distance {
        self.distance
    }

    /// How many samples are known.
    pub fn len(&self) -> usize {
        self.features.n
    }

    /// Whether there are none, which there never are.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn classes(&self) -> &[usize] {
        &self.classes
    }

    /// The `count` nearest known samples for every probe, by its cores, N × K·ρ, and responsibilities, N × K; nearest first.
    ///
    /// # Errors
    /// If `count` is zero or larger than the gallery, or the probes are of another model.
    pub fn neighbours(
        &self,
        cores: Vec<f64>,
        responsibilities: Vec<f64>,
        count: usize,
    ) -> Result<Vec<Vec<Neighbour>>> {
        check_count(count, self.len())?;
        let [components, len] = self.sides;
        Ok(self.nearest(Features::new(cores, responsibilities, components, len / components)?, count))
    }

    /// The same for features of the gallery's own model, and a count that was checked.
    pub(super) fn nearest(&self, probes: Features, count: usize) -> Vec<Vec<Neighbour>> {
        let probes = self.transform.apply(probes);
        let exact = |n, m| plain_distance(&probes, n, &self.features, m, self.distance);
        let found = self.index.nearest(&probes, self.distance, count, Cpu::best(), exact);
        let neighbour = |(distance, index)| Neighbour { index, class: self.classes[index], distance };
        found.into_iter().map(|nearest| nearest.into_iter().map(neighbour).collect()).collect()
    }

    /// The gallery as bytes, versioned and with a checksum.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = Writer::new(Content::Gallery, u8::from(matches!(self.transform, Transform::Fisher(_))));
        to.name(self.distance.name());
        to.sizes(&self.sides);
        to.sizes(&self.classes);
        to.size(self.features.components);
        to.reals(&self.features.cores);
        to.reals(&self.features.gamma);
        match &self.transform {
            Transform::None => {}
            Transform::Scale(factors) => to.reals(factors),
            Transform::Fisher(fisher) => fisher.write(&mut to),
        }
        to.finish()
    }

    /// The way back.
    ///
    /// # Errors
    /// If they are not the bytes of a gallery, or of one that another version has written.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (learned, mut from) = Reader::open(Content::Gallery, bytes)?;
        let distance = from.name()?.parse().map_err(|e: Error| from.wrong(e.to_string()))?;
        let sides = from.fixed_sizes()?;
        let (classes, components) = (from.sizes()?, from.size()?);
        let (cores, gamma) = (from.reals()?, from.reals()?);
        let transform = match (learned, distance) {
            (1, _) => Transform::Fisher(Fisher::read(&mut from, sides[1])?),
            (_, Distance::Data) => Transform::Scale(from.reals()?),
            _ => Transform::None,
        };
        let core_len = cores.len() / gamma.len().max(1);
        let features = Features::new(cores, gamma, components, core_len);
        let features = features.map_err(|e| from.wrong(e.to_string()))?;
        let along = match &transform {
            Transform::None => sides[1],
            Transform::Scale(factors) => factors.len(),
            Transform::Fisher(fisher) => fisher.directions(),
        };
        let fits = sides[0] > 0
            && sides[1].is_multiple_of(sides[0])
            && components * core_len == along
            && (learned == 1 || along == sides[1]);
        if !fits || classes.is_empty() || classes.len() != features.n {
            return Err(from.wrong("their lengths do not fit each other"));
        }
        check_classes(&classes).map_err(|e| from.wrong(e.to_string()))?;
        from.finish()?;
        let index = Index::new(&features, distance);
        Ok(Self { distance, sides, features, index, classes, transform })
    }
}

impl Transform {
    fn apply(&self, mut features: Features) -> Features {
        match self {
            Transform::None => {}
            Transform::Scale(factors) => {
                for core in features.cores.chunks_exact_mut(factors.len()) {
                    core.iter_mut().zip(factors).for_each(|(x, factor)| *x *= factor);
                }
            }
            Transform::Fisher(fisher) => return fisher.features(&features),
        }
        features
    }
}

/// The standard deviation that each latent value of each component adds to the data: its core times these is in units of the data.
/// The loadings of a component are orthogonal (its canonical form) and those of a low-rank model orthonormal, so that
/// ‖L (B_a − B_b) Rᵀ‖ is the distance of cores whose entries were multiplied by the lengths of their columns.
fn standard_deviations(model: &Model) -> Vec<f64> {
    match model {
        Model::Mixture(model) => {
            model.components().iter().flat_map(|c| c.core_variances()).map(f64::sqrt).collect()
        }
        Model::LowRank(model) => vec![1.0; model.core_len()],
    }
}

/// The features of a set: all K cores one after the other, and the responsibilities.
#[derive(Debug, Clone)]
pub(super) struct Features {
    pub(super) n: usize,
    pub(super) components: usize,
    pub(super) core_len: usize,
    pub(super) cores: Vec<f64>,
    pub(super) gamma: Vec<f64>,
}

impl Features {
    /// Features of so many components of this length, checked.
    fn new(cores: Vec<f64>, gamma: Vec<f64>, components: usize, core_len: usize) -> Result<Self> {
        let n = gamma.len() / components.max(1);
        if components == 0 || n * components != gamma.len() {
            return Err(Error::DataLength { shape: vec![components], found: gamma.len() });
        }
        if core_len == 0 || gamma.len().checked_mul(core_len) != Some(cores.len()) {
            return Err(Error::DataLength { shape: vec![n, components, core_len], found: cores.len() });
        }
        Ok(Self { n, components, core_len, cores, gamma })
    }

    /// What a model says about samples.
    pub(super) fn of(model: &Model, samples: &dyn Engine) -> Result<Self> {
        match model {
            Model::Mixture(model) => {
                let p = model.project(samples)?;
                Self::new(p.cores, p.responsibilities, model.n_components(), model.core_len())
            }
            Model::LowRank(model) => {
                Self::new(model.transform(samples)?, vec![1.0; samples.len()], 1, model.core_len())
            }
        }
    }

    pub(super) fn row(&self, n: usize) -> &[f64] {
        let len = self.components * self.core_len;
        &self.cores[n * len..(n + 1) * len]
    }
}

/// The distance of probe `n` to sample `m` of the gallery, as its formula says.
pub(super) fn plain_distance(
    probes: &Features,
    n: usize,
    gallery: &Features,
    m: usize,
    distance: Distance,
) -> f64 {
    let (a, b) = (probes.row(n), gallery.row(m));
    if distance == Distance::Fisher {
        // Zeros have no direction and no angle with any other.
        if [a, b].iter().any(|x| x.iter().all(|&x| x == 0.0)) {
            return 1.0;
        }
        // 1 − ⟨a, b⟩ of unit vectors, which rounding would make negative or lose where they are near each other.
        return 0.5 * a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>();
    }
    let k = probes.components;
    let (a_gamma, b_gamma) = (&probes.gamma[n * k..(n + 1) * k], &gallery.gamma[m * k..(m + 1) * k]);
    // Samples of different components have weights so small that their products with distances would vanish, and
    // leave a distance of zero. A factor common to all of them changes nothing else.
    let vanishing =
        distance == Distance::Weighted && a_gamma.iter().zip(b_gamma).all(|(a, b)| a * b < 1e-100);
    let factor = if vanishing { 600f64.exp2() } else { 1.0 };
    let mut sum = 0.0;
    let mut weights = 0.0;
    for j in 0..k {
        let at = j * probes.core_len..(j + 1) * probes.core_len;
        let square: f64 = a[at.clone()].iter().zip(&b[at]).map(|(x, y)| (x - y) * (x - y)).sum();
        let weight = if distance == Distance::Weighted { factor * a_gamma[j] * b_gamma[j] } else { 1.0 };
        sum += weight * square.sqrt();
        weights += weight;
    }
    // Deviation: the footnote's weights are all zero for two samples of different components, which would make
    // them the nearest of all. Dividing by their sum compares like with like, and no common component is far.
    if distance == Distance::Weighted {
        if weights > 0.0 { sum / weights } else { f64::INFINITY }
    } else {
        sum
    }
}

/// Whether there are two or more samples of every class that there is.
fn several_of_each(classes: &[usize]) -> bool {
    let mut sorted = classes.to_vec();
    sorted.sort_unstable();
    sorted.chunk_by(|a, b| a == b).all(|class| class.len() > 1)
}

impl Fisher {
    fn features(&self, of: &Features) -> Features {
        let cores = parallel::map(of.n, |n| self.project(of.row(n))).concat();
        let core_len = cores.len() / of.n.max(1);
        Features { n: of.n, components: 1, core_len, cores, gamma: vec![1.0; of.n] }
    }
}
