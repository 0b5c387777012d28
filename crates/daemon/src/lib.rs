//! The daemon: runs over HTTP. It translates between HTTP and [`Runs`]; what a run is and how it
//! survives is the part of `runs`.
//!
//! - `guard`: everything between the network and the routes: connections, limits, keys, request
//!   ids.
//! - `error`: the one shape of all errors. `wire`: request and response types, `trace_schema`: the
//!   events among them. `resolve`: from a request to a run's spec.
//! - Routes of runs: `runs`, `events`, `reviews`, `steps`, `try_step`, `verify`; for OpenAI's
//!   clients: `openai`; for agents with tools: `mcp`.
//! - Routes of operations: `health`, `http_metrics`, `reload`, `split`, `catalog`, `cluster`,
//!   `reports`, `openapi`.
//! - `studio`: the page for browsers.
//! - `head_requests`: HEAD for all of them. `latest_check`: what is found out at most so often.
//! - `fuzz_entry`: the parsing of all routes, for the fuzzer and its test.

mod catalog;
mod cluster;
pub mod error;
mod events;
mod fuzz_entry;
pub mod guard;
mod head_requests;
mod health;
mod http_metrics;
mod journal;
mod latest_check;
pub mod mcp;
mod openai;
mod openapi;
mod reload;
mod reports;
mod resolve;
mod reviews;
mod runs;
mod split;
mod steps;
mod studio;
mod trace_schema;
mod try_step;
mod verify;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;

use actix_web::{HttpResponse, web};
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use error::ApiError;
use guard::ResponseHead;
use journal::OpenJournal;
use prime_journal::JournalError;
use prime_service::app::App;
use prime_service::metrics::Metrics;
use prime_service::runs::Runs;
use prime_service::telemetry::Telemetry;

pub use fuzz_entry::read_as_each_route;
pub use reload::{Reload, ReloadRequest, Reloaded, Reloads};

/// Why the daemon cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error(
        "server.bind = {bind}: {reason}: stop the process that uses the port, or choose another with --set server.bind=HOST:PORT"
    )]
    Bind { bind: SocketAddr, reason: std::io::Error },
    #[error(
        "server.bind = {bind}: other machines can reach this address, but there are no keys (server.keys): create one with \
         `prime-agents key new NAME` and add its output to the configuration, or bind 127.0.0.1"
    )]
    NoKeys { bind: SocketAddr },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the open runs of the journal cannot be resumed: {0}")]
    Resume(prime_service::runs::RunError),
    #[error("the server failed: {0}")]
    Serve(std::io::Error),
}

/// Shared by all workers of the server.
struct State {
    runs: Arc<Runs>,
    /// Whether requests need a key. Fixed when the server starts; a reload does not change it.
    has_keys: bool,
    /// Start of the server, in milliseconds since 1970.
    started_ms: u64,
    verify: verify::Pool,
    /// What `/readyz` knows.
    checks: health::Checks,
    /// What `/metrics` knows of a shared journal.
    store: http_metrics::StoreReadings,
    /// Where to request a reload of the configuration; `None` where nothing can be reloaded.
    reloads: Option<mpsc::Sender<ReloadRequest>>,
}

impl State {
    fn new(
        runs: Arc<Runs>,
        has_keys: bool,
        reloads: Option<mpsc::Sender<ReloadRequest>>,
    ) -> Result<Self, std::io::Error> {
        let verify = verify::Pool::start()?;
        let (checks, store) = (health::Checks::default(), http_metrics::StoreReadings::default());
        Ok(Self { runs, has_keys, started_ms: now_ms(), verify, checks, store, reloads })
    }
}

/// The wall clock, in milliseconds since 1970.
fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}

fn configure(config: &mut web::ServiceConfig) {
    config.configure(runs::configure).configure(events::configure).configure(catalog::configure);
    config
        .configure(openai::configure)
        .configure(health::configure)
        .configure(http_metrics::configure);
    config.configure(verify::configure).configure(openapi::configure).configure(reviews::configure);
    config.configure(reload::configure).configure(split::configure).configure(mcp::configure);
    config.configure(steps::configure).configure(studio::configure).configure(cluster::configure);
    config.configure(try_step::configure).configure(reports::configure);
    config.default_service(web::to(|| async { Err::<HttpResponse, _>(ApiError::no_such_route()) }));
}

/// Responds 405.
async fn method_not_allowed(allowed: &'static str) -> Result<HttpResponse, ApiError> {
    Err(ApiError::method_not_allowed(allowed))
}

/// Opens the configured journal, and starts what carries out its runs.
fn open_runs(
    app: App,
    metrics: Arc<Metrics>,
    telemetry: Option<Telemetry>,
) -> Result<(OpenJournal, Arc<Runs>), DaemonError> {
    let journal = OpenJournal::open(app.settings())?;
    let runs = Runs::start(Arc::new(app), journal.journal(), now_ms, metrics, telemetry);
    Ok((journal, runs.map_err(DaemonError::Serve)?))
}

/// Serves until SIGTERM or SIGINT. The next process resumes the runs that are open then.
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
    let Reloads { settings: mut new_settings, requests: reloads } = reloads;
    ignore_file_size_signal();
    let metrics = Metrics::new(jiff::Timestamp::now());
    let metrics = match prime_service::metrics::nvidia_gpus() {
        Some(gpus) => metrics.with_gpus(gpus),
        None => metrics,
    };
    http_metrics::declare(&metrics);
    let metrics = Arc::new(metrics);
    let (journal, runs) = open_runs(app, Arc::clone(&metrics), telemetry)?;
    let state = State::new(Arc::clone(&runs), !settings.server.keys.is_empty(), reloads)
        .map_err(DaemonError::Serve)?;
    let state = web::Data::new(state);
    let measure = move |response: &ResponseHead<'_>| http_metrics::count(&metrics, response);
    let bound = guard::bind(&settings.server, measure, move |config| {
        config.app_data(state.clone()).configure(configure);
    });
    let bound = bound.inspect_err(|_| journal.discard_if_unused())?;
    let resumed = journal.begin(&runs).map_err(DaemonError::Resume)?;
    if resumed > 0 {
        tracing::info!(runs = resumed, "resuming open runs");
    }
    actix::spawn(Arc::clone(&runs).run_retention());
    let reloading = Arc::clone(&runs);
    actix::spawn(async move {
        while let Some(Reload { settings: new, reply }) = new_settings.recv().await {
            // The caller may have stopped waiting.
            drop(reply.send(reload::apply(&reloading, &settings, new).await));
        }
    });
    let handle = bound.running.handle();
    let mut serving = actix::spawn(bound.running);
    on_ready(bound.address);
    let result = tokio::select! {
        ended = &mut serving => ended,
        () = stop_signal() => {
            // New runs and watchers first, then the connections, then the journal.
            runs.drain();
            journal.drain();
            handle.stop(true).await;
            serving.await
        }
    };
    runs.park();
    journal.close();
    runs.app().shutdown();
    result.unwrap_or_else(|panic| Err(std::io::Error::other(panic))).map_err(DaemonError::Serve)
}

/// Handles SIGXFSZ, which would end the process at a write beyond the limit on file sizes
/// (`ulimit -f`). The write then fails as on a full disk.
fn ignore_file_size_signal() {
    // The handler stays installed when the listener is dropped.
    if let Err(error) = signal(SignalKind::from_raw(Signal::XFSZ.as_raw())) {
        tracing::warn!(%error, "cannot handle SIGXFSZ: a limit on file sizes would end the process");
    }
}

/// Waits for SIGTERM or SIGINT.
async fn stop_signal() {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::error!("cannot wait for signals");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
