//! What runs add up to, labels of clients, and the runs of other keys.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::binary::done;
use crate::daemon::{Daemon, Home};
use crate::owners::Keyed;

/// An executor that makes mistakes.
const ERRING: &[&str] = &[
    "agents.executor.implementation=scripted",
    "agents.executor.error_rate=0.3",
    "run.tau_soft=0.25",
];

fn ids(page: &Value) -> Vec<&str> {
    page["runs"].as_array().expect("a list").iter().map(|run| run["id"].as_str().unwrap()).collect()
}

/// The lines that constraints refused, by their names, in a run's trace; "" is for those that no
/// constraint refused.
fn refused(daemon: &Daemon, run: &str) -> BTreeMap<String, u64> {
    let mut refused = BTreeMap::new();
    for line in daemon.text(&format!("{run}/trace?states=false")).lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        if !["retry", "backtrack"].map(Value::from).contains(&event["decision"]) {
            continue;
        }
        let names = event["violations"].as_array().unwrap().iter();
        let mut names: Vec<&str> = names.map(|name| name.as_str().unwrap()).collect();
        if names.is_empty() {
            names.push("");
        }
        for name in names {
            *refused.entry(name.to_owned()).or_default() += 1;
        }
    }
    refused
}

#[test]
fn an_overview_adds_up_what_the_records_and_traces_of_runs_say() {
    let home = Home::new();
    let daemon = Daemon::start_in(&home, ERRING);
    let submit = |task: &str, seed: u64, labels: Value| {
        let run = json!({"task": task, "seed": seed, "fanout": 2, "labels": labels});
        let location = daemon.submitted(&run);
        (daemon.finished(&location), location)
    };
    let runs = [
        submit("bubble-sort", 1, json!({"team": "red"})),
        submit("bubble-sort", 2, json!({"team": "blue"})),
        submit("gcd-euclidean", 3, json!({})),
    ];
    let sum = |path: &str, of: &[usize]| -> u64 {
        of.iter().map(|at| runs[*at].0.pointer(path).unwrap().as_u64().unwrap()).sum()
    };
    let noted = |overview: &Value| overview["total"]["open"] == 0 && overview["total"]["runs"] == 3;
    let overview = daemon.until("/v1/overview", noted);

    let total = &overview["total"];
    let all = [0, 1, 2];
    assert_eq!(total["steps"], sum("/steps", &all), "{overview}");
    assert_eq!(total["proposals"], sum("/proposals", &all));
    assert_eq!(total["refused"], sum("/retries", &all) + sum("/backtracks", &all));
    assert!(total["refused"].as_u64() > Some(0), "the executor errs");
    assert_eq!(total["wall_ms"], sum("/wall_ms", &all));
    let verified = runs.iter().filter(|(run, _)| run["verified"] == true).count();
    assert_eq!(total["verified"], verified);
    assert_eq!(overview["days"][0]["runs"], 3, "{overview}");
    let outcomes = total["outcomes"].as_object().unwrap();
    assert_eq!(outcomes.values().map(|runs| runs.as_u64().unwrap()).sum::<u64>(), 3);
    assert!(overview.get("key").is_none() && total["runs_per_hour"].as_f64() > Some(0.0));

    let tasks = overview["tasks"].as_array().unwrap();
    assert_eq!([&tasks[0]["name"], &tasks[1]["name"]], ["bubble-sort", "gcd-euclidean"]);
    assert_eq!([&tasks[0]["runs"], &tasks[1]["runs"]], [2, 1]);
    assert_eq!(tasks[0]["steps"], sum("/steps", &[0, 1]));

    // What refused lines is in the traces.
    let mut expected: BTreeMap<(String, String), u64> = BTreeMap::new();
    for (record, location) in &runs {
        let task = record["task"].as_str().unwrap();
        for (constraint, lines) in refused(&daemon, location) {
            *expected.entry((task.to_owned(), constraint)).or_default() += lines;
        }
    }
    let of = |overview: &Value| -> BTreeMap<(String, String), u64> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let constraints = overview["constraints"].as_array().unwrap().iter();
        let entry = |of: &Value| {
            ((text(&of["task"]), text(&of["constraint"])), of["lines"].as_u64().unwrap())
        };
        constraints.map(entry).collect()
    };
    assert!(!expected.is_empty());
    assert_eq!(of(&overview), expected);

    // The count of a constraint leads to its runs.
    for (task, constraint) in expected.keys().filter(|(_, constraint)| !constraint.is_empty()) {
        let query = format!("/v1/runs?task={task}&constraint={constraint}&sort=created");
        let with = runs.iter().filter(|(record, location)| {
            record["task"] == **task && refused(&daemon, location).contains_key(constraint)
        });
        let with: Vec<_> = with.map(|(record, _)| record["id"].as_str().unwrap()).collect();
        assert_eq!(ids(&daemon.get(&query).body), with, "{query}");
    }
    assert_eq!(ids(&daemon.get("/v1/runs?constraint=no-such").body), [""; 0]);

    let runs_of =
        |query: &str| daemon.get(&format!("/v1/overview?{query}")).body["total"]["runs"].clone();
    assert_eq!(runs_of("task=gcd-euclidean"), 1);
    assert_eq!(runs_of("label=team"), 2);
    assert_eq!(runs_of("label=team:red&task=bubble-sort"), 1);
    assert_eq!(runs_of("since=2100-01-01T00:00:00Z"), 0);
    assert_eq!(runs_of("before=2000-01-01T00:00:00Z"), 0);
    for (query, field, part) in [
        ("since=soon", "since", "must be a time such as"),
        ("since=2026-01-02T00:00:00Z&before=2026-01-01T00:00:00Z", "before", "after `since`"),
        ("by=task", "by", "unknown field"),
    ] {
        daemon.get(&format!("/v1/overview?{query}")).refused(400, Some(field), &[part]);
    }

    let client =
        |words: &[&str]| done(&[&["runs", "overview", "--url", &daemon.url("")], words].concat());
    let shown: Value = client(&["--label", "team", "--output", "json"]).json(0);
    assert_eq!(shown["total"]["runs"], 2);
    let text = client(&[]);
    assert_eq!(text.code, 0, "{}", text.stderr);
    assert!(text.stdout.starts_with("3 runs from ") && text.stdout.contains("gcd-euclidean"));
    assert!(text.stdout.contains("refused lines"), "{}", text.stdout);

    // The figures are those of the journal, not of the process.
    let home = daemon.kill();
    let again = Daemon::start_in(&home, ERRING);
    let after = again.until("/v1/overview", noted);
    assert_eq!((&after["total"]["steps"], of(&after)), (&total["steps"], expected));
}

#[test]
fn labels_are_shown_searched_and_replaced() {
    let home = Home::new();
    let sets = ["agents.executor.implementation=reference"];
    let daemon = Daemon::start_in(&home, &sets);
    let run =
        json!({"task": "gcd-euclidean", "labels": {"team": "red", "ticket/1": "größe: \"7\""}});
    let accepted = daemon.submit(&run);
    assert_eq!(accepted.body["labels"], run["labels"], "{:?}", accepted.body);
    let location = accepted.location.expect("accepted");
    let record = daemon.finished(&location);
    assert_eq!(record["labels"], run["labels"]);
    let plain = daemon.finished(&daemon.submitted(&json!({"task": "gcd-euclidean"})));
    assert!(plain.get("labels").is_none(), "{plain}");
    let id = record["id"].as_str().unwrap();

    let has = |daemon: &Daemon, query: &str, expected: &[&str]| {
        daemon.until(&format!("/v1/runs?{query}"), |page| ids(page) == expected)
    };
    let page = has(&daemon, "label=team", &[id]);
    assert_eq!(page["runs"][0]["labels"], run["labels"]);
    has(&daemon, "label=team:red", &[id]);
    has(&daemon, "label=ticket/1:gr%C3%B6%C3%9Fe:+%227%22", &[id]);
    for query in ["label=red", "label=tea", "label=team:re", "label=team:"] {
        has(&daemon, query, &[]);
    }
    assert_eq!(
        daemon.get("/v1/runs?fields=labels&label=team").body["runs"][0],
        json!({"labels": run["labels"]})
    );

    let put = |path: &str, body: &Value| -> crate::daemon::Answer {
        let request = daemon.client.put(daemon.url(path)).body(body.to_string());
        request.send().unwrap().into()
    };
    let labels = format!("{location}/labels");
    let changed = put(&labels, &json!({"team": "blue"}));
    assert_eq!((changed.status, &changed.body["labels"]), (200, &json!({"team": "blue"})));
    has(&daemon, "label=team:blue", &[id]);
    has(&daemon, "label=team:red", &[]);

    let many: BTreeMap<String, String> =
        (0..17).map(|number| (format!("l{number}"), String::new())).collect();
    for (bad, part) in [
        (json!(many), "there are 17; give at most 16"),
        (json!({"a b": "x"}), "\"a b\" is not a name for a label"),
        (json!({"a": "x".repeat(129)}), "has 129 characters; give at most 128"),
        (json!({"a": "x\u{7}"}), "U+0007"),
        (json!({"a": "\u{2067}x"}), "U+2067"),
    ] {
        put(&labels, &bad).refused(400, Some("labels"), &[part]);
        let submitted = daemon.submit(&json!({"task": "gcd-euclidean", "labels": bad}));
        submitted.refused(400, Some("labels"), &[part]);
    }
    for query in ["label=", "label=:red", "label=a+b"] {
        for path in ["runs", "overview"] {
            let answer = daemon.get(&format!("/v1/{path}?{query}"));
            answer.refused(400, Some("label"), &["is not a name for a label"]);
        }
    }
    put(&labels, &json!({"a": 7})).refused(400, Some("a"), &["expected a string"]);
    assert_eq!(put("/v1/runs/run_none/labels", &json!({})).status, 404);

    let patch = |body: &Value| -> crate::daemon::Answer {
        let request = daemon.client.patch(daemon.url(&labels)).body(body.to_string());
        request.send().unwrap().into()
    };
    let both = patch(&json!({"a": "1", "none": null}));
    assert_eq!((both.status, &both.body["labels"]), (200, &json!({"a": "1", "team": "blue"})));
    patch(&json!({"a b": null})).refused(
        400,
        Some("labels"),
        &["\"a b\" is not a name for a label"],
    );
    let fifteen: BTreeMap<String, String> =
        (0..15).map(|number| (format!("l{number}"), String::new())).collect();
    patch(&json!(fifteen)).refused(400, Some("labels"), &["there are 17; give at most 16"]);
    // Removed and set ones are counted apart.
    let mut changes: BTreeMap<String, Option<String>> =
        fifteen.keys().map(|name| (name.clone(), None)).collect();
    changes.extend(["a", "b"].map(|name| (name.to_owned(), None)));
    patch(&json!(changes)).refused(400, Some("labels"), &["there are 17; give at most 16"]);
    changes.remove("b");
    changes.insert("team".to_owned(), Some("blue".to_owned()));
    assert_eq!(patch(&json!(changes)).body["labels"], json!({"team": "blue"}));

    // Changes that are made at the same time are all kept.
    std::thread::scope(|scope| {
        for number in 0..8 {
            let patch = &patch;
            scope.spawn(move || {
                let name = format!("part{number}");
                assert_eq!(patch(&json!({name: "x"})).status, 200);
            });
        }
    });
    let parts = daemon.get(&location).body["labels"].clone();
    assert_eq!(parts.as_object().unwrap().len(), 9, "{parts}");
    assert_eq!(put(&labels, &json!({"team": "blue"})).status, 200);

    // A fork has those of its parent's acceptance; they are still there for the next process.
    let url = daemon.url("");
    let client = |words: &[&str]| done(&[words, &["--url", &url, "--output", "json"]].concat());
    let relabelled: Value =
        client(&["runs", "label", id, "shift:night", "--remove", "team"]).json(0);
    assert_eq!(relabelled["labels"], json!({"shift": "night"}));
    let refused = client(&["runs", "label", id, "--remove", "team"]);
    assert!(refused.code != 0 && refused.stderr.contains("no such label"), "{}", refused.stderr);
    let submitted: Value =
        client(&["runs", "submit", "gcd-euclidean", "--label", "shift:day", "--wait"]).json(0);
    assert_eq!(submitted["labels"], json!({"shift": "day"}));
    has(&daemon, "label=shift:night", &[id]);
    has(&daemon, "label=shift:day", &[submitted["id"].as_str().unwrap()]);
    assert_eq!(
        ids(&client(&["runs", "list", "--label", "shift:day"]).json(0)),
        [submitted["id"].as_str().unwrap()]
    );

    let home = daemon.kill();
    let again = Daemon::start_in(&home, &sets);
    assert_eq!(again.get(&location).body["labels"], json!({"shift": "night"}));
    has(&again, "label=shift:night", &[id]);
}

#[test]
fn an_admin_sees_the_runs_of_other_keys_and_others_their_own() {
    let keyed =
        Keyed::start(&[("ada", ""), ("bob", ""), ("root", ", admin=true")], &["log.level=error"]);
    let of_ada = keyed.finished("ada");
    let of_bob = keyed.finished("bob");
    let path = |run: &str| run.rsplit('/').next().unwrap().to_owned();
    let (ada, bob) = (path(&of_ada), path(&of_bob));
    let list = |key: &str, query: &str| {
        let answer = keyed.get(key, &format!("/v1/runs?{query}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        ids(&answer.body).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(list("root", ""), [""; 0], "it has none of its own");
    assert_eq!(list("root", "key=ada"), std::slice::from_ref(&ada));
    assert_eq!(list("root", "key=*"), [bob.clone(), ada.clone()]);
    assert_eq!(list("ada", "key=ada"), std::slice::from_ref(&ada));
    for query in ["key=bob", "key=*", "key=nobody", "key="] {
        for route in ["/v1/runs", "/v1/overview"] {
            let refused = keyed.get("ada", &format!("{route}?{query}"));
            refused.refused(403, None, &["admin = true"]);
        }
    }
    assert_eq!(keyed.get("root", &of_ada).status, 200, "an admin opens what it lists");
    assert_eq!(keyed.get("bob", &of_ada).status, 404);

    let total = |key: &str, query: &str| {
        let body = keyed.get(key, &format!("/v1/overview?{query}")).body;
        (body["key"].as_str().unwrap_or("none").to_owned(), body["total"]["runs"].as_u64().unwrap())
    };
    // The index is a moment behind.
    while total("root", "").1 < 2 {}
    assert_eq!(total("root", ""), ("*".to_owned(), 2));
    assert_eq!(total("root", "key=bob"), ("bob".to_owned(), 1));
    assert_eq!(total("ada", ""), ("ada".to_owned(), 1));
}
