//! From points to a report, with what a reader must know before comparing.

use super::machine::machine;
use super::report::{FORM, Load, Machine, Mode, Point, Report, RuntimeFacts};

/// Share of the cores that others may be busy with before a reader must know.
const BUSY_MIN: f64 = 0.25;
/// Releases that were so late are said, as a share of the latency.
const LATE_MIN: f64 = 0.5;

/// What was so before a load test began.
#[derive(Clone, Debug)]
pub struct Circumstances {
    started: jiff::Timestamp,
    machine: Machine,
}

impl Circumstances {
    /// As they are; `now` is the wall clock's time.
    pub fn now(now: jiff::Timestamp) -> Self {
        Self { started: now, machine: machine() }
    }
}

/// The report of a load test.
pub fn report(
    circumstances: Circumstances,
    mode: Mode,
    load: Load,
    runtime: Option<RuntimeFacts>,
    points: Vec<Point>,
) -> Report {
    let Circumstances { started, machine } = circumstances;
    let remarks = busy(&machine).into_iter().chain(points.iter().flat_map(of_point)).collect();
    Report {
        form: FORM,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: format!("{started:.0}"),
        machine,
        mode,
        load,
        runtime,
        points,
        remarks,
    }
}

fn busy(machine: &Machine) -> Option<String> {
    let Machine { load_average, cores, .. } = machine;
    (*load_average > BUSY_MIN * *cores as f64).then(|| {
        format!(
            "The machine was busy before the test began: a load average of {load_average:.2} on {cores} cores. Figures of \
             an idle machine are better."
        )
    })
}

fn of_point(point: &Point) -> Vec<String> {
    let Some(rate) = &point.rate else { return Vec::new() };
    let trajectories = point.trajectories;
    let mut remarks = Vec::new();
    if !rate.is_held {
        remarks.push(format!(
            "The rate could not be reached with {trajectories} trajectories: {:.0} steps a second were due, {:.0} were \
             decided, and {} waited when the measurement ended. The latencies grow with the length of the test: they \
             are no latencies of a system that keeps up.",
            rate.due, rate.reached, rate.behind
        ));
    }
    let release = point.legs.iter().find(|leg| leg.name == "release");
    if let Some(release) = release.filter(|leg| leg.latency.mean_us > LATE_MIN * point.latency.mean_us) {
        remarks.push(format!(
            "With {trajectories} trajectories the load's own generator released steps {:.0} µs late in the mean, which is \
             most of their latency.",
            release.latency.mean_us
        ));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loadtest::report::{Latency, Rate, Stage};

    fn point(rate: Option<Rate>, late_us: f64) -> Point {
        let latency = |mean_us| Latency { mean_us, ..Latency::default() };
        Point {
            trajectories: 7,
            steps: 1,
            seconds: 1.0,
            steps_per_second: 1.0,
            latency: latency(100.0),
            legs: vec![Stage { name: "release".to_owned(), is_work: false, latency: latency(late_us) }],
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
    fn a_rate_that_was_not_held_is_said() {
        let rate = Rate { due: 5_000.0, reached: 1_234.4, behind: 77, is_held: false };
        let remarks = of_point(&point(Some(rate), 3.0));
        assert_eq!(remarks.len(), 1);
        for part in ["7 trajectories", "5000 steps a second were due", "1234 were decided", "77 waited", "grow with"] {
            assert!(remarks[0].contains(part), "{part}: {remarks:?}");
        }
        assert!(of_point(&point(Some(Rate { is_held: true, ..rate }), 50.0)).is_empty());
        let late = of_point(&point(Some(Rate { is_held: true, ..rate }), 51.0));
        assert!(late.len() == 1 && late[0].contains("51 µs late"), "{late:?}");
        assert!(of_point(&point(None, 0.0)).is_empty());
    }

    #[test]
    fn a_busy_machine_is_said() {
        let machine = |load_average| Machine { cores: 2, load_average, ..Machine::default() };
        assert_eq!(busy(&machine(0.5)), None);
        assert!(busy(&machine(0.51)).is_some_and(|remark| remark.contains("0.51 on 2 cores")));
    }
}
