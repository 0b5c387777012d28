//! What a further attempt is worth: the same server later, another one, and one that is given a rest.

use std::time::Duration;

use tokio::time::Instant;

use super::server::{Act, Server};
use super::{ask, model, pool};
use crate::agents::Failure;
use crate::agents::model::Model as _;
use crate::agents::upstream::BreakerState;
use crate::settings::Upstreams;

fn failing(status: u16, headers: &'static str) -> Act {
    Act::Status(status, headers, "{}".to_owned())
}

#[tokio::test]
async fn what_passes_is_not_seen() {
    let empty = Act::Raw("");
    let server = Server::playing(vec![failing(500, ""), empty, Act::Say("at last")]).await;
    let model = model(&pool(&[&server.url]));
    assert_eq!(model.ask(ask(1)).await.unwrap().text, "at last");
    let status = &model.snapshot()[0];
    assert_eq!((status.requests, status.retries), (3, 2));
    let failures: Vec<_> = status.failures.clone().into_iter().collect();
    assert_eq!(failures, [(Failure::Unreachable, 1), (Failure::ServerError, 1)]);
}

#[tokio::test]
async fn another_server_is_tried_when_one_fails() {
    let bad = Server::playing(vec![failing(500, "")]).await;
    let good = Server::playing(vec![Act::Say("here")]).await;
    let model = model(&Upstreams { retries_max: 1, ..pool(&[&bad.url, &good.url]) });
    for affinity in 0..20 {
        let reply = model.ask(ask(affinity)).await.unwrap();
        assert_eq!(reply.source.as_deref(), Some(good.name().as_str()));
    }
    assert_eq!(good.seen().requests.len(), 20);
    assert!((1..20).contains(&bad.seen().requests.len()), "some preferred it, and found another");
}

#[tokio::test]
async fn a_server_that_asks_for_time_gets_it_but_no_more_than_the_limit() {
    let second = "Retry-After: 1\r\n";
    let date = "Date: Wed, 21 Oct 2015 07:28:00 GMT\r\nRetry-After: Wed, 21 Oct 2015 07:48:00 GMT\r\n";
    for (headers, most, least) in [(second, 60_000, 1_000), ("Retry-After: 3600\r\n", 150, 150), (date, 150, 150)] {
        let server = Server::playing(vec![failing(429, headers), Act::Say("now")]).await;
        let model = model(&Upstreams { backoff_ms: 1, backoff_max_ms: most, ..pool(&[&server.url]) });
        let began = Instant::now();
        assert_eq!(model.ask(ask(1)).await.unwrap().text, "now");
        assert!(began.elapsed() >= Duration::from_millis(least), "{headers:?} after {:?}", began.elapsed());
        assert_eq!(model.snapshot()[0].breaker, BreakerState::Closed);
    }
}

#[tokio::test]
async fn nobody_asks_a_server_that_rests_and_another_need_not_wait() {
    let busy = Server::playing(vec![failing(429, "Retry-After: 3600\r\n")]).await;
    let good = Server::playing(vec![Act::Say("here")]).await;
    let model = model(&Upstreams { backoff_ms: 1, backoff_max_ms: 3_600_000, ..pool(&[&busy.url, &good.url]) });
    for affinity in 0..20 {
        assert_eq!(model.ask(ask(affinity)).await.unwrap().text, "here");
    }
    assert_eq!(busy.seen().requests.len(), 1, "the first one that preferred it");
}

#[tokio::test]
async fn a_server_that_keeps_failing_is_left_alone_and_a_trial_brings_it_back() {
    let bad = failing(500, "");
    let server = Server::playing(vec![bad.clone(), bad, Act::Say("well again")]).await;
    let settings = Upstreams { retries_max: 0, breaker_failures: 2, breaker_ms: 300, ..pool(&[&server.url]) };
    let model = model(&settings);
    let began = Instant::now();
    for is_closed in [true, false] {
        assert_eq!(model.ask(ask(1)).await.unwrap_err().failure, Failure::ServerError);
        assert_eq!(model.snapshot()[0].breaker == BreakerState::Closed, is_closed);
    }
    assert_eq!(model.ask(ask(1)).await.unwrap().text, "well again", "it waited for the trial");
    assert!(began.elapsed() >= Duration::from_millis(300));
    assert_eq!(model.snapshot()[0].breaker, BreakerState::Closed);
    assert_eq!(server.seen().requests.len(), 3);
}

#[tokio::test]
async fn while_all_are_left_alone_the_last_trouble_is_told() {
    let server = Server::playing(vec![failing(502, "")]).await;
    let settings = Upstreams {
        retries_max: 0,
        breaker_failures: 1,
        breaker_ms: 3_600_000,
        queue_timeout_ms: 1,
        ..pool(&[&server.url])
    };
    let model = model(&settings);
    model.ask(ask(1)).await.unwrap_err();
    let error = model.ask(ask(1)).await.unwrap_err();
    assert_eq!(error.failure, Failure::Unreachable);
    let expected = format!("no server takes requests: {}: status 502 ({{}}): see its log", server.name());
    assert_eq!(error.reason, expected);
    assert_eq!(server.seen().requests.len(), 1);
}
