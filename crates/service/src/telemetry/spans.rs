//! Turns a run's events into spans. They contain decisions, counts and timings, but no lines,
//! prompts or answers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use opentelemetry::trace::{
    Span as _, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId,
    TraceState, Tracer as _,
};
use opentelemetry::{Array, Context, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::{SdkTracer, Span};
use tokio::time::Instant;

use super::traceparent::TraceParent;
use prime_agent_set::{Failure, Proposal};
use prime_protocol::{Decision, Ending, Outcome, Role, TurnId, Verdict};
use prime_runtime::{Event, Observer};

/// Steps of a run that get a span; later ones are only counted. Runs may have millions.
const STEPS_MAX: u64 = 10_000;
/// Mishaps of a run that are recorded.
const MISHAPS_MAX: u64 = 100;

/// A traced run, as its root span names it.
#[derive(Clone, Debug)]
pub struct TracedRun {
    /// The id that clients know.
    pub id: String,
    /// The slug of its task.
    pub task: String,
    /// The caller's span; `None` starts a new trace.
    pub parent: Option<TraceParent>,
    /// When it started in this process.
    pub started: jiff::Timestamp,
}

/// Traces a run.
pub struct Traced {
    tracer: SdkTracer,
    run: String,
    started: (jiff::Timestamp, Instant),
    open: Mutex<Open>,
}

/// Open spans. The lock is uncontended: a run's events come one after the other.
struct Open {
    root: Span,
    /// The root as the parent of others.
    context: Context,
    /// When the round started.
    round: SystemTime,
    /// When the last step of each trajectory of the round was decided.
    decided: HashMap<u32, SystemTime>,
    steps: u64,
    mishaps: u64,
}

/// OTLP attributes are `i64`.
fn int(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn remote(parent: &TraceParent) -> Context {
    let context = SpanContext::new(
        TraceId::from_bytes(parent.trace_id),
        SpanId::from_bytes(parent.parent_id),
        TraceFlags::new(parent.flags),
        true,
        TraceState::default(),
    );
    Context::new().with_remote_span_context(context)
}

fn decision_name(decision: Decision) -> &'static str {
    match decision {
        Decision::Proceed => "proceed",
        Decision::Retry => "retry",
        Decision::Backtrack => "backtrack",
    }
}

impl Traced {
    pub fn new(tracer: SdkTracer, run: &TracedRun) -> Self {
        let parent = run.parent.as_ref().map_or_else(Context::new, remote);

        let root = tracer
            .span_builder("invoke_workflow prime")
            .with_kind(SpanKind::Internal)
            .with_start_time(SystemTime::from(run.started))
            .with_attributes([
                KeyValue::new("gen_ai.operation.name", "invoke_workflow"),
                KeyValue::new("gen_ai.workflow.name", "prime"),
                KeyValue::new("gen_ai.conversation.id", run.id.clone()),
                KeyValue::new("prime.task", run.task.clone()),
            ])
            .start_with_context(&tracer, &parent);

        let context = Context::new().with_remote_span_context(root.span_context().clone());

        let round = SystemTime::from(run.started);
        let open = Mutex::new(Open {
            root,
            context,
            round,
            decided: HashMap::new(),
            steps: 0,
            mishaps: 0,
        });
        Self { tracer, run: run.id.clone(), started: (run.started, Instant::now()), open }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wall-clock time, measured from the run's start: if the clock is set meanwhile, no span ends
    /// before it starts.
    fn now(&self) -> SystemTime {
        SystemTime::from(self.started.0) + self.started.1.elapsed()
    }

    fn step(
        &self,
        id: TurnId,
        depth: usize,
        proposal: &Proposal,
        verdict: &Verdict,
        decision: Decision,
    ) {
        let now = self.now();

        let mut open = self.open();
        open.steps += 1;
        if open.steps > STEPS_MAX || !open.root.is_recording() {
            return;
        }

        // A step begins where the last one of its trajectory was decided, or with the round.
        let began = open.decided.insert(id.trajectory, now).unwrap_or(open.round);
        let mut span = self
            .tracer
            .span_builder("invoke_agent executor")
            .with_kind(SpanKind::Internal)
            .with_start_time(began)
            .with_attributes([
                KeyValue::new("gen_ai.operation.name", "invoke_agent"),
                KeyValue::new("gen_ai.agent.name", "executor"),
                KeyValue::new("gen_ai.conversation.id", self.run.clone()),
                KeyValue::new("gen_ai.usage.input_tokens", int(proposal.usage.prompt)),
                KeyValue::new("gen_ai.usage.output_tokens", int(proposal.usage.completion)),
                KeyValue::new("prime.round", i64::from(id.round)),
                KeyValue::new("prime.trajectory", i64::from(id.trajectory)),
                KeyValue::new("prime.depth", int(depth as u64)),
                KeyValue::new("prime.decision", decision_name(decision)),
            ])
            .start_with_context(&self.tracer, &open.context);

        let score = verdict.score.value();
        let mut evaluation = vec![
            KeyValue::new("gen_ai.evaluation.name", "prime.violation_score"),
            KeyValue::new("gen_ai.evaluation.score.value", score),
            KeyValue::new(
                "gen_ai.evaluation.score.label",
                if score == 0.0 { "pass" } else { "fail" },
            ),
        ];

        if !verdict.violations.is_empty() {
            let names =
                verdict.violations.iter().map(|name| StringValue::from(name.to_string())).collect();
            evaluation.push(KeyValue::new("prime.violations", Value::Array(Array::String(names))));
        }

        span.add_event_with_timestamp("gen_ai.evaluation.result", now, evaluation);
        span.end_with_timestamp(now);
    }

    /// An agent could not do a turn. The reason may contain what was asked, so it is not exported.
    fn mishap(&self, name: &'static str, id: TurnId, role: Role, failure: Failure) {
        let now = self.now();
        let mut open = self.open();
        open.mishaps += 1;
        // An agent that fails at every turn must not fill the memory: a span keeps its events until
        // the end.
        if open.mishaps > MISHAPS_MAX {
            return;
        }

        let attributes = vec![
            KeyValue::new("prime.round", i64::from(id.round)),
            KeyValue::new("prime.trajectory", i64::from(id.trajectory)),
            KeyValue::new("gen_ai.agent.name", role.name()),
            KeyValue::new("error.type", failure.name()),
        ];
        open.root.add_event_with_timestamp(name, now, attributes);
    }

    fn vote(&self, round: u32, agreement: f64) {
        let now = self.now();

        let mut open = self.open();
        // The next round's steps begin after the vote.
        open.round = now;
        open.decided.clear();

        let attributes = vec![
            KeyValue::new("prime.round", i64::from(round)),
            KeyValue::new("prime.agreement", agreement),
        ];
        open.root.add_event_with_timestamp("prime.vote", now, attributes);
    }

    fn finish(&self, outcome: &Outcome) {
        let now = self.now();
        let mut open = self.open();

        let left_out = open.steps.saturating_sub(STEPS_MAX);
        open.root.set_attributes([
            KeyValue::new("gen_ai.usage.input_tokens", int(outcome.usage.prompt)),
            KeyValue::new("gen_ai.usage.output_tokens", int(outcome.usage.completion)),
            KeyValue::new("prime.outcome", outcome.ending.name()),
            KeyValue::new("prime.verified", outcome.is_verified()),
            KeyValue::new("prime.steps_without_span", int(left_out)),
        ]);

        if let Ending::AgentFailed(reason) = &outcome.ending {
            open.root.set_attribute(KeyValue::new("error.type", outcome.ending.name()));
            open.root.set_status(Status::error(reason.clone()));
        }

        open.root.end_with_timestamp(now);
    }
}

impl Observer for Traced {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Finished(outcome) = event {
            self.finish(outcome);
        }

        match event {
            Event::Step { id, depth, proposal, verdict, decision, .. } => {
                self.step(*id, *depth, proposal, verdict, *decision);
            }
            Event::Voted { round, agreement, .. } => self.vote(*round, *agreement),
            Event::Mishap { id, role, error, .. } => {
                self.mishap("prime.mishap", *id, *role, error.failure);
            }
            Event::TurnFailed { id, role, failure, .. } => {
                self.mishap("prime.turn_failed", *id, *role, *failure);
            }
            _ => {}
        }
    }
}
