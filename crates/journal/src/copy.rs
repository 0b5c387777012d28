//! Copies runs from one store to another, of the same kind or not.

use crate::chain::Head;
use crate::error::JournalError;
use crate::journal::{Journal, Query, Write};
use crate::records::{FlaggedEvent, ReviewCounts, RunRow, Segment};
use crate::uploads::{TaskVersion, UploadLimits, Uploads};
use crate::verifier::ChainVerifier;

/// Runs in a page of the listing.
const PAGE: u32 = 1_000;
/// Bytes of events in one read, and roughly in one commit.
const READ_BYTES: usize = 16 << 20;
/// Flagged events in a page.
const FLAGS: u32 = 1_000;

/// What a copy has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Runs that are the same in both stores now.
    pub runs: u64,
    /// Events of these runs.
    pub events: u64,
    /// Runs among them that were there before.
    pub known: u64,
    /// Runs among them that are not over: the nodes of the target continue them.
    pub open: u64,
}

/// Copies uploaded task modules, and all runs, oldest first, with their events, snapshots, reviews,
/// idempotency keys and the messages that wait. The
/// chain of each run is verified as it is read from `from`, and again as it is read back from `to`.
/// Nobody may write to either meanwhile. An interrupted copy is completed by the next one.
///
/// Not copied: the idempotency keys of runs that were removed, and messages that were given up.
///
/// # Errors
/// [`JournalError::Damaged`] for a run whose events do not match its row, [`JournalError::Refused`]
/// for a run that `to` has with other content, and those of the stores. What was copied before
/// stays.
pub fn copy(from: &dyn Journal, to: &dyn Journal) -> Result<Copied, JournalError> {
    // First, because the nodes of the target continue open runs at once.
    copy_uploads(from.uploads(), to.uploads())?;

    let mut copied = Copied::default();
    for id in ids(from)?.into_iter().rev() {
        let row = from.run(&id)?.ok_or_else(|| damaged(&id, "it vanished while it was copied"))?;

        copied.runs += 1;
        copied.events += row.head.seq;
        copied.open += u64::from(!row.is_over);

        let there = to.run(&id)?;
        if there.as_ref() == Some(&row) {
            copied.known += 1;
        } else {
            copy_run(from, to, &row, there)?;
        }

        copy_labels(from, to, &id)?;
        copy_assignees(from, to, &id)?;

        // Known runs are read back as well: an equal row does not prove that the events are equal.
        if chain(to, &row)? != row.head || to.run(&id)?.as_ref() != Some(&row) {
            return Err(damaged(&id, "it was read back as another"));
        }
    }
    Ok(copied)
}

fn damaged(id: &str, reason: &str) -> JournalError {
    JournalError::Damaged(format!("run {id}: {reason}"))
}

/// Copies the modules of all versions. What was released is released again.
fn copy_uploads(from: &dyn Uploads, to: &dyn Uploads) -> Result<(), JournalError> {
    const ANY: UploadLimits =
        UploadLimits { tasks_max: u64::MAX, versions_max: u64::MAX, bytes_max: u64::MAX };

    // Each task's newest version comes first, and is stored last.
    for version in from.versions(None)?.into_iter().rev() {
        let TaskVersion { owner, name, digest, .. } = &version;
        let module = from.module(digest)?.ok_or_else(|| {
            JournalError::Damaged(format!("the module {digest} of the task {name:?} is missing"))
        })?;
        to.store(&version, &module, &ANY)?;
        if let Some(released_ms) = version.released_ms {
            to.release(owner, name, released_ms)?;
        }
    }
    Ok(())
}

/// All runs, newest first.
fn ids(from: &dyn Journal) -> Result<Vec<String>, JournalError> {
    let mut ids = Vec::new();
    let mut query = Query { limit: PAGE, ..Query::default() };
    loop {
        let page = from.list(&query)?;
        // A damaged row cannot be copied, and a copy that lacks runs would look complete.
        if let Some(row) = page.damaged.into_iter().next() {
            return Err(damaged(&row.id, &row.reason));
        }

        ids.extend(page.rows.into_iter().map(|row| row.id));
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(ids),
        }
    }
}

/// The head to which the run's events lead.
fn chain(journal: &dyn Journal, row: &RunRow) -> Result<Head, JournalError> {
    let mut verifier = ChainVerifier::new(&row.id, &row.spec);
    loop {
        let segments = journal.segments(&row.id, verifier.head().seq, READ_BYTES)?;
        if segments.is_empty() {
            return Ok(verifier.head());
        }
        for segment in &segments {
            verifier.follow(segment).map_err(|damage| damaged(&row.id, &damage.to_string()))?;
        }
    }
}

fn copy_run(
    from: &dyn Journal,
    to: &dyn Journal,
    row: &RunRow,
    there: Option<RunRow>,
) -> Result<(), JournalError> {
    let id = &row.id;
    // Verified before anything is written, so that a damaged run does not reach the target at all.
    if chain(from, row)? != row.head {
        return Err(damaged(id, "its events do not lead to the head of its row"));
    }

    let mut writes = Vec::new();
    let mut head = match there {
        // A copy that was interrupted.
        Some(there)
            if !there.is_over && there.spec == row.spec && there.head.seq <= row.head.seq =>
        {
            there.head
        }
        Some(_) => {
            return Err(JournalError::Refused(format!(
                "run {id} is there already, with other content"
            )));
        }
        None => {
            // It must be open to take its events; the last write ends it, if it is over.
            let head = Head::genesis(&row.spec);
            let new =
                RunRow { is_over: false, reviews: ReviewCounts::default(), head, ..row.clone() };
            writes.push(Write::Accept { row: new, key: from.key_of_run(id)? });
            head
        }
    };

    while head.seq < row.head.seq {
        for segment in from.segments(id, head.seq, READ_BYTES)? {
            let segment = after(segment, head);
            head = segment.head();
            writes.push(Write::Append { id: id.clone(), segment });
        }
        // What remains after the last segment is committed together with reviews, snapshot and
        // status, so that no interruption leaves a run that is over without them.
        if head.seq < row.head.seq {
            to.commit(&std::mem::take(&mut writes))?;
        }
    }

    copy_reviews(from, to, id, &mut writes)?;

    if let Some(snapshot) = from.snapshot(id)? {
        writes.push(Write::Save { id: id.clone(), snapshot });
    }

    let messages = from.outbox().waiting(id)?;
    if !messages.is_empty() {
        writes.push(Write::Enqueue { id: id.clone(), messages });
    }

    writes.push(Write::Update {
        id: id.clone(),
        updated_ms: row.updated_ms,
        status: row.status.clone(),
        is_over: row.is_over,
        resumed: row.resumed,
        summary: row.summary.clone(),
    });
    to.commit(&writes)
}

/// Gives a run the labels that replace those of its spec.
fn copy_labels(from: &dyn Journal, to: &dyn Journal, id: &str) -> Result<(), JournalError> {
    let run = [id.to_owned()];
    let there = to.labels().relabelled(&run)?;
    for (id, labels) in from.labels().relabelled(&run)? {
        if there.get(&id) != Some(&labels) {
            to.labels().relabel(&id, &labels)?;
        }
    }
    Ok(())
}

/// Assigns a run's flagged events to the same people.
fn copy_assignees(from: &dyn Journal, to: &dyn Journal, id: &str) -> Result<(), JournalError> {
    let there = to.assignees().assigned(id, 0, u64::MAX)?;
    for (seq, name) in from.assignees().assigned(id, 0, u64::MAX)? {
        if there.get(&seq) != Some(&name) {
            to.assignees().assign(id, seq, Some(&name))?;
        }
    }
    Ok(())
}

/// The events of a segment that follow a head.
fn after(segment: Segment, head: Head) -> Segment {
    if segment.first_seq == head.seq + 1 {
        return segment;
    }

    let events: Vec<&[u8]> =
        segment.events().filter(|(seq, _)| *seq > head.seq).map(|(_, event)| event).collect();
    Segment::following(head, events)
}

/// Adds the flags and reviews that the target does not have.
fn copy_reviews(
    from: &dyn Journal,
    to: &dyn Journal,
    id: &str,
    writes: &mut Vec<Write>,
) -> Result<(), JournalError> {
    let mut last = 0;
    loop {
        let flagged = from.reviews(id, last, FLAGS)?;
        let Some(next) = flagged.last().map(|flagged| flagged.seq) else { return Ok(()) };

        let known = to.reviews(id, last, FLAGS)?;
        writes.push(Write::Flag {
            id: id.to_owned(),
            seqs: flagged.iter().map(|flagged| flagged.seq).collect(),
        });

        // A run's reviews are only ever added to, so that those there are the first of them.
        for FlaggedEvent { seq, reviews } in flagged {
            let there =
                known.iter().find(|known| known.seq == seq).map_or(0, |known| known.reviews.len());
            let missing = reviews.into_iter().skip(there);
            writes.extend(missing.map(|review| Write::Review { id: id.to_owned(), seq, review }));
        }

        last = next;
    }
}
