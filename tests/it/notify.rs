//! systemd's notification protocol: a datagram socket in `NOTIFY_SOCKET`.
#![allow(clippy::disallowed_methods, reason = "these tests wait for other processes, in real time")]

use std::io::Read as _;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::binary::{REFERENCE, file, prime, shown};

/// Longest wait for a message, far above what it takes: only a test that hangs fails by it.
const PATIENCE: Duration = Duration::from_mins(5);

/// A daemon with a notification socket.
struct Notifying {
    child: Child,
    socket: UnixDatagram,
    /// Holds the socket.
    _folder: TempDir,
}

fn socket() -> (TempDir, PathBuf, UnixDatagram) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    (folder, path, socket)
}

impl Notifying {
    fn start(variables: &[(&str, &str)]) -> Self {
        Self::with(variables, &[])
    }

    fn with(variables: &[(&str, &str)], more: &[&str]) -> Self {
        let (folder, path, socket) = socket();
        let arguments =
            [&["serve", "--set", "server.bind=127.0.0.1:0"][..], &REFERENCE, more].concat();
        let child = prime(&arguments)
            .current_dir(folder.path())
            .env("NOTIFY_SOCKET", path)
            .envs(variables.iter().copied())
            .spawn()
            .unwrap();
        Self { child, socket, _folder: folder }
    }

    /// The next message's lines.
    fn message(&self) -> Vec<String> {
        let mut buffer = [0; 4096];
        let length = self.socket.recv(&mut buffer).expect("a message in time");
        std::str::from_utf8(&buffer[..length]).unwrap().lines().map(str::to_owned).collect()
    }

    /// The messages until one has this line.
    fn until(&self, line: &str) -> Vec<Vec<String>> {
        let mut messages = Vec::new();
        while messages
            .last()
            .is_none_or(|message: &Vec<String>| !message.iter().any(|found| found == line))
        {
            messages.push(self.message());
        }
        messages
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Notifying {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn readiness_and_stopping_are_notified() {
    let mut daemon = Notifying::start(&[]);
    let ready = daemon.message();
    assert_eq!(ready[0], "READY=1");
    let address = ready[1].strip_prefix("STATUS=takes runs on http://").expect("a status");
    std::net::TcpStream::connect(address).expect("it accepts connections once it is ready");

    daemon.signal(Signal::TERM);
    assert_eq!(daemon.message()[0], "STOPPING=1", "without a watchdog nothing comes between");
    assert_eq!(daemon.child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_watchdog_is_notified_until_the_end() {
    let daemon = Notifying::start(&[("WATCHDOG_USEC", "20000")]);
    assert_eq!(daemon.until("READY=1").len(), 1, "not before it is ready");
    for _ in 0..3 {
        daemon.until("WATCHDOG=1");
    }

    daemon.signal(Signal::INT);
    daemon.until("STOPPING=1");
}

#[test]
fn the_watchdog_of_another_process_is_ignored() {
    let daemon = Notifying::start(&[("WATCHDOG_USEC", "1000"), ("WATCHDOG_PID", "1")]);
    daemon.until("READY=1");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.until("STOPPING=1").len(), 1);
}

#[test]
fn a_reload_is_notified_and_an_error_in_it_changes_nothing() {
    let (_folder, path) = file("my.toml", "log.level = \"error\"\n");
    let mut daemon = Notifying::with(&[], &["--config", shown(&path)]);
    daemon.until("READY=1");
    let reload = || {
        daemon.signal(Signal::HUP);
        let begun = daemon.message();
        assert_eq!(begun[0], "RELOADING=1");
        assert!(
            begun[1].strip_prefix("MONOTONIC_USEC=").is_some_and(|now| now.parse::<u64>().is_ok()),
            "{begun:?}"
        );
        assert_eq!(daemon.message(), ["READY=1"]);
    };
    for text in ["log.level = \"info\"\n", "log.levle = \"info\"\n", "log.level = \"error\"\n"] {
        std::fs::write(&path, text).unwrap();
        reload();
    }

    daemon.signal(Signal::TERM);
    daemon.until("STOPPING=1");
    let mut log = String::new();
    daemon.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();

    assert_eq!(daemon.child.wait().unwrap().code(), Some(0), "{log}");
    assert_eq!(
        log.matches("configuration reloaded").count(),
        1,
        "the last level is quieter: {log}"
    );
    assert!(log.contains("not reloaded") && log.contains("log.levle"), "{log}");
}

#[test]
fn a_missing_socket_is_logged_and_the_daemon_serves() {
    let arguments = [&["serve", "--set", "server.bind=127.0.0.1:0"][..], &REFERENCE].concat();
    let folder = tempfile::tempdir().unwrap();
    let mut child = prime(&arguments)
        .current_dir(folder.path())
        .env("NOTIFY_SOCKET", folder.path().join("nobody"))
        .spawn()
        .unwrap();

    let mut stderr = child.stderr.take().unwrap();
    let mut log = String::new();
    while !log.contains("cannot notify systemd") {
        let mut bytes = [0; 1024];
        let count = stderr.read(&mut bytes).unwrap();
        assert!(count > 0, "it ended: {log}");
        log += std::str::from_utf8(&bytes[..count]).unwrap();
    }

    assert!(log.contains("ready on http://") && log.contains("NOTIFY_SOCKET"), "{log}");
    child.kill().unwrap();
    child.wait().unwrap();
}
