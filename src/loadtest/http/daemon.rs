//! A daemon as one of its clients: a run is handed in, and its end waited for. Nothing is asked for twice.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url, redirect};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use super::error::HttpLoadError;

const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// Longest silence: a stream has a sign of life every ten seconds.
const SILENCE_MAX: Duration = Duration::from_mins(1);
/// Longest record that is read, in bytes.
const RECORD_BYTES_MAX: usize = 256 << 20;
/// A refusal that does not say when to come again.
const PAUSE: Duration = Duration::from_secs(1);
/// No run has so many events, so that a stream after this one has the run's end alone. The largest whole number that
/// every reader of JSON has exactly.
const NO_EVENTS: &str = "9007199254740991";

/// See the module.
pub struct Daemon {
    client: Client,
    base: String,
    authorization: Option<HeaderValue>,
    request: Vec<u8>,
}

/// What a daemon said to something that it may do another time.
pub enum Answered<T> {
    Done(T),
    /// With 429 or 503: how long to stay away, and why.
    Refused {
        pause: Duration,
        message: String,
    },
}

/// The record of a run that is over, as far as it is counted.
#[derive(Debug, Deserialize, PartialEq, Eq)]
pub struct Ended {
    pub status: String,
    #[serde(default)]
    pub steps: u64,
}

#[derive(Deserialize)]
struct Taken {
    id: String,
}

#[derive(Deserialize)]
struct Refusal {
    error: RefusalDetail,
}

#[derive(Deserialize)]
struct RefusalDetail {
    message: String,
}

/// What is at the bottom of an error: the layers above say only that they failed.
fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(below) = cause.source() {
        cause = below;
    }
    cause.to_string()
}

fn broken_off(error: &reqwest::Error) -> HttpLoadError {
    HttpLoadError::BrokenOff { reason: cause(error) }
}

fn silence() -> HttpLoadError {
    HttpLoadError::BrokenOff { reason: format!("nothing came for {} s", SILENCE_MAX.as_secs()) }
}

/// The record in what has come of a stream, once it is whole.
fn result_of(text: &[u8]) -> Option<&[u8]> {
    let begin = b"event: result\ndata: ";
    let at = text.windows(begin.len()).position(|window| window == begin)?;
    let is_line = at == 0 || text[at - 1] == b'\n';
    let data = &text[at + begin.len()..];
    let end = data.windows(2).position(|two| two == b"\n\n")?;
    is_line.then_some(&data[..end])
}

impl Daemon {
    /// # Errors
    /// When URL or key cannot be meant.
    pub fn new(url: &str, key: Option<&str>, request: &Value) -> Result<Self, HttpLoadError> {
        let base = url.trim_end_matches('/').to_owned();
        let parsed = Url::parse(&base).ok().filter(|url| url.scheme() == "http" && url.query().is_none());
        if parsed.is_none_or(|url| url.host_str().is_none_or(str::is_empty)) {
            return Err(HttpLoadError::Url { url: url.to_owned() });
        }
        let authorization = key.map(|key| HeaderValue::from_str(&format!("Bearer {key}"))).transpose();
        let mut authorization = authorization.map_err(|_| HttpLoadError::Key)?;
        authorization.iter_mut().for_each(|header| header.set_sensitive(true));
        // An error says that one is installed already, which will do.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = Client::builder()
            // A proxy would be measured too, and a redirect would take the key somewhere else.
            .no_proxy()
            .redirect(redirect::Policy::none())
            .user_agent(concat!("prime-agents/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_PATIENCE)
            .tcp_nodelay(true)
            .retry(reqwest::retry::never())
            .tls_certs_only([])
            .build();
        let client = client.map_err(|error| HttpLoadError::Silent { url: base.clone(), reason: error.to_string() })?;
        Ok(Self { client, base, authorization, request: request.to_string().into_bytes() })
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, HttpLoadError> {
        let request = match &self.authorization {
            Some(key) => request.header(AUTHORIZATION, key),
            None => request,
        };
        let response = timeout(SILENCE_MAX, request.send()).await.map_err(|_| silence())?;
        response.map_err(|error| {
            if error.is_connect() {
                HttpLoadError::Silent { url: self.base.clone(), reason: cause(&error) }
            } else {
                broken_off(&error)
            }
        })
    }

    /// A body to its end, by which the connection can be used again.
    async fn body(mut response: Response) -> Result<Vec<u8>, HttpLoadError> {
        let mut body = Vec::new();
        loop {
            let chunk = timeout(SILENCE_MAX, response.chunk()).await.map_err(|_| silence())?;
            let Some(chunk) = chunk.map_err(|error| broken_off(&error))? else { return Ok(body) };
            if body.len() + chunk.len() > RECORD_BYTES_MAX {
                return Err(HttpLoadError::Unreadable { reason: format!("it has more than {RECORD_BYTES_MAX} bytes") });
            }
            body.extend_from_slice(&chunk);
        }
    }

    /// What is not a success.
    async fn refusal<T>(&self, response: Response) -> Result<Answered<T>, HttpLoadError> {
        let status = response.status();
        let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let body = Self::body(response).await?;
        let Ok(Refusal { error: RefusalDetail { message } }) = serde_json::from_slice(&body) else {
            return Err(HttpLoadError::Foreign { url: self.base.clone(), status: status.as_u16() });
        };
        match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Ok(Answered::Refused { pause: seconds.map_or(PAUSE, Duration::from_secs), message })
            }
            StatusCode::UNAUTHORIZED => Err(HttpLoadError::Unauthorized { url: self.base.clone(), message }),
            _ => Err(HttpLoadError::Refused { status: status.as_u16(), message }),
        }
    }

    fn unreadable(error: &serde_json::Error) -> HttpLoadError {
        HttpLoadError::Unreadable { reason: error.to_string() }
    }

    /// Whether a daemon is there that lets this client in.
    ///
    /// # Errors
    /// When not.
    pub async fn look(&self) -> Result<(), HttpLoadError> {
        let response = self.send(self.client.get(format!("{}/v1/runs?limit=1", self.base))).await?;
        let status = response.status();
        if !status.is_success() {
            return self.refusal::<()>(response).await.map(drop);
        }
        let body = Self::body(response).await?;
        let listing: Result<Value, _> = serde_json::from_slice(&body);
        if listing.is_ok_and(|listing| listing["runs"].is_array()) {
            Ok(())
        } else {
            Err(HttpLoadError::Foreign { url: self.base.clone(), status: status.as_u16() })
        }
    }

    /// Hands a run in, and gives its id.
    ///
    /// # Errors
    /// When it is refused for good, or the daemon goes away.
    pub async fn submit(&self) -> Result<Answered<String>, HttpLoadError> {
        let request = self.client.post(format!("{}/v1/runs", self.base)).header(CONTENT_TYPE, "application/json");
        let response = self.send(request.body(self.request.clone())).await?;
        if !response.status().is_success() {
            return self.refusal(response).await;
        }
        let body = Self::body(response).await?;
        let Taken { id } = serde_json::from_slice(&body).map_err(|error| Self::unreadable(&error))?;
        Ok(Answered::Done(id))
    }

    /// Waits for a run's end. The daemon says it; it is not asked again and again.
    ///
    /// # Errors
    /// When the daemon goes away before.
    pub async fn end_of(&self, id: &str) -> Result<Answered<Ended>, HttpLoadError> {
        let request = self.client.get(format!("{}/v1/runs/{id}/events", self.base));
        let response = self.send(request.header("Last-Event-ID", NO_EVENTS)).await?;
        if !response.status().is_success() {
            return self.refusal(response).await;
        }
        let body = Self::body(response).await?;
        let reason = "the stream ended before the run";
        let record = result_of(&body).ok_or_else(|| HttpLoadError::BrokenOff { reason: reason.to_owned() })?;
        Ok(Answered::Done(serde_json::from_slice(record).map_err(|error| Self::unreadable(&error))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_is_found_once_it_is_whole() {
        let whole =
            b": alive\n\nid: 3\nevent: finished\ndata: {\"event: result\\ndata: x\":1}\n\nevent: result\ndata: \
                      {\"status\":\"verified\",\"steps\":7}\n\n";
        let record: Ended = serde_json::from_slice(result_of(whole).unwrap()).unwrap();
        assert_eq!(record, Ended { status: "verified".to_owned(), steps: 7 });
        for end in 0..whole.len() {
            assert_eq!(result_of(&whole[..end]), None, "{end} bytes");
        }
    }

    #[test]
    fn urls_and_keys_that_cannot_be_meant_are_refused() {
        let new = |url: &str, key| Daemon::new(url, key, &Value::Null).map(|daemon| daemon.base);
        for url in ["", "localhost:7433", "https://localhost", "http://", "ftp://a", "http://a/?b"] {
            let error = new(url, None).unwrap_err();
            assert!(
                matches!(&error, HttpLoadError::Url { .. }) && error.to_string().contains("http://HOST:PORT"),
                "{url}"
            );
        }
        assert_eq!(new("http://localhost:7433/", Some("prime_1")).as_deref(), Ok("http://localhost:7433"));
        assert_eq!(new("http://localhost:7433", Some("a\nb")), Err(HttpLoadError::Key));
    }
}
