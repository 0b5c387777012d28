//! The state stack of a trajectory; its top is the current state. It stores the committed lines and a snapshot every few
//! frames, so that a pop replays at most that many lines and a million steps take little memory.

use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use super::rejection::Rejection;
use prime_bench::tasks::{Machine, Snapshot};

/// What happened at a state while it was on top.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Actions that were rejected here.
    pub excluded: Vec<Rejection>,
    /// Proposals made here.
    pub proposals: u32,
    /// Retries since the last committed step.
    pub retries: u32,
    /// Actions whose successor used up its attempts. They may have been right: another one is tried first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub abandoned: Vec<Abandoned>,
}

/// An action whose successor used up its attempts, and what was rejected there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abandoned {
    pub line: Box<str>,
    rejected: Vec<Rejection>,
}

impl Frame {
    fn is_blank(&self) -> bool {
        self.excluded.is_empty() && self.abandoned.is_empty() && self.proposals <= 1
    }

    #[inline]
    pub fn excludes(&self, line: &str) -> bool {
        self.excluded.iter().any(|rejection| *rejection.line == *line)
    }

    /// Proposals that brought no new line: repetitions and retries.
    pub fn repetitions(&self) -> u32 {
        let tried = u32::try_from(self.excluded.len() + self.abandoned.len()).unwrap_or(u32::MAX);
        self.proposals.saturating_sub(tried)
    }

    /// The lines that an executor should not propose next: the rejected ones, then the abandoned ones.
    pub fn avoided(&self) -> impl Iterator<Item = &str> {
        let rejected = self.excluded.iter().map(|rejection| &*rejection.line);
        rejected.chain(self.abandoned.iter().map(|abandoned| &*abandoned.line))
    }

    pub fn exclude(&mut self, line: &str, reason: Option<&str>) {
        if !self.excludes(line) {
            self.excluded.push(Rejection::new(line, reason));
        }
    }

    pub(super) fn abandon(&mut self, line: Box<str>, rejected: Vec<Rejection>) {
        self.abandoned.retain(|abandoned| abandoned.line != line);
        self.abandoned.push(Abandoned { line, rejected });
    }

    /// The frame of a state that is visited again: what was rejected there stays rejected, the attempts begin anew.
    fn successor(&self, line: &str) -> Self {
        let known = self.abandoned.iter().find(|abandoned| *abandoned.line == *line);
        let excluded = known.map_or_else(Vec::new, |abandoned| abandoned.rejected.clone());
        Self { excluded, ..Self::default() }
    }
}

/// Committed lines, and what is needed to undo them.
#[derive(Clone, Debug)]
pub struct StateStack {
    /// All committed lines, concatenated; line k ends at `ends[k]`.
    text: String,
    ends: Vec<u32>,
    /// Frames below the top where something was rejected, by depth. Clean steps have none.
    notes: Vec<(usize, Frame)>,
    /// Snapshots at depths that are multiples of `snapshot_every_frames`.
    snapshots: Vec<Snapshot>,
    snapshot_every_frames: usize,
    top: Frame,
}

impl StateStack {
    /// A stack whose bottom is the machine's current state.
    pub fn new(machine: &dyn Machine, snapshot_every_frames: usize) -> Self {
        Self {
            text: String::new(),
            ends: Vec::new(),
            notes: Vec::new(),
            snapshots: vec![machine.snapshot()],
            snapshot_every_frames: snapshot_every_frames.max(1),
            top: Frame::default(),
        }
    }

    /// Committed steps.
    #[inline]
    pub fn depth(&self) -> usize {
        self.ends.len()
    }

    #[inline]
    pub fn top(&self) -> &Frame {
        &self.top
    }

    pub fn top_mut(&mut self) -> &mut Frame {
        &mut self.top
    }

    fn line(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.text[start..self.ends[index] as usize]
    }

    /// Equal for equal committed lines, in every process.
    pub fn digest(&self) -> u64 {
        // Where the lines end tells "ab", "c" from "a", "bc".
        let ends: Vec<u8> = self.ends.iter().flat_map(|end| end.to_le_bytes()).collect();
        XxHash64::oneshot(XxHash64::oneshot(0, self.text.as_bytes()), &ends)
    }

    /// The committed lines from the bottom up.
    pub fn lines(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator {
        (0..self.depth()).map(|index| self.line(index))
    }

    /// The frames below the top where something was rejected, by depth, and the top.
    pub fn notes(&self) -> (&[(usize, Frame)], &Frame) {
        (&self.notes, &self.top)
    }

    /// Restores what [`StateStack::notes`] returned.
    pub fn set_notes(&mut self, notes: Vec<(usize, Frame)>, top: Frame) {
        (self.notes, self.top) = (notes, top);
    }

    /// Pushes the machine's current state, which `line` led to.
    pub fn push(&mut self, line: &str, machine: &dyn Machine) {
        let depth = self.depth();
        if self.top.is_blank() {
            // Its lists are empty.
            (self.top.proposals, self.top.retries) = (0, 0);
        } else {
            let successor = self.top.successor(line);
            self.notes.push((depth, std::mem::replace(&mut self.top, successor)));
        }
        self.text.push_str(line);
        self.ends.push(u32::try_from(self.text.len()).expect("invariant: a trajectory's lines stay below 4 GiB"));
        if (depth + 1).is_multiple_of(self.snapshot_every_frames) {
            self.snapshots.push(machine.snapshot());
        }
    }

    /// Undoes the last committed step: the machine returns to the state below. Returns the step's line.
    pub fn pop(&mut self, machine: &mut dyn Machine) -> Option<Box<str>> {
        let parent = self.depth().checked_sub(1)?;
        let line: Box<str> = self.line(parent).into();
        self.ends.pop();
        self.text.truncate(self.ends.last().map_or(0, |end| *end as usize));
        self.snapshots.truncate(parent / self.snapshot_every_frames + 1);
        machine.restore(self.snapshots.last().expect("invariant: the bottom has a snapshot"));
        for index in (self.snapshots.len() - 1) * self.snapshot_every_frames..parent {
            machine.replay(self.line(index)).expect("invariant: committed lines can be replayed");
        }
        self.top = match self.notes.pop_if(|(depth, _)| *depth == parent) {
            Some((_, frame)) => frame,
            // Nothing was rejected there: the only proposal is the one that is undone.
            None => Frame { proposals: 1, ..Frame::default() },
        };
        self.top.retries = 0;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_bench::tasks::{self, Difficulty};

    #[test]
    fn popping_returns_to_each_earlier_state_and_its_exclusions() {
        let mut machine = tasks::find("bubble-sort").expect("listed").generate(Difficulty::Easy, 3).start();
        let mut stack = StateStack::new(machine.as_ref(), 4);
        let mut states = Vec::new();
        for step in 0..23 {
            let line = machine.reference().expect("a long enough trace");
            if step % 3 == 0 {
                stack.top_mut().exclude(&format!("wrong {step}"), None);
            }
            states.push((machine.state(), line.clone()));
            machine.replay(&line).expect("legal");
            stack.push(&line, machine.as_ref());
        }
        assert_eq!(stack.lines().collect::<Vec<_>>(), states.iter().map(|(_, line)| line).collect::<Vec<_>>());
        for (step, (state, line)) in states.into_iter().enumerate().rev() {
            assert_eq!(stack.pop(machine.as_mut()).as_deref(), Some(line.as_str()));
            assert_eq!(machine.state(), state);
            assert_eq!(stack.top().excludes(&format!("wrong {step}")), step % 3 == 0);
        }
        assert_eq!(stack.pop(machine.as_mut()), None);
    }
}
