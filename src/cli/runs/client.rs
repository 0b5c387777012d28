//! HTTP requests to a daemon, with errors that tell the user what to do. Blocking: must not be used
//! within a Tokio runtime.

use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::blocking::{Client as HttpClient, ClientBuilder, RequestBuilder, Response};
use reqwest::header::{self, HeaderValue};
use reqwest::{StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use prime_http_client::root_cause;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of the response headers and of each read. The daemon sends a keep-alive every 10 seconds
/// on a stream of events.
const READ_TIMEOUT: Duration = Duration::from_secs(35);
/// Read timeout of long operations.
const LONG_READ_TIMEOUT: Duration = Duration::from_hours(1);
/// Maximum size of a response held in memory: a page of 1,000 records with large answers.
const RESPONSE_BYTES_MAX: u64 = 1 << 30;
/// Bytes read of an error's body.
const ERROR_BYTES_MAX: u64 = 1 << 16;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The daemon's own message, which says what to do.
    #[error("{message} (status {status}, {code})")]
    Refused { status: u16, code: String, message: String, retry_after: Option<Duration> },
    #[error(
        "{url} does not answer: {reason}: start a daemon there with `prime-agents serve`, or say \
         with --url where it is"
    )]
    Silent { url: String, reason: String },
    #[error(
        "{url} answered with status {status}, but not as a daemon of prime-agents does: is --url \
         right?"
    )]
    Foreign { url: String, status: u16 },
    #[error("{url}: the answer broke off: {reason}: ask again")]
    BrokenOff { url: String, reason: String },
    #[error(
        "{url}: the answer cannot be read by this version: {reason}: take the client of the \
         daemon's version"
    )]
    Unreadable { url: String, reason: String },
    /// A well-formed response that makes no sense.
    #[error("{0}")]
    Senseless(String),
}

/// A daemon's answer, or a record in it, as this version knows it. `what` names it in the error.
///
/// # Errors
/// [`ClientError::Senseless`] for an answer of another version.
pub fn known<T: DeserializeOwned>(what: &str, answer: &Value) -> Result<T, ClientError> {
    T::deserialize(answer).map_err(|error| {
        let advice = "use the client of the daemon's version, or --output json";
        ClientError::Senseless(format!("this version cannot read the {what}: {error}: {advice}"))
    })
}

impl ClientError {
    /// True if a retry may help: the daemon is starting, stopping or busy.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Silent { .. } | Self::BrokenOff { .. } => true,
            // 502 and 504 come from a proxy whose daemon is down.
            Self::Refused { status, .. } | Self::Foreign { status, .. } => {
                matches!(status, 408 | 429 | 502..=504)
            }
            Self::Unreadable { .. } | Self::Senseless(_) => false,
        }
    }

    /// The daemon's `Retry-After`.
    pub fn retry_after(&self) -> Option<Duration> {
        if let Self::Refused { retry_after, .. } = self { *retry_after } else { None }
    }
}

/// The fields of an error response that are shown.
#[derive(Deserialize)]
struct Refusal {
    error: RefusalDetail,
}

#[derive(Deserialize)]
struct RefusalDetail {
    message: String,
    code: String,
}

/// A client of a daemon, or of several that share one journal: any of them answers for every run.
pub struct Client {
    http: HttpClient,
    /// At least one.
    bases: Vec<String>,
    /// Index of the daemon to ask first: the one that answered last.
    current: AtomicUsize,
    authorization: Option<HeaderValue>,
}

#[derive(Default)]
pub struct Post<'a> {
    pub path: &'a str,
    pub query: &'a [(&'a str, String)],
    pub header: Option<(&'a str, &'a str)>,
    pub body: Option<&'a Value>,
    /// A body that is not JSON, with its type.
    pub content: Option<(&'a str, &'a [u8])>,
    /// It may rewrite the whole journal before the response.
    pub is_long: bool,
    /// Executing it twice has the same effect as once.
    pub is_idempotent: bool,
}

/// A successful response.
pub struct Answer {
    url: String,
    response: Response,
}

impl Client {
    /// `bases` are the daemons' URLs without a trailing slash, at least one.
    ///
    /// # Errors
    /// The system is out of threads or file descriptors.
    pub fn new(
        bases: Vec<String>,
        authorization: Option<HeaderValue>,
    ) -> Result<Self, reqwest::Error> {
        // A blocking client waits this long for the headers and then for each read, not for the
        // whole response.
        let http =
            ClientBuilder::from(prime_http_client::builder(false).connect_timeout(CONNECT_TIMEOUT));
        Ok(Self {
            http: http.timeout(READ_TIMEOUT).build()?,
            bases,
            current: AtomicUsize::new(0),
            authorization,
        })
    }

    /// How many daemons there are to ask.
    pub fn daemons(&self) -> usize {
        self.bases.len()
    }

    /// A new idempotency key for a request that may have to be repeated at another daemon; `None`
    /// if there is no other daemon.
    pub fn own_key(&self) -> Option<String> {
        (self.daemons() > 1).then(|| format!("submit-{:032x}", rand::random::<u128>()))
    }

    /// Asks another daemon next, because the answer of this one broke off.
    pub fn turn_to_next(&self) {
        let next = (self.current.load(Ordering::Relaxed) + 1) % self.bases.len();
        self.current.store(next, Ordering::Relaxed);
    }

    fn with_key(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.authorization {
            Some(authorization) => request.header(header::AUTHORIZATION, authorization),
            None => request,
        }
    }

    /// Sends a GET request with a query.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Answer, ClientError> {
        self.send(path, true, |url| {
            with_query(url, query).map(|target| self.with_key(self.http.get(target)))
        })
    }

    /// Opens the stream of a run's events after one of them, as server-sent events.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn events(&self, id: &str, after: u64) -> Result<Answer, ClientError> {
        let after = after.to_string();
        self.send(&format!("/v1/runs/{id}/events"), true, |url| {
            Ok(self.with_key(self.http.get(url)).header("Last-Event-ID", &after))
        })
    }

    /// Sends a DELETE request, which has the same effect if it is repeated.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn delete(&self, path: &str) -> Result<Answer, ClientError> {
        self.send(path, true, |url| Ok(self.with_key(self.http.delete(url))))
    }

    /// Sends a PATCH request that has the same effect if it is repeated.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn patch(&self, path: &str, body: &Value) -> Result<Answer, ClientError> {
        self.send(path, true, |url| {
            let request = self.with_key(self.http.patch(url));
            Ok(request.header(header::CONTENT_TYPE, "application/json").body(body.to_string()))
        })
    }

    /// Sends a POST request.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn post(&self, post: &Post<'_>) -> Result<Answer, ClientError> {
        let Post { path, query, header, body, content, is_long, is_idempotent } = *post;
        self.send(path, is_idempotent, |url| {
            with_query(url, query).map(|target| {
                let request = self.with_key(self.http.post(target));
                let request = if is_long { request.timeout(LONG_READ_TIMEOUT) } else { request };
                let request = header
                    .iter()
                    .fold(request, |request, (name, value)| request.header(*name, *value));
                match (body, content) {
                    (Some(body), _) => request
                        .header(header::CONTENT_TYPE, "application/json")
                        .body(body.to_string()),
                    (None, Some((kind, bytes))) => {
                        request.header(header::CONTENT_TYPE, kind).body(bytes.to_vec())
                    }
                    (None, None) => request.header(header::CONTENT_LENGTH, 0),
                }
            })
        })
    }

    /// Asks the daemons in turn, from the one that answered last, until one executes or refuses the
    /// request.
    fn send(
        &self,
        path: &str,
        is_idempotent: bool,
        request: impl Fn(&str) -> Result<RequestBuilder, String>,
    ) -> Result<Answer, ClientError> {
        let mut asked = 1;
        loop {
            let base = &self.bases[self.current.load(Ordering::Relaxed)];
            let (failed, is_unexecuted) = match send_to(base, path, &request) {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };

            // A request that may have been executed is repeated only if that does no harm.
            if asked == self.bases.len() || !(is_unexecuted || is_idempotent && failed.may_pass()) {
                return Err(failed);
            }

            asked += 1;
            self.turn_to_next();
        }
    }
}

/// Asks one daemon. An error comes with whether the daemon has certainly not executed the request,
/// so that another one may.
fn send_to(
    base: &str,
    path: &str,
    request: impl Fn(&str) -> Result<RequestBuilder, String>,
) -> Result<Answer, (ClientError, bool)> {
    let url = format!("{base}{path}");
    let silent = |reason| ClientError::Silent { url: base.to_owned(), reason };
    let request = request(&url).map_err(|reason| (silent(reason), false))?;

    let response = request.send().map_err(|error| (silent(failure(&error)), error.is_connect()))?;
    let status = response.status();
    if status.is_success() {
        return Ok(Answer { url, response });
    }

    // A daemon answers 503 before it executes anything.
    Err((refusal(url, response), status == StatusCode::SERVICE_UNAVAILABLE))
}

/// A URL with query parameters.
fn with_query(url: &str, query: &[(&str, String)]) -> Result<Url, String> {
    let mut target = Url::parse(url).map_err(|error| error.to_string())?;
    if !query.is_empty() {
        target.query_pairs_mut().extend_pairs(query);
    }
    Ok(target)
}

/// The reason of a failure without the URL, which the message already has.
pub fn failure(error: &reqwest::Error) -> String {
    match (error.is_timeout(), error.is_connect()) {
        (true, true) => format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()),
        (true, false) => "no response in time".to_owned(),
        _ => root_cause(error),
    }
}

/// The error in a response.
fn refusal(url: String, response: Response) -> ClientError {
    let status = response.status();
    let retry_after =
        response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = retry_after.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);

    let body = serde_json::from_reader(response.take(ERROR_BYTES_MAX));
    let Ok(Refusal { error: RefusalDetail { mut message, code } }) = body else {
        return ClientError::Foreign { url, status: status.as_u16() };
    };

    if status == StatusCode::UNAUTHORIZED {
        message += &format!(
            ": this command takes the key from the environment variable {}",
            super::KEY_VARIABLE
        );
    }
    if let Some(wait) = retry_after {
        message += &format!("; try again in {} s", wait.as_secs());
    }

    ClientError::Refused { status: status.as_u16(), code, message, retry_after }
}

impl Answer {
    /// True if the idempotency key was used before.
    pub fn is_replayed(&self) -> bool {
        self.response.headers().contains_key("Idempotency-Replayed")
    }

    /// The whole body.
    ///
    /// # Errors
    /// [`ClientError::BrokenOff`] or [`ClientError::Unreadable`].
    pub fn json<T: DeserializeOwned>(self) -> Result<T, ClientError> {
        let (url, reader) = self.into_reader();

        let mut body = Vec::new();
        let read = reader.take(RESPONSE_BYTES_MAX + 1).read_to_end(&mut body);
        read.map_err(|error| ClientError::BrokenOff {
            url: url.clone(),
            reason: error.to_string(),
        })?;

        if body.len() as u64 > RESPONSE_BYTES_MAX {
            let reason = format!("it has more than {RESPONSE_BYTES_MAX} bytes");
            return Err(ClientError::Unreadable { url, reason });
        }

        serde_json::from_slice(&body)
            .map_err(|error| ClientError::Unreadable { url, reason: error.to_string() })
    }

    /// The URL and the body as a stream.
    pub fn into_reader(self) -> (String, impl Read) {
        (self.url, BodyReader(self.response))
    }
}

/// A response's body whose errors give their cause.
struct BodyReader(Response);

impl Read for BodyReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer).map_err(|error| {
            match error.get_ref().and_then(|inner| inner.downcast_ref()) {
                Some(inner) => std::io::Error::new(error.kind(), failure(inner)),
                None => error,
            }
        })
    }
}
