//! The twelve categories (Tables 44 and 50).

use prime_bench::tasks::Category;

use super::summary::{accuracy_cells, methods};
use super::table::{Cell, Column, Table};
use crate::results::{PairResults, Results, all_categories, clamped, over_tasks};
use crate::statistics::{
    Computed, Interval, RESAMPLES, bca_of_means, mean, standard_deviation, stratified_over,
};

/// Accuracy of each system in each category.
pub(super) fn categories(results: &Results<'_>) -> Table {
    let mut used = Vec::new();
    let mut rows = Vec::new();

    for category in all_categories() {
        for system in &results.systems {
            let values = system.values(|spec, _| spec.category == category);
            if values.is_empty() {
                continue;
            }

            let accuracy = over_tasks(&values);
            let means: Vec<f64> = values.iter().map(|task| mean(&task.values)).collect();

            let deviation = if means.len() < 2 {
                Cell::LeftOut("a standard deviation needs two tasks".to_owned())
            } else {
                Cell::percent(standard_deviation(&means))
            };

            let mut row = vec![
                Cell::Text(category.name().to_owned()),
                Cell::Text(system.label.clone()),
                Cell::count(values.len()),
                Cell::instances(accuracy.n, accuracy.inputs),
            ];
            row.extend(accuracy_cells(&accuracy));

            let (strata, inputs): (Vec<_>, Vec<_>) =
                values.into_iter().map(|task| (task.values, task.inputs)).unzip();
            let stratified = stratified_over(&strata, &inputs);
            let stratified = stratified.map(|estimate| clamped(estimate.interval));
            row.extend([deviation, Cell::percent_interval(&stratified)]);
            rows.push(row);
            used.push(accuracy);
        }
    }

    Table {
        id: "categories".to_owned(),
        paper: "Tables 44 and 50",
        title: "Accuracy by category".to_owned(),
        caption: format!(
            "Mean of the tasks' accuracies. 95 % intervals: {} ({RESAMPLES} resamples); they speak of tasks like \
             these. SD: over tasks (n − 1). The stratified interval speaks of exactly these tasks.",
            methods(&used)
        ),
        columns: vec![
            Column::text("category"),
            Column::text("system"),
            Column::number("tasks"),
            Column::number("instances"),
            Column::number("mean of tasks, %"),
            Column::interval("95 %"),
            Column::number("SD of tasks, pp"),
            Column::interval("95 %, stratified"),
        ],
        rows,
    }
}

/// The gain in a category with its interval, in percentage points.
pub(crate) struct CategoryGain {
    pub category: Category,
    pub tasks: usize,
    pub n: usize,
    pub gain: f64,
    pub interval: Computed<Interval>,
}

/// Gains of a pair in each category in which it has tasks.
pub(crate) fn gains(pair: &PairResults) -> Vec<CategoryGain> {
    let of = |category: Category| {
        let tasks: Vec<Vec<f64>> = pair
            .tasks
            .iter()
            .filter(|task| task.spec.category == category)
            .map(|task| task.differences())
            .collect();

        let means: Vec<f64> = tasks.iter().map(|task| mean(task)).collect();

        (!tasks.is_empty()).then(|| CategoryGain {
            category,
            tasks: tasks.len(),
            n: tasks.iter().map(Vec::len).sum(),
            gain: 100.0 * mean(&means),
            interval: bca_of_means(&tasks, RESAMPLES, crate::results::BOOTSTRAP_SEED)
                .map(|bca| bca.interval.scaled(100.0)),
        })
    };
    all_categories().filter_map(of).collect()
}

/// Gains of all pairs by category.
pub(super) fn category_gains(results: &Results<'_>) -> Table {
    let row = |pair: &PairResults, gain: CategoryGain| {
        let marked = gain.interval.as_ref().map(|interval| {
            Cell::Text(if interval.contains(0.0) { "n.s." } else { "yes" }.to_owned())
        });

        vec![
            Cell::Text(gain.category.name().to_owned()),
            Cell::Text(pair.title()),
            Cell::count(gain.tasks),
            Cell::count(gain.n),
            Cell::number(gain.gain, 1),
            Cell::computed(gain.interval.as_ref(), |interval| Cell::interval(*interval, 1)),
            Cell::computed(marked, |cell| cell),
        ]
    };

    let rows = results
        .pairs
        .iter()
        .flat_map(|pair| gains(pair).into_iter().map(move |gain| row(pair, gain)));

    Table {
        id: "category-gains".to_owned(),
        paper: "Table 44",
        title: "Gain by category".to_owned(),
        caption: format!(
            "Mean over tasks of the gain on the same instances, in percentage points (pp). 95 % intervals: BCa \
             bootstrap over tasks, then instances ({RESAMPLES} resamples); n.s.: the interval contains 0."
        ),
        columns: vec![
            Column::text("category"),
            Column::text("pair"),
            Column::number("tasks"),
            Column::number("pairs"),
            Column::number("gain, pp"),
            Column::interval("95 %"),
            Column::text("significant"),
        ],
        rows: rows.collect(),
    }
}
