//! `prime-agents bench solve` and `bench steps`: measure the configured agents on held-out instances.

use std::process::ExitCode;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use comfy_table::Table;
use serde::Serialize;

use super::super::run::Output;
use super::super::{Configuration, start_log};
use crate::agents::{AgentSet, Resources};
use crate::app::{resources, run_plan, run_sampling, runtime_plan};
use crate::bench::solve::{Contender, Instances, SolveRow, solve};
use crate::bench::steps::{StepRow, steps};
use crate::engine::Engine;
use crate::settings::Settings;
use crate::tasks::{self, AnyTask, Difficulty, Problem};

#[derive(Args)]
pub struct Measured {
    /// Tasks to measure; by default those that have the short views and derivations that small models are trained on.
    #[arg(long = "task", value_name = "TASK")]
    tasks: Vec<String>,
    /// Levels to measure.
    #[arg(long = "difficulty", value_name = "LEVEL", default_values = ["easy"])]
    difficulties: Vec<Difficulty>,
    /// Instances (or steps) of each task and level.
    #[arg(long, default_value_t = 100, value_parser = RangedU64ValueParser::<u32>::new().range(1..=100_000))]
    instances: u32,
    /// Base seed; the default is neither the benchmark's nor one that the shipped model was trained on.
    #[arg(long, default_value_t = 7)]
    base_seed: u64,
    #[command(flatten)]
    configuration: Configuration,
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

impl Measured {
    fn tasks(&self) -> anyhow::Result<Vec<&'static dyn AnyTask>> {
        if self.tasks.is_empty() {
            let is_taught = |task: &&dyn AnyTask| task.generate(Difficulty::Easy, 0).start().derivation().is_some();
            return Ok(tasks::all().filter(is_taught).collect());
        }
        self.tasks.iter().map(|slug| Ok(tasks::find(slug)?)).collect()
    }
}

/// A single pass of the executor: one trajectory, nobody checks it.
fn single_pass(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    "none".clone_into(&mut settings.agents.verifier.implementation);
    settings.run.fanout = 1;
    settings.run.max_rounds = 1;
    settings
}

fn contender(name: &'static str, settings: &Settings, resources: &Resources) -> anyhow::Result<Contender> {
    let agents = AgentSet::from_settings(settings, resources)?;
    let (kinds, planned) = (agents.kinds(), settings.clone());
    let plan = Box::new(move |problem: &dyn Problem| run_plan(&planned, kinds, problem));
    Ok(Contender { name, agents, plan, sampling: run_sampling(settings) })
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
    actix::System::new().block_on(async {
        let resources = resources(&settings)?;
        let rows = rows(&settings, &resources, &tasks).await?;
        print(&rows, measured.output, table)?;
        resources.engines.values().for_each(Engine::shutdown);
        Ok(ExitCode::SUCCESS)
    })
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
                let contender = contender(name, &settings, resources)?;
                let row = solve(contender, &runtime, *task, instances).await.map_err(anyhow::Error::msg)?;
                eprintln!("{} {} {}: {}", row.task, row.difficulty, row.contender, row.accuracy.text());
                rows.push(row);
            }
        }
    }
    Ok(rows)
}
