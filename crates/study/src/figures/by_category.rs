//! Accuracies by category and by level.

use prime_bench::tasks::{Category, Difficulty, Spec};

use prime_page::chart::{Measured, Row, RowChart, WIDTH};
use prime_page::number::count;

use super::{
    Drawn, Figure, Panel, SYSTEMS_MAX, more_systems, not_drawn, same_everywhere, system_series,
};
use crate::plots::{BoxChart, BoxGroup, Radar};
use crate::results::{Accuracy, Results, TaskResults, TaskValues, all_categories, over_tasks};
use crate::statistics::mean;

/// Categories in which a system was measured, in the paper's order.
fn present(results: &Results<'_>) -> Vec<Category> {
    let has = |category: &Category| {
        let tasks = results.systems.iter().flat_map(|system| &system.tasks);
        tasks.into_iter().any(|task| task.spec.category == *category && !task.instances.is_empty())
    };
    all_categories().filter(has).collect()
}

fn measured(accuracy: &Accuracy) -> Option<Measured> {
    let interval = accuracy
        .interval
        .as_ref()
        .ok()
        .map(|interval| (100.0 * interval.low, 100.0 * interval.high));

    (accuracy.n > 0).then_some(Measured {
        value: 100.0 * accuracy.mean,
        interval,
        ..Measured::default()
    })
}

fn rows<T: Copy>(
    results: &Results<'_>,
    groups: &[T],
    name: impl Fn(T) -> &'static str,
    belongs: impl Fn(T, &Spec, Option<Difficulty>) -> bool,
) -> Vec<Row> {
    let value = |group: T, system: &crate::results::SystemResults<'_>| {
        measured(&over_tasks(&system.values(|spec, level| belongs(group, spec, level))))
    };

    let row = |group: &T| Row {
        name: name(*group).to_owned(),
        slot: None,
        values: results
            .systems
            .iter()
            .take(SYSTEMS_MAX)
            .map(|system| value(*group, system))
            .collect(),
    };
    groups.iter().map(row).collect()
}

fn instances(results: &Results<'_>) -> usize {
    let systems = results.systems.iter().take(SYSTEMS_MAX);
    systems
        .map(|system| system.tasks.iter().map(|task| task.instances.len()).sum::<usize>())
        .max()
        .unwrap_or_default()
}

fn bar_figure(
    results: &Results<'_>,
    id: &str,
    paper: &'static str,
    title: &str,
    rows: Vec<Row>,
) -> Drawn {
    let values = rows.iter().flat_map(|row| &row.values).flatten().map(|it| it.value);
    if let Some(reason) = same_everywhere(values) {
        return not_drawn(title, &reason);
    }
    let chart = RowChart {
        title: title.to_owned(),
        heading: String::new(),
        axis: "mean accuracy of the tasks, %".to_owned(),
        series: system_series(results),
        rows,
        has_bars: true,
        range: (0.0, 100.0),
        value: None,
        width: WIDTH,
    };

    Ok(Figure {
        id: id.to_owned(),
        paper,
        title: title.to_owned(),
        caption: format!(
            "Mean of the tasks' accuracies with 95 % intervals (BCa over tasks, then instances; Wilson's for a single \
             task; Clopper-Pearson's where all are right or all wrong); up to {} instances a system.{}",
            count(instances(results) as u64),
            more_systems(results)
        ),
        panels: Panel::only(chart.svg()),
        table: super::rows_of(id).to_owned(),
    })
}

pub(super) fn bars(results: &Results<'_>) -> Vec<Drawn> {
    let rows = rows(results, &present(results), Category::name, |category, spec, _| {
        spec.category == category
    });

    // One category is the whole study.
    if rows.len() < 2 {
        return Vec::new();
    }
    vec![bar_figure(results, "categories", "Figures 12 and 22", "Accuracy by category", rows)]
}

pub(super) fn difficulty(results: &Results<'_>) -> Vec<Drawn> {
    let rows =
        rows(results, &Difficulty::ALL, Difficulty::name, |wanted, _, level| level == Some(wanted));
    let rows: Vec<_> =
        rows.into_iter().filter(|row| row.values.iter().any(Option::is_some)).collect();
    if rows.len() < 2 {
        return Vec::new();
    }
    vec![bar_figure(results, "difficulty", "Table 61", "Accuracy by difficulty", rows)]
}

pub(super) fn radar(results: &Results<'_>) -> Vec<Drawn> {
    let categories = present(results);
    // With two axes there is no area.
    if categories.len() < 3 {
        return Vec::new();
    }

    let series = |system: &crate::results::SystemResults<'_>| {
        let value = |category: &Category| {
            let values = system.values(|spec, _| spec.category == *category);
            (!values.is_empty()).then(|| 100.0 * over_tasks_mean(&values))
        };
        ((system.label.clone(), system.slot), categories.iter().map(value).collect::<Vec<_>>())
    };

    let title = "Accuracy in each category".to_owned();
    let series: Vec<_> = results.systems.iter().take(SYSTEMS_MAX).map(series).collect();
    if let Some(reason) = same_everywhere(series.iter().flat_map(|it| &it.1).flatten().copied()) {
        return vec![not_drawn(&title, &reason)];
    }

    let chart = Radar {
        title: title.clone(),
        axes: categories.iter().map(|category| category.name().to_owned()).collect(),
        series,
    };

    vec![Ok(Figure {
        id: "radar".to_owned(),
        paper: "Figures 13 and 23",
        title,
        caption: format!(
            "Mean of the tasks' accuracies, 0 to 100 %; intervals are in the table. The area has no meaning: it \
             depends on the order of the axes.{}",
            more_systems(results)
        ),
        panels: Panel::only(chart.svg()),
        table: super::rows_of("radar").to_owned(),
    })]
}

fn over_tasks_mean(tasks: &[TaskValues]) -> f64 {
    mean(&tasks.iter().map(|task| mean(&task.values)).collect::<Vec<_>>())
}

pub(super) fn boxes(results: &Results<'_>) -> Vec<Drawn> {
    let categories = present(results);

    let group = |category: &Category| BoxGroup {
        name: category.name().to_owned(),
        values: results
            .systems
            .iter()
            .take(SYSTEMS_MAX)
            .map(|system| {
                let tasks = system.tasks.iter().filter(|it| it.spec.category == *category);
                let measured = tasks.filter(|task| !task.instances.is_empty());
                let value = |task: &TaskResults<'_>| {
                    (task.spec.slug, 100.0 * mean(&task.values(|_| true).values))
                };
                measured.map(value).collect()
            })
            .collect(),
    };

    let groups: Vec<BoxGroup> = categories.iter().map(group).collect();
    let tasks = groups
        .iter()
        .map(|group| group.values.iter().map(Vec::len).max().unwrap_or_default())
        .sum::<usize>();
    // With one task in each category, the boxes are the bars.
    if tasks <= groups.len() {
        return Vec::new();
    }

    let title = "Accuracies of the tasks of each category".to_owned();
    let values = groups.iter().flat_map(|group| &group.values).flatten().map(|(_, value)| *value);
    if let Some(reason) = same_everywhere(values) {
        return vec![not_drawn(&title, &reason)];
    }

    let chart = BoxChart {
        title: title.clone(),
        axis: "accuracy of a task, %".to_owned(),
        series: system_series(results),
        groups,
        range: (0.0, 100.0),
    };

    vec![Ok(Figure {
        id: "boxes".to_owned(),
        paper: "Figures 19 and 29",
        title,
        caption: format!(
            "A point for tasks of the same accuracy, which grows with their number; {tasks} tasks. Boxes: quartiles by linear interpolation (type 7) and median; whiskers: \
             the outermost tasks within 1.5 interquartile ranges.{}",
            more_systems(results)
        ),
        panels: Panel::only(chart.svg()),
        table: super::rows_of("boxes").to_owned(),
    })]
}
