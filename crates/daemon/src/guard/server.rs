//! Binds the server: the guard around the routes, and actix-web's own limits.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use actix_http::{HttpService, Protocol};
use actix_service::{IntoServiceFactory as _, ServiceFactoryExt as _, map_config};
use actix_web::dev::{AppConfig, Server as Running, fn_service};
use actix_web::http::KeepAlive;
use actix_web::middleware::from_fn;
use actix_web::rt::net::TcpStream;
use actix_web::{App, Error, web};
use tokio::net::TcpSocket;

use super::body::BodyLimits;
use super::client_stream::ClientStream;
use super::connection_table::RESERVE;
use super::connections::{ConnectionLimits, Connections};
use super::descriptors;
use super::json_answers::compact_json;
use super::malformed_heads::MalformedHeads;
use super::middleware::{Guard, ResponseHead};
use super::old_http::unchunked_for_old_http;
use crate::daemon_error::DaemonError;
use crate::head_requests::head_as_get;
use prime_settings::Server;

/// Threads that serve requests.
const WORKERS: usize = 2;

/// Seconds for requests to finish when the server stops.
const DRAIN_S: u64 = 2;

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: u32 = 1_024;

/// A listening server. It serves while `running` is awaited.
pub struct Bound {
    /// The server's future: it ends when the server has stopped.
    pub running: Running,
    /// The bound address, with the port that the system chose if `server.bind` has port 0.
    pub address: SocketAddr,
    /// The open connections.
    pub connections: Arc<Connections>,
}

/// Checks that the configured address can be bound, without keeping it, so that a daemon that
/// cannot serve makes nothing.
///
/// # Errors
/// When the address is reachable from other machines without keys, or cannot be bound.
pub fn check_bind(server: &Server) -> Result<(), DaemonError> {
    let bind = server.bind;
    if server.keys.is_empty() && !bind.ip().is_loopback() {
        return Err(DaemonError::NoKeys { bind });
    }
    TcpListener::bind(bind).map(drop).map_err(|reason| DaemonError::Bind { bind, reason })
}

/// Binds the configured address, with the guard before the routes that `configure` adds.
///
/// # Errors
/// When the address is reachable from other machines without keys or cannot be bound, or
/// there are not enough file descriptors.
pub fn bind(
    server: &Server,
    measure: impl Fn(&ResponseHead<'_>) + Send + Sync + 'static,
    configure: impl Fn(&mut web::ServiceConfig) + Clone + Send + 'static,
) -> Result<Bound, DaemonError> {
    let bind = server.bind;
    if server.keys.is_empty() && !bind.ip().is_loopback() {
        return Err(DaemonError::NoKeys { bind });
    }
    descriptors::ensure(server.connections_max).map_err(DaemonError::Descriptors)?;
    let connections = Connections::new(server.into(), server.into());
    let failed = |reason| DaemonError::Bind { bind, reason };
    let listener = listen(bind).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;

    let (guard, bodies) = (Guard::new(server, measure), BodyLimits::from(server));
    let app = move || {
        App::new()
            .app_data(bodies)
            // The same limit for actix-web's own extractors.
            .app_data(web::PayloadConfig::new(bodies.bytes_max))
            .wrap(from_fn(compact_json))
            .wrap(from_fn(unchunked_for_old_http))
            .wrap(from_fn(head_as_get))
            .wrap(guard.clone())
            .configure(configure.clone())
    };

    let builder = Running::build();
    let stopping = builder.graceful_shutdown_signal();
    let timeouts = ConnectionLimits::from(server);
    let malformed = Arc::new(MalformedHeads::default());
    let watched = Arc::clone(&connections);
    // Like actix-web's `HttpServer`, but on our own streams.
    let serve = move || {
        let (stopping, malformed) = (stopping.clone(), Arc::clone(&malformed));
        let service = HttpService::build()
            .graceful_shutdown_signal(move || {
                let stopping = stopping.clone();
                async move { stopping.notified().await }
            })
            .keep_alive(KeepAlive::Timeout(timeouts.keep_alive))
            .client_request_timeout(timeouts.head)
            .client_disconnect_timeout(timeouts.disconnect)
            // A client that closes its side cancels its request.
            .h1_allow_half_closed(false)
            .local_addr(address)
            .on_connect_ext(watched.on_connect());
        let app = app().into_factory().map_err(|error: Error| error.error_response());
        let http = service
            .finish(map_config(app, |()| AppConfig::default()))
            .map_err(move |error| malformed.log(&error));

        fn_service(|stream: TcpStream| async {
            // Events of a stream are sent as they come.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "cannot set TCP_NODELAY on a connection");
            }
            let address = stream.peer_addr().ok();
            Ok((ClientStream::new(stream), Protocol::Http1, address))
        })
        .and_then(http)
    };

    let running = builder
        .workers(WORKERS)
        // Each worker counts its own; one with room accepts the next connection. `Connections`
        // keeps them below this, so that a probe never waits for a place.
        .max_concurrent_connections((server.connections_max as usize + RESERVE).div_ceil(WORKERS))
        // The daemon shuts down in its own order.
        .disable_signals()
        .shutdown_timeout(DRAIN_S)
        .listen("http", listener, serve)
        .map_err(failed)?
        .run();
    Ok(Bound { running, address, connections })
}

/// Listens on an address. A daemon that starts again gets it at once.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)?.into_std()
}
