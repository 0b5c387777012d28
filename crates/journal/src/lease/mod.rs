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

mod node;
mod verdict;

#[cfg(test)]
mod model;
#[cfg(test)]
mod schedules;
#[cfg(test)]
mod simulation;

pub use node::{Effect, Node, Timing};
pub use verdict::{Claim, Found, Verdict, judge};

/// One life of a node. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub i64);

/// Counts the holders that a run has had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub i64);

/// A node's request to the store about its leases. Each is one transaction there. It may be
/// executed late, even after the node gave up waiting, and its answer may be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<R> {
    /// Adds a node, alive for one lease.
    Register,
    /// Extends the node's life by one lease, and lists the runs that it holds.
    Heartbeat { node: NodeId },
    /// Declares nodes dead whose lease has ended, and frees the runs of dead nodes.
    Reap,
    /// Takes free runs that are open, oldest first, each under its next epoch.
    Take { node: NodeId, most: usize },
    /// Frees runs as far as the node still holds them under these epochs.
    Release { node: NodeId, runs: Vec<(R, Epoch)> },
}

/// The store's answer to a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<R> {
    Registered(NodeId),
    /// The runs that the node holds.
    Alive(Vec<(R, Epoch)>),
    /// The store has declared the node dead.
    Dead,
    Reaped,
    Taken(Vec<(R, Epoch)>),
    Released,
}
