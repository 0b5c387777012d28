//! The load on a running daemon: runs over HTTP, timed from the moment when each is due to its end
//! as the client sees it.

mod client;
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
use client::{Answer, DaemonClient, RunRecord};
pub use error::HttpLoadError;
use lag::Lag;
use tally::{Due, RunTimes, Tally};

/// How long the daemon may refuse all runs.
const PATIENCE: Duration = Duration::from_mins(1);
/// File descriptors that the process needs besides its connections.
const DESCRIPTORS: u64 = 64;
/// Consecutive runs without a step after which a client gives up on its number of steps.
const STEPLESS_MAX: u32 = 20;
/// Longest time, in seconds: a year.
const SECONDS_MAX: f64 = 31_536_000.0;
/// Highest rate, in runs per second; sending one run takes longer than a microsecond.
const RATE_MAX: f64 = 1e6;

/// A load on a daemon.
#[derive(Clone, Debug)]
pub struct HttpLoad {
    /// The daemon's address, `http://HOST:PORT`.
    pub url: String,
    /// API key, if the daemon requires one.
    pub key: Option<String>,
    /// The body of `POST /v1/runs`.
    pub request: Value,
    /// Clients. Each has one connection and at most one run in progress.
    pub trajectories: u32,
    /// Runs due per second over all clients, evenly spaced. `None`: a client's next run is due when
    /// its previous one has ended.
    pub rate: Option<f64>,
    /// Runs due before its end are not measured.
    pub warmup: Duration,
    /// Seconds during which runs are due, or committed steps per client (in an open loop: in total,
    /// times the number of clients). Submitted runs are awaited.
    pub length: Length,
}

/// What a load on a daemon gave.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpMeasured {
    /// The measurement, for a report.
    pub point: Point,
    /// What a reader must know, in sentences.
    pub remarks: Vec<String>,
}

/// The state that the clients share.
struct Shared {
    daemon: DaemonClient,
    trajectories: u32,
    rate: Option<f64>,
    start: Instant,
    /// The end of the warm-up.
    from: Instant,
    /// Steps wanted per client, if the load is limited by steps.
    steps: Option<u64>,
    /// The time at which the last run is due; set during the load if steps are counted.
    end: Mutex<Option<Instant>>,
    /// Number of the next run of an open loop.
    ticket: AtomicU64,
    /// The time at which the daemon last accepted a run.
    accepted: Mutex<Instant>,
    tally: Mutex<Tally>,
}

/// Locks a mutex even if it is poisoned: a panic of another client leaves nothing inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// The time at which a run of the open loop is due.
    fn due_at(&self, rate: f64, ticket: u64) -> Instant {
        self.start + Duration::from_secs_f64((ticket as f64 / rate).min(2.0 * SECONDS_MAX))
    }

    /// Runs of the open loop due before a moment. The first is due at the start.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounded by rate and time"
    )]
    fn due_before(&self, rate: f64, moment: Instant) -> u64 {
        // The slack keeps rounding from adding a run.
        (moment.duration_since(self.start).as_secs_f64() * rate - 1e-6).ceil().max(0.0) as u64
    }

    fn is_past(&self, moment: Instant) -> bool {
        lock(&self.end).is_some_and(|end| moment >= end)
    }

    /// Waits until a client's next run is due. Returns when it was due, or `None` if there is no
    /// further one.
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

        let end = *lock(&self.end);
        if let Some(end) = end.filter(|end| Instant::now() >= *end) {
            // Too late for this one and all later ones.
            let last = self.due_before(rate, end);
            // Takes all remaining tickets, so that each of them is counted by one client only.
            let next = self.ticket.fetch_max(last, Ordering::Relaxed);

            self.unsent(rate, ticket..(ticket + 1).min(last));
            self.unsent(rate, next..last);
            return None;
        }
        Some(due)
    }

    /// Counts runs that were due but not submitted, ignoring the warm-up.
    fn unsent(&self, rate: f64, tickets: Range<u64>) {
        let first = tickets.start.max(self.due_before(rate, self.from));
        lock(&self.tally).unsent(tickets.end.saturating_sub(first));
    }

    /// Waits as the daemon asked. Returns false if the test ends before that.
    async fn back_off(
        &self,
        pause: Duration,
        message: String,
        may_end: bool,
    ) -> Result<bool, HttpLoadError> {
        let now = Instant::now();
        if now.duration_since(*lock(&self.accepted)) > PATIENCE {
            return Err(HttpLoadError::NeverAccepted { patience: PATIENCE, message });
        }

        lock(&self.tally).refused(message);
        // A longer pause would outlast the patience.
        let again = now + pause.min(PATIENCE);
        if may_end && self.is_past(again) {
            return Ok(false);
        }

        sleep_until(again).await;
        Ok(true)
    }

    /// Performs one run, from the moment when it is due to its end. Returns its record and the
    /// steps that count, or `None` if it was never accepted.
    async fn run(&self, due: Instant) -> Result<Option<(RunRecord, u64)>, HttpLoadError> {
        let (id, sent, accepted) = loop {
            let sent = Instant::now();
            match self.daemon.submit().await? {
                Answer::Done(id) => break (id, sent, Instant::now()),
                Answer::Refused { pause, message } => {
                    if !self.back_off(pause, message, true).await? {
                        lock(&self.tally).unsent(u64::from(due >= self.from));
                        return Ok(None);
                    }
                }
            }
        };
        *lock(&self.accepted) = accepted;
        let record = loop {
            match self.daemon.wait(&id).await? {
                Answer::Done(record) => break record,
                // Submitted runs are awaited even after the end of the test.
                Answer::Refused { pause, message } => {
                    _ = self.back_off(pause, message, false).await?;
                }
            }
        };

        let times = RunTimes { due, sent, accepted, ended: Instant::now() };
        let in_time = !self.is_past(times.ended);
        let steps = lock(&self.tally).ended(&times, &record, in_time);
        Ok(Some((record, steps)))
    }

    /// Performs all runs of one client.
    async fn client(&self) -> Result<(), HttpLoadError> {
        let (mut steps, mut stepless) = (0, 0);
        while let Some(due) = self.next_due().await {
            let Some((record, counted)) = self.run(due).await? else { return Ok(()) };
            let Some(wanted) = self.steps else { continue };

            steps += counted;
            stepless = if record.steps == 0 { stepless + 1 } else { 0 };

            if stepless == STEPLESS_MAX {
                return Err(HttpLoadError::Stepless { runs: stepless, status: record.status });
            }
            if self.rate.is_none() && steps >= wanted {
                return Ok(());
            }

            // In an open loop the steps of all clients count together.
            if self.rate.is_some()
                && lock(&self.tally).steps() >= wanted.saturating_mul(self.trajectories.into())
            {
                lock(&self.end).get_or_insert_with(Instant::now);
            }
        }
        Ok(())
    }

    /// The demand of the open loop, once all clients have ended.
    fn due(&self) -> Option<Due> {
        let rate = self.rate?;
        let until = lock(&self.end).unwrap_or_else(Instant::now);
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
            return refuse(format!("a rate of {rate} runs/s"), "a rate above 0, at most 1,000,000");
        }

        match self.length {
            Length::Steps(0) => return refuse("no steps".to_owned(), "1 or more"),
            Length::Seconds(seconds) if !(seconds > 0.0 && seconds <= SECONDS_MAX) => {
                return refuse(
                    format!("a length of {seconds} s"),
                    "a time above 0, at most a year",
                );
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

/// Applies the load to the daemon and measures it.
///
/// # Errors
/// Fails at once if there is no daemon, it does not accept this client, or it refuses the run;
/// later if it goes away.
pub async fn http(load: &HttpLoad) -> Result<HttpMeasured, HttpLoadError> {
    load.check()?;
    let daemon = DaemonClient::new(&load.url, load.key.as_deref(), &load.request)?;
    daemon.check().await?;

    let start = Instant::now();
    let from = start + load.warmup;
    let (end, steps) = match load.length {
        Length::Seconds(seconds) => (Some(from + Duration::from_secs_f64(seconds)), None),
        Length::Steps(steps) => (None, Some(steps)),
    };

    let shared = Arc::new(Shared {
        daemon,
        trajectories: load.trajectories,
        rate: load.rate,
        start,
        from,
        steps,
        end: Mutex::new(end),
        ticket: AtomicU64::new(0),
        accepted: Mutex::new(start),
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
            let broken = |error: tokio::task::JoinError| HttpLoadError::BrokenOff {
                reason: error.to_string(),
            };
            ended.map_err(broken)??;
        }
        Ok(())
    };

    // Watching the timers never ends; it is dropped once all clients have ended.
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
    Ok(HttpMeasured { point, remarks })
}
