//! `runs cancel`: ends a run early.

use std::process::ExitCode;

use clap::Args;

use super::client::Post;
use super::{Common, run_id, show};

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
    let record = common
        .client()?
        .post(&Post { path: &path, is_idempotent: true, ..Post::default() })?
        .json()?;
    show::print(&record, common.output)?;
    Ok(ExitCode::SUCCESS)
}
