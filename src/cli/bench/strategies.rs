//! `bench strategies`: each strategy with each verifier on held-out instances.

use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, ValueEnum as _};

use super::approaches::{Approaches, Variant, approaches, escalating};
use super::measurement::{Measurement, add_notes, system, with_engines};
use crate::cli::progress::Session;
use crate::cli::start_log;
use crate::cli::table::Table;
use crate::evaluation::comparison::{JudgedRun, SystemRuns, evaluate};
use crate::evaluation::strategies::{Approach, StrategyRow};
use prime_agent_set::{AgentSet, Resources};
use prime_bench::tasks::AnyTask;
use prime_service::app::runtime_plan;
use prime_settings::{Settings, StrategyName};

#[derive(Args)]
pub struct StrategiesArguments {
    #[command(flatten)]
    measurement: Measurement,
    /// Strategy; repeatable [default: all]
    #[arg(long = "strategy", value_enum, value_name = "STRATEGY")]
    strategies: Vec<StrategyName>,
    /// Verifier: the name of an implementation or a definition; repeatable
    #[arg(long = "verifier", value_name = "VERIFIER", default_values = ["rules", "strict", "none"])]
    verifiers: Vec<String>,
    /// Variant of `iterative`, measured with the first verifier; repeatable [default: all]
    #[arg(long = "variant", value_enum, value_name = "VARIANT")]
    variants: Vec<Variant>,
    /// Leave out the variants of `iterative`
    #[arg(long, conflicts_with = "variants")]
    no_variants: bool,
    /// Add a row for each task
    #[arg(long)]
    by_task: bool,
}

impl StrategiesArguments {
    /// What is compared, and a note on what cannot be.
    fn approaches(&self, settings: &Settings) -> anyhow::Result<(Approaches, Option<String>)> {
        let all = StrategyName::value_variants();
        let strategies = if self.strategies.is_empty() { all } else { &self.strategies };
        let variants = match (&self.variants[..], self.no_variants) {
            (_, true) => &[],
            ([], false) => Variant::value_variants(),
            (chosen, false) => chosen,
        };

        let is_wanted = variants.contains(&Variant::Escalation)
            && strategies.contains(&StrategyName::Iterative);
        let note = (is_wanted && escalating(settings).is_none()).then(|| {
            format!(
                "`escalation` is not measured: its small and its large executor are both `{}`; set \
                 `agents.executor.escalation.large`",
                settings.agents.executor.escalation.large
            )
        });

        // Asked for by name it is an error; by default it is left out with a note.
        if let (Some(note), false) = (&note, self.variants.is_empty()) {
            bail!("--variant escalation: {note}");
        }

        Ok((approaches(settings, strategies, &self.verifiers, variants), note))
    }
}

fn name(row: &StrategyRow) -> String {
    format!("{}, {}", row.approach.name, row.approach.verifier)
}

fn cells(row: &StrategyRow) -> [String; 14] {
    // Figures of runs that all failed must not be taken for results.
    let figure = |text: String| if row.is_void() { "-".to_owned() } else { text };
    let votes = row.step_votes;
    [
        row.approach.name.clone(),
        row.approach.verifier.clone(),
        row.task.unwrap_or("all").to_owned(),
        figure(row.accuracy.text()),
        figure(row.verified.to_string()),
        figure(row.verified_wrong.to_string()),
        figure(format!("{:.1}", row.proposals)),
        figure(format!("{:.0}", row.prompt_tokens)),
        figure(format!("{:.0}", row.completion_tokens)),
        figure(format!("{:.1}", row.seconds)),
        votes.map_or("-".to_owned(), |votes| votes.margin_min.to_string()),
        votes
            .and_then(|votes| votes.error_bound)
            .map_or("-".to_owned(), |bound| format!("{bound:.2e}")),
        (row.out_of_steps + row.out_of_time).to_string(),
        row.failed.to_string(),
    ]
}

fn table(rows: &[StrategyRow]) -> Table {
    let header = [
        "strategy",
        "verifier",
        "task",
        "accuracy % (95 %)",
        "verified",
        "of them wrong",
        "proposals",
        "prompt tokens",
        "completion tokens",
        "seconds",
        "least margin",
        "error bound",
        "cut short",
        "failed",
    ];
    Table::new(header, rows.iter().map(cells))
}

/// The rows of one approach: one for each task if wanted, and one for all that were measured before
/// Ctrl-C.
async fn rows(
    arguments: &StrategiesArguments,
    (approach, settings): &(Approach, Settings),
    resources: &Resources,
    tasks: &[&'static dyn AnyTask],
    session: &mut Session,
) -> anyhow::Result<Vec<StrategyRow>> {
    let runtime = runtime_plan(settings);
    let (mut rows, mut all) = (Vec::new(), SystemRuns::default());

    'tasks: for task in tasks {
        let mut of_task = SystemRuns::default();
        for instances in arguments.measurement.levels() {
            let system = system(settings, resources)?;
            let on_part = session.on_part();
            let on_run = |_: &JudgedRun| on_part();
            let runs = async {
                evaluate(system, &runtime, *task, instances, &on_run)
                    .await
                    .map_err(anyhow::Error::msg)
            };
            let Some(runs) = session.next(runs).await? else { break 'tasks };
            of_task.add(runs);
        }

        if arguments.by_task {
            rows.push(StrategyRow::new(approach.clone(), Some(task.spec().slug), &of_task));
        }
        all.add(of_task);
    }

    if !all.judged.is_empty() {
        rows.push(StrategyRow::new(approach.clone(), None, &all));
    }
    Ok(rows)
}

pub fn strategies(arguments: &StrategiesArguments) -> anyhow::Result<ExitCode> {
    let measurement = &arguments.measurement;
    let settings = measurement.configuration.load()?;
    start_log(&settings);
    let tasks = measurement.benchmark_tasks(&settings)?;
    let (approaches, not_compared) = arguments.approaches(&settings)?;

    for (_, settings) in &approaches {
        settings.validate()?;
    }

    let mut notes = Vec::new();
    let (found, finished) =
        with_engines(approaches.iter().map(|(_, settings)| settings), None, async |resources| {
            // A mistake must show before hours are spent on the approaches ahead of it.
            for (_, settings) in &approaches {
                add_notes(&mut notes, AgentSet::from_settings(settings, resources)?.notes());
            }

            let runs = u64::from(measurement.instances);
            let units = approaches.len() * tasks.len() * measurement.difficulties.len();
            let mut session = Session::with_parts(vec![runs; units], "measurement", "run")?;
            let mut found = Vec::new();
            for approach in &approaches {
                let rows = rows(arguments, approach, resources, &tasks, &mut session).await?;
                if let Some(row) = rows.last() {
                    let brief = if row.is_void() {
                        "all runs failed".to_owned()
                    } else {
                        row.accuracy.text()
                    };
                    session.note(&format!("{}: {brief}", name(row)));
                }
                found.extend(rows);
            }
            Ok((found, session.finish()))
        })?;

    let failures = found.iter().filter(|row| row.task.is_none()).filter_map(|row| {
        let reason = row.failure.as_ref()?;
        Some(format!(
            "{}: {} of {} runs failed, the first: {reason}",
            name(row),
            row.failed,
            row.accuracy.of
        ))
    });

    notes.extend(failures.chain(not_compared).chain(finished.note().map(str::to_owned)));
    measurement.print(&tasks, &found, &notes, table)?;
    Ok(finished.exit_code())
}
