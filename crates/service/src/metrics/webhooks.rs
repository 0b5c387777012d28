//! Counts of messages to webhooks, by the webhook's name.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::Webhook;
use super::{Metrics, level};
use prime_journal::OutboxCount;

#[derive(Default)]
pub(super) struct Webhooks {
    delivered: Family<Webhook, Counter>,
    failed: Family<Webhook, Counter>,
    given_up: Family<Webhook, Counter>,
    waiting: Family<Webhook, Gauge>,
}

fn label(webhook: &str) -> Webhook {
    Webhook { webhook: webhook.to_owned() }
}

impl Webhooks {
    pub(super) fn register(&self, of: &mut Registry) {
        let help = "Messages that a webhook's receiver has taken";
        of.register("prime_webhook_delivered", help, self.delivered.clone());
        let help = "Attempts to send a message that failed";
        of.register("prime_webhook_failed_attempts", help, self.failed.clone());
        let help = "Messages that are not sent again after their last attempt";
        of.register("prime_webhook_given_up", help, self.given_up.clone());
        let help = "Messages that wait for their delivery, of all nodes";
        of.register("prime_webhook_waiting", help, self.waiting.clone());
    }
}

impl Metrics {
    /// Creates the series of these webhooks, so that the first message counts as an increase.
    pub fn declare_webhooks<'n>(&self, names: impl IntoIterator<Item = &'n str>) {
        for label in names.into_iter().map(label) {
            let of = &self.webhooks;
            for counter in [&of.delivered, &of.failed, &of.given_up] {
                drop(counter.get_or_create(&label));
            }
            drop(of.waiting.get_or_create(&label));
        }
    }

    /// Counts a message that was delivered.
    pub fn webhook_delivered(&self, webhook: &str) {
        self.webhooks.delivered.get_or_create(&label(webhook)).inc();
    }

    /// Counts an attempt that failed.
    pub fn webhook_failed(&self, webhook: &str) {
        self.webhooks.failed.get_or_create(&label(webhook)).inc();
    }

    /// Counts a message that was given up.
    pub fn webhook_given_up(&self, webhook: &str) {
        self.webhooks.given_up.get_or_create(&label(webhook)).inc();
    }

    /// Sets how many messages wait, also for webhooks that are no longer configured.
    pub fn webhooks_waiting(&self, counts: &[OutboxCount]) {
        self.webhooks.waiting.clear();
        for count in counts {
            let label = label(&count.endpoint);
            self.webhooks.waiting.get_or_create(&label).set(level(count.waiting));
        }
    }
}
