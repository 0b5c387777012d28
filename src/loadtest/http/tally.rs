//! What is counted of the runs of a load, and the point of a report that comes of it.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::Instant;

use super::super::figures::{count, figure};
use super::super::histogram::{empty, encode, latency};
use super::super::report::{Point, Rate, Stage};
use super::daemon::Ended;

/// Share of the due rate that must be reached, so that it counts as held.
const HELD: f64 = 0.98;

/// The times of a run.
pub struct Lap {
    pub due: Instant,
    /// When the request that was accepted was sent.
    pub sent: Instant,
    pub accepted: Instant,
    pub ended: Instant,
}

/// See the module.
pub struct Tally {
    from: Instant,
    latency: Histogram<u64>,
    late: Histogram<u64>,
    accept: Histogram<u64>,
    run: Histogram<u64>,
    steps: u64,
    last: Option<Instant>,
    /// Runs that ended between the end of the warm-up and the end of the measurement, whenever they were due.
    reached: u64,
    /// Those of them that were due after the warm-up.
    done: u64,
    statuses: BTreeMap<String, u64>,
    refusals: u64,
    refusal: Option<String>,
    /// Due and never handed in.
    unsent: u64,
}

/// The open loop that was asked for.
#[derive(Clone, Copy)]
pub struct Due {
    pub rate: f64,
    /// Runs that were due between the end of the warm-up and the end of the measurement.
    pub runs: u64,
    /// The end of the measurement.
    pub until: Instant,
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1)
}

impl Tally {
    /// `from` is the end of the warm-up.
    pub fn new(from: Instant) -> Self {
        Self {
            from,
            latency: empty(),
            late: empty(),
            accept: empty(),
            run: empty(),
            steps: 0,
            last: None,
            reached: 0,
            done: 0,
            statuses: BTreeMap::new(),
            refusals: 0,
            refusal: None,
            unsent: 0,
        }
    }

    /// A run that ended; gives the steps of it that count. Those of a run that was due in the warm-up do not.
    /// `in_time`: before the end of the measurement.
    pub fn ended(&mut self, lap: &Lap, record: &Ended, in_time: bool) -> u64 {
        self.reached += u64::from(in_time && lap.ended >= self.from);
        if lap.due < self.from {
            return 0;
        }
        self.done += u64::from(in_time);
        let legs = [
            (&mut self.latency, lap.due, lap.ended),
            (&mut self.late, lap.due, lap.sent),
            (&mut self.accept, lap.sent, lap.accepted),
            (&mut self.run, lap.accepted, lap.ended),
        ];
        for (histogram, from, to) in legs {
            histogram.saturating_record(nanos(to.duration_since(from)));
        }
        self.steps += record.steps;
        self.last = self.last.max(Some(lap.ended));
        *self.statuses.entry(record.status.clone()).or_default() += 1;
        record.steps
    }

    /// A request that was refused, to be sent again.
    pub fn refused(&mut self, message: String) {
        self.refusals += 1;
        self.refusal = Some(message);
    }

    /// Runs that were due after the warm-up and were not handed in before the end.
    pub fn unsent(&mut self, runs: u64) {
        self.unsent += runs;
    }

    /// Steps of runs that were due after the warm-up.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    fn rate(&self, due: Due) -> Rate {
        let seconds = due.until.duration_since(self.from).as_secs_f64();
        let reached = self.reached as f64 / seconds;
        Rate {
            due: due.rate,
            reached,
            behind: due.runs.saturating_sub(self.done),
            is_held: self.unsent == 0 && reached >= due.rate * HELD,
        }
    }

    /// What was measured with so many clients; none where no run ended.
    pub fn point(&self, trajectories: u32, due: Option<Due>) -> Option<Point> {
        let seconds = self.last?.duration_since(self.from).as_secs_f64();
        let leg = |name: &str, histogram| Stage { name: name.to_owned(), is_work: false, latency: latency(histogram) };
        let mut legs = vec![leg("accept", &self.accept), leg("run", &self.run)];
        // In a closed loop nothing is late, unless it was refused.
        if due.is_some() || self.refusals > 0 {
            legs.insert(0, leg("late", &self.late));
        }
        Some(Point {
            trajectories,
            steps: self.steps,
            seconds,
            steps_per_second: self.steps as f64 / seconds,
            latency: latency(&self.latency),
            legs,
            coordination_share: None,
            cpu_us_per_step: None,
            allocations_per_step: None,
            allocated_bytes_per_step: None,
            bytes_per_trajectory: None,
            rate: due.map(|due| self.rate(due)),
            failures: self.refusals + self.statuses.get("failed").copied().unwrap_or(0),
            histogram: encode(&self.latency),
        })
    }

    /// What a reader must know beside the point.
    pub fn remarks(&self, point: &Point) -> Vec<String> {
        let trajectories = point.trajectories;
        let runs = self.latency.len();
        let statuses: Vec<_> =
            self.statuses.iter().map(|(status, runs)| format!("{} {status}", count(*runs))).collect();
        let with = super::super::figures::trajectories(trajectories);
        let mut remarks = vec![format!(
            "With {with}, {} runs ended ({} runs/s): {}.",
            count(runs),
            figure(runs as f64 / point.seconds),
            statuses.join(", ")
        )];
        if let Some(message) = &self.refusal {
            remarks.push(format!(
                "With {with}, {} requests were refused and sent again after the time that the daemon asked for, which \
                 is part of the latencies; the last with: {message}",
                count(self.refusals)
            ));
        }
        if let Some(rate) = point.rate.filter(|rate| !rate.is_held) {
            let unsent = if self.unsent > 0 {
                format!(
                    "; {} runs that were due were never handed in, and their latencies are missing",
                    count(self.unsent)
                )
            } else {
                String::new()
            };
            remarks.push(format!(
                "With {with}, the rate was not held: {} runs/s were due and {} reached, over at most {} connections at \
                 the same time{unsent}.",
                figure(rate.due),
                figure(rate.reached),
                count(trajectories.into())
            ));
        }
        remarks
    }
}
