//! `completions`, `man` and `health`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::binary::{done, shown};

/// Every command that a user can type.
const COMMANDS: [&str; 10] =
    ["run", "runs", "serve", "loadtest", "bench", "doctor", "config", "health", "completions", "man"];

#[test]
fn completions_are_scripts_that_name_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = done(&["completions", shell]);
        assert_eq!((script.code, script.stderr.as_str()), (0, ""), "{shell}");
        for command in COMMANDS {
            assert!(script.stdout.contains(command), "{shell} does not know {command}");
        }
        assert!(!script.stdout.contains("engine-worker"), "the hidden command is hidden");
    }
    done(&["completions", "tcsh"]).refused(&["tcsh", "bash"]);
}

#[test]
fn bash_can_read_its_completions() {
    let script = done(&["completions", "bash"]).stdout;
    let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let read = bash.wait_with_output().unwrap();
    assert!(read.status.success() && read.stderr.is_empty(), "{}", String::from_utf8_lossy(&read.stderr));
}

#[test]
fn every_command_has_a_page_of_the_manual() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man1");
    let written = done(&["man", "--dir", shown(&pages)]);
    assert_eq!((written.code, written.stdout.as_str(), written.stderr.as_str()), (0, "", ""));
    let page = |name: &str| std::fs::read_to_string(pages.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    for command in COMMANDS {
        assert!(page(&format!("prime-agents-{command}.1")).contains(".SH SYNOPSIS"), "{command}");
    }
    assert!(page("prime-agents-bench-check.1").contains(".SH SYNOPSIS"), "commands below a command too");
    assert!(page("prime-agents.1").contains("serve"));
    assert_eq!(done(&["man"]).stdout, page("prime-agents.1"));
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    done(&["man", "--dir", shown(&file)]).refused(&["--dir", shown(&file), "cannot be written"]);
}

#[test]
fn health_says_when_nobody_answers() {
    // The port was free a moment ago, and nobody listens on it.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{free}");
    for arguments in [&["health", "--url", &url][..], &["health", "--set", &format!("server.bind={free}")]] {
        let answer = done(arguments);
        assert_eq!((answer.code, answer.stdout.as_str()), (1, ""));
        assert!(answer.stderr.contains(&format!("{url}/livez does not answer")), "{}", answer.stderr);
    }
    done(&["health", "--url", "https://localhost:1"]).refused(&["--url https://localhost:1", "http://HOST:PORT"]);
    done(&["health", "--set", "server.bind=127.0.0.1:0"]).refused(&["server.bind", "--url"]);
}
