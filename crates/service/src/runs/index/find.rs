//! The next step of a kind, forwards or backwards.

use serde::Serialize;
use utoipa::ToSchema;

use super::StepIndexes;
use super::run_index::RunIndex;
use super::step::Finding;
use super::step_list::no_such_trajectory;
use crate::runs::error::RunError;
use prime_protocol::TurnId;

/// The kind of step to look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A step that was not accepted.
    Rejected,
    /// A step that was retried.
    Retry,
    /// A step after which the trajectory backtracked.
    Backtrack,
    /// A rejection that popped states.
    Pop,
    /// A step that asks for review.
    Flag,
    /// A violation of this constraint.
    Violation(String),
}

impl Wanted {
    /// Reads `rejected`, `retry`, `backtrack`, `pop`, `flag` or `violation:NAME`.
    pub fn read(text: &str) -> Option<Self> {
        Some(match text {
            "rejected" => Self::Rejected,
            "retry" => Self::Retry,
            "backtrack" => Self::Backtrack,
            "pop" => Self::Pop,
            "flag" => Self::Flag,
            _ => Self::Violation(
                text.strip_prefix("violation:").filter(|name| !name.is_empty())?.to_owned(),
            ),
        })
    }

    fn fits(&self, index: &RunIndex, finding: &Finding) -> bool {
        match self {
            Self::Rejected => finding.is_retry || finding.is_backtrack,
            Self::Retry => finding.is_retry,
            Self::Backtrack => finding.is_backtrack,
            Self::Pop => finding.pops > 0,
            Self::Flag => finding.is_flagged,
            Self::Violation(name) => {
                let bit = index.constraints.iter().position(|constraint| constraint == name);
                bit.is_some_and(|bit| finding.violations & (1 << bit) != 0)
            }
        }
    }
}

/// The result of a search for a step.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FoundStep {
    /// Its position in its trajectory; null if there is none.
    #[schema(required)]
    pub position: Option<u64>,
    /// The number of its event; null if there is none.
    #[schema(required)]
    pub seq: Option<u64>,
}

impl StepIndexes {
    /// The first step of the kind after `position` of a trajectory or, `backwards`, the last before
    /// it; from the trajectory's edge without a position.
    ///
    /// # Errors
    /// When the run has no such trajectory, or the journal cannot be read.
    pub async fn find(
        &self,
        id: &str,
        turn: TurnId,
        wanted: Wanted,
        position: Option<u64>,
        backwards: bool,
    ) -> Result<FoundStep, RunError> {
        let position = position.map(|at| usize::try_from(at).unwrap_or(usize::MAX));
        self.ask(id, move |index, _, _| {
            let of = index.trajectory(turn).ok_or_else(|| no_such_trajectory(turn))?;

            let mut fitting = of.findings.iter().filter(|finding| wanted.fits(index, finding));
            let found = if backwards {
                fitting.rfind(|finding| position.is_none_or(|position| finding.position < position))
            } else {
                fitting.find(|finding| position.is_none_or(|position| finding.position > position))
            };

            let found = found.map(|finding| finding.position);
            Ok(FoundStep {
                position: found.map(|at| at as u64),
                seq: found.map(|at| of.steps[at].seq),
            })
        })
        .await
    }
}
