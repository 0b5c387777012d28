//! Watches connections from outside actix-web. Its own timers close a connection whose first head
//! does not arrive and one that is idle, but not one whose client reads nothing of its response,
//! sends an incomplete second head, or keeps sending a body that no handler reads. So each
//! connection has a second descriptor of its socket and a watchdog task that shuts the socket down;
//! actix-web then drops everything that it holds for the client. `connection_table` limits how many
//! there may be.

use std::cell::Cell;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix_web::dev::Extensions;
use actix_web::rt::net::TcpStream;
use actix_web::rt::task::JoinHandle;
use rustix::net::sockopt;
use tokio::time::{Instant, sleep_until, timeout};

use super::client_stream::ClientStream;
use super::connection_table::{ConnectionCounts, ConnectionTable, Excess, Place};
use crate::error::ApiError;
use prime_settings::Server;

/// The kernel's send buffer. Fixed, because it would otherwise grow to megabytes for a client that
/// does not read. The kernel doubles it, and reports the socket writable when a third of that is
/// free.
const SEND_BUFFER_BYTES: usize = 128 * 1_024;
/// How much later than `stalled_reader_ms` the kernel itself drops a client that reads nothing.
const KERNEL_LATER: Duration = Duration::from_secs(5);
/// The share of `keep_alive` that a connection in the reserve may be idle: it is for one probe.
const RESERVE_IDLE_SHARE: u32 = 5;
/// `Retry-After` where too many connections are open.
const SOON: Duration = Duration::from_secs(1);
/// Longest wait for room to send the 408.
const TIMEOUT_RESPONSE_WAIT: Duration = Duration::from_millis(100);

/// How long a connection may stay in each state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Longest idle time, without a request.
    pub keep_alive: Duration,
    /// Longest wait for the rest of a head.
    pub head: Duration,
    /// Longest time to close.
    pub disconnect: Duration,
    /// Longest wait for a client that reads nothing of its response.
    pub stalled_reader: Duration,
}

impl From<&Server> for ConnectionLimits {
    fn from(server: &Server) -> Self {
        Self {
            keep_alive: Duration::from_millis(server.keep_alive_ms),
            head: Duration::from_millis(server.head_timeout_ms),
            disconnect: Duration::from_millis(server.disconnect_timeout_ms),
            stalled_reader: Duration::from_millis(server.stalled_reader_ms),
        }
    }
}

/// All connections of a server.
pub struct Connections {
    limits: ConnectionLimits,
    table: Arc<ConnectionTable>,
    stalled: AtomicU64,
}

impl Connections {
    /// No connections yet; `counts` says how many may be open.
    #[must_use]
    pub fn new(limits: ConnectionLimits, counts: ConnectionCounts) -> Arc<Self> {
        let table = ConnectionTable::new(counts);
        Arc::new(Self { limits, table, stalled: AtomicU64::new(0) })
    }

    /// Open connections.
    pub fn open(&self) -> usize {
        self.table.open()
    }

    /// Like [`ConnectionTable::has_read`].
    #[cfg(test)]
    pub fn has_read(&self, admitted: u64) -> bool {
        self.table.has_read(admitted)
    }

    /// Connections shut down because their client read nothing of its response.
    pub fn stalled(&self) -> u64 {
        self.stalled.load(Ordering::Relaxed)
    }

    /// The callback for new connections: watches the connection, and adds it to the data of its
    /// requests.
    pub fn on_connect(
        self: &Arc<Self>,
    ) -> impl Fn(&ClientStream, &mut Extensions) + Send + Sync + 'static {
        let connections = Arc::clone(self);
        move |stream, data| {
            drop(data.insert(Rc::clone(stream.expectation())));
            let stream = stream.tcp();
            let address = stream.peer_addr().ok().map(|address| address.ip());
            match stream.as_fd().try_clone_to_owned() {
                Ok(socket) => drop(data.insert(Connection::watch(socket, address, &connections))),
                Err(error) => {
                    tracing::warn!(%error, "cannot watch a connection: out of file descriptors");
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No request, or only part of its head.
    Idle,
    /// A request is in progress, with nothing to send.
    Busy,
    /// Data is waiting for the client to read.
    Sending,
}

/// A connection, on its worker's thread.
pub struct Connection {
    place: Place,
    connections: Arc<Connections>,
    phase: Cell<(Phase, Instant)>,
    /// True if the last response announced the end of the connection.
    ends: Cell<bool>,
    watchdog: Cell<Option<JoinHandle<()>>>,
}

#[derive(Debug, PartialEq, Eq)]
enum Due {
    Later(Instant),
    Stalled,
    /// The head of the next request did not arrive.
    HalfHead,
    Ended,
}

impl Connection {
    fn watch(socket: OwnedFd, address: Option<IpAddr>, connections: &Arc<Connections>) -> Rc<Self> {
        let kernel_wait = connections.limits.stalled_reader + KERNEL_LATER;
        let kernel_wait = u32::try_from(kernel_wait.as_millis()).unwrap_or(u32::MAX);
        let options = sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES)
            .and_then(|()| sockopt::set_tcp_user_timeout(&socket, kernel_wait));
        if let Err(error) = options {
            tracing::debug!(%error, "cannot set socket options; only the watchdog limits this connection");
        }

        let connection = Rc::new(Self {
            place: connections.table.admit(socket, address),
            connections: Arc::clone(connections),
            phase: Cell::new((Phase::Idle, Instant::now())),
            ends: Cell::new(false),
            watchdog: Cell::new(None),
        });

        // Weak, so that the task does not keep alive the connection that it watches; dropping the
        // connection aborts it.
        let watchdog = actix_web::rt::spawn(watchdog(Rc::downgrade(&connection)));
        connection.watchdog.set(Some(watchdog));
        connection
    }

    fn enter(&self, phase: Phase) {
        match phase {
            Phase::Idle => self.place.set_idle(),
            Phase::Busy | Phase::Sending => self.place.set_in_use(),
        }
        self.phase.set((phase, Instant::now()));
    }

    /// Checks that the connection may be used for more than probes; one in the reserve looks for a
    /// place once more.
    ///
    /// # Errors
    /// 429 that names the limit.
    pub fn check_place(&self) -> Result<(), ApiError> {
        let message = match self.place.leave_reserve() {
            None => return Ok(()),
            Some(Excess::All(most)) => {
                format!("{most} connections are open (server.connections_max)")
            }
            Some(Excess::OfAddress(most)) => {
                format!(
                    "{most} connections of your address are open (server.address_connections_max)"
                )
            }
        };

        let message =
            format!("{message}, and all are in use: close some, or use those that you have");
        Err(ApiError::too_many("too_many_connections", message, SOON))
    }

    /// True if it is only for one probe.
    pub fn is_in_reserve(&self) -> bool {
        self.place.excess().is_some()
    }

    fn due(&self, now: Instant) -> Due {
        let limits = &self.connections.limits;
        let (phase, since) = self.phase.get();

        let (limit, then) = match phase {
            // No limit, but the watchdog must look again before the shortest limit of another phase
            // could expire.
            Phase::Busy => return Due::Later(now + limits.stalled_reader.min(limits.disconnect)),
            Phase::Sending => (limits.stalled_reader, Due::Stalled),
            Phase::Idle if self.ends.get() => (limits.disconnect, Due::Ended),
            Phase::Idle if self.is_in_reserve() => {
                (limits.keep_alive / RESERVE_IDLE_SHARE, Due::Ended)
            }
            Phase::Idle => (limits.keep_alive + limits.head, Due::HalfHead),
        };

        let at = since + limit;
        if at <= now {
            // Looks again at the latest when the shortest limit of another phase could expire,
            // because nothing wakes the watchdog when the phase changes.
            then
        } else {
            Due::Later(at.min(now + limits.stalled_reader.min(limits.disconnect)))
        }
    }

    fn shut_down(&self) {
        self.place.socket.shut_down();
    }

    /// Also discards what the kernel still holds.
    fn reset(&self) {
        if let Err(error) = sockopt::set_socket_linger(self.place.socket.fd(), Some(Duration::ZERO))
        {
            tracing::debug!(%error, "cannot discard the send buffer of a connection");
        }
        self.shut_down();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(watchdog) = self.watchdog.take() {
            watchdog.abort();
        }
    }
}

/// Shuts the connection down when it is due.
async fn watchdog(connection: Weak<Connection>) {
    loop {
        let due = connection.upgrade().map(|connection| connection.due(Instant::now()));
        match due {
            Some(Due::Later(at)) => sleep_until(at).await,
            Some(Due::HalfHead) => {
                send_timeout_response(&connection).await;
                return connection.upgrade().iter().for_each(|connection| connection.shut_down());
            }
            Some(due) => {
                let Some(connection) = connection.upgrade() else { return };
                if due == Due::Stalled {
                    connection.connections.stalled.fetch_add(1, Ordering::Relaxed);
                    tracing::debug!(
                        "disconnecting a client that reads nothing (server.stalled_reader_ms)"
                    );
                    connection.reset();
                } else {
                    connection.shut_down();
                }
                return;
            }
            None => return,
        }
    }
}

/// Responds 408 to an incomplete head, bypassing actix-web. The 408 must not interleave with an
/// earlier response: a writable socket has room for everything that actix-web can still hold of
/// one, and yielding lets it write that first.
async fn send_timeout_response(connection: &Weak<Connection>) {
    // A second descriptor: the task must not hold the connection while it waits.
    let Some(socket) =
        connection.upgrade().and_then(|connection| connection.place.socket.fd().try_clone().ok())
    else {
        return;
    };
    let Ok(stream) = TcpStream::from_std(std::net::TcpStream::from(socket)) else { return };
    if !matches!(timeout(TIMEOUT_RESPONSE_WAIT, stream.writable()).await, Ok(Ok(()))) {
        return;
    }

    tokio::task::yield_now().await;
    let error = ApiError::timeout(
        "the head of the request was not complete in time (server.head_timeout_ms)",
    );
    let Ok(body) = serde_json::to_string(&error.body()) else { return };
    let response = format!(
        "HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n\
         {body}",
        body.len()
    );

    // Only if no request has arrived meanwhile: its response must not be mixed with this one.
    let is_idle =
        connection.upgrade().is_some_and(|connection| connection.phase.get().0 == Phase::Idle);
    if is_idle {
        drop(stream.try_write(response.as_bytes()));
    }
}

/// A request and its response on a connection.
pub struct Exchange(Option<Rc<Connection>>);

impl Exchange {
    /// A request arrived. With `None`, nothing is watched.
    #[must_use]
    pub fn begin(connection: Option<&Rc<Connection>>) -> Self {
        if let Some(connection) = connection {
            connection.enter(Phase::Busy);
        }
        Self(connection.cloned())
    }

    /// True if its connection is only for one probe.
    pub fn is_in_reserve(&self) -> bool {
        self.0.as_ref().is_some_and(|connection| connection.is_in_reserve())
    }

    /// There is nothing to send at the moment.
    pub fn waits(&self) {
        self.enter(Phase::Busy);
    }

    /// Its answer is delayed; meanwhile its connection may make room for others.
    pub fn is_delayed(&self) {
        if let Some(connection) = &self.0 {
            connection.place.set_dispensable();
        }
    }

    /// Data was sent; the client must read it.
    pub fn sends(&self) {
        self.enter(Phase::Sending);
    }

    /// No other request will follow on this connection.
    pub fn ends_connection(&self) {
        if let Some(connection) = &self.0 {
            connection.ends.set(true);
        }
    }

    fn enter(&self, phase: Phase) {
        if let Some(connection) = &self.0 {
            connection.enter(phase);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.enter(Phase::Idle);
    }
}

#[cfg(test)]
mod tests;
