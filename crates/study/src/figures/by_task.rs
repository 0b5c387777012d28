//! Accuracies and gains of single tasks.

use prime_bench::tasks::Spec;
use prime_page::chart::{Axis, Measured, Row, RowChart, WIDTH};
use prime_page::number::{count, fixed, trimmed};

use super::{
    Drawn, Figure, Panel, SYSTEMS_MAX, more_systems, not_drawn, same_everywhere, system_series,
};
use crate::plots::{Histogram, Point, Scatter};
use crate::results::{PairResults, PairedTask, Results, all_categories, over_instances};
use crate::statistics::{Computed, Interval, clustered, mean, quantile, tango};
use crate::tables::slug;

/// Gains in the figure of the largest ones, as many as in the paper's.
const TOP: usize = 30;
/// With more tasks than this, each category has a drawing of its own.
const TASKS_MAX: usize = 15;
/// Width of a category's drawing, in pixels: three stand side by side.
const PANEL: f64 = 380.0;
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

pub(super) fn tasks(results: &Results<'_>) -> Vec<Drawn> {
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
            link: results.runs_of(system, Some(slug)),
            ..Measured::default()
        })
    };

    let row = |spec: &&'static Spec| Row {
        name: spec.slug.to_owned(),
        values: systems.iter().map(|system| value(spec.slug, system)).collect(),
        slot: None,
    };

    let title = "Accuracy of each task".to_owned();
    let chart = |heading: &str, specs: &[&'static Spec], width: f64| RowChart {
        title: if heading.is_empty() { title.clone() } else { format!("{title}: {heading}") },
        heading: heading.to_owned(),
        axis: "accuracy, %".to_owned(),
        series: system_series(results),
        rows: specs.iter().map(row).collect(),
        has_bars: false,
        range: (0.0, 100.0),
        value: None,
        width,
    };

    let panels = if specs.len() <= TASKS_MAX {
        let whole = chart("", &specs, WIDTH);
        let values = whole.rows.iter().flat_map(|row| &row.values).flatten().map(|it| it.value);
        if let Some(reason) = same_everywhere(values) {
            return vec![not_drawn(&title, &reason)];
        }
        Panel::only(whole.svg())
    } else {
        let of_category = |category: prime_bench::tasks::Category| {
            let specs: Vec<_> =
                specs.iter().copied().filter(|spec| spec.category == category).collect();
            let name = category.name().to_owned();
            (!specs.is_empty()).then(|| Panel { svg: chart(&name, &specs, PANEL).svg(), name })
        };
        all_categories().filter_map(of_category).collect()
    };

    vec![Ok(Figure {
        id: "tasks".to_owned(),
        paper: "Figures 15 to 18 and 25 to 28",
        title,
        caption: format!(
            "{} tasks in the paper's order, with 95 % intervals (Wilson's, or Student's over instances that were repeated).{}",
            specs.len(),
            more_systems(results)
        ),
        panels,
        table: super::rows_of("tasks").to_owned(),
    })]
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
        panels: Panel::only(svg),
        table: format!("tasks-{}", slug(&pair.title())),
    }
}

pub(super) fn top_gains(results: &Results<'_>) -> Vec<Drawn> {
    let figure = |pair: &PairResults| {
        let mut tasks: Vec<&PairedTask> =
            pair.tasks.iter().filter(|task| task.gain() != 0.0).collect();
        // Ties in the paper's order.
        tasks.sort_by(|a, b| b.gain().total_cmp(&a.gain()).then(a.spec.id.cmp(&b.spec.id)));
        if let Some(reason) = few_differ(pair, &tasks) {
            return not_drawn(&format!("Gains and losses of tasks: {}", pair.title()), &reason);
        }

        let row = |task: &&PairedTask| {
            let interval = gain_interval(task);
            let is_hollow = interval.as_ref().map_or(true, |interval| interval.contains(0.0));
            let interval = interval.ok().map(|interval| (interval.low, interval.high));
            let value = task.gain();
            let values = vec![Some(Measured { value, interval, is_hollow, ..Measured::default() })];
            let name =
                format!("{} (n\u{a0}=\u{a0}{})", task.spec.slug, count(task.left.len() as u64));
            Row { name, values, slot: Some(results.slot_of(&pair.right)) }
        };

        let rows: Vec<_> = tasks.iter().take(TOP).map(row).collect();
        let chart = RowChart {
            title: format!("Gains and losses of tasks: {}", pair.title()),
            heading: String::new(),
            axis: "gain, percentage points".to_owned(),
            series: vec![(pair.title(), 0)],
            rows,
            has_bars: true,
            range: (0.0, 1.0),
            value: None,
            width: WIDTH,
        };

        let which = match tasks.len().checked_sub(TOP) {
            None | Some(0) => format!("The {} tasks", tasks.len()),
            Some(more) => format!("The {TOP} largest gains; {more} more are in the table. Tasks"),
        };
        let caption = format!(
            "{which} in which the systems differ, of {} tasks and {} pairs, with 95 % intervals (Tango's; clustered \
             where instances were repeated). Hollow: the interval contains 0. The largest of many gains are \
             overestimates: luck selects them.",
            pair.tasks.len(),
            count(pair.n() as u64)
        );

        let what = "Gains and losses of tasks";
        Ok(pair_figure(pair, "top-gains", "Figures 14 and 24", what, caption, chart.svg()))
    };
    results.pairs.iter().filter(|pair| !pair.tasks.is_empty()).map(figure).collect()
}

/// Why figures of the tasks that differ would show nothing.
fn few_differ(pair: &PairResults, tasks: &[&PairedTask]) -> Option<String> {
    let of = pair.tasks.len();
    match tasks {
        [] => Some(format!("the systems are equal on each of {of} tasks")),
        [task] if of > 1 => Some(format!(
            "the systems differ on one of {of} tasks, {}, by {} percentage points",
            task.spec.slug,
            fixed(task.gain(), 1)
        )),
        [_] => Some("there is one task".to_owned()),
        _ => None,
    }
}

/// A point for all tasks with the same two accuracies.
fn points(results: &Results<'_>, pair: &PairResults) -> Vec<Point> {
    let place = |task: &PairedTask| (100.0 * mean(&task.left), 100.0 * mean(&task.right));
    let mut tasks: Vec<&PairedTask> = pair.tasks.iter().collect();
    let order = |a: (f64, f64), b: (f64, f64)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1));
    tasks.sort_by(|a, b| order(place(a), place(b)));

    let point = |tasks: &[&PairedTask]| {
        let (x, y) = place(tasks[0]);
        let names: Vec<&str> = tasks.iter().map(|task| task.spec.slug).collect();
        let label = match names[..] {
            [one] => one.to_owned(),
            _ => format!("{} tasks", names.len()),
        };
        Point {
            x,
            y,
            slot: results.slot_of(&pair.right),
            label,
            description: format!(
                "{}: {} {} %, {} {} %",
                names.join(", "),
                pair.left,
                trimmed(x, 1),
                pair.right,
                trimmed(y, 1)
            ),
            count: names.len(),
            interval: None,
            link: None,
        }
    };
    tasks.chunk_by(|a, b| place(a) == place(b)).map(point).collect()
}

pub(super) fn scatter(results: &Results<'_>) -> Vec<Drawn> {
    let figure = |pair: &PairResults| {
        let title = format!("Accuracy of each task: {}", pair.title());
        let points = points(results, pair);
        if let [one] = &points[..] {
            let reason = format!(
                "{} solves {} % of each of {} tasks and {} {} %",
                pair.left,
                trimmed(one.x, 1),
                pair.tasks.len(),
                pair.right,
                trimmed(one.y, 1)
            );
            return not_drawn(&title, &reason);
        }

        let axis = |name: &str| Axis::linear(&format!("{name}, accuracy in %"), (0.0, 104.0));
        let chart = Scatter {
            title,
            axes: (axis(&pair.left), axis(&pair.right)),
            series: Vec::new(),
            points,
            has_diagonal: true,
            line: Vec::new(),
        };

        let caption = format!(
            "A point for all tasks with the same two accuracies, which grows with their number; {} tasks, {} pairs of \
             the same instances. On the line both systems are equal; intervals are in the table.",
            pair.tasks.len(),
            count(pair.n() as u64)
        );

        let what = "Accuracy of each task";
        Ok(pair_figure(pair, "scatter", "Figures 20 and 30", what, caption, chart.svg()))
    };
    // The accuracies of a single task are those of the systems.
    results.pairs.iter().filter(|pair| pair.tasks.len() > 1).map(figure).collect()
}

pub(super) fn gains(results: &Results<'_>) -> Vec<Drawn> {
    let figure = |pair: &PairResults| {
        let mut gains: Vec<f64> = pair.tasks.iter().map(PairedTask::gain).collect();
        gains.sort_by(f64::total_cmp);

        let caption = format!(
            "Gains of {} tasks in bins of {BIN_WIDTH} percentage points (pp): mean {:.1} pp, median {:.1} pp.",
            gains.len(),
            mean(&gains),
            quantile(&gains, 0.5).unwrap_or_default()
        );

        let title = format!("Histogram of gains: {}", pair.title());
        let chart = Histogram {
            title: title.clone(),
            x_axis: "gain, percentage points".to_owned(),
            y_axis: "tasks".to_owned(),
            values: gains,
            bin_width: BIN_WIDTH,
            slot: results.slot_of(&pair.right),
        };
        if chart.filled_bins() < 2 {
            return not_drawn(&title, &format!("all {} tasks are in one bin", pair.tasks.len()));
        }

        let what = "Histogram of gains";
        Ok(pair_figure(pair, "gains", "Figures 21 and 31", what, caption, chart.svg()))
    };
    results.pairs.iter().filter(|pair| pair.tasks.len() > 1).map(figure).collect()
}
