//! `prime-agents config`: shows, checks and describes the configuration.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::Configuration;
use crate::settings::{Settings, reference_markdown};

#[derive(Args)]
pub struct ConfigArguments {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Print the effective configuration as TOML.
    Show(Configuration),
    /// Say whether the configuration is valid.
    Check(Configuration),
    /// Print the JSON Schema of the configuration.
    Schema {
        /// The reference page instead.
        #[arg(long)]
        markdown: bool,
    },
}

pub fn config(arguments: &ConfigArguments) -> anyhow::Result<ExitCode> {
    let text = match &arguments.command {
        ConfigCommand::Show(configuration) => configuration.load()?.to_toml(),
        ConfigCommand::Check(configuration) => {
            let settings = configuration.load()?;
            format!("the configuration is valid; its hash is {}\n", settings.hash())
        }
        ConfigCommand::Schema { markdown: true } => reference_markdown(),
        ConfigCommand::Schema { markdown: false } => serde_json::to_string_pretty(&Settings::schema())? + "\n",
    };
    drop(std::io::stdout().write_all(text.as_bytes()));
    Ok(ExitCode::SUCCESS)
}
