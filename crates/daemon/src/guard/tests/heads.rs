//! `Upgrade` and `Expect` in heads, over real sockets.

use actix_web::web;

use super::{Client, Running, settings};
use crate::guard::Body;
use prime_settings::{ApiKey, Server};

/// SHA-256 of "abc" (FIPS 180-2, appendix B.1).
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn start(server: Server) -> Running {
    let limits = Server { body_bytes_max: 16, keep_alive_ms: 3_600_000, ..server };
    Running::start(limits, |config| {
        config
            .route("/echo", web::post().to(|body: Body| async move { body.0 }))
            .route("/unread", web::post().to(|| async { "unread" }))
            .route("/echo", web::get().to(|| async { "got" }));
    })
}

#[test]
fn upgrades_are_ignored_and_the_connection_stays() {
    let server = start(settings());
    for upgrade in [
        "Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n",
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
        "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        "Upgrade: websocket\r\n",
        "Connection: upgrade\r\n",
    ] {
        let mut client = server.send("");
        for (request, body) in [
            (format!("GET /echo HTTP/1.1\r\nHost: localhost\r\n{upgrade}\r\n"), "got"),
            (
                format!(
                    "POST /echo HTTP/1.1\r\nHost: localhost\r\n{upgrade}Content-Length: 3\r\n\r\nabc"
                ),
                "abc",
            ),
            (
                format!(
                    "POST /echo HTTP/1.1\r\nHost: localhost\r\n{upgrade}\
                     Transfer-Encoding: chunked\r\n\r\n2\r\nde\r\n0\r\n\r\n"
                ),
                "de",
            ),
            ("GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), "got"),
        ] {
            client.write(&request);
            let answer = client.answer();
            assert_eq!((answer.status, answer.text()), (200, body), "{request}");
            assert_eq!(answer.header("connection"), None, "{request}");
            assert_eq!(answer.header("upgrade"), None, "{request}");
        }

        // Together in one piece, and the last ends the connection.
        client.write(&format!(
            "POST /echo HTTP/1.1\r\nHost: localhost\r\n{upgrade}Content-Length: 1\r\n\r\nx\
             GET /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{upgrade}\r\n"
        ));
        assert_eq!(client.answer().text(), "x");
        assert_eq!(client.answer().header("connection"), Some("close"), "{upgrade}");
        assert_eq!(client.rest(), b"");
    }
}

fn expecting(server: &Running, path: &str, headers: &str) -> Client {
    server.send(&format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n{headers}\r\n"
    ))
}

#[test]
fn a_body_that_is_wanted_is_asked_for() {
    let server = start(settings());
    let mut client = expecting(&server, "/echo", "Content-Length: 3\r\n");
    for body in ["abc", "def"] {
        let asked = client.head();
        assert_eq!((asked.status, asked.headers.len()), (100, 0));
        client.write(body);
        assert_eq!(client.answer().text(), body);
        // And so is the next one on the connection.
        client.write(
            "POST /echo HTTP/1.1\r\nHost: localhost\r\nexpect: 100-Continue\r\nContent-Length: 3\r\n\r\n",
        );
    }

    // One that is there need not be asked for.
    let mut client = server.send(
        "POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    );
    assert_eq!(client.answer().text(), "abc");
}

#[test]
fn a_body_that_is_refused_is_not_asked_for() {
    let server = start(settings());
    let mut client = expecting(&server, "/echo", "Content-Length: 99999999\r\n");
    client.answer().refused(413, "body_too_large", &["16"]);
    assert_eq!(client.rest(), b"");

    let encoded = "Content-Length: 3\r\nContent-Encoding: gzip\r\n";
    expecting(&server, "/echo", encoded).answer().refused(415, "unsupported_media_type", &["gzip"]);
    assert_eq!(expecting(&server, "/nowhere", "Content-Length: 3\r\n").head().status, 404);
    // Nor is one that the handler does not read.
    assert_eq!(expecting(&server, "/unread", "Content-Length: 3\r\n").answer().text(), "unread");

    let key = ApiKey { name: "ci".to_owned(), sha256: ABC.parse().unwrap(), ..ApiKey::default() };
    let server = start(Server { keys: vec![key], ..settings() });
    let mut client = expecting(&server, "/echo", "Content-Length: 3\r\n");
    assert_eq!(client.answer().status, 401);
    assert_eq!(client.rest(), b"");
    let with_key = "Authorization: Bearer abc\r\nContent-Length: 3\r\n";
    assert_eq!(expecting(&server, "/echo", with_key).head().status, 100);
}
