//! `bench verifiers`: how often verifiers accept wrong steps and reject right ones.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::measurement::{Measurement, add_notes, with_engines};
use crate::cli::output::count;
use crate::cli::progress::{Finished, Session};
use crate::cli::start_log;
use crate::cli::table::Table;
use crate::evaluation::labelled_steps::{Labelled, labelled_steps};
use crate::evaluation::verifier_accuracy::{LogProbability, Verdicts, VerifierRow};
use prime_agent_set::{AgentSet, Agents, Resources, Verifier};
use prime_bench::interval::Proportion;
use prime_bench::tasks::AnyTask;
use prime_settings::{Settings, VerdictName, VerifierAgent};

/// Always measured: they are cheap, and the baseline for the others.
const ALWAYS: [&str; 4] = ["rules", "strict", "reference", "none"];

#[derive(Args)]
pub struct VerifiersArguments {
    #[command(flatten)]
    measurement: Measurement,
    /// Verifier besides rules, strict, reference and none: the name of an implementation or a
    /// definition; repeatable
    #[arg(long = "verifier", value_name = "VERIFIER")]
    verifiers: Vec<String>,
    /// Add a row for each task
    #[arg(long)]
    by_task: bool,
}

/// The settings with this verifier, and no other agent that needs an engine.
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

/// What the log-probabilities of the configured verifier refer to.
fn log_probability(settings: &Settings) -> LogProbability {
    match settings.configured::<VerifierAgent>().options.verdict {
        VerdictName::Likelihood => LogProbability::Step,
        VerdictName::Report | VerdictName::Token => LogProbability::Verdict,
    }
}

/// A verifier with its verdicts so far.
struct Judge<'s> {
    name: &'s str,
    verifier: Arc<dyn Verifier>,
    logprob: LogProbability,
    verdicts: Verdicts,
    rows: Vec<VerifierRow>,
}

fn share(share: Proportion) -> String {
    format!("{} of {}: {}", share.count, share.of, share.text())
}

fn cells(row: &VerifierRow) -> [String; 11] {
    let probability =
        |given: Option<f64>| given.map_or("-".to_owned(), |given| format!("{given:.3}"));
    [
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

fn table(rows: &[VerifierRow]) -> Table {
    let header = [
        "verifier",
        "task",
        "false rejects % (95 %)",
        "false accepts, applicable % (95 %)",
        "false accepts, garbage % (95 %)",
        "failed",
        "µs/step",
        "prompt tokens",
        "completion tokens",
        "p of right steps",
        "p of wrong steps",
    ];
    Table::new(header, rows.iter().map(cells))
}

/// The steps of a task at all difficulties.
async fn steps(measurement: &Measurement, task: &dyn AnyTask) -> Vec<Labelled> {
    let mut steps = Vec::new();
    for level in measurement.levels() {
        steps.extend(labelled_steps(task, level.difficulty, level.count, level.base_seed).await);
    }
    steps
}

/// The rows of each verifier: one for each task if wanted, and one for all that were judged before
/// Ctrl-C.
async fn rows(
    arguments: &VerifiersArguments,
    verifiers: &[Settings],
    tasks: &[&'static dyn AnyTask],
    resources: &Resources,
    notes: &mut Vec<String>,
) -> anyhow::Result<(Vec<VerifierRow>, Finished)> {
    let mut judges = Vec::new();
    for settings in verifiers {
        let agents = AgentSet::from_settings(settings, resources)?;
        add_notes(notes, agents.notes());
        judges.push(Judge {
            name: &settings.agents.verifier.implementation,
            verifier: agents.verifier(),
            logprob: log_probability(settings),
            verdicts: Verdicts::default(),
            rows: Vec::new(),
        });
    }

    let mut session = Session::start(tasks.len() * judges.len(), "measurement")?;
    'tasks: for task in tasks {
        let steps = steps(&arguments.measurement, *task).await;
        for judge in &mut judges {
            let verdicts =
                async { Ok(Verdicts::of(judge.verifier.as_ref(), judge.logprob, &steps).await) };
            let Some(verdicts) = session.next(verdicts).await? else { break 'tasks };
            if arguments.by_task {
                judge.rows.push(VerifierRow::new(judge.name, Some(task.spec().slug), &verdicts));
            }
            judge.verdicts.add(verdicts);
        }

        let (steps, verifiers) =
            (count(steps.len() as u64, "step"), count(judges.len() as u64, "verifier"));
        session.note(&format!("{}: {steps} judged by {verifiers}", task.spec().slug));
    }

    let all = judges.into_iter().flat_map(|mut judge| {
        judge.rows.push(VerifierRow::new(judge.name, None, &judge.verdicts));
        judge.rows
    });
    Ok((all.collect(), session.finish()))
}

pub fn verifiers(arguments: &VerifiersArguments) -> anyhow::Result<ExitCode> {
    let measurement = &arguments.measurement;
    let settings = measurement.configuration.load()?;
    start_log(&settings);
    let tasks = measurement.tasks()?;

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
    let (found, finished) = with_engines(&verifiers, None, async |resources| {
        rows(arguments, &verifiers, &tasks, resources, &mut notes).await
    })?;

    // The executor is not measured.
    notes.retain(|note| !note.starts_with("executor"));

    let failures = found.iter().filter(|row| row.task.is_none()).filter_map(|row| {
        let reason = row.failure.as_ref()?;
        Some(format!(
            "{}: {} without a verdict, the first: {reason}",
            row.verifier,
            count(row.failed, "step")
        ))
    });

    notes.extend(failures.chain(finished.note().map(str::to_owned)));
    measurement.print(&tasks, &found, &notes, table)?;
    Ok(finished.exit_code())
}
