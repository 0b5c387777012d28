//! One request to one server and its answer, within limits of time and size. Knows nothing of other servers or attempts.

use std::error::Error as _;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Response, redirect};
use tokio::time::timeout;

use super::member::Member;
use super::problem::{Problem, shown};
use super::reply::{BadAnswer, reply, words};
use super::retry_after::retry_after;
use crate::agents::Failure;
use crate::agents::model::Reply;
use crate::settings::Upstreams;

/// Bytes of an error's body that are looked at.
const ERROR_BYTES_MAX: usize = 65_536;
/// Longest wait for a sign of life, where a request may take longer.
const HEALTH_PATIENCE: Duration = Duration::from_secs(10);
/// A connection that was not used for so long is closed; most servers close theirs later.
const IDLE: Duration = Duration::from_secs(30);

/// See the module.
pub(super) struct Http {
    client: Client,
    timeout: Duration,
    answer_bytes_max: usize,
}

/// Why a body could not be read.
enum Unread {
    Broke(reqwest::Error),
    TooLong,
}

impl Http {
    /// A client for these servers. The system's root certificates are read only where one of them has TLS.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn new(settings: &Upstreams, members: &[Member]) -> Result<Self, reqwest::Error> {
        // An error says that one is installed already, which will do.
        drop(rustls::crypto::ring::default_provider().install_default());
        let builder = Client::builder()
            // A proxy of the environment would see the prompts, and a redirect would take the key somewhere else.
            .no_proxy()
            .redirect(redirect::Policy::none())
            .user_agent(concat!("prime-agents/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(Duration::from_millis(settings.connect_timeout_ms))
            .pool_idle_timeout(IDLE)
            .retry(reqwest::retry::never());
        let has_tls = members.iter().any(|member| member.ask_url.scheme() == "https");
        let builder = if has_tls { builder } else { builder.tls_certs_only([]) };
        Ok(Self {
            client: builder.build()?,
            timeout: Duration::from_millis(settings.timeout_ms),
            answer_bytes_max: usize::try_from(settings.answer_bytes_max).unwrap_or(usize::MAX),
        })
    }

    /// Asks a server. Dropping the future closes the connection, by which the server knows.
    pub async fn ask(&self, member: &Member, body: Vec<u8>) -> Result<Reply, Problem> {
        let request = self.client.post(member.ask_url.clone()).header(CONTENT_TYPE, "application/json").body(body);
        let exchange = self.exchange(member, request);
        timeout(self.timeout, exchange).await.unwrap_or_else(|_| Err(self.late(self.timeout)))
    }

    async fn exchange(&self, member: &Member, request: RequestBuilder) -> Result<Reply, Problem> {
        let response = with_key(request, member).send().await.map_err(|error| unreachable(&error))?;
        let fit = |words: &str| shown(words, member.secret());
        if !response.status().is_success() {
            let (status, retry_after) = (response.status(), retry_after(response.headers()));
            let words = words(&beginning(response).await);
            return Err(Problem::of_status(status, &fit(&words), retry_after));
        }
        let content_type = response.headers().get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()));
        if let Some(other) = content_type.filter(|name| !name.to_ascii_lowercase().contains("json")) {
            let reason = format!("its answer is `{}` in place of JSON: is `url` the address of the API?", fit(&other));
            return Err(Problem::passing(Failure::Malformed, reason));
        }
        let body = whole(response, self.answer_bytes_max).await.map_err(|unread| match unread {
            Unread::Broke(error) => {
                Problem::passing(Failure::Unreachable, format!("its answer broke off: {}", cause(&error)))
            }
            Unread::TooLong => Problem::lasting(
                Failure::TooLong,
                format!("its answer has more than {} bytes (`answer_bytes_max`)", self.answer_bytes_max),
            ),
        })?;
        reply(&body, &member.name).map_err(|bad| {
            let reason = match bad {
                BadAnswer::Error(words) => BadAnswer::Error(fit(&words)).to_string(),
                other => other.to_string(),
            };
            Problem::passing(Failure::Malformed, reason)
        })
    }

    /// Whether a server is there: any answer below status 500 will do.
    pub async fn look(&self, member: &Member) -> Result<(), Problem> {
        let patience = self.timeout.min(HEALTH_PATIENCE);
        let request = with_key(self.client.get(member.health_url.clone()), member);
        let response = timeout(patience, request.send()).await.map_err(|_| self.late(patience))?;
        let response = response.map_err(|error| unreachable(&error))?;
        let status = response.status();
        if status.is_server_error() { Err(Problem::of_status(status, "", None)) } else { Ok(()) }
    }

    fn late(&self, patience: Duration) -> Problem {
        let advice = if patience == self.timeout { ": raise `timeout_ms` or lower `concurrent_max`" } else { "" };
        Problem::passing(Failure::Timeout, format!("no answer within {} ms{advice}", patience.as_millis()))
    }
}

fn with_key(request: RequestBuilder, member: &Member) -> RequestBuilder {
    match member.authorization() {
        Some(key) => request.header(AUTHORIZATION, key),
        None => request,
    }
}

fn unreachable(error: &reqwest::Error) -> Problem {
    let reason = match (error.is_connect(), error.is_timeout()) {
        (true, true) => "no connection in time (`connect_timeout_ms`): is it running, and is `url` right?".to_owned(),
        (true, false) => format!("no connection ({}): is it running, and is `url` right?", cause(error)),
        (false, _) => format!("the connection broke: {}", cause(error)),
    };
    Problem::passing(Failure::Unreachable, reason)
}

/// What is at the bottom of an error: the layers above say only that they failed.
fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(below) = cause.source() {
        cause = below;
    }
    if error.source().is_none() { "it was closed".to_owned() } else { shown(&cause.to_string(), None) }
}

async fn whole(mut response: Response, bytes_max: usize) -> Result<Vec<u8>, Unread> {
    let fits = |length: usize| length <= bytes_max;
    if response.content_length().is_some_and(|length| !usize::try_from(length).is_ok_and(fits)) {
        return Err(Unread::TooLong);
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(Unread::Broke)? {
        if !fits(body.len() + chunk.len()) {
            return Err(Unread::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// As much of a body as there is and is looked at.
async fn beginning(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk[..chunk.len().min(ERROR_BYTES_MAX - body.len())]);
        if body.len() == ERROR_BYTES_MAX {
            break;
        }
    }
    body
}
