//! The three levels (Table 61).

use prime_bench::tasks::Difficulty;

use super::summary::{accuracy_cells, methods};
use super::table::{Cell, Column, Table};
use crate::results::{Results, over_instances, over_tasks};

/// Accuracy of each system at each level.
pub(super) fn difficulty(results: &Results<'_>) -> Table {
    let mut used = Vec::new();
    let mut rows = Vec::new();

    for level in Difficulty::ALL {
        for system in &results.systems {
            let values = system.values(|_, difficulty| difficulty == Some(level));
            if values.is_empty() {
                continue;
            }

            let (instances, tasks) = (over_instances(&values), over_tasks(&values));
            let mut row = vec![
                Cell::Text(level.name().to_owned()),
                Cell::Text(system.label.clone()),
                Cell::count(tasks.tasks),
                Cell::instances(instances.n, instances.inputs),
            ];

            row.extend(accuracy_cells(&instances));
            row.extend(accuracy_cells(&tasks));
            rows.push(row);
            used.extend([instances, tasks]);
        }
    }

    Table {
        id: "difficulty".to_owned(),
        paper: "Table 61",
        title: "Accuracy by difficulty".to_owned(),
        caption: format!(
            "Accuracy over instances, and mean of the tasks' accuracies (the paper's overall row is unweighted). 95 % \
             intervals: {}.",
            methods(&used)
        ),
        columns: vec![
            Column::text("level"),
            Column::text("system"),
            Column::number("tasks"),
            Column::number("instances"),
            Column::number("accuracy, %"),
            Column::interval("95 %"),
            Column::number("mean of tasks, %"),
            Column::interval("95 %, tasks"),
        ],
        rows,
    }
}
