//! A daemon for tests: a real process and real HTTP.
#![allow(clippy::disallowed_methods, reason = "these tests wait for other processes, in real time")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use ureq::Agent;

use crate::binary::{REFERENCE, prime};

/// Longest wait for anything that must happen; far above what it takes, because the machine may be busy.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// A daemon of its own, ended when dropped.
pub struct Daemon {
    child: Child,
    stderr: BufReader<ChildStderr>,
    /// HOST:PORT.
    pub address: String,
    pub agent: Agent,
    /// Its journal is here.
    _folder: TempDir,
}

/// An answer: status, body, and two headers.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
    pub location: Option<String>,
    pub retry_after: Option<String>,
}

impl From<ureq::http::Response<ureq::Body>> for Answer {
    fn from(mut response: ureq::http::Response<ureq::Body>) -> Self {
        let header = |name| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let (location, retry_after) = (header("Location"), header("Retry-After"));
        let status = response.status().as_u16();
        let text = response.body_mut().read_to_string().unwrap();
        let body =
            serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status} with a body that is not JSON: {text}"));
        Self { status, body, location, retry_after }
    }
}

impl Answer {
    /// Fails unless this is an error of this status that names the field and has these parts in its message.
    pub fn refused(&self, status: u16, field: Option<&str>, parts: &[&str]) {
        let (error, message) = (&self.body["error"], self.body["error"]["message"].as_str().unwrap_or_default());
        assert_eq!((self.status, error["field"].as_str()), (status, field), "{self:?}");
        for part in parts {
            assert!(message.contains(part), "{part:?} is missing in {message:?}");
        }
    }
}

impl Daemon {
    pub fn start(sets: &[&str]) -> Self {
        let sets: Vec<_> = sets.iter().flat_map(|set| ["--set", *set]).collect();
        let folder = tempfile::tempdir().unwrap();
        let journal = format!("journal.path={:?}", folder.path().join("runs.sqlite"));
        let first = ["serve", "--set", "server.bind=127.0.0.1:0", "--set", &journal];
        let arguments = [&first[..], &REFERENCE, &sets].concat();
        let mut child = prime(&arguments).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut before = String::new();
        let address = loop {
            let mut line = String::new();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended: {before}");
            if let Some((_, address)) = line.trim().split_once("ready on http://") {
                break address.to_owned();
            }
            before += &line;
        };
        let config = Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE)).build();
        Self { child, stderr, address, agent: Agent::new_with_config(config), _folder: folder }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.agent.get(self.url(path)).call().unwrap().into()
    }

    pub fn post_text(&self, path: &str, body: &str) -> Answer {
        self.agent.post(self.url(path)).content_type("application/json").send(body).unwrap().into()
    }

    pub fn submit(&self, request: &Value) -> Answer {
        self.post_text("/v1/runs", &request.to_string())
    }

    /// Asks for a run until it is so.
    pub fn until(&self, location: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let started = Instant::now();
        loop {
            let answer = self.get(location);
            assert_eq!(answer.status, 200, "{answer:?}");
            if is_so(&answer.body) {
                return answer.body;
            }
            assert!(started.elapsed() < PATIENCE, "not in time: {answer:?}");
        }
    }

    /// Asks for a run until it is over.
    pub fn finished(&self, location: &str) -> Value {
        self.until(location, |run| run["status"] != "queued" && run["status"] != "running")
    }

    /// Sends a signal and waits for the end; gives the exit code and the rest of standard error.
    pub fn end_by(mut self, signal: Signal) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Takes minutes if nobody ends it.
pub fn long_run() -> Value {
    json!({"task": "tower-of-hanoi", "input": {"n": 30, "from": 0, "to": 2}})
}
