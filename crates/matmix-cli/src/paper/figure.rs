//! Line charts as SVG, readable on a light and on a dark page.

use std::fmt::Write;

/// A line: its name, its colour's number and a value per iteration from 0 on.
pub(super) struct Series {
    pub(super) name: &'static str,
    pub(super) values: Vec<f64>,
}

/// One chart of several side by side; the lines of one name have one colour in all of them.
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) series: Vec<Series>,
}

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 230.0;
const LEFT: f64 = 52.0;
const TOP: f64 = 34.0;
const GAP: f64 = 24.0;
/// The width of one entry of the legend.
const LEGEND: f64 = 150.0;
/// Colours and dashes that differ for every eye (Okabe and Ito), one per line.
const STYLES: [(&str, &str); 4] =
    [("#009e73", "2 3"), ("#e69f00", "7 3"), ("#cc79a7", "7 3 2 3"), ("#0072b2", "")];

/// The panels as one SVG; the first value (the start) may lie above the frame.
pub(super) fn chart(panels: &[Panel], y_title: &str) -> String {
    let values = || {
        let later = |s: &Series| s.values.iter().skip(1).copied().collect::<Vec<f64>>();
        panels.iter().flat_map(|p| &p.series).flat_map(later).filter(|v| v.is_finite())
    };
    let (low, high) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    let ticks = ticks(low, high);
    let (bottom, top) = (ticks[0], ticks[ticks.len() - 1]);
    let longest = panels.iter().flat_map(|p| &p.series).map(|s| s.values.len()).max().unwrap_or(2).max(2);
    let last = (longest - 1) as f64;
    let width = LEFT + panels.len() as f64 * WIDTH + (panels.len() as f64 - 1.0) * GAP + 16.0;
    let names = names(panels);
    let per_line = (((width - LEFT) / LEGEND) as usize).max(1);
    let height = TOP + HEIGHT + 64.0 + 20.0 * names.len().div_ceil(per_line) as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<style>\n\
         text {{ fill: #333; }} .frame {{ stroke: #888; fill: none; }} .grid {{ stroke: #888; stroke-opacity: .25; }}\n\
         path {{ fill: none; stroke-width: 2; stroke-linejoin: round; }}\n\
         @media (prefers-color-scheme: dark) {{ text {{ fill: #ddd; }} }}\n</style>\n"
    );
    let y = |v: f64| TOP + HEIGHT * (top - v) / (top - bottom);
    for (i, panel) in panels.iter().enumerate() {
        let left = LEFT + i as f64 * (WIDTH + GAP);
        let x = |t: usize| left + WIDTH * t as f64 / last;
        let middle = left + WIDTH / 2.0;
        put(
            &mut svg,
            &format!(
                "<clipPath id=\"c{i}\"><rect x=\"{left}\" y=\"{TOP}\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/></clipPath>"
            ),
        );
        put(&mut svg, &text(middle, TOP - 12.0, "middle", &panel.title, " font-weight=\"600\""));
        for &tick in &ticks {
            let at = y(tick);
            put(
                &mut svg,
                &format!(
                    "<line class=\"grid\" x1=\"{left}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>",
                    left + WIDTH
                ),
            );
            if i == 0 {
                put(&mut svg, &text(left - 6.0, at + 4.0, "end", &label(tick, &ticks), ""));
            }
        }
        for t in (0..longest).step_by((longest / 5).max(1)) {
            put(&mut svg, &text(x(t), TOP + HEIGHT + 16.0, "middle", &t.to_string(), ""));
        }
        put(&mut svg, &text(middle, TOP + HEIGHT + 34.0, "middle", "iteration", ""));
        for series in &panel.series {
            let (colour, dash) = STYLES[style(panels, series.name)];
            let mut path = String::new();
            for (t, v) in series.values.iter().enumerate().filter(|(_, v)| v.is_finite()) {
                let _ = write!(
                    path,
                    "{}{:.1} {:.1}",
                    if path.is_empty() { "M" } else { " L" },
                    x(t),
                    y(*v).max(-1e4)
                );
            }
            put(
                &mut svg,
                &format!(
                    "<path d=\"{path}\" stroke=\"{colour}\" stroke-dasharray=\"{dash}\" clip-path=\"url(#c{i})\"/>"
                ),
            );
        }
        put(
            &mut svg,
            &format!(
                "<rect class=\"frame\" x=\"{left}\" y=\"{TOP}\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>"
            ),
        );
    }
    let side = TOP + HEIGHT / 2.0;
    put(&mut svg, &text(14.0, side, "middle", y_title, &format!(" transform=\"rotate(-90 14 {side})\"")));
    for (j, name) in names.iter().enumerate() {
        let (colour, dash) = STYLES[j % STYLES.len()];
        let at = LEFT + (j % per_line) as f64 * LEGEND;
        let line = TOP + HEIGHT + 62.0 + 20.0 * (j / per_line) as f64;
        put(
            &mut svg,
            &format!(
                "<path d=\"M{at} {line} L{} {line}\" stroke=\"{colour}\" stroke-dasharray=\"{dash}\"/>",
                at + 30.0
            ),
        );
        put(&mut svg, &text(at + 36.0, line + 4.0, "start", name, ""));
    }
    svg + "</svg>\n"
}

fn put(svg: &mut String, line: &str) {
    svg.push_str(line);
    svg.push('\n');
}

fn text(x: f64, y: f64, anchor: &str, words: &str, more: &str) -> String {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{more}>{words}</text>")
}

fn names(panels: &[Panel]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for series in panels.iter().flat_map(|p| &p.series) {
        if !names.contains(&series.name) {
            names.push(series.name);
        }
    }
    names
}

fn style(panels: &[Panel], name: &str) -> usize {
    names(panels).iter().position(|n| *n == name).unwrap_or(0) % STYLES.len()
}

/// Round numbers from below `low` to above `high`, four to eight of them.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    if !(low.is_finite() && high.is_finite()) {
        return vec![0.0, 1.0];
    }
    let span = (high - low).max(1e-9 * high.abs().max(1.0));
    let power = 10f64.powf((span / 5.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|m| m * power)
        .into_iter()
        .find(|s| span / s <= 6.0)
        .unwrap_or(10.0 * power);
    let first = (low / step).floor() as i64;
    let last = ((high / step).ceil() as i64).max(first + 1);
    (first..=last).map(|i| i as f64 * step).collect()
}

fn label(tick: f64, ticks: &[f64]) -> String {
    let step = ticks[1] - ticks[0];
    let digits = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{tick:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_enclose_the_values() {
        assert_eq!(ticks(3.1, 7.9), [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert_eq!(ticks(0.0, 0.0).len(), 2);
        assert_eq!(label(0.25, &[0.2, 0.25]), "0.25");
    }

    #[test]
    fn a_chart_has_a_line_per_series_and_a_legend() {
        let series = |name, values| Series { name, values };
        let panel = Panel {
            title: "K < 2".into(),
            series: vec![series("a", vec![9.0, 2.0, 1.0]), series("b", vec![f64::NAN, 3.0])],
        };
        let svg = chart(&[panel], "e");
        assert_eq!(svg.matches("<path").count(), 4);
        assert!(svg.contains("K &lt; 2") && svg.ends_with("</svg>\n"));
    }
}
