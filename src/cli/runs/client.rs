//! Requests to a daemon and its answers, with errors as its users are to read them.

use std::io::Read;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::http::{HeaderValue, Response, StatusCode, header};
use ureq::{Agent, Body, RequestBuilder};

/// Longest wait for a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// Longest silence within a request. The daemon gives a sign of life every 10 seconds on a stream of events.
const SILENCE_MAX: Duration = Duration::from_secs(35);
/// The same for requests that are long.
const WORK_MAX: Duration = Duration::from_hours(1);
/// Bytes of an answer that is held in memory: a page of 1,000 records with large answers has some of them.
const ANSWER_BYTES_MAX: u64 = 1 << 30;
/// Bytes of an error's body that are looked at.
const ERROR_BYTES_MAX: u64 = 1 << 16;

/// Why a request came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The daemon's own message, which says what to do.
    #[error("{message} (status {status}, {code})")]
    Refused { status: u16, code: String, message: String, retry_after: Option<Duration> },
    #[error(
        "{url} does not answer: {reason}: start a daemon there with `prime-agents serve`, or say with --url where it is"
    )]
    Silent { url: String, reason: String },
    #[error("{url} answered with status {status}, but not as a daemon of prime-agents does: is --url right?")]
    Foreign { url: String, status: u16 },
    #[error("{url}: the answer broke off: {reason}: ask again")]
    BrokenOff { url: String, reason: String },
    #[error("{url}: the answer cannot be read by this version: {reason}: take the client of the daemon's version")]
    Unreadable { url: String, reason: String },
    /// An answer in the right form that cannot be meant.
    #[error("{0}")]
    Senseless(String),
}

impl ClientError {
    /// Whether the same request may be answered later: the daemon is starting, stopping or busy.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Silent { .. } | Self::BrokenOff { .. } => true,
            // 502 and 504 are a proxy's, before a daemon that is not there.
            Self::Refused { status, .. } | Self::Foreign { status, .. } => matches!(status, 408 | 429 | 502..=504),
            Self::Unreadable { .. } | Self::Senseless(_) => false,
        }
    }

    /// How long to wait at least, if the daemon said so.
    pub fn retry_after(&self) -> Option<Duration> {
        if let Self::Refused { retry_after, .. } = self { *retry_after } else { None }
    }
}

/// The `error` of a refusal, as far as it is shown.
#[derive(Deserialize)]
struct Refusal {
    error: RefusalDetail,
}

#[derive(Deserialize)]
struct RefusalDetail {
    message: String,
    code: String,
}

/// A daemon, as one of its users.
pub struct Client {
    agent: Agent,
    base: String,
    authorization: Option<HeaderValue>,
}

/// Something to be done.
#[derive(Default)]
pub struct Post<'a> {
    pub path: &'a str,
    pub query: &'a [(&'a str, String)],
    pub header: Option<(&'a str, &'a str)>,
    pub body: Option<&'a Value>,
    /// It may move a whole journal about before it is answered.
    pub is_long: bool,
}

/// An answer that is no refusal.
pub struct Answer {
    url: String,
    response: Response<Body>,
}

impl Client {
    /// `base` is the daemon's URL without a slash at its end.
    pub fn new(base: String, authorization: Option<HeaderValue>) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // A proxy would answer for the daemon, and a redirect would take the key somewhere else.
            .proxy(None)
            .max_redirects(0)
            .user_agent(concat!("prime-agents/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECT_PATIENCE))
            .timeout_per_read(Some(SILENCE_MAX))
            .timeout_per_write(Some(SILENCE_MAX))
            .build();
        Self { agent: Agent::new_with_config(config), base, authorization }
    }

    fn with_key<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.authorization {
            Some(authorization) => request.header(header::AUTHORIZATION, authorization),
            None => request,
        }
    }

    /// Asks for `path`, with a query.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Answer, ClientError> {
        let url = format!("{}{path}", self.base);
        let request =
            query.iter().fold(self.with_key(self.agent.get(&url)), |request, (name, value)| request.query(name, value));
        self.answer(url, request.call())
    }

    /// Asks for the events of a run after one of them, as server-sent events.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn events(&self, id: &str, after: u64) -> Result<Answer, ClientError> {
        let url = format!("{}/v1/runs/{id}/events", self.base);
        let request = self.with_key(self.agent.get(&url)).header("Last-Event-ID", after.to_string());
        self.answer(url, request.call())
    }

    /// Asks for something to be done.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn post(&self, post: &Post<'_>) -> Result<Answer, ClientError> {
        let Post { path, query, header, body, is_long } = *post;
        let url = format!("{}{path}", self.base);
        let silence = if is_long { WORK_MAX } else { SILENCE_MAX };
        let request = self.with_key(self.agent.post(&url)).config().timeout_per_read(Some(silence)).build();
        let request = query.iter().fold(request, |request, (name, value)| request.query(name, value));
        let request = header.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let result = match body {
            Some(body) => request.content_type("application/json").send(body.to_string()),
            None => request.send_empty(),
        };
        self.answer(url, result)
    }

    fn answer(&self, url: String, result: Result<Response<Body>, ureq::Error>) -> Result<Answer, ClientError> {
        let response =
            result.map_err(|error| ClientError::Silent { url: self.base.clone(), reason: error.to_string() })?;
        if response.status().is_success() { Ok(Answer { url, response }) } else { Err(refusal(url, response)) }
    }
}

/// The error in an answer.
fn refusal(url: String, mut response: Response<Body>) -> ClientError {
    let status = response.status();
    let retry_after = response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = retry_after.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    let body = response.body_mut().with_config().limit(ERROR_BYTES_MAX).read_json::<Refusal>();
    let Ok(Refusal { error: RefusalDetail { mut message, code } }) = body else {
        return ClientError::Foreign { url, status: status.as_u16() };
    };
    if status == StatusCode::UNAUTHORIZED {
        message += &format!(": this command takes the key from the environment variable {}", super::KEY_VARIABLE);
    }
    if let Some(wait) = retry_after {
        message += &format!("; try again in {} s", wait.as_secs());
    }
    ClientError::Refused { status: status.as_u16(), code, message, retry_after }
}

impl Answer {
    /// Whether this was done before under the same idempotency key.
    pub fn is_replayed(&self) -> bool {
        self.response.headers().contains_key("Idempotency-Replayed")
    }

    /// The whole body.
    ///
    /// # Errors
    /// [`ClientError::BrokenOff`] or [`ClientError::Unreadable`].
    pub fn json<T: DeserializeOwned>(mut self) -> Result<T, ClientError> {
        let text = self.response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
        let url = self.url;
        let text = text.map_err(|error| ClientError::BrokenOff { url: url.clone(), reason: error.to_string() })?;
        serde_json::from_str(&text).map_err(|error| ClientError::Unreadable { url, reason: error.to_string() })
    }

    /// The body as it comes; however long.
    pub fn into_reader(self) -> (String, impl Read) {
        (self.url, self.response.into_body().into_with_config().limit(u64::MAX).reader())
    }
}
