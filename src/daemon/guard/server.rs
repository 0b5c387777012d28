//! The listening server: the guard round the routes, and the limits that actix-web itself keeps.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Server as Running;
use actix_web::http::KeepAlive;
use actix_web::{App, HttpServer, web};

use super::body::BodyLimits;
use super::connections::Connections;
use super::{Answered, Guard};
use crate::daemon::DaemonError;
use crate::settings::Server;

/// Threads that answer requests.
const WORKERS: usize = 2;

/// Seconds that requests get to finish when the server stops.
const DRAIN_S: u64 = 2;

/// A server that listens. It answers while `running` is awaited.
pub struct Bound {
    /// To be awaited; ends when its handle says so.
    pub running: Running,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its connections.
    pub connections: Arc<Connections>,
}

/// Listens as the configuration says and puts the guard before the routes that `configure` adds.
///
/// # Errors
/// When there are no keys and others can reach the address, or it cannot be bound.
pub fn bind(
    server: &Server,
    measure: impl Fn(&Answered<'_>) + Send + Sync + 'static,
    configure: impl Fn(&mut web::ServiceConfig) + Clone + Send + 'static,
) -> Result<Bound, DaemonError> {
    let bind = server.bind;
    if server.keys.is_empty() && !bind.ip().is_loopback() {
        return Err(DaemonError::NoKeys { bind });
    }
    let connections = Connections::new(server.into());
    let (guard, bodies) = (Guard::new(server, measure), BodyLimits::from(server));
    let http = HttpServer::new(move || {
        App::new()
            .app_data(bodies)
            // For what is extracted by actix-web itself.
            .app_data(web::PayloadConfig::new(bodies.bytes_max))
            .wrap(guard.clone())
            .configure(configure.clone())
    })
    .workers(WORKERS)
    // Counted by each worker; one with room takes the next connection.
    .max_connections((server.connections_max as usize).div_ceil(WORKERS))
    .keep_alive(KeepAlive::Timeout(Duration::from_millis(server.keep_alive_ms)))
    .client_request_timeout(Duration::from_millis(server.head_timeout_ms))
    .client_disconnect_timeout(Duration::from_millis(server.disconnect_timeout_ms))
    // The daemon drains in its own order.
    .disable_signals()
    .shutdown_timeout(DRAIN_S)
    // Events of a stream go out as they come.
    .tcp_nodelay(true)
    // A client that has closed its side is gone, and so is its request.
    .h1_allow_half_closed(false)
    .on_connect(connections.on_connect())
    .bind(bind)
    .map_err(|reason| DaemonError::Bind { bind, reason })?;
    let address = http.addrs().first().copied().unwrap_or(bind);
    Ok(Bound { running: http.run(), address, connections })
}
