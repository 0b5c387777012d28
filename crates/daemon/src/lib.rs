//! The daemon: runs over HTTP. It translates between HTTP and [`Runs`](prime_service::runs::Runs);
//! what a run is, how a request becomes one and how it survives is the service's part.
//!
//! - `guard`: everything between the network and the routes: connections, limits, keys, request
//!   ids.
//! - `error`: the one shape of all errors; `service_errors`: the service's in that shape. `wire`:
//!   request and response types, `trace_schema`: the events among them.
//! - What routes have in common: `state`; `request_context`, who asks and may see what;
//!   `parameters`; `submit` and `run_calls`, what is done with runs; `run_list`, pages of runs;
//!   `background`; `heartbeat`; `encodings`; `clock`. No route imports from another route.
//! - Routes of runs: `runs`, `events`, `reviews`, `approvals`, `steps`, `try_step`, `attestation`,
//!   `transfer`, `verify`; for OpenAI's
//!   clients: `openai`; for agents with tools: `mcp`.
//! - Routes of operations: `health`, from what `readiness` finds; `http_metrics`, with
//!   `store_readings`; `reload`, `split`, `overview`, `catalog` with `uploads`, `cluster`,
//!   `reports`, `schedules`, `webhooks`,
//!   `openapi`.
//! - `configuration_check`: what a start would refuse, without one.
//! - `studio`: the page for browsers. `stop_signals`: what ends the process.
//! - `head_requests`: HEAD for all of them. `latest_check`: a result that is renewed at most once
//!   in a given time.
//! - `fuzz_entry`: the parsing of all routes, for the fuzzer and its test.

#![warn(missing_docs)]

mod approvals;
mod attestation;
mod background;
mod catalog;
mod clock;
mod cluster;
mod configuration_check;
mod daemon_error;
mod encodings;
pub mod error;
mod events;
mod exchanges;
mod fuzz_entry;
pub mod guard;
mod head_requests;
mod health;
mod heartbeat;
mod http_metrics;
mod journal;
mod latest_check;
pub mod mcp;
mod openai;
mod openapi;
mod overview;
mod parameters;
mod progress;
mod readiness;
mod reload;
mod reports;
mod request_context;
mod reviews;
mod run_calls;
mod run_list;
mod runs;
mod schedules;
mod service_errors;
mod split;
mod state;
mod steps;
pub mod stop_signals;
mod store_readings;
mod studio;
mod submit;
mod trace_schema;
mod transfer;
mod try_step;
mod uploads;
mod verify;
mod webhooks;
mod wire;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use actix_web::{HttpResponse, web};
use tokio::signal::unix::SignalKind;

use error::ApiError;
use guard::ResponseHead;
use journal::open_runs;
use prime_service::app::{App, environment_of_the_process};
use prime_service::attestation::AttestationKey;
use prime_service::metrics::Metrics;
use prime_service::runs::Schedules;
use prime_service::telemetry::Telemetry;
use prime_service::webhooks::Webhooks;
use prime_settings::Server;
use state::State;
use stop_signals::{StopSignal, handle_file_size_signal};

pub use clock::check_clock;
pub use configuration_check::check;
pub use daemon_error::{DaemonError, bind_remedy};
pub use fuzz_entry::read_as_each_route;
pub use parameters::numbers_in_words;
pub use reload::{Reload, ReloadRequest, Reloaded, Reloads};

fn configure(config: &mut web::ServiceConfig) {
    // First, because `import` would be taken for the id of a run.
    config.configure(transfer::configure);
    config
        .configure(runs::configure)
        .configure(events::configure)
        .configure(progress::configure)
        .configure(exchanges::configure)
        .configure(catalog::configure);
    config
        .configure(openai::configure)
        .configure(health::configure)
        .configure(http_metrics::configure);
    config
        .configure(verify::route::configure)
        .configure(openapi::configure)
        .configure(reviews::configure)
        .configure(approvals::configure);
    config
        .configure(reload::route::configure)
        .configure(split::configure)
        .configure(mcp::configure);
    config.configure(steps::configure).configure(studio::configure).configure(cluster::configure);
    config.configure(attestation::configure);
    config
        .configure(try_step::configure)
        .configure(reports::configure)
        .configure(overview::configure)
        .configure(schedules::configure)
        .configure(webhooks::configure);
    config.default_service(web::to(|| async { Err::<HttpResponse, _>(ApiError::no_such_route()) }));
}

/// The key that signs attestations, if one is configured.
fn attestation_key(server: &Server) -> Result<Option<AttestationKey>, DaemonError> {
    let path = server.attestation_key_file.as_str();
    let read = || AttestationKey::read(Path::new(path)).map_err(DaemonError::AttestationKey);
    (!path.is_empty()).then(read).transpose()
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
    // The server keeps its initial settings until it ends, whatever a reload changes.
    let settings = Arc::new(app.settings().clone());
    let Reloads { settings: mut new_settings, requests: reloads } = reloads;
    handle_file_size_signal();

    // The journal makes files, which a daemon that cannot serve must not leave.
    guard::check_bind(&settings.server)?;
    let attestation_key = attestation_key(&settings.server)?;
    let webhooks = Webhooks::new(&settings.webhooks, &*environment_of_the_process())?;

    let schedules = Schedules::of(&settings)?;

    let metrics = Metrics::new(jiff::Timestamp::now());
    let metrics = match prime_service::metrics::nvidia_gpus() {
        Some(gpus) => metrics.with_gpus(gpus),
        None => metrics,
    };
    // Before the first request, so that every series exists from the start.
    http_metrics::declare(&metrics);
    let metrics = Arc::new(metrics);

    let (journal, runs) = open_runs(app, Arc::clone(&metrics), telemetry)?;
    // Before runs are resumed, whose ends they tell.
    runs.use_webhooks(webhooks);
    runs.use_schedules(schedules);
    let keys = settings.server.keys.iter().map(|key| (key.name.clone(), key.admin)).collect();
    let state = State::new(Arc::clone(&runs), keys, attestation_key, reloads)
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

    let starting = Arc::clone(&runs);
    // Apart, so that a slow journal does not delay the start.
    actix::spawn(async move { drop(reload::hidden_tasks(&starting).await) });

    actix::spawn(Arc::clone(&runs).run_retention());
    actix::spawn(Arc::clone(&runs).run_indexer());
    actix::spawn(Arc::clone(&runs).run_deliveries());
    actix::spawn(Arc::clone(&runs).run_schedules());
    actix::spawn(Arc::clone(&runs).run_deadlines());
    actix::spawn(Arc::clone(&runs).run_standstills());
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

/// Waits for SIGTERM or SIGINT, except for one that was ignored at the start.
async fn stop_signal() {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (StopSignal::listen(SignalKind::terminate()), StopSignal::listen(SignalKind::interrupt()))
    else {
        tracing::error!("cannot wait for signals");
        return std::future::pending().await;
    };

    tokio::select! {
        () = terminate.recv() => {}
        () = interrupt.recv() => {}
    }
}
