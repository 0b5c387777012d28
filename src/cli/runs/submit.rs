//! `runs submit`: from arguments to a request for a run.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Map, Value, json};

use super::super::run::Output;
use super::client::{ClientError, Post};
use super::display::Display;
use super::watch::{Patience, Watched, exit_code};
use super::{Common, KEY_VARIABLE, show};
use crate::settings::{StrategyName, VoteName};
use prime_bench::tasks::Difficulty;

/// Longest idempotency key, in bytes.
const KEY_BYTES_MAX: usize = 255;
/// What every key for clients begins with, and how many digits follow.
const API_KEY: (&str, usize) = ("prime_", 64);

#[derive(Args)]
pub struct SubmitArguments {
    /// The task, for example `tower-of-hanoi`.
    #[arg(required_unless_present = "problem", conflicts_with = "problem")]
    task: Option<String>,
    /// How hard the benchmark's instance is: easy, medium or hard; easy where it is left out.
    #[arg(long)]
    difficulty: Option<Difficulty>,
    /// Which instance of the benchmark, 0 to 199; 0 where it is left out.
    #[arg(long)]
    index: Option<u32>,
    /// Base seed of the instances; 42 is the benchmark, any other makes a fresh one.
    #[arg(long)]
    base_seed: Option<u64>,
    /// A file with the task's `input` object or an instance line of the benchmark, instead of difficulty and index.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["difficulty", "index", "base_seed"])]
    input: Option<PathBuf>,
    /// A file with a problem of your own as JSON, instead of a task.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["difficulty", "index", "base_seed", "input"])]
    problem: Option<PathBuf>,
    #[command(flatten)]
    wishes: Wishes,
    /// Makes it safe to hand in again: with the same key, the same request is the same run. 1 to 255 visible ASCII
    /// characters of your choice; not the key that lets you in, which is read from PRIME_API_KEY.
    #[arg(long, value_name = "IDEMPOTENCY-KEY")]
    key: Option<String>,
    /// Wait for the end, and show the record. Exit code 0: verified.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    patience: Patience,
    #[command(flatten)]
    common: Common,
}

/// How it is to be solved. What is left out is as the daemon's configuration has it.
#[derive(Args)]
struct Wishes {
    /// An entry of the daemon's `presets`. The options beside it count more.
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// How the run searches.
    #[arg(long, value_enum)]
    strategy: Option<StrategyName>,
    /// How its answers are counted.
    #[arg(long, value_enum)]
    vote: Option<VoteName>,
    /// Begin proposals before the verdict on the step before them (`--speculate` alone is `true`).
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    speculate: Option<bool>,
    /// Trajectories of a round.
    #[arg(long, value_name = "N")]
    fanout: Option<u32>,
    /// Rounds at most.
    #[arg(long, value_name = "N")]
    max_rounds: Option<u32>,
    /// Seed of everything that is drawn.
    #[arg(long)]
    seed: Option<u64>,
    /// Sampling temperature, 0 to 2.
    #[arg(long, value_parser = finite)]
    temperature: Option<f64>,
    /// Nucleus sampling, above 0 to 1.
    #[arg(long, value_parser = finite)]
    top_p: Option<f64>,
    /// Proposals at most.
    #[arg(long, value_name = "N")]
    budget_steps: Option<u64>,
    /// Prompt and completion tokens at most.
    #[arg(long, value_name = "N")]
    budget_tokens: Option<u64>,
    /// Milliseconds under way at most.
    #[arg(long, value_name = "MS")]
    budget_wall_ms: Option<u64>,
    /// The executor, as far as the daemon allows a choice (server.allow_executors).
    #[arg(long, value_name = "NAME")]
    executor: Option<String>,
    /// The verifier, as far as the daemon allows a choice (server.allow_verifiers).
    #[arg(long, value_name = "NAME")]
    verifier: Option<String>,
    /// The coordinator, as far as the daemon allows a choice (server.allow_coordinators).
    #[arg(long, value_name = "NAME")]
    coordinator: Option<String>,
}

/// A number that JSON can carry.
fn finite(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|number: &f64| number.is_finite()).ok_or_else(|| "give a number, as 0.7".to_owned())
}

/// Fields with those that were given.
fn given<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The JSON in a file.
fn json_file(option: &str, path: &Path) -> anyhow::Result<Value> {
    let place = format!("{option} {}", path.display());
    let text = std::fs::read_to_string(path).with_context(|| format!("{place}: cannot be read"))?;
    serde_json::from_str(&text).with_context(|| format!("{place}: is not JSON"))
}

impl Wishes {
    fn fields(&self) -> Map<String, Value> {
        let object = |fields: Map<String, Value>| (!fields.is_empty()).then_some(Value::Object(fields));
        let budget = given([
            ("steps", self.budget_steps.map(Value::from)),
            ("tokens", self.budget_tokens.map(Value::from)),
            ("wall_ms", self.budget_wall_ms.map(Value::from)),
        ]);
        let agents = given([
            ("executor", self.executor.clone().map(Value::from)),
            ("verifier", self.verifier.clone().map(Value::from)),
            ("coordinator", self.coordinator.clone().map(Value::from)),
        ]);
        given([
            ("preset", self.preset.clone().map(Value::from)),
            ("strategy", self.strategy.map(|name| json!(name))),
            ("vote", self.vote.map(|name| json!(name))),
            ("speculate", self.speculate.map(Value::from)),
            ("fanout", self.fanout.map(Value::from)),
            ("max_rounds", self.max_rounds.map(Value::from)),
            ("seed", self.seed.map(Value::from)),
            ("temperature", self.temperature.map(Value::from)),
            ("top_p", self.top_p.map(Value::from)),
            ("budget", object(budget)),
            ("agents", object(agents)),
        ])
    }
}

impl SubmitArguments {
    /// The request's body: what was given, and nothing else.
    fn request(&self) -> anyhow::Result<Value> {
        let file = |option, path: &Option<PathBuf>| path.as_deref().map(|path| json_file(option, path)).transpose();
        let mut request = given([
            ("task", self.task.clone().map(Value::from)),
            ("difficulty", self.difficulty.map(|difficulty| difficulty.to_string().into())),
            ("index", self.index.map(Value::from)),
            ("base_seed", self.base_seed.map(Value::from)),
            ("input", file("--input", &self.input)?),
            ("problem", file("--problem", &self.problem)?),
        ]);
        request.append(&mut self.wishes.fields());
        Ok(Value::Object(request))
    }

    /// The idempotency key, if there is one and it is fit to be sent.
    fn checked_key(&self) -> anyhow::Result<Option<&str>> {
        let Some(key) = self.key.as_deref() else { return Ok(None) };
        let (prefix, digits) = API_KEY;
        if key.strip_prefix(prefix).is_some_and(|rest| rest.len() == digits) {
            bail!(
                "--key: this looks like the key that lets you in: set {KEY_VARIABLE} to it, and give another one here"
            );
        }
        if !(1..=KEY_BYTES_MAX).contains(&key.len()) || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            bail!("--key {key:?}: give 1 to {KEY_BYTES_MAX} visible ASCII characters without spaces");
        }
        Ok(Some(key))
    }
}

/// Prints a run that was accepted: its id, or its record as JSON.
///
/// # Errors
/// When it has no id.
pub fn print_accepted(record: &Value, output: Output) -> anyhow::Result<()> {
    match output {
        Output::Json => show::print(record, output)?,
        Output::Text => drop(writeln!(std::io::stdout(), "{}", id_of(record)?)),
    }
    Ok(())
}

fn id_of(record: &Value) -> Result<&str, ClientError> {
    let missing = || ClientError::Senseless("the daemon's answer has no id of a run: is --url right?".to_owned());
    record["id"].as_str().ok_or_else(missing)
}

pub fn submit(arguments: &SubmitArguments) -> anyhow::Result<ExitCode> {
    let SubmitArguments { common, .. } = arguments;
    let key = arguments.checked_key()?;
    let request = arguments.request()?;
    let client = common.client()?;
    let header = key.map(|key| ("Idempotency-Key", key));
    let answer = client.post(&Post { path: "/v1/runs", header, body: Some(&request), ..Post::default() })?;
    if answer.is_replayed() {
        eprintln!("this idempotency key was used before: here is its run");
    }
    let record: Value = answer.json()?;
    if !arguments.wait {
        print_accepted(&record, common.output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let id = id_of(&record)?;
    eprintln!("{id} is accepted; it goes on when this command ends");
    let watched = Watched::new(&client, id, &arguments.patience, Display::of_wait());
    let Some((record, _)) = watched.follow(true)? else { return Ok(ExitCode::FAILURE) };
    show::print(&record, common.output)?;
    Ok(exit_code(&record))
}
