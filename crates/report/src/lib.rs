//! Results and traces of runs, as data and as text. Pure: it reads recorded events and starts
//! nothing.

#![warn(missing_docs)]

mod exchanges;
mod plural;
mod result;
mod trace;
mod verification;

pub use exchanges::{LastPrompts, SentExchange};
pub use plural::{count, plural};
pub use result::{Arm, RejectedStep, Reviews, RunContext, RunResult};
pub use trace::{Judge, RecordedEvent, StepLine, TraceLine};
pub use verification::{Misses, Verification};
