//! Actors as thin shells around agents and protocol. A *cell* is an arbiter with its own
//! Supervisor, Executor, Verifier and Coordinator. Runs are sharded over cells, and a turn goes
//! around its cell's ring in one direction:
//!
//! Supervisor ─Propose→ Executor ─Judge→ Verifier ─Decide→ Coordinator ─Decided→ Supervisor
//!
//! Turns are not shared, and no message goes backwards. `prime-protocol` decides what happens to a
//! run.

#![warn(missing_docs)]

mod agent;
mod cell;
mod cells;
mod cooperative_yield;
mod deadlines;
mod death_watch;
mod heartbeat;
mod messages;
mod observer;
mod outbox;
mod restart_limit;
mod ring;
mod run_handle;
mod run_span;
mod run_table;
mod runtime;
mod sighting;
mod speculation;
mod submission;
mod supervisor;
mod turn;
mod turn_timing;
mod watchdog;
mod work;

#[cfg(test)]
mod tests;

pub use cell::{Placement, RuntimePlan};
pub use cells::Hangs;
pub use observer::{Event, Observer, Silent, Wake, Watched};
pub use prime_roles::live::{Exchange, Kept, Listen, Listener, PromptRead, Writing};
pub use restart_limit::RestartLimit;
pub use run_handle::{Canceller, RunHandle};
pub use runtime::Runtime;
pub use submission::{Diversity, RunSampling, Submission};
pub use turn_timing::{Stage, StageTimes};
