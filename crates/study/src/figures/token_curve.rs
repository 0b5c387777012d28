//! Accuracy against spent tokens.

use super::{Figure, SYSTEMS_MAX, more_systems, rows_of};
use crate::plots::{LineChart, LinePoint};
use crate::results::Results;
use crate::tables::curves_of_systems;

pub(super) fn token_curve(results: &Results<'_>) -> Vec<Figure> {
    let curves = curves_of_systems(results);
    if curves.is_empty() {
        return Vec::new();
    }

    let title = "Accuracy against spent tokens".to_owned();
    let line = |(system, curve): &(&crate::results::SystemResults<'_>, Vec<_>)| {
        let point = |at: &crate::tables::AtBudget| LinePoint {
            x: at.tokens as f64,
            y: 100.0 * at.accuracy.mean,
            interval: None,
        };
        (system.label.clone(), curve.iter().map(point).collect())
    };
    let chart = LineChart {
        title: title.clone(),
        x_axis: "tokens of a run".to_owned(),
        y_axis: "accuracy, %".to_owned(),
        series: curves.iter().take(SYSTEMS_MAX).map(line).collect(),
        y_range: (0.0, 100.0),
        is_dense: false,
    };

    vec![Figure {
        id: "token-curve".to_owned(),
        paper: "not in the paper",
        title,
        caption: "Accuracy if each run had been ended at this many tokens; the table has the \
                  intervals."
            .to_owned()
            + &more_systems(results),
        svg: chart.svg(),
        table: rows_of("token-curve").to_owned(),
    }]
}
