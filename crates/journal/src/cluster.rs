//! What nodes that share a store need from it in addition to the journal.

use crate::error::JournalError;

/// One node, as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// Its number in the store; a node that registers again gets a new one.
    pub id: i64,
    /// The node's name, for people; names need not differ.
    pub name: String,
    /// Version of its program.
    pub version: String,
    /// True if this is the node that reports.
    pub is_this: bool,
    /// Most free runs that it takes by itself.
    pub capacity: u64,
    /// Runs that it holds.
    pub held: u64,
    /// Milliseconds since it registered.
    pub age_ms: u64,
    /// Milliseconds until its lease ends, unless it sends a heartbeat; negative when the lease has
    /// ended and no other node has noticed yet.
    pub lease_left_ms: i64,
    /// Milliseconds since its last heartbeat; `None` if it is unknown.
    pub lag_ms: Option<u64>,
    /// What the node has that runs may need, sorted: engines, pools, programs.
    pub agents: Vec<String>,
}

/// A run that no node can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedRun {
    /// The id of the run.
    pub id: String,
    /// What it needs and no live node has, sorted. If every need is met by some node, but all of
    /// them by none, this lists all needs.
    pub missing: Vec<String>,
}

/// The nodes of a store and the runs that they share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterStatus {
    /// Nodes that are not dead, oldest first.
    pub nodes: Vec<NodeStatus>,
    /// Runs that are not over.
    pub open_runs: u64,
    /// Open runs that no node holds.
    pub waiting_runs: u64,
    /// Milliseconds since the oldest of them was accepted, as far as the clocks of its node and the
    /// store agree.
    pub oldest_waiting_ms: Option<u64>,
    /// The waiting runs that no live node can take, oldest first.
    pub blocked: Vec<BlockedRun>,
}

/// A store that several nodes share. Methods block, unless they say otherwise.
pub trait Cluster: Send + Sync {
    /// Requests the end of a run from the node that holds it, now or later. The request stands
    /// until the run is over. A run that is over already stays as it is.
    ///
    /// # Errors
    /// [`JournalError::NotWritable`] when the store cannot be reached; the request may have been
    /// made.
    fn request_cancel(&self, id: &str) -> Result<(), JournalError>;

    /// The open runs that no node holds and no live node can take, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn blocked(&self) -> Result<Vec<BlockedRun>, JournalError>;

    /// Commits that accept runs fail with [`JournalError::Full`] from now on if more runs than
    /// `most` would be open in the store, whichever nodes hold them. Exact as long as all nodes
    /// name the same number. Does not block.
    fn limit_open_runs(&self, most: u64);

    /// Sets the node's capacity, the most free runs that it takes by itself. Does not block.
    fn set_capacity(&self, capacity: usize);

    /// Open runs that this node does not hold, as of its last heartbeat or refused commit. Does not
    /// block.
    fn open_elsewhere(&self) -> u64;

    /// # Errors
    /// When the store cannot be read.
    fn status(&self) -> Result<ClusterStatus, JournalError>;
}
