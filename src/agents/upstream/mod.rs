//! A model behind servers that speak OpenAI's protocol: llama-server, vLLM, SGLang or a hosted service. One
//! [`OpenAiModel`] is shared by all cells.
//!
//! Everything that concerns the servers runs on one thread of its own with its own runtime (`lane.rs`): connections,
//! timers, looks at whether a server is there. A connection belongs to the runtime that it was made in, and the runtimes
//! of cells end with their cells; with a client for each cell, one cell's warm connections would be of no use to the
//! others, and limits would need a second place to be kept in. The price is a hop between threads for each request.
//!
//! A question passes `attempts.rs` (how often) → `pool.rs` (where, and the queue) → `http.rs` (one request). What decides
//! is pure: `choice.rs`, `breaker.rs`, `request.rs`, `reply.rs`, `retry_after.rs`.
//!
//! A key must not get into a message, a log or a record: `member.rs` holds it, and `problem.rs` takes it out of what
//! servers say.

mod attempts;
mod breaker;
mod choice;
mod error;
mod health;
mod http;
mod lane;
mod member;
mod place;
mod pool;
mod problem;
mod reply;
mod request;
mod retry_after;
mod standing;
mod status;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::AgentError;
use super::model::{Ask, Model, Reply};
use crate::settings::Upstreams;
use attempts::{Asker, Patience};
use http::Http;
use lane::Lane;
use member::Member;
use pool::Pool;
use request::{Form, OWN_FIELDS};

pub use breaker::BreakerState;
pub use error::UpstreamsError;
pub use status::UpstreamStatus;

/// A pool of servers as a model.
pub struct OpenAiModel {
    asker: Arc<Asker>,
    lane: Lane,
}

impl OpenAiModel {
    /// Starts the pool's thread, and with it the looks at whether the servers are there; waits for none of them. `lookup`
    /// gives the value of an environment variable, and is asked for the keys once, here.
    ///
    /// # Errors
    /// When the settings cannot be used, a key is not set, or there is no thread to be had.
    pub fn new(settings: &Upstreams, lookup: impl Fn(&str) -> Option<String>) -> Result<Self, UpstreamsError> {
        let form = Form { api: settings.api, dialect: settings.dialect, extra: extra(&settings.extra)? };
        let mut members: Vec<Member> = Vec::new();
        for upstream in &settings.upstreams {
            let mut member = Member::new(upstream, form.path(), &settings.health_path, &lookup)?;
            if let Some(other) = members.iter().find(|other| other.name == member.name) {
                if other.ask_url == member.ask_url {
                    return Err(UpstreamsError::Twice { name: member.name.to_string() });
                }
                member.name = member.longer_name();
            }
            members.push(member);
        }
        if members.is_empty() {
            return Err(UpstreamsError::Empty);
        }
        let http = Http::new(settings, &members).map_err(|error| UpstreamsError::Client(error.to_string()))?;
        let count = members.len();
        let pool = Arc::new(Pool::new(settings, members));
        let asker = Arc::new(Asker { pool, http, form, patience: Patience::new(settings) });
        let lane = Lane::start("upstreams").map_err(UpstreamsError::Thread)?;
        if settings.health_interval_ms > 0 {
            let interval = Duration::from_millis(settings.health_interval_ms);
            for index in 0..count {
                lane.keep(health::watch(Arc::clone(&asker), index, interval));
            }
        }
        Ok(Self { asker, lane })
    }

    /// How the servers stand, in the order of the configuration.
    pub fn snapshot(&self) -> Vec<UpstreamStatus> {
        self.asker.pool.snapshot()
    }

    /// Requests that wait for a server to have a place.
    pub fn waiting(&self) -> usize {
        self.asker.pool.waiting()
    }
}

#[async_trait]
impl Model for OpenAiModel {
    async fn ask(&self, ask: Ask) -> Result<Reply, AgentError> {
        let asker = Arc::clone(&self.asker);
        let errand = self.lane.run(async move { asker.ask(&ask).await });
        errand.await.unwrap_or_else(|error| Err(attempts::broken(error.is_panic())))
    }
}

/// The further fields of requests.
fn extra(text: &str) -> Result<Map<String, Value>, UpstreamsError> {
    let bad = |reason: String| UpstreamsError::Extra { reason };
    let extra: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| bad(format!("is no JSON object: {error}")))?;
    match OWN_FIELDS.into_iter().find(|name| extra.contains_key(*name)) {
        Some(name) => Err(bad(format!("has the field `{name}`, which is set for every request: leave it out"))),
        None => Ok(extra),
    }
}
