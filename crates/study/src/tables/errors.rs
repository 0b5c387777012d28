//! The errors of wrong runs (Tables 54 to 57), and the constraints that refused lines.

use std::collections::{BTreeMap, BTreeSet};

use prime_bench::judge::ErrorType;
use prime_bench::tasks::Category;

use super::table::{Cell, Column, Table};
use crate::records::{Record, SEVERITIES, severity_name};
use crate::results::{Results, SystemResults, all_categories};
use crate::statistics::{LeftOut, clustered, mean, standard_deviation};

/// Runs of a system by task, for each category that it was asked and for all categories together.
pub(super) fn by_category<'s, 'r>(
    system: &'s SystemResults<'r>,
) -> Vec<(&'static str, Vec<Vec<&'r Record>>)> {
    let runs = |wanted: &dyn Fn(Category) -> bool| -> Vec<Vec<&'r Record>> {
        let tasks =
            system.tasks.iter().filter(|task| wanted(task.spec.category) && !task.runs.is_empty());
        tasks.map(|task| task.runs.clone()).collect()
    };

    let each = all_categories().map(|category| (category.name(), runs(&|other| other == category)));
    each.chain([("all", runs(&|_| true))]).filter(|(_, runs)| !runs.is_empty()).collect()
}

/// The rows of all systems, one for each category.
pub(super) fn rows(
    results: &Results<'_>,
    cells: impl Fn(&[Vec<&Record>]) -> Vec<Cell>,
) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for system in &results.systems {
        for (category, runs) in by_category(system) {
            let mut row = vec![Cell::Text(system.label.clone()), Cell::Text(category.to_owned())];
            row.extend(cells(&runs));
            rows.push(row);
        }
    }
    rows
}

fn wrong<'r>(runs: &[Vec<&'r Record>]) -> Vec<&'r Record> {
    runs.iter().flatten().copied().filter(|run| !run.right).collect()
}

/// Types of the first error (Table 54).
pub(super) fn error_types(results: &Results<'_>) -> Table {
    let cells = |runs: &[Vec<&Record>]| {
        let wrong = wrong(runs);

        let typed = |name: &str| {
            wrong.iter().filter(|run| run.first_error_type.as_deref() == Some(name)).count()
        };

        let mut cells =
            vec![Cell::count(runs.iter().map(Vec::len).sum()), Cell::count(wrong.len())];
        cells.extend(ErrorType::ALL.map(|error| Cell::share(typed(error.name()), wrong.len())));

        let untyped = wrong.iter().filter(|run| run.first_error_type.is_none()).count();
        cells.push(Cell::share(untyped, wrong.len()));
        cells
    };

    let mut columns = vec![
        Column::text("system"),
        Column::text("category"),
        Column::number("runs"),
        Column::number("wrong runs"),
    ];
    columns.extend(ErrorType::ALL.map(|error| Column::number(&format!("{}, %", error.name()))));
    columns.push(Column::number("no trace, %"));

    Table {
        id: "error-types".to_owned(),
        paper: "Table 54",
        title: "Types of first errors".to_owned(),
        caption: "Share of wrong runs by the type of their first error; the row `all` pools them. The paper's seven \
                  columns: its `state` is carryover and reset, its `other` boundary and invariant. No trace: there \
                  were no steps to look at, or none ended."
            .to_owned(),
        columns,
        rows: rows(results, cells),
    }
}

/// Worst broken constraints (Tables 55 and 56).
pub(super) fn severities(results: &Results<'_>) -> Table {
    let cells = |runs: &[Vec<&Record>]| {
        let of: usize = runs.iter().map(Vec::len).sum();
        let wrong = wrong(runs);

        let count =
            |name: &str| wrong.iter().filter(|run| run.severity.as_deref() == Some(name)).count();

        let mut cells = vec![Cell::count(of), Cell::count(wrong.len())];
        cells.extend(
            SEVERITIES.map(|severity| Cell::share(count(severity_name(severity)), wrong.len())),
        );
        cells.extend(SEVERITIES.map(|severity| Cell::share(count(severity_name(severity)), of)));

        let right_with =
            runs.iter().flatten().filter(|run| run.right && run.severity.is_some()).count();
        cells.push(Cell::count(right_with));
        cells
    };

    let mut columns = vec![
        Column::text("system"),
        Column::text("category"),
        Column::number("runs"),
        Column::number("wrong runs"),
    ];
    columns
        .extend(SEVERITIES.map(|it| Column::number(&format!("{}, % of wrong", severity_name(it)))));
    columns
        .extend(SEVERITIES.map(|it| Column::number(&format!("{}, % of runs", severity_name(it)))));
    columns.push(Column::number("right in spite of a violation"));
    Table {

        id: "severities".to_owned(),
        paper: "Tables 55 and 56",
        title: "Severity of errors".to_owned(),
        caption: "A wrong run counts once, by the worst constraint that it breaks; wrong without a broken constraint \
                  counts as critical. Weights (eq. 2): critical 1.0, major 0.6, minor 0.2. Right runs with a \
                  violation stand apart."
            .to_owned(),
        columns,
        rows: rows(results, cells),
    }
}

/// Most constraints of a system in the table of refusals.
const CONSTRAINTS_MAX: usize = 8;

/// The constraints that refused most lines.
pub(super) fn refusals(results: &Results<'_>) -> Table {
    let mut rows = Vec::new();
    for system in &results.systems {
        // Lines, runs and tasks of each constraint.
        let mut by_name: BTreeMap<String, (u64, usize, BTreeSet<&str>)> = BTreeMap::new();
        for run in &system.runs {
            for (name, lines) in run.refusals().unwrap_or_default() {
                let (all, runs, tasks) = by_name.entry(name).or_default();
                *all += lines;
                *runs += 1;
                tasks.insert(&run.task);
            }
        }

        let all: u64 = by_name.values().map(|(lines, ..)| lines).sum();
        let mut sorted: Vec<_> = by_name.into_iter().collect();
        sorted.sort_by(|(a_name, a), (b_name, b)| b.0.cmp(&a.0).then_with(|| a_name.cmp(b_name)));
        for (name, (lines, runs, tasks)) in sorted.into_iter().take(CONSTRAINTS_MAX) {
            rows.push(vec![
                Cell::Text(system.label.clone()),
                Cell::Text(name),
                Cell::Count(lines),
                if all == 0 { Cell::Empty } else { Cell::percent(lines as f64 / all as f64) },
                Cell::count(runs),
                Cell::count(tasks.len()),
            ]);
        }
    }

    Table {
        id: "refusals".to_owned(),
        paper: "not in the paper",
        title: "Constraints that refused most lines".to_owned(),
        caption: "Proposed lines that broke a constraint and were retried or led back, by the constraint's name, over \
                  all trajectories of measured runs: the eight that refused most for each system. The share is of all \
                  its refusals; a line that breaks several constraints counts for each. Records of earlier versions \
                  do not say it."
            .to_owned(),
        columns: vec![
            Column::text("system"),
            Column::text("constraint"),
            Column::number("lines"),
            Column::number("share, %"),
            Column::number("runs"),
            Column::number("tasks"),
        ],
        rows,
    }
}

/// Positions of first errors (Table 57).
pub(super) fn first_errors(results: &Results<'_>) -> Table {
    let cells = |runs: &[Vec<&Record>]| {
        let positions: Vec<Vec<f64>> = runs
            .iter()
            .map(|task| {
                task.iter().filter(|run| !run.right).filter_map(|run| run.first_error_pct).collect()
            })
            .filter(|task: &Vec<f64>| !task.is_empty())
            .collect();

        let all: Vec<f64> = positions.iter().flatten().copied().collect();
        let none =
            LeftOut::TooFew { what: "wrong runs with a trace", need: 1, have: 0 }.to_string();

        let interval = clustered(&positions).map(|estimate| estimate.interval);

        vec![
            Cell::count(all.len()),
            if all.is_empty() { Cell::LeftOut(none) } else { Cell::number(mean(&all), 1) },
            if all.len() < 2 { Cell::Empty } else { Cell::number(standard_deviation(&all), 1) },
            Cell::computed(interval, |interval| Cell::interval(interval, 1)),
        ]
    };

    Table {
        id: "first-errors".to_owned(),
        paper: "Table 57",
        title: "Position of first errors".to_owned(),
        caption: "Steps before the first error in per cent of the reference trace, over wrong runs that have a trace; \
                  at most 100. 95 % interval of the mean: clustered by task."
            .to_owned(),
        columns: vec![
            Column::text("system"),
            Column::text("category"),
            Column::number("wrong runs"),
            Column::number("mean, %"),
            Column::number("SD, pp"),
            Column::interval("95 %"),
        ],
        rows: rows(results, cells),
    }
}
