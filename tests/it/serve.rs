//! The daemon from its clients' side: a real process and real HTTP.

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::binary::{REFERENCE, done, prime, shown, with_signals};
use crate::daemon::{Answer, Daemon, Home, long_run};

#[test]
fn a_run_is_accepted_executed_and_its_result_kept() {
    let daemon = Daemon::start(&[]);
    let taken = daemon.submit(
        &json!({"task": "n-queens", "difficulty": "medium", "index": 3, "fanout": 4, "seed": 9}),
    );
    assert_eq!(taken.status, 202, "{taken:?}");
    let location = taken.location.expect("a location");
    let id = taken.body["id"].as_str().unwrap();
    assert_eq!(location, format!("/v1/runs/{id}"));
    assert_eq!(
        (&taken.body["status"], &taken.body["task"]),
        (&json!("queued"), &json!("n-queens"))
    );

    let result = daemon.finished(&location);
    assert_eq!(
        (&result["id"], &result["status"], &result["verified"]),
        (&json!(id), &json!("verified"), &json!(true))
    );
    assert_eq!((&result["instance"], &result["seed"]), (&json!("n-queens/medium/003"), &json!(9)));
    assert_eq!((&result["outcome"], &result["trajectories"]), (&json!("agreed"), &json!(4)));
    assert_eq!(
        result["agents"],
        json!({"executor": "reference", "verifier": "rules", "coordinator": "threshold"})
    );
    assert!(result["notes"][0].as_str().unwrap().contains("not a model"));
    assert!(result["answer"].is_object() && result["steps"].is_u64() && result["wall_ms"].is_u64());
    assert!(result.get("correct").is_none(), "the daemon does not know the reference answer");
    assert_eq!(result["config_hash"], taken.body["config_hash"]);
    assert_eq!(daemon.get(&location).body, result, "the result stays");

    let other = daemon.submit(&json!({"task": "bubble-sort", "input": {"a": [2, 1]}}));
    assert_ne!(other.body["id"], json!(id));
    let other = daemon.finished(&other.location.unwrap());
    assert_eq!((&other["answer"]["sorted"], &other["instance"]), (&json!([1, 2]), &json!("input")));
}

#[test]
fn a_log_that_nobody_reads_stops_no_run() {
    // More than a pipe holds.
    const PIPE_BYTES: usize = 64 << 10;
    let daemon = Daemon::start(&["log.level=trace"]);
    let run =
        |index| daemon.finished(&daemon.submitted(&json!({"task": "bubble-sort", "index": index})));
    assert!((0..40).all(|index| run(index)["status"] == "verified"));

    let (code, log) = daemon.end_by(Signal::TERM);
    assert_eq!(code, Some(0));
    assert!(log.len() > 2 * PIPE_BYTES, "{} bytes do not fill a pipe", log.len());
}

#[test]
fn a_budget_in_the_request_ends_the_run_and_is_named() {
    let daemon = Daemon::start(&[]);
    let mut request = long_run();
    request["budget"] = json!({"steps": 100});
    let result = daemon.finished(&daemon.submit(&request).location.unwrap());
    assert_eq!(
        (&result["status"], &result["outcome"]),
        (&json!("unverified"), &json!("steps_spent"))
    );
    assert_eq!(result["proposals"], json!(100));
}

#[test]
fn the_request_takes_precedence_over_its_preset() {
    let daemon = Daemon::start(&[
        "presets.mine={fanout=3, verifier=\"none\", budget={steps=5}}",
        "server.allow_verifiers=[]",
    ]);
    let run = |request: Value| daemon.finished(&daemon.submit(&request).location.unwrap());

    let fast = run(json!({"task": "n-queens", "preset": "fast"}));
    assert_eq!((&fast["trajectories"], &fast["rounds"]), (&json!(1), &json!(1)));
    let own = run(json!({"task": "n-queens", "preset": "fast", "fanout": 2}));
    assert_eq!((&own["trajectories"], &own["rounds"]), (&json!(2), &json!(1)));
    assert_ne!(fast["config_hash"], own["config_hash"]);

    let mine = run(
        json!({"task": "tower-of-hanoi", "input": {"n": 9, "from": 0, "to": 2}, "preset": "mine"}),
    );
    assert_eq!((&mine["outcome"], &mine["proposals"]), (&json!("steps_spent"), &json!(5)));
    assert_eq!(
        (&mine["verifier"], &mine["trajectories"]),
        (&json!("none"), &json!(3)),
        "a preset may choose what a request may not"
    );
}

#[test]
fn liveness_and_readiness_are_reported() {
    let daemon = Daemon::start(&["server.queue_max=1"]);
    assert_eq!(daemon.get("/livez").status, 200);
    let ready = daemon.get("/readyz");
    assert_eq!(
        (ready.status, &ready.body["ready"], &ready.body["live_runs"]),
        (200, &json!(true), &json!(0))
    );

    assert_eq!(daemon.submit(&long_run()).status, 202);
    let full = daemon.get("/readyz");
    assert_eq!(
        (full.status, &full.body["ready"], &full.body["live_runs"]),
        (503, &json!(false), &json!(1))
    );
    assert_eq!(daemon.get("/livez").status, 200, "full is not dead");

    let health = |more: &[&str]| done(&[&["health", "--url", &daemon.url("/")][..], more].concat());
    assert_eq!((health(&[]).code, health(&["--ready"]).code), (0, 1));
    assert!(
        health(&["--ready"]).stdout.contains("\"ready\":false"),
        "it shows the daemon's response"
    );
}

#[test]
fn a_full_queue_says_when_to_retry() {
    let daemon = Daemon::start(&["server.queue_max=1"]);
    assert_eq!(daemon.submit(&long_run()).status, 202);
    let full = daemon.submit(&json!({"task": "n-queens"}));
    full.refused(429, None, &["server.queue_max is 1"]);
    assert!(full.retry_after.expect("a time").parse::<u32>().unwrap() > 0);
    daemon.submit(&json!({"task": 5})).refused(400, Some("task"), &["5"]);
}

#[test]
fn a_finished_run_makes_room_at_once() {
    let daemon = Daemon::start(&["server.queue_max=1"]);
    for _ in 0..50 {
        let taken = daemon.submit(&json!({"task": "dfa-simulation"}));
        assert_eq!(taken.status, 202, "{taken:?}");
        daemon.finished(&taken.location.unwrap());
    }
}

#[test]
fn invalid_requests_are_told_what_is_wrong() {
    let daemon = Daemon::start(&["server.body_bytes_max=1024"]);
    let with = |field: &str, value: Value| {
        let mut request = json!({"task": "n-queens"});
        request[field] = value;
        daemon.submit(&request)
    };

    daemon.submit(&json!({"task": "n-quens"})).refused(
        400,
        Some("task"),
        &["n-quens", "did you mean `n-queens`?"],
    );
    daemon.submit(&json!({})).refused(400, Some("task"), &["task", "problem"]);
    let twice = r#"{"task": "n-queens", "task": "n-queens"}"#;
    daemon.post_text("/v1/runs", twice).refused(400, Some("task"), &["duplicate field `task`"]);
    with("index", json!(1000)).refused(400, Some("index"), &["1000", "0 to 999"]);
    with("index", json!(-1)).refused(400, Some("index"), &["-1"]);
    with("index", json!("three")).refused(400, Some("index"), &["three"]);
    with("difficulty", json!("extreme")).refused(400, Some("difficulty"), &["extreme", "easy"]);
    with("input", json!({"n": 4})).refused(400, Some("input"), &["order"]);
    with("input", json!({"n": 4, "order": [0, 1, 2, 9]})).refused(400, Some("input"), &["`order`"]);
    with("input", json!({"task": "bubble-sort", "input": {"a": [1]}})).refused(
        400,
        Some("input"),
        &["bubble-sort"],
    );
    with("fanout", json!(0)).refused(400, Some("fanout"), &["fanout", "from 1 to 256"]);
    with("fanout", json!(-1)).refused(400, Some("fanout"), &["-1"]);
    with("fanout", json!(1_000_000_000)).refused(400, Some("fanout"), &["fanout", "from 1 to 256"]);
    with("fanout", json!(1e30)).refused(400, Some("fanout"), &["fanout"]);
    with("max_rounds", json!(0)).refused(400, Some("max_rounds"), &["from 1 to 100"]);
    with("temperature", json!(-0.5)).refused(400, Some("temperature"), &["temperature"]);
    with("top_p", json!(0)).refused(400, Some("top_p"), &["top_p"]);
    with("seed", json!(u64::MAX)).refused(400, Some("seed"), &["seed"]);
    with("budget", json!({"steps": 0})).refused(400, Some("budget.steps"), &["0"]);
    with("budget", json!({"steps": u64::MAX})).refused(
        400,
        Some("budget.steps"),
        &["the daemon's own limit"],
    );
    with("budget", json!({"stesp": 5})).refused(400, Some("budget.stesp"), &["stesp", "steps"]);
    with("preset", json!("fsat")).refused(400, Some("preset"), &["fsat", "careful, fast"]);
    with("fan_out", json!(2)).refused(400, Some("fan_out"), &["fan_out", "fanout"]);

    for body in ["", "{", "[]", "null", "\"n-queens\"", "{\"task\": \"n-queens\"} x", "\u{0}"] {
        daemon.post_text("/v1/runs", body).refused(400, None, &["body"]);
    }
    let large = format!("{{\"task\": \"{}\"}}", "x".repeat(2_000));
    daemon.post_text("/v1/runs", &large).refused(413, None, &["1024", "server.body_bytes_max"]);
    assert_eq!(daemon.get("/readyz").body["live_runs"], json!(0), "none of these was accepted");

    let (code, log) = daemon.end_by(Signal::TERM);
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("panicked"), "{log}");
}

#[test]
fn unknown_paths_and_runs_are_errors_in_json() {
    let daemon = Daemon::start(&[]);
    daemon.get("/v1/runs/run_0000000000000000").refused(404, None, &["run_0000000000000000"]);
    daemon.get("/v2/runs").refused(404, None, &["/docs/"]);
    let put: Answer = daemon.client.put(daemon.url("/v1/runs")).body("{}").send().unwrap().into();
    put.refused(405, None, &["method", "GET, HEAD, POST"]);
    daemon.post_text("/livez", "{}").refused(405, None, &["method"]);
    let deleted: Answer = daemon.client.delete(daemon.url("/v1/runs/x")).send().unwrap().into();
    deleted.refused(405, None, &["method"]);
}

#[test]
fn two_daemons_cannot_share_a_port() {
    let first = Daemon::start(&[]);
    let bind = format!("server.bind={}", first.address);
    let folder = tempfile::tempdir().unwrap();
    let journal = format!("journal.path={}", shown(&folder.path().join("runs.sqlite")));

    done(&[&["serve", "--set", &bind, "--set", &journal][..], &REFERENCE].concat()).refused(&[
        "server.bind",
        &first.address,
        "stop the process that uses the port",
    ]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
    assert_eq!(first.get("/livez").status, 200);
}

#[test]
fn addresses_reachable_by_other_machines_are_refused_without_keys() {
    for bind in ["0.0.0.0:0", "[::]:0"] {
        let set = format!("server.bind={bind}");
        done(&[&["serve", "--set", &set][..], &REFERENCE].concat()).refused(&[
            "server.bind",
            bind,
            "127.0.0.1",
            "key new",
        ]);
    }
}

#[test]
fn with_keys_any_address_can_be_bound_and_requests_need_one() {
    // SHA-256 of "abc" (FIPS 180-2, appendix B.1).
    let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let keys = format!("server.keys=[{{name=\"ci\", sha256=\"{sha256}\"}}]");
    let daemon = Daemon::start(&["server.bind=0.0.0.0:0", &keys]);
    assert_eq!(daemon.get("/livez").status, 200);

    daemon.get("/v1/runs/x").refused(401, None, &["Authorization: Bearer KEY"]);
    let asked =
        daemon.client.get(daemon.url("/v1/runs/x")).header("Authorization", "Bearer abc").send();
    Answer::from(asked.unwrap()).refused(404, None, &["x"]);
}

#[test]
fn a_signal_ends_the_process_with_open_runs() {
    for signal in [Signal::TERM, Signal::INT] {
        let home = Home::new();
        let command = with_signals(&Daemon::command(&home, &[]), &["--default-signal=INT,TERM"]);
        let daemon = Daemon::spawn(command, &home).expect("a daemon");
        assert_eq!(daemon.submit(&long_run()).status, 202);
        let (code, log) = daemon.end_by(signal);
        assert_eq!(code, Some(0), "{log}");
        assert!(!log.contains("panicked"), "{log}");
    }
}

#[test]
fn sighup_changes_the_agents_of_new_runs() {
    let home = Home::new();
    let file = home.journal().with_file_name("prime.toml");
    let configuration = |executor: &str| {
        let journal = home.journal();
        let text = format!(
            "[agents.executor]\nimplementation = \"{executor}\"\n[server]\nbind = \"127.0.0.1:0\"\n\
             [journal]\npath = {journal:?}\n"
        );
        std::fs::write(&file, text).unwrap();
    };

    configuration("reference");
    let daemon = Daemon::spawn(prime(&["serve", "--config", shown(&file)]), &home).unwrap();
    let before = daemon.submitted(&long_run());
    daemon.until(&before, |record| record["status"] == "running");
    let is_default = |agents: &Value, name: &str| {
        agents["agents"]
            .as_array()
            .unwrap()
            .iter()
            .any(|agent| agent["name"] == name && agent["default"] == true)
    };

    configuration("scripted");
    kill_process(daemon.pid(), Signal::HUP).unwrap();
    daemon.until("/v1/agents", |agents| is_default(agents, "scripted"));
    let after = daemon.finished(&daemon.submitted(&json!({"task": "dfa-simulation"})));
    assert_eq!(after["agents"]["executor"], "scripted");

    let steps = daemon.get(&before).body;
    assert_eq!(
        (&steps["status"], &steps["agents"]["executor"]),
        (&json!("running"), &json!("reference"))
    );
    daemon.until(&before, |record| record["steps"].as_u64() > steps["steps"].as_u64());

    // A mistake changes nothing.
    std::fs::write(&file, "[agents.executor]\nimplementation = \"scriptd\"\n").unwrap();
    kill_process(daemon.pid(), Signal::HUP).unwrap();
    let (code, log) = daemon.end_by(Signal::TERM);
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("configuration reloaded"), "{log}");
}

/// The signals in a mask of a process's status, by name of the field.
fn mask(status: &str, field: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix(field)).expect("the field");
    u64::from_str_radix(mask.trim(), 16).expect("a mask")
}

#[test]
fn a_signal_that_is_ignored_at_the_start_stays_ignored() {
    let bit = |signal: Signal| 1_u64 << (signal.as_raw() - 1);

    for (ignored, handled) in [("INT", "TERM"), ("TERM", "INT")] {
        let home = Home::new();
        let actions = [format!("--default-signal={handled}"), format!("--ignore-signal={ignored}")];
        let command =
            with_signals(&Daemon::command(&home, &[]), &actions.each_ref().map(|it| &**it));
        let daemon = Daemon::spawn(command, &home).expect("a daemon");

        assert_eq!(daemon.get("/v1/runs").status, 200);
        let id = daemon.pid().as_raw_nonzero();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let signal = |name| if name == "INT" { Signal::INT } else { Signal::TERM };
        assert_ne!(mask(&status, "SigIgn:") & bit(signal(ignored)), 0, "{ignored} is ignored");
        assert_eq!(mask(&status, "SigCgt:") & bit(signal(ignored)), 0, "{ignored} has no handler");

        kill_process(daemon.pid(), signal(ignored)).unwrap();
        assert_eq!(daemon.get("/v1/runs").status, 200);
        assert_eq!(daemon.end_by(signal(handled)).0, Some(0));
    }
}
