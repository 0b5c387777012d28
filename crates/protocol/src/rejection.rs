//! A rejected line, and the state at which a trajectory got stuck.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longest reason that is kept, in characters. A model's report can fill pages.
const REASON_CHARACTERS_MAX: usize = 300;

/// A line that was rejected at a state, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Rejection {
    /// The rejected line.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub line: Box<str>,
    /// Omitted if the verifier gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub reason: Option<Box<str>>,
}

impl Rejection {
    /// A rejected line with its reason, which is cut to a bounded length.
    pub fn new(line: &str, reason: Option<&str>) -> Self {
        let shortened = |reason: &str| match reason.char_indices().nth(REASON_CHARACTERS_MAX) {
            Some((end, _)) => format!("{}…", &reason[..end]).into(),
            None => reason.into(),
        };
        Self { line: line.into(), reason: reason.map(shortened) }
    }
}

/// Most rejected lines of a [`StuckAt`].
const REJECTIONS_MAX: usize = 256;

/// The state at which a trajectory got stuck, with the evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StuckAt {
    /// Committed steps before it.
    pub depth: usize,
    /// The state, as the task writes it.
    pub state: Value,
    /// The first of the lines that were rejected there.
    pub rejected: Vec<Rejection>,
    /// Trajectories of the run that got stuck there.
    pub trajectories: u32,
}

impl StuckAt {
    pub(super) fn new(depth: usize, state: Value, rejected: &[Rejection]) -> Self {
        let rejected = rejected.iter().take(REJECTIONS_MAX).cloned().collect();
        Self { depth, state, rejected, trajectories: 1 }
    }

    /// Adds the lines that another trajectory tried at the same state.
    pub(super) fn join(&mut self, other: Self) {
        self.trajectories += other.trajectories;
        for rejection in other.rejected {
            if self.rejected.len() < REJECTIONS_MAX
                && !self.rejected.iter().any(|known| known.line == rejection.line)
            {
                self.rejected.push(rejection);
            }
        }
    }
}
