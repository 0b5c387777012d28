//! Actors as thin shells round agents and protocol. A *cell* is an arbiter with its own Supervisor, Executor, Verifier
//! and Coordinator; runs are sharded over cells, and a turn goes round its cell's ring in one direction:
//!
//! Supervisor ─Propose→ Executor ─Judge→ Verifier ─Decide→ Coordinator ─Decided→ Supervisor
//!
//! Nobody shares a turn and nobody answers backwards. What happens to a run is `protocol`'s business.

mod agent;
mod batch;
mod cell;
mod deadlines;
mod messages;
mod observer;
mod pool;
mod speculation;
mod submission;
mod supervision;
mod supervisor;
mod turn;
mod turn_timing;

#[cfg(test)]
mod tests;

pub use cell::Placement;
pub use observer::{Event, Observer, Silent, Wake, Watched};
pub use pool::{Runtime, RuntimePlan};
pub use submission::{Canceller, RunHandle, RunSampling, Submission};
pub use supervision::RestartLimit;
pub use turn_timing::{Stage, StageTimes};
