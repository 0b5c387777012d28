//! Why an agent failed a turn.

use prime_protocol::Usage;
use serde::{Deserialize, Serialize};

/// The kind of a failure: a label in metrics and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// No answer in time.
    Timeout,
    /// The connection could not be made, or broke.
    Unreachable,
    /// The other side is overloaded (HTTP status 429 or 503), or has no capacity left.
    Overloaded,
    /// The other side failed (HTTP status 5xx).
    ServerError,
    /// The other side rejected the request (HTTP status 4xx): a wrong key, model or URL.
    Refused,
    /// The answer does not have the required form.
    Malformed,
    /// The prompt or the answer is longer than allowed.
    TooLong,
    /// The agent's program exited.
    Died,
    /// The agent's own code panicked.
    Panicked,
    /// The engine failed.
    Engine,
    /// The agent can never do such a turn.
    Unsupported,
    /// A task's program contradicts itself: nothing that the run rests on can be relied on.
    Inconsistent,
}

impl Failure {
    /// All kinds, in the order of the enum.
    pub const ALL: [Self; 12] = [
        Self::Timeout,
        Self::Unreachable,
        Self::Overloaded,
        Self::ServerError,
        Self::Refused,
        Self::Malformed,
        Self::TooLong,
        Self::Died,
        Self::Panicked,
        Self::Engine,
        Self::Unsupported,
        Self::Inconsistent,
    ];

    /// The label in metrics and events.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::Overloaded => "overloaded",
            Self::ServerError => "server_error",
            Self::Refused => "refused",
            Self::Malformed => "malformed",
            Self::TooLong => "too_long",
            Self::Died => "died",
            Self::Panicked => "panicked",
            Self::Engine => "engine",
            Self::Unsupported => "unsupported",
            Self::Inconsistent => "inconsistent",
        }
    }

    /// Returns whether a retry may help.
    pub fn is_transient(self) -> bool {
        !matches!(self, Self::Refused | Self::Engine | Self::Unsupported | Self::Inconsistent)
    }
}

/// An agent failed a turn. Transient failures are retried a few times before the trajectory fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{agent}: {reason}")]
pub struct AgentError {
    /// Role and name, such as "executor `llama`".
    pub agent: String,
    /// The kind of failure.
    pub failure: Failure,
    /// What happened and what to do.
    pub reason: String,
    /// True if a retry may help.
    pub is_transient: bool,
    /// Tokens that were spent nevertheless, as far as they are known.
    pub usage: Usage,
}

impl AgentError {
    /// An error that is transient if its kind is.
    pub fn new(agent: impl Into<String>, failure: Failure, reason: impl Into<String>) -> Self {
        Self {
            agent: agent.into(),
            failure,
            reason: reason.into(),
            is_transient: failure.is_transient(),
            usage: Usage::default(),
        }
    }

    /// The error with tokens that it cost.
    #[must_use]
    pub fn costing(mut self, usage: Usage) -> Self {
        self.usage.add(usage);
        self
    }
}
