//! Connections on which nothing comes.

use actix_web::web::{self, ServiceConfig};

use super::{Running, settings};
use prime_settings::Server;

fn start() -> Running {
    let limits = Server {
        head_timeout_ms: 600,
        keep_alive_ms: 600,
        disconnect_timeout_ms: 200,
        ..settings()
    };
    Running::start(limits, routes)
}

fn routes(config: &mut ServiceConfig) {
    config.route("/", web::route().to(|| async { "here" }));
}

#[test]
fn half_a_first_head_is_answered_408_and_the_connection_closed() {
    let server = start();
    for begun in ["", "GET", "GET / HTTP/1.1\r\nHost: loc"] {
        let mut client = server.send(begun);
        assert_eq!(client.head().status, 408, "{begun:?}");
        assert_eq!(client.rest(), b"", "{begun:?}");
    }
}

#[test]
fn half_a_further_head_is_answered_408_and_the_connection_closed() {
    let server = start();
    let mut client = server.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.answer().text(), "here");

    client.write("GET / HTTP/1.1\r\nHost: loc");
    let answer = client.answer();
    answer.refused(408, "request_timeout", &["server.head_timeout_ms"]);
    assert_eq!(client.rest(), b"");
}

#[test]
fn a_connection_without_a_request_is_closed() {
    let server = start();
    for begun in ["", "GET / HTTP/1.1\r\nHost: loc"] {
        let mut client = server.send(&format!("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n{begun}"));
        assert_eq!(client.answer().text(), "here");
        assert_eq!(client.rest(), b"");
    }
}

#[test]
fn a_body_that_no_handler_reads_does_not_hold_its_connection() {
    let server = start();
    let chunked =
        "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n";
    let mut client = server.send(chunked);
    assert_eq!(client.answer().text(), "here");
    client.rest();
}
