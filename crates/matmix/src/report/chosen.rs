//! What a model was chosen from, as a table of components against ranks.

use super::content::{Chosen, ChosenRow, Scree, Tried};
use crate::error::sides;
use crate::model::{Candidate, Choice, Criterion};

/// Shades of the cells, from the worst candidate to the best.
const SHADES: f64 = 8.0;

/// The content of the section; nothing if nothing was chosen.
pub(super) fn chosen(choice: &Choice) -> Option<Chosen> {
    let best = choice.best()?;
    let mut ranks: Vec<&Vec<usize>> = choice.candidates.iter().map(|c| &c.rank).collect();
    ranks.sort();
    ranks.dedup();
    let mut components: Vec<usize> = choice.candidates.iter().map(|c| c.components).collect();
    components.sort_unstable();
    components.dedup();
    let find =
        |k: usize, rank: &Vec<usize>| choice.candidates.iter().find(|c| c.components == k && c.rank == *rank);
    let cell = |candidate: &Candidate| Tried {
        value: value(candidate, choice.criterion),
        shade: (SHADES * choice.standing(candidate)).floor() as usize,
        chosen: candidate == best,
    };
    let row = |&k: &usize| ChosenRow {
        components: k,
        cells: ranks.iter().map(|rank| find(k, rank).map(cell)).collect(),
    };
    let scree = |(d, (shares, &rank)): (usize, (&Vec<f64>, &usize))| Scree {
        mode: d,
        rank,
        columns: shares.len(),
        share: shares.iter().take(rank).sum(),
    };
    Some(Chosen {
        advice: choice.advice.clone(),
        decided: match choice.criterion {
            Criterion::HeldOut => "mean log-likelihood of samples held out, more is better".into(),
            Criterion::Error => "reconstruction error of samples held out, less is better".into(),
            other => format!("{}, less is better", other.name().to_uppercase()),
        },
        ranks: ranks.iter().map(|rank| sides(rank)).collect(),
        rows: components.iter().map(row).collect(),
        screes: choice
            .scree
            .iter()
            .zip(&best.rank)
            .enumerate()
            .filter(|(_, (s, _))| !s.is_empty())
            .map(scree)
            .collect(),
    })
}

/// What decided, with as many digits as tell candidates apart.
fn value(candidate: &Candidate, criterion: Criterion) -> String {
    let value = candidate.value(criterion);
    match criterion {
        _ if !value.is_finite() => "–".into(),
        Criterion::HeldOut => format!("{value:.1}"),
        Criterion::Error => format!("{value:.4}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_for_every_candidate_and_one_of_them_marked() {
        let candidate = |components, rank: [usize; 2], bic| Candidate {
            components,
            rank: rank.to_vec(),
            parameters: 1,
            log_likelihood: 0.0,
            held_out: None,
            standard_error: None,
            error: 1.0,
            explained: 0.5,
            bic: Some(bic),
            aic: None,
            icl: None,
        };
        let candidates =
            vec![candidate(1, [2, 2], 900.0), candidate(2, [2, 2], 100.4), candidate(2, [3, 2], 500.0)];
        let scree = vec![vec![0.5, 0.3, 0.2], vec![0.9, 0.1]];
        let choice = Choice { candidates, chosen: 1, criterion: Criterion::Bic, scree, ..Choice::default() };
        let found = chosen(&choice).unwrap();
        assert_eq!(found.ranks, ["2×2", "3×2"]);
        assert_eq!(found.rows.iter().map(|row| row.components).collect::<Vec<_>>(), [1, 2]);
        let cells: Vec<_> = found
            .rows
            .iter()
            .flat_map(|row| &row.cells)
            .map(|c| c.as_ref().map(|c| (&c.value[..], c.shade, c.chosen)))
            .collect();
        assert_eq!(cells, [Some(("900", 0, false)), None, Some(("100", 8, true)), Some(("500", 4, false))]);
        assert_eq!(found.screes.iter().map(|s| (s.rank, s.share)).collect::<Vec<_>>(), [(2, 0.8), (2, 1.0)]);
        assert!(found.decided.starts_with("BIC") && chosen(&Choice::default()).is_none());
    }
}
