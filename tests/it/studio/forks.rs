//! Runs that are forked and compared, and agents that are tried at a step.

use serde_json::{Value, json};

use super::{ERRING, by_trajectory, erring, trace};
use crate::daemon::Daemon;

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
fn a_line_takes_the_place_of_a_step() {
    let daemon = Daemon::start(&ERRING);
    let run = daemon.submitted(&erring());
    daemon.finished(&run);
    let steps = trace(&daemon, &run);
    let rejected = |line: &&Value| line["event"] == "step" && line["decision"] == "backtrack";
    let step = steps.iter().find(rejected).unwrap();

    // What the task's algorithm does in this state, and what it does not.
    let body = r#"{"role": "executor", "agent": "reference"}"#;
    let tried = daemon.post_text(&format!("{run}/steps/{}/try", step["seq"]), body).body;
    let right = tried["action"].as_str().unwrap();
    for (line, decision) in [(right, "proceed"), ("no line of this task", "backtrack")] {
        let forked = daemon.post_text(
            &format!("{run}/fork?seq={}", step["seq"]),
            &json!({ "line": line }).to_string(),
        );
        assert_eq!(forked.status, 202, "{}", forked.body);
        let fork = format!("/v1/runs/{}", forked.body["id"].as_str().unwrap());
        let record = daemon.finished(&fork);
        let counts = json!({"asked": 1, "accepted": 0, "rejected": 0, "edited": 1});
        assert_eq!(record["approvals"], counts, "{record}");

        let of_fork = trace(&daemon, &fork);
        let made = of_fork.iter().find(|line| !line["approval"].is_null()).unwrap();
        assert_eq!((&made["action"], &made["decision"]), (&json!(line), &json!(decision)));
        for name in ["round", "trajectory", "depth"] {
            assert_eq!(made[name], step[name], "{name}");
        }
        let approval = &made["approval"];
        assert_eq!(
            json!([approval["verdict"], approval["by"], approval["proposed"]]),
            json!(["edit", "local", step["action"]])
        );
        let before = step["seq"].as_u64().unwrap() - 1;
        assert_eq!(
            forked.body["forked_from"],
            json!({
                "run": run.rsplit('/').next().unwrap(),
                "seq": before,
                "line": {"line": line, "by": "local", "number": 1},
            })
        );
        let common = usize::try_from(before).unwrap();
        assert_eq!(steps[1..=common], of_fork[1..=common]);
    }

    let path = format!("{run}/fork?seq={}", step["seq"]);
    for (body, part) in [
        (json!({"line": " "}), "is empty"),
        (json!({"line": "a\nb"}), "give one"),
        (json!({"line": "x".repeat(100_000)}), "give at most 65536"),
    ] {
        daemon.post_text(&path, &body.to_string()).refused(400, Some("line"), &[part]);
    }
    let body = r#"{"line": "x"}"#;
    daemon.post_text(&format!("{run}/fork?seq=1"), body).refused(404, None, &["not a step"]);
    daemon.post_text(&format!("{run}/fork?seq=0"), body).refused(404, None, &["not a step"]);
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
        (r#"{"role": "executor", "prompt": "x"}"#, Some("prompt"), "no agent of this turn"),
        (r#"{"role": "verifier", "system": ""}"#, Some("system"), "no agent of this turn"),
        ("{}", Some("role"), "role"),
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

    // What the model reads is the edited text; the state is that of the step.
    let steps: Vec<_> = trace.iter().filter(|line| line["event"] == "step").collect();
    let path = |step: &Value| format!("{run}/steps/{}/try", step["seq"]);
    let [first, last] = [steps[0], steps[steps.len() - 1]];
    let own = daemon.post_text(&path(last), r#"{"role": "executor"}"#).body;
    let prompt = &own["exchanges"][0]["prompt"];
    let body = json!({"role": "executor", "prompt": prompt, "system": "Be brief."});
    let edited = daemon.post_text(&path(first), &body.to_string()).body;
    let exchange = &edited["exchanges"][0];
    assert_eq!((&exchange["prompt"], &exchange["system"]), (prompt, &json!("Be brief.")));
    assert_eq!(edited["seq"], first["seq"]);
    let read = exchange["exact"].as_str().unwrap();
    assert!(read.contains("Be brief.") && read.contains(prompt.as_str().unwrap()), "{read}");
}
