//! Accuracy by the size of instances (Table 4), and how it falls (eq. 25, 30).

use std::collections::{BTreeMap, BTreeSet};

use super::summary::accuracy_cells;
use super::table::{Cell, Column, Table};
use crate::results::{
    Accuracy, Instance, Results, SystemResults, TaskResults, TaskValues, over_instances,
};
use crate::statistics::{LeftOut, line, mean, standard_deviation};

/// Maximum number of tasks that are all shown by size; a larger study shows only those of the
/// paper's table.
const TASKS_MAX: usize = 4;
const QUEENS: [&str; 2] = ["n-queens", "n-queens-last-queen"];

/// One task of one system, by size.
pub(crate) struct BySize<'s, 'r> {
    pub system: &'s SystemResults<'r>,
    pub task: &'static str,
    /// Sizes, ascending, with their accuracies.
    pub sizes: Vec<(u64, Accuracy)>,
}

/// Shares of right answers of a task's instances by size; instances without a size are left out.
fn values(task: &TaskResults<'_>) -> BTreeMap<u64, TaskValues> {
    let known: BTreeMap<Instance, u64> =
        task.runs.iter().filter_map(|run| Some((Instance::of(run), run.size?))).collect();

    let sizes: BTreeSet<u64> = known.values().copied().collect();
    let of = |size| (size, task.values(|instance| known.get(instance) == Some(&size)));
    sizes.into_iter().map(of).collect()
}

/// Tasks with at least two sizes: N-Queens, and all tasks if the study has few.
pub(crate) fn by_size<'s, 'r>(results: &'s Results<'r>) -> Vec<BySize<'s, 'r>> {
    let mut all = Vec::new();
    for system in &results.systems {
        let is_small = system.tasks.len() <= TASKS_MAX;
        for task in system.tasks.iter().filter(|task| is_small || QUEENS.contains(&task.spec.slug))
        {
            let sizes = values(task);
            if sizes.len() > 1 {
                let sizes = sizes
                    .into_iter()
                    .map(|(size, values)| (size, over_instances(&[values])))
                    .collect();
                all.push(BySize { system, task: task.spec.slug, sizes });
            }
        }
    }

    all.sort_by_key(|by_size| by_size.task);
    all
}

pub(super) fn sizes(results: &Results<'_>) -> Table {
    let row = |(by_size, size, accuracy): (&BySize<'_, '_>, u64, &Accuracy)| {
        let mut row = vec![
            Cell::Text(by_size.task.to_owned()),
            Cell::Count(size),
            Cell::Text(by_size.system.label.clone()),
            Cell::instances(accuracy.n, accuracy.inputs),
        ];
        row.extend(accuracy_cells(accuracy));
        row
    };

    let all = by_size(results);
    let rows = all
        .iter()
        .flat_map(|it| it.sizes.iter().map(move |(size, accuracy)| row((it, *size, accuracy))));

    Table {
        id: "sizes".to_owned(),
        paper: "Table 4",
        title: "Accuracy by size".to_owned(),
        caption: format!(
            "Accuracy over the instances of each size (the side of the board for N-Queens, else the length of the \
             input), with Wilson's 95 % interval. For N-Queens; for every task of a study with at most {TASKS_MAX}."
        ),
        columns: vec![
            Column::text("task"),
            Column::number("size"),
            Column::text("system"),
            Column::number("n"),
            Column::number("accuracy, %"),
            Column::interval("95 %"),
        ],
        rows: rows.collect(),
    }
}

/// How evenly a system does over sizes: 1 − SD/mean, at least 0 (Figure 8); `None` if it solves
/// nothing.
pub(crate) fn consistency(sizes: &[(u64, Accuracy)]) -> Option<f64> {
    let means: Vec<f64> = sizes.iter().map(|(_, accuracy)| accuracy.mean).collect();
    let mean = mean(&means);
    (mean > 0.0).then(|| (1.0 - standard_deviation(&means) / mean).max(0.0))
}

pub(super) fn size_laws(results: &Results<'_>) -> Table {
    let all = by_size(results);
    let rows = all.iter().filter_map(|by_size| {
        let [(first, easiest), .., (last, hardest)] = &by_size.sizes[..] else { return None };

        let positive = by_size.sizes.iter().all(|(_, accuracy)| accuracy.mean > 0.0);
        let sizes: Vec<f64> = by_size.sizes.iter().map(|(size, _)| *size as f64).collect();
        let logs: Vec<f64> = by_size.sizes.iter().map(|(_, accuracy)| accuracy.mean.ln()).collect();

        let zero = LeftOut::NotPositive { what: "an accuracy", value: 0.0 };
        let decay = if positive { line(&sizes, &logs) } else { Err(zero) };
        let hardness = 1.0 - hardest.mean / easiest.mean;

        Some(vec![
            Cell::Text(by_size.task.to_owned()),
            Cell::Text(by_size.system.label.clone()),
            Cell::Text(format!("{first} to {last}")),
            Cell::computed(decay.as_ref(), |decay| Cell::number(-decay.slope, 4)),
            // The ends change places, because the decay is the negative slope.
            Cell::computed(decay.as_ref(), |decay| {
                Cell::interval(decay.slope_interval.scaled(-1.0).ordered(), 4)
            }),
            Cell::computed(decay.as_ref(), |decay| Cell::number(decay.r_squared, 3)),
            Cell::number(hardness, 3),
            consistency(&by_size.sizes).map_or(Cell::Empty, |value| Cell::number(value, 3)),
        ])
    });

    Table {
        id: "size-laws".to_owned(),
        paper: "Eq. 25 and 30, Figure 8",
        title: "How accuracy falls with size".to_owned(),
        caption:
            "Decay: λ of accuracy = a e^(−λ size), least squares on the logarithms, with Student's 95 % interval. \
                  Hardness: (first − last)/first of the accuracies at the smallest and the largest size. Consistency: \
                  1 − SD/mean of the sizes' accuracies."
                .to_owned(),
        columns: vec![
            Column::text("task"),
            Column::text("system"),
            Column::text("sizes"),
            Column::number("decay"),
            Column::interval("95 %"),
            Column::number("R²"),
            Column::number("hardness"),
            Column::number("consistency"),
        ],
        rows: rows.collect(),
    }
}
