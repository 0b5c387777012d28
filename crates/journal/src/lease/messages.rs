//! What a node and the store say to each other about leases.

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
    Heartbeat {
        /// The node.
        node: NodeId,
    },
    /// Declares nodes dead whose lease has ended, and frees the runs of dead nodes.
    Reap,
    /// Takes free runs that are open, oldest first, each under its next epoch.
    Take {
        /// The node.
        node: NodeId,
        /// Most runs to take.
        most: usize,
    },
    /// Frees runs as far as the node still holds them under these epochs.
    Release {
        /// The node.
        node: NodeId,
        /// The runs, with the epochs under which the node held them.
        runs: Vec<(R, Epoch)>,
    },
}

/// The store's answer to a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<R> {
    /// The new node's id.
    Registered(NodeId),
    /// The runs that the node holds.
    Alive(Vec<(R, Epoch)>),
    /// The store has declared the node dead.
    Dead,
    /// Expired nodes were declared dead, and their runs were freed.
    Reaped,
    /// The runs that were taken, with their new epochs.
    Taken(Vec<(R, Epoch)>),
    /// The runs were freed.
    Released,
}
