//! The agents that a request may choose: what is offered, and that what is offered runs.

use serde_json::{Value, json};

#[cfg(feature = "llama")]
use crate::binary::shown;
use crate::daemon::Daemon;

/// Agents of a role by name, as the daemon lists them.
fn agent(daemon: &Daemon, role: &str, name: &str) -> Value {
    let listed = daemon.get("/v1/agents").body;
    let agents = listed["agents"].as_array().unwrap();
    let found = agents.iter().find(|agent| agent["role"] == role && agent["name"] == name);
    found.unwrap_or_else(|| panic!("{role} {name}: {listed}")).clone()
}

#[test]
fn agents_that_cannot_run_say_why_and_their_runs_are_refused_alike() {
    let daemon = Daemon::start(&[
        "agents.executor.implementation=scripted",
        r#"server.allow_executors=["reference", "replay", "process"]"#,
    ]);

    let (reference, uniform) =
        (agent(&daemon, "executor", "reference"), agent(&daemon, "executor", "uniform"));
    assert_eq!((&reference["allowed"], &reference["refusal"]), (&json!(true), &Value::Null));
    assert_eq!((&uniform["allowed"], &uniform["refusal"]), (&json!(false), &Value::Null));
    assert_eq!(reference["models"], json!([]));

    for (name, field, reason) in
        [("replay", Some("agents.executor"), "needs lines"), ("process", None, "command")]
    {
        let listed = agent(&daemon, "executor", name);
        let refusal = listed["refusal"].as_str().unwrap_or_else(|| panic!("{listed}"));
        assert!(refusal.contains(reason), "{name}: {refusal}");
        let request = json!({"task": "tower-of-hanoi", "agents": {"executor": name}});
        daemon.submit(&request).refused(400, field, &[reason]);
    }

    // The configured one may be named although no list has it.
    let named = json!({"task": "tower-of-hanoi", "agents": {"executor": "scripted"}});
    assert_eq!(daemon.finished(&daemon.submitted(&named))["agents"]["executor"], "scripted");
}

#[cfg(feature = "llama")]
#[test]
fn a_definition_that_requests_may_choose_runs_with_its_own_model() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("executor")).unwrap();
    let definition = "implementation = \"llama\"\nengine = \"sorts\"";
    std::fs::write(folder.path().join("executor/sorter.toml"), definition).unwrap();
    let daemon = Daemon::start(&[
        "agents.executor.implementation=scripted",
        &format!("agents.folder={}", shown(folder.path())),
        r#"server.allow_executors=["llama", "sorter"]"#,
    ]);

    let sorter = agent(&daemon, "executor", "sorter");
    assert_eq!((&sorter["models"], &sorter["refusal"]), (&json!(["prime-sorts"]), &Value::Null));
    // The implementation that the lists name by default starts no engine.
    let llama = agent(&daemon, "executor", "llama");
    assert!(llama["refusal"].as_str().unwrap().contains("not running"), "{llama}");

    // Among many models, the one that is asked about the task.
    let asked = daemon.get("/v1/agents?task=heap-sort").body;
    let asked = asked["agents"].as_array().unwrap().iter();
    let mut asked = asked.filter(|agent| agent["name"] == "llama" && agent["role"] == "executor");
    assert_eq!(asked.next().unwrap()["models"], json!(["prime-sorts"]));

    let request = json!({
        "task": "heap-sort", "difficulty": "easy", "index": 1, "fanout": 1,
        "agents": {"executor": "sorter"},
    });
    let record = daemon.finished(&daemon.submitted(&request));
    assert_eq!(
        (&record["status"], &record["agents"]["executor"]),
        (&json!("verified"), &json!("sorter"))
    );
    assert!(record["engines"]["sorts"].is_string(), "{record}");
}
