//! Accuracy against spent tokens.

use prime_page::chart::{Axis, Line, LineChart, LinePoint};

use super::{Drawn, Figure, Panel, SYSTEMS_MAX, more_systems, not_drawn, rows_of, same_everywhere};
use crate::results::Results;
use crate::tables::curves_of_systems;

pub(super) fn token_curve(results: &Results<'_>) -> Vec<Drawn> {
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
        Line {
            name: system.label.clone(),
            slot: system.slot,
            is_dashed: false,
            has_markers: true,
            points: curve.iter().map(point).collect(),
        }
    };
    let values = curves.iter().flat_map(|(_, curve)| curve).map(|at| 100.0 * at.accuracy.mean);
    if let Some(reason) = same_everywhere(values) {
        return vec![not_drawn(&title, &reason)];
    }

    let chart = LineChart {
        title: title.clone(),
        x: Axis::linear("tokens of a run", (0.0, 0.0)),
        y: Axis::linear("accuracy, %", (0.0, 100.0)),
        series: curves.iter().take(SYSTEMS_MAX).map(line).collect(),
        value: None,
    };

    vec![Ok(Figure {
        id: "token-curve".to_owned(),
        paper: "not in the paper",
        title,
        caption: "Accuracy if each run had been ended at this many tokens; the table has the \
                  intervals."
            .to_owned()
            + &more_systems(results),
        panels: Panel::only(chart.svg()),
        table: rows_of("token-curve").to_owned(),
    })]
}
