//! The runtime behind HTTP: routes, wire types and limits.

mod catalog;
pub mod error;
mod events;
pub mod guard;
mod health;
mod measured;
mod openai;
mod openapi;
mod reading;
mod reload;
mod request;
mod reviews;
mod runs;
mod split;
mod verify;
mod wire;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use actix_web::{HttpResponse, web};
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::app::App;
use crate::metrics::Metrics;
use crate::runs::Runs;
use crate::telemetry::Telemetry;
use error::ApiError;
use guard::Answered;
use prime_journal::{JournalError, SqliteJournal, SqliteOptions};

pub use reading::read_as_each_route;
pub use reload::{Reload, Reloaded, Reloads, Reread};

/// Why the daemon could not serve.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error(
        "server.bind = {bind}: {reason}: stop what uses the port, or bind another with --set server.bind=HOST:PORT"
    )]
    Bind { bind: SocketAddr, reason: std::io::Error },
    #[error(
        "server.bind = {bind}: others can reach this address, but there are no keys (server.keys): make one with \
         `prime-agents key new NAME` and add what it prints to the configuration, or bind 127.0.0.1"
    )]
    NoKeys { bind: SocketAddr },
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
    /// The server asks for keys. It does as it did when it was started, whatever is configured since.
    has_keys: bool,
    /// When this process began to serve, in milliseconds since 1970.
    started_ms: u64,
    /// Where the configuration is asked for again; `None` where nobody can read it.
    reread: Option<mpsc::Sender<Reread>>,
}

/// The wall clock, in milliseconds since 1970.
fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}

fn configure(config: &mut web::ServiceConfig) {
    config.configure(runs::configure).configure(events::configure).configure(catalog::configure);
    config.configure(openai::configure).configure(health::configure).configure(measured::configure);
    config.configure(verify::configure).configure(openapi::configure).configure(reviews::configure);
    config.configure(reload::configure).configure(split::configure);
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
pub async fn serve(
    app: App,
    telemetry: Option<Telemetry>,
    reloads: Reloads,
    on_ready: impl FnOnce(SocketAddr),
) -> Result<(), DaemonError> {
    let settings = Arc::new(app.settings().clone());
    let Reloads { settings: mut new_settings, wanted: reread } = reloads;
    survive_file_limits();
    let journal = Arc::new(SqliteJournal::open(Path::new(&settings.journal.path), SqliteOptions::default())?);
    let metrics = Metrics::new(jiff::Timestamp::now());
    let metrics = match crate::metrics::nvidia_gpus() {
        Some(gpus) => metrics.with_gpus(gpus),
        None => metrics,
    };
    let metrics = Arc::new(metrics);
    let runs =
        Runs::start(Arc::new(app), journal, now_ms, Arc::clone(&metrics), telemetry).map_err(DaemonError::Serve)?;
    let state = web::Data::new(State {
        runs: Arc::clone(&runs),
        has_keys: !settings.server.keys.is_empty(),
        started_ms: now_ms(),
        reread,
    });
    let measure = move |answered: &Answered<'_>| measured::count(&metrics, answered);
    let bound = guard::bind(&settings.server, measure, move |config| {
        config.app_data(state.clone()).configure(configure);
    })?;
    let resumed = runs.resume().map_err(DaemonError::Resume)?;
    if resumed > 0 {
        tracing::info!(runs = resumed, "taking up open runs");
    }
    actix::spawn(Arc::clone(&runs).keep_tidy());
    let reloading = Arc::clone(&runs);
    actix::spawn(async move {
        while let Some(Reload { settings: new, reply }) = new_settings.recv().await {
            // Whoever asked may be gone.
            drop(reply.send(reload::take(&reloading, &settings, new).await));
        }
    });
    let handle = bound.running.handle();
    let mut serving = actix::spawn(bound.running);
    on_ready(bound.address);
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

/// Takes SIGXFSZ, which would end the process where a write is over a limit on the size of files (`ulimit -f`): with
/// the write's error alone, such a limit is like a full disk.
fn survive_file_limits() {
    // The handler stays when what listens to it is dropped.
    if let Err(error) = signal(SignalKind::from_raw(Signal::XFSZ.as_raw())) {
        tracing::warn!(%error, "SIGXFSZ cannot be taken: a limit on the size of files would end the process");
    }
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
