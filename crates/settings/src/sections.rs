//! The sections of the configuration and every option in them.
//!
//! A field's doc comment is its public documentation, including its unit and special values. Ranges
//! are in the `schemars` attributes, defaults only in `config/default.toml`. No logic here.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agents::{Agents, agent_name};
use super::api_key::ApiKey;
use super::approve::ApproveElse;
use super::definitions::Definitions;
use super::engine::Engine;
use super::log::{Log, Telemetry};
use super::own_task::OwnTask;
use super::preset::Preset;
use super::queue::Queue;
use super::schedule::Schedule;
use super::search::{
    AheadOptions, BeamOptions, DiversityOptions, GroupOptions, ParticleFilterOptions, StrategyName,
    UctOptions, VoteName,
};
use super::uploads::Uploads;
use super::upstreams::UpstreamPool;
use super::webhook::Webhook;

/// The configuration of `prime-agents`, built and validated by [`Settings::load`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The implementation of each role, and its options.
    pub agents: Agents,
    /// The local models by name (lower-case letters, digits, `-` and `_`), each one llama.cpp
    /// context. Options that an engine omits default to the shipped `engines.tiny`, except `model`.
    pub engines: BTreeMap<String, Engine>,
    /// Pools of OpenAI-compatible servers by name (lower-case letters, digits, `-` and `_`). Agents
    /// with `implementation = "openai"` refer to one with `pool`. All agents of a pool share its
    /// limits.
    #[serde(default)]
    pub pools: BTreeMap<String, UpstreamPool>,
    /// Tasks of your own by name (lower-case letters, digits, `-` and `_`), each a program or a
    /// WebAssembly module that says how a problem starts and what a line does to a state
    /// (docs/your-task.md). They run as the built-in tasks do.
    #[serde(default)]
    pub tasks: BTreeMap<String, OwnTask>,
    /// How a run searches: limits, thresholds, sampling.
    pub run: Run,
    /// Named sets of run options (lower-case letters, digits, `-` and `_`) that a request selects
    /// with `"preset": "fast"` or the model `prime/fast`. The request's own options take
    /// precedence.
    pub presets: BTreeMap<String, Preset>,
    /// The actors that execute runs.
    pub runtime: Runtime,
    /// Which of the daemon's runs begin first, and how many at once (docs/queues.md).
    pub queue: Queue,
    /// Runs that the daemon starts at times of the clock, by name (lower-case letters, digits, `-`
    /// and `_`).
    #[serde(default)]
    pub schedules: BTreeMap<String, Schedule>,
    /// The HTTP daemon (`prime-agents serve`).
    pub server: Server,
    /// Task modules that clients upload with `POST /v1/tasks` (docs/your-task.md).
    pub uploads: Uploads,
    /// Receivers of events of the daemon's runs, by name (lower-case letters, digits, `-` and `_`).
    #[serde(default)]
    pub webhooks: BTreeMap<String, Webhook>,
    /// Where the daemon stores its runs, and for how long.
    pub journal: Journal,
    /// Logging to standard error.
    pub log: Log,
    /// Traces of runs for an OpenTelemetry collector.
    pub telemetry: Telemetry,
    /// The role definitions in `agents.folder`, loaded with the configuration.
    #[serde(skip)]
    #[schemars(skip)]
    pub definitions: Definitions,
}

/// Section `run`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The search strategy: `iterative` (the paper's protocol: independent trajectories with
    /// retries and backtracking, and a vote after each round), `greedy` (one trajectory of the most
    /// likely actions, without retries or backtracking), `best_of_n` (`fanout` single passes; the
    /// answer with the fewest violations wins), `beam` (beam search by log-probabilities, options
    /// in `run.beam`), `ahead` (one trajectory; each step is voted on until an action is ahead by
    /// k, options in `run.ahead`; `fanout` proposals are sampled at a time), `particle_filter`
    /// (sequential Monte Carlo: partial trajectories weighed by the verifier and resampled, options
    /// in `run.particle_filter`) or `uct` (tree search by UCB1 with the verifier's score, options
    /// in `run.uct`; `fanout` simulations at a time).
    pub strategy: StrategyName,
    /// How votes are counted: `majority` (answers agree if they are equal as JSON), `tolerance`
    /// (numbers closer than `tolerance` agree) or `weighted` (a trajectory's vote weighs
    /// 1 / (1 + ΣV)). Where a task accepts any solution, all its solutions count as one answer.
    pub vote: VoteName,
    /// Difference of two numbers below which they agree for `vote = "tolerance"` (the paper's ε).
    #[schemars(range(max = 1_000_000_000.0), extend("exclusiveMinimum" = 0.0))]
    pub tolerance: f64,
    /// End a round as soon as its leader cannot be overtaken.
    pub early_stop: bool,
    /// End the run after a round whose winner is verified with at least `confidence` (the paper's
    /// θ_c); otherwise run all `max_rounds` rounds.
    pub adaptive_rounds: bool,
    /// Propose a trajectory's next step before the verdict on the last one, and discard the
    /// proposal if that step is not committed. Saves time if the verifier is slow and the executor
    /// has spare capacity; costs tokens. The committed steps stay the same. No effect with `beam`,
    /// `ahead`, `particle_filter` and `uct`.
    pub speculate: bool,
    /// Trajectories per round (the paper's G).
    #[schemars(range(min = 1, max = 256))]
    pub fanout: u32,
    /// Maximum rounds of a run (the paper's K), each ended by a vote.
    #[schemars(range(min = 1, max = 100))]
    pub max_rounds: u32,
    /// Retries of a step with 0 < V ≤ `tau_soft` before it is accepted with its violations
    /// recorded.
    #[schemars(range(min = 0, max = 1_000))]
    pub retries_max: u32,
    /// Maximum proposals in one state before it is popped from the stack; if the state's choices
    /// are finite, rejected proposals do not count.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub attempts_max: u32,
    /// Maximum proposals in one state that repeat a rejected line, or are retries, before the state
    /// is popped.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub repetitions_max: u32,
    /// Maximum proposals of one trajectory without progress before it ends as stuck. Progress is a
    /// step deeper than any before, or the proof that a state is a dead end.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub stuck_after: u32,
    /// The locator: a verifier, stronger than the configured one, that says where a fault lies.
    /// Where the end of a trace or the last choice of a state is refused although every step before
    /// was found clean, it judges these steps, each once, and the search goes back to the first
    /// that is wrong. Without a locator, or where it finds nothing, the search goes back by growing
    /// distances. Its tokens count towards the budget. Empty = none. No effect with strategies
    /// other than `iterative`, and on runs whose verifier is the locator.
    #[schemars(extend("format" = "words"))]
    pub locate: String,
    /// Which steps wait for approval by a person or a program before they are committed: `flagged`
    /// (those that the verifiers flag for review), `every N steps` of a trajectory, or a CEL
    /// expression over `step`, such as `step.depth >= 10 && step.action.startsWith("drop")`. Empty =
    /// none. Only steps that would be committed are held. `step` has `round`, `trajectory`, `depth`
    /// (committed steps before it), `action`, `derivation`, `score`, `violations`, `flagged` and
    /// `tokens`. Only daemons hold steps: a run in the foreground refuses a rule.
    #[schemars(extend("format" = "words"))]
    pub approve: String,
    /// Time in milliseconds within which a step that waits must be decided. It does not count as
    /// run time.
    #[schemars(range(min = 1, max = 31_536_000_000_u64))]
    pub approve_within_ms: u64,
    /// What happens to a step that nobody has decided in time: `reject` (the executor proposes
    /// another line), `accept`, or `end` (the run ends with what is committed).
    pub approve_else: ApproveElse,
    /// Maximum pops of one trajectory before it fails.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub pops_max: u64,
    /// Violation score V up to which a step is retried, then accepted.
    #[schemars(range(min = 0.0, max = 1_000.0))]
    pub tau_soft: f64,
    /// Violation score V above which a step is rejected immediately. At least `tau_soft`; a step
    /// with a score between the two is retried, then rejected.
    #[schemars(range(min = 0.0, max = 1_000.0))]
    pub tau_hard: f64,
    /// Sampling temperature; 0 = always the most likely token.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: f64,
    /// Nucleus sampling: sample from the smallest set of tokens with at least this probability
    /// mass; 1 = all tokens.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    pub top_p: f64,
    /// Seed of all randomness in a run. Model output may still differ between machines and batch
    /// compositions.
    #[schemars(range(min = 0, max = 9_223_372_036_854_775_807_u64))]
    pub seed: u64,
    /// Share of votes that a winner with V = 0 needs to end the run before `max_rounds` (the
    /// paper's θ_c).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: f64,
    /// Stack frames between two full snapshots of the state; fewer make pops cheaper and take more
    /// memory.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub snapshot_every_frames: u32,
    /// Options of `strategy = "beam"`.
    pub beam: BeamOptions,
    /// Options of `strategy = "ahead"`.
    pub ahead: AheadOptions,
    /// Options of `strategy = "particle_filter"`.
    pub particle_filter: ParticleFilterOptions,
    /// Options of `strategy = "uct"`.
    pub uct: UctOptions,
    /// How the fan-out depends on a problem's difficulty.
    pub group: GroupOptions,
    /// How the trajectories of a round differ.
    pub diversity: DiversityOptions,
    /// Limits of a run over all its trajectories and rounds; the result names the one that ended
    /// it.
    pub budget: Budget,
    /// Weights of the reward recorded for each finished trajectory.
    pub reward: Reward,
}

/// Section `run.budget`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Maximum proposals, accepted or not.
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub steps: u64,
    /// Maximum tokens, prompt and completion together; 0 = unlimited.
    #[schemars(range(min = 0, max = 1_000_000_000_000_000_u64))]
    pub tokens: u64,
    /// Maximum completion tokens; 0 = unlimited. Proposals get shares of what is left and do not
    /// overrun it; models that verify or coordinate can. With a limit, proposals are not started
    /// early.
    #[schemars(range(min = 0, max = 1_000_000_000_000_000_u64))]
    pub completion_tokens: u64,
    /// Maximum cost of tokens that have a price (`price` of an engine or a pool), in the currency of
    /// the prices; 0 = unlimited.
    #[schemars(range(min = 0.0, max = 1_000_000_000.0))]
    pub cost: f64,
    /// Maximum wall-clock time in milliseconds.
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
    /// Weight of the negated final violation score, −V (β).
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub verify: f64,
    /// Weight of using few steps (γ).
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
    /// Rings of four actors, each on its own thread, among which runs are distributed; 0 = one per
    /// core.
    #[schemars(range(min = 0, max = 1_024))]
    pub cells: u32,
    /// `shared` (the four actors of a cell on one thread: fastest) or `own` (one thread per actor).
    pub placement: Placement,
    /// Maximum turns in flight in one cell's ring; further ones wait.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub in_flight_max: u32,
    /// Maximum restarts of one actor within `restart_window_ms`; after one more its runs fail.
    #[schemars(range(min = 0, max = 1_000))]
    pub restarts_max: u32,
    /// Sliding window in milliseconds over which restarts are counted.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub restart_window_ms: u64,
    /// Time in milliseconds for which an agent may block its thread before it is reported and
    /// replaced; 0 = forever. An agent that waits for a model or a process does not block. A run
    /// that a blocked agent holds up ends at its `wall_ms` with a named failure.
    #[schemars(range(min = 0, max = 86_400_000))]
    pub hang_after_ms: u64,
}

/// How the actors of a cell are placed on threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// One thread for the cell's actors.
    Shared,
    /// One thread per actor.
    Own,
}

/// Section `server`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Address and port to listen on; port 0 = any free port. The default is only reachable from
    /// this machine.
    #[schemars(with = "String", extend("format" = "socket-address"))]
    pub bind: SocketAddr,
    /// Maximum open runs, running or queued; further ones are refused with status 429. Daemons that
    /// share a journal (`journal.url`) count the runs of all of them, and should have the same
    /// limit.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub queue_max: u32,
    /// Maximum open runs of one key, on one daemon; further ones are refused with status 429. 0 =
    /// half of `queue_max`, rounded up, if there are several keys.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub key_open_runs_max: u32,
    /// Maximum runs of one key (without keys: of all clients) that wait for approval and do nothing
    /// else; a run with a rule of approval is refused with status 429 beyond. Runs that are open may
    /// still begin to wait. 0 = no limit.
    #[schemars(range(min = 0, max = 10_000_000))]
    pub key_waiting_runs_max: u32,
    /// Maximum cost of the runs of one key that were accepted on a day (UTC) and are over, and of
    /// the turns that it has tried since the daemon started, in the currency of the prices; further
    /// ones are refused with status 429 until midnight. With a limit, a key's turns are tried one
    /// after another. 0 = no limit.
    #[schemars(range(min = 0.0, max = 1_000_000_000.0))]
    pub key_cost_per_day_max: f64,
    /// Time in milliseconds after which a run that is under way and has written no event counts as
    /// stuck: `prime_runs_stuck` counts it, and webhooks tell it as `run.stuck`. A run that waits
    /// for its place or for approval is not stuck. 0 = never.
    #[schemars(range(min = 0, max = 2_592_000_000_u64))]
    pub stuck_ms: u64,
    /// File with the Ed25519 key (PKCS #8, PEM) that signs attestations of runs, as `prime-agents
    /// attest key FILE` makes it. Empty = the daemon signs nothing.
    #[schemars(extend("format" = "words"))]
    pub attestation_key_file: String,
    /// Maximum size of a request's body in bytes; a larger one is refused with status 413.
    #[schemars(range(min = 1_024, max = 1_073_741_824))]
    pub body_bytes_max: u64,
    /// Maximum size in bytes of a bundle that `POST /v1/runs/import` takes; a larger one is refused
    /// with status 413. It is held in memory several times while it is checked. One record of it may
    /// have 8 MiB, or `body_bytes_max` if that is more.
    #[schemars(range(min = 1_024, max = 1_073_741_824))]
    pub import_bytes_max: u64,
    /// Timeout in milliseconds for receiving a body; then status 408, and the connection is closed.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub body_timeout_ms: u64,
    /// Timeout in milliseconds for receiving the head of a request (request line and headers); then
    /// status 408, and the connection is closed. For later requests on a connection,
    /// `keep_alive_ms` is added.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub head_timeout_ms: u64,
    /// Maximum bytes of a request's headers, names and values; more are refused with status 431.
    /// The number of headers is always limited to 96.
    #[schemars(range(min = 256, max = 65_536))]
    pub header_bytes_max: u32,
    /// Maximum bytes of a request's path and query; a longer one is refused with status 414.
    #[schemars(range(min = 64, max = 32_768))]
    pub url_bytes_max: u32,
    /// Maximum open connections; a further one takes the place of the one that has been idle
    /// longest. If none is idle, its requests are refused with status 429, except `/livez` and
    /// `/readyz`, for which 64 more connections are reserved. Each uses two file descriptors: the
    /// daemon does not start if its process may not have that many.
    #[schemars(range(min = 2, max = 100_000))]
    pub connections_max: u32,
    /// Like `connections_max`, for one client address (with IPv6: one /64). 0 = three quarters of
    /// `connections_max`. Clients behind a proxy share the proxy's address.
    #[schemars(range(min = 0, max = 100_000))]
    pub address_connections_max: u32,
    /// Maximum open streams of events of one key (without keys: of all clients together); more are
    /// refused with status 429. 0 = no limit.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub streams_max: u32,
    /// Time in milliseconds after which an idle connection is closed.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub keep_alive_ms: u64,
    /// Time in milliseconds within which a client must acknowledge that the daemon closes the
    /// connection.
    #[schemars(range(min = 1, max = 600_000))]
    pub disconnect_timeout_ms: u64,
    /// Time in milliseconds after which a client that reads nothing of its response is
    /// disconnected. One that reads 256 KiB in this time is safe; with less it depends on network
    /// buffers.
    #[schemars(range(min = 100, max = 3_600_000))]
    pub stalled_reader_ms: u64,
    /// Maximum requests per second of one key (without keys: of all clients together); more are
    /// refused with status 429. 0 = no limit.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub requests_per_second: u32,
    /// Burst size: requests allowed at once before `requests_per_second` applies.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub burst: u32,
    /// Maximum concurrent requests of one key (without keys: of all clients together); more are
    /// refused with status 429. A streamed response counts until its end. 0 = no limit.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub concurrent_max: u32,
    /// A folder with reports of studies and load tests (`study report --out`, `loadtest --html`),
    /// which the studio lists; they and the tables and figures beside them are served to every key,
    /// up to three folders deep. Empty = none.
    #[schemars(extend("format" = "words"))]
    pub reports: String,
    /// API keys: `[[server.keys]]` tables as printed by `prime-agents key new NAME`. Without keys
    /// only loopback addresses can be bound, and every local user has access. With keys, every
    /// request except `/livez` and `/readyz` needs `Authorization: Bearer KEY`.
    #[schemars(length(max = 10_000))]
    pub keys: Vec<ApiKey>,
    /// Executors that a request may choose instead of the configured one: implementations or
    /// definitions. The engines of definitions are started; an implementation is only available if
    /// its engines run for another agent.
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
    /// The SQLite file that stores runs (with `-wal` and `-shm` files beside it); created if
    /// missing. One daemon per file.
    pub path: String,
    /// A PostgreSQL that stores runs instead, for one daemon or several:
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with libpq's parameters, such as
    /// `?sslmode=verify-full&sslrootcert=FILE`. Empty = the SQLite file. It may hold a password:
    /// set it as `PRIME__JOURNAL__URL` in the environment.
    #[schemars(extend("format" = "postgres-url"))]
    pub url: String,
    /// Lease duration in milliseconds, where several nodes share a PostgreSQL: how long a silent
    /// node keeps its runs. A node sends ten heartbeats in this time; when it has been silent for
    /// longer, other nodes continue its runs. Must be the same on all nodes.
    #[schemars(range(min = 500, max = 600_000))]
    pub lease_ms: u64,
    /// Group commit: time in milliseconds that an event waits for others, to be written with them
    /// in one `fsync`.
    #[schemars(range(min = 0, max = 1_000))]
    pub group_commit_ms: u64,
    /// Days that a finished run is kept; 0 = forever.
    #[schemars(range(min = 0, max = 36_500))]
    pub retention_days: u32,
    /// Hours for which the system's clock must run evenly before a jump ahead counts for
    /// `retention_days`, so that a wrong clock removes nothing before somebody can correct it. A
    /// jump is more than an hour since the journal was last used, or beyond what the process has
    /// measured itself. 0 = every jump counts at once.
    #[schemars(range(min = 0, max = 8_760))]
    pub clock_trust_hours: u32,
    /// Maximum size of the journal in bytes, without uploaded modules, which `uploads` limits; when
    /// exceeded, finished runs are removed one by one: each time the one that ended first among the
    /// runs of the key whose finished runs take the most space. 0 = no limit. Open runs are never
    /// removed.
    #[schemars(range(min = 0, max = 1_000_000_000_000_000_u64))]
    pub retention_bytes: u64,
    /// Maximum bytes of the finished runs of one key; when exceeded, the runs of that key that
    /// ended first are removed. 0 = no limit but `retention_bytes`.
    #[schemars(range(min = 0, max = 1_000_000_000_000_000_u64))]
    pub key_bytes_max: u64,
    /// What the journal keeps of the requests to models: `none`, `text` (what each model read, chat
    /// template included, and what it answered) or `tokens` (the ids of the tokens as well). A
    /// prompt is stored without the part that it shares with the one before. The value at the start
    /// of a run applies to the whole run.
    pub prompts: PromptsName,
    /// Days for which an `Idempotency-Key` stays taken after its run was removed: a request with it
    /// is refused with status 410 and not executed again.
    #[schemars(range(min = 0, max = 36_500))]
    pub idempotency_days: u32,
}

/// A value of `journal.prompts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the option's documentation says it")]
pub enum PromptsName {
    None,
    Text,
    Tokens,
}
