//! Results and traces of runs, as data and as text. Pure: it reads recorded events and starts
//! nothing.

#![warn(missing_docs)]

mod approvals;
mod arm;
mod context;
mod exchanges;
mod plural;
mod refusals;
mod result;
mod reviews;
mod trace;
mod verification;

pub use approvals::Approvals;
pub use arm::Arm;
pub use context::RunContext;
pub use exchanges::{LastPrompts, SentExchange};
pub use plural::{count, plural};
pub use refusals::Refusals;
pub use result::{RejectedStep, RunResult};
pub use reviews::Reviews;
pub use trace::{Judge, RecordedEvent, StepLine, TraceLine};
pub use verification::{Misses, Verification};
