//! The part of an index for one trajectory.

use serde_json::Value;

use super::landmarks::TrajectoryEnd;
use super::step::{Finding, Step};
use super::summary::Summary;
use prime_protocol::Usage;

/// Number of steps of a block. Summaries of blocks are kept, so that a summary of many steps need
/// not look at each.
const BLOCK: usize = 256;

/// A state that was computed, to start from at the next question.
pub(super) struct Mark {
    /// The step that was proposed in this state.
    pub position: usize,
    pub depth: u32,
    pub state: Value,
    pub bytes: usize,
}

/// What a trajectory did, as far as its events are indexed.
#[derive(Default)]
pub(super) struct TrajectoryIndex {
    pub steps: Vec<Step>,
    /// What happened at steps that were not simply accepted, in the order of the steps.
    pub findings: Vec<Finding>,
    /// Summaries of whole blocks of steps, without the block that holds the last step: what this
    /// step popped is not known yet.
    blocks: Vec<Summary>,
    /// How often each constraint was violated, by its bit.
    pub violations: Vec<u32>,

    /// The position of the first step that was not accepted.
    pub first_rejected: Option<usize>,
    /// States that were computed, in the order of their steps.
    pub marks: Vec<Mark>,

    pub usage: Usage,
    /// Run time at the last step, in milliseconds.
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

    /// Adds a step. This also shows how many states the step before it popped.
    pub fn push(&mut self, step: Step, finding: Option<Finding>) {
        let before = self.steps.last().copied();
        let position = self.steps.len();

        // A rejection popped states exactly if the next step is proposed at a lower depth.
        if let Some(before) =
            before.filter(|before| before.depth() > step.depth() && !before.is_committed())
            && let Some(finding) =
                self.findings.last_mut().filter(|finding| finding.position + 1 == position)
        {
            finding.pops = before.depth() - step.depth();
        }
        // The block is complete only now, because its last rejection gets its pops from this step.
        if position > 0 && position.is_multiple_of(BLOCK) {
            self.blocks.push(self.scanned(position - BLOCK, position));
        }

        self.steps.push(step);

        if let Some(finding) = finding {
            for bit in (0..u64::BITS as usize).filter(|bit| finding.violations & (1 << bit) != 0) {
                self.violations.resize(self.violations.len().max(bit + 1), 0);
                self.violations[bit] += 1;
            }
            if finding.is_retry || finding.is_backtrack {
                self.first_rejected.get_or_insert(position);
            }
            self.findings.push(finding);
        }
    }

    /// The summary of steps `from..to`, by looking at each.
    fn scanned(&self, from: usize, to: usize) -> Summary {
        let mut summary = Summary::EMPTY;
        for step in &self.steps[from..to] {
            summary.add_depth(step.depth());
        }
        for finding in self.findings_in(from, to) {
            summary.add_finding(finding);
        }
        summary
    }

    /// The summary of steps `from..to`.
    pub fn summary(&self, from: usize, to: usize) -> Summary {
        let (first, last) = (from.div_ceil(BLOCK), (to / BLOCK).min(self.blocks.len()));
        if first >= last {
            return self.scanned(from, to);
        }

        let mut summary = self.scanned(from, first * BLOCK);
        for block in &self.blocks[first..last] {
            summary.append(block);
        }
        if last * BLOCK < to {
            summary.append(&self.scanned(last * BLOCK, to));
        }
        summary
    }

    pub fn bytes(&self) -> usize {
        // The vectors grow by doubling, so their capacity counts.
        let marks: usize = self.marks.iter().map(|mark| mark.bytes).sum();
        let blocks = self.blocks.capacity() * size_of::<Summary>();
        self.steps.capacity() * size_of::<Step>()
            + self.findings.capacity() * size_of::<Finding>()
            + blocks
            + marks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trajectory that climbs, with a rejection at every seventh step and at every 97th; the
    /// latter pop three states.
    fn climbing(steps: usize) -> TrajectoryIndex {
        let mut index = TrajectoryIndex::default();
        let mut depth = 0;
        for position in 0..steps {
            let is_rejected = position % 7 == 6 || position % 97 == 96;
            let finding = is_rejected.then_some(Finding {
                position,
                score: if position == 699 { 2.0 } else { 0.6 },
                violations: if position % 97 == 96 { 0b10 } else { 0b1 },
                is_retry: position % 14 == 6,
                is_backtrack: position % 14 != 6,
                pops: 0,
                is_flagged: position % 35 == 34,
            });

            index.push(Step::new(position as u64, depth, !is_rejected, 0), finding);
            if !is_rejected {
                depth += 1;
            } else if position % 97 == 96 {
                depth -= 3;
            }
        }
        index
    }

    #[test]
    fn a_summary_by_blocks_is_that_of_all_its_steps() {
        let index = climbing(5 * BLOCK + 40);
        assert_eq!(index.blocks.len(), 5);
        for (from, to) in [
            (0, 1),
            (0, 1320),
            (3, 255),
            (3, 257),
            (256, 512),
            (255, 513),
            (1000, 1320),
            (1279, 1320),
        ] {
            assert_eq!(index.summary(from, to), index.scanned(from, to), "{from}..{to}");
        }

        let all = index.summary(0, index.steps.len());
        // Of 1,320 positions, 188 leave 6 when divided by 7; 13 leave 96 when divided by 97, of
        // which 1 is among those.
        assert_eq!((all.retries + all.backtracks, all.pops), (200, 39));
        assert_eq!((index.first_rejected, index.violations.as_slice()), (Some(6), &[187, 13][..]));
        assert_eq!((all.depth_min, all.violations, all.worst), (0, 0b11, Some((2.0, 699))));
    }
}
