//! The body of a request, from what a model is asked. Pure.

use serde_json::{Map, Value, json};

use crate::agents::model::Ask;
use crate::settings::{Api, Dialect};

/// Fields that `extra` must leave alone, because the answer could not be read or would be another question's.
pub(super) const OWN_FIELDS: [&str; 5] = ["model", "messages", "prompt", "stream", "n"];

/// How every request of a pool is made.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub api: Api,
    pub dialect: Dialect,
    /// Fields that replace ours; those that are null leave ours out.
    pub extra: Map<String, Value>,
}

impl Form {
    /// The path below a server's address.
    pub fn path(&self) -> &'static str {
        match self.api {
            Api::Chat => "chat/completions",
            Api::Completions => "completions",
        }
    }

    pub fn body(&self, ask: &Ask, model: &str) -> Value {
        let mut body = Map::new();
        let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
        put("model", model.into());
        match self.api {
            Api::Chat => {
                let system = ask.system.as_ref().map(|text| json!({ "role": "system", "content": text }));
                let user = json!({ "role": "user", "content": ask.prompt });
                put("messages", system.into_iter().chain([user]).collect());
            }
            Api::Completions => {
                put("prompt", ask.prompt.as_str().into());
            }
        }
        put("max_tokens", ask.max_tokens.into());
        put("temperature", decimal(ask.sampling.temperature));
        put("top_p", decimal(ask.sampling.top_p));
        // 31 bits: what every server can take.
        put("seed", (ask.sampling.seed % (1 << 31)).into());
        put("stream", false.into());
        if ask.logprobs {
            match self.api {
                Api::Chat => {
                    put("logprobs", true.into());
                    // Without it, llama-server computes the 20 likeliest of each token.
                    put("top_logprobs", 1.into());
                }
                Api::Completions => {
                    put("logprobs", 1.into());
                }
            }
            if self.dialect == Dialect::Vllm {
                put("return_token_ids", true.into());
            }
        }
        if let Some(grammar) = ask.grammar.as_deref() {
            match self.dialect {
                Dialect::Plain => None,
                Dialect::LlamaServer => put("grammar", grammar.into()),
                Dialect::Vllm => put("structured_outputs", json!({ "grammar": grammar })),
                Dialect::Sglang => put("ebnf", grammar.into()),
            };
        }
        for (name, value) in &self.extra {
            body.insert(name.clone(), value.clone());
        }
        body.retain(|name, value| !value.is_null() || !self.extra.contains_key(name));
        Value::Object(body)
    }
}

/// The number as people write it: 0.7, and not the 0.699999988… that single precision makes of it.
fn decimal(number: f32) -> Value {
    number.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::Sampling;

    fn ask() -> Ask {
        Ask {
            system: Some("Be brief.".to_owned()),
            prompt: "State: 1".to_owned(),
            grammar: Some("root ::= \"a\"".into()),
            sampling: Sampling { temperature: 0.7, top_p: 0.95, seed: (5 << 31) + 9 },
            max_tokens: 400,
            logprobs: true,
            affinity: 0,
        }
    }

    fn form(api: Api, dialect: Dialect, extra: Value) -> Form {
        let Value::Object(extra) = extra else { panic!("an object") };
        Form { api, dialect, extra }
    }

    #[test]
    fn a_chat_has_messages_and_a_grammar_in_the_servers_own_field() {
        let body = form(Api::Chat, Dialect::LlamaServer, json!({})).body(&ask(), "m");
        let expected = json!({
            "model": "m",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "State: 1"}],
            "max_tokens": 400, "temperature": 0.7, "top_p": 0.95, "seed": 9, "stream": false,
            "logprobs": true, "top_logprobs": 1, "grammar": "root ::= \"a\"",
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn a_text_to_continue_is_the_bare_prompt() {
        let body = form(Api::Completions, Dialect::Vllm, json!({})).body(&ask(), "m");
        let expected = json!({
            "model": "m", "prompt": "State: 1",
            "max_tokens": 400, "temperature": 0.7, "top_p": 0.95, "seed": 9, "stream": false,
            "logprobs": 1, "return_token_ids": true, "structured_outputs": {"grammar": "root ::= \"a\""},
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn what_is_not_wanted_or_not_known_is_left_out() {
        let ask = Ask { system: None, logprobs: false, ..ask() };
        let extra = json!({"seed": null, "top_p": 0.5, "chat_template_kwargs": {"enable_thinking": false}});
        let body = form(Api::Chat, Dialect::Plain, extra).body(&ask, "m");
        let expected = json!({
            "model": "m", "messages": [{"role": "user", "content": "State: 1"}],
            "max_tokens": 400, "temperature": 0.7, "top_p": 0.5, "stream": false,
            "chat_template_kwargs": {"enable_thinking": false},
        });
        assert_eq!(body, expected);
        let body = form(Api::Chat, Dialect::Sglang, json!({})).body(&Ask { grammar: None, ..ask }, "m");
        assert!(body.get("ebnf").is_none());
    }
}
