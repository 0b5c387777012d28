//! `runs overview`: what the runs in a daemon's journal add up to.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::Common;
use super::chosen::Chosen;
use super::client::known;
use crate::cli::output::{Output, count, note, print};
use crate::cli::table::Table;
use prime_service::runs::{Figures, NamedFigures, Overview};

/// Rows of each table; JSON has all.
const ROWS: usize = 20;

#[derive(Args)]
pub struct OverviewArguments {
    /// Only runs of this task
    #[arg(long, value_name = "SLUG")]
    task: Option<String>,
    #[command(flatten)]
    chosen: Chosen,
    #[command(flatten)]
    common: Common,
}

/// A share of the runs that are over.
fn share(figures: &Figures) -> String {
    figures.verified_share.map_or_else(String::new, |share| format!("{:.1}", 100.0 * share))
}

#[expect(clippy::cast_precision_loss, reason = "seconds for display")]
fn seconds(wall_ms: u64) -> String {
    format!("{:.1}", wall_ms as f64 / 1e3)
}

/// What runs cost, if their tokens have a price.
fn cost(figures: &Figures) -> String {
    figures.cost.map_or_else(String::new, |cost| cost.to_string())
}

fn row(of: &NamedFigures) -> [String; 10] {
    let figures = &of.figures;
    [
        of.name.clone(),
        figures.runs.to_string(),
        figures.open.to_string(),
        share(figures),
        figures.failed.to_string(),
        figures.steps.to_string(),
        figures.refused.to_string(),
        (figures.prompt_tokens + figures.completion_tokens).to_string(),
        cost(figures),
        seconds(figures.wall_ms),
    ]
}

fn table(name: &'static str, entries: &[NamedFigures]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let header = [
        name,
        "runs",
        "open",
        "verified %",
        "failed",
        "steps",
        "refused",
        "tokens",
        "cost",
        "run time s",
    ];
    let table = Table::new(header, entries.iter().take(ROWS).map(row));
    let has_prices = entries.iter().any(|entry| entry.figures.cost.is_some());
    let table = if has_prices { table } else { table.without("cost") };
    format!("\n{}", table.may_drop(&["open", "failed", "tokens", "refused", "cost"]))
}

fn text(overview: &Overview) -> String {
    let Overview { since, before, total, tasks, models, days, constraints, .. } = overview;
    let over = total.runs - total.open;
    let mut text = format!("{} from {since} to {before}", count(total.runs, "run"));
    if let Some(key) = &overview.key {
        let of = if key == "*" { "of all keys".to_owned() } else { format!("of {key}") };
        write!(text, ", {of}").expect("invariant: writing to a string succeeds");
    }
    text += &format!(
        "\n{} over: {} verified, {} unrefuted, {} unverified, {} failed, {} cancelled\n",
        over, total.verified, total.unrefuted, total.unverified, total.failed, total.cancelled
    );
    if total.imported > 0 {
        text += &format!("{} imported from other daemons, and not counted\n", total.imported);
    }
    let cost = total.cost.map_or_else(String::new, |cost| format!(", which cost {cost}"));
    text += &format!(
        "{:.1} runs and {:.1} steps an hour; {} prompt and {} completion tokens{cost}; {} s of \
         run time\n",
        total.runs_per_hour,
        total.steps_per_hour,
        total.prompt_tokens,
        total.completion_tokens,
        seconds(total.wall_ms)
    );

    if !total.outcomes.is_empty() {
        let mut outcomes: Vec<_> = total.outcomes.iter().collect();
        outcomes.sort_by_key(|(_, runs)| Reverse(**runs));
        let rows = outcomes.into_iter().map(|(name, runs)| [name.clone(), runs.to_string()]);
        text += &format!("\n{}", Table::new(["outcome", "runs"], rows));
    }
    for (name, entries) in [("task", tasks), ("model", models), ("day", days)] {
        text += &table(name, entries);
    }
    if !constraints.is_empty() {
        let row = |of: &prime_service::runs::RefusedBy| {
            let constraint = if of.constraint.is_empty() { "none named" } else { &of.constraint };
            [of.task.clone(), constraint.to_owned(), of.lines.to_string()]
        };
        let header = ["task", "constraint", "refused lines"];
        text += &format!("\n{}", Table::new(header, constraints.iter().take(ROWS).map(row)));
    }
    text
}

pub fn overview(arguments: &OverviewArguments) -> anyhow::Result<ExitCode> {
    let OverviewArguments { task, chosen, common } = arguments;
    let all = chosen.query().into_iter().chain([("task", task.clone())]);
    let query: Vec<(&str, String)> = all.filter_map(|(name, value)| Some((name, value?))).collect();
    let answer: Value = common.client()?.get("/v1/overview", &query)?.json()?;

    let text = match common.output {
        Output::Json => serde_json::to_string_pretty(&answer)? + "\n",
        Output::Text => {
            let overview: Overview = known("answer", &answer)?;
            if overview.incomplete {
                note!(
                    "the daemon still looks through runs of an earlier version: some may be \
                     missing"
                );
            }
            text(&overview)
        }
    };
    print(text)?;
    Ok(ExitCode::SUCCESS)
}
