//! Sections of the manual that `--help` does not have: examples, exit status, environment, files.

/// Examples by command: what it does, and how.
const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "prime-agents",
        &[
            ("Solve an instance with the shipped model:", "prime-agents run tower-of-hanoi"),
            (
                "Start a daemon and submit a run to it:",
                "prime-agents serve &\nprime-agents runs submit n-queens --wait",
            ),
            ("Check the machine and the configuration:", "prime-agents doctor"),
        ],
    ),
    (
        "prime-agents-run",
        &[
            ("Solve the fourth medium instance:", "prime-agents run n-queens --difficulty medium --index 3"),
            (
                "Solve an input of your own without a model, and keep every step:",
                "prime-agents run bubble-sort --input my.json --set agents.executor.implementation=reference --trace \
                 steps.jsonl",
            ),
        ],
    ),
    (
        "prime-agents-runs",
        &[("Submit a run and follow it:", "prime-agents runs watch \"$(prime-agents runs submit n-queens)\"")],
    ),
    (
        "prime-agents-runs-submit",
        &[
            ("Submit a run and wait for its result:", "prime-agents runs submit n-queens --index 3 --wait"),
            ("Submit a problem of your own:", "prime-agents runs submit --problem problem.json --strategy beam"),
            ("Retry safely in a script:", "prime-agents runs submit n-queens --key nightly-2026-02-03"),
        ],
    ),
    (
        "prime-agents-runs-list",
        &[("List all failed runs as JSON:", "prime-agents runs list --status failed --all --output json")],
    ),
    (
        "prime-agents-runs-trace",
        &[("Save a trace:", "prime-agents runs trace run_019a0b1c2d3e4f5061728394a5b --out trace.jsonl")],
    ),
    (
        "prime-agents-serve",
        &[
            ("Serve on another port:", "prime-agents serve --set server.bind=127.0.0.1:8080"),
            ("Reload the configuration of a running daemon:", "kill -HUP \"$(pidof prime-agents)\""),
        ],
    ),
    (
        "prime-agents-loadtest",
        &[("Measure coordination with 1000 trajectories:", "prime-agents loadtest --trajectories 1000 --steps 2000")],
    ),
    (
        "prime-agents-bench",
        &[
            ("Read about a task:", "prime-agents bench show bubble-sort"),
            ("Measure the configured agents:", "prime-agents bench solve --instances 20"),
        ],
    ),
    (
        "prime-agents-bench-generate",
        &[
            ("Write the whole benchmark:", "prime-agents bench generate --all --out benchmark"),
            (
                "Write ten easy instances with traces to standard output:",
                "prime-agents bench generate --task n-queens --difficulty easy --instances 10 --traces --out -",
            ),
        ],
    ),
    ("prime-agents-bench-export", &[("Write a dataset:", "prime-agents bench export --format parquet --out dataset")]),
    (
        "prime-agents-bench-check",
        &[(
            "Judge outputs, and keep each judgement:",
            "prime-agents bench check outputs.jsonl --details details.jsonl",
        )],
    ),
    (
        "prime-agents-bench-strategies",
        &[(
            "Compare two strategies on one task:",
            "prime-agents bench strategies --task n-queens --strategy iterative --strategy beam",
        )],
    ),
    ("prime-agents-doctor", &[("Check memory and devices without loading a model:", "prime-agents doctor --no-load")]),
    (
        "prime-agents-agents-try",
        &[("Show one turn of an executor:", "prime-agents agents try executor llama --task n-queens --after 2")],
    ),
    ("prime-agents-config-show", &[("Save the effective configuration:", "prime-agents config show >my.toml")]),
    ("prime-agents-key-new", &[("Make a key for a client:", "prime-agents key new ci")]),
    ("prime-agents-completions", &[("Complete in bash, in this shell:", "source <(prime-agents completions bash)")]),
    ("prime-agents-man", &[("Install all pages:", "prime-agents man --dir ~/.local/share/man/man1")]),
];

const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "Success. For run, runs watch and runs submit --wait: the answer is verified."),
    (
        "1",
        "The command worked, but the result is negative: an unverified answer, an unhealthy check, a line that cannot be \
         judged; or the daemon refused or did not answer.",
    ),
    ("2", "Wrong arguments or configuration, or a file that cannot be read or written."),
    ("74", "Standard output cannot be written; for serve: the disk of the journal failed."),
    ("130", "Interrupted with Ctrl-C; bench commands print what was complete."),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    (
        "PRIME__SECTION__KEY",
        "Sets section.key of the configuration, over the files and under --set: PRIME__RUN__FANOUT=4 sets run.fanout.",
    ),
    ("PRIME_API_KEY", "The key that runs sends to the daemon."),
    ("NOTIFY_SOCKET", "Set by systemd: serve reports to it when it is ready, reloading and stopping."),
];

const FILES: &[(&str, &str)] = &[
    ("FILE of --config", "A configuration in TOML, over the defaults; prime-agents config show prints one."),
    ("journal.path", "The journal of serve, an SQLite database; the configuration says where."),
    ("agents.folder", "Definitions of agents and templates of prompts; the configuration says where."),
];

/// The sections of a command's page, by its name with hyphens.
pub fn of(name: &str) -> String {
    let mut text = String::new();
    if let Some((_, examples)) = EXAMPLES.iter().find(|(command, _)| *command == name) {
        text += ".SH EXAMPLES\n";
        for (purpose, command) in *examples {
            text += &format!(".PP\n{}\n.PP\n.nf\n.RS\n{}\n.RE\n.fi\n", escaped(purpose), escaped(command));
        }
    }
    for (title, entries) in [("EXIT STATUS", EXIT_STATUS), ("ENVIRONMENT", ENVIRONMENT), ("FILES", FILES)] {
        text += &format!(".SH \"{title}\"\n");
        for (term, meaning) in entries {
            text += &format!(".TP\n\\fB{}\\fR\n{}\n", escaped(term), escaped(meaning));
        }
    }
    text
}

/// Text as roff prints it unchanged.
fn escaped(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-").replace('~', "\\(ti");
    // A line that begins with a dot or an apostrophe would be a request.
    escaped
        .lines()
        .map(|line| if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() })
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::super::super::Arguments;
    use super::*;

    #[test]
    fn every_example_is_a_command_of_its_page() {
        for (name, examples) in EXAMPLES {
            for (_, example) in *examples {
                for command in example.lines().filter(|line| line.starts_with("prime-agents")) {
                    let command = command.split(" >").next().unwrap_or(command).trim_end_matches(" &");
                    if command.contains('$') {
                        continue;
                    }
                    let words = command.split(' ').collect::<Vec<_>>();
                    assert!(Arguments::try_parse_from(&words).is_ok(), "{name}: {command}");
                    assert!(words.join("-").starts_with(name), "{name}: {command}");
                }
            }
        }
    }

    #[test]
    fn every_page_with_examples_exists() {
        let mut command = Arguments::command();
        command.build();
        for (name, _) in EXAMPLES {
            let found = name.split('-').skip(2).try_fold(&command, |command, part| command.find_subcommand(part));
            assert!(found.is_some(), "{name}");
        }
    }

    #[test]
    fn text_is_never_taken_for_a_request() {
        assert_eq!(escaped(".x\n'y\na-b\\"), "\\&.x\n\\&'y\na\\-b\\e");
    }
}
