//! Who is let in, and how often.

use std::sync::mpsc::channel;

use actix_web::web::{self, Bytes, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use futures::stream::{self, StreamExt as _};

use super::{Running, Tell, settings, told};
use crate::error::ApiError;
use crate::guard::{Owner, RequestId};
use prime_settings::{ApiKey, Server};

/// SHA-256 of "abc" (FIPS 180-2, appendix B.1).
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn with_key(requests_per_second: Option<u32>, concurrent_max: Option<u32>) -> Server {
    let key = ApiKey {
        name: "ci".to_owned(),
        sha256: ABC.parse().unwrap(),
        requests_per_second,
        concurrent_max,
        ..ApiKey::default()
    };
    Server { keys: vec![key], ..settings() }
}

fn fail() -> HttpResponse {
    panic!("a secret")
}

fn routes(config: &mut ServiceConfig) {
    let owner = |owner: web::ReqData<Owner>| async move { owner.into_inner().name };
    let id = |id: web::ReqData<RequestId>| async move { id.as_str().to_owned() };
    config
        .route("/owner", web::get().to(owner))
        .route("/id", web::get().to(id))
        .route("/livez", web::get().to(owner))
        .route("/number/{n}", web::get().to(|n: web::Path<u8>| async move { n.to_string() }))
        .route("/now", web::get().to(|_: HttpRequest| std::future::ready(fail())))
        .route(
            "/later",
            web::get().to(|| async {
                actix_web::rt::task::yield_now().await;
                fail()
            }),
        )
        .default_service(web::to(|| async { Err::<HttpResponse, _>(ApiError::no_such_route()) }));
}

#[test]
fn every_response_has_the_id_and_the_security_headers() {
    let server = Running::start(settings(), routes);
    for (path, status) in
        [("/id", 200), ("/nowhere", 404), ("/now", 500), ("/later", 500), ("/number/x", 404)]
    {
        let answer = server.get(path, "X-Request-Id: a-1\r\n");
        assert_eq!((answer.status, answer.header("x-request-id")), (status, Some("a-1")), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }

    let made = server.get("/id", "X-Request-Id: a\"1\r\n");
    assert!(made.text().starts_with("req_"), "{made:?}");
    assert_eq!(made.header("x-request-id"), Some(made.text()));
}

#[test]
fn a_panic_is_an_answer_and_not_the_end_of_the_connection() {
    let server = Running::start(settings(), routes);
    for path in ["/now", "/later"] {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: broken\r\n\r\n");
        let mut client = server.send(&request);

        let answer = client.answer();
        answer.refused(500, "internal_error", &["broken", "log"]);
        assert!(!answer.text().contains("secret"));

        client.write("GET /owner HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(client.answer().status, 200);
    }
}

#[test]
fn errors_of_the_framework_have_the_same_shape() {
    let server = Running::start(settings(), routes);
    server.get("/number/300", "").refused(404, "not_found", &["300"]);
    assert_eq!(server.get("/number/30", "").text(), "30");
}

#[test]
fn without_keys_only_this_machine_is_served() {
    let server = Running::start(settings(), routes);
    assert_eq!((server.get("/owner", "").status, server.get("/owner", "").text()), (200, ""));

    let rebound = |path: &str| {
        server.send(&format!("GET {path} HTTP/1.1\r\nHost: example.org\r\n\r\n")).answer()
    };

    rebound("/owner").refused(403, "foreign_host", &["example.org", "localhost"]);
    rebound("/livez").refused(403, "foreign_host", &[]);
    server.get("/owner", "Origin: http://example.org\r\n").refused(
        403,
        "foreign_origin",
        &["example.org"],
    );
}

#[test]
fn with_keys_all_but_the_probes_need_one() {
    let server = Running::start(with_key(None, None), routes);
    for headers in ["", "Authorization: Bearer abd\r\n", "Authorization: Basic abc\r\n"] {
        let answer = server.get("/owner", headers);
        answer.refused(401, "invalid_api_key", &[]);
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        assert_eq!(server.get("/nowhere", headers).status, 401, "what there is, is not said");
        assert_eq!(server.get("/livez/", headers).status, 401);
        assert_eq!(server.get("/livez", headers).status, 200);
    }

    let key = "Authorization: Bearer abc\r\n";
    assert_eq!(server.get("/owner", key).text(), "ci");

    let elsewhere =
        format!("GET /owner HTTP/1.1\r\nHost: example.org\r\nOrigin: http://x\r\n{key}\r\n");
    assert_eq!(server.send(&elsewhere).answer().text(), "ci");
    server.get("/nowhere", key).refused(404, "no_such_route", &["/docs/"]);
}

#[test]
fn a_right_key_finds_a_connection_while_wrong_ones_wait_for_their_answers() {
    let limits =
        Server { connections_max: 200, address_connections_max: 100, ..with_key(None, None) };
    let server = Running::start(limits, routes);
    let wrong = "GET /owner HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n\r\n";

    // The first ones are answered at once.
    for _ in 0..20 {
        assert_eq!(server.send(wrong).answer().status, 401);
    }

    let _waiting: Vec<_> = (0..300).map(|_| server.send(wrong)).collect();
    // A connection whose request was not read makes no room.
    while !server.connections.has_read(320) {
        std::thread::yield_now();
    }

    for _ in 0..10 {
        assert_eq!(server.get("/owner", "Authorization: Bearer abc\r\n").text(), "ci");
    }
}

#[test]
fn too_many_requests_are_told_when_to_come_again() {
    let server = Running::start(with_key(Some(1), None), routes);
    let refused = (0..10_000).find_map(|_| {
        let answer = server.get("/owner", "Authorization: Bearer abc\r\n");
        (answer.status != 200).then_some(answer)
    });

    let refused = refused.expect("a refusal");
    refused.refused(429, "rate_limit_exceeded", &["requests_per_second", "\"ci\""]);
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(server.get("/livez", "").status, 200);
}

#[test]
fn a_stream_counts_until_its_client_is_gone() {
    let (tell, ends) = channel();
    let stream = move || {
        let end = Tell(tell.clone(), "end");
        let first = stream::iter([Ok::<_, actix_web::Error>(Bytes::from_static(b"first"))]);
        let endless = first.chain(stream::pending()).inspect(move |_| _ = &end);
        async move { HttpResponse::Ok().streaming(endless) }
    };

    let server = Running::start(with_key(None, Some(1)), move |config| {
        config.route("/stream", web::get().to(stream.clone())).configure(routes);
    });

    let key = "Authorization: Bearer abc\r\n";
    let mut client = server.send(&format!("GET /stream HTTP/1.1\r\nHost: x\r\n{key}\r\n"));
    assert_eq!(client.head().status, 200);

    let second = server.get("/owner", key);
    second.refused(429, "too_many_concurrent_requests", &["concurrent_max of the key \"ci\""]);
    assert!(second.header("retry-after").is_some());

    drop(client);
    assert_eq!(told(&ends), "end");
    assert_eq!(server.get("/owner", key).status, 200);
}

#[test]
fn a_request_counts_until_its_client_is_gone() {
    let (server, happens) = Running::start_with_wait(with_key(None, Some(1)), routes);
    let key = "Authorization: Bearer abc\r\n";

    let client = server.send(&format!("GET /wait HTTP/1.1\r\nHost: x\r\n{key}\r\n"));
    assert_eq!(told(&happens), "begin");
    server.get("/owner", key).refused(429, "too_many_concurrent_requests", &[]);

    drop(client);
    assert_eq!(told(&happens), "end");
}

#[test]
fn heads_that_are_too_large_are_refused() {
    let server =
        Running::start(Server { header_bytes_max: 256, url_bytes_max: 64, ..settings() }, routes);

    let long = "x".repeat(300);
    server.get(&format!("/{long}"), "").refused(
        414,
        "url_too_long",
        &["301", "server.url_bytes_max"],
    );
    server.get("/id", &format!("X: {long}\r\n")).refused(
        431,
        "headers_too_large",
        &["server.header_bytes_max"],
    );

    assert_eq!(server.get("/id", &format!("X: {}\r\n", "x".repeat(200))).status, 200);

    for headers in ["X: x\r\n".repeat(97), format!("X: {}\r\n", "x".repeat(140_000))] {
        let mut client =
            server.send(&format!("GET /id HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n"));
        assert_eq!(client.head().status, 431, "by the server itself");
    }
}
