//! A load test's result as data: what `--output json` prints and `--baseline` reads.

use serde::{Deserialize, Serialize};

/// Version of [`Report`]'s JSON. Files of another version are refused.
pub const FORMAT: u32 = 2;

/// One load, measured at one or more counts of trajectories.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    #[serde(rename = "form")]
    pub format: u32,
    /// Version of prime-agents.
    pub version: String,
    /// Start of the test, RFC 3339, UTC.
    pub started: String,
    /// The machine that the test ran on.
    pub machine: HostInfo,
    /// What was measured.
    pub mode: Mode,
    /// The load that was requested.
    pub load: Load,
    /// `None` if the runtime is in another process.
    pub runtime: Option<RuntimeFacts>,
    /// A measurement for each count of trajectories, in the requested order.
    pub points: Vec<Point>,
    /// What a reader must know before comparing, in sentences: a rate that was not held, a busy
    /// machine.
    pub remarks: Vec<String>,
}

/// The parts of the system that the load exercises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Null agents in this process: coordination alone.
    Ring,
    /// Null agents that each query an engine process, which answers at once: adds the round trip.
    Engine,
    /// A running daemon, as a client sees it.
    Http,
    /// The configured agents with their models.
    Model,
}

/// The machine that the test ran on. A field is empty or 0 if the kernel does not provide it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostInfo {
    /// Model name of the processor.
    pub processor: String,
    /// Cores available to the process.
    pub cores: usize,
    /// Installed memory.
    pub memory_bytes: u64,
    /// Kernel name and release.
    pub system: String,
    /// One-minute load average before the test.
    pub load_average: f64,
}

/// What was requested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Steps due per second over all trajectories (runs, in mode `http`). `None`: closed loop,
    /// where a trajectory's next step is due as soon as its last is decided.
    pub rate: Option<f64>,
    /// Length of the warm-up before each point.
    pub warmup_seconds: f64,
    /// Length of each point's measurement.
    pub length: Length,
    /// Bytes added to each proposal's line (to the prompt, in mode `engine`).
    pub payload_bytes: usize,
    /// Delay of each turn of the agents in `faulty`, in microseconds.
    pub delay_us: u64,
    /// Share of the turns of the agents in `faulty` that fail, 0 to 1.
    pub failures: f64,
    /// Agents with an injected delay or failures.
    pub faulty: Vec<String>,
    /// Steps are committed to a journal, as in the daemon.
    pub durable: bool,
}

/// The length of a point's measurement, without the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// Steps per trajectory.
    Steps(u64),
    /// Seconds of wall time.
    Seconds(f64),
}

/// The runtime's configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuntimeFacts {
    /// Number of cells, each a ring of actors on its own thread.
    pub cells: usize,
    /// Threads of agents: `shared` with their cell, or their `own`.
    pub placement: String,
    /// Implementation of the executor.
    pub executor: String,
    /// Implementation of the verifier.
    pub verifier: String,
    /// Implementation of the coordinator.
    pub coordinator: String,
}

/// The measurement at one count of trajectories.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Number of trajectories; in mode `http`, of clients.
    pub trajectories: u32,
    /// Steps decided during the measurement; with a journal, steps that became durable.
    pub steps: u64,
    /// Length of the measurement: the requested time, or until the last requested step.
    pub seconds: f64,
    /// `steps` over `seconds`.
    pub steps_per_second: f64,
    /// Closed loop: from one decision of a trajectory to its next. Open loop: from the time when
    /// the step was due to its decision. Mode `http`: from the time when the run was due to its end
    /// as the client sees it.
    pub latency: Latency,
    /// Stages of a step, in order.
    pub stages: Vec<Stage>,
    /// Share of the steps' time outside the agents, 0 to 1; `None` unless the agents do real work.
    pub coordination_share: Option<f64>,
    /// User and system time of this process, in microseconds.
    pub cpu_us_per_step: Option<f64>,
    /// Number of heap allocations; `None` if they were not counted.
    pub allocations_per_step: Option<f64>,
    /// Bytes of these allocations.
    pub allocated_bytes_per_step: Option<f64>,
    /// Heap growth from before the trajectories exist to when all wait for their first proposal,
    /// per trajectory. With few trajectories, or with a journal's buffers, it is imprecise or
    /// `None`.
    pub bytes_per_trajectory: Option<f64>,
    /// The requested rate and what became of it; `None` in a closed loop.
    pub rate: Option<Rate>,
    /// Turns that failed and were retried.
    pub failures: u64,
    /// Histogram of `latency` in nanoseconds: HdrHistogram's compressed V2 format in base64.
    pub histogram: String,
}

/// A latency distribution in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Maximum.
    pub max_us: f64,
}

/// A part of a step, or of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Name of the stage.
    pub name: String,
    /// An agent's own work, not coordination.
    pub is_work: bool,
    /// Time that steps spent in the stage.
    pub latency: Latency,
}

/// The rate of an open loop, and how far the system kept up with it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Steps due per second.
    pub due: f64,
    /// Steps decided per second.
    pub reached: f64,
    /// Steps due but undecided at the end of the measurement.
    pub behind: u64,
    /// True if at least 99 % of the rate was reached, and the steps that waited for another step of
    /// their trajectory were at most 1 % of those due per second. Otherwise the latencies are those
    /// of a growing queue.
    pub is_held: bool,
}
