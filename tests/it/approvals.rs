//! Approvals that hold a run: its steps wait in the journal until somebody decides.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::binary::prime;
use crate::daemon::{Answer, Daemon, Home, server_sent};
use crate::owners::Keyed;
use crate::webhooks::{next, receiver, webhook};

/// An executor that proposes another valid choice when one is rejected.
const UNIFORM: [&str; 1] = ["agents.executor.implementation=uniform"];

/// A run of one trajectory with this rule.
fn run(rule: &str) -> Value {
    json!({
        "task": "n-queens", "input": {"n": 5, "order": [0, 1, 2, 3, 4]}, "fanout": 1, "max_rounds": 1, "seed": 3,
        "approve": rule,
    })
}

fn until_waiting(daemon: &Daemon, run: &str) -> Value {
    daemon.until(run, |record| record["status"] == "waiting")
}

pub fn decide(daemon: &Daemon, run: &str, number: u64, decision: &Value) -> Answer {
    daemon.post_text(&format!("{run}/approvals/{number}"), &decision.to_string())
}

fn accept(daemon: &Daemon, run: &str, number: u64) {
    let accepted = decide(daemon, run, number, &json!({"verdict": "accept"}));
    assert_eq!(accepted.status, 200, "{accepted:?}");
}

/// The steps that wait: of which run, under which number, which line.
pub fn waiting(daemon: &Daemon) -> Vec<(String, u64, String)> {
    let page = daemon.get("/v1/approvals").body;
    let of = |approval: &Value| {
        let run = format!("/v1/runs/{}", approval["run"].as_str().unwrap());
        let line = approval["action"].as_str().unwrap().to_owned();
        (run, approval["number"].as_u64().unwrap(), line)
    };
    page["approvals"].as_array().unwrap().iter().map(of).collect()
}

/// Accepts whatever waits until the run is over; returns its record.
fn accept_all(daemon: &Daemon, run: &str) -> Value {
    loop {
        let record = daemon.until(run, |record| {
            !["queued", "running"].contains(&record["status"].as_str().unwrap())
        });
        if record["status"] != "waiting" {
            return record;
        }
        for (of, number, _) in waiting(daemon) {
            if of == run {
                accept(daemon, run, number);
            }
        }
    }
}

pub fn events(daemon: &Daemon, run: &str, name: &str) -> Vec<Value> {
    let all = server_sent(&daemon.text(&format!("{run}/events")));
    let named = all.into_iter().filter(|(_, of, _)| of == name);
    named.map(|(_, _, line)| serde_json::from_str(&line).unwrap()).collect()
}

#[test]
fn steps_wait_and_are_accepted_rejected_or_edited() {
    let daemon = Daemon::start(&UNIFORM);
    let run = daemon.submitted(&run("every step"));
    let held = until_waiting(&daemon, &run);
    assert_eq!((&held["steps"], &held["approvals"]["asked"]), (&json!(0), &json!(1)), "{held}");

    // Another line of the same state, which the verifier judges.
    let [(of, 1, first)] = &waiting(&daemon)[..] else { panic!("{:?}", waiting(&daemon)) };
    assert_eq!(of, &run);
    let other = ["0 1", "0 2"].map(|place| format!("place {place}"));
    let other = other.into_iter().find(|line| line != first).unwrap();
    let edited = decide(&daemon, &run, 1, &json!({"verdict": "edit", "line": other}));
    assert_eq!((edited.status, &edited.body["state"]), (200, &json!("decided")), "{edited:?}");

    let record = daemon.until(&run, |record| record["approvals"]["asked"] == 2);
    assert_eq!(record["steps"], 1, "{record}");
    let second = until_waiting(&daemon, &run);
    assert_eq!(second["approvals"]["edited"], 1, "{second}");
    let line = waiting(&daemon)[0].2.clone();
    let no = json!({"verdict": "reject", "reason": "not this one"});
    assert_eq!(decide(&daemon, &run, 2, &no).status, 200);
    daemon.until(&run, |record| record["approvals"]["asked"] == 3);

    let record = accept_all(&daemon, &run);
    assert_eq!(record["status"], "verified", "{record}");
    let counts = &record["approvals"];
    assert_eq!((&counts["edited"], &counts["rejected"]), (&json!(1), &json!(1)), "{record}");

    let steps = events(&daemon, &run, "step");
    let approval = &steps[0]["approval"];
    assert_eq!((&steps[0]["action"], &approval["proposed"]), (&json!(other), &json!(first)));
    assert_eq!((&approval["verdict"], &approval["by"]), (&json!("edit"), &json!("local")));
    // The verifier may have rejected others before it.
    let at = steps.iter().position(|step| step["approval"]["verdict"] == "reject").unwrap();
    let rejected = &steps[at];
    assert_eq!((&rejected["action"], &rejected["decision"]), (&json!(line), &json!("backtrack")));
    assert!(rejected["feedback"].as_str().unwrap().ends_with("not this one"), "{rejected}");
    assert_ne!(steps[at + 1]["action"], line, "the executor learns of it");
    let waited = events(&daemon, &run, "waiting");
    assert_eq!(counts["asked"], waited.len());

    // A wrong line of a reviewer is refused by the verifier like any other.
    let run = daemon.submitted(&self::run("every step"));
    until_waiting(&daemon, &run);
    let wrong = json!({"verdict": "edit", "line": "place 0 99"});
    assert_eq!(decide(&daemon, &run, 1, &wrong).status, 200);
    let record = daemon.until(&run, |record| record["approvals"]["asked"] == 2);
    assert_eq!((&record["steps"], &record["backtracks"]), (&json!(0), &json!(1)), "{record}");
}

#[test]
fn a_run_that_waits_outlives_the_process() {
    let home = Home::new();
    let daemon = Daemon::start_in(&home, &[]);
    let run = daemon.submitted(&run("every 2 steps"));
    let held = until_waiting(&daemon, &run);
    // What waits counts neither as an open run nor as one that the next process resumes.
    daemon.until("/readyz", |body| body["open_runs"] == 0);
    daemon.kill();

    let daemon = Daemon::start_in(&home, &[]);
    let without_time = |mut record: Value| {
        record.as_object_mut().unwrap().remove("updated_at");
        record
    };
    assert_eq!(without_time(daemon.get(&run).body), without_time(held));
    let page = waiting(&daemon);
    assert_eq!(page.len(), 1, "{page:?}");
    accept(&daemon, &run, 1);
    // Killed between the decision and what it leads to, or later.
    daemon.kill();

    let daemon = Daemon::start_in(&home, &[]);
    let record = accept_all(&daemon, &run);
    assert_eq!((&record["status"], &record["steps"]), (&json!("verified"), &json!(5)), "{record}");
    assert_eq!(record["approvals"]["accepted"], 2, "{record}");
    let steps = events(&daemon, &run, "step");
    let approved = steps.iter().filter(|step| !step["approval"].is_null());
    let depths: Vec<_> = approved.map(|step| step["depth"].as_u64().unwrap()).collect();
    assert_eq!(depths, [1, 3]);

    // The chain covers what was decided.
    let url = daemon.url("");
    let id = run.rsplit('/').next().unwrap();
    let verified = prime(&["runs", "verify-chain", id, "--url", &url]).output().unwrap();
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn the_deadline_decides_when_nobody_does() {
    let daemon = Daemon::start(&[]);
    let with = |otherwise: &str| {
        let mut request = run("every 3 steps");
        request["approve_within_ms"] = json!(1);
        request["approve_else"] = json!(otherwise);
        daemon.submitted(&request)
    };

    let accepted = with("accept");
    let record = daemon.finished(&accepted);
    assert_eq!(
        (&record["status"], &record["approvals"]["accepted"]),
        (&json!("verified"), &json!(1))
    );
    let steps = events(&daemon, &accepted, "step");
    assert_eq!(steps[2]["approval"]["by"], "deadline", "{}", steps[2]);

    let record = daemon.finished(&with("end"));
    assert_eq!((&record["status"], &record["steps"]), (&json!("cancelled"), &json!(2)), "{record}");

    let daemon = Daemon::start(&UNIFORM);
    let mut request = run("step.depth == 0");
    request["approve_within_ms"] = json!(1);
    request["approve_else"] = json!("reject");
    let record = daemon.finished(&daemon.submitted(&request));
    assert_eq!(
        (&record["status"], &record["approvals"]["rejected"]),
        (&json!("unverified"), &json!(5))
    );
}

#[test]
fn the_first_decision_stands_and_says_whose_it_is() {
    let keyed = Keyed::start(&[("ann", ""), ("bob", ", admin=true"), ("eve", "")], &UNIFORM);
    let post = |key: &str, path: &str, body: Value| keyed.post(key, path, &body);
    let submitted = post("ann", "/v1/runs", run("every step"));
    let run = submitted.location.unwrap();
    let approval = format!("{run}/approvals/1");
    keyed.until("ann", &run, |record| record["status"] == "waiting");

    // Strangers neither see nor decide.
    assert_eq!(keyed.get("eve", "/v1/approvals").body["approvals"], json!([]));
    post("eve", &approval, json!({"verdict": "accept"})).refused(404, None, &["no run"]);
    assert_eq!(keyed.get("eve", &format!("{run}/approvals")).status, 404);
    assert_eq!(keyed.get("bob", "/v1/approvals?key=*").body["approvals"][0]["number"], 1);

    post("ann", &format!("{run}/approvals/2"), json!({"verdict": "accept"})).refused(
        404,
        None,
        &["no approval 2"],
    );
    post("ann", &format!("{run}/approvals/x"), json!({"verdict": "accept"})).refused(
        404,
        None,
        &["x"],
    );
    post("ann", &approval, json!({"verdict": "edit"})).refused(400, Some("line"), &["is missing"]);
    post("ann", &approval, json!({"verdict": "edit", "line": "a\nb"})).refused(
        400,
        Some("line"),
        &["several lines"],
    );
    post("ann", &approval, json!({"verdict": "accept", "line": "a"})).refused(
        400,
        Some("line"),
        &["`edit` only"],
    );
    post("ann", &approval, json!({"verdict": "maybe"})).refused(400, Some("verdict"), &["maybe"]);

    let said = json!({"verdict": "end", "reason": "no budget"});
    assert_eq!(post("bob", &approval, said.clone()).status, 200);
    post("ann", &approval, json!({"verdict": "accept"})).refused(
        409,
        None,
        &["bob has decided", "end (no budget)"],
    );
    assert_eq!(post("bob", &approval, said).status, 200, "a repetition changes nothing");
    let record = keyed.until("ann", &run, |record| record["status"] == "cancelled");
    assert_eq!(record["steps"], 0, "{record}");

    // After the end.
    let submitted = post("ann", "/v1/runs", self::run("every step"));
    let run = submitted.location.unwrap();
    keyed.until("ann", &run, |record| record["status"] == "waiting");
    assert_eq!(post("ann", &format!("{run}/cancel"), Value::Null).body["status"], "cancelled");
    post("ann", &format!("{run}/approvals/1"), json!({"verdict": "accept"})).refused(
        409,
        None,
        &["cancel has decided"],
    );
}

#[test]
fn other_trajectories_go_on() {
    let mut request = run("step.trajectory == 0 && step.depth >= 1");
    request["fanout"] = json!(3);

    // Two of three agree, so that nobody needs the third.
    let daemon = Daemon::start(&[]);
    let run = daemon.submitted(&request);
    assert_eq!(daemon.finished(&run)["status"], "verified");
    if daemon.get(&run).body["approvals"]["asked"] == 1 {
        let late = decide(&daemon, &run, 1, &json!({"verdict": "accept"}));
        // The run may have ended before the step was listed.
        assert!([404, 409].contains(&late.status), "{late:?}");
    }
    assert_eq!(daemon.get("/v1/approvals").body["approvals"], json!([]));

    let daemon = Daemon::start(&["run.early_stop=false"]);
    let run = daemon.submitted(&request);
    let held = until_waiting(&daemon, &run);
    assert_eq!(held["approvals"]["asked"], 1, "{held}");
    let trace = daemon.text(&format!("{run}/trace"));
    let ended = trace.matches(r#""event":"trajectory_ended""#).count();
    assert_eq!(ended, 2, "the others have ended: {held}");
    let record = accept_all(&daemon, &run);
    assert_eq!(record["status"], "verified", "{record}");
}

#[test]
fn rules_that_say_nothing_are_refused() {
    let daemon = Daemon::start(&[]);
    for (rule, part) in [
        ("sometimes", "every N steps"),
        ("every 0 steps", "from 1 on"),
        ("answer.x > 3", "`answer`"),
        ("step.depth >", "not a CEL expression"),
    ] {
        daemon.submit(&run(rule)).refused(400, Some("approve"), &[part]);
    }
    let mut late = run("flagged");
    late["approve_within_ms"] = json!(0);
    daemon.submit(&late).refused(400, Some("approve_within_ms"), &["must be"]);

    // The operator's rule is nobody else's to change.
    let daemon = Daemon::start(&["run.approve=flagged"]);
    daemon.submit(&run("")).refused(400, Some("approve"), &["\"flagged\""]);

    let mut command = prime(&["run", "n-queens", "--set", "run.approve=flagged"]);
    let foreground = command.output().unwrap();
    assert_eq!(foreground.status.code(), Some(2));
    assert!(String::from_utf8(foreground.stderr).unwrap().contains("run.approve"));
    let mut command = prime(&["config", "show", "--set", "run.approve=always"]);
    let refused = command.output().unwrap();
    assert!(String::from_utf8(refused.stderr).unwrap().contains("`run.approve` is \"always\""));
}

#[test]
fn what_waits_is_told_and_decided_on_the_command_line() {
    let (url, messages) = receiver(&[204]);
    let hook = webhook("ops", &url, ", events=[\"run.waiting\", \"run.ended\"]");
    let daemon = Daemon::start(&[&hook]);
    let run = daemon.submitted(&run("step.depth == 0"));
    let said = next(&messages).verified();
    assert_eq!((&said["type"], &said["data"]["approvals"]), (&json!("run.waiting"), &json!([1])));
    until_waiting(&daemon, &run);

    let (id, url) = (run.rsplit('/').next().unwrap(), daemon.url(""));
    let command = |arguments: &[&str]| {
        let output = prime(&[arguments, &["--url", &url]].concat()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout) + &text(output.stderr))
    };
    let (code, listed) = command(&["runs", "approvals"]);
    assert!(code == Some(0) && listed.contains(id) && listed.contains("place 0"), "{listed}");
    let (code, accepted) = command(&["runs", "approve", id, "1", "--reason", "fine"]);
    assert!(code == Some(0) && accepted.contains("accepted by local: fine"), "{accepted}");
    let (code, late) = command(&["runs", "reject", id, "1"]);
    assert!(code == Some(1) && late.contains("local has decided"), "{late}");

    daemon.finished(&run);
    assert_eq!(next(&messages).verified()["type"], "run.ended");
    let (_, all) = command(&["runs", "approvals", id]);
    assert!(all.contains("accepted by local"), "{all}");
}

#[test]
fn readers_follow_a_run_that_waits() {
    let daemon = Daemon::start(&[]);
    let run = daemon.submitted(&run("every 4 steps"));
    until_waiting(&daemon, &run);
    // One stream, opened while the run is nowhere, sees it to its end.
    let address = daemon.url(&format!("{run}/events"));
    let client = daemon.client.clone();
    let reader = std::thread::spawn(move || client.get(address).send().unwrap().text().unwrap());
    accept(&daemon, &run, 1);
    let seen = server_sent(&reader.join().unwrap());
    assert!(seen.iter().any(|(_, name, _)| name == "finished"), "{seen:?}");
    let _: Arc<Home> = daemon.kill();
}

#[test]
fn a_run_that_waits_ends_at_its_deadline() {
    let daemon = Daemon::start(&UNIFORM);
    let mut request = run("every step");
    let deadline = Timestamp::now() + SignedDuration::from_secs(1);
    request["deadline"] = json!(deadline.to_string());
    request["approve_else"] = json!("accept");

    let run = daemon.submitted(&request);
    let record = daemon.finished(&run);
    assert_eq!(record["outcome"], "deadline_passed", "{record}");
    let [approval] = events(&daemon, &run, "waiting").try_into().unwrap();
    assert_eq!(approval["depth"], 0, "nobody accepted it: {approval}");
}

#[test]
fn a_cancel_that_meets_a_decision_ends_the_run() {
    let daemon = Daemon::start(&UNIFORM);
    for _ in 0..12 {
        let run = daemon.submitted(&run("every step"));
        until_waiting(&daemon, &run);
        std::thread::scope(|scope| {
            scope.spawn(|| decide(&daemon, &run, 1, &json!({"verdict": "accept"})));
            scope.spawn(|| assert_eq!(daemon.post(&format!("{run}/cancel")).status, 200));
        });
        let record = daemon.get(&run).body;
        assert_eq!(record["status"], "cancelled", "{record}");
    }
}

#[test]
fn a_fork_is_under_the_daemons_rule() {
    let daemon = Daemon::start(&UNIFORM);
    let mut free = run("");
    free.as_object_mut().unwrap().remove("approve");
    let parent = daemon.submitted(&free);
    daemon.finished(&parent);

    let ruled = Daemon::start_in(&daemon.kill(), &[UNIFORM[0], "run.approve=every step"]);
    let fork = ruled.post(&format!("{parent}/fork?seq=1"));
    assert_eq!(fork.status, 202, "{fork:?}");
    until_waiting(&ruled, fork.location.as_deref().unwrap());
}

#[test]
fn a_person_may_edit_a_line_of_a_search_by_probabilities() {
    let daemon = Daemon::start(&["agents.executor.implementation=llama"]);
    let request = json!({
        "task": "tower-of-hanoi", "index": 0, "fanout": 2, "strategy": "beam",
        "approve": "step.depth == 1",
    });
    let run = daemon.submitted(&request);
    until_waiting(&daemon, &run);
    for (of, number, line) in waiting(&daemon) {
        let edited = decide(&daemon, &of, number, &json!({"verdict": "edit", "line": line}));
        assert_eq!(edited.status, 200, "{edited:?}");
    }
    let record = accept_all(&daemon, &run);
    assert_ne!(record["status"], "failed", "{record}");
    assert!(record["approvals"]["edited"].as_u64().unwrap() > 0, "{record}");
}

#[test]
fn a_key_has_so_many_runs_that_wait() {
    let keys = [("ann", ""), ("bob", "")];
    let keyed = Keyed::start(&keys, &[UNIFORM[0], "server.key_waiting_runs_max=1"]);
    let first = keyed.post("ann", "/v1/runs", &run("every step")).location.unwrap();
    // Once it has left the memory.
    keyed.until("ann", "/readyz", |body| body["open_runs"] == 0);

    let refused = keyed.post("ann", "/v1/runs", &run("every step"));
    refused.refused(429, None, &["1 runs of this key wait", "server.key_waiting_runs_max"]);
    assert_eq!(refused.body["error"]["code"], "too_many_waiting_runs");
    // Other keys, and runs that hold no step, are not concerned.
    let mut plain = run("");
    plain.as_object_mut().unwrap().remove("approve");
    assert_eq!(keyed.post("ann", "/v1/runs", &plain).status, 202);
    assert_eq!(keyed.post("bob", "/v1/runs", &run("every step")).status, 202);

    assert_eq!(keyed.post("ann", &format!("{first}/cancel"), &json!({})).status, 200);
    keyed.until("ann", &first, |record| record["status"] == "cancelled");
    assert_eq!(keyed.post("ann", "/v1/runs", &run("every step")).status, 202);
}
