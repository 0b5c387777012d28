//! Sections of the manual that `--help` does not have: examples, exit status, environment, files.

use super::examples;

pub const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "Success. For run, runs watch and runs submit --wait: the answer is verified."),
    (
        "1",
        "The command worked, but the result is negative: an unverified answer, an unhealthy check, \
         a line that cannot be judged; or the daemon refused or did not answer.",
    ),
    ("2", "Wrong arguments or configuration, or a file that cannot be read or written."),
    ("3", "loadtest --baseline: a metric became worse than the baseline allows."),
    ("74", "Standard output cannot be written; for serve: the disk of the journal failed."),
    ("130", "Interrupted with Ctrl-C; what was complete is printed."),
    ("143", "Terminated (SIGTERM); as with Ctrl-C, what was complete is printed."),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    (
        "PRIME__SECTION__KEY",
        "Sets section.key of the configuration, over the files and under --set: \
         PRIME__RUN__FANOUT=4 sets run.fanout.",
    ),
    ("PRIME_API_KEY", "The key that runs sends to the daemon."),
    ("OPENAI_API_KEY", "The key of the server that --model names, if it needs one."),
    (
        "NOTIFY_SOCKET",
        "Set by systemd: serve reports to it when it is ready, reloading and stopping.",
    ),
];

const FILES: &[(&str, &str)] = &[
    (
        "FILE of --config",
        "A configuration in TOML, over the defaults; prime-agents config show prints one.",
    ),
    ("journal.path", "The journal of serve, an SQLite database; the configuration says where."),
    (
        "agents.folder",
        "Definitions of agents and templates of prompts; the configuration says where.",
    ),
];

/// The sections of a command's page, by its name with hyphens.
pub fn of(name: &str) -> String {
    let mut text = String::new();
    if let Some(examples) = examples::of(name) {
        text += ".SH EXAMPLES\n";
        for (purpose, command) in examples {
            text += &format!(
                ".PP\n{}\n.PP\n.nf\n.RS\n{}\n.RE\n.fi\n",
                escaped(purpose),
                escaped(command)
            );
        }
    }

    for (title, entries) in
        [("EXIT STATUS", EXIT_STATUS), ("ENVIRONMENT", ENVIRONMENT), ("FILES", FILES)]
    {
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
        .map(
            |line| {
                if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() }
            },
        )
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{CommandFactory as _, Parser as _};

    use super::super::super::Arguments;
    use super::*;

    #[test]
    fn every_example_is_a_command_of_its_page() {
        for (name, examples) in examples::all() {
            for (_, example) in *examples {
                for command in example.lines().filter(|line| line.starts_with("prime-agents")) {
                    let command =
                        command.split(" >").next().unwrap_or(command).trim_end_matches(" &");
                    if command.contains('$') {
                        continue;
                    }
                    let words = shlex::split(command).expect("quotes are closed");
                    assert!(Arguments::try_parse_from(&words).is_ok(), "{name}: {command}");
                    assert!(words.join("-").starts_with(name), "{name}: {command}");
                }
            }
        }
    }

    #[test]
    fn every_page_has_examples() {
        fn add(command: &clap::Command, name: &str, pages: &mut BTreeSet<String>) {
            pages.insert(name.to_owned());
            for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
                add(below, &format!("{name}-{}", below.get_name()), pages);
            }
        }
        let mut pages = BTreeSet::new();
        add(&Arguments::command(), "prime-agents", &mut pages);

        let with_examples: BTreeSet<_> =
            examples::all().map(|(page, _)| (*page).to_owned()).collect();
        assert_eq!(with_examples, pages);
    }

    #[test]
    fn the_documentation_has_the_exit_codes_of_the_manual() {
        let page = include_str!("../../../docs/commands.md");
        let rows = page.lines().filter(|line| line.starts_with("| ") && !line.contains("---"));
        let rows: Vec<_> = rows.skip(1).map(str::to_owned).collect();
        let expected: Vec<_> =
            EXIT_STATUS.iter().map(|(code, meaning)| format!("| {code} | {meaning} |")).collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn text_is_never_taken_for_a_request() {
        assert_eq!(escaped(".x\n'y\na-b\\"), "\\&.x\n\\&'y\na\\-b\\e");
    }
}
