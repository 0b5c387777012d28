//! The load on a running daemon: runs over HTTP, from the moment at which each is due to its end as the client sees it.

mod daemon;
mod error;
mod lag;
mod tally;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::report::{Length, Point};
use daemon::{Answered, Daemon, Ended};
pub use error::HttpLoadError;
use lag::Lag;
use tally::{Due, Lap, Tally};

/// How long all runs may be refused.
const PATIENCE: Duration = Duration::from_mins(1);
/// Descriptors that the process has beside its connections.
const DESCRIPTORS: u64 = 64;
/// Runs without a step, one after the other, after which a client's number of steps will not be reached.
const STEPLESS_MAX: u32 = 20;
/// A year, in seconds; longer times are no load test.
const SECONDS_MAX: f64 = 31_536_000.0;
/// Runs a second; a run takes longer than a microsecond to send.
const RATE_MAX: f64 = 1e6;

/// A load on a daemon.
#[derive(Clone, Debug)]
pub struct HttpLoad {
    /// Of the daemon, `http://HOST:PORT`.
    pub url: String,
    /// What lets its client in, if it asks for one.
    pub key: Option<String>,
    /// The body of `POST /v1/runs`.
    pub request: Value,
    /// Clients. Each has one run under way at most, and one connection.
    pub trajectories: u32,
    /// Runs a second that are due, over all clients, at even distances. None: a client's next run is due when its last
    /// has ended.
    pub rate: Option<f64>,
    /// Runs that are due before its end are not measured.
    pub warmup: Duration,
    /// Seconds in which runs are due; or committed steps, of each client (in an open loop: of all clients, times their
    /// number). Runs that were handed in are waited for.
    pub length: Length,
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    pub point: Point,
    /// What a reader must know, in sentences.
    pub remarks: Vec<String>,
}

/// What the clients share.
struct Shared {
    daemon: Daemon,
    trajectories: u32,
    rate: Option<f64>,
    begins: Instant,
    /// The end of the warm-up.
    from: Instant,
    /// Of each client.
    steps: Option<u64>,
    /// When no further run is due; set amid the load where steps are counted.
    ends: Mutex<Option<Instant>>,
    /// Of the next run of an open loop.
    ticket: AtomicU64,
    /// The last time at which a run was taken.
    taken: Mutex<Instant>,
    tally: Mutex<Tally>,
}

/// What a panic of another client left is whole enough to be counted.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// The moment at which a run of the open loop is due.
    fn due_at(&self, rate: f64, ticket: u64) -> Instant {
        self.begins + Duration::from_secs_f64((ticket as f64 / rate).min(2.0 * SECONDS_MAX))
    }

    /// Runs of the open loop that are due before a moment, the first one at the beginning.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded by rate and time")]
    fn due_before(&self, rate: f64, moment: Instant) -> u64 {
        (moment.duration_since(self.begins).as_secs_f64() * rate - 1e-6).ceil().max(0.0) as u64
    }

    fn is_past(&self, moment: Instant) -> bool {
        lock(&self.ends).is_some_and(|ends| moment >= ends)
    }

    /// When a client's next run is due, waited for; none when there is no further one.
    async fn next_due(&self) -> Option<Instant> {
        let Some(rate) = self.rate else {
            let now = Instant::now();
            return (!self.is_past(now)).then_some(now);
        };
        let ticket = self.ticket.fetch_add(1, Ordering::Relaxed);
        let due = self.due_at(rate, ticket);
        if self.is_past(due) {
            return None;
        }
        sleep_until(due).await;
        let ends = *lock(&self.ends);
        if let Some(ends) = ends.filter(|ends| Instant::now() >= *ends) {
            // Too late for this one and all that follow.
            let last = self.due_before(rate, ends);
            let next = self.ticket.fetch_max(last, Ordering::Relaxed);
            self.unsent(rate, ticket..(ticket + 1).min(last));
            self.unsent(rate, next..last);
            return None;
        }
        Some(due)
    }

    /// Notes runs that were due and not handed in, as far as they were due after the warm-up.
    fn unsent(&self, rate: f64, tickets: Range<u64>) {
        let first = tickets.start.max(self.due_before(rate, self.from));
        lock(&self.tally).unsent(tickets.end.saturating_sub(first));
    }

    /// Waits as the daemon asked. False: the test is over before.
    async fn stay_away(&self, pause: Duration, message: String, may_end: bool) -> Result<bool, HttpLoadError> {
        let now = Instant::now();
        if now.duration_since(*lock(&self.taken)) > PATIENCE {
            return Err(HttpLoadError::NeverTaken { patience: PATIENCE, message });
        }
        lock(&self.tally).refused(message);
        let again = now + pause.min(PATIENCE);
        if may_end && self.is_past(again) {
            return Ok(false);
        }
        sleep_until(again).await;
        Ok(true)
    }

    /// One run from its due moment to its end; its record and the steps that count. Nothing where it was never taken.
    async fn lap(&self, due: Instant) -> Result<Option<(Ended, u64)>, HttpLoadError> {
        let (id, sent, accepted) = loop {
            let sent = Instant::now();
            match self.daemon.submit().await? {
                Answered::Done(id) => break (id, sent, Instant::now()),
                Answered::Refused { pause, message } => {
                    if !self.stay_away(pause, message, true).await? {
                        lock(&self.tally).unsent(u64::from(due >= self.from));
                        return Ok(None);
                    }
                }
            }
        };
        *lock(&self.taken) = accepted;
        let record = loop {
            match self.daemon.end_of(&id).await? {
                Answered::Done(record) => break record,
                // Whatever the time, it is waited for.
                Answered::Refused { pause, message } => _ = self.stay_away(pause, message, false).await?,
            }
        };
        let lap = Lap { due, sent, accepted, ended: Instant::now() };
        let in_time = !self.is_past(lap.ended);
        let steps = lock(&self.tally).ended(&lap, &record, in_time);
        Ok(Some((record, steps)))
    }

    /// One client, from its first run to its last.
    async fn client(&self) -> Result<(), HttpLoadError> {
        let (mut steps, mut stepless) = (0, 0);
        while let Some(due) = self.next_due().await {
            let Some((record, counted)) = self.lap(due).await? else { return Ok(()) };
            let Some(wanted) = self.steps else { continue };
            steps += counted;
            stepless = if record.steps == 0 { stepless + 1 } else { 0 };
            if stepless == STEPLESS_MAX {
                return Err(HttpLoadError::Stepless { runs: stepless, status: record.status });
            }
            if self.rate.is_none() && steps >= wanted {
                return Ok(());
            }
            if self.rate.is_some() && lock(&self.tally).steps() >= wanted.saturating_mul(self.trajectories.into()) {
                lock(&self.ends).get_or_insert_with(Instant::now);
            }
        }
        Ok(())
    }

    /// The open loop as it was due, when all clients have ended.
    fn due(&self) -> Option<Due> {
        let rate = self.rate?;
        let until = lock(&self.ends).unwrap_or_else(Instant::now);
        let runs = self.due_before(rate, until) - self.due_before(rate, self.from.min(until));
        Some(Due { rate, runs, until })
    }
}

impl HttpLoad {
    fn check(&self) -> Result<(), HttpLoadError> {
        let refuse = |what: String, give| Err(HttpLoadError::Load { what, give });
        if self.trajectories == 0 {
            return refuse("no trajectories".to_owned(), "1 or more");
        }
        if let Some(rate) = self.rate.filter(|rate| !(*rate > 0.0 && *rate <= RATE_MAX)) {
            return refuse(format!("a rate of {rate} runs/s"), "a rate above 0, up to 1,000,000");
        }
        match self.length {
            Length::Steps(0) => return refuse("no steps".to_owned(), "1 or more"),
            Length::Seconds(seconds) if !(seconds > 0.0 && seconds <= SECONDS_MAX) => {
                return refuse(format!("a length of {seconds} s"), "a time above 0, up to a year");
            }
            _ => {}
        }
        if self.warmup.as_secs_f64() > SECONDS_MAX {
            return refuse("a warm-up of more than a year".to_owned(), "a shorter one");
        }
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        if u64::from(self.trajectories) + DESCRIPTORS > limit {
            return Err(HttpLoadError::Descriptors { connections: self.trajectories, limit });
        }
        Ok(())
    }
}

/// Puts the load on the daemon, and measures.
///
/// # Errors
/// [`HttpLoadError`]: at once where there is no daemon, it does not let this client in, or it refuses the run; later
/// where it goes away.
pub async fn http(load: &HttpLoad) -> Result<Measured, HttpLoadError> {
    load.check()?;
    let daemon = Daemon::new(&load.url, load.key.as_deref(), &load.request)?;
    daemon.look().await?;
    let begins = Instant::now();
    let from = begins + load.warmup;
    let (ends, steps) = match load.length {
        Length::Seconds(seconds) => (Some(from + Duration::from_secs_f64(seconds)), None),
        Length::Steps(steps) => (None, Some(steps)),
    };
    let shared = Arc::new(Shared {
        daemon,
        trajectories: load.trajectories,
        rate: load.rate,
        begins,
        from,
        steps,
        ends: Mutex::new(ends),
        ticket: AtomicU64::new(0),
        taken: Mutex::new(begins),
        tally: Mutex::new(Tally::new(from)),
    });
    let mut clients = JoinSet::new();
    for _ in 0..load.trajectories {
        let shared = Arc::clone(&shared);
        clients.spawn(async move { shared.client().await });
    }
    let mut lag = Lag::new();
    let all = async {
        while let Some(ended) = clients.join_next().await {
            let broke = |error: tokio::task::JoinError| HttpLoadError::BrokenOff { reason: error.to_string() };
            ended.map_err(broke)??;
        }
        Ok(())
    };
    tokio::select! {
        result = all => result?,
        never = lag.watch() => match never {},
    }
    let due = shared.due();
    let tally = lock(&shared.tally);
    let point = tally.point(load.trajectories, due).ok_or(HttpLoadError::NothingEnded)?;
    let mut remarks = tally.remarks(&point);
    remarks.extend(lag.remark(point.latency.p50_us));
    drop(tally);
    Ok(Measured { point, remarks })
}
