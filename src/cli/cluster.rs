//! `prime-agents cluster`: the daemons that share one journal.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::Value;

use super::output::{Output, print};
use super::runs::{ClientError, Common, as_refusal};
use super::table::Table;

#[derive(Args)]
pub struct ClusterArguments {
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Subcommand)]
enum ClusterCommand {
    /// Show the nodes, what they hold, and the runs that wait for one
    Status(StatusArguments),
}

#[derive(Args)]
struct StatusArguments {
    #[command(flatten)]
    common: Common,
}

#[derive(Deserialize)]
struct Report {
    shared: bool,
    nodes: Vec<Node>,
    open_runs: u64,
    waiting_runs: u64,
    oldest_waiting_ms: Option<u64>,
    // Older daemons do not send it.
    #[serde(default)]
    blocked_runs: u64,
    #[serde(default)]
    missing: Vec<String>,
}

#[derive(Deserialize)]
struct Node {
    name: String,
    version: String,
    this: bool,
    capacity: u64,
    held: u64,
    age_ms: u64,
    lease_left_ms: Option<i64>,
    #[serde(default)]
    id: Option<i64>,
    #[serde(default)]
    lag_ms: Option<u64>,
}

fn seconds(ms: u64) -> String {
    format!("{} s", Duration::from_millis(ms).as_secs())
}

impl Node {
    fn row(&self) -> [String; 8] {
        let lease = self.lease_left_ms.map_or_else(String::new, |left| match u64::try_from(left) {
            Ok(left) => seconds(left),
            Err(_) => format!("ended {} ago", seconds(left.unsigned_abs())),
        });
        let mark = if self.this { " (answers)" } else { "" };
        [
            self.id.map_or_else(String::new, |id| id.to_string()),
            format!("{}{mark}", self.name),
            self.version.clone(),
            self.held.to_string(),
            self.capacity.to_string(),
            seconds(self.age_ms),
            self.lag_ms.map_or_else(String::new, |lag| format!("{lag} ms ago")),
            lease,
        ]
    }
}

impl Report {
    fn text(&self) -> String {
        let columns = ["id", "node", "version", "runs", "capacity", "up for", "heartbeat", "lease"];
        let table = Table::new(columns, self.nodes.iter().map(Node::row));
        let oldest = self
            .oldest_waiting_ms
            .map_or_else(String::new, |age| format!(", the oldest for {}", seconds(age)));
        let store = if self.shared {
            ""
        } else {
            "the journal is a file of this daemon's own (journal.url is empty)\n"
        };

        let mut text = format!(
            "{table}{} open runs, {} wait for a node{oldest}\n{store}",
            self.open_runs, self.waiting_runs
        );

        if self.blocked_runs > 0 {
            text += &format!("{} of them wait for what no node has:\n", self.blocked_runs);
            text.extend(self.missing.iter().map(|missing| format!("  {missing}\n")));
        }

        text
    }
}

fn status(common: &Common) -> anyhow::Result<ExitCode> {
    let report: Value = common.client()?.get("/v1/cluster", &[])?.json()?;
    match common.output() {
        Output::Json => print(format_args!("{report:#}\n"))?,
        Output::Text => {
            let unreadable = |error: serde_json::Error| {
                ClientError::Senseless(format!("the answer of /v1/cluster: {error}"))
            };
            print(Report::deserialize(&report).map_err(unreadable)?.text())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub fn cluster(arguments: &ClusterArguments) -> anyhow::Result<ExitCode> {
    let ClusterCommand::Status(StatusArguments { common }) = &arguments.command;
    as_refusal(status(common))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_shows_who_is_late() {
        let node = |name: &str, this, left| Node {
            name: name.to_owned(),
            version: "0.1.0".to_owned(),
            this,
            capacity: 10,
            held: 3,
            age_ms: 61_500,
            lease_left_ms: Some(left),
            id: Some(if this { 41 } else { 42 }),
            lag_ms: this.then_some(900),
        };

        let nodes = vec![node("a:1", true, 9_100), node("b:2", false, -2_900)];
        let report = Report {
            shared: true,
            nodes,
            open_runs: 7,
            waiting_runs: 1,
            oldest_waiting_ms: Some(5_200),
            blocked_runs: 1,
            missing: vec!["pool `p`".to_owned()],
        };

        let text = report.text();
        for part in [
            "41",
            "42",
            "a:1 (answers)",
            "900 ms ago",
            "61 s",
            "9 s",
            "ended 2 s ago",
            "7 open runs, 1 wait for a node, the oldest for 5 s",
            "1 of them wait for what no node has:\n  pool `p`\n",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
