//! What messages to webhooks say, as JSON: `type`, `timestamp` and `data`, as Standard Webhooks recommends.

use serde::Serialize;
use serde_json::Value;

use crate::runs::labels::Labels;
use crate::runs::record::{Status, timestamp};
use prime_protocol::{Assurance, Budget, Role, Usage};
use prime_report::RunResult;
use prime_settings::WebhookEvent;

/// Most bytes of an answer in a message.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// The run that a message is about.
#[derive(Clone, Copy)]
pub struct About<'r> {
    pub run: &'r str,
    /// The name of the API key that submitted it; empty without keys.
    pub owner: &'r str,
    pub task: &'r str,
    pub instance: &'r str,
    pub labels: &'r Labels,
}

#[derive(Serialize)]
struct Payload<'r, D> {
    r#type: &'static str,
    timestamp: String,
    data: Data<'r, D>,
}

#[derive(Serialize)]
struct Data<'r, D> {
    run: &'r str,
    #[serde(skip_serializing_if = "str::is_empty")]
    key: &'r str,
    task: &'r str,
    instance: &'r str,
    labels: &'r Labels,
    #[serde(flatten)]
    more: D,
}

#[derive(Serialize)]
struct Ended<'r> {
    status: Status,
    outcome: &'r Option<String>,
    verified: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    assurance: Option<Assurance>,
    answer: Option<&'r Value>,
    /// True if the answer is too long for a message.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    answer_omitted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: &'r Option<String>,
    steps: u64,
    proposals: u64,
    tokens: Usage,
    wall_ms: u64,
}

#[derive(Serialize)]
struct Flagged<'r> {
    steps: &'r [u64],
}

#[derive(Serialize)]
struct Waiting<'r> {
    approvals: &'r [u32],
}

/// A budget of which much is spent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BudgetSpent {
    pub budget: &'static str,
    pub spent: Value,
    pub limit: Value,
}

#[derive(Serialize)]
struct Spent<'r> {
    budgets: &'r [BudgetSpent],
}

/// Turns that wait for an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaitsFor<'r> {
    pub role: Role,
    /// The agent's name.
    pub agent: &'r str,
    pub turns: usize,
}

#[derive(Serialize)]
struct Stuck<'r> {
    status: Status,
    since: String,
    /// The number of the last event.
    events: u64,
    waits_for: &'r [WaitsFor<'r>],
}

fn text<D: Serialize>(event: WebhookEvent, about: About<'_>, now_ms: u64, more: D) -> String {
    let About { run, owner, task, instance, labels } = about;
    let data = Data { run, key: owner, task, instance, labels, more };
    let payload = Payload { r#type: event.name(), timestamp: timestamp(now_ms), data };
    serde_json::to_string(&payload).expect("invariant: messages serialise")
}

/// The message that a run ended.
pub fn ended(about: About<'_>, status: Status, result: &RunResult, now_ms: u64) -> String {
    let length = result.answer.as_ref().map_or(0, |answer| answer.to_string().len());
    let is_short = length <= ANSWER_BYTES_MAX;
    let more = Ended {
        status,
        outcome: &result.outcome,
        verified: result.verified,
        assurance: result.assurance,
        answer: result.answer.as_ref().filter(|_| is_short),
        answer_omitted: !is_short,
        failure: &result.failure,
        steps: result.steps,
        proposals: result.proposals,
        tokens: result.tokens,
        wall_ms: result.wall_ms,
    };
    text(WebhookEvent::RunEnded, about, now_ms, more)
}

/// The message that steps were flagged, by the numbers of their events.
pub fn flagged(about: About<'_>, steps: &[u64], now_ms: u64) -> String {
    text(WebhookEvent::RunFlagged, about, now_ms, Flagged { steps })
}

/// The message that steps wait for approval, by the numbers of the approvals.
pub fn waiting(about: About<'_>, approvals: &[u32], now_ms: u64) -> String {
    text(WebhookEvent::RunWaiting, about, now_ms, Waiting { approvals })
}

/// The message that much of a budget is spent.
pub fn budget_spent(about: About<'_>, budgets: &[BudgetSpent], now_ms: u64) -> String {
    text(WebhookEvent::RunBudget, about, now_ms, Spent { budgets })
}

/// The message that a run has told nothing since its event of this number.
pub fn stuck(
    about: About<'_>,
    since_ms: u64,
    events: u64,
    waits_for: &[WaitsFor<'_>],
    now_ms: u64,
) -> String {
    let more = Stuck { status: Status::Running, since: timestamp(since_ms), events, waits_for };
    text(WebhookEvent::RunStuck, about, now_ms, more)
}

/// The budgets of which four fifths are spent.
pub fn nearly_spent(
    budget: &Budget,
    proposals: u64,
    usage: Usage,
    elapsed_ms: u64,
) -> Vec<BudgetSpent> {
    let cost = usage.cost.unwrap_or_default();
    let counts = [
        ("steps", proposals, budget.steps),
        ("tokens", usage.total(), budget.tokens),
        ("completion_tokens", usage.completion, budget.completion_tokens),
        ("cost", cost.nanos(), budget.cost.nanos()),
        ("wall_ms", elapsed_ms, budget.wall_ms),
    ];
    // A limit of 0 is none.
    let is_near =
        |spent: u64, limit: u64| limit > 0 && u128::from(spent) * 5 >= u128::from(limit) * 4;
    let near = counts.into_iter().filter(|(_, spent, limit)| is_near(*spent, *limit));
    near.map(|(name, spent, limit)| match name {
        "cost" => BudgetSpent {
            budget: name,
            spent: cost.units().into(),
            limit: budget.cost.units().into(),
        },
        _ => BudgetSpent { budget: name, spent: spent.into(), limit: limit.into() },
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_protocol::Cost;

    const BUDGET: Budget = Budget {
        steps: 10,
        tokens: 0,
        completion_tokens: 100,
        cost: Cost::from_nanos(2_000_000_000),
        wall_ms: 1_000,
    };

    #[test]
    fn budgets_are_named_from_four_fifths_on() {
        let names = |proposals, completion, nanos, elapsed_ms| -> Vec<&str> {
            let usage =
                Usage { cost: Some(Cost::from_nanos(nanos)), ..Usage::new(9_999, completion) };
            let spent = nearly_spent(&BUDGET, proposals, usage, elapsed_ms);
            spent.into_iter().map(|spent| spent.budget).collect()
        };
        assert!(names(7, 79, 1_599_999_999, 799).is_empty());
        assert_eq!(names(8, 79, 1_599_999_999, 799), ["steps"]);
        assert_eq!(names(0, 80, 1_600_000_000, 0), ["completion_tokens", "cost"]);
        assert_eq!(names(u64::MAX, 0, 0, u64::MAX), ["steps", "wall_ms"]);

        let usage = Usage { cost: Some(Cost::from_nanos(1_750_000_000)), ..Usage::new(0, 0) };
        let spent = nearly_spent(&BUDGET, 0, usage, 0);
        assert_eq!((&spent[0].spent, &spent[0].limit), (&1.75.into(), &2.0.into()));
    }

    #[test]
    fn a_message_says_what_happened_to_which_run() {
        let labels = Labels::from([("team".to_owned(), "ops".to_owned())]);
        let about = About {
            run: "run_1",
            owner: "ada",
            task: "n-queens",
            instance: "input",
            labels: &labels,
        };
        let said: Value =
            serde_json::from_str(&flagged(about, &[3, 9], 1_770_091_506_123)).unwrap();
        let expected = serde_json::json!({
            "type": "run.flagged",
            "timestamp": "2026-02-03T04:05:06.123Z",
            "data": {
                "run": "run_1", "key": "ada", "task": "n-queens", "instance": "input",
                "labels": {"team": "ops"}, "steps": [3, 9]
            }
        });
        assert_eq!(said, expected);
    }
}
