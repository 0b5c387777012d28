//! `prime-agents bench verifiers`: how often verifiers accept wrong steps and reject right ones.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use comfy_table::Table;

use super::super::start_log;
use super::measured::{Measured, note, with_engines};
use super::table;
use crate::agents::{AgentSet, Resources, Verifier};
use crate::bench::verifiers::{LogProbability, Verdicts, VerifierRow};
use crate::bench::wrong_steps::{Labelled, labelled_steps};
use crate::settings::{Settings, VerdictName, VerifierAgent};
use prime_bench::interval::Proportion;
use prime_bench::tasks::AnyTask;

/// The verifiers that are always measured: they cost little, and the others are seen beside them.
const ALWAYS: [&str; 4] = ["rules", "strict", "reference", "none"];

#[derive(Args)]
pub struct VerifiersArguments {
    #[command(flatten)]
    measured: Measured,
    /// A verifier beside rules, strict, reference and none, by the name of an implementation or a definition; may be given
    /// several times.
    #[arg(long = "verifier", value_name = "VERIFIER")]
    verifiers: Vec<String>,
    /// Rows for each task as well as for all together.
    #[arg(long)]
    by_task: bool,
}

/// The settings with this verifier, and without anybody else who asks an engine.
fn with(settings: &Settings, verifier: &str) -> Settings {
    let mut settings = settings.clone();
    let agents = &mut settings.agents;
    "reference".clone_into(&mut agents.executor.implementation);
    "threshold".clone_into(&mut agents.coordinator.implementation);
    verifier.clone_into(&mut agents.verifier.implementation);
    agents.split.other.clear();
    settings.presets.clear();
    settings
}

/// What the log-probabilities of the configured verifier are those of.
fn log_probability(settings: &Settings) -> LogProbability {
    match settings.configured::<VerifierAgent>().verdict {
        VerdictName::Likelihood => LogProbability::Step,
        VerdictName::Report | VerdictName::Token => LogProbability::Verdict,
    }
}

/// A verifier on its way through the tasks.
struct Judge<'s> {
    name: &'s str,
    verifier: Arc<dyn Verifier>,
    logprob: LogProbability,
    /// On all tasks so far.
    verdicts: Verdicts,
    rows: Vec<VerifierRow>,
}

fn share(share: Proportion) -> String {
    format!("{} of {}: {}", share.count, share.of, share.text())
}

fn cells(row: &VerifierRow) -> Vec<String> {
    let probability = |given: Option<f64>| given.map_or("-".to_owned(), |given| format!("{given:.3}"));
    vec![
        row.verifier.clone(),
        row.task.unwrap_or("all").to_owned(),
        share(row.false_rejects),
        share(row.false_accepts),
        share(row.false_accepts_garbage),
        row.failed.to_string(),
        format!("{:.1}", row.micros_per_step),
        format!("{:.0}", row.prompt_tokens),
        format!("{:.1}", row.completion_tokens),
        probability(row.probability_right),
        probability(row.probability_wrong),
    ]
}

fn rows_table(rows: &[VerifierRow]) -> Table {
    let header = [
        "verifier",
        "task",
        "false rejects % (95 %)",
        "false accepts, applicable % (95 %)",
        "false accepts, garbage % (95 %)",
        "failed",
        "µs a step",
        "prompt tokens",
        "completion tokens",
        "p of right steps",
        "p of wrong steps",
    ];
    table(&header, rows.iter().map(cells))
}

/// The steps of a task, of all levels.
async fn steps(measured: &Measured, task: &dyn AnyTask) -> Vec<Labelled> {
    let mut steps = Vec::new();
    for level in measured.levels() {
        steps.extend(labelled_steps(task, level.difficulty, level.count, level.base_seed).await);
    }
    steps
}

/// The rows of each verifier: of each task if wanted, and of all.
async fn rows(
    arguments: &VerifiersArguments,
    verifiers: &[Settings],
    tasks: &[&'static dyn AnyTask],
    resources: &Resources,
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<VerifierRow>> {
    let mut judges = Vec::new();
    for settings in verifiers {
        let agents = AgentSet::from_settings(settings, resources)?;
        note(notes, agents.notes());
        judges.push(Judge {
            name: &settings.agents.verifier.implementation,
            verifier: agents.verifier(),
            logprob: log_probability(settings),
            verdicts: Verdicts::default(),
            rows: Vec::new(),
        });
    }
    for task in tasks {
        let steps = steps(&arguments.measured, *task).await;
        for judge in &mut judges {
            let verdicts = Verdicts::of(judge.verifier.as_ref(), judge.logprob, &steps).await;
            if arguments.by_task {
                judge.rows.push(VerifierRow::new(judge.name, Some(task.spec().slug), &verdicts));
            }
            judge.verdicts.add(verdicts);
        }
        eprintln!("{}: {} steps judged by {} verifiers", task.spec().slug, steps.len(), judges.len());
    }
    let all = judges.into_iter().flat_map(|mut judge| {
        judge.rows.push(VerifierRow::new(judge.name, None, &judge.verdicts));
        judge.rows
    });
    Ok(all.collect())
}

pub fn verifiers(arguments: &VerifiersArguments) -> anyhow::Result<ExitCode> {
    let measured = &arguments.measured;
    let settings = measured.configuration.load()?;
    start_log(&settings);
    let tasks = measured.tasks()?;
    let mut names: Vec<&str> = Vec::new();
    for name in ALWAYS.into_iter().chain(arguments.verifiers.iter().map(String::as_str)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let verifiers: Vec<Settings> = names.into_iter().map(|name| with(&settings, name)).collect();
    for settings in &verifiers {
        settings.validate()?;
    }
    let mut notes = Vec::new();
    let found =
        with_engines(&verifiers, async |resources| rows(arguments, &verifiers, &tasks, resources, &mut notes).await)?;
    // The executor takes no part here.
    notes.retain(|note| !note.starts_with("executor"));
    let failures = found.iter().filter(|row| row.task.is_none()).filter_map(|row| {
        let reason = row.failure.as_ref()?;
        Some(format!("{}: {} steps without a verdict, the first: {reason}", row.verifier, row.failed))
    });
    notes.extend(failures);
    measured.print(&tasks, &found, &notes, rows_table)
}
