//! `verified` cannot be made to lie from outside: a fork, a resumption or another verifier never
//! vouches for steps that somebody else, or nobody, has judged.

use serde_json::{Value, json};

use crate::daemon::{Daemon, Home};
use prime_bench::tasks::{self, BASE_SEED, Difficulty};

const UNCHECKED: &str = "agents.verifier.implementation=none";
const ERRING: [&str; 2] =
    ["agents.executor.implementation=scripted", "agents.executor.error_rate=0.4"];

fn fork(daemon: &Daemon, run: &str, seq: u64, agents: &Value) -> (String, Value) {
    let path = format!("{run}/fork?seq={seq}");
    let fork = daemon.post_text(&path, &json!({ "agents": agents }).to_string());
    assert_eq!(fork.status, 202, "{fork:?}");
    let location = fork.location.expect("a fork is a run");
    let record = daemon.finished(&location);
    (location, record)
}

/// The event before the last step of a run.
fn before_the_end(daemon: &Daemon, run: &str) -> u64 {
    let trace = daemon.text(&format!("{run}/trace?states=false"));
    let mut steps = trace.lines().filter(|line| line.contains(r#""event":"step""#));
    let last: Value = serde_json::from_str(steps.next_back().expect("a step")).expect("JSON");
    last["seq"].as_u64().expect("a number") - 1
}

/// The word for the answer, and whether it is right.
fn judged(record: &Value) -> (String, bool) {
    let word = record["assurance"].as_str().unwrap_or("none").to_owned();
    let name: Vec<&str> = record["instance"].as_str().expect("a name").split('/').collect();
    let [slug, "easy", index] = name[..] else { panic!("{name:?}") };

    let task = tasks::find(slug).expect("listed");
    let index = index.parse().expect("an index");
    let seed = task.spec().seed(BASE_SEED, Difficulty::Easy, index);
    (word, task.generate(Difficulty::Easy, seed).accepts(&record["answer"]))
}

#[test]
fn a_fork_does_not_vouch_for_steps_that_nobody_checked() {
    let daemon = Daemon::start(&ERRING);
    let mut wrong = 0;

    for (index, task) in ["stack-simulator", "dfa-simulation", "cellular-automaton"]
        .into_iter()
        .flat_map(|task| [(0, task), (1, task)])
    {
        let run = daemon.submitted(&json!({
            "task": task, "difficulty": "easy", "index": index, "fanout": 1, "max_rounds": 1, "seed": index + 1,
            "agents": {"verifier": "none"},
        }));
        daemon.finished(&run);
        let right = json!({"verifier": "rules", "executor": "reference"});

        let (child, record) = fork(&daemon, &run, before_the_end(&daemon, &run), &right);
        let (word, is_right) = judged(&record);
        // The checks of the last steps may refuse the state that the unchecked ones led to.
        let has_answer = !record["answer"].is_null();
        assert_eq!(word, if has_answer { "unchecked" } else { "none" }, "{record}");
        assert_eq!((&record["status"], &record["verified"]), (&json!("unverified"), &json!(false)));
        wrong += u32::from(has_answer && !is_right);

        // A fork of the fork copies steps of both, and each keeps its own basis.
        let (_, grandchild) = fork(&daemon, &child, before_the_end(&daemon, &child), &right);
        assert!(["unchecked", "none"].contains(&judged(&grandchild).0.as_str()), "{grandchild}");

        // From the start, before any step was taken, everything is judged.
        let (_, anew) = fork(&daemon, &run, 1, &right);
        assert_eq!(judged(&anew), ("verified".to_owned(), true), "{anew}");
    }
    assert!(wrong > 0, "the executor errs, or this shows nothing");
}

#[test]
fn a_restart_keeps_on_what_each_step_was_judged() {
    for (sets, word) in [(&[UNCHECKED][..], "unchecked"), (&[][..], "verified")] {
        let home = Home::new();
        let daemon = Daemon::start_in(&home, sets);
        let run = daemon.submitted(&json!({"task": "bubble-sort", "fanout": 1}));
        let before = daemon.finished(&run);
        assert_eq!(before["assurance"], word, "{before}");

        // The next process has another verifier; its fork of this run is as good as the weaker one.
        let other = if sets.is_empty() { &[UNCHECKED][..] } else { &[][..] };
        let daemon = Daemon::start_in(&daemon.kill(), other);
        assert_eq!(daemon.get(&run).body["assurance"], word);
        let chosen = if sets.is_empty() {
            json!({"verifier": "none"})
        } else {
            json!({"verifier": "rules"})
        };
        let (_, forked) = fork(&daemon, &run, before_the_end(&daemon, &run), &chosen);
        assert_eq!(forked["assurance"], "unchecked", "{forked}");
    }
}

#[test]
fn what_is_not_sound_is_called_unrefuted() {
    let kinds = r#"agents.verifier.kinds=["format", "terminal"]"#;
    let daemon = Daemon::start(&[kinds]);
    let record = daemon.finished(&daemon.submitted(&json!({"task": "bubble-sort", "fanout": 1})));

    assert_eq!((&record["status"], &record["verified"]), (&json!("unrefuted"), &json!(false)));
    assert_eq!(record["assurance"], "unrefuted");
    assert_eq!(record["verification"]["kinds"], json!(["format", "terminal"]));
}

/// What the events of a run say of the basis of its steps.
#[test]
fn the_first_event_says_who_judges() {
    let daemon = Daemon::start(&[]);
    let run = daemon.submitted(&json!({"task": "bubble-sort", "fanout": 1}));
    let trace = {
        daemon.finished(&run);
        daemon.text(&format!("{run}/trace?states=false"))
    };
    let started = trace.lines().find(|line| line.contains(r#""event":"started""#));
    let started: Value = serde_json::from_str(started.expect("it started")).expect("JSON");
    assert_eq!(
        started["basis"],
        json!({
            "kinds": ["format", "invariant", "terminal"],
            "evaluated": ["format", "invariant", "terminal"],
            "edition": 1,
            "methods": ["rules"],
        })
    );
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(started["judge"], json!({"verifier": "rules", "version": version}));
}

/// Every step knows who judged it: before a fork another verifier than after it. A step's event
/// does not repeat it.
#[test]
fn every_step_knows_who_judged_it() {
    let daemon = Daemon::start(&[UNCHECKED]);
    let run = daemon.submitted(&json!({"task": "bubble-sort", "fanout": 1, "max_rounds": 1}));
    daemon.finished(&run);
    let end = before_the_end(&daemon, &run);
    let (child, _) = fork(&daemon, &run, end, &json!({"verifier": "rules"}));

    let judged = |seq: u64| {
        let step = daemon.get(&format!("{child}/steps/{seq}")).body;
        let names = &step["step"];
        assert!(names.get("judge").is_none() && names.get("basis").is_none(), "{step}");
        (step["judge"]["verifier"].clone(), step["basis"]["evaluated"].clone())
    };
    assert_eq!(judged(end), (json!("none"), json!([])));
    // The event between them says that the run was forked.
    let checked = json!(["format", "invariant", "terminal"]);
    assert_eq!(judged(end + 2), (json!("rules"), checked));
}

/// Takes from a stopped daemon's journal all that a version from before bases did not write.
fn make_old(home: &Home, id: &str) {
    let journal = rusqlite::Connection::open(home.journal()).expect("the journal");
    let summary: String = journal
        .query_row("SELECT summary FROM run WHERE id = ?1", [id], |row| row.get(0))
        .expect("its row");
    let mut summary: Value = serde_json::from_str(&summary).expect("JSON");
    let fields = summary.as_object_mut().expect("an object");
    fields.remove("assurance");
    fields.remove("verification");
    let changed = journal
        .execute(
            "UPDATE run SET summary = ?2 WHERE id = ?1",
            rusqlite::params![id, summary.to_string()],
        )
        .expect("a row");
    assert_eq!(changed, 1);
}

/// A record from before bases does not say who judged its steps: nobody vouches for them, although
/// its row still calls the answer verified.
#[test]
fn an_old_record_is_shown_as_unchecked() {
    let home = Home::new();
    let daemon = Daemon::start_in(&home, &[]);
    let id = |run: &str| run.rsplit('/').next().expect("an id").to_owned();
    let old = daemon.submitted(&json!({"task": "bubble-sort", "fanout": 1}));
    assert_eq!(daemon.finished(&old)["status"], "verified");
    let new = daemon.submitted(&json!({"task": "bubble-sort", "fanout": 1}));
    assert_eq!(daemon.finished(&new)["status"], "verified");

    let home = daemon.kill();
    make_old(&home, &id(&old));
    let daemon = Daemon::start_in(&home, &[]);

    let record = daemon.get(&old).body;
    assert_eq!(
        (&record["status"], &record["verified"], &record["assurance"]),
        (&json!("unverified"), &json!(false), &json!("unchecked")),
        "{record}"
    );
    assert!(record.get("verification").is_none() && !record["answer"].is_null(), "{record}");
    assert_eq!(daemon.get(&new).body["assurance"], "verified");

    // Lists say the same, page by page, with the filter that fits what they show.
    let listed = |query: &str| -> Vec<Value> {
        let page = daemon.get(&format!("/v1/runs?{query}")).body;
        let runs = page["runs"].as_array().expect("a list").clone();
        runs.into_iter().map(|run| run["id"].clone()).collect()
    };
    assert_eq!(listed("status=verified"), [json!(id(&new))]);
    assert_eq!(listed("status=unverified"), [json!(id(&old))]);
    assert_eq!(listed(""), [json!(id(&new)), json!(id(&old))]);
    let first = daemon.get("/v1/runs?status=unverified&limit=1").body;
    assert_eq!(
        (first["runs"].as_array().map(Vec::len), &first["next"]),
        (Some(0), &json!(id(&new)))
    );
    let after = format!("status=unverified&limit=1&after={}", id(&new));
    assert_eq!(listed(&after), [json!(id(&old))]);
}
