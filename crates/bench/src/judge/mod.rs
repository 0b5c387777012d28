//! Judges submitted outputs in the paper's four stages: format parsing, syntax validation, semantic
//! verification of the steps, comparison of the result. Names the place and the kind of a trace's
//! first error.

mod actions;
pub mod check;
pub mod corruption;
pub mod detection;
#[cfg(test)]
mod edition_tests;
mod judgement;
pub mod labelled;
mod lines;
pub mod single;
pub mod soundness;
mod step;
mod submission;
mod taken;
mod tally;
mod taxonomy;

pub use actions::ActionList;
pub use check::{Finding, check};
pub use detection::{Detection, detection};
pub use judgement::{
    FirstError, Judgement, Stage, StageResult, answer_of, is_correct, judge, judge_body,
};
pub use single::{Verification, VerifyError, VerifyRequest};
pub use step::is_right;
pub use submission::{Body, INDEX_LIMIT, Submission, read_submission};
pub use taken::read_output;
pub use tally::{Report, Row, Tally};
pub use taxonomy::ErrorType;
