//! Misbehaving servers: what is reported, and how many requests they got.

use std::future::poll_fn;
use std::task::Poll;

use super::server::{Act, Server, nobody};
use super::{model, pool, request};
use crate::Failure;
use crate::model::Model as _;
use prime_roles::setback;
use prime_settings::UpstreamPool;

const HALF: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                    Content-Length: 400\r\n\r\n{\"choices\":[{";
const TORN: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                    Content-Length: 13\r\n\r\n{\"choices\":[{";
const PAGE: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>";
const EMPTY: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n";
const LONG: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n{";
const MOVED: &str =
    "HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:9/v1\r\nContent-Length: 0\r\n\r\n";

fn status(status: u16, body: &str) -> Act {
    Act::Status(status, "", body.to_owned())
}

/// One request with two retries.
async fn asked(act: Act) -> (Failure, String, usize) {
    let timeout_ms = if matches!(act, Act::Hang) { 100 } else { 20_000 };
    let server = Server::playing(vec![act]).await;
    let settings = UpstreamPool {
        timeout_ms,
        response_bytes_max: 100_000,
        retries_max: 2,
        ..pool(&[&server.url])
    };

    let error = model(&settings).complete(request(1)).await.unwrap_err();
    assert_eq!(error.agent, format!("upstream {}", server.name()));
    assert_eq!(error.is_transient, error.failure != Failure::Refused);
    (error.failure, error.reason, server.seen().requests.len())
}

#[tokio::test]
async fn every_failure_has_a_kind_and_a_message_and_transient_ones_are_retried() {
    let busy = r#"{"error": {"message": "slow down", "type": "limit"}}"#;
    for (act, failure, words, count) in [
        (status(500, "{}"), Failure::ServerError, "status 500 ({}): see its log (attempt 3)", 3),
        (status(501, ""), Failure::ServerError, "status 501: see its log", 1),
        (
            status(429, busy),
            Failure::Overloaded,
            "status 429 (slow down): lower `concurrent_max`",
            3,
        ),
        (status(503, busy), Failure::Overloaded, "status 503 (slow down): it is starting", 3),
        (status(408, ""), Failure::Timeout, "status 408", 3),
        (
            status(400, r#"{"detail":"no grammar"}"#),
            Failure::Refused,
            "status 400 (no grammar): check `model`",
            1,
        ),
        (status(401, ""), Failure::Refused, "status 401: check the key in the variable", 1),
        (status(403, ""), Failure::Refused, "status 403: check the key", 1),
        (status(404, ""), Failure::Refused, "status 404: check `url`, `model` and `api`", 1),
        (status(422, ""), Failure::Refused, "status 422", 1),
        (
            status(200, "{\"choices\":[]}"),
            Failure::Malformed,
            "response without `choices[0]` (attempt 3)",
            3,
        ),
        (Act::Raw(MOVED), Failure::Refused, "status 307: redirects are not followed", 1),
        (Act::Raw(HALF), Failure::Unreachable, "response broke off: ", 3),
        (Act::Raw(TORN), Failure::Malformed, "response is not JSON, at byte 13 (attempt 3)", 3),
        (
            Act::Raw(PAGE),
            Failure::Malformed,
            "response is `text/html` instead of JSON: is `url`",
            3,
        ),
        (Act::Raw(EMPTY), Failure::Malformed, "empty response", 3),
        (
            Act::Raw(LONG),
            Failure::TooLong,
            "response has more than 100000 bytes (`response_bytes_max`)",
            1,
        ),
        (Act::Raw("SSH-2.0-OpenSSH\r\n"), Failure::Unreachable, "the connection broke: ", 3),
        (Act::Raw(""), Failure::Unreachable, "the connection broke: ", 3),
        (Act::Flood, Failure::TooLong, "response has more than 100000 bytes", 1),
        (
            Act::Hang,
            Failure::Timeout,
            "no response within 100 ms: raise `timeout_ms` or lower `concurrent_max` (att",
            3,
        ),
    ] {
        let (found, reason, requests) = asked(act).await;
        assert_eq!((found, requests), (failure, count), "{reason}");
        assert!(reason.starts_with(words), "{reason:?} does not begin with {words:?}");
    }
}

#[tokio::test]
async fn a_compressed_response_is_named_and_not_asked_for() {
    let words = "response is compressed (gzip) although `identity` was asked for";
    for (status, headers, expected) in [
        (200, "Content-Encoding: gzip\r\n", Some((Failure::Malformed, format!("{words}: turn")))),
        (
            400,
            "Content-Encoding: gzip\r\n",
            Some((Failure::Refused, format!("status 400 ({words}): check `model`"))),
        ),
        (200, "Content-Encoding: Identity\r\n", None),
    ] {
        let body = r#"{"choices": [{"message": {"content": "a"}}]}"#.to_owned();
        let server = Server::playing(vec![Act::Status(status, headers, body)]).await;
        let settings = UpstreamPool { retries_max: 2, ..pool(&[&server.url]) };
        let found = model(&settings).complete(request(1)).await;

        match (found, expected) {
            (Ok(found), None) => assert_eq!(found.text, "a"),
            (Err(error), Some((failure, start))) => {
                assert_eq!((error.failure, error.is_transient), (failure, false), "{error}");
                assert!(error.reason.starts_with(&start), "{error}");
            }
            (found, expected) => panic!("{found:?} instead of {expected:?}"),
        }

        let requests = server.seen().requests;
        assert_eq!(requests.len(), 1, "the next one would be compressed too");
        assert!(requests[0].head.contains("accept-encoding: identity"), "{}", requests[0].head);
    }
}

#[tokio::test]
async fn an_unreachable_server_is_named() {
    let settings = UpstreamPool { retries_max: 1, ..pool(&[&nobody().await]) };
    let model = model(&settings);

    let error = model.complete(request(1)).await.unwrap_err();
    assert_eq!(error.failure, Failure::Unreachable);
    assert!(
        error.reason.starts_with("cannot connect (") && error.reason.ends_with("(attempt 2)"),
        "{error}"
    );

    let status = &model.snapshot()[0];
    assert_eq!(
        (status.requests, status.retries, status.failures[&Failure::Unreachable]),
        (2, 1, 2)
    );
}

#[tokio::test]
async fn what_a_request_meets_is_reported_before_it_ends_and_dropping_it_closes_it() {
    let null = status(200, r#"{"choices":[{"message":{"content":null}}]}"#);
    let server = Server::playing(vec![null, Act::Hang]).await;
    let model = model(&pool(&[&server.url]));

    let mut asking = model.complete(request(1));
    let met = poll_fn(|context| {
        let (polled, met) = setback::observed(|| asking.as_mut().poll(context));
        assert!(polled.is_pending(), "it tries again");
        met.map_or(Poll::Pending, Poll::Ready)
    });
    let met = met.await;
    assert_eq!(met.agent, format!("upstream {}", server.name()));
    assert_eq!(met.failure, Failure::Malformed, "{met}");

    // The second attempt is under way.
    tokio::select! {
        () = server.until(|seen| seen.in_flight == 1) => {}
        answer = &mut asking => panic!("it hangs: {answer:?}"),
    }

    drop(asking);
    server.until(|seen| seen.gone == 1).await;
}
