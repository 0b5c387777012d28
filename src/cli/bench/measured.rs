//! What the measurements of agents have in common: which instances, and how figures are printed.

use std::process::ExitCode;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use comfy_table::Table;
use serde::Serialize;

use super::super::Configuration;
use super::super::run::Output;
use super::say;
use crate::agents::{AgentSet, Resources};
use crate::app::{resources_of, run_plan, run_sampling};
use crate::bench::contest::{Contender, Instances};
use crate::settings::Settings;
use prime_bench::tasks::{self, AnyTask, Difficulty, Problem};
use prime_engine::Engine;

#[derive(Args)]
pub struct Measured {
    /// Tasks to measure; by default those that have the short views and derivations that small models are trained on.
    #[arg(long = "task", value_name = "TASK")]
    tasks: Vec<String>,
    /// Levels to measure.
    #[arg(long = "difficulty", value_name = "LEVEL", default_values = ["easy"])]
    pub difficulties: Vec<Difficulty>,
    /// Instances (or steps) of each task and level.
    #[arg(long, default_value_t = 100, value_parser = RangedU64ValueParser::<u32>::new().range(1..=100_000))]
    pub instances: u32,
    /// Base seed; the default is neither the benchmark's nor one that the shipped model was trained on.
    #[arg(long, default_value_t = 7)]
    pub base_seed: u64,
    #[command(flatten)]
    pub configuration: Configuration,
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

impl Measured {
    pub fn tasks(&self) -> anyhow::Result<Vec<&'static dyn AnyTask>> {
        if self.tasks.is_empty() {
            let is_taught = |task: &&dyn AnyTask| prime_lessons::is_taught(task.spec().slug);
            return Ok(tasks::all().filter(is_taught).collect());
        }
        self.tasks.iter().map(|slug| Ok(tasks::find(slug)?)).collect()
    }

    /// The instances of each task, by level.
    pub fn levels(&self) -> impl Iterator<Item = Instances> {
        let (count, base_seed) = (self.instances, self.base_seed);
        self.difficulties.iter().map(move |difficulty| Instances { difficulty: *difficulty, count, base_seed })
    }

    /// Prints rows as a table, with remarks below it, or as JSON with what was measured.
    pub fn print<Row: Serialize>(
        &self,
        tasks: &[&'static dyn AnyTask],
        rows: &[Row],
        notes: &[String],
        table: impl FnOnce(&[Row]) -> Table,
    ) -> anyhow::Result<ExitCode> {
        let figures = Figures {
            tasks: tasks.iter().map(|task| task.spec().slug).collect(),
            difficulties: &self.difficulties,
            instances: self.instances,
            base_seed: self.base_seed,
            notes,
            rows,
        };
        say(&match self.output {
            Output::Text => notes.iter().fold(format!("{}\n", table(rows)), |text, note| text + "- " + note + "\n"),
            Output::Json => serde_json::to_string_pretty(&figures)? + "\n",
        });
        Ok(ExitCode::SUCCESS)
    }
}

/// What was measured, for programs.
#[derive(Serialize)]
struct Figures<'f, Row> {
    tasks: Vec<&'static str>,
    difficulties: &'f [Difficulty],
    /// Of each task and level.
    instances: u32,
    base_seed: u64,
    /// What a reader must know before comparing.
    notes: &'f [String],
    rows: &'f [Row],
}

/// The agents and plans that the settings have.
pub fn contender(settings: &Settings, resources: &Resources) -> anyhow::Result<Contender> {
    let agents = AgentSet::from_settings(settings, resources)?;
    let (kinds, planned) = (agents.kinds(), settings.clone());
    let plan = Box::new(move |problem: &dyn Problem| run_plan(&planned, kinds, problem));
    Ok(Contender { agents, plan, sampling: run_sampling(settings) })
}

/// Does this within an actix system, with the engines that any of the settings asks.
pub fn with_engines<'s, T>(
    all: impl IntoIterator<Item = &'s Settings>,
    work: impl AsyncFnOnce(&Resources) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    actix::System::new().block_on(async {
        let resources = resources_of(all)?;
        let done = work(&resources).await;
        resources.engines.values().for_each(Engine::shutdown);
        done
    })
}

/// The shares of the agents' notes that are not there yet.
pub fn note(notes: &mut Vec<String>, more: &[String]) {
    let new: Vec<_> = more.iter().filter(|note| !notes.contains(note)).cloned().collect();
    notes.extend(new);
}
