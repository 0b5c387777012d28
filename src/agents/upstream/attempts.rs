//! The attempts that one question may take: on another server where there is one, with pauses in between, all bounded.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::http::Http;
use super::pool::{Pool, Wish};
use super::problem::Problem;
use super::request::Form;
use crate::agents::model::{Ask, Reply};
use crate::agents::{AgentError, Failure};
use crate::settings::Upstreams;
use prime_bench::tasks::TaskRng;

/// Asks a pool.
pub(super) struct Asker {
    pub pool: Arc<Pool>,
    pub http: Http,
    pub form: Form,
    pub patience: Patience,
}

/// How long and how often to try.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    retries_max: u32,
    backoff: Duration,
    backoff_max: Duration,
    queue_timeout: Duration,
}

impl Patience {
    pub fn new(settings: &Upstreams) -> Self {
        Self {
            retries_max: settings.retries_max,
            backoff: Duration::from_millis(settings.backoff_ms),
            backoff_max: Duration::from_millis(settings.backoff_max_ms),
            queue_timeout: Duration::from_millis(settings.queue_timeout_ms),
        }
    }

    /// The pause before a further attempt, from 1: full jitter, so that those who failed together do not return together.
    fn pause(&self, attempt: u32, rng: &mut TaskRng) -> Duration {
        let doublings = 1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
        let longest = self.backoff.saturating_mul(doublings).min(self.backoff_max);
        let micros = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX - 1);
        Duration::from_micros(rng.below(micros + 1))
    }
}

impl Asker {
    /// Asks until there is a reply or no hope of one. Must be called in the pool's runtime.
    ///
    /// # Errors
    /// The last attempt's problem, with the server's name.
    pub async fn ask(&self, ask: &Ask) -> Result<Reply, AgentError> {
        let mut rng = TaskRng::new(ask.sampling.seed);
        let mut wish = Wish { affinity: ask.affinity, avoid: None };
        let mut queue_patience = self.patience.queue_timeout;
        let mut failed: Option<(Arc<str>, Problem)> = None;
        for attempt in 0..=self.patience.retries_max {
            if let (Some((_, problem)), Some(index)) = (&failed, wish.avoid) {
                let pause = self.patience.pause(attempt, &mut rng);
                // Another server need not wait for what this one has asked for.
                let asked = problem.retry_after.filter(|_| !self.pool.has_other(index)).unwrap_or_default();
                sleep(pause.max(asked.min(self.patience.backoff_max))).await;
            }
            let queued = Instant::now();
            let mut place = match self.pool.place(wish, queue_patience).await {
                Ok(place) => place,
                Err(none) => return Err(give_up(failed, none, attempt)),
            };
            queue_patience = queue_patience.saturating_sub(queued.elapsed());
            place.began(attempt > 0);
            let member = place.member();
            let body = self.form.body(ask, &member.model).to_string().into_bytes();
            match self.http.ask(member, body).await {
                Ok(reply) => {
                    place.succeeded();
                    return Ok(reply);
                }
                Err(problem) => {
                    place.failed(&problem);
                    let name = Arc::clone(&place.member().name);
                    if !problem.is_retried {
                        return Err(error(&name, &problem, attempt + 1));
                    }
                    wish.avoid = Some(place.index());
                    failed = Some((name, problem));
                }
            }
        }
        let (name, problem) = failed.expect("invariant: there was an attempt, and it failed");
        Err(error(&name, &problem, self.patience.retries_max + 1))
    }
}

/// No place for a further attempt: what failed before says more than that.
fn give_up(failed: Option<(Arc<str>, Problem)>, none: Problem, attempts: u32) -> AgentError {
    match failed {
        Some((name, problem)) => error(&name, &problem, attempts),
        None => AgentError::new("upstreams", none.failure, none.reason),
    }
}

fn error(name: &str, problem: &Problem, attempts: u32) -> AgentError {
    let count = if attempts > 1 { format!(" (attempt {attempts})") } else { String::new() };
    AgentError::new(format!("upstream {name}"), problem.failure, format!("{}{count}", problem.reason))
}

/// A question whose thread is gone or whose code panicked.
pub(super) fn broken(has_panicked: bool) -> AgentError {
    if has_panicked {
        AgentError::new("upstreams", Failure::Panicked, "the code that asks upstreams panicked: see the log")
    } else {
        AgentError::new("upstreams", Failure::Died, "the thread that asks upstreams has ended: restart the daemon")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_drawn_below_a_bound_that_doubles_to_a_limit() {
        let settings = Upstreams { backoff_ms: 100, backoff_max_ms: 1_000, ..Upstreams::default() };
        let patience = Patience::new(&settings);
        for (attempt, bound) in [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1_000), (6, 1_000), (90, 1_000)] {
            let pauses: Vec<_> =
                (0..200).map(|seed| patience.pause(attempt, &mut TaskRng::new(seed)).as_millis()).collect();
            let (least, most) = (pauses.iter().min().unwrap(), pauses.iter().max().unwrap());
            assert!(*least < bound / 10 && *most <= bound && *most > bound * 9 / 10, "{attempt}: {least} to {most}");
        }
        assert_eq!(
            patience.pause(3, &mut TaskRng::new(7)),
            patience.pause(3, &mut TaskRng::new(7)),
            "by the turn's seed"
        );
    }
}
