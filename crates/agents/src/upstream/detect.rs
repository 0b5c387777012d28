//! Finds what kind of server answers at a URL: by its list of models, else by a route that only one
//! kind has.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Client, Response, Url};
use serde_json::Value;
use tokio::time::timeout;

use prime_settings::Dialect;

/// Longest time for one question.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum bytes of an answer that are read.
const BYTES_MAX: usize = 4 << 20;

/// The host of OpenAI's API.
const OPENAI_HOST: &str = "api.openai.com";

/// A route beside `/v1`, what its answer has, and which kind of server has it.
type Route = (&'static str, &'static [&'static str], Dialect);

/// The routes in the order in which they are asked, the most specific one first.
const ROUTES: [Route; 5] = [
    ("props", &["default_generation_settings", "build_info"], Dialect::LlamaServer),
    ("get_model_info", &["model_path"], Dialect::Sglang),
    ("api/v0/models", &["data"], Dialect::LmStudio),
    ("api/version", &["version"], Dialect::Ollama),
    ("version", &["version"], Dialect::Vllm),
];

/// The kind of server that lists these models as its own.
fn of_models(list: &Value) -> Option<Dialect> {
    let owners = list["data"].as_array()?.iter().filter_map(|entry| entry["owned_by"].as_str());
    owners.into_iter().find_map(|owner| match owner {
        "llamacpp" => Some(Dialect::LlamaServer),
        "vllm" => Some(Dialect::Vllm),
        "sglang" => Some(Dialect::Sglang),
        "library" => Some(Dialect::Ollama),
        "organization_owner" => Some(Dialect::LmStudio),
        _ => None,
    })
}

/// A URL with another path, relative to the server's `/v1` or beside it.
fn at(base: &Url, path: &str, is_beside: bool) -> Url {
    let mut url = base.clone();
    let folder = base.path().trim_end_matches('/');
    let folder = if is_beside { folder.strip_suffix("/v1").unwrap_or(folder) } else { folder };
    url.set_path(&format!("{folder}/{path}"));
    url
}

async fn body(mut response: Response) -> Option<Value> {
    let mut bytes = Vec::new();
    while let Some(part) = response.chunk().await.ok()? {
        if bytes.len() + part.len() > BYTES_MAX {
            return None;
        }
        bytes.extend_from_slice(&part);
    }
    serde_json::from_slice(&bytes).ok()
}

/// What a server says to one question: its status, and its JSON where the status is a success.
async fn asked(client: &Client, url: Url, key: Option<&HeaderValue>) -> Option<(u16, Value)> {
    let mut request = client.get(url);
    if let Some(key) = key {
        request = request.header(AUTHORIZATION, key);
    }
    let answer = async {
        let response = request.send().await.ok()?;
        let status = response.status();
        let found = if status.is_success() { body(response).await } else { None };
        Some((status.as_u16(), found.unwrap_or(Value::Null)))
    };
    timeout(TIMEOUT, answer).await.ok().flatten()
}

/// The dialect of the server with this base URL; `plain` if it answers and is of no known kind,
/// `None` if it does not answer. Takes a few seconds at most.
pub async fn detected(client: &Client, base: &Url, key: Option<&HeaderValue>) -> Option<Dialect> {
    if base.host_str() == Some(OPENAI_HOST) {
        return Some(Dialect::Openai);
    }

    let (_, list) = asked(client, at(base, "models", false), key).await?;
    if let Some(found) = of_models(&list) {
        return Some(found);
    }
    for (path, fields, dialect) in ROUTES {
        let answer = asked(client, at(base, path, true), key).await;
        let has = |value: &Value| fields.iter().any(|field| value.get(*field).is_some());
        if answer.is_some_and(|(_, value)| has(&value)) {
            return Some(dialect);
        }
    }
    Some(Dialect::Plain)
}

/// What a dialect means for a run, in words.
pub fn described(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::LlamaServer => "llama.cpp's server",
        Dialect::Vllm => "vLLM",
        Dialect::Sglang => "SGLang",
        Dialect::Openai => "OpenAI's API",
        Dialect::Ollama => "Ollama",
        Dialect::LmStudio => "LM Studio",
        Dialect::Plain | Dialect::Auto => "a server of an unknown kind",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_of_models_tells_its_server() {
        for (owner, expected) in [
            ("llamacpp", Some(Dialect::LlamaServer)),
            ("vllm", Some(Dialect::Vllm)),
            ("sglang", Some(Dialect::Sglang)),
            ("library", Some(Dialect::Ollama)),
            ("organization_owner", Some(Dialect::LmStudio)),
            ("somebody", None),
        ] {
            let list = json!({"data": [{"id": "a"}, {"id": "b", "owned_by": owner}]});
            assert_eq!(of_models(&list), expected, "{owner}");
        }
        assert_eq!(of_models(&json!({"data": []})), None);
        assert_eq!(of_models(&json!("a page")), None);
    }

    #[test]
    fn routes_lie_beside_the_version() {
        let url = |text: &str| Url::parse(text).unwrap();
        for (base, beside, below) in [
            ("http://h:1/v1", "http://h:1/props", "http://h:1/v1/models"),
            ("http://h:1/gate/v1/", "http://h:1/gate/props", "http://h:1/gate/v1/models"),
            ("http://h:1/gate", "http://h:1/gate/props", "http://h:1/gate/models"),
        ] {
            assert_eq!(at(&url(base), "props", true).as_str(), beside);
            assert_eq!(at(&url(base), "models", false).as_str(), below);
        }
    }
}
