//! Request types of chat completions. Unknown fields are accepted and ignored.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::answer_form::AnswerForm;
use super::tools::{Tool, ToolChoice, forced};
use crate::error::ApiError;
use prime_service::requests::RunRequest;

/// Most choices per request; each is a run.
const CHOICES_MAX: u32 = 16;

/// A request for a chat completion.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ChatRequest {
    /// `prime`, or `prime/<preset>`.
    pub model: String,
    /// The last one of role `user` has the problem to solve.
    #[schema(min_items = 1)]
    pub messages: Vec<Message>,
    /// Choices: runs that differ only in their seeds.
    #[schema(minimum = 1, maximum = 16)]
    #[serde(default, deserialize_with = "prime_bench::json_integer::optional")]
    pub n: Option<u32>,
    pub stream: Option<bool>,
    pub stream_options: Option<StreamOptions>,
    #[schema(minimum = 0.0, maximum = 2.0)]
    pub temperature: Option<f64>,
    #[schema(exclusive_minimum = 0.0, maximum = 1.0)]
    pub top_p: Option<f64>,
    /// The older name of `max_completion_tokens`.
    #[schema(minimum = 1)]
    #[serde(default, deserialize_with = "prime_bench::json_integer::optional")]
    pub max_tokens: Option<u64>,
    /// Completion tokens of a choice: of all trajectories of its run. A run that spends them ends
    /// with `length`.
    #[schema(minimum = 1)]
    #[serde(default, deserialize_with = "prime_bench::json_integer::optional")]
    pub max_completion_tokens: Option<u64>,
    /// The seed of the first choice; the others have consecutive ones. For a negative seed, the
    /// lower 63 bits are used.
    #[serde(default, deserialize_with = "prime_bench::json_integer::optional")]
    pub seed: Option<i64>,
    /// The form of the answer. A task of the benchmark defines its own: an answer of another form
    /// is a refusal.
    pub response_format: Option<ResponseFormat>,
    /// Functions that `tool_choice` can force. They are not called on the way to an answer.
    pub tools: Option<Vec<Tool>>,
    /// Whether the answer is a function call; its arguments follow the function's schema. Takes
    /// precedence over `response_format`.
    #[schema(value_type = Option<ToolChoice>)]
    pub tool_choice: Option<Value>,
    /// A run request, as for `POST /v1/runs`. Takes precedence over the messages and the other
    /// fields.
    pub prime: Option<RunRequest>,
}

/// One message.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct Message {
    pub role: Role,
    /// A text, or a list of `{"type": "text", "text": …}`. Not read in messages of roles that have
    /// no effect.
    #[schema(value_type = Value, required = false, example = "{\"task\": \"n-queens\"}")]
    pub content: Option<Value>,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The same as `system`.
    Developer,
    /// Put before a custom problem.
    System,
    /// Has the problem to solve.
    User,
    /// Has no effect.
    Assistant,
    /// Has no effect.
    Tool,
    /// Has no effect.
    Function,
}

/// Options of streaming.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
pub struct StreamOptions {
    /// Whether to send a last chunk with the token counts of all choices.
    pub include_usage: Option<bool>,
}

/// The form of an answer.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ResponseFormat {
    #[serde(rename = "type")]
    pub kind: FormatKind,
    pub json_schema: Option<JsonSchemaFormat>,
}

/// The kinds of answer formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FormatKind {
    /// Any text.
    Text,
    /// A JSON object.
    JsonObject,
    /// An answer that follows `json_schema`.
    JsonSchema,
}

/// A JSON Schema for answers.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct JsonSchemaFormat {
    /// The schema, an object; required where the type is `json_schema`.
    #[schema(value_type = Value, required = false)]
    pub schema: Option<Value>,
}

impl ChatRequest {
    /// Checks what does not depend on the problem.
    ///
    /// # Errors
    /// 400 with the field.
    pub fn check(&self) -> Result<(), ApiError> {
        if self.messages.is_empty() {
            return Err(ApiError::bad_field(
                "messages",
                "is empty; give at least one of role user",
            ));
        }
        if let Some(n) = self.n
            && !(1..=CHOICES_MAX).contains(&n)
        {
            return Err(ApiError::bad_field(
                "n",
                format!("is {n}, but must be 1 to {CHOICES_MAX}"),
            ));
        }
        if let Some(temperature) = self.temperature
            && !(0.0..=2.0).contains(&temperature)
        {
            return Err(ApiError::bad_field(
                "temperature",
                format!("is {temperature}, but must be 0 to 2"),
            ));
        }
        if let Some(top_p) = self.top_p
            && !(top_p > 0.0 && top_p <= 1.0)
        {
            return Err(ApiError::bad_field(
                "top_p",
                format!("is {top_p}, but must be above 0 and up to 1"),
            ));
        }
        Ok(())
    }

    pub fn choices(&self) -> u32 {
        self.n.unwrap_or(1)
    }

    pub fn is_streamed(&self) -> bool {
        self.stream.unwrap_or(false)
    }

    pub fn wants_usage(&self) -> bool {
        self.stream_options.and_then(|options| options.include_usage).unwrap_or(false)
    }

    /// The form of the answer.
    ///
    /// # Errors
    /// 400: there is no schema where one is needed, one is invalid, or the tool choice is.
    pub fn answer_form(&self) -> Result<AnswerForm, ApiError> {
        let functions =
            forced(self.tools.as_deref().unwrap_or_default(), self.tool_choice.as_ref())?;
        if !functions.is_empty() {
            return AnswerForm::call(&functions);
        }
        let Some(format) = &self.response_format else { return Ok(AnswerForm::TEXT) };
        match format.kind {
            FormatKind::Text => Ok(AnswerForm::TEXT),
            FormatKind::JsonObject => {
                AnswerForm::json("response_format", serde_json::json!({ "type": "object" }))
            }
            FormatKind::JsonSchema => {
                let schema = format.json_schema.as_ref().and_then(|format| format.schema.clone());
                let schema = schema.filter(Value::is_object).ok_or_else(|| {
                    ApiError::bad_field(
                        "response_format.json_schema.schema",
                        "must be a JSON Schema, an object",
                    )
                })?;
                AnswerForm::json("response_format.json_schema.schema", schema)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::json;
    use serde_json::json as value;

    /// Why a request with this field is refused, if it is: the field to name, and the message.
    fn refused(field: &str, given: &Value) -> Option<(Option<String>, String)> {
        let mut request =
            value!({"model": "prime", "messages": [{"role": "user", "content": "x"}]});
        request[field] = given.clone();

        let read = json::<ChatRequest>(request.to_string().as_bytes());
        let checked = read.and_then(|chat| chat.check().and_then(|()| chat.answer_form()));
        checked.err().map(|error| (error.body().error.param, error.to_string()))
    }

    #[test]
    fn the_bounds_of_ranges_are_allowed_and_unknown_fields_are_ignored() {
        for (field, given) in [
            ("n", value!(1)),
            ("n", value!(16)),
            ("n", value!(null)),
            ("temperature", value!(0)),
            ("temperature", value!(2)),
            ("top_p", value!(1)),
            ("top_p", value!(1e-9)),
            ("seed", value!(i64::MIN)),
            ("seed", value!(i64::MAX)),
            ("tool_choice", value!("auto")),
            ("tool_choice", value!("none")),
            ("tools", value!([{"type": "function", "function": {"name": "f"}}])),
            ("stop", value!(["\n"])),
            ("logit_bias", value!({"5": -100})),
            ("metadata", value!({"a": "b"})),
            ("user", value!("me")),
            ("stream_options", value!({"include_usage": true, "other": 1})),
            ("response_format", value!({"type": "text"})),
            ("response_format", value!({"type": "json_object"})),
            (
                "response_format",
                value!({"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}),
            ),
            (
                "messages",
                value!([{"role": "developer", "content": "x", "name": "y"}, {"role": "assistant"}]),
            ),
            ("prime", value!({"task": "n-queens", "fanout": 2})),
        ] {
            assert_eq!(refused(field, &given), None, "{field} = {given}");
        }
    }

    #[test]
    fn invalid_fields_are_named_as_param() {
        for (field, given, param, part) in [
            ("model", value!(5), "model", "5"),
            ("messages", value!([]), "messages", "empty"),
            ("messages", value!("x"), "messages", "sequence"),
            ("messages", value!([{"role": "king", "content": "x"}]), "messages[0].role", "king"),
            ("messages", value!([{"content": "x"}]), "messages[0].role", "role"),
            ("n", value!(0), "n", "1 to 16"),
            ("n", value!(17), "n", "1 to 16"),
            ("n", value!(-1), "n", "-1"),
            ("n", value!(1.5), "n", "1.5"),
            ("temperature", value!(-0.1), "temperature", "0 to 2"),
            ("temperature", value!(2.1), "temperature", "0 to 2"),
            ("temperature", value!("hot"), "temperature", "hot"),
            ("top_p", value!(0), "top_p", "above 0"),
            ("top_p", value!(1.1), "top_p", "above 0"),
            ("max_tokens", value!(-5), "max_tokens", "-5"),
            ("seed", value!(u64::MAX), "seed", "18446744073709551615"),
            ("stream", value!("yes"), "stream", "yes"),
            ("stream_options", value!({"include_usage": 1}), "stream_options.include_usage", "1"),
            ("tool_choice", value!("required"), "tool_choice", "`tools`"),
            (
                "tool_choice",
                value!({"type": "function", "function": {"name": "f"}}),
                "tool_choice",
                "`tools`",
            ),
            ("tools", value!([{"function": {"name": "f"}}]), "tools[0].type", "type"),
            ("response_format", value!({"type": "xml"}), "response_format.type", "xml"),
            (
                "response_format",
                value!({"type": "json_schema"}),
                "response_format.json_schema.schema",
                "JSON Schema",
            ),
            (
                "response_format",
                value!({"type": "json_schema", "json_schema": {"schema": 5}}),
                "response_format.json_schema.schema",
                "JSON Schema",
            ),
            ("prime", value!({"fan_out": 2}), "prime.fan_out", "fanout"),
            ("prime", value!({"budget": {"steps": "x"}}), "prime.budget.steps", "x"),
        ] {
            let (named, message) =
                refused(field, &given).unwrap_or_else(|| panic!("{field} = {given} is taken"));
            assert_eq!(named.as_deref(), Some(param), "{message}");
            assert!(message.contains(part), "{part:?} is missing in {message:?}");
        }
    }
}
