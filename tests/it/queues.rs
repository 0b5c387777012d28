//! In which order runs begin, when, and when they end: priorities, times, limits and rates.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::daemon::{Daemon, Home, long_run};
use crate::owners::Keyed;

/// One run at a time.
const ONE: &str = "queue.running_max=1";

fn short() -> Value {
    json!({"task": "tower-of-hanoi", "input": {"n": 2, "from": 0, "to": 2}, "fanout": 1})
}

/// The same request with other fields.
fn with(mut request: Value, fields: &Value) -> Value {
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    request
}

fn in_seconds(seconds: i64) -> String {
    (Timestamp::now() + SignedDuration::from_secs(seconds)).to_string()
}

fn until_running(daemon: &Daemon, run: &str) -> Value {
    daemon.until(run, |record| record["status"] == "running")
}

fn cancel(daemon: &Daemon, run: &str) {
    assert_eq!(daemon.post(&format!("{run}/cancel")).status, 200);
    daemon.finished(run);
}

/// Ends the run that is executed again and again, and returns the order in which these begin.
fn order(daemon: &Daemon, first: &str, runs: &[(&'static str, String)]) -> Vec<&'static str> {
    let (mut holds, mut began) = (first.to_owned(), Vec::new());
    while began.len() < runs.len() {
        cancel(daemon, &holds);
        let listed = daemon.until("/v1/runs?status=running", |list| {
            list["runs"].as_array().is_some_and(|runs| !runs.is_empty())
        });
        let running = listed["runs"].as_array().unwrap();
        assert_eq!(running.len(), 1, "one at a time: {running:?}");

        let path = format!("/v1/runs/{}", running[0]["id"].as_str().unwrap());
        began.push(runs.iter().find(|(_, run)| *run == path).expect("one of them").0);
        holds = path;
    }
    cancel(daemon, &holds);
    began
}

/// Runs that wait behind another one, each with a priority.
fn waiting(daemon: &Daemon, priorities: &[(&'static str, i32)]) -> Vec<(&'static str, String)> {
    let submit = |&(name, priority): &(&'static str, i32)| {
        (name, daemon.submitted(&with(long_run(), &json!({"priority": priority}))))
    };
    priorities.iter().map(submit).collect()
}

#[test]
fn runs_begin_by_priority_and_then_by_age() {
    // So slow that only the priorities count.
    let daemon = Daemon::start(&[ONE, "queue.aging_ms=86400000"]);
    let first = daemon.submitted(&long_run());
    until_running(&daemon, &first);

    let runs = waiting(&daemon, &[("a", 0), ("b", -7), ("c", 7), ("d", 0), ("e", 7)]);
    let record = daemon.get(&runs[1].1).body;
    assert_eq!((&record["status"], &record["priority"]), (&json!("queued"), &json!(-7)));
    assert_eq!(daemon.get(&runs[0].1).body.get("priority"), None);
    assert_eq!(order(&daemon, &first, &runs), ["c", "e", "a", "d", "b"]);
}

#[test]
fn the_order_survives_a_kill_and_what_had_begun_comes_first() {
    let sets = [ONE, "queue.aging_ms=86400000"];
    let daemon = Daemon::start(&sets);
    let first = daemon.submitted(&with(long_run(), &json!({"priority": -100})));
    daemon.with_events(&first, 1);
    let runs = waiting(&daemon, &[("a", 0), ("b", 9), ("c", -9)]);

    let daemon = Daemon::start_in(&daemon.kill(), &sets);
    until_running(&daemon, &first);
    // All of them have been read from the journal, and wait.
    daemon.until_text("/metrics", |text| text.contains("\nprime_runs_queued 3\n"));
    assert_eq!(order(&daemon, &first, &runs), ["b", "a", "c"]);
}

#[test]
fn a_run_that_had_begun_is_queued_again_until_it_has_a_place() {
    let daemon = Daemon::start(&["queue.running_max=2"]);
    let runs = [daemon.submitted(&long_run()), daemon.submitted(&long_run())];
    for run in &runs {
        daemon.with_events(run, 1);
    }

    let daemon = Daemon::start_in(&daemon.kill(), &[ONE]);
    until_running(&daemon, &runs[0]);
    let queued = daemon.until(&runs[1], |record| record["status"] == "queued");
    assert!(queued["events"].as_u64() > Some(0), "{queued}");
    let listed = |list: &Value| list["runs"].as_array().is_some_and(|runs| runs.len() == 1);
    let listed = daemon.until("/v1/runs?status=queued", listed);
    assert_eq!(listed["runs"][0]["id"], queued["id"]);

    cancel(&daemon, &runs[0]);
    until_running(&daemon, &runs[1]);
}

#[test]
fn the_last_year_has_a_last_day() {
    let daemon = Daemon::start(&[]);
    let last = "9999-12-31T23:59:59Z";
    let run = daemon.submitted(&with(short(), &json!({"deadline": last})));
    let record = daemon.finished(&run);
    assert_eq!(
        (&record["status"], &record["deadline"].as_str().map(|text| &text[..10])),
        (&json!("verified"), &Some("9999-12-30"))
    );
    let far = daemon.submitted(&with(short(), &json!({"not_before": last})));
    assert_eq!(daemon.get(&far).body["status"], "queued");
    cancel(&daemon, &far);
    assert_eq!(daemon.get(&format!("/v1/runs?before={last}")).status, 200);
    daemon.submit(&with(short(), &json!({"deadline": "9999-12-32T00:00:00Z"}))).refused(
        400,
        Some("deadline"),
        &["must be a time"],
    );
}

#[test]
fn a_fork_keeps_a_deadline_that_is_ahead_and_says_which_is_not() {
    let daemon = Daemon::start(&[]);
    let later = in_seconds(3_600);
    let run = daemon.submitted(&with(long_run(), &json!({"deadline": later})));
    daemon.with_events(&run, 10);
    cancel(&daemon, &run);
    let parent = daemon.get(&run).body;
    let fork = daemon.post(&format!("{run}/fork?seq=5"));
    assert_eq!((fork.status, &fork.body["deadline"]), (202, &parent["deadline"]), "{fork:?}");
    cancel(&daemon, fork.location.as_deref().unwrap());

    let run = daemon.submitted(&with(long_run(), &json!({"deadline": in_seconds(1)})));
    let ended = daemon.finished(&run);
    assert_eq!(ended["outcome"], "deadline_passed");
    let is_noted = |answer: &crate::daemon::Answer| {
        let notes = answer.body["notes"].to_string();
        let passed = ended["deadline"].as_str().unwrap();
        answer.body["deadline"].is_null() && notes.contains(passed) && notes.contains("had passed")
    };
    for path in ["fork?seq=5", "retry"] {
        let again = daemon.post(&format!("{run}/{path}"));
        assert!(again.status == 202 && is_noted(&again), "{path}: {again:?}");
        cancel(&daemon, again.location.as_deref().unwrap());
    }
}

#[test]
fn waiting_raises_a_run_above_others() {
    let daemon = Daemon::start(&[ONE, "queue.aging_ms=1"]);
    let first = daemon.submitted(&long_run());
    until_running(&daemon, &first);

    // After more than 200 ms, the older run is worth more than any priority.
    let old = ("old", daemon.submitted(&with(long_run(), &json!({"priority": -100}))));
    let accepted: Timestamp =
        daemon.get(&old.1).body["created_at"].as_str().unwrap().parse().unwrap();
    while Timestamp::now().duration_since(accepted) < SignedDuration::from_millis(250) {
        std::thread::yield_now();
    }
    let new = ("new", daemon.submitted(&with(long_run(), &json!({"priority": 100}))));
    assert_eq!(order(&daemon, &first, &[new, old]), ["old", "new"]);
}

#[test]
fn a_run_does_not_begin_before_its_time() {
    let daemon = Daemon::start(&[]);
    let later = in_seconds(3_600);
    let run = daemon.submitted(&with(short(), &json!({"not_before": later})));
    let soon: Timestamp = in_seconds(1).parse().unwrap();
    let other = daemon.submitted(&with(short(), &json!({"not_before": soon.to_string()})));

    let record = daemon.finished(&other);
    assert_eq!(record["status"], "verified");
    let ended: Timestamp = record["updated_at"].as_str().unwrap().parse().unwrap();
    assert!(ended >= soon, "{record}");

    let daemon = Daemon::start_in(&daemon.kill(), &[]);
    let record = daemon.get(&run).body;
    assert_eq!((&record["status"], &record["events"]), (&json!("queued"), &json!(0)));
    let named: Timestamp = record["not_before"].as_str().unwrap().parse().unwrap();
    assert_eq!(named.as_second(), later.parse::<Timestamp>().unwrap().as_second());
    cancel(&daemon, &run);
    assert_eq!(daemon.get(&run).body["outcome"], "cancelled");
}

#[test]
fn a_deadline_ends_a_run_that_is_under_way_with_what_it_has() {
    let daemon = Daemon::start(&[]);
    let run = daemon.submitted(&with(long_run(), &json!({"deadline": in_seconds(2)})));
    daemon.with_events(&run, 2);

    let record = daemon.finished(&run);
    assert_eq!(
        (&record["outcome"], &record["status"]),
        (&json!("deadline_passed"), &json!("unverified"))
    );
    assert!(record["steps"].as_u64() > Some(0) && record.get("failure").is_none(), "{record}");
    let trace = daemon.text(&format!("{run}/trace?states=false"));
    assert_eq!(trace.matches(r#""deadline_passed""#).count(), 2, "stopped, and the result");
}

#[test]
fn a_run_whose_deadline_passes_before_it_begins_says_so() {
    let daemon = Daemon::start(&[ONE]);
    let first = daemon.submitted(&long_run());
    until_running(&daemon, &first);
    let late = daemon.submitted(&with(short(), &json!({"deadline": in_seconds(1)})));
    let record = daemon.finished(&late);
    assert_eq!((&record["outcome"], &record["proposals"]), (&json!("deadline_passed"), &json!(0)));
    let failure = record["failure"].as_str().unwrap();
    assert!(failure.contains("passed before it began"), "{failure}");

    // While no daemon runs, too.
    let deadline: Timestamp = in_seconds(1).parse().unwrap();
    let late = daemon.submitted(&with(short(), &json!({"deadline": deadline.to_string()})));
    let home = daemon.kill();
    while Timestamp::now() <= deadline {
        std::thread::yield_now();
    }
    let daemon = Daemon::start_in(&home, &[]);
    let record = daemon.finished(&late);
    assert_eq!(record["outcome"], "deadline_passed");
    assert!(record["failure"].as_str().unwrap().contains("passed before it began"));
    cancel(&daemon, &first);
}

#[test]
fn times_and_priorities_that_cannot_be_kept_are_refused() {
    let daemon = Daemon::start(&[]);
    let (past, soon, later) = (in_seconds(-1), in_seconds(60), in_seconds(3_600));
    for (fields, field, part) in [
        (json!({"deadline": past}), "deadline", "which is past"),
        (json!({"not_before": later, "deadline": soon}), "not_before", "could never begin"),
        (json!({"not_before": "soon"}), "not_before", "RFC 3339"),
        (json!({"deadline": "2026-02-31T00:00:00Z"}), "deadline", "RFC 3339"),
        (json!({"priority": 101}), "priority", "from -100 to 100"),
        (json!({"priority": 1.5}), "priority", "1.5"),
    ] {
        daemon.submit(&with(short(), &fields)).refused(400, Some(field), &[part]);
    }

    // A repetition gets its run, even if its deadline has passed since.
    let deadline: Timestamp = in_seconds(1).parse().unwrap();
    let request = with(short(), &json!({"deadline": deadline.to_string()}));
    let accepted = daemon.with_key("once", &request);
    daemon.finished(&accepted.location.unwrap());
    while Timestamp::now() <= deadline {
        std::thread::yield_now();
    }
    assert_eq!(daemon.with_key("once", &request).status, 200);
    daemon.submit(&request).refused(400, Some("deadline"), &["which is past"]);
}

#[test]
fn a_key_has_its_own_priority_and_its_own_places() {
    let keyed = Keyed::start(
        &[("ada", ", priority_max=5, running_max=1"), ("bob", ", priority_max=-3")],
        &[],
    );
    let submit = |key: &str, fields: &Value| keyed.post(key, "/v1/runs", &with(long_run(), fields));
    submit("ada", &json!({"priority": 6})).refused(400, Some("priority"), &["up to 5"]);
    submit("bob", &json!({"priority": 1})).refused(400, Some("priority"), &["up to -3"]);

    let first = submit("ada", &json!({"priority": 5})).location.unwrap();
    let second = submit("ada", &json!({})).location.unwrap();
    let other = submit("bob", &json!({}));
    assert_eq!(other.body["priority"], -3);
    let other = other.location.unwrap();

    let running = |key: &str, run: &str| {
        while keyed.get(key, run).body["status"] != "running" {
            std::thread::yield_now();
        }
    };
    running("ada", &first);
    running("bob", &other);
    assert_eq!(keyed.get("ada", &second).body["status"], "queued");

    assert_eq!(keyed.post("ada", &format!("{first}/cancel"), &Value::Null).status, 200);
    running("ada", &second);
    for (key, run) in [("ada", &second), ("bob", &other)] {
        assert_eq!(keyed.post(key, &format!("{run}/cancel"), &Value::Null).status, 200);
    }
}

#[test]
fn a_task_has_places_of_its_own() {
    let daemon = Daemon::start(&["queue.tasks.tower-of-hanoi.running_max=1"]);
    let first = daemon.submitted(&long_run());
    until_running(&daemon, &first);
    let second = daemon.submitted(&long_run());
    let other = daemon.submitted(&json!({"task": "bubble-sort", "fanout": 1}));

    assert_eq!(daemon.finished(&other)["status"], "verified");
    assert_eq!(daemon.get(&second).body["status"], "queued");
    cancel(&daemon, &first);
    until_running(&daemon, &second);
    cancel(&daemon, &second);
}

#[test]
fn more_runs_than_a_minute_may_have_are_refused_until_the_next_is_due() {
    let daemon = Daemon::start(&["queue.key_runs_per_minute=2"]);
    let run = daemon.submitted(&short());
    // What is refused for another reason does not count, nor does a repetition.
    daemon.submit(&json!({"task": "none"})).refused(400, Some("task"), &[]);
    assert_eq!(daemon.with_key("k", &short()).status, 202);
    assert_eq!(daemon.with_key("k", &short()).status, 200);

    let refused = daemon.submit(&short());
    refused.refused(429, None, &["more than 2 runs per minute (queue.key_runs_per_minute)"]);
    assert_eq!(refused.body["error"]["code"], "run_rate_exceeded");
    let wait: u64 = refused.retry_after.unwrap().parse().unwrap();
    assert!((1..=30).contains(&wait), "{wait}");
    daemon.finished(&run);
    assert_eq!(daemon.post_text(&format!("{run}/fork?seq=1"), "").status, 429);

    let daemon = Daemon::start(&["queue.tasks.tower-of-hanoi.runs_per_minute=1"]);
    daemon.submitted(&short());
    daemon.submit(&short()).refused(429, None, &["queue.tasks.tower-of-hanoi.runs_per_minute"]);
    daemon.submitted(&json!({"task": "bubble-sort"}));
}

#[test]
fn a_schedule_that_cannot_be_kept_ends_the_start() {
    let refusal = |options: &str| {
        let set = format!("schedules.nightly={{{options}}}");
        Daemon::try_start(&Home::new(), &[&set]).err().expect("a refusal")
    };
    let never = refusal(r#"cron="0 0 31 2 *", request='{"task": "n-queens"}'"#);
    assert!(
        never.contains("`schedules.nightly.cron` is \"0 0 31 2 *\", which never comes"),
        "{never}"
    );
    let cron = r#"cron="0 6 * * *""#;
    for (request, part) in [
        (r#"{"task": "n-queen"}"#, "n-queens"),
        (r#"{"task": "n-queens", "indx": 3}"#, "indx"),
        (r#"{"task": "n-queens", "index": 1000}"#, "index"),
        (r#"{"task": "n-queens", "deadline": "2099-01-01T00:00:00Z"}"#, "leave it out"),
        (r#"{"task": "n-queens", "priority": 101}"#, "priority"),
    ] {
        let said = refusal(&format!("{cron}, request='{request}'"));
        assert!(said.contains("`schedules.nightly.request`") && said.contains(part), "{said}");
    }
}

#[test]
fn a_schedule_says_when_it_is_due_and_runs_on_demand() {
    let daemon = Daemon::start(&[
        r#"schedules.nightly.cron="0 6 * * *""#,
        "schedules.nightly.timezone=Europe/Berlin",
        r#"schedules.nightly.request='{"task": "bubble-sort", "labels": {"team": "ops"}}'"#,
    ]);
    let listed =
        daemon.until("/v1/schedules", |list| list["schedules"][0]["done_until"].is_string());
    let nightly = &listed["schedules"][0];
    assert_eq!(
        (&nightly["name"], &nightly["task"], &nightly["missed"], nightly.get("last_run")),
        (&json!("nightly"), &json!("bubble-sort"), &json!("skip"), None)
    );
    let next: Timestamp = nightly["next"][0].as_str().unwrap().parse().unwrap();
    let berlin = jiff::tz::TimeZone::get("Europe/Berlin").unwrap().to_datetime(next);
    assert_eq!((berlin.hour(), berlin.minute(), berlin.second()), (6, 0, 0));
    assert_eq!(nightly["next"].as_array().unwrap().len(), 5);

    let started = daemon.post("/v1/schedules/nightly/runs");
    assert_eq!(started.status, 202, "{started:?}");
    let record = daemon.finished(&started.location.unwrap());
    assert_eq!(record["labels"], json!({"schedule": "nightly", "team": "ops"}));
    daemon.post("/v1/schedules/weekly/runs").refused(404, None, &["no schedule \"weekly\""]);
}

#[test]
fn a_key_sees_its_own_schedules() {
    let schedule = |name: &str, key: &str| {
        format!(
            r#"schedules.{name}={{cron="0 6 * * *",key="{key}",request='{{"task":"n-queens"}}'}}"#
        )
    };
    let (of_ada, of_bob) = (schedule("a", "ada"), schedule("b", "bob"));
    let keys = [("ada", ""), ("bob", ""), ("op", ", admin=true")];
    let keyed = Keyed::start(&keys, &[&of_ada, &of_bob]);

    let names = |key: &str| {
        let listed = keyed.get(key, "/v1/schedules").body;
        let all = listed["schedules"].as_array().unwrap().iter();
        all.map(|schedule| schedule["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((names("ada"), names("op")), (vec!["a".to_owned()], vec!["a".into(), "b".into()]));

    keyed.post("ada", "/v1/schedules/b/runs", &Value::Null).refused(404, None, &["no schedule"]);
    let started = keyed.post("op", "/v1/schedules/b/runs", &Value::Null);
    assert_eq!(started.status, 202, "{started:?}");
    assert_eq!(keyed.get("bob", &started.location.unwrap()).status, 200);
}
