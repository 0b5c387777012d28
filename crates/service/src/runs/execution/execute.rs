//! Submits a run to the runtime, and records how it ended.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tracing::Span;

use super::Execution;
use super::begin::name_late_begin;
use super::recorder::{Recorder, Shown};
use super::rows::{final_row, open_row};
use super::sent::Sent;
use crate::runs::approvals::policy::Gate;
use crate::runs::approvals::record::{About, HeldLine};
use crate::runs::live::admission::RunSlot;
use crate::runs::live::live_run::LiveRun;
use crate::runs::live::standstill::Moment;
use crate::runs::record::Status;
use crate::runs::store::event_stream::RowUpdate;
use prime_bench::tasks::Problem;
use prime_protocol::{Effect, Ending, Outcome, SuspendedRun};
use prime_report::TraceLine;
use prime_runtime::{Event, Observer, Submission};

/// How a run starts in this process.
pub struct Start {
    pub problem: Arc<dyn Problem>,
    /// The state from which it continues; `None` for a new run.
    pub suspended: Option<Box<SuspendedRun>>,
    /// True if an earlier process executed a part of it.
    pub is_resumed: bool,
}

impl Start {
    /// A new run.
    pub fn new(problem: Arc<dyn Problem>) -> Self {
        Self { problem, suspended: None, is_resumed: false }
    }
}

impl Execution {
    /// Executes a durable run. The current span becomes the parent of the run's.
    pub(super) fn launch(self: &Arc<Self>, live: Arc<LiveRun>, start: Start, slot: RunSlot) {
        self.live.insert(&live);
        self.notify_of_commits(&live);
        let request = Span::current();
        self.arbiter.spawn(Arc::clone(self).execute(live, start, slot, request));
    }

    /// Executes a run to its end. `request` is the span of the request that started the run, if
    /// any: the parent of the run's span.
    async fn execute(
        self: Arc<Self>,
        live: Arc<LiveRun>,
        start: Start,
        slot: RunSlot,
        request: Span,
    ) {
        let Start { problem, suspended, is_resumed } = start;
        let now = self.store.now_ms();
        let recorder = Recorder {
            stream: Arc::clone(&live.stream),
            writings: Arc::clone(&live.writings),
            sent: Arc::new(Sent::new(self.app.get().settings().journal.prompts)),
            started: open_row(&live, Status::Running, now),
            clock: self.store.clock(),
            judge: live.spec.judge(),
            gate: live.spec.approval.as_ref().map(Gate::new),
            waits: Arc::clone(&live.waits),
            shown: self.shown(&live),
        };
        let seq = live.stream.committed().head.seq;
        for step in suspended.iter().flat_map(|suspended| &suspended.held) {
            let line = |about: &About<'_>| Some(HeldLine::of_held(step, about));
            if step.resolution.is_none()
                && let Some(approval) = recorder.shown.approval(step.number, line)
            {
                live.waits.add(step.id, approval, seq);
            }
        }
        let observer = self.observers.of(&live, problem.as_ref(), recorder, now);

        let mut deadline = pin!(self.deadline_of(&live));
        let begun = tokio::select! {
            biased;
            () = &mut deadline => Err(Ending::DeadlinePassed),
            begun = self.turn_of(&live, is_resumed) => begun.ok_or(Ending::Cancelled),
        };
        let (agents, place) = match begun {
            Ok(begun) => begun,
            Err(ending) => {
                let outcome = unbegun_outcome(ending, suspended, &live, observer.as_ref());
                return self.conclude(&live, outcome, slot).await;
            }
        };
        // A run counts as resumed only now: while it waits for its agents, it is not.
        if is_resumed {
            self.record_resumption(&live);
        }

        let runtime = Arc::clone(self.app().runtime());
        let submission = Submission {
            problem,
            plan: live.spec.plan.clone(),
            sampling: live.spec.sampling,
            observer,
            suspended,
        };
        let mut handle = request.in_scope(|| runtime.submit_with(agents.clone(), submission));
        // The request ends long before its run.
        drop(request);
        live.standstill.begin(Moment::now(self.store.now_ms()));
        live.set_canceller(handle.canceller());

        // What was decided since the journal was read for this start.
        self.deliver(&live).await;

        let outcome = loop {
            tokio::select! {
                outcome = handle.outcome() => break outcome,
                () = live.stream.refused() => {
                    // Whatever it computes from now on would not be recorded.
                    live.cancel();
                    break handle.outcome().await;
                }
                () = live.waits.changed() => {
                    self.write_waits(&live).await;
                }
                () = &mut deadline => {
                    handle.canceller().end(Ending::DeadlinePassed);
                    break handle.outcome().await;
                }
            }
        };
        live.standstill.end();
        // The next run does not wait for the end of this one to be durable.
        drop(place);
        if outcome.is_none() && live.waits.is_suspended() {
            return self.park(&live, slot).await;
        }

        // No outcome means that the process is ending: the next one resumes the run.
        let Some(outcome) = outcome else { return };
        self.conclude(&live, outcome, slot).await;

        if let Some(unused) = Arc::into_inner(agents) {
            // Dropping the agents may wait for their processes to end.
            drop(tokio::task::spawn_blocking(move || drop(unused)));
        }
    }

    /// What the list of steps that wait says about the run.
    fn shown(&self, live: &LiveRun) -> Shown {
        Shown {
            task: live.spec.task.clone(),
            instance: live.spec.instance.clone(),
            policy: live.spec.approval.clone(),
            deadline_ms: live.spec.queueing.deadline_ms,
            clock: self.store.clock(),
        }
    }

    /// Records that this process continues the run.
    pub(super) fn record_resumption(&self, live: &LiveRun) {
        let resumed = live.resumed.fetch_add(1, Ordering::Relaxed) + 1;
        self.observers.metrics().resumed();

        let events = live.stream.committed().head.seq;
        let judge = live.spec.judge();
        let basis = live.spec.plan.basis;
        live.stream.append(&TraceLine::Resumed { resumed, basis, judge: &judge });
        // Nothing waits for the row; it is committed with the event.
        drop(live.stream.update(open_row(live, Status::Running, self.store.now_ms())));
        tracing::info!(run = %live.stream.id, events, "run resumed");
    }

    /// Like [`Execution::conclude`], on the thread that executes the runs.
    pub(super) fn conclude_soon(
        self: &Arc<Self>,
        live: &Arc<LiveRun>,
        outcome: Outcome,
        slot: RunSlot,
    ) {
        let (execution, live) = (Arc::clone(self), Arc::clone(live));
        self.arbiter.spawn(async move { execution.conclude(&live, outcome, slot).await });
    }

    /// The row of a run at its end, with the messages about it.
    async fn end_of(&self, live: &LiveRun, outcome: Outcome) -> RowUpdate {
        let now_ms = self.store.now_ms();
        let outcome = name_late_begin(outcome, live);
        let (row, status, result) = final_row(live, outcome, now_ms);
        let messages = self.messages_of_end(live, status, &result, now_ms).await;
        RowUpdate { messages, ..row }
    }

    /// Records a run's result, and forgets the run when that is durable. A run whose events the
    /// journal refused fails, with the reason.
    pub(super) async fn conclude(&self, live: &Arc<LiveRun>, outcome: Outcome, slot: RunSlot) {
        // Another node executes the run and records its end.
        if live.stream.is_abandoned() {
            return self.live.forget(live);
        }

        let refused = |reason: &str| format!("the journal refused the run's events: {reason}");
        let outcome = match live.stream.reopen() {
            Some(reason) => failed_outcome(refused(&reason), live),
            None => outcome,
        };
        let row = self.end_of(live, outcome).await;

        // A client that sees the end must have room for its next run.
        drop(slot);
        let mut written = live.stream.update(row).await;

        if written.is_err()
            && let Some(reason) = live.stream.reopen()
        {
            // The run ends without an event, because that may be what the journal refuses.
            let outcome = Outcome::without_answer(Ending::AgentFailed(refused(&reason)));
            let row = self.end_of(live, outcome).await;
            written = live.stream.update(row).await;

            if written.is_err() && live.stream.reopen().is_some() {
                tracing::error!(run = %live.stream.id, "the run's end cannot be recorded: the next process continues with it");
                self.live.forget(live);
            }
        }

        // Unwritten means that the process is ending, or that another node has the run. The next
        // executor of the run replays the same events to the same end.
        if written.is_ok() || live.stream.is_abandoned() {
            self.live.forget(live);
        }
    }
}

/// Ends a run that cannot continue.
pub fn failed_outcome(reason: String, live: &LiveRun) -> Outcome {
    let ending = Ending::AgentFailed(reason);
    live.stream.append(&TraceLine::Stopped {
        ending: &ending,
        elapsed_ms: live.stream.committed().progress.elapsed_ms,
    });
    Outcome::without_answer(ending)
}

/// Ends a run that waits for its turn, with what is committed.
fn unbegun_outcome(
    ending: Ending,
    suspended: Option<Box<SuspendedRun>>,
    live: &LiveRun,
    observer: &dyn Observer,
) -> Outcome {
    let elapsed_ms = live.stream.uncommitted_progress().elapsed_ms;
    observer.observe(&Event::Stopped { ending: &ending, elapsed_ms });

    // No cell has the run, so its protocol is stopped here.
    let mut effects = Vec::new();
    if let Some(suspended) = suspended {
        let mut run = suspended.run;
        run.stop(ending.clone(), &mut effects);
    }

    let mut outcome = Outcome::without_answer(ending);
    for effect in effects {
        match effect {
            Effect::Voted { round, winner, agreement } => {
                observer.observe(&Event::Voted { round, winner: winner.as_ref(), agreement });
            }
            Effect::Finish(finished) => outcome = *finished,
            _ => {}
        }
    }
    observer.observe(&Event::Finished(&outcome));
    outcome
}
