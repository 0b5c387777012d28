//! Hints that nodes send each other at once, by LISTEN and NOTIFY on a connection of their own. A
//! notification may be lost, so everything in it is also found by polling.
//!
//! They are not sent in the commit's transaction, because PostgreSQL serialises commits that
//! notify.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_postgres::{AsyncMessage, Statement};

use super::notice::Notice;
use super::this_node::ThisNode;
use super::url::Target;

/// Pause after each round of NOTIFY.
const PACE: Duration = Duration::from_millis(20);
/// Pause between two attempts to connect.
const RETRY: Duration = Duration::from_secs(1);
/// Time limit of a connection attempt, and of a statement.
const ATTEMPT_MAX: Duration = Duration::from_secs(10);
/// Longest payload. PostgreSQL's limit is 8,000.
const PAYLOAD_BYTES: usize = 7_000;

/// One hint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum News {
    /// There are free runs.
    Free,
    /// The end of this run is requested.
    Cancel(String),
    /// This run has new events.
    Changed(String),
}

impl News {
    /// `None` for ids that are not plain, which only tests have.
    fn word(&self) -> Option<String> {
        let is_plain =
            |id: &String| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic());
        match self {
            Self::Free => Some("f".to_owned()),
            Self::Cancel(id) => is_plain(id).then(|| format!("c{id}")),
            Self::Changed(id) => is_plain(id).then(|| format!("e{id}")),
        }
    }

    fn of_word(word: &str) -> Option<Self> {
        match word.split_at_checked(1)? {
            ("f", "") => Some(Self::Free),
            ("c", id) if !id.is_empty() => Some(Self::Cancel(id.to_owned())),
            ("e", id) if !id.is_empty() => Some(Self::Changed(id.to_owned())),
            // A hint of a later version.
            _ => None,
        }
    }
}

/// Joins hints to payloads, as few as they fit into.
fn payloads(news: &BTreeSet<News>) -> Vec<String> {
    let mut payloads = Vec::new();
    let mut payload = String::new();
    for word in news.iter().filter_map(News::word) {
        if !payload.is_empty() && payload.len() + 1 + word.len() > PAYLOAD_BYTES {
            payloads.push(std::mem::take(&mut payload));
        }
        if !payload.is_empty() {
            payload.push(' ');
        }

        payload += &word;
    }

    if !payload.is_empty() {
        payloads.push(payload);
    }
    payloads
}

/// The hints that are to be sent.
#[derive(Default)]
pub(super) struct Bulletin {
    pending: Mutex<BTreeSet<News>>,
    added: Notify,
}

impl Bulletin {
    pub(super) fn add(&self, news: impl IntoIterator<Item = News>) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).extend(news);
        self.added.notify_one();
    }

    fn take(&self) -> BTreeSet<News> {
        std::mem::take(&mut self.pending.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sends and listens, for as long as the future is polled.
    pub(super) async fn keep(&self, target: &Target, this: &ThisNode) {
        loop {
            if let Ok(Ok((client, connection))) =
                timeout(ATTEMPT_MAX, target.config.connect(target.tls.clone())).await
            {
                tokio::select! {
                    () = listen(connection, this) => {}
                    () = self.tell(&client) => {}
                }
            }

            sleep(RETRY).await;
        }
    }

    /// Sends hints as they are added, until a statement fails.
    async fn tell(&self, client: &tokio_postgres::Client) {
        let Ok(Some((channel, notify))) = timeout(ATTEMPT_MAX, begin(client)).await else { return };
        loop {
            self.added.notified().await;
            for payload in payloads(&self.take()) {
                let sent =
                    timeout(ATTEMPT_MAX, client.execute(&notify, &[&channel, &payload])).await;
                if !matches!(sent, Ok(Ok(_))) {
                    return;
                }
            }
            // What is added meanwhile goes out with the next payload.
            sleep(PACE).await;
        }
    }
}

/// Listens on the schema's channel, and returns its name and the statement that notifies.
async fn begin(client: &tokio_postgres::Client) -> Option<(String, Statement)> {
    let channel = "SELECT 'prime_agents_' || md5(coalesce(current_schema(), ''))";
    let channel: String = client.query_one(channel, &[]).await.ok()?.get(0);
    // The hints' content is in the tables already, so there is no need to wait for the disk again.
    client.batch_execute(&format!("SET synchronous_commit = off; LISTEN {channel}")).await.ok()?;
    let notify = client.prepare("SELECT pg_notify($1, $2)").await.ok()?;
    Some((channel, notify))
}

/// Drives the connection and passes on what arrives, until the connection ends.
async fn listen<S, T>(mut connection: tokio_postgres::Connection<S, T>, this: &ThisNode)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        let AsyncMessage::Notification(notification) = message else { continue };
        for news in notification.payload().split(' ').filter_map(News::of_word) {
            match news {
                News::Free => {
                    this.look_for_runs();
                }
                News::Cancel(run) => this.notify(Notice::Cancel(run)),
                News::Changed(run) => this.notify(Notice::Changed(run)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_stay_below_the_limit_and_say_everything() {
        let runs = (0..1_000).map(|at| News::Changed(format!("run_{at:027}")));
        let news: BTreeSet<News> =
            runs.chain([News::Free, News::Cancel("run_1".to_owned())]).collect();

        let payloads = payloads(&news);
        assert!(payloads.len() > 1 && payloads.iter().all(|payload| payload.len() < 8_000));

        let read: BTreeSet<News> = payloads
            .iter()
            .flat_map(|payload| payload.split(' ').map(|word| News::of_word(word).unwrap()))
            .collect();
        assert_eq!(read, news);

        for word in ["", "x", "xrun", "c", "e", "é"] {
            assert_eq!(News::of_word(word), None, "{word:?}");
        }
        assert_eq!(News::Changed("a b".to_owned()).word(), None, "it would be two words");
    }
}
