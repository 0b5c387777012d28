//! The budget of a run. Each limit is checked on every step; the first one reached ends the run and names its outcome.

use serde::{Deserialize, Serialize};

/// Limits of a whole run. It can be overrun by the turns in flight when a limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Proposals, over all trajectories and rounds.
    pub steps: u64,
    /// Prompt and completion tokens; 0 means unlimited.
    pub tokens: u64,
    /// Milliseconds from the start of the run.
    pub wall_ms: u64,
}

/// The rest of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    pub steps: u64,
    /// `None` if tokens are unlimited.
    pub tokens: Option<u64>,
}

/// The limit that ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    Steps,
    Tokens,
    WallMs,
}

impl Budget {
    /// The budget left after this usage.
    pub fn left(&self, steps: u64, tokens: u64) -> Left {
        let limited = self.tokens > 0;
        Left { steps: self.steps.saturating_sub(steps), tokens: limited.then(|| self.tokens.saturating_sub(tokens)) }
    }

    /// The limit that this usage reaches, if any.
    pub fn reached(&self, steps: u64, tokens: u64, elapsed_ms: u64) -> Option<Limit> {
        if steps >= self.steps {
            Some(Limit::Steps)
        } else if self.tokens > 0 && tokens >= self.tokens {
            Some(Limit::Tokens)
        } else if elapsed_ms >= self.wall_ms {
            Some(Limit::WallMs)
        } else {
            None
        }
    }
}
