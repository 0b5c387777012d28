//! Retries: on the same server, on another one, and with `Retry-After`.

use std::time::Duration;

use tokio::time::Instant;

use super::server::{Act, Server};
use super::{model, pool, request};
use crate::Failure;
use crate::model::Model as _;
use crate::upstream::BreakerState;
use prime_settings::UpstreamPool;

fn failing(status: u16, headers: &'static str) -> Act {
    Act::Status(status, headers, "{}".to_owned())
}

#[tokio::test]
async fn transient_failures_are_hidden() {
    let empty = Act::Raw("");
    let server = Server::playing(vec![failing(500, ""), empty, Act::Say("at last")]).await;
    let model = model(&pool(&[&server.url]));
    assert_eq!(model.complete(request(1)).await.unwrap().text, "at last");

    let status = &model.snapshot()[0];
    assert_eq!((status.requests, status.retries), (3, 2));
    let failures: Vec<_> = status.failures.clone().into_iter().collect();
    assert_eq!(failures, [(Failure::Unreachable, 1), (Failure::ServerError, 1)]);
}

#[tokio::test]
async fn another_server_is_tried_when_one_fails() {
    let bad = Server::playing(vec![failing(500, "")]).await;
    let good = Server::playing(vec![Act::Say("here")]).await;
    let model = model(&UpstreamPool { retries_max: 1, ..pool(&[&bad.url, &good.url]) });

    for affinity in 0..20 {
        let reply = model.complete(request(affinity)).await.unwrap();
        assert_eq!(reply.source.as_deref(), Some(good.name().as_str()));
    }

    assert_eq!(good.seen().requests.len(), 20);
    assert!((1..20).contains(&bad.seen().requests.len()), "some preferred it, and found another");
}

#[tokio::test]
async fn retry_after_is_honoured_up_to_the_limit() {
    let second = "Retry-After: 1\r\n";
    let date =
        "Date: Wed, 21 Oct 2015 07:28:00 GMT\r\nRetry-After: Wed, 21 Oct 2015 07:48:00 GMT\r\n";
    for (headers, most, least) in
        [(second, 60_000, 1_000), ("Retry-After: 3600\r\n", 150, 150), (date, 150, 150)]
    {
        let server = Server::playing(vec![failing(429, headers), Act::Say("now")]).await;
        let model =
            model(&UpstreamPool { backoff_ms: 1, backoff_max_ms: most, ..pool(&[&server.url]) });

        let began = Instant::now();
        assert_eq!(model.complete(request(1)).await.unwrap().text, "now");
        assert!(
            began.elapsed() >= Duration::from_millis(least),
            "{headers:?} after {:?}",
            began.elapsed()
        );
        assert_eq!(model.snapshot()[0].breaker, BreakerState::Closed);
    }
}

#[tokio::test]
async fn a_paused_server_gets_no_requests_and_another_need_not_wait() {
    let busy = Server::playing(vec![failing(429, "Retry-After: 3600\r\n")]).await;
    let good = Server::playing(vec![Act::Say("here")]).await;
    let model = model(&UpstreamPool {
        backoff_ms: 1,
        backoff_max_ms: 3_600_000,
        ..pool(&[&busy.url, &good.url])
    });

    for affinity in 0..20 {
        assert_eq!(model.complete(request(affinity)).await.unwrap().text, "here");
    }
    assert_eq!(busy.seen().requests.len(), 1, "the first one that preferred it");
}

#[tokio::test]
async fn the_breaker_opens_and_a_trial_closes_it() {
    let bad = failing(500, "");
    let server = Server::playing(vec![bad.clone(), bad, Act::Say("well again")]).await;

    let settings = UpstreamPool {
        retries_max: 0,
        breaker_failures: 2,
        breaker_ms: 300,
        ..pool(&[&server.url])
    };
    let model = model(&settings);
    let began = Instant::now();

    for is_closed in [true, false] {
        assert_eq!(model.complete(request(1)).await.unwrap_err().failure, Failure::ServerError);
        assert_eq!(model.snapshot()[0].breaker == BreakerState::Closed, is_closed);
    }
    assert_eq!(
        model.complete(request(1)).await.unwrap().text,
        "well again",
        "it waited for the trial"
    );
    assert!(began.elapsed() >= Duration::from_millis(300));
    assert_eq!(model.snapshot()[0].breaker, BreakerState::Closed);
    assert_eq!(server.seen().requests.len(), 3);
}

#[tokio::test]
async fn while_all_breakers_are_open_the_last_error_is_reported() {
    let server = Server::playing(vec![failing(502, "")]).await;
    let settings = UpstreamPool {
        retries_max: 0,
        breaker_failures: 1,
        breaker_ms: 3_600_000,
        queue_timeout_ms: 1,
        ..pool(&[&server.url])
    };
    let model = model(&settings);

    model.complete(request(1)).await.unwrap_err();
    let error = model.complete(request(1)).await.unwrap_err();
    assert_eq!(error.failure, Failure::Unreachable);

    let expected =
        format!("no server is available: {}: status 502 ({{}}): see its log", server.name());
    assert_eq!(error.reason, expected);
    assert_eq!(server.seen().requests.len(), 1);
}
