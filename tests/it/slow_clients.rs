//! Clients that send an incomplete head or body, or read nothing: they are disconnected, and nobody
//! else waits for them. `make chaos` does it with the default limits and also asserts times.
#![allow(clippy::disallowed_methods, reason = "these tests measure other processes, in real time")]

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, connect, socket, sockopt};
use serde_json::json;

use crate::daemon::{Daemon, PATIENCE};
use crate::figures::{MIB, is_chaos, memory, optimised, percentile, promise};
use crate::raw::{Raw, get};

const HEADS: usize = 100;
const BODIES: usize = 100;
const READERS: usize = 50;
/// With the default limits, all of them are disconnected after this time.
const REAPED_WITHIN: Duration = Duration::from_secs(15);
/// Added to the limits on a machine with other load.
const ALLOWANCE: Duration = Duration::from_secs(optimised(3, 15));
/// Normal requests may take a fifth longer, and this, because 50 streams are fed on the same cores.
const SLOWER: Duration = Duration::from_millis(optimised(50, 1_000));
/// Memory for the buffers of the streams: a fraction of 50 whole traces.
const GROWTH_MAX: u64 = 256 * MIB;
/// Limits that keep the test short.
const SHORT: [&str; 3] =
    ["server.head_timeout_ms=500", "server.body_timeout_ms=500", "server.stalled_reader_ms=1000"];

/// A client that reads the status of the response, and nothing more.
fn reader(address: SocketAddr, path: &str) -> Raw {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    sockopt::set_socket_recv_buffer_size(&socket, 4_096).unwrap();
    connect(&socket, &address).unwrap();
    let mut raw = Raw::of(TcpStream::from(socket));

    raw.send(&get(path));
    match raw.stream.read_exact(&mut [0; "HTTP/1.1 200".len()]) {
        Ok(()) => {}
        // This test was held up, and the connection is already given up.
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    raw
}

/// The ports of clients whose connections the process that listens on this port holds. From the
/// kernel, because a client whose window is full does not notice a reset.
fn held(port: u16) -> BTreeSet<u16> {
    const LISTENS: &str = "0A";
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
    let port_of =
        |address: &str| u16::from_str_radix(address.rsplit(':').next().unwrap(), 16).unwrap();

    // A connection that its process has closed has no inode.
    rows.filter(|row| port_of(row[1]) == port && row[3] != LISTENS && row[9] != "0")
        .map(|row| port_of(row[2]))
        .collect()
}

/// Waits until none of these is held any more; returns the time since `began`.
fn gone(readers: &[Raw], port: u16, began: Instant) -> Duration {
    let ports: BTreeSet<u16> =
        readers.iter().map(|raw| raw.stream.local_addr().unwrap().port()).collect();
    while !held(port).is_disjoint(&ports) {
        assert!(began.elapsed() < PATIENCE, "clients that read nothing are still connected");
        std::thread::yield_now();
    }
    began.elapsed()
}

/// Tells another thread to stop, even when this one panics.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The response to an incomplete request, and the time from `began` until its connection was
/// closed.
fn closed(raw: &mut Raw, began: Instant) -> (String, Duration) {
    let mut text = Vec::new();
    match raw.stream.read_to_end(&mut text) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("{error}, after {:?}", String::from_utf8_lossy(&text)),
    }
    (String::from_utf8_lossy(&text).into_owned(), began.elapsed())
}

/// Sends requests until told to stop, at least `least` of them.
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
    let limits: &[&str] = if is_chaos() { &[] } else { &SHORT };
    let daemon =
        Daemon::start(&[&["server.connections_max=600", "log.level=warn"][..], limits].concat());
    let address: SocketAddr = daemon.address.parse().unwrap();

    // Its events are far more than the kernel buffers.
    let input = json!({"n": optimised(16, 14), "from": 0, "to": 2});
    let run = daemon.submitted(&json!({"task": "tower-of-hanoi", "input": input, "fanout": 1}));
    daemon.finished(&run);

    let before = normal(&daemon, &run, optimised(1_000, 300), &AtomicBool::new(true));
    let memory_before = memory(daemon.pid(), "VmRSS");

    let began = Instant::now();
    let opened = |bytes: &[u8]| {
        let mut raw = Raw::connect(&daemon.address);
        raw.send(bytes);
        raw
    };

    let mut heads: Vec<_> =
        (0..HEADS).map(|_| opened(b"GET /livez HTTP/1.1\r\nHost: local")).collect();
    let body = b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: 100\r\n\r\n{\"task\"";
    let mut bodies: Vec<_> = (0..BODIES).map(|_| opened(body)).collect();
    let readers: Vec<_> = (0..READERS).map(|_| reader(address, &format!("{run}/events"))).collect();

    let stop = AtomicBool::new(false);
    let (during, last, peak) = std::thread::scope(|scope| {
        let client = scope.spawn(|| normal(&daemon, &run, 1, &stop));
        let stops = Stops(&stop);
        let mut last = Duration::ZERO;
        for raw in heads.iter_mut().chain(&mut bodies) {
            let (text, after) = closed(raw, began);
            assert!(text.starts_with("HTTP/1.1 408 "), "{text:?}");
            last = last.max(after);
        }
        last = last.max(gone(&readers, address.port(), began));
        drop(stops);
        (client.join().unwrap(), last, memory(daemon.pid(), "VmHWM"))
    });

    assert!(peak <= memory_before + GROWTH_MAX, "{memory_before} to {peak} bytes");
    promise("all slow clients disconnected", last, REAPED_WITHIN + ALLOWANCE);
    let bound = percentile(&before, 0.99).mul_f64(1.2) + SLOWER;
    promise("p99 of other clients", percentile(&during, 0.99), bound);

    // The journal's disk may be busy for a moment.
    daemon.until("/readyz", |body| body["ready"] == true);
}
