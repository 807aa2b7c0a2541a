//! Which images of a person are for training and which for testing.

use matmix::data::Labels;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::Experiment;
use crate::error::hinted;

/// Places of the images for training and for testing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) train: Vec<usize>,
    pub(super) test: Vec<usize>,
}

/// The split of one repeat, as the paper describes it.
pub(super) fn split(
    experiment: Experiment,
    labels: &Labels,
    repeat: usize,
    seed: u64,
) -> anyhow::Result<Split> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed.wrapping_mul(1000).wrapping_add(repeat as u64));
    let mut people: Vec<usize> = (0..labels.names.len()).collect();
    match experiment {
        Experiment::Feret if people.len() > 50 => {
            people.shuffle(&mut rng);
            people.truncate(50);
            people.sort_unstable();
        }
        Experiment::Ar if people.len() > 30 => people = fifteen_and_fifteen(labels, &mut rng),
        _ => {}
    }
    let mut split = Split { train: vec![], test: vec![] };
    for person in people {
        let mut of: Vec<usize> = (0..labels.len()).filter(|&n| labels.index[n] == person).collect();
        let (name, count) = (&labels.names[person], of.len());
        let few = |needed: &str| {
            let message = format!("person {name} has {count} images; {needed}");
            hinted(message, "every label is a person; folders of images take it from the folder's name")
        };
        let train = match experiment {
            Experiment::Ar => {
                // With all 26 images of a person, those without glasses and scarf are the first 7 of each session.
                of = match of.len() {
                    14 => of,
                    26 => [&of[..7], &of[13..20]].concat(),
                    _ => return Err(few("14 (without glasses and scarf) or all 26 are needed")),
                };
                7
            }
            Experiment::Feret => 5,
            _ => 6,
        };
        if of.len() <= train {
            return Err(few(&format!("more than {train} are needed")));
        }
        if experiment != Experiment::Ar {
            of.shuffle(&mut rng);
        }
        let (a, b) = of.split_at_mut(train);
        a.sort_unstable();
        b.sort_unstable();
        split.train.extend_from_slice(a);
        split.test.extend_from_slice(b);
    }
    Ok(split)
}

/// 15 men and 15 women where the names tell (m-001, w-001), otherwise any 30: at random, because accuracies of other people differ
/// by more than those of methods.
fn fifteen_and_fifteen(labels: &Labels, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let mut drawn = |mut people: Vec<usize>, count: usize| {
        people.shuffle(rng);
        people.truncate(count);
        people
    };
    let everybody: Vec<usize> = (0..labels.names.len()).collect();
    let begins = |letter: char| -> Vec<usize> {
        let is = |&i: &usize| labels.names[i].to_ascii_lowercase().starts_with(letter);
        everybody.iter().copied().filter(is).collect()
    };
    let mut people = [drawn(begins('m'), 15), drawn(begins('w'), 15)].concat();
    if people.len() < 30 {
        people = drawn(everybody, 30);
    }
    people.sort_unstable();
    people
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_person_is_split_as_the_paper_says() {
        let labels = Labels::new((0..165).map(|n| (n / 11).to_string()));
        let first = split(Experiment::Yale, &labels, 0, 0).unwrap();
        assert_eq!((first.train.len(), first.test.len()), (90, 75));
        for person in 0..15 {
            assert_eq!(first.train.iter().filter(|&&n| n / 11 == person).count(), 6);
        }
        assert_eq!(split(Experiment::Yale, &labels, 0, 0).unwrap(), first);
        assert_ne!(split(Experiment::Yale, &labels, 1, 0).unwrap(), first);
        let labels = Labels::new((0..2 * 20 * 26).map(|n| format!("{}-{:03}", ["m", "w"][n / 520], n / 26)));
        let ar = split(Experiment::Ar, &labels, 3, 0).unwrap();
        assert_eq!((ar.train.len(), ar.test.len()), (210, 210));
        // The first session for training and the second for testing, without glasses and scarf.
        assert!(ar.train.iter().all(|n| n % 26 < 7) && ar.test.iter().all(|n| (13..20).contains(&(n % 26))));
        assert_eq!(ar.train.iter().filter(|&&n| n < 520).count(), 15 * 7, "15 men and 15 women");
        assert_ne!(split(Experiment::Ar, &labels, 4, 0).unwrap(), ar, "other people in every repeat");
        let unnamed = Labels::new((0..40 * 14).map(|n| (n / 14).to_string()));
        assert_eq!(split(Experiment::Ar, &unnamed, 0, 0).unwrap().train.len(), 210);
        let labels = Labels::new((0..1400).map(|n| (n / 7).to_string()));
        let feret = split(Experiment::Feret, &labels, 0, 0).unwrap();
        assert_eq!((feret.train.len(), feret.test.len()), (250, 100));
        assert!(split(Experiment::Yale, &Labels::new(["a", "b"]), 0, 0).is_err());
    }
}
