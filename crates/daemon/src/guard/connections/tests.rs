//! When connections end: each phase at its limit, on a paused clock.

use super::super::response_body::GuardedBody;
use super::*;
use actix_web::body::{BodyStream, BoxBody, MessageBody as _};
use actix_web::web::Bytes;
use futures::stream;
use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use tokio::time::advance;

const SECOND: Duration = Duration::from_secs(1);
const LIMITS: ConnectionLimits = ConnectionLimits {
    keep_alive: Duration::from_secs(15),
    head: Duration::from_secs(5),
    disconnect: SECOND,
    stalled_reader: Duration::from_secs(10),
};

/// A watched connection and its client, with a paused clock.
fn connected() -> (Rc<Connection>, UnixStream, Arc<Connections>) {
    tokio::time::pause();
    let (server, client) = UnixStream::pair().unwrap();
    server.set_nonblocking(true).unwrap();
    client.set_nonblocking(true).unwrap();
    let connections = Connections::new(LIMITS, ConnectionCounts { all_max: 9, address_max: 9 });
    (Connection::watch(server.into(), None, &connections), client, connections)
}

fn just_before(limit: Duration) -> Duration {
    limit.saturating_sub(Duration::from_millis(5))
}

/// True if the client has read the end of the connection.
fn is_shut(mut client: &UnixStream) -> bool {
    matches!(client.read(&mut [0; 512]), Ok(0))
}

/// Advances the clock, with the watchdog running. Returns whether the connection is still open.
async fn stays_open_for(time: Duration, client: &UnixStream) -> bool {
    advance(time).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    !is_shut(client)
}

/// True if the connection is shut down within half a second.
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
async fn a_client_that_reads_nothing_is_disconnected_at_the_limit() {
    let (connection, client, connections) = connected();
    let exchange = Exchange::begin(Some(&connection));
    assert!(stays_open_for(SECOND * 3_600, &client).await, "a request may take long");

    exchange.sends();
    assert!(stays_open_for(just_before(LIMITS.stalled_reader), &client).await);
    assert!(ends_now(&client).await);
    assert_eq!((connections.stalled(), connections.open()), (1, 1));

    drop((exchange, connection));
    assert_eq!(connections.open(), 0);
}

#[actix_web::test]
async fn a_client_that_reads_slowly_but_steadily_stays() {
    let (connection, client, connections) = connected();
    let exchange = Exchange::begin(Some(&connection));
    for _ in 0..100 {
        exchange.sends();
        assert!(stays_open_for(just_before(LIMITS.stalled_reader), &client).await);
    }

    exchange.waits();
    assert!(stays_open_for(SECOND * 3_600, &client).await, "there is nothing to read");
    assert_eq!(connections.stalled(), 0);
}

#[actix_web::test]
async fn each_piece_of_a_body_that_the_client_reads_restarts_the_limit() {
    let (connection, client, connections) = connected();
    let exchange = Exchange::begin(Some(&connection));
    let chunks = stream::repeat_with(|| Ok::<_, actix_web::Error>(Bytes::from_static(b"x")));
    let mut body = GuardedBody::new(BoxBody::new(BodyStream::new(chunks)), exchange, None);

    for _ in 0..100 {
        // The server asks for the next piece when the client has read this one.
        let piece = std::future::poll_fn(|context| Pin::new(&mut body).poll_next(context)).await;
        assert!(piece.is_some_and(|piece| piece.is_ok()));
        assert!(stays_open_for(just_before(LIMITS.stalled_reader), &client).await);
    }
    assert!(ends_now(&client).await);
    assert_eq!((connections.stalled(), connections.open()), (1, 1));
}

#[actix_web::test]
async fn a_connection_without_a_request_is_closed_after_both_limits() {
    let (connection, client, connections) = connected();
    drop(Exchange::begin(Some(&connection)));
    assert!(stays_open_for(just_before(SECOND * 20), &client).await);

    drop(Exchange::begin(Some(&connection)));
    assert!(
        stays_open_for(just_before(SECOND * 20), &client).await,
        "a request restarts the limit"
    );
    assert!(ends_now(&client).await);
    assert_eq!(connections.stalled(), 0);
}

#[actix_web::test]
async fn a_closing_connection_is_shut_down_at_its_limit() {
    let (connection, client, _) = connected();
    let exchange = Exchange::begin(Some(&connection));
    exchange.ends_connection();
    assert!(stays_open_for(SECOND * 60, &client).await);

    drop(exchange);
    assert!(stays_open_for(just_before(LIMITS.disconnect), &client).await);
    assert!(ends_now(&client).await);
}
