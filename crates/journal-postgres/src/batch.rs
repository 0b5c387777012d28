//! The writes of a commit, folded into the rows that its one statement changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::outbox::Messages;
use super::queries::signed;
use super::text::encode;
use prime_journal::compression::Packer;
use prime_journal::lease::{Claim, Epoch};
use prime_journal::{
    Head, IdempotencyKey, JournalError, Review, ReviewCounts, RunRow, Segment, Snapshot, Write,
};

/// What commits need to know about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) no: i64,
    pub(super) epoch: i64,
    pub(super) last_seq: u64,
    pub(super) is_over: bool,
    /// Bytes of its spec and its segments as stored, and of its snapshot.
    pub(super) bytes: i64,
    pub(super) snapshot_bytes: i64,
}

/// One run in a commit.
#[derive(Debug)]
pub(super) struct Draft {
    /// Before the commit; `None` for a run that it accepts.
    pub(super) before: Option<Known>,
    pub(super) after: Known,
    hash: Option<Vec<u8>>,
    update: Option<(i64, String, bool, i64, String)>,
    snapshot: Option<(i64, i16, i64, Vec<u8>)>,
}

/// Columns of rows, for `unnest`.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) drafts: BTreeMap<String, Draft>,
    pub(super) reviews: Vec<(String, u64, Review)>,
    pub(super) accepts: Accepts,
    pub(super) keys: Keys,
    pub(super) segments: Segments,
    pub(super) flags: (Vec<i64>, Vec<i64>),
    pub(super) messages: Messages,
}

#[derive(Debug, Default)]
pub(super) struct Accepts {
    pub(super) ids: Vec<String>,
    pub(super) owners: Vec<String>,
    pub(super) created: Vec<i64>,
    pub(super) tasks: Vec<String>,
    pub(super) specs: Vec<String>,
    pub(super) splits: Vec<Option<String>>,
    /// The needs of each run, one a line.
    pub(super) needs: Vec<String>,
    /// The time by which each run is taken.
    pub(super) ranks: Vec<i64>,
}

#[derive(Debug, Default)]
pub(super) struct Keys {
    pub(super) owners: Vec<String>,
    pub(super) names: Vec<String>,
    pub(super) fingerprints: Vec<Vec<u8>>,
    pub(super) runs: Vec<i64>,
    pub(super) ids: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct Segments {
    pub(super) runs: Vec<i64>,
    pub(super) first_seqs: Vec<i64>,
    pub(super) counts: Vec<i64>,
    pub(super) epochs: Vec<i64>,
    pub(super) hashes: Vec<Vec<u8>>,
    pub(super) packings: Vec<i16>,
    pub(super) bytes: Vec<i64>,
    pub(super) bodies: Vec<Vec<u8>>,
}

/// Columns of the heads that change: those of existing runs, or of the runs accepted.
#[derive(Debug, Default)]
pub(super) struct Heads {
    pub(super) runs: Vec<i64>,
    pub(super) epochs: Vec<i64>,
    pub(super) bases: Vec<i64>,
    pub(super) were_over: Vec<bool>,
    pub(super) last_seqs: Vec<i64>,
    pub(super) hashes: Vec<Option<Vec<u8>>>,
    pub(super) bytes: Vec<i64>,
    pub(super) snapshot_bytes: Vec<i64>,
    pub(super) are_over: Vec<bool>,
}

#[derive(Debug, Default)]
pub(super) struct Updates {
    pub(super) runs: Vec<i64>,
    pub(super) updated: Vec<i64>,
    pub(super) statuses: Vec<String>,
    pub(super) are_over: Vec<bool>,
    pub(super) resumed: Vec<i64>,
    pub(super) summaries: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct Snapshots {
    pub(super) runs: Vec<i64>,
    pub(super) seqs: Vec<i64>,
    pub(super) packings: Vec<i16>,
    pub(super) bytes: Vec<i64>,
    pub(super) bodies: Vec<Vec<u8>>,
}

fn refused<T>(reason: String) -> Result<T, JournalError> {
    Err(JournalError::Refused(reason))
}

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

/// Runs that must be known, and held, before these writes are folded.
pub(super) fn needed(writes: &[Write]) -> BTreeSet<&str> {
    let (mut needed, mut accepted) = (BTreeSet::new(), BTreeSet::new());
    for write in writes {
        match write {
            Write::Accept { row, .. } => drop(accepted.insert(row.id.as_str())),
            // A review needs no lease: people review the runs of all nodes.
            Write::Review { .. } => {}
            _ if accepted.contains(write.run_id()) => {}
            _ => drop(needed.insert(write.run_id())),
        }
    }
    needed
}

impl Batch {
    /// # Errors
    /// `Refused`: a write contradicts what is known, or the writes before it.
    pub(super) fn fold(
        writes: &[Write],
        known: &HashMap<String, Known>,
        mut next_no: impl FnMut() -> i64,
        packer: &mut Packer,
        terms_of: impl Fn(&str) -> (Vec<String>, Option<i64>),
    ) -> Result<Self, JournalError> {
        let mut batch = Self::default();
        for write in writes {
            if let Write::Accept { row, key } = write {
                if batch.drafts.contains_key(&row.id) || known.contains_key(&row.id) {
                    return refused(format!("run {:?} exists already", row.id));
                }
                batch.accept(row, key.as_ref(), next_no())?;
                let (needs, rank_ms) = terms_of(&row.spec);
                batch.accepts.needs.push(super::needs::lines(needs));
                let created = batch.accepts.created.last().copied().unwrap_or_default();
                batch.accepts.ranks.push(rank_ms.unwrap_or(created));
                continue;
            }

            let id = write.run_id();
            if let Write::Review { seq, review, .. } = write {
                signed(review.at_ms, "the time")?;
                batch.reviews.push((id.to_owned(), *seq, review.clone()));
                continue;
            }

            if !batch.drafts.contains_key(id) {
                let Some(known) = known.get(id).copied() else {
                    return refused(format!("there is no run {id:?}"));
                };

                let draft = Draft {
                    before: Some(known),
                    after: known,
                    hash: None,
                    update: None,
                    snapshot: None,
                };
                batch.drafts.insert(id.to_owned(), draft);
            }

            batch.change(id, write, packer)?;
        }

        Ok(batch)
    }

    fn accept(
        &mut self,
        row: &RunRow,
        key: Option<&IdempotencyKey>,
        no: i64,
    ) -> Result<(), JournalError> {
        let id = &row.id;
        if row.head != Head::genesis(&row.spec) {
            return refused(format!(
                "the new run {id:?} must have no events and the head of its spec"
            ));
        }

        if row.reviews != ReviewCounts::default() {
            return refused(format!("the new run {id:?} must have no flagged events"));
        }

        let (created, updated) =
            (signed(row.created_ms, "the time")?, signed(row.updated_ms, "the time")?);

        if let Some(key) = key {
            let (owner, text) = (encode(&row.owner).into_owned(), encode(&key.key).into_owned());
            let mut pairs = self.keys.owners.iter().zip(&self.keys.names);
            if let Some(at) = pairs.position(|pair| pair == (&owner, &text)) {
                let run = super::text::decode(self.keys.ids[at].clone());
                return refused(format!(
                    "the idempotency key of the new run {id:?} belongs to run {run:?}"
                ));
            }
            self.keys.owners.push(owner);
            self.keys.names.push(text);
            self.keys.fingerprints.push(key.fingerprint.to_vec());
            self.keys.runs.push(no);
            self.keys.ids.push(encode(id).into_owned());
        }

        // One value in each column, in the same order: `unnest` joins them to rows again.
        let text = |text: &str| encode(text).into_owned();
        self.accepts.ids.push(text(id));
        self.accepts.owners.push(text(&row.owner));
        self.accepts.created.push(created);
        self.accepts.tasks.push(text(&row.task));
        self.accepts.specs.push(text(&row.spec));
        self.accepts.splits.push(row.split.as_deref().map(text));

        let bytes = length(&row.spec) + length(&row.summary);
        let after =
            Known { no, epoch: 1, last_seq: 0, is_over: row.is_over, bytes, snapshot_bytes: 0 };
        let update =
            Some((updated, text(&row.status), row.is_over, row.resumed.into(), text(&row.summary)));
        let hash = Some(row.head.hash.0.to_vec());

        self.drafts.insert(id.clone(), Draft { before: None, after, hash, update, snapshot: None });
        Ok(())
    }

    fn change(&mut self, id: &str, write: &Write, packer: &mut Packer) -> Result<(), JournalError> {
        let Some(draft) = self.drafts.get_mut(id) else { return Ok(()) };
        match write {
            Write::Append { segment, .. } => append(&mut self.segments, draft, id, segment, packer),
            Write::Update { updated_ms, status, is_over, resumed, summary, .. } => {
                // No node holds a run that was over before, so this writer does not know how it
                // ended.
                if draft.before.is_some_and(|before| before.is_over)
                    || draft.after.is_over && !is_over
                {
                    return refused(format!("run {id:?} is over"));
                }

                let updated = signed(*updated_ms, "the time")?;
                let text = |text: &str| encode(text).into_owned();

                draft.after.is_over = *is_over;
                draft.update =
                    Some((updated, text(status), *is_over, (*resumed).into(), text(summary)));
                Ok(())
            }
            Write::Save { snapshot, .. } => save(draft, id, snapshot, packer),
            Write::Flag { seqs, .. } => {
                let last = draft.after.last_seq;
                for seq in seqs {
                    if !(1..=last).contains(seq) {
                        let reason = format!(
                            "event {seq} cannot be flagged: the run has the events 1 to {last}"
                        );
                        return refused(format!("run {id:?}: {reason}"));
                    }
                    self.flags.0.push(draft.after.no);
                    self.flags.1.push(signed(*seq, "the event")?);
                }
                Ok(())
            }
            Write::Enqueue { messages, .. } => {
                messages.iter().for_each(|message| self.messages.push(draft.after.no, message));
                Ok(())
            }
            Write::Accept { .. } | Write::Review { .. } => Ok(()),
        }
    }

    /// The runs whose leases the commit needs, in the order of [`Batch::heads`].
    pub(super) fn claims(&self) -> Vec<Claim<String>> {
        let existing = self.drafts.iter().filter_map(|(id, draft)| {
            let before = draft.before?;
            Some(Claim { run: id.clone(), epoch: Some(Epoch(before.epoch)), base: before.last_seq })
        });
        existing.collect()
    }

    /// Number of open runs that it adds, and of those that it ends.
    pub(super) fn opened_and_ended(&self) -> (i64, i64) {
        let count = |is_counted: fn(&Draft) -> bool| {
            let counted = self.drafts.values().filter(|draft| is_counted(draft)).count();
            i64::try_from(counted).unwrap_or(i64::MAX)
        };
        let opened = count(|draft| draft.before.is_none() && !draft.after.is_over);
        let ended = count(|draft| {
            draft.before.is_some_and(|before| !before.is_over) && draft.after.is_over
        });
        (opened, ended)
    }

    /// Heads of existing runs, or of the runs that it accepts.
    pub(super) fn heads(&self, are_accepted: bool) -> Heads {
        let mut heads = Heads::default();

        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);

        for draft in self.drafts.values().filter(|draft| draft.before.is_none() == are_accepted) {
            // A run that the commit accepts has no earlier state to compare with.
            let before = draft.before.unwrap_or(draft.after);

            heads.runs.push(before.no);
            heads.epochs.push(before.epoch);
            heads.bases.push(number(before.last_seq));
            heads.were_over.push(before.is_over);
            heads.last_seqs.push(number(draft.after.last_seq));
            heads.hashes.push(draft.hash.clone());
            heads.bytes.push(draft.after.bytes);
            heads.snapshot_bytes.push(draft.after.snapshot_bytes);
            heads.are_over.push(draft.after.is_over);
        }
        heads
    }

    /// The ranks of the runs of `heads(true)`.
    pub(super) fn ranks(&self) -> Vec<i64> {
        let accepts = self.accepts.ids.iter().map(|id| super::text::decode(id.clone()));
        let by_id: HashMap<String, i64> = accepts.zip(self.accepts.ranks.iter().copied()).collect();

        let accepted = self.drafts.iter().filter(|(_, draft)| draft.before.is_none());
        accepted.map(|(id, _)| by_id[id]).collect()
    }

    /// Changed rows of existing runs, or the rows of the runs that it accepts, in the order of
    /// [`Batch::accepts`].
    pub(super) fn updates(&self, are_accepted: bool) -> Updates {
        let mut updates = Updates::default();

        let mut push = |draft: &Draft| {
            if let Some((updated, status, is_over, resumed, summary)) = &draft.update {
                updates.runs.push(draft.after.no);
                updates.updated.push(*updated);
                updates.statuses.push(status.clone());
                updates.are_over.push(*is_over);
                updates.resumed.push(*resumed);
                updates.summaries.push(summary.clone());
            }
        };

        // These go into one `unnest` with the columns of `accepts`, the others into one of their
        // own.
        if are_accepted {
            let ids = self.accepts.ids.iter().map(|id| super::text::decode(id.clone()));
            ids.filter_map(|id| self.drafts.get(&id)).for_each(&mut push);
        } else {
            self.drafts.values().filter(|draft| draft.before.is_some()).for_each(&mut push);
        }

        updates
    }

    pub(super) fn snapshots(&self) -> Snapshots {
        let mut snapshots = Snapshots::default();
        for draft in self.drafts.values() {
            if let Some((seq, packing, bytes, body)) = &draft.snapshot {
                snapshots.runs.push(draft.after.no);
                snapshots.seqs.push(*seq);
                snapshots.packings.push(*packing);
                snapshots.bytes.push(*bytes);
                snapshots.bodies.push(body.clone());
            }
        }
        snapshots
    }
}

fn append(
    segments: &mut Segments,
    draft: &mut Draft,
    id: &str,
    segment: &Segment,
    packer: &mut Packer,
) -> Result<(), JournalError> {
    let first = segment.first_seq;
    let refused = |reason: String| refused(format!("run {id:?}, events from {first}: {reason}"));
    if draft.after.is_over {
        return refused("the run is over".to_owned());
    }
    if first != draft.after.last_seq + 1 {
        return refused(format!("they do not follow its last event, {}", draft.after.last_seq));
    }

    match segment.lines() {
        Err(reason) => return refused(reason),
        Ok(0) => return refused("there are none".to_owned()),
        Ok(lines) if lines != u64::from(segment.count) => {
            return refused(format!("there are {lines} lines for {} events", segment.count));
        }
        Ok(_) => {}
    }

    let packed = packer.pack(&segment.body)?;
    segments.runs.push(draft.after.no);
    segments.first_seqs.push(signed(first, "the event")?);
    segments.counts.push(segment.count.into());
    segments.epochs.push(draft.after.epoch);
    segments.hashes.push(segment.hash.0.to_vec());
    segments.packings.push(packed.packing.number());
    segments.bytes.push(packed.bytes);
    segments.bodies.push(packed.body.to_vec());

    draft.after.bytes += i64::try_from(packed.body.len()).unwrap_or(i64::MAX);
    draft.after.last_seq = segment.last_seq();
    draft.hash = Some(segment.hash.0.to_vec());

    Ok(())
}

fn save(
    draft: &mut Draft,
    id: &str,
    snapshot: &Snapshot,
    packer: &mut Packer,
) -> Result<(), JournalError> {
    let (seq, last) = (snapshot.seq, draft.after.last_seq);
    if seq > last {
        return refused(format!(
            "run {id:?}: a snapshot at event {seq}, but the last event is {last}"
        ));
    }

    let packed = packer.pack(&snapshot.body)?;
    draft.after.snapshot_bytes = i64::try_from(packed.body.len()).unwrap_or(i64::MAX);

    draft.snapshot = Some((
        signed(seq, "the event")?,
        packed.packing.number(),
        packed.bytes,
        packed.body.to_vec(),
    ));

    Ok(())
}
