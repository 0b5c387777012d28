//! Time and tokens (Tables 3 and 66).

use super::table::{Cell, Column, Table};
use crate::records::Record;
use crate::results::{Results, SystemResults};
use crate::statistics::{clustered, mean, quantile};

fn times(system: &SystemResults<'_>) -> Vec<Vec<f64>> {
    let tasks = system.tasks.iter().map(|task| task.runs.iter().map(|run| run.wall_ms).collect());
    tasks.filter(|times: &Vec<f64>| !times.is_empty()).collect()
}

/// Mean wall time of a system's runs in milliseconds; `None` without runs.
pub(crate) fn mean_ms(system: &SystemResults<'_>) -> Option<f64> {
    let all: Vec<f64> = system.runs.iter().map(|run| run.wall_ms).collect();
    (!all.is_empty()).then(|| mean(&all))
}

/// Latency and tokens of each system (Table 3).
pub(super) fn latency(results: &Results<'_>) -> Table {
    let first = results.systems.first().and_then(mean_ms);

    let rows = results.systems.iter().filter(|system| !system.runs.is_empty()).map(|system| {
        let times = times(system);
        let mut all: Vec<f64> = times.iter().flatten().copied().collect();
        all.sort_by(f64::total_cmp);
        let (n, mean) = (all.len() as f64, mean(&all));

        let sum = |figure: fn(&Record) -> u64| {
            system.runs.iter().map(|run| figure(run)).sum::<u64>() as f64
        };

        let seconds = all.iter().sum::<f64>() / 1e3;
        let shown =
            |share| quantile(&all, share).map_or(Cell::Empty, |value| Cell::number(value, 1));

        vec![
            Cell::Text(system.label.clone()),
            Cell::count(all.len()),
            Cell::number(mean, 1),
            Cell::computed(clustered(&times), |estimate| Cell::interval(estimate.interval, 1)),
            shown(0.5),
            shown(0.95),
            first.map_or(Cell::Empty, |first| Cell::number(mean / first, 2)),
            Cell::number(1e3 * seconds / sum(|run| run.proposals), 2),
            Cell::number(sum(|run| run.prompt_tokens) / n, 0),
            Cell::number(sum(|run| run.completion_tokens) / n, 0),
            Cell::number(sum(|run| run.completion_tokens) / seconds, 1),
        ]
    });

    Table {
        id: "latency".to_owned(),
        paper: "Table 3",
        title: "Latency and tokens".to_owned(),
        caption: "Wall time of a run from submission to outcome, in milliseconds (ms), as the client sees it; runs \
                  that share the machine slow each other down. 95 % interval of the mean: clustered by task. Ratio: \
                  to the first system."
            .to_owned(),
        columns: vec![
            Column::text("system"),
            Column::number("runs"),
            Column::number("mean, ms"),
            Column::interval("95 %"),
            Column::number("p50, ms"),
            Column::number("p95, ms"),
            Column::number("ratio"),
            Column::number("ms a proposal"),
            Column::number("prompt tokens a run"),
            Column::number("completion tokens a run"),
            Column::number("completion tokens/s"),
        ],
        rows: rows.collect(),
    }
}

/// Milliseconds in which no agent worked: mailboxes, and the bookkeeping of votes and states.
fn between_ms(run: &Record) -> Option<f64> {
    let work = run.executor_ms? + run.verifier_ms? + run.coordinator_ms?;
    let share = run.coordination_share.filter(|share| *share < 1.0)?;
    // share = between / (between + work), solved for `between`.
    Some(work * share / (1.0 - share))
}

/// Where the time goes (Table 66).
pub(super) fn components(results: &Results<'_>) -> Table {
    type Part = (&'static str, fn(&Record) -> Option<f64>);
    const PARTS: [Part; 4] = [
        ("executor", |run| run.executor_ms),
        ("verifier", |run| run.verifier_ms),
        ("coordinator", |run| run.coordinator_ms),
        ("between agents", between_ms),
    ];

    let mut rows = Vec::new();
    for system in &results.systems {
        // Runs with times for all parts, so that the shares add up.
        let timed =
            system.runs.iter().filter(|run| PARTS.iter().all(|(_, part)| part(run).is_some()));
        let timed: Vec<&Record> = timed.copied().collect();
        let proposals: u64 = timed.iter().map(|run| run.proposals).sum();
        let total: f64 =
            timed.iter().flat_map(|run| PARTS.iter().filter_map(|(_, part)| part(run))).sum();

        for (name, part) in PARTS {
            let sum: f64 = timed.iter().filter_map(|run| part(run)).sum();

            let mut row = vec![
                Cell::Text(system.label.clone()),
                Cell::Text(name.to_owned()),
                Cell::count(timed.len()),
            ];

            if timed.is_empty() {
                let reason = "the time of each role was not recorded".to_owned();
                row.extend([
                    Cell::LeftOut(reason.clone()),
                    Cell::LeftOut(reason.clone()),
                    Cell::LeftOut(reason),
                ]);
            } else {
                row.push(Cell::number(sum / timed.len() as f64, 2));
                row.push(Cell::number(sum / proposals as f64, 3));
                row.push(Cell::number(100.0 * sum / total, 1));
            }

            rows.push(row);
        }
    }

    Table {
        id: "components".to_owned(),
        paper: "Table 66",
        title: "Time by role".to_owned(),
        caption:
            "Milliseconds that agents of each role worked, and that turns were between agents (mailboxes, states, \
                  votes), summed over the concurrent trajectories of a run: means a run and a proposal, and shares."
                .to_owned(),
        columns: vec![
            Column::text("system"),
            Column::text("role"),
            Column::number("runs"),
            Column::number("ms a run"),
            Column::number("ms a proposal"),
            Column::number("share, %"),
        ],
        rows,
    }
}
