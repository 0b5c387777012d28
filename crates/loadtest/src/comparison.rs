//! Compares two reports of the same load, metric by metric.

use super::description;
use super::number_format::{change, count, figure, plain, trajectories};
use super::report::{Mode, Point, Report};

/// What is compared at each count of trajectories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Steps per second: throughput, for which more is better.
    StepsPerSecond,
    /// Median latency.
    P50,
    /// 99th percentile of latency.
    P99,
    /// CPU time per step.
    Cpu,
    /// Allocations per step. Exact: the same load allocates the same on any machine.
    Allocations,
    /// Heap bytes per trajectory. Exact as well.
    Memory,
}

/// A metric's change against the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Worse by more than the tolerance.
    Worse,
    /// Within the tolerance, or too small to tell from noise.
    Same,
    /// Better by more than the tolerance.
    Better,
}

impl Change {
    /// The word for the change in tables; empty if nothing changed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Same => "",
            Self::Better => "better",
        }
    }
}

/// A metric of both reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Number of trajectories.
    pub trajectories: u32,
    /// What is compared.
    pub metric: Metric,
    /// The baseline's value, in the metric's unit.
    pub baseline: f64,
    /// This test's value, in the metric's unit.
    pub now: f64,
    /// The change relative to the baseline in per cent, with its sign; infinite if that is 0.
    pub change_percent: f64,
    /// What the change amounts to.
    pub change: Change,
}

/// A comparison of a report with a baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Change in per cent up to which a metric counts as unchanged.
    pub tolerance_percent: f64,
    /// Version of prime-agents that measured the baseline.
    pub baseline_version: String,
    /// Start of the baseline's test, RFC 3339, UTC.
    pub baseline_started: String,
    /// The metrics that both reports have, point by point.
    pub rows: Vec<Row>,
    /// Differences that limit the comparison, in sentences.
    pub warnings: Vec<String>,
    /// Metrics that became worse by more than the tolerance, in sentences.
    pub regressions: Vec<String>,
}

/// Why two reports cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComparisonError {
    /// The reports measure different parts of the system.
    #[error(
        "the baseline has mode `{baseline}`, this test has mode `{now}`, and they measure \
         different things: give a baseline of mode `{now}`"
    )]
    OtherMode {
        /// The mode of the baseline.
        baseline: &'static str,
        /// The mode of this test.
        now: &'static str,
    },
    /// The reports share no count of trajectories.
    #[error(
        "the baseline and this test have no count of trajectories in common ({baseline} in the \
         baseline, {now} in this test): give --trajectories one of the baseline's, or measure the \
         baseline again"
    )]
    NothingInCommon {
        /// The counts of the baseline, separated by commas.
        baseline: String,
        /// The counts of this test, separated by commas.
        now: String,
    },
}

impl Metric {
    /// All metrics, in the order of a comparison's rows.
    pub const ALL: [Self; 6] =
        [Self::StepsPerSecond, Self::P50, Self::P99, Self::Cpu, Self::Allocations, Self::Memory];

    /// The metric's name, with its unit.
    pub fn name(self) -> &'static str {
        match self {
            Self::StepsPerSecond => "steps/s",
            Self::P50 => "p50 µs",
            Self::P99 => "p99 µs",
            Self::Cpu => "CPU µs/step",
            Self::Allocations => "allocations/step",
            Self::Memory => "bytes/trajectory",
        }
    }

    fn of(self, point: &Point) -> Option<f64> {
        match self {
            Self::StepsPerSecond => Some(point.steps_per_second),
            Self::P50 => Some(point.latency.p50_us),
            Self::P99 => Some(point.latency.p99_us),
            Self::Cpu => point.cpu_us_per_step,
            Self::Allocations => point.allocations_per_step,
            Self::Memory => point.bytes_per_trajectory,
        }
    }

    /// Differences up to this are noise, however large in per cent: clock resolution, or what the
    /// process does besides the load.
    fn resolution(self) -> f64 {
        match self {
            Self::StepsPerSecond => 0.0,
            Self::P50 | Self::P99 | Self::Cpu => 0.005,
            Self::Allocations => 0.01,
            Self::Memory => 16.0,
        }
    }

    fn row(self, trajectories: u32, baseline: f64, now: f64, tolerance_percent: f64) -> Row {
        let difference = now - baseline;
        let change_percent = match () {
            () if difference == 0.0 => 0.0,
            () if baseline == 0.0 => f64::INFINITY,
            () => difference / baseline * 100.0,
        };

        // The factor keeps a change of exactly the tolerance within it.
        let is_beyond = difference.abs() > self.resolution()
            && change_percent.abs() > tolerance_percent * (1.0 + 1e-9);
        // More steps per second are better; of every other metric, less is.
        let is_better = (difference > 0.0) == (self == Self::StepsPerSecond);

        let change = match (is_beyond, is_better) {
            (false, _) => Change::Same,
            (true, true) => Change::Better,
            (true, false) => Change::Worse,
        };
        Row { trajectories, metric: self, baseline, now, change_percent, change }
    }
}

impl Row {
    fn sentence(&self, tolerance_percent: f64) -> String {
        let exact = match self.metric {
            Metric::Allocations | Metric::Memory => ", which does not depend on the machine",
            _ => "",
        };
        format!(
            "with {}, {} is {}, was {} ({} %, tolerance {} %){exact}",
            trajectories(self.trajectories),
            self.metric.name(),
            figure(self.now),
            figure(self.baseline),
            change(self.change_percent),
            plain(tolerance_percent),
        )
    }
}

fn counts(points: impl Iterator<Item = u32>) -> String {
    points.map(|trajectories| count(trajectories.into())).collect::<Vec<_>>().join(", ")
}

fn find(report: &Report, trajectories: u32) -> Option<&Point> {
    report.points.iter().find(|point| point.trajectories == trajectories)
}

/// Differences that limit the comparison.
fn warnings(now: &Report, baseline: &Report) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut differ = |what: &str, then: String, now: String| {
        if then != now {
            warnings.push(format!("{what} differs: {then} in the baseline, {now} now"));
        }
    };

    let (was, is) = (&baseline.machine, &now.machine);
    differ("processor", format!("{:?}", was.processor), format!("{:?}", is.processor));
    differ("number of cores", was.cores.to_string(), is.cores.to_string());
    differ(
        "version of prime-agents",
        format!("{:?}", baseline.version),
        format!("{:?}", now.version),
    );

    let facts = |report: &Report| {
        report.runtime.as_ref().map_or(
            ("none".to_owned(), "none".to_owned(), "none".to_owned()),
            |facts| {
                let agents = [&facts.executor, &facts.verifier, &facts.coordinator];
                (format!("{:?}", facts.placement), facts.cells.to_string(), format!("{agents:?}"))
            },
        )
    };

    let (then_facts, now_facts) = (facts(baseline), facts(now));
    differ("placement", then_facts.0, now_facts.0);
    differ("number of cells", then_facts.1, now_facts.1);
    differ("set of agents", then_facts.2, now_facts.2);

    let (was, is) = (&baseline.load, &now.load);
    let rate = |rate: Option<f64>| {
        rate.map_or_else(|| "none (closed loop)".to_owned(), |rate| rate.to_string())
    };
    differ("rate", rate(was.rate), rate(is.rate));
    differ("warm-up (seconds)", was.warmup_seconds.to_string(), is.warmup_seconds.to_string());
    differ("length", format!("{:?}", was.length), format!("{:?}", is.length));
    differ("payload (bytes)", was.payload_bytes.to_string(), is.payload_bytes.to_string());
    differ("delay (µs)", was.delay_us.to_string(), is.delay_us.to_string());
    differ("share of failures", was.failures.to_string(), is.failures.to_string());
    differ("set of faulty agents", format!("{:?}", was.faulty), format!("{:?}", is.faulty));
    let durable = |durable: bool| if durable { "committed" } else { "none" }.to_owned();
    differ("journal", durable(was.durable), durable(is.durable));

    for (name, report) in [("the baseline's machine", baseline), ("this machine", now)] {
        let machine = &report.machine;
        if machine.load_average > machine.cores as f64 {
            warnings.push(format!(
                "{name} was busy before the test: load average {} on {} cores; its timings are \
                 unreliable",
                figure(machine.load_average),
                machine.cores
            ));
        }
    }

    let missing = |of: &Report, from: &Report| {
        let only = of
            .points
            .iter()
            .map(|point| point.trajectories)
            .filter(|count| find(from, *count).is_none());
        counts(only)
    };
    for (only, what) in [
        (missing(baseline, now), "only the baseline has"),
        (missing(now, baseline), "the baseline lacks"),
    ] {
        if !only.is_empty() {
            warnings.push(format!("not compared, counts of trajectories that {what}: {only}"));
        }
    }

    for point in &now.points {
        let Some(was) = find(baseline, point.trajectories) else { continue };
        let with = trajectories(point.trajectories);
        let is_held = |point: &Point| point.rate.is_none_or(|rate| rate.is_held);
        if !is_held(point) || !is_held(was) {
            warnings.push(format!(
                "with {with}, the rate was not held: the latencies are those of a growing queue"
            ));
        }
        for metric in Metric::ALL {
            if metric.of(point).is_some() != metric.of(was).is_some() {
                warnings.push(format!("with {with}, only one report has {}", metric.name()));
            }
        }
    }

    warnings
}

/// Checks that a baseline can be compared with a load that is yet to run.
///
/// # Errors
/// If the modes differ, or no count of trajectories is in common.
pub fn check(baseline: &Report, mode: Mode, trajectories: &[u32]) -> Result<(), ComparisonError> {
    if baseline.mode != mode {
        let (baseline, now) = (description::mode(baseline.mode), description::mode(mode));
        return Err(ComparisonError::OtherMode { baseline, now });
    }
    if !trajectories.iter().any(|count| find(baseline, *count).is_some()) {
        let baseline = counts(baseline.points.iter().map(|point| point.trajectories));
        return Err(ComparisonError::NothingInCommon {
            baseline,
            now: counts(trajectories.iter().copied()),
        });
    }
    Ok(())
}

/// Compares two reports, point by point. `tolerance_percent` is above 0.
///
/// # Errors
/// If the modes differ, or no count of trajectories is in common.
pub fn compare(
    now: &Report,
    baseline: &Report,
    tolerance_percent: f64,
) -> Result<Comparison, ComparisonError> {
    let trajectories: Vec<u32> = now.points.iter().map(|point| point.trajectories).collect();
    check(baseline, now.mode, &trajectories)?;

    let mut rows = Vec::new();
    for point in &now.points {
        let Some(was) = find(baseline, point.trajectories) else { continue };
        for metric in Metric::ALL {
            if let (Some(was), Some(is)) = (metric.of(was), metric.of(point)) {
                rows.push(metric.row(point.trajectories, was, is, tolerance_percent));
            }
        }
    }

    let worse = rows.iter().filter(|row| row.change == Change::Worse);
    Ok(Comparison {
        tolerance_percent,
        baseline_version: baseline.version.clone(),
        baseline_started: baseline.started.clone(),
        regressions: worse.map(|row| row.sentence(tolerance_percent)).collect(),
        warnings: warnings(now, baseline),
        rows,
    })
}

#[cfg(test)]
mod tests {
    use super::super::report::{Length, Rate};
    use super::super::testing::{open_loop, report};
    use super::*;

    fn change_of(metric: Metric, baseline: f64, now: f64, tolerance: f64) -> Change {
        metric.row(1, baseline, now, tolerance).change
    }

    #[test]
    fn changes_beyond_the_tolerance_count() {
        use Change::{Better, Same, Worse};
        let rows = [
            // Fewer steps per second are worse; of everything else, more is.
            (Metric::StepsPerSecond, 1_000.0, 900.0, Same),
            (Metric::StepsPerSecond, 1_000.0, 899.0, Worse),
            (Metric::StepsPerSecond, 1_000.0, 1_101.0, Better),
            (Metric::P50, 10.0, 11.0, Same),
            (Metric::P50, 10.0, 11.01, Worse),
            (Metric::P99, 10.0, 8.9, Better),
            (Metric::Cpu, 3.0, 3.3, Same),
            (Metric::Cpu, 3.0, 3.31, Worse),
            (Metric::Allocations, 5.0, 5.5, Same),
            (Metric::Allocations, 5.0, 6.0, Worse),
            (Metric::Memory, 4_096.0, 4_506.0, Worse),
            // Below the resolution there is no change, however large in per cent.
            (Metric::Allocations, 0.0, 0.009, Same),
            (Metric::Allocations, 0.0, 0.02, Worse),
            (Metric::P50, 0.001, 0.005, Same),
            (Metric::Memory, 16.0, 32.0, Same),
            (Metric::StepsPerSecond, 0.0, 1.0, Better),
            (Metric::P50, 0.0, 0.0, Same),
        ];
        for (metric, baseline, now, expected) in rows {
            assert_eq!(
                change_of(metric, baseline, now, 10.0),
                expected,
                "{metric:?} from {baseline} to {now}"
            );
        }

        assert_eq!(change_of(Metric::P50, 10.0, 14.0, 50.0), Same);
        assert_eq!(
            change_of(Metric::StepsPerSecond, 1_000.0, 0.0, 200.0),
            Same,
            "it cannot lose more than 100 %"
        );

        assert_eq!(Metric::Allocations.row(1, 0.0, 2.0, 10.0).change_percent, f64::INFINITY);
        assert_eq!(Metric::P99.row(1, 8.0, 6.0, 10.0).change_percent, -25.0);
    }

    #[test]
    fn differences_are_warnings() {
        type Edit = fn(&mut Report);
        let rows: [(Edit, &str); 15] = [
            (
                |other| other.machine.processor = "Other <1>".to_owned(),
                "processor differs: \"Other <1>\"",
            ),
            (
                |other| other.machine.cores = 64,
                "number of cores differs: 64 in the baseline, 2 now",
            ),
            (
                |other| other.version = "0.0.9".to_owned(),
                "version of prime-agents differs: \"0.0.9\" in the baseline, \"0.1.0\" now",
            ),
            (
                |other| other.runtime.as_mut().unwrap().placement = "own".to_owned(),
                "placement differs: \"own\"",
            ),
            (
                |other| other.runtime.as_mut().unwrap().cells = 1,
                "number of cells differs: 1 in the baseline, 2 now",
            ),
            (|other| other.runtime.as_mut().unwrap().verifier = "none".to_owned(), "set of agents"),
            (
                |other| other.load.rate = Some(5.0),
                "rate differs: 5 in the baseline, none (closed loop) now",
            ),
            (|other| other.load.warmup_seconds = 0.0, "warm-up"),
            (|other| other.load.length = Length::Steps(7), "length"),
            (|other| other.load.payload_bytes = 1, "payload"),
            (|other| other.load.delay_us = 1, "delay"),
            (|other| other.load.failures = 0.5, "share of failures"),
            (|other| other.load.durable = true, "journal"),
            (|other| other.machine.load_average = 2.01, "the baseline's machine was busy"),
            (
                |other| {
                    other.points[0].rate =
                        Some(Rate { due: 1.0, reached: 0.5, behind: 9, is_held: false });
                },
                "with 1 trajectory, the rate was not held",
            ),
        ];
        for (edit, part) in rows {
            let (now, mut baseline) = (report(), report());
            edit(&mut baseline);
            let comparison = compare(&now, &baseline, 10.0).unwrap();
            assert_eq!(comparison.warnings.len(), 1, "{:?}", comparison.warnings);
            assert!(
                comparison.warnings[0].contains(part),
                "{part:?} is missing in {:?}",
                comparison.warnings
            );
            assert_eq!((comparison.regressions.len(), comparison.rows.len()), (0, 30));
        }

        let mut busy = report();
        busy.machine.load_average = 2.5;
        let warnings = compare(&busy, &report(), 10.0).unwrap().warnings;
        assert!(
            warnings.len() == 1 && warnings[0].contains("this machine was busy"),
            "{warnings:?}"
        );
    }

    #[test]
    fn points_of_only_one_report_are_listed_and_skipped() {
        let (mut now, mut baseline) = (report(), report());
        now.points.remove(0);
        baseline.points.truncate(3);

        let comparison = compare(&now, &baseline, 10.0).unwrap();
        let compared: Vec<_> = comparison.rows.iter().map(|row| row.trajectories).collect();
        assert_eq!(compared, [[10; 6], [100; 6]].concat());
        assert_eq!(
            comparison.warnings,
            [
                "not compared, counts of trajectories that only the baseline has: 1",
                "not compared, counts of trajectories that the baseline lacks: 1,000, 10,000",
            ]
        );
    }

    #[test]
    fn other_modes_and_disjoint_points_are_refused() {
        let http = Report { mode: Mode::Http, ..report() };
        let error = compare(&report(), &http, 10.0).unwrap_err().to_string();
        assert!(
            error.contains("`http`") && error.contains("give a baseline of mode `ring`"),
            "{error}"
        );

        let mut other = open_loop();
        other.points[0].trajectories = 7;
        let error = compare(&report(), &other, 10.0).unwrap_err().to_string();
        assert!(
            error.contains("7 in the baseline, 1, 10, 100, 1,000, 10,000 in this test"),
            "{error}"
        );

        assert_eq!(check(&report(), Mode::Ring, &[10_000]), Ok(()));
        assert!(check(&report(), Mode::Ring, &[]).is_err());
    }
}
