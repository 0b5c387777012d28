//! `prime-agents config`: shows, checks and documents the configuration.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Configuration, USAGE};
use crate::cli::output::{Output, note, print, print_json};
use prime_journal_postgres::without_password;
use prime_settings::{Settings, reference_markdown};

#[derive(Args)]
pub struct ConfigArguments {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Print the effective configuration as TOML, without the password of journal.url, the
    /// secrets of webhooks and the queries of their URLs
    Show(Configuration),
    /// Check that the configuration is valid
    Check {
        #[command(flatten)]
        configuration: Configuration,
        /// Output format
        #[arg(long, value_enum, default_value_t = Output::Text)]
        output: Output,
    },
    /// Print the JSON Schema of the configuration
    Schema {
        /// Print the reference page as Markdown instead
        #[arg(long)]
        markdown: bool,
    },
}

/// The settings, as far as a daemon would start with them, with notes about what is decided where
/// it is served.
fn checked(configuration: &Configuration) -> anyhow::Result<(Settings, Vec<String>)> {
    let settings = configuration.load()?;
    let notes = prime_daemon::check(&settings)?;
    Ok((settings, notes))
}

fn check(configuration: &Configuration, output: Output) -> anyhow::Result<ExitCode> {
    match (checked(configuration), output) {
        (Ok((settings, notes)), Output::Text) => {
            let hash = settings.hash();
            print(format_args!("the configuration is valid; its hash is {hash}\n"))?;
            for sentence in notes {
                note!("{sentence}");
            }
        }
        (Ok((settings, notes)), Output::Json) => {
            print_json(&json!({"valid": true, "hash": settings.hash(), "notes": notes}))?;
        }
        (Err(error), Output::Text) => return Err(error),
        (Err(error), Output::Json) => {
            print_json(&json!({"valid": false, "error": error.to_string()}))?;
            return Ok(ExitCode::from(USAGE));
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub fn config(arguments: &ConfigArguments) -> anyhow::Result<ExitCode> {
    let text = match &arguments.command {
        ConfigCommand::Show(configuration) => {
            let mut settings = configuration.load()?;
            settings.journal.url = without_password(&settings.journal.url);
            for webhook in settings.webhooks.values_mut() {
                *webhook = webhook.shown();
            }
            settings.to_toml()
        }
        ConfigCommand::Check { configuration, output } => return check(configuration, *output),
        ConfigCommand::Schema { markdown: true } => reference_markdown(),
        ConfigCommand::Schema { markdown: false } => {
            serde_json::to_string_pretty(&Settings::file_schema())? + "\n"
        }
    };

    print(text)?;
    Ok(ExitCode::SUCCESS)
}
