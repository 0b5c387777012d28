//! The state stack of a trajectory; its top is the current state. It stores the committed lines and
//! a snapshot every few frames, so that a pop replays at most that many lines and a million steps
//! take little memory.

use std::hash::Hasher as _;
use std::sync::Arc;

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
    /// Actions whose successor used up its attempts. They may have been right: another one is tried
    /// first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub abandoned: Vec<Abandoned>,
}

/// An action whose successor used up its attempts, and what was rejected there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abandoned {
    /// The line that led to the successor.
    pub line: Box<str>,
    rejected: Vec<Rejection>,
}

impl Frame {
    fn is_blank(&self) -> bool {
        self.excluded.is_empty() && self.abandoned.is_empty() && self.proposals <= 1
    }

    /// Returns whether this line was rejected here.
    #[inline]
    pub fn excludes(&self, line: &str) -> bool {
        self.excluded.iter().any(|rejection| *rejection.line == *line)
    }

    /// Proposals that brought no new line: repetitions and retries.
    pub fn repetitions(&self) -> u32 {
        let tried = u32::try_from(self.excluded.len() + self.abandoned.len()).unwrap_or(u32::MAX);
        self.proposals.saturating_sub(tried)
    }

    /// The lines that an executor should not propose next: the rejected ones, then the abandoned
    /// ones.
    pub fn avoided(&self) -> impl Iterator<Item = &str> {
        let rejected = self.excluded.iter().map(|rejection| &*rejection.line);
        rejected.chain(self.abandoned.iter().map(|abandoned| &*abandoned.line))
    }

    /// Rejects a line here, once.
    pub fn exclude(&mut self, line: &str, reason: Option<&str>) {
        if !self.excludes(line) {
            self.excluded.push(Rejection::new(line, reason));
        }
    }

    pub(super) fn abandon(&mut self, line: Box<str>, rejected: Vec<Rejection>) {
        self.abandoned.retain(|abandoned| abandoned.line != line);
        self.abandoned.push(Abandoned { line, rejected });
    }

    /// The frame of the state that `line` leads to. If it was visited before, what was rejected
    /// there stays rejected, and its attempts begin anew.
    fn successor(&self, line: &str) -> Self {
        let known = self.abandoned.iter().find(|abandoned| *abandoned.line == *line);
        let excluded = known.map_or_else(Vec::new, |abandoned| abandoned.rejected.clone());
        Self { excluded, ..Self::default() }
    }
}

/// Committed lines, and what is needed to undo them. A clone shares all but the last lines.
#[derive(Clone, Debug)]
pub struct StateStack {
    /// The lines in parts of `chunk_frames`; the last part, which is open, has fewer.
    chunks: Vec<Arc<Chunk>>,
    chunk_frames: usize,
    depth: usize,
    /// Frames below the top where something was rejected, by depth. Clean steps have none.
    notes: Vec<(usize, Frame)>,
    top: Frame,
}

/// Successive lines, and the state before them.
#[derive(Clone, Debug)]
struct Chunk {
    below: Snapshot,
    /// The lines, concatenated; line k ends at `ends[k]`.
    text: String,
    ends: Vec<u32>,
}

impl Chunk {
    fn after(machine: &dyn Machine) -> Arc<Self> {
        Arc::new(Self { below: machine.snapshot(), text: String::new(), ends: Vec::new() })
    }

    fn line(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.text[start..self.ends[index] as usize]
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.ends.push(
            u32::try_from(self.text.len())
                .expect("invariant: the lines between snapshots stay below 4 GiB"),
        );
    }

    fn pop(&mut self) -> Option<Box<str>> {
        let line: Box<str> = self.line(self.ends.len().checked_sub(1)?).into();
        self.ends.pop();
        self.text.truncate(self.text.len() - line.len());
        Some(line)
    }
}

impl StateStack {
    /// A stack whose bottom is the machine's current state.
    pub fn new(machine: &dyn Machine, snapshot_every_frames: usize) -> Self {
        Self {
            chunks: vec![Chunk::after(machine)],
            chunk_frames: snapshot_every_frames.max(1),
            depth: 0,
            notes: Vec::new(),
            top: Frame::default(),
        }
    }

    /// Committed steps.
    #[inline]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The frame of the current state.
    #[inline]
    pub fn top(&self) -> &Frame {
        &self.top
    }

    /// The frame of the current state, to be changed.
    #[inline]
    pub fn top_mut(&mut self) -> &mut Frame {
        &mut self.top
    }

    fn line(&self, index: usize) -> &str {
        self.chunks[index / self.chunk_frames].line(index % self.chunk_frames)
    }

    /// Equal for equal committed lines, in every process.
    pub fn digest(&self) -> u64 {
        // The ends of the lines are hashed as well, to tell "ab", "c" from "a", "bc".
        let mut text = XxHash64::with_seed(0);
        self.chunks.iter().for_each(|chunk| text.write(chunk.text.as_bytes()));

        let mut ends = XxHash64::with_seed(text.finish());
        let mut before = 0_u32;
        for chunk in &self.chunks {
            let all: Vec<u8> =
                chunk.ends.iter().flat_map(|end| before.wrapping_add(*end).to_le_bytes()).collect();
            ends.write(&all);
            before = before.wrapping_add(chunk.ends.last().copied().unwrap_or(0));
        }
        ends.finish()
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

    /// The lines since the last snapshot; copied first if another stack shares them.
    #[inline]
    fn open_chunk(&mut self) -> &mut Chunk {
        Arc::make_mut(self.chunks.last_mut().expect("invariant: the bottom has a snapshot"))
    }

    /// Pushes the machine's current state, which `line` led to.
    #[inline]
    pub fn push(&mut self, line: &str, machine: &dyn Machine) {
        if self.top.is_blank() {
            // A blank frame needs no note; its lists are empty, so it becomes the successor's.
            (self.top.proposals, self.top.retries) = (0, 0);
        } else {
            let successor = self.top.successor(line);
            self.notes.push((self.depth, std::mem::replace(&mut self.top, successor)));
        }
        self.open_chunk().push(line);
        self.depth += 1;

        if self.depth.is_multiple_of(self.chunk_frames) {
            self.chunks.push(Chunk::after(machine));
        }
    }

    /// Undoes the last committed step: the machine returns to the state below. Returns the step's
    /// line.
    pub fn pop(&mut self, machine: &mut dyn Machine) -> Option<Box<str>> {
        let parent = self.depth.checked_sub(1)?;
        // Drops a chunk that was opened at the top and has no line yet.
        self.chunks.truncate(parent / self.chunk_frames + 1);

        let chunk = self.open_chunk();
        let line = chunk.pop()?;

        machine.restore(&chunk.below);
        for index in 0..chunk.ends.len() {
            machine.replay(chunk.line(index)).expect("invariant: committed lines can be replayed");
        }

        self.depth = parent;
        self.top = match self.notes.pop_if(|(depth, _)| *depth == parent) {
            Some((_, frame)) => frame,
            // Without a note nothing was rejected there: its only proposal is the one undone here.
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
        let mut machine =
            tasks::find("bubble-sort").expect("listed").generate(Difficulty::Easy, 3).start();
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

        assert_eq!(
            stack.lines().collect::<Vec<_>>(),
            states.iter().map(|(_, line)| line).collect::<Vec<_>>()
        );

        for (step, (state, line)) in states.into_iter().enumerate().rev() {
            assert_eq!(stack.pop(machine.as_mut()).as_deref(), Some(line.as_str()));
            assert_eq!(machine.state(), state);
            assert_eq!(stack.top().excludes(&format!("wrong {step}")), step % 3 == 0);
        }
        assert_eq!(stack.pop(machine.as_mut()), None);
    }

    #[test]
    fn a_digest_depends_on_the_lines_and_not_on_the_snapshots() {
        let mut machine =
            tasks::find("bubble-sort").expect("listed").generate(Difficulty::Easy, 3).start();
        let mut stacks = [1, 4, 1000].map(|every| StateStack::new(machine.as_ref(), every));
        for _ in 0..10 {
            let line = machine.reference().expect("a long enough trace");
            machine.replay(&line).expect("legal");
            stacks.iter_mut().for_each(|stack| stack.push(&line, machine.as_ref()));
        }

        let text: String = stacks[0].lines().collect();
        let mut end = 0_u32;
        let ends = stacks[0].lines().flat_map(|line| {
            end += u32::try_from(line.len()).expect("short");

            end.to_le_bytes()
        });
        let expected =
            XxHash64::oneshot(XxHash64::oneshot(0, text.as_bytes()), &ends.collect::<Vec<u8>>());

        assert_eq!(stacks.map(|stack| stack.digest()), [expected; 3]);
    }

    #[test]
    fn a_fork_copies_only_the_lines_since_the_last_snapshot() {
        let mut machine =
            tasks::find("bubble-sort").expect("listed").generate(Difficulty::Easy, 3).start();
        let mut stack = StateStack::new(machine.as_ref(), 4);
        let step = |stack: &mut StateStack, machine: &mut Box<dyn Machine>| {
            let line = machine.reference().expect("a long enough trace");
            machine.replay(&line).expect("legal");
            stack.push(&line, machine.as_ref());
        };
        for _ in 0..22 {
            step(&mut stack, &mut machine);
        }

        let (mut fork, mut forked) = (stack.clone(), machine.fork());
        let lines: Vec<String> = stack.lines().map(str::to_owned).collect();

        step(&mut fork, &mut forked);

        let shared = stack
            .chunks
            .iter()
            .zip(&fork.chunks)
            .filter(|(one, other)| Arc::ptr_eq(one, other))
            .count();

        assert_eq!((shared, stack.chunks.len()), (5, 6));

        // Neither sees what the other does.
        assert!(stack.lines().eq(lines.iter().map(String::as_str)) && fork.depth() == 23);
        while fork.pop(forked.as_mut()).is_some() {}
        assert!(stack.lines().eq(lines.iter().map(String::as_str)) && fork.lines().len() == 0);
    }
}
