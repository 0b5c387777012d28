//! Clients that do not read their response, over real sockets. Slow readers are tested with a
//! paused clock, in `connections`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use actix_web::body::{BodyStream, MessageBody, SizedStream};
use actix_web::web::{self, Bytes};
use actix_web::{HttpResponse, rt};
use futures::stream::{self, Stream, StreamExt as _};

use super::{Running, Tell, settings, told};
use prime_settings::Server;

/// More than kernels buffer for a client that does not read, and far less than an endless stream.
const HELD_MAX: usize = 32 * 1_024 * 1_024;
const GET: &str = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

type Chunk = Result<Bytes, actix_web::Error>;

/// Serves an endless body; counts the bytes taken from it, and tells when it is dropped.
fn start<B: MessageBody + 'static>(
    stalled_reader_ms: u64,
    body: impl Fn(stream::LocalBoxStream<'static, Chunk>) -> B + Clone + Send + 'static,
) -> (Running, Arc<AtomicUsize>, std::sync::mpsc::Receiver<&'static str>) {
    let (tell, ends) = channel();
    let taken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&taken);

    let endless = move || {
        let (end, count) = (Tell(tell.clone(), "end"), Arc::clone(&count));
        let chunks = stream::repeat_with(move || {
            let _ = &end;
            count.fetch_add(60_000, Ordering::Relaxed);
            Ok(Bytes::from(vec![b'x'; 60_000]))
        });

        let response = HttpResponse::Ok().body(body(chunks.boxed_local()));
        async move { response }
    };

    let server = Running::start(Server { stalled_reader_ms, ..settings() }, move |config| {
        config.route("/", web::get().to(endless.clone()));
    });
    (server, taken, ends)
}

fn streamed(chunks: impl Stream<Item = Chunk> + 'static) -> impl MessageBody {
    BodyStream::new(chunks)
}

fn sized(chunks: impl Stream<Item = Chunk> + Unpin + 'static) -> impl MessageBody {
    SizedStream::new(u64::MAX, chunks)
}

#[test]
fn a_client_that_reads_nothing_is_disconnected_and_its_buffers_are_dropped() {
    let (server, taken, ends) = start(300, streamed);
    let client = server.send(GET);

    assert_eq!(told(&ends), "end");
    assert_eq!((server.connections.stalled(), server.connections.open()), (1, 0));
    assert!(taken.load(Ordering::Relaxed) < HELD_MAX, "{taken:?}");
    assert!(client.rest().len() < HELD_MAX, "it ends for the client, too");
}

#[test]
fn a_client_that_reads_nothing_of_a_sized_response_is_disconnected_too() {
    let (server, taken, ends) = start(300, sized);
    let _client = server.send(GET);
    assert_eq!(told(&ends), "end");
    assert_eq!((server.connections.stalled(), server.connections.open()), (1, 0));
    assert!(taken.load(Ordering::Relaxed) < HELD_MAX, "{taken:?}");
}

#[test]
fn a_client_that_stops_reading_is_disconnected() {
    let (server, _, ends) = start(300, streamed);
    let mut client = server.send(GET);

    // Held up, this test may lose the connection before it has read so much.
    std::io::Read::read_exact(&mut client.0, &mut vec![0; 10_000_000]).unwrap_or_default();

    assert_eq!(told(&ends), "end");
    assert_eq!((server.connections.stalled(), server.connections.open()), (1, 0));
}

#[test]
fn a_quiet_stream_is_not_stalled() {
    let (tell, ends) = channel();
    let quiet = move || {
        let end = Tell(tell.clone(), "end");
        let ticks = rt::time::interval(Duration::from_millis(250));
        let chunks = stream::unfold((ticks, end), |(mut ticks, end)| async {
            ticks.tick().await;
            Some((Ok::<_, actix_web::Error>(Bytes::from_static(b"x")), (ticks, end)))
        });
        async move { HttpResponse::Ok().streaming(chunks) }
    };

    let server = Running::start(Server { stalled_reader_ms: 100, ..settings() }, move |config| {
        config.route("/", web::get().to(quiet.clone()));
    });

    let mut client = server.send(GET);
    assert_eq!(client.head().status, 200);
    let mut chunks = [0; "1\r\nx\r\n".len() * 4];
    std::io::Read::read_exact(&mut client.0, &mut chunks).unwrap();
    assert_eq!(&chunks, b"1\r\nx\r\n1\r\nx\r\n1\r\nx\r\n1\r\nx\r\n");
    assert_eq!((server.connections.stalled(), server.connections.open()), (0, 1));

    drop(client);
    assert_eq!(told(&ends), "end");
}
