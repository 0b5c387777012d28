//! Routes requests to the backends of a pool and queues those that must wait. Sends nothing itself.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

use super::attempt_error::AttemptError;
use super::backend::Backend;
use super::backend_state::BackendState;
use super::balancer::choose;
use super::breaker::{Admission, Breaker};
use super::permit::Permit;
use super::status::UpstreamStatus;
use super::wait_queue::{RoutingHint, Ticket, WaitQueue};
use crate::Failure;
use prime_settings::UpstreamPool;

pub(super) struct Pool {
    backends: Vec<Backend>,
    /// Upper bound for `Retry-After`.
    pause_max: Duration,
    /// Held for a few comparisons, never across an await.
    inner: Mutex<Inner>,
}

struct Inner {
    /// One state for each of `backends`, in their order.
    states: Vec<BackendState>,
    /// Requests that wait. None could be served at the last check; what changes that (a permit
    /// returned, a probe, a timer) calls [`Pool::dispatch`].
    waiting: WaitQueue<oneshot::Sender<Permit>>,
}

/// Leaves the queue when dropped.
struct Queued<'a> {
    pool: &'a Pool,
    ticket: Ticket,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.pool.inner().waiting.remove(self.ticket);
    }
}

impl Pool {
    pub fn new(settings: &UpstreamPool, backends: Vec<Backend>) -> Self {
        let cooldown = Duration::from_millis(settings.breaker_ms);
        let new_state =
            |_: &Backend| BackendState::new(Breaker::new(settings.breaker_failures, cooldown));
        let inner =
            Inner { states: backends.iter().map(new_state).collect(), waiting: WaitQueue::new() };
        Self {
            backends,
            pause_max: Duration::from_millis(settings.backoff_max_ms),
            inner: Mutex::new(inner),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn backends(&self) -> &[Backend] {
        &self.backends
    }

    /// The backends' states, in the order of the configuration.
    pub fn snapshot(&self) -> Vec<UpstreamStatus> {
        let now = Instant::now();
        let inner = self.inner();
        inner
            .states
            .iter()
            .zip(&self.backends)
            .map(|(state, backend)| state.status(backend, now))
            .collect()
    }

    /// Requests in the queue.
    pub fn waiting(&self) -> usize {
        self.inner().waiting.len()
    }

    /// Waits up to `patience` for a permit at the best backend. Must be called in the runtime that
    /// sends the requests.
    ///
    /// # Errors
    /// No backend had capacity in time.
    pub async fn acquire(
        self: &Arc<Self>,
        hint: RoutingHint,
        patience: Duration,
    ) -> Result<Permit, AttemptError> {
        // Time alone may have made a backend available: waiters that came earlier go first.
        self.dispatch();

        let (ticket, receiver) = {
            let mut inner = self.inner();
            if let Some(permit) = self.pick(&mut inner.states, hint, Instant::now()) {
                return Ok(permit);
            }
            let (sender, receiver) = oneshot::channel();
            (inner.waiting.push(hint, sender), receiver)
        };
        // From here on a cancelled turn leaves the queue.
        let _queued = Queued { pool: self, ticket };
        match timeout(patience, receiver).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(self.exhausted()),
        }
    }

    fn pick(
        self: &Arc<Self>,
        states: &mut [BackendState],
        hint: RoutingHint,
        now: Instant,
    ) -> Option<Permit> {
        let all = states.iter().zip(&self.backends).enumerate();
        let open = all.filter(|(_, (state, _))| state.accepts_requests(now));
        let candidates: Vec<_> =
            open.map(|(index, (state, backend))| state.candidate(index, backend)).collect();

        let index = choose(&candidates, hint.affinity, hint.avoid)?;

        let state = &mut states[index];
        state.in_flight += 1;
        let is_trial = state.breaker.admission(now) == Admission::Trial;
        if is_trial {
            state.breaker.begin_trial();
        }

        Some(Permit::new(Arc::clone(self), index, is_trial))
    }

    /// Hands out permits to waiters while there is capacity.
    pub fn dispatch(self: &Arc<Self>) {
        let now = Instant::now();
        let served = {
            let Inner { states, waiting } = &mut *self.inner();
            waiting.serve(|hint| self.pick(states, hint, now))
        };

        // This is done outside the lock: dropping a permit that no waiter takes locks it again.
        for (sender, permit) in served {
            // A waiter that has just left does not take the permit: it is dropped, and thereby
            // released.
            drop(sender.send(permit));
        }
    }

    /// Returns whether a backend other than this one accepts requests.
    pub fn has_other(&self, index: usize) -> bool {
        let now = Instant::now();
        self.inner()
            .states
            .iter()
            .enumerate()
            .any(|(other, state)| other != index && state.accepts_requests(now))
    }

    /// Counts a request that is about to be sent.
    pub(super) fn sending(&self, index: usize, is_retry: bool) {
        let state = &mut self.inner().states[index];
        state.requests += 1;
        state.retries += u64::from(is_retry);
    }

    pub(super) fn succeeded(&self, index: usize, is_trial: bool) {
        self.inner().states[index].breaker.succeeded(is_trial);
    }

    pub(super) fn failed(self: &Arc<Self>, index: usize, is_trial: bool, error: &AttemptError) {
        let now = Instant::now();

        // The lock is released before timers are spawned.
        let mut wake_at = Vec::new();
        {
            let state = &mut self.inner().states[index];
            *state.failures.entry(error.failure).or_default() += 1;
            state.last_error = Some(error.reason.clone());

            if error.is_fault {
                if let Some(until) = state.breaker.failed(is_trial, now) {
                    tracing::warn!(
                        upstream = &*self.backends[index].name,
                        reason = error.reason,
                        "circuit breaker opened after consecutive failures"
                    );
                    wake_at.push(until);
                }
            // A server that rejects a request has answered: the breaker asks for no more.
            } else {
                state.breaker.succeeded(is_trial);
            }

            if let Some(pause) = error.retry_after {
                let until = now + pause.min(self.pause_max);
                state.paused_until = Some(until);
                wake_at.push(until);
            }
        }

        // Waiters are served when capacity is returned, but nothing returns any when a pause ends.
        for at in wake_at {
            let pool = Arc::clone(self);
            // Ends with the runtime at the latest.
            tokio::spawn(async move {
                sleep_until(at).await;
                pool.dispatch();
            });
        }
    }

    /// Takes back a permit; `is_open_trial` for a trial request without an outcome.
    pub(super) fn release(self: &Arc<Self>, index: usize, is_open_trial: bool) {
        {
            let state = &mut self.inner().states[index];
            state.in_flight -= 1;
            if is_open_trial {
                state.breaker.abandon_trial(Instant::now());
            }
        }
        self.dispatch();
    }

    /// Records the result of a health probe. A server that is decoding may answer nothing else
    /// meanwhile: that does not make it unhealthy, and its requests have a timeout of their own.
    pub fn probed(self: &Arc<Self>, index: usize, result: Result<(), AttemptError>) {
        let changed = {
            let state = &mut self.inner().states[index];
            if state.in_flight > 0
                && result.as_ref().is_err_and(|error| error.failure == Failure::Timeout)
            {
                return;
            }
            let changed = state.is_healthy != result.is_ok();
            state.is_healthy = result.is_ok();
            if let Err(error) = &result {
                state.last_error = Some(error.reason.clone());
            }
            changed
        };

        if !changed {
            return;
        }

        let upstream = &*self.backends[index].name;
        match result {
            Ok(()) => tracing::info!(upstream, "healthy again"),
            Err(error) => {
                tracing::warn!(
                    upstream,
                    reason = error.reason,
                    "unhealthy: gets no requests until it answers"
                );
            }
        }

        self.dispatch();
    }

    /// Why no permit was available.
    fn exhausted(&self) -> AttemptError {
        self.unavailable().unwrap_or_else(|| {
            let capacity: u64 =
                self.backends.iter().map(|backend| u64::from(backend.concurrent_max)).sum();
            let reason = format!(
                "no server had capacity within `queue_timeout_ms` (capacity: {capacity} requests, \
                 waiting: {}): raise it or `concurrent_max`, or run fewer runs at once",
                self.waiting()
            );
            AttemptError::permanent(Failure::Overloaded, reason)
        })
    }

    /// What is wrong if no server accepts requests at present.
    pub fn unavailable(&self) -> Option<AttemptError> {
        let now = Instant::now();
        let inner = self.inner();
        if inner.states.iter().any(|state| state.is_available(now)) {
            return None;
        }

        let last_error = |(state, backend): (&BackendState, &Backend)| {
            format!(
                "{}: {}",
                backend.name,
                state.last_error.as_deref().unwrap_or("it does not answer")
            )
        };
        let last_errors: Vec<_> = inner.states.iter().zip(&self.backends).map(last_error).collect();
        let reason = format!("no server is available: {}", last_errors.join("; "));
        Some(AttemptError::permanent(Failure::Unreachable, reason))
    }
}
