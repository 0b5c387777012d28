//! `bench solve`: PRIME as configured against a single pass without a verifier.

use std::cell::RefCell;
use std::process::ExitCode;

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use tokio::time::Instant;

use super::instances;
use super::measurement::{CONCURRENT, Measurement, system, turns_of, with_engines};
use crate::cli::output::count;
use crate::cli::own_tasks::check_verifier;
use crate::cli::progress::Session;
use crate::cli::start_log;
use crate::cli::table::Table;
use crate::evaluation::comparison::{Instances, JudgedRun, SystemRuns};
use crate::evaluation::solve::{SolveRow, row as row_of, solve as measure};
use prime_agent_set::{AgentSet, Resources};
use prime_bench::tasks::AnyTask;
use prime_service::app::runtime_plan;
use prime_settings::Settings;

#[derive(Args)]
pub struct SolveArguments {
    #[command(flatten)]
    measurement: Measurement,
    /// Measure only this system [default: both]
    #[arg(long, value_enum, value_name = "SYSTEM")]
    system: Option<SystemName>,
    /// Instances solved at a time; with 1, `median s` is the time that one run takes
    #[arg(
        long,
        value_name = "N",
        default_value_t = CONCURRENT,
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_000)
    )]
    concurrent: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SystemName {
    /// One trajectory without a verifier
    SinglePass,
    /// PRIME as configured
    Prime,
}

impl SystemName {
    fn label(self) -> &'static str {
        match self {
            Self::SinglePass => "single pass",
            Self::Prime => "PRIME",
        }
    }

    fn settings(self, configured: &Settings) -> Settings {
        match self {
            Self::SinglePass => single_pass(configured),
            Self::Prime => configured.clone(),
        }
    }
}

/// One trajectory without a verifier.
fn single_pass(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    settings.agents.verifier.choose("none");
    settings.run.fanout = 1;
    settings.run.max_rounds = 1;
    settings
}

fn table(rows: &[SolveRow]) -> Table {
    let header = [
        "task",
        "level",
        "system",
        "instances",
        "accuracy % (95 %)",
        "verified",
        "of them wrong",
        "steps",
        "proposals",
        "prompt tokens",
        "completion tokens",
        "stuck",
        "median s",
        "seconds",
    ];
    let cells = |row: &SolveRow| {
        [
            row.task.to_owned(),
            row.difficulty.to_string(),
            row.system.to_owned(),
            instances(row.accuracy.of, row.inputs),
            row.accuracy.text(),
            row.verified.to_string(),
            row.verified_wrong.to_string(),
            format!("{:.1}", row.steps),
            format!("{:.1}", row.proposals),
            format!("{:.0}", row.prompt_tokens),
            format!("{:.0}", row.completion_tokens),
            row.stuck.to_string(),
            format!("{:.1}", row.median_s),
            format!("{:.1}", row.seconds),
        ]
    };
    Table::new(header, rows.iter().map(cells))
}

pub fn solve(arguments: &SolveArguments) -> anyhow::Result<ExitCode> {
    let measurement = &arguments.measurement;
    let settings = measurement.configuration.load()?;
    start_log(&settings);
    let opened = measurement.all_tasks(&settings)?;
    let tasks = &opened.tasks;

    let systems = arguments
        .system
        .map_or(vec![SystemName::SinglePass, SystemName::Prime], |system| vec![system]);
    let (rows, finished) = with_engines(
        [&settings],
        turns_of(arguments.concurrent, [&settings]),
        async |resources| {
            // A mistake must show before hours are spent on the systems ahead of it.
            for name in &systems {
                let agents = AgentSet::from_settings(&name.settings(&settings), resources)?;
                check_verifier(&agents, tasks)?;
            }

            let parts = parts(measurement, tasks, systems.len());
            let runs: u64 = parts.iter().sum();
            let mut session = Session::with_parts(parts, "measurement", "run")?;
            session.note(&format!(
                "{}, {}, {}: {}; Ctrl-C prints the table of those that are done",
                count(tasks.len() as u64, "task"),
                count(measurement.difficulties.len() as u64, "level"),
                count(systems.len() as u64, "system"),
                count(runs, "run"),
            ));
            let rows = rows(arguments, &settings, resources, tasks, &systems, &mut session).await?;
            Ok((rows, session.finish()))
        },
    )?;

    measurement.print_rows(&rows, table)?;
    Ok(finished.exit_code())
}

/// The runs of each row, in the order of the rows.
fn parts(measurement: &Measurement, tasks: &[&'static dyn AnyTask], systems: usize) -> Vec<u64> {
    let of = |task: &&'static dyn AnyTask| {
        let task = *task;
        let levels = measurement.levels_of(task);
        levels.map(move |instances| u64::from(instances.count_of(task))).collect::<Vec<_>>()
    };
    let rows = tasks.iter().flat_map(of);
    rows.flat_map(|runs| std::iter::repeat_n(runs, systems)).collect()
}

async fn rows(
    arguments: &SolveArguments,
    settings: &Settings,
    resources: &Resources,
    tasks: &[&'static dyn AnyTask],
    systems: &[SystemName],
    session: &mut Session,
) -> anyhow::Result<Vec<SolveRow>> {
    let runtime = runtime_plan(settings);
    let mut rows = Vec::new();
    for task in tasks {
        for instances in arguments.measurement.levels_of(*task) {
            let instances = Instances { concurrent: arguments.concurrent, ..instances };
            for name in systems {
                let system = system(&name.settings(settings), resources)?;

                let (started, done, on_part) =
                    (Instant::now(), RefCell::new(Vec::new()), session.on_part());
                let on_run = |run: &JudgedRun| {
                    done.borrow_mut().push(run.clone());
                    on_part();
                };

                let row = async {
                    let row =
                        measure(name.label(), system, &runtime, *task, instances, &on_run).await;
                    row.map_err(anyhow::Error::msg)
                };

                // After Ctrl-C, the runs that have ended make a row of their own.
                let Some(row) = session.next(row).await? else {
                    let runs = SystemRuns {
                        judged: done.take(),
                        seconds: started.elapsed().as_secs_f64(),
                    };
                    if !runs.judged.is_empty() {
                        let (of, all) = (runs.judged.len(), instances.count_of(*task));
                        session.note(&format!(
                            "{} {} {}: {of} of {all} runs, the quicker ones",
                            task.spec().slug,
                            instances.level(*task),
                            name.label()
                        ));
                        rows.push(row_of(name.label(), *task, instances.level(*task), &runs));
                    }
                    return Ok(rows);
                };

                session.note(&format!(
                    "{} {} {}: {}",
                    row.task,
                    row.difficulty,
                    row.system,
                    row.accuracy.text()
                ));
                rows.push(row);
            }
        }
    }
    Ok(rows)
}
