//! What follows the death of a worker.

use std::time::Instant;

use super::{ContextId, EngineError, Phase, Restart, WorkerHandle, WorkerSupervisor};

/// Most times that a turn is sent to a worker before it fails.
const ATTEMPTS_MAX: u8 = 4;

impl WorkerSupervisor {
    /// Ends the worker, takes its turns back, and decides whether to start another.
    pub(super) fn died(&mut self, cause: EngineError) {
        let ending = self.worker.take().map(WorkerHandle::end);
        // How the process ended explains more than the closed socket that gave it away.
        let cause = match (cause, ending) {
            (EngineError::WorkerDied { detail }, Some(ending)) if detail.is_empty() => {
                EngineError::WorkerDied { detail: ending }
            }
            (EngineError::WorkerDied { detail }, Some(ending)) => {
                EngineError::WorkerDied { detail: format!("{detail}; {ending}") }
            }
            (cause, _) => cause,
        };

        if !self.was_ready {
            // The first worker is not restarted: its error shows what is wrong with the
            // specification.
            self.contexts.values_mut().for_each(|context| context.started(Err(cause.clone())));
            self.phase = Phase::Failed;
            return;
        }

        let given_up: Vec<ContextId> = self
            .contexts
            .iter_mut()
            .filter_map(|(id, context)| context.lost_worker(&cause).then_some(*id))
            .collect();
        self.take_back(&cause);
        given_up.into_iter().for_each(|id| self.close(id));

        let now = Instant::now();
        let Restart { pause, lost_after } = self.restarts.died(now);
        if let Some(deaths) = lost_after {
            let retry_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            let lost = EngineError::Lost { deaths, retry_ms, last: cause.to_string() };
            tracing::error!(
                engine = self.spec.name,
                reason = %lost,
                "an engine is out of service, its turns wait"
            );
            self.contexts.values().for_each(|context| context.status.lost(lost.clone()));
        }

        self.phase = Phase::Backoff { until: now + pause };
    }

    /// Takes back the turns that were lost with a worker, and fails those that have used up their
    /// attempts.
    pub(super) fn take_back(&mut self, cause: &EngineError) {
        self.owed_since = None;
        let was_alone = std::mem::take(&mut self.alone);
        // Newest first, so that pushing them to the front restores their order.
        for pending in self.sent.take().rev() {
            if pending.attempts >= ATTEMPTS_MAX {
                pending.reply.send(Err(cause.clone()));
            } else if was_alone {
                // The others go first: if something else kills the workers, no single turn uses up
                // all its attempts.
                self.retries.push_back(pending);
            } else {
                self.retries.push_front(pending);
            }
        }
    }
}
