//! The configuration of a webhook, and its secret.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use url::Url;

use super::error::SettingsError;
use super::sections::Settings;

/// What secrets begin with.
const SECRET_PREFIX: &str = "whsec_";
/// Bytes of a key, as Standard Webhooks recommends.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A receiver of events of runs (`docs/webhooks.md`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Webhook {
    /// The receiver's URL, `http://` or `https://`, without a user name or password.
    #[schemars(extend("format" = "url"))]
    pub url: String,
    /// The secret that signs the messages: `whsec_` and 24 to 64 bytes in base64. Better named by
    /// `secret_env`, so that no file holds it. One of the two is needed.
    pub secret: WebhookSecret,
    /// The name of the environment variable that holds the secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub secret_env: Option<String>,
    /// The events to send. Default: all.
    #[schemars(length(min = 1, max = 16))]
    pub events: Vec<WebhookEvent>,
    /// Only runs of the API key with this name (`server.keys`). Omitted = all runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "name"))]
    pub key: Option<String>,
    /// Only runs of this task, by slug. Omitted = all tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub task: Option<String>,
    /// True if the receiver may have an address of a private network, such as 127.0.0.1 or 10.0.0.7.
    /// Default: false.
    pub allow_private: bool,
    /// Timeout in milliseconds of one attempt, from looking up the name to the answer. Default:
    /// 15000.
    #[schemars(range(min = 100, max = 120_000))]
    pub timeout_ms: u64,
    /// The pauses in milliseconds between attempts, up to a fifth longer by chance. After the
    /// attempt that follows the last pause, a message is given up. Default: 5 s, 5 min, 30 min, 2 h,
    /// 5 h, 10 h, 10 h.
    #[schemars(length(max = 32), inner(range(min = 0, max = 604_800_000)))]
    pub retry_ms: Vec<u64>,
}

impl Default for Webhook {
    /// A webhook without a receiver.
    fn default() -> Self {
        const MINUTE: u64 = 60_000;
        const HOUR: u64 = 60 * MINUTE;
        Self {
            url: String::new(),
            secret: WebhookSecret::default(),
            secret_env: None,
            events: WebhookEvent::ALL.to_vec(),
            key: None,
            task: None,
            allow_private: false,
            timeout_ms: 15_000,
            retry_ms: vec![
                5_000,
                5 * MINUTE,
                30 * MINUTE,
                2 * HOUR,
                5 * HOUR,
                10 * HOUR,
                10 * HOUR,
            ],
        }
    }
}

impl Webhook {
    /// The webhook as it may be shown: without its secret and what its URL has after `?`, where
    /// receivers expect theirs.
    #[must_use]
    pub fn shown(&self) -> Self {
        let url = match self.url.split_once('?') {
            Some((address, _)) => format!("{address}?hidden"),
            None => self.url.clone(),
        };
        Self { url, secret: self.secret.hidden(), ..self.clone() }
    }
}

/// What a webhook may tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WebhookEvent {
    /// A run ended, in whatever way.
    #[serde(rename = "run.ended")]
    RunEnded,
    /// Steps of a run were flagged for review.
    #[serde(rename = "run.flagged")]
    RunFlagged,
    /// Steps wait for approval.
    #[serde(rename = "run.waiting")]
    RunWaiting,
    /// A run has spent four fifths of one of its budgets.
    #[serde(rename = "run.budget")]
    RunBudget,
    /// A run that is under way has told nothing new for `server.stuck_ms`.
    #[serde(rename = "run.stuck")]
    RunStuck,
}

impl WebhookEvent {
    /// All events.
    pub const ALL: [Self; 5] =
        [Self::RunEnded, Self::RunFlagged, Self::RunWaiting, Self::RunBudget, Self::RunStuck];

    /// Its name, such as `run.ended`.
    pub fn name(self) -> &'static str {
        match self {
            Self::RunEnded => "run.ended",
            Self::RunFlagged => "run.flagged",
            Self::RunWaiting => "run.waiting",
            Self::RunBudget => "run.budget",
            Self::RunStuck => "run.stuck",
        }
    }
}

/// The secret of a webhook, which is never shown.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WebhookSecret(String);

impl WebhookSecret {
    /// What a configuration or the environment says.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is shown in place of a secret.
    fn hidden(&self) -> Self {
        if self.is_empty() { Self::default() } else { Self("hidden".to_owned()) }
    }

    /// The key with which messages are signed.
    ///
    /// # Errors
    /// What is wrong with the secret, as a clause that does not quote it.
    pub fn key(&self) -> Result<Vec<u8>, String> {
        let encoded = self
            .0
            .strip_prefix(SECRET_PREFIX)
            .ok_or_else(|| format!("does not begin with `{SECRET_PREFIX}`"))?;
        let key = STANDARD
            .decode(encoded)
            .map_err(|_| format!("has no base64 after `{SECRET_PREFIX}`"))?;
        if KEY_BYTES.contains(&key.len()) {
            Ok(key)
        } else {
            let (least, most) = (KEY_BYTES.start(), KEY_BYTES.end());
            Err(format!("holds {} bytes, but must hold {least} to {most}", key.len()))
        }
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "none" } else { "hidden" })
    }
}

impl JsonSchema for WebhookSecret {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "WebhookSecret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "secret" })
    }
}

/// What is wrong with a receiver's URL, as a clause.
fn wrong_url(text: &str) -> Option<String> {
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(_) if text.is_empty() => return Some("is missing".to_owned()),
        Err(error) => return Some(format!("is not a URL: {error}")),
    };
    if !["http", "https"].contains(&url.scheme()) {
        return Some("begins with neither http:// nor https://".to_owned());
    }
    (!url.username().is_empty() || url.password().is_some())
        .then(|| "has a user name or password, which messages are not sent with".to_owned())
}

impl Settings {
    /// Checks that each webhook has a receiver and a secret, and names a key that there is.
    pub(super) fn check_webhooks(
        &self,
        conflict: &dyn Fn(&[&str], String) -> SettingsError,
    ) -> Result<(), SettingsError> {
        for (name, webhook) in &self.webhooks {
            let wrong = |key: &str, reason: String| {
                let message = format!("`webhooks.{name}.{key}` {reason}");
                Err(conflict(&["webhooks", name, key], message))
            };
            if let Some(reason) = wrong_url(&webhook.url) {
                return wrong(
                    "url",
                    format!(
                        "{reason}; set it to the receiver's, such as \"https://example.com/runs\""
                    ),
                );
            }
            match (webhook.secret.is_empty(), &webhook.secret_env) {
                (true, None) => {
                    return wrong(
                        "secret",
                        "is missing: messages are always signed; set `secret_env` to the name of \
                         an environment variable with `whsec_` and 24 to 64 random bytes in base64"
                            .to_owned(),
                    );
                }
                (false, Some(_)) => {
                    return wrong("secret", "is set beside `secret_env`; leave out one".to_owned());
                }
                (false, None) => {
                    if let Err(reason) = webhook.secret.key() {
                        return wrong("secret", reason);
                    }
                }
                (true, Some(_)) => {}
            }
            let keys = &self.server.keys;
            if let Some(key) = &webhook.key
                && !keys.iter().any(|known| known.name == *key)
            {
                return wrong("key", format!("is \"{key}\", but `server.keys` has no such name"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn load(text: &str) -> Result<Settings, String> {
        let sets = [format!("webhooks.ops={{url=\"https://example.com/x\", {text}}}")];
        Settings::load(&[], std::iter::empty(), &sets).map_err(|error| error.to_string())
    }

    #[test]
    fn omitted_options_have_defaults_and_nothing_shows_the_secret() {
        let settings = load(&format!("secret=\"{SECRET}\"")).unwrap();
        let ops = &settings.webhooks["ops"];
        assert_eq!(ops.secret.key().unwrap().len(), 24);
        assert_eq!((ops.events.len(), ops.timeout_ms, ops.retry_ms[0]), (5, 15_000, 5_000));
        assert!(!ops.allow_private);
        assert!(!format!("{settings:?}").contains("MfKQ"));
        assert!(!serde_json::to_string(&ops.shown()).unwrap().contains("MfKQ"));
    }

    #[test]
    fn the_query_of_a_url_is_not_shown() {
        let of = |url: &str| Webhook { url: url.to_owned(), ..Webhook::default() }.shown().url;
        assert_eq!(of("https://example.com/x?token=a?b#c"), "https://example.com/x?hidden");
        assert_eq!(of("https://example.com/x"), "https://example.com/x");
    }

    #[test]
    fn mistakes_are_named_without_the_secret() {
        let other = "url=\"ftp://example.com\"";
        for (text, part) in [
            ("events=[\"run.ended\"]", "`webhooks.ops.secret` is missing"),
            ("secret=\"MfKQ9r8GKYqr\"", "`webhooks.ops.secret` does not begin with `whsec_`"),
            ("secret=\"whsec_MfKQ!\"", "`webhooks.ops.secret` has no base64"),
            ("secret=\"whsec_MfKQ\"", "`webhooks.ops.secret` holds 3 bytes"),
            (
                "secret=\"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\", secret_env=\"S\"",
                "beside `secret_env`",
            ),
            ("secret=[\"MfKQ\"]", "`webhooks.ops.secret` is hidden, but must be a text"),
            ("secret=12.5", "`webhooks.ops.secret` is hidden, but must be a text"),
            ("secret_env=\"S\", events=[\"run.begun\"]", "names `run.begun`"),
            ("secret_env=\"S\", events=[]", "an empty list"),
            ("secret_env=\"S\", key=\"ada\"", "`server.keys` has no such name"),
            ("secret_env=\"S\", retry_ms=[-1]", "`webhooks.ops.retry_ms`"),
            ("secret_env=\"S\", timeout_ms=1", "`webhooks.ops.timeout_ms`"),
        ] {
            let message = load(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
            assert!(!message.contains("MfKQ"), "{message}");
        }
        let with = |url: &str| {
            let sets = ["webhooks.ops.secret_env=S".to_owned(), format!("webhooks.ops.url={url}")];
            Settings::load(&[], std::iter::empty(), &sets).map(drop).map_err(|e| e.to_string())
        };
        for url in
            ["ftp://example.com", "http://", "http://a b", "https://ada:x@example.com/", other]
        {
            assert!(with(url).unwrap_err().contains("webhooks.ops.url"), "{url}");
        }
        assert_eq!(with("http://[::1]:8080/runs?x=1"), Ok(()));
    }
}
