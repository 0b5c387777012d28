//! Whether the journal and the engines work: checked by use, however many ask, at most twice a
//! second.

use std::time::Duration;

use futures::future::join_all;
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::latest_check::LatestCheck;
use prime_engine::{Engine, Format, Request, Sampling};
use prime_service::runs::Runs;

/// Most time that a write to the journal and a token of an engine take in a daemon that is ready.
const PROBE: Duration = Duration::from_millis(800);
/// How long a check of the journal and the engines counts. However many ask, they are checked no
/// more often.
const CHECK_EVERY: Duration = Duration::from_millis(500);
/// An engine that decoded within this time is ready; otherwise it must generate a token.
const RECENT_MS: u64 = 2_000;

/// The state of an engine.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct EngineHealth {
    pub name: String,
    /// True if it takes turns; an idle one does.
    pub ready: bool,
    /// True if its worker starts only with the next turn.
    pub idle: bool,
    pub restarts: u32,
    pub in_flight: usize,
    /// Milliseconds since it last decoded; null before the first time.
    pub last_decode_ms_ago: Option<u64>,
    pub failure: Option<String>,
}

/// True if an engine decodes: it did recently, or does now.
async fn decodes(engine: &Engine) -> bool {
    let status = engine.status();
    // Its worker starts with the next turn; a probe would start it for nothing.
    if status.idle {
        return true;
    }
    // A recent decode proves enough, and a worker that is down cannot give one.
    if !status.ready || status.last_decode_ms_ago.is_some_and(|ago| ago < RECENT_MS) {
        return status.ready;
    }

    let token = Request {
        prompt: " ".to_owned(),
        format: Format::Raw,
        grammar: None,
        excluded: Vec::new(),
        excluded_prefixes: Vec::new(),
        stop: None,
        newline_ends: false,
        thinking: prime_engine::Thinking::AsModel,
        sampling: Sampling { temperature: 0.0, top_p: 1.0, seed: 0 },
        max_tokens: 1,
        logprobs: false,
        ignore_end: false,
        group: 0,
        space: 0,
    };

    timeout(PROBE, engine.generate(token)).await.is_ok_and(|decoded| decoded.is_ok())
}

async fn engine_health(engine: &Engine) -> EngineHealth {
    let ready = decodes(engine).await;
    let status = engine.status();
    EngineHealth {
        name: status.name.clone(),
        ready,
        idle: status.idle,
        restarts: status.restarts,
        in_flight: status.in_flight,
        last_decode_ms_ago: status.last_decode_ms_ago,
        failure: status.failure.map(|failure| failure.to_string()),
    }
}

/// The journal and the engines, checked by use.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Why the journal cannot be written, if so.
    pub failure: Option<String>,
    pub engines: Vec<EngineHealth>,
}

async fn check(runs: &Runs) -> Checked {
    let engines = runs.app().engines();
    let engines = join_all(engines.values().map(engine_health));
    // At the same time, so that a probe takes no longer than the slowest part.
    let (probed, engines) = tokio::join!(timeout(PROBE, runs.store().probe()), engines);

    let failure = match probed {
        Ok(Ok(())) => None,
        Ok(Err(reason)) => Some(reason),
        Err(_) => Some(format!("no write succeeded within {} ms", PROBE.as_millis())),
    };

    Checked { failure, engines }
}

/// The checks of a daemon.
#[derive(Debug)]
pub struct Checks(LatestCheck<Checked>);

impl Default for Checks {
    fn default() -> Self {
        Self(LatestCheck::new(CHECK_EVERY))
    }
}

impl Checks {
    /// The newest check of these runs' journal and engines.
    pub async fn latest(&self, runs: &Runs) -> Checked {
        self.0.get(check(runs)).await
    }
}
