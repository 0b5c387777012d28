//! A page of a run's segments, which reads fill from its own rows and from batches.

use crate::records::Segment;

/// Consecutive segments of a run, until their bodies reach `bytes`. `after_seq` is the last event
/// before the next.
pub(super) struct Page {
    pub(super) after_seq: u64,
    bytes: usize,
    segments: Vec<Segment>,
    total: usize,
}

impl Page {
    pub(super) fn new(after_seq: u64, bytes: usize) -> Self {
        Self { after_seq, bytes, segments: Vec::new(), total: 0 }
    }

    pub(super) fn is_full(&self) -> bool {
        !self.segments.is_empty() && self.total >= self.bytes
    }

    pub(super) fn push(&mut self, segment: Segment) {
        if segment.last_seq() > self.after_seq && !self.is_full() {
            self.after_seq = segment.last_seq();
            self.total += segment.body.len();
            self.segments.push(segment);
        }
    }

    pub(super) fn into_segments(self) -> Vec<Segment> {
        self.segments
    }
}
