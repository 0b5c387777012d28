//! Counts the events of a run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;

use super::labels::{Broken, Decided, Failed, Speculated, Status, Tokens, Vote};
use super::{Metrics, OTHER};
use prime_agent_set::Failure;
use prime_bench::tasks::Spec;
use prime_protocol::{Assurance, Decision, Ending, Outcome, Role, Usage};
use prime_runtime::{Event, Observer};

pub const STATUSES: [&str; 5] = ["verified", "unrefuted", "unverified", "failed", "cancelled"];
/// The names of decisions, in the order of [`Decision`].
pub const DECISIONS: [&str; 3] = ["proceed", "retry", "backtrack"];
pub const TOKENS: [&str; 2] = ["prompt", "completion"];
pub const SPECULATED: [&str; 2] = ["used", "wasted"];

fn status(outcome: &Outcome) -> usize {
    // Indexes of `STATUSES`.
    match &outcome.ending {
        Ending::AgentFailed(_) => 3,
        Ending::Cancelled => 4,
        _ => match outcome.assurance {
            Some(Assurance::Verified) => 0,
            Some(Assurance::Unrefuted) => 1,
            _ => 2,
        },
    }
}

/// Counts the events of one run. All series were looked up before, so an event costs a few atomic
/// additions.
pub struct RunMeter {
    started: Instant,
    has_begun: AtomicBool,
    is_over: AtomicBool,
    /// A vote was held, and the next event will show whether it ended the run.
    has_voted: AtomicBool,
    open: Gauge,
    queued: Gauge,
    duration: Histogram,
    statuses: [Counter; 5],
    decisions: [Counter; 3],
    tokens: [Counter; 2],
    cost: Counter<f64, AtomicU64>,
    speculations: [Counter; 2],
    /// Votes that did not end their run, and those that did.
    votes: [Counter; 2],
    /// The benchmark's constraints of the run's problem; at most 32, so that a linear search is
    /// fast.
    violations: Vec<(&'static str, Counter)>,
    other_violations: Counter,
    /// Looked up per failure: failures are rare and have many labels.
    failures: Family<Failed, Counter>,
    reviews_needed: Counter,
    step_votes: Counter,
    step_samples: Counter,
    red_flags: Counter,
}

impl RunMeter {
    pub(super) fn new(metrics: &Metrics, spec: &Spec) -> Self {
        let broken = |constraint| metrics.violations.get_or_create_owned(&Broken { constraint });

        let known = spec
            .constraints
            .iter()
            .filter_map(|constraint| metrics.constraints.get(constraint.name));

        // This comes before the events: the run is open and queued from now on.
        metrics.runs_open.inc();
        metrics.runs_queued.inc();
        Self {
            started: Instant::now(),
            has_begun: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            has_voted: AtomicBool::new(false),
            open: metrics.runs_open.clone(),
            queued: metrics.runs_queued.clone(),
            duration: metrics.run_seconds.clone(),
            statuses: STATUSES.map(|status| metrics.runs.get_or_create_owned(&Status { status })),
            decisions: DECISIONS
                .map(|decision| metrics.steps.get_or_create_owned(&Decided { decision })),
            tokens: TOKENS.map(|kind| metrics.tokens.get_or_create_owned(&Tokens { kind })),
            cost: metrics.cost.clone(),
            speculations: SPECULATED
                .map(|outcome| metrics.speculations.get_or_create_owned(&Speculated { outcome })),
            votes: [false, true].map(|agreed| metrics.votes.get_or_create_owned(&Vote { agreed })),
            violations: known.map(|name| (*name, broken(name))).collect(),
            other_violations: broken(OTHER),
            failures: metrics.failures.clone(),
            reviews_needed: metrics.reviews_needed.clone(),
            step_votes: metrics.step_votes.clone(),
            step_samples: metrics.step_samples.clone(),
            red_flags: metrics.red_flags.clone(),
        }
    }

    fn begin(&self) {
        if !self.has_begun.swap(true, Ordering::Relaxed) {
            self.queued.dec();
        }
    }

    /// Counts the last vote, once it is known whether it ended the run.
    fn settle_vote(&self, has_agreed: bool) {
        if self.has_voted.swap(false, Ordering::Relaxed) {
            self.votes[usize::from(has_agreed)].inc();
        }
    }

    fn finish(&self, outcome: &Outcome) {
        self.settle_vote(outcome.ending == Ending::Agreed);
        self.statuses[status(outcome)].inc();
        self.duration.observe(self.started.elapsed().as_secs_f64());
        self.close();
    }

    fn close(&self) {
        self.begin();
        if !self.is_over.swap(true, Ordering::Relaxed) {
            self.open.dec();
        }
    }

    fn spend(&self, usage: &Usage) {
        self.tokens[0].inc_by(usage.prompt);
        self.tokens[1].inc_by(usage.completion);
        if let Some(cost) = usage.cost {
            self.cost.inc_by(cost.units());
        }
    }

    fn failure(&self, role: Role, failure: Failure) {
        self.failures.get_or_create(&Failed { role: role.name(), failure: failure.name() }).inc();
    }

    fn violation(&self, name: &str) {
        let known = self.violations.iter().find(|(known, _)| *known == name);
        known.map_or(&self.other_violations, |(_, counter)| counter).inc();
    }
}

impl Observer for RunMeter {
    fn observe(&self, event: &Event<'_>) {
        self.begin();
        if let Event::Finished(outcome) = event {
            return self.finish(outcome);
        }
        match event {
            Event::Step { verdict, decision, usage, speculations, .. } => {
                self.settle_vote(false);

                let decision = match decision {
                    Decision::Proceed => 0,
                    Decision::Retry => 1,
                    Decision::Backtrack => 2,
                };

                self.decisions[decision].inc();
                self.spend(usage);
                self.speculations[0].inc_by(speculations.used);
                self.speculations[1].inc_by(speculations.wasted);
                self.reviews_needed.inc_by(u64::from(verdict.needs_review));
                verdict.violations.iter().for_each(|name| self.violation(name));
            }
            Event::Voted { .. } => {
                self.settle_vote(false);
                self.has_voted.store(true, Ordering::Relaxed);
            }
            Event::Chosen { chosen, .. } => {
                self.step_votes.inc();
                self.step_samples.inc_by(chosen.samples.into());
                self.red_flags.inc_by(chosen.discarded.into());
            }
            Event::Mishap { role, error, .. } => self.failure(*role, error.failure),
            Event::TurnFailed { role, failure, usage, .. } => {
                self.failure(*role, *failure);
                self.spend(usage);
            }
            _ => {}
        }
    }
}

impl Drop for RunMeter {
    /// A run without an end, such as one that the next process resumes, is no longer open here.
    fn drop(&mut self) {
        self.close();
    }
}
