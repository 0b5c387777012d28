//! Assignees of flagged steps, and reviews as preference pairs.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::header::AUTHORIZATION;
use serde_json::{Value, json};

use crate::binary::{Done, done};
use crate::daemon::{Answer, Daemon, is_over};
use crate::owners::Keyed;
use crate::reviews::{DISPUTED, disputed, flagged};

fn assign(daemon: &Daemon, key: &str, run: &str, body: &Value) -> Answer {
    let patch = daemon.client.patch(daemon.url(&format!("{run}/reviews")));
    let patch = patch.header(AUTHORIZATION, format!("Bearer {key}")).body(body.to_string());
    patch.send().unwrap().into()
}

fn seqs(page: &Value) -> Vec<u64> {
    page["steps"].as_array().unwrap().iter().map(|step| step["seq"].as_u64().unwrap()).collect()
}

fn ids(page: &Value) -> Vec<&str> {
    page["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect()
}

fn client(daemon: &Daemon, words: &[&str]) -> Done {
    done(&[&["runs"], words, &["--url", &daemon.url("")]].concat())
}

#[test]
fn steps_are_assigned_and_listed_by_assignee() {
    let daemon = Daemon::start(&DISPUTED);
    let run = daemon.submitted(&disputed());
    daemon.finished(&run);
    let id = run.strip_prefix("/v1/runs/").unwrap();
    let all = flagged(&daemon, &run);
    let [first, second, third] = all[..3] else { panic!("three flagged steps") };
    let other = daemon.submitted(&disputed());
    daemon.finished(&other);

    let set =
        |seq: u64, name: Value| assign(&daemon, "", &run, &json!({"seq": seq, "assignee": name}));
    assert_eq!(set(first, json!("ada")).body["assignee"], "ada");
    assert_eq!(set(second, json!("me")).body["assignee"], "local");
    assert_eq!(set(third, json!("ada")).body["assignee"], "ada");
    // The last one stands; to nobody and back.
    assert_eq!(set(third, Value::Null).body["assignee"], Value::Null);
    assert_eq!(set(third, json!("größe <b>")).body["assignee"], "größe <b>");

    let of = |who: &str| seqs(&daemon.get(&format!("{run}/reviews?limit=1000{who}")).body);
    assert_eq!(of(""), all);
    assert_eq!((of("&assignee=ada"), of("&assignee=me")), (vec![first], vec![second]));
    assert_eq!(of("&assignee=none"), all[3..]);
    assert_eq!(of("&assignee=eve"), [0; 0]);
    let runs = |query: &str| daemon.get(&format!("/v1/runs?{query}")).body;
    assert_eq!(ids(&runs("assignee=ada")), [id]);
    assert_eq!(ids(&runs("assignee=local&needs_review=true&task=bubble-sort")), [id]);
    assert_eq!(ids(&runs("assignee=none")).len(), 2);
    assert_eq!(ids(&runs("assignee=eve")), [""; 0]);
    daemon.get("/v1/runs?assignee=ada&q=x").refused(400, Some("assignee"), &["needs_review alone"]);

    // Somebody else may decide, and the step stays whose it was.
    let path = format!("{run}/reviews");
    let decided = daemon.post_text(&path, &json!({"seq": first, "verdict": "reject"}).to_string());
    assert_eq!(
        (&decided.body["review"]["by"], &decided.body["assignee"]),
        (&json!("local"), &json!("ada"))
    );

    for (body, status, field, part) in [
        (json!({"seq": 1, "assignee": "ada"}), 422, "seq", "event 1 "),
        (json!({"seq": first}), 400, "assignee", "missing"),
        (json!({"seq": first, "assignee": "x".repeat(65)}), 400, "assignee", "at most 64"),
        (json!({"seq": first, "assignee": " "}), 400, "assignee", "null for nobody"),
        (json!({"seq": first, "assignee": "a\u{1b}[2J"}), 400, "assignee", "control"),
        (json!({"seq": first, "assignee": "a\u{202e}b"}), 400, "assignee", "invisible"),
        (json!({"seq": first, "assignee": "me\u{200b}"}), 400, "assignee", "invisible"),
        (json!({"seq": first, "assignee": "me "}), 400, "assignee", "blanks"),
        (json!({"seq": first, "assignee": "none"}), 400, "assignee", "give null"),
    ] {
        assign(&daemon, "", &run, &body).refused(status, Some(field), &[part]);
    }

    // All of it is durable, and the client says the same.
    let daemon = Daemon::start_in(&daemon.kill(), &DISPUTED);
    let listed = client(&daemon, &["reviews", id, "--assignee", "ada", "--output", "json"]);
    assert_eq!(seqs(&listed.json(0)), [first]);
    let given = client(&daemon, &["assign", id, &first.to_string(), "bob"]);
    assert!(given.code == 0 && given.stdout.contains("assigned to bob"), "{}", given.stderr);
    let given = client(&daemon, &["assign", id, &first.to_string(), "none"]);
    assert!(given.stdout.contains("assigned to nobody"), "{}", given.stderr);
    let list = client(&daemon, &["list", "--assignee", "me", "--output", "json"]);
    assert_eq!(ids(&list.json(0)), [id]);
}

#[test]
fn steps_are_assigned_to_keys_that_may_see_the_run() {
    let keyed = Keyed::start(&[("ada", ""), ("bob", ""), ("eve", ", admin=true")], &DISPUTED);
    let record = keyed.post("ada", "/v1/runs", &disputed()).body;
    let id = record["id"].as_str().unwrap();
    let run = format!("/v1/runs/{id}");
    keyed.until("ada", &run, is_over);
    let seq = seqs(&keyed.get("ada", &format!("{run}/reviews")).body)[0];
    let set = |key: &str, name: &str| {
        assign(&keyed.daemon, key, &run, &json!({"seq": seq, "assignee": name}))
    };
    let mine = |key: &str| keyed.get(key, "/v1/runs?assignee=me&needs_review=true").body;

    for name in ["bob", "nobody", "local"] {
        set("ada", name).refused(400, Some("assignee"), &["no key that may see this run"]);
    }
    set("bob", "bob").refused(404, None, &["no run"]);
    assert_eq!(set("ada", "eve").body["assignee"], "eve");
    assert_eq!((ids(&mine("eve")), ids(&mine("ada"))), (vec![id], vec![]));
    assert_eq!(set("eve", "ada").body["assignee"], "ada");
    assert_eq!(
        (ids(&mine("eve")), ids(&mine("ada")), ids(&mine("bob"))),
        (vec![], vec![id], vec![])
    );
    assert_eq!(set("eve", "me").body["assignee"], "eve");
}

/// The steps of a run's trace by their numbers.
fn steps(daemon: &Daemon, run: &str) -> BTreeMap<u64, Value> {
    let trace = daemon.text(&format!("{run}/trace?states=true"));
    let events = trace.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let steps = events.filter(|event| event["event"] == "step");
    steps.map(|step| (step["seq"].as_u64().unwrap(), step)).collect()
}

fn completion(step: &Value) -> String {
    let action = step["action"].as_str().unwrap();
    match step["derivation"].as_str() {
        Some(derivation) if !derivation.is_empty() => format!("{derivation}\n{action}"),
        _ => action.to_owned(),
    }
}

#[test]
fn what_reviewers_reject_makes_pairs_with_better_lines_of_the_same_state() {
    let daemon = Daemon::start(&DISPUTED);
    let run = daemon.submitted(&disputed());
    daemon.finished(&run);
    let id = run.strip_prefix("/v1/runs/").unwrap();
    let lines = |query: &str| -> Vec<Value> {
        let text = daemon.text(&format!("/v1/reviews/pairs?{query}"));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    assert_eq!(lines("left_out=true"), [Value::Null; 0], "nothing is reviewed");

    // All are rejected but the last one, which is accepted.
    let all = flagged(&daemon, &run);
    let (accepted, rejected) = all.split_last().unwrap();
    let review = |seq: u64, verdict: &str| {
        let note = "<b>\u{1b}[2J\n\"no\"";
        let body = json!({"seq": seq, "verdict": verdict, "note": note}).to_string();
        assert_eq!(daemon.post_text(&format!("{run}/reviews"), &body).status, 200);
    };
    for seq in rejected {
        review(*seq, "reject");
    }
    review(*accepted, "accept");

    // What there is to prefer is in the trace.
    let steps = steps(&daemon, &run);
    let better = |bad: &Value| {
        let here = |step: &&Value| step["state"] == bad["state"] && step["action"] != bad["action"];
        let is_clean = |step: &&Value| step["decision"] == "proceed" && step["score"] == 0.0;
        let is_rejected = |step: &Value| {
            let is_same =
                |no: &Value| no["state"] == step["state"] && no["action"] == step["action"];
            rejected.iter().any(|seq| is_same(&steps[seq]))
        };
        let others = steps.values().filter(here).filter(|step| !is_rejected(step));
        let decided = others.clone().find(|step| step["seq"] == *accepted);
        decided.or_else(|| others.clone().find(is_clean))
    };
    let (mut expected, mut left_out, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    for seq in rejected {
        let bad = &steps[seq];
        match better(bad) {
            None => left_out.push((*seq, "no_better_line")),
            Some(_) if !seen.insert((bad["state"].to_string(), completion(bad))) => {
                left_out.push((*seq, "repeated"));
            }
            Some(good) => expected.push((*seq, completion(bad), completion(good))),
        }
    }
    assert!(expected.len() > 2, "{expected:?}");

    let pairs = lines(&format!("run={id}"));
    let text = |pair: &Value, name: &str, role: &str| {
        assert_eq!(
            (&pair[name][0]["role"], pair[name].as_array().unwrap().len()),
            (&json!(role), 1)
        );
        pair[name][0]["content"].as_str().unwrap().to_owned()
    };
    let found: Vec<_> = pairs
        .iter()
        .map(|pair| {
            let seq = pair["rejected_seq"].as_u64().unwrap();
            (seq, text(pair, "rejected", "assistant"), text(pair, "chosen", "assistant"))
        })
        .collect();
    assert_eq!(found, expected);
    for pair in &pairs {
        assert!(text(pair, "prompt", "user").starts_with("bubble-sort"), "{pair}");
        assert_eq!((&pair["source"], &pair["task"]), (&json!(id), &json!("bubble-sort")));
        assert_eq!(
            (&pair["reviewer"], &pair["note"]),
            (&json!("local"), &json!("<b>\u{1b}[2J\n\"no\""))
        );
        assert_eq!(pair["imported_from"], Value::Null);
    }

    let with_left_out = lines(&format!("run={id}&left_out=true"));
    let without: Vec<_> = with_left_out
        .iter()
        .filter(|line| line.get("left_out").is_some())
        .map(|line| (line["seq"].as_u64().unwrap(), line["left_out"].as_str().unwrap()))
        .collect();
    assert_eq!(without, left_out);
    assert_eq!(with_left_out.len(), pairs.len() + left_out.len());

    // All runs, once they are found by their flags; filters as in lists.
    daemon.until("/v1/runs?flagged=true", |page| ids(page) == [id]);
    assert_eq!(lines(""), pairs);
    assert_eq!(lines("task=bubble-sort&agent=scripted"), pairs);
    assert_eq!(lines("task=gcd-euclidean"), [Value::Null; 0]);
    let path = "/v1/reviews/pairs";
    daemon.get(&format!("{path}?run={id}&task=x")).refused(400, Some("run"), &["left_out alone"]);
    daemon.get(&format!("{path}?run=run_x")).refused(404, None, &["run_x"]);
    daemon.get(&format!("{path}?since=soon")).refused(400, Some("since"), &["a time"]);

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pairs.jsonl");
    let saved = client(&daemon, &["pairs", id, "--out", file.to_str().unwrap()]);
    assert_eq!(saved.code, 0, "{}", saved.stderr);
    assert!(saved.stderr.contains(&format!("{} pairs", pairs.len())), "{}", saved.stderr);
    let written = std::fs::read_to_string(&file).unwrap();
    let written: Vec<Value> =
        written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(written, pairs);
}

#[test]
fn a_line_that_was_rejected_once_is_preferred_to_none_in_its_state() {
    let daemon = Daemon::start(&DISPUTED);
    let run = daemon.submitted(&disputed());
    daemon.finished(&run);
    let steps = steps(&daemon, &run);
    // Each line once in its state: its repetitions in other trajectories have no review.
    let mut rejected = BTreeSet::new();
    for seq in flagged(&daemon, &run) {
        let step = &steps[&seq];
        if rejected.insert((step["state"].to_string(), step["action"].to_string())) {
            let body = json!({"seq": seq, "verdict": "reject"}).to_string();
            assert_eq!(daemon.post_text(&format!("{run}/reviews"), &body).status, 200);
        }
    }

    let id = run.strip_prefix("/v1/runs/").unwrap();
    let text = daemon.text(&format!("/v1/reviews/pairs?run={id}"));
    assert!(!text.is_empty());
    for line in text.lines() {
        let pair: Value = serde_json::from_str(line).unwrap();
        let chosen = &steps[&pair["chosen_seq"].as_u64().unwrap()];
        let key = (chosen["state"].to_string(), chosen["action"].to_string());
        assert!(!rejected.contains(&key), "{pair}");
    }
}
