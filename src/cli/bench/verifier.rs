//! `bench verifier`: how often verifiers accept wrong steps and runs and reject right ones, and the
//! card that says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use clap::{Args, ValueHint};
use serde::Serialize;

use super::measurement::{Measurement, add_notes, with_engines};
use super::verifier_text::{markdown, page, text};
use crate::cli::output::{Output, count, print, print_json};
use crate::cli::progress::{Finished, Session};
use crate::cli::start_log;
use crate::evaluation::verifier_accuracy::{LogProbability, Verdicts};
use prime_agent_set::card::{CardRow, VerifierCard, VerifierIdentity};
use prime_agent_set::{AgentSet, Agents, Resources, Verifier};
use prime_bench::judge::labelled::{labelled_steps, labelled_traces};
use prime_bench::tasks::AnyTask;
use prime_settings::{Settings, VerdictName, VerifierAgent};

#[derive(Args)]
pub struct VerifierArguments {
    /// Verifiers: names of implementations or definitions [default: the configured one]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    measurement: Measurement,
    /// Traces per task and difficulty of each origin, which are judged step by step: reference
    /// traces, traces with a random error, and adversarial ones
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(0..=10_000)
    )]
    traces: u32,
    /// Add a row for each task and difficulty, and one for each type of error
    #[arg(long)]
    details: bool,
    /// Write the verifier's card, which `agents.verifier.card` names
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    card: Option<PathBuf>,
    /// Write the cards as a page: Markdown if the name ends in `.md`, else HTML
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    report: Option<PathBuf>,
    /// Show a card that was written before, instead of measuring
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = ["names", "tasks", "card"]
    )]
    show: Option<PathBuf>,
}

/// The settings with this verifier, and no other agent that needs an engine.
fn with(settings: &Settings, verifier: &str) -> Settings {
    let mut settings = settings.clone();
    let agents = &mut settings.agents;
    "reference".clone_into(&mut agents.executor.implementation);
    "threshold".clone_into(&mut agents.coordinator.implementation);
    agents.verifier.choose(verifier);
    agents.split.other.clear();
    settings.presets.clear();

    // This measurement makes the card, so no card applies yet.
    settings.agents.verifier.card.clear();
    for defined in settings.definitions.verifiers.values_mut() {
        defined.options.card.clear();
    }
    settings
}

/// What the log-probabilities of the configured verifier refer to.
fn log_probability(settings: &Settings) -> LogProbability {
    let verifier = settings.configured::<VerifierAgent>();
    match verifier.options.verdict {
        VerdictName::Likelihood => LogProbability::Step,
        // The others carry none.
        VerdictName::Report | VerdictName::Token | VerdictName::Rating => LogProbability::Verdict,
    }
}

/// A verifier with its verdicts so far.
struct Judge<'s> {
    name: &'s str,
    identity: VerifierIdentity,
    verifier: Arc<dyn Verifier>,
    logprob: LogProbability,
    verdicts: Verdicts,
    rows: Vec<CardRow>,
}

/// The verifiers to measure.
fn judges<'s>(
    verifiers: &'s [Settings],
    resources: &Resources,
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<Judge<'s>>> {
    let judge = |settings: &'s Settings| {
        let agents = AgentSet::from_settings(settings, resources)?;
        add_notes(notes, agents.notes());
        let name = &settings.agents.verifier.implementation;
        anyhow::Ok(Judge {
            name,
            identity: agents
                .verifier_identity(settings)
                .with_context(|| format!("{name}: its prompt templates cannot be read"))?,
            verifier: agents.verifier(),
            logprob: log_probability(settings),
            verdicts: Verdicts::default(),
            rows: Vec::new(),
        })
    };
    verifiers.iter().map(judge).collect()
}

/// The card of each verifier, of all tasks that were judged before Ctrl-C.
async fn cards(
    arguments: &VerifierArguments,
    verifiers: &[Settings],
    tasks: &[&'static dyn AnyTask],
    resources: &Resources,
    notes: &mut Vec<String>,
) -> anyhow::Result<(Vec<VerifierCard>, Finished)> {
    let measurement = &arguments.measurement;
    let mut judges = judges(verifiers, resources, notes)?;
    let levels: Vec<_> = measurement.levels().collect();
    let mut judged = Vec::new();

    let total = tasks.len() * levels.len() * judges.len();
    let mut session = Session::start(total, "measurement")?;
    'tasks: for task in tasks {
        let mut of_task = Vec::new();
        for level in &levels {
            let (difficulty, seed) = (level.difficulty, level.base_seed);
            let steps = labelled_steps(*task, difficulty, level.count, seed);
            let traces = labelled_traces(*task, difficulty, arguments.traces, seed);

            for (place, judge) in judges.iter_mut().enumerate() {
                let verifier = judge.verifier.as_ref();
                let verdicts =
                    async { Ok(Verdicts::of(verifier, judge.logprob, &steps, &traces).await) };
                let Some(verdicts) = session.next(verdicts).await? else { break 'tasks };
                of_task.push((place, difficulty, verdicts));
            }

            let said = [
                count(steps.len() as u64, "step"),
                count(traces.traces.len() as u64, "trace"),
                count(judges.len() as u64, "verifier"),
            ];
            let [steps, traces, verifiers] = said;
            let slug = task.spec().slug;
            session.note(&format!("{slug}, {difficulty}: {steps} and {traces} by {verifiers}"));
        }

        // A task counts once all of its levels are judged by all verifiers.
        for (place, difficulty, verdicts) in of_task {
            let judge = &mut judges[place];
            judge.rows.push(verdicts.row(Some(task.spec().slug), Some(difficulty)));
            judge.verdicts.add(verdicts);
        }
        judged.push(task.spec().slug.to_owned());
    }

    let cards = judges.into_iter().map(|judge| {
        let all = judge.verdicts.row(None, None);
        VerifierCard::new(
            judge.name,
            judge.identity,
            judged.clone(),
            measurement.difficulties.clone(),
            measurement.base_seed,
            (measurement.instances, arguments.traces),
            std::iter::once(all).chain(judge.rows).collect(),
        )
    });
    Ok((cards.collect(), session.finish()))
}

/// What is printed for programs.
#[derive(Serialize)]
struct Figures<'f> {
    /// What a reader must know before comparing.
    notes: &'f [String],
    cards: &'f [VerifierCard],
}

/// Writes a file whose name the user gave.
fn write(option: &str, path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("{option} {}", path.display()))
}

/// Prints cards, and writes the page.
fn put_out(
    arguments: &VerifierArguments,
    cards: &[VerifierCard],
    notes: &[String],
) -> anyhow::Result<()> {
    if let Some(path) = &arguments.report {
        let is_markdown = path.extension().is_some_and(|extension| extension == "md");
        let page = if is_markdown { markdown(cards, notes) } else { page(cards, notes) };
        write("--report", path, &page)?;
    }
    match arguments.measurement.output {
        Output::Text => print(text(cards, notes, arguments.details))?,
        Output::Json => print_json(&Figures { notes, cards })?,
    }
    Ok(())
}

/// The verifiers to measure, each once, as settings.
fn chosen(arguments: &VerifierArguments, settings: &Settings) -> anyhow::Result<Vec<Settings>> {
    let mut names: Vec<&str> = Vec::new();
    for name in &arguments.names {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    if names.is_empty() {
        names.push(&settings.agents.verifier.implementation);
    }

    ensure!(
        arguments.card.is_none() || names.len() == 1,
        "--card writes the card of one verifier: name one, not {}",
        names.join(", ")
    );
    let verifiers: Vec<Settings> = names.into_iter().map(|name| with(settings, name)).collect();
    for settings in &verifiers {
        settings.validate()?;
    }
    Ok(verifiers)
}

pub fn verifier(arguments: &VerifierArguments) -> anyhow::Result<ExitCode> {
    if let Some(path) = &arguments.show {
        let (card, _) =
            VerifierCard::load(path).map_err(|error| anyhow::anyhow!("--show {error}"))?;
        put_out(arguments, &[card], &[])?;
        return Ok(ExitCode::SUCCESS);
    }

    let measurement = &arguments.measurement;
    let settings = measurement.configuration.load()?;
    start_log(&settings);
    let tasks = measurement.benchmark_tasks(&settings)?;
    let verifiers = chosen(arguments, &settings)?;

    let mut notes = Vec::new();
    let (cards, finished) = with_engines(&verifiers, None, async |resources| {
        cards(arguments, &verifiers, &tasks, resources, &mut notes).await
    })?;

    // The executor is not measured.
    notes.retain(|note| !note.starts_with("executor"));
    notes.extend(cards.iter().flat_map(failures));
    notes.extend(finished.note().map(str::to_owned));

    if let Some(path) = &arguments.card {
        ensure!(
            cards.iter().all(|card| !card.tasks.is_empty()),
            "--card {}: nothing was measured, so there is nothing to write",
            path.display()
        );
        for card in &cards {
            write("--card", path, &card.to_json())?;
        }
    }
    put_out(arguments, &cards, &notes)?;
    Ok(finished.exit_code())
}

/// The parts of a card that have no verdict.
fn failures(card: &VerifierCard) -> Vec<String> {
    let Some(all) = card.overall() else { return Vec::new() };
    let of = [
        (all.steps.failed, "step", &all.steps.failure),
        (all.runs.failed, "trace", &all.runs.failure),
    ];
    let failed = of.into_iter().filter_map(|(failed, what, reason)| {
        let reason = reason.as_ref()?;
        let what = count(failed, what);
        Some(format!("{}: {what} without a verdict, the first: {reason}", card.name))
    });
    failed.collect()
}
