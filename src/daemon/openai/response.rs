//! Response types of chat completions: whole, and in chunks.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::report::Verification;
use crate::runs::{RunRecord, Status};
use prime_bench::tasks::Kind;
use prime_protocol::{Ballot, Usage};

/// A chat completion.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChatCompletion {
    pub id: String,
    /// `chat.completion`.
    pub object: &'static str,
    /// Seconds since 1970.
    pub created: u64,
    pub model: String,
    /// The hash of the daemon's configuration.
    pub system_fingerprint: String,
    pub choices: Vec<Choice>,
    /// Of all choices.
    pub usage: TokenUsage,
    /// The run of the first choice.
    pub prime: RunInfo,
}

/// One answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct Choice {
    pub index: u32,
    pub message: Answer,
    /// Always null: see the run's trace.
    #[schema(value_type = Option<Object>)]
    pub logprobs: Option<()>,
    pub finish_reason: FinishReason,
    /// The run of this choice.
    pub prime: RunInfo,
}

/// The message of an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct Answer {
    /// `assistant`.
    pub role: &'static str,
    /// The answer as JSON, a text as it is; empty without an answer.
    pub content: String,
    /// The steps that led to it, one per line.
    pub reasoning_content: Option<String>,
    /// Always null.
    #[schema(value_type = Option<String>)]
    pub refusal: Option<()>,
}

/// Why the content ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// With an answer, or definitely without.
    Stop,
    /// A budget was spent before there was an answer.
    Length,
}

/// The record of a run, without its answer.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RunInfo {
    /// For `GET /v1/runs/{id}`.
    pub run: String,
    pub status: Status,
    /// Whether the verifier accepted every step as clean.
    pub verified: bool,
    /// What that is worth; left out if the answer is not verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    pub verifier: String,
    /// The kinds of constraints that were evaluated, or that a program's owner says it checks. A model's opinion is none.
    pub checked_kinds: Vec<Kind>,
    /// The name of what ended the run.
    pub outcome: Option<String>,
    pub votes: Vec<Ballot>,
    /// Votes of the winner over the trajectories of its round, 0 to 1.
    pub agreement: f64,
    pub steps: u64,
    pub labels: Vec<String>,
}

/// Token counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the words of OpenAI's interface")]
pub struct TokenUsage {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub total_tokens: u64,
}

/// The fields that all chunks share.
#[derive(Clone, Debug)]
pub struct Head {
    pub id: String,
    pub created: u64,
    pub model: String,
    pub system_fingerprint: String,
}

impl From<Usage> for TokenUsage {
    fn from(usage: Usage) -> Self {
        Self { prompt_tokens: usage.prompt, completion_tokens: usage.completion, total_tokens: usage.total() }
    }
}

impl From<&RunRecord> for RunInfo {
    fn from(record: &RunRecord) -> Self {
        let result = record.result.clone();
        Self {
            run: record.id.clone(),
            status: record.status,
            verified: result.verified,
            verification: result.verification,
            verifier: result.verifier,
            checked_kinds: result.checked_kinds,
            outcome: result.outcome,
            votes: result.votes,
            agreement: result.agreement,
            steps: result.steps,
            labels: result.labels,
        }
    }
}

/// The answer of a run as text.
pub fn content(answer: Option<&Value>) -> String {
    match answer {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(answer) => answer.to_string(),
    }
}

/// The finish reason of a run that is over.
pub fn finish_reason(record: &RunRecord) -> FinishReason {
    let is_spent = matches!(record.result.outcome.as_deref(), Some("steps_spent" | "tokens_spent" | "wall_ms_spent"));
    if is_spent && record.result.answer.is_none() { FinishReason::Length } else { FinishReason::Stop }
}

impl Choice {
    /// The choice of a run that is over.
    pub fn new(index: u32, record: &RunRecord, reasoning_content: Option<String>) -> Self {
        let content = content(record.result.answer.as_ref());
        let message = Answer { role: "assistant", content, reasoning_content, refusal: None };
        Self { index, message, logprobs: None, finish_reason: finish_reason(record), prime: record.into() }
    }
}

/// A chunk of a streamed chat completion: the data of a server-sent event.
#[derive(Debug, Serialize, ToSchema)]
pub struct Chunk<'a> {
    pub id: &'a str,
    /// `chat.completion.chunk`.
    pub object: &'static str,
    pub created: u64,
    pub model: &'a str,
    pub system_fingerprint: &'a str,
    /// One; none in the chunk with the token counts.
    pub choices: Vec<ChunkChoice>,
    /// In the last chunk, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// In the first and the last chunk of a choice: its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prime: Option<RunInfo>,
}

/// A server-sent event of a chat completion. Only for the OpenAPI document.
#[derive(ToSchema)]
#[expect(dead_code, reason = "never constructed")]
pub struct ChunkEvent {
    /// A chunk, of object `chat.completion.chunk`; an `ErrorBody` if the run fails; at the end `[DONE]`.
    data: String,
}

/// A choice in a chunk.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChunkChoice {
    pub index: u32,
    pub delta: Delta,
    /// Always null.
    #[schema(value_type = Option<Object>)]
    pub logprobs: Option<()>,
    /// Null except in the choice's last chunk.
    pub finish_reason: Option<FinishReason>,
}

/// The part of the message that a chunk adds.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct Delta {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Steps of the first trajectory, as they are committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
}

impl Head {
    /// A chunk without choices.
    pub fn chunk(&self) -> Chunk<'_> {
        Chunk {
            id: &self.id,
            object: "chat.completion.chunk",
            created: self.created,
            model: &self.model,
            system_fingerprint: &self.system_fingerprint,
            choices: Vec::new(),
            usage: None,
            prime: None,
        }
    }

    /// A chunk that adds to one choice.
    pub fn delta(&self, index: u32, delta: Delta) -> Chunk<'_> {
        let choice = ChunkChoice { index, delta, logprobs: None, finish_reason: None };
        Chunk { choices: vec![choice], ..self.chunk() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A record that is over.
    fn record(outcome: &str, answer: &Value) -> RunRecord {
        serde_json::from_value(json!({
            "id": "run_x", "status": "unverified", "resumed": 0, "created_at": "", "updated_at": "", "events": 1,
            "chain": "", "task": "n-queens", "instance": "input", "answer": answer, "verified": false,
            "verifier": "rules", "checked_kinds": ["format"], "outcome": outcome, "steps": 3, "proposals": 4,
            "retries": 0, "backtracks": 0, "pops": 0, "rounds": 1, "trajectories": 1, "votes": [], "agreement": 0.0,
            "tokens": {"prompt": 5, "completion": 2}, "wall_ms": 1, "seed": 1,
            "agents": {"executor": "reference", "verifier": "rules", "coordinator": "threshold"},
            "config_hash": "c", "labels": ["l"],
        }))
        .unwrap()
    }

    #[test]
    fn only_a_budget_that_left_no_answer_is_a_length() {
        for (outcome, without, with) in [
            ("agreed", FinishReason::Stop, FinishReason::Stop),
            ("rounds_spent", FinishReason::Stop, FinishReason::Stop),
            ("exhausted", FinishReason::Stop, FinishReason::Stop),
            ("cancelled", FinishReason::Stop, FinishReason::Stop),
            ("steps_spent", FinishReason::Length, FinishReason::Stop),
            ("tokens_spent", FinishReason::Length, FinishReason::Stop),
            ("wall_ms_spent", FinishReason::Length, FinishReason::Stop),
        ] {
            assert_eq!(finish_reason(&record(outcome, &Value::Null)), without, "{outcome}");
            assert_eq!(finish_reason(&record(outcome, &json!(1))), with, "{outcome}");
        }
    }

    #[test]
    fn answers_are_json_and_texts_are_plain() {
        assert_eq!(content(None), "");
        assert_eq!(content(Some(&json!("a \"b\""))), "a \"b\"");
        assert_eq!(content(Some(&json!({"b": [1, 2], "a": null}))), r#"{"b":[1,2],"a":null}"#);
    }

    #[test]
    fn a_choice_has_the_form_of_openai_and_what_is_known_of_its_run() {
        let choice = Choice::new(1, &record("steps_spent", &Value::Null), None);
        assert_eq!(
            serde_json::to_value(choice).unwrap(),
            json!({
                "index": 1,
                "message": {"role": "assistant", "content": "", "reasoning_content": null, "refusal": null},
                "logprobs": null,
                "finish_reason": "length",
                "prime": {
                    "run": "run_x", "status": "unverified", "verified": false, "verifier": "rules",
                    "checked_kinds": ["format"], "outcome": "steps_spent", "votes": [], "agreement": 0.0, "steps": 3,
                    "labels": ["l"],
                },
            })
        );
        assert_eq!(
            serde_json::to_value(TokenUsage::from(Usage { prompt: 5, completion: 2 })).unwrap(),
            json!({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7})
        );
    }

    #[test]
    fn a_chunk_has_only_what_it_adds() {
        let head =
            Head { id: "c".to_owned(), created: 9, model: "prime".to_owned(), system_fingerprint: "f".to_owned() };
        let delta = Delta { reasoning_content: Some("a\n".to_owned()), ..Delta::default() };
        assert_eq!(
            serde_json::to_value(head.delta(2, delta)).unwrap(),
            json!({
                "id": "c", "object": "chat.completion.chunk", "created": 9, "model": "prime", "system_fingerprint": "f",
                "choices": [{"index": 2, "delta": {"reasoning_content": "a\n"}, "logprobs": null, "finish_reason": null}],
            })
        );
    }
}
