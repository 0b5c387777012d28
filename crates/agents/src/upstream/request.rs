//! The JSON body of a request. Pure.

use serde_json::{Map, Value, json};

use super::refusals::{LIMITS, Refused};
use crate::model::{CompletionRequest, ServedAdapter};
use prime_settings::{Api, Dialect, Thinking};

/// Fields that `extra` must not set: the response could not be parsed, or would answer another
/// request.
pub(super) const RESERVED_FIELDS: [&str; 9] =
    ["model", "messages", "prompt", "stream", "n", "input", "text_1", "text_2", "encoding_format"];

/// The field with the action in an answer that has the form of a schema.
pub(super) const ACTION: &str = "action";

/// How a pool formats its requests.
#[derive(Debug)]
pub(super) struct RequestFormat {
    pub api: Api,
    pub dialect: Dialect,
    /// Fields that override ours; a null removes ours.
    pub extra: Map<String, Value>,
    pub refused: Refused,
}

/// The effort that corresponds to a budget, for OpenAI's models, which take no number of tokens.
fn effort(thinking: Thinking) -> Option<&'static str> {
    match thinking {
        Thinking::AsModel => None,
        Thinking::Off => Some("none"),
        Thinking::AtMost(..=1_024) => Some("low"),
        Thinking::AtMost(..=8_192) => Some("medium"),
        Thinking::AtMost(_) => Some("high"),
    }
}

impl RequestFormat {
    /// The endpoint, relative to a server's URL. vLLM has `/pooling` beside `/v1`.
    pub fn path(api: Api) -> &'static str {
        match api {
            Api::Chat => "chat/completions",
            Api::Completions => "completions",
            Api::Score => "score",
            Api::Pooling => "../pooling",
        }
    }

    /// Returns whether a request asks for an object with an action.
    pub fn has_schema(&self, request: &CompletionRequest) -> bool {
        self.api == Api::Chat
            && self.dialect.takes_schemas()
            && request.line_form.is_some()
            && !self.extra.contains_key("response_format")
    }

    /// The body of a request for a score.
    fn scoring(&self, request: &CompletionRequest, model: &str) -> Map<String, Value> {
        let scored = request.scored.as_deref().unwrap_or_default();
        let body = match self.api {
            Api::Pooling => {
                json!({ "model": model, "input": format!("{}{scored}", request.prompt) })
            }
            _ => json!({ "model": model, "text_1": request.prompt, "text_2": scored }),
        };
        let Value::Object(body) = body else { unreachable!("invariant: it is written above") };
        body
    }

    pub fn body(&self, request: &CompletionRequest, model: &str) -> Value {
        let mut body = if self.api.scores() {
            self.scoring(request, model)
        } else {
            self.completing(request, model)
        };

        // The user's fields come last and win; a null removes ours instead of being sent.
        for (name, value) in &self.extra {
            body.insert(name.clone(), value.clone());
        }

        body.retain(|name, value| {
            let is_ours = !self.extra.contains_key(name);
            if is_ours {
                !self.refused.has(name) || LIMITS.contains(&name.as_str())
            } else {
                !value.is_null()
            }
        });
        Value::Object(body)
    }

    /// The body of a request for text.
    fn completing(&self, request: &CompletionRequest, model: &str) -> Map<String, Value> {
        let mut body = Map::new();
        let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
        // An adapter is a model of its own, except for llama.cpp's server, which numbers them.
        match &request.adapter {
            None => put("model", model.into()),
            Some(ServedAdapter { name, scale }) => match name.parse::<u32>() {
                Ok(id) if self.dialect == Dialect::LlamaServer => {
                    put("model", model.into());
                    put("lora", json!([{ "id": id, "scale": scale }]))
                }
                _ => put("model", (&**name).into()),
            },
        };

        match self.api {
            Api::Chat => {
                let system = request
                    .system
                    .as_ref()
                    .map(|text| json!({ "role": "system", "content": text }));
                let user = json!({ "role": "user", "content": request.prompt });
                put("messages", system.into_iter().chain([user]).collect());
            }
            _ => {
                put("prompt", request.prompt.as_str().into());
            }
        }

        // Thinking is added to the tokens of the answer.
        let budget = if let Thinking::AtMost(tokens) = request.thinking { tokens } else { 0 };
        put(self.limit(), request.max_tokens.saturating_add(budget).into());
        put("temperature", decimal(request.sampling.temperature));
        put("top_p", decimal(request.sampling.top_p));
        // Every server accepts 31 bits.
        put("seed", (request.sampling.seed % (1 << 31)).into());

        let streams = !self.refused.has("stream");
        put("stream", streams.into());
        if streams {
            put("stream_options", json!({ "include_usage": true }));
        }

        if request.logprobs {
            match self.api {
                Api::Chat => {
                    put("logprobs", true.into());
                    // Otherwise llama-server computes the 20 most likely alternatives of each
                    // token.
                    put("top_logprobs", request.alternatives.max(1).into());
                }
                _ => {
                    put("logprobs", request.alternatives.max(1).into());
                }
            }
            if self.dialect == Dialect::Vllm {
                put("return_token_ids", true.into());
            }
        }

        if let (Some(grammar), Some(field)) =
            (request.grammar.as_deref(), self.dialect.grammar_field())
        {
            let is_nested = self.dialect == Dialect::Vllm;
            put(field, if is_nested { json!({ "grammar": grammar }) } else { grammar.into() });
        }
        if let Some(form) = request.line_form.as_deref().filter(|_| self.has_schema(request)) {
            put("response_format", schema(form));
        }
        if self.api == Api::Chat {
            body.extend(self.thinking(request.thinking));
        }
        body
    }

    /// The name of the field that limits tokens, as far as it is known by now.
    fn limit(&self) -> &'static str {
        let [old, new] = LIMITS;
        match (self.dialect, self.refused.has(old), self.refused.has(new)) {
            (Dialect::Openai, _, false) | (_, true, false) => new,
            _ => old,
        }
    }

    /// The fields that say how much a model may think.
    fn thinking(&self, thinking: Thinking) -> Map<String, Value> {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        let budget = match thinking {
            Thinking::AsModel => return fields,
            Thinking::Off => None,
            Thinking::AtMost(tokens) => Some(tokens),
        };
        let switch = |is_on: bool| json!({ "enable_thinking": is_on, "thinking": is_on });

        match self.dialect {
            Dialect::LlamaServer => {
                put("chat_template_kwargs", switch(budget.is_some()));
                put("reasoning_budget_tokens", budget.unwrap_or(0).into());
            }
            Dialect::Vllm => {
                put("chat_template_kwargs", switch(budget.is_some()));
                if let Some(tokens) = budget {
                    put("thinking_token_budget", tokens.into());
                }
            }
            Dialect::Sglang => {
                let mut arguments = switch(budget.is_some());
                if let Some(tokens) = budget {
                    arguments["thinking_budget"] = tokens.into();
                }
                put("chat_template_kwargs", arguments);
            }
            Dialect::Openai | Dialect::Ollama | Dialect::LmStudio => {
                put("reasoning_effort", effort(thinking).into());
            }
            Dialect::Plain | Dialect::Auto => {}
        }
        fields
    }
}

/// A response format of an object with a line of this form.
fn schema(form: &str) -> Value {
    json!({
        "type": "json_schema",
        "json_schema": {
            "name": ACTION,
            "strict": true,
            "schema": {
                "type": "object",
                "properties": { ACTION: { "type": "string", "pattern": form } },
                "required": [ACTION],
                "additionalProperties": false,
            },
        },
    })
}

/// The shortest decimal that parses to this number: 0.7, not 0.699999988…
fn decimal(number: f32) -> Value {
    number.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sampling;

    fn request() -> CompletionRequest {
        CompletionRequest {
            system: Some("Be brief.".to_owned()),
            grammar: Some("root ::= \"a\"".into()),
            sampling: Sampling { temperature: 0.7, top_p: 0.95, seed: (5 << 31) + 9 },
            max_tokens: 400,
            logprobs: true,
            ..CompletionRequest::raw("n-queens", "State: 1")
        }
    }

    fn format(api: Api, dialect: Dialect, extra: Value) -> RequestFormat {
        let Value::Object(extra) = extra else { panic!("an object") };
        RequestFormat { api, dialect, extra, refused: Refused::default() }
    }

    #[test]
    fn a_chat_request_has_messages_and_the_grammar_in_the_servers_field() {
        let body = format(Api::Chat, Dialect::LlamaServer, json!({})).body(&request(), "m");
        let expected = json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "State: 1"},
            ],
            "max_tokens": 400, "temperature": 0.7, "top_p": 0.95, "seed": 9,
            "stream": true, "stream_options": {"include_usage": true},
            "logprobs": true, "top_logprobs": 1, "grammar": "root ::= \"a\"",
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn an_adapter_is_a_model_of_its_own_or_a_number_of_llama_server() {
        let served = |dialect, name: &str| {
            let adapter = Some(ServedAdapter { name: name.into(), scale: 0.5 });
            let request = CompletionRequest { adapter, ..request() };
            let body = format(Api::Chat, dialect, json!({})).body(&request, "m");
            (body["model"].clone(), body["lora"].clone())
        };
        let lora = json!([{"id": 1, "scale": 0.5}]);
        for (dialect, name, expected) in [
            (Dialect::LlamaServer, "1", (json!("m"), lora)),
            (Dialect::LlamaServer, "union-find", (json!("union-find"), Value::Null)),
            (Dialect::Vllm, "1", (json!("1"), Value::Null)),
            (Dialect::Plain, "union-find", (json!("union-find"), Value::Null)),
        ] {
            assert_eq!(served(dialect, name), expected, "{dialect:?} {name}");
        }
    }

    #[test]
    fn a_completion_request_has_the_bare_prompt() {
        let body = format(Api::Completions, Dialect::Vllm, json!({})).body(&request(), "m");
        let expected = json!({
            "model": "m", "prompt": "State: 1",
            "max_tokens": 400, "temperature": 0.7, "top_p": 0.95, "seed": 9,
            "stream": true, "stream_options": {"include_usage": true},
            "logprobs": 1, "return_token_ids": true,
            "structured_outputs": {"grammar": "root ::= \"a\""},
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn a_request_for_a_score_has_the_texts_and_nothing_else() {
        let request = CompletionRequest {
            scored: Some("move 1".to_owned()),
            ..CompletionRequest::raw("n-queens", "Next step:\n")
        };
        let extra = json!({"truncate_prompt_tokens": 512});
        let body = format(Api::Score, Dialect::Plain, extra).body(&request, "m");
        let expected = json!({
            "model": "m", "text_1": "Next step:\n", "text_2": "move 1",
            "truncate_prompt_tokens": 512,
        });
        assert_eq!(body, expected);

        let body = format(Api::Pooling, Dialect::Plain, json!({})).body(&request, "m");
        assert_eq!(body, json!({"model": "m", "input": "Next step:\nmove 1"}));
    }

    #[test]
    fn alternatives_are_asked_for_by_their_number() {
        let request = CompletionRequest { alternatives: 20, ..request() };
        let body = format(Api::Chat, Dialect::Plain, json!({})).body(&request, "m");
        assert_eq!((&body["logprobs"], &body["top_logprobs"]), (&json!(true), &json!(20)));
        let body = format(Api::Completions, Dialect::Plain, json!({})).body(&request, "m");
        assert_eq!(body["logprobs"], 20);
    }

    #[test]
    fn unrequested_and_unsupported_fields_are_omitted() {
        let request = CompletionRequest { system: None, logprobs: false, ..request() };

        let extra =
            json!({"seed": null, "top_p": 0.5, "chat_template_kwargs": {"enable_thinking": false}});
        let body = format(Api::Chat, Dialect::Plain, extra).body(&request, "m");
        let expected = json!({
            "model": "m", "messages": [{"role": "user", "content": "State: 1"}],
            "max_tokens": 400, "temperature": 0.7, "top_p": 0.5,
            "stream": true, "stream_options": {"include_usage": true},
            "chat_template_kwargs": {"enable_thinking": false},
        });
        assert_eq!(body, expected);

        let body = format(Api::Chat, Dialect::Sglang, json!({}))
            .body(&CompletionRequest { grammar: None, ..request }, "m");
        assert!(body.get("ebnf").is_none());
    }
    #[test]
    fn thinking_is_said_as_each_server_understands_it() {
        let fields = |dialect: Dialect, thinking: Thinking| {
            let request = CompletionRequest { thinking, ..request() };
            let body = format(Api::Chat, dialect, json!({})).body(&request, "m");
            let names = [
                "chat_template_kwargs",
                "reasoning_budget_tokens",
                "thinking_token_budget",
                "reasoning_effort",
                "max_tokens",
                "max_completion_tokens",
            ];
            let found = names.iter().filter_map(|name| Some((*name, body.get(*name)?.clone())));
            found.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>()
        };

        let off = json!({"enable_thinking": false, "thinking": false});
        let on = json!({"enable_thinking": true, "thinking": true});
        for (dialect, without, within) in [
            (
                Dialect::LlamaServer,
                json!({
                    "chat_template_kwargs": off, "reasoning_budget_tokens": 0, "max_tokens": 400,
                }),
                json!({
                    "chat_template_kwargs": on, "reasoning_budget_tokens": 600, "max_tokens": 1000,
                }),
            ),
            (
                Dialect::Vllm,
                json!({"chat_template_kwargs": off, "max_tokens": 400}),
                json!({
                    "chat_template_kwargs": on, "thinking_token_budget": 600, "max_tokens": 1000,
                }),
            ),
            (
                Dialect::Sglang,
                json!({"chat_template_kwargs": off, "max_tokens": 400}),
                json!({
                    "chat_template_kwargs":
                        {"enable_thinking": true, "thinking": true, "thinking_budget": 600},
                    "max_tokens": 1000,
                }),
            ),
            (
                Dialect::Openai,
                json!({"reasoning_effort": "none", "max_completion_tokens": 400}),
                json!({"reasoning_effort": "low", "max_completion_tokens": 1000}),
            ),
            (
                Dialect::Ollama,
                json!({"reasoning_effort": "none", "max_tokens": 400}),
                json!({"reasoning_effort": "low", "max_tokens": 1000}),
            ),
            (Dialect::Plain, json!({"max_tokens": 400}), json!({"max_tokens": 1000})),
        ] {
            assert_eq!(Value::Object(fields(dialect, Thinking::Off)), without, "{dialect:?}");
            assert_eq!(
                Value::Object(fields(dialect, Thinking::AtMost(600))),
                within,
                "{dialect:?}"
            );
            let own = fields(dialect, Thinking::AsModel);
            assert_eq!(own.len(), 1, "{dialect:?}: {own:?}");
        }
        assert_eq!(effort(Thinking::AtMost(1_025)), Some("medium"));
        assert_eq!(effort(Thinking::AtMost(8_193)), Some("high"));
    }

    #[test]
    fn a_schema_has_the_form_of_a_line() {
        let request = CompletionRequest { line_form: Some("^move [0-9]+$".into()), ..request() };
        for dialect in [Dialect::Openai, Dialect::Ollama, Dialect::LmStudio] {
            let body = format(Api::Chat, dialect, json!({})).body(&request, "m");
            let expected = json!({
                "type": "json_schema",
                "json_schema": {"name": "action", "strict": true, "schema": {
                    "type": "object",
                    "properties": {"action": {"type": "string", "pattern": "^move [0-9]+$"}},
                    "required": ["action"],
                    "additionalProperties": false,
                }},
            });
            assert_eq!(body["response_format"], expected, "{dialect:?}");
            assert!(body.get("grammar").is_none());
        }
        let body = format(Api::Chat, Dialect::Vllm, json!({})).body(&request, "m");
        assert!(body.get("response_format").is_none());
    }

    #[test]
    fn a_refused_field_is_left_out() {
        let fields = format(Api::Chat, Dialect::Plain, json!({}));
        for name in ["max_tokens", "temperature"] {
            assert!(fields.refused.add(name) && !fields.refused.add(name));
        }
        let body = fields.body(&request(), "m");
        assert_eq!((body.get("max_tokens"), body.get("temperature")), (None, None));
        assert_eq!((&body["max_completion_tokens"], &body["top_p"]), (&json!(400), &json!(0.95)));
    }
}
