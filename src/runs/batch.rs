//! One commit in the making: the writes, and what to publish once they are durable.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::event_stream::{Committed, EventStream};
use prime_journal::{Segment, Write};

/// Why the journal cannot accept a write now.
pub type NotWritable = String;

pub type Reply = oneshot::Sender<Result<(), NotWritable>>;

/// What a stream publishes when its part of the batch is durable.
pub struct Publication {
    pub stream: Arc<EventStream>,
    segment: Option<Segment>,
    committed: Committed,
    acks: Vec<oneshot::Sender<()>>,
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
    pub publications: Vec<Publication>,
    pub replies: Vec<Reply>,
    /// The first writes, which callers wait for. They come first so that they can be refused while the rest waits.
    pub awaited: usize,
    pub probes: Vec<Reply>,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.probes.is_empty()
    }

    /// Adds a write that a caller waits for.
    pub fn push_awaited(&mut self, write: Write, reply: Reply) {
        self.writes.insert(self.awaited, write);
        self.awaited += 1;
        self.replies.push(reply);
    }

    /// Whether a caller waits for it.
    pub fn is_urgent(&self) -> bool {
        self.awaited > 0 || !self.probes.is_empty()
    }

    /// Takes everything pending in a stream. Returns its size in bytes.
    pub fn take(&mut self, stream: Arc<EventStream>) -> usize {
        let pending = stream.take();
        let bytes = pending.body.len() + pending.snapshot.as_ref().map_or(0, |snapshot| snapshot.body.len());
        let mut committed = Committed { progress: pending.progress, ..stream.committed() };
        let mut flagged = Vec::new();
        let segment = (pending.count > 0).then(|| {
            let segment = Segment::of_lines(committed.head, pending.count, pending.body);
            flagged = pending.flagged.iter().map(|place| committed.head.seq + u64::from(*place)).collect();
            committed.head = segment.head();
            segment
        });
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
        }
        if segment.is_some() || !pending.acks.is_empty() {
            self.publications.push(Publication { stream, segment, committed, acks: pending.acks });
        }
        bytes
    }

    /// Refuses what was not promised yet: new runs, reviews and probes.
    pub fn refuse(&mut self, reason: &str) {
        self.writes.drain(..self.awaited);
        self.awaited = 0;
        for reply in self.replies.drain(..).chain(self.probes.drain(..)) {
            drop(reply.send(Err(reason.to_owned())));
        }
    }

    /// After the commit: replies to the callers and publishes the events.
    pub fn publish(self) -> CommitSize {
        let mut size = CommitSize { runs: self.publications.len(), ..CommitSize::default() };
        for reply in self.replies.into_iter().chain(self.probes) {
            drop(reply.send(Ok(())));
        }
        for Publication { stream, segment, committed, acks } in self.publications {
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
