//! Records of runs as data and text. Pure: it reads what has happened and starts nothing.

mod plural;
mod result;
mod trace;

pub use plural::count;
pub use result::{Arm, Reviews, RunResult, Solved};
pub use trace::{Recorded, StepLine, TraceLine};
