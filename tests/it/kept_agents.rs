//! A run keeps the agents that it was accepted with, whatever configuration the next process or a
//! reload brings.
#![allow(clippy::disallowed_methods, reason = "these tests replace files of other processes")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::binary::{prime, shown};
use crate::daemon::{Daemon, Home};

/// Bytes by which a journal may still grow. The first commit of a run fits: it holds at most what a
/// run may have pending, 256 KiB that are compressed to a fifth. The whole run takes about 450 KiB.
const ROOM: u64 = 192 << 10;

const SCRIPTED: &str = "agents.executor.implementation=scripted";
const ERRING: &str = "agents.executor.error_rate=0.01";

/// A configuration of one role, and whether a run under it has steps that are rejected.
struct Side {
    sets: &'static [&'static str],
    agent: &'static str,
    rejects: bool,
    /// Where it does not depend on which errors the executor makes.
    is_verified: Option<bool>,
}

/// A role with two agents that can be told apart by what they do.
struct Pair {
    role: &'static str,
    both: &'static [&'static str],
    sides: [Side; 2],
}

const PAIRS: [Pair; 3] = [
    Pair {
        role: "executor",
        both: &[ERRING],
        sides: [
            Side { sets: &[SCRIPTED], agent: "scripted", rejects: true, is_verified: None },
            Side { sets: &[], agent: "reference", rejects: false, is_verified: Some(true) },
        ],
    },
    Pair {
        role: "verifier",
        both: &[SCRIPTED, ERRING],
        sides: [
            Side { sets: &[], agent: "rules", rejects: true, is_verified: None },
            Side {
                sets: &["agents.verifier.implementation=none"],
                agent: "none",
                rejects: false,
                is_verified: Some(false),
            },
        ],
    },
    Pair {
        role: "coordinator",
        both: &[SCRIPTED, ERRING],
        sides: [
            Side { sets: &[], agent: "threshold", rejects: true, is_verified: None },
            // Its thresholds are beyond every score.
            Side {
                sets: &[
                    "agents.coordinator.implementation=adaptive",
                    "agents.coordinator.adaptive.gain=0.0",
                    "agents.coordinator.adaptive.tau_max=1000.0",
                    "run.retries_max=0",
                    "run.tau_soft=1000.0",
                    "run.tau_hard=1000.0",
                ],
                agent: "adaptive",
                rejects: false,
                is_verified: Some(false),
            },
        ],
    },
];

/// Too long for the journal's room. With this seed no error ends the run early where nothing
/// rejects it.
fn request() -> Value {
    json!({
        "task": "tower-of-hanoi", "input": {"n": 14, "from": 0, "to": 2}, "fanout": 1,
        "max_rounds": 1, "seed": 9,
    })
}

/// The lines of a run's trace.
fn trace(daemon: &Daemon, run: &str) -> Vec<Value> {
    let text = daemon.text(&format!("{run}/trace?states=false"));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// How many applicable steps after the last event of this name were rejected.
fn rejected_after(trace: &[Value], event: &str) -> usize {
    let from = trace
        .iter()
        .rposition(|line| line["event"] == event)
        .unwrap_or_else(|| panic!("no event {event}"));
    let is_rejected = |line: &&Value| line["event"] == "step" && line["decision"] != "proceed";
    trace[from..].iter().filter(is_rejected).count()
}

/// Accepts a run in one process and ends it in another one.
fn accepted_and_ended(pair: &Pair, accepted: &Side, ended: &Side) {
    let what = format!("{}: {}, then {}", pair.role, accepted.agent, ended.agent);
    let sets = |side: &Side| [pair.both, side.sets].concat();
    let whole = Daemon::start(&sets(accepted));
    let whole = whole.finished(&whole.submitted(&request()));

    let daemon = Daemon::start(&sets(accepted));
    daemon.limit_journal(Some(ROOM));
    let run = daemon.submitted(&request());
    daemon.until_not_writable();
    let before = daemon.get(&run).body;
    assert_eq!(before["status"], "running", "{what}: {before}");

    let daemon = Daemon::start_in(&daemon.kill(), &sets(ended));
    let after = daemon.finished(&run);
    for field in ["agents", "verifier", "checked_kinds", "notes", "config_hash"] {
        assert_eq!(after[field], before[field], "{what}: {field}");
    }
    assert_eq!(
        (&after["agents"][pair.role], &after["resumed"]),
        (&json!(accepted.agent), &json!(1)),
        "{what}"
    );
    for field in
        ["status", "answer", "steps", "proposals", "retries", "backtracks", "notes", "config_hash"]
    {
        assert_eq!(after[field], whole[field], "{what}: {field}, as without a restart");
    }
    if let Some(is_verified) = accepted.is_verified {
        assert_eq!(after["status"], if is_verified { "verified" } else { "unverified" }, "{what}");
    }
    let rejected = rejected_after(&trace(&daemon, &run), "resumed");
    assert_eq!(
        rejected > 0,
        accepted.rejects,
        "{what}: {rejected} steps are rejected after the resumption"
    );

    // A fork continues with the agents of its parent, not with the configured ones.
    let fork = daemon.post(&format!("{run}/fork?seq=50"));
    assert_eq!(fork.status, 202, "{what}: {fork:?}");
    let fork = fork.location.unwrap();
    let forked = daemon.finished(&fork);
    for field in ["agents", "verifier", "checked_kinds", "notes", "status"] {
        assert_eq!(forked[field], after[field], "{what}: {field} of the fork");
    }
    let rejected = rejected_after(&trace(&daemon, &fork), "forked");
    assert_eq!(rejected > 0, accepted.rejects, "{what}: {rejected} steps of the fork are rejected");

    // A new run has the present agents.
    let new = daemon.submit(&json!({"task": "dfa-simulation"}));
    assert_eq!(new.body["agents"][pair.role], ended.agent, "{what}");
}

fn both_ways(pair: &Pair) {
    let [one, other] = &pair.sides;
    accepted_and_ended(pair, one, other);
    accepted_and_ended(pair, other, one);
}

#[test]
fn a_resumed_run_keeps_its_executor() {
    both_ways(&PAIRS[0]);
}

#[test]
fn a_resumed_run_keeps_its_verifier() {
    both_ways(&PAIRS[1]);
}

#[test]
fn a_resumed_run_keeps_its_coordinator() {
    both_ways(&PAIRS[2]);
}

#[test]
fn the_label_of_an_executor_that_is_no_model_stays() {
    let daemon = Daemon::start(&[]);
    daemon.limit_journal(Some(ROOM));
    let run = daemon.submitted(&request());
    daemon.until_not_writable();

    let daemon =
        Daemon::start_in(&daemon.kill(), &[SCRIPTED, "agents.verifier.implementation=reference"]);
    let after = daemon.finished(&run);
    assert_eq!(
        after["notes"],
        json!(["executor `reference` is the task's own algorithm, not a model"])
    );

    let shown = prime(&["runs", "show", "--url", &daemon.url(""), after["id"].as_str().unwrap()])
        .output()
        .unwrap();
    assert!(
        String::from_utf8(shown.stdout)
            .unwrap()
            .contains("is the task's own algorithm, not a model")
    );
}

/// A configuration's file whose executor is a program beside the journal.
struct Files {
    home: Arc<Home>,
    file: PathBuf,
    program: PathBuf,
}

impl Files {
    fn new() -> Self {
        let home = Home::new();
        let beside = |name| home.journal().with_file_name(name);
        let (file, program) = (beside("prime.toml"), beside("executor.py"));
        let files = Self { home, file, program };
        files.install();
        files.configure("process");
        files
    }

    /// Puts the program where the configuration says.
    fn install(&self) {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/examples");
        for name in ["executor.py", "prime_agent.py"] {
            let file = self.program.with_file_name(name);
            std::fs::write(&file, std::fs::read(examples.join(name)).unwrap()).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn configure(&self, executor: &str) {
        let text = format!(
            "[agents.executor]\nimplementation = {executor:?}\n[agents.executor.program]\n\
             command = [{:?}]\n[server]\nbind = \"127.0.0.1:0\"\n[journal]\npath = {:?}\n",
            shown(&self.program),
            shown(&self.home.journal())
        );
        std::fs::write(&self.file, text).unwrap();
    }

    fn start(&self) -> Daemon {
        let mut command = prime(&["serve", "--config", shown(&self.file)]);
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
        Daemon::spawn(command, &self.home).unwrap()
    }

    /// A daemon with runs whose executor is gone, and their paths.
    fn waiting(&self, runs: usize) -> (Daemon, Vec<String>) {
        let daemon = self.start();
        let runs: Vec<_> = (0..runs).map(|_| daemon.submitted(&request())).collect();
        daemon.limit_journal(Some(ROOM));
        daemon.until_not_writable();
        let home = daemon.kill();
        assert!(Arc::ptr_eq(&home, &self.home));
        std::fs::remove_file(&self.program).unwrap();

        // The program is gone, and nothing new uses it.
        self.configure("reference");
        let daemon = self.start();

        for run in &runs {
            let record = daemon.until(run, |record| !record["waiting_for"].is_null());
            let expected =
                format!("executor `process`: its program {} does not exist", shown(&self.program));
            assert!(record["waiting_for"].as_str().unwrap().starts_with(&expected), "{record}");
            assert_eq!(
                (&record["status"], &record["agents"]["executor"]),
                (&json!("queued"), &json!("process"))
            );
        }
        (daemon, runs)
    }
}

#[test]
fn a_run_without_its_program_waits_and_continues_after_a_reload() {
    let files = Files::new();
    let (daemon, runs) = files.waiting(2);
    let events = |run: &str| daemon.get(run).body["events"].clone();
    let before: Vec<_> = runs.iter().map(|run| events(run)).collect();

    // Others are not held up.
    assert_eq!(
        daemon.finished(&daemon.submitted(&json!({"task": "dfa-simulation"})))["status"],
        "verified"
    );
    assert_eq!(runs.iter().map(|run| events(run)).collect::<Vec<_>>(), before);

    let listed = daemon.get("/v1/runs?status=queued").body;
    assert_eq!(listed["runs"].as_array().unwrap().len(), 2, "{listed}");

    let shown = prime(&["runs", "list", "--url", &daemon.url("")]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert_eq!(shown.matches("waits for executor `process`: its program").count(), 2, "{shown}");
    let id = runs[0].rsplit('/').next().unwrap();
    let shown = prime(&["runs", "show", "--url", &daemon.url(""), id]).output().unwrap();
    assert!(
        String::from_utf8(shown.stdout)
            .unwrap()
            .contains("waits for  executor `process`: its program")
    );

    // One is cancelled while it waits, and ends with what is committed.
    let cancelled = daemon.post(&format!("{}/cancel", runs[1])).body;
    assert_eq!(
        (&cancelled["status"], &cancelled["waiting_for"]),
        (&json!("cancelled"), &Value::Null)
    );
    assert_eq!(cancelled["agents"]["executor"], "process");

    // A reload that does not bring the agent back changes nothing.
    assert_eq!(daemon.post("/v1/reload").status, 200);
    assert!(!daemon.get(&runs[0]).body["waiting_for"].is_null());

    files.install();
    assert_eq!(daemon.post("/v1/reload").status, 200);
    let after = daemon.finished(&runs[0]);
    assert_eq!(
        (&after["status"], &after["agents"]["executor"]),
        (&json!("verified"), &json!("process"))
    );
    assert_eq!((&after["resumed"], &after["waiting_for"]), (&json!(1), &Value::Null));
}

#[test]
fn a_run_that_waits_survives_another_kill() {
    let files = Files::new();
    let (daemon, runs) = files.waiting(1);
    daemon.kill();
    files.install();
    let daemon = files.start();
    let after = daemon.finished(&runs[0]);
    assert_eq!(
        (&after["status"], &after["agents"]["executor"]),
        (&json!("verified"), &json!("process"))
    );

    // The process in which it waited did not execute it.
    assert_eq!(after["resumed"], 1);
    assert_eq!(after["steps"], 16_383);
}

#[test]
fn a_run_names_the_engine_that_it_asks_and_needs_no_other() {
    let llama = ["agents.executor.implementation=llama"];
    let daemon = Daemon::start(&llama);
    let run = daemon.submitted(&json!({"task": "tower-of-hanoi", "fanout": 1}));

    let model = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("models/prime-tiny.gguf"))
        .unwrap();
    let digest = Sha256::digest(model)
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    let engines = json!({ "tiny": digest });
    assert_eq!(daemon.get(&run).body["engines"], engines);

    // The next process has other agents, and of the engines of then only this one.
    let daemon = Daemon::start_in(
        &daemon.kill(),
        &[
            "agents.executor.engine=tiny",
            "engines.automata.model=gone.gguf",
            "engines.sorts.model=gone.gguf",
        ],
    );

    let after = daemon.finished(&run);
    assert_eq!(
        (&after["status"], &after["waiting_for"]),
        (&json!("verified"), &Value::Null),
        "{after}"
    );
    assert_eq!((&after["engines"], &after["agents"]["executor"]), (&engines, &json!("llama")));

    let shown = prime(&["runs", "show", "--url", &daemon.url(""), after["id"].as_str().unwrap()])
        .output()
        .unwrap();
    assert!(String::from_utf8(shown.stdout).unwrap().contains("model  tiny\n"));
}
