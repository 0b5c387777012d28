//! A journal that cannot be written for a while: nothing is acknowledged before it is durable, runs
//! wait, and everything resumes on its own.
#![allow(clippy::disallowed_methods, reason = "these tests measure other processes, in real time")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::daemon::{Daemon, Home, is_over};
use crate::figures::{load, optimised, promise};
use crate::records::Remembered;

/// Runs, each of which needs more room than there is.
const RUNS: usize = 3;
const ROOM: u64 = 256 << 10;
const SETS: [&str; 3] =
    ["agents.executor.implementation=scripted", "log.level=warn", "run.pops_max=1000000"];
/// Longest times from the first write that fails until the daemon is not ready, and from new room
/// until it is ready again.
const SAID_WITHIN: Duration = Duration::from_secs(1);
const READY_WITHIN: Duration = Duration::from_secs(1);
/// Added to both for a machine with other load.
const ALLOWANCE: Duration = Duration::from_secs(optimised(2, 10));

fn run(seed: usize) -> Value {
    let discs = optimised(17, 15);
    json!({
        "task": "tower-of-hanoi", "input": {"n": discs, "from": 0, "to": 2}, "fanout": 1,
        "seed": seed,
    })
}

/// Waits until the daemon is ready or not; returns the body of `/readyz` and how long that took.
fn until_ready(daemon: &Daemon, is_ready: bool) -> (Value, Duration) {
    let began = Instant::now();
    let body = if is_ready {
        daemon.until("/readyz", |body| body["ready"] == true)
    } else {
        daemon.until_not_writable()
    };
    let took = began.elapsed();
    let status = daemon.get("/readyz").status;
    assert_eq!(status, if is_ready { 200 } else { 503 }, "{body}");
    (body, took)
}

/// Submits runs with keys until told to stop; returns the keys and ids of those that were
/// acknowledged, and the keys of those that were refused.
fn submit_until(daemon: &Daemon, stop: &AtomicBool) -> (Vec<(String, String)>, Vec<String>) {
    let (mut taken, mut refused) = (Vec::new(), Vec::new());
    for number in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }

        let key = format!("amid {number}");
        let answer =
            daemon.with_key(&key, &json!({"task": "dfa-simulation", "index": number % 200}));

        match answer.status {
            202 => taken.push((key, answer.body["id"].as_str().expect("an id").to_owned())),
            // The queue is full of runs that wait.
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

/// Submits runs that fill the room, as many as are accepted until then.
fn filling_runs(daemon: &Daemon) -> Vec<String> {
    let answers = (0..RUNS).map(|seed| daemon.submit(&run(seed)));
    let runs: Vec<_> = answers
        .filter(|answer| answer.status == 202)
        .map(|answer| answer.location.unwrap())
        .collect();
    assert!(!runs.is_empty(), "there was room for one at least");
    runs
}

/// Checks what holds with only [`ROOM`] left, after `fill` has taken that too, and after
/// `make_room`.
fn runs_wait_for_room(daemon: &Daemon, fill: &dyn Fn(), make_room: &dyn Fn()) {
    let runs = filling_runs(daemon);
    let mut remembered = Remembered::default();
    let stop = AtomicBool::new(false);

    let ((mut taken, refused), said, returned) = std::thread::scope(|scope| {
        let client = scope.spawn(|| submit_until(daemon, &stop));
        fill();
        let (body, said) = until_ready(daemon, false);
        let reason = body["journal"]["failure"].as_str().expect("a reason");
        assert!(
            body["journal"]["writable"] == false && reason.contains("cannot be written"),
            "{body}"
        );
        assert_eq!(daemon.get("/livez").status, 200);

        let refusal = daemon.submit(&run(0));
        assert_eq!(
            (refusal.status, &refusal.body["error"]["code"]),
            (503, &json!("journal_not_writable"))
        );
        assert!(refusal.retry_after.is_some(), "{refusal:?}");

        // Nothing is visible before it is durable, and no run is given up.
        let waiting: Vec<_> = runs.iter().map(|run| daemon.get(run).body).collect();
        assert!(
            waiting.iter().all(|record| !is_over(record)),
            "there was room for a whole run: {waiting:?}"
        );
        for _ in 0..20 {
            for (run, before) in runs.iter().zip(&waiting) {
                let record = daemon.get(run).body;
                remembered.see(&record);
                assert_eq!(
                    (&record["events"], &record["chain"]),
                    (&before["events"], &before["chain"])
                );
                assert!(!is_over(&record), "{record}");
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

    let listed =
        |daemon: &Daemon| daemon.get("/v1/runs?limit=1000").body["runs"].as_array().unwrap().len();
    assert_eq!(listed(daemon), runs.len() + taken.len(), "refused runs do not exist");

    // A refused run can be submitted again under its key.
    for key in refused.iter().take(3) {
        let number: usize = key.rsplit(' ').next().unwrap().parse().unwrap();
        let answer =
            daemon.with_key(key, &json!({"task": "dfa-simulation", "index": number % 200}));
        assert_eq!(answer.status, 202, "{answer:?}");
        taken.push((key.clone(), answer.body["id"].as_str().unwrap().to_owned()));
    }
    assert_eq!(listed(daemon), runs.len() + taken.len());

    eprintln!(
        "disk: {} runs accepted and {} refused meanwhile; {}",
        taken.len(),
        refused.len(),
        load()
    );

    promise("not ready on a full disk", said, SAID_WITHIN + ALLOWANCE);
    promise("ready again with room", returned, READY_WITHIN + ALLOWANCE);
}

#[test]
fn runs_wait_while_files_may_not_grow() {
    let daemon = Daemon::start(&SETS);
    daemon.limit_journal(Some(ROOM));
    runs_wait_for_room(&daemon, &|| daemon.limit_journal(Some(0)), &|| daemon.limit_journal(None));
}

#[test]
fn a_daemon_that_starts_without_room_waits_for_it() {
    let home = Home::new();
    let daemon = Daemon::start_in(&home, &SETS);
    daemon.limit_journal(Some(ROOM));
    let runs = filling_runs(&daemon);
    daemon.limit_journal(Some(0));
    daemon.until_not_writable();

    let mut remembered = Remembered::default();
    remembered.see_all(&daemon);

    // There may have been room to accept a run, but not for its first event.
    let has_started = |run: &String| daemon.get(run).body["events"].as_u64() > Some(0);
    let started: Vec<bool> = runs.iter().map(has_started).collect();
    daemon.kill();

    // Files of at most 64 KiB, in blocks of 512 bytes: less than there is.
    let plain = Daemon::command(&home, &SETS);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -S -f 128; exec \"$0\" \"$@\""])
        .arg(plain.get_program())
        .args(plain.get_args());
    limited.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());

    let daemon = Daemon::spawn(limited, &home).unwrap_or_else(|log| panic!("it exited: {log}"));
    let (body, _) = until_ready(&daemon, false);
    assert_eq!(body["live_runs"], runs.len(), "{body}");
    for (run, started) in runs.iter().zip(&started) {
        let record = daemon.get(run).body;
        let status = if *started { "running" } else { "queued" };
        assert_eq!(
            (&record["status"], record["failure"].is_null()),
            (&json!(status), true),
            "{record}"
        );
        remembered.see(&record);
    }

    daemon.limit_journal(None);
    until_ready(&daemon, true);
    for (run, started) in runs.iter().zip(&started) {
        let record = daemon.finished(run);
        let resumed = json!(u32::from(*started));
        assert_eq!((&record["resumed"], record["failure"].is_null()), (&resumed, true), "{record}");
        remembered.check(&daemon, run);
    }
}

/// True if this user may mount in a new namespace.
fn may_mount() -> bool {
    let mount =
        Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "tmpfs", "/tmp"]).output();
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
    Daemon::spawn(command, home).unwrap_or_else(|log| panic!("it exited: {log}"))
}

/// A path as the daemon sees it.
fn inside(daemon: &Daemon, path: &Path) -> std::path::PathBuf {
    let root = format!("/proc/{}/root", daemon.pid().as_raw_nonzero());
    Path::new(&root).join(path.strip_prefix("/").unwrap())
}

/// Takes all of a small disk but `room`.
fn take_all_but(ballast: &Path, room: u64) {
    let full = std::fs::write(ballast, vec![1; 64 << 20]).expect_err("no room");
    assert_eq!(full.raw_os_error(), Some(28), "{full}");
    let file = std::fs::File::options().write(true).open(ballast).unwrap();
    file.set_len(file.metadata().unwrap().len() - room).unwrap();
}

#[test]
fn finished_runs_can_be_removed_on_a_full_disk() {
    if !may_mount() {
        eprintln!("skipped: this user may not mount");
        return;
    }
    let home = Home::new();
    let daemon = on_a_small_disk(&home);
    let old: Vec<_> = (0..20)
        .map(|seed| daemon.submitted(&json!({"task": "dfa-simulation", "seed": seed})))
        .collect();
    old.iter().for_each(|run| assert!(is_over(&daemon.finished(run))));
    take_all_but(&inside(&daemon, &home.journal().with_file_name("ballast")), 0);
    daemon.submit(&run(0));
    daemon.until_not_writable();

    let removed = daemon.post_text("/v1/gc", r#"{"older_than_days": 0}"#);
    assert_eq!((removed.status, &removed.body["runs"]), (200, &json!(old.len())), "{removed:?}");
    assert_eq!(daemon.get(&old[0]).status, 404);
}

#[test]
fn runs_wait_while_the_disk_is_full() {
    if !may_mount() {
        eprintln!(
            "skipped: this user may not mount; `runs_wait_while_files_may_not_grow` covers the rest"
        );
        return;
    }
    let home = Home::new();
    let daemon = on_a_small_disk(&home);
    let ballast = inside(&daemon, &home.journal().with_file_name("ballast"));
    take_all_but(&ballast, ROOM);

    let fill = || {
        let mut file = std::fs::File::options().append(true).open(&ballast).unwrap();
        let full = file.write_all(&vec![1; 2 << 20]).expect_err("no room");
        assert_eq!(full.raw_os_error(), Some(28), "{full}");
    };
    let make_room = || {
        let status = Command::new("nsenter")
            .args([
                "-t",
                &daemon.pid().as_raw_nonzero().to_string(),
                "-U",
                "-m",
                "--preserve-credentials",
            ])
            .args(["mount", "-o", "remount,size=256m"])
            .arg(home.journal().parent().unwrap())
            .status();
        assert!(status.is_ok_and(|status| status.success()), "more room");
    };

    runs_wait_for_room(&daemon, &fill, &make_room);
}
