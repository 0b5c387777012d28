//! What is in a bundle: JSON Lines. First the head, then the spec as record 0 and each event by its
//! number, with the chain's hash after it, and last the SHA-256 of all lines before.

use serde::{Deserialize, Serialize};

use crate::runs::error::RunError;
use crate::runs::labels::Labels;
use crate::runs::record::Status;
use prime_journal::{ChainHash, FlaggedEvent, Review};

/// What the head of a bundle calls itself.
pub const FORMAT: &str = "prime-agents.run";
/// The version of the form that this program writes, and the newest that it reads.
pub const VERSION: u32 = 1;

/// The first line of a bundle: what is not in the run's spec and events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Head {
    /// [`FORMAT`].
    pub bundle: String,
    /// [`VERSION`].
    pub version: u32,
    /// The id of the run.
    pub run: String,
    /// The node that has executed it, as its operating system names it.
    pub node: String,
    /// The version of the program that wrote the bundle.
    pub program: String,
    /// When it was written: RFC 3339, UTC.
    pub exported_at: String,
    /// When the run was accepted, in milliseconds since 1970.
    pub created_ms: u64,
    /// How often another process resumed it.
    pub resumed: u32,
    /// How it ended.
    pub status: Status,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Its labels.
    #[serde(default)]
    pub labels: Labels,
    /// Number of its events.
    pub events: u64,
    /// The chain after the last of them.
    pub chain: String,
    /// Reviews of its steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<Reviewed>,
}

/// The reviews of a flagged step, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Reviewed {
    pub seq: u64,
    pub reviews: Vec<ReviewOf>,
}

/// A review as a bundle has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ReviewOf {
    pub at_ms: u64,
    pub by: String,
    pub is_rejected: bool,
    pub note: String,
}

/// The last line of a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct End {
    /// [`FORMAT`].
    pub end: String,
    /// SHA-256 of all lines before this one, in hex.
    pub sha256: String,
}

impl From<FlaggedEvent> for Reviewed {
    fn from(FlaggedEvent { seq, reviews }: FlaggedEvent) -> Self {
        let review =
            |Review { at_ms, by, is_rejected, note }| ReviewOf { at_ms, by, is_rejected, note };
        Self { seq, reviews: reviews.into_iter().map(review).collect() }
    }
}

impl From<ReviewOf> for Review {
    fn from(ReviewOf { at_ms, by, is_rejected, note }: ReviewOf) -> Self {
        Self { at_ms, by, is_rejected, note }
    }
}

/// The beginning of a record's line; what follows is the record without its opening brace.
pub(super) fn line_start(seq: u64, hash: ChainHash) -> String {
    format!(r#"{{"seq":{seq},"chain":"{hash}","#)
}

/// The beginning of the spec's record, after its [`line_start`].
pub(super) fn spec_start(run: &str) -> String {
    format!(r#""event":"accepted","run":"{run}","spec":"#)
}

/// Why a bundle is not imported.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// It is something else.
    #[error(
        "this is no bundle of a run: {0}: give a file as `prime-agents runs export ID --as bundle` \
         writes it"
    )]
    NoBundle(String),
    /// A later program wrote it.
    #[error(
        "the bundle has version {0}, and this program reads versions up to {VERSION}: import it \
         with the version of prime-agents that wrote it, or a later one"
    )]
    Newer(u64),
    /// Its last lines are missing.
    #[error("the bundle ends after record {record} of {of}: it was cut off: export the run again")]
    CutOff {
        /// The last record that is there.
        record: u64,
        /// The number of its last record, according to its head.
        of: u64,
    },
    /// A record is larger than this daemon reads: as data, JSON takes many times its size.
    #[error(
        "record {record} of the bundle has {bytes} bytes; at most {limit} of a record are read: 8 \
         MiB, or server.body_bytes_max if that is more"
    )]
    TooLarge {
        /// The number of the event; 0 for the spec.
        record: u64,
        /// The size of its line.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A record is not what the chain says, or cannot have happened.
    #[error("record {record} of the bundle is broken: {reason}: export the run again")]
    Broken {
        /// The number of the event; 0 for the spec.
        record: u64,
        /// What is wrong.
        reason: String,
    },
    /// Its head is not what its records say.
    #[error("the head of the bundle is wrong: {0}: export the run again")]
    Head(String),
    /// There is another run with this id.
    #[error("run {0} is here already, with other content: it is not replaced")]
    Differs(String),
    /// The journal cannot take it, or this daemon cannot replay it.
    #[error(transparent)]
    Run(#[from] RunError),
}
