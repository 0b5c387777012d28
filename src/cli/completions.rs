//! `prime-agents completions`: scripts that complete the command line in a shell.

use std::process::ExitCode;

use clap::Args;
use clap_complete::{Shell, generate};

use super::output::print;

#[derive(Args)]
pub struct CompletionsArguments {
    /// Shell to generate the script for.
    #[arg(value_enum)]
    shell: Shell,
}

pub fn completions(
    arguments: &CompletionsArguments,
    mut command: clap::Command,
) -> anyhow::Result<ExitCode> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    generate(arguments.shell, &mut command, &name, &mut script);

    let mut script = String::from_utf8(script)?;
    if arguments.shell == Shell::Bash {
        script = with_matching_labels(&script, &name);
        script = with_joined_values(&script);
    }

    print(script)?;
    Ok(ExitCode::SUCCESS)
}

/// The generator sets a label for each subcommand and later branches on it, but escapes the hyphen
/// of the program's name differently in the two places, so that no subcommand would be completed.
fn with_matching_labels(script: &str, name: &str) -> String {
    let branch = format!("{}__subcmd__", name.replace('-', "__subcmd__"));
    let label = format!("{}__subcmd__", name.replace('-', "__"));
    script.replace(&branch, &label)
}

/// The generator looks at the word before the one that is completed. Bash splits `--option=value`
/// into three words, so that word is `=`.
fn with_joined_values(script: &str) -> String {
    const BEFORE: &str = "    prev=\"$3\"\n";
    const JOIN: &str = r#"    if [[ "${COMP_CWORD}" -ge 2 && "${prev}" == "=" ]]; then
        prev="${COMP_WORDS[COMP_CWORD-2]}"
    elif [[ "${cur}" == "=" && "${prev}" == --* ]]; then
        cur=""
    fi
"#;
    script.replacen(BEFORE, &format!("{BEFORE}{JOIN}"), 1)
}
