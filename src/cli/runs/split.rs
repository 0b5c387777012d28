//! `runs split`: the runs on both sides of `agents.split`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use clap::Args;
use comfy_table::{Table, presets};
use serde::Deserialize;
use serde_json::Value;

use super::super::run::Output;
use super::Common;
use super::client::ClientError;
use crate::runs::ArmFigures;

#[derive(Args)]
pub struct SplitArguments {
    /// Only runs that were accepted at this time or later, as 2026-02-03T04:05:06Z.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    #[command(flatten)]
    common: Common,
}

#[derive(Deserialize)]
struct Report {
    split: Option<Split>,
    arms: Vec<ArmFigures>,
    is_complete: bool,
}

#[derive(Deserialize)]
struct Split {
    role: String,
    agent: String,
    other: String,
    share: f64,
}

fn row(figures: &ArmFigures) -> Vec<String> {
    let agents = &figures.agents;
    let mut row = vec![
        figures.arm.name().to_owned(),
        format!("{}, {}, {}", agents.executor, agents.verifier, agents.coordinator),
        figures.runs.to_string(),
        figures.finished.to_string(),
        figures.verified.text(),
    ];
    let means = figures.mean.map(|mean| [mean.steps, mean.proposals, mean.tokens, mean.wall_ms]);
    row.extend((0..4).map(|at| means.map_or_else(String::new, |means| format!("{:.1}", means[at]))));
    row
}

impl Report {
    fn text(&self) -> String {
        let mut text = match &self.split {
            Some(Split { role, agent, other, share }) => {
                format!("{role}: a is {agent}, b is {other} for {:.1} % of the runs\n", share * 100.0)
            }
            None => "agents.split is off\n".to_owned(),
        };
        let mut table = Table::new();
        table.load_preset(presets::ASCII_MARKDOWN);
        let header = ["side", "agents", "runs", "finished", "verified %", "steps", "proposals", "tokens", "wall ms"];
        table.set_header(header);
        table.add_rows(self.arms.iter().map(row));
        writeln!(text, "{table}").expect("invariant: writing to a string succeeds");
        if !self.is_complete {
            text += "not all runs were counted: the newest were\n";
        }
        text
    }
}

pub fn split(arguments: &SplitArguments) -> anyhow::Result<ExitCode> {
    let SplitArguments { since, common } = arguments;
    let query: Vec<_> = since.iter().map(|since| ("since", since.clone())).collect();
    let report: Value = common.client()?.get("/v1/split", &query)?.json()?;
    let text = match common.output {
        Output::Json => serde_json::to_string_pretty(&report)? + "\n",
        Output::Text => {
            let report = Report::deserialize(&report).map_err(|error| {
                let advice = "take the client of the daemon's version, or --output json";
                ClientError::Senseless(format!("the answer cannot be read by this version: {error}: {advice}"))
            })?;
            report.text()
        }
    };
    // A reader that has gone away is no error.
    drop(std::io::stdout().write_all(text.as_bytes()));
    Ok(ExitCode::SUCCESS)
}
