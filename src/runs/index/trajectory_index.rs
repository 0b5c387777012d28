//! The part of an index for one trajectory.

use serde_json::Value;

use super::tree::TrajectoryEnd;
use prime_protocol::Usage;

/// The bit of `Step::depth` of steps that were committed.
const COMMITTED: u32 = 1 << 31;

/// A step: its event, the committed steps below it, whether it was committed, and a hash of its content.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub seq: u64,
    depth: u32,
    /// Of action, violations and decision; not of times or tokens.
    pub hash: u32,
}

impl Step {
    pub fn new(seq: u64, depth: usize, is_committed: bool, hash: u32) -> Self {
        let depth = u32::try_from(depth).unwrap_or(u32::MAX) & !COMMITTED;
        Self { seq, depth: if is_committed { depth | COMMITTED } else { depth }, hash }
    }

    pub fn depth(self) -> u32 {
        self.depth & !COMMITTED
    }

    pub fn is_committed(self) -> bool {
        self.depth & COMMITTED != 0
    }
}

/// What happened at a step that was not simply accepted.
#[derive(Clone, Copy)]
pub(super) struct Finding {
    /// The position of the step in its trajectory.
    pub position: usize,
    pub score: f32,
    /// A bit for each violated constraint, in the order of `RunIndex::constraints`.
    pub violations: u64,
    pub is_retry: bool,
    pub is_backtrack: bool,
    /// States that the step's rejection popped.
    pub pops: u32,
    pub is_flagged: bool,
}

/// A state that was computed, to start from at the next question.
pub(super) struct Mark {
    /// The step that was proposed in this state.
    pub position: usize,
    pub depth: u32,
    pub state: Value,
    pub bytes: usize,
}

#[derive(Default)]
pub(super) struct TrajectoryIndex {
    pub steps: Vec<Step>,
    /// In the order of their steps.
    pub findings: Vec<Finding>,
    /// In the order of their steps.
    pub marks: Vec<Mark>,
    pub usage: Usage,
    /// Of the last step, in milliseconds of run time.
    pub elapsed_ms: u64,
    /// Failed attempts at turns.
    pub mishaps: u32,
    pub end: Option<TrajectoryEnd>,
}

impl TrajectoryIndex {
    /// The position of the step with this event.
    pub fn position_of(&self, seq: u64) -> Option<usize> {
        self.steps.binary_search_by_key(&seq, |step| step.seq).ok()
    }

    /// The findings at steps `from..to`.
    pub fn findings_in(&self, from: usize, to: usize) -> &[Finding] {
        let start = self.findings.partition_point(|finding| finding.position < from);
        let end = self.findings.partition_point(|finding| finding.position < to);
        &self.findings[start..end.max(start)]
    }

    /// Committed steps now.
    pub fn depth(&self) -> u64 {
        self.steps.last().map_or(0, |step| u64::from(step.depth()) + u64::from(step.is_committed()))
    }

    /// Adds a step, and what it tells of the one before it: states that this popped.
    pub fn push(&mut self, step: Step, finding: Option<Finding>) {
        let before = self.steps.last().copied();
        let position = self.steps.len();
        if let Some(before) = before.filter(|before| before.depth() > step.depth() && !before.is_committed())
            && let Some(finding) = self.findings.last_mut().filter(|finding| finding.position + 1 == position)
        {
            finding.pops = before.depth() - step.depth();
        }
        self.steps.push(step);
        self.findings.extend(finding);
    }

    pub fn bytes(&self) -> usize {
        let marks: usize = self.marks.iter().map(|mark| mark.bytes).sum();
        self.steps.capacity() * size_of::<Step>() + self.findings.capacity() * size_of::<Finding>() + marks
    }
}
