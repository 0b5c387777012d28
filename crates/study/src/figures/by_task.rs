//! Accuracies and gains of single tasks.

use prime_bench::tasks::Category;

use super::{Figure, SYSTEMS_MAX, more_systems, system_names};
use crate::plots::{Histogram, IntervalChart, IntervalRow, Measured, Point, Scatter};
use crate::results::{PairResults, PairedTask, Results, all_categories, over_instances};
use crate::statistics::{Computed, Interval, clustered, mean, quantile, tango};
use crate::tables::slug;

/// Gains in the figure of the largest ones, as many as in the paper's.
const TOP: usize = 30;
/// Width of a bin, in percentage points.
const BIN_WIDTH: f64 = 5.0;

/// The 95 % interval of a task's gain, in percentage points.
fn gain_interval(task: &PairedTask) -> Computed<Interval> {
    let interval = if task.is_counted {
        tango(task.only_right, task.only_left, task.left.len() as u64)
    } else {
        // Repeated instances have shares, for which Tango's interval is not defined.
        let differences: Vec<Vec<f64>> =
            task.differences().into_iter().map(|value| vec![value]).collect();
        clustered(&differences).map(|estimate| estimate.interval)
    };

    interval.map(|interval| interval.scaled(100.0))
}

pub(super) fn tasks(results: &Results<'_>) -> Vec<Figure> {
    let systems: Vec<_> = results.systems.iter().take(SYSTEMS_MAX).collect();

    let mut specs: Vec<_> =
        systems.iter().flat_map(|system| &system.tasks).map(|task| task.spec).collect();
    specs.sort_by_key(|spec| (spec.id, spec.slug));
    specs.dedup_by_key(|spec| spec.slug);

    if specs.is_empty() {
        return Vec::new();
    }

    let value = |slug: &str, system: &crate::results::SystemResults<'_>| {
        let task = system.tasks.iter().find(|task| task.spec.slug == slug)?;
        let accuracy = over_instances(&[task.values(|_| true)]);
        let interval =
            accuracy.interval.ok().map(|interval| (100.0 * interval.low, 100.0 * interval.high));
        (accuracy.n > 0).then_some(Measured {
            value: 100.0 * accuracy.mean,
            interval,
            is_hollow: false,
        })
    };

    let row = |spec: &&'static prime_bench::tasks::Spec| IntervalRow {
        name: spec.slug.to_owned(),
        values: systems.iter().map(|system| value(spec.slug, system)).collect(),
    };

    let title = "Accuracy of each task".to_owned();
    let chart = IntervalChart {
        title: title.clone(),
        axis: "accuracy, %".to_owned(),
        series: system_names(results),
        rows: specs.iter().map(row).collect(),
        has_bars: false,
        range: (0.0, 100.0),
    };

    vec![Figure {
        id: "tasks".to_owned(),
        paper: "Figures 15 to 18 and 25 to 28",
        title,
        caption: format!(
            "{} tasks in the paper's order, with 95 % intervals (Wilson's, or Student's over instances that were repeated).{}",
            specs.len(),
            more_systems(results)
        ),
        svg: chart.svg(),
        table: super::rows_of("tasks").to_owned(),
    }]
}

/// The figure of one pair.
fn pair_figure(
    pair: &PairResults,
    id: &str,
    paper: &'static str,
    what: &str,
    caption: String,
    svg: String,
) -> Figure {
    Figure {
        id: format!("{id}-{}", slug(&pair.title())),
        paper,
        title: format!("{what}: {}", pair.title()),
        caption,
        svg,
        table: format!("tasks-{}", slug(&pair.title())),
    }
}

pub(super) fn top_gains(results: &Results<'_>) -> Vec<Figure> {
    let figure = |pair: &PairResults| {
        let mut tasks: Vec<&PairedTask> = pair.tasks.iter().collect();
        // Ties in the paper's order.
        tasks.sort_by(|a, b| b.gain().total_cmp(&a.gain()).then(a.spec.id.cmp(&b.spec.id)));

        let row = |task: &&PairedTask| {
            let interval = gain_interval(task);
            let is_hollow = interval.as_ref().map_or(true, |interval| interval.contains(0.0));
            let interval = interval.ok().map(|interval| (interval.low, interval.high));
            let values = vec![Some(Measured { value: task.gain(), interval, is_hollow })];
            IntervalRow { name: task.spec.slug.to_owned(), values }
        };

        let rows: Vec<_> = tasks.iter().take(TOP).map(row).collect();
        let chart = IntervalChart {
            title: format!("Largest gains: {}", pair.title()),
            axis: "gain, percentage points".to_owned(),
            series: vec![pair.title()],
            rows,
            has_bars: true,
            range: (0.0, 1.0),
        };

        let caption = format!(
            "The {} largest gains of {} tasks, {} pairs, with 95 % intervals (Tango's; clustered where instances were \
             repeated). Hollow: the interval contains 0. The largest of many gains are overestimates: luck selects \
             them.",
            tasks.len().min(TOP),
            tasks.len(),
            pair.n()
        );

        pair_figure(pair, "top-gains", "Figures 14 and 24", "Largest gains", caption, chart.svg())
    };
    results.pairs.iter().filter(|pair| !pair.tasks.is_empty()).map(figure).collect()
}

pub(super) fn scatter(results: &Results<'_>) -> Vec<Figure> {
    let figure = |pair: &PairResults| {
        let categories: Vec<Category> = all_categories()
            .filter(|category| pair.tasks.iter().any(|task| task.spec.category == *category))
            .collect();

        let point = |task: &PairedTask| Point {
            x: 100.0 * mean(&task.left),
            y: 100.0 * mean(&task.right),
            series: categories
                .iter()
                .position(|category| *category == task.spec.category)
                .unwrap_or_default(),
            label: String::new(),
            interval: None,
        };

        let chart = Scatter {
            title: format!("Accuracy of each task: {}", pair.title()),
            x_axis: format!("{}, %", pair.left),
            y_axis: format!("{}, %", pair.right),
            series: categories.iter().map(|category| category.name().to_owned()).collect(),
            points: pair.tasks.iter().map(point).collect(),
            x_range: (0.0, 101.0),
            y_range: (0.0, 101.0),
            has_diagonal: true,
            line: Vec::new(),
        };

        let caption = format!(
            "A point a task, {} tasks, {} pairs of the same instances. On the line both are equal; intervals are in the table.",
            pair.tasks.len(),
            pair.n()
        );

        pair_figure(
            pair,
            "scatter",
            "Figures 20 and 30",
            "Accuracy of each task",
            caption,
            chart.svg(),
        )
    };
    results.pairs.iter().filter(|pair| !pair.tasks.is_empty()).map(figure).collect()
}

pub(super) fn gains(results: &Results<'_>) -> Vec<Figure> {
    let figure = |pair: &PairResults| {
        let mut gains: Vec<f64> = pair.tasks.iter().map(PairedTask::gain).collect();
        gains.sort_by(f64::total_cmp);

        let caption = format!(
            "Gains of {} tasks in bins of {BIN_WIDTH} percentage points (pp): mean {:.1} pp, median {:.1} pp.",
            gains.len(),
            mean(&gains),
            quantile(&gains, 0.5).unwrap_or_default()
        );

        let chart = Histogram {
            title: format!("Gains: {}", pair.title()),
            x_axis: "gain, percentage points".to_owned(),
            y_axis: "tasks".to_owned(),
            values: gains,
            bin_width: BIN_WIDTH,
        };

        pair_figure(pair, "gains", "Figures 21 and 31", "Histogram of gains", caption, chart.svg())
    };
    results.pairs.iter().filter(|pair| !pair.tasks.is_empty()).map(figure).collect()
}
