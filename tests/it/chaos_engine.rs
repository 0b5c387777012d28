//! The daemon with the shipped model, whose worker process is killed, stopped and aborted at random
//! moments: every run ends, the daemon survives, and `/readyz` tells the truth.
//! `make chaos FAULTS=100` is the long version.
#![allow(clippy::disallowed_methods, reason = "these tests measure other processes, in real time")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::binary::shown;
use crate::daemon::{Daemon, Home, PATIENCE};
use crate::figures::{chaos_seed, from_env, load};

/// Open runs whenever a fault strikes.
const RUNS: usize = 6;
const SETS: [&str; 7] = [
    "agents.executor.implementation=llama",
    // One worker.
    "agents.executor.engine=tiny",
    "engines.tiny.restarts_max=1000",
    // Earlier deaths do not delay the next start.
    "engines.tiny.restart_window_ms=1000",
    // Longer than it takes to detect a silent engine.
    "engines.tiny.deadline_ms=6000",
    "server.queue_max=100000",
    "log.level=error",
];

/// A fault of a worker.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Killed,
    Aborted,
    Stopped,
}

impl Fault {
    fn signal(self) -> Signal {
        match self {
            Self::Killed => Signal::KILL,
            Self::Aborted => Signal::ABORT,
            Self::Stopped => Signal::STOP,
        }
    }
}

/// The worker of the daemon; `None` while there is none.
fn worker(daemon: &Daemon) -> Option<Pid> {
    let parent = daemon.pid().as_raw_nonzero().get();
    let processes = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());

    let is_worker = |pid: &i32| {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
        // The state and the parent follow the name, which may contain anything.
        let (_, rest) = stat.rsplit_once(") ").unwrap_or_default();
        let mut fields = rest.split(' ');
        fields.next() != Some("Z") && fields.next() == Some(&parent.to_string())
    };

    processes.filter(is_worker).find_map(Pid::from_raw)
}

/// `/readyz`, which must not contradict itself.
fn readiness(daemon: &Daemon) -> Value {
    let answer = daemon.get("/readyz");
    let body = answer.body;
    let ready = body["ready"] == true;
    assert_eq!(answer.status, if ready { 200 } else { 503 }, "{body}");
    assert!(
        !ready || (body["engine"]["ready"] == true && body["journal"]["writable"] == true),
        "{body}"
    );
    assert!(body["engine"]["failure"].is_null(), "{body}");
    body
}

/// Polls until `is_so`; returns whether the daemon was ever not ready meanwhile.
fn until(daemon: &Daemon, is_so: impl Fn(&Value) -> bool) -> bool {
    let began = Instant::now();
    let mut was_away = false;
    loop {
        let body = readiness(daemon);
        was_away |= body["ready"] == false;
        if is_so(&body) {
            return was_away;
        }
        assert!(began.elapsed() < PATIENCE, "not in time: {body}");
    }
}

fn run(number: usize) -> Value {
    let task = ["n-queens", "long-division", "tower-of-hanoi"][number % 3];
    json!({"task": task, "index": number % 200, "seed": number})
}

/// A worker that cannot start again, until its model's file is back.
#[test]
fn runs_wait_for_a_lost_engine_and_new_ones_are_refused() {
    let home = Home::new();
    let model = home.journal().with_file_name("model.gguf");
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/models/prime-tiny.gguf");
    std::fs::copy(shipped, &model).unwrap();
    let path = format!("engines.tiny.model={}", shown(&model));
    let daemon =
        Daemon::start_in(&home, &[SETS[0], SETS[1], SETS[6], "engines.tiny.restarts_max=0", &path]);

    // Without the task that takes the model hundreds of steps.
    let open: Vec<_> = [0, 1, 3, 4].map(|number| daemon.submitted(&run(number))).into();
    until(&daemon, |body| body["engine"]["in_flight"].as_u64() > Some(0));

    std::fs::remove_file(&model).unwrap();
    kill_process(worker(&daemon).expect("a worker"), Signal::KILL).unwrap();
    let lost = daemon.until("/readyz", |body| body["engine"]["failure"].is_string());
    assert!(lost["ready"] == false, "{lost}");

    // Later deaths name the cause that keeps it away.
    let refused = daemon.until_refused(&run(6), "model.gguf");
    assert_eq!(
        (refused.status, &refused.body["error"]["code"]),
        (503, &json!("engine_lost")),
        "{refused:?}"
    );
    refused.refused(503, None, &["engine `tiny`", "started again in", "reload"]);
    assert!(refused.retry_after.is_some(), "{refused:?}");

    for location in &open {
        let record = daemon.get(location).body;
        assert!(record["status"] == "running" || record["failure"].is_null(), "{record}");
    }

    std::fs::copy(shipped, &model).unwrap();
    assert_eq!(daemon.post("/v1/reload").status, 200);
    for location in &open {
        let record = daemon.finished(location);
        assert!(record["status"] != "failed", "{record}");
    }

    until(&daemon, |body| body["ready"] == true);
    daemon.finished(&daemon.submitted(&run(7)));
}

#[test]
fn runs_end_whatever_happens_to_the_worker() {
    let faults = from_env("PRIME_CHAOS_FAULTS", 9);
    let seed = chaos_seed();
    eprintln!("engine chaos: PRIME_CHAOS_FAULTS={faults}, {}", load());
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let daemon = Daemon::start(&SETS);
    let mut runs = Vec::new();
    let mut away: Vec<Duration> = Vec::new();

    for number in 0..faults {
        // Each kind once, then at random.
        let kinds = [Fault::Killed, Fault::Aborted, Fault::Stopped];
        let fault = kinds
            [if number < 3 { usize::try_from(number).unwrap() } else { rng.random_range(0..3) }];

        while readiness(&daemon)["live_runs"].as_u64().unwrap() < RUNS as u64 {
            runs.push(daemon.submitted(&run(runs.len())));
        }

        // At a random moment, after some tokens.
        for _ in 0..rng.random_range(0..20) {
            readiness(&daemon);
        }

        until(&daemon, |body| body["engine"]["in_flight"].as_u64() > Some(0));
        let before = readiness(&daemon)["engine"]["restarts"].clone();
        let victim = worker(&daemon).expect("a worker");
        kill_process(victim, fault.signal()).unwrap();

        let began = Instant::now();
        let is_back = |body: &Value| {
            body["engine"]["restarts"].as_u64() > before.as_u64() && body["ready"] == true
        };
        let was_away = until(&daemon, is_back);
        away.push(began.elapsed());

        // A stopped worker is silent for seconds; the others may be replaced between two polls.
        assert!(
            was_away || fault != Fault::Stopped,
            "a daemon whose worker is stopped called itself ready"
        );
        assert!(worker(&daemon).is_none_or(|new| new != victim), "{fault:?}: it is another worker");
        assert_eq!(daemon.get("/livez").status, 200);
    }

    let mut statuses = BTreeMap::new();
    for run in &runs {
        let record = daemon.finished(run);
        *statuses.entry(record["status"].as_str().unwrap().to_owned()).or_insert(0) += 1;
    }

    until(&daemon, |body| {
        body["live_runs"] == 0 && body["engine"]["in_flight"] == 0 && body["ready"] == true
    });

    eprintln!(
        "engine chaos: {faults} faults, {} runs over ({statuses:?}); ready again after {:.1?} at \
         most; {}",
        runs.len(),
        away.iter().max(),
        load()
    );

    assert!(statuses.get("verified").is_some_and(|verified| *verified > 0), "{statuses:?}");
    let (code, log) = daemon.end_by(Signal::TERM);
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("panicked"), "{log}");
}
