//! Measures the phases of a turn in the worker, only for turns whose caller asked for it.
#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use std::time::{Duration, Instant};

use super::wire::Timing;

/// The times at which a turn arrived, got a sequence, and got its first token.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnTimer {
    arrived: Instant,
    admitted: Option<Instant>,
    first_token: Option<Instant>,
}

impl TurnTimer {
    pub(super) fn start() -> Self {
        Self { arrived: Instant::now(), admitted: None, first_token: None }
    }

    /// The turn got a sequence.
    pub(super) fn admitted(&mut self) {
        self.admitted = Some(Instant::now());
    }

    /// A token was chosen; only the first one counts.
    pub(super) fn token(&mut self) {
        self.first_token.get_or_insert_with(Instant::now);
    }

    /// The durations if the turn ends now.
    pub(super) fn timing(&self) -> Timing {
        let end = Instant::now();
        let admitted = self.admitted.unwrap_or(end);
        let first_token = self.first_token.unwrap_or(end);
        Timing {
            queue_us: micros(admitted.duration_since(self.arrived)),
            prefill_us: micros(first_token.duration_since(admitted)),
            decode_us: micros(end.duration_since(first_token)),
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
