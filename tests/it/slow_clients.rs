//! Clients that send half a head, half a body, or read nothing: they are disconnected in time, and nobody else waits for
//! them.
#![allow(clippy::disallowed_methods, reason = "these tests measure other processes, in real time")]

use std::io::{ErrorKind, Read as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, connect, socket, sockopt};

use crate::daemon::{Daemon, PATIENCE, long_run};
use crate::figures::{MIB, alone, load, memory, optimised, percentile};
use crate::raw::{Raw, get};

const HEADS: usize = 100;
const BODIES: usize = 100;
const READERS: usize = 50;
/// All of them are gone after this time.
const REAPED_WITHIN: Duration = Duration::from_secs(15);
/// For a machine that does other things at the same time.
const ALLOWANCE: Duration = Duration::from_secs(optimised(3, 15));
/// Normal requests may take a fifth longer, and this, because 50 streams are fed on the same cores.
const SLOWER: Duration = Duration::from_millis(optimised(50, 1_000));
/// More than before: the buffers of the streams.
const GROWTH_MAX: u64 = 128 * MIB;

/// A client that takes as little as it can, and never reads.
fn reader(address: SocketAddr, path: &str) -> Raw {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    sockopt::set_socket_recv_buffer_size(&socket, 4_096).unwrap();
    connect(&socket, &address).unwrap();
    let mut raw = Raw::of(TcpStream::from(socket));
    raw.send(&get(path));
    raw
}

/// When the daemon has thrown the connection away; fails if it has not by then.
fn reset(stream: &TcpStream, began: Instant) -> Duration {
    loop {
        // An error waits where the connection was reset; nothing is read.
        if stream.take_error().unwrap().is_some() {
            return began.elapsed();
        }
        assert!(began.elapsed() < PATIENCE, "a client that reads nothing is still connected");
        std::thread::yield_now();
    }
}

/// The answer to a request that never became whole, and when its connection was closed.
fn closed(raw: &mut Raw, began: Instant) -> (String, Duration) {
    let mut text = Vec::new();
    match raw.stream.read_to_end(&mut text) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("{error}, after {:?}", String::from_utf8_lossy(&text)),
    }
    (String::from_utf8_lossy(&text).into_owned(), began.elapsed())
}

/// Asks for things until it is told to stop; at least so often.
fn normal(daemon: &Daemon, path: &str, least: usize, stop: &AtomicBool) -> Vec<Duration> {
    let mut raw = Raw::connect(&daemon.address);
    let request = get(path);
    let mut took = Vec::new();
    while took.len() < least || !stop.load(Ordering::SeqCst) {
        let answer = raw.ask(&request);
        assert_eq!(answer.status, 200, "{}", answer.head);
        took.push(answer.took);
    }
    took
}

#[test]
fn slow_clients_are_disconnected_and_nobody_waits_for_them() {
    let _alone = alone();
    let daemon = Daemon::start(&["server.connections_max=600", "log.level=warn"]);
    let address: SocketAddr = daemon.address.parse().unwrap();
    let run = daemon.submitted(&long_run());
    daemon.until(&run, |record| record["events"].as_u64().unwrap() > 1_000);
    // Alone, and beside the same run.
    let before = normal(&daemon, &run, optimised(2_000, 300), &AtomicBool::new(true));
    let memory_before = memory(daemon.pid(), "VmRSS");

    let began = Instant::now();
    let opened = |bytes: &[u8]| {
        let mut raw = Raw::connect(&daemon.address);
        raw.send(bytes);
        raw
    };
    let mut heads: Vec<_> = (0..HEADS).map(|_| opened(b"GET /livez HTTP/1.1\r\nHost: local")).collect();
    let body = b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"task\"";
    let mut bodies: Vec<_> = (0..BODIES).map(|_| opened(body)).collect();
    let readers: Vec<_> = (0..READERS).map(|_| reader(address, &format!("{run}/events"))).collect();
    let stop = AtomicBool::new(false);
    let (during, last, peak) = std::thread::scope(|scope| {
        let client = scope.spawn(|| normal(&daemon, &run, 1, &stop));
        let mut last = Duration::ZERO;
        for raw in heads.iter_mut().chain(&mut bodies) {
            let (text, after) = closed(raw, began);
            assert!(text.starts_with("HTTP/1.1 408 "), "{text:?}");
            last = last.max(after);
        }
        for raw in &readers {
            last = last.max(reset(&raw.stream, began));
        }
        stop.store(true, Ordering::SeqCst);
        (client.join().unwrap(), last, memory(daemon.pid(), "VmHWM"))
    });
    let (before, during_p99) = (percentile(&before, 0.99), percentile(&during, 0.99));
    eprintln!(
        "slow clients: {} gone after {last:.1?}; p99 of others {before:.1?} before, {during_p99:.1?} meanwhile ({} \
         requests); memory {} MiB, at most {} MiB; {}",
        HEADS + BODIES + READERS,
        during.len(),
        memory_before / MIB,
        peak / MIB,
        load()
    );
    assert!(last <= REAPED_WITHIN + ALLOWANCE, "{last:?}");
    assert!(during_p99 <= before.mul_f64(1.2) + SLOWER, "{before:?} before, {during_p99:?} meanwhile");
    assert!(peak <= memory_before + GROWTH_MAX, "{memory_before} to {peak} bytes");
    assert_eq!(daemon.get("/readyz").status, 200);
}
