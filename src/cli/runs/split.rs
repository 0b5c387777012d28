//! `runs split`: compares the runs on both sides of `agents.split`.

use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use super::Common;
use super::client::known;
use crate::cli::output::{Output, print};
use crate::cli::table::Table;
use prime_service::runs::ArmFigures;

#[derive(Args)]
pub struct SplitArguments {
    /// Only runs accepted at this time or later, such as 2026-02-03T04:05:06Z
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

fn row(figures: &ArmFigures) -> [String; 9] {
    let agents = &figures.agents;
    let means = figures.mean.map(|mean| [mean.steps, mean.proposals, mean.tokens, mean.wall_ms]);
    let mean = |at: usize| means.map_or_else(String::new, |means| format!("{:.1}", means[at]));
    [
        figures.arm.name().to_owned(),
        format!("{}, {}, {}", agents.executor, agents.verifier, agents.coordinator),
        figures.runs.to_string(),
        figures.finished.to_string(),
        figures.verified.text(),
        mean(0),
        mean(1),
        mean(2),
        mean(3),
    ]
}

impl Report {
    fn text(&self) -> String {
        let mut text = match &self.split {
            Some(Split { role, agent, other, share }) => {
                format!(
                    "{role}: a is {agent}, b is {other} for {:.1} % of the runs\n",
                    share * 100.0
                )
            }
            None => "agents.split is off\n".to_owned(),
        };

        let header = [
            "side",
            "agents",
            "runs",
            "finished",
            "verified %",
            "steps",
            "proposals",
            "tokens",
            "wall ms",
        ];

        text += &Table::new(header, self.arms.iter().map(row)).to_string();
        if !self.is_complete {
            text += "only the newest runs were counted\n";
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
            let report: Report = known("answer", &report)?;
            report.text()
        }
    };

    print(text)?;
    Ok(ExitCode::SUCCESS)
}
