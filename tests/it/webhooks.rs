//! Messages to webhooks: a real daemon, and a receiver of the test's own.
#![allow(clippy::disallowed_methods, reason = "these tests wait for other processes, in real time")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::{Value, json};

use crate::daemon::{Daemon, Home, PATIENCE, long_run};
use crate::figures::from_env;
use crate::reviews::{DISPUTED, disputed, flagged};

const SECRET: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A message as it arrived.
#[derive(Debug)]
pub struct Got {
    headers: BTreeMap<String, String>,
    body: String,
}

impl Got {
    fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }

    /// Fails unless the signature is that of Standard Webhooks; returns the message.
    pub fn verified(&self) -> Value {
        let signed = format!("{}.{}.{}", self.id(), self.headers["webhook-timestamp"], self.body);
        let key = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(SECRET).unwrap());
        let signature = self.headers["webhook-signature"].strip_prefix("v1,").expect("version 1");
        hmac::verify(&key, signed.as_bytes(), &STANDARD.decode(signature).unwrap()).expect("ours");
        serde_json::from_str(&self.body).unwrap()
    }
}

/// Takes one message and answers with this status. Instead of answering 0, returns the connection.
fn take(stream: TcpStream, status: u16, got: &Sender<Got>) -> Option<TcpStream> {
    let mut reader = BufReader::new(&stream);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        match line.trim().split_once(": ") {
            Some((name, value)) => {
                drop(headers.insert(name.to_ascii_lowercase(), value.to_owned()));
            }
            None if line.trim().is_empty() => break,
            None => {}
        }
    }
    let mut body = vec![0; headers["content-length"].parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    got.send(Got { headers, body: String::from_utf8(body).unwrap() }).unwrap();

    if status == 0 {
        return Some(stream);
    }
    let answer = format!(
        "HTTP/1.1 {status} Said\r\nContent-Length: 7\r\nLocation: http://127.0.0.1:1/\r\n\
         Connection: close\r\n\r\n\x1b[2Jno\n"
    );
    (&stream).write_all(answer.as_bytes()).unwrap();
    None
}

/// A receiver that answers with these statuses, the last of them to all that follow. Returns its
/// URL, and what it gets.
pub fn receiver(statuses: &'static [u16]) -> (String, Receiver<Got>) {
    listening(TcpListener::bind("127.0.0.1:0").unwrap(), statuses)
}

fn listening(listener: TcpListener, statuses: &'static [u16]) -> (String, Receiver<Got>) {
    let url = format!("http://{}/runs", listener.local_addr().unwrap());
    let (got, messages) = channel();
    // Ends with the process.
    thread::spawn(move || {
        let mut left = statuses.iter().copied();
        let (mut status, mut unanswered) = (204, Vec::new());
        for stream in listener.incoming() {
            status = left.next().unwrap_or(status);
            unanswered.extend(take(stream.unwrap(), status, &got));
        }
    });
    (url, messages)
}

/// A webhook, as an argument of `--set`.
pub fn webhook(name: &str, url: &str, more: &str) -> String {
    format!(
        "webhooks.{name}={{url=\"{url}\", secret=\"whsec_{SECRET}\", allow_private=true, \
         retry_ms=[0, 0, 0]{more}}}"
    )
}

pub fn next(messages: &Receiver<Got>) -> Got {
    messages.recv_timeout(PATIENCE).expect("a message")
}

fn run() -> Value {
    json!({"task": "dfa-simulation", "labels": {"team": "ops"}})
}

/// The value of a metric of a webhook.
fn metric(daemon: &Daemon, name: &str, webhook: &str) -> u64 {
    let label = format!("prime_webhook_{name}{{webhook=\"{webhook}\"}} ");
    let text = daemon.text("/metrics");
    let value = text.lines().find_map(|line| line.strip_prefix(&label));
    value.unwrap_or_else(|| panic!("{label} is not in {text}")).parse().unwrap()
}

fn until_metric(daemon: &Daemon, name: &str, webhook: &str, least: u64) {
    let started = std::time::Instant::now();
    while metric(daemon, name, webhook) < least {
        assert!(started.elapsed() < PATIENCE, "{name} of {webhook} stays below {least}");
        thread::yield_now();
    }
}

#[test]
fn the_end_of_a_run_arrives_signed() {
    let (url, messages) = receiver(&[204]);
    let daemon = Daemon::start(&[&webhook("ops", &url, "")]);
    let location = daemon.submitted(&run());
    let record = daemon.finished(&location);

    let got = next(&messages);
    let said = got.verified();
    let id = location.rsplit('/').next().unwrap();
    assert_eq!(got.id(), format!("msg_{}_ended", id.trim_start_matches("run_")));
    assert_eq!(got.headers["content-type"], "application/json");
    assert_eq!((&said["type"], &said["data"]["run"]), (&json!("run.ended"), &json!(id)));
    for field in ["status", "answer", "verified", "outcome", "task", "steps", "tokens", "labels"] {
        assert_eq!(said["data"][field], record[field], "{field}");
    }
    until_metric(&daemon, "delivered_total", "ops", 1);
    assert_eq!(metric(&daemon, "failed_attempts_total", "ops"), 0);
}

#[test]
fn a_message_that_was_refused_comes_again_under_its_id() {
    let (url, messages) = receiver(&[500, 302, 200]);
    let daemon = Daemon::start(&[&webhook("ops", &url, "")]);
    daemon.finished(&daemon.submitted(&run()));

    let attempts = [next(&messages), next(&messages), next(&messages)];
    assert!(attempts.iter().all(|got| got.id() == attempts[0].id()), "{attempts:?}");
    assert!(attempts.iter().all(|got| got.verified()["type"] == "run.ended"));
    until_metric(&daemon, "delivered_total", "ops", 1);
    assert_eq!(metric(&daemon, "failed_attempts_total", "ops"), 2);

    // Nothing of the answer reaches the log as it came, and no secret does.
    let (_, log) = daemon.end_by(rustix::process::Signal::TERM);
    assert!(log.contains("status 500") && log.contains("redirects are not followed"), "{log}");
    assert!(log.contains("\\u001b[2Jno") && !log.contains("\u{1b}[2J"), "{log}");
    assert!(!log.contains(SECRET), "{log}");
}

#[test]
fn a_receiver_that_wants_no_more_is_asked_once_and_others_get_theirs() {
    let (gone, asked) = receiver(&[410, 204]);
    let (down, tried) = receiver(&[503]);
    let (silent, heard) = receiver(&[0]);
    let (good, messages) = receiver(&[204]);
    let daemon = Daemon::start(&[
        &webhook("gone", &gone, ""),
        &webhook("down", &down, ""),
        &webhook("silent", &silent, ""),
        &webhook("good", &good, ", events=[\"run.ended\"]"),
        &webhook("other", "http://127.0.0.1:1/", ", task=\"n-queens\""),
    ]);
    daemon.finished(&daemon.submitted(&run()));

    next(&heard);
    until_metric(&daemon, "given_up_total", "gone", 1);
    until_metric(&daemon, "given_up_total", "down", 1);
    until_metric(&daemon, "delivered_total", "good", 1);
    assert_eq!(metric(&daemon, "failed_attempts_total", "gone"), 1);
    // One attempt, and one after each pause.
    assert_eq!(metric(&daemon, "failed_attempts_total", "down"), 4);
    assert_eq!((asked.try_iter().count(), tried.try_iter().count()), (1, 4));
    assert_eq!(next(&messages).verified()["type"], "run.ended");
    assert_eq!(metric(&daemon, "failed_attempts_total", "other"), 0, "another task");
    assert_eq!(metric(&daemon, "waiting", "silent"), 1);
}

#[test]
fn what_was_not_delivered_is_delivered_after_a_kill() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    // Accepted by the system, but never answered.
    let url = format!("http://{address}/runs");
    let home = Home::new();
    let daemon = Daemon::start_in(&home, &[&webhook("ops", &url, "")]);
    let location = daemon.submitted(&run());
    daemon.finished(&location);
    // Its end is durable, and with it the message.
    drop(daemon.kill());
    drop(silent);

    let (_, messages) = listening(TcpListener::bind(address).unwrap(), &[204]);
    let daemon = Daemon::start_in(&home, &[&webhook("ops", &url, "")]);
    let said = next(&messages).verified();
    assert_eq!(said["data"]["run"], location.rsplit('/').next().unwrap());
    until_metric(&daemon, "delivered_total", "ops", 1);
}

#[test]
fn a_name_that_leads_to_this_machine_is_not_connected_to() {
    let (url, messages) = receiver(&[204]);
    let url = url.replace("127.0.0.1", "localhost");
    let hook = webhook("ops", &url, "").replace("allow_private=true", "allow_private=false");
    let daemon = Daemon::start(&[&hook]);
    daemon.finished(&daemon.submitted(&run()));
    until_metric(&daemon, "given_up_total", "ops", 1);
    assert!(messages.try_recv().is_err());

    let literal = url.replace("localhost", "[::1]");
    let hook = webhook("ops", &literal, "").replace("allow_private=true", "allow_private=false");
    let refused = Daemon::try_start(&Home::new(), &[&hook]).map(drop).unwrap_err();
    assert!(refused.contains("webhooks.ops.url has the address ::1"), "{refused}");
    assert!(refused.contains("allow_private"), "{refused}");
}

#[test]
fn a_reload_brings_webhooks() {
    let (first, of_first) = receiver(&[204]);
    let (second, of_second) = receiver(&[204]);
    let home = Home::new();
    let file = home.journal().with_file_name("hooks.toml");
    let configure = |name: &str, url: &str| {
        let text = format!(
            "[webhooks.{name}]\nurl = \"{url}\"\nsecret = \"whsec_{SECRET}\"\nallow_private = true\n"
        );
        std::fs::write(&file, text).unwrap();
    };
    configure("one", &first);
    let mut command = Daemon::command(&home, &[]);
    command.arg("--config").arg(&file);
    let daemon = Daemon::spawn(command, &home).unwrap();
    daemon.finished(&daemon.submitted(&run()));
    assert_eq!(next(&of_first).verified()["type"], "run.ended");

    configure("two", &second);
    let reloaded = daemon.post("/v1/reload");
    assert_eq!(reloaded.status, 200, "{reloaded:?}");
    assert!(!reloaded.body.to_string().contains(SECRET));
    assert_eq!(reloaded.body["taken"], json!(["webhooks.one", "webhooks.two"]));
    daemon.finished(&daemon.submitted(&run()));
    assert_eq!(next(&of_second).verified()["type"], "run.ended");
    assert!(of_first.try_recv().is_err());
}

#[test]
fn flagged_steps_are_told_in_order_and_before_the_end() {
    let (url, messages) = receiver(&[500, 204]);
    let hook = webhook("ops", &url, "");
    let daemon = Daemon::start(&[&DISPUTED[..], &[hook.as_str()]].concat());
    let run = daemon.submitted(&disputed());
    daemon.finished(&run);

    let mut told = Vec::new();
    let refused = next(&messages);
    let mut got = next(&messages);
    assert_eq!(refused.id(), got.id(), "nothing overtakes what is sent again");
    loop {
        let said = got.verified();
        if said["type"] == "run.ended" {
            break;
        }
        assert_eq!(said["type"], "run.flagged");
        told.extend(
            said["data"]["steps"].as_array().unwrap().iter().map(|seq| seq.as_u64().unwrap()),
        );
        got = next(&messages);
    }
    assert_eq!(told, flagged(&daemon, &run));
    assert!(told.len() > 3, "{told:?}");
    assert!(messages.try_recv().is_err());
}

#[test]
fn much_of_a_budget_is_told_once_and_before_the_end() {
    let (url, messages) = receiver(&[204]);
    let daemon =
        Daemon::start(&[&webhook("ops", &url, ", events=[\"run.budget\", \"run.ended\"]")]);
    let mut request = long_run();
    request["budget"] = json!({"steps": 100});
    daemon.finished(&daemon.submitted(&request));

    let (budget, end) = (next(&messages).verified(), next(&messages).verified());
    assert_eq!((&budget["type"], &end["type"]), (&json!("run.budget"), &json!("run.ended")));
    assert_eq!(budget["data"]["budgets"][0]["budget"], "steps");
    assert_eq!(budget["data"]["budgets"][0]["limit"], 100);
    assert_eq!(end["data"]["outcome"], "steps_spent");
    until_metric(&daemon, "delivered_total", "ops", 2);
}

/// Runs through repeated kills: each has its end told, under one id.
#[test]
fn no_kill_loses_a_message() {
    let kills = from_env("PRIME_CHAOS_KILLS", 12);
    let (url, messages) = receiver(&[204]);
    let home = Home::new();
    let hook = webhook("ops", &url, "");
    let (mut runs, mut got) = (Vec::new(), Vec::new());
    for kill in 0..kills {
        let daemon = Daemon::start_in(&home, &[&hook]);
        runs.extend((0..2).map(|_| daemon.submitted(&run())));
        // Killed before the runs end, once the end is durable, or once a message has arrived.
        match kill % 3 {
            0 => {}
            1 => drop(daemon.finished(&runs[runs.len() - 1])),
            _ => got.push(next(&messages)),
        }
        drop(daemon.kill());
    }

    let daemon = Daemon::start_in(&home, &[&hook]);
    for location in &runs {
        daemon.finished(location);
    }
    let mut told: BTreeMap<String, String> = BTreeMap::new();
    let mut sent = 0;
    while told.len() < runs.len() {
        let got = got.pop().unwrap_or_else(|| next(&messages));
        let run = got.verified()["data"]["run"].as_str().unwrap().to_owned();
        let id = got.id().to_owned();
        assert_eq!(told.entry(run).or_insert_with(|| id.clone()), &id, "one id for one event");
        sent += 1;
    }
    eprintln!("{kills} kills: {sent} messages sent for {} runs", runs.len());
    let mut ids = runs.iter().map(|location| location.rsplit('/').next().unwrap());
    assert!(ids.all(|run| told.contains_key(run)));
}
