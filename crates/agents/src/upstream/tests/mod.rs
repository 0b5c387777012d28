//! The pool against well-behaved and misbehaving servers.

mod failures;
mod health;
mod permits;
mod queue;
mod responses;
mod retry;
mod secrets;
mod server;

use crate::Sampling;
use crate::model::CompletionRequest;
use prime_settings::{Upstream, UpstreamPool};

use super::OpenAiModel;

/// A request with this affinity.
fn request(affinity: u64) -> CompletionRequest {
    CompletionRequest {
        system: Some("Be brief.".to_owned()),
        sampling: Sampling { temperature: 0.5, top_p: 1.0, seed: 7 },
        max_tokens: 16,
        affinity,
        ..CompletionRequest::raw("n-queens", "State: 1")
    }
}

fn upstream(url: &str) -> Upstream {
    let (url, model) = (url.to_owned(), "m".to_owned());
    Upstream { url, model, api_key_env: None, concurrent_max: 8, weight: 1.0 }
}

/// A pool of these servers without health probes and with short delays.
fn pool(urls: &[&str]) -> UpstreamPool {
    UpstreamPool {
        timeout_ms: 20_000,
        backoff_ms: 2,
        backoff_max_ms: 4,
        queue_timeout_ms: 20_000,
        breaker_failures: 0,
        health_interval_ms: 0,
        upstreams: urls.iter().map(|url| upstream(url)).collect(),
        ..UpstreamPool::default()
    }
}

fn model(settings: &UpstreamPool) -> OpenAiModel {
    OpenAiModel::new(settings, |_| None).unwrap()
}
