//! `prime-agents bench strategies`: each strategy with each verifier on held-out instances.

use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, ValueEnum as _};
use comfy_table::Table;

use super::super::start_log;
use super::approaches::{Approaches, Variant, approaches, escalating};
use super::measured::{Measured, contender, note, with_engines};
use super::table;
use crate::agents::{AgentSet, Resources};
use crate::app::runtime_plan;
use crate::bench::contest::{Contest, contest};
use crate::bench::strategies::{Approach, StrategyRow};
use crate::settings::{Settings, StrategyName};
use prime_bench::tasks::AnyTask;

#[derive(Args)]
pub struct StrategiesArguments {
    #[command(flatten)]
    measured: Measured,
    /// A strategy; may be given several times. All by default.
    #[arg(long = "strategy", value_enum, value_name = "STRATEGY")]
    strategies: Vec<StrategyName>,
    /// A verifier, by the name of an implementation or a definition; may be given several times.
    #[arg(long = "verifier", value_name = "VERIFIER", default_values = ["rules", "strict", "none"])]
    verifiers: Vec<String>,
    /// A variant of `iterative`, measured with the first verifier; may be given several times. All by default.
    #[arg(long = "variant", value_enum, value_name = "VARIANT")]
    variants: Vec<Variant>,
    /// Leave the variants of `iterative` out.
    #[arg(long, conflicts_with = "variants")]
    no_variants: bool,
    /// Rows for each task as well as for all together.
    #[arg(long)]
    by_task: bool,
}

impl StrategiesArguments {
    /// What is compared, with a remark on what is not.
    fn approaches(&self, settings: &Settings) -> anyhow::Result<(Approaches, Option<String>)> {
        let all = StrategyName::value_variants();
        let strategies = if self.strategies.is_empty() { all } else { &self.strategies };
        let variants = match (&self.variants[..], self.no_variants) {
            (_, true) => &[],
            ([], false) => Variant::value_variants(),
            (chosen, false) => chosen,
        };
        let is_wanted = variants.contains(&Variant::Escalation) && strategies.contains(&StrategyName::Iterative);
        let note = (is_wanted && escalating(settings).is_none()).then(|| {
            format!(
                "`escalation` is not measured: its small and its large executor are both `{}`; set \
                 `agents.executor.escalation.large`",
                settings.agents.executor.escalation.large
            )
        });
        if let (Some(note), false) = (&note, self.variants.is_empty()) {
            bail!("--variant escalation: {note}");
        }
        Ok((approaches(settings, strategies, &self.verifiers, variants), note))
    }
}

fn name(row: &StrategyRow) -> String {
    format!("{}, {}", row.approach.name, row.approach.verifier)
}

fn cells(row: &StrategyRow) -> Vec<String> {
    // Figures of runs that never took place would be taken for results.
    let figure = |text: String| if row.is_void() { "-".to_owned() } else { text };
    let votes = row.step_votes;
    vec![
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
        votes.and_then(|votes| votes.error_bound).map_or("-".to_owned(), |bound| format!("{bound:.2e}")),
        (row.out_of_steps + row.out_of_time).to_string(),
        row.failed.to_string(),
    ]
}

fn rows_table(rows: &[StrategyRow]) -> Table {
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
    table(&header, rows.iter().map(cells))
}

/// The rows of one approach: of each task if wanted, and of all.
async fn rows(
    arguments: &StrategiesArguments,
    (approach, settings): &(Approach, Settings),
    resources: &Resources,
    tasks: &[&'static dyn AnyTask],
) -> anyhow::Result<Vec<StrategyRow>> {
    let runtime = runtime_plan(settings);
    let (mut rows, mut all) = (Vec::new(), Contest::default());
    for task in tasks {
        let mut of_task = Contest::default();
        for instances in arguments.measured.levels() {
            let contender = contender(settings, resources)?;
            of_task.add(contest(contender, &runtime, *task, instances).await.map_err(anyhow::Error::msg)?);
        }
        if arguments.by_task {
            rows.push(StrategyRow::new(approach.clone(), Some(task.spec().slug), &of_task));
        }
        all.add(of_task);
    }
    rows.push(StrategyRow::new(approach.clone(), None, &all));
    Ok(rows)
}

pub fn strategies(arguments: &StrategiesArguments) -> anyhow::Result<ExitCode> {
    let measured = &arguments.measured;
    let settings = measured.configuration.load()?;
    start_log(&settings);
    let tasks = measured.tasks()?;
    let (approaches, remark) = arguments.approaches(&settings)?;
    for (_, settings) in &approaches {
        settings.validate()?;
    }
    let mut notes = Vec::new();
    let found = with_engines(approaches.iter().map(|(_, settings)| settings), async |resources| {
        // A mistake is to be seen before hours have gone into the approaches before it.
        for (_, settings) in &approaches {
            note(&mut notes, AgentSet::from_settings(settings, resources)?.notes());
        }
        let mut found = Vec::new();
        for approach in &approaches {
            let rows = rows(arguments, approach, resources, &tasks).await?;
            if let Some(row) = rows.last() {
                let brief = if row.is_void() { "all runs failed".to_owned() } else { row.accuracy.text() };
                eprintln!("{}: {brief}", name(row));
            }
            found.extend(rows);
        }
        Ok(found)
    })?;
    let failures = found.iter().filter(|row| row.task.is_none()).filter_map(|row| {
        let reason = row.failure.as_ref()?;
        Some(format!("{}: {} of {} runs failed, the first: {reason}", name(row), row.failed, row.accuracy.of))
    });
    notes.extend(failures.chain(remark));
    measured.print(&tasks, &found, &notes, rows_table)
}
