//! `runs list`: one page of runs, or all of them.

use std::io::{StdoutLock, Write};
use std::process::ExitCode;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Deserialize;
use serde_json::Value;

use super::Common;
use super::chosen::Chosen;
use super::client::{Client, ClientError};
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

/// What runs say, by which they are found.
#[derive(Args)]
struct Search {
    /// Only runs whose id, task, input, answer or committed lines have these words; a text in
    /// double quotes is one word
    #[arg(long = "search", short = 'q', value_name = "WORDS")]
    words: Option<String>,
    /// Only runs that ended by this, as `outcome` of `runs show` says
    #[arg(long)]
    outcome: Option<String>,
    /// Only runs with this agent in any role
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    #[command(flatten)]
    chosen: Chosen,
    /// Only runs in which this constraint refused a line
    #[arg(long, value_name = "NAME")]
    constraint: Option<String>,
    /// Only runs with a step that was flagged for review
    #[arg(long)]
    flagged: bool,
    /// Only runs with a step that NAME is to review; `me` is your key, `none` stands for nobody
    #[arg(long, value_name = "NAME")]
    assignee: Option<String>,
    /// Only runs with this many committed steps or more
    #[arg(long, value_name = "N")]
    steps_min: Option<u64>,
    /// Only runs with this many committed steps or fewer
    #[arg(long, value_name = "N")]
    steps_max: Option<u64>,
    /// Only runs with this many tokens or more
    #[arg(long, value_name = "N")]
    tokens_min: Option<u64>,
    /// Only runs with this many tokens or fewer
    #[arg(long, value_name = "N")]
    tokens_max: Option<u64>,
    /// What to sort by; a `-` before it reverses the order [default: -created]
    #[arg(
        long,
        allow_hyphen_values = true,
        value_parser = [
            "created", "-created", "steps", "-steps", "tokens", "-tokens", "duration", "-duration",
        ]
    )]
    sort: Option<String>,
}

impl Filters {
    pub fn is_none(&self) -> bool {
        self.query().is_empty()
    }

    /// The parameters that choose runs.
    fn query(&self) -> Vec<(&'static str, String)> {
        let all = [
            ("status", self.status.clone()),
            ("task", self.task.clone()),
            ("needs_review", self.needs_review.then(|| "true".to_owned())),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// One page of a daemon's runs.
    pub fn page(
        &self,
        client: &Client,
        limit: u32,
        after: Option<&str>,
    ) -> Result<Page, ClientError> {
        page(client, self.query(), limit, after)
    }
}

/// One page of the runs that these parameters choose.
fn page(
    client: &Client,
    mut query: Vec<(&'static str, String)>,
    limit: u32,
    after: Option<&str>,
) -> Result<Page, ClientError> {
    query.push(("limit", limit.to_string()));
    query.extend(after.map(|after| ("after", after.to_owned())));
    client.get("/v1/runs", &query)?.json()
}

impl Search {
    fn query(&self) -> Vec<(&'static str, String)> {
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        let all = [
            ("q", self.words.clone()),
            ("outcome", self.outcome.clone()),
            ("agent", self.agent.clone()),
            ("constraint", self.constraint.clone()),
            ("assignee", self.assignee.clone()),
            ("flagged", self.flagged.then(|| "true".to_owned())),
            ("steps_min", number(self.steps_min)),
            ("steps_max", number(self.steps_max)),
            ("tokens_min", number(self.tokens_min)),
            ("tokens_max", number(self.tokens_max)),
            ("sort", self.sort.clone()),
        ];
        all.into_iter()
            .chain(self.chosen.query())
            .filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }
}

#[derive(Args)]
pub struct ListArguments {
    #[command(flatten)]
    filters: Filters,
    #[command(flatten)]
    search: Search,
    /// Runs per page, 1 to 1000
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..=1_000)
    )]
    limit: u32,
    /// Start after this place, the `next` of the previous page
    #[arg(long, value_name = "PLACE")]
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
    #[serde(default)]
    incomplete: bool,
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
            let query = [self.filters.query(), self.search.query()].concat();
            let page = page(client, query, self.limit, after.as_deref())?;
            if page.incomplete {
                note!(
                    "the daemon still looks through runs of an earlier version: some may be \
                     missing"
                );
            }
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
