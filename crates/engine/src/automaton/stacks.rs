//! Hash-consed stacks of the nodes to return to.

use std::collections::HashMap;

use super::network::NodeId;

pub(super) type StackId = u32;

/// Nothing to return to: the end of the text.
pub(super) const EMPTY: StackId = 0;

#[derive(Debug, Clone, Copy)]
struct Frame {
    node: NodeId,
    below: StackId,
    depth: u32,
}

#[derive(Debug)]
pub(super) struct Stacks {
    /// A frame comes after the one below it; the first stands for the empty stack.
    frames: Vec<Frame>,
    known: HashMap<(NodeId, StackId), StackId>,
    depth_max: u32,
}

/// Approximate memory of a frame and its table entry, in bytes.
pub(super) const FRAME_BYTES: usize = 48;

impl Stacks {
    pub(super) fn new(depth_max: u32) -> Self {
        Self {
            frames: vec![Frame { node: 0, below: EMPTY, depth: 0 }],
            known: HashMap::new(),
            depth_max,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// `stack` with `node` on top; `None` beyond the maximum depth.
    pub(super) fn push(&mut self, stack: StackId, node: NodeId) -> Option<StackId> {
        if let Some(id) = self.known.get(&(node, stack)) {
            return Some(*id);
        }
        let depth = self.frames[stack as usize].depth + 1;
        if depth > self.depth_max {
            return None;
        }

        let id = StackId::try_from(self.frames.len()).ok()?;
        self.frames.push(Frame { node, below: stack, depth });
        self.known.insert((node, stack), id);
        Some(id)
    }

    /// The node on top, and what is below it; `None` for the empty stack.
    pub(super) fn pop(&self, stack: StackId) -> Option<(NodeId, StackId)> {
        let frame = self.frames[stack as usize];
        (stack != EMPTY).then_some((frame.node, frame.below))
    }

    /// Drops all but the stacks in `live` and those below them; returns the new number of each.
    /// Their order stays.
    pub(super) fn keep(&mut self, live: impl Iterator<Item = StackId>) -> Vec<StackId> {
        let mut is_live = vec![false; self.frames.len()];
        is_live[EMPTY as usize] = true;
        for mut stack in live {
            while !is_live[stack as usize] {
                is_live[stack as usize] = true;
                stack = self.frames[stack as usize].below;
            }
        }

        // A frame comes after those below it, so one pass can renumber all.
        let mut kept = Self::new(self.depth_max);
        let mut moved = vec![EMPTY; self.frames.len()];
        for (id, frame) in self.frames.iter().enumerate().skip(1).filter(|(id, _)| is_live[*id]) {
            let below = moved[frame.below as usize];
            moved[id] = kept.push(below, frame.node).expect("invariant: it is as deep as before");
        }

        *self = kept;
        moved
    }
}
