//! Systems over all tasks: the paper's summary of model performance, and the verifier's verdicts.

use super::table::{Cell, Column, Table};
use crate::records::Record;
use crate::results::{Accuracy, Results, over_instances, over_tasks};

/// Cells of an accuracy and its interval.
pub(super) fn accuracy_cells(accuracy: &Accuracy) -> [Cell; 2] {
    if accuracy.n == 0 {
        return [Cell::Empty, Cell::percent_interval(&accuracy.interval)];
    }
    [Cell::percent(accuracy.mean), Cell::percent_interval(&accuracy.interval)]
}

/// Methods of the intervals in a table, each once.
pub(super) fn methods<'a>(accuracies: impl IntoIterator<Item = &'a Accuracy>) -> String {
    let mut methods: Vec<&str> = Vec::new();
    for accuracy in accuracies {
        if accuracy.interval.is_ok() && !methods.contains(&accuracy.method) {
            methods.push(accuracy.method);
        }
    }
    if methods.is_empty() { "none".to_owned() } else { methods.join("; ") }
}

/// Accuracy of each system (Tables 2 and 43).
pub(super) fn summary(results: &Results<'_>) -> Table {
    let mut used = Vec::new();
    let rows = results.systems.iter().map(|system| {
        let values = system.values(|_, _| true);
        let (instances, tasks) = (over_instances(&values), over_tasks(&values));

        let mut row = vec![
            Cell::Text(system.label.clone()),
            Cell::count(tasks.tasks),
            Cell::instances(instances.n, instances.inputs),
            Cell::count(system.runs.len()),
        ];

        row.extend(accuracy_cells(&instances));
        row.extend(accuracy_cells(&tasks));
        row.push(Cell::count(system.not_measured));

        used.extend([instances, tasks]);
        row
    });
    // Collected first, because the rows collect the methods that the caption names.
    let rows = rows.collect();

    Table {
        id: "summary".to_owned(),
        paper: "Tables 2 and 43",
        title: "Performance of each system".to_owned(),
        caption: format!(
            "Accuracy over instances, and mean of the tasks' accuracies. An instance counts once: its repeats are \
             averaged. 95 % intervals: {}. Runs that were not measured are not counted as wrong.",
            methods(&used)
        ),
        columns: vec![
            Column::text("system"),
            Column::number("tasks"),
            Column::number("instances"),
            Column::number("runs"),
            Column::number("accuracy, %"),
            Column::interval("95 %"),
            Column::number("mean of tasks, %"),
            Column::interval("95 %, tasks"),
            Column::number("not measured"),
        ],
        rows,
    }
}

/// The kinds of constraints that the verifiers of these runs saw. Different sets are different
/// claims, so each is named.
pub(super) fn kinds_seen(runs: &[&Record]) -> Cell {
    let mut sets: Vec<String> =
        runs.iter().map(|run| run.checked_kinds.replace(',', ", ")).collect();
    sets.sort_unstable();
    sets.dedup();
    Cell::Text(sets.join("; "))
}

/// Verdicts against the benchmark's judgement on whole runs: false accepts and false rejects.
pub(super) fn verdicts(results: &Results<'_>) -> Table {
    let rows = results.systems.iter().map(|system| {
        let count = |accepted: bool, right: bool| {
            system.runs.iter().filter(|run| run.accepted == accepted && run.right == right).count()
        };

        let [accepted, false_accepts] = [count(true, true), count(true, false)];
        let [false_rejects, rejected] = [count(false, true), count(false, false)];

        let verifiers = system.runs.iter().map(|run| run.verifier.as_str());
        let mut verifiers: Vec<&str> = verifiers.collect();
        verifiers.sort_unstable();
        verifiers.dedup();

        let bound = crate::statistics::clopper_pearson(
            false_accepts as u64,
            (false_accepts + rejected) as u64,
        );

        vec![
            Cell::Text(system.label.clone()),
            Cell::Text(verifiers.join(", ")),
            kinds_seen(&system.runs),
            Cell::count(system.runs.len()),
            Cell::count(accepted),
            Cell::count(false_accepts),
            Cell::count(false_rejects),
            Cell::count(rejected),
            Cell::share(false_accepts, false_accepts + rejected),
            Cell::percent_interval(&bound),
        ]
    });

    Table {
        id: "verdicts".to_owned(),
        paper: "Theorem 6 (measured)",
        title: "Verdicts on whole runs".to_owned(),
        caption:
            "Runs by verdict and by the benchmark's judgement. False accepts: wrong answers of which \
             the verifier accepted every step; their share is of all wrong runs, with \
             Clopper-Pearson's 95 % interval. A system without a verifier accepts nothing. \
             Acceptance is a proof only where the kinds are sound for the task."
                .to_owned(),
        columns: vec![
            Column::text("system"),
            Column::text("verifier"),
            Column::text("kinds it saw"),
            Column::number("runs"),
            Column::number("accepted, right"),
            Column::number("accepted, wrong"),
            Column::number("not accepted, right"),
            Column::number("not accepted, wrong"),
            Column::number("false accepts, %"),
            Column::interval("95 %"),
        ],
        rows: rows.collect(),
    }
}
