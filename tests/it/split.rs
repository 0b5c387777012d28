//! A/B tests: two agents of a role, each on a share of the runs.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::binary::{REFERENCE, prime, run};
use crate::daemon::{Daemon, is_over};

const HALF: [&str; 3] =
    ["agents.split.role=verifier", "agents.split.other=strict", "agents.split.share=0.5"];

fn request(seed: u64) -> Value {
    json!({"task": "bubble-sort", "fanout": 1, "seed": seed})
}

#[test]
fn the_seed_determines_a_runs_arm() {
    let daemon = Daemon::start(&HALF);
    let mut sides: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut hashes: BTreeMap<String, Value> = BTreeMap::new();
    for seed in 0..24 {
        let record = daemon.finished(&daemon.submitted(&request(seed)));
        let side = record["split"].as_str().unwrap().to_owned();
        let verifier = if side == "b" { "strict" } else { "rules" };
        assert_eq!(
            (&record["agents"]["verifier"], &record["verifier"]),
            (&json!(verifier), &json!(verifier))
        );
        if seed == 0 {
            hashes.insert(side.clone(), record["config_hash"].clone());
        }
        sides.entry(side).or_default().push(seed);
    }

    assert!(sides["a"].len() > 4 && sides["b"].len() > 4, "{sides:?}");
    // The same request is in the same arm, and has the hash of the settings with that arm's agents.
    let again = daemon.finished(&daemon.submitted(&request(0)));
    assert_eq!(again["config_hash"], hashes[again["split"].as_str().unwrap()]);

    let plain = Daemon::start(&["server.allow_verifiers=[\"rules\", \"strict\"]"]);
    let verifier = again["agents"]["verifier"].clone();
    let mut chosen = request(0);
    chosen["agents"] = json!({"verifier": verifier});
    assert_eq!(plain.submit(&chosen).body["config_hash"], again["config_hash"]);

    let report = daemon.get("/v1/split").body;
    assert_eq!(
        report["split"],
        json!({"role": "verifier", "agent": "rules", "other": "strict", "share": 0.5})
    );
    assert_eq!(report["is_complete"], true);
    let arms = report["arms"].as_array().unwrap();
    assert_eq!(arms.len(), 2, "{report}");
    let again = again["split"].as_str().unwrap();
    for (arm, name) in arms.iter().zip(["a", "b"]) {
        let expected = sides[name].len() as u64 + u64::from(name == again);
        assert_eq!(
            (&arm["arm"], &arm["runs"], &arm["finished"]),
            (&json!(name), &json!(expected), &json!(expected))
        );
        let verified = &arm["verified"];
        assert_eq!(
            (&verified["count"], &verified["of"], &verified["value"]),
            (&json!(expected), &json!(expected), &json!(1.0))
        );

        // Wilson's interval of n successes in n: from n / (n + z²) to 1.
        let low = expected as f64 / (expected as f64 + 1.959_964_f64.powi(2));
        assert!(
            (verified["low"].as_f64().unwrap() - low).abs() < 1e-5
                && verified["high"].as_f64() > Some(0.999_999)
        );

        // One instance, and an executor without errors: each run has the same steps.
        assert!(
            arm["mean"]["steps"].as_f64() > Some(1.0)
                && arm["mean"]["steps"] == arm["mean"]["proposals"],
            "{arm}"
        );
        assert_eq!(arm["mean"]["tokens"], 0.0);
    }

    assert_eq!(daemon.get("/v1/split?since=2100-01-01T00:00:00Z").body["arms"], json!([]));
    assert_eq!(daemon.get("/v1/split?since=1960-01-01T00:00:00Z").body["arms"], report["arms"]);
    daemon.get("/v1/split?since=yesterday").refused(400, Some("since"), &["2026-02-03T04:05:06Z"]);
    daemon.get("/v1/split?from=1").refused(400, Some("from"), &["from"]);

    let shown = prime(&["runs", "split", "--url", &daemon.url("")]).output().unwrap();
    let text = String::from_utf8(shown.stdout).unwrap();
    for part in
        ["verifier: a is rules, b is strict for 50.0 %", "100.0 (", "reference, strict, threshold"]
    {
        assert!(text.contains(part), "{part:?} is missing in {text}");
    }
}

#[test]
fn runs_that_choose_their_agent_are_excluded() {
    let all = ["agents.split.role=verifier", "agents.split.other=strict", "agents.split.share=1.0"];
    let more = [
        "server.allow_verifiers=[\"rules\"]",
        "presets.mine={verifier=\"none\"}",
        "presets.quick={fanout=1}",
    ];
    let daemon = Daemon::start(&[&all[..], &more].concat());

    let rows = [
        (json!({"agents": {"verifier": "rules"}}), None, "rules"),
        (json!({"preset": "mine"}), None, "none"),
        (json!({"preset": "quick"}), Some("b"), "strict"),
        (json!({"agents": {"executor": "scripted"}}), Some("b"), "strict"),
    ];

    for (wish, side, verifier) in rows {
        let mut request = request(1);
        for (name, value) in wish.as_object().unwrap() {
            request[name] = value.clone();
        }
        let record = daemon.submit(&request).body;
        assert_eq!(
            (record["split"].as_str(), &record["verifier"]),
            (side, &json!(verifier)),
            "{record}"
        );
    }

    // An arm's agent need not be one that requests may choose.
    let mut refused = request(1);
    refused["agents"] = json!({"verifier": "strict"});
    daemon.submit(&refused).refused(400, Some("agents.verifier"), &["not allowed"]);
}

#[test]
fn a_resumed_run_keeps_its_arm() {
    let all = ["agents.split.role=verifier", "agents.split.other=strict", "agents.split.share=1.0"];
    let daemon = Daemon::start(&all);
    let run = daemon.submitted(
        &json!({"task": "tower-of-hanoi", "input": {"n": 15, "from": 0, "to": 2}, "fanout": 1}),
    );

    daemon.until(&run, |record| record["events"].as_u64() > Some(100) || is_over(record));
    let daemon = Daemon::start_in(&daemon.kill(), &[]);
    let record = daemon.finished(&run);
    assert_eq!((&record["split"], &record["verifier"]), (&json!("b"), &json!("strict")));

    let report = daemon.get("/v1/split").body;
    assert_eq!(
        (&report["split"], &report["arms"][0]["arm"]),
        (&Value::Null, &json!("b")),
        "it is off by now"
    );
}

#[test]
fn the_command_run_takes_part() {
    let sets: Vec<_> = HALF.iter().flat_map(|set| ["--set", *set]).collect();
    let side = |seed: u64| {
        let seed = format!("run.seed={seed}");
        let result = run(&[&["bubble-sort"], &REFERENCE, &sets, &["--set", &seed]]).json(0);
        let side = result["split"].as_str().unwrap().to_owned();
        assert_eq!(result["verifier"], if side == "b" { "strict" } else { "rules" });
        side
    };

    let sides: Vec<_> = (0..6).map(side).collect();
    assert!(sides.contains(&"a".to_owned()) && sides.contains(&"b".to_owned()), "{sides:?}");

    // A daemon assigns the same instance with the same seed to the same arm.
    let daemon = Daemon::start(&HALF);
    let of_daemon =
        (0..6).map(|seed| daemon.submit(&request(seed)).body["split"].as_str().unwrap().to_owned());
    assert_eq!(of_daemon.collect::<Vec<_>>(), sides);
}
