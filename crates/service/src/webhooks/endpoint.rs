//! The receivers, and one attempt to send a message to one of them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, StatusCode, Url};

use super::signature::signature;
use super::{WebhookError, schedule};
use prime_http_client::{PublicOnly, builder, is_public, root_cause};
use prime_journal::Message;
use prime_printable::printable_line;
use prime_settings::{Webhook, WebhookEvent, WebhookSecret};

/// Most bytes of a receiver's answer that are read, and shown.
const ANSWER_BYTES_MAX: usize = 512;

/// A receiver of events.
pub struct Endpoint {
    name: String,
    settings: Webhook,
    url: Url,
    key: Vec<u8>,
    client: Client,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The receiver has the message.
    Delivered,
    /// It wants no more messages: status 410.
    Gone,
    /// Why it failed.
    Failed(String),
}

/// The host of a URL, if it is an address.
fn address(url: &Url) -> Option<IpAddr> {
    // An IPv6 address is in brackets.
    url.host_str()?.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

impl Endpoint {
    fn new(
        name: &str,
        settings: &Webhook,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, WebhookError> {
        let wrong = |key: &'static str, reason: String| WebhookError::Value {
            name: name.to_owned(),
            key,
            reason,
        };
        let key = match &settings.secret_env {
            None => settings.secret.key().map_err(|reason| wrong("secret", reason))?,
            Some(variable) => {
                let failed = |reason: String| WebhookError::Secret {
                    name: name.to_owned(),
                    variable: variable.clone(),
                    reason,
                };
                let secret = lookup(variable).ok_or_else(|| failed("is not set".to_owned()))?;
                WebhookSecret::new(secret.trim()).key().map_err(failed)?
            }
        };

        let url = Url::parse(&settings.url)
            .map_err(|error| wrong("url", format!("is not a URL: {error}")))?;
        // The client resolves names only, so an address is checked here.
        if let Some(private) = address(&url).filter(|address| !is_public(*address))
            && !settings.allow_private
        {
            let reason = format!(
                "has the address {private}, which is not public: set webhooks.{name}.allow_private \
                 = true if messages are to go there"
            );
            return Err(wrong("url", reason));
        }

        let timeout = Duration::from_millis(settings.timeout_ms);
        let mut client = builder(url.scheme() == "https").timeout(timeout);
        if !settings.allow_private {
            client = client.dns_resolver(Arc::new(PublicOnly));
        }
        let client = client.build().map_err(|error| WebhookError::Client {
            name: name.to_owned(),
            reason: root_cause(&error),
        })?;
        Ok(Self { name: name.to_owned(), settings: settings.clone(), url, key, client })
    }

    /// Its name in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The host that it is at.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// The events that it gets.
    pub fn events(&self) -> &[WebhookEvent] {
        &self.settings.events
    }

    /// The longest time of an attempt.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.settings.timeout_ms)
    }

    /// Returns whether it gets this event of the runs of this key and this task.
    fn wants(&self, event: WebhookEvent, owner: &str, task: &str) -> bool {
        let Webhook { events, key, task: only, .. } = &self.settings;
        events.contains(&event)
            && key.as_ref().is_none_or(|key| key == owner)
            && only.as_ref().is_none_or(|only| only == task)
    }

    /// The pause after an attempt that failed, after `failed` others; `None` after the last.
    pub fn pause(&self, failed: u32) -> Option<Duration> {
        schedule::pause(&self.settings.retry_ms, failed, rand::random())
    }

    /// Sends a message once. `now_ms` is the time of the attempt, in milliseconds since 1970.
    pub async fn send(&self, message: Message, now_ms: u64) -> Answer {
        let Message { id, body, .. } = message;
        let at_s = now_ms / 1_000;
        let request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", &id)
            .header("webhook-timestamp", at_s)
            .header("webhook-signature", signature(&self.key, &id, at_s, &body))
            .body(body);

        match request.send().await {
            Ok(response) if response.status().is_success() => Answer::Delivered,
            Ok(response) if response.status() == StatusCode::GONE => Answer::Gone,
            Ok(response) => Answer::Failed(refusal(response).await),
            Err(error) if error.is_timeout() => {
                Answer::Failed(format!("no answer within {} ms", self.settings.timeout_ms))
            }
            Err(error) => Answer::Failed(printable_line(&root_cause(&error)).into_owned()),
        }
    }
}

/// What a receiver says that did not take a message: its status, and the beginning of its answer.
async fn refusal(mut response: reqwest::Response) -> String {
    let status = response.status();
    let mut body = Vec::new();
    // The rest stays unread, however long it is.
    while body.len() < ANSWER_BYTES_MAX
        && let Ok(Some(part)) = response.chunk().await
    {
        body.extend_from_slice(&part[..part.len().min(ANSWER_BYTES_MAX - body.len())]);
    }
    let body = String::from_utf8_lossy(&body);
    let hint = if status.is_redirection() { " (redirects are not followed)" } else { "" };
    match body.trim() {
        "" => format!("status {}{hint}", status.as_u16()),
        said => format!("status {}{hint}: {}", status.as_u16(), printable_line(said)),
    }
}

/// The configured receivers.
#[derive(Default)]
pub struct Webhooks(Vec<Arc<Endpoint>>);

impl Webhooks {
    /// The receivers of a configuration. `lookup` reads the environment. Blocks while root
    /// certificates are read.
    ///
    /// # Errors
    /// The first that cannot be used.
    pub fn new(
        settings: &BTreeMap<String, Webhook>,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, WebhookError> {
        let endpoints = settings
            .iter()
            .map(|(name, webhook)| Ok(Arc::new(Endpoint::new(name, webhook, &lookup)?)));
        endpoints.collect::<Result<_, _>>().map(Self)
    }

    /// All receivers.
    pub fn endpoints(&self) -> &[Arc<Endpoint>] {
        &self.0
    }

    /// Returns whether these are the same receivers with the same options and secrets.
    pub fn is_same(&self, other: &Self) -> bool {
        let same = |(one, other): (&Arc<Endpoint>, &Arc<Endpoint>)| {
            (&one.name, &one.settings, &one.key) == (&other.name, &other.settings, &other.key)
        };
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }

    /// The messages about an event to the receivers that want it; the body is made for the first.
    pub fn messages(
        &self,
        event: WebhookEvent,
        (owner, task): (&str, &str),
        id: impl FnOnce() -> String,
        body: impl FnOnce() -> String,
    ) -> Vec<Message> {
        let mut wanting = self.0.iter().filter(|endpoint| endpoint.wants(event, owner, task));
        let Some(first) = wanting.next() else { return Vec::new() };
        let (id, body) = (id(), body());
        std::iter::once(first)
            .chain(wanting)
            .map(|endpoint| Message {
                id: id.clone(),
                endpoint: endpoint.name.clone(),
                body: body.clone(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn webhook(url: &str) -> Webhook {
        let secret = WebhookSecret::new(SECRET);
        Webhook { url: url.to_owned(), secret, ..Webhook::default() }
    }

    fn all(webhooks: &[(&str, Webhook)]) -> Result<Webhooks, String> {
        let named = webhooks.iter().map(|(name, webhook)| ((*name).to_owned(), webhook.clone()));
        let lookup = |name: &str| match name {
            "GOOD" => Some(format!("{SECRET}\n")),
            "BAD" => Some("MfKQ".to_owned()),
            _ => None,
        };
        Webhooks::new(&named.collect(), lookup).map_err(|error| error.to_string())
    }

    #[test]
    fn secrets_come_from_the_environment_and_are_never_quoted() {
        let of = |variable: &str| {
            let secret = (WebhookSecret::default(), Some(variable.to_owned()));
            let hook = Webhook { secret: secret.0, secret_env: secret.1, ..webhook("http://a/") };
            all(&[("ops", hook)]).map(drop)
        };
        assert_eq!(of("GOOD"), Ok(()));
        let unset = of("NONE").unwrap_err();
        assert!(unset.contains("webhooks.ops.secret_env = \"NONE\"") && unset.contains("not set"));
        let bad = of("BAD").unwrap_err();
        assert!(bad.contains("does not begin with `whsec_`") && !bad.contains("MfKQ"), "{bad}");
    }

    #[test]
    fn private_addresses_need_permission() {
        for url in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0177.0.0.1:8080/",
            "http://[::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://169.254.169.254/latest/meta-data",
            "http://[fd00::7]/",
        ] {
            let error = all(&[("ops", webhook(url))]).map(drop).unwrap_err();
            assert!(error.contains("not public") && error.contains("allow_private"), "{error}");
            let allowed = Webhook { allow_private: true, ..webhook(url) };
            assert!(all(&[("ops", allowed)]).is_ok(), "{url}");
        }
        assert!(all(&[("ops", webhook("http://8.8.8.8/"))]).is_ok());
    }

    #[test]
    fn events_go_to_those_who_want_them() {
        let of_key = Webhook { key: Some("ada".to_owned()), ..webhook("http://a/") };
        let of_task = Webhook { task: Some("n-queens".to_owned()), ..webhook("http://b/") };
        let ends = Webhook { events: vec![WebhookEvent::RunEnded], ..webhook("http://c/") };
        let hooks = all(&[("key", of_key), ("task", of_task), ("ends", ends)]).unwrap();
        let names = |event, owner, task| -> Vec<String> {
            let id = || "msg_1".to_owned();
            let messages = hooks.messages(event, (owner, task), id, || "{}".to_owned());
            assert!(messages.iter().all(|message| message.id == "msg_1"));
            messages.into_iter().map(|message| message.endpoint).collect()
        };
        assert_eq!(names(WebhookEvent::RunEnded, "ada", "n-queens"), ["ends", "key", "task"]);
        assert_eq!(names(WebhookEvent::RunFlagged, "bob", "n-queens"), ["task"]);
        assert_eq!(names(WebhookEvent::RunEnded, "", "problem"), ["ends"]);
        assert!(names(WebhookEvent::RunBudget, "bob", "problem").is_empty());
    }

    #[test]
    fn a_name_with_a_private_address_is_not_connected_to() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://localhost:{}/", listener.local_addr().unwrap().port());
        let hooks = all(&[("ops", webhook(&url))]).unwrap();
        let message =
            Message { id: "msg_1".to_owned(), endpoint: "ops".to_owned(), body: "{}".to_owned() };
        let answer =
            actix::System::new().block_on(hooks.endpoints()[0].send(message, 1_770_091_506_000));
        let Answer::Failed(reason) = answer else { panic!("{answer:?}") };
        assert!(reason.contains("localhost has the address"), "{reason}");
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "nobody connected");
    }
}
