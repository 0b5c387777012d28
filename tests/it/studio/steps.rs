//! The tree, the shapes and the steps of a run, compared with its trace.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{ERRING, by_trajectory, erring, trace};
use crate::daemon::Daemon;

fn decided(steps: &[&Value], decision: &str) -> u64 {
    steps.iter().filter(|step| step["decision"] == decision).count() as u64
}

/// By how much the depth falls between consecutive steps.
fn popped(steps: &[&Value]) -> u64 {
    let depth = |step: &Value| step["depth"].as_u64().unwrap();
    steps.windows(2).map(|pair| depth(pair[0]).saturating_sub(depth(pair[1]))).sum()
}

#[test]
fn tree_shape_and_steps_agree_with_the_trace() {
    let daemon = Daemon::start(&ERRING);
    let run = daemon.submitted(&erring());
    daemon.finished(&run);
    let trace = trace(&daemon, &run);
    let expected = by_trajectory(&trace);

    let tree = daemon.get(&format!("{run}/tree")).body;
    assert_eq!((&tree["has_more"], &tree["left_out"]), (&json!(false), &json!(0)));
    let nodes: Vec<_> = tree["rounds"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|r| r["trajectories"].as_array().unwrap())
        .collect();
    assert_eq!(nodes.len(), expected.len());
    assert!(
        expected.values().map(|steps| decided(steps, "backtrack")).sum::<u64>() > 10,
        "the executor errs"
    );

    for node in nodes {
        let name = format!("{}.{}", node["round"], node["trajectory"]);
        let steps = &expected[&name];
        let counts = json!([
            steps.len(),
            decided(steps, "retry"),
            decided(steps, "backtrack"),
            popped(steps)
        ]);
        assert_eq!(
            json!([node["steps"], node["retries"], node["backtracks"], node["pops"]]),
            counts,
            "{name}"
        );

        let ended = trace.iter().find(|line| {
            line["event"] == "trajectory_ended"
                && line["round"] == node["round"]
                && line["trajectory"] == node["trajectory"]
        });
        assert_eq!(
            node["end"]["end"],
            ended.map_or(Value::Null, |line| line["end"].clone()),
            "{name}"
        );

        let shape = daemon.get(&format!("{run}/shape?trajectory={name}&cells=7")).body;
        let columns = shape["columns"].as_array().unwrap();
        assert!(columns.len() <= 7, "{shape}");
        let sum =
            |field: &str| columns.iter().map(|column| column[field].as_u64().unwrap()).sum::<u64>();
        assert_eq!(sum("backtracks"), decided(steps, "backtrack"), "{name}");
        assert_eq!(sum("retries"), decided(steps, "retry"), "{name}");
        for column in columns {
            let position = |edge: &str| usize::try_from(column[edge].as_u64().unwrap()).unwrap();
            let range = position("from")..position("to");
            let depths = steps[range.clone()].iter().map(|step| step["depth"].as_u64());
            assert_eq!(column["depth_max"].as_u64(), depths.max().flatten(), "{name} {range:?}");
            let scores = steps[range].iter().map(|step| step["score"].as_f64().unwrap());
            assert_eq!(column["worst"].as_f64(), Some(scores.fold(0.0, f64::max)), "{name}");
        }

        let (mut listed, mut from) = (Vec::new(), Some(0));
        while let Some(at) = from {
            let page =
                daemon.get(&format!("{run}/steps?trajectory={name}&from={at}&limit=50")).body;
            listed.extend(page["steps"].as_array().unwrap().clone());
            from = page["next"].as_u64();
        }
        assert_eq!(listed.len(), steps.len());
        for (position, (listed, step)) in listed.iter().zip(steps).enumerate() {
            assert_eq!(listed["position"], json!(position));
            for field in ["seq", "depth", "action", "applicable", "score", "violations", "decision"]
            {
                assert_eq!(listed[field], step[field], "{name} at {position}: {field}");
            }
        }
    }

    let all = daemon.get(&format!("{run}/steps?limit=1000")).body;
    let seqs = |steps: &[Value]| {
        steps.iter().map(|step| step["seq"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let steps: Vec<_> = trace.iter().filter(|line| line["event"] == "step").cloned().collect();
    assert_eq!(seqs(all["steps"].as_array().unwrap()), seqs(&steps[..steps.len().min(1000)]));
}

#[test]
fn a_step_has_its_states_and_says_why_it_was_rejected() {
    let daemon = Daemon::start(&ERRING);
    let run = daemon.submitted(&erring());
    daemon.finished(&run);
    let trace = trace(&daemon, &run);

    for (name, steps) in by_trajectory(&trace) {
        for (position, step) in steps.iter().enumerate() {
            let detail = daemon.get(&format!("{run}/steps/{}", step["seq"])).body;
            let place = format!("{name} at {position}: {detail}");
            assert_eq!(detail["position"], json!(position), "{place}");
            assert_eq!(detail["before"], step["state"], "{place}");

            let explanation = detail["explanation"].as_str().unwrap();
            let is_accepted = step["decision"] == "proceed";
            let start = match step["decision"].as_str().unwrap() {
                _ if step["exhausted"] == true => "Given up",
                "proceed" => "Accepted",
                "retry" => "Sent back",
                _ => "Rejected",
            };
            assert!(explanation.starts_with(start), "{place}");

            let next = steps.get(position + 1);
            assert_eq!(
                detail["then"]["seq"],
                next.map_or(Value::Null, |next| next["seq"].clone()),
                "{place}"
            );
            let then = detail["then"]["text"].as_str().unwrap();
            match next {
                Some(next) => assert!(then.contains(next["action"].as_str().unwrap()), "{place}"),
                None => {
                    assert!(
                        then.starts_with("The trajectory ended")
                            || then.starts_with("The run ended"),
                        "{place}"
                    );
                }
            }

            for name in step["violations"].as_array().unwrap() {
                assert!(explanation.contains(&format!("`{}`", name.as_str().unwrap())), "{place}");
            }
            assert_eq!(
                detail["broken"].as_array().unwrap().len(),
                step["violations"].as_array().unwrap().len()
            );
            if is_accepted && let Some(next) = steps.get(position + 1) {
                assert_eq!(detail["after"], next["state"], "{place}");
            }

            let stack = detail["stack"].as_array().unwrap();
            assert_eq!(stack.len() as u64, step["depth"].as_u64().unwrap().min(64), "{place}");
        }
    }

    daemon.get(&format!("{run}/steps/1")).refused(404, None, &["not a step"]);
    daemon.get(&format!("{run}/steps/999999")).refused(404, None, &["not a step"]);
    daemon.get(&format!("{run}/steps/x")).refused(404, None, &["number"]);
}

/// Thresholds between which a step with one major violation is retried and then let through, one
/// with two is retried and then rejected, and one with more is rejected outright.
#[test]
fn a_rejection_is_explained_by_the_threshold_that_made_it() {
    let sets = [
        "run.tau_soft=0.6",
        "run.tau_hard=1.2",
        "run.retries_max=2",
        "agents.executor.error_rate=0.7",
    ];
    let daemon = Daemon::start(&[&["agents.executor.implementation=scripted"][..], &sets].concat());
    let run = daemon.submitted(&erring());
    daemon.finished(&run);
    let trace = trace(&daemon, &run);

    let mut seen = BTreeMap::new();
    for steps in by_trajectory(&trace).values() {
        // Retries at the present state; unknown after a pop, which may lead back to a state with
        // retries of its own.
        let mut retries = Some(0);
        for (position, step) in steps.iter().enumerate() {
            let depth = |step: &Value| step["depth"].as_u64();
            if let Some(before) = position.checked_sub(1).map(|at| steps[at]) {
                match depth(step).cmp(&depth(before)) {
                    Ordering::Greater => retries = Some(0),
                    Ordering::Less => retries = None,
                    Ordering::Equal => {}
                }
            }

            let score = step["score"].as_f64().unwrap();
            let is_named = !step["violations"].as_array().unwrap().is_empty();
            let expected = match (step["decision"].as_str().unwrap(), &mut retries) {
                ("retry", None) => continue,
                ("retry", Some(retries)) => {
                    *retries += 1;
                    format!("may try again in the same state; this is retry {retries} of 2")
                }
                ("proceed", _) if score > 0.0 => {
                    "after 2 retries, a score of at most 0.6 is let through".to_owned()
                }
                ("backtrack", _) if is_named && score > 1.2 => {
                    "Anything above 1.2 is rejected outright".to_owned()
                }
                ("backtrack", _) if is_named => {
                    "The 2 retries in this state are used up, and only a score of at most 0.6"
                        .to_owned()
                }
                ("backtrack", _) => "rejected in this state before".to_owned(),
                _ => "found nothing wrong".to_owned(),
            };

            let detail = daemon.get(&format!("{run}/steps/{}", step["seq"])).body;
            assert!(
                detail["explanation"].as_str().unwrap().contains(&expected),
                "{expected}: {detail}"
            );
            *seen.entry(expected).or_insert(0) += 1;
        }
    }

    assert!(seen.len() >= 6, "{seen:?}");
}

#[test]
fn steps_of_a_kind_are_found_in_both_directions() {
    let daemon = Daemon::start(&ERRING);
    let run = daemon.submitted(&erring());
    daemon.finished(&run);
    let trace = trace(&daemon, &run);
    let steps = &by_trajectory(&trace)["1.0"];

    let positions = |fits: &dyn Fn(&Value) -> bool| -> Vec<u64> {
        (0_u64..).zip(steps).filter(|(_, step)| fits(step)).map(|(at, _)| at).collect()
    };
    let violates =
        |step: &Value| step["violations"].as_array().unwrap().contains(&json!("adjacent"));

    for (what, expected) in [
        ("rejected", positions(&|step| step["decision"] != "proceed")),
        ("backtrack", positions(&|step| step["decision"] == "backtrack")),
        ("violation:adjacent", positions(&violates)),
        ("violation:unheard-of", Vec::new()),
    ] {
        let find =
            |range: &str| daemon.get(&format!("{run}/find?trajectory=1.0&what={what}{range}")).body;
        let (mut found, mut range) = (Vec::new(), String::new());
        while let Some(at) = find(&range)["position"].as_u64() {
            found.push(at);
            range = format!("&after={at}");
        }
        assert_eq!(found, expected, "{what}");

        let (mut found, mut before) = (Vec::new(), steps.len() as u64);
        while let Some(at) = find(&format!("&before={before}"))["position"].as_u64() {
            found.insert(0, at);
            before = at;
        }
        assert_eq!(found, expected, "{what}, backwards");
    }

    daemon.get(&format!("{run}/find?trajectory=1.0&what=all")).refused(
        400,
        Some("what"),
        &["backtrack"],
    );
    daemon.get(&format!("{run}/find?trajectory=1&what=retry")).refused(
        400,
        Some("trajectory"),
        &["1.0"],
    );
    daemon.get(&format!("{run}/shape?trajectory=9.9")).refused(404, None, &["9.9"]);
    daemon.get(&format!("{run}/steps?from=3")).refused(400, Some("from"), &["trajectory"]);
}
