//! Connections, watched from outside of actix-web. Its own timers end a connection whose first head does not come and
//! one that is silent; nothing of it ends one whose client takes none of its answer, sends half a second head, or goes
//! on with a body that nobody reads. So each connection has a second descriptor of its socket and a task that shuts the
//! socket down, after which actix-web drops all that it holds for the client.

use std::any::Any;
use std::cell::Cell;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use actix_web::dev::Extensions;
use actix_web::rt::net::TcpStream;
use actix_web::rt::task::JoinHandle;
use rustix::net::{Shutdown, shutdown, sockopt};
use tokio::time::{Instant, sleep_until, timeout};

use crate::daemon::error::ApiError;
use crate::settings::Server;

/// Bytes that the kernel holds for a client that does not read. A fixed number: the kernel's own would grow to
/// megabytes. It sets aside twice as much, and says "writable" when a third of that is free.
const SEND_BUFFER_BYTES: usize = 128 * 1_024;
/// How long after `stalled_reader_ms` the kernel gives up a client that takes nothing of what is in its buffer.
const KERNEL_LATER: Duration = Duration::from_secs(5);
/// For the last words to a client, which must not be waited for.
const LAST_WORDS_WAIT: Duration = Duration::from_millis(100);

/// How long a connection may be in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Without a request.
    pub keep_alive: Duration,
    /// With half a head.
    pub head: Duration,
    /// With a client that is to take in the end.
    pub disconnect: Duration,
    /// With a client that takes nothing of its answer.
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
#[derive(Debug)]
pub struct Connections {
    limits: ConnectionLimits,
    open: AtomicUsize,
    stalled: AtomicU64,
}

impl Connections {
    /// No connections yet.
    #[must_use]
    pub fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self { limits, open: AtomicUsize::new(0), stalled: AtomicU64::new(0) })
    }

    /// Connections that are open now.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Connections that were shut down because their client took nothing of its answer.
    pub fn stalled(&self) -> u64 {
        self.stalled.load(Ordering::Relaxed)
    }

    /// For `HttpServer::on_connect`: watches the connection, and puts it into the data of its requests.
    pub fn on_connect(self: &Arc<Self>) -> impl Fn(&dyn Any, &mut Extensions) + Send + Sync + 'static {
        let connections = Arc::clone(self);
        move |stream, data| {
            let Some(stream) = stream.downcast_ref::<TcpStream>() else { return };
            match stream.as_fd().try_clone_to_owned() {
                Ok(socket) => drop(data.insert(Connection::watch(socket, &connections))),
                Err(error) => tracing::warn!(%error, "a connection is not watched: no file descriptor is left"),
            }
        }
    }
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// There is no request, or not the whole of its head.
    Idle,
    /// A request is worked on, and there is nothing to send.
    Busy,
    /// The client is to take what was handed over for it.
    Sending,
}

/// One connection. Lives on its worker's thread, as long as the server has the connection.
pub struct Connection {
    socket: OwnedFd,
    connections: Arc<Connections>,
    phase: Cell<(Phase, Instant)>,
    /// Whether the last response said that there will be no other.
    ends: Cell<bool>,
    watchdog: Cell<Option<JoinHandle<()>>>,
}

/// What is to be done with a connection.
#[derive(Debug, PartialEq, Eq)]
enum Due {
    Later(Instant),
    Stalled,
    /// The client did not send the head of its next request.
    HalfHead,
    Ended,
}

impl Connection {
    fn watch(socket: OwnedFd, connections: &Arc<Connections>) -> Rc<Self> {
        let kernel_wait = connections.limits.stalled_reader + KERNEL_LATER;
        let kernel_wait = u32::try_from(kernel_wait.as_millis()).unwrap_or(u32::MAX);
        let options = sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES)
            .and_then(|()| sockopt::set_tcp_user_timeout(&socket, kernel_wait));
        if let Err(error) = options {
            tracing::debug!(%error, "a socket has no such options; the watchdog alone must do");
        }
        connections.open.fetch_add(1, Ordering::Relaxed);
        let connection = Rc::new(Self {
            socket,
            connections: Arc::clone(connections),
            phase: Cell::new((Phase::Idle, Instant::now())),
            ends: Cell::new(false),
            watchdog: Cell::new(None),
        });
        let watchdog = actix_web::rt::spawn(watchdog(Rc::downgrade(&connection)));
        connection.watchdog.set(Some(watchdog));
        connection
    }

    fn enter(&self, phase: Phase) {
        self.phase.set((phase, Instant::now()));
    }

    fn due(&self, now: Instant) -> Due {
        let limits = &self.connections.limits;
        let (phase, since) = self.phase.get();
        let (limit, then) = match phase {
            // No limit; but the watchdog must look before the shortest limit of another phase could be over.
            Phase::Busy => return Due::Later(now + limits.stalled_reader.min(limits.disconnect)),
            Phase::Sending => (limits.stalled_reader, Due::Stalled),
            Phase::Idle if self.ends.get() => (limits.disconnect, Due::Ended),
            Phase::Idle => (limits.keep_alive + limits.head, Due::HalfHead),
        };
        let at = since + limit;
        if at <= now { then } else { Due::Later(at.min(now + limits.stalled_reader.min(limits.disconnect))) }
    }

    fn shut_down(&self) {
        if let Err(error) = shutdown(&self.socket, Shutdown::Both) {
            tracing::trace!(%error, "the connection was gone already");
        }
    }

    /// Throws away what the kernel still holds, too.
    fn reset(&self) {
        if let Err(error) = sockopt::set_socket_linger(&self.socket, Some(Duration::ZERO)) {
            tracing::debug!(%error, "the kernel keeps what it holds of a connection");
        }
        self.shut_down();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connections.open.fetch_sub(1, Ordering::Relaxed);
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
                say_timeout(&connection).await;
                return connection.upgrade().iter().for_each(|connection| connection.shut_down());
            }
            Some(due) => {
                let Some(connection) = connection.upgrade() else { return };
                if due == Due::Stalled {
                    connection.connections.stalled.fetch_add(1, Ordering::Relaxed);
                    tracing::debug!("a client takes nothing of its answer (server.stalled_reader_ms): disconnected");
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

/// Answers half a head by 408, past actix-web. It must not come between the bytes of an earlier response: a writable
/// socket has room for all that actix-web can still hold of one, and the turn given away lets it hand that over first.
async fn say_timeout(connection: &Weak<Connection>) {
    let Some(socket) = connection.upgrade().and_then(|connection| connection.socket.try_clone().ok()) else { return };
    let Ok(stream) = TcpStream::from_std(std::net::TcpStream::from(socket)) else { return };
    if !matches!(timeout(LAST_WORDS_WAIT, stream.writable()).await, Ok(Ok(()))) {
        return;
    }
    tokio::task::yield_now().await;
    let error = ApiError::timeout("the head of the request was not complete in time (server.head_timeout_ms)");
    let Ok(body) = serde_json::to_string(&error.body()) else { return };
    let response = format!(
        "HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n\
         {body}",
        body.len()
    );
    let is_idle = connection.upgrade().is_some_and(|connection| connection.phase.get().0 == Phase::Idle);
    if is_idle {
        drop(stream.try_write(response.as_bytes()));
    }
}

/// One request on its connection, from its head until its response is handed over or dropped.
pub struct Exchange(Option<Rc<Connection>>);

impl Exchange {
    /// A request has come; on `None`, nothing is watched.
    #[must_use]
    pub fn begin(connection: Option<&Rc<Connection>>) -> Self {
        if let Some(connection) = connection {
            connection.enter(Phase::Busy);
        }
        Self(connection.cloned())
    }

    /// There is nothing to send for now.
    pub fn waits(&self) {
        self.enter(Phase::Busy);
    }

    /// Something was handed over for the client, who must make room for more.
    pub fn sends(&self) {
        self.enter(Phase::Sending);
    }

    /// There will be no other request on this connection.
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
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;
    use tokio::time::advance;

    const SECOND: Duration = Duration::from_secs(1);
    const LIMITS: ConnectionLimits = ConnectionLimits {
        keep_alive: Duration::from_secs(15),
        head: Duration::from_secs(5),
        disconnect: SECOND,
        stalled_reader: Duration::from_secs(10),
    };

    /// A watched connection and its client; the clock stands until it is advanced.
    fn connected() -> (Rc<Connection>, UnixStream, Arc<Connections>) {
        tokio::time::pause();
        let (server, client) = UnixStream::pair().unwrap();
        server.set_nonblocking(true).unwrap();
        client.set_nonblocking(true).unwrap();
        let connections = Connections::new(LIMITS);
        (Connection::watch(server.into(), &connections), client, connections)
    }

    fn just_before(limit: Duration) -> Duration {
        limit.saturating_sub(Duration::from_millis(5))
    }

    /// Whether the client has read the end of the connection.
    fn is_shut(mut client: &UnixStream) -> bool {
        matches!(client.read(&mut [0; 512]), Ok(0))
    }

    /// Lets time pass, with the watchdog running; says whether the connection stands.
    async fn stands_for(time: Duration, client: &UnixStream) -> bool {
        advance(time).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        !is_shut(client)
    }

    /// Whether the connection is shut down within half a second.
    async fn ends_now(client: &UnixStream) -> bool {
        for _ in 0..500 {
            advance(Duration::from_millis(1)).await;
            tokio::task::yield_now().await;
            if is_shut(client) {
                return true;
            }
        }
        false
    }

    #[actix_web::test]
    async fn a_client_that_takes_nothing_is_disconnected_at_the_limit() {
        let (connection, client, connections) = connected();
        let exchange = Exchange::begin(Some(&connection));
        assert!(stands_for(SECOND * 3_600, &client).await, "a request may be worked on for long");
        exchange.sends();
        assert!(stands_for(just_before(LIMITS.stalled_reader), &client).await);
        assert!(ends_now(&client).await);
        assert_eq!((connections.stalled(), connections.open()), (1, 1));
        drop((exchange, connection));
        assert_eq!(connections.open(), 0);
    }

    #[actix_web::test]
    async fn a_client_that_takes_little_but_steadily_stays() {
        let (connection, client, connections) = connected();
        let exchange = Exchange::begin(Some(&connection));
        for _ in 0..100 {
            exchange.sends();
            assert!(stands_for(just_before(LIMITS.stalled_reader), &client).await);
        }
        exchange.waits();
        assert!(stands_for(SECOND * 3_600, &client).await, "there is nothing that it could take");
        assert_eq!(connections.stalled(), 0);
    }

    #[actix_web::test]
    async fn a_connection_without_a_request_is_closed_after_both_limits() {
        let (connection, client, connections) = connected();
        drop(Exchange::begin(Some(&connection)));
        assert!(stands_for(just_before(SECOND * 20), &client).await);
        drop(Exchange::begin(Some(&connection)));
        assert!(stands_for(just_before(SECOND * 20), &client).await, "a request begins it anew");
        assert!(ends_now(&client).await);
        assert_eq!(connections.stalled(), 0);
    }

    #[actix_web::test]
    async fn the_end_of_a_connection_is_not_waited_for() {
        let (connection, client, _) = connected();
        let exchange = Exchange::begin(Some(&connection));
        exchange.ends_connection();
        assert!(stands_for(SECOND * 60, &client).await);
        drop(exchange);
        assert!(stands_for(just_before(LIMITS.disconnect), &client).await);
        assert!(ends_now(&client).await);
    }
}
