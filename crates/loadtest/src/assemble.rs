//! Builds the report, with the remarks a reader needs before comparing it.

use super::host_info::host_info;
use super::report::{FORMAT, HostInfo, Load, Mode, Point, Report, RuntimeFacts};

/// Load average per core above which the report says that the machine was busy.
const BUSY_MIN: f64 = 0.25;
/// Mean lateness of the generator, as a share of the mean latency, above which the report says so.
const LATE_MIN: f64 = 0.5;

/// The time and the machine's state before the test.
#[derive(Clone, Debug)]
pub struct TestStart {
    started: jiff::Timestamp,
    host: HostInfo,
}

impl TestStart {
    /// Reads the machine's state; `now` is the wall clock.
    pub fn new(now: jiff::Timestamp) -> Self {
        Self { started: now, host: host_info() }
    }
}

/// Builds the report of a test. Its remarks say whether the machine was busy before the test, and
/// which rates were not held.
pub fn report(
    start: TestStart,
    mode: Mode,
    load: Load,
    runtime: Option<RuntimeFacts>,
    points: Vec<Point>,
) -> Report {
    let TestStart { started, host } = start;
    let remarks = busy(&host).into_iter().chain(points.iter().flat_map(point_remarks)).collect();
    Report {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: format!("{started:.0}"),
        machine: host,
        mode,
        load,
        runtime,
        points,
        remarks,
    }
}

fn busy(host: &HostInfo) -> Option<String> {
    let HostInfo { load_average, cores, .. } = host;
    (*load_average > BUSY_MIN * *cores as f64).then(|| {
        format!(
            "The machine was busy before the test: load average {load_average:.2} on {cores} \
             cores. Measure on an idle machine."
        )
    })
}

fn point_remarks(point: &Point) -> Vec<String> {
    let Some(rate) = &point.rate else { return Vec::new() };
    let trajectories = point.trajectories;
    let mut remarks = Vec::new();

    if !rate.is_held {
        remarks.push(format!(
            "The rate could not be reached with {trajectories} trajectories: {:.0} steps per \
             second were due, {:.0} were decided, and {} were waiting at the end. The latencies \
             are those of a growing queue and depend on the length of the test.",
            rate.due, rate.reached, rate.behind
        ));
    }

    let release = point.stages.iter().find(|stage| stage.name == "release");
    if let Some(release) =
        release.filter(|stage| stage.latency.mean_us > LATE_MIN * point.latency.mean_us)
    {
        remarks.push(format!(
            "With {trajectories} trajectories the load generator released steps {:.0} µs late on \
             average, which is most of their latency.",
            release.latency.mean_us
        ));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::super::report::{Latency, Rate, Stage};
    use super::*;

    fn point(rate: Option<Rate>, late_us: f64) -> Point {
        let latency = |mean_us| Latency { mean_us, ..Latency::default() };
        Point {
            trajectories: 7,
            steps: 1,
            seconds: 1.0,
            steps_per_second: 1.0,
            latency: latency(100.0),
            stages: vec![Stage {
                name: "release".to_owned(),
                is_work: false,
                latency: latency(late_us),
            }],
            coordination_share: None,
            cpu_us_per_step: None,
            allocations_per_step: None,
            allocated_bytes_per_step: None,
            bytes_per_trajectory: None,
            rate,
            failures: 0,
            histogram: String::new(),
        }
    }

    #[test]
    fn a_rate_that_was_not_held_is_a_remark() {
        let rate = Rate { due: 5_000.0, reached: 1_234.4, behind: 77, is_held: false };
        let remarks = point_remarks(&point(Some(rate), 3.0));
        assert_eq!(remarks.len(), 1);

        for part in [
            "7 trajectories",
            "5000 steps per second were due",
            "1234 were decided",
            "77 were waiting",
            "growing",
        ] {
            assert!(remarks[0].contains(part), "{part}: {remarks:?}");
        }

        assert!(point_remarks(&point(Some(Rate { is_held: true, ..rate }), 50.0)).is_empty());
        let late = point_remarks(&point(Some(Rate { is_held: true, ..rate }), 51.0));
        assert!(late.len() == 1 && late[0].contains("51 µs late"), "{late:?}");
        assert!(point_remarks(&point(None, 0.0)).is_empty());
    }

    #[test]
    fn a_busy_machine_is_a_remark() {
        let host = |load_average| HostInfo { cores: 2, load_average, ..HostInfo::default() };
        assert_eq!(busy(&host(0.5)), None);
        assert!(busy(&host(0.51)).is_some_and(|remark| remark.contains("0.51 on 2 cores")));
    }
}
