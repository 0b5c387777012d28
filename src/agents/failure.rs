//! Why an agent could not do a turn.

use serde::{Deserialize, Serialize};

/// What kind of failure it was: the label in metrics and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// No answer within the time that the agent has.
    Timeout,
    /// No connection could be made, or it broke.
    Unreachable,
    /// The other side has too much to do (HTTP status 429 or 503), or every place there is taken.
    Overloaded,
    /// The other side failed (HTTP status 5xx).
    ServerError,
    /// The other side does not take such a request (HTTP status 4xx): a wrong key, model or address.
    Refused,
    /// The answer is not of the form that was asked for.
    Malformed,
    /// The answer is longer than allowed.
    TooLong,
    /// The agent's program ended.
    Died,
    /// The agent's own code panicked.
    Panicked,
    /// The engine could not do it.
    Engine,
    /// The agent cannot do such a turn at all.
    Unsupported,
}

impl Failure {
    pub const ALL: [Self; 11] = [
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
        }
    }

    /// Whether trying again may help.
    pub fn is_transient(self) -> bool {
        !matches!(self, Self::Refused | Self::Engine | Self::Unsupported)
    }
}

/// An agent could not do a turn. The turn is tried again a few times before its trajectory fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{agent}: {reason}")]
pub struct AgentError {
    /// The role and the name, as "executor `llama`".
    pub agent: String,
    pub failure: Failure,
    /// What happened and what to do, for people.
    pub reason: String,
    /// Whether trying again may help.
    pub is_transient: bool,
}

impl AgentError {
    /// A failure that is tried again if its kind is one that may pass.
    pub fn new(agent: impl Into<String>, failure: Failure, reason: impl Into<String>) -> Self {
        Self { agent: agent.into(), failure, reason: reason.into(), is_transient: failure.is_transient() }
    }
}
