//! Whatever ends a run ends the work on its turns: programs are killed, requests to servers are
//! closed, and the next run is served.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::binary::shown;
use crate::daemon::{Daemon, Home};
use crate::openai::{chat, hanoi, stream};

/// How long a turn may take: no test waits for it.
const TIMEOUT_MS: u64 = 120_000;
/// Longest wait for an event: far above what it takes, and far below [`TIMEOUT_MS`].
const PROMPT: Duration = Duration::from_mins(1);

/// What happens on the connections to a listener, each event with the connection's number.
struct Events {
    port: u16,
    told: Receiver<String>,
}

impl Events {
    /// Accepts connections; a thread for each reports what happens on it, and then its end.
    fn of(converse: impl Fn(TcpStream, &dyn Fn(&str)) + Clone + Send + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, told) = channel();
        // Ends with the tests.
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let (tell, converse): (Sender<String>, _) = (tell.clone(), converse.clone());
                std::thread::spawn(move || {
                    // The test may have ended.
                    let tell = |event: &str| drop(tell.send(format!("{number} {event}")));
                    converse(stream.unwrap(), &tell);
                    tell("gone");
                });
            }
        });
        Self { port, told }
    }

    /// Waits for these events, which may come in any order, and for no others.
    fn expect(&self, wanted: &[&str]) {
        let next = |_| self.told.recv_timeout(PROMPT).expect("an event, promptly");
        let mut told: Vec<_> = (0..wanted.len()).map(next).collect();
        told.sort_unstable();
        assert_eq!(told, wanted);
    }
}

/// A run whose turn nobody answers.
fn hanging() -> Value {
    json!({"task": "tower-of-hanoi", "input": {"n": 4, "from": 0, "to": 2}, "fanout": 1})
}

/// Ends a run in each way while its only turn is at work. `is_at_work` waits for that, and
/// `is_gone` for the end of the work; both get the number of earlier runs.
fn each_way(daemon: &Daemon, is_at_work: impl Fn(usize), is_gone: impl Fn(usize)) {
    let run = daemon.submitted(&hanging());
    is_at_work(0);
    assert_eq!(daemon.post(&format!("{run}/cancel")).status, 200);
    is_gone(0);
    assert_eq!(daemon.finished(&run)["outcome"], "cancelled");

    let mut limited = hanging();
    limited["budget"] = json!({"wall_ms": 5_000});
    let run = daemon.submitted(&limited);
    is_at_work(1);
    is_gone(1);
    assert_eq!(daemon.finished(&run)["outcome"], "wall_ms_spent");

    let reading = stream(daemon, &chat(&hanging(), &json!({"stream": true})));
    is_at_work(2);
    drop(reading);
    is_gone(2);
}

#[test]
fn a_program_that_hangs_is_killed_with_its_run() {
    let events = Events::of(|stream, tell| {
        BufReader::new(stream).lines().map_while(Result::ok).for_each(|line| tell(&line));
    });

    let home = Home::new();
    let program = home.journal().with_file_name("hangs.py");
    let code = format!(
        r#"
import socket, sys, time
sys.path.insert(0, {examples:?})
from executor import next_move
from prime_agent import serve

teller = socket.create_connection(("127.0.0.1", {port}))

def propose(request):
    if request["input"]["n"] == 4:
        teller.sendall(b"hangs\n")
        time.sleep(3600)
    disk, source, target = next_move(request["state"]["pegs"], request["input"]["to"])
    return {{"action": f"move {{disk}} {{source}} {{target}}"}}

teller.sendall(b"starts\n")
serve("executor", propose)
"#,
        examples = shown(&Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/examples")),
        port = events.port,
    );
    std::fs::write(&program, code).unwrap();

    let command =
        format!("agents.executor.program.command=[\"python3\", \"-B\", {:?}]", shown(&program));
    let mut daemon = Daemon::command(
        &home,
        &[
            "agents.executor.implementation=process",
            &command,
            "agents.executor.program.processes=1",
            "agents.executor.program.restarts_max=0",
            &format!("agents.executor.program.timeout_ms={TIMEOUT_MS}"),
        ],
    );
    daemon.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let daemon = Daemon::spawn(daemon, &home).expect("started");

    events.expect(&["0 starts"]);
    each_way(
        &daemon,
        |number| events.expect(&[&format!("{number} hangs")]),
        |number| events.expect(&[&format!("{number} gone"), &format!("{} starts", number + 1)]),
    );

    // The only process is a fresh one, which works.
    let run = daemon.submitted(&hanoi());
    assert_eq!(daemon.finished(&run)["verified"], true);
}

/// The program that locates a fault is asked within a turn of the verifier; it ends with it.
#[test]
fn a_locator_that_hangs_is_killed_with_its_run() {
    let events = Events::of(|stream, tell| {
        BufReader::new(stream).lines().map_while(Result::ok).for_each(|line| tell(&line));
    });
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("hangs.py");
    let code = format!(
        r#"
import socket, sys, time
sys.path.insert(0, {examples:?})
from prime_agent import serve

teller = socket.create_connection(("127.0.0.1", {port}))

def check(request):
    teller.sendall(b"hangs\n")
    time.sleep(3600)

teller.sendall(b"starts\n")
serve("verifier", check)
"#,
        examples = shown(&Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/examples")),
        port = events.port,
    );
    std::fs::write(&program, code).unwrap();
    std::fs::create_dir(folder.path().join("verifier")).unwrap();
    let definition = format!(
        "implementation = \"process\"\n[program]\ncommand = [\"python3\", \"-B\", {:?}]\n\
         processes = 1\nrestarts_max = 0\ntimeout_ms = {TIMEOUT_MS}\n",
        shown(&program)
    );
    std::fs::write(folder.path().join("verifier/slow.toml"), definition).unwrap();

    let daemon = Daemon::start(&[
        &format!("agents.folder={}", shown(folder.path())),
        "agents.executor.implementation=scripted",
        "agents.executor.error_rate=0.05",
        "agents.verifier.kinds=[\"format\", \"terminal\"]",
        "run.locate=slow",
    ]);

    let run =
        daemon.submitted(&json!({"task": "union-find", "index": 5, "fanout": 1, "max_rounds": 1}));
    events.expect(&["0 starts"]);
    events.expect(&["0 hangs"]);
    assert_eq!(daemon.post(&format!("{run}/cancel")).status, 200);
    assert_eq!(events.told.recv_timeout(PROMPT).expect("an event, promptly"), "0 gone");
    assert_eq!(daemon.finished(&run)["outcome"], "cancelled");
}

/// Reads a request; false once the client has gone.
fn read_request(reader: &mut BufReader<TcpStream>) -> bool {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if !reader.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            return false;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(number) = line.strip_prefix("content-length:") {
            length = number.trim().parse().unwrap();
        }
    }
    reader.read_exact(&mut vec![0; length]).is_ok()
}

/// A daemon whose executor is behind a server at this port, which takes one request at a time.
fn behind_server(port: u16) -> Daemon {
    let server = format!("url=\"http://127.0.0.1:{port}/v1\", model=\"solver\", concurrent_max=1");
    Daemon::start(&[
        "agents.executor.implementation=openai",
        "agents.executor.pool=local",
        "agents.executor.prompt=step",
        "agents.executor.grammar=false",
        "pools.local.health_interval_ms=0",
        &format!("pools.local.timeout_ms={TIMEOUT_MS}"),
        &format!("pools.local.upstreams=[{{{server}}}]"),
    ])
}

#[test]
fn a_request_to_a_server_is_closed_with_its_run() {
    let events = Events::of(|stream, tell| {
        let mut reader = BufReader::new(stream);
        while read_request(&mut reader) {
            tell("asks");
        }
    });
    let daemon = behind_server(events.port);

    // Each run after the first has the place of the one before it.
    each_way(
        &daemon,
        |number| events.expect(&[&format!("{number} asks")]),
        |number| events.expect(&[&format!("{number} gone")]),
    );
}

#[test]
fn a_run_that_a_limit_ends_tells_what_its_server_answered() {
    let null = "{\"choices\":[{\"message\":{\"content\":null}}]}";
    let error = "{\"error\":{\"message\":\"out of credit\"}}";
    for (kind, body, reason) in [
        ("application/json", null, "without text"),
        ("application/json", error, "out of credit"),
        ("text/html", "<html>", "text/html"),
    ] {
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let events = Events::of(move |stream, _| {
            let mut reader = BufReader::new(stream);
            while read_request(&mut reader) && reader.get_mut().write_all(answer.as_bytes()).is_ok()
            {
            }
        });

        let daemon = behind_server(events.port);
        let mut limited = hanging();
        limited["budget"] = json!({"wall_ms": 1_500});
        let record = daemon.finished(&daemon.submitted(&limited));
        assert_eq!(record["outcome"], "wall_ms_spent", "{record}");

        let failure = record["failure"].as_str().expect("a reason");
        assert!(failure.starts_with("the executor failed last: "), "{failure}");
        assert!(failure.contains(reason), "{failure}");
    }
}
