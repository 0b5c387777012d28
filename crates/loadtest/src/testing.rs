//! A made-up report, for tests.

use super::histogram::{empty, encode};
use super::report::{
    FORMAT, HostInfo, Latency, Length, Load, Mode, Point, Rate, Report, RuntimeFacts, Stage,
};

/// A histogram of nanoseconds around a median, with a long tail.
fn tail(median: u64) -> String {
    let mut histogram = empty();
    for (share, count) in
        [(60, 3_000), (90, 20_000), (100, 27_000), (130, 30_000), (180, 15_000), (400, 4_900)]
    {
        histogram.saturating_record_n(median * share / 100, count);
    }
    for (times, count) in [(12, 80), (30, 15), (90, 5)] {
        histogram.saturating_record_n(median * times, count);
    }
    encode(&histogram)
}

fn stage(name: &str, is_work: bool, p50_us: f64) -> Stage {
    let latency = Latency {
        mean_us: p50_us * 1.5,
        p50_us,
        p90_us: p50_us * 2.0,
        p99_us: p50_us * 4.0,
        p999_us: p50_us * 8.0,
        max_us: p50_us * 64.0,
    };
    Stage { name: name.to_owned(), is_work, latency }
}

fn point(trajectories: u32, steps_per_second: f64, p50_us: f64) -> Point {
    let stages = [
        ("propose", true, 0.25),
        ("judge", false, 0.125),
        ("decide", false, 0.375),
        ("commit", false, 0.5),
    ];
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small positive constants"
    )]
    let nanos = (p50_us * 1e3) as u64;
    Point {
        trajectories,
        steps: 100_000 * u64::from(trajectories),
        seconds: 10.0,
        steps_per_second,
        latency: Latency {
            mean_us: p50_us * 1.25,
            p50_us,
            p90_us: p50_us * 2.0,
            p99_us: p50_us * 4.0,
            p999_us: p50_us * 16.0,
            max_us: p50_us * 128.0,
        },
        stages: stages
            .into_iter()
            .map(|(name, is_work, share)| stage(name, is_work, p50_us * share))
            .collect(),
        coordination_share: None,
        cpu_us_per_step: Some(1.5),
        allocations_per_step: Some(4.0),
        allocated_bytes_per_step: Some(312.0),
        bytes_per_trajectory: Some(2_048.0),
        rate: None,
        failures: 0,
        histogram: tail(nanos),
    }
}

/// A closed loop at five counts of trajectories.
pub fn report() -> Report {
    let points = [
        (1, 412_000.0, 2.0),
        (10, 655_000.0, 14.0),
        (100, 731_500.0, 128.0),
        (1_000, 702_250.0, 1_380.0),
    ];
    let mut points: Vec<_> =
        points.into_iter().map(|(count, rate, p50)| point(count, rate, p50)).collect();

    points.push(point(10_000, 640_125.0, 15_000.0));
    Report {
        format: FORMAT,
        version: "0.1.0".to_owned(),
        started: "2026-11-21T10:00:00Z".to_owned(),
        machine: HostInfo {
            processor: "Example 9000".to_owned(),
            cores: 2,
            memory_bytes: 8 << 30,
            system: "Linux 6.1.0".to_owned(),
            load_average: 0.25,
        },
        mode: Mode::Ring,
        load: Load {
            rate: None,
            warmup_seconds: 1.0,
            length: Length::Seconds(10.0),
            payload_bytes: 0,
            delay_us: 0,
            failures: 0.0,
            faulty: Vec::new(),
            durable: false,
        },
        runtime: Some(RuntimeFacts {
            cells: 2,
            placement: "shared".to_owned(),
            executor: "null".to_owned(),
            verifier: "rules".to_owned(),
            coordinator: "threshold".to_owned(),
        }),
        points,
        remarks: vec!["The clock was read twice per step.".to_owned()],
    }
}

/// An open loop whose rate was not held, with every setting of a load.
pub fn open_loop() -> Report {
    let mut report = report();
    report.load = Load {
        rate: Some(1_500.0),
        warmup_seconds: 0.5,
        length: Length::Steps(20_000),
        payload_bytes: 4_096,
        delay_us: 100,
        failures: 0.01,
        faulty: vec!["executor".to_owned(), "verifier".to_owned()],
        durable: true,
    };
    report.points.truncate(1);

    let point = &mut report.points[0];
    point.stages.clear();
    point.rate = Some(Rate { due: 1_500.0, reached: 1_250.5, behind: 2_495, is_held: false });
    (point.failures, point.cpu_us_per_step, point.bytes_per_trajectory) = (17, None, None);
    report.runtime = None;
    report
}
