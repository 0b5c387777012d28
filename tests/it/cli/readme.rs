//! The commands of README.md and docs/getting-started.md, run as a reader runs them: in a folder with
//! the checkout's files that they name.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::binary::{Done, prime};
use crate::daemon::Daemon;

const PAGES: [&str; 2] =
    [include_str!("../../../README.md"), include_str!("../../../docs/getting-started.md")];

/// Commands that need what a test does not have, by their beginning: a server that stays, a model
/// that is trained, minutes.
const ELSEWHERE: [&str; 6] = [
    "prime-agents serve",
    "prime-agents train",
    "prime-agents loadtest",
    "prime-agents study run",
    "prime-agents doctor",
    "prime-agents run tower-of-hanoi --set agents.executor.implementation=openai",
];

/// Commands that take minutes for all of their instances.
const LARGE: [&str; 4] = ["bench generate", "bench export", "bench solve", "bench steps"];

/// The program's commands in the fenced blocks of the pages, without comments, each once.
fn commands() -> Vec<String> {
    let mut commands = Vec::new();
    let blocks = PAGES.iter().flat_map(|page| page.split("```").skip(1).step_by(2));
    for line in blocks.flat_map(|block| {
        let joined = block.replace("\\\n", " ");
        joined.lines().map(str::to_owned).collect::<Vec<_>>()
    }) {
        if line.starts_with("prime-agents ") {
            let command = line.split("  #").next().unwrap_or(&line).split(" # ").next();
            let command = command.unwrap_or(&line).trim().to_owned();
            if !commands.contains(&command) {
                commands.push(command);
            }
        }
    }
    commands
}

/// The words of a command as a shell splits them.
fn words(command: &str) -> Vec<String> {
    let split = Command::new("sh")
        .args(["-c", &format!("for word in {command}; do printf '%s\\n' \"$word\"; done")])
        .output()
        .expect("a shell");
    String::from_utf8(split.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// A folder with what the commands name.
fn checkout() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["examples", "agents", "studies", "models"] {
        std::os::unix::fs::symlink(root.join(name), folder.path().join(name)).unwrap();
    }
    folder
}

fn done_in(folder: &Path, words: &[String]) -> Done {
    let words: Vec<_> = words[1..].iter().map(String::as_str).collect();
    let mut command = prime(&words);
    // No model where the command names no agent; an option of the command comes before these.
    command
        .current_dir(folder)
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("PRIME__AGENTS__EXECUTOR__IMPLEMENTATION", "reference")
        .env("PRIME__AGENTS__VERIFIER__ENGINE", "tiny");
    command.output().expect("the binary starts").into()
}

#[test]
fn the_commands_of_the_readme_run() {
    let folder = checkout();
    let mut ran = 0;
    for command in commands() {
        let is_elsewhere = ELSEWHERE.iter().any(|start| command.starts_with(start))
            || command.starts_with("prime-agents runs ")
            || command.contains("=tiny")
            || command.contains("my.gguf")
            || command.contains("--model ");
        if is_elsewhere {
            continue;
        }

        let is_large = LARGE.iter().any(|large| command.contains(large));
        let mut words = words(&command);
        if is_large {
            match words.iter().position(|word| word == "--instances") {
                Some(at) => words[at + 1] = "1".to_owned(),
                None => words.extend(["--instances".to_owned(), "1".to_owned()]),
            }
        }

        let done = done_in(folder.path(), &words);
        // Nothing is promised of what a program of the user's own accepts.
        let expected = i32::from(command.contains("verifier.implementation=process"));
        assert!(done.code == expected, "{command}: {}\n{}{}", done.code, done.stdout, done.stderr);
        ran += 1;
    }
    assert!(ran >= 9, "only {ran} commands were found");
    assert!(fs::read_to_string(folder.path().join("steps.jsonl")).unwrap().contains("finished"));
}

#[test]
fn the_commands_on_runs_of_the_readme_work_on_its_own_run() {
    let folder = checkout();
    let daemon = Daemon::start(&[]);
    let asked: serde_json::Value = PAGES[0]
        .lines()
        .find_map(|line| line.strip_prefix("curl -d '")?.split_once('\'').map(|(body, _)| body))
        .map(|body| serde_json::from_str(body).expect("JSON"))
        .expect("a request in the README");
    let run = daemon.submitted(&asked);
    daemon.finished(&run);
    let id = run.rsplit('/').next().unwrap();

    let mut ran = 0;
    for command in commands().iter().filter(|line| line.starts_with("prime-agents runs ")) {
        let mut words = words(&command.replace("RUN_ID", id));
        words.extend(["--url".to_owned(), daemon.url("")]);
        let done = done_in(folder.path(), &words);
        assert_eq!(done.code, 0, "{command}: {}{}", done.stdout, done.stderr);
        ran += 1;
    }
    assert!(ran >= 8, "only {ran} commands were found");
}
