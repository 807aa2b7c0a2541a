//! A set in parts that are somewhere else: tasks and sums travel as bytes, and each task is noted.
use std::sync::Mutex;

use matmix::data::Element;
use matmix::pass::{AnySums, SumTree, Task};
use matmix::{Backend, Cpu, Engine, Result, Samples};

pub(crate) struct Parts {
    parts: Vec<(usize, Samples<'static>)>,
    weights: Option<Vec<f64>>,
    len: usize,
    /// Left out of every pass but those that fetch samples; or run twice.
    pub(crate) lost: Option<usize>,
    pub(crate) twice: Option<usize>,
    pub(crate) tasks: Mutex<Vec<&'static str>>,
}

impl Parts {
    /// The samples in parts of these sizes (the last one takes what is left).
    pub(crate) fn new(samples: &Samples<'static>, sizes: &[usize]) -> Self {
        let mut parts = Vec::new();
        let mut first = 0usize;
        for &size in sizes.iter().chain([&usize::MAX]) {
            let end = samples.len().min(first.saturating_add(size));
            if first < end {
                parts.push((first, samples.clone().select(&(first..end).collect::<Vec<_>>()).unwrap()));
            }
            first = end;
        }
        let weights = samples.weights().map(<[f64]>::to_vec);
        Self { parts, weights, len: samples.len(), lost: None, twice: None, tasks: Mutex::default() }
    }

    pub(crate) fn count(&self, kind: &str) -> usize {
        self.tasks.lock().unwrap().iter().filter(|&&k| k == kind).count()
    }
}

impl Engine for Parts {
    fn shape(&self) -> &[usize] {
        self.parts[0].1.shape()
    }

    fn len(&self) -> usize {
        self.len
    }

    fn element(&self) -> Element {
        self.parts[0].1.element()
    }

    fn scale(&self) -> f64 {
        self.parts[0].1.scale()
    }

    fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    fn run(&self, task: &Task) -> Result<AnySums> {
        self.tasks.lock().unwrap().push(task.name());
        let bytes = task.to_bytes();
        let mut tree = SumTree::new();
        for (at, (first, part)) in self.parts.iter().enumerate() {
            let times = match at {
                _ if matches!(task, Task::Rows(_)) => 1,
                at if self.lost == Some(at) => 0,
                at if self.twice == Some(at) => 2,
                _ => 1,
            };
            for _ in 0..times {
                let sums = Task::from_bytes(&bytes)?.run(self.backend(), part, *first)?;
                tree.push(AnySums::from_bytes(&sums.to_bytes())?)?;
            }
        }
        Ok(tree.finish()?.unwrap())
    }
    fn backend(&self) -> &dyn Backend {
        static CPU: std::sync::OnceLock<Cpu> = std::sync::OnceLock::new();
        CPU.get_or_init(Cpu::best)
    }
}
