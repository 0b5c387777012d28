//! What is chosen for a server that speaks OpenAI's protocol.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use prime_http_client::{builder, root_cause};
use prime_printable::printable_line;
use reqwest::header::HeaderValue;
use serde_json::{Value, json};

use super::{Chosen, NAME, set};
use prime_agent_set::upstream::{described, detected};
use prime_settings::Dialect;

/// How long the server may take to list its models.
const LISTING_TIMEOUT: Duration = Duration::from_secs(20);
/// Longest list of models, in bytes.
const LIST_BYTES_MAX: usize = 4 << 20;
/// Tokens of a free proposal, in which a model may think.
const MAX_TOKENS: u32 = 4096;
/// Tokens of a proposal under a grammar.
const TOKENS_OF_ACTION: u32 = 256;
/// The variable of the environment that has the key, if the server needs one.
const KEY_VARIABLE: &str = "OPENAI_API_KEY";

/// The URL without a name after `#` and without a slash at its end, and the name.
fn parts(url: &str) -> (&str, Option<&str>) {
    let (base, name) = url.split_once('#').map_or((url, None), |(base, name)| (base, Some(name)));
    (base.trim_end_matches('/'), name.filter(|name| !name.is_empty()))
}

fn key() -> Option<String> {
    let found = std::env::vars_os().find(|(name, _)| name == KEY_VARIABLE);
    found.and_then(|(_, key)| key.into_string().ok()).filter(|key| !key.is_empty())
}

/// The models that a server lists, and what it is.
///
/// # Errors
/// When it cannot be asked, or does not answer with JSON.
pub(super) fn asked(url: &str) -> anyhow::Result<(Value, Dialect)> {
    let (base, _) = parts(url);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(listed(base)).with_context(|| {
        format!(
            "--model {base}: start the server, or correct the URL, which most servers end with /v1"
        )
    })
}

async fn listed(base: &str) -> anyhow::Result<(Value, Dialect)> {
    let client = builder(base.starts_with("https:")).timeout(LISTING_TIMEOUT).build()?;
    let mut request = client.get(format!("{base}/models"));
    if let Some(key) = key() {
        request = request.bearer_auth(key);
    }

    let no_answer = |error: reqwest::Error| {
        anyhow::anyhow!("{base}/models gives no answer: {}", root_cause(&error))
    };
    let mut response = request.send().await.map_err(no_answer)?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(no_answer)? {
        ensure!(body.len() + chunk.len() <= LIST_BYTES_MAX, "{base}/models does not end");
        body.extend_from_slice(&chunk);
    }

    let start: String = String::from_utf8_lossy(&body).chars().take(120).collect();
    if matches!(status.as_u16(), 401 | 403) {
        bail!("the server wants a key: set {KEY_VARIABLE} (status {status})");
    }
    ensure!(status.is_success(), "{base}/models answers with status {status}");
    let listed = serde_json::from_slice(&body).map_err(|_| {
        let start = printable_line(&start).into_owned();
        anyhow::anyhow!("{base}/models answers with something that is not JSON: {start:?}")
    })?;

    let authorization = key().map(|key| HeaderValue::from_str(&format!("Bearer {key}")));
    let authorization = authorization.transpose().context("the key has odd characters")?;
    let url = base.parse().context("it is not a URL")?;
    let dialect = detected(&client, &url, authorization.as_ref()).await;
    Ok((listed, dialect.unwrap_or(Dialect::Plain)))
}

/// The options for a server that lists these models.
///
/// # Errors
/// When it lists none, or not the one that is named.
pub(super) fn chosen(url: &str, listed: &Value, dialect: Dialect) -> anyhow::Result<Chosen> {
    let (base, wanted) = parts(url);
    let entries = listed["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<&str> = entries.iter().filter_map(|entry| entry["id"].as_str()).collect();
    let shown = || {
        let first: Vec<_> =
            names.iter().take(8).map(|name| printable_line(name).into_owned()).collect();
        let more = if names.len() > 8 { ", …" } else { "" };
        format!("{}{more}", first.join(", "))
    };

    let name = match wanted {
        Some(wanted) if names.is_empty() || names.contains(&wanted) => wanted,
        Some(wanted) => bail!("--model {base}: it has no model `{wanted}`, but: {}", shown()),
        None => names.first().copied().with_context(|| {
            format!("--model {base}: it lists no model: load one, or write {base}#NAME")
        })?,
    };

    let is_held = dialect.grammar_field().is_some();
    // A grammar begins with the answer: a model that can be told not to think is told.
    let thinking = if is_held { "off" } else { "model" };

    let mut server = json!({"url": base, "model": name});
    if key().is_some() {
        server["api_key_env"] = KEY_VARIABLE.into();
    }
    let max_tokens = if is_held { TOKENS_OF_ACTION } else { MAX_TOKENS };
    let sets = vec![
        // A table of TOML has `=` where an object of JSON has `:`.
        format!("pools.{NAME}.upstreams=[{}]", inline_table(&server)),
        set(&format!("pools.{NAME}.dialect"), dialect.name()),
        // A large model on a CPU needs minutes for a long prompt.
        set(&format!("pools.{NAME}.idle_timeout_ms"), 600_000),
        set("agents.executor.implementation", "openai"),
        set("agents.executor.pool", NAME),
        set("agents.executor.prompt", "step"),
        set("agents.executor.history", "window"),
        set("agents.executor.feedback", "explained"),
        set("agents.executor.grammar", is_held),
        set("agents.executor.derive", "never"),
        set("agents.executor.thinking", thinking),
        set("agents.executor.max_tokens", max_tokens),
    ];

    let others = match names.len() {
        0 | 1 => String::new(),
        count if wanted.is_none() => {
            format!(" (the first of {count}: {}; {base}#NAME chooses)", shown())
        }
        _ => String::new(),
    };
    let held = if is_held {
        "lines held to the task's grammar, thinking off"
    } else if dialect.takes_schemas() {
        "answers in the form of a JSON Schema"
    } else {
        "free answers whose last action counts (no grammar is known for it)"
    };
    let line = format!(
        "model {} at {base}{others}: {} (dialect `{}`), prompt `step`, {held}, at most \
         {max_tokens} tokens an answer; --set overrides each (pools.{NAME}, agents.executor)",
        printable_line(name),
        described(dialect),
        dialect.name()
    );
    Ok(Chosen { sets, line })
}

/// A flat object as an inline table of TOML.
fn inline_table(object: &Value) -> String {
    let entries = object.as_object().into_iter().flatten();
    let entries: Vec<_> = entries.map(|(key, value)| format!("{key} = {value}")).collect();
    format!("{{{}}}", entries.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(chosen: &Chosen, expected: &str) -> bool {
        chosen.sets.iter().any(|set| set.starts_with(expected))
    }

    #[test]
    fn the_only_model_is_taken_and_a_known_server_gets_its_dialect() {
        let listed = json!({"data": [{"id": "qwen", "owned_by": "llamacpp"}]});
        let own = chosen("http://127.0.0.1:8080/v1/", &listed, Dialect::LlamaServer).unwrap();
        assert!(
            has(
                &own,
                "pools.model.upstreams=[{url = \"http://127.0.0.1:8080/v1\", model = \"qwen\""
            ),
            "{:?}",
            own.sets
        );
        assert!(has(&own, "pools.model.dialect=\"llama_server\""));
        assert!(has(&own, "agents.executor.grammar=true"));
        assert!(has(&own, "agents.executor.thinking=\"off\""));

        let hosted = json!({"data": [{"id": "a\u{1b}[2J"}, {"id": "b"}]});
        let own = chosen("https://host/v1", &hosted, Dialect::Openai).unwrap();
        assert!(has(&own, "pools.model.dialect=\"openai\""), "{:?}", own.sets);
        assert!(has(&own, "agents.executor.grammar=false"), "{:?}", own.sets);
        assert!(
            own.line.contains("the first of 2") && !own.line.contains('\u{1b}'),
            "{}",
            own.line
        );
    }

    #[test]
    fn a_named_model_must_be_there() {
        let listed = json!({"data": [{"id": "a"}, {"id": "b"}]});
        assert!(
            chosen("http://h/v1#b", &listed, Dialect::Plain)
                .unwrap()
                .line
                .starts_with("model b at")
        );
        let said = chosen("http://h/v1#c", &listed, Dialect::Plain).unwrap_err().to_string();
        assert!(said.contains("no model `c`") && said.contains("a, b"), "{said}");
        // A server without a list is taken at the user's word.
        assert!(chosen("http://h/v1#c", &json!({}), Dialect::Plain).is_ok());
        assert!(chosen("http://h/v1", &json!({"data": []}), Dialect::Plain).is_err());
    }
}
