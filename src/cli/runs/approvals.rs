//! `runs approvals`, `runs approve`, `runs reject`, `runs edit`: steps that wait for approval.

use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::{Post, known};
use super::{Common, run_id};
use crate::cli::output::{Output, count, note, print};
use crate::cli::table::Table;
use prime_protocol::ApprovalVerdict;
use prime_service::runs::{ApprovalRecord, ApprovalState};

#[derive(Args)]
pub struct ApprovalsArguments {
    /// Run id: all approvals of this run, decided ones included, instead of the steps that wait
    #[arg(value_parser = run_id)]
    id: Option<String>,
    /// Steps per page, 1 to 1000
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..=1_000)
    )]
    limit: u32,
    /// Start after this one, as the previous page says
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: u64,
    #[command(flatten)]
    common: Common,
}

/// A step that waits, and why it is decided so.
#[derive(Args)]
struct Decided {
    /// Run id
    #[arg(value_parser = run_id)]
    id: String,
    /// Number of the approval in the run, as `runs approvals` lists it
    number: u32,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
pub struct ApproveArguments {
    #[command(flatten)]
    step: Decided,
    /// Reason, for other readers
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
}

#[derive(Args)]
pub struct RejectArguments {
    #[command(flatten)]
    step: Decided,
    /// Reason, for the executor and for other readers
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
    /// End the run with what is committed, instead of having another line proposed
    #[arg(long)]
    end: bool,
}

#[derive(Args)]
pub struct EditArguments {
    #[command(flatten)]
    step: Decided,
    /// The line that takes the place of the proposed one; the verifier judges it
    line: String,
    /// Reason, for other readers
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
}

#[derive(Deserialize)]
struct Page {
    approvals: Vec<ApprovalRecord>,
    next: Option<u64>,
}

/// What became of a step, for a person.
fn state(approval: &ApprovalRecord) -> String {
    match (&approval.decision, approval.state) {
        (Some(decision), _) => {
            let reason = match decision.reason.as_str() {
                "" => String::new(),
                reason => format!(": {reason}"),
            };
            let what = match decision.verdict {
                ApprovalVerdict::Accept => "accepted",
                ApprovalVerdict::Reject => "rejected",
                ApprovalVerdict::Edit => "edited",
                ApprovalVerdict::End => "ended",
            };
            format!("{what} by {}{reason}", decision.by)
        }
        (None, ApprovalState::Void) => "void".to_owned(),
        (None, _) => format!("{} at {}", approval.step.otherwise.name(), approval.due),
    }
}

fn row(approval: &ApprovalRecord) -> [String; 7] {
    let step = &approval.step;
    [
        approval.run.clone(),
        approval.number.to_string(),
        step.task.clone(),
        format!("{}/{}/{}", step.round, step.trajectory, step.depth),
        step.action.clone(),
        step.score.to_string(),
        state(approval),
    ]
}

pub fn approvals(arguments: &ApprovalsArguments) -> anyhow::Result<ExitCode> {
    let ApprovalsArguments { id, limit, after, common } = arguments;
    let query = [("limit", limit.to_string()), ("after", after.to_string())];
    let path = match id {
        Some(id) => format!("/v1/runs/{id}/approvals"),
        None => "/v1/approvals".to_owned(),
    };
    let page: Value = common.client()?.get(&path, &query)?.json()?;

    let text = match common.output {
        Output::Json => serde_json::to_string_pretty(&page)? + "\n",
        Output::Text => {
            let Page { approvals, next } = known("answer", &page)?;
            if let Some(next) = next {
                note!("there may be more: --after {next} lists the next page");
            }
            let header =
                ["run", "number", "task", "round/trajectory/depth", "action", "score", "state"];
            let table = Table::new(header, approvals.iter().map(row));
            format!("{table}{}\n", count(approvals.len() as u64, "step"))
        }
    };

    print(text)?;
    Ok(ExitCode::SUCCESS)
}

fn decide(step: &Decided, body: &Value) -> anyhow::Result<ExitCode> {
    let Decided { id, number, common } = step;
    let path = format!("/v1/runs/{id}/approvals/{number}");
    // A repetition of the same decision changes nothing.
    let post = Post { path: &path, body: Some(body), is_idempotent: true, ..Post::default() };
    let approval: Value = common.client()?.post(&post)?.json()?;

    let text = match common.output {
        Output::Json => serde_json::to_string_pretty(&approval)? + "\n",
        Output::Text => {
            let approval: ApprovalRecord = known("answer", &approval)?;
            format!("approval {} ({}): {}\n", number, approval.step.action, state(&approval))
        }
    };
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

pub fn approve(arguments: &ApproveArguments) -> anyhow::Result<ExitCode> {
    let ApproveArguments { step, reason } = arguments;
    decide(step, &json!({"verdict": ApprovalVerdict::Accept, "reason": reason}))
}

pub fn reject(arguments: &RejectArguments) -> anyhow::Result<ExitCode> {
    let RejectArguments { step, reason, end } = arguments;
    let verdict = if *end { ApprovalVerdict::End } else { ApprovalVerdict::Reject };
    decide(step, &json!({"verdict": verdict, "reason": reason}))
}

pub fn edit(arguments: &EditArguments) -> anyhow::Result<ExitCode> {
    let EditArguments { step, line, reason } = arguments;
    decide(step, &json!({"verdict": ApprovalVerdict::Edit, "reason": reason, "line": line}))
}
