//! Any pass, and any sums, as one type: what an engine is handed and what it hands back.

use super::wire::{Content, Reader, Writer};
use super::{
    Answers, AskPass, Backend, DistancesPass, EmPass, EmSums, GroupSums, GroupsPass, MomentSums, MomentsPass,
    Pass, Rows, RowsPass, ScatterPass, ScatterSums, Sums, mismatch,
};
use crate::data::Samples;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::walk::tree::Reduction;

/// The list of passes: their names, types and the numbers they travel under.
macro_rules! passes {
    ($($(#[$doc:meta])* $name:ident($pass:ident) = $kind:literal,)+) => {
        /// One pass over the samples.
        ///
        /// ```
        /// use matmix::pass::{AnySums, MomentsPass, Task};
        /// use matmix::{Cpu, Samples};
        ///
        /// let task = Task::from(MomentsPass { origin: vec![0.0; 2], digest: false });
        /// // Somewhere else, where a part of the samples is:
        /// let arrived = Task::from_bytes(&task.to_bytes())?;
        /// assert_eq!((arrived.name(), &arrived), ("Moments", &task));
        /// let part = Samples::from_vec(&[2], vec![1.0, 2.0, 3.0, 4.0])?;
        /// let AnySums::Moments(sums) = arrived.run(&Cpu::best(), &part, 100)? else { panic!("moments") };
        /// assert_eq!(sums.sum, [4.0, 6.0]);
        /// # Ok::<(), matmix::Error>(())
        /// ```
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Task { $($(#[$doc])* $name($pass),)+ }

        $(impl From<$pass> for Task {
            fn from(pass: $pass) -> Self {
                Task::$name(pass)
            }
        })+

        impl Task {
            /// One flat buffer, the same on every machine.
            pub fn to_bytes(&self) -> Vec<u8> {
                match self { $(Task::$name(pass) => {
                    let mut to = Writer::new(Content::Task, $kind);
                    pass.write(&mut to);
                    to.finish()
                })+ }
            }

            /// The task in a buffer of [`to_bytes`](Self::to_bytes).
            ///
            /// # Errors
            /// Whatever is wrong with the buffer.
            pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
                let (kind, mut from) = Reader::open(Content::Task, bytes)?;
                let task = match kind {
                    $($kind => Task::$name($pass::read(&mut from)?),)+
                    other => return Err(from.unknown_kind(other)),
                };
                from.finish()?;
                Ok(task)
            }

            /// Its name.
            pub fn name(&self) -> &'static str {
                match self { $(Task::$name(_) => stringify!($name),)+ }
            }

            fn check(&self, shape: &[usize]) -> Result<()> {
                match self { $(Task::$name(pass) => pass.check(shape),)+ }
            }
        }
    };
}

passes! {
    /// E-step and the sums that update a model.
    Em(EmPass) = 0,
    /// Sums for mean and variance.
    Moments(MomentsPass) = 1,
    /// Σ w Z Zᵀ of some modes, or Σ w y yᵀ of the flattened cores.
    Scatter(ScatterPass) = 2,
    /// For every sample the nearest centre, and the sums of each centre's samples.
    Groups(GroupsPass) = 3,
    /// Some samples as they are stored.
    Rows(RowsPass) = 4,
    /// The distances of all samples to a few points.
    Distances(DistancesPass) = 5,
    /// What a model says about every sample.
    Ask(AskPass) = 6,
}

/// The list of sums: several passes may give the same.
macro_rules! sums {
    ($($(#[$doc:meta])* $name:ident($sums:ident) = $kind:literal,)+) => {
        /// The sums of a [`Task`] over some of the samples.
        ///
        /// ```
        /// use matmix::pass::{AnySums, EmSums, MomentSums, MomentsPass, Task};
        /// use matmix::{Cpu, Samples};
        ///
        /// let task = Task::from(MomentsPass { origin: vec![0.0; 2], digest: false });
        /// let part = |numbers: &[f64]| task.run(&Cpu::best(), &Samples::from_slice(&[2], numbers)?, 0);
        /// let mut sums = part(&[1.0, 2.0])?;
        /// // Those of another part, as they arrive.
        /// sums.merge(&AnySums::from_bytes(&part(&[3.0, 4.0])?.to_bytes())?)?;
        /// assert!(EmSums::try_from(sums.clone()).is_err());
        /// assert_eq!(MomentSums::try_from(sums)?.sum, [4.0, 6.0]);
        /// # Ok::<(), matmix::Error>(())
        /// ```
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum AnySums { $($(#[$doc])* $name($sums),)+ }

        $(impl From<$sums> for AnySums {
            fn from(sums: $sums) -> Self {
                AnySums::$name(sums)
            }
        }

        impl TryFrom<AnySums> for $sums {
            type Error = Error;

            fn try_from(sums: AnySums) -> Result<Self> {
                match sums {
                    AnySums::$name(sums) => Ok(sums),
                    _ => Err(mismatch("they are of a pass of another kind")),
                }
            }
        })+

        impl AnySums {
            /// How many samples these sums are over.
            pub fn n_samples(&self) -> u64 {
                match self { $(AnySums::$name(sums) => sums.n_samples(),)+ }
            }

            /// Adds the sums of the same task over the samples that follow. The order matters to the last bits, and to
            /// answers; [`SumTree`] fixes it.
            ///
            /// # Errors
            /// If they are those of another task; nothing is added then.
            pub fn merge(&mut self, other: &AnySums) -> Result<()> {
                match (self, other) {
                    $((AnySums::$name(a), AnySums::$name(b)) => a.merge(b),)+
                    _ => Err(mismatch("sums of passes of different kinds cannot be added")),
                }
            }

            /// One flat buffer, the same on every machine.
            pub fn to_bytes(&self) -> Vec<u8> {
                match self { $(AnySums::$name(sums) => {
                    let mut to = Writer::new(Content::Sums, $kind);
                    sums.write(&mut to);
                    to.finish()
                })+ }
            }

            /// The sums in a buffer of [`to_bytes`](Self::to_bytes).
            ///
            /// # Errors
            /// Whatever is wrong with the buffer.
            pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
                let (kind, mut from) = Reader::open(Content::Sums, bytes)?;
                let sums = match kind {
                    $($kind => AnySums::$name($sums::read(&mut from)?),)+
                    other => return Err(from.unknown_kind(other)),
                };
                from.finish()?;
                Ok(sums)
            }
        }
    };
}

sums! {
    /// Of an EM pass.
    Em(EmSums) = 0,
    /// For mean and variance.
    Moments(MomentSums) = 1,
    /// For the eigenvectors of some modes.
    Scatter(ScatterSums) = 2,
    /// Of the samples nearest to each of a few centres.
    Groups(GroupSums) = 3,
    /// Samples that were asked for.
    Rows(Rows) = 4,
    /// Numbers for every sample.
    Answers(Answers) = 5,
}

impl Task {
    /// Runs the pass over `samples`: a part of a larger set, in which its first sample has the number `first`.
    /// Sample numbers in sums and errors are those of the larger set.
    ///
    /// # Errors
    /// A pass that does not fit the samples, and whatever the samples themselves cause.
    pub fn run(&self, backend: &dyn Backend, samples: &Samples<'_>, first: usize) -> Result<AnySums> {
        self.check(samples.shape())?;
        self.check_classes(samples)?;
        let shift = |n: usize| first + n;
        let result: Result<AnySums> = match self {
            Task::Em(pass) => return em(pass, backend, samples, first).map(AnySums::Em),
            Task::Rows(pass) => return pass.run(samples, first).map(AnySums::Rows),
            Task::Moments(pass) => backend.moments(pass, samples, first).map(AnySums::Moments),
            Task::Scatter(pass) => backend.scatter(pass, samples).map(AnySums::Scatter),
            Task::Groups(pass) => backend.groups(pass, samples).map(AnySums::Groups),
            Task::Distances(pass) => backend.distances(pass, samples).map(AnySums::Answers),
            Task::Ask(pass) => {
                let mut all = Answers { width: pass.width(), values: Vec::new() };
                backend
                    .ask(pass, samples, &mut |more| all.values.extend(more.values))
                    .map(|()| AnySums::Answers(all))
            }
        };
        result.map_err(|error| error.renumbered(&shift))
    }

    /// A class that the model does not have would leave a sample without components.
    fn check_classes(&self, samples: &Samples<'_>) -> Result<()> {
        let classes = match self {
            Task::Em(pass) => pass.model.classes(),
            Task::Ask(pass) => match &*pass.model {
                Model::Mixture(model) => model.classes(),
                Model::LowRank(_) => None,
            },
            _ => None,
        };
        let (Some(classes), Some(of_samples)) = (classes, samples.classes()) else { return Ok(()) };
        match of_samples.iter().flatten().find(|&&class| class as usize >= classes.len()) {
            Some(class) => {
                let problem =
                    format!("a sample of class {class} (from 0) for a model of {} classes", classes.len());
                Err(Error::Task { problem })
            }
            None => Ok(()),
        }
    }
}

/// An EM pass over the samples of its stage.
fn em(pass: &EmPass, backend: &dyn Backend, samples: &Samples<'_>, first: usize) -> Result<EmSums> {
    let places = (pass.stage.halvings() > 0).then(|| pass.stage.places(samples, first));
    let number = |n: usize| first + places.as_ref().map_or(n, |places| places[n]);
    let mut sums = match &places {
        Some(places) if places.is_empty() => EmSums::zero(&pass.model, pass.update),
        Some(places) => {
            let chosen = samples.clone().select_part(places)?;
            backend.em(pass, &chosen).map_err(|error| error.renumbered(&number))?
        }
        None => backend.em(pass, samples).map_err(|error| error.renumbered(&number))?,
    };
    sums.renumber(&number);
    Ok(sums)
}

/// Takes the sums of parts in their order and adds them along the one tree, holding no more than one sum per level.
///
/// ```
/// use matmix::pass::{AnySums, MomentsPass, SumTree, Task};
/// use matmix::{Cpu, Samples};
///
/// let task = Task::from(MomentsPass { origin: vec![0.0], digest: false });
/// let mut tree = SumTree::new();
/// for part in 0..20 {
///     let samples = Samples::from_vec(&[1], vec![f64::from(part)])?;
///     tree.push(task.run(&Cpu::best(), &samples, part as usize)?)?;
/// }
/// let Some(AnySums::Moments(sums)) = tree.finish()? else { panic!("sums of twenty parts") };
/// assert_eq!((sums.n_samples, &sums.sum[..]), (20, &[190.0][..]));
/// # Ok::<(), matmix::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct SumTree(Reduction<AnySums>);

impl SumTree {
    /// A tree without sums.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the sums of the next part.
    ///
    /// # Errors
    /// If they are of another task than those before.
    pub fn push(&mut self, sums: AnySums) -> Result<()> {
        self.0.push(sums, &mut AnySums::merge)
    }

    /// The sums of all parts; `None` if there were none.
    ///
    /// # Errors
    /// If some are of another task than others.
    pub fn finish(self) -> Result<Option<AnySums>> {
        self.0.finish(&mut AnySums::merge)
    }
}
