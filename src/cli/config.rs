//! `prime-agents config`: shows, checks and documents the configuration.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::Configuration;
use crate::cli::output::print;
use prime_journal_postgres::without_password;
use prime_settings::{Settings, reference_markdown};

#[derive(Args)]
pub struct ConfigArguments {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Print the effective configuration as TOML, without the password of journal.url
    Show(Configuration),
    /// Check that the configuration is valid
    Check(Configuration),
    /// Print the JSON Schema of the configuration
    Schema {
        /// Print the reference page as Markdown instead
        #[arg(long)]
        markdown: bool,
    },
}

pub fn config(arguments: &ConfigArguments) -> anyhow::Result<ExitCode> {
    let text = match &arguments.command {
        ConfigCommand::Show(configuration) => {
            let mut settings = configuration.load()?;
            settings.journal.url = without_password(&settings.journal.url);
            settings.to_toml()
        }
        ConfigCommand::Check(configuration) => {
            let settings = configuration.load()?;
            format!("the configuration is valid; its hash is {}\n", settings.hash())
        }
        ConfigCommand::Schema { markdown: true } => reference_markdown(),
        ConfigCommand::Schema { markdown: false } => {
            serde_json::to_string_pretty(&Settings::file_schema())? + "\n"
        }
    };

    print(text)?;
    Ok(ExitCode::SUCCESS)
}
