//! `completions`, `man` and `health`.

use std::process::Command;

use crate::binary::{done, file, prime, shown};

/// Every command.
const COMMANDS: [&str; 15] = [
    "run",
    "runs",
    "serve",
    "loadtest",
    "bench",
    "study",
    "doctor",
    "agents",
    "model",
    "config",
    "key",
    "health",
    "completions",
    "man",
    "train",
];

#[test]
fn completions_name_every_command() {
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
fn completions_are_installed_for_the_users_shell() {
    let home = tempfile::tempdir().unwrap();
    let install = |shell: &str, named: &[&str]| {
        let mut command = prime(&[&["completions", "--install"], named].concat());
        for other in ["XDG_DATA_HOME", "XDG_CONFIG_HOME", "BASH_COMPLETION_USER_DIR"] {
            command.env_remove(other);
        }
        command.env("HOME", home.path()).env("SHELL", shell).output().expect("the binary starts")
    };

    for (shell, named, file) in [
        ("/bin/bash", &[][..], ".local/share/bash-completion/completions/prime-agents"),
        ("/bin/bash", &["zsh"], ".local/share/zsh/site-functions/_prime-agents"),
        ("/usr/bin/fish", &[], ".config/fish/completions/prime-agents.fish"),
    ] {
        let installed = install(shell, named);
        let said = String::from_utf8(installed.stderr).unwrap();
        assert!(installed.status.success() && said.contains(file), "{said}");
        let name = named.first().copied().unwrap_or(shell.rsplit('/').next().unwrap());
        let script = std::fs::read_to_string(home.path().join(file)).unwrap();
        assert_eq!(script, done(&["completions", name]).stdout);
    }

    for (shell, named, part) in
        [("/bin/unknown", &[][..], "SHELL"), ("/bin/bash", &["elvish"], "start-up script")]
    {
        let refused = install(shell, named);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && said.contains(part), "{said}");
    }
    done(&["completions"]).refused(&["name a shell", "--install"]);
}

/// What bash proposes for the last word of each of these lines.
fn completed_by_bash(lines: &[&[&str]]) -> Vec<Vec<String>> {
    let (_folder, script) = file("completions.bash", &done(&["completions", "bash"]).stdout);
    let mut program = format!(
        "set -u\nsource {}\ncomplete_words() {{\n  COMP_WORDS=(\"$@\")\n  COMP_CWORD=$(($# - \
         1))\n  COMPREPLY=()\n  _prime__agents prime-agents \"${{COMP_WORDS[COMP_CWORD]}}\" \
         \"${{COMP_WORDS[COMP_CWORD - 1]}}\"\n  echo \"${{COMPREPLY[@]}}\"\n}}\n",
        shown(&script)
    );

    for words in lines {
        let quoted: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
        program += &format!("complete_words prime-agents {}\n", quoted.join(" "));
    }

    let run = Command::new("bash").args(["--norc", "-c", &program]).output().expect("bash");
    let (stdout, stderr) =
        (String::from_utf8(run.stdout).unwrap(), String::from_utf8(run.stderr).unwrap());
    assert!(run.status.success() && stderr.is_empty(), "{stderr}");

    stdout
        .lines()
        .map(|line| line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect())
        .collect()
}

#[test]
fn bash_completes_commands_at_every_level_and_the_values_of_options() {
    let cases: [(&[&str], &[&str]); 17] = [
        (&["be"], &["bench"]),
        (&["bench", "st"], &["steps", "strategies"]),
        (&["runs", "verify"], &["verify-chain"]),
        (&["runs", "verify-chain", "--ur"], &["--url"]),
        (&["agents", "try", "exec"], &["executor"]),
        (&["config", "schema", "--m"], &["--markdown"]),
        (&["run", "bubble"], &["bubble-sort"]),
        (&["runs", "submit", "24"], &["24-game"]),
        (&["run", "n-queens", "--difficulty", ""], &["easy", "medium", "hard"]),
        (&["bench", "solve", "--task", "tower"], &["tower-of-hanoi"]),
        (&["bench", "generate", "--category", "auto"], &["automata"]),
        (&["bench", "check", "x.jsonl", "--kinds", "inv"], &["invariant"]),
        (&["bench", "strategies", "--strategy", "gr"], &["greedy"]),
        // As bash splits `--difficulty=`, with and without the beginning of a value.
        (&["run", "n-queens", "--difficulty", "="], &["easy", "medium", "hard"]),
        (&["run", "n-queens", "--difficulty", "=", "h"], &["hard"]),
        (&["bench", "solve", "--task", "=", "tower"], &["tower-of-hanoi"]),
        (&["run", "n-queens", "--set", "a", "=", "x"], &[]),
    ];

    let found = completed_by_bash(&cases.map(|(words, _)| words));
    for ((words, expected), found) in cases.iter().zip(&found) {
        assert_eq!(found, expected, "{words:?}");
    }
    assert_eq!(found.len(), cases.len());
}

#[test]
fn every_command_has_a_page_of_the_manual() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man1");
    let written = done(&["man", "--dir", shown(&pages)]);
    assert_eq!((written.code, written.stdout.as_str(), written.stderr.as_str()), (0, "", ""));
    let page = |name: &str| {
        std::fs::read_to_string(pages.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    };

    for command in COMMANDS {
        let page = page(&format!("prime-agents-{command}.1"));
        for section in
            [".SH SYNOPSIS", ".SH \"EXIT STATUS\"", ".SH \"ENVIRONMENT\"", ".SH \"FILES\""]
        {
            assert!(page.contains(section), "{command}: {section}");
        }
    }

    let nested = page("prime-agents-bench-check.1");
    assert!(
        nested.contains(".SH EXAMPLES") && nested.contains("\\[u2026]"),
        "nested commands too: {nested}"
    );

    for entry in std::fs::read_dir(&pages).unwrap() {
        let path = entry.unwrap().path();
        assert!(std::fs::read(&path).unwrap().is_ascii(), "{}", path.display());
    }

    let main = page("prime-agents.1");
    for part in [
        "serve",
        ".SH EXAMPLES",
        "prime\\-agents run tower\\-of\\-hanoi",
        "PRIME_API_KEY",
        "\\fB130\\fR",
    ] {
        assert!(main.contains(part), "{part:?} is missing");
    }
    assert_eq!(done(&["man"]).stdout, main);
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let (_folder, path) = file("file", "");
    done(&["man", "--dir", shown(&path)]).refused(&["--dir", shown(&path), "cannot be written"]);
}

#[test]
fn health_reports_that_nobody_answers() {
    // The port was free a moment ago, and nobody listens on it.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{free}");
    for arguments in
        [&["health", "--url", &url][..], &["health", "--set", &format!("server.bind={free}")]]
    {
        let answer = done(arguments);
        assert_eq!((answer.code, answer.stdout.as_str()), (1, ""));
        assert!(
            answer.stderr.contains(&format!("{url}/livez does not answer")),
            "{}",
            answer.stderr
        );
    }

    done(&["health", "--url", "https://localhost:1"])
        .refused(&["--url https://localhost:1", "http://HOST:PORT"]);
    done(&["health", "--set", "server.bind=127.0.0.1:0"]).refused(&["server.bind", "--url"]);
}
