//! Names of decisions in events and answers.

use prime_protocol::Decision;

/// A decision's name in events and answers.
pub fn decision_name(decision: Decision) -> &'static str {
    match decision {
        Decision::Proceed => "proceed",
        Decision::Retry => "retry",
        Decision::Backtrack => "backtrack",
    }
}
