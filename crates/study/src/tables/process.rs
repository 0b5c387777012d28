//! How runs went: stages of judging, steps, retries and agreement (Tables 62, 63 and 86).

use super::errors::rows;
use super::table::{Cell, Column, Table};
use crate::records::{Record, StageOutcome};
use crate::results::Results;
use crate::statistics::{LeftOut, Proportion, clustered, mean, quantile};

/// Pass rates of the four stages (Table 86).
pub(super) fn stages(results: &Results<'_>) -> Table {
    type Stage = (&'static str, fn(&Record) -> StageOutcome);
    const STAGES: [Stage; 4] = [
        ("format", |run| run.format),
        ("syntax", |run| run.syntax),
        ("semantic", |run| run.semantic),
        ("result", |run| run.result),
    ];

    let mut rows = Vec::new();
    for system in &results.systems {
        for (last, (name, stage)) in STAGES.iter().enumerate() {
            let judged = system.runs.iter().filter(|run| stage(run) != StageOutcome::NotJudged);
            let passed = judged.clone().filter(|run| stage(run) == StageOutcome::Passed).count();
            let judged = judged.count();

            let failed_before = |run: &Record| {
                STAGES[..=last].iter().any(|(_, stage)| stage(run) == StageOutcome::Failed)
            };

            let so_far = system.runs.iter().filter(|run| !failed_before(run)).count();
            let cumulative = Proportion::new(so_far as u64, system.runs.len() as u64);

            rows.push(vec![
                Cell::Text(system.label.clone()),
                Cell::Text((*name).to_owned()),
                Cell::count(judged),
                Cell::share(passed, judged),
                Cell::share(so_far, system.runs.len()),
                Cell::percent_interval(&Ok(crate::statistics::Interval {
                    low: cumulative.low,
                    high: cumulative.high,
                })),
            ]);
        }
    }

    Table {
        id: "stages".to_owned(),
        paper: "Table 86",
        title: "Pass rates by stage".to_owned(),
        caption: "Share of judged runs that pass each stage, and share of all runs that fail neither it nor one \
                  before, with Wilson's 95 % interval over runs. A run that fails the first stage gave no answer that \
                  could be extracted; one that fails the last gave a wrong one."
            .to_owned(),
        columns: vec![
            Column::text("system"),
            Column::text("stage"),
            Column::number("judged runs"),
            Column::number("passed, %"),
            Column::number("passed so far, %"),
            Column::interval("95 %"),
        ],
        rows,
    }
}

/// Steps over the reference's steps (Table 62).
pub(super) fn efficiency(results: &Results<'_>) -> Table {
    let cells = |runs: &[Vec<&Record>]| {
        let ratios: Vec<Vec<f64>> = runs
            .iter()
            .map(|task| {
                task.iter().filter(|run| run.right).filter_map(|run| run.efficiency).collect()
            })
            .filter(|task: &Vec<f64>| !task.is_empty())
            .collect();

        let mut all: Vec<f64> = ratios.iter().flatten().copied().collect();
        all.sort_by(f64::total_cmp);

        let none =
            LeftOut::TooFew { what: "right runs with a trace", need: 1, have: 0 }.to_string();
        let shown = |value: Option<f64>| value.map_or(Cell::Empty, |value| Cell::number(value, 3));

        vec![
            Cell::count(all.len()),
            if all.is_empty() { Cell::LeftOut(none) } else { Cell::number(mean(&all), 3) },
            Cell::computed(clustered(&ratios), |estimate| Cell::interval(estimate.interval, 3)),
            shown(quantile(&all, 0.5)),
            shown(all.last().copied()),
        ]
    };

    Table {
        id: "efficiency".to_owned(),
        paper: "Table 62",
        title: "Step efficiency".to_owned(),
        caption:
            "Committed steps over steps of the reference, in right runs: mean of the ratios, with its 95 % interval \
                  clustered by task. Below 1 where a task is searched and the run was luckier than the reference."
                .to_owned(),
        columns: vec![
            Column::text("system"),
            Column::text("category"),
            Column::number("right runs"),
            Column::number("mean"),
            Column::interval("95 %"),
            Column::number("median"),
            Column::number("max"),
        ],
        rows: rows(results, cells),
    }
}

/// Retries and backtracks (Table 63).
pub(super) fn retries(results: &Results<'_>) -> Table {
    let cells = |runs: &[Vec<&Record>]| {
        let all: Vec<&Record> = runs.iter().flatten().copied().collect();
        let sum =
            |figure: fn(&Record) -> u64| all.iter().map(|run| figure(run)).sum::<u64>() as f64;

        let proposals = sum(|run| run.proposals);
        let retried: Option<u64> = all.iter().map(|run| run.steps_retried).sum();
        // Accepted proposals are steps of some trajectory.
        let steps = proposals - sum(|run| run.retries) - sum(|run| run.backtracks);

        let not_recorded = || Cell::LeftOut("retried steps were not recorded".to_owned());
        let agreements: Vec<f64> = all.iter().filter_map(|run| run.agreement).collect();

        vec![
            Cell::count(all.len()),
            Cell::number(proposals / all.len() as f64, 1),
            Cell::number(100.0 * sum(|run| run.retries) / proposals, 2),
            retried.map_or_else(not_recorded, |retried| {
                Cell::number(100.0 * retried as f64 / steps, 2)
            }),
            retried.map_or_else(not_recorded, |retried| {
                Cell::number(sum(|run| run.retries) / retried as f64, 2)
            }),
            Cell::number(100.0 * sum(|run| run.backtracks) / proposals, 2),
            Cell::number(sum(|run| run.pops) / all.len() as f64, 2),
            Cell::number(sum(|run| u64::from(run.rounds)) / all.len() as f64, 2),
            if agreements.is_empty() { Cell::Empty } else { Cell::percent(mean(&agreements)) },
        ]
    };

    Table {
        id: "retries".to_owned(),
        paper: "Table 63",
        title: "Retries and backtracks".to_owned(),
        caption: "All trajectories of all runs, pooled: retries and backtracks in per cent of proposals; steps \
                  retried in per cent of accepted steps; retries for each retried step. Pops and rounds: means a run. \
                  Agreement: mean share of the last round's votes for the winner."
            .to_owned(),
        columns: vec![
            Column::text("system"),
            Column::text("category"),
            Column::number("runs"),
            Column::number("proposals a run"),
            Column::number("retries, %"),
            Column::number("steps retried, %"),
            Column::number("retries a retried step"),
            Column::number("backtracks, %"),
            Column::number("pops a run"),
            Column::number("rounds a run"),
            Column::number("agreement, %"),
        ],
        rows: rows(results, cells),
    }
}
