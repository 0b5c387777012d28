//! What the evaluations of agents share: options, systems made from settings, and the printed
//! result.

use anyhow::bail;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use serde::Serialize;

use super::find_all;
use crate::cli::output::{Output, OutputError, print};
use crate::cli::own_model::OwnModel;
use crate::cli::own_tasks::{GivenTasks, open};
use crate::cli::table::Table;
use crate::cli::values::{TaskParser, difficulty};
use crate::evaluation::comparison::{Instances, System};
use prime_agent_set::{AgentSet, Resources};
use prime_bench::tasks::{self, AnyTask, Difficulty};
use prime_engine::Engine;
use prime_models::BUILT_IN_MODELS;
use prime_service::app::{check_agents, planner, resources_of, run_sampling};
use prime_settings::Settings;

/// Instances solved at a time unless the user says otherwise.
pub const CONCURRENT: usize = 8;

#[derive(Args)]
pub struct Measurement {
    /// Task; repeatable [default: the tasks that the built-in models were trained on]
    #[arg(
        long = "task",
        value_name = "TASK",
        value_parser = TaskParser,
        hide_possible_values = true
    )]
    tasks: Vec<String>,
    /// Difficulty; repeatable
    #[arg(
        long = "difficulty",
        value_name = "LEVEL",
        value_parser = difficulty(),
        default_values = ["easy"]
    )]
    pub difficulties: Vec<Difficulty>,
    /// Instances (or steps) per task and difficulty
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        value_parser = RangedU64ValueParser::<u32>::new().range(1..=100_000)
    )]
    pub instances: u32,
    /// Base seed; the default is neither the benchmark's nor one that the shipped model was trained
    /// on
    #[arg(long, value_name = "SEED", default_value_t = 7)]
    pub base_seed: u64,
    #[command(flatten)]
    pub configuration: OwnModel,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

impl Measurement {
    fn tasks(&self) -> anyhow::Result<Vec<&'static dyn AnyTask>> {
        if self.tasks.is_empty() {
            let is_known = |task: &&'static dyn AnyTask| {
                BUILT_IN_MODELS.iter().any(|model| model.tasks.contains(&task.spec().slug))
            };
            return Ok(tasks::all().filter(is_known).collect());
        }
        find_all(&self.tasks)
    }

    /// The tasks, for a measurement that cannot take tasks that the user defines.
    ///
    /// # Errors
    /// A task is unknown, or the user defines it.
    pub fn benchmark_tasks(
        &self,
        settings: &Settings,
    ) -> anyhow::Result<Vec<&'static dyn AnyTask>> {
        if let Some(own) = self.tasks.iter().find(|name| settings.tasks.contains_key(*name)) {
            bail!(
                "--task {own}: this takes tasks of the benchmark only; `bench solve`, `bench \
                 steps` and `study run` measure tasks of your own, too"
            );
        }
        self.tasks()
    }

    /// Like [`Measurement::benchmark_tasks`], with the tasks that the user defines.
    ///
    /// # Errors
    /// A task is neither of the benchmark nor configured, or cannot be measured.
    pub fn all_tasks(&self, settings: &Settings) -> anyhow::Result<Opened> {
        let is_own = |name: &&String| settings.tasks.contains_key(*name);
        let own: Vec<&str> = self.tasks.iter().filter(is_own).map(String::as_str).collect();
        if own.is_empty() {
            return Ok(Opened { tasks: self.tasks()?, given: None });
        }

        let built_in: Vec<String> =
            self.tasks.iter().filter(|name| !own.contains(&name.as_str())).cloned().collect();
        let mut tasks = find_all(&built_in)?;
        let given = open(settings, &own)?;
        tasks.extend(given.tasks.iter().map(|task| *task as &dyn AnyTask));
        Ok(Opened { tasks, given: Some(given) })
    }

    /// The instances of a task, by level; given inputs have no level.
    pub fn levels_of(&self, task: &dyn AnyTask) -> impl Iterator<Item = Instances> {
        let levels = if task.given().is_some() { 1 } else { usize::MAX };
        self.levels().take(levels)
    }

    /// The instances of each task, by difficulty.
    pub fn levels(&self) -> impl Iterator<Item = Instances> {
        let (count, base_seed) = (self.instances, self.base_seed);
        self.difficulties.iter().map(move |difficulty| Instances {
            difficulty: *difficulty,
            count,
            base_seed,
            concurrent: CONCURRENT,
        })
    }

    /// Prints rows as a table or a JSON list.
    pub fn print_rows<Row: Serialize>(
        &self,
        rows: &[Row],
        table: impl FnOnce(&[Row]) -> Table,
    ) -> Result<(), OutputError> {
        match self.output {
            Output::Text => print(table(rows)),
            Output::Json => print(json(&rows)),
        }
    }

    /// Prints rows as a table with notes, or as JSON with what was measured.
    pub fn print<Row: Serialize>(
        &self,
        tasks: &[&'static dyn AnyTask],
        rows: &[Row],
        notes: &[String],
        table: impl FnOnce(&[Row]) -> Table,
    ) -> Result<(), OutputError> {
        let figures = Figures {
            tasks: tasks.iter().map(|task| task.spec().slug).collect(),
            difficulties: &self.difficulties,
            instances: self.instances,
            base_seed: self.base_seed,
            notes,
            rows,
        };

        match self.output {
            Output::Text => print(
                notes.iter().fold(table(rows).to_string(), |text, note| text + "- " + note + "\n"),
            ),
            Output::Json => print(json(&figures)),
        }
    }
}

/// The tasks of a measurement.
pub struct Opened {
    pub tasks: Vec<&'static dyn AnyTask>,
    /// Ends the programs of those that the user defines.
    #[expect(dead_code, reason = "kept until the measurement has ended")]
    given: Option<GivenTasks>,
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("invariant: figures serialise") + "\n"
}

/// What was measured, for programs.
#[derive(Serialize)]
struct Figures<'f, Row> {
    tasks: Vec<&'static str>,
    difficulties: &'f [Difficulty],
    /// Number of instances per task and difficulty.
    instances: u32,
    base_seed: u64,
    /// What a reader must know before comparing.
    notes: &'f [String],
    rows: &'f [Row],
}

/// The system that the settings describe.
pub fn system(settings: &Settings, resources: &Resources) -> anyhow::Result<System> {
    let agents = AgentSet::from_settings(settings, resources)?;
    let plan = Box::new(planner(settings, &agents));
    Ok(System { agents, plan, sampling: run_sampling(settings) })
}

/// Most concurrent turns of `concurrent` runs; `None` if that does not fit.
pub fn turns_of<'s>(concurrent: usize, all: impl IntoIterator<Item = &'s Settings>) -> Option<u32> {
    let fanout = all.into_iter().map(|settings| settings.run.fanout).max().unwrap_or(1);
    u32::try_from(concurrent).ok().map(|concurrent| concurrent.max(1).saturating_mul(fanout))
}

/// Does work within an actix system, with the engines that any of the settings needs, each for at
/// most `turns` concurrent turns, and with pools of which at least one server answers.
pub fn with_engines<'s, T>(
    all: impl IntoIterator<Item = &'s Settings> + Clone,
    turns: Option<u32>,
    work: impl AsyncFnOnce(&Resources) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    actix::System::new().block_on(async {
        let resources = resources_of(all.clone(), turns)?;
        let done = match ready(all, &resources).await {
            Ok(()) => work(&resources).await,
            Err(error) => Err(error),
        };
        // Also if the work failed: no worker process may outlive the command.
        resources.engines.values().for_each(Engine::shutdown);
        done
    })
}

/// Checks that what the agents of any of the settings ask answers: servers, programs.
async fn ready<'s>(
    all: impl IntoIterator<Item = &'s Settings>,
    resources: &Resources,
) -> anyhow::Result<()> {
    // Opens the pools and starts the programs that the agents use.
    let agents = all.into_iter().map(|settings| AgentSet::from_settings(settings, resources));
    let agents = agents.collect::<Result<Vec<_>, _>>()?;
    let answered = check_agents(resources).await;
    drop(agents);
    answered.map_err(anyhow::Error::msg)
}

/// Adds the notes that are new.
pub fn add_notes(notes: &mut Vec<String>, more: &[String]) {
    let new: Vec<_> = more.iter().filter(|note| !notes.contains(note)).cloned().collect();
    notes.extend(new);
}
