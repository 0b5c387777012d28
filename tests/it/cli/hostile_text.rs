//! What a model, server or program wrote does not act on the terminal of its reader.

use serde_json::{Value, json};

use crate::binary::{done, prime};
use crate::daemon::Daemon;

/// Writes the clipboard, sets the title, clears the screen, colours, and turns the text round.
const HOSTILE: &str = "\u{1b}]52;c;aGk=\u{7}\u{1b}]0;mine\u{7}\u{1b}[2J\u{9b}31m\u{202e}txt\r";
/// How it begins when it is shown.
const SHOWN: &str = r"\u001b]52;c;aGk=\u0007\u001b]0;mine\u0007\u001b[2J\u009b31m\u202etxt";

fn executor_that_writes_it() -> [String; 2] {
    let lines = serde_json::to_string(&[HOSTILE]).unwrap().replace('\u{7f}', "");
    ["agents.executor.implementation=replay".to_owned(), format!("agents.executor.lines={lines}")]
}

#[track_caller]
fn check(what: &str, text: &str) {
    let acts = |c: char| c.is_control() && c != '\n' && c != '\t' || c == '\u{202e}';
    assert!(!text.contains(acts), "{what}: {text:?}");
    assert!(text.contains(SHOWN), "{what} shows it: {text:?}");
}

#[test]
fn a_proposed_line_reaches_no_terminal_raw() {
    let sets = executor_that_writes_it();
    let mut run = vec!["run", "tower-of-hanoi", "--set", "run.max_rounds=1"];
    sets.iter().for_each(|set| run.extend(["--set", set]));

    check("text", &done(&run).stdout);
    let json = done(&[&run[..], &["--output", "json"]].concat()).stdout;
    check("JSON", &json);
    let result: Value = serde_json::from_str(&json).unwrap();
    assert!(result.to_string().contains("\u{202e}"), "JSON keeps the text: {json}");

    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    let daemon = Daemon::start(&sets);
    let run = daemon.submitted(&json!({"task": "tower-of-hanoi", "max_rounds": 1}));
    daemon.finished(&run);
    let id = run.rsplit('/').next().unwrap();
    for command in ["show", "watch", "trace"] {
        let shown =
            prime(&["runs", command, "--url", &daemon.url(""), id]).output().expect("it starts");
        check(command, &String::from_utf8(shown.stdout).unwrap());
    }
}
