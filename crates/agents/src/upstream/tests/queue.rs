//! The pool's queue under paused time, without servers.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::time::{Instant, advance};

use super::{pool, upstream};
use crate::Failure;
use crate::upstream::attempt_error::AttemptError;
use crate::upstream::backend::Backend;
use crate::upstream::permit::Permit;
use crate::upstream::pool::Pool;
use crate::upstream::wait_queue::RoutingHint;
use prime_settings::UpstreamPool;

const PATIENCE: Duration = Duration::from_mins(5);
const COOLDOWN: Duration = Duration::from_secs(10);

type Wait = Pin<Box<dyn Future<Output = Result<Permit, AttemptError>>>>;

/// Backends with a capacity of one whose breakers open at the first failure.
fn backends(count: usize) -> Arc<Pool> {
    let settings = UpstreamPool {
        breaker_failures: 1,
        breaker_ms: 10_000,
        backoff_max_ms: 60_000,
        ..pool(&[])
    };

    let backend = |port: usize| {
        let mut upstream = upstream(&format!("http://127.0.0.1:{}/v1", port + 1));
        upstream.concurrent_max = 1;
        Backend::new(&upstream, "completions", "models", |_| None).unwrap()
    };
    Arc::new(Pool::new(&settings, (0..count).map(backend).collect()))
}

fn wait(pool: &Arc<Pool>, avoid: Option<usize>) -> Wait {
    let pool = Arc::clone(pool);
    let mut wait: Wait =
        Box::pin(async move { pool.acquire(RoutingHint { affinity: 0, avoid }, PATIENCE).await });
    assert!((&mut wait).now_or_never().is_none(), "got a permit without waiting");
    wait
}

fn now(wait: &mut Wait) -> Permit {
    wait.now_or_never().expect("still waiting").expect("timed out")
}

async fn acquired(pool: &Arc<Pool>) -> Permit {
    pool.acquire(RoutingHint { affinity: 0, avoid: None }, Duration::ZERO)
        .await
        .expect("no capacity")
}

fn fault() -> AttemptError {
    AttemptError::transient(Failure::ServerError, "status 500")
}

#[tokio::test(start_paused = true)]
async fn permits_are_granted_in_order_of_arrival_and_cancelled_waiters_skipped() {
    let pool = backends(1);
    let first = acquired(&pool).await;
    let (mut second, third, mut fourth) = (wait(&pool, None), wait(&pool, None), wait(&pool, None));
    assert_eq!(pool.waiting(), 3);

    drop(third);
    drop(first);

    let permit = now(&mut second);
    assert!((&mut fourth).now_or_never().is_none());

    drop(permit);
    drop(now(&mut fourth));
    assert_eq!((pool.waiting(), pool.snapshot()[0].in_flight), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_permit_granted_to_a_cancelled_waiter_goes_to_the_next() {
    let pool = backends(1);
    let first = acquired(&pool).await;
    let (second, mut third) = (wait(&pool, None), wait(&pool, None));

    drop(first);
    assert_eq!(pool.waiting(), 1, "the second was granted it but has not been polled");

    drop(second);
    drop(now(&mut third));
}

#[tokio::test(start_paused = true)]
async fn waiting_times_out() {
    let pool = backends(1);
    let _first = acquired(&pool).await;

    let mut second = wait(&pool, None);

    advance(PATIENCE).await;
    let error = (&mut second).await.err().unwrap();
    assert_eq!(error.failure, Failure::Overloaded);
    assert_eq!(pool.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_avoids_a_backend_holds_up_nobody() {
    let pool = backends(2);
    let (first, second) = (acquired(&pool).await, acquired(&pool).await);
    let failed_at = first.index();

    let (mut choosy, mut other) = (wait(&pool, Some(failed_at)), wait(&pool, None));

    drop(first);
    assert!((&mut choosy).now_or_never().is_none());
    assert_eq!(now(&mut other).index(), failed_at);

    drop(second);
    assert_ne!(now(&mut choosy).index(), failed_at);
}

#[tokio::test(start_paused = true)]
async fn there_is_one_trial_at_a_time_and_its_outcome_decides() {
    let (pool, began) = (backends(1), Instant::now());
    let mut first = acquired(&pool).await;
    first.failed(&fault());
    drop(first);

    let (mut second, mut third, mut fourth) =
        (wait(&pool, None), wait(&pool, None), wait(&pool, None));

    let mut trial = (&mut second).await.unwrap();
    assert!((&mut third).now_or_never().is_none());

    trial.failed(&fault());
    drop(trial);
    assert!((&mut third).now_or_never().is_none(), "open again");

    // This trial is cancelled.
    drop((&mut third).await.unwrap());

    let mut trial = now(&mut fourth);
    trial.succeeded();
    drop(trial);

    acquired(&pool).await.succeeded();
    assert_eq!(began.elapsed().as_secs(), 2 * COOLDOWN.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_backend_paused_by_retry_after_resumes_without_a_trial() {
    let (pool, began) = (backends(1), Instant::now());
    let mut first = acquired(&pool).await;
    first.failed(&AttemptError::from_status(
        reqwest::StatusCode::TOO_MANY_REQUESTS,
        "",
        Some(COOLDOWN),
    ));
    drop(first);

    let mut second = wait(&pool, None);
    drop((&mut second).await.unwrap());
    assert_eq!(began.elapsed().as_secs(), COOLDOWN.as_secs());
    assert_eq!(pool.snapshot()[0].breaker.name(), "closed");
}
