//! The threads of this process, and of none before it.
//!
//! A fork copies the memory of a process and one of its threads. A pool that was there before has nobody left to work in
//! it, and whoever hands it work waits for ever; rayon's own pool is no exception. So a process that was forked works in
//! pools that it began itself.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use matmix::Error;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The process that this module was loaded in, which rayon's own pool belongs to.
static HOME: AtomicU32 = AtomicU32::new(0);

/// Notes where the module is loaded.
pub(crate) fn begin() {
    HOME.store(std::process::id(), Ordering::Relaxed);
}

fn is_forked() -> bool {
    HOME.load(Ordering::Relaxed) != std::process::id()
}

/// Works where rayon finds threads.
pub(crate) fn with_threads<T: Send>(work: impl FnOnce() -> matmix::Result<T> + Send) -> matmix::Result<T> {
    if is_forked() { pool(None)?.install(work) } else { work() }
}

/// How many threads a fit has to begin for itself: a number where there are none that it could use. A fit has its own
/// because it calls back into Python, which may hand the others work and wait for it.
pub(crate) fn threads(asked: Option<usize>) -> Option<usize> {
    asked.or_else(|| is_forked().then(rayon::current_num_threads))
}

/// By the process that began them and the number of threads; rayon's choice if that was left to it.
type Pools = HashMap<(u32, Option<usize>), Arc<ThreadPool>>;

/// The pool of this process with so many threads. All blocks that are worked on at the same time share it, so that a
/// worker never runs more threads than it has.
pub(crate) fn pool(threads: Option<usize>) -> matmix::Result<Arc<ThreadPool>> {
    let begin = || -> matmix::Result<Arc<ThreadPool>> {
        let pool = ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build();
        Ok(Arc::new(pool.map_err(|error| Error::Engine { problem: error.to_string() })?))
    };
    let Some(mut pools) = pools() else { return begin() };
    let pools = pools.get_or_insert_default();
    let key = (std::process::id(), threads);
    if let Some(pool) = pools.get(&key) {
        return Ok(pool.clone());
    }
    let pool = begin()?;
    pools.insert(key, pool.clone());
    Ok(pool)
}

/// All pools, unless a thread that the fork left behind holds on to them.
fn pools() -> Option<MutexGuard<'static, Option<Pools>>> {
    static POOLS: Mutex<Option<Pools>> = Mutex::new(None);
    for _ in 0..1000 {
        match POOLS.try_lock() {
            Ok(pools) => return Some(pools),
            Err(TryLockError::Poisoned(pools)) => return Some(pools.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    None
}
