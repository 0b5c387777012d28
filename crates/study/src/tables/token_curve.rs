//! Accuracy against spent tokens: one run gives a system's whole curve.

use std::collections::{BTreeMap, BTreeSet};

use super::table::{Cell, Column, Table};
use crate::records::{Point, Record, is_right_at};
use crate::results::{Accuracy, Instance, Results, SystemResults, TaskValues, over_instances};

/// Maximum number of budgets that the table shows.
const BUDGETS_MAX: usize = 16;

/// A system's accuracy at a budget of tokens.
pub(crate) struct AtBudget {
    pub tokens: u64,
    pub accuracy: Accuracy,
    /// Number of instances.
    pub n: usize,
}

fn curves<'r>(system: &SystemResults<'r>) -> Vec<(&'r Record, Vec<Point>)> {
    system.runs.iter().filter_map(|run| Some((*run, run.points()?))).collect()
}

/// The repeats of an instance.
#[derive(Default)]
struct Repeats<'r> {
    right: u32,
    of: u32,
    input: Option<&'r str>,
}

fn values(instances: BTreeMap<Instance, Repeats<'_>>) -> TaskValues {
    let repeats: Vec<Repeats<'_>> = instances.into_values().collect();
    let known: BTreeSet<&str> = repeats.iter().filter_map(|repeats| repeats.input).collect();
    // An instance without a digest counts as a different input.
    let unknown = repeats.iter().filter(|repeats| repeats.input.is_none()).count();
    let share = |repeats: &Repeats<'_>| f64::from(repeats.right) / f64::from(repeats.of);
    TaskValues { values: repeats.iter().map(share).collect(), inputs: known.len() + unknown }
}

/// The budgets that are shown: numbers of tokens at which answers change, evenly spaced among all
/// of them, with the smallest and the largest.
fn budgets(results: &Results<'_>) -> Vec<u64> {
    let points = results.systems.iter().flat_map(curves).flat_map(|(_, points)| points);
    let mut all: Vec<u64> = points.map(|(tokens, _)| tokens).filter(|tokens| *tokens > 0).collect();
    all.sort_unstable();
    all.dedup();

    let Some(last) = all.len().checked_sub(1) else { return Vec::new() };
    let shown = BUDGETS_MAX.min(all.len());
    let mut shown: Vec<u64> =
        (0..shown).map(|place| all[place * last / (shown - 1).max(1)]).collect();
    shown.dedup();
    shown
}

/// The curve of each system that has one; empty where no system spent a token.
pub(crate) fn of_systems<'s, 'r>(
    results: &'s Results<'r>,
) -> Vec<(&'s SystemResults<'r>, Vec<AtBudget>)> {
    let budgets = budgets(results);
    let of = |system: &'s SystemResults<'r>| {
        let curves = curves(system);
        let at = |tokens: u64| {
            // Repeats of an instance are averaged, as everywhere.
            let mut tasks: BTreeMap<&str, BTreeMap<Instance, Repeats<'_>>> = BTreeMap::new();
            for (run, points) in &curves {
                let instances = tasks.entry(run.task.as_str()).or_default();
                let repeats = instances.entry(Instance::of(run)).or_default();
                repeats.right += u32::from(is_right_at(points, tokens));
                repeats.of += 1;
                repeats.input = run.input_digest.as_deref();
            }
            let values: Vec<TaskValues> = tasks.into_values().map(values).collect();
            let n = values.iter().map(|task| task.values.len()).sum();
            AtBudget { tokens, accuracy: over_instances(&values), n }
        };
        let rows: Vec<AtBudget> = budgets.iter().map(|tokens| at(*tokens)).collect();
        (!curves.is_empty() && !rows.is_empty()).then_some((system, rows))
    };
    results.systems.iter().filter_map(of).collect()
}

pub(super) fn token_curve(results: &Results<'_>) -> Table {
    let mut rows = Vec::new();
    for (system, curve) in of_systems(results) {
        for AtBudget { tokens, accuracy, n } in curve {
            rows.push(vec![
                Cell::Text(system.label.clone()),
                Cell::number(tokens as f64, 0),
                Cell::count(n),
                Cell::percent(accuracy.mean),
                Cell::percent_interval(&accuracy.interval),
            ]);
        }
    }
    Table {
        id: "token-curve".to_owned(),
        paper: "not in the paper",
        title: "Accuracy against spent tokens".to_owned(),
        caption:
            "Share of instances, in %, whose answer would have been right if each run had been \
                  ended at this many tokens: generated ones, and of the prompts those that the \
                  study counts. A run without an answer by then counts as wrong. The budgets are \
                  tokens at which an answer of some system changes."
                .to_owned(),
        columns: vec![
            Column::text("system"),
            Column::number("tokens of a run"),
            Column::number("instances"),
            Column::number("accuracy, %"),
            Column::interval("95 %"),
        ],
        rows,
    }
}
