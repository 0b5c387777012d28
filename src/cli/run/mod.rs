//! `prime-agents run`: solves one instance.

mod live;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, ValueHint};

pub use super::output::Output;
use super::output::print;
use super::values::{TaskParser, difficulty, index, json_or_file};
use super::{Configuration, start_log};
use live::{Live, create_trace};
use prime_bench::tasks::instance::read_problem;
use prime_bench::tasks::{self, BASE_SEED, Difficulty, InstanceId, Problem};
use prime_report::{Reviews, RunContext, RunResult};
use prime_runtime::{Observer, Submission};
use prime_service::app::{App, Overrides, basis_on, check_learnt, run_plan, run_sampling, split};

#[derive(Args)]
pub struct RunArguments {
    /// Task, such as tower-of-hanoi; `prime-agents bench list` lists them
    #[arg(value_parser = TaskParser, hide_possible_values = true)]
    task: String,
    /// Difficulty of the instance
    #[arg(long, value_name = "LEVEL", value_parser = difficulty(), default_value = "easy")]
    difficulty: Difficulty,
    /// Index of the instance, 0 to 199
    #[arg(long, value_parser = index, allow_negative_numbers = true, default_value_t = 0)]
    index: u32,
    /// Base seed of the instances; 42 gives the benchmark, others give fresh instances
    #[arg(long, value_name = "SEED", default_value_t = BASE_SEED)]
    base_seed: u64,
    /// An input of the task or a line of the benchmark (JSON, or a file with it), instead of
    /// difficulty and index
    #[arg(long, value_name = "FILE|JSON", value_hint = ValueHint::FilePath, conflicts_with_all = ["difficulty", "index", "base_seed"])]
    input: Option<PathBuf>,
    /// Try even if the built-in model has not learnt the task
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    configuration: Configuration,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Write the trace, with every judged step, to this file as JSON Lines
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    trace: Option<PathBuf>,
}

/// The problem to solve, and its name.
fn instance(arguments: &RunArguments) -> anyhow::Result<(String, Arc<dyn Problem>)> {
    let task = tasks::find(&arguments.task)?;
    let Some(path) = &arguments.input else {
        let id = InstanceId::new(task, arguments.difficulty, arguments.index, arguments.base_seed)?;
        let name = if id.base_seed == BASE_SEED {
            id.to_string()
        } else {
            format!("{id}@{}", id.base_seed)
        };
        return Ok((name, id.problem()));
    };
    let value = json_or_file("--input", path)?;
    let problem =
        read_problem(task, &value).with_context(|| format!("--input {}", path.display()))?;
    Ok(("input".to_owned(), problem))
}

pub fn run(arguments: &RunArguments) -> anyhow::Result<ExitCode> {
    let mut settings = arguments.configuration.load()?;
    start_log(&settings);
    let (name, problem) = instance(arguments)?;
    let mut overrides = Overrides::default();
    let split = split::assign(
        &settings.agents.split,
        &mut overrides,
        settings.run.seed,
        &name,
        problem.as_ref(),
    );
    let sampling = run_sampling(&settings);
    if !arguments.force {
        let learnt =
            check_learnt(&overrides.apply(&settings), tasks::find(&arguments.task)?.spec());
        learnt.map_err(|error| anyhow::anyhow!("{error}; to try all the same, add --force"))?;
    }
    settings.narrow_engines(problem.spec().slug);
    let trace = arguments.trace.as_deref().map(create_trace).transpose()?;
    let (result, trace_error) = actix::System::new().block_on(async {
        let app = App::start_for_one_run(settings)?;
        let settings = overrides.apply(app.settings());
        let agents = app.agents_with(&overrides)?;
        app.pools().check().await.map_err(anyhow::Error::msg)?;
        let started = tokio::time::Instant::now();
        let plan = run_plan(&settings, agents.basis(), problem.as_ref());
        let live = Arc::new(Live::new(&plan, problem.steps_max(), trace));
        let observer = Arc::clone(&live) as Arc<dyn Observer>;
        let strategy = plan.strategy;
        let submission =
            Submission { problem: Arc::clone(&problem), plan, sampling, observer, suspended: None };
        let mut handle = app.runtime().submit_with(agents.clone(), submission);
        let outcome = tokio::select! {
            outcome = handle.outcome() => outcome,
            signal = tokio::signal::ctrl_c() => {
                signal.context("Ctrl-C cannot be handled")?;
                handle.cancel();
                handle.outcome().await
            }
        };
        let wall_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let outcome = outcome.context("the runtime ended before the run")?;
        let correct = outcome.answer.as_ref().is_some_and(|answer| problem.accepts(answer));
        let solved = RunContext {
            task: problem.spec().slug.to_owned(),
            instance: name,
            agents: agents.names().clone(),
            notes: agents.notes().to_vec(),
            basis: basis_on(agents.basis(), problem.as_ref()),
            config_hash: settings.hash(),
            strategy,
            seed: sampling.seed,
            split,
        };
        let needed = live.reviews_needed();
        let reviews = Reviews::of(needed, needed, 0);
        let result = RunResult {
            correct: Some(correct),
            reviews,
            ..RunResult::new(outcome, &solved, wall_ms, live.steps())
        };
        app.shutdown();
        anyhow::Ok((result, live.take_trace_error()))
    })?;
    print(match arguments.output {
        Output::Text => result.text(),
        Output::Json => serde_json::to_string_pretty(&result)? + "\n",
    })?;
    if let Some(error) = trace_error {
        return Err(error).context("--trace: the file is incomplete");
    }
    Ok(ExitCode::from(u8::from(!result.verified)))
}
