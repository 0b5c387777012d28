//! Tests whether commits are possible, with one that writes to every table and is taken back.

use deadpool_postgres::Object;

use super::batch::Batch;
use super::error_code::Failure;
use super::statements::{self, Mark};
use prime_journal::compression::Packer;
use prime_journal::lease::NodeId;
use prime_journal::{JournalError, Review, RunRow, Segment, Snapshot, Write};

/// Why a node without a row cannot write.
pub(super) const FORGOTTEN: &str = "the node has to register again";

/// A run with all that belongs to one. Its id and its number are those of the node, so that probes
/// of several nodes do not wait for each other.
pub(super) fn batch(node: NodeId) -> Result<Batch, JournalError> {
    let mut packer =
        Packer::new().map_err(|error| JournalError::NotWritable(format!("zstd: {error}")))?;

    let id = format!("~probe of node {}", node.0);
    let (row, key) = RunRow::probe(id.clone());

    let segment = Segment::following(row.head, ["{}"]);
    let snapshot = Snapshot { seq: 1, body: Vec::new() };
    let review = Review { at_ms: 0, by: String::new(), is_rejected: false, note: String::new() };
    let writes = [
        Write::Accept { row, key: Some(key) },
        Write::Append { id: id.clone(), segment },
        Write::Save { id: id.clone(), snapshot },
        Write::Flag { id: id.clone(), seqs: vec![1] },
        Write::Review { id, seq: 1, review },
    ];

    // The numbers of runs are positive.
    Batch::fold(&writes, &[].into(), || -1 - node.0, &mut packer, |_| (Vec::new(), None))
}

/// Sends the probe. It opens a run, but is not counted: a store with as many open runs as it may
/// have can be written.
pub(super) async fn send(client: &mut Object, node: NodeId, batch: &Batch) -> Result<(), Failure> {
    // Larger than the number of any commit. It goes back with the rest.
    let mark = Mark { node, number: i64::MAX, most: None, is_alone: false };
    match statements::probe(client, mark, batch).await {
        // The node has no row: it was taken for dead.
        Err(Failure::Conflict(_)) => {
            Err(Failure::Final(JournalError::NotWritable(FORGOTTEN.to_owned())))
        }
        sent => sent,
    }
}
