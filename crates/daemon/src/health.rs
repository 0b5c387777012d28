//! Liveness and readiness.

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, web};
use futures::future::join_all;
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::guard::Rights;
use super::latest_check::LatestCheck;
use super::runs::rights_of;
use super::{State, method_not_allowed};
use prime_engine::{Engine, Format, Request, Sampling};
use prime_service::runs::Runs;

/// Longest write to the journal, and longest token of an engine, of a daemon that is ready.
const PROBE: Duration = Duration::from_millis(800);
/// How long a check of the journal and the engines counts. However many ask, they are checked no
/// more often.
const CHECK_EVERY: Duration = Duration::from_millis(500);
/// Instead of the reason, which may name files, for whoever has no key.
const WITHHELD: &str = "the reason is in the daemon's log, and here for requests with a key";
/// An engine that decoded within this time is ready; otherwise it must generate a token.
const RECENT_MS: u64 = 2_000;

pub fn configure(config: &mut web::ServiceConfig) {
    config
        .service(
            web::resource("/livez")
                .route(web::get().to(livez))
                .default_service(web::to(|| method_not_allowed("GET"))),
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
    /// Open runs that this daemon executes.
    pub live_runs: usize,
    /// Open runs of all daemons that share the journal, as of the last heartbeat.
    pub open_runs: usize,
    /// `server.queue_max`: most open runs of all daemons that share the journal.
    pub live_runs_max: u32,
    /// Agents that block their thread.
    pub hung_agents: u64,
    pub journal: JournalHealth,
    /// The engine of the configured executor, the first of several, if it has one.
    pub engine: Option<EngineHealth>,
    /// The engines of the configured agents.
    pub engines: Vec<EngineHealth>,
}

/// Whether the journal can be written.
#[derive(Debug, Serialize, ToSchema)]
pub struct JournalHealth {
    pub writable: bool,
    pub failure: Option<String>,
}

/// The state of an engine.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct EngineHealth {
    pub name: String,
    /// Whether it takes turns; an idle one does.
    pub ready: bool,
    /// Whether its worker starts only with the next turn.
    pub idle: bool,
    pub restarts: u32,
    pub in_flight: usize,
    /// Milliseconds since it last decoded; null before the first time.
    pub last_decode_ms_ago: Option<u64>,
    pub failure: Option<String>,
}

/// Whether an engine decodes: it did recently, or does now.
async fn decodes(engine: &Engine) -> bool {
    let status = engine.status();
    if status.idle {
        return true;
    }
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
        idle: status.idle,
        restarts: status.restarts,
        in_flight: status.in_flight,
        last_decode_ms_ago: status.last_decode_ms_ago,
        failure: status.failure.map(|failure| failure.to_string()),
    }
}

/// The journal and the engines, checked by use.
#[derive(Clone, Debug)]
struct Checked {
    /// Why the journal cannot be written, if so.
    failure: Option<String>,
    engines: Vec<EngineHealth>,
}

async fn check(runs: &Runs) -> Checked {
    let engines = runs.app().engines();
    let engines = join_all(engines.values().map(engine_health));
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

/// Tells whether a run submitted now would be accepted and executed.
///
/// It would if the journal can be written, the engines decode, there is room, and the daemon is not
/// draining. Journal and engines are checked at most twice a second. Where there are keys, reasons
/// are for requests with one.
#[utoipa::path(
    get, path = "/readyz", tag = "operations", operation_id = "readyz",
    responses(
        (status = 200, description = "Ready", body = Readiness),
        (status = 503, description = "Not ready, with the reason", body = Readiness),
    ),
)]
pub async fn readyz(state: web::Data<State>, request: HttpRequest) -> HttpResponse {
    let runs = &state.runs;
    let app = runs.app();
    let (live, open) = (runs.open_runs(), runs.open_runs_of_all());
    let limit = app.settings().server.queue_max;
    let Checked { failure, mut engines } = state.checks.0.get(check(runs)).await;
    // What was found out since by writing counts at once.
    let mut failure = failure.or_else(|| runs.store().failure());
    let ready = failure.is_none()
        && !runs.is_draining()
        && open < limit as usize
        && engines.iter().all(|engine| engine.ready);
    if rights_of(&request) == Rights::Stranger {
        let failures = engines.iter_mut().map(|engine| &mut engine.failure).chain([&mut failure]);
        failures.flatten().for_each(|reason| WITHHELD.clone_into(reason));
    }
    let asked = app.settings().agents.executor.engine.all();
    let body = Readiness {
        ready,
        draining: runs.is_draining(),
        live_runs: live,
        open_runs: open,
        live_runs_max: limit,
        hung_agents: app.hangs().now,
        journal: JournalHealth { writable: failure.is_none(), failure },
        engine: engines.iter().find(|engine| Some(&engine.name) == asked.first()).cloned(),
        engines,
    };
    if ready {
        HttpResponse::Ok().json(body)
    } else {
        HttpResponse::ServiceUnavailable().json(body)
    }
}
