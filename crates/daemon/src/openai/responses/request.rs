//! The request of a response, as the chat completion with the same meaning. Unknown fields are
//! accepted and ignored.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::openai::request::{
    ChatRequest, FormatKind, JsonSchemaFormat, Message, ResponseFormat, Role,
};
use crate::openai::tools::{Function, Tool};
use prime_service::requests::RunRequest;

/// A request for a response.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ResponsesRequest {
    /// `prime`, or `prime/<preset>`.
    pub model: String,
    /// The problem, or messages, the last one of role `user` with the problem.
    #[schema(value_type = Input)]
    pub input: Value,
    /// Put before a problem in words.
    pub instructions: Option<String>,
    pub stream: Option<bool>,
    #[schema(minimum = 0.0, maximum = 2.0)]
    pub temperature: Option<f64>,
    #[schema(exclusive_minimum = 0.0, maximum = 1.0)]
    pub top_p: Option<f64>,
    /// The same as `max_completion_tokens` of a chat completion.
    #[schema(minimum = 1)]
    #[serde(default, deserialize_with = "prime_bench::json_integer::optional")]
    pub max_output_tokens: Option<u64>,
    /// The form of the answer.
    pub text: Option<TextOptions>,
    /// The same as `tools` of a chat completion.
    pub tools: Option<Vec<ResponseTool>>,
    /// The same as `tool_choice` of a chat completion, with the name of a function beside its type.
    #[schema(value_type = Option<ResponseToolChoice>)]
    pub tool_choice: Option<Value>,
    /// Always null: nothing is stored.
    #[schema(value_type = Option<String>, max_length = 0)]
    pub previous_response_id: Option<Value>,
    /// Always null: nothing is stored.
    #[schema(value_type = Option<String>, max_length = 0)]
    pub conversation: Option<Value>,
    /// Always false: nothing is stored.
    #[schema(value_type = Option<bool>)]
    pub background: Option<Value>,
    /// A run request, as for `POST /v1/runs`. Takes precedence over the input and the other fields.
    pub prime: Option<RunRequest>,
}

/// The problem. Only for the OpenAPI document.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "never constructed")]
pub enum Input {
    Text(String),
    Items(Vec<InputItem>),
}

/// A message; items of other types have no effect. Only for the OpenAPI document.
#[derive(ToSchema)]
#[expect(dead_code, reason = "never constructed")]
pub struct InputItem {
    role: Role,
    /// A text, or a list of `{"type": "input_text", "text": …}`.
    content: Value,
}

/// The form of the answer.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct TextOptions {
    pub format: Option<TextFormat>,
}

/// The form of the answer.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TextFormat {
    #[serde(rename = "type")]
    pub kind: FormatKind,
    /// The schema, an object; required where the type is `json_schema`.
    #[schema(value_type = Value, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// A name for the schema. It and the next two have no effect; the response repeats them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

/// A tool. Only functions can be forced; others are ignored.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ResponseTool {
    /// `function`.
    #[serde(rename = "type")]
    pub kind: String,
    pub name: Option<String>,
    pub description: Option<String>,
    /// The JSON Schema of its arguments, an object; any object by default.
    #[schema(value_type = Option<Object>)]
    pub parameters: Option<Map<String, Value>>,
}

/// Whether the answer is a function call. Only for the OpenAPI document.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "never constructed")]
pub enum ResponseToolChoice {
    Mode(crate::openai::tools::ToolMode),
    Function(ResponseNamedTool),
}

/// The function whose arguments the answer is.
#[derive(ToSchema)]
#[expect(dead_code, reason = "never constructed")]
pub struct ResponseNamedTool {
    /// `function`.
    #[schema(rename = "type")]
    kind: String,
    name: String,
}

impl ResponseTool {
    /// The function as it was sent; `None` for other tools.
    pub fn as_sent(&self) -> Option<Value> {
        let name = self.name.as_ref().filter(|_| self.kind == "function")?;
        let (description, parameters) = (&self.description, &self.parameters);
        Some(json!({
            "type": "function", "name": name, "description": description, "parameters": parameters, "strict": true,
        }))
    }
}

/// An error about the chat completion, as one about the response that it was made from.
pub fn renamed(error: ApiError) -> ApiError {
    let Some(field) = error.body().error.field else { return error };
    let own = match field.as_str() {
        "response_format.json_schema.schema" => "text.format.schema".to_owned(),
        "response_format" => "text.format".to_owned(),
        "max_completion_tokens" => "max_output_tokens".to_owned(),
        messages if messages.starts_with("messages") => "input".to_owned(),
        tools => tools.replace("].function.parameters", "].parameters"),
    };
    if own == field { error } else { error.moved_to(&own) }
}

/// A part of a message's content in the form of a chat completion.
fn part(part: &Value) -> Value {
    let is_text = part["type"] == "input_text" || part["type"] == "output_text";
    if is_text { json!({ "type": "text", "text": part["text"] }) } else { part.clone() }
}

impl ResponsesRequest {
    pub fn is_streamed(&self) -> bool {
        self.stream.unwrap_or(false)
    }

    fn messages(&self) -> Result<Vec<Message>, ApiError> {
        let instructions = self.instructions.as_ref();
        let instructions = instructions
            .map(|text| Message { role: Role::System, content: Some(text.clone().into()) })
            .into_iter();

        let items = match &self.input {
            Value::String(text) => {
                let message = Message { role: Role::User, content: Some(text.clone().into()) };
                return Ok(instructions.chain([message]).collect());
            }
            Value::Array(items) => items.iter().enumerate(),
            _ => return Err(ApiError::bad_field("input", "must be a text or a list of messages")),
        };

        let mut messages: Vec<_> = instructions.collect();
        for (place, item) in items {
            let role = match item.get("role") {
                Some(role) => role,
                // A call, its result, a summary of thoughts: nothing that a run needs.
                None if item["type"].is_string() => continue,
                None => {
                    let message =
                        "has no `role`; give a message, {\"role\": \"user\", \"content\": …}";
                    return Err(ApiError::bad_field(&format!("input[{place}]"), message));
                }
            };

            let role = serde_json::from_value(role.clone())
                .map_err(|error| ApiError::bad_field(&format!("input[{place}].role"), error))?;

            let content = item.get("content").map(|content| match content {
                Value::Array(parts) => parts.iter().map(part).collect(),
                content => content.clone(),
            });
            messages.push(Message { role, content });
        }

        Ok(messages)
    }

    /// The form of the answer as it was asked for.
    pub fn text_format(&self) -> Value {
        let format = self.text.as_ref().and_then(|text| text.format.as_ref());
        format.map_or_else(|| json!({ "type": "text" }), |format| json!(format))
    }

    /// The chat completion with the same meaning.
    ///
    /// # Errors
    /// 400 with the field.
    pub fn chat(&self) -> Result<ChatRequest, ApiError> {
        let stateful = [
            ("previous_response_id", &self.previous_response_id),
            ("conversation", &self.conversation),
        ];
        for (field, value) in stateful {
            if value.is_some() {
                let message = "nothing is stored here: leave it out, and send the whole conversation as `input`";
                return Err(ApiError::bad_field(field, message));
            }
        }

        if self.background.as_ref().is_some_and(|background| *background != false) {
            let message =
                "nothing is stored here: leave it out, or submit the run with POST /v1/runs";
            return Err(ApiError::bad_field("background", message));
        }

        let tool = |tool: ResponseTool| Tool {
            kind: tool.kind,
            function: tool.name.map(|name| Function {
                name,
                description: tool.description,
                parameters: tool.parameters,
            }),
        };
        let tool_choice = self.tool_choice.as_ref().map(|choice| match choice.get("name") {
            Some(name) => json!({"type": choice["type"], "function": {"name": name}}),
            None => choice.clone(),
        });

        let format = self.text.as_ref().and_then(|text| text.format.clone());

        Ok(ChatRequest {
            model: self.model.clone(),
            messages: self.messages()?,
            n: None,
            stream: None,
            stream_options: None,
            temperature: self.temperature,
            top_p: self.top_p,
            max_tokens: None,
            max_completion_tokens: self.max_output_tokens,
            seed: None,
            response_format: format.map(|format| ResponseFormat {
                kind: format.kind,
                json_schema: Some(JsonSchemaFormat { schema: format.schema }),
            }),
            tools: self.tools.clone().map(|tools| tools.into_iter().map(tool).collect()),
            tool_choice,
            prime: self.prime.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(fields: &Value) -> Result<ChatRequest, ApiError> {
        let mut request = json!({"model": "prime", "input": "2 + 2?"});
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value::<ResponsesRequest>(request).unwrap().chat()
    }

    fn messages(fields: &Value) -> Vec<(Role, Value)> {
        let messages = chat(fields).unwrap().messages;
        messages
            .into_iter()
            .map(|message| (message.role, message.content.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn input_and_instructions_are_messages() {
        assert_eq!(messages(&json!({})), [(Role::User, json!("2 + 2?"))]);

        let items = json!([
            {"role": "developer", "content": "Be exact."},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "y"}]},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        ]);

        assert_eq!(
            messages(&json!({"input": items, "instructions": "Be short."})),
            [
                (Role::System, json!("Be short.")),
                (Role::Developer, json!("Be exact.")),
                (Role::User, json!([{"type": "text", "text": "x"}])),
                (Role::Assistant, json!([{"type": "text", "text": "y"}])),
            ]
        );
    }

    #[test]
    fn options_are_those_of_a_chat_completion() {
        let chat = chat(&json!({
            "max_output_tokens": 9,
            "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "integer"}}},
            "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}, {"type": "web_search"}],
            "tool_choice": {"type": "function", "name": "f"},
        }))
        .unwrap();

        assert_eq!(chat.max_completion_tokens, Some(9));
        assert!(
            chat.answer_form().unwrap().instructions().unwrap().contains("`f`"),
            "a forced call takes precedence"
        );

        let free = ChatRequest { tool_choice: None, ..chat };
        assert_eq!(free.answer_form().unwrap().schema(), Some(json!({"type": "integer"})));
    }

    #[test]
    fn the_form_of_the_answer_is_repeated() {
        let schema = json!({"type": "json_schema", "name": "n", "schema": {"type": "integer"}, "strict": true});
        for (text, expected) in [
            (json!(null), json!({"type": "text"})),
            (json!({}), json!({"type": "text"})),
            (json!({"format": {"type": "text"}}), json!({"type": "text"})),
            (json!({"format": {"type": "json_object"}}), json!({"type": "json_object"})),
            (json!({"format": schema}), schema.clone()),
        ] {
            let request = json!({"model": "prime", "input": "x", "text": text});
            let request: ResponsesRequest = serde_json::from_value(request).unwrap();
            assert_eq!(request.text_format(), expected, "{text}");
        }
    }

    #[test]
    fn what_needs_a_store_is_refused() {
        for (fields, field) in [
            (json!({"previous_response_id": "resp_1"}), "previous_response_id"),
            (json!({"conversation": {"id": "conv_1"}}), "conversation"),
            (json!({"background": true}), "background"),
            (json!({"input": 5}), "input"),
            (json!({"input": [{"content": "x"}]}), "input[0]"),
            (json!({"input": [{"role": "king", "content": "x"}]}), "input[0].role"),
        ] {
            let error = chat(&fields).unwrap_err();
            assert_eq!(error.body().error.param.as_deref(), Some(field), "{error}");
        }

        assert!(chat(&json!({"background": false, "previous_response_id": null})).is_ok());
    }

    #[test]
    fn errors_name_the_fields_of_a_response() {
        for (field, own) in [
            ("messages[1].content", "input"),
            ("response_format.json_schema.schema", "text.format.schema"),
            ("tools[2].function.parameters", "tools[2].parameters"),
            ("max_completion_tokens", "max_output_tokens"),
            ("temperature", "temperature"),
        ] {
            let error = renamed(ApiError::bad_field(field, "is wrong"));
            assert_eq!(error.body().error.param.as_deref(), Some(own));
            assert_eq!(error.to_string(), format!("field `{own}`: is wrong"));
        }
    }
}
