//! Every fault of a program is a typed failure of one turn.

use super::{executor, propose, python};
use crate::Failure;
use prime_settings::Program;

/// A program whose first process misbehaves and whose second answers.
fn once(folder: &std::path::Path, wrong: &str) -> Program {
    let marker = folder.join("was-here");
    let code = format!(
        r#"
marker = {marker:?}
first = not os.path.exists(marker)
open(marker, "w").close()
hello()
while True:
    request = ask()
    if first:
        {wrong}
    else:
        say(json.dumps({{"id": request["id"], "action": "move 1 0 2"}}))
"#
    );
    Program { timeout_ms: 20_000, ..python(&code) }
}

#[tokio::test]
async fn each_fault_fails_one_turn_with_a_reason() {
    // A slow start is not an issue: the timeout only counts after the handshake.
    let rows = [
        ("garbage", "say('ｎｏ json at all')", Failure::Malformed, "ｎｏ json at all"),
        ("no id", "say('{}')", Failure::Malformed, "missing field `id`"),
        (
            "the id of another",
            "say('{\"id\":77,\"action\":\"x\"}')",
            Failure::Malformed,
            "answered request 77",
        ),
        (
            "not text",
            "sys.stdout.buffer.write(bytes([255, 10])); sys.stdout.flush()",
            Failure::Malformed,
            "wrote",
        ),
        (
            "flood",
            "[sys.stdout.write('x' * 65536) for _ in range(100)]; sys.stdout.flush()",
            Failure::TooLong,
            "`line_bytes_max`",
        ),
        ("exit", "sys.stderr.write('no more\\n'); sys.exit(3)", Failure::Died, "exit status 3"),
        ("last words", "sys.stderr.write('no more\\n'); sys.exit(3)", Failure::Died, "no more"),
        ("an exception", "raise KeyError('colour')", Failure::Died, "KeyError: 'colour'"),
        ("signal", "os.kill(os.getpid(), 11)", Failure::Died, "signal 11"),
        (
            "closed output",
            "os.close(1); time.sleep(60)",
            Failure::Died,
            "closed its standard output without exiting",
        ),
        (
            "exit beside a child that holds its streams",
            "os._exit(4) if os.fork() else time.sleep(600)",
            Failure::Died,
            "exit status 4",
        ),
        (
            "last words beside a child that holds its streams",
            "sys.stderr.write('no more\\n'); sys.stderr.flush(); os._exit(4) if os.fork() else time.sleep(600)",
            Failure::Died,
            "no more",
        ),
        (
            "half a line",
            "sys.stdout.write('{\"id\"'); sys.stdout.flush(); os._exit(0)",
            Failure::Died,
            "exit status 0",
        ),
    ];
    for (name, wrong, failure, part) in rows {
        let folder = tempfile::tempdir().expect("a folder");
        let agent = executor(&once(folder.path(), wrong));

        let error = propose(&agent).await.expect_err(name);

        assert_eq!(error.failure, failure, "{name}: {error}");
        assert!(error.to_string().contains(part), "{name}: {part:?} is missing in {error}");
        assert!(error.to_string().starts_with("executor `test`: it "), "{name}: {error}");
        assert!(error.is_transient, "{name}");
        assert_eq!(
            propose(&agent).await.map(|proposal| proposal.line),
            Ok("move 1 0 2".to_owned()),
            "{name}"
        );
    }
}

#[tokio::test]
async fn an_idle_program_that_exits_beside_a_child_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let code = format!(
        r#"
marker = {:?}
first = not os.path.exists(marker)
open(marker, "w").close()
hello()
if first:
    os._exit(4) if os.fork() else time.sleep(600)
while True:
    say(json.dumps({{"id": ask()["id"], "action": "move 1 0 2"}}))
"#,
        folder.path().join("was-here")
    );
    let agent = executor(&Program { timeout_ms: 600_000, ..python(&code) });

    // The first turn may reach the first process before its exit is noticed. Nothing waits for the
    // time limit.
    let first = propose(&agent).await;
    assert!(first.is_ok() || first.is_err_and(|error| error.failure == Failure::Died));
    assert_eq!(propose(&agent).await.map(|proposal| proposal.line), Ok("move 1 0 2".to_owned()));
}

#[tokio::test]
async fn a_hanging_program_is_killed_and_restarted() {
    let folder = tempfile::tempdir().expect("a folder");
    let agent = executor(&Program { timeout_ms: 1000, ..once(folder.path(), "time.sleep(60)") });

    let error = propose(&agent).await.expect_err("hangs");
    assert_eq!((error.failure, error.is_transient), (Failure::Timeout, true));
    assert!(error.to_string().contains("did not answer within 1000 ms"), "{error}");
    assert!(propose(&agent).await.is_ok());
}

#[tokio::test]
async fn a_program_that_never_reads_times_out() {
    // Answers the handshake but reads nothing more: a line longer than the pipe buffer blocks.
    let code = "hello()\ntime.sleep(60)";
    let verifier = super::verifier(&Program { timeout_ms: 300, ..python(code) });

    let error = super::judge(&verifier, &"x".repeat(1 << 20)).await.expect_err("nobody reads");
    assert_eq!(error.failure, Failure::Timeout, "{error}");
}

#[tokio::test]
async fn a_program_that_floods_without_reading_is_stopped_at_the_limit() {
    let code = "hello()\nwhile True: sys.stdout.write('x' * 65536)";
    let program = Program { timeout_ms: 20_000, restarts_max: 0, ..python(code) };
    let verifier = super::verifier(&program);

    let error = super::judge(&verifier, &"x".repeat(1 << 20)).await.expect_err("floods");
    // Detected before or during the request.
    assert!([Failure::TooLong, Failure::Malformed].contains(&error.failure), "{error}");
}

#[tokio::test]
async fn unsolicited_lines_are_malformed() {
    let unasked = [
        "hello()\nsay('loaded')\nask()",
        // In one write with the handshake.
        "ask()\nsay('{\"prime\":1}\\nloaded')\nask()",
    ];
    for code in unasked {
        let agent = executor(&Program { restarts_max: 1, ..python(code) });
        let error = propose(&agent).await.expect_err("speaks unasked");
        assert_eq!(error.failure, Failure::Malformed, "{error}");
        assert!(error.to_string().contains("loaded"), "{error}");
    }
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let not_executable = folder.path().join("agent.py");
    std::fs::write(&not_executable, "print('x')").expect("written");
    for command in ["no-such-program-of-this-test", not_executable.to_str().expect("plain")] {
        let agent = executor(&Program { command: vec![command.to_owned()], ..Program::default() });
        for _ in 0..2 {
            let error = propose(&agent).await.expect_err("cannot be started");
            assert_eq!((error.failure, error.is_transient), (Failure::Refused, false));
            assert!(
                error.to_string().contains(command) && error.to_string().contains("`command`"),
                "{error}"
            );
        }
    }
    let error =
        super::ProcessExecutor::start("test", &Program::default()).err().expect("no command");
    assert!(
        error.to_string().contains("executor `test`") && error.to_string().contains("`command`"),
        "{error}"
    );
}

#[tokio::test]
async fn the_handshake_must_be_answered_in_time_and_in_the_same_version() {
    let rows = [
        ("ask()\nsay('{\"prime\":2}')\nask()", Failure::Refused, "version 2"),
        ("ask()\nsay('hello')\nask()", Failure::Malformed, "hello"),
        ("ask()\nsay('{\"prime\":1,\"colour\":2}')\nask()", Failure::Malformed, "colour"),
        ("ask()\ntime.sleep(60)", Failure::Timeout, "`start_timeout_ms`"),
        ("sys.exit('no licence')", Failure::Died, "no licence"),
    ];
    for (code, failure, part) in rows {
        let start_timeout_ms = if failure == Failure::Timeout { 300 } else { 20_000 };
        let agent = executor(&Program { start_timeout_ms, ..python(code) });
        let error = propose(&agent).await.expect_err(code);
        assert_eq!(error.failure, failure, "{error}");
        assert!(error.to_string().contains(part), "{part:?} is missing in {error}");
        assert_eq!(error.is_transient, failure != Failure::Refused, "{error}");
    }
}

#[tokio::test]
async fn a_program_that_always_fails_reaches_the_restart_limit() {
    let program = Program { restarts_max: 2, ..python("hello()\nask()\nsys.exit(9)") };
    let agent = executor(&program);
    for _ in 0..3 {
        let error = propose(&agent).await.expect_err("ends");
        assert!(
            error.to_string().contains("exit status 9")
                && !error.to_string().contains("restarts_max"),
            "{error}"
        );
    }

    let error = propose(&agent).await.expect_err("is not even started");
    assert_eq!(error.failure, Failure::Died);
    assert!(
        error.to_string().contains("`restarts_max`") && error.to_string().contains("exit status 9"),
        "{error}"
    );
}

#[tokio::test]
async fn after_the_window_a_program_is_restarted() {
    let folder = tempfile::tempdir().expect("a folder");
    let program =
        Program { restarts_max: 0, restart_window_ms: 1, ..once(folder.path(), "sys.exit(1)") };
    let agent = executor(&program);

    assert!(propose(&agent).await.is_err());
    // The window has passed before the process exits.
    let mut answer = propose(&agent).await;
    while answer.as_ref().is_err_and(|error| error.reason.contains("restarts_max")) {
        answer = propose(&agent).await;
    }
    assert!(answer.is_ok(), "{answer:?}");
}
