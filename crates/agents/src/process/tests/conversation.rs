//! Handshake, environment, arguments and streams.

use super::{executor, propose, python};
use crate::AgentError;
use prime_settings::Program;

/// What a program answers as its action: any Python expression over the `handshake` and the
/// `request`.
async fn says(expression: &str, change: impl FnOnce(&mut Program)) -> Result<String, AgentError> {
    let code = format!(
        r#"
handshake = sys.stdin.readline()
say('{{"prime":1}}')
while True:
    request = ask()
    say(json.dumps({{"id": request["id"], "action": {expression}}}))
"#
    );

    let mut program = python(&code);
    change(&mut program);
    let agent = executor(&program);
    propose(&agent).await.map(|proposal| proposal.line)
}

#[tokio::test]
async fn the_handshake_has_role_and_name() {
    let handshake = says("handshake.strip()", |_| {}).await;
    assert_eq!(handshake, Ok(r#"{"prime":1,"role":"executor","name":"test"}"#.to_owned()));
}

#[tokio::test]
async fn a_program_sees_only_the_passed_environment() {
    let names = r#"" ".join(name for name in ("CARGO_PKG_NAME", "CARGO_MANIFEST_DIR", "HOME") if name in os.environ)"#;
    assert_eq!(says(names, |_| {}).await, Ok(String::new()));
    assert_ne!(says(r#"os.environ["PATH"]"#, |_| {}).await, Ok(String::new()));

    // Set by cargo for every test.
    let named = |program: &mut Program| {
        program.pass_env = vec!["CARGO_PKG_NAME".to_owned(), "NO_SUCH_THING".to_owned()];
    };
    let seen = says(
        r#"os.environ["CARGO_PKG_NAME"] + str(len(os.environ.get("NO_SUCH_THING", "")))"#,
        named,
    )
    .await;
    assert_eq!(seen, Ok(concat!(env!("CARGO_PKG_NAME"), "0").to_owned()));
}

#[tokio::test]
async fn arguments_are_passed_without_a_shell() {
    let arguments = ["$HOME", "a b", "*", "`id`"].map(str::to_owned);
    let seen = says("repr(sys.argv[1:])", |program| program.command.extend(arguments)).await;
    assert_eq!(seen, Ok("['$HOME', 'a b', '*', '`id`']".to_owned()));
}

#[tokio::test]
async fn standard_error_is_drained() {
    let code = r"
hello()
sys.stderr.write('x' * (1 << 22))
while True:
    request = ask()
    sys.stderr.write('asked\n' * (1 << 16))
    say(json.dumps({'id': request['id'], 'action': 'done'}))
";

    let agent = executor(&python(code));
    for _ in 0..3 {
        assert_eq!(propose(&agent).await.expect("an answer").line, "done");
    }
}

#[tokio::test]
async fn answers_are_limited_to_line_bytes_max() {
    // {"id": 1, "action": "…"} has 23 bytes besides the action.
    for (length, fits) in [(1000 - 23, true), (1001 - 23, false)] {
        let answer =
            says(&format!("'x' * {length}"), |program| program.line_bytes_max = 1000).await;
        assert_eq!(answer.is_ok(), fits, "{answer:?}");
    }
}

#[tokio::test]
async fn lines_may_end_in_crlf() {
    let code =
        "hello()\nwhile True: say(json.dumps({'id': ask()['id'], 'action': 'done'}) + '\\r')";
    assert_eq!(propose(&executor(&python(code))).await.expect("an answer").line, "done");
}
