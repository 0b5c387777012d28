//! `runs reviews`, `runs review`: steps that ask for a person.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Args;
use clap::builder::PossibleValuesParser;
use comfy_table::{Table, presets};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::run::Output;
use super::client::{ClientError, Post};
use super::{Common, run_id};
use crate::runs::{FlaggedStep, ReviewDecision};

#[derive(Args)]
pub struct ReviewsArguments {
    /// The run's id.
    #[arg(value_parser = run_id)]
    id: String,
    /// Steps of a page, 1 to 1000.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    /// Only steps after this event, the last of the page before.
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: u64,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
pub struct ReviewArguments {
    /// The run's id.
    #[arg(value_parser = run_id)]
    id: String,
    /// The number of the step's event, as `runs reviews` lists it.
    seq: u64,
    /// Whether the step is right.
    #[arg(value_parser = PossibleValuesParser::new(["accept", "reject"]))]
    verdict: String,
    /// Why, for others.
    #[arg(long, default_value = "", hide_default_value = true)]
    note: String,
    #[command(flatten)]
    common: Common,
}

#[derive(Deserialize)]
struct Page {
    steps: Vec<FlaggedStep>,
    next: Option<u64>,
}

/// A value as this version knows it.
fn known<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, ClientError> {
    T::deserialize(value).map_err(|error| {
        let advice = "take the client of the daemon's version, or --output json";
        ClientError::Senseless(format!("the answer cannot be read by this version: {error}: {advice}"))
    })
}

/// What was said of a step last, for a person.
fn said(step: &FlaggedStep) -> String {
    let Some(review) = &step.review else { return "open".to_owned() };
    let verdict = match review.verdict {
        ReviewDecision::Accept => "accepted",
        ReviewDecision::Reject => "rejected",
    };
    let note = if review.note.is_empty() { String::new() } else { format!(": {}", review.note) };
    format!("{verdict} by {}{note}", review.by)
}

fn row(step: &FlaggedStep) -> [String; 6] {
    let opinion = |opinion: &prime_protocol::Opinion| {
        let score = opinion.score.map_or_else(|| "none".to_owned(), |score| score.to_string());
        format!("{} {score}", opinion.verifier)
    };
    let opinions: Vec<_> = step.opinions.iter().map(opinion).collect();
    let place = format!("{}/{}/{}", step.round, step.trajectory, step.depth);
    [step.seq.to_string(), place, step.action.clone(), step.decision.clone(), opinions.join(", "), said(step)]
}

pub fn reviews(arguments: &ReviewsArguments) -> anyhow::Result<ExitCode> {
    let ReviewsArguments { id, limit, after, common } = arguments;
    let query = [("limit", limit.to_string()), ("after", after.to_string())];
    let page: Value = common.client()?.get(&format!("/v1/runs/{id}/reviews"), &query)?.json()?;
    let text = match common.output {
        Output::Json => serde_json::to_string_pretty(&page)? + "\n",
        Output::Text => {
            let Page { steps, next } = known(&page)?;
            if let Some(next) = next {
                eprintln!("there may be more: --after {next} shows the next page");
            }
            let mut table = Table::new();
            table.load_preset(presets::ASCII_MARKDOWN);
            table.set_header(["seq", "round/trajectory/depth", "action", "decision", "opinions", "review"]);
            table.add_rows(steps.iter().map(row));
            format!("{table}\n{} steps\n", steps.len())
        }
    };
    // A reader that has gone away is no error.
    drop(std::io::stdout().write_all(text.as_bytes()));
    Ok(ExitCode::SUCCESS)
}

pub fn review(arguments: &ReviewArguments) -> anyhow::Result<ExitCode> {
    let ReviewArguments { id, seq, verdict, note, common } = arguments;
    let body = json!({"seq": seq, "verdict": verdict, "note": note});
    let path = format!("/v1/runs/{id}/reviews");
    let step: Value = common.client()?.post(&Post { path: &path, body: Some(&body), ..Post::default() })?.json()?;
    let text = match common.output {
        Output::Json => serde_json::to_string_pretty(&step)? + "\n",
        Output::Text => {
            let step: FlaggedStep = known(&step)?;
            format!("event {} ({}): {}\n", step.seq, step.action, said(&step))
        }
    };
    drop(std::io::stdout().write_all(text.as_bytes()));
    Ok(ExitCode::SUCCESS)
}
