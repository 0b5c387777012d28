//! The limits of the process and of its log.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::daemon::{Daemon, Home, PATIENCE};

/// A daemon's command under a limit of file descriptors, an option and a number of `ulimit`.
fn under(home: &Home, limit: &str, sets: &[&str]) -> Command {
    let daemon = Daemon::command(home, sets);
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("ulimit {limit} && exec \"$0\" \"$@\""));
    command.arg(daemon.get_program()).args(daemon.get_args()).env_clear();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn a_daemon_has_a_file_descriptor_for_each_connection_or_does_not_start() {
    // 2 × (256 + 64) + 192.
    let home = Home::new();
    let daemon = Daemon::spawn(under(&home, "-S -n 64", &[]), &home).unwrap();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", daemon.pid().as_raw_pid()));
    let limits = limits.unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(line.split_whitespace().nth(3), Some("832"), "{line}");

    let home = Home::new();
    let log = Daemon::spawn(under(&home, "-n 326", &[]), &home).err().expect("it is refused");
    for part in ["server.connections_max = 256 needs 832 file descriptors", "only 326", "3 or less"]
    {
        assert!(log.contains(part), "{part:?} is missing in {log}");
    }
    let sets = ["server.connections_max=3"];
    assert_eq!(
        Daemon::spawn(under(&home, "-n 326", &sets), &home).unwrap().get("/livez").status,
        200
    );
}

#[test]
fn malformed_requests_do_not_fill_the_log() {
    let daemon = Daemon::start(&[]);
    for head in
        ["GET / HTTP/1.1\r\nbad header\r\n\r\n", "\u{1b}]52;c;eA==\u{7}\r\n\r\n", "GET /\r\n\r\n"]
    {
        for _ in 0..20 {
            let mut stream = TcpStream::connect(&daemon.address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(head.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        }
    }
    let (_, log) = daemon.end_by(Signal::TERM);
    assert!(!log.contains("ERROR"), "{log}");
    // One, and one more for each minute that a busy machine takes.
    let lines = log.matches("refused malformed requests").count();
    assert!((1..10).contains(&lines), "{log}");
}
