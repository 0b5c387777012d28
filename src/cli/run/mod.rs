//! `prime-agents run`: solves one instance.

mod live;
mod status;

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, exit};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::{Args, ValueHint};

use super::interrupt::{EndsEarly, Stop, Stops};
use super::log::start_log_of_one_run;
pub use super::output::Output;
use super::output::{columns, note, print, wrapped};
use super::own_model::OwnModel;
use super::values::{TaskParser, difficulty, index, json_or_file};
use live::{Expected, Live, create_trace};
use prime_agent_set::task_program::{OpenError, TaskProgram, TaskPrograms};
use prime_bench::tasks::{BASE_SEED, Difficulty, Problem, find};
use prime_report::{Reviews, RunResult};
use prime_runtime::{Observer, Submission};
use prime_service::app::{App, OwnTasks};
use prime_service::requests::{CheckedRequest, Reason, RequestError, ResolvedRun, RunRequest};
use prime_settings::{OwnTask, Settings};

/// The name under which the task of `--task-program` is asked for. No task of a configuration can
/// have it.
const OWN_TASK: &str = "--task-program";

/// Steps of the reference that are counted before a run: a few milliseconds.
const COUNTED_STEPS_MAX: u64 = 100_000;

#[derive(Args)]
pub struct RunArguments {
    /// Task, such as tower-of-hanoi; `prime-agents bench list` lists them. Or one of the
    /// configuration's own (`tasks`), with --input
    #[arg(
        value_parser = TaskParser,
        hide_possible_values = true,
        required_unless_present_any = ["problem", "task_program"],
        conflicts_with_all = ["problem", "task_program"]
    )]
    task: Option<String>,
    /// Difficulty of the instance
    #[arg(long, value_name = "LEVEL", value_parser = difficulty(), default_value = "easy")]
    difficulty: Difficulty,
    /// Index of the instance, 0 to 999; the benchmark has 0 to 199
    #[arg(long, value_parser = index, allow_negative_numbers = true, default_value_t = 0)]
    index: u32,
    /// Base seed of the instances; 42 gives the benchmark, others give fresh instances
    #[arg(long, value_name = "SEED", default_value_t = BASE_SEED)]
    base_seed: u64,
    /// An input of the task or a line of the benchmark (JSON, or a file with it), instead of
    /// difficulty and index
    #[arg(long, value_name = "FILE|JSON", value_hint = ValueHint::FilePath, conflicts_with_all = ["difficulty", "index", "base_seed"])]
    input: Option<PathBuf>,
    /// A problem of your own (JSON, or a file with it), instead of a task
    #[arg(
        long,
        value_name = "FILE|JSON",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = ["difficulty", "index", "base_seed", "input"]
    )]
    problem: Option<PathBuf>,
    /// A task of your own: a program and its arguments, such as 'python3 jugs.py', which computes
    /// its steps; with --input
    #[arg(
        long,
        value_name = "COMMAND",
        value_hint = ValueHint::CommandString,
        requires = "input",
        conflicts_with = "problem"
    )]
    task_program: Option<String>,
    /// Try even if the built-in model has not learnt the task
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    configuration: OwnModel,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Write the trace, with every judged step, to this file as JSON Lines
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    trace: Option<PathBuf>,
}

/// The request for which the arguments stand.
fn request(arguments: &RunArguments, tasks: &TaskPrograms) -> anyhow::Result<RunRequest> {
    if let Some(path) = &arguments.problem {
        return Ok(RunRequest {
            problem: Some(json_or_file("--problem", path)?),
            ..RunRequest::default()
        });
    }

    // Before the input is read, which would mean nothing.
    let task = match &arguments.task_program {
        Some(_) => Some(OWN_TASK.to_owned()),
        None => arguments.task.clone(),
    };
    let own = task.as_deref().map(|task| tasks.get(task)).transpose()?.flatten();
    if own.is_none() {
        task.as_deref().map(find).transpose()?;
    }

    let request = RunRequest { task, force: Some(arguments.force), ..RunRequest::default() };
    Ok(match &arguments.input {
        Some(path) => RunRequest { input: Some(json_or_file("--input", path)?), ..request },
        None if own.is_some() => bail!("a task of your own has no instances: give --input"),
        None => RunRequest {
            difficulty: Some(arguments.difficulty),
            index: Some(arguments.index),
            base_seed: Some(arguments.base_seed),
            ..request
        },
    })
}

/// An error about the request in terms of the arguments that it was made from.
fn in_arguments(error: RequestError, arguments: &RunArguments) -> anyhow::Error {
    match error {
        // There are no fields on the command line, and the reason says which argument is meant.
        RequestError::Field { reason, .. } => match *reason {
            Reason::NotLearnt(error) => anyhow::anyhow!("{error}; to try anyway, add --force"),
            reason @ (Reason::BadInput(_)
            | Reason::NoSolution { .. }
            | Reason::Program(OpenError::Refused { .. })) => {
                let path = arguments.input.as_deref().unwrap_or(Path::new(""));
                anyhow::Error::new(reason).context(format!("--input {}", path.display()))
            }
            reason => reason.into(),
        },
        error => error.into(),
    }
}

/// The result of a run.
struct Solved {
    result: RunResult,
    /// Why the trace is incomplete, if it is.
    trace_error: Option<std::io::Error>,
    /// The request to stop that ended it.
    stopped: Option<Stop>,
}

/// The steps of the reference, for the progress that is shown and for nothing else; the problem's
/// own bound where there is no reference or it is long.
fn expected_steps(problem: &dyn Problem) -> Expected {
    match problem.reference_steps(COUNTED_STEPS_MAX) {
        Some(steps) => Expected::About(steps),
        None => Expected::AtMost(problem.steps_max()),
    }
}

/// Loads the agents and solves the problem. A request to stop ends the process until the agents are
/// ready, and the run after that. Must be called within an actix system.
async fn solve(
    starting: EndsEarly,
    settings: Settings,
    tasks: OwnTasks,
    mut checked: CheckedRequest,
    trace: Option<BufWriter<File>>,
) -> anyhow::Result<Solved> {
    let app = App::start_for_one_run(settings, tasks)?;
    let agents = app.agents_with(&checked.overrides)?;
    let answered = app.check_agents().await;
    if answered.is_err() {
        app.shutdown();
    }
    answered.map_err(anyhow::Error::msg)?;
    drop(starting);
    let (mut stops, mut stopped) = (Stops::listen()?, None);
    let started = tokio::time::Instant::now();

    // The request was checked before its engines were narrowed; the run has those that are left.
    checked.settings = checked.overrides.apply(app.settings());
    let ResolvedRun { spec, problem } = checked.with_agents(&app, &agents, None)?;
    let solved = spec.context();

    let live = Live::new(&spec.plan, expected_steps(problem.as_ref()), trace);
    let observer = Arc::clone(&live) as Arc<dyn Observer>;
    let submission = Submission {
        problem: Arc::clone(&problem),
        plan: spec.plan,
        sampling: spec.sampling,
        observer,
        suspended: None,
    };
    let mut handle = app.runtime().submit_with(agents, submission);
    let outcome = tokio::select! {
        outcome = handle.outcome() => outcome,
        stop = stops.next() => {
            stopped = Some(stop);
            // What is committed by then still is a result.
            handle.cancel();
            tokio::select! {
                outcome = handle.outcome() => outcome,
                again = stops.next() => {
                    app.shutdown();
                    exit(again.exit_code().into());
                }
            }
        }
    };

    let wall_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let outcome = outcome.context("the runtime ended before the run")?;
    // Nobody knows the right answer to a problem of the user's own.
    let correct = problem
        .has_reference()
        .then(|| outcome.answer.as_ref().is_some_and(|answer| problem.accepts(answer)));
    // Nobody can have reviewed a step of a run that is not in a journal.
    let needed = live.reviews_needed();
    let result = RunResult {
        correct,
        reviews: Reviews::of(needed, needed, 0),
        ..RunResult::new(outcome, &solved, wall_ms, live.steps())
    };
    app.shutdown();
    Ok(Solved { result, trace_error: live.take_trace_error(), stopped })
}

/// The configured tasks, and that of `--task-program`.
fn own_tasks(settings: &Settings, arguments: &RunArguments) -> anyhow::Result<OwnTasks> {
    let tasks = OwnTasks::of(settings);
    let Some(text) = &arguments.task_program else { return Ok(tasks) };

    let command = shlex::split(text).filter(|command| !command.is_empty());
    let command = command.with_context(|| {
        format!(
            "--task-program {text}: is not a command; give a program and its arguments, with quotes \
             that are closed"
        )
    })?;
    // A single word that names a module is one.
    let task = match command.as_slice() {
        [module] if Path::new(module).extension().is_some_and(|end| end == "wasm") => {
            OwnTask { module: Some(module.clone()), ..OwnTask::default() }
        }
        _ => OwnTask { command, ..OwnTask::default() },
    };
    let task = TaskProgram::new(None, task, tasks.programs.clone());
    tasks.tasks.add(OWN_TASK, Arc::new(task));
    Ok(tasks)
}

pub fn run(arguments: &RunArguments) -> anyhow::Result<ExitCode> {
    let mut settings = arguments.configuration.load()?;
    if !settings.run.approve.trim().is_empty() {
        bail!(
            "run.approve is {:?}, but a run in the foreground cannot wait for days: submit it to a \
             daemon (`prime-agents runs submit`), or add --set run.approve=''",
            settings.run.approve
        );
    }
    start_log_of_one_run(&settings);

    let tasks = own_tasks(&settings, arguments)?;
    // A program may take its time for the handshake, and must not outlive this process.
    let starting = {
        let programs = tasks.programs.clone();
        EndsEarly::with(move || programs.end())?
    };
    let checked = request(arguments, &tasks.tasks).and_then(|request| {
        CheckedRequest::of(&settings, &tasks.tasks, &request)
            .and_then(|checked| checked.check_learnt().map(|()| checked))
            .map_err(|error| in_arguments(error, arguments))
    });
    if checked.is_err() {
        tasks.programs.end();
    }
    let checked = checked?;

    let task = checked.instance.problem.spec().slug;
    if let Some(beyond) = checked.beyond_learnt() {
        note!("{beyond}");
    }

    // Only the engines of this task are started. After the check, whose message lists the tasks of
    // all of them.
    settings.narrow_engines(task);
    let trace = arguments.trace.as_deref().map(create_trace).transpose()?;
    let Solved { result, trace_error, stopped } =
        actix::System::new().block_on(solve(starting, settings, tasks, checked, trace))?;

    print(match arguments.output {
        Output::Text => wrapped(&result.text(), columns()),
        Output::Json => serde_json::to_string_pretty(&result)? + "\n",
    })?;
    if let Some(error) = trace_error {
        let path = arguments.trace.as_deref().unwrap_or(Path::new(""));
        return Err(error).with_context(|| format!("--trace: {} is incomplete", path.display()));
    }
    Ok(ExitCode::from(stopped.map_or(u8::from(!result.verified), Stop::exit_code)))
}
