//! The runtime behind HTTP: routes, wire types and limits.

mod catalog;
pub mod error;
mod events;
mod guard;
mod health;
mod openai;
mod openapi;
mod request;
mod runs;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::{App as WebApp, HttpResponse, HttpServer, web};
use tokio::signal::unix::{SignalKind, signal};

use crate::app::App;
use crate::journal::{JournalError, SqliteJournal, SqliteOptions};
use crate::runs::Runs;
use error::ApiError;

/// Time that open connections get to finish when the daemon drains.
const DRAIN: Duration = Duration::from_secs(2);

/// Why the daemon could not serve.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error(
        "server.bind = {bind}: {source}: stop what uses the port, or bind another with --set server.bind=HOST:PORT"
    )]
    Bind { bind: SocketAddr, source: std::io::Error },
    #[error(
        "server.bind = {bind}: there is no access control yet, so only loopback addresses can be bound: use 127.0.0.1 \
         and put an authenticating proxy in front"
    )]
    NotLoopback { bind: SocketAddr },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the open runs of the journal cannot be taken up: {0}")]
    Resume(crate::runs::RunError),
    #[error("the server failed: {0}")]
    Serve(std::io::Error),
}

/// Shared by the workers of the server.
struct State {
    runs: Arc<Runs>,
    /// When this process began to serve, in milliseconds since 1970.
    started_ms: u64,
}

/// The wall clock, in milliseconds since 1970.
fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}

fn configure(config: &mut web::ServiceConfig) {
    config.configure(runs::configure).configure(events::configure).configure(catalog::configure);
    config.configure(openai::configure).configure(health::configure).configure(openapi::configure);
    config.default_service(web::to(|| async { Err::<HttpResponse, _>(ApiError::no_such_route()) }));
}

/// Answers a method that a resource does not have.
async fn no_such_method(allowed: &'static str) -> Result<HttpResponse, ApiError> {
    Err(ApiError::method_not_allowed(allowed))
}

/// Serves until SIGTERM or SIGINT; open runs are parked in the journal.
///
/// # Errors
/// When the journal cannot be opened, the address cannot be bound, or the server fails.
pub async fn serve(app: App, on_ready: impl FnOnce(SocketAddr)) -> Result<(), DaemonError> {
    let settings = app.settings().clone();
    let bind = settings.server.bind;
    if !bind.ip().is_loopback() {
        return Err(DaemonError::NotLoopback { bind });
    }
    let journal =
        Arc::new(SqliteJournal::open(std::path::Path::new(&settings.journal.path), SqliteOptions::default())?);
    let runs = Runs::start(Arc::new(app), journal, now_ms, |_| {}).map_err(DaemonError::Serve)?;
    let state = web::Data::new(State { runs: Arc::clone(&runs), started_ms: now_ms() });
    let limits = guard::body::BodyLimits::from(&settings.server);
    let server = HttpServer::new(move || WebApp::new().app_data(state.clone()).app_data(limits).configure(configure))
        .workers(2)
        // A client that has closed its side is gone, and so is its request: its handler and its body are dropped.
        .h1_allow_half_closed(false)
        .disable_signals()
        .shutdown_timeout(DRAIN.as_secs())
        .bind(bind)
        .map_err(|source| DaemonError::Bind { bind, source })?;
    let address = server.addrs().first().copied().unwrap_or(bind);
    let resumed = runs.resume().map_err(DaemonError::Resume)?;
    if resumed > 0 {
        tracing::info!(runs = resumed, "taking up open runs");
    }
    let server = server.run();
    let handle = server.handle();
    let mut serving = actix::spawn(server);
    on_ready(address);
    let result = tokio::select! {
        ended = &mut serving => ended,
        () = stop_signal() => {
            // First nobody new, and those who watch are let go; then the connections; then the record is closed.
            runs.drain();
            handle.stop(true).await;
            serving.await
        }
    };
    runs.park();
    runs.app().shutdown();
    result.unwrap_or_else(|panic| Err(std::io::Error::other(panic))).map_err(DaemonError::Serve)
}

/// Waits for SIGTERM or SIGINT.
async fn stop_signal() {
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::error!("signals cannot be waited for");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
