//! Two reports of the same load, figure by figure: what became worse.

use super::figures::{count, figure, plain, trajectories};
use super::report::{Mode, Point, Report};
use super::{sentences, tables};

/// What is compared of each count of trajectories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    StepsPerSecond,
    P50,
    P99,
    Cpu,
    /// Exact: the same load allocates the same, on any machine.
    Allocations,
    /// As exact.
    Memory,
}

/// What a figure says against the baseline's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// By more than the tolerance.
    Worse,
    Same,
    /// By more than the tolerance.
    Better,
}

/// A figure of both.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub trajectories: u32,
    pub figure: Figure,
    pub baseline: f64,
    pub now: f64,
    /// Of the baseline's, with its sign; infinite where that is 0.
    pub change_percent: f64,
    pub verdict: Verdict,
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    pub tolerance_percent: f64,
    /// Who measured the baseline, and when.
    pub baseline_version: String,
    pub baseline_started: String,
    pub rows: Vec<Row>,
    /// What makes the two hard to compare, in sentences.
    pub warnings: Vec<String>,
    /// What became worse by more than the tolerance, in sentences.
    pub regressions: Vec<String>,
}

/// Why two reports cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComparisonError {
    #[error(
        "the baseline is of mode `{baseline}`, and this is mode `{now}`: the two measure different things; give a \
         baseline of mode `{now}`"
    )]
    OtherMode { baseline: &'static str, now: &'static str },
    #[error(
        "the baseline has no count of trajectories in common with this load (it has {baseline}, this has {now}): give \
         --trajectories one of the baseline's, or measure the baseline again"
    )]
    NothingInCommon { baseline: String, now: String },
}

impl Figure {
    pub const ALL: [Self; 6] = [Self::StepsPerSecond, Self::P50, Self::P99, Self::Cpu, Self::Allocations, Self::Memory];

    /// With its unit.
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

    /// A smaller difference says nothing, whatever share of the figure it is: the clock's grain, or what the process
    /// does beside the load.
    fn grain(self) -> f64 {
        match self {
            Self::StepsPerSecond => 0.0,
            Self::P50 | Self::P99 | Self::Cpu => 0.005,
            Self::Allocations => 0.01,
            Self::Memory => 16.0,
        }
    }

    fn row(self, trajectories: u32, baseline: f64, now: f64, tolerance_percent: f64) -> Row {
        let change = now - baseline;
        let change_percent = match () {
            () if change == 0.0 => 0.0,
            () if baseline == 0.0 => f64::INFINITY,
            () => change / baseline * 100.0,
        };
        // So that what is worse by exactly the tolerance is within it.
        let is_beyond = change.abs() > self.grain() && change_percent.abs() > tolerance_percent * (1.0 + 1e-9);
        let is_better = (change > 0.0) == (self == Self::StepsPerSecond);
        let verdict = match (is_beyond, is_better) {
            (false, _) => Verdict::Same,
            (true, true) => Verdict::Better,
            (true, false) => Verdict::Worse,
        };
        Row { trajectories, figure: self, baseline, now, change_percent, verdict }
    }
}

impl Row {
    fn sentence(&self, tolerance_percent: f64) -> String {
        let exact = match self.figure {
            Figure::Allocations | Figure::Memory => ", which is exact: it is no noise of the machine",
            _ => "",
        };
        format!(
            "with {}, {} is {}, was {} ({} %, tolerance {} %){exact}",
            trajectories(self.trajectories),
            self.figure.name(),
            figure(self.now),
            figure(self.baseline),
            tables::change(self.change_percent),
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

/// What makes the two hard to compare.
fn warnings(now: &Report, baseline: &Report) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut differ = |what: &str, then: String, now: String| {
        if then != now {
            warnings.push(format!("the baseline has another {what}: {then}, and now {now}"));
        }
    };
    let (was, is) = (&baseline.machine, &now.machine);
    differ("machine", format!("{:?}", was.processor), format!("{:?}", is.processor));
    differ("number of cores", was.cores.to_string(), is.cores.to_string());
    differ("version of prime-agents", format!("{:?}", baseline.version), format!("{:?}", now.version));
    let facts = |report: &Report| {
        report.runtime.as_ref().map_or(("none".to_owned(), "none".to_owned(), "none".to_owned()), |facts| {
            let agents = [&facts.executor, &facts.verifier, &facts.coordinator];
            (format!("{:?}", facts.placement), facts.cells.to_string(), format!("{agents:?}"))
        })
    };
    let (then_facts, now_facts) = (facts(baseline), facts(now));
    differ("placement", then_facts.0, now_facts.0);
    differ("number of cells", then_facts.1, now_facts.1);
    differ("set of agents", then_facts.2, now_facts.2);
    let (was, is) = (&baseline.load, &now.load);
    let rate = |rate: Option<f64>| rate.map_or_else(|| "none, a closed loop".to_owned(), |rate| rate.to_string());
    differ("rate", rate(was.rate), rate(is.rate));
    differ("warm-up in seconds", was.warmup_seconds.to_string(), is.warmup_seconds.to_string());
    differ("length", format!("{:?}", was.length), format!("{:?}", is.length));
    differ("payload in bytes", was.payload_bytes.to_string(), is.payload_bytes.to_string());
    differ("delay in microseconds", was.delay_us.to_string(), is.delay_us.to_string());
    differ("share of failures", was.failures.to_string(), is.failures.to_string());
    differ("set of faulty agents", format!("{:?}", was.faulty), format!("{:?}", is.faulty));
    let durable = |durable: bool| if durable { "with one" } else { "without one" }.to_owned();
    differ("durability (a journal)", durable(was.durable), durable(is.durable));

    for (name, report) in [("the baseline's machine", baseline), ("this machine", now)] {
        let machine = &report.machine;
        if machine.load_average > machine.cores as f64 {
            warnings.push(format!(
                "{name} was busy before the test: load average {} on {} cores; figures of time are worth little",
                figure(machine.load_average),
                machine.cores
            ));
        }
    }
    let missing = |of: &Report, from: &Report| {
        let only = of.points.iter().map(|point| point.trajectories).filter(|count| find(from, *count).is_none());
        counts(only)
    };
    for (only, what) in [
        (missing(baseline, now), "only the baseline has, and are not compared"),
        (missing(now, baseline), "the baseline lacks, and are not compared"),
    ] {
        if !only.is_empty() {
            warnings.push(format!("these counts of trajectories {what}: {only}"));
        }
    }
    for point in &now.points {
        let Some(was) = find(baseline, point.trajectories) else { continue };
        let with = trajectories(point.trajectories);
        let is_held = |point: &Point| point.rate.is_none_or(|rate| rate.is_held);
        if !is_held(point) || !is_held(was) {
            warnings.push(format!("with {with} the rate was not held: its latencies are of a queue that grows"));
        }
        for figure in Figure::ALL {
            if figure.of(point).is_some() != figure.of(was).is_some() {
                warnings.push(format!("with {with}, {} was measured only once", figure.name()));
            }
        }
    }
    warnings
}

/// Whether a baseline can be compared with a load that is still to run.
///
/// # Errors
/// As [`compare`].
pub fn check(baseline: &Report, mode: Mode, trajectories: &[u32]) -> Result<(), ComparisonError> {
    if baseline.mode != mode {
        let (baseline, now) = (sentences::mode(baseline.mode), sentences::mode(mode));
        return Err(ComparisonError::OtherMode { baseline, now });
    }
    if !trajectories.iter().any(|count| find(baseline, *count).is_some()) {
        let baseline = counts(baseline.points.iter().map(|point| point.trajectories));
        return Err(ComparisonError::NothingInCommon { baseline, now: counts(trajectories.iter().copied()) });
    }
    Ok(())
}

/// Compares two reports, point by point. `tolerance_percent` is above 0.
///
/// # Errors
/// When they have another mode, or no count of trajectories in common.
pub fn compare(now: &Report, baseline: &Report, tolerance_percent: f64) -> Result<Comparison, ComparisonError> {
    let trajectories: Vec<u32> = now.points.iter().map(|point| point.trajectories).collect();
    check(baseline, now.mode, &trajectories)?;
    let mut rows = Vec::new();
    for point in &now.points {
        let Some(was) = find(baseline, point.trajectories) else { continue };
        for figure in Figure::ALL {
            if let (Some(was), Some(is)) = (figure.of(was), figure.of(point)) {
                rows.push(figure.row(point.trajectories, was, is, tolerance_percent));
            }
        }
    }
    let worse = rows.iter().filter(|row| row.verdict == Verdict::Worse);
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

    fn verdict(figure: Figure, baseline: f64, now: f64, tolerance: f64) -> Verdict {
        figure.row(1, baseline, now, tolerance).verdict
    }

    #[test]
    fn the_tolerance_is_the_limit() {
        use Verdict::{Better, Same, Worse};
        let rows = [
            // Fewer steps are worse, more of all else.
            (Figure::StepsPerSecond, 1_000.0, 900.0, Same),
            (Figure::StepsPerSecond, 1_000.0, 899.0, Worse),
            (Figure::StepsPerSecond, 1_000.0, 1_101.0, Better),
            (Figure::P50, 10.0, 11.0, Same),
            (Figure::P50, 10.0, 11.01, Worse),
            (Figure::P99, 10.0, 8.9, Better),
            (Figure::Cpu, 3.0, 3.3, Same),
            (Figure::Cpu, 3.0, 3.31, Worse),
            (Figure::Allocations, 5.0, 5.5, Same),
            (Figure::Allocations, 5.0, 6.0, Worse),
            (Figure::Memory, 4_096.0, 4_506.0, Worse),
            // Below the grain there is no difference, whatever share it is.
            (Figure::Allocations, 0.0, 0.009, Same),
            (Figure::Allocations, 0.0, 0.02, Worse),
            (Figure::P50, 0.001, 0.005, Same),
            (Figure::Memory, 16.0, 32.0, Same),
            (Figure::StepsPerSecond, 0.0, 1.0, Better),
            (Figure::P50, 0.0, 0.0, Same),
        ];
        for (figure, baseline, now, expected) in rows {
            assert_eq!(verdict(figure, baseline, now, 10.0), expected, "{figure:?} from {baseline} to {now}");
        }
        assert_eq!(verdict(Figure::P50, 10.0, 14.0, 50.0), Same);
        assert_eq!(verdict(Figure::StepsPerSecond, 1_000.0, 0.0, 200.0), Same, "it cannot lose so much");
        assert_eq!(Figure::Allocations.row(1, 0.0, 2.0, 10.0).change_percent, f64::INFINITY);
        assert_eq!(Figure::P99.row(1, 8.0, 6.0, 10.0).change_percent, -25.0);
    }

    #[test]
    fn what_differs_is_a_warning_and_no_refusal() {
        type Change = fn(&mut Report);
        let rows: [(Change, &str); 15] = [
            (|other| other.machine.processor = "Other <1>".to_owned(), "another machine: \"Other <1>\""),
            (|other| other.machine.cores = 64, "number of cores: 64, and now 2"),
            (|other| other.version = "0.0.9".to_owned(), "version of prime-agents: \"0.0.9\", and now \"0.1.0\""),
            (|other| other.runtime.as_mut().unwrap().placement = "own".to_owned(), "placement: \"own\""),
            (|other| other.runtime.as_mut().unwrap().cells = 1, "number of cells: 1, and now 2"),
            (|other| other.runtime.as_mut().unwrap().verifier = "none".to_owned(), "set of agents"),
            (|other| other.load.rate = Some(5.0), "rate: 5, and now none, a closed loop"),
            (|other| other.load.warmup_seconds = 0.0, "warm-up"),
            (|other| other.load.length = Length::Steps(7), "length"),
            (|other| other.load.payload_bytes = 1, "payload"),
            (|other| other.load.delay_us = 1, "delay"),
            (|other| other.load.failures = 0.5, "share of failures"),
            (|other| other.load.durable = true, "journal"),
            (|other| other.machine.load_average = 2.01, "the baseline's machine was busy"),
            (
                |other| other.points[0].rate = Some(Rate { due: 1.0, reached: 0.5, behind: 9, is_held: false }),
                "with 1 trajectory the rate was not held",
            ),
        ];
        for (change, part) in rows {
            let (now, mut baseline) = (report(), report());
            change(&mut baseline);
            let comparison = compare(&now, &baseline, 10.0).unwrap();
            assert_eq!(comparison.warnings.len(), 1, "{:?}", comparison.warnings);
            assert!(comparison.warnings[0].contains(part), "{part:?} is missing in {:?}", comparison.warnings);
            assert_eq!((comparison.regressions.len(), comparison.rows.len()), (0, 30));
        }
        let mut busy = report();
        busy.machine.load_average = 2.5;
        let warnings = compare(&busy, &report(), 10.0).unwrap().warnings;
        assert!(warnings.len() == 1 && warnings[0].contains("this machine was busy"), "{warnings:?}");
    }

    #[test]
    fn points_of_one_side_are_named_and_left_out() {
        let (mut now, mut baseline) = (report(), report());
        now.points.remove(0);
        baseline.points.truncate(3);
        let comparison = compare(&now, &baseline, 10.0).unwrap();
        let compared: Vec<_> = comparison.rows.iter().map(|row| row.trajectories).collect();
        assert_eq!(compared, [[10; 6], [100; 6]].concat());
        assert_eq!(
            comparison.warnings,
            [
                "these counts of trajectories only the baseline has, and are not compared: 1",
                "these counts of trajectories the baseline lacks, and are not compared: 1,000, 10,000",
            ]
        );
    }

    #[test]
    fn other_modes_and_other_points_are_refused() {
        let http = Report { mode: Mode::Http, ..report() };
        let error = compare(&report(), &http, 10.0).unwrap_err().to_string();
        assert!(error.contains("`http`") && error.contains("give a baseline of mode `ring`"), "{error}");
        let mut other = open_loop();
        other.points[0].trajectories = 7;
        let error = compare(&report(), &other, 10.0).unwrap_err().to_string();
        assert!(error.contains("it has 7, this has 1, 10, 100, 1,000, 10,000"), "{error}");
        assert_eq!(check(&report(), Mode::Ring, &[10_000]), Ok(()));
        assert!(check(&report(), Mode::Ring, &[]).is_err());
    }
}
