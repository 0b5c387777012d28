//! `bench rollouts`: what step labels by Monte Carlo are worth, against labels that are known.

use std::cell::RefCell;
use std::process::ExitCode;

use clap::Args;

use super::measurement::{Measurement, with_engines};
use crate::cli::progress::Session;
use crate::cli::start_log;
use crate::cli::table::Table;
use crate::evaluation::rollout_labels::{RolledStep, RolloutRow, Rollouts, Share, rollout_labels};
use prime_agent_set::{AgentSet, Agents};
use prime_service::app::run_sampling;

#[derive(Args)]
pub struct RolloutsArguments {
    #[command(flatten)]
    measurement: Measurement,
    /// Rollouts of each step; labels by fewer of them are computed from the same ones
    #[arg(
        long,
        value_name = "K",
        default_value_t = 16,
        value_parser = clap::value_parser!(u32).range(1..=1_024)
    )]
    rollouts: u32,
}

fn share(share: Option<Share>) -> String {
    share.map_or("-".to_owned(), |Share { value, low, high }| {
        format!("{:.1} ({:.1} to {:.1})", value * 100.0, low * 100.0, high * 100.0)
    })
}

fn table(rows: &[RolloutRow]) -> Table {
    let cells = |row: &RolloutRow| {
        [
            row.task.to_owned(),
            row.difficulty.to_owned(),
            row.right.to_string(),
            row.wrong.to_string(),
            row.rollouts.to_string(),
            share(row.precision),
            share(row.recall),
            format!("{:.0}", row.proposals),
        ]
    };
    let header = [
        "task",
        "level",
        "right",
        "wrong",
        "rollouts",
        "precision % (95 %)",
        "recall % (95 %)",
        "proposals/step",
    ];
    Table::new(header, rows.iter().map(cells))
}

pub fn rollouts(arguments: &RolloutsArguments) -> anyhow::Result<ExitCode> {
    let measurement = &arguments.measurement;
    let settings = measurement.configuration.load()?;
    start_log(&settings);
    let tasks = measurement.benchmark_tasks(&settings)?;
    let sampling = run_sampling(&settings);
    let rollouts = Rollouts {
        count: arguments.rollouts,
        temperature: sampling.temperature,
        top_p: sampling.top_p,
        seed: sampling.seed,
    };

    let (rows, finished) = with_engines([&settings], None, async |resources| {
        let executor = AgentSet::from_settings(&settings, resources)?.executor();
        let units = tasks.len() * measurement.difficulties.len();
        let steps = u64::from(measurement.instances);
        let mut session = Session::with_parts(vec![steps; units], "measurement", "step")?;

        let mut rows = Vec::new();
        for task in &tasks {
            for instances in measurement.levels() {
                let (slug, difficulty) = (task.spec().slug, instances.level(*task));
                let (on_part, done) = (session.on_part(), RefCell::new(Vec::new()));
                let on_step = |step: RolledStep| {
                    done.borrow_mut().push(step);
                    on_part();
                };
                let labels = async {
                    rollout_labels(executor.as_ref(), *task, instances, rollouts, &on_step)
                        .await
                        .map_err(|error| anyhow::anyhow!("{slug}: {error}"))
                };

                let found = session.next(labels).await?;
                let is_whole = found.is_some();
                // When the command is asked to stop, the steps that are done make rows.
                let steps = found.unwrap_or_else(|| done.take());
                rows.extend(RolloutRow::all(slug, difficulty, &steps, rollouts.count));
                if !is_whole {
                    return Ok((rows, session.finish()));
                }
            }
        }
        Ok((rows, session.finish()))
    })?;

    measurement.print_rows(&rows, table)?;
    Ok(finished.exit_code())
}
