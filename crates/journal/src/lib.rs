//! The durable store of runs. [`Journal`] is its interface: rows of runs, and their events in
//! segments with a hash chain. It does not interpret events: here, an event is a line of JSON.

#![warn(missing_docs)]

mod adder;
mod approvals;
mod assignees;
mod chain;
mod cluster;
pub mod compression;
mod copy;
mod error;
mod journal;
mod labels;
pub mod lease;
mod outbox;
pub mod overview;
mod records;
mod schedule_marks;
pub mod search;
mod sqlite;
mod uploads;
mod verifier;

#[cfg(any(test, feature = "testing"))]
pub mod conformance;

pub use adder::{Adder, Facts};
pub use approvals::{ApprovalQuery, ApprovalRow, Approvals, Decided, NewApproval};
pub use assignees::{Assigned, Assignees};
pub use chain::{ChainHash, Head};
pub use cluster::{BlockedRun, Cluster, ClusterStatus, NodeStatus};
pub use copy::{Copied, copy};
pub use error::JournalError;
pub use journal::{Journal, Query, Removed, Retention, Size, Write};
pub use labels::RunLabels;
pub use outbox::{
    AttemptFailure, Claimed, Claims, LISTED_BODY_CHARS, ListedMessage, Message, Outbox,
    OutboxCount, OutboxQuery, Settlement,
};
pub use overview::{Part, RefusedLines, Sums, Totals};
pub use records::{
    DamagedRow, FlaggedEvent, IdempotencyKey, Review, ReviewCounts, RunRow, RunRows, Segment,
    Snapshot,
};
pub use schedule_marks::ScheduleMarks;
pub use search::{
    Noted, Position, SearchEntry, SearchIndex, SearchPage, SearchQuery, SortKey, Unnoted,
};
pub use sqlite::{Checked, CutRun, SqliteFile, SqliteJournal, SqliteOptions};
pub use uploads::{Stored, TaskVersion, UploadLimits, Uploads, Usage};
pub use verifier::{ChainVerifier, Damage, verify};
