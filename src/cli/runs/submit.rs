//! `runs submit`: builds the request for a run from the arguments and sends it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, ValueHint};
use serde_json::{Map, Value, json};

use super::budget_options::BudgetOptions;
use super::client::{ClientError, Post};
use super::display::Display;
use super::label::label_pair as label;
use super::watch::{Patience, Watched, exit_code};
use super::{Common, KEY_VARIABLE, show};
use crate::cli::output::{Output, note, print};
use crate::cli::values::{TaskParser, difficulty, index, json_or_file};
use prime_bench::tasks::Difficulty;
use prime_settings::{StrategyName, VoteName};

/// Longest idempotency key, in bytes.
const KEY_BYTES_MAX: usize = 255;
/// Prefix of API keys, and the number of digits after it.
const API_KEY: (&str, usize) = ("prime_", 64);

#[derive(Args)]
pub struct SubmitArguments {
    /// Task, such as tower-of-hanoi
    #[arg(
        value_parser = TaskParser,
        hide_possible_values = true,
        required_unless_present = "problem",
        conflicts_with = "problem"
    )]
    task: Option<String>,
    /// Difficulty of the instance [default: easy]
    #[arg(long, value_name = "LEVEL", value_parser = difficulty())]
    difficulty: Option<Difficulty>,
    /// Index of the instance, 0 to 999; the benchmark has 0 to 199 [default: 0]
    #[arg(long, value_parser = index, allow_negative_numbers = true)]
    index: Option<u32>,
    /// Base seed of the instances; 42 gives the benchmark, others give fresh instances [default:
    /// 42]
    #[arg(long, value_name = "SEED")]
    base_seed: Option<u64>,
    /// An input of the task or a line of the benchmark (JSON, or a file with it), instead of
    /// difficulty and index
    #[arg(
        long,
        value_name = "FILE|JSON",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = ["difficulty", "index", "base_seed"]
    )]
    input: Option<PathBuf>,
    /// A problem of your own (JSON, or a file with it), instead of a task
    #[arg(
        long,
        value_name = "FILE|JSON",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = ["difficulty", "index", "base_seed", "input"]
    )]
    problem: Option<PathBuf>,
    #[command(flatten)]
    options: RunOptions,
    /// Label of the run, by which it is found; may be given several times
    #[arg(long = "label", value_name = "NAME:VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Priority, -100 to 100; runs with a higher one begin first [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i32>,
    /// Time before which the run does not begin, such as 2026-02-03T04:05:06Z
    #[arg(long, value_name = "TIME")]
    not_before: Option<String>,
    /// Time at which the run ends with the best answer so far, whether it has begun or not
    #[arg(long, value_name = "TIME")]
    deadline: Option<String>,
    /// Try even if the daemon's models have not learnt the task
    #[arg(long)]
    force: bool,
    /// Idempotency key: submitting the same request again with the same key returns the same run. 1
    /// to 255 visible ASCII characters; not the API key, which is read from PRIME_API_KEY
    #[arg(long, value_name = "IDEMPOTENCY-KEY")]
    key: Option<String>,
    /// Wait until the run ends and print its record; exit code 0 if verified
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    patience: Patience,
    #[command(flatten)]
    common: Common,
}

/// How the run is executed. The daemon's configuration decides what is left out.
#[derive(Args)]
struct RunOptions {
    /// Preset of the daemon's configuration; other options override it
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// Search strategy
    #[arg(long, value_enum)]
    strategy: Option<StrategyName>,
    /// Vote on the answers
    #[arg(long, value_enum)]
    vote: Option<VoteName>,
    /// Start proposals before the previous verdict (--speculate alone means true)
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    speculate: Option<bool>,
    /// Trajectories per round
    #[arg(long, value_name = "N")]
    fanout: Option<u32>,
    /// Maximum number of rounds
    #[arg(long, value_name = "N")]
    max_rounds: Option<u32>,
    /// Seed of all sampling
    #[arg(long)]
    seed: Option<u64>,
    /// Sampling temperature, 0 to 2
    #[arg(long, value_parser = finite)]
    temperature: Option<f64>,
    /// Nucleus sampling (top-p), above 0 and up to 1
    #[arg(long, value_parser = finite)]
    top_p: Option<f64>,
    #[command(flatten)]
    budget: BudgetOptions,
    /// Steps that wait for approval before they are committed: `flagged`, `every N steps`, or a CEL
    /// expression over `step`
    #[arg(long, value_name = "RULE")]
    approve: Option<String>,
    /// Time within which a step that waits must be decided, in milliseconds
    #[arg(long, value_name = "MS")]
    approve_within_ms: Option<u64>,
    /// What happens to a step that nobody has decided in time
    #[arg(long, value_name = "WHAT", value_parser = ["reject", "accept", "end"])]
    approve_else: Option<String>,
    /// Executor, if the daemon allows this one (server.allow_executors)
    #[arg(long, value_name = "NAME")]
    executor: Option<String>,
    /// Verifier, if the daemon allows this one (server.allow_verifiers)
    #[arg(long, value_name = "NAME")]
    verifier: Option<String>,
    /// Coordinator, if the daemon allows this one (server.allow_coordinators)
    #[arg(long, value_name = "NAME")]
    coordinator: Option<String>,
}

/// A number that JSON can carry.
pub(super) fn finite(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
        .ok_or_else(|| "give a number, such as 0.7".to_owned())
}

/// The fields of a request that are given.
pub(super) fn given<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// An object, unless it has no field.
pub(super) fn object(fields: Map<String, Value>) -> Option<Value> {
    (!fields.is_empty()).then_some(Value::Object(fields))
}

impl RunOptions {
    fn fields(&self) -> Map<String, Value> {
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
            ("approve", self.approve.clone().map(Value::from)),
            ("approve_within_ms", self.approve_within_ms.map(Value::from)),
            ("approve_else", self.approve_else.clone().map(Value::from)),
            ("budget", self.budget.field()),
            ("agents", object(agents)),
        ])
    }
}

impl SubmitArguments {
    /// The request's body: the given options and nothing else.
    fn request(&self) -> anyhow::Result<Value> {
        let file = |option, path: &Option<PathBuf>| {
            path.as_deref().map(|path| json_or_file::<Value>(option, path)).transpose()
        };

        let mut request = given([
            ("task", self.task.clone().map(Value::from)),
            ("difficulty", self.difficulty.map(|difficulty| difficulty.to_string().into())),
            ("index", self.index.map(Value::from)),
            ("base_seed", self.base_seed.map(Value::from)),
            ("input", file("--input", &self.input)?),
            ("problem", file("--problem", &self.problem)?),
            ("priority", self.priority.map(Value::from)),
            ("not_before", self.not_before.clone().map(Value::from)),
            ("deadline", self.deadline.clone().map(Value::from)),
        ]);

        request.append(&mut self.options.fields());
        if !self.labels.is_empty() {
            let labels = self.labels.iter().cloned().map(|(name, value)| (name, value.into()));
            request.insert("labels".to_owned(), Value::Object(labels.collect()));
        }
        if self.force {
            request.insert("force".to_owned(), true.into());
        }
        Ok(Value::Object(request))
    }

    /// The idempotency key, if one is given and valid.
    fn checked_key(&self) -> anyhow::Result<Option<&str>> {
        let Some(key) = self.key.as_deref() else { return Ok(None) };
        let (prefix, digits) = API_KEY;
        if key.strip_prefix(prefix).is_some_and(|rest| rest.len() == digits) {
            bail!(
                "--key: this looks like your API key: put that into {KEY_VARIABLE}, and choose \
                 another idempotency key"
            );
        }

        if !(1..=KEY_BYTES_MAX).contains(&key.len())
            || !key.bytes().all(|byte| byte.is_ascii_graphic())
        {
            bail!(
                "--key {key:?}: give 1 to {KEY_BYTES_MAX} visible ASCII characters without spaces"
            );
        }
        Ok(Some(key))
    }
}

/// Prints an accepted run: its id, or its record as JSON.
///
/// # Errors
/// When it has no id, or standard output cannot be written.
pub fn print_accepted(record: &Value, output: Output) -> anyhow::Result<()> {
    match output {
        Output::Json => show::print(record, output)?,
        Output::Text => print(format_args!("{}\n", id_of(record)?))?,
    }
    Ok(())
}

fn id_of(record: &Value) -> Result<&str, ClientError> {
    let missing = || ClientError::Senseless("the answer has no run id: is --url right?".to_owned());
    record["id"].as_str().ok_or_else(missing)
}

pub fn submit(arguments: &SubmitArguments) -> anyhow::Result<ExitCode> {
    let SubmitArguments { common, .. } = arguments;
    let key = arguments.checked_key()?;
    let request = arguments.request()?;
    let client = common.client()?;

    // Several daemons may get the request; a key makes it one run in their shared
    // journal.
    let own = if key.is_none() { client.own_key() } else { None };
    let header = key.or(own.as_deref()).map(|key| ("Idempotency-Key", key));
    let is_idempotent = header.is_some();

    let post =
        Post { path: "/v1/runs", header, body: Some(&request), is_idempotent, ..Post::default() };
    let answer = client.post(&post)?;

    if key.is_some() && answer.is_replayed() {
        note!("this idempotency key was used before: this is its run");
    }
    let record: Value = answer.json()?;

    if !arguments.wait {
        print_accepted(&record, common.output)?;
        return Ok(ExitCode::SUCCESS);
    }

    let id = id_of(&record)?;
    note!("{id} is accepted; it continues if this command ends");
    let watched = Watched::new(&client, id, &arguments.patience, Display::of_wait());

    let Some((record, _)) = watched.follow(true)? else { return Ok(ExitCode::FAILURE) };
    show::print(&record, common.output)?;
    Ok(exit_code(&record))
}
