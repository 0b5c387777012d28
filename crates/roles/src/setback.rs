//! What an agent that waits has met and still tries to overcome, such as a server's answer that it
//! asks for again. An agent's result comes too late if its run ends first, and this is then the
//! reason that its owner learns.

use std::cell::Cell;

use super::AgentError;

thread_local! {
    /// Set and taken within one poll of one agent.
    static REPORTED: Cell<Option<AgentError>> = const { Cell::new(None) };
}

/// Reports what the turn at hand has met. Called by an agent while its future is polled.
pub fn report(error: AgentError) {
    REPORTED.set(Some(error));
}

/// Polls an agent's future; also returns what it has reported meanwhile.
pub fn observed<T>(poll: impl FnOnce() -> T) -> (T, Option<AgentError>) {
    // The task that polled before may not have asked for it.
    drop(REPORTED.take());
    (poll(), REPORTED.take())
}
