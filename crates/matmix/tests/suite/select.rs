//! Choosing: planted numbers of components and ranks are found, criteria are those written out plainly.

use matmix::{Criterion, Error, FitOptions, SelectOptions, Start, select};

use crate::planted::{Look, drawn, planted_mixture};

fn options(most: usize, rank: &[usize]) -> SelectOptions {
    let fit = FitOptions { rank: rank.to_vec(), ..FitOptions::default() };
    SelectOptions { most_components: most, fit, ..SelectOptions::default() }
}

#[test]
fn planted_components_are_counted() {
    for (k, n) in [(3, 300), (6, 600)] {
        let planted = planted_mixture(20 + k as u64, &[6, 5], &[2, 2], k, Look::default());
        let samples = drawn(&planted, n, 3);
        for criterion in [Criterion::HeldOut, Criterion::Bic, Criterion::Icl] {
            let chosen = select(&samples, &SelectOptions { criterion, ..options(9, &[2, 2]) }).unwrap();
            assert_eq!(chosen.best().components, k, "{criterion}: {:#?}", chosen.candidates);
            assert_eq!(chosen.fit.model.n_components(), k);
            assert!(chosen.advice.contains(&format!("K = {k}")), "{}", chosen.advice);
            // As good as a fit from the truth.
            let truth = planted.score(&samples).unwrap();
            assert!(chosen.fit.log_likelihood() > truth, "{} {truth}", chosen.fit.log_likelihood());
        }
    }
}

#[test]
fn planted_ranks_are_found() {
    let planted = planted_mixture(31, &[9, 8], &[3, 2], 2, Look { noise: 0.5, ..Look::default() });
    let samples = drawn(&planted, 500, 3);
    for criterion in [Criterion::HeldOut, Criterion::Bic] {
        let options = SelectOptions { criterion, choose_rank: true, ..options(4, &[]) };
        let chosen = select(&samples, &options).unwrap();
        let best = chosen.best();
        assert_eq!(
            (best.components, &best.rank[..]),
            (2, &[3, 2][..]),
            "{criterion}: {:#?}",
            chosen.candidates
        );
    }
}

#[test]
fn criteria_are_those_written_out() {
    let samples = drawn(&planted_mixture(23, &[5, 4], &[2, 1], 2, Look::default()), 200, 3);
    let bic = SelectOptions { criterion: Criterion::Bic, ..options(3, &[2, 1]) };
    let chosen = select(&samples, &bic).unwrap();
    assert_eq!(chosen.candidates.iter().map(|c| c.components).collect::<Vec<_>>(), [1, 2, 3]);
    for c in &chosen.candidates {
        // Means of 20, loadings of 5×2 less one rotation and 4×1 less one scale, a noise variance; weights that sum to 1.
        let parameters = c.components * (20 + (10 - 1) + 4 - 1 + 1) + c.components - 1;
        assert_eq!(c.parameters, parameters);
        let (m, twice) = (parameters as f64, -2.0 * 200.0 * c.log_likelihood);
        assert!((c.bic.unwrap() - (twice + m * 200f64.ln())).abs() < 1e-6);
        assert!((c.aic.unwrap() - (twice + 2.0 * m)).abs() < 1e-6);
        assert!(c.icl.unwrap() >= c.bic.unwrap() - 1e-9);
        assert_eq!((c.held_out, c.standard_error), (None, None));
        assert_eq!(c.cost(Criterion::Aic), c.aic.unwrap());
    }
    // More components never explain the samples they were fitted to worse.
    assert!(chosen.candidates.is_sorted_by(|a, b| a.log_likelihood <= b.log_likelihood + 1e-6));
    assert_eq!(select(&samples, &bic).map(|again| again.candidates), Ok(chosen.candidates));
}

#[test]
fn a_selection_needs_something_to_choose_from() {
    let samples = drawn(&planted_mixture(23, &[5, 4], &[2, 1], 2, Look::default()), 40, 3);
    let wrong = |options: SelectOptions| match select(&samples, &options) {
        Err(Error::Option { option, .. }) => option,
        other => panic!("{other:?}"),
    };
    assert_eq!(wrong(SelectOptions { least_components: 3, ..options(2, &[]) }), "components");
    assert_eq!(wrong(SelectOptions { least_components: 0, ..options(2, &[]) }), "components");
    assert_eq!(wrong(SelectOptions { folds: 0, ..options(2, &[]) }), "folds");
    let fit = FitOptions { start: Start::Random, ..FitOptions::default() };
    assert_eq!(wrong(SelectOptions { fit, ..options(2, &[]) }), "start");
    // More components than samples are not tried.
    let few = samples.select(&[0, 1, 2, 3, 4, 5]).unwrap();
    let chosen = select(&few, &SelectOptions { folds: 2, ..options(50, &[1]) }).unwrap();
    assert!(chosen.candidates.iter().all(|c| c.components <= 6));
}
