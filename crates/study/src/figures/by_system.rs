//! Figures with a row, point or line for each system: comparisons, gains, sweeps, scaling, transfer
//! (Figures 3, 4, 7 and 9).

use super::by_size::points;
use super::{Figure, SYSTEMS_MAX, rows_of};
use crate::plots::{HeatMap, IntervalChart, IntervalRow, LineChart, Measured};
use crate::results::{PairedTask, Results, over_instances};
use crate::statistics::{clustered, mean, tango};
use crate::tables::{
    category_mean, measured_categories, scaling_series, slug, sweep_accuracy, sweeps, trained,
};

/// Maximum number of bars of a drawing: with more, the table is easier to read.
const BARS_MAX: usize = 40;

pub(super) fn systems(results: &Results<'_>) -> Vec<Figure> {
    let row = |system: &crate::results::SystemResults<'_>| {
        let accuracy = over_instances(&system.values(|_, _| true));
        let interval = accuracy
            .interval
            .as_ref()
            .ok()
            .map(|interval| (100.0 * interval.low, 100.0 * interval.high));
        let value = Measured { value: 100.0 * accuracy.mean, interval, is_hollow: false };
        IntervalRow { name: system.label.clone(), values: vec![(accuracy.n > 0).then_some(value)] }
    };

    let rows: Vec<IntervalRow> = results.systems.iter().take(BARS_MAX).map(row).collect();
    if rows.len() < 2 {
        return Vec::new();
    }

    let title = "Accuracy of each system".to_owned();
    let chart = IntervalChart {
        title: title.clone(),
        axis: "accuracy, %".to_owned(),
        series: vec!["accuracy over instances".to_owned()],
        rows,
        has_bars: true,
        range: (0.0, 100.0),
    };

    vec![Figure {
        id: "systems".to_owned(),
        paper: "Figures 7 and 9",
        title,
        caption: "Accuracy over instances with its 95 % interval, as in the table.".to_owned(),
        svg: chart.svg(),
        table: rows_of("systems").to_owned(),
    }]
}

pub(super) fn pairs(results: &Results<'_>) -> Vec<Figure> {
    let row = |pair: &crate::results::PairResults| {
        let differences: Vec<Vec<f64>> = pair.tasks.iter().map(PairedTask::differences).collect();

        let interval = match &pair.tasks[..] {
            [task] if task.is_counted => {
                tango(task.only_right, task.only_left, task.left.len() as u64)
            }
            _ => clustered(&differences).map(|estimate| estimate.interval),
        };
        let interval = interval.ok().map(|interval| (100.0 * interval.low, 100.0 * interval.high));

        let all: Vec<f64> = differences.into_iter().flatten().collect();
        let is_hollow = interval.is_none_or(|(low, high)| low <= 0.0 && high >= 0.0);
        let value = Measured { value: 100.0 * mean(&all), interval, is_hollow };
        IntervalRow { name: pair.title(), values: vec![(!all.is_empty()).then_some(value)] }
    };
    if results.pairs.is_empty() {
        return Vec::new();
    }

    let title = "Gain of each pair".to_owned();
    let chart = IntervalChart {
        title: title.clone(),
        axis: "gain, pp".to_owned(),
        series: vec!["second over first system".to_owned()],
        rows: results.pairs.iter().take(BARS_MAX).map(row).collect(),
        has_bars: false,
        range: (0.0, 0.0),
    };

    vec![Figure {
        id: "pairs".to_owned(),
        paper: "Figure 3",
        title,
        caption:
            "Difference in accuracy on the same instances, in percentage points, with its 95 % interval: clustered \
                  by task, or Tango's if there is one task. Hollow: the interval contains 0, or there is none."
                .to_owned(),
        svg: chart.svg(),
        table: rows_of("pairs").to_owned(),
    }]
}

pub(super) fn sweep_lines(results: &Results<'_>) -> Vec<Figure> {
    let figure = |sweep: &crate::tables::Sweep<'_, '_>| {
        let numbers = sweep.numbers()?;

        let points = numbers
            .iter()
            .zip(&sweep.levels)
            .map(|(x, (_, system))| points(&sweep_accuracy(system), *x));

        let title = format!("Accuracy by {}", sweep.factor);
        let chart = LineChart {
            title: title.clone(),
            x_axis: sweep.factor.to_owned(),
            y_axis: "accuracy, %".to_owned(),
            series: vec![("accuracy over instances".to_owned(), points.collect())],
            y_range: (0.0, 100.0),
            is_dense: false,
        };

        Some(Figure {
            id: format!("sweep-{}", slug(sweep.factor)),
            paper: "Tables 60 and 78 to 82",
            title,
            caption: "Accuracy over instances at each level, with its 95 % interval.".to_owned(),
            svg: chart.svg(),
            table: rows_of("sweep").to_owned(),
        })
    };
    sweeps(results).iter().filter_map(figure).collect()
}

pub(super) fn scaling(results: &Results<'_>) -> Vec<Figure> {
    let series = scaling_series(results)
        .into_iter()
        .filter(|series| series.sizes.len() > 1)
        .take(SYSTEMS_MAX);

    let series: Vec<_> = series
        .map(|series| {
            let points = series
                .sizes
                .iter()
                .map(|(size, _, accuracy)| points(accuracy, (*size as f64).log2()));
            (series.name, points.collect())
        })
        .collect();

    if series.is_empty() {
        return Vec::new();
    }

    let title = "Accuracy by model size".to_owned();
    let chart = LineChart {
        title: title.clone(),
        x_axis: "log2 of the parameters".to_owned(),
        y_axis: "accuracy, %".to_owned(),
        series,
        y_range: (0.0, 100.0),
        is_dense: false,
    };

    vec![Figure {
        id: "scaling".to_owned(),
        paper: "Figure 4",
        title,
        caption: "Accuracy over instances with its 95 % interval; a step to the right is a doubling of the model. The \
                  lines join the points; the laws are in a table."
            .to_owned(),
        svg: chart.svg(),
        table: rows_of("scaling").to_owned(),
    }]
}

pub(super) fn transfer(results: &Results<'_>) -> Vec<Figure> {
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

    vec![Figure {
        id: "transfer".to_owned(),
        paper: "Table 64",
        title,
        caption:
            "Mean accuracy in per cent of the tasks of each category; darker is more accurate."
                .to_owned(),
        svg: chart.svg(),
        table: rows_of("transfer").to_owned(),
    }]
}
