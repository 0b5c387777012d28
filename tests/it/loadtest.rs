//! The load test as a user runs it: brief loads in every mode that needs no model. No verdict
//! depends on how fast the machine is: bounds on time are lower bounds, or relate figures of one
//! run.

use std::fs;

use prime_allocator::Tally;
use serde_json::Value;

use crate::binary::{done, shown};

/// `loadtest` without a warm-up, with JSON and these arguments.
fn measured(arguments: &str) -> Value {
    let line = format!("loadtest --warmup 0 --output json {arguments}");
    let report = done(&line.split_whitespace().collect::<Vec<_>>()).json(0);

    for point in report["points"].as_array().unwrap() {
        check(point);
        // With few trajectories, or beside a journal's buffers, the memory of a trajectory is below
        // the noise.
        if number(&point["trajectories"]) >= 20.0 && report["load"]["durable"] == false {
            assert!(number(&point["bytes_per_trajectory"]) >= 100.0, "{point}");
        }
    }
    report
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("a number, not {value}"))
}

/// Checks what holds for every point.
fn check(point: &Value) {
    let rate = number(&point["steps"]) / number(&point["seconds"]);
    assert!((number(&point["steps_per_second"]) / rate - 1.0).abs() < 1e-6, "{point}");
    let in_order = |latency: &Value| {
        let names = ["p50_us", "p90_us", "p99_us", "p999_us", "max_us"];
        assert!(names.map(|name| number(&latency[name])).is_sorted(), "{point}");
    };

    in_order(&point["latency"]);
    point["stages"].as_array().unwrap().iter().for_each(|stage| in_order(&stage["latency"]));
    assert!(
        number(&point["latency"]["p50_us"]) > 0.0 && number(&point["cpu_us_per_step"]) > 0.0,
        "{point}"
    );

    // The executable has the counting allocator.
    for name in ["allocations_per_step", "allocated_bytes_per_step"] {
        assert!(number(&point[name]) > 0.0, "{name}: {point}");
    }
    assert!(point["bytes_per_trajectory"].as_f64().is_none_or(|bytes| bytes > 0.0), "{point}");
    assert!(point["histogram"].as_str().unwrap().len() > 20, "{point}");
}

fn stages(point: &Value) -> Vec<&str> {
    point["stages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stage| stage["name"].as_str().unwrap())
        .collect()
}

const STAGES: [&str; 8] = [
    "to executor",
    "execute",
    "to verifier",
    "verify",
    "to coordinator",
    "coordinate",
    "to supervisor",
    "supervise",
];

#[test]
fn every_step_of_every_trajectory_is_measured() {
    for placement in ["shared", "own"] {
        let set = format!("--set runtime.placement={placement} --set runtime.cells=2");
        let report = measured(&format!("--trajectories 50,1,3 --steps 40 --stages {set}"));
        assert_eq!(
            (report["mode"].as_str(), report["runtime"]["placement"].as_str()),
            (Some("ring"), Some(placement))
        );
        assert_eq!(report["load"]["length"]["steps"], 40);

        let points = report["points"].as_array().unwrap();
        let sizes: Vec<_> = points
            .iter()
            .map(|point| (number(&point["trajectories"]), number(&point["steps"])))
            .collect();
        assert_eq!(sizes, [(50.0, 2_000.0), (1.0, 40.0), (3.0, 120.0)]);

        for point in points {
            assert_eq!(stages(point), STAGES);
            // The stages add up to the step.
            let means = point["stages"]
                .as_array()
                .unwrap()
                .iter()
                .map(|stage| number(&stage["latency"]["mean_us"]));
            let sum: f64 = means.sum();
            assert!((sum / number(&point["latency"]["mean_us"]) - 1.0).abs() < 0.02, "{point}");
        }
    }

    let text = done(&["loadtest", "--warmup", "0", "--trajectories", "1", "--steps", "1"]);
    assert_eq!(text.code, 0);
    assert!(text.stdout.contains("steps/s"), "{}", text.stdout);
}

#[test]
fn a_time_is_measured_after_the_warm_up() {
    let line =
        "loadtest --trajectories 10 --warmup 50ms --duration 200ms --payload 100 --output json";
    let report = done(&line.split(' ').collect::<Vec<_>>()).json(0);
    check(&report["points"][0]);
    assert_eq!(report["load"]["warmup_seconds"], 0.05);
    assert_eq!(report["load"]["payload_bytes"], 100);

    let seconds = number(&report["points"][0]["seconds"]);
    assert!(seconds >= 0.2, "{seconds}");

    // A line of 104 bytes is allocated for each step, and kept.
    assert!(number(&report["points"][0]["allocated_bytes_per_step"]) > 104.0, "{report}");
}

#[test]
fn a_long_load_needs_several_runs() {
    // A run has 256 steps here: 2^28 bytes over 100 trajectories with 10,484 and 16 bytes per step.
    let report = measured("--trajectories 100 --steps 600 --payload 10484");
    assert_eq!(number(&report["points"][0]["steps"]), 60_000.0);
}

#[test]
fn delays_are_part_of_the_latency() {
    for (roles, at_least) in [("executor", 2_000.0), ("executor,verifier,coordinator", 6_000.0)] {
        let report =
            measured(&format!("--trajectories 4 --steps 5 --delay 2ms --faulty {roles} --stages"));
        let point = &report["points"][0];
        assert!(number(&point["latency"]["p50_us"]) >= at_least, "{point}");
        assert_eq!(point["stages"][1]["is_work"], true);
        assert!(
            number(&point["stages"][1]["latency"]["p50_us"]) >= 1_995.0,
            "less the histogram's resolution: {point}"
        );
        assert_eq!(report["load"]["faulty"].as_array().unwrap().len(), roles.split(',').count());
    }
}

#[test]
fn failures_are_counted_and_retried() {
    let failures = |arguments: &str| {
        let report = measured(&format!("--trajectories 20 --steps 50 {arguments}"));
        assert_eq!(number(&report["points"][0]["steps"]), 1_000.0);
        number(&report["points"][0]["failures"])
    };
    assert_eq!(failures(""), 0.0);
    // Every turn of all three fails once.
    assert_eq!(failures("--failures 1 --faulty executor,verifier,coordinator"), 3_000.0);
    // A tenth of a thousand: four standard deviations around 100.
    let some = failures("--failures 0.1");
    assert!((60.0..=140.0).contains(&some), "{some}");
}

#[test]
fn an_open_loop_releases_steps_when_they_are_due() {
    let report = measured("--trajectories 4 --rate 2000 --steps 25 --stages");
    let point = &report["points"][0];
    assert_eq!(report["load"]["rate"], 2_000.0);
    assert_eq!(number(&point["rate"]["due"]), 2_000.0);
    assert_eq!(number(&point["steps"]), 100.0);

    // The last of a hundred steps is due after 99 two-thousandths of a second.
    assert!(number(&point["seconds"]) >= 0.0495, "{point}");
    assert_eq!(stages(point)[0], "release");
    assert_eq!(stages(point)[8], "wait and supervise");

    let timed = measured("--trajectories 4 --rate 2000 --duration 250ms");
    let point = &timed["points"][0];
    assert_eq!(stages(point), ["release"]);
    // No step is decided before it is due, the first of them at the start. On a slow machine, the
    // time is longer.
    let due = 2_000.0 * number(&point["seconds"]) + 1.0;
    assert!((1.0..=due).contains(&number(&point["steps"])), "{point}");
}

#[test]
fn an_unsustainable_rate_is_reported() {
    // A step takes at least 5 ms, so four trajectories decide at most 800 per second, and 40 steps
    // take 200 ms.
    let arguments = "--trajectories 4 --rate 8000 --steps 40 --delay 5ms";
    let report = measured(arguments);
    let (point, rate) = (&report["points"][0], &report["points"][0]["rate"]);

    assert_eq!(rate["is_held"], false);
    assert!(number(&rate["reached"]) <= 800.0, "{rate}");

    // Of at least 1,600 steps due by then, 160 were decided.
    let due = 8_000.0 * number(&point["seconds"]) + 1.0;
    assert!((1_440.0..=due - 159.0).contains(&number(&rate["behind"])), "{rate}");

    let remark = |remarks: &Value| {
        remarks
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it.as_str().unwrap().contains("could not be reached"))
    };
    assert!(remark(&report["remarks"]), "{report}");

    // Latency starts when a step is due, for the last ones after 20 ms.
    assert!(number(&point["latency"]["max_us"]) > 175_000.0, "{point}");

    let line = "loadtest --warmup 0 --trajectories 4 --rate 8000 --steps 4 --delay 5ms";
    let text = done(&line.split(' ').collect::<Vec<_>>());
    assert_eq!(text.code, 0);
    let line = text.stdout.lines().find(|line| line.starts_with("The rate could not be reached"));
    assert!(
        line.is_some_and(|line| line.contains("8000 steps per second were due")),
        "{}",
        text.stdout
    );
}

#[test]
fn all_three_agents_query_their_engine() {
    let report = measured("--mode engine --trajectories 1,20 --steps 20 --payload 1000 --stages");
    assert_eq!(report["runtime"]["verifier"], "echo");

    let points = report["points"].as_array().unwrap();
    assert_eq!(
        points.iter().map(|point| number(&point["steps"])).collect::<Vec<_>>(),
        [20.0, 400.0]
    );
    for point in points {
        // Each agent's own stage includes a round trip to a process.
        for stage in [1, 3, 5] {
            assert!(number(&point["stages"][stage]["latency"]["p50_us"]) > 2.0, "{point}");
        }
    }
}

#[test]
fn durable_steps_are_committed() {
    let report = measured("--durable --trajectories 5,20 --steps 20");
    assert_eq!(report["load"]["durable"], true);
    for point in report["points"].as_array().unwrap() {
        assert_eq!(stages(point), ["commit"]);
        assert!(number(&point["stages"][0]["latency"]["p50_us"]) > 0.0, "{point}");
    }

    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("load.db");
    let counted =
        measured(&format!("--durable --trajectories 2 --steps 10 --journal {}", shown(&journal)));
    assert_eq!(number(&counted["points"][0]["steps"]), 20.0);

    let bytes = fs::metadata(&journal).unwrap().len();
    assert!(bytes > 0);
    done(&["loadtest", "--durable", "--journal", shown(&journal)]).refused(&[
        "--journal",
        shown(&journal),
        "new file",
    ]);
    assert_eq!(fs::metadata(&journal).unwrap().len(), bytes);
}

#[test]
fn a_missing_model_is_an_error() {
    let mode = ["loadtest", "--mode", "model", "--set", "engines.tiny.model=/nowhere/model.gguf"];
    done(&mode).refused(&["tiny", "/nowhere/model.gguf"]);
    let unknown = ["loadtest", "--mode", "model", "--task", "tower-of-hano"];
    done(&unknown).refused(&["tower-of-hano", "did you mean `tower-of-hanoi`?"]);
}

#[test]
fn mode_model_reports_the_share_of_coordination() {
    let agents =
        "--set agents.executor.implementation=scripted --set agents.executor.error_rate=0.2";
    let report = measured(&format!(
        "--mode model --task bubble-sort --trajectories 3 --duration 200ms {agents}"
    ));
    let point = &report["points"][0];

    assert_eq!(report["runtime"]["executor"], "scripted");
    assert_eq!(stages(point), STAGES);
    let share = number(&point["coordination_share"]);
    assert!((0.0..=1.0).contains(&share), "{point}");
    let remarks = report["remarks"].to_string();
    assert!(remarks.contains("tokens per step"), "{remarks}");
}

#[test]
fn invalid_loads_are_refused() {
    for (arguments, parts) in [
        (&["--trajectories", "0"][..], &["--trajectories", "0"][..]),
        (&["--trajectories", "-5"], &["-5"]),
        (&["--steps", "0"], &["--steps", "0"]),
        (&["--duration", "0s"], &["--duration", "above zero"]),
        (&["--duration", "10"], &["--duration", "unit"]),
        (&["--rate", "0"], &["--rate", "above 0"]),
        (&["--rate", "-3"], &["--rate", "above 0"]),
        (&["--failures", "2"], &["--failures", "from 0 to 1"]),
        (&["--delay", "soon"], &["--delay", "unit"]),
        (&["--steps", "5", "--duration", "5s"], &["--steps", "--duration"]),
        (&["--mode", "http"], &["--url"]),
        (&["--legs"], &["--legs", "give --stages"]),
        (&["--mode", "raft"], &["raft", "ring, engine, http, model"]),
        (&["--trajectories", "100000", "--payload", "1048576"], &["payload", "MiB", "lower one"]),
    ] {
        done(&[&["loadtest"], arguments].concat()).refused(parts);
    }
}

#[test]
fn a_process_with_another_allocator_counts_nothing() {
    assert!(Tally::start().is_none());
}
