//! `prime-agents run`: solves one instance and shows how.

use std::fs::File;
use std::io::{BufWriter, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use super::{Configuration, start_log};
use crate::app::{App, Overrides, run_plan, run_sampling, split};
use crate::report::{Reviews, RunContext, RunResult, TraceLine};
use crate::runtime::{Event, Observer, Submission};
use prime_bench::tasks::instance::read_problem;
use prime_bench::tasks::{self, BASE_SEED, Difficulty, InstanceId, Problem};

#[derive(Args)]
pub struct RunArguments {
    /// The task, for example `tower-of-hanoi`.
    task: String,
    /// How hard the instance is: easy, medium or hard.
    #[arg(long, default_value = "easy")]
    difficulty: Difficulty,
    /// Which instance of the benchmark, 0 to 199.
    #[arg(long, default_value_t = 0)]
    index: u32,
    /// Base seed of the instances; 42 is the benchmark, any other makes a fresh one.
    #[arg(long, default_value_t = BASE_SEED)]
    base_seed: u64,
    /// A file with the task's `input` object or an instance line of the benchmark, instead of difficulty and index.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["difficulty", "index", "base_seed"])]
    input: Option<PathBuf>,
    #[command(flatten)]
    configuration: Configuration,
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Write every judged step to this file, as JSON Lines.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    Text,
    Json,
}

/// What is to be solved, with its name.
fn instance(arguments: &RunArguments) -> anyhow::Result<(String, Arc<dyn Problem>)> {
    let task = tasks::find(&arguments.task)?;
    let Some(path) = &arguments.input else {
        let id = InstanceId::new(task, arguments.difficulty, arguments.index, arguments.base_seed)?;
        let name = if id.base_seed == BASE_SEED { id.to_string() } else { format!("{id}@{}", id.base_seed) };
        return Ok((name, id.problem()));
    };
    let text = std::fs::read_to_string(path).with_context(|| format!("--input {}: cannot be read", path.display()))?;
    let place = || format!("--input {}", path.display());
    let value = serde_json::from_str(&text).with_context(|| format!("{}: is not JSON", place()))?;
    Ok(("input".to_owned(), read_problem(task, &value).with_context(place)?))
}

/// Mishaps that are shown; of further ones only the number is.
const MISHAPS_SHOWN: u64 = 5;

/// Counts for the live display, and the trace file.
struct Watcher {
    bar: ProgressBar,
    fanout: u64,
    steps: AtomicU64,
    retries: AtomicU64,
    backtracks: AtomicU64,
    ended: AtomicU64,
    round: AtomicU64,
    mishaps: AtomicU64,
    reviews_needed: AtomicU64,
    trace: Option<Mutex<BufWriter<File>>>,
    trace_error: Mutex<Option<std::io::Error>>,
}

impl Watcher {
    fn new(fanout: u32, trace: Option<&Path>) -> anyhow::Result<Self> {
        let bar = if std::io::stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        bar.set_style(
            ProgressStyle::with_template("{spinner} {pos} steps ({per_sec}) {msg}")
                .expect("invariant: the template is well formed"),
        );
        bar.enable_steady_tick(Duration::from_millis(100));
        let trace = trace
            .map(|path| {
                let file =
                    File::create(path).with_context(|| format!("--trace {}: cannot be written", path.display()))?;
                anyhow::Ok(Mutex::new(BufWriter::new(file)))
            })
            .transpose()?;
        Ok(Self {
            bar,
            fanout: fanout.into(),
            steps: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            backtracks: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            round: AtomicU64::new(1),
            mishaps: AtomicU64::new(0),
            reviews_needed: AtomicU64::new(0),
            trace,
            trace_error: Mutex::new(None),
        })
    }

    fn write(&self, event: &Event<'_>) -> std::io::Result<()> {
        let Some(trace) = &self.trace else { return Ok(()) };
        let mut file = trace.lock().unwrap_or_else(PoisonError::into_inner);
        serde_json::to_writer(&mut *file, &TraceLine::of(event))?;
        file.write_all(b"\n")?;
        if matches!(event, Event::Finished(_)) { file.flush() } else { Ok(()) }
    }

    /// Says something on standard error, above what is shown there.
    fn say(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
    }

    fn mishap(&self, text: &str) {
        if self.mishaps.fetch_add(1, Ordering::Relaxed) < MISHAPS_SHOWN {
            self.say(text);
        }
    }

    fn show(&self) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.bar.set_message(format!(
            "· round {} · {}/{} trajectories ended · {} retries · {} backtracks",
            get(&self.round),
            get(&self.ended) % (self.fanout + 1),
            self.fanout,
            get(&self.retries),
            get(&self.backtracks),
        ));
    }
}

impl Observer for Watcher {
    fn observe(&self, event: &Event<'_>) {
        if let Err(error) = self.write(event) {
            self.trace_error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
        match event {
            Event::Step { decision, verdict, .. } => {
                self.reviews_needed.fetch_add(u64::from(verdict.needs_review), Ordering::Relaxed);
                let counter = match decision {
                    prime_protocol::Decision::Proceed => &self.steps,
                    prime_protocol::Decision::Retry => &self.retries,
                    prime_protocol::Decision::Backtrack => &self.backtracks,
                };
                let count = counter.fetch_add(1, Ordering::Relaxed);
                self.bar.set_position(self.steps.load(Ordering::Relaxed));
                if count.is_multiple_of(64) {
                    self.show();
                }
            }
            Event::TrajectoryEnded { .. } => {
                self.ended.fetch_add(1, Ordering::Relaxed);
                self.show();
            }
            Event::Voted { round, winner, agreement } => {
                let votes = winner.map_or(0, |winner| winner.votes);
                self.bar.println(format!("round {round}: {votes} votes for the winner, agreement {agreement:.2}"));
                self.round.store(u64::from(*round) + 1, Ordering::Relaxed);
                self.ended.store(0, Ordering::Relaxed);
            }
            Event::Mishap { id, role, error, mishaps, .. } => self.mishap(&format!(
                "mishap {mishaps} of the {role} ({}) in trajectory {} of round {}: {error}; it is tried again",
                error.failure.name(),
                id.trajectory,
                id.round
            )),
            Event::TurnFailed { id, role, failure, reason, .. } => self.mishap(&format!(
                "the {role} failed ({}), which ends trajectory {} of round {}: {reason}",
                failure.name(),
                id.trajectory,
                id.round
            )),
            Event::Finished(_) => {
                self.bar.finish_and_clear();
                let hidden = self.mishaps.load(Ordering::Relaxed).saturating_sub(MISHAPS_SHOWN);
                if hidden > 0 {
                    self.say(&format!("and {hidden} more mishaps (--trace FILE keeps all)"));
                }
            }
            Event::Started | Event::Chosen { .. } | Event::Stopped { .. } => {}
        }
    }
}

pub fn run(arguments: &RunArguments) -> anyhow::Result<ExitCode> {
    let settings = arguments.configuration.load()?;
    start_log(&settings);
    let (name, problem) = instance(arguments)?;
    let mut overrides = Overrides::default();
    let split = split::assign(&settings.agents.split, &mut overrides, settings.run.seed, &name, problem.as_ref());
    let sampling = run_sampling(&settings);
    let watcher = Arc::new(Watcher::new(settings.run.fanout, arguments.trace.as_deref())?);
    let result = actix::System::new().block_on(async {
        let app = App::start(settings)?;
        let settings = overrides.apply(app.settings());
        let runtime = app.runtime_of(&overrides)?;
        let started = tokio::time::Instant::now();
        let observer = Arc::clone(&watcher) as Arc<dyn Observer>;
        let plan = run_plan(&settings, runtime.agents().kinds(), problem.as_ref());
        let strategy = plan.strategy;
        let resting = None;
        let mut handle =
            runtime.submit(Submission { problem: Arc::clone(&problem), plan, sampling, observer, resting });
        let outcome = tokio::select! {
            outcome = handle.outcome() => outcome,
            signal = tokio::signal::ctrl_c() => {
                signal.context("the interrupt signal cannot be waited for")?;
                handle.cancel();
                handle.outcome().await
            }
        };
        let wall_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let outcome = outcome.context("the runtime ended before the run")?;
        let correct = outcome.answer.as_ref().is_some_and(|answer| problem.accepts(answer));
        let agents = runtime.agents();
        let solved = RunContext {
            task: problem.spec().slug.to_owned(),
            instance: name,
            agents: agents.names().clone(),
            notes: agents.notes().to_vec(),
            kinds: agents.kinds(),
            config_hash: settings.hash(),
            strategy,
            seed: sampling.seed,
            split,
        };
        let needed = watcher.reviews_needed.load(Ordering::Relaxed);
        let reviews = Reviews::of(needed, needed, 0);
        let result = RunResult { correct: Some(correct), reviews, ..RunResult::new(outcome, &solved, wall_ms) };
        app.shutdown();
        anyhow::Ok(result)
    })?;
    let text = match arguments.output {
        Output::Text => result.text(),
        Output::Json => serde_json::to_string_pretty(&result)? + "\n",
    };
    // A reader that closed the pipe has seen enough.
    drop(std::io::stdout().write_all(text.as_bytes()));
    if let Some(error) = watcher.trace_error.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error).context("--trace: the file is not complete");
    }
    Ok(ExitCode::from(u8::from(!result.verified)))
}
