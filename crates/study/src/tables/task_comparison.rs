//! Single tasks (Tables 45 to 49).

use super::comparison::{adjusted, mcnemar_of, significance};
use super::summary::accuracy_cells;
use super::table::{Cell, Column, Table, slug};
use crate::results::{PairResults, Results, SystemResults, TaskResults, over_instances};
use crate::statistics::{Computed, LeftOut, clustered, mean, tango};

/// Gains of a pair on each task, with McNemar's tests adjusted by Holm.
pub(super) fn pair_tasks(pair: &PairResults) -> Table {
    let tests = pair.tasks.len();
    let p: Vec<Computed<f64>> = (0..tests).map(|task| mcnemar_of(pair, task, tests)).collect();

    let rows = pair.tasks.iter().zip(&p).zip(adjusted(&p)).map(|((task, p), adjusted)| {
        let (left, right) = (
            over_instances(&[task.left.clone().into()]),
            over_instances(&[task.right.clone().into()]),
        );

        let n = task.left.len() as u64;
        let interval = if task.is_counted {
            tango(task.only_right, task.only_left, n)
        } else {
            let differences: Vec<Vec<f64>> =
                task.differences().into_iter().map(|value| vec![value]).collect();
            clustered(&differences).map(|estimate| estimate.interval)
        };

        let mut row = vec![
            Cell::Text(task.spec.slug.to_owned()),
            Cell::Text(task.spec.category.name().to_owned()),
            Cell::Count(n),
        ];

        row.extend(accuracy_cells(&left));
        row.extend(accuracy_cells(&right));
        row.extend([
            Cell::number(task.gain(), 1),
            Cell::percent_interval(&interval),
            Cell::Count(task.only_left),
            Cell::Count(task.only_right),
            Cell::computed(p.as_ref(), |p| Cell::P(*p)),
            Cell::computed(adjusted.as_ref(), |p| Cell::P(*p)),
            significance(&adjusted),
            Cell::number(task.spec.paper.baseline, 1),
            Cell::number(task.spec.paper.prime, 1),
        ]);
        row
    });

    Table {
        id: format!("tasks-{}", slug(&pair.title())),
        paper: "Tables 45 to 49",
        title: format!("Tasks: {}", pair.title()),
        caption: format!(
            "Accuracy of {} and {} on the same instances of each task, and the gain in percentage points (pp). 95 % \
             intervals: Wilson's for accuracies, Tango's for gains. McNemar's exact test, p adjusted by Holm over the \
             tests that were made; n.s.: not significant at 5 %. The last columns are the paper's, in per cent: \
             another model.",
            pair.left, pair.right
        ),
        columns: vec![
            Column::text("task"),
            Column::text("category"),
            Column::number("n"),
            Column::number(&format!("{}, %", pair.left)),
            Column::interval(&format!("95 %, {}", pair.left)),
            Column::number(&format!("{}, %", pair.right)),
            Column::interval(&format!("95 %, {}", pair.right)),
            Column::number("gain, pp"),
            Column::interval("95 %, gain"),
            Column::number("first only"),
            Column::number("second only"),
            Column::number("p"),
            Column::number("p, Holm"),
            Column::text("significant"),
            Column::number("paper, baseline"),
            Column::number("paper, PRIME"),
        ],
        rows: rows.collect(),
    }
}

fn steps(task: &TaskResults<'_>) -> [Cell; 2] {
    let steps: Vec<f64> = task.runs.iter().map(|run| run.steps as f64).collect();
    let max = task.runs.iter().map(|run| run.steps).max();

    [
        Cell::number(if steps.is_empty() { f64::NAN } else { mean(&steps) }, 1),
        max.map_or(Cell::Empty, Cell::Count),
    ]
}

fn task_row(system: &SystemResults<'_>, task: &TaskResults<'_>) -> Vec<Cell> {
    let accuracy = over_instances(&[task.values(|_| true)]);

    let mut row = vec![
        Cell::Text(system.label.clone()),
        Cell::Text(task.spec.slug.to_owned()),
        Cell::Text(task.spec.category.name().to_owned()),
        Cell::instances(accuracy.n, accuracy.inputs),
    ];

    if accuracy.n == 0 {
        let reason = LeftOut::TooFew { what: "measured runs", need: 1, have: 0 }.to_string();
        row.extend([Cell::LeftOut(reason.clone()), Cell::LeftOut(reason)]);
    } else {
        row.extend(accuracy_cells(&accuracy));
    }

    row.push(super::summary::kinds_seen(&task.runs));
    row.push(Cell::share(task.runs.iter().filter(|run| run.accepted).count(), task.runs.len()));
    row.extend(steps(task));
    row
}

/// Accuracy and steps of each system on each task.
pub(super) fn tasks(results: &Results<'_>) -> Table {
    let rows = results
        .systems
        .iter()
        .flat_map(|system| system.tasks.iter().map(|task| task_row(system, task)));

    Table {
        id: "tasks".to_owned(),
        paper: "Tables 45 to 49",
        title: "Accuracy and steps of each task".to_owned(),
        caption: "Accuracy with Wilson's 95 % interval (Student's over instances that were \
                  repeated); accepted: share of runs with an answer of which the verifier accepted \
                  every step, by the kinds that it saw; committed steps of the answer's trajectory."
            .to_owned(),
        columns: vec![
            Column::text("system"),
            Column::text("task"),
            Column::text("category"),
            Column::number("n"),
            Column::number("accuracy, %"),
            Column::interval("95 %"),
            Column::text("kinds it saw"),
            Column::number("accepted, %"),
            Column::number("steps, mean"),
            Column::number("steps, max"),
        ],
        rows: rows.collect(),
    }
}
