//! What was missing of the samples, and what the model fills in.

use super::content::{Bytes, Filled, Floats, Lacking, MissingCells};
use super::findings::Cast;
use super::layout::Blocks;
use super::options::ReportOptions;
use super::survey::Survey;
use crate::data::Samples;
use crate::error::Result;
use crate::model::Mixture;

/// How many cells that nobody observed are named.
const NAMED: usize = 8;

/// Everything the page shows about missing cells; nothing where none is missing.
pub(crate) fn missing_cells(
    model: &Mixture,
    samples: &Samples<'_>,
    survey: &Survey,
    cast: &Cast,
    blocks: &Blocks,
    options: &ReportOptions,
) -> Result<Option<MissingCells>> {
    if survey.missing() == 0 {
        return Ok(None);
    }
    let n = samples.len();
    let never: Vec<usize> = (0..survey.lacking.len()).filter(|&i| survey.lacking[i] == n).collect();
    let share: Vec<f64> = survey.lacking.iter().map(|&lacking| lacking as f64 / n as f64).collect();
    let lacking = |&position: &usize| {
        let index = cast.index[position];
        let name = options.names.get(index).cloned().unwrap_or_default();
        Lacking { sample: position, index, name, missing: survey.holes[index] }
    };
    let (filled, tempered) = filled(model, samples, cast, blocks)?;
    Ok(Some(MissingCells {
        cells: survey.missing(),
        of: n * survey.mean.len(),
        samples: survey.holes.iter().filter(|&&holes| holes > 0).count(),
        empty: (0..n).filter(|&n| survey.observed(n) == 0).count(),
        never: never.len(),
        never_named: never.iter().take(NAMED).map(|&cell| place(cell, samples.shape())).collect(),
        share: Floats::new(blocks.reduce(&share)),
        lacking: cast.lacking.iter().map(lacking).collect(),
        tempered,
        filled,
    }))
}

/// The samples that are shown filled in, each with the standard deviations of what was filled in, and how many of them were tempered.
fn filled(
    model: &Mixture,
    samples: &Samples<'_>,
    cast: &Cast,
    blocks: &Blocks,
) -> Result<(Vec<Filled>, usize)> {
    if cast.filled.is_empty() {
        return Ok((vec![], 0));
    }
    let index: Vec<usize> = cast.filled.iter().map(|&position| cast.index[position]).collect();
    let imputed = model.impute(&samples.clone().select_part(&index)?)?;
    let size = samples.sample_len();
    let filled = imputed.values.chunks_exact(size).zip(imputed.deviations.chunks_exact(size));
    let shown = |(&sample, (values, deviations)): (&usize, (&[f64], &[f64]))| Filled {
        sample,
        values: Floats::new(blocks.reduce(values)),
        deviations: Floats::new(blocks.reduce(deviations)),
    };
    Ok((cast.filled.iter().zip(filled).map(shown).collect(), imputed.tempered.len()))
}

/// Which elements of the pictures were not observed, one bit each, the first one the lowest of its byte.
pub(crate) fn packed(holes: &[bool]) -> Bytes {
    let byte = |bits: &[bool]| bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit));
    Bytes::new(&holes.chunks(8).map(byte).collect::<Vec<_>>())
}

/// What a careful reader should know about what was missing.
pub(crate) fn warnings(found: &MissingCells) -> Vec<String> {
    let mut all = Vec::new();
    if found.empty > 0 {
        let (what, it) = match found.empty {
            1 => ("1 sample has".to_owned(), "it"),
            empty => (format!("{empty} samples have"), "them"),
        };
        all.push(format!("{what} no observed cell: all the page shows of {it} is what the model expects."));
    }
    if found.never > 0 {
        let (what, it) = match found.never {
            1 => ("1 cell was".to_owned(), "it"),
            never => (format!("{never} cells were"), "them"),
        };
        all.push(format!(
            "{what} observed in no sample: what the model says about {it} follows from the rest of the rows alone."
        ));
    }
    all
}

/// The place of a cell, one index per mode.
fn place(mut cell: usize, shape: &[usize]) -> String {
    let mut at = vec![0; shape.len()];
    for (at, side) in at.iter_mut().zip(shape).rev() {
        *at = cell % side;
        cell /= side;
    }
    let at: Vec<String> = at.iter().map(ToString::to_string).collect();
    format!("({})", at.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_begin_with_the_lowest() {
        let holes = [true, false, false, false, false, false, false, true, false, true];
        assert_eq!(packed(&holes), Bytes::new(&[0b1000_0001, 0b10]));
    }

    #[test]
    fn places_have_one_index_per_mode() {
        assert_eq!(place(11, &[2, 3, 2]), "(1, 2, 1)");
    }
}
