//! Cancelled turns and dropped pools.

use std::io::Read as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;

use super::{SAMPLING, executor, is_alive, is_gone, propose, python, trajectory};
use crate::AsyncExecutor;
use prime_settings::Program;

/// Connects to `socket` and reports `start PID` and `turn ID`. Hangs at temperature 2.
fn telling(socket: &Path) -> Program {
    python(&format!(
        r#"
import socket
teller = socket.socket(socket.AF_UNIX)
teller.connect({socket:?})
def tell(text):
    teller.sendall(text.encode() + b"\n")
tell(f"start {{os.getpid()}}")
hello()
while True:
    request = ask()
    tell(f"turn {{request['id']}}")
    if request["sampling"]["temperature"] == 2:
        time.sleep(60)
    say(json.dumps({{"id": request["id"], "action": str(os.getpid())}}))
"#
    ))
}

struct Told(UnixStream);

impl Told {
    /// The process that connects next, and its id.
    async fn start(listener: &UnixListener) -> (Self, u32) {
        let listener = listener.try_clone().expect("a copy");
        let stream = tokio::task::spawn_blocking(move || listener.accept().expect("a process").0);
        let mut told = Self(stream.await.expect("no panic"));
        let line = told.line().await;
        let pid = line.strip_prefix("start ").expect("the first line").parse().expect("a number");
        (told, pid)
    }

    /// The next line; empty when the process has exited.
    async fn line(&mut self) -> String {
        let mut stream = self.0.try_clone().expect("a copy");
        let read = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            let mut byte = [0];
            while stream.read(&mut byte).is_ok_and(|length| length == 1) && byte[0] != b'\n' {
                line.push(char::from(byte[0]));
            }
            line
        });
        read.await.expect("no panic")
    }
}

#[tokio::test]
async fn cancelling_a_sent_turn_kills_only_its_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("told");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let agent = executor(&Program { restarts_max: 0, ..telling(&socket) });
    let (mut first, pid) = Told::start(&listener).await;

    let hot = crate::Sampling { temperature: 2.0, ..SAMPLING };
    let at = trajectory("tower-of-hanoi");
    let mut hanging = agent.propose(&at, hot);
    // Polls the future until the program reports the request.
    tokio::select! {
        answer = &mut hanging => panic!("it hangs: {answer:?}"),
        line = first.line() => assert_eq!(line, "turn 1"),
    }

    drop(hanging);
    assert_eq!(first.line().await, "", "it is killed");
    let (_second, next) = Told::start(&listener).await;

    // Does not count as a restart, of which none is allowed.
    assert_eq!(propose(&agent).await.expect("an answer").line, next.to_string());
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn cancelling_a_queued_turn_removes_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("told");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let agent = executor(&Program { timeout_ms: 1000, restarts_max: 3, ..telling(&socket) });
    let (mut told, _) = Told::start(&listener).await;

    let at = trajectory("tower-of-hanoi");
    let hot = crate::Sampling { temperature: 2.0, ..SAMPLING };
    let hanging = agent.propose(&at, hot);
    let waiting = agent.propose(&at, SAMPLING);
    let last = agent.propose(&at, SAMPLING);

    let (hanging, line, last) = tokio::join!(
        hanging,
        async {
            let mut waiting = waiting;
            assert!(waiting.as_mut().now_or_never().is_none(), "the only process is taken");
            drop(waiting);
            told.line().await
        },
        last
    );

    assert!(hanging.is_err());
    assert_eq!(line, "turn 1");
    assert!(last.is_ok());

    let (mut next, _) = Told::start(&listener).await;
    assert_eq!(next.line().await, "turn 2", "the one that left was never sent");
}

#[tokio::test]
async fn turns_run_in_parallel_and_get_their_own_answers() {
    let code = r#"
hello()
while True:
    request = ask()
    say(json.dumps({"id": request["id"], "action": f"{os.getpid()} {request['sampling']['seed']}"}))
"#;
    let agent = executor(&Program { processes: 3, ..python(code) });
    let at = trajectory("tower-of-hanoi");
    let turns = (0..60).map(|seed| agent.propose(&at, crate::Sampling { seed, ..SAMPLING }));

    let answers = join_all(turns).await;

    let mut pids = std::collections::BTreeSet::new();
    for (seed, answer) in answers.into_iter().enumerate() {
        let line = answer.expect("an answer").line;
        let (pid, of) = line.split_once(' ').expect("two numbers");
        assert_eq!(of, seed.to_string());
        pids.insert(pid.to_owned());
    }
    assert_eq!(pids.len(), 3);
}

#[test]
fn the_processes_outlive_the_threads_that_use_them() {
    let code =
        "hello()\nwhile True: say(json.dumps({'id': ask()['id'], 'action': str(os.getpid())}))";
    let agent = Arc::new(executor(&python(code)));
    let on_a_thread = || {
        let agent = Arc::clone(&agent);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            runtime.block_on(propose(&agent)).expect("an answer").line
        });
        thread.join().expect("no panic")
    };

    let first = on_a_thread();
    assert_eq!(on_a_thread(), first, "the same process on another thread");
}

#[test]
fn actors_on_their_own_threads_share_a_program() {
    let code = "hello()\nwhile True: say(json.dumps({'id': ask()['id'], 'action': 'done'}))";
    let agent = executor(&Program { processes: 2, ..python(code) });

    actix::System::new().block_on(async {
        let arbiters: Vec<_> = (0..4).map(|_| actix::Arbiter::new()).collect();
        let answers = arbiters.iter().map(|arbiter| {
            let (sender, answer) = tokio::sync::oneshot::channel();
            let agent = agent.clone();
            arbiter.spawn(async move { drop(sender.send(propose(&agent).await)) });
            answer
        });

        for answer in join_all(answers).await {
            assert_eq!(answer.expect("not dropped").expect("an answer").line, "done");
        }

        arbiters.iter().for_each(|arbiter| assert!(arbiter.stop()));
    });

    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    assert!(runtime.block_on(propose(&agent)).is_ok(), "no arbiter's end breaks it");
}

#[tokio::test]
async fn dropping_a_pool_terminates_its_processes() {
    // One that exits on its own, and one that does not.
    let rows = [
        "while True: say(json.dumps({'id': ask()['id'], 'action': str(os.getpid())}))",
        "say(json.dumps({'id': ask()['id'], 'action': str(os.getpid())}))\ntime.sleep(60)",
    ];
    for code in rows {
        let agent = executor(&python(&format!("hello()\n{code}")));
        let pid = propose(&agent).await.expect("an answer").line.parse().expect("a number");
        assert!(is_alive(pid));

        drop(agent);
        assert!(is_gone(pid), "{code}");
    }
}

#[tokio::test]
async fn child_processes_are_killed_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("told");
    let listener = UnixListener::bind(&socket).expect("a socket");
    // The child keeps the connection open until it is killed.
    let code = format!(
        r#"
import socket
hello()
if os.fork() == 0:
    held = socket.socket(socket.AF_UNIX)
    held.connect({socket:?})
    time.sleep(600)
while True: say(json.dumps({{"id": ask()["id"], "action": "done"}}))
"#
    );

    let agent = executor(&python(&code));
    assert!(propose(&agent).await.is_ok());

    let mut held = tokio::task::spawn_blocking(move || listener.accept().expect("the child").0)
        .await
        .expect("no panic");

    drop(agent);
    held.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
    assert_eq!(held.read(&mut [0]).expect("it ends within the time"), 0);
}

#[tokio::test]
async fn a_pool_can_be_dropped_during_a_turn_and_a_start() {
    let hanging = executor(&python("hello()\nask()\ntime.sleep(60)"));
    let at = trajectory("tower-of-hanoi");
    let mut turn = hanging.propose(&at, SAMPLING);
    assert!(turn.as_mut().now_or_never().is_none());

    drop(turn);
    let starting = executor(&python("time.sleep(60)"));
    let ended = tokio::task::spawn_blocking(move || drop((hanging, starting)));
    tokio::time::timeout(Duration::from_secs(20), ended).await.expect("no hang").expect("no panic");
}
