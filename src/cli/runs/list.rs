//! `runs list`: one page of runs, or all of them.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use clap::builder::PossibleValuesParser;
use comfy_table::{Table, presets};
use serde::Deserialize;
use serde_json::Value;

use super::super::run::Output;
use super::client::{Client, ClientError};
use super::{Common, run_id};
use crate::runs::Status;

#[derive(Args)]
pub struct ListArguments {
    /// Only runs of this status.
    #[arg(long, value_parser = PossibleValuesParser::new(Status::ALL.map(Status::name)))]
    status: Option<String>,
    /// Only runs of this task, by its slug.
    #[arg(long)]
    task: Option<String>,
    /// Only runs with a step that asks for a person and that nobody has looked at.
    #[arg(long)]
    needs_review: bool,
    /// Runs of a page, 1 to 1000.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    /// Only runs after this one, the last of the page before.
    #[arg(long, value_name = "ID", value_parser = run_id)]
    after: Option<String>,
    /// All pages, one after the other.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Deserialize)]
struct Page {
    runs: Vec<Value>,
    next: Option<String>,
}

impl ListArguments {
    fn page(&self, client: &Client, after: Option<&str>) -> Result<Page, ClientError> {
        let mut query = vec![("limit", self.limit.to_string())];
        query.extend(self.status.clone().map(|status| ("status", status)));
        query.extend(self.task.clone().map(|task| ("task", task)));
        query.extend(self.needs_review.then(|| ("needs_review", "true".to_owned())));
        query.extend(after.map(|after| ("after", after.to_owned())));
        client.get("/v1/runs", &query)?.json()
    }

    /// Hands over the runs that are wanted; gives where the next page begins, if they are not all.
    fn each(&self, client: &Client, mut see: impl FnMut(&Value)) -> Result<Option<String>, ClientError> {
        let mut after = self.after.clone();
        loop {
            let page = self.page(client, after.as_deref())?;
            page.runs.iter().for_each(&mut see);
            if !self.all || page.next.is_none() {
                return Ok(page.next);
            }
            if page.next == after {
                let reason = format!("the daemon gave the same page twice, after {}", after.unwrap_or_default());
                return Err(ClientError::Senseless(reason));
            }
            after = page.next;
        }
    }
}

fn row(run: &Value) -> Vec<String> {
    let cell = |name: &str| match &run[name] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    ["id", "status", "task", "instance", "steps", "events", "created_at"].map(cell).into()
}

/// Records as they come, so that a journal of any size can be listed: one a line, within one JSON value.
struct Json {
    out: std::io::StdoutLock<'static>,
    separator: &'static str,
}

impl Json {
    fn see(&mut self, run: &Value) {
        // A reader that has gone away is no error.
        drop(write!(self.out, "{}\n{run}", std::mem::replace(&mut self.separator, ",")));
    }
}

pub fn list(arguments: &ListArguments) -> anyhow::Result<ExitCode> {
    let client = arguments.common.client()?;
    match arguments.common.output {
        Output::Json => {
            let mut json = Json { out: std::io::stdout().lock(), separator: r#"{"runs":["# };
            let next = arguments.each(&client, |run| json.see(run))?;
            let begin = if json.separator == "," { "" } else { json.separator };
            drop(writeln!(json.out, "{begin}\n],\"next\":{}}}", Value::from(next)));
        }
        Output::Text => {
            let mut table = Table::new();
            table.load_preset(presets::ASCII_MARKDOWN);
            table.set_header(["id", "status", "task", "instance", "steps", "events", "created"]);
            let mut count = 0_u64;
            let next = arguments.each(&client, |run| {
                table.add_row(row(run));
                count += 1;
            })?;
            drop(write!(std::io::stdout(), "{table}\n{count} runs\n"));
            if let Some(next) = next {
                eprintln!("there may be more: --after {next} shows the next page, --all shows all");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
