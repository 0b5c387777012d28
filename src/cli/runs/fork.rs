//! `runs fork`.

use std::process::ExitCode;

use clap::Args;

use super::client::Post;
use super::{Common, run_id, submit};

#[derive(Args)]
pub struct ForkArguments {
    /// The id of the run to begin with. It stays as it is.
    #[arg(value_parser = run_id)]
    id: String,
    /// The last event that the new run takes over, by its number.
    #[arg(long, value_name = "N")]
    seq: u64,
    /// Seed of what is drawn from there on; without it, that of the run.
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    common: Common,
}

pub fn fork(arguments: &ForkArguments) -> anyhow::Result<ExitCode> {
    let ForkArguments { id, seq, seed, common } = arguments;
    let path = format!("/v1/runs/{id}/fork");
    let mut query = vec![("seq", seq.to_string())];
    query.extend(seed.map(|seed| ("seed", seed.to_string())));
    let record =
        common.client()?.post(&Post { path: &path, query: &query, is_long: true, ..Post::default() })?.json()?;
    submit::print_accepted(&record, common.output)?;
    Ok(ExitCode::SUCCESS)
}
