//! The runtime behind HTTP: routes, wire types and limits. Runs are kept in memory and end with the process.

mod registry;
mod routes;
mod wire;

use std::net::SocketAddr;

use actix_web::{App as WebApp, HttpServer, web};

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
        "server.bind = {bind}: there is no access control yet, so only loopback addresses can be bound: use 127.0.0.1 \
         and put an authenticating proxy in front"
    )]
    NotLoopback { bind: SocketAddr },
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
    let bind = server_settings.bind;
    if !bind.ip().is_loopback() {
        return Err(DaemonError::NotLoopback { bind });
    }
    let body_bytes_max = usize::try_from(server_settings.body_bytes_max).unwrap_or(usize::MAX);
    let state = web::Data::new(State { app, registry: Registry::default() });
    let shared = state.clone();
    let server = HttpServer::new(move || {
        WebApp::new()
            .app_data(shared.clone())
            .app_data(web::PayloadConfig::new(body_bytes_max))
            .configure(routes::configure)
    })
    .workers(2)
    .bind(bind)
    .map_err(|source| DaemonError::Bind { bind, source })?;
    on_ready(server.addrs().first().copied().unwrap_or(bind));
    let result = server.run().await.map_err(DaemonError::Serve);
    state.app.runtime().halt();
    state.app.shutdown();
    result
}
