//! Health probes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Semaphore;

use super::server::{Act, Seen, Server};
use super::{model, pool, request};
use crate::Failure;
use crate::model::Model as _;
use crate::upstream::attempt_error::AttemptError;
use prime_settings::UpstreamPool;

/// The number of health probes that arrived.
fn looks(seen: &Seen) -> usize {
    seen.requests.iter().filter(|request| request.is_probe()).count()
}

/// Waits until a probe that starts from now on has been evaluated: a probe starts only when the
/// previous one has ended.
async fn probed(server: &Server) {
    let before = looks(&server.seen());
    server.until(|seen| looks(seen) >= before + 3).await;
}

#[tokio::test]
async fn an_unhealthy_server_gets_no_requests_until_it_recovers() {
    let is_down = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&is_down);
    let ailing = Server::start(move |_, request| {
        if request.is_probe() && flag.load(Ordering::SeqCst) {
            Act::Status(503, "", String::new())
        } else {
            Act::Say("ailing")
        }
    })
    .await;
    // A missing list of models does not make a server unhealthy.
    let sound = Server::start(|_, request| {
        if request.is_probe() { Act::Status(404, "", String::new()) } else { Act::Say("sound") }
    })
    .await;

    let settings = UpstreamPool {
        health_interval_ms: 2,
        health_path: "/health".to_owned(),
        ..pool(&[&ailing.url, &sound.url])
    };

    let model = model(&settings);
    let health = || model.snapshot().iter().map(|status| status.is_healthy).collect::<Vec<_>>();

    probed(&ailing).await;
    probed(&sound).await;
    assert_eq!(health(), [false, true]);
    for affinity in 0..20 {
        assert_eq!(model.complete(request(affinity)).await.unwrap().text, "sound");
    }

    is_down.store(false, Ordering::SeqCst);
    probed(&ailing).await;
    assert_eq!(health(), [true, true]);

    let mut texts = Vec::new();
    for affinity in 0..20 {
        texts.push(model.complete(request(affinity)).await.unwrap().text);
    }
    assert!(
        texts.contains(&"ailing".to_owned()) && texts.contains(&"sound".to_owned()),
        "{texts:?}"
    );
    assert!(
        ailing
            .seen()
            .requests
            .iter()
            .any(|request| request.head.starts_with("get /health http/1.1"))
    );
    assert_eq!(
        model.snapshot()[0].requests,
        texts.iter().filter(|text| *text == "ailing").count() as u64
    );
}

#[tokio::test]
async fn a_server_that_answers_one_request_at_a_time_is_busy_not_unhealthy() {
    let gate = Arc::new(Semaphore::new(0));
    let act = Arc::clone(&gate);
    let server = Server::start(move |_, request| {
        if request.is_probe() { Act::Hang } else { Act::SayAfter(Arc::clone(&act), "done") }
    })
    .await;

    let settings = UpstreamPool { health_interval_ms: 0, ..pool(&[&server.url]) };
    let model = model(&settings);

    let late = || Err(AttemptError::transient(Failure::Timeout, "no response within 10000 ms"));
    let while_busy = async {
        server.until(|seen| seen.in_flight == 1).await;
        model.client.pool.probed(0, late());
        assert!(model.snapshot()[0].is_healthy);
        model
            .client
            .pool
            .probed(0, Err(AttemptError::transient(Failure::Unreachable, "cannot connect")));
        assert!(!model.snapshot()[0].is_healthy, "only silence is excused");
        gate.add_permits(1);
    };

    let (reply, ()) = tokio::join!(model.complete(request(1)), while_busy);
    assert_eq!(reply.unwrap().text, "done");

    model.client.pool.probed(0, Ok(()));
    model.client.pool.probed(0, late());
    assert!(!model.snapshot()[0].is_healthy, "it has nothing to do and is silent");
}

#[tokio::test]
async fn waiters_are_served_when_the_server_recovers() {
    let is_down = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&is_down);
    let server = Server::start(move |_, request| {
        if request.is_probe() && flag.load(Ordering::SeqCst) {
            Act::Status(500, "", String::new())
        } else {
            Act::Say("back")
        }
    })
    .await;
    let model = model(&UpstreamPool { health_interval_ms: 2, ..pool(&[&server.url]) });

    probed(&server).await;
    let back = async {
        probed(&server).await;
        assert_eq!(model.waiting(), 1);
        is_down.store(false, Ordering::SeqCst);
    };

    let (reply, ()) = tokio::join!(model.complete(request(1)), back);
    assert_eq!(reply.unwrap().text, "back");
    assert!(server.seen().requests[0].head.starts_with("get /v1/models http/1.1"));
}
