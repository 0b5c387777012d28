//! The studio's files, and the routes that show a run step by step: everything that they say is
//! compared with the run's trace.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::daemon::{Daemon, Home, server_sent};

/// An executor that makes mistakes, so that steps are retried, rejected and popped.
const ERRING: [&str; 3] = [
    "agents.executor.implementation=scripted",
    "agents.executor.error_rate=0.4",
    "run.tau_soft=0.2",
];

/// SHA-256 of "abc" (FIPS 180-2, appendix B.1), of which the key is the text.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn erring() -> Value {
    json!({"task": "bubble-sort", "index": 3, "fanout": 3, "max_rounds": 1, "seed": 5})
}

/// The lines of the run's trace, each with the state before.
fn trace(daemon: &Daemon, run: &str) -> Vec<Value> {
    daemon
        .text(&format!("{run}/trace"))
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The steps of each trajectory, from the trace.
fn by_trajectory(trace: &[Value]) -> BTreeMap<String, Vec<&Value>> {
    let mut found: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for line in trace.iter().filter(|line| line["event"] == "step") {
        found.entry(format!("{}.{}", line["round"], line["trajectory"])).or_default().push(line);
    }
    found
}

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

#[test]
fn a_fork_is_the_same_up_to_its_event() {
    let daemon = Daemon::start(&ERRING);
    let run = daemon.submitted(&erring());
    daemon.finished(&run);
    let id = |run: &str| run.rsplit('/').next().unwrap().to_owned();
    let forked = daemon.post(&format!("{run}/fork?seq=40&seed=77"));
    assert_eq!(forked.status, 202, "{}", forked.body);
    let fork = format!("/v1/runs/{}", forked.body["id"].as_str().unwrap());
    daemon.finished(&fork);
    let comparison = daemon.get(&format!("/v1/compare?a={}&b={}", id(&run), id(&fork))).body;
    let (of_run, of_fork) = (trace(&daemon, &run), trace(&daemon, &fork));
    let (of_run, of_fork) = (by_trajectory(&of_run), by_trajectory(&of_fork));
    let content =
        |step: &Value| json!([step["action"], step["violations"], step["decision"], step["depth"]]);
    for parted in comparison["trajectories"].as_array().unwrap() {
        let name = format!("{}.{}", parted["round"], parted["trajectory"]);
        let pairs = of_run[&name].iter().zip(&of_fork[&name]);
        let same = pairs.take_while(|(a, b)| content(a) == content(b)).count();
        assert_eq!(parted["same"], json!(same), "{name}");
        assert_eq!(
            parted["seq_a"],
            of_run[&name].get(same).map_or(Value::Null, |step| step["seq"].clone()),
            "{name}"
        );
    }
    let itself = daemon.get(&format!("/v1/compare?a={0}&b={0}", id(&run))).body;
    assert!(
        itself["trajectories"].as_array().unwrap().iter().all(|parted| parted["seq_a"].is_null()),
        "{itself}"
    );
}

#[test]
fn a_fork_goes_on_with_the_agents_that_it_chooses() {
    let daemon = Daemon::start(&ERRING);
    let run = daemon.submitted(&erring());
    let parent = daemon.finished(&run);
    let forked =
        daemon.post_text(&format!("{run}/fork?seq=40"), r#"{"agents": {"executor": "reference"}}"#);
    assert_eq!(forked.status, 202, "{}", forked.body);
    let fork = format!("/v1/runs/{}", forked.body["id"].as_str().unwrap());
    let record = daemon.finished(&fork);
    let agents = json!({"executor": "reference", "verifier": "rules", "coordinator": "threshold"});
    assert_eq!(record["agents"], agents);
    assert_eq!(parent["agents"]["executor"], "scripted");
    let (of_run, of_fork) = (trace(&daemon, &run), trace(&daemon, &fork));
    assert_eq!(of_run[1..=40], of_fork[1..=40]);
    let later: Vec<_> = of_fork[41..].iter().filter(|line| line["event"] == "step").collect();
    // The reference makes no mistake, but its first line may still have to undo one that was let
    // pass before.
    assert!(!later.is_empty());
    assert!(later.iter().rev().take(10).all(|step| step["decision"] == "proceed"), "{later:?}");
    for (body, field, part) in [
        (r#"{"agents": {"executor": "nobody"}}"#, Some("agents.executor"), "not allowed"),
        (r#"{"agents": {"judge": "rules"}}"#, Some("agents.judge"), "unknown field"),
        ("[]", None, "list"),
    ] {
        daemon.post_text(&format!("{run}/fork?seq=40"), body).refused(400, field, &[part]);
    }
}

#[test]
fn an_agent_that_is_tried_does_what_it_did_in_the_run() {
    let daemon = Daemon::start(&ERRING);
    let run = daemon.submitted(&erring());
    daemon.finished(&run);
    let before = daemon.get(&run).body;
    let trace = trace(&daemon, &run);
    let rejected = |step: &&Value| step["decision"] != "proceed";
    let steps: Vec<_> = trace.iter().filter(|line| line["event"] == "step").collect();
    let some = steps.iter().step_by(17).chain(steps.iter().filter(|step| rejected(step)).take(8));
    for step in some {
        let path = format!("{run}/steps/{}/try", step["seq"]);
        let tried = daemon.post_text(&path, r#"{"role": "executor"}"#);
        assert_eq!(tried.status, 200, "{}", tried.body);
        let body = &tried.body;
        let found =
            json!([body["action"], body["same"], body["verdict"]["violations"], body["decision"]]);
        assert_eq!(
            found,
            json!([step["action"], true, step["violations"], step["decision"]]),
            "{}",
            step["seq"]
        );
        assert_eq!(body["exchanges"], json!([]));
        let judged = daemon.post_text(&path, r#"{"role": "verifier"}"#).body;
        assert_eq!(judged["verdict"]["score"], step["score"]);
    }
    let step = steps.iter().find(|step| rejected(step)).unwrap();
    let path = format!("{run}/steps/{}/try", step["seq"]);
    let judged = daemon.post_text(&path, r#"{"role": "verifier", "agent": "none"}"#).body;
    assert_eq!(
        (&judged["verdict"]["score"], &judged["agents"]["verifier"]),
        (&json!(0.0), &json!("none"))
    );
    let judged = daemon
        .post_text(&path, r#"{"role": "coordinator", "action": "no line of this task"}"#)
        .body;
    assert!(
        judged["refusal"].is_string()
            && judged["same"] == false
            && judged["decision"] == "backtrack",
        "{judged}"
    );
    // Nothing of it is recorded.
    assert_eq!(daemon.get(&run).body, before);
    for (body, field, part) in [
        (r#"{"role": "judge"}"#, Some("role"), "executor"),
        (r#"{"role": "verifier", "agent": "nobody"}"#, Some("agent"), "not allowed"),
        (r#"{"role": "executor", "action": "x"}"#, Some("action"), "verifier"),
        (r#"{"role": "verifier", "seed": 1}"#, Some("seed"), "executor"),
        ("{}", None, "role"),
    ] {
        daemon.post_text(&path, body).refused(400, field, &[part]);
    }
    let body = r#"{"role": "executor"}"#;
    daemon.post_text(&format!("{run}/steps/1/try"), body).refused(404, None, &["not a step"]);
    daemon.post_text(&format!("{run}/steps/0/try"), body).refused(404, None, &["not a step"]);
    daemon.post_text(&format!("{run}/steps/x/try"), body).refused(404, None, &["not the number"]);
    daemon.post_text("/v1/runs/run_0/steps/2/try", body).refused(404, None, &["run_0"]);
}

#[test]
fn a_model_that_is_tried_shows_its_prompt_and_its_raw_answer() {
    let daemon = Daemon::start(&["agents.executor.implementation=llama"]);
    let run = daemon.submitted(&json!({"task": "tower-of-hanoi", "fanout": 2, "seed": 3}));
    daemon.finished(&run);
    let trace = trace(&daemon, &run);
    for step in trace.iter().filter(|line| line["event"] == "step").step_by(3) {
        let path = format!("{run}/steps/{}/try", step["seq"]);
        let tried = daemon.post_text(&path, r#"{"role": "executor"}"#).body;
        let [exchange] = tried["exchanges"].as_array().unwrap().as_slice() else {
            panic!("{tried}")
        };
        assert_eq!(
            (&tried["action"], &tried["same"]),
            (&step["action"], &json!(true)),
            "{}",
            step["seq"]
        );
        assert!(
            exchange["answer"].as_str().unwrap().contains(step["action"].as_str().unwrap()),
            "{exchange}"
        );
        assert!(!exchange["prompt"].as_str().unwrap().is_empty());
        assert!(exchange["usage"]["completion"].as_u64().unwrap() > 0);
    }
}

#[test]
fn progress_ends_with_the_run_and_its_spec_is_that_of_the_trace() {
    let daemon = Daemon::start(&ERRING);
    let run = daemon.submitted(&erring());
    let events = server_sent(&daemon.text(&format!("{run}/progress")));
    let (last, name, data) = events.last().unwrap();
    let record: Value = serde_json::from_str(data).unwrap();
    let finished = daemon.finished(&run);
    assert_eq!(
        (name.as_str(), &record["status"], json!(last)),
        ("record", &finished["status"], finished["events"].clone())
    );
    assert!(events.is_sorted_by_key(|(seq, ..)| *seq), "{events:?}");
    assert_eq!(daemon.get(&format!("{run}/spec")).body, trace(&daemon, &run)[0]["spec"]);
}

#[test]
fn the_page_needs_no_key_and_what_it_asks_for_does() {
    let home = Home::new();
    let keys = format!(r#"server.keys=[{{name="a",sha256="{ABC}"}}]"#);
    let daemon = Daemon::start_in(&home, &["agents.executor.implementation=reference", &keys]);
    for path in ["/studio/", "/studio/runs/run_1", "/studio/files/studio.js"] {
        let response = daemon.client.get(daemon.url(path)).send().unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let policy = response.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        assert_eq!(response.headers()["cache-control"], "no-cache");
    }
    for path in
        ["/v1/runs", "/v1/runs/x/tree", "/v1/compare?a=x&b=y", "/metrics", "/docs/", "/studiox"]
    {
        daemon.get(path).refused(401, None, &["key"]);
    }
    let response = daemon.client.get(daemon.url("/v1/runs")).bearer_auth("abc").send().unwrap();
    let of_data =
        (response.status().as_u16(), response.headers()["cache-control"].to_str().unwrap());
    assert_eq!(of_data, (200, "no-store"));
}

#[test]
fn reports_are_those_of_the_folder() {
    let home = Home::new();
    let folder = home.journal().with_file_name("reports");
    std::fs::create_dir_all(folder.join("smoke/tables")).unwrap();
    for name in ["smoke/report.html", "smoke/tables/accuracy.csv", "smoke/notes.txt"] {
        std::fs::write(folder.join(name), name).unwrap();
    }
    let daemon = Daemon::start_in(&home, &[&format!("server.reports={}", folder.display())]);
    let list = daemon.get("/v1/reports").body;
    assert_eq!((&list["configured"], &list["has_more"]), (&json!(true), &json!(false)));
    let [report] = list["reports"].as_array().unwrap().as_slice() else { panic!("{list}") };
    assert_eq!((&report["path"], &report["bytes"]), (&json!("smoke/report.html"), &json!(17)));
    assert_eq!(daemon.text("/v1/reports/smoke/report.html"), "smoke/report.html");
    assert_eq!(daemon.text("/v1/reports/smoke/tables/accuracy.csv"), "smoke/tables/accuracy.csv");
    for missing in
        ["smoke/notes.txt", "smoke", "../journal.db", "smoke/%2e%2e/%2e%2e/journal.db", "none.html"]
    {
        daemon.get(&format!("/v1/reports/{missing}")).refused(404, None, &[]);
    }
    std::fs::remove_dir_all(&folder).unwrap();
    daemon.get("/v1/reports").refused(404, None, &["server.reports", "cannot be read"]);
    let other = Daemon::start(&[]);
    assert_eq!(other.get("/v1/reports").body["configured"], false);
    other.get("/v1/reports/smoke/report.html").refused(404, None, &["no report"]);
}
