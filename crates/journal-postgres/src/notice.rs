//! Notices: what the journal tells the node's owner.

use std::sync::Arc;

use prime_journal::lease::Effect;

/// What the node's owner must know about runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Start a run that the node took, stop one whose lease it lost.
    Lease(Effect<String>),
    /// The end of this run is requested. Repeated with each heartbeat while the node holds the run.
    Cancel(String),
    /// Another node may have committed something of this run. May be lost.
    Changed(String),
}

/// Receives notices, on the journal's own thread or on that of a commit: it must not block. After
/// it returns from a notice to stop a run, nothing may write to that run any more, unless the run
/// was started again.
pub type OnNotice = Arc<dyn Fn(Notice) + Send + Sync>;
