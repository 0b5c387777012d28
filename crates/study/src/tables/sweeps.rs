//! Systems that differ in one factor: hyperparameters and techniques (Tables 60, 78 to 82 and 84).

use super::ablations::{WITHOUT, change};
use super::summary::accuracy_cells;
use super::table::{Cell, Column, Table};
use super::transfer::TRAINED_ON;
use crate::records::Record;
use crate::results::{Accuracy, Instance, Results, SystemResults, over_instances, pair};
use crate::statistics::{Computed, Interval, LeftOut, clustered, mean};

/// Factors that have tables of their own.
const OTHERS: [&str; 3] = [WITHOUT, TRAINED_ON, "prompt"];

/// A factor and the systems that name a level of it: ascending if the levels are numbers, otherwise
/// in the study's order.
pub(crate) struct Sweep<'s, 'r> {
    pub factor: &'r str,
    pub levels: Vec<(&'r str, &'s SystemResults<'r>)>,
    /// The system with which the others are compared: the one that names the most factors.
    pub default: &'s SystemResults<'r>,
}

impl Sweep<'_, '_> {
    /// Each level as a number, if all are numbers.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        self.levels
            .iter()
            .map(|(level, _)| level.parse().ok().filter(|value: &f64| value.is_finite()))
            .collect()
    }
}

/// Factors with at least two levels.
pub(crate) fn sweeps<'s, 'r>(results: &'s Results<'r>) -> Vec<Sweep<'s, 'r>> {
    let mut names: Vec<&'r str> =
        results.systems.iter().flat_map(|system| system.factors.keys().copied()).collect();
    names.sort_unstable();
    names.dedup();

    let sweep = |factor: &'r str| {
        let level = |system: &'s SystemResults<'r>| Some((*system.factors.get(factor)?, system));
        let levels: Vec<_> = results.systems.iter().filter_map(level).collect();

        let most = levels.iter().map(|(_, system)| system.factors.len()).max()?;
        let default = levels.iter().find(|(_, system)| system.factors.len() == most)?.1;

        let mut sweep = Sweep { factor, levels, default };
        if let Some(numbers) = sweep.numbers() {
            let mut numbered: Vec<_> = numbers.into_iter().zip(sweep.levels).collect();
            numbered.sort_by(|a, b| a.0.total_cmp(&b.0));
            sweep.levels = numbered.into_iter().map(|(_, level)| level).collect();
        }

        (sweep.levels.len() > 1).then_some(sweep)
    };

    names.into_iter().filter(|name| !OTHERS.contains(name)).filter_map(sweep).collect()
}

pub(crate) fn accuracy(system: &SystemResults<'_>) -> Accuracy {
    over_instances(&system.values(|_, _| true))
}

/// Geometric mean of the ratios of wall times `system / default`, instance by instance, with its
/// interval.
fn slowdown(default: &SystemResults<'_>, system: &SystemResults<'_>) -> Computed<(f64, Interval)> {
    let mut tasks = Vec::new();
    for left in &default.tasks {
        let Some(right) = system.tasks.iter().find(|task| task.spec.slug == left.spec.slug) else {
            continue;
        };

        let times = |runs: &[&Record]| {
            let mut times: std::collections::BTreeMap<Instance, Vec<f64>> =
                std::collections::BTreeMap::new();
            runs.iter()
                .for_each(|run| times.entry(Instance::of(run)).or_default().push(run.wall_ms));
            times
        };

        let (left, right) = (times(&left.runs), times(&right.runs));

        let ratio = |(instance, left): (&Instance, &Vec<f64>)| {
            let ratio = (mean(right.get(instance)?) / mean(left)).ln();
            ratio.is_finite().then_some(ratio)
        };

        tasks.push(left.iter().filter_map(ratio).collect::<Vec<f64>>());
    }

    tasks.retain(|values| !values.is_empty());
    // One task: the instances are the clusters.
    let clusters = match &tasks[..] {
        [values] => values.iter().map(|value| vec![*value]).collect(),
        _ => tasks,
    };

    let estimate = clustered(&clusters)?;
    let Interval { low, high } = estimate.interval;
    Ok((estimate.mean.exp(), Interval { low: low.exp(), high: high.exp() }))
}

fn row(sweep: &Sweep<'_, '_>, level: &str, system: &SystemResults<'_>) -> Vec<Cell> {
    let runs = system.runs.len() as f64;

    let sum =
        |figure: fn(&Record) -> u64| system.runs.iter().map(|run| figure(run)).sum::<u64>() as f64;
    let agreements: Vec<f64> = system.runs.iter().filter_map(|run| run.agreement).collect();
    let milliseconds: f64 = system.runs.iter().map(|run| run.wall_ms).sum();

    let is_default = std::ptr::eq(system, sweep.default);
    let accuracy = accuracy(system);
    let mut row = vec![
        Cell::Text(sweep.factor.to_owned()),
        Cell::Text(level.to_owned() + if is_default { " (default)" } else { "" }),
        Cell::Text(system.label.clone()),
        Cell::instances(accuracy.n, accuracy.inputs),
    ];

    row.extend(accuracy_cells(&accuracy));

    match pair(sweep.default, system).filter(|_| !is_default) {
        Some(pair) => row.extend(change(&pair)),
        None => row.extend([Cell::Empty, Cell::Empty]),
    }

    row.extend([
        if agreements.is_empty() { Cell::Empty } else { Cell::percent(mean(&agreements)) },
        Cell::number(sum(|run| u64::from(run.rounds)) / runs, 2),
        Cell::number(100.0 * sum(|run| run.retries) / sum(|run| run.proposals), 2),
        Cell::number(100.0 * sum(|run| run.backtracks) / sum(|run| run.proposals), 2),
        Cell::number(milliseconds / runs, 1),
    ]);

    if is_default {
        row.extend([Cell::Empty, Cell::Empty]);
    } else {
        let ratio = slowdown(sweep.default, system);
        row.push(Cell::computed(ratio.as_ref(), |(ratio, _)| Cell::number(*ratio, 2)));
        row.push(Cell::computed(ratio.as_ref(), |(_, interval)| Cell::interval(*interval, 2)));
    }

    row.push(Cell::number(1e3 * sum(|run| run.completion_tokens) / milliseconds, 1));
    row
}

pub(super) fn sweep_rows(results: &Results<'_>) -> Table {
    let all = sweeps(results);
    let rows = all.iter().flat_map(|sweep| {
        sweep.levels.iter().map(move |(level, system)| row(sweep, level, system))
    });

    Table {
        id: "sweeps".to_owned(),
        paper: "Tables 78 to 82 and 84",
        title: "Levels of each factor".to_owned(),
        caption:
            "Systems that differ in one factor, against the default, on the same instances: change in accuracy in \
                  percentage points (pp), and wall time of a run as a ratio (geometric mean of the instances' ratios; \
                  below 1 is faster), with 95 % intervals clustered by task (over instances, if there is one task). \
                  Agreement: mean share of the last round's votes for the winner. Retries and backtracks: in per cent \
                  of proposals."
                .to_owned(),
        columns: vec![
            Column::text("factor"),
            Column::text("level"),
            Column::text("system"),
            Column::number("n"),
            Column::number("accuracy, %"),
            Column::interval("95 %"),
            Column::number("change, pp"),
            Column::interval("95 %, change"),
            Column::number("agreement, %"),
            Column::number("rounds a run"),
            Column::number("retries, %"),
            Column::number("backtracks, %"),
            Column::number("ms a run"),
            Column::number("time ratio"),
            Column::interval("95 %, ratio"),
            Column::number("completion tokens/s"),
        ],
        rows: rows.collect(),
    }
}

pub(super) fn sensitivity(results: &Results<'_>) -> Table {
    let rows = sweeps(results).into_iter().map(|sweep| {
        let means: Vec<(f64, &str)> =
            sweep.levels.iter().map(|(level, system)| (accuracy(system).mean, *level)).collect();

        let (least, worst) =
            means.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::NAN, ""));
        let (most, best) =
            means.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::NAN, ""));

        let ns: Vec<usize> = sweep.levels.iter().map(|(_, system)| accuracy(system).n).collect();
        let range = if ns.contains(&0) {
            Cell::LeftOut(
                LeftOut::TooFew { what: "measured instances of each level", need: 1, have: 0 }
                    .to_string(),
            )
        } else {
            Cell::percent(most - least)
        };

        vec![
            Cell::Text(sweep.factor.to_owned()),
            Cell::count(sweep.levels.len()),
            Cell::Text(sweep.levels.iter().map(|(level, _)| *level).collect::<Vec<_>>().join(", ")),
            Cell::percent(accuracy(sweep.default).mean),
            Cell::percent(least),
            Cell::Text(worst.to_owned()),
            Cell::percent(most),
            Cell::Text(best.to_owned()),
            range,
        ]
    });

    Table {
        id: "sensitivity".to_owned(),
        paper: "Table 60",
        title: "Sensitivity to each factor".to_owned(),
        caption: "Accuracy over instances at the default and at the worst and the best level of each factor, and the \
                  range between these in percentage points (pp). A range over more levels is wider by chance alone: \
                  the intervals are in the table of the levels."
            .to_owned(),
        columns: vec![
            Column::text("factor"),
            Column::number("number of levels"),
            Column::text("levels"),
            Column::number("default, %"),
            Column::number("worst, %"),
            Column::text("at"),
            Column::number("best, %"),
            Column::text("at, best"),
            Column::number("range, pp"),
        ],
        rows: rows.collect(),
    }
}
