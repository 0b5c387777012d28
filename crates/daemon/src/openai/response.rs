//! Response types of chat completions: whole, and in chunks.

use serde::Serialize;
use utoipa::ToSchema;

use super::delivery::{Delivery, is_spent};
use prime_bench::tasks::Kind;
use prime_protocol::{Assurance, Ballot, Usage};
use prime_report::Verification;
use prime_service::runs::{RunRecord, Status};

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
    /// The tokens of all choices.
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
    /// The answer as JSON, a text as it is; null with a refusal or a call.
    pub content: Option<String>,
    /// The steps that led to it, one per line.
    pub reasoning_content: Option<String>,
    /// Why there is no answer, or none that the verifier accepts; otherwise null.
    pub refusal: Option<String>,
    /// One, if `tool_choice` forces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<[ToolCall; 1]>,
}

/// The answer as a call of a function.
#[derive(Debug, Serialize, ToSchema)]
pub struct ToolCall {
    pub id: String,
    /// `function`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub function: CalledFunction,
}

/// The function that is called.
#[derive(Debug, Serialize, ToSchema)]
pub struct CalledFunction {
    pub name: String,
    /// The arguments as JSON.
    pub arguments: String,
}

/// Why the content ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// There is an answer, or definitely none; then the message has a refusal.
    Stop,
    /// A budget was spent before there was an answer.
    Length,
    /// The answer is a call of a function.
    ToolCalls,
}

/// The record of a run, without its answer.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RunInfo {
    /// The run's `id`, for `GET /v1/runs/{id}`.
    pub run: String,
    pub status: Status,
    /// True if the answer is promised to be right.
    pub verified: bool,
    /// What is promised of the answer; left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assurance: Option<Assurance>,
    /// What the promise rests on; left out unless the answer is verified or unrefuted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    pub verifier: String,
    /// The kinds of constraints that were evaluated, or that a program's owner says it checks. A
    /// model's opinion is none.
    pub checked_kinds: Vec<Kind>,
    /// What ended the run.
    pub outcome: Option<String>,
    pub votes: Vec<Ballot>,
    /// Votes of the winner over the trajectories of its round, 0 to 1.
    pub agreement: f64,
    pub steps: u64,
    /// Caveats for anyone who compares the result with others.
    pub notes: Vec<String>,
}

/// Token counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct TokenUsage {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub total_tokens: u64,
    pub prompt_tokens_details: PromptTokens,
    pub completion_tokens_details: CompletionTokens,
}

/// What is known of the tokens of the prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PromptTokens {
    /// Tokens that models had computed before.
    pub cached_tokens: u64,
}

/// What is known of the tokens of the completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct CompletionTokens {
    /// Tokens that models spent on thinking.
    pub reasoning_tokens: u64,
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
        Self {
            prompt_tokens: usage.prompt,
            completion_tokens: usage.completion,
            total_tokens: usage.total(),
            prompt_tokens_details: PromptTokens { cached_tokens: usage.cached },
            completion_tokens_details: CompletionTokens { reasoning_tokens: usage.reasoning },
        }
    }
}

impl From<&RunRecord> for RunInfo {
    fn from(record: &RunRecord) -> Self {
        let result = record.result.clone();
        Self {
            run: record.id.clone(),
            status: record.status,
            verified: result.verified,
            assurance: result.assurance,
            verification: result.verification,
            verifier: result.verifier,
            checked_kinds: result.checked_kinds,
            outcome: result.outcome,
            votes: result.votes,
            agreement: result.agreement,
            steps: result.steps,
            notes: result.notes,
        }
    }
}

/// The finish reason of a run that is over.
pub fn finish_reason(record: &RunRecord, delivery: &Delivery) -> FinishReason {
    match delivery {
        Delivery::Call { .. } => FinishReason::ToolCalls,
        Delivery::Refusal(_) if is_spent(record) => FinishReason::Length,
        Delivery::Content(_) | Delivery::Refusal(_) => FinishReason::Stop,
    }
}

impl ToolCall {
    /// The call that answers a run.
    pub fn new(run: &str, name: String, arguments: String) -> Self {
        let id = format!("call_{}", run.trim_start_matches("run_"));
        Self { id, kind: "function", function: CalledFunction { name, arguments } }
    }
}

impl Answer {
    fn new(run: &str, delivery: Delivery, reasoning_content: Option<String>) -> Self {
        let empty = Self {
            role: "assistant",
            content: None,
            reasoning_content,
            refusal: None,
            tool_calls: None,
        };
        match delivery {
            Delivery::Content(text) => Self { content: Some(text), ..empty },
            Delivery::Refusal(reason) => Self { refusal: Some(reason), ..empty },
            Delivery::Call { name, arguments } => {
                Self { tool_calls: Some([ToolCall::new(run, name, arguments)]), ..empty }
            }
        }
    }
}

impl Choice {
    /// The choice of a run that is over.
    pub fn new(
        index: u32,
        record: &RunRecord,
        reasoning: Option<String>,
        delivery: Delivery,
    ) -> Self {
        let finish_reason = finish_reason(record, &delivery);
        let message = Answer::new(&record.id, delivery, reasoning);
        Self { index, message, logprobs: None, finish_reason, prime: record.into() }
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
    /// The tokens of all choices, in the last chunk, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// The choice's run, in its first and its last chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prime: Option<RunInfo>,
}

/// A server-sent event of a chat completion. Only for the OpenAPI document.
#[derive(ToSchema)]
#[expect(dead_code, reason = "never constructed")]
pub struct ChunkEvent {
    /// A chunk, of object `chat.completion.chunk`; an `ErrorBody` if the run fails; at the end
    /// `[DONE]`.
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
    /// Why there is no answer, or none that the verifier accepts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// One, whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<[ChunkToolCall; 1]>,
}

/// A call of a function in a chunk.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChunkToolCall {
    /// Always 0.
    pub index: u32,
    #[serde(flatten)]
    pub call: ToolCall,
}

impl Delta {
    /// The answer of a run.
    pub fn answer(run: &str, delivery: Delivery) -> Self {
        match delivery {
            Delivery::Content(text) => Self { content: Some(text), ..Self::default() },
            Delivery::Refusal(reason) => Self { refusal: Some(reason), ..Self::default() },
            Delivery::Call { name, arguments } => {
                let call = ToolCall::new(run, name, arguments);
                Self { tool_calls: Some([ChunkToolCall { index: 0, call }]), ..Self::default() }
            }
        }
    }
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
    use serde_json::{Value, json};

    /// A record that is over.
    fn record(outcome: &str, answer: &Value) -> RunRecord {
        serde_json::from_value(json!({
            "id": "run_x", "status": "unverified", "resumed": 0, "created_at": "", "updated_at": "", "events": 1,
            "chain": "", "task": "n-queens", "instance": "input", "answer": answer, "verified": false,
            "verifier": "rules", "checked_kinds": ["format"], "outcome": outcome, "steps": 3, "proposals": 4,
            "retries": 0, "backtracks": 0, "pops": 0, "rounds": 1, "trajectories": 1, "votes": [], "agreement": 0.0,
            "tokens": {"prompt": 5, "completion": 2}, "wall_ms": 1, "seed": 1,
            "agents": {"executor": "reference", "verifier": "rules", "coordinator": "threshold"},
            "config_hash": "c", "notes": ["l"],
        }))
        .unwrap()
    }

    fn refused() -> Delivery {
        Delivery::Refusal("no".to_owned())
    }

    fn called() -> Delivery {
        Delivery::Call { name: "f".to_owned(), arguments: "{}".to_owned() }
    }

    #[test]
    fn only_a_budget_that_left_no_answer_is_a_length() {
        let text = Delivery::Content("x".to_owned());
        for (outcome, without) in [
            ("agreed", FinishReason::Stop),
            ("rounds_spent", FinishReason::Stop),
            ("exhausted", FinishReason::Stop),
            ("cancelled", FinishReason::Stop),
            ("steps_spent", FinishReason::Length),
            ("tokens_spent", FinishReason::Length),
            ("cost_spent", FinishReason::Length),
            ("wall_ms_spent", FinishReason::Length),
            ("deadline_passed", FinishReason::Length),
        ] {
            let record = record(outcome, &Value::Null);
            assert_eq!(finish_reason(&record, &refused()), without, "{outcome}");
            assert_eq!(finish_reason(&record, &text), FinishReason::Stop, "{outcome}");
            assert_eq!(finish_reason(&record, &called()), FinishReason::ToolCalls, "{outcome}");
        }
    }

    #[test]
    fn a_choice_has_the_form_of_openai_and_what_is_known_of_its_run() {
        let choice = Choice::new(1, &record("steps_spent", &Value::Null), None, refused());
        assert_eq!(
            serde_json::to_value(choice).unwrap(),
            json!({
                "index": 1,
                "message": {"role": "assistant", "content": null, "reasoning_content": null, "refusal": "no"},
                "logprobs": null,
                "finish_reason": "length",
                "prime": {
                    "run": "run_x", "status": "unverified", "verified": false, "verifier": "rules",
                    "checked_kinds": ["format"], "outcome": "steps_spent", "votes": [], "agreement": 0.0, "steps": 3,
                    "notes": ["l"],
                },
            })
        );

        assert_eq!(
            serde_json::to_value(TokenUsage::from(Usage {
                cached: 4,
                reasoning: 1,
                ..Usage::new(5, 2)
            }))
            .unwrap(),
            json!({
                "prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 1},
            })
        );
    }

    #[test]
    fn a_call_is_a_message_without_content() {
        let choice = Choice::new(0, &record("agreed", &json!({})), None, called());
        let call = json!({"id": "call_x", "type": "function", "function": {"name": "f", "arguments": "{}"}});

        assert_eq!(
            serde_json::to_value(choice.message).unwrap(),
            json!({
                "role": "assistant", "content": null, "reasoning_content": null, "refusal": null, "tool_calls": [call],
            })
        );

        let delta = serde_json::to_value(Delta::answer("run_x", called())).unwrap();
        assert_eq!(
            (&delta["tool_calls"][0]["index"], &delta["tool_calls"][0]["id"]),
            (&json!(0), &json!("call_x"))
        );
    }

    #[test]
    fn a_chunk_has_only_what_it_adds() {
        let head = Head {
            id: "c".to_owned(),
            created: 9,
            model: "prime".to_owned(),
            system_fingerprint: "f".to_owned(),
        };
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
