//! `runs reviews`, `runs review`, `runs assign`: steps that need review by a person.

use std::process::ExitCode;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::{Post, known};
use super::{Common, run_id};
use crate::cli::output::{Output, count, note, print};
use crate::cli::table::Table;
use prime_service::runs::{FlaggedStep, ReviewDecision};

#[derive(Args)]
pub struct ReviewsArguments {
    /// Run id
    #[arg(value_parser = run_id)]
    id: String,
    /// Steps per page, 1 to 1000
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..=1_000)
    )]
    limit: u32,
    /// Start after this event, the last one of the previous page
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: u64,
    /// Only steps that NAME is to review; `me` is your key, `none` stands for nobody
    #[arg(long, value_name = "NAME")]
    assignee: Option<String>,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
pub struct AssignArguments {
    /// Run id
    #[arg(value_parser = run_id)]
    id: String,
    /// Number of the step's event, as `runs reviews` lists it
    seq: u64,
    /// Its assignee: `me`, the name of a key that may see the run, or any name where the
    /// daemon has no keys; `none` for nobody
    #[arg(value_name = "NAME")]
    assignee: String,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
pub struct ReviewArguments {
    /// Run id
    #[arg(value_parser = run_id)]
    id: String,
    /// Number of the step's event, as `runs reviews` lists it
    seq: u64,
    /// Whether the step is right
    #[arg(value_parser = PossibleValuesParser::new(["accept", "reject"]))]
    verdict: String,
    /// Reason, for other readers
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

/// The newest review of a step, for a person.
fn newest_review(step: &FlaggedStep) -> String {
    let Some(review) = &step.review else { return "open".to_owned() };
    let verdict = match review.verdict {
        ReviewDecision::Accept => "accepted",
        ReviewDecision::Reject => "rejected",
    };
    let note = if review.note.is_empty() { String::new() } else { format!(": {}", review.note) };
    format!("{verdict} by {}{note}", review.by)
}

fn row(step: &FlaggedStep) -> [String; 7] {
    let opinion = |opinion: &prime_protocol::Opinion| {
        let score = opinion.score.map_or_else(|| "none".to_owned(), |score| score.to_string());
        format!("{} {score}", opinion.verifier)
    };
    let opinions: Vec<_> = step.opinions.iter().map(opinion).collect();
    let place = format!("{}/{}/{}", step.round, step.trajectory, step.depth);
    [
        step.seq.to_string(),
        place,
        step.action.clone(),
        step.decision.clone(),
        opinions.join(", "),
        step.assignee.clone().unwrap_or_default(),
        newest_review(step),
    ]
}

pub fn reviews(arguments: &ReviewsArguments) -> anyhow::Result<ExitCode> {
    let ReviewsArguments { id, limit, after, assignee, common } = arguments;
    let mut query = vec![("limit", limit.to_string()), ("after", after.to_string())];
    query.extend(assignee.clone().map(|name| ("assignee", name)));
    let page: Value = common.client()?.get(&format!("/v1/runs/{id}/reviews"), &query)?.json()?;

    let text = match common.output {
        Output::Json => serde_json::to_string_pretty(&page)? + "\n",
        Output::Text => {
            let Page { steps, next } = known("answer", &page)?;
            if let Some(next) = next {
                note!("there may be more: --after {next} lists the next page");
            }
            let header = [
                "seq",
                "round/trajectory/depth",
                "action",
                "decision",
                "opinions",
                "assignee",
                "review",
            ];
            let table = Table::new(header, steps.iter().map(row));
            format!("{table}{}\n", count(steps.len() as u64, "step"))
        }
    };

    print(text)?;
    Ok(ExitCode::SUCCESS)
}

pub fn review(arguments: &ReviewArguments) -> anyhow::Result<ExitCode> {
    let ReviewArguments { id, seq, verdict, note, common } = arguments;
    let body = json!({"seq": seq, "verdict": verdict, "note": note});
    let path = format!("/v1/runs/{id}/reviews");
    let step: Value = common
        .client()?
        .post(&Post { path: &path, body: Some(&body), ..Post::default() })?
        .json()?;

    let text = match common.output {
        Output::Json => serde_json::to_string_pretty(&step)? + "\n",
        Output::Text => {
            let step: FlaggedStep = known("answer", &step)?;
            format!("event {} ({}): {}\n", step.seq, step.action, newest_review(&step))
        }
    };

    print(text)?;
    Ok(ExitCode::SUCCESS)
}

pub fn assign(arguments: &AssignArguments) -> anyhow::Result<ExitCode> {
    let AssignArguments { id, seq, assignee, common } = arguments;
    let name = (assignee != "none").then_some(assignee);
    let body = json!({"seq": seq, "assignee": name});
    let step: Value = common.client()?.patch(&format!("/v1/runs/{id}/reviews"), &body)?.json()?;

    let text = match common.output {
        Output::Json => serde_json::to_string_pretty(&step)? + "\n",
        Output::Text => {
            let step: FlaggedStep = known("answer", &step)?;
            let name = step.assignee.as_deref().unwrap_or("nobody");
            format!("event {} ({}): assigned to {name}\n", step.seq, step.action)
        }
    };

    print(text)?;
    Ok(ExitCode::SUCCESS)
}
