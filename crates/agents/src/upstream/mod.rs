//! A model behind OpenAI-compatible servers: llama-server, vLLM, SGLang or a hosted service. All
//! cells share one [`OpenAiModel`] per pool.
//!
//! Connections, timers and health probes run on one dedicated thread with its own Tokio runtime
//! (`runtime_thread.rs`). A connection belongs to the runtime that opened it, and a cell's runtime
//! ends with the cell: one client per cell could not share warm connections or concurrency limits.
//! The price is one hop between threads per request.
//!
//! A request passes `retry.rs` (attempts) → `pool.rs` (routing and queueing) → `http.rs` (one
//! exchange). The decisions are pure: `balancer.rs`, `breaker.rs`, `wait_queue.rs`, `request.rs`,
//! `refusals.rs`, `response.rs`, `streamed.rs`, `retry_after.rs`. What kind of server answers is
//! found out when a pool is opened (`detect.rs`).
//!
//! Invariant: an API key never reaches a message, a log or a record. `backend.rs` holds it;
//! `attempt_error.rs` removes it from text that servers send.

mod attempt_error;
mod backend;
mod backend_state;
mod balancer;
mod breaker;
mod detect;
mod error;
mod health;
mod http;
mod permit;
mod pool;
mod refusals;

mod request;
mod response;
mod retry;
mod retry_after;
mod runtime_thread;
mod scoring;
mod status;
mod streamed;
#[cfg(test)]
mod tests;
mod usage;
mod wait_queue;
mod withheld;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::AgentError;
use super::model::{Completion, CompletionRequest, Model};
use super::written::Hearer;
use backend::Backend;
use http::HttpClient;
use pool::Pool;
use prime_roles::setback;
use prime_settings::{Dialect, UpstreamPool};
use refusals::Refused;
use request::{RESERVED_FIELDS, RequestFormat};
use retry::{RetryPolicy, RetryingClient};
use runtime_thread::RuntimeThread;

pub use breaker::BreakerState;
pub use detect::{described, detected};
pub use error::PoolError;
pub use health::Probed;
pub use status::UpstreamStatus;

/// A pool of servers as a model.
pub struct OpenAiModel {
    client: Arc<RetryingClient>,
    thread: RuntimeThread,
    applies_grammars: bool,
    /// True if the dialect is a fallback, because no server has said what it is.
    is_unknown: bool,
}

impl OpenAiModel {
    /// Starts the pool's thread and its health probes. Waits for servers only under the dialect
    /// `auto`, to ask what they are, for at most 20 seconds. `lookup` returns the value of an
    /// environment variable and is asked for keys only here.
    ///
    /// # Errors
    /// The settings are invalid, a key is not set, or no thread can be started.
    pub fn new(
        settings: &UpstreamPool,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, PoolError> {
        let extra = extra(&settings.extra)?;
        let path = RequestFormat::path(settings.api);

        let mut backends: Vec<Backend> = Vec::new();
        for upstream in &settings.upstreams {
            let mut backend = Backend::new(upstream, path, &settings.health_path, &lookup)?;

            let is_same = |other: &&Backend| {
                other.completion_url == backend.completion_url && other.model == backend.model
            };
            if let Some(other) = backends.iter().find(is_same) {
                return Err(PoolError::Duplicate { name: other.name.to_string() });
            }
            // Servers of one gateway may differ only by their path or their scheme.
            for name in [backend.qualified_name(), backend.full_name()] {
                if backends.iter().any(|other| other.name == backend.name) {
                    backend.name = name;
                }
            }
            backends.push(backend);
        }

        if backends.is_empty() {
            return Err(PoolError::Empty);
        }

        let http = HttpClient::new(settings, &backends)
            .map_err(|error| PoolError::Client(error.to_string()))?;

        let count = backends.len();
        let pool = Arc::new(Pool::new(settings, backends));
        let thread = RuntimeThread::start("upstreams").map_err(PoolError::Thread)?;

        let http = Arc::new(http);
        let found = match settings.dialect {
            Dialect::Auto => ask_for_dialect(&thread, &pool, &http),
            own => Some(own),
        };
        let dialect = found.unwrap_or(Dialect::Plain);
        let format =
            RequestFormat { api: settings.api, dialect, extra, refused: Refused::default() };
        let client =
            Arc::new(RetryingClient { pool, http, format, policy: RetryPolicy::new(settings) });

        if settings.health_interval_ms > 0 {
            let interval = Duration::from_millis(settings.health_interval_ms);
            for index in 0..count {
                thread.spawn_detached(health::probe_forever(Arc::clone(&client), index, interval));
            }
        }

        let applies_grammars = settings.applies_grammars_as(dialect);
        Ok(Self { client, thread, applies_grammars, is_unknown: found.is_none() })
    }

    /// Returns whether no server has said what it is, so that it should be asked again.
    pub fn is_unknown(&self) -> bool {
        self.is_unknown
    }

    /// The dialect in which its servers are asked.
    pub fn dialect(&self) -> Dialect {
        self.client.format.dialect
    }

    /// The servers' states, in the order of the configuration.
    pub fn snapshot(&self) -> Vec<UpstreamStatus> {
        self.client.pool.snapshot()
    }

    /// Probes all servers at the same time, once each; takes a few seconds at most.
    pub async fn probe(&self) -> Vec<Probed> {
        let servers = 0..self.client.pool.backends().len();
        let probes = servers
            .map(|index| self.thread.spawn(health::probe_once(Arc::clone(&self.client), index)));
        join_all(probes).await.into_iter().filter_map(Result::ok).collect()
    }

    /// Requests that are waiting for a server with capacity.
    pub fn waiting(&self) -> usize {
        self.client.pool.waiting()
    }
}

/// Maximum time for the servers of a pool to say what they are.
const DETECTION_TIMEOUT: Duration = Duration::from_secs(20);

/// Asks the servers of a pool what they are, and says what was found; `None` if none answers.
fn ask_for_dialect(
    thread: &RuntimeThread,
    pool: &Arc<Pool>,
    http: &Arc<HttpClient>,
) -> Option<Dialect> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let (pool, http) = (Arc::clone(pool), Arc::clone(http));
    thread.spawn_detached(async move {
        let mut found = None;
        for backend in pool.backends() {
            found =
                http.dialect_of(backend).await.map(|dialect| (dialect, Arc::clone(&backend.name)));
            if found.is_some() {
                break;
            }
        }
        // If it took too long, the receiver is gone.
        drop(sender.send(found));
    });

    match receiver.recv_timeout(DETECTION_TIMEOUT).ok().flatten() {
        Some((dialect, server)) => {
            let name = dialect.name();
            tracing::info!(
                upstream = &*server,
                dialect = name,
                "it is {}: dialect `{name}`",
                described(dialect)
            );
            Some(dialect)
        }
        None => {
            tracing::warn!(
                "no server says what it is: dialect `plain`, so answers are free. It is asked \
                 again when its agents are built again; or set `dialect`"
            );
            None
        }
    }
}

#[async_trait]
impl Model for OpenAiModel {
    fn applies_grammars(&self) -> bool {
        self.applies_grammars
    }

    async fn complete(&self, request: CompletionRequest) -> Result<Completion, AgentError> {
        let client = Arc::clone(&self.client);
        // Taken here: the pool's thread does not know whose turn it is.
        let hearer = request.hearer.clone().or_else(Hearer::of_turn);
        let request = CompletionRequest { hearer, ..request };
        let (tell, mut told) = mpsc::unbounded_channel();
        let mut task = self.thread.spawn(async move { client.complete(&request, &tell).await });

        loop {
            tokio::select! {
                biased;
                done = &mut task => {
                    return done
                        .unwrap_or_else(|error| Err(retry::thread_failed(error.is_panic())));
                }
                // Reported from here: the pool's thread does not know whose turn it is.
                Some(error) = told.recv() => setback::report(error),
            }
        }
    }
}

/// Parses the additional request fields.
fn extra(text: &str) -> Result<Map<String, Value>, PoolError> {
    let invalid = |reason: String| PoolError::Extra { reason };

    let extra: Map<String, Value> = serde_json::from_str(text)
        .map_err(|error| invalid(format!("is not a JSON object: {error}")))?;

    match RESERVED_FIELDS.into_iter().find(|name| extra.contains_key(*name)) {
        Some(name) => {
            Err(invalid(format!("has the field `{name}`, which every request sets: remove it")))
        }
        None => Ok(extra),
    }
}
