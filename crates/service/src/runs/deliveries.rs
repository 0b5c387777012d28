//! Sends the messages that wait in the journal's outbox to the configured webhooks: at least once,
//! in order for each run and receiver. A receiver that hangs holds up no other.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::error::RunError;
use super::service::Runs;
use crate::webhooks::{Answer, Endpoint, Webhooks};
use prime_journal::{Claimed, Claims, Journal, OutboxCount, Settlement};

/// Most messages that one receiver gets at the same time.
const AT_ONCE: usize = 16;
/// How much longer than an attempt its claim lasts.
const LEASE_BEYOND: Duration = Duration::from_secs(30);
/// Longest wait before a shared journal is asked for the messages of other nodes.
const POLL: Duration = Duration::from_secs(5);
/// Longest wait of a node that is alone.
const POLL_ALONE: Duration = Duration::from_mins(10);
/// Pause after a failure of the journal.
const FAILED: Duration = Duration::from_secs(5);

/// An attempt that has ended, and is not recorded yet.
struct Attempt {
    claimed: Claimed,
    settlement: Settlement,
    /// Free once it is recorded.
    slot: OwnedSemaphorePermit,
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Runs {
    /// Sends messages from now on to these webhooks, and writes messages for them.
    pub fn use_webhooks(&self, webhooks: Webhooks) {
        self.metrics()
            .declare_webhooks(webhooks.endpoints().iter().map(|endpoint| endpoint.name()));
        self.execution().webhooks().send_if_modified(|current| {
            let is_other = !current.is_same(&webhooks);
            if is_other {
                *current = Arc::new(webhooks);
            }
            is_other
        });
    }

    /// Returns whether there is a webhook.
    pub fn has_webhooks(&self) -> bool {
        !self.execution().webhooks().borrow().endpoints().is_empty()
    }

    /// The number of messages to each webhook that is configured, or has some.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn messages(&self) -> Result<Vec<OutboxCount>, RunError> {
        let mut counts = self.store().read(|journal| journal.outbox().counts()).await?;
        let webhooks = Arc::clone(&self.execution().webhooks().borrow());
        for endpoint in webhooks.endpoints() {
            let name = endpoint.name();
            if !counts.iter().any(|count| count.endpoint == name) {
                counts.push(OutboxCount { endpoint: name.to_owned(), ..OutboxCount::default() });
            }
        }
        Ok(counts)
    }

    /// Sends what waits, until the daemon drains. Attempts under way are finished.
    pub async fn run_deliveries(self: Arc<Self>) {
        let mut drained = self.drained();
        let mut configured = self.execution().webhooks().subscribe();
        loop {
            let webhooks = Arc::clone(&configured.borrow_and_update());
            let all = webhooks
                .endpoints()
                .iter()
                .map(|endpoint| Arc::clone(&self).deliver_to(Arc::clone(endpoint)));
            let all = futures::future::join_all(all);
            tokio::select! {
                _ = drained.wait_for(|drained| *drained) => return,
                changed = configured.changed() => if changed.is_err() {
                    return;
                },
                // Without a receiver there is nothing to do until a reload brings one.
                never = async { drop(all.await); std::future::pending::<()>().await } => never,
            }
        }
    }

    async fn deliver_to(self: Arc<Self>, endpoint: Arc<Endpoint>) {
        let slots = Arc::new(Semaphore::new(AT_ONCE));
        let (attempts, ended) = mpsc::unbounded_channel();
        actix::spawn(Arc::clone(&self).settle(Arc::clone(&endpoint), ended));
        let mut news = self.store().news();
        loop {
            // What comes after this wakes the wait below.
            news.borrow_and_update();
            let Ok(first) = Arc::clone(&slots).acquire_owned().await else { return };

            match self.claim(&endpoint, 1 + slots.available_permits()).await {
                Ok(Claims { claimed, next_ms }) if claimed.is_empty() => {
                    drop(first);
                    let poll = if self.is_shared() { POLL } else { POLL_ALONE };
                    let due = next_ms.map_or(poll, Duration::from_millis);
                    // A closed channel means that the daemon ends.
                    drop(tokio::time::timeout(due.min(poll), news.changed()).await);
                }
                Ok(Claims { claimed, .. }) => {
                    let mut first = Some(first);
                    for message in claimed {
                        let slot =
                            first.take().map_or_else(|| Arc::clone(&slots).try_acquire_owned(), Ok);
                        // As many are claimed as there are slots.
                        let Ok(slot) = slot else { break };
                        actix::spawn(Arc::clone(&self).attempt(
                            Arc::clone(&endpoint),
                            message,
                            slot,
                            attempts.clone(),
                        ));
                    }
                }
                Err(error) => {
                    tracing::warn!(webhook = endpoint.name(), %error, "messages wait for the journal");
                    tokio::time::sleep(FAILED).await;
                }
            }
        }
    }

    async fn claim(&self, endpoint: &Endpoint, limit: usize) -> Result<Claims, RunError> {
        let (name, now_ms) = (endpoint.name().to_owned(), self.store().now_ms());
        let lease_ms = millis(endpoint.timeout() + LEASE_BEYOND);
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        self.store()
            .read(move |journal| journal.outbox().claim(&name, limit, lease_ms, now_ms))
            .await
    }

    async fn attempt(
        self: Arc<Self>,
        endpoint: Arc<Endpoint>,
        claimed: Claimed,
        slot: OwnedSemaphorePermit,
        ended: mpsc::UnboundedSender<Attempt>,
    ) {
        let answer = endpoint.send(claimed.message.clone(), self.store().now_ms()).await;
        let settlement = self.judge(&endpoint, &claimed, answer);
        // The receiver outlives all attempts, unless the daemon ends.
        drop(ended.send(Attempt { claimed, settlement, slot }));
    }

    /// Records how attempts ended: all that ended during one commit in the next, because runs wait
    /// for each.
    async fn settle(
        self: Arc<Self>,
        endpoint: Arc<Endpoint>,
        mut ended: mpsc::UnboundedReceiver<Attempt>,
    ) {
        let mut attempts = Vec::new();
        while ended.recv_many(&mut attempts, AT_ONCE).await > 0 {
            let (settled, slots): (Vec<_>, Vec<_>) = attempts
                .drain(..)
                .map(|Attempt { claimed, settlement, slot }| ((claimed, settlement), slot))
                .unzip();

            let now_ms = self.store().now_ms();
            let settle = move |journal: &dyn Journal| journal.outbox().settle(&settled, now_ms);
            if let Err(error) = self.store().read(settle).await {
                // The claims end by themselves: the messages are sent again, under the same ids.
                let webhook = endpoint.name();
                tracing::warn!(webhook, %error, "attempts cannot be recorded");
            }
            drop(slots);
            // The next message of a run may be due now.
            self.store().tell_news();
        }
    }

    /// What follows from an attempt. Counts and logs it.
    fn judge(&self, endpoint: &Endpoint, claimed: &Claimed, answer: Answer) -> Settlement {
        let (webhook, metrics) = (endpoint.name(), self.metrics());
        let (run, id) = (claimed.run.as_str(), claimed.message.id.as_str());
        let attempt = claimed.failed.saturating_add(1);

        let (reason, pause) = match answer {
            Answer::Delivered => {
                metrics.webhook_delivered(webhook);
                tracing::debug!(webhook, run, id, attempt, "a message was delivered");
                return Settlement::Delivered;
            }
            Answer::Gone => ("status 410: the receiver wants no more".to_owned(), None),
            Answer::Failed(reason) => (reason, endpoint.pause(claimed.failed)),
        };

        metrics.webhook_failed(webhook);
        if let Some(pause) = pause {
            let seconds = pause.as_secs();
            tracing::warn!(
                webhook,
                run,
                id,
                attempt,
                reason,
                seconds,
                "a message is sent again later"
            );
            return Settlement::Retry { after_ms: millis(pause), reason };
        }
        metrics.webhook_given_up(webhook);
        tracing::error!(webhook, run, id, attempt, reason, "a message was given up");
        Settlement::GivenUp { reason }
    }
}
