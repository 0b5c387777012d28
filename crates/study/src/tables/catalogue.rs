//! The paper's tables and figures that are made from records, by their numbers.

use super::table::Table;
use super::{
    ablations, categories, comparison, cost, difficulty, errors, process, scaling, sizes, summary,
    sweeps, task_comparison, token_curve, transfer,
};
use crate::figures::rows_of;
use crate::nearest::did_you_mean;
use crate::results::Results;

/// A table or figure of the paper, and ours that correspond to it.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// The paper's number: `T2` or `F12`.
    pub number: &'static str,
    /// The paper's caption, shortened.
    pub title: &'static str,
    /// Identifiers of our tables (for `T`) or figures (for `F`) that correspond to it.
    pub ours: &'static [&'static str],
}

const fn item(number: &'static str, title: &'static str, ours: &'static [&'static str]) -> Item {
    Item { number, title, ours }
}

/// All items that can be made from records, in the paper's order.
pub const ITEMS: &[Item] = &[
    item("T2", "Model performance summary", &["summary", "comparison", "verdicts"]),
    item("F3", "Gains of the prompt over the baseline", &["pairs"]),
    item("F4", "Accuracy by model size", &["scaling"]),
    item("F5", "Accuracy by board size", &["sizes"]),
    item("T3", "Latency", &["latency"]),
    item("F6", "Accuracy against latency", &["pareto"]),
    item("F7", "Accuracy of each system (also F9)", &["systems"]),
    item("F8", "Profiles", &["profile"]),
    item("T4", "Accuracy by board size", &["sizes", "size-laws"]),
    item("F10", "Heat map of board sizes", &["heat-map"]),
    item("T5", "Error types on N-Queens", &["error-types", "stages"]),
    item("T6", "Ablation of the prompt", &["ablation"]),
    item("F12", "Accuracy by category", &["categories"]),
    item("F13", "Radar of the categories", &["radar"]),
    item("F14", "Largest gains", &["top-gains"]),
    item("F15", "Accuracy of each task (also F16 to F18)", &["tasks"]),
    item("F19", "Task accuracies by category", &["boxes"]),
    item("F20", "PRIME over the baseline", &["scatter"]),
    item("F21", "Histogram of gains", &["gains"]),
    item("T43", "Overall summary", &["summary", "comparison"]),
    item("T44", "Categories", &["categories", "category-gains"]),
    item("T45", "Tasks (also T46 to T49)", &["tasks", "task-pairs"]),
    item("T50", "Confidence intervals of the categories", &["categories"]),
    item("T51", "Accuracy by model size (also T53)", &["scaling"]),
    item("T52", "Scaling law coefficients", &["scaling-laws"]),
    item("T54", "Error types", &["error-types"]),
    item("T55", "Severity of errors (also T56)", &["severities"]),
    item("T57", "Position of first errors", &["first-errors"]),
    item("T58", "Ablation of components (also T73)", &["ablation"]),
    item("T59", "Interaction of components", &["interactions"]),
    item("T60", "Sensitivity to hyperparameters", &["sensitivity"]),
    item("T61", "Accuracy by difficulty", &["difficulty"]),
    item("T62", "Step efficiency", &["efficiency"]),
    item("T63", "Retries and backtracks", &["retries"]),
    item("T64", "Transfer between categories", &["transfer"]),
    item("T65", "Held-out categories", &["held-out"]),
    item("T66", "Time by role", &["components"]),
    item("T78", "Sweeps of hyperparameters (also T79 to T82)", &["sweeps"]),
    item("T84", "Inference techniques on and off", &["sweeps"]),
    item("T86", "Pass rates by stage", &["stages"]),
];

/// A number that is not in the list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "report.show: no table or figure `{name}` can be made from records{suggestion}; there are {known}"
)]
pub struct UnknownItem {
    /// The unknown number, as given.
    pub name: String,
    suggestion: String,
    known: String,
}

/// Checks the numbers of tables and figures.
///
/// # Errors
/// Names the first unknown number.
pub fn check_items(numbers: &[String]) -> Result<(), UnknownItem> {
    let known = || ITEMS.iter().map(|item| item.number);
    match numbers.iter().find(|number| !known().any(|known| known == number.as_str())) {
        None => Ok(()),
        Some(name) => Err(UnknownItem {
            name: name.clone(),
            suggestion: did_you_mean(name, known()),
            known: known().collect::<Vec<_>>().join(", "),
        }),
    }
}

/// Identifiers of the tables (`prefix` `T`) or figures (`F`) that a list of numbers asks for; all
/// without a list. Each identifier appears once, even if several numbers have it.
pub(crate) fn wanted(numbers: &[String], prefix: char) -> Vec<&'static str> {
    let mut wanted = Vec::new();
    let asked =
        |item: &&Item| numbers.is_empty() || numbers.iter().any(|number| number == item.number);

    for id in ITEMS
        .iter()
        .filter(|item| item.number.starts_with(prefix))
        .filter(asked)
        .flat_map(|item| item.ours)
    {
        if !wanted.contains(id) {
            wanted.push(*id);
        }
    }

    wanted
}

/// The tables that a list of the paper's numbers asks for, in our order; all without a list.
pub fn all_tables(results: &Results<'_>, numbers: &[String]) -> Vec<Table> {
    let mut asked = wanted(numbers, 'T');
    // Every figure has its rows in a table.
    asked.extend(wanted(numbers, 'F').into_iter().map(rows_of));

    let mut tables = Vec::new();
    type Make = fn(&Results<'_>) -> Table;
    let makers: [(&str, Make); 25] = [
        ("summary", summary::summary),
        ("comparison", comparison::comparison),
        ("verdicts", summary::verdicts),
        ("difficulty", difficulty::difficulty),
        ("sizes", sizes::sizes),
        ("size-laws", sizes::size_laws),
        ("categories", categories::categories),
        ("category-gains", categories::category_gains),
        ("tasks", task_comparison::tasks),
        ("ablation", ablations::ablation),
        ("interactions", ablations::interactions),
        ("sensitivity", sweeps::sensitivity),
        ("sweeps", sweeps::sweep_rows),
        ("scaling", scaling::scaling),
        ("scaling-laws", scaling::scaling_laws),
        ("transfer", transfer::transfer),
        ("held-out", transfer::held_out),
        ("stages", process::stages),
        ("error-types", errors::error_types),
        ("severities", errors::severities),
        ("first-errors", errors::first_errors),
        ("efficiency", process::efficiency),
        ("retries", process::retries),
        ("latency", cost::latency),
        ("components", cost::components),
    ];

    for (id, make) in makers {
        if asked.contains(&id) {
            tables.push(make(results));
        }
        // One table for each pair, besides the table of the systems.
        if id == "tasks" && asked.contains(&"task-pairs") {
            tables.extend(results.pairs.iter().map(task_comparison::pair_tasks));
        }
    }
    // The paper has no such tables: they are added if a system spent tokens, or had lines refused.
    tables.push(token_curve::token_curve(results));
    tables.push(errors::refusals(results));
    // For example, a comparison without pairs has no rows.
    tables.retain(|table: &Table| !table.rows.is_empty());
    tables
}
