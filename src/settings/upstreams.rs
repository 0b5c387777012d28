//! A pool of servers that speak OpenAI's protocol, as it is configured. No logic here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A pool of servers that answer for one model: llama-server, vLLM, SGLang or a hosted service. Requests go to the server
/// with the least load, and those that begin alike to the same one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Upstreams {
    /// What is asked: `chat` (`/chat/completions`, for models that follow instructions) or `completions` (`/completions`
    /// with the bare prompt, for models that continue a text).
    pub api: Api,
    /// How a grammar is handed over, which holds answers to the form of an action: `plain` (not at all; the model answers
    /// freely), `llama_server`, `vllm` (from 0.12) or `sglang`.
    pub dialect: Dialect,
    /// Longest time in milliseconds of one request, from the connection to the last byte of the answer.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub timeout_ms: u64,
    /// Longest time in milliseconds until a connection is made.
    #[schemars(range(min = 1, max = 600_000))]
    pub connect_timeout_ms: u64,
    /// Most bytes of an answer; a longer one is given up.
    #[schemars(range(min = 1_024, max = 1_073_741_824))]
    pub answer_bytes_max: u64,
    /// Further attempts after one that failed and may go better: on another server where there is one.
    #[schemars(range(min = 0, max = 100))]
    pub retries_max: u32,
    /// Longest pause in milliseconds before the first further attempt. It doubles with each one; the pause itself is drawn
    /// between 0 and it.
    #[schemars(range(min = 1, max = 600_000))]
    pub backoff_ms: u64,
    /// Longest pause in milliseconds before any attempt, also where a server asks for a longer one (`Retry-After`).
    #[schemars(range(min = 1, max = 3_600_000))]
    pub backoff_max_ms: u64,
    /// Longest time in milliseconds that a request waits for a server that has a place for it, over all its attempts.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub queue_timeout_ms: u64,
    /// Failures in a row after which a server is left alone for `breaker_ms`; 0 = never.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub breaker_failures: u32,
    /// Time in milliseconds that a server is left alone. Then it gets one request on trial, which decides.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub breaker_ms: u64,
    /// Time in milliseconds between two looks at whether a server is there. One that does not answer, or with a status of
    /// 500 and above, gets no requests until it does. 0 = off.
    #[schemars(range(min = 0, max = 86_400_000))]
    pub health_interval_ms: u64,
    /// What is asked for then: a path below `url`, such as `models`, or with a slash at its beginning a path of the whole
    /// server, such as `/health` (of llama-server, vLLM and SGLang).
    pub health_path: String,
    /// Further fields of every request, as a JSON object, such as `'{"chat_template_kwargs": {"enable_thinking": false}}'`.
    /// They replace what is sent otherwise; `null` leaves a field out, for servers that do not know it.
    #[schemars(extend("format" = "json-object"))]
    pub extra: String,
    /// The servers, as a list of tables.
    #[schemars(length(max = 1_024))]
    pub upstreams: Vec<Upstream>,
}

/// One server of a pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    /// The address up to its version, such as `http://127.0.0.1:8080/v1`, without a key in it.
    #[schemars(extend("format" = "url"))]
    pub url: String,
    /// The model's name on this server.
    pub model: String,
    /// The NAME of the environment variable that holds the key. The key itself is in no file. Left out = no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Most requests that this server gets at the same time: the sequences that it can decode at once.
    #[schemars(range(min = 1, max = 100_000))]
    pub concurrent_max: u32,
    /// Its share beside others of the same `concurrent_max`. A server with a weight near 0 is asked only when the others
    /// are full.
    #[serde(default = "one")]
    #[schemars(range(max = 1_000.0), extend("exclusiveMinimum" = 0.0))]
    pub weight: f64,
}

fn one() -> f64 {
    1.0
}

/// Which of a server's two ways to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// Messages of a system and a user.
    Chat,
    /// A text to continue.
    Completions,
}

/// How a server takes a grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Not at all.
    Plain,
    /// Field `grammar`.
    LlamaServer,
    /// Field `structured_outputs`.
    Vllm,
    /// Field `ebnf`.
    Sglang,
}

impl Default for Upstreams {
    /// A pool without servers.
    fn default() -> Self {
        Self {
            api: Api::Chat,
            dialect: Dialect::Plain,
            timeout_ms: 120_000,
            connect_timeout_ms: 5_000,
            answer_bytes_max: 4_194_304,
            retries_max: 3,
            backoff_ms: 250,
            backoff_max_ms: 10_000,
            queue_timeout_ms: 60_000,
            breaker_failures: 5,
            breaker_ms: 10_000,
            health_interval_ms: 10_000,
            health_path: "models".to_owned(),
            extra: "{}".to_owned(),
            upstreams: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use config::{Config, Value};
    use schemars::generate::SchemaSettings;

    use super::super::check::check;
    use super::super::layers::Layer;
    use super::*;

    fn read(text: &str) -> Result<Upstreams, String> {
        let schema = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        let schema = schema.into_generator().into_root_schema_for::<Upstreams>().to_value();
        let layer = Layer::text(text, "f.toml").map_err(|error| error.to_string())?;
        check(&Value::new(None, layer.0.clone()), &schema).map_err(|error| error.to_string())?;
        let merged = Config::builder().add_source(layer).build().unwrap();
        Ok(merged.try_deserialize().unwrap())
    }

    const SERVER: &str = "[[upstreams]]\nurl = \"https://host/v1\"\nmodel = \"m\"\nconcurrent_max = 4\n";

    #[test]
    fn what_is_left_out_has_a_default_and_what_is_written_is_read_again() {
        let mut pool = read(&format!("api = \"completions\"\ndialect = \"llama_server\"\n{SERVER}")).unwrap();
        let server = Upstream {
            url: "https://host/v1".to_owned(),
            model: "m".to_owned(),
            api_key_env: None,
            concurrent_max: 4,
            weight: 1.0,
        };
        let upstreams = vec![server];
        let expected =
            Upstreams { api: Api::Completions, dialect: Dialect::LlamaServer, upstreams, ..Upstreams::default() };
        assert_eq!(pool, expected);
        for key in [None, Some("HOST_KEY".to_owned())] {
            pool.upstreams[0].api_key_env = key;
            assert_eq!(read(&toml::to_string(&pool).unwrap()), Ok(pool.clone()));
        }
    }

    #[test]
    fn mistakes_are_found_where_they_stand() {
        for (text, expected) in [
            (
                "api = \"chats\"",
                "f.toml:1: `api` names `chats`, which is not known; did you mean `chat`? Known: chat, comple",
            ),
            ("timeout_ms = 0", "f.toml:1: `timeout_ms` is 0, but must be a whole number from 1 to 3600000"),
            ("extra = \"[1]\"", "f.toml:1: `extra` is the text \"[1]\", but must be a JSON object, such as \"{}\""),
            ("retries = 3", "f.toml:1: unknown key `retries`"),
            (
                &SERVER.replace("https", "ftp"),
                "f.toml:2: `upstreams.url` is the text \"ftp://host/v1\", but must be an address",
            ),
            (&SERVER.replace("model", "name"), "f.toml:3: unknown key `upstreams.name`"),
            (&SERVER.replace("model = \"m\"", ""), "f.toml:1: `upstreams.model` is missing"),
            (
                &format!("{SERVER}weight = 0.0"),
                "f.toml:5: `upstreams.weight` is the fraction 0.0, but must be a number above",
            ),
        ] {
            let message = read(text).unwrap_err();
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
