//! The response object: what was asked, and what the run gave.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::request::ResponsesRequest;
use crate::openai::delivery::{Delivery, is_spent};
use crate::openai::response::RunInfo;
use prime_protocol::Usage;
use prime_service::runs::RunRecord;

/// A response.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ModelResponse {
    pub id: String,
    /// `response`.
    pub object: &'static str,
    /// Seconds since 1970.
    pub created_at: u64,
    pub status: ResponseStatus,
    /// Always null: what fails is an error of the request.
    #[schema(value_type = Option<Object>)]
    pub error: Option<()>,
    pub incomplete_details: Option<IncompleteDetails>,
    pub instructions: Option<String>,
    pub max_output_tokens: Option<u64>,
    pub model: String,
    /// The steps as a summary of thoughts, then the answer.
    pub output: Vec<OutputItem>,
    /// Always false.
    pub parallel_tool_calls: bool,
    /// Always null.
    #[schema(value_type = Option<String>)]
    pub previous_response_id: Option<()>,
    /// Always false.
    pub store: bool,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    /// The form of the answer as it was asked for.
    #[schema(value_type = Object)]
    pub text: Value,
    #[schema(value_type = Value)]
    pub tool_choice: Value,
    #[schema(value_type = Vec<Object>)]
    pub tools: Vec<Value>,
    /// `disabled`.
    pub truncation: &'static str,
    pub usage: Option<ResponseUsage>,
    /// Always empty.
    #[schema(value_type = Object)]
    pub metadata: Value,
    /// The run; null until it is over.
    pub prime: Option<RunInfo>,
}

/// The state of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResponseStatus {
    InProgress,
    /// There is an answer, or definitely none; then the message is a refusal.
    Completed,
    /// A budget was spent before there was an answer.
    Incomplete,
}

/// Why a response is incomplete.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct IncompleteDetails {
    /// `max_output_tokens`, also for budgets of steps and time; `prime.outcome` says which.
    pub reason: &'static str,
}

/// A part of the output.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OutputItem {
    /// The steps that led to the answer, one per line.
    Reasoning { id: String, summary: Vec<SummaryText> },
    /// The answer, or why there is none.
    Message {
        id: String,
        /// `assistant`.
        role: &'static str,
        status: ResponseStatus,
        content: Vec<OutputContent>,
    },
    /// The answer as a call of a function.
    FunctionCall {
        id: String,
        call_id: String,
        name: String,
        /// The arguments as JSON.
        arguments: String,
        status: ResponseStatus,
    },
}

/// Steps.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SummaryText {
    /// `summary_text`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub text: String,
}

/// The content of a message.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OutputContent {
    /// The answer as JSON, a text as it is.
    OutputText {
        text: String,
        /// Always empty.
        #[schema(value_type = Vec<Object>)]
        annotations: [(); 0],
        /// Always empty.
        #[schema(value_type = Vec<Object>)]
        logprobs: [(); 0],
    },
    /// Why there is no answer, or none that the verifier accepts.
    Refusal { refusal: String },
}

/// Token counts.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ResponseUsage {
    pub input_tokens: u64,
    /// `cached_tokens`: those that models had computed before.
    #[schema(value_type = Object)]
    pub input_tokens_details: Value,
    pub output_tokens: u64,
    /// `reasoning_tokens`: those that models spent on thinking.
    #[schema(value_type = Object)]
    pub output_tokens_details: Value,
    pub total_tokens: u64,
}

/// A server-sent event of a response. Only for the OpenAPI document.
#[derive(ToSchema)]
#[expect(dead_code, reason = "never constructed")]
pub struct ResponseEvent {
    /// The event's type, such as `response.completed`.
    event: String,
    /// The event: its type, its number, and what is new.
    data: String,
}

impl From<Usage> for ResponseUsage {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.prompt,
            input_tokens_details: json!({ "cached_tokens": usage.cached }),
            output_tokens: usage.completion,
            output_tokens_details: json!({ "reasoning_tokens": usage.reasoning }),
            total_tokens: usage.total(),
        }
    }
}

/// What a run that is over gave.
pub struct Outcome {
    pub record: RunRecord,
    pub delivery: Delivery,
    pub reasoning: Option<String>,
}

/// A response before its run is over.
pub struct Template {
    unique: String,
    created_at: u64,
    asked: ResponsesRequest,
}

impl Template {
    /// `unique` is the part that its ids have in common and no other response's have.
    pub fn new(unique: &str, created_at: u64, asked: ResponsesRequest) -> Self {
        Self { unique: unique.to_owned(), created_at, asked }
    }

    fn output(
        &self,
        delivery: Delivery,
        reasoning: Option<String>,
        status: ResponseStatus,
    ) -> Vec<OutputItem> {
        let id = |prefix: &str| format!("{prefix}_{}", self.unique);
        let reasoning = reasoning.map(|text| OutputItem::Reasoning {
            id: id("rs"),
            summary: vec![SummaryText { kind: "summary_text", text }],
        });
        let message = |content| OutputItem::Message {
            id: id("msg"),
            role: "assistant",
            status,
            content: vec![content],
        };

        let answer = match delivery {
            Delivery::Content(text) => {
                message(OutputContent::OutputText { text, annotations: [], logprobs: [] })
            }
            Delivery::Refusal(refusal) => message(OutputContent::Refusal { refusal }),
            Delivery::Call { name, arguments } => OutputItem::FunctionCall {
                id: id("fc"),
                call_id: id("call"),
                name,
                arguments,
                status,
            },
        };

        reasoning.into_iter().chain([answer]).collect()
    }

    /// The response; without an outcome, that of a run in progress.
    pub fn response(&self, outcome: Option<Outcome>) -> ModelResponse {
        let asked = &self.asked;
        let mut response = ModelResponse {
            id: format!("resp_{}", self.unique),
            object: "response",
            created_at: self.created_at,
            status: ResponseStatus::InProgress,
            error: None,
            incomplete_details: None,
            instructions: asked.instructions.clone(),
            max_output_tokens: asked.max_output_tokens,
            model: asked.model.clone(),
            output: Vec::new(),
            parallel_tool_calls: false,
            previous_response_id: None,
            store: false,
            temperature: asked.temperature,
            top_p: asked.top_p,
            text: json!({ "format": asked.text_format() }),
            tool_choice: asked.tool_choice.clone().unwrap_or_else(|| json!("auto")),
            tools: asked
                .tools
                .iter()
                .flatten()
                .filter_map(super::request::ResponseTool::as_sent)
                .collect(),
            truncation: "disabled",
            usage: None,
            metadata: json!({}),
            prime: None,
        };

        let Some(Outcome { record, delivery, reasoning }) = outcome else { return response };
        let is_incomplete = is_spent(&record) && matches!(delivery, Delivery::Refusal(_));

        response.status =
            if is_incomplete { ResponseStatus::Incomplete } else { ResponseStatus::Completed };
        response.incomplete_details =
            is_incomplete.then_some(IncompleteDetails { reason: "max_output_tokens" });

        response.output = self.output(delivery, reasoning, response.status);
        response.usage = Some(record.result.tokens.into());
        response.prime = Some((&record).into());
        response
    }
}
