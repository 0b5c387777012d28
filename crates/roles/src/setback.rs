//! What a waiting agent has met and still tries to overcome, such as a server's error that it
//! retries. If the run ends before the agent's result arrives, its owner learns this as the reason.

use std::cell::Cell;

use super::AgentError;

thread_local! {
    /// Set and taken within one poll of one agent.
    static REPORTED: Cell<Option<AgentError>> = const { Cell::new(None) };
}

/// Reports what the current turn has met. An agent calls this while its future is polled.
pub fn report(error: AgentError) {
    REPORTED.set(Some(error));
}

/// Polls an agent's future; also returns what it has reported meanwhile.
pub fn observed<T>(poll: impl FnOnce() -> T) -> (T, Option<AgentError>) {
    // The task that polled before may not have asked for it.
    drop(REPORTED.take());
    (poll(), REPORTED.take())
}
