//! `runs …`: the client of a daemon, against real daemons, and against servers that answer as they
//! are told.

mod chain;
mod mistakes;
mod requests;
mod reverify;
mod watch;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::thread::JoinHandle;

use serde_json::Value;

use crate::binary::{Done, prime};
use crate::daemon::{Daemon, long_run};

const SCRIPTED: &str = "agents.executor.implementation=scripted";

/// `runs` with these arguments, for this daemon.
fn command(daemon: &Daemon, arguments: &[&str]) -> Command {
    prime(&[&["runs"], arguments, &["--url", &daemon.url("")]].concat())
}

fn runs(daemon: &Daemon, arguments: &[&str]) -> Done {
    command(daemon, arguments).output().expect("the binary starts").into()
}

impl Done {
    /// Fails unless this ended with exit code 1, nothing on standard output and all of these parts
    /// in the message.
    fn failed(&self, parts: &[&str]) {
        assert_eq!((self.code, self.stdout.as_str()), (1, ""), "{}", self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is missing in {:?}", self.stderr);
        }
    }
}

/// Submits a run; returns its id.
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
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// Answers of a server: status with headers, and body.
type Answers = Vec<(&'static str, String)>;

/// Starts a server that gives each connection the next of these answers; returns its URL and a
/// thread that ends with the requests.
fn server_of(answers: Answers) -> (String, JoinHandle<Vec<String>>) {
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
