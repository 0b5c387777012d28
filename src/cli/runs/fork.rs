//! `runs fork`: starts a run from a prefix of another.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::client::Post;
use super::{Common, run_id, submit};

#[derive(Args)]
pub struct ForkArguments {
    /// Id of the run to fork; it stays as it is
    #[arg(value_parser = run_id)]
    id: String,
    /// Number of the last event that the new run copies; with --line, of the step that is replaced
    #[arg(long, value_name = "N")]
    seq: u64,
    /// Seed of all later sampling [default: the run's]
    #[arg(long)]
    seed: Option<u64>,
    /// Line in place of the step's, which the verifier judges like any other
    #[arg(long, value_name = "LINE")]
    line: Option<String>,
    #[command(flatten)]
    common: Common,
}

pub fn fork(arguments: &ForkArguments) -> anyhow::Result<ExitCode> {
    let ForkArguments { id, seq, seed, line, common } = arguments;
    let path = format!("/v1/runs/{id}/fork");
    let mut query = vec![("seq", seq.to_string())];
    query.extend(seed.map(|seed| ("seed", seed.to_string())));

    let body = line.as_ref().map(|line| json!({ "line": line }));
    let body = body.as_ref();
    let record = common
        .client()?
        .post(&Post { path: &path, query: &query, body, is_long: true, ..Post::default() })?
        .json()?;

    submit::print_accepted(&record, common.output)?;
    Ok(ExitCode::SUCCESS)
}
