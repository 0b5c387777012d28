//! Systems that were trained on parts of the benchmark (Tables 64 and 65).

use prime_bench::tasks::Category;

use super::summary::accuracy_cells;
use super::table::{Cell, Column, Table};
use crate::results::{Results, SystemResults, all_categories, over_tasks};
use crate::statistics::mean;

/// The factor that names the categories of a training, or `all`.
pub(crate) const TRAINED_ON: &str = "trained_on";
const EVERYTHING: &str = "all";

/// Systems that name what they were trained on.
pub(crate) fn trained<'s, 'r>(results: &'s Results<'r>) -> Vec<&'s SystemResults<'r>> {
    results.systems.iter().filter(|system| system.factors.contains_key(TRAINED_ON)).collect()
}

/// Categories in which one of the systems was measured, in the paper's order.
pub(crate) fn measured_categories(systems: &[&SystemResults<'_>]) -> Vec<Category> {
    let has = |category: &Category| {
        let tasks = systems.iter().flat_map(|system| &system.tasks);
        tasks.into_iter().any(|task| task.spec.category == *category && !task.instances.is_empty())
    };
    all_categories().filter(has).collect()
}

/// Mean accuracy of a category's tasks, 0 to 1.
pub(crate) fn category_mean(system: &SystemResults<'_>, category: Category) -> Option<f64> {
    let values = system.values(|spec, _| spec.category == category);
    let means: Vec<f64> = values.iter().map(|task| mean(&task.values)).collect();
    (!means.is_empty()).then(|| mean(&means))
}

fn was_trained_on(system: &SystemResults<'_>, category: Category) -> bool {
    let parts = system.parts(TRAINED_ON);
    parts.contains(EVERYTHING) || parts.contains(category.name())
}

pub(super) fn transfer(results: &Results<'_>) -> Table {
    let systems = trained(results);
    let categories = measured_categories(&systems);

    let rows =
        systems.iter().map(|system| {
            let trained: Vec<&str> = system.parts(TRAINED_ON).into_iter().collect();
            let mut row = vec![Cell::Text(system.label.clone()), Cell::Text(trained.join(", "))];
            row.extend(categories.iter().map(|category| {
                category_mean(system, *category).map_or(Cell::Empty, Cell::percent)
            }));
            row
        });

    let rows = rows.collect();

    let mut columns = vec![Column::text("system"), Column::text("trained on")];
    columns.extend(
        categories.iter().map(|category| Column::number(&format!("{}, %", category.name()))),
    );

    Table {
        id: "transfer".to_owned(),
        paper: "Table 64",
        title: "Transfer between categories".to_owned(),
        caption:
            "Mean accuracy of the tasks of each category, by what the system was trained on; intervals are in the \
                  tables of the categories and of held-out categories."
                .to_owned(),
        columns,
        rows,
    }
}

pub(super) fn held_out(results: &Results<'_>) -> Table {
    let systems = trained(results);
    let full = systems.iter().find(|system| system.parts(TRAINED_ON).contains(EVERYTHING));

    let mut rows = Vec::new();
    for category in measured_categories(&systems) {
        for system in systems.iter().filter(|system| !was_trained_on(system, category)) {
            let values = system.values(|spec, _| spec.category == category);
            if values.is_empty() {
                continue;
            }

            let accuracy = over_tasks(&values);
            let trained: Vec<&str> = system.parts(TRAINED_ON).into_iter().collect();

            let mut row = vec![
                Cell::Text(category.name().to_owned()),
                Cell::Text(system.label.clone()),
                Cell::Text(trained.join(", ")),
                Cell::count(values.len()),
                Cell::instances(accuracy.n, accuracy.inputs),
            ];

            row.extend(accuracy_cells(&accuracy));

            let full = full.and_then(|full| category_mean(full, category));
            row.push(full.map_or(Cell::Empty, Cell::percent));
            row.push(full.map_or(Cell::Empty, |full| Cell::percent(accuracy.mean - full)));
            rows.push(row);
        }
    }

    Table {
        id: "held-out".to_owned(),
        paper: "Table 65",
        title: "Categories that were held out of the training".to_owned(),
        caption: "Mean accuracy of the tasks of each category that the system was not trained on, with its 95 % \
                  interval, and that of the system that was trained on all; difference in percentage points (pp)."
            .to_owned(),
        columns: vec![
            Column::text("category"),
            Column::text("system"),
            Column::text("trained on"),
            Column::number("tasks"),
            Column::number("n"),
            Column::number("accuracy, %"),
            Column::interval("95 %"),
            Column::number("trained on all, %"),
            Column::number("difference, pp"),
        ],
        rows,
    }
}
