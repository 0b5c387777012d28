//! The start of a task's program, shared by all callers that need its declaration: none of them
//! starts it again, and a start that failed is not repeated at once.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use futures::executor::block_on;
use tokio::time::Instant;

use crate::AgentError;

/// How long a failed start also counts for later callers.
const FAILURE_STANDS: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
enum State {
    #[default]
    Idle,
    UnderWay,
    Failed(AgentError, Instant),
}

#[derive(Debug, Default)]
pub(super) struct Startup {
    state: Mutex<State>,
    changed: Condvar,
}

impl Startup {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Awaits `ready` on a thread of its own, unless that is under way or has just failed.
    pub fn begin(
        self: &Arc<Self>,
        ready: impl Future<Output = Result<(), AgentError>> + Send + 'static,
    ) {
        let mut state = self.state();
        let is_due = match &*state {
            State::Idle => true,
            State::UnderWay => false,
            State::Failed(_, at) => at.elapsed() >= FAILURE_STANDS,
        };
        if !is_due {
            return;
        }
        *state = State::UnderWay;
        drop(state);

        let this = Arc::clone(self);
        let run = move || {
            let ended = match block_on(ready) {
                Ok(()) => State::Idle,
                Err(error) => State::Failed(error, Instant::now()),
            };
            *this.state() = ended;
            this.changed.notify_all();
        };
        if thread::Builder::new().name("task-start".to_owned()).spawn(run).is_err() {
            *self.state() = State::Idle;
        }
    }

    /// Waits for the end of a start at most until then.
    ///
    /// # Errors
    /// Why the last one failed. `Ok(false)` if it is still under way.
    pub fn wait(&self, until: Instant) -> Result<bool, AgentError> {
        let left = until.saturating_duration_since(Instant::now());
        let is_under_way = |state: &mut State| matches!(state, State::UnderWay);
        let (state, _) = self
            .changed
            .wait_timeout_while(self.state(), left, is_under_way)
            .unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State::Idle => Ok(true),
            State::UnderWay => Ok(false),
            State::Failed(error, _) => Err(error.clone()),
        }
    }
}
