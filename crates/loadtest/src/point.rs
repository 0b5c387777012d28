//! Turns records into a point of a report.

use hdrhistogram::Histogram;

use super::histogram::{encode, latency};
use super::measurement::MeasurementError;
use super::record::{Record, StageKind, Tokens};
use super::report::{Point, Rate, Stage};
use super::resource_usage::ResourceUsage;

/// The measurement at one count of trajectories.
pub struct Measured {
    pub(crate) trajectories: u32,
    pub(crate) stages: Vec<StageKind>,
    pub(crate) record: Record,
    pub(crate) seconds: f64,
    pub(crate) usage: ResourceUsage,
    /// Heap growth with all trajectories waiting.
    pub(crate) idle_bytes: Option<i64>,
    /// Open loop: the rate that was reached, and the delays of the generator's releases.
    pub(crate) rate: Option<(Rate, Histogram<u64>)>,
    /// Steps that became durable during the measurement, if that is what counts.
    pub(crate) durable: Option<u64>,
}

fn stage(name: &str, is_work: bool, histogram: &Histogram<u64>) -> Stage {
    Stage { name: name.to_owned(), is_work, latency: latency(histogram) }
}

impl Measured {
    /// Share of the steps' time outside the agents. `None` if stages were not timed.
    pub fn coordination_share(&self) -> Option<f64> {
        self.record.coordination_share()
    }

    /// Tokens of all measured steps.
    pub fn tokens(&self) -> Tokens {
        self.record.tokens
    }

    /// `commit` is the time from decision to commit of durable steps.
    ///
    /// # Errors
    /// If no step was measured.
    pub fn point(self, commit: Option<&Histogram<u64>>) -> Result<Point, MeasurementError> {
        let steps = self.durable.unwrap_or(self.record.latency.len());
        if steps == 0 || self.record.latency.is_empty() {
            return Err(MeasurementError::NoSteps);
        }

        let per_step = |sum: f64| sum / steps as f64;
        let release = self.rate.iter().map(|(_, late)| stage("release", false, late));
        let timed = self.stages.iter().zip(&self.record.stages);
        let timed = timed.map(|(kind, histogram)| stage(kind.name, kind.is_work, histogram));
        let commit = commit.into_iter().map(|commit| stage("commit", false, commit));
        let stages = release.chain(timed).chain(commit).collect();

        let heap = self.usage.heap;
        // Unrelated frees exceeded allocations: omit.
        let idle_bytes = self.idle_bytes.filter(|bytes| *bytes > 0);

        Ok(Point {
            trajectories: self.trajectories,
            steps,
            seconds: self.seconds,
            steps_per_second: steps as f64 / self.seconds,
            latency: latency(&self.record.latency),
            stages,
            coordination_share: None,
            cpu_us_per_step: Some(per_step(self.usage.cpu.as_secs_f64() * 1e6)),
            allocations_per_step: heap.map(|heap| per_step(heap.allocations as f64)),
            allocated_bytes_per_step: heap.map(|heap| per_step(heap.allocated as f64)),
            bytes_per_trajectory: idle_bytes
                .map(|bytes| bytes as f64 / f64::from(self.trajectories)),
            rate: self.rate.as_ref().map(|(rate, _)| *rate),
            failures: self.record.failures,
            histogram: encode(&self.record.latency),
        })
    }
}
