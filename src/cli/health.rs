//! `prime-agents health`: asks a daemon whether it lives, for those who watch over it.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use reqwest::blocking::ClientBuilder;

use super::remote::Remote;
use crate::cli::output::{note, print};
use prime_http_client::root_cause;

/// A daemon that needs longer is unhealthy.
const TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Args)]
pub struct HealthArguments {
    /// Ask whether a run submitted now would make progress, not only whether the process answers.
    #[arg(long)]
    ready: bool,
    #[command(flatten)]
    remote: Remote,
}

pub fn health(arguments: &HealthArguments) -> anyhow::Result<ExitCode> {
    let daemon = arguments.remote.base()?;
    let url = format!("{daemon}/{}", if arguments.ready { "readyz" } else { "livez" });
    let client = ClientBuilder::from(prime_http_client::builder(false)).timeout(TIMEOUT).build()?;

    match client.get(&url).send() {
        Ok(response) => {
            let status = response.status();
            let body = response
                .text()
                .with_context(|| format!("{url} answered {status} and broke off"))?;
            print(format_args!("{}\n", body.trim_end()))?;
            Ok(ExitCode::from(u8::from(!status.is_success())))
        }
        Err(error) => {
            let reason = if error.is_timeout() {
                format!("no response within {} s", TIMEOUT.as_secs())
            } else {
                root_cause(&error)
            };
            note!("{url} does not answer: {reason}");
            Ok(ExitCode::FAILURE)
        }
    }
}
