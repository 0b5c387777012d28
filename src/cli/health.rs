//! `prime-agents health`: asks a daemon whether it lives, for those who watch over it.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use ureq::Agent;

use super::remote::Remote;
use crate::cli::output::{note, print};

/// Longest wait for the answer. A daemon that needs longer is not well.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Args)]
pub struct HealthArguments {
    /// Ask whether a run handed in now would go on, and not only whether the process answers.
    #[arg(long)]
    ready: bool,
    #[command(flatten)]
    remote: Remote,
}

pub fn health(arguments: &HealthArguments) -> anyhow::Result<ExitCode> {
    let daemon = arguments.remote.base()?;
    let url = format!("{daemon}/{}", if arguments.ready { "readyz" } else { "livez" });
    // A proxy would answer for the daemon.
    let config = Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE)).proxy(None).build();
    match Agent::new_with_config(config).get(&url).call() {
        Ok(mut answer) => {
            let status = answer.status();
            let body =
                answer.body_mut().read_to_string().with_context(|| format!("{url} answered {status} and broke off"))?;
            print(format_args!("{}\n", body.trim_end()))?;
            Ok(ExitCode::from(u8::from(!status.is_success())))
        }
        Err(error) => {
            note!("{url} does not answer: {error}");
            Ok(ExitCode::FAILURE)
        }
    }
}
