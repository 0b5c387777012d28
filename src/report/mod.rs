//! Records of runs as data and text. Pure: it reads what has happened and starts nothing.

mod result;
mod trace;

pub use result::{Arm, Reviews, RunResult, Solved};
pub use trace::{Recorded, StepLine, TraceLine};
