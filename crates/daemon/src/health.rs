//! Liveness and readiness.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::error::method_not_allowed;
use super::guard::Rights;
use super::readiness::{Checked, EngineHealth};
use super::request_context::rights_of;
use super::state::State;

/// What requests without a key get instead of the reason, which may name files.
const WITHHELD: &str = "the reason is in the daemon's log, and here for requests with a key";

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

    let Checked { failure, mut engines } = state.checks.latest(runs).await;

    // A write that failed since the check counts at once.
    let mut failure = failure.or_else(|| runs.store().failure());

    let ready = failure.is_none()
        && !runs.is_draining()
        && open < limit as usize
        && engines.iter().all(|engine| engine.ready);

    if rights_of(&request) == Rights::Stranger {
        // Only the reasons: whether the daemon is ready is for everybody.
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
