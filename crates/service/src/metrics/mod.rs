//! Metrics of the process in the OpenMetrics text format, or Prometheus' own. There are no globals:
//! [`Metrics`] is passed to all parts that count. Counting costs a few atomic additions; the text
//! is rendered on request.

mod cluster;
mod engines;
mod gpus;
mod labels;
mod nvml;
mod process;
mod run;
mod text_format;
mod webhooks;

#[cfg(test)]
mod exposition;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use cluster::Cluster;
use engines::Engines;
pub use gpus::{GpuReading, GpuSource};
use labels::{
    Answered, Broken, Decided, Failed, Reason, Route, Speculated, Status, Tokens, Version, Vote,
};
pub use nvml::nvidia_gpus;
use prime_agent_set::Failure;
use prime_bench::tasks::{self, Spec};
use prime_engine::EngineStatus;
use prime_journal::ClusterStatus;
use prime_protocol::Role;
use prime_runtime::Hangs;
use process::Process;
pub use run::RunMeter;
use webhooks::Webhooks;

/// The `Content-Type` of [`Metrics::render_text`].
pub const TEXT_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The `Content-Type` of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The label of all constraints that are not the benchmark's.
const OTHER: &str = "other";

/// Bucket bounds. Runs take milliseconds with a reference executor and up to hours with a model.
const RUN_SECONDS: [f64; 14] =
    [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0];
const HTTP_SECONDS: [f64; 12] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
const COMMIT_SECONDS: [f64; 12] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5];
const COMMIT_EVENTS: [f64; 12] =
    [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0];

/// The counters, gauges and histograms of the process.
pub struct Metrics {
    registry: Registry,
    /// The names of the benchmark's constraints, the only ones that become labels.
    constraints: HashSet<&'static str>,
    runs: Family<Status, Counter>,
    runs_open: Gauge,
    runs_queued: Gauge,
    runs_stuck: Gauge,
    run_seconds: Histogram,
    steps: Family<Decided, Counter>,
    violations: Family<Broken, Counter>,
    tokens: Family<Tokens, Counter>,
    cost: Counter<f64, AtomicU64>,
    speculations: Family<Speculated, Counter>,
    votes: Family<Vote, Counter>,
    failures: Family<Failed, Counter>,
    agents_hung: Gauge,
    agent_hangs: Counter,
    reviews_needed: Counter,
    step_votes: Counter,
    step_samples: Counter,
    red_flags: Counter,
    resumed: Counter,
    refused: Family<Reason, Counter>,
    http_requests: Family<Answered, Counter>,
    http_seconds: Family<Route, Histogram, fn() -> Histogram>,
    engines: Engines,
    commit_seconds: Histogram,
    commit_events: Histogram,
    journal_bytes: Gauge,
    journal_writable: Gauge,
    cluster: Cluster,
    webhooks: Webhooks,
}

/// A count as the value of a gauge.
fn level(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Metrics {
    /// The metrics of a process that started at this time.
    pub fn new(started: jiff::Timestamp) -> Self {
        let known = tasks::all().chain(tasks::variants()).flat_map(|task| task.spec().constraints);
        let metrics = Self {
            registry: Registry::default(),
            constraints: known.map(|constraint| constraint.name).collect(),
            runs: Family::default(),
            runs_open: Gauge::default(),
            runs_queued: Gauge::default(),
            runs_stuck: Gauge::default(),
            run_seconds: Histogram::new(RUN_SECONDS),
            steps: Family::default(),
            violations: Family::default(),
            tokens: Family::default(),
            cost: Counter::default(),
            speculations: Family::default(),
            votes: Family::default(),
            failures: Family::default(),
            agents_hung: Gauge::default(),
            agent_hangs: Counter::default(),
            reviews_needed: Counter::default(),
            step_votes: Counter::default(),
            step_samples: Counter::default(),
            red_flags: Counter::default(),
            resumed: Counter::default(),
            refused: Family::default(),
            http_requests: Family::default(),
            http_seconds: Family::new_with_constructor(|| Histogram::new(HTTP_SECONDS)),
            engines: Engines::default(),
            commit_seconds: Histogram::new(COMMIT_SECONDS),
            commit_events: Histogram::new(COMMIT_EVENTS),
            journal_bytes: Gauge::default(),
            journal_writable: Gauge::default(),
            cluster: Cluster::default(),
            webhooks: Webhooks::default(),
        };

        metrics.initialise_series();
        metrics.registered(started)
    }

    /// Creates the series with known labels, so that their first event counts as an increase.
    fn initialise_series(&self) {
        for status in run::STATUSES {
            drop(self.runs.get_or_create(&Status { status }));
        }
        for decision in run::DECISIONS {
            drop(self.steps.get_or_create(&Decided { decision }));
        }
        for kind in run::TOKENS {
            drop(self.tokens.get_or_create(&Tokens { kind }));
        }
        for outcome in run::SPECULATED {
            drop(self.speculations.get_or_create(&Speculated { outcome }));
        }
        for agreed in [false, true] {
            drop(self.votes.get_or_create(&Vote { agreed }));
        }
        for (role, failure) in
            Role::ALL.into_iter().flat_map(|role| Failure::ALL.map(|failure| (role, failure)))
        {
            drop(
                self.failures.get_or_create(&Failed { role: role.name(), failure: failure.name() }),
            );
        }
        drop(self.violations.get_or_create(&Broken { constraint: OTHER }));
    }

    /// Registers all metrics. Rendering adds the suffixes: `_total` for counters, and the units.
    fn registered(mut self, started: jiff::Timestamp) -> Self {
        let of = &mut self.registry;

        of.register(
            "prime_build",
            "What was built",
            Info::new(Version { version: env!("CARGO_PKG_VERSION") }),
        );

        of.register("prime_runs", "Runs that ended, by status", self.runs.clone());
        of.register(
            "prime_runs_open",
            "Runs that were accepted and are not over",
            self.runs_open.clone(),
        );
        of.register("prime_runs_queued", "Open runs that have not begun", self.runs_queued.clone());
        let help = "Runs under way that have written no event for server.stuck_ms";
        of.register("prime_runs_stuck", help, self.runs_stuck.clone());
        let help = "Time from a run's acceptance in this process to its end";
        of.register_with_unit("prime_run_duration", help, Unit::Seconds, self.run_seconds.clone());
        of.register(
            "prime_steps",
            "Proposed steps, by what was decided on them",
            self.steps.clone(),
        );
        let help =
            "Broken constraints of judged steps, by name; those of custom problems count as other";
        of.register("prime_violations", help, self.violations.clone());
        of.register("prime_tokens", "Tokens that models read and wrote", self.tokens.clone());
        let help = "What tokens of models with a price cost, in the currency of the prices";
        of.register("prime_cost", help, self.cost.clone());
        let help = "Proposals begun before the verdict on the previous step, by outcome";
        of.register("prime_speculations", help, self.speculations.clone());
        of.register(
            "prime_votes",
            "Votes held, by whether they ended their run",
            self.votes.clone(),
        );
        let help = "Failed attempts of agents at a turn, by role and kind";
        of.register("prime_agent_failures", help, self.failures.clone());
        of.register(
            "prime_agents_hung",
            "Agents that block their thread",
            self.agents_hung.clone(),
        );
        let help = "Agents that were found to block their thread";
        of.register("prime_agent_hangs", help, self.agent_hangs.clone());
        let help =
            "Judged steps on which verifiers disagree so much that a person should review them";
        of.register("prime_reviews_needed", help, self.reviews_needed.clone());
        of.register("prime_step_votes", "Steps chosen by vote", self.step_votes.clone());
        let help = "Proposals for the steps chosen by vote, including discarded ones";
        of.register("prime_step_samples", help, self.step_samples.clone());
        of.register(
            "prime_red_flags",
            "Proposals that were discarded before a vote on a step",
            self.red_flags.clone(),
        );
        of.register(
            "prime_resumed_runs",
            "Runs that continued after a restart of the process",
            self.resumed.clone(),
        );
        of.register("prime_refused", "Refused requests, by reason", self.refused.clone());
        of.register("prime_http_requests", "Answered requests", self.http_requests.clone());
        let help = "Time from a request's arrival to its answer's head";
        of.register_with_unit(
            "prime_http_request_duration",
            help,
            Unit::Seconds,
            self.http_seconds.clone(),
        );
        self.engines.register(of);
        self.webhooks.register(of);

        let help = "Time of a commit to the journal";
        of.register_with_unit(
            "prime_journal_commit_duration",
            help,
            Unit::Seconds,
            self.commit_seconds.clone(),
        );
        of.register(
            "prime_journal_commit_events",
            "Events in a commit to the journal",
            self.commit_events.clone(),
        );
        of.register_with_unit(
            "prime_journal",
            "Content of the journal",
            Unit::Bytes,
            self.journal_bytes.clone(),
        );
        of.register(
            "prime_journal_writable",
            "Whether the last write succeeded",
            self.journal_writable.clone(),
        );

        of.register_collector(Box::new(self.cluster.clone()));
        of.register_collector(Box::new(Process::started_at(started)));
        self
    }

    /// Adds gauges of the GPUs that `source` reports.
    #[must_use]
    pub fn with_gpus(mut self, source: Box<dyn GpuSource>) -> Self {
        self.registry.register_collector(Box::new(gpus::Gpus(source)));
        self
    }

    /// Renders all metrics, as [`CONTENT_TYPE`].
    pub fn render(&self) -> String {
        let mut text = String::with_capacity(1 << 14);
        encode(&mut text, &self.registry).expect("invariant: writing to a string succeeds");
        text
    }

    /// Renders all metrics, as [`TEXT_CONTENT_TYPE`].
    pub fn render_text(&self) -> String {
        text_format::from_openmetrics(&self.render())
    }

    /// Creates the series of these routes and of these reasons for refusals, so that the first
    /// event counts as an increase.
    pub fn declare(
        &self,
        routes: impl IntoIterator<Item = &'static str>,
        reasons: &[&'static str],
    ) {
        for route in routes {
            drop(self.http_requests.get_or_create(&Answered { route, status: 200 }));
            drop(self.http_seconds.get_or_create(&Route { route }));
        }
        for reason in reasons {
            drop(self.refused.get_or_create(&Reason { reason }));
        }
    }

    /// The meter of a new run of a problem with this spec. The run counts as open until it is over
    /// or the meter is dropped. All series that its events need are looked up here.
    pub fn run(&self, spec: &Spec) -> RunMeter {
        RunMeter::new(self, spec)
    }

    /// Counts a run that another process accepted and this one resumed.
    pub fn resumed(&self) {
        self.resumed.inc();
    }

    /// Counts a request that was refused for another reason than its content: a full queue, a rate
    /// limit, a journal that cannot be written. The reason is an error code.
    pub fn refused(&self, reason: &'static str) {
        self.refused.get_or_create(&Reason { reason }).inc();
    }

    /// Counts an answered request; a stream counts once its head was sent. `route` is a pattern, or
    /// one word for all unknown paths, because client input must not become a label.
    pub fn http(&self, route: &'static str, status: u16, seconds: f64) {
        self.http_requests.get_or_create(&Answered { route, status }).inc();
        self.http_seconds.get_or_create(&Route { route }).observe(seconds);
    }

    /// Forgets engines that are not among these.
    pub fn keep_engines(&self, present: &BTreeSet<String>) {
        self.engines.keep_only(present);
    }

    /// Updates the state of a configured engine. Call it before [`Self::render`].
    pub fn engine(&self, status: &EngineStatus) {
        self.engines.tell(status);
    }

    /// Sets the number of agents that block their thread. Call it before [`Self::render`].
    pub fn hangs(&self, hangs: Hangs) {
        self.agents_hung.set(level(hangs.now));
        self.agent_hangs.inner().store(hangs.total, Ordering::Relaxed);
    }

    /// Sets the number of runs that are stuck. Call it before [`Self::render`].
    pub fn stuck(&self, runs: usize) {
        self.runs_stuck.set(level(runs as u64));
    }

    /// Counts a commit of the journal: its events and its duration.
    pub fn journal_commit(&self, events: usize, seconds: f64) {
        self.commit_events.observe(events as f64);
        self.commit_seconds.observe(seconds);
    }

    /// Sets the bytes of the journal's content, if they are known, and whether its last write (a
    /// commit or a probe) succeeded.
    pub fn journal_state(&self, bytes: Option<u64>, is_writable: bool) {
        if let Some(bytes) = bytes {
            self.journal_bytes.set(level(bytes));
        }
        self.journal_writable.set(i64::from(is_writable));
    }

    /// Sets the nodes that share the journal; `None` if there are none, or if they are not known at
    /// present.
    pub fn cluster(&self, status: Option<ClusterStatus>) {
        self.cluster.tell(status);
    }
}
