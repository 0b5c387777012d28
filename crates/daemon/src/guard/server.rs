//! Binds the server: the guard around the routes, and actix-web's own limits.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Server as Running;
use actix_web::http::KeepAlive;
use actix_web::middleware::from_fn;
use actix_web::{App, HttpServer, web};

use super::body::BodyLimits;
use super::connection_table::RESERVE;
use super::connections::Connections;
use super::middleware::{Guard, ResponseHead};
use super::old_http::unchunked_for_old_http;
use crate::daemon_error::DaemonError;
use crate::head_requests::head_as_get;
use prime_settings::Server;

/// Threads that serve requests.
const WORKERS: usize = 2;

/// Seconds for requests to finish when the server stops.
const DRAIN_S: u64 = 2;

/// A listening server. It serves while `running` is awaited.
pub struct Bound {
    pub running: Running,
    pub address: SocketAddr,
    pub connections: Arc<Connections>,
}

/// Binds the configured address, with the guard before the routes that `configure` adds.
///
/// # Errors
/// When the address is reachable from other machines without keys, or cannot be bound.
pub fn bind(
    server: &Server,
    measure: impl Fn(&ResponseHead<'_>) + Send + Sync + 'static,
    configure: impl Fn(&mut web::ServiceConfig) + Clone + Send + 'static,
) -> Result<Bound, DaemonError> {
    let bind = server.bind;
    if server.keys.is_empty() && !bind.ip().is_loopback() {
        return Err(DaemonError::NoKeys { bind });
    }
    let connections = Connections::new(server.into(), server.into());
    let (guard, bodies) = (Guard::new(server, measure), BodyLimits::from(server));
    let http = HttpServer::new(move || {
        App::new()
            .app_data(bodies)
            // The same limit for actix-web's own extractors.
            .app_data(web::PayloadConfig::new(bodies.bytes_max))
            .wrap(from_fn(unchunked_for_old_http))
            .wrap(from_fn(head_as_get))
            .wrap(guard.clone())
            .configure(configure.clone())
    })
    .workers(WORKERS)
    // Each worker counts its own; one with room accepts the next connection. `Connections` keeps
    // them below this, so that a probe never waits for a place.
    .max_connections((server.connections_max as usize + RESERVE).div_ceil(WORKERS))
    .keep_alive(KeepAlive::Timeout(Duration::from_millis(server.keep_alive_ms)))
    .client_request_timeout(Duration::from_millis(server.head_timeout_ms))
    .client_disconnect_timeout(Duration::from_millis(server.disconnect_timeout_ms))
    // The daemon shuts down in its own order.
    .disable_signals()
    .shutdown_timeout(DRAIN_S)
    // Events of a stream are sent as they come.
    .tcp_nodelay(true)
    // A client that closes its side cancels its request.
    .h1_allow_half_closed(false)
    .on_connect(connections.on_connect())
    .bind(bind)
    .map_err(|reason| DaemonError::Bind { bind, reason })?;
    let address = http.addrs().first().copied().unwrap_or(bind);
    Ok(Bound { running: http.run(), address, connections })
}
