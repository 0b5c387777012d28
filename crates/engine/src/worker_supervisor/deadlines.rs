//! Decides what the pump waits for, and for how long.

use std::time::{Duration, Instant};

use super::{ContextRecord, ContextState, EngineError, Phase, WorkerHandle, WorkerSupervisor};

/// A worker that has turns counts as hung once it has been silent for this many of its slow decodes
/// (the 99th percentile).
const SILENT_DECODES: u32 = 50;
/// Shortest silence that counts as a hang: a busy machine stalls for seconds.
const SILENCE_MIN: Duration = Duration::from_secs(5);
/// Delay before writing again to a worker that does not read.
const BACKED_UP_RETRY: Duration = Duration::from_millis(5);
/// The pump's longest sleep. Nothing is due then, but a bound keeps the arithmetic simple.
const IDLE: Duration = Duration::from_hours(1);

impl WorkerSupervisor {
    pub(super) fn check_time(&mut self) {
        let now = Instant::now();
        if self.idle_deadline().is_some_and(|deadline| now >= deadline) {
            return self.rest();
        }

        let hung = match self.phase {
            Phase::Starting { until } if now >= until => Some(self.spec.start_timeout_ms),
            Phase::Ready => match self.opening_deadline() {
                Some((until, limit_ms)) => (now >= until).then_some(limit_ms),
                None if self.deadline().is_some_and(|deadline| now >= deadline) => {
                    Some(u64::try_from(self.silence_max().as_millis()).unwrap_or(u64::MAX))
                }
                None => None,
            },
            _ => None,
        };

        if let Some(deadline_ms) = hung {
            self.died(EngineError::WorkerHung { deadline_ms });
        }
    }

    /// The time by which the worker must have made its current contexts, and the limit for one. It
    /// is silent meanwhile.
    fn opening_deadline(&self) -> Option<(Instant, u64)> {
        let opening = self.contexts.values().filter_map(|context| match context.state {
            ContextState::Opening { until } => Some((until, context.spec.start_timeout_ms)),
            _ => None,
        });
        opening.max_by_key(|(until, _)| *until)
    }

    /// The time at which a worker without turns ends, if it does.
    fn idle_deadline(&self) -> Option<Instant> {
        let has_turns = !(self.sent.is_empty() && self.retries.is_empty()) || self.has_waiting();
        let stops = matches!(self.phase, Phase::Ready)
            && self.spec.idle_stop_ms > 0
            && !has_turns
            && self.opening_deadline().is_none();
        stops.then(|| self.used + Duration::from_millis(self.spec.idle_stop_ms))
    }

    fn deadline(&self) -> Option<Instant> {
        self.owed_since.map(|since| since + self.silence_max())
    }

    /// Longest silence of a healthy worker that has turns: a multiple of its slow decodes, once
    /// those are known.
    fn silence_max(&self) -> Duration {
        let limit = Duration::from_millis(self.spec.deadline_ms);
        // Contexts take turns, so the worker is silent for at most one decode of the slowest.
        let slowest = self.decode_p99_us.values().copied().max().unwrap_or(0);
        if slowest == 0 {
            return limit;
        }

        let slow = Duration::from_micros(slowest.into());
        (slow * SILENT_DECODES).max(SILENCE_MIN).min(limit)
    }

    pub(super) fn sleep(&self) -> Duration {
        let until = match self.phase {
            Phase::Starting { until } | Phase::Backoff { until } => Some(until),
            Phase::Ready => {
                let opening = self.opening_deadline().map(|(until, _)| until);
                opening.or_else(|| self.deadline()).or_else(|| self.idle_deadline())
            }
            Phase::Idle | Phase::Failed => None,
        };
        let contexts = self.contexts.values().filter_map(ContextRecord::retry_at);
        let until = contexts.chain(until).min();
        let sleep = until.map_or(IDLE, |until| until.saturating_duration_since(Instant::now()));

        let backed_up = self.worker.as_ref().is_some_and(WorkerHandle::is_backed_up);
        if backed_up { sleep.min(BACKED_UP_RETRY) } else { sleep }
    }
}
