//! `runs gc`: has the daemon remove finished runs.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value};

use super::super::run::Output;
use super::Common;
use super::client::Post;

#[derive(Args)]
pub struct GcArguments {
    /// Remove runs that ended more than N days ago. Without this and --bytes-max, what the daemon's configuration says
    /// (journal.retention_days, journal.retention_bytes). Open runs always stay.
    #[arg(long, value_name = "N")]
    older_than_days: Option<u32>,
    /// Remove the oldest runs while the journal has more than N bytes.
    #[arg(long, value_name = "N")]
    bytes_max: Option<u64>,
    #[command(flatten)]
    common: Common,
}

pub fn gc(arguments: &GcArguments) -> anyhow::Result<ExitCode> {
    let GcArguments { older_than_days, bytes_max, common } = arguments;
    let mut wanted = Map::new();
    wanted.extend(older_than_days.map(|days| ("older_than_days".to_owned(), days.into())));
    wanted.extend(bytes_max.map(|bytes| ("bytes_max".to_owned(), bytes.into())));
    let body = Value::Object(wanted);
    let post = Post { path: "/v1/gc", body: Some(&body), is_long: true, ..Post::default() };
    let removed: Value = common.client()?.post(&post)?.json()?;
    let text = match common.output {
        Output::Json => serde_json::to_string_pretty(&removed)? + "\n",
        Output::Text => {
            format!("removed {} runs with {} events, {} bytes\n", removed["runs"], removed["events"], removed["bytes"])
        }
    };
    drop(std::io::stdout().write_all(text.as_bytes()));
    Ok(ExitCode::SUCCESS)
}
