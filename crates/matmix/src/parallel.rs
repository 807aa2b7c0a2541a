//! Work on the threads of the pool this is called from.
//!
//! The only place that asks rayon for anything: its iterators are compiled anew for every closure they are given, and
//! used everywhere they were a fifth of the library. Here they are compiled once.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

/// Runs `work(0)` … `work(count − 1)`, in no particular order.
pub(crate) fn each(count: usize, work: &(dyn Fn(usize) + Sync)) {
    if count <= 1 || threads() == 1 {
        (0..count).for_each(work);
    } else {
        (0..count).into_par_iter().with_max_len(1).for_each(work);
    }
}

/// `work(0)` … `work(count − 1)`, in that order.
pub(crate) fn map<R: Send>(count: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let slots: Vec<Mutex<Option<R>>> = (0..count).map(|_| Mutex::new(None)).collect();
    each(count, &|i| {
        let result = work(i);
        *slots[i].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    });
    slots.into_iter().filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// The same on this thread if all of it together takes so few operations that handing it to others would take longer.
pub(crate) fn map_if_large<R: Send>(
    count: usize,
    operations: usize,
    work: impl Fn(usize) -> R + Sync,
) -> Vec<R> {
    /// A thread that sleeps takes some ten microseconds to wake.
    const LARGE: usize = 1 << 18;
    if operations < LARGE { (0..count).map(work).collect() } else { map(count, work) }
}

/// Runs `work` on consecutive stretches of `out`, each with the number of its first element.
pub(crate) fn stretches<T: Send>(out: &mut [T], length: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    let slots: Vec<Mutex<&mut [T]>> = out.chunks_mut(length.max(1)).map(Mutex::new).collect();
    each(slots.len(), &|i| {
        let mut stretch = slots[i].lock().unwrap_or_else(PoisonError::into_inner);
        work(i * length, &mut stretch);
    });
}

/// How many threads there are.
pub(crate) fn threads() -> usize {
    rayon::current_num_threads()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_stretches_cover_all() {
        assert_eq!(map(100, |i| i * i), (0..100).map(|i| i * i).collect::<Vec<_>>());
        assert_eq!(map_if_large(3, 1, |i| i), [0, 1, 2]);
        let mut out = vec![0; 103];
        stretches(&mut out, 10, |first, part| part.iter_mut().enumerate().for_each(|(i, x)| *x = first + i));
        assert_eq!(out, (0..103).collect::<Vec<_>>());
        stretches(&mut [0; 0], 0, |_, _| unreachable!());
    }
}
