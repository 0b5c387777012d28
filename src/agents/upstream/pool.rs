//! The servers of a pool and the queue before them: gives out places, in the order of arrival. Sends nothing itself.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

use super::breaker::{Admission, Breaker};
use super::choice::choose;
use super::member::Member;
use super::place::Place;
use super::problem::Problem;
use super::standing::Standing;
use super::status::UpstreamStatus;
use crate::agents::Failure;
use crate::settings::Upstreams;

/// See the module.
pub(super) struct Pool {
    members: Vec<Member>,
    /// Longest pause that a server may ask for.
    rest_max: Duration,
    /// Held for a few comparisons, and never while something waits.
    state: Mutex<State>,
}

struct State {
    /// In the order of the members.
    standings: Vec<Standing>,
    /// Nobody in here can be given a place at present, but for what time alone has changed.
    waiting: VecDeque<Waiting>,
    arrivals: u64,
}

/// Who wants a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub affinity: u64,
    /// The server where it just failed.
    pub avoid: Option<usize>,
}

struct Waiting {
    arrival: u64,
    wish: Wish,
    sender: oneshot::Sender<Place>,
}

/// Takes a waiting one out of the queue when it no longer waits.
struct Queued<'a> {
    pool: &'a Pool,
    arrival: u64,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.pool.state().waiting.retain(|waiting| waiting.arrival != self.arrival);
    }
}

impl Pool {
    pub fn new(settings: &Upstreams, members: Vec<Member>) -> Self {
        let rest = Duration::from_millis(settings.breaker_ms);
        let standing = |_: &Member| Standing::new(Breaker::new(settings.breaker_failures, rest));
        let standings = members.iter().map(standing).collect();
        let state = State { standings, waiting: VecDeque::new(), arrivals: 0 };
        Self { members, rest_max: Duration::from_millis(settings.backoff_max_ms), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// How the servers stand, in the order of the configuration.
    pub fn snapshot(&self) -> Vec<UpstreamStatus> {
        let now = Instant::now();
        let state = self.state();
        state.standings.iter().zip(&self.members).map(|(standing, member)| standing.status(member, now)).collect()
    }

    /// Requests that wait for a place.
    pub fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    /// A place at the server that is best for this wish. Must be called in the runtime that the requests run in.
    ///
    /// # Errors
    /// When there was none for so long.
    pub async fn place(self: &Arc<Self>, wish: Wish, patience: Duration) -> Result<Place, Problem> {
        // Whoever has waited for a time to come goes first.
        self.settle();
        let (arrival, receiver) = {
            let mut state = self.state();
            if let Some(place) = self.pick(&mut state, wish, Instant::now()) {
                return Ok(place);
            }
            let (sender, receiver) = oneshot::channel();
            let arrival = state.arrivals;
            state.arrivals += 1;
            state.waiting.push_back(Waiting { arrival, wish, sender });
            (arrival, receiver)
        };
        let _queued = Queued { pool: self, arrival };
        match timeout(patience, receiver).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => Err(self.no_place()),
        }
    }

    fn pick(self: &Arc<Self>, state: &mut State, wish: Wish, now: Instant) -> Option<Place> {
        let all = state.standings.iter().zip(&self.members).enumerate();
        let open = all.filter(|(_, (standing, _))| standing.is_open(now));
        let candidates: Vec<_> = open.map(|(index, (standing, member))| standing.candidate(index, member)).collect();
        let index = choose(&candidates, wish.affinity, wish.avoid)?;
        let standing = &mut state.standings[index];
        standing.in_flight += 1;
        let is_trial = standing.breaker.admission(now) == Admission::OnTrial;
        if is_trial {
            standing.breaker.begin_trial();
        }
        Some(Place::new(Arc::clone(self), index, is_trial))
    }

    /// Gives places to those who wait, as far as there are any.
    pub fn settle(self: &Arc<Self>) {
        let now = Instant::now();
        let mut given = Vec::new();
        {
            let mut state = self.state();
            let mut at = 0;
            while at < state.waiting.len() && self.has_room(&state, now) {
                let wish = state.waiting[at].wish;
                match self.pick(&mut state, wish, now) {
                    Some(place) => given.extend(state.waiting.remove(at).map(|waiting| (waiting.sender, place))),
                    None => at += 1,
                }
            }
        }
        for (sender, place) in given {
            // One who has gone meanwhile does not take it: it is dropped, and thereby free again.
            drop(sender.send(place));
        }
    }

    fn has_room(&self, state: &State, now: Instant) -> bool {
        let mut all = state.standings.iter().zip(&self.members);
        all.any(|(standing, member)| standing.is_open(now) && standing.in_flight < member.concurrent_max)
    }

    /// Whether a server other than this one takes requests.
    pub fn has_other(&self, index: usize) -> bool {
        let now = Instant::now();
        self.state().standings.iter().enumerate().any(|(other, standing)| other != index && standing.is_open(now))
    }

    /// A request goes to a server.
    pub(super) fn began(&self, index: usize, is_retry: bool) {
        let standing = &mut self.state().standings[index];
        standing.requests += 1;
        standing.retries += u64::from(is_retry);
    }

    /// A server has answered a request.
    pub(super) fn succeeded(&self, index: usize, is_trial: bool) {
        self.state().standings[index].breaker.succeeded(is_trial);
    }

    /// A server has failed a request.
    pub(super) fn failed(self: &Arc<Self>, index: usize, is_trial: bool, problem: &Problem) {
        let now = Instant::now();
        let mut wakes = Vec::new();
        {
            let standing = &mut self.state().standings[index];
            *standing.failures.entry(problem.failure).or_default() += 1;
            standing.trouble = Some(problem.reason.clone());
            if problem.is_fault {
                if let Some(until) = standing.breaker.failed(is_trial, now) {
                    tracing::warn!(
                        upstream = &*self.members[index].name,
                        reason = problem.reason,
                        "left alone for a time after failures in a row"
                    );
                    wakes.push(until);
                }
            } else {
                standing.breaker.succeeded(is_trial);
            }
            if let Some(rest) = problem.retry_after {
                let until = now + rest.min(self.rest_max);
                standing.rests_until = Some(until);
                wakes.push(until);
            }
        }
        for at in wakes {
            let pool = Arc::clone(self);
            // Ends with the runtime, if not before.
            tokio::spawn(async move {
                sleep_until(at).await;
                pool.settle();
            });
        }
    }

    /// A place is free again; `is_open_trial` when it was on trial and came to no result.
    pub(super) fn left(self: &Arc<Self>, index: usize, is_open_trial: bool) {
        {
            let standing = &mut self.state().standings[index];
            standing.in_flight -= 1;
            if is_open_trial {
                standing.breaker.abandon_trial(Instant::now());
            }
        }
        self.settle();
    }

    /// What a look at a server found.
    pub fn looked(self: &Arc<Self>, index: usize, found: Result<(), Problem>) {
        let changed = {
            let standing = &mut self.state().standings[index];
            let changed = standing.is_healthy != found.is_ok();
            standing.is_healthy = found.is_ok();
            if let Err(problem) = &found {
                standing.trouble = Some(problem.reason.clone());
            }
            changed
        };
        if !changed {
            return;
        }
        let upstream = &*self.members[index].name;
        match found {
            Ok(()) => tracing::info!(upstream, "is there again"),
            Err(problem) => tracing::warn!(upstream, reason = problem.reason, "gets no requests until it answers"),
        }
        self.settle();
    }

    /// Why nobody has a place to give.
    fn no_place(&self) -> Problem {
        let now = Instant::now();
        let state = self.state();
        if state.standings.iter().any(|standing| standing.is_there(now)) {
            let places: u64 = self.members.iter().map(|member| u64::from(member.concurrent_max)).sum();
            let reason = format!(
                "no place became free within `queue_timeout_ms` (places: {places}, waiting: {}): raise it or \
                 `concurrent_max`, or let fewer runs go at once",
                state.waiting.len()
            );
            return Problem::lasting(Failure::Overloaded, reason);
        }
        let trouble = |(standing, member): (&Standing, &Member)| {
            format!("{}: {}", member.name, standing.trouble.as_deref().unwrap_or("it does not answer"))
        };
        let troubles: Vec<_> = state.standings.iter().zip(&self.members).map(trouble).collect();
        Problem::lasting(Failure::Unreachable, format!("no server takes requests: {}", troubles.join("; ")))
    }
}
