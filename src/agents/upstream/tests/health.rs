//! Servers that are looked at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::server::{Act, Seen, Server};
use super::{ask, model, pool};
use crate::agents::model::Model as _;
use crate::settings::Upstreams;

fn looks(seen: &Seen) -> usize {
    seen.requests.iter().filter(|request| request.is_look()).count()
}

/// Until the pool knows what it found at a look that begins from now on: a look begins when the one before is over.
async fn looked(server: &Server) {
    let before = looks(&server.seen());
    server.until(|seen| looks(seen) >= before + 3).await;
}

#[tokio::test]
async fn a_server_that_is_down_gets_no_requests_until_it_is_back() {
    let is_down = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&is_down);
    let ailing = Server::start(move |_, request| {
        if request.is_look() && flag.load(Ordering::SeqCst) {
            Act::Status(503, "", String::new())
        } else {
            Act::Say("ailing")
        }
    })
    .await;
    // That there is no list of models says nothing against a server.
    let sound = Server::start(
        |_, request| {
            if request.is_look() { Act::Status(404, "", String::new()) } else { Act::Say("sound") }
        },
    )
    .await;
    let settings =
        Upstreams { health_interval_ms: 2, health_path: "/health".to_owned(), ..pool(&[&ailing.url, &sound.url]) };
    let model = model(&settings);
    let health = || model.snapshot().iter().map(|status| status.is_healthy).collect::<Vec<_>>();

    looked(&ailing).await;
    looked(&sound).await;
    assert_eq!(health(), [false, true]);
    for affinity in 0..20 {
        assert_eq!(model.ask(ask(affinity)).await.unwrap().text, "sound");
    }

    is_down.store(false, Ordering::SeqCst);
    looked(&ailing).await;
    assert_eq!(health(), [true, true]);
    let mut texts = Vec::new();
    for affinity in 0..20 {
        texts.push(model.ask(ask(affinity)).await.unwrap().text);
    }
    assert!(texts.contains(&"ailing".to_owned()) && texts.contains(&"sound".to_owned()), "{texts:?}");
    assert!(ailing.seen().requests.iter().any(|request| request.head.starts_with("get /health http/1.1")));
    assert_eq!(model.snapshot()[0].requests, texts.iter().filter(|text| *text == "ailing").count() as u64);
}

#[tokio::test]
async fn who_waits_for_the_only_server_gets_it_when_it_is_back() {
    let is_down = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&is_down);
    let server = Server::start(move |_, request| {
        if request.is_look() && flag.load(Ordering::SeqCst) {
            Act::Status(500, "", String::new())
        } else {
            Act::Say("back")
        }
    })
    .await;
    let model = model(&Upstreams { health_interval_ms: 2, ..pool(&[&server.url]) });
    looked(&server).await;
    let back = async {
        looked(&server).await;
        assert_eq!(model.waiting(), 1);
        is_down.store(false, Ordering::SeqCst);
    };
    let (reply, ()) = tokio::join!(model.ask(ask(1)), back);
    assert_eq!(reply.unwrap().text, "back");
    assert!(server.seen().requests[0].head.starts_with("get /v1/models http/1.1"));
}
