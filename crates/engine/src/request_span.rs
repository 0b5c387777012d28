//! The span `engine_request`: from `submit` to the reply, a child of the span that is current at
//! `submit`.
//!
//! Without a subscriber that enables level debug, there is no span, no clock is read and the worker
//! measures nothing.
#![allow(clippy::disallowed_methods, reason = "spans record real time")]

use std::time::{Duration, Instant};

use tracing::Span;
use tracing::field::Empty;

use super::wire::Timing;
use super::{EngineError, Generation};

/// The span of one request, if a subscriber records it.
#[derive(Debug)]
pub(super) struct RequestSpan(Option<Box<Open>>);

#[derive(Debug)]
struct Open {
    span: Span,
    submitted: Instant,
    /// When a worker last got the request.
    sent: Option<Instant>,
}

impl RequestSpan {
    pub(super) fn new() -> Self {
        let span = tracing::debug_span!(
            "engine_request",
            prompt_tokens = Empty,
            tokens = Empty,
            queue_ms = Empty,
            prefill_ms = Empty,
            decode_ms = Empty,
            error = Empty,
        );

        let open = (!span.is_disabled())
            .then(|| Box::new(Open { span, submitted: Instant::now(), sent: None }));
        Self(open)
    }

    /// Returns whether the worker is to measure the request.
    pub(super) fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn sent(&mut self) {
        if let Some(open) = &mut self.0 {
            open.sent = Some(Instant::now());
        }
    }

    /// Records the outcome and closes the span.
    pub(super) fn close(
        &mut self,
        result: &Result<Generation, EngineError>,
        timing: Option<Timing>,
    ) {
        let Some(open) = self.0.take() else { return };
        let Open { span, submitted, sent } = *open;

        // The time in queue: here until the last attempt was sent, then in the worker.
        let here = sent.unwrap_or_else(Instant::now).duration_since(submitted);
        let there = timing.map_or(Duration::ZERO, |timing| Duration::from_micros(timing.queue_us));
        span.record("queue_ms", millis(here + there));

        if let Some(Timing { prefill_us, decode_us, .. }) = timing {
            span.record("prefill_ms", millis(Duration::from_micros(prefill_us)));
            span.record("decode_ms", millis(Duration::from_micros(decode_us)));
        }

        match result {
            Ok(generation) => {
                span.record("prompt_tokens", generation.prompt_tokens);
                span.record("tokens", generation.tokens.len());
            }
            Err(error) => {
                span.record("error", tracing::field::display(error));
            }
        }
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_subscriber_there_is_no_span() {
        let mut span = RequestSpan::new();
        assert!(!span.is_enabled());
        span.sent();
        span.close(&Err(EngineError::Cancelled), None);
        assert!(span.0.is_none());
    }
}
