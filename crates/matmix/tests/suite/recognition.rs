//! Recognition: the distances against their formulas, planted classes against the truth.

use std::str::FromStr;

use crate::planted::{assert_close, drawn, normals, random_mixture};
use matmix::error::Counted;
use matmix::linalg::expand;
use matmix::{
    Component, CoreGallery, Distance, Error, LowRank, LowRankOptions, Matrix, Mixture, Model, Recognizer,
    Samples, fit_low_rank,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

/// Ten classes that are ten cores of one component; `each` samples of each with a little noise.
fn classes_of(model: &Mixture, each: usize, noise: f64, seed: u64) -> (Samples<'static>, Vec<usize>) {
    let cores = normals(99, 10 * model.core_len());
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut elements, mut classes) = (Vec::new(), Vec::new());
    for n in 0..10 * each {
        let core = &cores[(n % 10) * model.core_len()..(n % 10 + 1) * model.core_len()];
        let x = model.components()[n % 10 % model.n_components()].reconstruct(core);
        elements.extend(x.iter().map(|x| x + noise * rng.sample::<f64, _>(StandardNormal)));
        classes.push(n % 10);
    }
    (Samples::from_vec(model.shape(), elements).unwrap(), classes)
}

fn norm(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

#[test]
fn the_papers_distance_is_its_formula() {
    let model = random_mixture(1, &[5, 4], &[2, 2], 3);
    let (gallery, probes) = (drawn(&model, 20, 2), drawn(&model, 15, 3));
    let (a, b) = (model.project(&probes).unwrap(), model.project(&gallery).unwrap());
    let classes: Vec<usize> = (0..20).collect();
    let found = |distance| {
        let recognizer =
            Recognizer::new(&Model::Mixture(model.clone()), &gallery, &classes, distance).unwrap();
        recognizer.neighbours(&probes, 20).unwrap()
    };
    let part = |cores: &[f64], n: usize, k: usize| cores[(n * 3 + k) * 4..(n * 3 + k + 1) * 4].to_vec();
    for (n, neighbours) in found(Distance::Paper).iter().enumerate() {
        assert!(neighbours.is_sorted_by(|x, y| x.distance <= y.distance));
        for neighbour in neighbours {
            let m = neighbour.index;
            let expected: f64 = (0..3).map(|k| norm(&part(&a.cores, n, k), &part(&b.cores, m, k))).sum();
            assert_close(&[neighbour.distance], &[expected], 1e-12, "Σ_k ‖B_a − B_b‖");
            assert_eq!(neighbour.class, m);
        }
    }
    for (n, neighbours) in found(Distance::Weighted).iter().enumerate() {
        for neighbour in neighbours {
            let m = neighbour.index;
            let (mut sum, mut weights) = (0.0, 0.0);
            for k in 0..3 {
                let weight = a.responsibilities[n * 3 + k] * b.responsibilities[m * 3 + k];
                sum += weight * norm(&part(&a.cores, n, k), &part(&b.cores, m, k));
                weights += weight;
            }
            if weights > 0.0 {
                assert_close(&[neighbour.distance], &[sum / weights], 1e-9, "weighted");
            } else {
                assert_eq!(neighbour.distance, f64::INFINITY);
            }
        }
    }
}

/// Σ_k ‖L_k (B_a^(k) − B_b^(k)) R_kᵀ‖ with the differences written out as samples, for vectors, matrices and tensors.
#[test]
fn the_distance_in_units_of_the_data_is_its_dense_formula() {
    let sides: [(&[usize], &[usize]); 3] = [(&[9], &[4]), (&[5, 4], &[3, 2]), (&[4, 3, 3], &[2, 3, 2])];
    for (shape, rank) in sides {
        for k in [1, 3] {
            let model = random_mixture(31, shape, rank, k);
            let (gallery, probes) = (drawn(&model, 12, 32), drawn(&model, 7, 33));
            let (a, b) = (model.project(&probes).unwrap(), model.project(&gallery).unwrap());
            let classes: Vec<usize> = (0..12).collect();
            let recognizer =
                Recognizer::new(&Model::Mixture(model.clone()), &gallery, &classes, Distance::Data).unwrap();
            let len = model.core_len();
            for (n, neighbours) in recognizer.neighbours(&probes, 12).unwrap().iter().enumerate() {
                assert!(neighbours.is_sorted_by(|x, y| x.distance <= y.distance));
                for neighbour in neighbours {
                    let dense = |k: usize| {
                        let core =
                            |of: &[f64], n: usize| of[(n * model.n_components() + k) * len..][..len].to_vec();
                        let (a, b) = (core(&a.cores, n), core(&b.cores, neighbour.index));
                        let apart: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
                        let x = expand(&apart, model.components()[k].loadings());
                        x.iter().map(|x| x * x).sum::<f64>().sqrt()
                    };
                    let expected: f64 = (0..k).map(dense).sum();
                    assert_close(&[neighbour.distance], &[expected], 1e-12, "Σ_k ‖L (B_a − B_b) Rᵀ‖");
                }
            }
        }
    }
}

/// The cores of a low-rank model are in units of the data.
#[test]
fn low_rank_models_have_one_distance_in_either_unit() {
    let gallery = drawn(&random_mixture(34, &[6, 5], &[3, 2], 2), 20, 35);
    let classes: Vec<usize> = (0..20).collect();
    for rank in [vec![2], vec![3, 2]] {
        let low = fit_low_rank(&gallery, &LowRankOptions { rank, ..LowRankOptions::default() }).unwrap();
        let model = Model::LowRank(low.model);
        let found = |distance| {
            let recognizer = Recognizer::new(&model, &gallery, &classes, distance).unwrap();
            assert_eq!(recognizer.distance(), distance);
            recognizer.neighbours(&gallery, 5).unwrap()
        };
        assert_eq!(found(Distance::Data), found(Distance::Paper));
    }
}

#[test]
fn a_gallery_that_travels_finds_the_same_by_every_distance() {
    let model = random_mixture(36, &[5, 4], &[2, 2], 3);
    let (gallery, probes) = (drawn(&model, 12, 37), drawn(&model, 5, 38));
    let (known, asked) = (model.project(&gallery).unwrap(), model.project(&probes).unwrap());
    let model = Model::Mixture(model);
    let classes: Vec<usize> = (0..12).map(|n| n % 3).collect();
    for &distance in Distance::ALL {
        let there =
            CoreGallery::new(&model, known.cores.clone(), known.responsibilities.clone(), &classes, distance)
                .unwrap();
        let back = CoreGallery::from_bytes(&there.to_bytes()).unwrap();
        let found = |gallery: &CoreGallery| {
            gallery.neighbours(asked.cores.clone(), asked.responsibilities.clone(), 3).unwrap()
        };
        assert_eq!((back.distance(), found(&back)), (there.distance(), found(&there)));
        let direct = Recognizer::new(&model, &gallery, &classes, distance).unwrap();
        assert_eq!(found(&back), direct.neighbours(&probes, 3).unwrap());
        // One class too few.
        let (cores, gamma) = (known.cores.clone(), known.responsibilities.clone());
        let error = CoreGallery::new(&model, cores, gamma, &classes[1..], distance).unwrap_err();
        assert_eq!(error, Error::Count { what: Counted::Labels, expected: 12, found: 11 });
    }
}

#[test]
fn planted_classes_are_found_by_every_distance() {
    let model = random_mixture(4, &[6, 5], &[3, 2], 2);
    let (gallery, known) = classes_of(&model, 6, 0.1, 5);
    let (probes, truth) = classes_of(&model, 4, 0.1, 6);
    let low =
        fit_low_rank(&gallery, &LowRankOptions { rank: vec![3, 3], ..LowRankOptions::default() }).unwrap();
    for model in [Model::Mixture(model), Model::LowRank(low.model)] {
        for &distance in Distance::ALL {
            let recognizer = Recognizer::new(&model, &gallery, &known, distance).unwrap();
            let found = recognizer.evaluate(&probes, &truth).unwrap();
            assert_eq!((found.accuracy, &found.predicted), (1.0, &truth), "{distance:?}");
            for (class, row) in found.confusion.iter().enumerate() {
                assert_eq!((row[class], row.iter().sum::<usize>()), (4, 4));
            }
        }
    }
}

/// The class hides in a direction of little variance under one of much: what the discriminant is for.
#[test]
fn the_discriminant_finds_what_distances_miss() {
    let noise = normals(7, 600 * 6);
    let sample = |n: usize| -> Vec<f64> {
        // The class, two features that say nothing, and three that shout.
        let spread = [0.1, 0.1, 0.1, 10.0, 10.0, 10.0];
        let mut x: Vec<f64> = (0..6).map(|i| noise[n * 6 + i] * spread[i]).collect();
        x[0] += (n % 2) as f64;
        x
    };
    let set = |range: std::ops::Range<usize>| {
        let classes: Vec<usize> = range.clone().map(|n| n % 2).collect();
        (Samples::from_vec(&[6], range.flat_map(sample).collect::<Vec<f64>>()).unwrap(), classes)
    };
    let ((gallery, known), (probes, truth)) = (set(0..400), set(400..600));
    let whole = Model::LowRank(LowRank::new(&[6], vec![0.0; 6], vec![Matrix::identity(6, 6)]).unwrap());
    let accuracy = |distance| {
        let recognizer = Recognizer::new(&whole, &gallery, &known, distance).unwrap();
        recognizer.evaluate(&probes, &truth).unwrap().accuracy
    };
    assert!(accuracy(Distance::Fisher) > 0.95, "{}", accuracy(Distance::Fisher));
    assert!(accuracy(Distance::Paper) < 0.8, "{}", accuracy(Distance::Paper));
}

#[test]
fn a_gallery_recognises_itself() {
    let model = random_mixture(8, &[5, 4], &[2, 2], 3);
    let gallery = drawn(&model, 70, 9);
    // Classes that mean nothing: only the sample itself has the right one.
    let classes: Vec<usize> = (0..70).map(|n| n * 37 % 11).collect();
    let low = fit_low_rank(&gallery, &LowRankOptions { rank: vec![2], ..LowRankOptions::default() }).unwrap();
    for model in [Model::Mixture(model), Model::LowRank(low.model)] {
        for &distance in Distance::ALL {
            let recognizer = Recognizer::new(&model, &gallery, &classes, distance).unwrap();
            for (n, neighbours) in recognizer.neighbours(&gallery, 1).unwrap().iter().enumerate() {
                assert_eq!((neighbours[0].index, neighbours[0].distance), (n, 0.0), "{distance}");
            }
        }
    }
}

/// One sample per class: nothing is known about the spread within a class, and the discriminant still works.
#[test]
fn the_discriminant_needs_no_second_sample() {
    let model = random_mixture(15, &[5, 4], &[2, 2], 2);
    let gallery = drawn(&model, 12, 16);
    let classes: Vec<usize> = (0..12).collect();
    let recognizer = Recognizer::new(&Model::Mixture(model), &gallery, &classes, Distance::Fisher).unwrap();
    assert_eq!(recognizer.evaluate(&gallery, &classes).unwrap().accuracy, 1.0);
}

#[test]
fn a_tie_goes_to_the_first_of_the_gallery() {
    let whole = Model::LowRank(LowRank::new(&[2], vec![0.0; 2], vec![Matrix::identity(2, 2)]).unwrap());
    let gallery = Samples::from_vec(&[2], vec![1.0, 0.0, 0.0, 1.0, -1.0, 0.0, 1.0, 0.0]).unwrap();
    let recognizer = Recognizer::new(&whole, &gallery, &[3, 1, 2, 0], Distance::Paper).unwrap();
    let probes = Samples::from_vec(&[2], vec![0.0, 0.0, 2.0, 0.0]).unwrap();
    assert_eq!(recognizer.predict(&probes).unwrap(), [3, 3]);
    let order: Vec<usize> = recognizer.neighbours(&probes, 4).unwrap()[0].iter().map(|n| n.index).collect();
    assert_eq!(order, [0, 1, 2, 3]);
    let order: Vec<usize> = recognizer.neighbours(&probes, 4).unwrap()[1].iter().map(|n| n.index).collect();
    assert_eq!(order, [0, 3, 1, 2]);
}

/// With responsibilities of 0 and 1 the footnote's distance compares within a component, and never across.
#[test]
fn the_weighted_distance_stays_within_a_component() {
    let part = |at: f64| Component::new(&[2], vec![at; 2], vec![Matrix::identity(2, 1)], 1e-2).unwrap();
    let model = Mixture::new(&[2], vec![0.5, 0.5], vec![part(-100.0), part(100.0)]).unwrap();
    let gallery = Samples::from_vec(&[2], vec![-100.0, -100.0, 100.0, 100.0, 103.0, 100.0]).unwrap();
    let recognizer =
        Recognizer::new(&Model::Mixture(model), &gallery, &[0, 1, 2], Distance::Weighted).unwrap();
    let probes = Samples::from_vec(&[2], vec![102.0, 100.0, -97.0, -100.0]).unwrap();
    let found = recognizer.neighbours(&probes, 3).unwrap();
    assert_eq!((found[0][0].class, found[0][1].class), (2, 1));
    assert_eq!(found[0][2].distance, f64::INFINITY);
    assert_eq!(found[1][0].class, 0);
    assert!(found[1][1].distance.is_infinite() && found[1][2].distance.is_infinite());
}

#[test]
fn the_confusion_counts_every_probe_once() {
    let model = random_mixture(10, &[5, 4], &[2, 2], 2);
    let (gallery, known) = classes_of(&model, 3, 1.5, 11);
    let (probes, truth) = classes_of(&model, 7, 1.5, 12);
    for &distance in Distance::ALL {
        let recognizer = Recognizer::new(&Model::Mixture(model.clone()), &gallery, &known, distance).unwrap();
        let found = recognizer.evaluate(&probes, &truth).unwrap();
        assert_eq!(found.confusion.len(), 10);
        assert!(found.confusion.iter().all(|row| row.len() == 10 && row.iter().sum::<usize>() == 7));
        let right: usize = (0..10).map(|c| found.confusion[c][c]).sum();
        assert_eq!(found.accuracy, right as f64 / 70.0);
        let agree = found.predicted.iter().zip(&truth).filter(|(a, b)| a == b).count();
        assert_eq!(agree, right);
        assert!(0 < right && right < 70, "a task that is neither trivial nor hopeless: {right}");
    }
    // A probe of a class that is not in the gallery has its row, too.
    let recognizer = Recognizer::new(&Model::Mixture(model), &gallery, &known, Distance::Paper).unwrap();
    let found = recognizer.evaluate(&probes, &vec![12; 70]).unwrap();
    assert_eq!((found.accuracy, found.confusion.len()), (0.0, 13));
    assert_eq!(found.confusion[12].iter().sum::<usize>(), 70);
}

#[test]
fn what_cannot_be_recognised_is_an_error() {
    let model = random_mixture(13, &[3, 2], &[1, 1], 1);
    let gallery = drawn(&model, 4, 14);
    let model = Model::Mixture(model);
    let new = |classes: &[usize], distance| Recognizer::new(&model, &gallery, classes, distance).map(|_| ());
    let count = Error::Count { what: Counted::Labels, expected: 4, found: 3 };
    assert_eq!(new(&[0, 1, 2], Distance::Paper).unwrap_err(), count);
    let is = |found: Result<(), Error>, name: &str| {
        assert!(matches!(&found, Err(Error::Option { option, .. }) if *option == name), "{found:?}");
    };
    is(new(&[5; 4], Distance::Fisher), "distance");
    is(new(&[0, 1, 2, usize::MAX], Distance::Paper), "classes");
    is(new(&[0, 1, 2, usize::MAX], Distance::Fisher), "classes");
    // Cores that are all the same tell no classes apart.
    let same = Samples::from_vec(&[3, 2], vec![1.0; 24]).unwrap();
    is(Recognizer::new(&model, &same, &[0, 0, 1, 1], Distance::Fisher).map(|_| ()), "distance");

    let recognizer = Recognizer::new(&model, &gallery, &[0, 1, 2, 3], Distance::Paper).unwrap();
    for many in [0, 5] {
        is(recognizer.neighbours(&gallery, many).map(|_| ()), "neighbours");
    }
    assert_eq!(recognizer.evaluate(&gallery, &[0, 1, 2]).unwrap_err(), count);
    is(recognizer.evaluate(&gallery, &[0, 1, 2, usize::MAX]).map(|_| ()), "classes");
    let turned = gallery.clone().reshaped(&[2, 3]).unwrap();
    let expected = Error::ShapeMismatch { expected: vec![3, 2], found: vec![2, 3] };
    assert_eq!(recognizer.predict(&turned).unwrap_err(), expected);
    assert_eq!(Recognizer::new(&model, &turned, &[0; 4], Distance::Paper).unwrap_err(), expected);
    let mut elements = vec![0.0; 6];
    elements[3] = f64::NAN;
    let nan = Samples::from_vec(&[3, 2], elements).unwrap();
    assert!(matches!(recognizer.predict(&nan), Err(Error::NotFinite { sample: 0, .. })));
}

/// The rule, gallery by gallery; what it comes to finds the same neighbours as if it had been asked for.
#[test]
fn a_discriminant_is_learned_where_every_class_has_two_samples() {
    let model = Model::Mixture(random_mixture(21, &[4, 3], &[2, 2], 2));
    let Model::Mixture(mixture) = &model else { unreachable!() };
    let (gallery, probes) = (drawn(mixture, 8, 22), drawn(mixture, 5, 23));
    let new = |gallery: &Samples<'_>, classes: &[usize], distance| {
        Recognizer::new(&model, gallery, classes, distance).unwrap()
    };
    let same = Samples::from_vec(&[4, 3], vec![1.0; 96]).unwrap();
    let many = drawn(mixture, 4097, 24);
    let halves: Vec<usize> = (0..4097).map(|n| n % 2).collect();
    for (gallery, classes, expected) in [
        (&gallery, vec![0, 0, 1, 1, 2, 2, 2, 2], Distance::Fisher),
        // Numbers of classes that nobody is in do not count.
        (&gallery, vec![7, 7, 7, 7, 3, 3, 3, 3], Distance::Fisher),
        (&gallery, vec![0, 0, 1, 1, 2, 2, 2, 3], Distance::Data),
        (&gallery, vec![0; 8], Distance::Data),
        (&gallery, (0..8).collect(), Distance::Data),
        (&same, vec![0, 0, 0, 0, 1, 1, 1, 1], Distance::Data),
        (&many, halves, Distance::Data),
    ] {
        let (chosen, asked) = (new(gallery, &classes, Distance::Auto), new(gallery, &classes, expected));
        assert_eq!((chosen.distance(), asked.distance()), (expected, expected), "{classes:?}");
        assert_eq!(chosen.neighbours(&probes, 3).unwrap(), asked.neighbours(&probes, 3).unwrap());
    }
    assert_eq!(new(&gallery, &[0, 0, 1, 1, 2, 2, 2, 2], Distance::Weighted).distance(), Distance::Weighted);
}

#[test]
fn names_lead_to_distances_and_back() {
    for &distance in Distance::ALL {
        assert_eq!(Distance::from_str(distance.name()).unwrap(), distance);
    }
    assert_eq!(Distance::default(), Distance::Auto);
}
