//! Recognition accuracies as printed in the paper's Tables I to III (arXiv 1601.01431): facts, with credit.

use super::Experiment;

/// A mean and its standard deviation.
pub(super) type Value = (f64, f64);

/// One line of a table.
pub(super) struct Line {
    /// r = c.
    pub(super) r: usize,
    /// GLRAM does not depend on K, and no deviation is given for it.
    pub(super) glram: f64,
    /// For each K of the table: mixture of PPCA, mixB2DPPCA.
    pub(super) mixtures: [(Value, Value); 3],
}

/// A table: the numbers of components and the lines.
pub(super) struct Published {
    pub(super) title: &'static str,
    pub(super) components: [usize; 3],
    pub(super) lines: &'static [Line],
}

/// The table of an experiment.
pub(super) fn table(experiment: Experiment) -> Published {
    let (title, components, lines) = match experiment {
        Experiment::Ar => ("AR", [6, 8, 10], AR),
        Experiment::Feret => ("FERET", [6, 8, 10], FERET),
        _ => ("Yale", [4, 6, 8], YALE),
    };
    Published { title, components, lines }
}

#[rustfmt::skip]
const YALE: &[Line] = &[
    Line { r: 2, glram: 0.6133, mixtures: [((0.5760, 0.0401), (0.6400, 0.0267)), ((0.6237, 0.0219), (0.6720, 0.0210)), ((0.6519, 0.0124), (0.6693, 0.0250))] },
    Line { r: 4, glram: 0.7067, mixtures: [((0.6376, 0.0222), (0.7173, 0.0197)), ((0.6642, 0.0245), (0.7146, 0.0180)), ((0.6613, 0.0201), (0.7200, 0.0089))] },
    Line { r: 6, glram: 0.7200, mixtures: [((0.6480, 0.0289), (0.7200, 0.0154)), ((0.6506, 0.0186), (0.7187, 0.0203)), ((0.6480, 0.0283), (0.7320, 0.0160))] },
    Line { r: 8, glram: 0.7200, mixtures: [((0.6786, 0.0117), (0.7240, 0.0227)), ((0.6560, 0.0265), (0.7187, 0.0262)), ((0.6640, 0.0233), (0.7347, 0.0160))] },
];

#[rustfmt::skip]
const AR: &[Line] = &[
    Line { r: 4, glram: 0.5714, mixtures: [((0.5328, 0.0220), (0.6671, 0.0333)), ((0.5595, 0.0214), (0.7000, 0.0371)), ((0.5752, 0.0297), (0.7244, 0.0381))] },
    Line { r: 6, glram: 0.6857, mixtures: [((0.6252, 0.0242), (0.7867, 0.0138)), ((0.6343, 0.0236), (0.8017, 0.0291)), ((0.6613, 0.0182), (0.7576, 0.0366))] },
    Line { r: 8, glram: 0.7190, mixtures: [((0.7004, 0.0190), (0.8116, 0.0231)), ((0.7100, 0.0246), (0.8211, 0.0246)), ((0.7133, 0.0222), (0.8357, 0.0237))] },
];

#[rustfmt::skip]
const FERET: &[Line] = &[
    Line { r: 4, glram: 0.5000, mixtures: [((0.4620, 0.0315), (0.6070, 0.0427)), ((0.4690, 0.0470), (0.6210, 0.0326)), ((0.4840, 0.0316), (0.5900, 0.0429))] },
    Line { r: 6, glram: 0.5300, mixtures: [((0.5140, 0.0206), (0.6733, 0.0541)), ((0.5350, 0.0283), (0.6467, 0.0343)), ((0.5320, 0.0297), (0.6644, 0.0328))] },
    Line { r: 8, glram: 0.5400, mixtures: [((0.5440, 0.0298), (0.6900, 0.0458)), ((0.5610, 0.0159), (0.6945, 0.0526)), ((0.5580, 0.0187), (0.6770, 0.0593))] },
    Line { r: 10, glram: 0.5500, mixtures: [((0.5910, 0.0460), (0.6890, 0.0455)), ((0.5720, 0.0364), (0.6960, 0.0599)), ((0.5970, 0.0336), (0.7100, 0.0573))] },
];
