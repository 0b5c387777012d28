//! Up to which time each schedule is done, so that a process knows what it has missed. That no time
//! starts two runs is up to the idempotency keys of the runs.

use crate::error::JournalError;

/// The part of a store that holds the marks of schedules.
pub trait ScheduleMarks {
    /// The time up to which a schedule is done, in milliseconds since 1970; `None` for one that is
    /// new.
    ///
    /// # Errors
    /// The store cannot be read.
    fn mark(&self, schedule: &str) -> Result<Option<u64>, JournalError>;

    /// Sets that time; durable when this returns. It may be earlier than before, because clocks are
    /// set back.
    ///
    /// # Errors
    /// Those of the store; then nothing has changed.
    fn set_mark(&self, schedule: &str, done_ms: u64) -> Result<(), JournalError>;
}
