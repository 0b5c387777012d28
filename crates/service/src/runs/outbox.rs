//! What the journal's outbox holds for each webhook, for people; and what was given up, sent again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::error::RunError;
use super::record::timestamp;
use super::service::Runs;
use prime_journal::{AttemptFailure, Journal, JournalError, ListedMessage, OutboxQuery};

/// A webhook, and the messages that the journal holds for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookReport {
    /// Its name in the configuration.
    pub name: String,
    /// The host of its URL; null if it is configured no longer.
    pub host: Option<String>,
    /// The events that it gets, such as `run.ended`.
    pub events: Vec<String>,
    /// Messages that wait, those under way included.
    pub waiting: u64,
    /// Messages that were given up.
    pub given_up: u64,
    /// When the oldest message that waits was written; null if none waits.
    #[schema(format = DateTime)]
    pub oldest_waiting_at: Option<String>,
    /// The last attempt that failed, of the messages that are still here; null if there is none.
    pub last_failure: Option<FailedAttempt>,
}

/// An attempt that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedAttempt {
    /// When.
    #[schema(format = DateTime)]
    pub failed_at: String,
    /// Why: the status and the beginning of the answer, or what became of the connection.
    pub reason: String,
}

/// The state of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    /// It waits for its first or its next attempt, or is under way.
    Waiting,
    /// It is not sent again, unless somebody asks for it.
    GivenUp,
}

/// A message of the outbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookMessage {
    /// The id, which the receiver gets as `webhook-id`.
    pub id: String,
    /// The run that it is about.
    pub run: String,
    /// What it tells, such as `run.ended`.
    pub r#type: String,
    /// When that happened.
    #[schema(format = DateTime)]
    pub happened_at: Option<String>,
    /// Its state.
    pub state: MessageState,
    /// Number of attempts that failed, since it was last sent again.
    pub failed_attempts: u32,
    /// The last attempt that failed; null if none has.
    pub last_failure: Option<FailedAttempt>,
}

impl From<AttemptFailure> for FailedAttempt {
    fn from(failure: AttemptFailure) -> Self {
        Self { failed_at: timestamp(failure.failed_ms), reason: failure.reason }
    }
}

/// The text after `"NAME":"` in the beginning of a message, which this program wrote.
fn field(body: &str, name: &str) -> Option<String> {
    let (_, rest) = body.split_once(&format!("\"{name}\":\""))?;
    rest.split_once('"').map(|(value, _)| value.to_owned())
}

impl WebhookMessage {
    fn new(message: ListedMessage, state: MessageState) -> Self {
        Self {
            r#type: field(&message.body, "type").unwrap_or_default(),
            happened_at: field(&message.body, "timestamp"),
            id: message.id,
            run: message.run,
            state,
            failed_attempts: message.failed,
            last_failure: message.failure.map(FailedAttempt::from),
        }
    }
}

/// The oldest message to a receiver that waits, and its last failure.
fn details(
    journal: &dyn Journal,
    endpoint: &str,
) -> Result<(Option<ListedMessage>, Option<AttemptFailure>), JournalError> {
    let oldest =
        OutboxQuery { endpoint: endpoint.to_owned(), is_given_up: false, after: 0, limit: 1 };
    let outbox = journal.outbox();
    Ok((outbox.listed(&oldest)?.into_iter().next(), outbox.last_failure(endpoint)?))
}

impl Runs {
    /// The webhooks that are configured or have messages, by name.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn webhooks(&self) -> Result<Vec<WebhookReport>, RunError> {
        let mut counts = self.messages().await?;
        counts.sort_by(|a, b| a.endpoint.cmp(&b.endpoint));
        let configured = Arc::clone(&self.execution().webhooks().borrow());

        let mut reports = Vec::with_capacity(counts.len());
        for count in counts {
            let name = count.endpoint;
            let of = name.clone();
            let (oldest, last) = self.store().read(move |journal| details(journal, &of)).await?;
            let endpoint = configured.endpoints().iter().find(|known| known.name() == name);
            reports.push(WebhookReport {
                host: endpoint.map(|endpoint| endpoint.host().to_owned()),
                events: endpoint.map_or_else(Vec::new, |endpoint| {
                    endpoint.events().iter().map(|event| event.name().to_owned()).collect()
                }),
                name,
                waiting: count.waiting,
                given_up: count.given_up,
                oldest_waiting_at: oldest.and_then(|oldest| field(&oldest.body, "timestamp")),
                last_failure: last.map(FailedAttempt::from),
            });
        }
        Ok(reports)
    }

    /// Returns whether a webhook of this name is configured, or has messages.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn knows_webhook(&self, name: &str) -> Result<bool, RunError> {
        Ok(self.messages().await?.iter().any(|count| count.endpoint == name))
    }

    /// A page of the messages to a webhook, oldest first, and where the next one begins.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn webhook_messages(
        &self,
        name: &str,
        state: MessageState,
        after: u64,
        limit: u32,
    ) -> Result<(Vec<WebhookMessage>, Option<u64>), RunError> {
        let query = OutboxQuery {
            endpoint: name.to_owned(),
            is_given_up: state == MessageState::GivenUp,
            after,
            limit: limit.saturating_add(1),
        };
        let mut listed = self.store().read(move |journal| journal.outbox().listed(&query)).await?;
        let has_more = listed.len() > limit as usize;
        listed.truncate(limit as usize);
        let next = listed.last().filter(|_| has_more).map(|message| message.number);
        let messages = listed.into_iter().map(|message| WebhookMessage::new(message, state));
        Ok((messages.collect(), next))
    }

    /// Sends messages to a webhook that were given up again, with all attempts: all of them, or
    /// those with these ids. Returns their number.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn resend_messages(
        &self,
        name: &str,
        ids: Option<Vec<String>>,
    ) -> Result<u64, RunError> {
        let of = name.to_owned();
        let resend = move |journal: &dyn Journal| journal.outbox().resend(&of, ids.as_deref());
        let messages = self.store().read(resend).await?;
        if messages > 0 {
            tracing::info!(webhook = name, messages, "messages that were given up are sent again");
            self.store().tell_news();
        }
        Ok(messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_and_time_are_read_from_a_message_that_was_cut_off() {
        let body = r#"{"type":"run.ended","timestamp":"2026-02-03T04:05:06.123Z","data":{"run":"r"#;
        let message = ListedMessage {
            number: 7,
            id: "msg_1".to_owned(),
            run: "run_1".to_owned(),
            body: body.to_owned(),
            failed: 2,
            failure: Some(AttemptFailure { failed_ms: 1_770_091_506_123, reason: "no".to_owned() }),
        };
        let shown = WebhookMessage::new(message, MessageState::GivenUp);
        assert_eq!(shown.r#type, "run.ended");
        assert_eq!(shown.happened_at.as_deref(), Some("2026-02-03T04:05:06.123Z"));
        assert_eq!(shown.last_failure.unwrap().failed_at, "2026-02-03T04:05:06.123Z");
        assert_eq!(field(&body[..12], "type"), None);
    }
}
