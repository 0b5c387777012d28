//! The JSON body of a request. Pure.

use serde_json::{Map, Value, json};

use crate::model::CompletionRequest;
use prime_settings::{Api, Dialect};

/// Fields that `extra` must not set: the response could not be parsed, or would answer another
/// request.
pub(super) const RESERVED_FIELDS: [&str; 9] =
    ["model", "messages", "prompt", "stream", "n", "input", "text_1", "text_2", "encoding_format"];

/// How a pool formats its requests.
#[derive(Clone, Debug)]
pub(super) struct RequestFormat {
    pub api: Api,
    pub dialect: Dialect,
    /// Fields that override ours; a null removes ours.
    pub extra: Map<String, Value>,
}

impl RequestFormat {
    /// The endpoint, relative to a server's URL. vLLM has `/pooling` beside `/v1`.
    pub fn path(&self) -> &'static str {
        match self.api {
            Api::Chat => "chat/completions",
            Api::Completions => "completions",
            Api::Score => "score",
            Api::Pooling => "../pooling",
        }
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

        body.retain(|name, value| !value.is_null() || !self.extra.contains_key(name));
        Value::Object(body)
    }

    /// The body of a request for text.
    fn completing(&self, request: &CompletionRequest, model: &str) -> Map<String, Value> {
        let mut body = Map::new();
        let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
        put("model", model.into());

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

        put("max_tokens", request.max_tokens.into());
        put("temperature", decimal(request.sampling.temperature));
        put("top_p", decimal(request.sampling.top_p));
        // 31 bits: what every server accepts.
        put("seed", (request.sampling.seed % (1 << 31)).into());

        put("stream", false.into());

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
        body
    }
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
        RequestFormat { api, dialect, extra }
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
            "max_tokens": 400, "temperature": 0.7, "top_p": 0.95, "seed": 9, "stream": false,
            "logprobs": true, "top_logprobs": 1, "grammar": "root ::= \"a\"",
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn a_completion_request_has_the_bare_prompt() {
        let body = format(Api::Completions, Dialect::Vllm, json!({})).body(&request(), "m");
        let expected = json!({
            "model": "m", "prompt": "State: 1",
            "max_tokens": 400, "temperature": 0.7, "top_p": 0.95, "seed": 9, "stream": false,
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
            "max_tokens": 400, "temperature": 0.7, "top_p": 0.5, "stream": false,
            "chat_template_kwargs": {"enable_thinking": false},
        });
        assert_eq!(body, expected);

        let body = format(Api::Chat, Dialect::Sglang, json!({}))
            .body(&CompletionRequest { grammar: None, ..request }, "m");
        assert!(body.get("ebnf").is_none());
    }
}
