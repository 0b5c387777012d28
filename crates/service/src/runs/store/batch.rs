//! A commit while it is prepared: the writes, and what to publish once they are durable.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::event_stream::{Committed, EventStream};
use prime_journal::{Segment, Write};

/// Why the journal does not accept a write now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAccepted {
    /// The store is at its limit of open runs.
    Full {
        open: u64,
        most: u64,
    },
    NotWritable(String),
}

pub type Reply = oneshot::Sender<Result<(), NotAccepted>>;

/// What a stream publishes once its part of the batch is durable.
struct Publication {
    stream: Arc<EventStream>,
    segment: Option<Segment>,
    committed: Committed,
    acks: Vec<oneshot::Sender<()>>,
}

/// Consecutive writes that are committed together or not at all: one that a caller waits for, or
/// all of a stream.
struct Part {
    /// Number of writes.
    writes: usize,
    then: Then,
}

/// What happens when a part is durable or refused.
enum Then {
    Reply(Reply),
    Publish(Box<Publication>),
}

/// The size of a commit.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommitSize {
    pub events: usize,
    pub runs: usize,
    pub bytes: usize,
}

#[derive(Default)]
pub struct Batch {
    pub writes: Vec<Write>,
    parts: Vec<Part>,
    /// Number of parts that callers wait for. They come first, so that they can be refused while
    /// the rest waits. Each has one write.
    awaited: usize,
    pub probes: Vec<Reply>,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.probes.is_empty()
    }

    /// Adds a write that a caller waits for.
    pub fn push_awaited(&mut self, write: Write, reply: Reply) {
        self.writes.insert(self.awaited, write);
        self.parts.insert(self.awaited, Part { writes: 1, then: Then::Reply(reply) });
        self.awaited += 1;
    }

    /// True if a caller waits for the batch.
    pub fn is_urgent(&self) -> bool {
        self.awaited > 0 || !self.probes.is_empty()
    }

    /// Takes everything pending in a stream. Returns its size in bytes.
    pub fn take(&mut self, stream: Arc<EventStream>) -> usize {
        let pending = stream.take();
        let bytes = pending.body.len()
            + pending.snapshot.as_ref().map_or(0, |snapshot| snapshot.body.len());
        let writes_before = self.writes.len();

        let Committed { head, progress: before, is_over, is_refused } = stream.committed();
        let mut committed = Committed { head, progress: pending.progress, is_over, is_refused };
        let mut flagged = Vec::new();
        let segment = (pending.count > 0).then(|| {
            let segment = Segment::of_lines(committed.head, pending.count, pending.body);
            flagged = pending
                .flagged
                .iter()
                .map(|place| committed.head.seq + u64::from(*place))
                .collect();
            committed.head = segment.head();
            segment
        });

        let mut messages = match &segment {
            Some(_) => stream.messages(&flagged, &before, &committed.progress),
            None => Vec::new(),
        };
        messages.extend(pending.messages);

        if let Some(segment) = &segment {
            self.writes.push(Write::Append { id: stream.id.clone(), segment: segment.clone() });
        }
        if !flagged.is_empty() {
            self.writes.push(Write::Flag { id: stream.id.clone(), seqs: flagged });
        }
        if let Some(snapshot) = pending.snapshot {
            self.writes.push(Write::Save { id: stream.id.clone(), snapshot });
        }
        if let Some(update) = pending.update {
            committed.is_over = update.is_over;
            self.writes.push(Write::Update {
                id: stream.id.clone(),
                updated_ms: update.updated_ms,
                status: update.status,
                is_over: update.is_over,
                resumed: update.resumed,
                summary: update.summary,
            });
            messages.extend(update.messages);
        }
        if !messages.is_empty() {
            self.writes.push(Write::Enqueue { id: stream.id.clone(), messages });
        }

        let writes = self.writes.len() - writes_before;
        if writes > 0 {
            let then = Then::Publish(Box::new(Publication {
                stream,
                segment,
                committed,
                acks: pending.acks,
            }));
            self.parts.push(Part { writes, then });
        }
        bytes
    }

    /// Takes the probes out, as a batch of their own.
    pub fn take_probes(&mut self) -> Self {
        Self { probes: std::mem::take(&mut self.probes), ..Self::default() }
    }

    /// Splits the batch into two halves; probes go last, in a half of their own.
    ///
    /// # Errors
    /// The batch itself, if it has only one part.
    pub fn halves(mut self) -> Result<(Self, Self), Self> {
        // Probes write nothing, so they can succeed where the writes fail.
        if !self.probes.is_empty() && !self.parts.is_empty() {
            let probes = self.take_probes();
            return Ok((self, probes));
        }

        let middle = self.parts.len() / 2;
        if middle == 0 {
            return Err(self);
        }

        let writes = self.parts[..middle].iter().map(|part| part.writes).sum();
        let second = Self {
            writes: self.writes.split_off(writes),
            parts: self.parts.split_off(middle),
            awaited: self.awaited.saturating_sub(middle),
            probes: Vec::new(),
        };
        // The awaited parts come first: the second half has those that do not fit into the first.
        self.awaited = self.awaited.min(middle);
        Ok((self, second))
    }

    /// Adds back a batch that was split off.
    pub fn append(&mut self, mut later: Self) {
        self.awaited += later.awaited;
        self.writes.append(&mut later.writes);
        self.parts.append(&mut later.parts);
        self.probes.append(&mut later.probes);
    }

    /// Leaves out snapshots; they only speed up a later resume. Returns whether there were any.
    pub fn drop_snapshots(&mut self) -> bool {
        let mut writes = std::mem::take(&mut self.writes).into_iter();
        let before = writes.len();
        for part in &mut self.parts {
            let kept = self.writes.len();
            self.writes.extend(
                writes
                    .by_ref()
                    .take(part.writes)
                    .filter(|write| !matches!(write, Write::Save { .. })),
            );
            part.writes = self.writes.len() - kept;
        }
        self.writes.len() < before
    }

    /// Leaves out the runs that are abandoned: another node writes them now.
    pub fn drop_abandoned(&mut self) {
        let is_abandoned = |part: &Part| matches!(&part.then, Then::Publish(publication) if publication.stream.is_abandoned());
        if !self.parts.iter().any(is_abandoned) {
            return;
        }

        let mut writes = std::mem::take(&mut self.writes).into_iter();
        for part in std::mem::take(&mut self.parts) {
            let own = writes.by_ref().take(part.writes);
            if is_abandoned(&part) {
                own.for_each(drop);
            } else {
                self.writes.extend(own);
                self.parts.push(part);
            }
        }
    }

    /// Drops the batch after the lease of its one run was lost: replies to the caller, or abandons
    /// the run.
    pub fn abandon(self, reason: &str) {
        for part in &self.parts {
            if let Then::Publish(publication) = &part.then {
                publication.stream.abandon();
            }
        }
        self.give_up(reason);
    }

    /// Drops the batch after the journal refused it for good: replies to the callers, and fails the
    /// runs.
    pub fn give_up(self, reason: &str) {
        let mut replies = self.probes;
        for part in self.parts {
            match part.then {
                Then::Reply(reply) => replies.push(reply),
                Then::Publish(publication) if publication.stream.is_abandoned() => {}
                Then::Publish(publication) => publication.stream.refuse(reason),
            }
        }

        for reply in replies {
            drop(reply.send(Err(NotAccepted::NotWritable(reason.to_owned()))));
        }
    }

    /// Number of new runs in the batch.
    pub fn new_runs(&self) -> usize {
        self.writes[..self.awaited]
            .iter()
            .filter(|write| matches!(write, Write::Accept { .. }))
            .count()
    }

    /// Refuses the new runs for which `why` has a reason. Returns whether there was one.
    pub fn refuse_new_runs(&mut self, mut why: impl FnMut(&Write) -> Option<NotAccepted>) -> bool {
        // Only the awaited part is rebuilt: the streams' writes are already promised.
        let (later_writes, later_parts) =
            (self.writes.split_off(self.awaited), self.parts.split_off(self.awaited));
        let (writes, parts) = (std::mem::take(&mut self.writes), std::mem::take(&mut self.parts));

        for (write, part) in writes.into_iter().zip(parts) {
            let reason = if matches!(write, Write::Accept { .. }) { why(&write) } else { None };
            match (part.then, reason) {
                (Then::Reply(reply), Some(reason)) => drop(reply.send(Err(reason))),
                (then, _) => {
                    self.writes.push(write);
                    self.parts.push(Part { then, ..part });
                }
            }
        }

        let before = std::mem::replace(&mut self.awaited, self.parts.len());
        self.writes.extend(later_writes);
        self.parts.extend(later_parts);
        self.awaited < before
    }

    /// Refuses what is not promised yet: new runs, reviews and probes.
    pub fn refuse(&mut self, reason: &str) {
        self.writes.drain(..self.awaited);

        let awaited = self.parts.drain(..self.awaited).filter_map(|part| match part.then {
            Then::Reply(reply) => Some(reply),
            Then::Publish(_) => None,
        });

        for reply in awaited.chain(self.probes.drain(..)) {
            drop(reply.send(Err(NotAccepted::NotWritable(reason.to_owned()))));
        }
        self.awaited = 0;
    }

    /// Replies to the callers and publishes the events, after the commit.
    pub fn publish(self) -> CommitSize {
        let mut size = CommitSize::default();
        for probe in self.probes {
            drop(probe.send(Ok(())));
        }

        for part in self.parts {
            let Publication { stream, segment, committed, acks } = match part.then {
                Then::Reply(reply) => {
                    drop(reply.send(Ok(())));
                    continue;
                }
                Then::Publish(publication) => *publication,
            };
            // There is only a snapshot: nothing that readers see has changed.
            if segment.is_none() && acks.is_empty() {
                continue;
            }

            size.runs += 1;
            if let Some(segment) = &segment {
                size.events += segment.count as usize;
                size.bytes += segment.body.len();
            }
            stream.publish(segment, committed);
            // A caller may have stopped waiting.
            for ack in acks {
                let _ = ack.send(());
            }
        }
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_journal::{ChainHash, Head, Review, ReviewCounts, RunRow};

    fn accept(id: &str) -> Write {
        let row = RunRow {
            id: id.to_owned(),
            owner: String::new(),
            created_ms: 1,
            updated_ms: 1,
            task: "t".to_owned(),
            status: "queued".to_owned(),
            is_over: false,
            resumed: 0,
            spec: String::new(),
            summary: String::new(),
            split: None,
            reviews: ReviewCounts::default(),
            head: Head { seq: 0, hash: ChainHash::genesis("") },
        };
        Write::Accept { row, key: None }
    }

    type Answer = oneshot::Receiver<Result<(), NotAccepted>>;

    fn awaited(batch: &mut Batch, write: Write) -> Answer {
        let (reply, answer) = oneshot::channel();
        batch.push_awaited(write, reply);
        answer
    }

    #[test]
    fn new_runs_are_refused_alone() {
        let mut batch = Batch::default();
        let review =
            Review { at_ms: 1, by: "ada".to_owned(), is_rejected: false, note: String::new() };

        let mut kept = vec![awaited(&mut batch, accept("r0"))];
        let mut refused = awaited(&mut batch, accept("r1"));
        kept.push(awaited(&mut batch, Write::Review { id: "s".to_owned(), seq: 3, review }));
        kept.push(awaited(&mut batch, accept("r2")));

        assert_eq!(batch.new_runs(), 3);
        let full = NotAccepted::Full { open: 8, most: 9 };
        assert!(batch.refuse_new_runs(|write| (write.run_id() == "r1").then(|| full.clone())));
        assert_eq!(refused.try_recv(), Ok(Err(full)));
        assert!(
            kept.iter_mut().all(|answer| answer.try_recv().is_err()),
            "they wait for their commit"
        );
        let left: Vec<_> = batch.writes.iter().map(Write::run_id).collect();

        assert_eq!((left, batch.new_runs(), batch.is_urgent()), (vec!["r0", "s", "r2"], 2, true));
        assert!(!batch.refuse_new_runs(|_| None));
        batch.publish();
        assert!(kept.iter_mut().all(|answer| answer.try_recv() == Ok(Ok(()))));
    }
}
