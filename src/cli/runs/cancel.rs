//! `runs cancel`: ends a run early.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::client::Post;
use super::{Common, run_id, show};
use crate::cli::output::note;

#[derive(Args)]
pub struct CancelArguments {
    /// Run id; a finished run stays as it is
    #[arg(value_parser = run_id)]
    id: String,
    #[command(flatten)]
    common: Common,
}

pub fn cancel(arguments: &CancelArguments) -> anyhow::Result<ExitCode> {
    let CancelArguments { id, common } = arguments;
    let path = format!("/v1/runs/{id}/cancel");
    let client = common.client()?;

    // A run that is over keeps its result, which would read as if it had been cancelled with it.
    let before = client.get(&format!("/v1/runs/{id}"), &[])?.json::<Value>()?;
    let is_open = ["queued", "running", "waiting"].map(Value::from).contains(&before["status"]);

    let record =
        client.post(&Post { path: &path, is_idempotent: true, ..Post::default() })?.json()?;
    if !is_open {
        note!("{id} had already ended; nothing was cancelled");
    }
    show::print(&record, common.output)?;
    Ok(ExitCode::SUCCESS)
}
