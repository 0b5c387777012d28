//! What the Rust rows of `make peers` share. A program is called as
//! `PROGRAM VARIANT seq:STEPS shared:TRAJECTORIES:STEPS trios:TRAJECTORIES:STEPS` and prints one
//! line of JSON with one entry for each of these phases.

mod drive;
mod phase;
mod report;
mod step;

pub use drive::{Kick, drive, drive_blocking, runtime};
pub use phase::{Coordinator, Phase, Spec, Topology};
pub use report::{Measured, measured, process_time, report};
pub use step::{Action, Request, Verdict, execute, verify};

/// Capacity of every bounded mailbox: more than the trajectories in flight, so that a ring cannot
/// wait for itself.
pub const MAILBOX: usize = 2048;
