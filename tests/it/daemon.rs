//! A daemon per test: a real process, real HTTP, a journal in a temporary folder.
#![allow(clippy::disallowed_methods, reason = "these tests wait for other processes, in real time")]

use prime_http_client::sse::{Events, Message};
use reqwest::blocking::{Client, ClientBuilder, Response};
use reqwest::header::CONTENT_TYPE;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, ChildStderr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

use crate::binary::{REFERENCE, prime, shown};

/// Longest wait for an event, far above what it takes: only a test that hangs fails by it.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// A daemon, killed when dropped.
pub struct Daemon {
    child: Child,
    /// Its log after it was ready.
    stderr: BufReader<ChildStderr>,
    pub address: String,
    pub client: Client,
    /// Time from the start of the process until it was ready.
    pub ready_after: Duration,
    /// Keeps the journal's folder.
    pub home: Arc<Home>,
}

/// The folder of a daemon's journal, which outlives the daemon.
pub struct Home {
    _folder: Option<TempDir>,
    path: PathBuf,
}

impl Home {
    pub fn new() -> Arc<Self> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        Arc::new(Self { _folder: Some(folder), path })
    }

    pub fn journal(&self) -> PathBuf {
        self.path.join("runs.sqlite")
    }
}

/// A response: status, body, and some headers.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
    pub location: Option<String>,
    pub retry_after: Option<String>,
}

impl From<Response> for Answer {
    fn from(response: Response) -> Self {
        Self::read(response).unwrap()
    }
}

impl Answer {
    /// Reads a response whose connection may break.
    pub fn read(response: Response) -> Result<Self, reqwest::Error> {
        let header =
            |name| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let (location, retry_after) = (header("Location"), header("Retry-After"));
        let status = response.status().as_u16();

        let text = response.text()?;
        let body = match text.as_str() {
            "" if status == 204 => Value::Null,
            text => serde_json::from_str(text)
                .unwrap_or_else(|_| panic!("{status} with a body that is not JSON: {text}")),
        };
        Ok(Self { status, body, location, retry_after })
    }

    /// Fails unless this is an error of this status that names the field and has these parts in its
    /// message.
    pub fn refused(&self, status: u16, field: Option<&str>, parts: &[&str]) {
        let (error, message) =
            (&self.body["error"], self.body["error"]["message"].as_str().unwrap_or_default());
        assert_eq!((self.status, error["field"].as_str()), (status, field), "{self:?}");
        for part in parts {
            assert!(message.contains(part), "{part:?} is missing in {message:?}");
        }
    }
}

/// True if a run's record says that it is over.
pub fn is_over(record: &Value) -> bool {
    !["queued", "running", "waiting"].contains(&record["status"].as_str().unwrap_or_default())
}

/// A client that keeps its connections and accepts every status.
pub fn client() -> Client {
    ClientBuilder::from(prime_http_client::builder(false)).timeout(PATIENCE).build().unwrap()
}

impl Daemon {
    /// Starts one with a journal of its own.
    pub fn start(sets: &[&str]) -> Self {
        Self::start_in(&Home::new(), sets)
    }

    /// Starts one on a journal that may be there already.
    pub fn start_in(home: &Arc<Home>, sets: &[&str]) -> Self {
        Self::try_start(home, sets).unwrap_or_else(|log| panic!("it ended: {log}"))
    }

    /// Like [`Self::start_in`]; returns the log if the daemon ended instead.
    pub fn try_start(home: &Arc<Home>, sets: &[&str]) -> Result<Self, String> {
        Self::spawn(Self::command(home, sets), home)
    }

    /// The command that starts one on a journal.
    pub fn command(home: &Home, sets: &[&str]) -> std::process::Command {
        let journal = format!("journal.path={}", shown(&home.journal()));
        let sets: Vec<_> =
            [journal.as_str()].iter().chain(sets).flat_map(|set| ["--set", *set]).collect();
        prime(&[&["serve", "--set", "server.bind=127.0.0.1:0"][..], &REFERENCE, &sets].concat())
    }

    /// Starts one and waits until it is ready.
    pub fn spawn(mut command: std::process::Command, home: &Arc<Home>) -> Result<Self, String> {
        let started = Instant::now();
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut before = String::new();

        let address = loop {
            let mut line = String::new();
            if stderr.read_line(&mut line).unwrap() == 0 {
                child.wait().unwrap();
                return Err(before);
            }
            if let Some((_, address)) = line.trim().split_once("ready on http://") {
                break address.to_owned();
            }
            before += &line;
        };

        let ready_after = started.elapsed();
        let client = client();
        Ok(Self { child, stderr, address, client, ready_after, home: Arc::clone(home) })
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.client.get(self.url(path)).send().unwrap().into()
    }

    /// The whole body of an answer that is a stream.
    pub fn text(&self, path: &str) -> String {
        let response = self.client.get(self.url(path)).send().unwrap();
        assert_eq!(response.status(), 200, "{path}");
        response.text().unwrap()
    }

    pub fn post_text(&self, path: &str, body: &str) -> Answer {
        let request = self.client.post(self.url(path)).header(CONTENT_TYPE, "application/json");
        request.body(body.to_owned()).send().unwrap().into()
    }

    pub fn post(&self, path: &str) -> Answer {
        self.client.post(self.url(path)).send().unwrap().into()
    }

    pub fn submit(&self, request: &Value) -> Answer {
        self.post_text("/v1/runs", &request.to_string())
    }

    /// Submits a run under an idempotency key.
    pub fn with_key(&self, key: &str, request: &Value) -> Answer {
        post_with_key(&self.client, &self.address, key, request).unwrap()
    }

    /// Submits a run; returns its path.
    pub fn submitted(&self, request: &Value) -> String {
        let answer = self.submit(request);
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.location.unwrap()
    }

    /// Submits a run until it is refused with this in the message.
    pub fn until_refused(&self, request: &Value, part: &str) -> Answer {
        let started = Instant::now();
        loop {
            let answer = self.submit(request);
            if answer.status >= 400
                && answer.body["error"]["message"].as_str().unwrap_or_default().contains(part)
            {
                return answer;
            }
            assert!(started.elapsed() < PATIENCE, "not in time: {answer:?}");
        }
    }

    /// Requests something until a condition holds.
    pub fn until(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let started = Instant::now();
        loop {
            let answer = self.get(path);
            if is_so(&answer.body) {
                return answer.body;
            }
            assert!(started.elapsed() < PATIENCE, "not in time: {answer:?}");
        }
    }

    /// Requests a text until a condition holds.
    pub fn until_text(&self, path: &str, is_so: impl Fn(&str) -> bool) {
        let started = Instant::now();
        loop {
            let text = self.text(path);
            if is_so(&text) {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "not in time: {text}");
        }
    }

    /// Waits until a run is over; returns its record.
    pub fn finished(&self, location: &str) -> Value {
        // The stream ends with the run.
        self.text(&format!("{location}/events?after={}", u32::MAX));
        let record = self.get(location).body;
        assert!(is_over(&record), "{record}");
        record
    }

    /// Waits until a run has this many durable events; returns its record then.
    pub fn with_events(&self, location: &str, count: u64) -> Value {
        let response = self.client.get(self.url(&format!("{location}/events"))).send().unwrap();
        assert_eq!(response.status(), 200, "{location}");
        let mut lines = BufReader::new(response).lines().map(Result::unwrap);
        let last = format!("id: {count}");
        assert!(lines.any(|line| line == last), "{location} ended before event {count}");
        self.get(location).body
    }

    /// Lets no file of the daemon grow beyond the present size of the journal's log and `more`
    /// bytes: soon every run waits for the journal, unfinished. `None` lifts the limit.
    pub fn limit_journal(&self, more: Option<u64>) {
        let log = self.home.journal().with_extension("sqlite-wal");
        let current = more.map(|more| std::fs::metadata(log).map_or(0, |log| log.len()) + more);
        prlimit(Some(self.pid()), Resource::Fsize, Rlimit { current, maximum: None }).unwrap();
    }

    /// Waits until the journal cannot be written.
    pub fn until_not_writable(&self) -> Value {
        let is_refused = |body: &Value| {
            body["journal"]["failure"].as_str().is_some_and(|why| why.contains("be written"))
        };
        self.until("/readyz", is_refused)
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Kills it (SIGKILL).
    pub fn kill(mut self) -> Arc<Home> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        Arc::clone(&self.home)
    }

    /// Sends a signal and waits for the end; returns the exit code and the rest of standard error.
    pub fn end_by(mut self, signal: Signal) -> (Option<i32>, String) {
        kill_process(self.pid(), signal).unwrap();
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

/// Submits a run under an idempotency key to a daemon that may be killed meanwhile.
pub fn post_with_key(
    client: &Client,
    address: &str,
    key: &str,
    request: &Value,
) -> Result<Answer, reqwest::Error> {
    let post = client.post(format!("http://{address}/v1/runs")).header("Idempotency-Key", key);
    Answer::read(post.header(CONTENT_TYPE, "application/json").body(request.to_string()).send()?)
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A run that does not end within a test unless it is cancelled.
pub fn long_run() -> Value {
    json!({"task": "tower-of-hanoi", "input": {"n": 30, "from": 0, "to": 2}, "fanout": 1})
}

/// The events of a run as server-sent events carry them: numbers, names and lines.
pub fn server_sent(text: &str) -> Vec<(u64, String, String)> {
    let mut events = Events::new(text.as_bytes());
    let messages = std::iter::from_fn(|| events.next_message().unwrap());
    let event = |message| match message {
        Message::Event { id, name, data } => Some((id.unwrap_or(0), name, data)),
        Message::KeepAlive => None,
    };
    messages.filter_map(event).collect()
}
