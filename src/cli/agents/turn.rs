//! `agents try`: one turn of one agent at a state of an instance.

use std::fmt::Write as _;
use std::fs::read_to_string;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::{Args, ValueHint};
use serde_json::Value;

use super::Named;
use crate::cli::output::{count, note, print};
use crate::cli::start_log;
use crate::cli::values::{TaskParser, difficulty, index, json_or_file};
use prime_agent_set::model::{Completion, CompletionRequest};
use prime_agent_set::{AgentError, AgentSet, Sampling};
use prime_bench::tasks::{self, BASE_SEED, Difficulty, InstanceId, Problem};
use prime_engine::Engine;
use prime_problems::Custom;
use prime_protocol::{Basis, Limits, Role, Score, Trajectory, Verdict};
use prime_service::app::turn::{Edited, Exchanges, TurnInput, try_turn};
use prime_service::app::{check_agents, resources, run_sampling};
use prime_settings::Settings;

#[derive(Args)]
pub struct TryArguments {
    #[command(flatten)]
    named: Named,
    /// Task, such as tower-of-hanoi
    #[arg(
        long,
        value_parser = TaskParser,
        hide_possible_values = true,
        default_value = "tower-of-hanoi"
    )]
    task: String,
    /// A problem of your own (JSON, or a file with it), instead of a task
    #[arg(
        long,
        value_name = "FILE|JSON",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = ["task", "difficulty", "index", "after"]
    )]
    problem: Option<PathBuf>,
    /// Difficulty of the instance
    #[arg(long, value_name = "LEVEL", value_parser = difficulty(), default_value = "easy")]
    difficulty: Difficulty,
    /// Index of the instance, 0 to 999; the benchmark has 0 to 199
    #[arg(long, value_parser = index, allow_negative_numbers = true, default_value_t = 0)]
    index: u32,
    /// Steps of the reference before the turn
    #[arg(long, default_value_t = 0, value_name = "STEPS")]
    after: u64,
    /// Proposed action, for verifiers and coordinators [default: the reference's]
    #[arg(long, value_name = "LINE")]
    action: Option<String>,
    /// A file with the prompt of the first request to a model, instead of the agent's own
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    prompt: Option<PathBuf>,
}

/// The problem of the turn.
fn problem(arguments: &TryArguments) -> anyhow::Result<Arc<dyn Problem>> {
    if let Some(path) = &arguments.problem {
        let definition: Value = json_or_file("--problem", path)?;
        return Ok(Custom::read(&definition)?.problem());
    }
    let task = tasks::find(&arguments.task)?;
    Ok(InstanceId::new(task, arguments.difficulty, arguments.index, BASE_SEED)?.problem())
}

/// The trajectory before the turn.
fn trajectory(arguments: &TryArguments, settings: &Settings) -> anyhow::Result<Trajectory> {
    let problem = problem(arguments)?;

    let limits = Limits {
        attempts_max: settings.run.attempts_max,
        repetitions_max: settings.run.repetitions_max,
        stuck_after: settings.run.stuck_after,
        pops_max: settings.run.pops_max,
        snapshot_every_frames: settings.run.snapshot_every_frames as usize,
    };

    let mut trajectory = Trajectory::new(problem.start(), &limits);
    for step in 0..arguments.after {
        let Some(line) = trajectory.machine.reference() else {
            bail!("--after {}: the reference trace has {step} steps", arguments.after);
        };
        trajectory.machine.replay(&line)?;
        trajectory.push(&line, Score::ZERO, Basis::NONE);
    }

    Ok(trajectory)
}

fn shown_verdict(text: &mut String, verdict: &Verdict) {
    let names: Vec<_> = verdict.violations.iter().map(AsRef::as_ref).collect();
    let what = if names.is_empty() {
        "no violation".to_owned()
    } else {
        format!("violations: {}", names.join(", "))
    };

    let mut line = |name: &str, value: &str| {
        writeln!(text, "{name:>10}  {value}").expect("invariant: writing to a string succeeds");
    };
    line("verdict", &format!("V = {}; {what}", verdict.score));

    if let Some(feedback) = &verdict.feedback {
        line("feedback", feedback);
    }
    if let Some(logprob) = verdict.logprob {
        line("log p", &format!("{logprob:.4} (p = {:.3})", logprob.exp()));
    }
    for opinion in &verdict.opinions {
        let score = opinion.score.map_or_else(|| "none".to_owned(), |score| score.to_string());
        line("opinion", &format!("{}: {score}", opinion.verifier));
    }
    if verdict.needs_review {
        line("review", "the verifiers disagree: the step needs review");
    }
}

/// Runs the turn and describes it.
async fn describe_turn(
    agents: &AgentSet,
    arguments: &TryArguments,
    settings: &Settings,
) -> anyhow::Result<String> {
    let mut trajectory = trajectory(arguments, settings)?;
    let role: Role = arguments.named.role.into();

    let mut text = String::new();
    writeln!(
        text,
        "{:>10}  {} after {}: {}",
        "state",
        trajectory.machine.spec().slug,
        count(arguments.after, "step"),
        prime_lessons::view(trajectory.machine.as_ref())
    )?;

    let input = match (role, &arguments.action) {
        (Role::Executor, _) => {
            let run = run_sampling(settings);
            TurnInput::Propose(Sampling {
                temperature: run.temperature,
                top_p: run.top_p,
                seed: run.seed,
            })
        }
        (_, Some(line)) => TurnInput::Judge(line.clone()),
        (_, None) => {
            let missing = if arguments.problem.is_some() {
                "--action: give the line to judge; a problem of your own has no reference"
            } else {
                "the trace has ended: give a smaller --after"
            };
            let line = trajectory.machine.reference().context(missing)?;
            TurnInput::Judge(line)
        }
    };

    let turn = try_turn(agents, &mut trajectory, input).await;
    if let Some(failure) = turn.failure {
        return Err(failure.into());
    }

    if let Some(proposal) = &turn.proposal {
        if !proposal.reasoning.is_empty() {
            writeln!(text, "{:>10}  {}", "thought", proposal.reasoning)?;
        }
        if !proposal.derivation.is_empty() {
            writeln!(text, "{:>10}  {}", "derivation", proposal.derivation)?;
        }
        if !proposal.logprobs.is_empty() {
            writeln!(text, "{:>10}  {:.4}", "log p", proposal.logprobs.iter().sum::<f32>())?;
        }
    }

    let line = turn.line.as_deref().unwrap_or("none: it can write no line that was not rejected");
    let applied = turn.refusal.map_or_else(String::new, |refusal| format!("  ({refusal})"));
    writeln!(text, "{:>10}  {line}{applied}", "action")?;
    if let Some(verdict) = &turn.verdict {
        shown_verdict(&mut text, verdict);
    }
    if let Some(ruling) = &turn.ruling {
        writeln!(text, "{:>10}  {:?}", "decision", ruling.decision)?;
    }

    let names = agents.names();
    let proposed = if role == Role::Executor { names.executor.as_str() } else { "nobody" };
    writeln!(text, "{:>10}  {proposed}, {}, {}", "agents", names.verifier, names.coordinator)?;
    Ok(text)
}

fn indented(text: &mut String, heading: &str, lines: &str) -> std::fmt::Result {
    writeln!(text, "{heading}:")?;
    lines.lines().try_for_each(|line| writeln!(text, "    {line}"))
}

/// A request to a model and its completion, for people.
fn exchange(
    text: &mut String,
    request: &CompletionRequest,
    answer: &Result<Completion, AgentError>,
) -> std::fmt::Result {
    if let Some(system) = &request.system {
        indented(text, "system", system)?;
    }
    indented(text, "prompt", &request.prompt)?;
    let exact = answer.as_ref().ok().and_then(|reply| reply.exact.as_ref());
    if let Some(exact) = exact.filter(|exact| exact.text != request.prompt) {
        let heading = format!("as the model read it ({} tokens)", exact.tokens.len());
        indented(text, &heading, &exact.text)?;
    }
    match answer {
        Ok(reply) => {
            indented(text, "answer", &reply.text)?;
            let cut = if reply.is_truncated { ", cut" } else { "" };
            let source = reply
                .source
                .as_deref()
                .map_or_else(String::new, |source| format!(" from {source}"));
            let usage = reply.usage;
            writeln!(
                text,
                "    ({} prompt and {} completion tokens{cut}{source})",
                usage.prompt, usage.completion
            )
        }
        Err(error) => writeln!(text, "no answer: {error}"),
    }
}

pub fn turn(arguments: &TryArguments) -> anyhow::Result<ExitCode> {
    let named = &arguments.named;
    let mut settings = named.configuration.load()?;
    let (role, name): (Role, _) = (named.role.into(), &named.name);
    if !settings.agent_names(role).contains(name) {
        bail!("there is no {role} `{name}`; known: {}", settings.agent_names(role).join(", "));
    }

    let agents = &mut settings.agents;
    if role != Role::Executor {
        // Without a proposal, its engine is not needed.
        "reference".clone_into(&mut agents.executor.implementation);
    }
    match role {
        Role::Executor => name.clone_into(&mut agents.executor.implementation),
        Role::Verifier => agents.verifier.choose(name),
        Role::Coordinator => name.clone_into(&mut agents.coordinator.implementation),
    }

    start_log(&settings);

    let prompt = arguments
        .prompt
        .as_deref()
        .map(|path| read_to_string(path).with_context(|| format!("--prompt {}", path.display())));
    let edited = Edited { prompt: prompt.transpose()?, system: None };
    let is_edited = edited.is_some();
    let seen = Exchanges::edited(edited);
    let result = actix::System::new().block_on(async {
        let mut resources = resources(&settings, Some(1))?;
        resources.tap = Some(seen.tap());
        let agents = AgentSet::from_settings(&settings, &resources)?;
        let described = match check_agents(&resources).await {
            Ok(()) => describe_turn(&agents, arguments, &settings).await,
            Err(reason) => Err(anyhow::Error::msg(reason)),
        };
        // Also after a failed turn: no worker process may outlive the command.
        resources.engines.values().for_each(Engine::shutdown);
        anyhow::Ok(described)
    })?;

    // Printed first, and also if the turn failed: then they show why.
    let mut text = String::new();
    let exchanges = seen.take();
    if is_edited && exchanges.is_empty() && result.is_ok() {
        bail!("--prompt: no agent of this turn asks a model: leave it out, or try another agent");
    }
    for (request, answer) in exchanges {
        exchange(&mut text, &request, &answer)?;
    }
    print(text)?;

    match result {
        Ok(text) => {
            print(text)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            note!("error: {error:#}");
            Ok(ExitCode::FAILURE)
        }
    }
}
