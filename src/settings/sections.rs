//! The sections of the configuration and every option in them.
//!
//! A field's doc comment is its public documentation: it says what the option does, with its unit and what special
//! values mean. Ranges stand in the `schemars` attributes; the values of the shipped default stand only in
//! `config/default.toml`. No logic here.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agents::{Agents, agent_name};
use super::api_key::ApiKey;
use super::definitions::Definitions;
use super::engine::Engine;
use super::preset::Preset;
use super::search::{AheadOptions, BeamOptions, GroupOptions, StrategyName, VoteName};
use super::upstreams::Upstreams;

/// The whole configuration of `prime-agents`. Made by [`Settings::load`], which checks it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Which implementation plays each role, and its options.
    pub agents: Agents,
    /// The models that can be loaded, by name (small letters, digits, `-` and `_`). Each is one llama.cpp context on one
    /// device. A further engine takes what it leaves out from the shipped `engines.tiny`, except `model`.
    pub engines: BTreeMap<String, Engine>,
    /// Pools of servers that speak OpenAI's protocol, by name (small letters, digits, `-` and `_`): who has
    /// `implementation = "openai"` names one with `pool`. Agents of one pool share its limits.
    #[serde(default)]
    pub pools: BTreeMap<String, Upstreams>,
    /// How one run searches: limits, thresholds, sampling.
    pub run: Run,
    /// Ways to search that a request can ask for by name (small letters, digits, `-` and `_`), as `"preset": "fast"` or as
    /// the model `prime/fast`. What the request itself asks for counts more.
    pub presets: BTreeMap<String, Preset>,
    /// The actors that carry out runs.
    pub runtime: Runtime,
    /// The HTTP daemon (`prime-agents serve`).
    pub server: Server,
    /// Where the daemon keeps its runs, and for how long.
    pub journal: Journal,
    /// What is logged, to standard error.
    pub log: Log,
    /// Traces of runs, sent to a collector.
    pub telemetry: Telemetry,
    /// The role definitions below `agents.folder`, read with the configuration.
    #[serde(skip)]
    #[schemars(skip)]
    pub definitions: Definitions,
}

/// Section `run`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// How a run searches: `iterative` (the paper's protocol: independent trajectories with retries and backtracking, a
    /// vote after each round), `greedy` (one trajectory of the likeliest actions, without retries or backtracking),
    /// `best_of_n` (as many single passes as `fanout`; the least violating answer wins), `beam` (beam search by
    /// log-probabilities, options in `run.beam`) or `ahead` (one trajectory, each step of which is voted on until an action is
    /// ahead by k, options in `run.ahead`; `fanout` proposals are drawn at a time).
    pub strategy: StrategyName,
    /// How answers are counted: `majority` (the same answer is the same text), `tolerance` (numbers nearer than
    /// `tolerance` are the same) or `weighted` (a vote counts 1 / (1 + ΣV) of its trajectory).
    pub vote: VoteName,
    /// Difference of two numbers below which `vote = "tolerance"` takes them for the same (the paper's ε).
    #[schemars(range(max = 1_000_000_000.0), extend("exclusiveMinimum" = 0.0))]
    pub tolerance: f64,
    /// End a round as soon as the lead of its winner cannot be overtaken.
    pub early_stop: bool,
    /// End the run after a round whose winner verifies with at least `confidence` (the paper's θ_c); otherwise all
    /// `max_rounds` rounds are held.
    pub adaptive_rounds: bool,
    /// Begin a trajectory's next proposal before the verdict on its last step is known, and throw it away when that step
    /// is not committed: less time where the verifier takes long and the executor has room for more turns, for more
    /// tokens. The steps are the same. Of no effect with `beam` and `ahead`.
    pub speculate: bool,
    /// Trajectories of one round (the paper's G).
    #[schemars(range(min = 1, max = 256))]
    pub fanout: u32,
    /// Most rounds of a run (the paper's K). A vote closes each round.
    #[schemars(range(min = 1, max = 100))]
    pub max_rounds: u32,
    /// Retries of a step with 0 < V ≤ `tau_soft` before it is accepted with its violations on record.
    #[schemars(range(min = 0, max = 1_000))]
    pub retries_max: u32,
    /// Proposals at one state before it is popped from the stack.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub attempts_max: u32,
    /// Pops of one trajectory before it is given up.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub pops_max: u64,
    /// Violation score V up to which a step is retried and then tolerated.
    #[schemars(range(min = 0.0, max = 1_000.0))]
    pub tau_soft: f64,
    /// Violation score V above which a step is rejected at once. At least `tau_soft`; a score between the two is retried,
    /// then rejected.
    #[schemars(range(min = 0.0, max = 1_000.0))]
    pub tau_hard: f64,
    /// Sampling temperature; 0 = always the most likely token.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: f64,
    /// Nucleus sampling: the smallest set of tokens with at least this probability mass is sampled from; 1 = all tokens.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    pub top_p: f64,
    /// Seed of everything random in a run. Model output may still differ between machines and batches.
    #[schemars(range(min = 0, max = 9_223_372_036_854_775_807_u64))]
    pub seed: u64,
    /// Share of the votes that the winner needs, with V = 0, to end a run before `max_rounds` (the paper's θ_c).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: f64,
    /// Frames of a state stack between two full copies of the state: memory against the cost of a pop.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub snapshot_every_frames: u32,
    /// Options of `strategy = "beam"`.
    pub beam: BeamOptions,
    /// Options of `strategy = "ahead"`.
    pub ahead: AheadOptions,
    /// How the fan-out follows the difficulty of a problem.
    pub group: GroupOptions,
    /// Limits of one run, over all its trajectories and rounds; the one that ends it is named in the result.
    pub budget: Budget,
    /// Weights of the reward that each finished trajectory is recorded with.
    pub reward: Reward,
}

/// Section `run.budget`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Most proposals, accepted or not.
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub steps: u64,
    /// Most tokens, prompt and completion together; 0 = unlimited.
    #[schemars(range(min = 0, max = 1_000_000_000_000_000_u64))]
    pub tokens: u64,
    /// Longest time in milliseconds.
    #[schemars(range(min = 1, max = 2_592_000_000_u64))]
    pub wall_ms: u64,
}

/// Section `run.reward`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reward {
    /// Weight of solving the task (the paper's α).
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub task: f64,
    /// Weight of the final violation score, −V (β).
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub verify: f64,
    /// Weight of needing few steps (γ).
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub efficiency: f64,
    /// Weight of well-formed output (λ).
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub format: f64,
}

/// Section `runtime`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Runtime {
    /// Rings of four actors, each on a thread of its own, over which runs are spread; 0 = one for each core.
    #[schemars(range(min = 0, max = 1_024))]
    pub cells: u32,
    /// `shared` (the four actors of a cell on one thread: fastest) or `own` (each actor on a thread of its own).
    pub placement: Placement,
    /// Most turns on their way through one cell's ring; further ones wait.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub in_flight_max: u32,
    /// Most restarts of one actor within `restart_window_ms`; one more, and its runs end with a named failure.
    #[schemars(range(min = 0, max = 1_000))]
    pub restarts_max: u32,
    /// Time in milliseconds over which restarts are counted.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub restart_window_ms: u64,
    /// Time in milliseconds that an agent may block its thread before it is reported and replaced; 0 = never. An agent that
    /// waits for a model or a process does not block. A run that a blocked agent holds up ends at its `wall_ms` with a named
    /// failure.
    #[schemars(range(min = 0, max = 86_400_000))]
    pub hang_after_ms: u64,
}

/// Which threads the actors of a cell run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// One thread for the cell's actors.
    Shared,
    /// A thread for each actor.
    Own,
}

/// Section `server`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Address and port to listen on; port 0 = any free port. The default is reachable from this machine only.
    #[schemars(with = "String", extend("format" = "socket-address"))]
    pub bind: SocketAddr,
    /// Most runs that are open, under way or waiting; a further one is refused with status 429.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub queue_max: u32,
    /// Largest body of a request in bytes; a larger one is refused with status 413.
    #[schemars(range(min = 1_024, max = 1_073_741_824))]
    pub body_bytes_max: u64,
    /// Longest time in milliseconds until a body is complete; then status 408, and the connection is closed.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub body_timeout_ms: u64,
    /// Longest time in milliseconds until the head of a request (its first line and headers) is complete; then status
    /// 408, and the connection is closed. For a further request on a connection, `keep_alive_ms` comes on top.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub head_timeout_ms: u64,
    /// Most bytes of the headers of a request, names and values; more are refused with status 431. There can never be
    /// more than 96 headers.
    #[schemars(range(min = 256, max = 65_536))]
    pub header_bytes_max: u32,
    /// Most bytes of the path and query of a request; a longer one is refused with status 414.
    #[schemars(range(min = 64, max = 32_768))]
    pub url_bytes_max: u32,
    /// Most open connections; further ones wait until one is closed. Rounded up to an even number. Each takes two file
    /// descriptors.
    #[schemars(range(min = 2, max = 100_000))]
    pub connections_max: u32,
    /// Time in milliseconds that a connection without a request stays open.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub keep_alive_ms: u64,
    /// Time in milliseconds that a client has to take in the end of a connection that the daemon closes.
    #[schemars(range(min = 1, max = 600_000))]
    pub disconnect_timeout_ms: u64,
    /// Time in milliseconds after which a client that takes none of its answer is disconnected. One that takes
    /// 256 KiB in this time is safe; with less it depends on the buffers of the network.
    #[schemars(range(min = 100, max = 3_600_000))]
    pub stalled_reader_ms: u64,
    /// Most requests a second of one key (without keys: of all clients together); more are refused with status 429. 0 =
    /// no limit.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub requests_per_second: u32,
    /// Requests that may come at once before `requests_per_second` counts.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub burst: u32,
    /// Most requests of one key (without keys: of all clients together) that are answered at the same time; more are
    /// refused with status 429. An answer that is streamed counts until its end. 0 = no limit.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub concurrent_max: u32,
    /// Who may use the daemon: `[[server.keys]]` tables, as `prime-agents key new NAME` prints them. Without any, only
    /// loopback addresses can be bound, and everybody on this machine may use it. With keys, every request but
    /// `/livez` and `/readyz` needs `Authorization: Bearer KEY`.
    #[schemars(length(max = 10_000))]
    pub keys: Vec<ApiKey>,
    /// Executors that a request may choose in place of the configured one, by the name of an implementation or of a
    /// definition. One that needs an engine can be had only where the configuration has started that engine: for its
    /// own agents, for those of its presets, or for `agents.split`.
    #[schemars(length(max = 64), extend("items" = agent_name("executor")))]
    pub allow_executors: Vec<String>,
    /// Verifiers that a request may choose.
    #[schemars(length(max = 64), extend("items" = agent_name("verifier")))]
    pub allow_verifiers: Vec<String>,
    /// Coordinators that a request may choose.
    #[schemars(length(max = 64), extend("items" = agent_name("coordinator")))]
    pub allow_coordinators: Vec<String>,
}

/// Section `journal`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    /// The file that runs are kept in (SQLite, with two companions in `-wal` and `-shm` beside it); made if it is not
    /// there. One daemon a file.
    pub path: String,
    /// Milliseconds that a lone event waits for company before it is written: more are written with one `fsync`.
    #[schemars(range(min = 0, max = 1_000))]
    pub window_ms: u64,
    /// Days that a finished run is kept; 0 = for ever.
    #[schemars(range(min = 0, max = 36_500))]
    pub keep_days: u32,
    /// Bytes that the journal may have: beyond, the runs that ended longest ago are removed; 0 = no limit. Open runs
    /// are never removed.
    #[schemars(range(min = 0, max = 1_000_000_000_000_000_u64))]
    pub keep_bytes: u64,
}

/// Section `log`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// Least important level that is logged.
    pub level: LogLevel,
    /// `text` (for people) or `json` (one object a line).
    pub format: LogFormat,
}

/// Section `telemetry`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    /// Address of an OpenTelemetry collector that takes OTLP over HTTP, such as `http://127.0.0.1:4318`; the path
    /// `/v1/traces` is appended. Empty = off: nothing leaves the machine. Needs a build with the feature `otel`.
    #[schemars(extend("format" = "http-address"))]
    pub otlp_endpoint: String,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are those of every logger")]
pub enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// The shape of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}
