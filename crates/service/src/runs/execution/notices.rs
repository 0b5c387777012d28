//! The messages to webhooks about a run. They are written in the commit of what they tell.

use std::sync::Arc;

use tokio::time::Instant;

use super::Execution;
use super::payload::{About, WaitsFor, budget_spent, ended, flagged, nearly_spent, stuck, waiting};
use crate::runs::labels::Labels;
use crate::runs::live::live_run::LiveRun;
use crate::runs::live::standstill::Moment;
use crate::runs::progress::Progress;
use crate::runs::record::{Status, timestamp};
use crate::runs::relabel::read_labels;
use crate::webhooks::Webhooks;
use prime_journal::Message;
use prime_report::RunResult;
use prime_settings::WebhookEvent;

fn about<'r>(live: &'r LiveRun, labels: &'r Labels) -> About<'r> {
    About {
        run: &live.stream.id,
        owner: &live.owner,
        task: &live.spec.task,
        instance: &live.spec.instance,
        labels,
    }
}

/// The id of a message: what a repetition of the same event has, too.
fn id(live: &LiveRun, event: &str) -> String {
    format!("msg_{}_{event}", live.stream.id.trim_start_matches("run_"))
}

/// The messages about what a commit makes durable while the run is open.
fn of_commit(
    webhooks: &Webhooks,
    live: &LiveRun,
    now_ms: u64,
    new_flags: &[u64],
    (before, after): (&Progress, &Progress),
) -> Vec<Message> {
    let mut messages = Vec::new();
    let whose = (live.owner.as_str(), live.spec.task.as_str());
    let about = about(live, &live.spec.labels);

    if let Some(first) = new_flags.first() {
        let id = || id(live, &format!("flagged_{first}"));
        let body = || flagged(about, new_flags, now_ms);
        messages.extend(webhooks.messages(WebhookEvent::RunFlagged, whose, id, body));
    }

    let asked = before.approvals.asked + 1..=after.approvals.asked;
    if let Some(first) = asked.clone().next() {
        let numbers: Vec<u32> = asked.collect();
        let id = || id(live, &format!("waiting_{first}"));
        let body = || waiting(about, &numbers, now_ms);
        messages.extend(webhooks.messages(WebhookEvent::RunWaiting, whose, id, body));
    }

    let spent = |progress: &Progress| {
        let Progress { proposals, usage, elapsed_ms, .. } = *progress;
        nearly_spent(&live.spec.plan.budget, proposals, usage, elapsed_ms)
    };
    let near = spent(after);
    if !near.is_empty() && spent(before).is_empty() {
        let (id, body) = (|| id(live, "budget"), || budget_spent(about, &near, now_ms));
        messages.extend(webhooks.messages(WebhookEvent::RunBudget, whose, id, body));
    }
    messages
}

impl Execution {
    /// Lets the commits of a run's events write messages about them.
    pub(super) fn notify_of_commits(&self, live: &Arc<LiveRun>) {
        let (webhooks, store) = (Arc::clone(&self.webhooks), Arc::clone(&self.store));
        // The run owns its stream, which owns this.
        let run = Arc::downgrade(live);
        live.stream.notify_with(Box::new(move |new_flags, before, after| {
            let Some(run) = run.upgrade() else { return Vec::new() };
            let now_ms = store.now_ms();
            run.standstill.moved(Moment::now(now_ms));
            let webhooks = Arc::clone(&webhooks.borrow());
            if webhooks.endpoints().is_empty() {
                return Vec::new();
            }
            of_commit(&webhooks, &run, now_ms, new_flags, (before, after))
        }));
    }

    /// The runs of this node that have told nothing new for `server.stuck_ms`, with the time since
    /// which. None while the journal cannot be written, for which all runs wait.
    pub(in crate::runs) fn stuck(&self) -> Vec<(Arc<LiveRun>, u64)> {
        if self.store.failure().is_some() {
            return Vec::new();
        }
        self.live.stuck(Instant::now(), self.app().settings().server.stuck_ms)
    }

    /// Writes a message about each run that has become stuck.
    pub(in crate::runs) fn tell_standstills(&self) {
        for (live, since_ms) in self.stuck() {
            let events = live.stream.committed().head.seq;
            if !live.standstill.tell(events) {
                continue;
            }
            let agents = &live.context.agents;
            let waits_for: Vec<WaitsFor<'_>> = live
                .writings
                .waits_for()
                .into_iter()
                .map(|(role, turns)| WaitsFor { role, agent: agents.of(role), turns })
                .collect();
            let (run, since) = (&live.stream.id, timestamp(since_ms));
            tracing::warn!(%run, since, events, ?waits_for, "a run is stuck");

            let webhooks = Arc::clone(&self.webhooks.borrow());
            let whose = (live.owner.as_str(), live.spec.task.as_str());
            let about = about(&live, &live.spec.labels);
            let body = || stuck(about, since_ms, events, &waits_for, self.store.now_ms());
            let id = || id(&live, &format!("stuck_{events}"));
            let messages = webhooks.messages(WebhookEvent::RunStuck, whose, id, body);
            if !messages.is_empty() {
                live.stream.tell(messages);
            }
        }
    }

    /// The messages that a run ended.
    pub(super) async fn messages_of_end(
        &self,
        live: &LiveRun,
        status: Status,
        result: &RunResult,
        now_ms: u64,
    ) -> Vec<Message> {
        let webhooks = Arc::clone(&self.webhooks.borrow());
        if webhooks.endpoints().is_empty() {
            return Vec::new();
        }

        let ids = [live.stream.id.clone()];
        let relabelled = self.store.read(move |journal| journal.labels().relabelled(&ids)).await;
        let given = relabelled.ok().and_then(|labels| read_labels(labels.values().next()?).ok());
        let labels = given.as_ref().unwrap_or(&live.spec.labels);

        let whose = (live.owner.as_str(), live.spec.task.as_str());
        let body = || ended(about(live, labels), status, result, now_ms);
        webhooks.messages(WebhookEvent::RunEnded, whose, || id(live, "ended"), body)
    }
}
