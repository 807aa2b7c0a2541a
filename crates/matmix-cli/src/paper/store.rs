//! Results on disk, one line each, appended as they come.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::anyhow;
use matmix::Distance;

use super::method::Method;
use crate::error::hinted;
use crate::progress::steps;

const HEAD: &str = "model,k,r,repeat,iterations,seconds,train_error,test_error,\
accuracy_paper,accuracy_data,accuracy_weighted,accuracy_fisher,errors";

/// The distances of recognition, in the order of their columns.
pub(super) const DISTANCES: [Distance; 4] =
    [Distance::Paper, Distance::Data, Distance::Weighted, Distance::Fisher];

/// One cell of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) method: Method,
    pub(super) k: usize,
    pub(super) r: usize,
    pub(super) repeat: usize,
}

/// What came out of it; NaN for what was not asked.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) job: Job,
    pub(super) iterations: usize,
    pub(super) seconds: f64,
    pub(super) train_error: f64,
    pub(super) test_error: f64,
    /// With each of `DISTANCES`.
    pub(super) accuracy: [f64; DISTANCES.len()],
    /// e over the iterations.
    pub(super) errors: Vec<f64>,
}

impl Row {
    fn line(&self) -> String {
        let errors: Vec<String> = self.errors.iter().map(|e| format!("{e:.6}")).collect();
        let j = &self.job;
        let accuracy = self.accuracy.map(|accuracy| format!("{accuracy:.6}"));
        format!(
            "{},{},{},{},{},{:.3},{:.6},{:.6},{},{}\n",
            j.method.key(),
            j.k,
            j.r,
            j.repeat,
            self.iterations,
            self.seconds,
            self.train_error,
            self.test_error,
            accuracy.join(","),
            errors.join(" ")
        )
    }

    fn parse(line: &str) -> Option<Self> {
        let f: Vec<&str> = line.split(',').collect();
        let number = |i: usize| f.get(i)?.parse::<f64>().ok();
        let whole = |i: usize| f.get(i)?.parse::<usize>().ok();
        if f.len() != 9 + DISTANCES.len() {
            return None;
        }
        Some(Self {
            job: Job { method: Method::from_key(f[0])?, k: whole(1)?, r: whole(2)?, repeat: whole(3)? },
            iterations: whole(4)?,
            seconds: number(5)?,
            train_error: number(6)?,
            test_error: number(7)?,
            accuracy: [number(8)?, number(9)?, number(10)?, number(11)?],
            errors: f[12].split_whitespace().map(|e| e.parse().ok()).collect::<Option<_>>()?,
        })
    }
}

/// The results of one experiment.
pub(super) struct Store {
    file: Mutex<File>,
    rows: Mutex<Vec<Row>>,
}

impl Store {
    /// Opens the results in `folder`, or begins them; results of other settings are not mixed with these.
    pub(super) fn open(folder: &Path, settings: &serde_json::Value) -> anyhow::Result<Self> {
        let told = folder.join("settings.json");
        if let Ok(text) = std::fs::read_to_string(&told)
            && serde_json::from_str::<serde_json::Value>(&text).ok().as_ref() != Some(settings)
        {
            let message = format!("{}: it holds results of other data or options", folder.display());
            return Err(hinted(message, "remove that folder or give another one with -o"));
        }
        crate::output::text(&told, &serde_json::to_string_pretty(settings)?)?;
        let path = folder.join("results.csv");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let whole = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
        let rows: Vec<Row> = whole.lines().filter_map(Row::parse).collect();
        // A kill can leave half a line behind, and other versions measured other distances: whole rows are written anew before
        // more are added.
        let kept: String = rows.iter().map(Row::line).collect();
        crate::output::text(&path, &format!("{HEAD}\n{kept}"))?;
        let file = OpenOptions::new().append(true).open(&path)?;
        Ok(Self { file: Mutex::new(file), rows: Mutex::new(rows) })
    }

    /// Does the jobs that are not done yet, several at a time, and returns the rows of all of them in order.
    pub(super) fn run(
        &self,
        jobs: &[Job],
        quiet: bool,
        work: impl Fn(&Job) -> anyhow::Result<Row> + Sync,
    ) -> anyhow::Result<Vec<Row>> {
        let done: Vec<Job> = locked(&self.rows).iter().map(|r| r.job).collect();
        let left: Vec<&Job> = jobs.iter().filter(|j| !done.contains(j)).collect();
        let bar = steps(quiet, jobs.len());
        bar.set_position((jobs.len() - left.len()) as u64);
        // Plain threads that take one job after the other, each fit with a thread of its own: a worker of a pool that
        // waits for another pool would begin the next job in the middle of this one.
        let next = AtomicUsize::new(0);
        let worker = || -> anyhow::Result<()> {
            while let Some(job) = left.get(next.fetch_add(1, Ordering::SeqCst)) {
                bar.set_message(format!("{}, K = {}, r = c = {}", job.method.name(), job.k, job.r));
                let row = work(job)?;
                {
                    let mut file = locked(&self.file);
                    file.write_all(row.line().as_bytes())?;
                    file.flush()?;
                }
                locked(&self.rows).push(row);
                bar.inc(1);
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..rayon::current_num_threads()).map(|_| scope.spawn(worker)).collect();
            let ended =
                workers.into_iter().map(|w| w.join().unwrap_or_else(|_| Err(anyhow!("a worker panicked"))));
            ended.collect::<anyhow::Result<Vec<()>>>()
        })?;
        bar.finish_and_clear();
        let rows = locked(&self.rows);
        Ok(jobs.iter().filter_map(|j| rows.iter().find(|r| r.job == *j).cloned()).collect())
    }
}

/// A worker that panicked has left whole rows behind.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_run_goes_on_and_half_a_line_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let settings = serde_json::json!({"seed": 1});
        let job = |repeat| Job { method: Method::MixB2d, k: 2, r: 4, repeat };
        let row = |job: &Job| Row {
            job: *job,
            iterations: 3,
            seconds: 0.5,
            train_error: 1.0,
            test_error: f64::NAN,
            accuracy: [0.5, 0.75, 0.25, 1.0],
            errors: vec![2.0, 1.0],
        };
        let store = Store::open(folder.path(), &settings).unwrap();
        store.run(&[job(0), job(1)], true, |j| Ok(row(j))).unwrap();
        let path = folder.path().join("results.csv");
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 7]).unwrap();
        let store = Store::open(folder.path(), &settings).unwrap();
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let rows = store
            .run(&[job(0), job(1), job(2)], true, |j| {
                asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                Ok(row(j))
            })
            .unwrap();
        assert_eq!((rows.len(), asked.into_inner()), (3, 2));
        assert!(Store::open(folder.path(), &serde_json::json!({"seed": 2})).is_err());
    }
}
