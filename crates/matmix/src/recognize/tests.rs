//! The search against the plain formula, pair by pair.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use super::Distance;
use super::gallery::{Features, plain_distance};
use super::search::{Index, MANY, Nearest};
use crate::cpu::Cpu;

/// Features around a few centres; γ nearly one-hot.
fn features(seed: u64, n: usize, components: usize, core_len: usize, spread: f64, far: f64) -> Features {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut shared = ChaCha8Rng::seed_from_u64(77);
    let len = components * core_len;
    let centres: Vec<f64> = (0..5 * len).map(|_| shared.sample::<f64, _>(StandardNormal)).collect();
    let (mut cores, mut gamma) = (Vec::new(), Vec::new());
    for i in 0..n {
        let centre = &centres[i % 5 * len..(i % 5 + 1) * len];
        cores.extend(centre.iter().map(|c| far + c + spread * rng.sample::<f64, _>(StandardNormal)));
        let logs: Vec<f64> = (0..components).map(|_| -800.0 * rng.random::<f64>()).collect();
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        gamma.extend(logs.iter().map(|l| (l - top).exp()));
    }
    Features { n, components, core_len, cores, gamma }
}

/// All distances by the plain formula, sorted: the oracle.
fn sorted(probes: &Features, gallery: &Features, distance: Distance, count: usize) -> Vec<Nearest> {
    (0..probes.n)
        .map(|n| {
            let mut all: Nearest =
                (0..gallery.n).map(|m| (plain_distance(probes, n, gallery, m, distance), m)).collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            all.truncate(count);
            all
        })
        .collect()
}

fn check(probes: &Features, gallery: &Features, distance: Distance, name: &str) {
    let index = Index::new(gallery, distance);
    for count in [1, 3, MANY + 10, gallery.n].into_iter().filter(|&c| c <= gallery.n) {
        let expected = sorted(probes, gallery, distance, count);
        for path in Cpu::all() {
            let exact = |n, m| plain_distance(probes, n, gallery, m, distance);
            let found = index.nearest(probes, distance, count, path, exact);
            // Bit by bit: squares that overflow make NaN of the plain formula, too.
            let bits = |of: &[Nearest]| -> Vec<(u64, usize)> {
                of.iter().flatten().map(|(d, m)| (d.to_bits(), *m)).collect()
            };
            assert!(found.iter().all(|nearest| nearest.len() == count));
            assert_eq!(bits(&found), bits(&expected), "{name}, {distance:?}, {count} nearest, {path:?}");
        }
    }
}

fn unit(mut of: Features) -> Features {
    let len = of.components * of.core_len;
    for row in of.cores.chunks_exact_mut(len) {
        let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
        row.iter_mut().for_each(|x| *x /= norm);
    }
    Features { components: 1, core_len: len, gamma: vec![1.0; of.n], ..of }
}

#[test]
fn the_nearest_are_those_of_the_plain_formula() {
    // (gallery, probes, components, elements of a core)
    for (n, m, components, len) in
        [(1, 1, 1, 1), (7, 5, 3, 4), (300, 130, 4, 9), (129, 65, 1, 40), (200, 70, 10, 1)]
    {
        for (spread, far) in [(1.0, 0.0), (1e-4, 0.0), (1.0, 1e7), (1e-9, 1e3), (1e-12, 1.0)] {
            let gallery = features(1, n, components, len, spread, far);
            let probes = features(2, m, components, len, spread, far);
            let name = format!("{n} and {m} of {components}×{len}, spread {spread}, at {far}");
            check(&probes, &gallery, Distance::Paper, &name);
            check(&probes, &gallery, Distance::Data, &name);
            check(&probes, &gallery, Distance::Weighted, &name);
            check(&unit(probes), &unit(gallery), Distance::Fisher, &name);
        }
    }
}

#[test]
fn duplicates_and_equal_distances_keep_the_order_of_the_gallery() {
    let mut gallery = features(3, 200, 2, 3, 1.0, 50.0);
    for n in [150, 20, 199] {
        gallery.cores.copy_within(7 * 6..8 * 6, n * 6);
        gallery.gamma.copy_within(7 * 2..8 * 2, n * 2);
    }
    for distance in [Distance::Paper, Distance::Weighted] {
        check(&gallery, &gallery, distance, "itself");
        let exact = |n, m| plain_distance(&gallery, n, &gallery, m, distance);
        let found = Index::new(&gallery, distance).nearest(&gallery, distance, 4, Cpu::best(), exact);
        let places: Vec<usize> = found[7].iter().map(|f| f.1).collect();
        assert_eq!(places, [7, 20, 150, 199]);
    }
    let same = Features { cores: vec![3.5; 200 * 6], ..gallery.clone() };
    check(&gallery, &same, Distance::Paper, "a gallery of equal features");
    check(&unit(gallery), &unit(same), Distance::Fisher, "a gallery of equal features");
}

/// The bounds do their work: the plain formula is left with a few pairs of many.
#[test]
fn few_pairs_need_the_exact_distance() {
    let (gallery, probes) = (features(6, 2000, 3, 8, 1.0, 100.0), features(7, 100, 3, 8, 1.0, 100.0));
    for distance in [Distance::Paper, Distance::Weighted, Distance::Fisher] {
        let of = |f: &Features| if distance == Distance::Fisher { unit(f.clone()) } else { f.clone() };
        let (gallery, probes) = (of(&gallery), of(&probes));
        let computed = AtomicUsize::new(0);
        let exact = |n, m| {
            computed.fetch_add(1, Relaxed);
            plain_distance(&probes, n, &gallery, m, distance)
        };
        Index::new(&gallery, distance).nearest(&probes, distance, 1, Cpu::best(), exact);
        let share = computed.into_inner() as f64 / (2000.0 * 100.0);
        assert!(share < 0.02, "{distance:?}: {share}");
    }
}

/// Rounding leaves products of unit vectors above 1, and vectors of zeros without a direction.
#[test]
fn no_angle_is_negative_and_zeros_are_as_far_as_a_right_angle() {
    let gallery = unit(features(8, 300, 2, 7, 1.0, 0.0));
    let turned = |mut of: Features, by: f64| {
        of.cores.iter_mut().for_each(|x| *x *= by);
        of
    };
    // As near as double precision has it, and the very same.
    for probes in [gallery.clone(), turned(gallery.clone(), 1.0 + f64::EPSILON)] {
        for n in 0..300 {
            let near = plain_distance(&probes, n, &gallery, n, Distance::Fisher);
            assert!((0.0..1e-30).contains(&near), "{near}");
        }
    }
    let mut with_zeros = gallery.clone();
    with_zeros.cores[14 * 5..14 * 6].fill(0.0);
    assert_eq!(plain_distance(&with_zeros, 5, &gallery, 9, Distance::Fisher), 1.0);
    check(&with_zeros, &gallery, Distance::Fisher, "probes of zeros");
    check(&gallery, &with_zeros, Distance::Fisher, "a gallery with zeros");
}

/// Two samples that hardly share a component are as far apart as they are in it, however small the weight.
#[test]
fn vanishing_weights_are_no_zero_distances() {
    let of = |cores: [f64; 2], gamma: [f64; 2]| Features {
        n: 1,
        components: 2,
        core_len: 1,
        cores: cores.to_vec(),
        gamma: gamma.to_vec(),
    };
    let probe = of([0.3, 5.0], [1.0, 0.0]);
    for gamma in [1.0, 1e-90, 1e-110, 1e-200, 1e-310, 5e-324] {
        let known = of([0.0, 5.0], [gamma, 1.0]);
        let found = plain_distance(&probe, 0, &known, 0, Distance::Weighted);
        assert!((found - 0.3).abs() < 1e-15, "{gamma}: {found}");
    }
    let apart = of([0.0, 5.0], [0.0, 1.0]);
    assert_eq!(plain_distance(&probe, 0, &apart, 0, Distance::Weighted), f64::INFINITY);
}

#[test]
fn numbers_beyond_single_precision_are_compared_in_double() {
    for size in [1e-300, 1e-160, 1e-42, 1e-20, 1e20, 1e42, 1e150, 1e300] {
        let scaled = |mut f: Features| {
            f.cores.iter_mut().for_each(|x| *x *= size);
            f
        };
        let gallery = features(4, 140, 2, 3, 0.1, 0.0);
        let probes = features(5, 70, 2, 3, 0.1, 0.0);
        for distance in [Distance::Paper, Distance::Weighted] {
            check(&scaled(probes.clone()), &scaled(gallery.clone()), distance, &format!("both {size}"));
            check(&scaled(probes.clone()), &gallery, distance, &format!("probes {size}"));
            check(&probes, &scaled(gallery.clone()), distance, &format!("gallery {size}"));
        }
    }
}
