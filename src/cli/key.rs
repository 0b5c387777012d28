//! `prime-agents key`: makes keys for clients of the daemon. Stores nothing.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::daemon::guard::NewKey;
use crate::settings::is_name;

#[derive(Args)]
pub struct KeyArguments {
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(Subcommand)]
enum KeyCommand {
    /// Print a new key, once, and the entry for the configuration that lets it in.
    New {
        /// Who gets the key: small letters, digits, `-` and `_`, up to 64. What is made with it belongs to this name.
        #[arg(value_parser = name)]
        name: String,
    },
}

fn name(text: &str) -> Result<String, String> {
    if is_name(text) {
        Ok(text.to_owned())
    } else {
        Err("a name has up to 64 small letters, digits, `-` and `_`".to_owned())
    }
}

pub fn key(arguments: &KeyArguments) -> anyhow::Result<ExitCode> {
    let KeyCommand::New { name } = &arguments.command;
    let NewKey { key, sha256 } = NewKey::random();
    let text = format!(
        "For the client, and shown only now:\n{key}\n\nFor the daemon's configuration:\n[[server.keys]]\nname = \
         \"{name}\"\nsha256 = \"{sha256}\"\n"
    );
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
