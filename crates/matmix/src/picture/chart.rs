//! Line charts as pictures: what a selection has found, K by K and rank by rank.

use super::image::Image;
use super::letters::{self, HEIGHT};
use crate::error::{Error, Result, sides};
use crate::model::{Candidate, Choice, Criterion};

/// Colours that differ for every eye (Okabe and Ito), one per line.
const COLOURS: [[u8; 3]; 7] = [
    [0, 114, 178],
    [213, 94, 0],
    [0, 158, 115],
    [204, 121, 167],
    [230, 159, 0],
    [86, 180, 233],
    [90, 90, 90],
];
const INK: [u8; 3] = [40, 40, 40];
const GRID: [u8; 3] = [225, 225, 225];
const PAPER: [u8; 3] = [255; 3];

/// Pixels of a panel and of the room around its frame.
const PANEL: [usize; 2] = [640, 480];
const LEFT: usize = 100;
const RIGHT: usize = 20;
const TOP: usize = 40;
const BOTTOM: usize = 60;
/// Every pixel of a letter is so many large.
const LARGE: usize = 2;
/// Lines that a legend has room for.
const LEGEND: usize = 7;

/// One line of a panel.
struct Line {
    name: String,
    /// Places, values and how sure they are.
    points: Vec<(f64, f64, f64)>,
}

/// A frame with lines in it.
struct Panel {
    title: String,
    across: String,
    lines: Vec<Line>,
    /// The point that is ringed.
    marked: Option<(f64, f64)>,
}

impl Choice {
    /// The candidates as a picture: what decided, over K, a line for each rank; and the scree of every mode with its rank marked.
    ///
    /// # Errors
    /// If there are no candidates.
    pub fn picture(&self) -> Result<Image> {
        let best = self.best().ok_or(Error::EmptySet)?;
        let mut panels = vec![self.curve(best).draw()?];
        let few = [PANEL[0] / 2 + LEFT, PANEL[1]];
        for (d, scree) in self.scree.iter().enumerate().filter(|(_, scree)| !scree.is_empty()) {
            panels.push(scree_panel(d, scree, best.rank[d]).draw_in(few)?);
        }
        Image::beside(&panels, 0, PAPER)
    }

    fn curve(&self, best: &Candidate) -> Panel {
        let by_rank = self.candidates.iter().map(|c| c.rank.clone());
        let mut ranks: Vec<Vec<usize>> = Vec::new();
        by_rank.for_each(|rank| {
            if !ranks.contains(&rank) {
                ranks.push(rank)
            }
        });
        // The chosen rank first: what there is no room for is left out at the end.
        ranks.sort_by_key(|rank| *rank != best.rank);
        let value = |c: &Candidate| c.value(self.criterion);
        let line = |rank: &Vec<usize>| Line {
            name: sides(rank).replace('×', "x"),
            points: self
                .candidates
                .iter()
                .filter(|c| c.rank == *rank && value(c).is_finite())
                .map(|c| (c.components as f64, value(c), c.standard_error.unwrap_or(0.0)))
                .collect(),
        };
        let title = match self.criterion {
            Criterion::HeldOut => "log-likelihood held out".into(),
            Criterion::Error => "error held out".into(),
            other => other.name().to_uppercase(),
        };
        Panel {
            title,
            across: "K".into(),
            lines: ranks.iter().map(line).collect(),
            marked: Some((best.components as f64, value(best))),
        }
    }
}

fn scree_panel(d: usize, scree: &[f64], rank: usize) -> Panel {
    let point = |(j, share): (usize, &f64)| ((j + 1) as f64, 100.0 * share, 0.0);
    Panel {
        title: format!("% of variance, mode {d}"),
        across: "column".into(),
        lines: vec![Line { name: String::new(), points: scree.iter().enumerate().map(point).collect() }],
        marked: scree.get(rank - 1).map(|share| (rank as f64, 100.0 * share)),
    }
}

impl Panel {
    fn draw(&self) -> Result<Image> {
        self.draw_in(PANEL)
    }

    fn draw_in(&self, [width, height]: [usize; 2]) -> Result<Image> {
        let mut image = Image::new(width, height, PAPER)?;
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let across = ends(points().map(|p| p.0));
        let down = ends(points().flat_map(|p| [p.1 - p.2, p.1 + p.2]));
        let ticks = ticks(down.0, down.1, 7);
        let (bottom, top) = (ticks[0], ticks[ticks.len() - 1]);
        let inner = [(width - LEFT - RIGHT) as f64, (height - TOP - BOTTOM) as f64];
        let room = if across.1 > across.0 { 0.03 * (across.1 - across.0) } else { 0.5 };
        let (from, to) = (across.0 - room, across.1 + room);
        let x = |v: f64| (LEFT as f64 + inner[0] * (v - from) / (to - from)).round() as i64;
        let y = |v: f64| (TOP as f64 + inner[1] * (top - v) / (top - bottom)).round() as i64;
        let right = (width - RIGHT) as i64;
        for &tick in &ticks {
            image.line([LEFT as i64, y(tick)], [right, y(tick)], 1, GRID);
            let words = label(tick, &ticks);
            let left = LEFT as i64 - 8 - letters::width(&words, LARGE) as i64;
            letters::write(&mut image, &words, left, y(tick) - HEIGHT as i64, LARGE, INK);
        }
        let whole = self::ticks(across.0, across.1, 10).into_iter().filter(|t| t.fract() == 0.0);
        for tick in whole.filter(|t| (across.0..=across.1).contains(t)) {
            let words = format!("{tick:.0}");
            let left = x(tick) - letters::width(&words, LARGE) as i64 / 2;
            letters::write(&mut image, &words, left, (height - BOTTOM + 8) as i64, LARGE, INK);
        }
        let frame = [[LEFT as i64, TOP as i64], [right, (height - BOTTOM) as i64]];
        image.line(frame[0], [frame[0][0], frame[1][1]], 1, INK);
        image.line([frame[0][0], frame[1][1]], frame[1], 1, INK);
        // The first line on top of the others.
        for (at, line) in self.lines.iter().enumerate().rev() {
            let colour = &COLOURS[at % COLOURS.len()];
            for pair in line.points.windows(2) {
                image.line([x(pair[0].0), y(pair[0].1)], [x(pair[1].0), y(pair[1].1)], 3, *colour);
            }
            for &(at, value, error) in &line.points {
                if error > 0.0 {
                    image.line([x(at), y(value - error)], [x(at), y(value + error)], 1, *colour);
                }
                image.disc([x(at), y(value)], 5, *colour);
            }
        }
        if let Some((at, value)) = self.marked {
            image.ring([x(at), y(value)], 12, 2, INK);
        }
        letters::write(&mut image, &self.title, LEFT as i64, 12, LARGE, INK);
        let end = right - letters::width(&self.across, LARGE) as i64;
        letters::write(&mut image, &self.across, end, (height - BOTTOM + 34) as i64, LARGE, INK);
        self.legend(&mut image, height);
        Ok(image)
    }

    /// The names of the lines below the frame, as far as there is room.
    fn legend(&self, image: &mut Image, height: usize) {
        let mut left = LEFT as i64;
        let named = self.lines.iter().zip(COLOURS).filter(|(line, _)| !line.name.is_empty()).take(LEGEND);
        for (line, colour) in named {
            let wide = letters::width(&line.name, LARGE) as i64;
            if left + wide + 20 > image.width as i64 - 40 {
                return;
            }
            let top = (height - BOTTOM + 34) as i64;
            image.disc([left + 5, top + HEIGHT as i64], 5, colour);
            letters::write(image, &line.name, left + 16, top, LARGE, INK);
            left += wide + 32;
        }
    }
}

fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|v| v.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

/// Round numbers that enclose two values, at most about so many of them.
fn ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let span = (high - low).max(1e-9 * high.abs().max(1.0));
    let power = 10f64.powf((span / most as f64).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|m| m * power);
    let step = steps.into_iter().find(|s| span / s <= most as f64).unwrap_or(10.0 * power);
    let (first, last) = ((low / step).floor(), (high / step).ceil());
    let count = (last - first).max(1.0) as usize;
    (0..=count).map(|i| (first + i as f64) * step).collect()
}

/// With as many digits as tell ticks apart.
fn label(tick: f64, ticks: &[f64]) -> String {
    let step = ticks[1] - ticks[0];
    let digits = (-(step * 1.000_001).log10().floor()).clamp(0.0, 9.0) as usize;
    if tick.abs() >= 1e8 { format!("{tick:.2e}") } else { format!("{tick:.digits$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(components: usize, rank: usize, held_out: f64) -> Candidate {
        Candidate {
            components,
            rank: vec![rank, rank],
            parameters: 10 * components,
            log_likelihood: held_out,
            held_out: Some(held_out),
            standard_error: Some(1.0),
            error: 1.0,
            explained: 0.5,
            bic: None,
            aic: None,
            icl: None,
        }
    }

    fn choice() -> Choice {
        let held = [-90.0, -60.0, -50.0, -49.5, -51.0];
        let mut candidates: Vec<Candidate> =
            held.iter().enumerate().map(|(k, &h)| candidate(k + 1, 4, h)).collect();
        candidates.push(candidate(3, 6, -45.0));
        let scree = vec![vec![0.6, 0.3, 0.1], vec![0.8, 0.2]];
        Choice { candidates, chosen: 2, scree, ..Choice::default() }
    }

    #[test]
    fn ticks_are_round_and_enclose_the_values() {
        assert_eq!(ticks(3.1, 7.9, 6), [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert_eq!(ticks(0.0, 0.0, 6).len(), 2);
        assert_eq!(label(0.25, &[0.2, 0.25]), "0.25");
        assert_eq!(label(300.0, &[300.0, 310.0]), "300");
    }

    #[test]
    fn a_picture_has_a_line_per_rank_a_ring_and_a_panel_per_mode() {
        let mut choice = choice();
        choice.candidates[2].rank = vec![4, 4];
        // Ranks that fit the scree.
        for c in &mut choice.candidates {
            c.rank = vec![c.rank[0] / 2, 1];
        }
        let image = choice.picture().unwrap();
        assert_eq!((image.width, image.height), (640 + 2 * 420, 480));
        let count = |colour: [u8; 3]| image.rgb.chunks_exact(3).filter(|pixel| **pixel == colour).count();
        // Five points, four stretches and two screes in the first colour, one point in the second, none in the third.
        assert!(count(COLOURS[0]) > 2000 && (60..400).contains(&count(COLOURS[1])));
        assert_eq!(count(COLOURS[2]), 0);
        // Better is higher: the first disc lies below the third.
        let lowest =
            |left: usize| (0..image.height).rev().find(|&y| image.pixel(left, y) == COLOURS[0]).unwrap();
        assert!(lowest(115) > lowest(360));
        assert!(Choice::default().picture().is_err());
    }
}
