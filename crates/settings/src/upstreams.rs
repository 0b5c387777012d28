//! The configuration of a pool of OpenAI-compatible servers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::price::ModelPrice;

/// A pool of servers for one model: llama-server, vLLM, SGLang, Ollama, LM Studio or a hosted
/// service. Requests go to
/// the least loaded server; requests with a common prefix prefer the same one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UpstreamPool {
    /// The endpoint: `chat` (`/chat/completions`, for instruction-following models),
    /// `completions` (`/completions` with the bare prompt, for base models) or, for the verifier
    /// `reward`, vLLM's `score` (`/score` with two texts) or `pooling` (`/pooling` beside `/v1`).
    pub api: Api,
    /// What the servers understand beyond the common protocol. `llama_server`, `vllm` (0.12 or
    /// later) and `sglang` hold the output to the grammar of valid actions. `openai` (the hosted
    /// API), `ollama` and `lm_studio` take a JSON Schema instead: the answer is an object with the
    /// action in it, which is read as freely as under `plain`. `plain` uses neither grammars nor
    /// schemas. `auto` asks the first server that answers what it is, and falls back to `plain`.
    /// The dialect also says how `thinking` is passed.
    pub dialect: Dialect,
    /// Maximum time in milliseconds for which a server may be silent: until its answer begins, and
    /// between two parts of it. Answers are streamed, so a long answer needs no longer silence than
    /// a short one.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub idle_timeout_ms: u64,
    /// Timeout in milliseconds of one request, from connecting to the last byte of the response.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub timeout_ms: u64,
    /// Timeout in milliseconds for connecting.
    #[schemars(range(min = 1, max = 600_000))]
    pub connect_timeout_ms: u64,
    /// Maximum size of a response in bytes; a larger one is an error.
    #[schemars(range(min = 1_024, max = 1_073_741_824))]
    pub response_bytes_max: u64,
    /// Retries after a transient failure, on another server if there is one.
    #[schemars(range(min = 0, max = 100))]
    pub retries_max: u32,
    /// Maximum backoff in milliseconds before the first retry; it doubles with each one. The delay
    /// is drawn between 0 and this maximum (full jitter).
    #[schemars(range(min = 1, max = 600_000))]
    pub backoff_ms: u64,
    /// Upper limit in milliseconds of every delay, including a server's `Retry-After`.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub backoff_max_ms: u64,
    /// Maximum time in milliseconds for which a request waits for a server with capacity, over all
    /// its attempts.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub queue_timeout_ms: u64,
    /// Consecutive failures that open a server's circuit breaker for `breaker_ms`; 0 = never.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub breaker_failures: u32,
    /// Time in milliseconds for which an open circuit breaker rejects requests. After it, one trial
    /// request decides whether the breaker closes.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub breaker_ms: u64,
    /// Interval in milliseconds of health probes. A server that does not answer, or answers with a
    /// status of 500 or above, gets no requests until it recovers. 0 = off.
    #[schemars(range(min = 0, max = 86_400_000))]
    pub health_interval_ms: u64,
    /// Path of the health probe: relative to `url`, such as `models`, or with a leading slash
    /// relative to the server, such as `/health` (llama-server, vLLM, SGLang).
    pub health_path: String,
    /// Additional fields of every request as a JSON object, such as
    /// `'{"chat_template_kwargs": {"enable_thinking": false}}'`. They override other fields; `null`
    /// removes a field, for servers that do not support it.
    #[schemars(extend("format" = "json-object"))]
    pub extra: String,
    /// The price of its model's tokens, as a table. Omitted = none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ModelPrice")]
    pub price: Option<ModelPrice>,
    /// The servers, as a list of tables.
    #[schemars(length(max = 1_024))]
    pub upstreams: Vec<Upstream>,
}

/// One server of a pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    /// The base URL including the version, such as `http://127.0.0.1:8080/v1`, without a key.
    #[schemars(extend("format" = "url"))]
    pub url: String,
    /// The model's name on this server.
    pub model: String,
    /// The name of the environment variable that holds the API key, which is never stored in a
    /// file. Omitted = no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Maximum concurrent requests to this server: the number of sequences that it decodes in
    /// parallel.
    #[serde(default = "eight")]
    #[schemars(range(min = 1, max = 100_000))]
    pub concurrent_max: u32,
    /// Its share relative to servers with the same `concurrent_max`. A server with a weight near 0
    /// gets only the overflow of the others.
    #[serde(default = "one")]
    #[schemars(range(max = 1_000.0), extend("exclusiveMinimum" = 0.0))]
    pub weight: f64,
}

fn eight() -> u32 {
    8
}

fn one() -> f64 {
    1.0
}

/// The endpoint of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// System and user messages.
    Chat,
    /// A text to continue.
    Completions,
    /// A context and a text, which a reward model or cross-encoder scores.
    Score,
    /// A text, which a reward model scores.
    Pooling,
}

impl Api {
    /// Returns whether its answer is a score instead of text.
    pub fn scores(self) -> bool {
        matches!(self, Self::Score | Self::Pooling)
    }
}

/// What a server understands beyond the common protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Nothing.
    Plain,
    /// What the server says that it is.
    Auto,
    /// llama.cpp's server: field `grammar`.
    LlamaServer,
    /// vLLM: field `structured_outputs`.
    Vllm,
    /// SGLang: field `ebnf`.
    Sglang,
    /// The API of OpenAI: a JSON Schema, `max_completion_tokens`, `reasoning_effort`.
    Openai,
    /// Ollama: a JSON Schema, `reasoning_effort`.
    Ollama,
    /// LM Studio: a JSON Schema.
    LmStudio,
}

impl Dialect {
    /// The field of a request that holds the grammar, if there is one.
    pub fn grammar_field(self) -> Option<&'static str> {
        match self {
            Self::Plain | Self::Auto | Self::Openai | Self::Ollama | Self::LmStudio => None,
            Self::LlamaServer => Some("grammar"),
            Self::Vllm => Some("structured_outputs"),
            Self::Sglang => Some("ebnf"),
        }
    }

    /// Returns whether a request may ask for an answer of the form of a JSON Schema.
    pub fn takes_schemas(self) -> bool {
        matches!(self, Self::Openai | Self::Ollama | Self::LmStudio)
    }

    /// Its name in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Auto => "auto",
            Self::LlamaServer => "llama_server",
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::Openai => "openai",
            Self::Ollama => "ollama",
            Self::LmStudio => "lm_studio",
        }
    }
}

impl UpstreamPool {
    /// Returns whether its servers constrain a completion to the grammar of a request: its dialect
    /// has a field for it, which `extra` leaves alone.
    pub fn applies_grammars(&self) -> bool {
        self.applies_grammars_as(self.dialect)
    }

    /// Like [`Self::applies_grammars`], if its servers speak this dialect.
    pub fn applies_grammars_as(&self, dialect: Dialect) -> bool {
        let is_left = |field: &str| {
            let extra = serde_json::from_str::<Map<String, Value>>(&self.extra);
            extra.is_ok_and(|extra| !extra.contains_key(field))
        };
        dialect.grammar_field().is_some_and(is_left)
    }
}

impl Default for UpstreamPool {
    /// A pool without servers.
    fn default() -> Self {
        Self {
            api: Api::Chat,
            dialect: Dialect::Plain,
            idle_timeout_ms: 120_000,
            timeout_ms: 3_600_000,
            connect_timeout_ms: 5_000,
            response_bytes_max: 4_194_304,
            retries_max: 3,
            backoff_ms: 250,
            backoff_max_ms: 10_000,
            queue_timeout_ms: 60_000,
            breaker_failures: 5,
            breaker_ms: 10_000,
            health_interval_ms: 10_000,
            health_path: "models".to_owned(),
            extra: "{}".to_owned(),
            price: None,
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

    fn read(text: &str) -> Result<UpstreamPool, String> {
        let schema =
            SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        let schema = schema.into_generator().into_root_schema_for::<UpstreamPool>().to_value();

        let layer = Layer::text(text, "f.toml").map_err(|error| error.to_string())?;
        check(&Value::new(None, layer.0.clone()), &schema).map_err(|error| error.to_string())?;
        let merged = Config::builder().add_source(layer).build().unwrap();
        Ok(merged.try_deserialize().unwrap())
    }

    const SERVER: &str =
        "[[upstreams]]\nurl = \"https://host/v1\"\nmodel = \"m\"\nconcurrent_max = 4\n";

    #[test]
    fn omitted_options_have_defaults_and_pools_round_trip() {
        let mut pool =
            read(&format!("api = \"completions\"\ndialect = \"llama_server\"\n{SERVER}")).unwrap();
        let server = Upstream {
            url: "https://host/v1".to_owned(),
            model: "m".to_owned(),
            api_key_env: None,
            concurrent_max: 4,
            weight: 1.0,
        };

        let upstreams = vec![server];
        let expected = UpstreamPool {
            api: Api::Completions,
            dialect: Dialect::LlamaServer,
            upstreams,
            ..UpstreamPool::default()
        };
        assert_eq!(pool, expected);

        for key in [None, Some("HOST_KEY".to_owned())] {
            pool.upstreams[0].api_key_env = key;
            assert_eq!(read(&toml::to_string(&pool).unwrap()), Ok(pool.clone()));
        }
    }

    #[test]
    fn errors_name_their_line() {
        for (text, expected) in [
            (
                "api = \"chats\"",
                "f.toml:1: `api` names `chats`, which is not known; did you mean `chat`? Known: \
                 chat, comple",
            ),
            (
                "timeout_ms = 0",
                "f.toml:1: `timeout_ms` is 0, but must be an integer from 1 to 86400000",
            ),
            (
                "extra = \"[1]\"",
                "f.toml:1: `extra` is the text \"[1]\", but must be a JSON object, such as \"{}\"",
            ),
            ("retries = 3", "f.toml:1: unknown key `retries`"),
            (
                &SERVER.replace("https", "ftp"),
                "f.toml:2: `upstreams.url` is the text \"ftp://host/v1\", but must be a URL",
            ),
            (&SERVER.replace("model", "name"), "f.toml:3: unknown key `upstreams.name`"),
            (&SERVER.replace("model = \"m\"", ""), "f.toml:1: `upstreams.model` is missing"),
            (
                &format!("{SERVER}weight = 0.0"),
                "f.toml:5: `upstreams.weight` is the float 0.0, but must be a number above",
            ),
        ] {
            let message = read(text).unwrap_err();
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
