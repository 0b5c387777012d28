//! Where the fault of a refuted trajectory lies: a stronger verifier, the locator, judges its steps
//! once.

use serde::{Deserialize, Serialize};

use super::coordination::Decision;
use super::end::{End, Next};
use super::trajectory::{Limits, Trajectory};
use prime_bench::tasks::{Kind, Kinds};

/// What a locator found in the steps before a refuted end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Located {
    /// Steps that it judged at this turn. It judges no step twice.
    pub judged: u64,
    /// Committed steps, from the first, that it has found clean so far.
    pub clean: usize,
    /// The step after these, if it is wrong: the search goes back to the state before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

/// A committed step that a locator rejects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Fault {
    pub action: String,
    /// Its feedback, or the names of the broken constraints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl std::fmt::Display for Located {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let judged = match self.judged {
            1 => "1 step".to_owned(),
            several => format!("{several} steps"),
        };
        let Some(Fault { action, reason }) = &self.fault else {
            return write!(f, "the locator judged {judged} and found no fault");
        };

        write!(f, "the locator judged {judged} and found the fault at depth {}", self.clean)?;
        write!(f, ": `{action}`")?;
        reason.as_ref().map_or(Ok(()), |reason| write!(f, " ({reason})"))
    }
}

impl Trajectory {
    /// The depths of the steps that a locator should judge if this is decided on a line. The line
    /// itself is among them, at the depth of the stack, where it would be committed and leads to a
    /// trace of T_max steps that does not end. `None` where the decision refutes nothing, where a
    /// locator has judged all steps, or where the run never goes back.
    pub fn suspects(&self, line: &str, decision: Decision) -> Option<std::ops::Range<usize>> {
        self.locator_budget?;
        let depth = self.stack.depth();
        let is_refuted = match decision {
            Decision::Backtrack => self.machine.candidate_ends() || self.is_last_choice(line),
            // No valid trace is longer than T_max.
            Decision::Proceed => {
                depth as u64 + 1 == self.steps_max()
                    && self.machine.violations(Kinds::from_iter([Kind::Format])).is_empty()
                    && !self.machine.candidate_ends()
            }
            Decision::Retry => false,
        };

        let end = depth + usize::from(decision == Decision::Proceed);
        let suspects = self.retreat.clean()..end;
        (is_refuted && !suspects.is_empty()).then_some(suspects)
    }

    /// The steps that a locator should judge when the executor has no line left at the top.
    pub fn suspects_of_exhausted(&self) -> Option<std::ops::Range<usize>> {
        self.locator_budget?;
        let suspects = self.retreat.clean()..self.stack.depth();
        (!suspects.is_empty()).then_some(suspects)
    }

    /// Whether the state has finitely many choices, and this is the last that was not rejected.
    fn is_last_choice(&self, line: &str) -> bool {
        let is_left = |choice: &String| choice != line && !self.stack.top().excludes(choice);
        self.machine.choices().is_some_and(|choices| !choices.iter().any(is_left))
    }

    /// Notes what a locator found. A fault takes effect with the decision of the same turn.
    pub(super) fn locate(&mut self, located: &Located) {
        self.retreat.located(located.clean, self.stack.depth() + 1);
        self.fault.clone_from(&located.fault);
    }

    /// Goes back to the state before the fault that a locator found, if it found one.
    pub(super) fn go_back_to_fault(&mut self, limits: &Limits) -> Option<Next> {
        let fault = self.fault.take()?;
        let (depth, at) = (self.stack.depth(), self.retreat.clean());
        // A record that names no committed step was not written by this program.
        if at >= depth {
            return None;
        }
        if self.counts.pops >= limits.pops_max {
            return Some(Next::Ended(End::PopsSpent));
        }

        self.retreat.explained();
        self.counts.pops += 1;
        let line = self.leave(depth - at).unwrap_or_default();
        let reason = fault.reason.as_deref().unwrap_or("a stronger verifier found it wrong");
        self.stack.top_mut().exclude(&line, Some(reason));
        self.feedback = Some(format!("`{line}` was wrong: {reason}"));
        // With this line excluded, the state may have no choice left.
        Some(self.climb_on(limits, false))
    }
}
