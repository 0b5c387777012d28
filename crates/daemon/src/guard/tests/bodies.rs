//! Bodies that are too large, too slow or broken.

use actix_web::web;

use super::{Client, Running, settings};
use crate::guard::Body;
use prime_settings::Server;

/// Echoes bodies of up to 1,024 bytes that come within 300 ms.
fn start() -> Running {
    let limits = Server {
        body_bytes_max: 1_024,
        body_timeout_ms: 300,
        disconnect_timeout_ms: 200,
        // So long that nothing is closed for being silent.
        keep_alive_ms: 3_600_000,
        ..settings()
    };
    Running::start(limits, |config| {
        config.route("/echo", web::post().to(|body: Body| async move { body.0 }));
    })
}

fn post(server: &Running, headers: &str, body: &str) -> Client {
    server.send(&format!("POST /echo HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n{body}"))
}

#[test]
fn whole_bodies_arrive_and_the_connection_goes_on() {
    let server = start();
    let whole = "x".repeat(1_024);
    let mut client = post(&server, "Content-Length: 1024\r\n", &whole);
    assert_eq!(client.answer().text(), whole);

    client.write("POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    assert_eq!(client.answer().text(), "abc");

    client.write("POST /echo HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.answer().text(), "");

    // Without a byte order mark, but for a second one.
    for (sent, read) in [("\u{feff}{}", "{}"), ("\u{feff}\u{feff}", "\u{feff}"), ("\u{feff}", "")] {
        let headers = format!("Content-Length: {}\r\n", sent.len());
        assert_eq!(post(&server, &headers, sent).answer().text(), read);
    }
}

#[test]
fn a_body_that_does_not_come_is_given_up_and_the_connection_closed() {
    let server = start();
    for (headers, begun) in [
        ("Content-Length: 10\r\n", "x"),
        ("Content-Length: 10\r\n", ""),
        ("Transfer-Encoding: chunked\r\n", "1\r\nx\r\n"),
        ("Transfer-Encoding: chunked\r\n", ""),
    ] {
        let mut client = post(&server, headers, begun);
        let answer = client.answer();
        answer.refused(408, "request_timeout", &["server.body_timeout_ms"]);
        assert_eq!(answer.header("connection"), Some("close"));
        assert_eq!(client.rest(), b"", "{headers}");
    }
}

#[test]
fn a_body_that_is_too_large_is_refused_and_the_connection_closed() {
    let server = start();
    let chunk = format!("401\r\n{}\r\n", "x".repeat(1_025));
    for (headers, begun) in [
        ("Content-Length: 1025\r\n", ""),
        ("Content-Length: 99999999999999\r\n", "x"),
        ("Transfer-Encoding: chunked\r\n", &chunk),
    ] {
        let mut client = post(&server, headers, begun);
        client.answer().refused(413, "body_too_large", &["1024", "server.body_bytes_max"]);
        assert_eq!(client.rest(), b"", "{headers}");
    }
}

#[test]
fn broken_and_encoded_bodies_are_refused() {
    let server = start();
    post(&server, "Transfer-Encoding: chunked\r\n", "x\r\n").answer().refused(
        400,
        "bad_request",
        &["body"],
    );
    post(&server, "Content-Encoding: gzip\r\nContent-Length: 1\r\n", "x").answer().refused(
        415,
        "unsupported_media_type",
        &["gzip"],
    );
}
