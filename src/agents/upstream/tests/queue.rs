//! The queue before a pool's servers, without servers: who gets a place, and when. Time is the test's own.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::time::{Instant, advance};

use super::{pool, upstream};
use crate::agents::Failure;
use crate::agents::upstream::member::Member;
use crate::agents::upstream::place::Place;
use crate::agents::upstream::pool::{Pool, Wish};
use crate::agents::upstream::problem::Problem;
use crate::settings::Upstreams;

const PATIENCE: Duration = Duration::from_mins(1);
const REST: Duration = Duration::from_secs(10);

type Wait = Pin<Box<dyn Future<Output = Result<Place, Problem>>>>;

/// Servers with one place each that are left alone after one failure.
fn servers(count: usize) -> Arc<Pool> {
    let settings = Upstreams { breaker_failures: 1, breaker_ms: 10_000, backoff_max_ms: 60_000, ..pool(&[]) };
    let member = |port: usize| {
        let mut upstream = upstream(&format!("http://127.0.0.1:{}/v1", port + 1));
        upstream.concurrent_max = 1;
        Member::new(&upstream, "completions", "models", |_| None).unwrap()
    };
    Arc::new(Pool::new(&settings, (0..count).map(member).collect()))
}

fn wait(pool: &Arc<Pool>, avoid: Option<usize>) -> Wait {
    let pool = Arc::clone(pool);
    let mut wait: Wait = Box::pin(async move { pool.place(Wish { affinity: 0, avoid }, PATIENCE).await });
    assert!((&mut wait).now_or_never().is_none(), "there is a place at once");
    wait
}

fn now(wait: &mut Wait) -> Place {
    wait.now_or_never().expect("still no place").expect("given up")
}

async fn place(pool: &Arc<Pool>) -> Place {
    pool.place(Wish { affinity: 0, avoid: None }, Duration::ZERO).await.expect("no place")
}

fn fault() -> Problem {
    Problem::passing(Failure::ServerError, "status 500")
}

#[tokio::test(start_paused = true)]
async fn places_are_given_in_the_order_of_arrival_and_who_left_is_passed_over() {
    let pool = servers(1);
    let first = place(&pool).await;
    let (mut second, third, mut fourth) = (wait(&pool, None), wait(&pool, None), wait(&pool, None));
    assert_eq!(pool.waiting(), 3);
    drop(third);
    drop(first);
    let place = now(&mut second);
    assert!((&mut fourth).now_or_never().is_none());
    drop(place);
    drop(now(&mut fourth));
    assert_eq!((pool.waiting(), pool.snapshot()[0].in_flight), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_place_that_was_given_to_one_who_left_goes_to_the_next() {
    let pool = servers(1);
    let first = place(&pool).await;
    let (second, mut third) = (wait(&pool, None), wait(&pool, None));
    drop(first);
    assert_eq!(pool.waiting(), 1, "the second has got it, and does not know yet");
    drop(second);
    drop(now(&mut third));
}

#[tokio::test(start_paused = true)]
async fn patience_ends() {
    let pool = servers(1);
    let _first = place(&pool).await;
    let mut second = wait(&pool, None);
    advance(PATIENCE).await;
    let problem = (&mut second).await.err().unwrap();
    assert_eq!(problem.failure, Failure::Overloaded);
    assert_eq!(pool.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_failed_at_one_server_waits_for_the_other_and_holds_up_nobody() {
    let pool = servers(2);
    let (first, second) = (place(&pool).await, place(&pool).await);
    let failed_at = first.index();
    let (mut choosy, mut other) = (wait(&pool, Some(failed_at)), wait(&pool, None));
    drop(first);
    assert!((&mut choosy).now_or_never().is_none());
    assert_eq!(now(&mut other).index(), failed_at);
    drop(second);
    assert_ne!(now(&mut choosy).index(), failed_at);
}

#[tokio::test(start_paused = true)]
async fn one_at_a_time_is_on_trial_and_its_end_decides_for_the_others() {
    let (pool, began) = (servers(1), Instant::now());
    let mut first = place(&pool).await;
    first.failed(&fault());
    drop(first);
    let (mut second, mut third, mut fourth) = (wait(&pool, None), wait(&pool, None), wait(&pool, None));
    let mut trial = (&mut second).await.unwrap();
    assert!((&mut third).now_or_never().is_none());
    trial.failed(&fault());
    drop(trial);
    assert!((&mut third).now_or_never().is_none(), "left alone again");
    // This trial comes to no result.
    drop((&mut third).await.unwrap());
    let mut trial = now(&mut fourth);
    trial.succeeded();
    drop(trial);
    place(&pool).await.succeeded();
    assert_eq!(began.elapsed().as_secs(), 2 * REST.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asked_for_a_rest_has_it_and_is_no_trial_afterwards() {
    let (pool, began) = (servers(1), Instant::now());
    let mut first = place(&pool).await;
    first.failed(&Problem::of_status(reqwest::StatusCode::TOO_MANY_REQUESTS, "", Some(REST)));
    drop(first);
    let mut second = wait(&pool, None);
    drop((&mut second).await.unwrap());
    assert_eq!(began.elapsed().as_secs(), REST.as_secs());
    assert_eq!(pool.snapshot()[0].breaker.name(), "closed");
}
