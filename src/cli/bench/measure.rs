//! `prime-agents bench solve` and `bench steps`: measure the configured agents on held-out instances.

use std::process::ExitCode;

use comfy_table::Table;
use serde::Serialize;

use super::super::run::Output;
use super::super::start_log;
use super::measured::{Measured, contender, with_engines};
use crate::agents::{AgentSet, Resources};
use crate::app::runtime_plan;
use crate::bench::contest::Instances;
use crate::bench::solve::{SolveRow, solve};
use crate::bench::steps::{StepRow, steps};
use crate::settings::Settings;
use prime_bench::tasks::AnyTask;

/// A single pass of the executor: one trajectory, nobody checks it.
fn single_pass(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    "none".clone_into(&mut settings.agents.verifier.implementation);
    settings.run.fanout = 1;
    settings.run.max_rounds = 1;
    settings
}

fn print<Row: Serialize>(rows: &[Row], output: Output, table: impl Fn(&[Row]) -> Table) -> anyhow::Result<()> {
    let text = match output {
        Output::Text => format!("{}\n", table(rows)),
        Output::Json => serde_json::to_string_pretty(rows)? + "\n",
    };
    super::say(&text);
    Ok(())
}

fn solve_table(rows: &[SolveRow]) -> Table {
    let header = [
        "task",
        "level",
        "mode",
        "accuracy % (95 %)",
        "verified",
        "of them wrong",
        "steps",
        "proposals",
        "prompt tokens",
        "completion tokens",
        "seconds",
    ];
    super::table(
        &header,
        rows.iter().map(|row| {
            vec![
                row.task.to_owned(),
                row.difficulty.to_string(),
                row.contender.to_owned(),
                row.accuracy.text(),
                row.verified.to_string(),
                row.verified_wrong.to_string(),
                format!("{:.1}", row.steps),
                format!("{:.1}", row.proposals),
                format!("{:.0}", row.prompt_tokens),
                format!("{:.0}", row.completion_tokens),
                format!("{:.1}", row.seconds),
            ]
        }),
    )
}

fn step_table(rows: &[StepRow]) -> Table {
    super::table(
        &["task", "level", "steps", "accuracy % (95 %)", "completion tokens a step"],
        rows.iter().map(|row| {
            vec![
                row.task.to_owned(),
                row.difficulty.to_string(),
                row.accuracy.of.to_string(),
                row.accuracy.text(),
                format!("{:.1}", row.completion_tokens),
            ]
        }),
    )
}

/// Solves instances twice, or asks for single steps, and prints a table.
fn with_agents<Row: Serialize>(
    measured: &Measured,
    table: impl Fn(&[Row]) -> Table,
    rows: impl AsyncFnOnce(&Settings, &Resources, &[&'static dyn AnyTask]) -> anyhow::Result<Vec<Row>>,
) -> anyhow::Result<ExitCode> {
    let settings = measured.configuration.load()?;
    start_log(&settings);
    let tasks = measured.tasks()?;
    let rows = with_engines([&settings], async |resources| rows(&settings, resources, &tasks).await)?;
    print(&rows, measured.output, table)?;
    Ok(ExitCode::SUCCESS)
}

pub fn solve_instances(measured: &Measured) -> anyhow::Result<ExitCode> {
    with_agents(measured, solve_table, async |settings, resources, tasks| {
        solve_all(measured, settings, resources, tasks).await
    })
}

pub fn ask_for_steps(measured: &Measured) -> anyhow::Result<ExitCode> {
    with_agents(measured, step_table, async |settings, resources, tasks| {
        let executor = AgentSet::from_settings(settings, resources)?.executor();
        let mut rows = Vec::new();
        for task in tasks {
            for difficulty in &measured.difficulties {
                let row = steps(executor.as_ref(), *task, *difficulty, measured.instances, measured.base_seed);
                rows.push(row.await.map_err(anyhow::Error::msg)?);
            }
        }
        Ok(rows)
    })
}

async fn solve_all(
    measured: &Measured,
    settings: &Settings,
    resources: &Resources,
    tasks: &[&'static dyn AnyTask],
) -> anyhow::Result<Vec<SolveRow>> {
    let runtime = runtime_plan(settings);
    let mut rows = Vec::new();
    for task in tasks {
        for difficulty in &measured.difficulties {
            let instances =
                Instances { difficulty: *difficulty, count: measured.instances, base_seed: measured.base_seed };
            for (name, settings) in [("single pass", single_pass(settings)), ("PRIME", settings.clone())] {
                let contender = contender(&settings, resources)?;
                let row = solve(name, contender, &runtime, *task, instances).await.map_err(anyhow::Error::msg)?;
                eprintln!("{} {} {}: {}", row.task, row.difficulty, row.contender, row.accuracy.text());
                rows.push(row);
            }
        }
    }
    Ok(rows)
}
