//! The budget of a run. Each limit is checked on every step; the first one reached ends the run and
//! names its outcome.

use serde::{Deserialize, Serialize};

use super::cost::Cost;
use super::trajectory::Usage;

/// Limits of a whole run. It can be overrun by the turns in flight when a limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Proposals, over all trajectories and rounds.
    pub steps: u64,
    /// Prompt and completion tokens; 0 means unlimited.
    pub tokens: u64,
    /// Completion tokens; 0 means unlimited. Executors that count tokens do not overrun it: each
    /// turn gets a share of what is left ([`Trajectory::completion_max`](super::Trajectory)).
    pub completion_tokens: u64,
    /// Money, of the tokens that have a price; nothing means unlimited.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub cost: Cost,
    /// Milliseconds from the start of the run.
    pub wall_ms: u64,
}

/// The rest of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Proposals left.
    pub steps: u64,
    /// `None` if tokens are unlimited.
    pub tokens: Option<u64>,
    /// `None` if completion tokens are unlimited.
    pub completion_tokens: Option<u64>,
    /// `None` if money is unlimited.
    pub cost: Option<Cost>,
}

/// The limit that ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The proposals of the budget are spent.
    Steps,
    /// The tokens of the budget are spent.
    Tokens,
    /// The money of the budget is spent.
    Cost,
    /// The wall time of the budget has passed.
    WallMs,
}

impl Budget {
    /// The budget left after this usage.
    pub fn left(&self, steps: u64, usage: Usage) -> Left {
        let rest = |limit: u64, used: u64| (limit > 0).then(|| limit.saturating_sub(used));

        Left {
            steps: self.steps.saturating_sub(steps),
            tokens: rest(self.tokens, usage.total()),
            completion_tokens: rest(self.completion_tokens, usage.completion),
            cost: (self.cost > Cost::ZERO).then(|| self.cost.less(usage.cost.unwrap_or_default())),
        }
    }

    /// The limit that this usage reaches, if any.
    pub fn reached(&self, steps: u64, usage: Usage, elapsed_ms: u64) -> Option<Limit> {
        let is_spent = |limit: u64, used: u64| limit > 0 && used >= limit;

        if steps >= self.steps {
            Some(Limit::Steps)
        } else if is_spent(self.tokens, usage.total())
            || is_spent(self.completion_tokens, usage.completion)
        {
            Some(Limit::Tokens)
        } else if is_spent(self.cost.nanos(), usage.cost.unwrap_or_default().nanos()) {
            Some(Limit::Cost)
        } else if elapsed_ms >= self.wall_ms {
            Some(Limit::WallMs)
        } else {
            None
        }
    }
}
