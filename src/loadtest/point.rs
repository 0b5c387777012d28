//! From what was recorded to a point of a report.

use hdrhistogram::Histogram;

use super::error::LoadError;
use super::histogram::{encode, latency};
use super::record::Record;
use super::report::{Point, Rate, Stage};
use super::spent::Spent;
use crate::runtime;

/// What was measured with one count of trajectories.
pub struct Measured {
    pub trajectories: u32,
    pub record: Record,
    pub seconds: f64,
    pub spent: Spent,
    /// Bytes that the heap had more with all trajectories waiting than without them.
    pub idle_bytes: Option<i64>,
    /// Of an open loop: whether the rate was held, and by how much the releases were late.
    pub pace: Option<(Rate, Histogram<u64>)>,
    /// Of a durable load: steps that became durable meanwhile, and from a step's decision until a reader saw it.
    pub durable: Option<(u64, Histogram<u64>)>,
}

fn leg(name: &str, is_work: bool, histogram: &Histogram<u64>) -> Stage {
    Stage { name: name.to_owned(), is_work, latency: latency(histogram) }
}

impl Measured {
    /// In the order of their way: the release of an open loop, what the turn went, what is left, the commit.
    fn legs(&self) -> Vec<Stage> {
        let rest = if self.pace.is_some() { "wait and supervise" } else { "supervise" };
        let names = runtime::Stage::ALL.map(|leg| (leg.name(), leg.is_work()));
        let names = names.into_iter().chain([(rest, false)]);
        let release = self.pace.iter().map(|(_, late)| leg("release", false, late));
        let way = names.zip(&self.record.legs).map(|((name, is_work), times)| leg(name, is_work, times));
        let commit = self.durable.iter().map(|(_, commit)| leg("commit", false, commit));
        release.chain(way).chain(commit).collect()
    }

    /// # Errors
    /// When there was nothing to measure.
    pub fn point(self) -> Result<Point, LoadError> {
        let steps = self.durable.as_ref().map_or(self.record.latency.len(), |(steps, _)| *steps);
        if steps == 0 || self.record.latency.is_empty() {
            return Err(LoadError::NoSteps);
        }
        let each = |sum: f64| sum / steps as f64;
        let heap = self.spent.heap;
        // Where others gave back more than the trajectories took, nothing is known of these.
        let idle_bytes = self.idle_bytes.filter(|bytes| *bytes > 0);
        Ok(Point {
            trajectories: self.trajectories,
            steps,
            seconds: self.seconds,
            steps_per_second: steps as f64 / self.seconds,
            latency: latency(&self.record.latency),
            legs: self.legs(),
            coordination_share: None,
            cpu_us_per_step: Some(each(self.spent.cpu.as_secs_f64() * 1e6)),
            allocations_per_step: heap.map(|heap| each(heap.allocations as f64)),
            allocated_bytes_per_step: heap.map(|heap| each(heap.allocated as f64)),
            bytes_per_trajectory: idle_bytes.map(|bytes| bytes as f64 / f64::from(self.trajectories)),
            rate: self.pace.as_ref().map(|(rate, _)| *rate),
            failures: self.record.failures,
            histogram: encode(&self.record.latency),
        })
    }
}
