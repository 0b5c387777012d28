//! `runs …`: the client of a daemon, against real daemons.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Command};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::binary::{Done, done, file, prime, shown};
use crate::daemon::{Daemon, is_over, long_run};

const SCRIPTED: &str = "agents.executor.implementation=scripted";

/// `runs` with these arguments, for this daemon.
fn command(daemon: &Daemon, arguments: &[&str]) -> Command {
    prime(&[&["runs"], arguments, &["--url", &daemon.url("")]].concat())
}

fn runs(daemon: &Daemon, arguments: &[&str]) -> Done {
    command(daemon, arguments).output().expect("the binary starts").into()
}

impl Done {
    /// Fails unless this ended with exit code 1, nothing on standard output and all of these parts in the message.
    fn failed(&self, parts: &[&str]) {
        assert_eq!((self.code, self.stdout.as_str()), (1, ""), "{}", self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is missing in {:?}", self.stderr);
        }
    }
}

/// Hands in a run; gives its id.
fn submitted(daemon: &Daemon, arguments: &[&str]) -> String {
    let done = runs(daemon, &[&["submit"], arguments].concat());
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    done.stdout.trim_end().to_owned()
}

/// The id of a run that takes minutes if nobody ends it.
fn long(daemon: &Daemon) -> String {
    daemon.submit(&long_run()).body["id"].as_str().expect("a run").to_owned()
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[test]
fn a_run_is_handed_in_waited_for_and_shown() {
    let daemon = Daemon::start(&["server.allow_executors=[\"reference\", \"scripted\"]"]);
    let id =
        submitted(&daemon, &["n-queens", "--difficulty", "medium", "--index", "3", "--fanout", "2", "--seed", "9"]);
    let record = daemon.finished(&format!("/v1/runs/{id}"));
    assert_eq!((&record["instance"], &record["seed"]), (&json!("n-queens/medium/003"), &json!(9)));
    assert_eq!(runs(&daemon, &["show", &id, "--output", "json"]).json(0), record);
    let text = runs(&daemon, &["show", &id]);
    assert_eq!(text.code, 0);
    for part in [&id, "verified", "n-queens/medium/003", record["chain"].as_str().unwrap(), "not a model"] {
        assert!(text.stdout.contains(part), "{part:?} is missing in {}", text.stdout);
    }

    let (_folder, path) = file("input.json", r#"{"a": [2, 1]}"#);
    let arguments = ["submit", "bubble-sort", "--input", shown(&path), "--wait", "--output", "json"];
    let waited = runs(&daemon, &arguments);
    assert!(waited.stderr.starts_with("run_") && waited.stderr.contains("is accepted"), "{}", waited.stderr);
    let record = waited.json(0);
    assert_eq!((&record["answer"]["sorted"], &record["status"]), (&json!([1, 2]), &json!("verified")));

    let spent = runs(&daemon, &["submit", "bubble-sort", "--budget-steps", "1", "--executor", "scripted", "--wait"]);
    assert_eq!(spent.code, 1, "{}", spent.stderr);
    assert!(spent.stdout.contains("steps_spent") && spent.stdout.contains("scripted"), "{}", spent.stdout);
}

#[test]
fn a_problem_of_ones_own_is_handed_in() {
    let daemon = Daemon::start(&[]);
    let (_folder, path) = file("problem.json", "{}");
    // What a problem must have is the daemon's to say.
    runs(&daemon, &["submit", "--problem", shown(&path)]).failed(&["problem", "status 4"]);
    runs(&daemon, &["submit", "n-queens", "--problem", shown(&path)]).refused(&["--problem"]);
    runs(&daemon, &["submit", "--problem", shown(&path), "--index", "1"]).refused(&["--problem", "--index"]);
}

#[test]
fn the_same_idempotency_key_is_the_same_run() {
    let daemon = Daemon::start(&[]);
    let first = submitted(&daemon, &["n-queens", "--key", "once"]);
    let again = runs(&daemon, &["submit", "n-queens", "--key", "once"]);
    assert_eq!((again.code, again.stdout.trim_end()), (0, first.as_str()));
    assert!(again.stderr.contains("used before"), "{}", again.stderr);
    runs(&daemon, &["submit", "bubble-sort", "--key", "once"]).failed(&["another request", "status 422"]);
    for key in ["", "a b", "é", &"x".repeat(256)] {
        runs(&daemon, &["submit", "n-queens", "--key", key]).refused(&["--key", "1 to 255"]);
    }
    let secret = format!("prime_{}", "0".repeat(64));
    let mixed_up = runs(&daemon, &["submit", "n-queens", "--key", &secret]);
    mixed_up.refused(&["PRIME_API_KEY"]);
    assert!(!mixed_up.stderr.contains(&secret), "the key is not repeated");
}

#[test]
fn runs_are_listed_page_by_page_and_removed() {
    let daemon = Daemon::start(&[]);
    let ids: Vec<_> =
        (0..5).map(|index| submitted(&daemon, &["dfa-simulation", "--index", &index.to_string()])).collect();
    for id in &ids {
        daemon.finished(&format!("/v1/runs/{id}"));
    }
    let open = long(&daemon);
    let list = |arguments: &[&str]| runs(&daemon, &[&["list", "--output", "json"], arguments].concat()).json(0);
    let ids_of = |list: &Value| -> Vec<String> {
        list["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
    };
    let newest_first: Vec<_> = ids.iter().rev().cloned().collect();
    let page = list(&["--task", "dfa-simulation", "--limit", "2"]);
    assert_eq!((ids_of(&page), &page["next"]), (newest_first[..2].to_vec(), &json!(newest_first[1])));
    let page = list(&["--task", "dfa-simulation", "--limit", "2", "--after", &newest_first[1]]);
    assert_eq!(ids_of(&page), newest_first[2..4]);
    for limit in ["1", "2", "5", "1000"] {
        let all = list(&["--task", "dfa-simulation", "--limit", limit, "--all"]);
        assert_eq!((ids_of(&all), &all["next"]), (newest_first.clone(), &Value::Null), "{limit}");
    }
    assert_eq!(ids_of(&list(&["--status", "running"])), [open.clone()]);
    assert_eq!(list(&["--status", "failed"]), json!({"runs": [], "next": null}));
    let table = runs(&daemon, &["list", "--limit", "3"]);
    assert!(table.stdout.contains(&open) && table.stdout.contains("3 runs"), "{}", table.stdout);
    assert!(!table.stdout.contains(&ids[0]) && table.stderr.contains("--after"), "{}", table.stderr);

    runs(&daemon, &["list", "--limit", "0"]).refused(&["--limit"]);
    runs(&daemon, &["list", "--status", "done"]).refused(&["--status", "verified"]);
    runs(&daemon, &["list", "--after", "run_0"]).failed(&["run_0", "status 400"]);

    let kept = runs(&daemon, &["gc", "--older-than-days", "1"]);
    assert_eq!((kept.code, kept.stdout.as_str()), (0, "removed 0 runs with 0 events, 0 bytes\n"));
    let removed = runs(&daemon, &["gc", "--bytes-max", "1", "--output", "json"]).json(0);
    assert_eq!(removed["runs"], json!(5), "{removed}");
    assert_eq!(ids_of(&list(&[])), [open], "open runs stay");
    assert_eq!(runs(&daemon, &["gc"]).code, 0);
}

#[test]
fn a_run_is_cancelled_and_forked() {
    let daemon = Daemon::start(&[SCRIPTED]);
    let id = long(&daemon);
    let path = format!("/v1/runs/{id}");
    daemon.until(&path, |record| record["events"].as_u64() > Some(600));
    let cancelled = runs(&daemon, &["cancel", &id, "--output", "json"]).json(0);
    assert_eq!((&cancelled["id"], &cancelled["status"]), (&json!(id), &json!("cancelled")));
    let again = runs(&daemon, &["cancel", &id]);
    assert!(again.code == 0 && again.stdout.contains("cancelled"), "what is over stays as it is: {}", again.stdout);

    let fork = runs(&daemon, &["fork", &id, "--seq", "500", "--seed", "99"]);
    assert_eq!((fork.code, fork.stderr.as_str()), (0, ""));
    let child = runs(&daemon, &["show", fork.stdout.trim_end(), "--output", "json"]).json(0);
    assert_eq!((&child["forked_from"], &child["seed"]), (&json!({"run": id, "seq": 500}), &json!(99)));
    let events = cancelled["events"].as_u64().unwrap();
    runs(&daemon, &["fork", &id, "--seq", &(events + 1).to_string()]).failed(&["status 409"]);
    runs(&daemon, &["fork", &id]).refused(&["--seq"]);
}

#[test]
fn a_trace_is_written_whole_or_not_at_all() {
    let daemon = Daemon::start(&[SCRIPTED]);
    let id = submitted(&daemon, &["tower-of-hanoi", "--fanout", "1"]);
    let record = daemon.finished(&format!("/v1/runs/{id}"));
    let printed = runs(&daemon, &["trace", &id]);
    assert_eq!((printed.code, printed.stderr.as_str()), (0, ""));
    let lines = json_lines(&printed.stdout);
    assert_eq!(json!(lines.len() - 1), record["events"]);
    assert!(lines.iter().any(|line| line["event"] == "step" && line["state"].is_object()), "with states");
    let bare = runs(&daemon, &["trace", &id, "--no-states"]).stdout;
    assert!(json_lines(&bare).iter().all(|line| line["state"].is_null()));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.jsonl");
    let written = runs(&daemon, &["trace", &id, "--out", shown(&path)]);
    assert_eq!((written.code, written.stdout.as_str(), written.stderr.as_str()), (0, "", ""));
    assert!(std::fs::read_to_string(&path).unwrap() == printed.stdout);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    assert_eq!(runs(&daemon, &["trace", &id, "--out", "/dev/null"]).code, 0);
    let nowhere = folder.path().join("missing/trace.jsonl");
    runs(&daemon, &["trace", &id, "--out", shown(&nowhere)]).refused(&["--out", shown(&nowhere), "cannot be written"]);
    runs(&daemon, &["trace", "run_0", "--out", shown(&nowhere)]).failed(&["run_0"]);
}

#[test]
fn the_chain_of_a_run_agrees_with_its_record() {
    let daemon = Daemon::start(&[SCRIPTED]);
    let id = submitted(&daemon, &["tower-of-hanoi", "--fanout", "2"]);
    let record = daemon.finished(&format!("/v1/runs/{id}"));
    let report = runs(&daemon, &["verify-chain", &id, "--output", "json"]).json(0);
    assert_eq!((&report["agrees"], &report["events"]), (&json!(true), &record["events"]));
    assert_eq!((&report["recorded"], &report["computed"]), (&record["chain"], &record["chain"]));
    let open = long(&daemon);
    daemon.until(&format!("/v1/runs/{open}"), |record| record["events"].as_u64() > Some(100));
    let of_open = runs(&daemon, &["verify-chain", &open]);
    assert!(of_open.code == 0 && of_open.stdout.contains("events agree"), "{}{}", of_open.stdout, of_open.stderr);
}

/// A server that gives each of its connections the next of these answers, and the URL where it is.
fn server_of(answers: Vec<(&'static str, String)>) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serve = move || {
        let answer = |(head, body): (&str, String)| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = String::new();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            while !request.ends_with("\r\n\r\n") {
                assert!(lines.read_line(&mut request).unwrap() > 0, "{request}");
            }
            write!(stream, "HTTP/1.1 {head}\r\nConnection: close\r\n\r\n{body}").unwrap();
            request
        };
        answers.into_iter().map(answer).collect()
    };
    (url, std::thread::spawn(serve))
}

/// A trace without states, and its chain as this file computes it.
fn trace_of(events: &[&str]) -> (String, String) {
    let spec = r#"{"task":"x"}"#;
    let mut hash = Sha256::digest(spec);
    let mut text = format!("{{\"seq\":0,\"event\":\"accepted\",\"run\":\"run_1\",\"spec\":{spec}}}\n");
    for (seq, event) in (1..).zip(events) {
        hash = Sha256::new().chain_update(hash).chain_update(event).finalize();
        text += &format!("{{\"seq\":{seq},{}\n", &event[1..]);
    }
    (text, hash.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat())
}

#[test]
fn a_changed_lost_or_added_event_is_found() {
    let daemon = Daemon::start(&[]);
    let id = submitted(&daemon, &["n-queens"]);
    let mut record = daemon.finished(&format!("/v1/runs/{id}"));
    let events = [r#"{"event":"started"}"#, r#"{"event":"step","action":"a"}"#, r#"{"event":"finished"}"#];
    let (whole, chain) = trace_of(&events);
    record["events"] = json!(3);
    record["chain"] = json!(chain);
    let rows = [
        (whole.clone(), 0, "3 events agree"),
        (whole.replace(r#""a""#, r#""b""#), 1, "the record says"),
        (trace_of(&events[..2]).0, 1, "the trace has 2 events, the record 3"),
        (trace_of(&[&events[..], &events[..1]].concat()).0, 1, "the trace has 4 events, the record 3"),
        (whole.replace(r#""seq":2"#, r#""seq":5"#), 1, "line 3 of the trace is not event 2"),
        (whole.replace("run_1", "run_2"), 1, "line 1 of the trace"),
    ];
    for (trace, code, part) in rows {
        let (url, server) = server_of(vec![("200 OK", record.to_string()), ("200 OK", trace)]);
        let verified = done(&["runs", "verify-chain", "run_1", "--url", &url]);
        assert_eq!(verified.code, code, "{part}: {}{}", verified.stdout, verified.stderr);
        assert!(verified.stdout.contains(part), "{part:?} is missing in {}", verified.stdout);
        server.join().unwrap();
    }
}

/// A command whose output is read while it goes on, ended when dropped.
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

    /// Reads so many lines; gives whether they came.
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

    /// The rest; gives the exit code, all lines, and standard error.
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
    assert_eq!(result, json!({"event": "result", "record": daemon.get(&format!("/v1/runs/{id}")).body}));
    let trace = json_lines(&runs(&daemon, &["trace", &id, "--no-states"]).stdout);
    assert_eq!(lines, trace[1..]);

    let (code, lines, _) = Watch::start(&daemon, &[&id]).end();
    assert_eq!(code, Some(0));
    assert_eq!(lines.len(), trace.len(), "one line an event, and one for the result");
    assert_eq!(lines[0], "1 started\n");
    assert!(lines[1].starts_with("2 step round=1") && lines[1].contains("decision="), "{}", lines[1]);
    assert!(lines.last().unwrap().starts_with(&format!("result id=\"{id}\" status=\"verified\"")));

    let unverified = submitted(&daemon, &["tower-of-hanoi", "--budget-steps", "1"]);
    assert_eq!(Watch::start(&daemon, &[&unverified]).end().0, Some(1));
}

#[test]
fn a_watch_goes_on_across_a_kill_and_misses_nothing() {
    let daemon = Daemon::start(&[]);
    let request = json!({"task": "tower-of-hanoi", "input": {"n": 14, "from": 0, "to": 2}, "fanout": 1});
    let id = daemon.submit(&request).body["id"].as_str().unwrap().to_owned();
    let mut watch = Watch::start(&daemon, &[&id, "--output", "json"]);
    // The watcher is held by its pipe, which is not read on, so that it is under way when the daemon is killed.
    assert!(watch.read(100));
    let bind = format!("server.bind={}", daemon.address);
    let daemon = Daemon::start_in(&daemon.kill(), &[&bind]);
    let (code, lines, stderr) = watch.end();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("trying again"), "{stderr}");
    let mut lines = json_lines(&lines.concat());
    let result = lines.pop().unwrap();
    assert_eq!((&result["record"]["status"], &result["record"]["steps"]), (&json!("verified"), &json!(16_383)));
    let seqs: Vec<_> = lines.iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=result["record"]["events"].as_u64().unwrap()).collect::<Vec<_>>());
    let trace = runs(&daemon, &["trace", &id, "--no-states"]).stdout;
    assert!(lines == json_lines(&trace)[1..], "the events are those of the trace");
}

#[test]
fn a_watch_bears_a_daemon_that_comes_back_slowly() {
    let daemon = Daemon::start(&[]);
    let id = submitted(&daemon, &["n-queens"]);
    let record = daemon.finished(&format!("/v1/runs/{id}"));
    let busy = r#"{"error": {"message": "too much", "code": "queue_full"}}"#;
    let (url, server) = server_of(vec![
        ("200 OK", "id: 1\nevent: started\ndata: {\"event\":\"started\"}\n\nid: 2\nevent: st".to_owned()),
        ("200 OK", String::new()),
        ("503 Service Unavailable", busy.to_owned()),
        ("502 Bad Gateway", "<html>".to_owned()),
        (
            "200 OK",
            format!(
                ": alive\n\nid: 1\nevent: started\ndata: {{}}\n\nid: 2\nevent: step\ndata: {{\"event\":\"step\"}}\n\n\
                 event: result\ndata: {record}\n\n"
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
        let line = request.lines().find(|line| line.to_lowercase().starts_with("last-event-id")).unwrap().to_owned();
        line.split_once(": ").unwrap().1.to_owned()
    };
    assert_eq!(requests.iter().map(last).collect::<Vec<_>>(), ["0", "1", "1", "1", "1"]);
}

#[test]
fn a_watch_gives_up_when_it_must() {
    let event = "id: 1\nevent: started\ndata: {\"event\":\"started\"}\n\n";
    let gone = r#"{"error": {"message": "there is no run run_1", "code": "no_such_run"}}"#;
    let hole = format!("{event}id: 3\nevent: step\ndata: {{}}\n\n");
    let rows: [(&str, Vec<(&str, String)>, &[&str]); 4] = [
        ("0", vec![("200 OK", event.to_owned())], &["broke off"]),
        ("1", vec![("200 OK", event.to_owned())], &["does not answer", "serve"]),
        (
            "60",
            vec![("200 OK", event.to_owned()), ("404 Not Found", gone.to_owned())],
            &["no run run_1", "status 404", "no_such_run"],
        ),
        ("60", vec![("200 OK", hole)], &["event 3", "after event 1"]),
    ];
    for (patience, answers, parts) in rows {
        let (url, server) = server_of(answers);
        let watched = done(&["runs", "watch", "run_1", "--patience", patience, "--url", &url]);
        assert_eq!((watched.code, watched.stdout.as_str()), (1, "1 started\n"), "{}", watched.stderr);
        for part in parts {
            assert!(watched.stderr.contains(part), "{part:?} is missing in {:?}", watched.stderr);
        }
        server.join().unwrap();
    }
}

#[test]
fn keys_come_from_the_environment_alone() {
    // SHA-256 of "abc" (FIPS 180-2, appendix B.1).
    let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let daemon = Daemon::start(&[&format!("server.keys=[{{name=\"ci\", sha256=\"{sha256}\"}}]")]);
    let with_key =
        |key: &str| -> Done { command(&daemon, &["list"]).env("PRIME_API_KEY", key).output().unwrap().into() };
    assert_eq!(with_key("abc").code, 0);
    for key in ["", "abd"] {
        let refused = with_key(key);
        refused.failed(&["PRIME_API_KEY", "status 401"]);
        assert!(key.is_empty() || !refused.stderr.contains(key), "the key is not repeated");
    }
    runs(&daemon, &["watch", "run_1"]).failed(&["PRIME_API_KEY", "status 401"]);
    with_key("a c\n").refused(&["PRIME_API_KEY", "visible ASCII"]);
    runs(&daemon, &["list", "--api-key", "abc"]).refused(&["--api-key"]);
}

#[test]
fn runs_that_are_not_there_and_mistakes() {
    let daemon = Daemon::start(&[]);
    let id = submitted(&daemon, &["n-queens"]);
    let prefix = &id[..id.len() - 1];
    for arguments in [&["show"][..], &["watch"], &["trace"], &["cancel"], &["fork", "--seq", "1"], &["verify-chain"]] {
        for unknown in ["run_0", prefix] {
            runs(&daemon, &[arguments, &[unknown]].concat()).failed(&[unknown, "status 404", "no_such_run"]);
        }
        runs(&daemon, &[arguments, &["../gc"]].concat()).refused(&["../gc", "whole id"]);
        runs(&daemon, arguments).refused(&["<ID>"]);
    }
    runs(&daemon, &["submit", "n-quens"]).failed(&["n-quens", "did you mean `n-queens`?", "status 400"]);
    runs(&daemon, &["submit", "n-queens", "--fanout", "257"]).failed(&["fanout", "256"]);
    runs(&daemon, &["submit", "n-queens", "--temperature", "nan"]).refused(&["--temperature"]);
    runs(&daemon, &["submit"]).refused(&["<TASK>"]);
    let (_folder, path) = file("broken.json", "{");
    runs(&daemon, &["submit", "n-queens", "--input", shown(&path)]).refused(&["--input", shown(&path), "JSON"]);
    runs(&daemon, &["submit", "n-queens", "--input", "/nowhere.json"]).refused(&["/nowhere.json", "cannot be read"]);
    done(&["runs", "list", "--url", "https://localhost"]).refused(&["--url https://localhost", "http://HOST:PORT"]);
    done(&["runs", "list", "--set", "server.bind=127.0.0.1:0"]).refused(&["server.bind", "--url"]);
    done(&["runs"]).refused(&["submit", "verify-chain"]);
    assert!(is_over(&daemon.finished(&format!("/v1/runs/{id}"))), "and the daemon goes on");
}

#[test]
fn a_daemon_that_is_gone_or_none_is_named() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (url, bind) = (format!("http://{free}"), format!("server.bind={free}"));
    for arguments in [
        &["list"][..],
        &["show", "run_1"],
        &["watch", "run_1"],
        &["trace", "run_1"],
        &["cancel", "run_1"],
        &["gc"],
        &["submit", "n-queens", "--wait"],
    ] {
        for place in [["--url", &url], ["--set", &bind]] {
            done(&[&["runs"], arguments, &place].concat()).failed(&[&url, "does not answer", "prime-agents serve"]);
        }
    }
    let redirect = "302 Found\r\nLocation: http://127.0.0.1:1/";
    for head in ["404 Not Found", "500 Internal Server Error", redirect] {
        let (url, server) = server_of(vec![(head, "<html>".to_owned())]);
        let asked = done(&["runs", "show", "run_1", "--url", &url]);
        asked.failed(&[&url, &head[..3], "is --url right?"]);
        server.join().unwrap();
    }
    for body in ["<html>", "", r#"{"runs": [], "#] {
        let (url, server) = server_of(vec![("200 OK", body.to_owned())]);
        done(&["runs", "list", "--output", "json", "--url", &url]).failed(&[&url, "cannot be read"]);
        server.join().unwrap();
    }
}
