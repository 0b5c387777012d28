//! More connections than there may be.

use std::sync::mpsc::Receiver;

use actix_web::web;

use super::{Client, Running as Server, settings, told};
use prime_settings::Server as Limits;

const WAIT: &str = "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A server with a route that never answers and tells when it begins and ends.
fn start(limits: Limits) -> (Server, Receiver<&'static str>) {
    Server::start_with_wait(limits, |config| {
        config
            .route("/livez", web::get().to(|| async { "alive" }))
            .route("/", web::get().to(|| async { "here" }));
    })
}

/// Connections in use, as many as there may be.
fn busy(server: &Server, happens: &Receiver<&'static str>, count: usize) -> Vec<Client> {
    let clients = (0..count).map(|_| server.send(WAIT)).collect();
    (0..count).for_each(|_| assert_eq!(told(happens), "begin"));
    clients
}

#[test]
fn probes_are_answered_while_all_connections_are_in_use() {
    for (all, of_address, limit) in
        [(2, 9, "server.connections_max"), (9, 2, "server.address_connections_max")]
    {
        let limits = Limits {
            connections_max: all,
            address_connections_max: of_address,
            head_timeout_ms: 600_000,
            keep_alive_ms: 600_000,
            ..settings()
        };
        let (server, happens) = start(limits);

        let mut clients = busy(&server, &happens, 2);

        for _ in 0..500 {
            let answer = server.get("/livez", "");
            assert_eq!(
                (answer.status, answer.text(), answer.header("connection")),
                (200, "alive", Some("close"))
            );
        }

        let mut refused = server.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let answer = refused.answer();
        answer.refused(429, "too_many_connections", &["2", limit]);
        assert!(answer.header("retry-after").is_some());
        assert_eq!(refused.rest(), b"", "it is closed");
        // A place is free again.
        clients.pop();
        assert_eq!(told(&happens), "end");
        while server.connections.open() > 1 {
            std::thread::yield_now();
        }

        assert_eq!(server.get("/", "").text(), "here");
    }
}

/// This many silent connections. Which of them make room depends on when each is noticed to be
/// idle.
fn silent(server: &Server, begun: &str, count: usize) -> Vec<Client> {
    (0..count).map(|_| server.send(begun)).collect()
}

#[test]
fn silent_connections_keep_nobody_out() {
    // One address may have 75 connections, of which 71 can be silent here.
    let limits = Limits {
        connections_max: 100,
        head_timeout_ms: 600_000,
        keep_alive_ms: 600_000,
        ..settings()
    };
    let (server, happens) = start(limits);
    let _busy = busy(&server, &happens, 4);

    for begun in ["", "GET / HTTP/1.1\r\nHo"] {
        let _silent = silent(&server, begun, 300);
        for _ in 0..10 {
            assert_eq!(server.get("/", "").text(), "here");
            assert_eq!(server.get("/livez", "").text(), "alive");
        }
    }
}

#[test]
fn probes_are_answered_while_silent_connections_fill_the_reserve() {
    let limits = Limits {
        connections_max: 4,
        address_connections_max: 4,
        head_timeout_ms: 600_000,
        ..settings()
    };
    let (server, happens) = start(limits);
    let _busy = busy(&server, &happens, 4);
    let _silent = silent(&server, "", 300);
    for _ in 0..10 {
        assert_eq!(server.get("/livez", "").text(), "alive");
        server.get("/", "").refused(429, "too_many_connections", &[]);
    }
}
