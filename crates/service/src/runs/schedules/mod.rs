//! Runs that start at times of the clock. `plan` is what the configuration says, `due` decides what
//! is to be done now, and `keeper` does it: on every node, since the idempotency key of a time lets
//! one run of it be accepted. `report` says what was and will be.

mod due;
mod keeper;
mod plan;
mod report;

pub use keeper::Keeper;
pub use plan::{ScheduleError, Schedules};
pub use report::ScheduleReport;
