//! Clients of HTTP/1.0, HEAD, and requests that are sent before the last one is answered.

use actix_web::HttpResponse;
use actix_web::web::{self, Bytes};
use futures::stream;

use super::{Running, settings};

/// `/stream` sends `abc` in two pieces; `/text` says `text`. Both answer when they are polled for
/// the second time, so that the server reads on before it has an answer.
fn start() -> Running {
    Running::start(settings(), |config| {
        config
            .route(
                "/stream",
                web::get().to(|| async {
                    tokio::task::yield_now().await;
                    let pieces =
                        ["a", "bc"].map(|piece| Ok::<_, actix_web::Error>(Bytes::from(piece)));
                    HttpResponse::Ok().streaming(stream::iter(pieces))
                }),
            )
            .route(
                "/text",
                web::get().to(|| async {
                    tokio::task::yield_now().await;
                    "text"
                }),
            );
    })
}

#[test]
fn a_stream_over_http_1_0_is_plain_and_ends_with_the_connection() {
    let server = start();
    for headers in ["", "Connection: keep-alive\r\n"] {
        let mut client =
            server.send(&format!("GET /stream HTTP/1.0\r\nHost: localhost\r\n{headers}\r\n"));
        let head = client.head();
        assert_eq!(head.status, 200);
        assert_eq!(head.header("transfer-encoding"), None, "{headers}");
        assert_eq!(head.header("connection"), None, "{headers}");
        assert_eq!(client.rest(), b"abc", "{headers}");
    }

    let chunked = server.send("GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n").head();
    assert_eq!(chunked.header("transfer-encoding"), Some("chunked"));

    let mut client =
        server.send("GET /text HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!(client.answer().text(), "text", "a known length needs no end");
    client.write("GET /text HTTP/1.0\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.answer().text(), "text");
    assert_eq!(client.rest(), b"");
}

#[test]
fn head_has_no_body_whatever_is_sent_with_it() {
    let server = start();
    let request =
        |method: &str, path: &str| format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");

    for path in ["/text", "/stream"] {
        // In one write.
        let mut client = server.send(&(request("HEAD", path) + &request("GET", "/text")));
        let head = client.head();
        assert_eq!(head.status, 200, "{path}");
        assert_eq!(head.header("content-length"), (path == "/text").then_some("4"), "{path}");
        assert_eq!(head.header("transfer-encoding"), None, "{path}");
        assert_eq!(client.answer().text(), "text", "the next answer follows at once");

        client.write(&request("HEAD", path));
        assert_eq!(client.head().status, 200, "the connection stays");
        client.write(&request("GET", "/text"));
        assert_eq!(client.answer().text(), "text");
    }
}
