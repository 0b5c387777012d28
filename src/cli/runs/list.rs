//! `runs list`: one page of runs, or all of them.

use std::io::{StdoutLock, Write};
use std::process::ExitCode;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Deserialize;
use serde_json::Value;

use super::client::{Client, ClientError};
use super::{Common, run_id};
use crate::cli::output::{Output, OutputError, count, note, print, stdout, written};
use crate::cli::table::Table;
use crate::cli::values::TaskParser;
use prime_printable::Printable;
use prime_service::runs::Status;

/// Which runs to choose from all.
#[derive(Args)]
pub struct Filters {
    /// Only runs with this status
    #[arg(long, value_parser = PossibleValuesParser::new(Status::ALL.map(Status::name)))]
    pub status: Option<String>,
    /// Only runs of this task
    #[arg(long, value_parser = TaskParser, hide_possible_values = true)]
    pub task: Option<String>,
    /// Only runs with steps that wait for review
    #[arg(long)]
    pub needs_review: bool,
}

impl Filters {
    pub fn is_none(&self) -> bool {
        self.status.is_none() && self.task.is_none() && !self.needs_review
    }

    /// One page of a daemon's runs.
    pub fn page(
        &self,
        client: &Client,
        limit: u32,
        after: Option<&str>,
    ) -> Result<Page, ClientError> {
        let mut query = vec![("limit", limit.to_string())];
        query.extend(self.status.clone().map(|status| ("status", status)));
        query.extend(self.task.clone().map(|task| ("task", task)));
        query.extend(self.needs_review.then(|| ("needs_review", "true".to_owned())));
        query.extend(after.map(|after| ("after", after.to_owned())));
        client.get("/v1/runs", &query)?.json()
    }
}

#[derive(Args)]
pub struct ListArguments {
    #[command(flatten)]
    filters: Filters,
    /// Runs per page, 1 to 1000
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..=1_000)
    )]
    limit: u32,
    /// Start after this run, the last one of the previous page
    #[arg(long, value_name = "ID", value_parser = run_id)]
    after: Option<String>,
    /// All pages
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Deserialize)]
pub struct Page {
    pub runs: Vec<Value>,
    #[serde(default)]
    pub unreadable: Vec<String>,
    pub next: Option<String>,
}

impl ListArguments {
    /// Passes the runs to `see`; returns where the next page begins, if there are more.
    fn each(
        &self,
        client: &Client,
        mut see: impl FnMut(&Value) -> Result<(), OutputError>,
    ) -> anyhow::Result<Option<String>> {
        let mut after = self.after.clone();
        loop {
            let page = self.filters.page(client, self.limit, after.as_deref())?;
            page.runs.iter().try_for_each(&mut see)?;
            for id in &page.unreadable {
                note!(
                    "{id} is left out: its row in the journal is damaged, or this version of the \
                     daemon cannot read it"
                );
            }

            if !self.all || page.next.is_none() {
                return Ok(page.next);
            }
            // Asking again would never end.
            if page.next == after {
                let reason = format!(
                    "the daemon returned the same page twice, after {}",
                    after.unwrap_or_default()
                );
                return Err(ClientError::Senseless(reason).into());
            }
            after = page.next;
        }
    }
}

fn row(run: &Value) -> [String; 6] {
    let cell = |name: &str| match &run[name] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let [task, instance] = ["task", "instance"].map(cell);
    // The name of an instance begins with its task.
    let instance =
        if instance.starts_with(&task) { instance } else { format!("{instance} of {task}") };
    [cell("id"), cell("status"), instance, cell("steps"), cell("events"), cell("created_at")]
}

/// Writes records as they arrive, one per line within one JSON value: a journal of any size can be
/// listed.
struct Json {
    out: Printable<StdoutLock<'static>>,
    separator: &'static str,
}

impl Json {
    fn see(&mut self, run: &Value) -> Result<(), OutputError> {
        written(write!(self.out, "{}\n{run}", std::mem::replace(&mut self.separator, ",")))
    }
}

pub fn list(arguments: &ListArguments) -> anyhow::Result<ExitCode> {
    let client = arguments.common.client()?;
    match arguments.common.output {
        Output::Json => {
            let mut json = Json { out: stdout(), separator: r#"{"runs":["# };
            let next = arguments.each(&client, |run| json.see(run))?;
            // The opening is written with the first run, so that an empty list needs it now.
            let begin = if json.separator == "," { "" } else { json.separator };
            written(writeln!(json.out, "{begin}\n],\"next\":{}}}", Value::from(next)))?;
        }
        Output::Text => {
            let (mut rows, mut waiting) = (Vec::new(), Vec::new());
            let next = arguments.each(&client, |run| {
                rows.push(row(run));
                if let (Some(id), Some(missing)) = (run["id"].as_str(), run["waiting_for"].as_str())
                {
                    waiting.push(format!("{id} waits for {missing}\n"));
                }
                Ok(())
            })?;

            let runs = count(rows.len() as u64, "run");
            let table =
                Table::new(["id", "status", "instance", "steps", "events", "created"], rows);
            // A line for each run on a terminal of 80 columns, where names are of ordinary length.
            let table = table.may_drop(&["events", "created", "steps"]);
            print(format_args!("{table}{runs}\n{}", waiting.concat()))?;

            if let Some(next) = next {
                note!("there may be more: --after {next} lists the next page, --all lists all");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
