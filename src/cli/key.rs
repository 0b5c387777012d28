//! `prime-agents key`: creates keys for clients of the daemon. Stores nothing.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;

use super::output::{Output, print, print_json};
use prime_daemon::guard::NewKey;
use prime_settings::is_name;

#[derive(Args)]
pub struct KeyArguments {
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(Subcommand)]
enum KeyCommand {
    /// Print a new key and the configuration entry that admits it
    New {
        /// Owner of the key and of everything created with it: up to 64 lower-case letters, digits,
        /// - and _
        #[arg(value_parser = name)]
        name: String,
        /// Let the key act for all keys: clean up after others and reload the configuration
        #[arg(long)]
        admin: bool,
        /// Output format
        #[arg(long, value_enum, default_value_t = Output::Text)]
        output: Output,
    },
}

fn name(text: &str) -> Result<String, String> {
    if is_name(text) {
        Ok(text.to_owned())
    } else {
        Err("give up to 64 lower-case letters, digits, `-` and `_`".to_owned())
    }
}

pub fn key(arguments: &KeyArguments) -> anyhow::Result<ExitCode> {
    let KeyCommand::New { name, admin, output } = &arguments.command;
    let NewKey { key, sha256 } = NewKey::random();
    if *output == Output::Json {
        print_json(&json!({"name": name, "key": key, "sha256": sha256, "admin": admin}))?;
        return Ok(ExitCode::SUCCESS);
    }

    let text = format!(
        "For the client, shown only once:\n{key}\n\nFor the daemon's configuration:\n\
         [[server.keys]]\nname = \"{name}\"\nsha256 = \"{sha256}\"\n{}",
        if *admin { "admin = true\n" } else { "" }
    );
    print(text)?;
    Ok(ExitCode::SUCCESS)
}
