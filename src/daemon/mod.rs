//! The runtime behind HTTP: routes, wire types and limits. Runs are kept in memory and end with the process.

pub mod error;
pub mod guard;
mod registry;
mod routes;
mod wire;

use std::net::SocketAddr;

use actix_web::web;

use crate::app::App;
use registry::Registry;

/// Why the daemon could not serve.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error(
        "server.bind = {bind}: {source}: stop what uses the port, or bind another with --set server.bind=HOST:PORT"
    )]
    Bind { bind: SocketAddr, source: std::io::Error },
    #[error(
        "server.bind = {bind}: others can reach this address, but there are no keys (server.keys): make one with \
         `prime-agents key new NAME` and add what it prints to the configuration, or bind 127.0.0.1"
    )]
    NoKeys { bind: SocketAddr },
    #[error("the server failed: {0}")]
    Serve(std::io::Error),
}

/// Shared by the workers of the server.
struct State {
    app: App,
    registry: Registry,
}

/// Serves until a signal ends the process; live runs end with what is known.
///
/// # Errors
/// When the address cannot be bound, or the server fails.
pub async fn serve(app: App, on_ready: impl FnOnce(SocketAddr)) -> Result<(), DaemonError> {
    let server_settings = app.settings().server.clone();
    let state = web::Data::new(State { app, registry: Registry::default() });
    let shared = state.clone();
    let bound = guard::bind(&server_settings, move |config| {
        config.app_data(shared.clone()).configure(routes::configure);
    })?;
    on_ready(bound.address);
    let result = bound.running.await.map_err(DaemonError::Serve);
    state.app.runtime().halt();
    state.app.shutdown();
    result
}
