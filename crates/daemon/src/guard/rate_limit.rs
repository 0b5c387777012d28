//! Limits per owner: requests per second, concurrent requests, and open streams.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use actix_web::{HttpMessage as _, HttpRequest};
use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

use super::keys::{Owner, Rights};
use crate::error::ApiError;
use prime_settings::{ApiKey, Server};

type Bucket<C> = RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// `Retry-After` where the wait is unknown.
const SOON: Duration = Duration::from_secs(1);

/// A limit and the configuration key that sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Limit {
    /// 0 = unlimited.
    most: u32,
    key: String,
}

impl Limit {
    /// The key's own value, otherwise the server's.
    fn of(option: &str, owner: &str, own: Option<u32>, general: u32) -> Self {
        match own {
            Some(most) => Self { most, key: format!("{option} of the key \"{owner}\"") },
            None => Self { most: general, key: format!("server.{option}") },
        }
    }
}

/// A limit on concurrency, and how much of it is in use.
struct Gauge {
    limit: Limit,
    in_use: AtomicU32,
}

impl Gauge {
    fn new(limit: Limit) -> Arc<Self> {
        Arc::new(Self { limit, in_use: AtomicU32::new(0) })
    }

    /// Counts one more until the permit is dropped. The error is the limit that is reached.
    fn enter(self: &Arc<Self>) -> Result<Permit, &Limit> {
        let most = if self.limit.most == 0 { u32::MAX } else { self.limit.most };
        let one_more = |in_use: u32| (in_use < most).then_some(in_use + 1);
        match self.in_use.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
            Ok(_) => Ok(Permit(Arc::clone(self))),
            Err(_) => Err(&self.limit),
        }
    }
}

/// Held by a request in progress, or by a stream of events.
pub struct Permit(Arc<Gauge>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.in_use.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The limits of one owner and their use. Shared by all workers.
pub struct Limits<C: Clock = DefaultClock> {
    owner: Owner,
    rate: Limit,
    requests: Arc<Gauge>,
    streams: Arc<Gauge>,
    bucket: Option<Bucket<C>>,
    clock: C,
}

impl Limits {
    /// The limits of all requests, without keys.
    #[must_use]
    pub fn anonymous(server: &Server) -> Arc<Self> {
        let owner = Owner { name: String::new(), rights: Rights::Admin };
        Self::new(owner, (None, None), server, DefaultClock::default())
    }

    /// The limits of a key's owner.
    #[must_use]
    pub fn of_key(key: &ApiKey, server: &Server) -> Arc<Self> {
        let rights = if key.admin { Rights::Admin } else { Rights::Key };
        let owner = Owner { name: key.name.clone(), rights };
        Self::new(
            owner,
            (key.requests_per_second, key.concurrent_max),
            server,
            DefaultClock::default(),
        )
    }
}

impl<C: Clock + Clone> Limits<C> {
    fn new(
        owner: Owner,
        (rate, concurrent): (Option<u32>, Option<u32>),
        server: &Server,
        clock: C,
    ) -> Arc<Self> {
        let rate = Limit::of("requests_per_second", &owner.name, rate, server.requests_per_second);
        let concurrent =
            Limit::of("concurrent_max", &owner.name, concurrent, server.concurrent_max);
        let streams = Limit::of("streams_max", &owner.name, None, server.streams_max);
        // Without a rate there is no bucket; 0 stands for no limit.
        let quota = NonZeroU32::new(rate.most).zip(NonZeroU32::new(server.burst));
        let quota = quota.map(|(most, burst)| Quota::per_second(most).allow_burst(burst));
        let bucket = quota.map(|quota| RateLimiter::direct_with_clock(quota, clock.clone()));

        Arc::new(Self {
            owner,
            rate,
            requests: Gauge::new(concurrent),
            streams: Gauge::new(streams),
            bucket,
            clock,
        })
    }

    /// The owner that these limits are for.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Admits a request. It counts until the permit is dropped.
    ///
    /// # Errors
    /// 429 that names the limit and when to retry.
    pub fn enter(&self) -> Result<Permit, ApiError> {
        // First, so that a refusal for concurrency costs nothing of the rate.
        let permit = self.requests.enter().map_err(|Limit { most, key }| {
            let message = format!("{most} requests are in progress ({key}): wait for one to end");
            ApiError::too_many("too_many_concurrent_requests", message, SOON)
        })?;

        if let Some(Err(not_until)) = self.bucket.as_ref().map(RateLimiter::check) {
            let Limit { most, key } = &self.rate;
            let message = format!("more than {most} requests per second ({key}): retry later");
            let wait = not_until.wait_time_from(self.clock.now());
            return Err(ApiError::too_many("rate_limit_exceeded", message, wait));
        }
        Ok(permit)
    }

    /// Admits a stream of events, which counts until the permit is dropped. Streams may be quiet
    /// for hours, so they have a limit of their own.
    ///
    /// # Errors
    /// 429 that names the limit.
    pub fn enter_stream(&self) -> Result<Permit, ApiError> {
        self.streams.enter().map_err(|Limit { most, key }| {
            let message = format!("{most} streams of events are open ({key}): close one");
            ApiError::too_many("too_many_streams", message, SOON)
        })
    }
}

/// A permit for a stream of events in response to a request; `None` where nothing is limited.
///
/// # Errors
/// 429 that names the limit.
pub fn stream_permit(request: &HttpRequest) -> Result<Option<Permit>, ApiError> {
    let limits = request.extensions().get::<Arc<Limits>>().cloned();
    limits.map(|limits| limits.enter_stream()).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::ResponseError as _;
    use governor::clock::FakeRelativeClock;
    use prime_settings::Settings;

    fn server(requests_per_second: u32, burst: u32, concurrent_max: u32) -> Server {
        Server { requests_per_second, burst, concurrent_max, ..Settings::default().server }
    }

    fn limits(
        server: &Server,
        own: (Option<u32>, Option<u32>),
    ) -> (Arc<Limits<FakeRelativeClock>>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        let owner = Owner { name: "ci".to_owned(), rights: Rights::Key };
        (Limits::new(owner, own, server, clock.clone()), clock)
    }

    /// The header `Retry-After` of a refusal.
    fn wait_of(error: &ApiError) -> u64 {
        let response = error.error_response();
        assert_eq!(response.status(), 429);
        response.headers().get("Retry-After").unwrap().to_str().unwrap().parse().unwrap()
    }

    fn in_use<C: Clock>(limits: &Limits<C>) -> u32 {
        limits.requests.in_use.load(Ordering::Relaxed)
    }

    fn refused<C: Clock + Clone>(limits: &Arc<Limits<C>>) -> ApiError {
        limits.enter().err().expect("a refusal")
    }

    #[test]
    fn a_burst_passes_and_then_the_rate_counts() {
        let (limits, clock) = limits(&server(2, 3, 0), (None, None));
        for _ in 0..3 {
            assert!(limits.enter().is_ok());
        }
        let error = refused(&limits);
        assert_eq!(wait_of(&error), 1);
        assert!(
            error
                .to_string()
                .contains("more than 2 requests per second (server.requests_per_second)"),
            "{error}"
        );

        clock.advance(Duration::from_millis(499));
        refused(&limits);
        clock.advance(Duration::from_millis(1));
        assert!(limits.enter().is_ok());
        refused(&limits);

        clock.advance(Duration::from_hours(1));
        for _ in 0..3 {
            assert!(limits.enter().is_ok(), "the burst is full again");
        }
        refused(&limits);
        assert_eq!(in_use(&limits), 0, "none of these is still counted");
    }

    #[test]
    fn requests_count_until_their_permit_is_dropped() {
        let (limits, _) = limits(&server(0, 1, 2), (None, None));
        let (first, second) = (limits.enter().unwrap(), limits.enter().unwrap());
        let error = refused(&limits);
        assert_eq!(wait_of(&error), 1);
        assert!(
            error.to_string().contains("2 requests are in progress (server.concurrent_max)"),
            "{error}"
        );

        drop(first);
        let third = limits.enter().unwrap();
        refused(&limits);
        drop((second, third));
        assert_eq!(in_use(&limits), 0);
    }

    #[test]
    fn no_limit_is_no_limit() {
        let (limits, _) = limits(&server(0, 1, 0), (None, None));
        let permits: Vec<_> = (0..10_000).map(|_| limits.enter().unwrap()).collect();
        assert_eq!(in_use(&limits), 10_000);
        drop(permits);
    }

    #[test]
    fn the_values_of_a_key_win_and_are_named() {
        let (tight, _) = limits(&server(1_000, 1, 1_000), (Some(1), Some(1)));
        let permit = tight.enter().unwrap();
        let error = refused(&tight);
        assert!(error.to_string().contains("concurrent_max of the key \"ci\""), "{error}");
        drop(permit);
        let error = refused(&tight);
        assert!(
            error.to_string().contains(
                "more than 1 requests per second (requests_per_second of the key \"ci\")"
            )
        );

        let (free, _) = limits(&server(1, 1, 1), (Some(0), Some(0)));
        let permits: Vec<_> = (0..100).map(|_| free.enter().unwrap()).collect();
        assert_eq!((permits.len(), &free.owner().name[..]), (100, "ci"));
    }

    #[test]
    fn streams_are_counted_apart() {
        let server = Server { streams_max: 2, ..server(0, 1, 1) };
        let (limits, _) = limits(&server, (None, None));
        let _request = limits.enter().unwrap();
        let (first, _second) = (limits.enter_stream().unwrap(), limits.enter_stream().unwrap());
        let error = limits.enter_stream().err().expect("a refusal");
        assert_eq!(wait_of(&error), 1);
        assert!(
            error.to_string().contains("2 streams of events are open (server.streams_max)"),
            "{error}"
        );

        drop(first);
        assert!(limits.enter_stream().is_ok());
    }

    #[test]
    fn a_refusal_for_concurrency_spends_nothing_of_the_rate() {
        let (limits, _) = limits(&server(1, 2, 1), (None, None));
        let permit = limits.enter().unwrap();
        for _ in 0..10 {
            refused(&limits);
        }

        drop(permit);
        assert!(limits.enter().is_ok());
    }
}
