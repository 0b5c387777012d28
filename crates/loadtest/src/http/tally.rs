//! Counts the runs of a load, and makes them a point of a report.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::Instant;

use super::super::histogram::{empty, encode, latency};
use super::super::number_format::{count, figure};
use super::super::report::{Point, Rate, Stage};
use super::client::RunRecord;

/// A rate is held if at least this share of it was reached.
const REACHED_MIN: f64 = 0.98;

/// Timestamps of a run.
pub struct RunTimes {
    pub due: Instant,
    /// The time at which the accepted request was sent.
    pub sent: Instant,
    pub accepted: Instant,
    pub ended: Instant,
}

pub struct Tally {
    /// The end of the warm-up.
    from: Instant,
    latency: Histogram<u64>,
    late: Histogram<u64>,
    accept: Histogram<u64>,
    run: Histogram<u64>,
    steps: u64,
    last: Option<Instant>,
    /// Runs that ended during the measurement.
    reached: u64,
    /// Runs counted in `reached` that were due after the warm-up.
    done: u64,
    statuses: BTreeMap<String, u64>,
    refusals: u64,
    refusal: Option<String>,
    /// Runs that were due but never submitted.
    unsent: u64,
}

/// The requested open loop.
#[derive(Clone, Copy)]
pub struct Due {
    pub rate: f64,
    /// Runs due during the measurement.
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

    /// Counts a finished run. Returns its steps, or 0 if it was due during the warm-up. `in_time`:
    /// before the end of the measurement.
    pub fn ended(&mut self, times: &RunTimes, record: &RunRecord, in_time: bool) -> u64 {
        // The rate counts every run that ends during the measurement, whenever it was due.
        self.reached += u64::from(in_time && times.ended >= self.from);
        if times.due < self.from {
            return 0;
        }
        self.done += u64::from(in_time);

        let stages = [
            (&mut self.latency, times.due, times.ended),
            (&mut self.late, times.due, times.sent),
            (&mut self.accept, times.sent, times.accepted),
            (&mut self.run, times.accepted, times.ended),
        ];
        for (histogram, from, to) in stages {
            histogram.saturating_record(nanos(to.duration_since(from)));
        }

        self.steps += record.steps;
        self.last = self.last.max(Some(times.ended));
        *self.statuses.entry(record.status.clone()).or_default() += 1;
        record.steps
    }

    /// Counts a request that was refused and will be sent again.
    pub fn refused(&mut self, message: String) {
        self.refusals += 1;
        self.refusal = Some(message);
    }

    /// Counts runs that were due after the warm-up but not submitted before the end.
    pub fn unsent(&mut self, runs: u64) {
        self.unsent += runs;
    }

    /// Steps of runs due after the warm-up.
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
            is_held: self.unsent == 0 && reached >= due.rate * REACHED_MIN,
        }
    }

    /// `None` if no run ended.
    pub fn point(&self, trajectories: u32, due: Option<Due>) -> Option<Point> {
        let seconds = self.last?.duration_since(self.from).as_secs_f64();
        let stage = |name: &str, histogram| Stage {
            name: name.to_owned(),
            is_work: false,
            latency: latency(histogram),
        };

        let mut stages = vec![stage("accept", &self.accept), stage("run", &self.run)];
        // In a closed loop, runs are late only after a refusal.
        if due.is_some() || self.refusals > 0 {
            stages.insert(0, stage("late", &self.late));
        }

        Some(Point {
            trajectories,
            steps: self.steps,
            seconds,
            steps_per_second: self.steps as f64 / seconds,
            latency: latency(&self.latency),
            stages,
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

    /// What a reader must know about the point.
    pub fn remarks(&self, point: &Point) -> Vec<String> {
        let trajectories = point.trajectories;
        let runs = self.latency.len();
        let statuses: Vec<_> = self
            .statuses
            .iter()
            .map(|(status, runs)| format!("{} {status}", count(*runs)))
            .collect();
        let with = super::super::number_format::trajectories(trajectories);

        let mut remarks = vec![format!(
            "With {with}, {} runs ended ({} runs/s): {}.",
            count(runs),
            figure(runs as f64 / point.seconds),
            statuses.join(", ")
        )];

        if let Some(message) = &self.refusal {
            remarks.push(format!(
                "With {with}, {} requests were refused and sent again after the pause the daemon \
                 asked for, which is part of the latencies; the last refusal: {message}",
                count(self.refusals)
            ));
        }

        if let Some(rate) = point.rate.filter(|rate| !rate.is_held) {
            let unsent = if self.unsent > 0 {
                format!(
                    "; {} due runs were never submitted, and their latencies are missing",
                    count(self.unsent)
                )
            } else {
                String::new()
            };
            remarks.push(format!(
                "With {with}, the rate was not held: {} runs/s were due and {} reached, over at \
                 most {} concurrent connections{unsent}.",
                figure(rate.due),
                figure(rate.reached),
                count(trajectories.into())
            ));
        }

        remarks
    }
}
