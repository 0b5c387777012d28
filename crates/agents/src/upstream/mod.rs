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
//! `response.rs`, `retry_after.rs`.
//!
//! Invariant: an API key never reaches a message, a log or a record. `backend.rs` holds it;
//! `attempt_error.rs` removes it from text that servers send.

mod attempt_error;
mod backend;
mod backend_state;
mod balancer;
mod breaker;
mod error;
mod health;
mod http;
mod permit;
mod pool;

mod request;
mod response;
mod retry;
mod retry_after;
mod runtime_thread;
mod scoring;
mod status;
#[cfg(test)]
mod tests;
mod wait_queue;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::AgentError;
use super::model::{Completion, CompletionRequest, Model};
use backend::Backend;
use http::HttpClient;
use pool::Pool;
use prime_roles::setback;
use prime_settings::UpstreamPool;
use request::{RESERVED_FIELDS, RequestFormat};
use retry::{RetryPolicy, RetryingClient};
use runtime_thread::RuntimeThread;

pub use breaker::BreakerState;
pub use error::PoolError;
pub use health::Probed;
pub use status::UpstreamStatus;

/// A pool of servers as a model.
pub struct OpenAiModel {
    client: Arc<RetryingClient>,
    thread: RuntimeThread,
}

impl OpenAiModel {
    /// Starts the pool's thread and its health probes; does not wait for any server. `lookup`
    /// returns the value of an environment variable and is asked for keys only here.
    ///
    /// # Errors
    /// The settings are invalid, a key is not set, or no thread can be started.
    pub fn new(
        settings: &UpstreamPool,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, PoolError> {
        let format = RequestFormat {
            api: settings.api,
            dialect: settings.dialect,
            extra: extra(&settings.extra)?,
        };

        let mut backends: Vec<Backend> = Vec::new();
        for upstream in &settings.upstreams {
            let mut backend =
                Backend::new(upstream, format.path(), &settings.health_path, &lookup)?;

            let is_same = |other: &&Backend| {
                other.completion_url == backend.completion_url && other.model == backend.model
            };
            if let Some(other) = backends.iter().find(is_same) {
                return Err(PoolError::Duplicate { name: other.name.to_string() });
            }
            // Several servers behind one gateway differ by their path only, or by their scheme.
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
        let client =
            Arc::new(RetryingClient { pool, http, format, policy: RetryPolicy::new(settings) });

        let thread = RuntimeThread::start("upstreams").map_err(PoolError::Thread)?;

        if settings.health_interval_ms > 0 {
            let interval = Duration::from_millis(settings.health_interval_ms);
            for index in 0..count {
                thread.spawn_detached(health::probe_forever(Arc::clone(&client), index, interval));
            }
        }

        Ok(Self { client, thread })
    }

    /// The servers' states, in the order of the configuration.
    pub fn snapshot(&self) -> Vec<UpstreamStatus> {
        self.client.pool.snapshot()
    }

    /// Probes every server once, all at a time; takes seconds at most.
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

#[async_trait]
impl Model for OpenAiModel {
    async fn complete(&self, request: CompletionRequest) -> Result<Completion, AgentError> {
        let client = Arc::clone(&self.client);
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
