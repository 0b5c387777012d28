//! A journal that cannot be written for a while: nothing is acknowledged that is not durable, runs wait, and all goes on
//! by itself.
#![allow(clippy::disallowed_methods, reason = "these tests measure other processes, in real time")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use crate::daemon::{Daemon, Home, is_over};
use crate::figures::{load, optimised};
use crate::records::Remembered;

const RUNS: usize = 8;
const SETS: [&str; 3] = ["agents.executor.implementation=scripted", "log.level=warn", "run.pops_max=1000000"];
/// From the first write that cannot be done to a daemon that says so; and from room to one that is ready.
const SAID_WITHIN: Duration = Duration::from_secs(1);
const READY_WITHIN: Duration = Duration::from_secs(1);
/// For a machine that does other things at the same time.
const ALLOWANCE: Duration = Duration::from_secs(optimised(2, 10));

fn run(seed: usize) -> Value {
    let discs = optimised(16, 10);
    json!({"task": "tower-of-hanoi", "input": {"n": discs, "from": 0, "to": 2}, "fanout": 1, "seed": seed})
}

/// Waits until the daemon is ready or not; gives the body of `/readyz` and how long it took.
fn until_ready(daemon: &Daemon, is_ready: bool) -> (Value, Duration) {
    let began = Instant::now();
    let body = daemon.until("/readyz", |body| body["ready"] == is_ready);
    let took = began.elapsed();
    let status = daemon.get("/readyz").status;
    assert_eq!(status, if is_ready { 200 } else { 503 }, "{body}");
    (body, took)
}

/// Goes on handing in runs with keys until it is told to stop; the keys and ids of those that were acknowledged, and the
/// keys of those that were refused.
fn hand_in(daemon: &Daemon, stop: &AtomicBool) -> (Vec<(String, String)>, Vec<String>) {
    let (mut taken, mut refused) = (Vec::new(), Vec::new());
    for number in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let key = format!("amid {number}");
        let answer = daemon.with_key(&key, &json!({"task": "dfa-simulation", "index": number % 200}));
        match answer.status {
            202 => taken.push((key, answer.body["id"].as_str().expect("an id").to_owned())),
            // Full of runs that wait.
            429 => {}
            503 => {
                assert_eq!(answer.body["error"]["code"], "journal_not_writable", "{answer:?}");
                assert!(answer.retry_after.is_some(), "{answer:?}");
                refused.push(key);
            }
            _ => panic!("{answer:?}"),
        }
    }
    (taken, refused)
}

/// What holds while there is no room: `fill` takes it, `make_room` gives it back. The daemon that is ended at the end
/// must find everything again.
fn runs_wait_for_room(daemon: &Daemon, fill: &dyn Fn(), make_room: &dyn Fn()) {
    let runs: Vec<_> = (0..RUNS).map(|seed| daemon.submitted(&run(seed))).collect();
    for run in &runs {
        daemon.until(run, |record| record["events"].as_u64().unwrap() > 50);
    }
    let mut remembered = Remembered::default();
    remembered.see_all(daemon);
    let stop = AtomicBool::new(false);
    let ((mut taken, refused), said, returned) = std::thread::scope(|scope| {
        let client = scope.spawn(|| hand_in(daemon, &stop));
        fill();
        let (body, said) = until_ready(daemon, false);
        let reason = body["journal"]["failure"].as_str().expect("a reason");
        assert!(body["journal"]["writable"] == false && reason.contains("cannot be written"), "{body}");
        assert_eq!(daemon.get("/livez").status, 200);
        let refusal = daemon.submit(&run(0));
        assert_eq!((refusal.status, &refusal.body["error"]["code"]), (503, &json!("journal_not_writable")));
        assert!(refusal.retry_after.is_some(), "{refusal:?}");

        // Nothing of the waiting runs is shown that is not durable, and none is given up.
        let waiting: Vec<_> = runs.iter().map(|run| daemon.get(run).body).collect();
        assert!(waiting.iter().any(|record| !is_over(record)), "all were over before: they are too short");
        for _ in 0..20 {
            for (run, before) in runs.iter().zip(&waiting) {
                let record = daemon.get(run).body;
                remembered.see(&record);
                assert_eq!((&record["events"], &record["chain"]), (&before["events"], &before["chain"]));
                assert!(is_over(&record) == is_over(before) && record["status"] != "failed", "{record}");
            }
            assert_eq!(daemon.get("/readyz").status, 503);
        }
        make_room();
        let (_, returned) = until_ready(daemon, true);
        stop.store(true, Ordering::SeqCst);
        (client.join().unwrap(), said, returned)
    });

    for run in &runs {
        let record = daemon.finished(run);
        assert!(record["failure"].is_null(), "{record}");
        remembered.see(&record);
        remembered.check(daemon, run);
    }
    for (key, id) in &taken {
        let record = daemon.finished(&format!("/v1/runs/{id}"));
        assert_eq!((&record["id"], &record["failure"]), (&json!(id), &Value::Null), "{key}");
    }
    let listed = |daemon: &Daemon| daemon.get("/v1/runs?limit=1000").body["runs"].as_array().unwrap().len();
    assert_eq!(listed(daemon), RUNS + taken.len(), "what was refused is not there");
    // What was refused can be handed in again under its key.
    for key in refused.iter().take(3) {
        let number: usize = key.rsplit(' ').next().unwrap().parse().unwrap();
        let answer = daemon.with_key(key, &json!({"task": "dfa-simulation", "index": number % 200}));
        assert_eq!(answer.status, 202, "{answer:?}");
        taken.push((key.clone(), answer.body["id"].as_str().unwrap().to_owned()));
    }
    assert_eq!(listed(daemon), RUNS + taken.len());
    eprintln!(
        "disk: not ready {said:.0?} after there was no room, ready {returned:.0?} after there was; {} runs taken and {} \
         refused amid that; {}",
        taken.len(),
        refused.len(),
        load()
    );
    assert!(said <= SAID_WITHIN + ALLOWANCE, "{said:?}");
    assert!(returned <= READY_WITHIN + ALLOWANCE, "{returned:?}");
}

/// Sets the largest size of a file that a process may write.
fn limit_files(daemon: &Daemon, bytes: Option<u64>) {
    prlimit(Some(daemon.pid()), Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
}

fn log_of(home: &Home) -> std::path::PathBuf {
    let mut name = home.journal().into_os_string();
    name.push("-wal");
    name.into()
}

#[test]
fn runs_wait_while_files_may_not_grow() {
    let home = Home::new();
    let daemon = Daemon::start_in(&home, &SETS);
    let fill = || {
        let size = std::fs::metadata(log_of(&home)).unwrap().len();
        // Some writes still fit.
        limit_files(&daemon, Some(size + (16 << 10)));
    };
    runs_wait_for_room(&daemon, &fill, &|| limit_files(&daemon, None));
}

#[test]
fn a_daemon_that_starts_without_room_waits_for_it() {
    let home = Home::new();
    let daemon = Daemon::start_in(&home, &SETS);
    let runs: Vec<_> = (0..RUNS).map(|seed| daemon.submitted(&run(seed))).collect();
    for run in &runs {
        daemon.until(run, |record| record["events"].as_u64().unwrap() > 50);
    }
    let mut remembered = Remembered::default();
    remembered.see_all(&daemon);
    daemon.kill();
    // Files of 64 KiB at most, in blocks of 512 bytes: less than there is.
    let plain = Daemon::command(&home, &SETS);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -S -f 128; exec \"$0\" \"$@\""]).arg(plain.get_program()).args(plain.get_args());
    limited.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let daemon = Daemon::spawn(limited, &home).unwrap_or_else(|log| panic!("it ended: {log}"));
    let (body, _) = until_ready(&daemon, false);
    assert_eq!(body["live_runs"], RUNS, "{body}");
    for run in &runs {
        let record = daemon.get(run).body;
        assert_eq!((&record["status"], record["failure"].is_null()), (&json!("running"), true), "{record}");
        remembered.see(&record);
    }
    limit_files(&daemon, None);
    until_ready(&daemon, true);
    for run in &runs {
        let record = daemon.finished(run);
        assert_eq!((&record["resumed"], record["failure"].is_null()), (&json!(1), true), "{record}");
        remembered.check(&daemon, run);
    }
}

/// Whether this user may mount in a namespace of its own.
fn may_mount() -> bool {
    let mount = Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "tmpfs", "/tmp"]).output();
    mount.is_ok_and(|output| output.status.success())
}

/// A daemon in a namespace in which its journal's folder is a file system of 32 MiB.
fn on_a_small_disk(home: &Arc<Home>) -> Daemon {
    let plain = Daemon::command(home, &SETS);
    let journal = home.journal();
    let folder = journal.parent().unwrap();
    let script = "mount -t tmpfs -o size=32m tmpfs \"$FOLDER\" && exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script]).arg(plain.get_program()).args(plain.get_args());
    command.env_clear().env("FOLDER", folder).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Daemon::spawn(command, home).unwrap_or_else(|log| panic!("it ended: {log}"))
}

/// A path as the daemon sees it.
fn inside(daemon: &Daemon, path: &Path) -> std::path::PathBuf {
    let root = format!("/proc/{}/root", daemon.pid().as_raw_nonzero());
    Path::new(&root).join(path.strip_prefix("/").unwrap())
}

#[test]
fn runs_wait_while_the_disk_is_full() {
    if !may_mount() {
        eprintln!("skipped: this user may not mount; `runs_wait_while_files_may_not_grow` is the same elsewhere");
        return;
    }
    let home = Home::new();
    let daemon = on_a_small_disk(&home);
    let ballast = inside(&daemon, &home.journal().with_file_name("ballast"));
    let fill = || {
        // As much as there is room for.
        let full = std::fs::write(&ballast, vec![1; 64 << 20]).expect_err("no room");
        assert_eq!(full.raw_os_error(), Some(28), "{full}");
    };
    let make_room = || {
        let status = Command::new("nsenter")
            .args(["-t", &daemon.pid().as_raw_nonzero().to_string(), "-U", "-m", "--preserve-credentials"])
            .args(["mount", "-o", "remount,size=256m"])
            .arg(home.journal().parent().unwrap())
            .status();
        assert!(status.is_ok_and(|status| status.success()), "more room");
    };
    runs_wait_for_room(&daemon, &fill, &make_room);
}
