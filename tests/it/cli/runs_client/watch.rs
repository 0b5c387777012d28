//! `runs watch`, also over connections that break.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout};

use serde_json::{Value, json};

use super::{Answers, SCRIPTED, command, json_lines, runs, server_of, submitted};
use crate::binary::done;
use crate::daemon::Daemon;

/// A command whose output is read while it runs; killed when dropped.
struct Watch {
    child: Child,
    stdout: BufReader<ChildStdout>,
    lines: Vec<String>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Watch {
    fn start(daemon: &Daemon, arguments: &[&str]) -> Self {
        let mut child = command(daemon, &[&["watch"], arguments].concat()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout, lines: Vec::new() }
    }

    /// Reads `count` lines; returns whether all of them came.
    fn read(&mut self, count: usize) -> bool {
        for _ in 0..count {
            let mut line = String::new();
            if self.stdout.read_line(&mut line).unwrap() == 0 {
                return false;
            }
            self.lines.push(line);
        }
        true
    }

    /// Reads the rest; returns the exit code, all lines, and standard error.
    fn end(mut self) -> (Option<i32>, Vec<String>, String) {
        while self.read(1) {}
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap().code(), std::mem::take(&mut self.lines), stderr)
    }
}

#[test]
fn a_watch_shows_every_event_and_ends_with_the_run() {
    let daemon = Daemon::start(&[SCRIPTED]);
    let id = submitted(&daemon, &["tower-of-hanoi", "--fanout", "1", "--seed", "1"]);
    let (code, lines, stderr) = Watch::start(&daemon, &[&id, "--output", "json"]).end();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));

    let mut lines = json_lines(&lines.concat());
    let result = lines.pop().unwrap();
    assert_eq!(
        result,
        json!({"event": "result", "record": daemon.get(&format!("/v1/runs/{id}")).body})
    );

    let trace = json_lines(&runs(&daemon, &["trace", &id, "--no-states"]).stdout);
    assert_eq!(lines, trace[1..]);

    let (code, lines, _) = Watch::start(&daemon, &[&id]).end();
    assert_eq!(code, Some(0));
    assert_eq!(lines.len(), trace.len(), "one line an event, and one for the result");
    assert!(lines[0].starts_with("1 started basis="), "{}", lines[0]);
    assert!(
        lines[1].starts_with("2 step round=1") && lines[1].contains("decision="),
        "{}",
        lines[1]
    );
    assert!(lines.last().unwrap().starts_with(&format!("result id=\"{id}\" status=\"verified\"")));

    let unverified = submitted(&daemon, &["tower-of-hanoi", "--budget-steps", "1"]);
    assert_eq!(Watch::start(&daemon, &[&unverified]).end().0, Some(1));
}

#[test]
fn a_watch_goes_on_across_a_kill_and_misses_nothing() {
    let daemon = Daemon::start(&[]);
    // Too little for the whole run, which therefore cannot be over when the daemon is killed.
    daemon.limit_journal(Some(256 << 10));

    let request =
        json!({"task": "tower-of-hanoi", "input": {"n": 16, "from": 0, "to": 2}, "fanout": 1});
    let id = daemon.submit(&request).body["id"].as_str().unwrap().to_owned();

    let mut watch = Watch::start(&daemon, &[&id, "--output", "json"]);
    assert!(watch.read(100));

    let bind = format!("server.bind={}", daemon.address);
    let daemon = Daemon::start_in(&daemon.kill(), &[&bind]);

    let (code, mut lines, stderr) = watch.end();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("retrying"), "{stderr}");

    let result: Value = serde_json::from_str(&lines.pop().unwrap()).unwrap();
    let record = &result["record"];
    assert_eq!(
        (&record["status"], &record["resumed"], &record["steps"]),
        (&json!("verified"), &json!(1), &json!(65_535))
    );

    assert_eq!(json!(lines.len()), record["events"]);
    let trace = daemon.text(&format!("/v1/runs/{id}/trace?states=false"));
    let (_, events) = trace.split_once('\n').unwrap();
    assert!(lines.concat() == events, "the events are those of the trace, each once");
}

#[test]
fn a_watch_bears_a_daemon_that_comes_back_slowly() {
    let daemon = Daemon::start(&[]);
    let id = submitted(&daemon, &["n-queens"]);
    let record = daemon.finished(&format!("/v1/runs/{id}"));
    let busy = r#"{"error": {"message": "too much", "code": "queue_full"}}"#;
    let (url, server) = server_of(vec![
        (
            "200 OK",
            "id: 1\nevent: started\ndata: {\"event\":\"started\"}\n\nid: 2\nevent: st".to_owned(),
        ),
        ("200 OK", String::new()),
        ("503 Service Unavailable", busy.to_owned()),
        ("502 Bad Gateway", "<html>".to_owned()),
        (
            "200 OK",
            format!(
                ": alive\n\nid: 1\nevent: started\ndata: {{}}\n\nid: 2\nevent: step\n\
                 data: {{\"event\":\"step\"}}\n\nevent: result\ndata: {record}\n\n"
            ),
        ),
    ]);

    let watched = done(&["runs", "watch", "run_1", "--url", &url]);
    assert_eq!(watched.code, 0, "{}", watched.stderr);
    let (shown, result) = watched.stdout.split_once("result ").unwrap();
    assert_eq!(shown, "1 started\n2 step\n", "nothing twice");
    assert!(result.contains(&id), "{result}");

    let requests = server.join().unwrap();
    let last = |request: &String| {
        let line = request
            .lines()
            .find(|line| line.to_lowercase().starts_with("last-event-id"))
            .unwrap()
            .to_owned();
        line.split_once(": ").unwrap().1.to_owned()
    };

    assert_eq!(requests.iter().map(last).collect::<Vec<_>>(), ["0", "1", "1", "1", "1"]);
}

#[test]
fn a_watch_gives_up_when_it_must() {
    let event = "id: 1\nevent: started\ndata: {\"event\":\"started\"}\n\n";
    let gone = r#"{"error": {"message": "there is no run run_1", "code": "no_such_run"}}"#;
    let hole = format!("{event}id: 3\nevent: step\ndata: {{}}\n\n");
    let rows: [(&str, Answers, &[&str]); 4] = [
        ("0", vec![("200 OK", event.to_owned())], &["broke off"]),
        ("1", vec![("200 OK", event.to_owned())], &["does not answer", "serve"]),
        (
            "60",
            vec![("200 OK", event.to_owned()), ("404 Not Found", gone.to_owned())],
            &["no run run_1", "status 404", "no_such_run"],
        ),
        ("60", vec![("200 OK", hole)], &["event 3", "follows event 1"]),
    ];
    for (patience, answers, parts) in rows {
        let (url, server) = server_of(answers);
        let watched = done(&["runs", "watch", "run_1", "--patience", patience, "--url", &url]);
        assert_eq!(
            (watched.code, watched.stdout.as_str()),
            (1, "1 started\n"),
            "{}",
            watched.stderr
        );
        for part in parts {
            assert!(watched.stderr.contains(part), "{part:?} is missing in {:?}", watched.stderr);
        }
        server.join().unwrap();
    }
}
