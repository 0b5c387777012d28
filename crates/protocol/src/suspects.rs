//! When a trajectory has a stronger verifier, the locator, judge its steps once, and how it goes
//! back to the fault that was found.

use super::coordination::Decision;
use super::end::{End, Next};
use super::located::Located;
use super::trajectory::{Limits, Trajectory};
use prime_bench::tasks::{Kind, Kinds};

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

    /// Returns whether the state has finitely many choices, and this is the last that was not
    /// rejected.
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
