//! Permits are limited, returned, and spread.

use std::sync::Arc;

use futures::future::join_all;
use tokio::sync::Semaphore;

use super::server::{Act, Server};
use super::{model, pool, request};
use crate::Failure;
use crate::model::Model as _;
use prime_settings::UpstreamPool;

/// Like [`pool`], with the given capacity for each server.
fn narrow(urls: &[&str], places: u32) -> UpstreamPool {
    let mut settings = pool(urls);
    settings.upstreams.iter_mut().for_each(|upstream| upstream.concurrent_max = places);
    settings
}

#[tokio::test]
async fn no_server_exceeds_its_capacity() {
    let servers =
        [Server::playing(vec![Act::Say("a")]).await, Server::playing(vec![Act::Say("a")]).await];
    let model = model(&narrow(&[&servers[0].url, &servers[1].url], 3));

    let replies = join_all((0..200).map(|affinity| model.complete(request(affinity)))).await;
    assert!(replies.iter().all(Result::is_ok));

    let seen = servers.each_ref().map(Server::seen);
    assert_eq!(seen[0].requests.len() + seen[1].requests.len(), 200);
    assert!(
        seen.iter().all(|seen| (1..=3).contains(&seen.in_flight_max) && seen.requests.len() > 50),
        "{seen:?}"
    );
    assert!(model.snapshot().iter().all(|status| status.in_flight == 0));
}

#[tokio::test]
async fn requests_with_a_common_prefix_share_a_server_and_overflow_when_it_is_busy() {
    let gate = Arc::new(Semaphore::new(0));
    let act = || vec![Act::SayAfter(Arc::clone(&gate), "a")];
    let servers =
        [Server::playing(act()).await, Server::playing(act()).await, Server::playing(act()).await];
    let urls: Vec<_> = servers.iter().map(|server| server.url.as_str()).collect();
    let model = model(&narrow(&urls, 8));
    let counts = || servers.each_ref().map(|server| server.seen().requests.len());

    gate.add_permits(30);
    for _ in 0..10 {
        model.complete(request(5)).await.unwrap();
    }
    assert_eq!(counts().iter().filter(|count| **count == 0).count(), 2, "{:?}", counts());

    for affinity in 0..20 {
        model.complete(request(affinity * 1_000)).await.unwrap();
    }
    assert!(
        counts().iter().all(|count| *count > 0),
        "other beginnings, other servers: {:?}",
        counts()
    );

    let before = counts();
    let all = join_all((0..24).map(|_| model.complete(request(5))));
    let release = async {
        for (server, before) in servers.iter().zip(before) {
            server.until(|seen| seen.requests.len() == before + 8).await;
        }
        gate.add_permits(24);
    };
    let (replies, ()) = tokio::join!(all, release);
    assert!(replies.iter().all(Result::is_ok));
}

#[tokio::test]
async fn cancelling_closes_the_connection_and_returns_the_permit() {
    let server = Server::playing(vec![Act::Hang, Act::Say("next")]).await;
    let model = Arc::new(model(&narrow(&[&server.url], 1)));
    let asking = Arc::clone(&model);

    let task = tokio::spawn(async move { asking.complete(request(1)).await });
    server.until(|seen| seen.requests.len() == 1).await;
    assert_eq!(model.snapshot()[0].in_flight, 1);

    task.abort();
    assert_eq!(model.complete(request(2)).await.unwrap().text, "next");

    server.until(|seen| seen.gone == 1).await;
    assert_eq!((model.snapshot()[0].in_flight, model.waiting()), (0, 0));
    assert!(model.snapshot()[0].failures.is_empty(), "nothing is the server's fault");
}

#[tokio::test]
async fn waiting_too_long_is_an_error() {
    let server = Server::playing(vec![Act::Hang]).await;
    let model =
        Arc::new(model(&UpstreamPool { queue_timeout_ms: 50, ..narrow(&[&server.url], 1) }));
    let asking = Arc::clone(&model);

    let first = tokio::spawn(async move { asking.complete(request(1)).await });
    server.until(|seen| seen.requests.len() == 1).await;

    let error = model.complete(request(2)).await.unwrap_err();
    assert_eq!((error.failure, error.is_transient), (Failure::Overloaded, true));
    assert!(
        error.reason.starts_with(
            "no server had capacity within `queue_timeout_ms` (capacity: 1 requests, "
        ),
        "{error}"
    );
    assert_eq!(server.seen().requests.len(), 1);
    first.abort();
}
