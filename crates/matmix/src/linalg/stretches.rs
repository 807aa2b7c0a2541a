//! Work on the stretches of a slice, side by side.
//!
//! The one place of this folder that names the thread pool, and not generic: parallel iterators are much code to compile.

use rayon::prelude::*;

/// Calls `work` with the number of each stretch of `len` elements and the stretch itself.
///
/// Where the stretches end may depend on the sizes of a problem, never on the number of threads: then neither do the bits.
pub(super) fn over_stretches(data: &mut [f64], len: usize, work: &(dyn Fn(usize, &mut [f64]) + Sync)) {
    if data.len() <= len {
        work(0, data);
    } else {
        data.par_chunks_mut(len).enumerate().for_each(|(number, stretch)| work(number, stretch));
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::on_threads;
    use super::*;

    #[test]
    fn every_stretch_is_worked_on_once_and_knows_its_number() {
        let run = || {
            let mut data = vec![0.0; 103];
            over_stretches(&mut data, 10, &|number, stretch| {
                assert_eq!(stretch.len(), if number == 10 { 3 } else { 10 });
                stretch.iter_mut().for_each(|x| *x += 1.0 + number as f64);
            });
            data
        };
        for data in on_threads(run) {
            assert!(data.iter().enumerate().all(|(i, &x)| x == 1.0 + (i / 10) as f64));
        }
        let mut short = vec![0.0; 3];
        over_stretches(&mut short, 10, &|_, stretch| stretch.fill(2.0));
        assert_eq!(short, [2.0; 3]);
    }
}
