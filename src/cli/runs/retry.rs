//! `runs retry`: tries a run again without what was rejected in it.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value, json};

use super::budget_options::BudgetOptions;
use super::client::Post;
use super::{Common, run_id, submit};

#[derive(Args)]
pub struct RetryArguments {
    /// Id of the run to try again; it stays as it is
    #[arg(value_parser = run_id)]
    id: String,
    /// Seed of the new run [default: a random one]
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,
    /// Leave out nothing of what was rejected: only the seed is another
    #[arg(long)]
    keep_rejected: bool,
    /// Try again what is verified
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    budget: BudgetOptions,
    /// Make a repetition safe: the same key never starts a second run
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    #[command(flatten)]
    common: Common,
}

pub fn retry(arguments: &RetryArguments) -> anyhow::Result<ExitCode> {
    let RetryArguments { id, seed, keep_rejected, force, budget, key, common } = arguments;
    let client = common.client()?;
    let mut body = Map::new();
    body.extend(seed.map(|seed| ("seed".to_owned(), json!(seed))));
    body.extend(keep_rejected.then(|| ("exclude".to_owned(), json!(false))));
    body.extend(force.then(|| ("force".to_owned(), json!(true))));
    body.extend(budget.field().map(|budget| ("budget".to_owned(), budget)));

    let key = key.clone().or_else(|| client.own_key());
    let post = Post {
        path: &format!("/v1/runs/{id}/retry"),
        body: Some(&Value::Object(body)),
        header: key.as_deref().map(|key| ("Idempotency-Key", key)),
        // It replays the run first.
        is_long: true,
        is_idempotent: key.is_some(),
        ..Post::default()
    };
    submit::print_accepted(&client.post(&post)?.json()?, common.output())?;
    Ok(ExitCode::SUCCESS)
}
