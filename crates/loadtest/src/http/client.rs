//! Client of a daemon: submits runs and waits for their end, without polling.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url, redirect};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use super::error::HttpLoadError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Idle limit of a response; event streams send a keep-alive every ten seconds.
const IDLE_MAX: Duration = Duration::from_mins(1);
/// Longest body read, in bytes.
const BODY_BYTES_MAX: usize = 256 << 20;
/// Pause after a refusal without `Retry-After`.
const DEFAULT_PAUSE: Duration = Duration::from_secs(1);
/// An id beyond that of any event, so that the stream has only the run's end. The largest integer
/// that every JSON reader represents exactly.
const LAST_EVENT_ID: &str = "9007199254740991";

pub struct DaemonClient {
    client: Client,
    base: String,
    authorization: Option<HeaderValue>,
    request: Vec<u8>,
}

/// The answer to a request that may be retried.
pub enum Answer<T> {
    Done(T),
    /// 429 or 503: how long to wait, and why.
    Refused {
        pause: Duration,
        message: String,
    },
}

/// The parts of a finished run's record that are counted.
#[derive(Debug, Deserialize, PartialEq, Eq)]
pub struct RunRecord {
    pub status: String,
    #[serde(default)]
    pub steps: u64,
}

#[derive(Deserialize)]
struct Accepted {
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

/// The root cause of an error; the layers above only say that they failed.
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

fn idle() -> HttpLoadError {
    HttpLoadError::BrokenOff { reason: format!("nothing received for {} s", IDLE_MAX.as_secs()) }
}

/// The run's record in the received part of an event stream, once it is complete.
fn result_of(text: &[u8]) -> Option<&[u8]> {
    let begin = b"event: result\ndata: ";
    // JSON escapes line breaks, so this cannot occur inside an event's data.
    let at = text.windows(begin.len()).position(|window| window == begin)?;
    let is_line = at == 0 || text[at - 1] == b'\n';
    let data = &text[at + begin.len()..];
    let end = data.windows(2).position(|two| two == b"\n\n")?;
    is_line.then_some(&data[..end])
}

impl DaemonClient {
    /// # Errors
    /// If the URL or the key is invalid.
    pub fn new(url: &str, key: Option<&str>, request: &Value) -> Result<Self, HttpLoadError> {
        let base = url.trim_end_matches('/').to_owned();
        let parsed =
            Url::parse(&base).ok().filter(|url| url.scheme() == "http" && url.query().is_none());
        if parsed.is_none_or(|url| url.host_str().is_none_or(str::is_empty)) {
            return Err(HttpLoadError::Url { url: url.to_owned() });
        }

        let authorization =
            key.map(|key| HeaderValue::from_str(&format!("Bearer {key}"))).transpose();
        let mut authorization = authorization.map_err(|_| HttpLoadError::Key)?;
        authorization.iter_mut().for_each(|header| header.set_sensitive(true));

        // Fails if a provider is installed already, which is fine.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = Client::builder()
            // A proxy would be measured too, and a redirect would send the key elsewhere.
            .no_proxy()
            .redirect(redirect::Policy::none())
            .user_agent(concat!("prime-agents/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .retry(reqwest::retry::never())
            // Only `http` is spoken, so no certificates need to be loaded.
            .tls_certs_only([])
            .build();
        let client = client.map_err(|error| HttpLoadError::Unreachable {
            url: base.clone(),
            reason: error.to_string(),
        })?;

        Ok(Self { client, base, authorization, request: request.to_string().into_bytes() })
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, HttpLoadError> {
        let request = match &self.authorization {
            Some(key) => request.header(AUTHORIZATION, key),
            None => request,
        };

        let response = timeout(IDLE_MAX, request.send()).await.map_err(|_| idle())?;
        response.map_err(|error| {
            if error.is_connect() {
                HttpLoadError::Unreachable { url: self.base.clone(), reason: cause(&error) }
            } else {
                broken_off(&error)
            }
        })
    }

    /// Reads a body to its end, so that the connection can be reused.
    async fn body(mut response: Response) -> Result<Vec<u8>, HttpLoadError> {
        let mut body = Vec::new();
        loop {
            let chunk = timeout(IDLE_MAX, response.chunk()).await.map_err(|_| idle())?;
            let Some(chunk) = chunk.map_err(|error| broken_off(&error))? else { return Ok(body) };
            if body.len() + chunk.len() > BODY_BYTES_MAX {
                return Err(HttpLoadError::Unreadable {
                    reason: format!("it is longer than {BODY_BYTES_MAX} bytes"),
                });
            }
            body.extend_from_slice(&chunk);
        }
    }

    /// Interprets an unsuccessful response.
    async fn refusal<T>(&self, response: Response) -> Result<Answer<T>, HttpLoadError> {
        let status = response.status();
        let seconds = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.trim().parse().ok());

        let body = Self::body(response).await?;
        let Ok(Refusal { error: RefusalDetail { message } }) = serde_json::from_slice(&body) else {
            return Err(HttpLoadError::Foreign { url: self.base.clone(), status: status.as_u16() });
        };

        match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Ok(Answer::Refused {
                    pause: seconds.map_or(DEFAULT_PAUSE, Duration::from_secs),
                    message,
                })
            }
            StatusCode::UNAUTHORIZED => {
                Err(HttpLoadError::Unauthorized { url: self.base.clone(), message })
            }
            _ => Err(HttpLoadError::Refused { status: status.as_u16(), message }),
        }
    }

    fn unreadable(error: &serde_json::Error) -> HttpLoadError {
        HttpLoadError::Unreadable { reason: error.to_string() }
    }

    /// Checks that a daemon answers and accepts this client.
    pub async fn check(&self) -> Result<(), HttpLoadError> {
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

    /// Submits a run. Returns its id.
    pub async fn submit(&self) -> Result<Answer<String>, HttpLoadError> {
        let request = self
            .client
            .post(format!("{}/v1/runs", self.base))
            .header(CONTENT_TYPE, "application/json");
        let response = self.send(request.body(self.request.clone())).await?;
        if !response.status().is_success() {
            return self.refusal(response).await;
        }

        let body = Self::body(response).await?;
        let Accepted { id } =
            serde_json::from_slice(&body).map_err(|error| Self::unreadable(&error))?;
        Ok(Answer::Done(id))
    }

    /// Waits for a run's end on its event stream.
    pub async fn wait(&self, id: &str) -> Result<Answer<RunRecord>, HttpLoadError> {
        let request = self.client.get(format!("{}/v1/runs/{id}/events", self.base));
        let response = self.send(request.header("Last-Event-ID", LAST_EVENT_ID)).await?;
        if !response.status().is_success() {
            return self.refusal(response).await;
        }

        let body = Self::body(response).await?;
        let reason = "the event stream ended before the run";
        let record = result_of(&body)
            .ok_or_else(|| HttpLoadError::BrokenOff { reason: reason.to_owned() })?;
        Ok(Answer::Done(serde_json::from_slice(record).map_err(|error| Self::unreadable(&error))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_is_found_when_it_is_complete() {
        let whole = b": alive\n\nid: 3\n\
              event: finished\ndata: {\"event: result\\ndata: x\":1}\n\nevent: result\ndata: \
              {\"status\":\"verified\",\"steps\":7}\n\n";
        let record: RunRecord = serde_json::from_slice(result_of(whole).unwrap()).unwrap();
        assert_eq!(record, RunRecord { status: "verified".to_owned(), steps: 7 });
        for end in 0..whole.len() {
            assert_eq!(result_of(&whole[..end]), None, "{end} bytes");
        }
    }

    #[test]
    fn invalid_urls_and_keys_are_refused() {
        let new =
            |url: &str, key| DaemonClient::new(url, key, &Value::Null).map(|client| client.base);
        for url in ["", "localhost:7433", "https://localhost", "http://", "ftp://a", "http://a/?b"]
        {
            let error = new(url, None).unwrap_err();
            assert!(
                matches!(&error, HttpLoadError::Url { .. })
                    && error.to_string().contains("http://HOST:PORT"),
                "{url}"
            );
        }
        assert_eq!(
            new("http://localhost:7433/", Some("prime_1")).as_deref(),
            Ok("http://localhost:7433")
        );

        assert_eq!(new("http://localhost:7433", Some("a\nb")), Err(HttpLoadError::Key));
    }
}
