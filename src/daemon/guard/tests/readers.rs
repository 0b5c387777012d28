//! Clients that do not take their answer, or take it slowly.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use actix_web::body::{BodyStream, MessageBody, SizedStream};
use actix_web::rt::net::TcpStream;
use actix_web::web::{self, Bytes};
use actix_web::{HttpResponse, rt};
use futures::stream::{self, Stream, StreamExt as _};

use super::{PATIENCE, Running, Tell, settings, told};
use crate::settings::Server;

/// More than what kernels hold for a client that does not read, and far less than an endless stream.
const HELD_MAX: usize = 32 * 1_024 * 1_024;
const GET: &str = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

type Chunk = Result<Bytes, actix_web::Error>;

/// Serves a body without end; says how many bytes were taken of it, and when it is dropped.
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
fn a_client_that_reads_nothing_is_gone_and_so_is_all_that_was_held_for_it() {
    let (server, taken, ends) = start(300, streamed);
    let client = server.send(GET);
    assert_eq!(told(&ends), "end");
    assert_eq!((server.connections.stalled(), server.connections.open()), (1, 0));
    assert!(taken.load(Ordering::Relaxed) < HELD_MAX, "{taken:?}");
    assert!(client.rest().len() < HELD_MAX, "it ends for the client, too");
}

#[test]
fn a_client_that_reads_nothing_of_a_long_answer_is_gone_as_well() {
    let (server, taken, ends) = start(300, sized);
    let _client = server.send(GET);
    assert_eq!(told(&ends), "end");
    assert_eq!((server.connections.stalled(), server.connections.open()), (1, 0));
    assert!(taken.load(Ordering::Relaxed) < HELD_MAX, "{taken:?}");
}

#[test]
fn a_client_that_stops_reading_is_gone() {
    let (server, _, ends) = start(300, streamed);
    let mut client = server.send(GET);
    assert_eq!(client.head().status, 200);
    std::io::Read::read_exact(&mut client.0, &mut vec![0; 10_000_000]).unwrap();
    assert_eq!(told(&ends), "end");
    assert_eq!((server.connections.stalled(), server.connections.open()), (1, 0));
}

#[actix_web::test]
async fn a_client_that_reads_slowly_but_steadily_stays() {
    let (server, _, ends) = start(1_000, streamed);
    let mut client = server.send(GET);
    assert_eq!(client.head().status, 200);
    let client = client.0.into_inner();
    client.set_nonblocking(true).unwrap();
    let client = TcpStream::from_std(client).unwrap();
    // 20 KB each 50 ms are 400 KB a second, for two and a half times the limit.
    let mut ticks = rt::time::interval(Duration::from_millis(50));
    for _ in 0..50 {
        ticks.tick().await;
        let mut left = vec![0; 20_000];
        while !left.is_empty() {
            rt::time::timeout(PATIENCE, client.readable()).await.unwrap().unwrap();
            match client.try_read(&mut left) {
                Ok(0) => panic!("disconnected"),
                Ok(read) => drop(left.drain(..read)),
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
            }
        }
    }
    assert_eq!((server.connections.stalled(), server.connections.open()), (0, 1));
    drop(client);
    assert_eq!(told(&ends), "end");
}

#[test]
fn a_stream_with_nothing_to_say_is_not_a_stalled_one() {
    let (tell, ends) = channel();
    let quiet = move || {
        let end = Tell(tell.clone(), "end");
        let seconds = rt::time::interval(Duration::from_millis(500));
        let chunks = stream::unfold((seconds, end), |(mut seconds, end)| async {
            seconds.tick().await;
            Some((Ok::<_, actix_web::Error>(Bytes::from_static(b"x")), (seconds, end)))
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
