//! Figures with a row, point or line for each system: comparisons, gains, sweeps, scaling, transfer
//! (Figures 3, 4, 7 and 9).

use prime_page::chart::{Axis, Line, LineChart, Measured, Row, RowChart, Scale, WIDTH};
use prime_page::number::{count, fixed};

use super::by_size::points;
use super::{Drawn, Figure, Panel, SYSTEMS_MAX, not_drawn, rows_of, same_everywhere};
use crate::plots::HeatMap;
use crate::results::{Results, over_instances};
use crate::tables::{
    category_mean, gain, measured_categories, scaling_series, slug, sweep_accuracy, sweeps, trained,
};

/// Maximum number of bars of a drawing: with more, the table is easier to read.
const BARS_MAX: usize = 40;

pub(super) fn systems(results: &Results<'_>) -> Vec<Drawn> {
    let row = |system: &crate::results::SystemResults<'_>| {
        let accuracy = over_instances(&system.values(|_, _| true));
        let interval = accuracy
            .interval
            .as_ref()
            .ok()
            .map(|interval| (100.0 * interval.low, 100.0 * interval.high));
        let value = Measured {
            value: 100.0 * accuracy.mean,
            interval,
            link: results.runs_of(system, None),
            ..Measured::default()
        };
        let name = format!("{} (n\u{a0}=\u{a0}{})", system.label, count(accuracy.n as u64));
        let values = vec![(accuracy.n > 0).then_some(value)];
        Row { name, values, slot: Some(system.slot) }
    };

    let rows: Vec<Row> = results.systems.iter().take(BARS_MAX).map(row).collect();
    if rows.len() < 2 {
        return Vec::new();
    }

    let title = "Accuracy of each system".to_owned();
    let values = rows.iter().flat_map(|row| &row.values).flatten().map(|it| it.value);
    if let Some(reason) = same_everywhere(values) {
        return vec![not_drawn(&title, &reason)];
    }
    let chart = RowChart {
        title: title.clone(),
        heading: String::new(),
        axis: "accuracy, %".to_owned(),
        series: vec![("accuracy over instances".to_owned(), 1)],
        rows,
        has_bars: true,
        range: (0.0, 100.0),
        value: Some(|value| format!("{} %", fixed(value, 1))),
        width: WIDTH,
    };

    vec![Ok(Figure {
        id: "systems".to_owned(),
        paper: "Figures 7 and 9",
        title,
        caption: "Accuracy over n instances with its 95 % interval, as in the table.".to_owned(),
        panels: Panel::only(chart.svg()),
        table: rows_of("systems").to_owned(),
    })]
}

/// What rows of pairs need not repeat: the left system, if all pairs have the same, and the warning
/// about the verifier's kinds, if all systems have it.
fn in_common<'r>(results: &'r Results<'_>) -> (Option<&'r str>, &'static str) {
    let first = results.pairs.first().map(|pair| pair.left.as_str());
    let left = first.filter(|left| results.pairs.iter().all(|pair| pair.left == *left));
    let warning = results.systems.first().map_or("", |system| system.evidence.warning());
    let has_it = results.systems.iter().all(|system| system.evidence.warning() == warning);
    (left, if has_it { warning } else { "" })
}

pub(super) fn pairs(results: &Results<'_>) -> Vec<Drawn> {
    let (left, warning) = in_common(results);
    let bare = |label: &str| {
        let suffix = format!(" ({warning})");
        label.strip_suffix(&suffix).unwrap_or(label).to_owned()
    };
    let row = |pair: &crate::results::PairResults| {
        let (gain, interval) = gain(pair);
        let interval = interval.ok().map(|interval| (100.0 * interval.low, 100.0 * interval.high));
        let is_hollow = interval.is_none_or(|(low, high)| low <= 0.0 && high >= 0.0);
        let value = Measured { value: 100.0 * gain, interval, is_hollow, ..Measured::default() };
        let title = match left {
            Some(_) => bare(&pair.right),
            None => format!("{} → {}", bare(&pair.left), bare(&pair.right)),
        };
        let name = format!("{title} (n\u{a0}=\u{a0}{})", count(pair.n() as u64));
        let values = vec![(pair.n() > 0).then_some(value)];
        Row { name, values, slot: Some(results.slot_of(&pair.right)) }
    };
    let rows: Vec<Row> = results.pairs.iter().take(BARS_MAX).map(row).collect();
    // The difference of a single pair stands in the report's first sentence.
    if rows.len() < 2 {
        return Vec::new();
    }

    let title = "Gain of each pair".to_owned();
    let gains = rows.iter().flat_map(|row| &row.values).flatten().map(|it| it.value);
    if gains.clone().all(|gain| gain == 0.0) {
        return vec![not_drawn(&title, "no pair differs")];
    }
    let chart = RowChart {
        title: title.clone(),
        heading: String::new(),
        axis: match left {
            Some(left) => format!("gain over {}, percentage points", bare(left)),
            None => "gain, percentage points".to_owned(),
        },
        series: vec![("second over first system".to_owned(), 1)],
        rows,
        has_bars: false,
        range: (0.0, 0.0),
        value: None,
        width: WIDTH,
    };

    vec![Ok(Figure {
        id: "pairs".to_owned(),
        paper: "Figure 3",
        title,
        caption: format!(
            "Difference in accuracy on the same n instances, in percentage points, with its 95 % interval: clustered \
             by task, or Tango's if there is one task. Hollow: the interval contains 0, or there is none. Colours are \
             those of the second system.{}",
            if warning.is_empty() { String::new() } else { format!(" All systems: {warning}.") }
        ),
        panels: Panel::only(chart.svg()),
        table: rows_of("pairs").to_owned(),
    })]
}

pub(super) fn sweep_lines(results: &Results<'_>) -> Vec<Drawn> {
    let figure = |sweep: &crate::tables::Sweep<'_, '_>| {
        let numbers = sweep.numbers()?;

        let points: Vec<_> = numbers
            .iter()
            .zip(&sweep.levels)
            .map(|(x, (_, system))| points(&sweep_accuracy(system), *x))
            .collect();

        let title = format!("Accuracy by {}", sweep.factor);
        if let Some(reason) = same_everywhere(points.iter().map(|point| point.y)) {
            return Some(not_drawn(&title, &format!("{reason}, at {} levels", points.len())));
        }
        let line = Line {
            name: "accuracy over instances".to_owned(),
            slot: 1,
            is_dashed: false,
            has_markers: true,
            points,
        };
        let chart = LineChart {
            title: title.clone(),
            x: Axis::linear(sweep.factor, (0.0, 0.0)),
            y: Axis::linear("accuracy, %", (0.0, 100.0)),
            series: vec![line],
            value: Some(|value| fixed(value, 1)),
        };

        Some(Ok(Figure {
            id: format!("sweep-{}", slug(sweep.factor)),
            paper: "Tables 60 and 78 to 82",
            title,
            caption: "Accuracy over instances at each level, with its 95 % interval.".to_owned(),
            panels: Panel::only(chart.svg()),
            table: rows_of("sweep").to_owned(),
        }))
    };
    sweeps(results).iter().filter_map(figure).collect()
}

pub(super) fn scaling(results: &Results<'_>) -> Vec<Drawn> {
    let series = scaling_series(results)
        .into_iter()
        .filter(|series| series.sizes.len() > 1)
        .take(SYSTEMS_MAX);

    let series: Vec<Line> = series
        .map(|series| {
            let points =
                series.sizes.iter().map(|(size, _, accuracy)| points(accuracy, *size as f64));
            // The factor's name is the same in all of them: `method=PRIME` is PRIME.
            let name = match series.name.split_once('=') {
                Some((_, value)) if !value.contains('=') => value.to_owned(),
                _ => series.name,
            };
            let points = points.collect();
            Line { name, slot: 0, is_dashed: false, has_markers: true, points }
        })
        .collect();
    let names: Vec<&str> = series.iter().map(|line| line.name.as_str()).collect();
    let slots = prime_page::palette::slots(&names);
    let series: Vec<Line> =
        series.into_iter().zip(slots).map(|(line, slot)| Line { slot, ..line }).collect();

    if series.is_empty() {
        return Vec::new();
    }

    let title = "Accuracy by model size".to_owned();
    let chart = LineChart {
        title: title.clone(),
        x: Axis { scale: Scale::Log, ..Axis::linear("parameters (logarithmic)", (0.0, 0.0)) },
        y: Axis::linear("accuracy, %", (0.0, 100.0)),
        series,
        value: Some(|value| fixed(value, 1)),
    };

    vec![Ok(Figure {
        id: "scaling".to_owned(),
        paper: "Figure 4",
        title,
        caption: "Accuracy over instances with its 95 % interval, against the number of the model's parameters. The \
                  lines join the points; the laws are in a table."
            .to_owned(),
        panels: Panel::only(chart.svg()),
        table: rows_of("scaling").to_owned(),
    })]
}

pub(super) fn transfer(results: &Results<'_>) -> Vec<Drawn> {
    let systems = trained(results);
    let categories = measured_categories(&systems);

    if systems.is_empty() || categories.is_empty() {
        return Vec::new();
    }

    let title = "Transfer between categories".to_owned();
    let chart = HeatMap {
        title: title.clone(),
        axis: "category that was asked".to_owned(),
        columns: categories.iter().map(|category| category.name().to_owned()).collect(),
        rows: systems
            .iter()
            .map(|system| {
                let value = |category| category_mean(system, category).map(|share| 100.0 * share);
                (system.label.clone(), categories.iter().copied().map(value).collect())
            })
            .collect(),
    };

    vec![Ok(Figure {
        id: "transfer".to_owned(),
        paper: "Table 64",
        title,
        caption:
            "Mean accuracy in per cent of the tasks of each category; darker is more accurate."
                .to_owned(),
        panels: Panel::only(chart.svg()),
        table: rows_of("transfer").to_owned(),
    })]
}
