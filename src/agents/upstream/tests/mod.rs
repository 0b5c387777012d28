//! The pool against servers that behave and servers that do not.

mod attempts;
mod failures;
mod health;
mod limits;
mod queue;
mod replies;
mod secrets;
mod server;

use crate::agents::Sampling;
use crate::agents::model::Ask;
use crate::settings::{Upstream, Upstreams};

use super::OpenAiModel;

/// A question; its affinity is `affinity`.
fn ask(affinity: u64) -> Ask {
    Ask {
        system: Some("Be brief.".to_owned()),
        prompt: "State: 1".to_owned(),
        grammar: None,
        sampling: Sampling { temperature: 0.5, top_p: 1.0, seed: 7 },
        max_tokens: 16,
        logprobs: false,
        affinity,
    }
}

fn upstream(url: &str) -> Upstream {
    let (url, model) = (url.to_owned(), "m".to_owned());
    Upstream { url, model, api_key_env: None, concurrent_max: 8, weight: 1.0 }
}

/// A pool of these servers that never waits long for nothing: no looks at them, short pauses.
fn pool(urls: &[&str]) -> Upstreams {
    Upstreams {
        timeout_ms: 20_000,
        backoff_ms: 2,
        backoff_max_ms: 4,
        queue_timeout_ms: 20_000,
        breaker_failures: 0,
        health_interval_ms: 0,
        upstreams: urls.iter().map(|url| upstream(url)).collect(),
        ..Upstreams::default()
    }
}

fn model(settings: &Upstreams) -> OpenAiModel {
    OpenAiModel::new(settings, |_| None).unwrap()
}
