//! Runs that outlive the process: accepted when they are durable, recorded event by event, and taken up again by the
//! next process from what is committed.
//!
//! What is promised: an accepted run is never lost; a committed step is never changed; an uncommitted step may be
//! computed twice and is visible once.

mod comparison;
mod follow;
mod fork;
mod live;
mod progress;
mod reading;
mod resume;
mod retention;
mod reviews;
mod service;
mod spec;
mod stream;
mod writer;

pub use comparison::{ArmFigures, Comparison};
pub use live::{LiveRun, RunRecord, Status};
pub use reading::{EventLine, ReadError};
pub use reviews::{FlaggedStep, ReviewLine, Verdict};
pub use service::{Accepted, NewRun, ObserveWith, RunError, Runs};
pub use spec::{Origin, RunSpec};
pub use stream::Committed;
