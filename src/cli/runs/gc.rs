//! `runs gc`: removes finished runs from the journal.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value};

use super::Common;
use super::client::Post;
use crate::cli::output::{Output, count, print};

#[derive(Args)]
pub struct GcArguments {
    /// Remove runs that ended more than N days ago; open runs always stay [default without
    /// --bytes-max: the daemon's journal.retention_days and journal.retention_bytes]
    #[arg(long, value_name = "N")]
    older_than_days: Option<u32>,
    /// Remove the oldest runs while the journal is larger than N bytes
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

    let damaged = damaged(&removed);
    let text = match common.output {
        Output::Json => serde_json::to_string_pretty(&removed)? + "\n",
        Output::Text => {
            let removed =
                |name: &str, noun: &str| count(removed[name].as_u64().unwrap_or_default(), noun);
            format!(
                "removed {} with {}, {}\n{}",
                removed("runs", "run"),
                removed("events", "event"),
                removed("bytes", "byte"),
                damaged
            )
        }
    };

    print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// What stays because it is damaged, a line each, and what to do.
fn damaged(removed: &Value) -> String {
    let Some(damaged) = removed["damaged"].as_array().filter(|damaged| !damaged.is_empty()) else {
        return String::new();
    };

    let field = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let mut text = String::new();
    for row in damaged {
        let reason = field(row, "reason");
        text += &format!("damaged: run {:?}: {}\n", field(row, "id"), reason.escape_debug());
    }
    text + "What is damaged stays: stop the daemon, and see with `prime-agents journal check` what \
            can be read\n"
}
