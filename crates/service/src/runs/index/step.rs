//! What an index keeps of each step, and of the steps that were not simply accepted.

/// The bit of `Step::depth` that says whether the step was committed.
const COMMITTED: u32 = 1 << 31;

/// A step: its event, the committed steps below it, whether it was committed, and a hash of its
/// content.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub seq: u64,
    depth: u32,
    /// A hash of action, violations and decision, without times and tokens.
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
