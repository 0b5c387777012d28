//! A completion that may have looked values up.

use crate::model::Completion;
use prime_lessons::NoSuchAddress;

/// A completion, with the values that it looked up.
pub(super) struct ReadCompletion {
    pub(super) completion: Completion,
    /// Why its last query has no answer, if it ends with such a query.
    pub(super) failed: Option<NoSuchAddress>,
}

impl From<Completion> for ReadCompletion {
    fn from(completion: Completion) -> Self {
        Self { completion, failed: None }
    }
}
