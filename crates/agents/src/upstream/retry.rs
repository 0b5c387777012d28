//! The attempts that one request may take: on another backend where there is one, with backoff, all
//! bounded.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, sleep};

use super::attempt_error::AttemptError;
use super::backend::Backend;
use super::http::{HttpClient, Sent};
use super::pool::Pool;
use super::request::RequestFormat;
use super::wait_queue::RoutingHint;
use crate::model::{Completion, CompletionRequest};
use crate::written::Written;
use crate::{AgentError, Failure};
use prime_bench::tasks::TaskRng;
use prime_protocol::Usage;
use prime_retry::Backoff;
use prime_settings::UpstreamPool;

/// Sends requests to a pool and retries those that failed transiently.
pub(super) struct RetryingClient {
    pub pool: Arc<Pool>,
    pub http: Arc<HttpClient>,
    pub format: RequestFormat,
    pub policy: RetryPolicy,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RetryPolicy {
    retries_max: u32,
    backoff: Backoff,
    queue_timeout: Duration,
}

impl RetryPolicy {
    pub fn new(settings: &UpstreamPool) -> Self {
        let backoff = Backoff {
            initial: Duration::from_millis(settings.backoff_ms),
            max: Duration::from_millis(settings.backoff_max_ms),
        };
        let queue_timeout = Duration::from_millis(settings.queue_timeout_ms);
        Self { retries_max: settings.retries_max, backoff, queue_timeout }
    }

    /// The delay before retry `retry`, from 1. Full jitter, so that requests that failed together
    /// are not retried together.
    fn delay(&self, retry: u32, rng: &mut TaskRng) -> Duration {
        let longest = self.backoff.delay(retry.saturating_sub(1));
        let micros = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX - 1);
        Duration::from_micros(rng.below(micros + 1))
    }
}

impl RetryingClient {
    /// Sends a request until there is a completion, a permanent error, or no attempt left. Must be
    /// called in the pool's runtime. `tell` receives the failures of attempts that are retried.
    ///
    /// # Errors
    /// The last attempt's error, with the backend's name.
    pub async fn complete(
        &self,
        request: &CompletionRequest,
        tell: &UnboundedSender<AgentError>,
    ) -> Result<Completion, AgentError> {
        // Seeded by the turn, so that a test can repeat its delays.
        let mut rng = TaskRng::new(request.sampling.seed);
        let mut hint = RoutingHint { affinity: request.affinity, avoid: None };
        let mut queue_time_left = self.policy.queue_timeout;
        let mut failed: Option<(Arc<str>, AttemptError)> = None;
        let mut request = request.clone();
        let mut spent = Usage::default();

        for attempt in 0..=self.policy.retries_max {
            if let (Some((_, error)), Some(index)) = (&failed, hint.avoid) {
                let delay = self.policy.delay(attempt, &mut rng);
                // Another backend need not wait for the `Retry-After` of this one.
                let retry_after =
                    error.retry_after.filter(|_| !self.pool.has_other(index)).unwrap_or_default();
                sleep(delay.max(retry_after.min(self.policy.backoff.max))).await;
            }

            // The request may wait long, although it has not failed itself.
            if failed.is_none()
                && let Some(error) = self.pool.unavailable()
            {
                drop(tell.send(AgentError::new("upstreams", error.failure, error.reason)));
            }

            let queued = Instant::now();
            let mut permit = match self.pool.acquire(hint, queue_time_left).await {
                Ok(permit) => permit,
                Err(exhausted) => return Err(give_up(failed, exhausted, attempt)),
            };
            // One budget for all attempts: a request does not wait `queue_timeout_ms` each time.
            queue_time_left = queue_time_left.saturating_sub(queued.elapsed());
            permit.sending(attempt > 0);
            let backend = permit.backend();

            match self.sent(&request, backend).await {
                Ok(mut completion) => {
                    permit.succeeded();
                    completion.usage.add(spent);
                    return Ok(completion);
                }
                Err(mut error) => {
                    spent.add(error.usage);
                    error.usage = spent;
                    // A greedy model would only think the same again, and one that has thought too
                    // long at each attempt would do so at the turn's next one.
                    if error.failure == Failure::Malformed && error.usage.reasoning > 0 {
                        let is_greedy = request.sampling.temperature <= 0.0;
                        error.is_retryable &= !is_greedy && attempt < self.policy.retries_max;
                        request.sampling.seed = request.sampling.seed.wrapping_add(1);
                    }
                    if let Some(hearer) = &request.hearer {
                        hearer.tell(Written::Restarted);
                    }

                    // This comes before the permit is returned, so that the breaker knows of the
                    // failure when the next waiter is served.
                    permit.failed(&error);
                    let name = Arc::clone(&permit.backend().name);

                    if !error.is_retryable {
                        return Err(agent_error(&name, &error, attempt + 1));
                    }
                    hint.avoid = Some(permit.index());
                    // If the caller is gone, nothing receives it.
                    drop(tell.send(agent_error(&name, &error, attempt + 1)));
                    failed = Some((name, error));
                }
            }
        }

        let (name, error) = failed.expect("invariant: there was an attempt, and it failed");
        Err(agent_error(&name, &error, self.policy.retries_max + 1))
    }

    /// Sends a request, and sends it again without the fields that the server refuses: a refusal is
    /// not a failure, and the pool remembers it.
    async fn sent(
        &self,
        request: &CompletionRequest,
        backend: &Backend,
    ) -> Result<Completion, AttemptError> {
        loop {
            let body = self.format.body(request, &backend.model);
            let sent = Sent {
                body: &body,
                extra: &self.format.extra,
                has_schema: self.format.has_schema(request),
                prompt_bytes: request.prompt.len() + request.system.as_ref().map_or(0, String::len),
                hearer: request.hearer.as_ref(),
            };
            let error = match self.http.complete(backend, &sent).await {
                Ok(completion) => return Ok(completion),
                Err(error) => error,
            };

            // The loop ends, because each iteration leaves out one more field.
            let Some(field) = error.refused.filter(|field| body.get(*field).is_some()) else {
                return Err(error);
            };
            if self.format.refused.add(field) {
                tracing::info!(
                    upstream = &*backend.name,
                    "the server refuses `{field}`: requests of this pool do without it"
                );
            } else if self.format.body(request, &backend.model).get(field).is_some() {
                return Err(error);
            }
        }
    }
}

/// The error if there was no permit for another attempt: an earlier failure says more than that.
fn give_up(
    failed: Option<(Arc<str>, AttemptError)>,
    exhausted: AttemptError,
    attempts: u32,
) -> AgentError {
    match failed {
        Some((name, error)) => agent_error(&name, &error, attempts),
        None => AgentError::new("upstreams", exhausted.failure, exhausted.reason),
    }
}

fn agent_error(name: &str, error: &AttemptError, attempts: u32) -> AgentError {
    let count = if attempts > 1 { format!(" (attempt {attempts})") } else { String::new() };
    let agent = format!("upstream {name}");
    let is_transient = error.is_transient();
    AgentError {
        is_transient,
        usage: error.usage,
        ..AgentError::new(agent, error.failure, format!("{}{count}", error.reason))
    }
}

/// The error of a request whose task panicked or whose thread has ended.
pub(super) fn thread_failed(has_panicked: bool) -> AgentError {
    if has_panicked {
        AgentError::new("upstreams", Failure::Panicked, "the upstream client panicked: see the log")
    } else {
        AgentError::new(
            "upstreams",
            Failure::Died,
            "the upstream thread has ended: restart the daemon",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_drawn_below_a_bound_that_doubles_to_a_limit() {
        let settings =
            UpstreamPool { backoff_ms: 100, backoff_max_ms: 1_000, ..UpstreamPool::default() };
        let policy = RetryPolicy::new(&settings);
        for (retry, bound) in
            [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1_000), (6, 1_000), (90, 1_000)]
        {
            let delays: Vec<_> = (0..200)
                .map(|seed| policy.delay(retry, &mut TaskRng::new(seed)).as_millis())
                .collect();
            let (least, most) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
            assert!(
                *least < bound / 10 && *most <= bound && *most > bound * 9 / 10,
                "{retry}: {least} to {most}"
            );
        }
        assert_eq!(
            policy.delay(3, &mut TaskRng::new(7)),
            policy.delay(3, &mut TaskRng::new(7)),
            "by the turn's seed"
        );
    }
}
