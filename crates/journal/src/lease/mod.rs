//! The protocol by which several nodes share the runs of one store: which node executes a run, and
//! why a node that was wrongly declared dead can do no harm. Pure: no clock, no I/O, no threads.
//! `simulation.rs` runs it under faults, `prime-journal-postgres` on a database.
//!
//! - A *node* is one life of a daemon ([`NodeId`]): alive until the store declares it dead, and
//!   never again. It proves that it is alive by heartbeats, one for all of its runs.
//! - A run's *lease* is its holder and an [`Epoch`], which grows by one with each holder. What a
//!   node commits names the epoch it holds, and the store checks it in the same transaction.
//!   Heartbeats only bring progress; safety comes from the epoch alone, so nothing depends on
//!   clocks that agree.
//! - A commit has a number, which grows within a node. The store remembers a node's last number, so
//!   a commit whose answer was lost is sent again, and is applied once.

mod messages;
mod node;
mod verdict;

#[cfg(test)]
mod crowd;
#[cfg(test)]
mod model;
#[cfg(test)]
mod schedules;
#[cfg(test)]
mod simulation;

pub use messages::{Answer, Epoch, NodeId, Request};
pub use node::{Effect, Node, Timing};
pub use verdict::{Claim, Found, Verdict, judge};
