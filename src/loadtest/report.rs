//! What a load test measured, as data: what `--output json` prints and `--baseline` reads again.

use serde::{Deserialize, Serialize};

/// The form of [`Report`]; a file of another form is refused.
pub const FORM: u32 = 1;

/// A load test: one load, at each of one or more counts of trajectories.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`FORM`].
    pub form: u32,
    /// Of prime-agents.
    pub version: String,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    pub machine: Machine,
    pub mode: Mode,
    pub load: Load,
    /// Where the runtime is not in another process.
    pub runtime: Option<RuntimeFacts>,
    pub points: Vec<Point>,
    /// What a reader must know before comparing, in sentences: a rate that was not held, a busy machine.
    pub remarks: Vec<String>,
}

/// What the load goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Null agents within the process: coordination alone.
    Ring,
    /// Null agents that each ask an engine's process, which answers at once: adds the way there and back.
    Engine,
    /// A running daemon, as a client sees it.
    Http,
    /// The configured agents, with their models.
    Model,
}

/// The machine that it ran on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// As the processor names itself.
    pub processor: String,
    /// That the process may use.
    pub cores: usize,
    pub memory_bytes: u64,
    /// Name and release of the kernel.
    pub system: String,
    /// Over one minute, before the test began.
    pub load_average: f64,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Steps a second that are due, over all trajectories (runs a second in mode `http`). `None` is a closed loop: a
    /// trajectory's next step is due as soon as its last is decided.
    pub rate: Option<f64>,
    /// Not measured, in seconds.
    pub warmup_seconds: f64,
    pub length: Length,
    /// Bytes of the line that each proposal carries beyond the shortest (of the prompt, in mode `engine`).
    pub payload_bytes: usize,
    /// That each of the agents in `faulty` waits, in microseconds.
    pub delay_us: u64,
    /// Share of the turns that each of the agents in `faulty` fails, 0 to 1.
    pub failures: f64,
    /// The agents with a delay or failures.
    pub faulty: Vec<String>,
    /// Steps are committed to a journal, as in the daemon.
    pub durable: bool,
}

/// How long each point is measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// Of each trajectory, warm-up not counted.
    Steps(u64),
    Seconds(f64),
}

/// How the runtime was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuntimeFacts {
    pub cells: usize,
    /// `shared` or `own`.
    pub placement: String,
    pub executor: String,
    pub verifier: String,
    pub coordinator: String,
}

/// What was measured with one count of trajectories.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    pub trajectories: u32,
    /// Steps that were decided in the time; of a durable load, that became durable in it.
    pub steps: u64,
    /// That were measured: the time that was asked for, or until the last of the steps that were asked for.
    pub seconds: f64,
    pub steps_per_second: f64,
    /// Closed loop: from one decision of a trajectory to its next. Open loop: from the moment at which the step was due
    /// to its decision. In mode `http`: from the moment at which the run was due to its end as the client sees it.
    pub latency: Latency,
    /// Parts of the way of a step, in their order.
    pub legs: Vec<Stage>,
    /// Share of the steps' time that was not an agent's own, 0 to 1; where agents work for real.
    pub coordination_share: Option<f64>,
    /// Of the process, user and system, in microseconds.
    pub cpu_us_per_step: Option<f64>,
    pub allocations_per_step: Option<f64>,
    pub allocated_bytes_per_step: Option<f64>,
    /// Of the heap while all trajectories wait before their first proposal, less what there was without them, over their
    /// count. With few trajectories, or beside a journal's buffers, it is a rough figure or none.
    pub bytes_per_trajectory: Option<f64>,
    /// Open loop.
    pub rate: Option<Rate>,
    /// Turns that an agent failed and that were tried again.
    pub failures: u64,
    /// Of `latency`, as HdrHistogram's V2 format in base64, nanoseconds.
    pub histogram: String,
}

/// A distribution in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    pub mean_us: f64,
    pub p50_us: f64,
    pub p90_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub max_us: f64,
}

/// A part of a step's way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// As `runtime::Stage::name` says, or the part of a request.
    pub name: String,
    /// An agent's own work, not coordination.
    pub is_work: bool,
    pub latency: Latency,
}

/// Whether an open loop got through.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Steps a second that were due.
    pub due: f64,
    /// Steps a second that were decided.
    pub reached: f64,
    /// Steps that were due and not decided when the measurement ended.
    pub behind: u64,
    /// The rate was held: latencies are those of a system that keeps up. At least 99 % of it was reached, and of the steps
    /// that waited behind another one of their trajectory there were at most 1 % of a second's.
    pub is_held: bool,
}
