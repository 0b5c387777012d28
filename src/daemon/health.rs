//! Liveness and readiness.

use std::time::Duration;

use actix_web::{HttpResponse, web};
use futures::future::join_all;
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::{State, method_not_allowed};
use prime_engine::{Engine, Format, Request, Sampling};

/// Longest write to the journal of a daemon that is ready.
const PROBE: Duration = Duration::from_millis(800);
/// An engine that decoded within this time is ready; otherwise it must generate a token.
const RECENT_MS: u64 = 2_000;

pub fn configure(config: &mut web::ServiceConfig) {
    config
        .service(
            web::resource("/livez").route(web::get().to(livez)).default_service(web::to(|| method_not_allowed("GET"))),
        )
        .service(
            web::resource("/readyz")
                .route(web::get().to(readyz))
                .default_service(web::to(|| method_not_allowed("GET"))),
        );
}

/// The process is alive.
#[derive(Debug, Serialize, ToSchema)]
pub struct Liveness {
    /// `alive`.
    pub status: &'static str,
}

/// Responds while the event loop runs.
#[utoipa::path(
    get, path = "/livez", tag = "operations", operation_id = "livez",
    responses((status = 200, description = "Alive", body = Liveness)),
)]
pub async fn livez() -> HttpResponse {
    HttpResponse::Ok().json(Liveness { status: "alive" })
}

/// Whether the daemon is ready, and why not.
#[derive(Debug, Serialize, ToSchema)]
pub struct Readiness {
    pub ready: bool,
    pub draining: bool,
    /// Open runs.
    pub live_runs: usize,
    /// `server.queue_max`.
    pub live_runs_max: u32,
    /// Agents that block their thread.
    pub hung_agents: u64,
    pub journal: JournalHealth,
    /// The engine of the configured executor, the first of several, if it has one.
    pub engine: Option<EngineHealth>,
    /// The engines of the configured agents.
    pub engines: Vec<EngineHealth>,
}

/// Whether a write just succeeded.
#[derive(Debug, Serialize, ToSchema)]
pub struct JournalHealth {
    pub writable: bool,
    pub failure: Option<String>,
}

/// The state of an engine.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct EngineHealth {
    pub name: String,
    pub ready: bool,
    pub restarts: u32,
    pub in_flight: usize,
    /// Milliseconds since it last decoded; null before the first time.
    pub last_decode_ms_ago: Option<u64>,
    pub failure: Option<String>,
}

/// Whether an engine decodes: it did recently, or does now.
async fn decodes(engine: &Engine) -> bool {
    let status = engine.status();
    if !status.ready || status.last_decode_ms_ago.is_some_and(|ago| ago < RECENT_MS) {
        return status.ready;
    }
    let token = Request {
        prompt: " ".to_owned(),
        format: Format::Raw,
        grammar: None,
        excluded: Vec::new(),
        excluded_prefixes: Vec::new(),
        sampling: Sampling { temperature: 0.0, top_p: 1.0, seed: 0 },
        max_tokens: 1,
        logprobs: false,
        ignore_end: false,
        group: 0,
    };
    timeout(PROBE, engine.generate(token)).await.is_ok_and(|decoded| decoded.is_ok())
}

async fn engine_health(engine: &Engine) -> EngineHealth {
    let ready = decodes(engine).await;
    let status = engine.status();
    EngineHealth {
        name: status.name.clone(),
        ready,
        restarts: status.restarts,
        in_flight: status.in_flight,
        last_decode_ms_ago: status.last_decode_ms_ago,
        failure: status.failure.map(|failure| failure.to_string()),
    }
}

/// Tells whether a run submitted now would be accepted and executed.
///
/// It would if the journal can be written, the engines decode, there is room, and the daemon is not draining.
#[utoipa::path(
    get, path = "/readyz", tag = "operations", operation_id = "readyz",
    responses(
        (status = 200, description = "Ready", body = Readiness),
        (status = 503, description = "Not ready, with the reason", body = Readiness),
    ),
)]
pub async fn readyz(state: web::Data<State>) -> HttpResponse {
    let runs = &state.runs;
    let app = runs.app();
    let (live, limit) = (runs.open_runs(), app.settings().server.queue_max);
    let engines = app.engines();
    let engines = join_all(engines.values().map(engine_health));
    let (probed, engines) = tokio::join!(timeout(PROBE, runs.probe()), engines);
    let failure = match probed {
        Ok(Ok(())) => None,
        Ok(Err(reason)) => Some(reason),
        Err(_) => Some(format!("no write succeeded within {} ms", PROBE.as_millis())),
    };
    let ready =
        failure.is_none() && !runs.is_draining() && live < limit as usize && engines.iter().all(|engine| engine.ready);
    let asked = app.settings().agents.executor.engine.all();
    let body = Readiness {
        ready,
        draining: runs.is_draining(),
        live_runs: live,
        live_runs_max: limit,
        hung_agents: app.hangs().now,
        journal: JournalHealth { writable: failure.is_none(), failure },
        engine: engines.iter().find(|engine| Some(&engine.name) == asked.first()).cloned(),
        engines,
    };
    if ready { HttpResponse::Ok().json(body) } else { HttpResponse::ServiceUnavailable().json(body) }
}
