//! Puts the manual's examples at the end of `--help`.

use clap::Command;

use super::examples;

/// A command whose help, and that of the commands below it, ends with the examples of the manual.
/// `name` is the command's name with hyphens.
pub fn with_examples(command: Command, name: &str) -> Command {
    let below: Vec<_> =
        command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let command = below.into_iter().fold(command, |command, below| {
        let page = format!("{name}-{below}");
        command.mut_subcommand(below, |below| with_examples(below, &page))
    });

    match examples::of(name) {
        Some(examples) => command.after_help(help(examples)),
        None => command,
    }
}

fn help(examples: &[(&str, &str)]) -> String {
    let mut text = "Examples:".to_owned();
    for (purpose, commands) in examples {
        text += &format!("\n  {purpose}");
        commands.lines().for_each(|line| text += &format!("\n    {line}"));
    }
    text
}
