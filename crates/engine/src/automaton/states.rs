//! The states of an automaton and the transitions between them, built lazily.
//!
//! A state is a set of positions: a node that waits for a byte, and the stack of the rules around
//! it. Equal sets are one state. When all states together outgrow the limit, those without a handle
//! are dropped, and with them everything that can be recomputed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::byte_classes::ByteClasses;
use super::network::{Network, Node, NodeId, RETURN};
use super::stacks::{EMPTY, FRAME_BYTES, StackId, Stacks};
use super::token_mask::TokenMask;

/// Number of a state; stable while a handle of the state exists.
pub(super) type StateId = u32;

/// The state of texts that are not in the grammar.
pub(super) const DEAD: StateId = 0;
/// A transition that is not computed yet.
const UNKNOWN: StateId = StateId::MAX;

/// A handle of a state, which keeps the state alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State(Arc<StateId>);

impl State {
    pub(super) fn id(&self) -> StateId {
        *self.0
    }
}

/// Resource limits of one automaton.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Memory for states and masks, in bytes; beyond it, states without a handle are dropped.
    pub(super) bytes: usize,
    /// Nesting of rules; deeper continuations are not permitted.
    pub(super) depth: u32,
    /// Positions of a state, in addition to twice the grammar's nodes; continuations that need more
    /// are not permitted.
    pub(super) positions: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 32 << 20, depth: 1024, positions: 4096 }
    }
}

/// A node, and the stack of nodes to return to. [`RETURN`] on an empty stack is the end of the
/// text, and the smallest position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Position {
    node: NodeId,
    stack: StackId,
}

const END: Position = Position { node: RETURN, stack: EMPTY };

#[derive(Debug)]
struct Entry {
    positions: Arc<[Position]>,
    handle: State,
    permitted: Option<Arc<TokenMask>>,
    forced: Option<(Arc<[u8]>, StateId)>,
}

/// Approximate memory of an entry without what it points to, in bytes.
const ENTRY_BYTES: usize = 160;

#[derive(Debug)]
pub(super) struct States {
    network: Network,
    classes: ByteClasses,
    limits: Limits,
    stacks: Stacks,
    entries: Vec<Entry>,
    known: HashMap<Arc<[Position]>, StateId>,
    /// Unused entries.
    free: Vec<StateId>,
    /// The state after each class of bytes; one row per state.
    transitions: Vec<StateId>,
    /// Interned masks: many states permit the same tokens.
    masks: HashSet<Arc<TokenMask>>,
    /// Approximate memory in bytes, and the threshold for the next `clear`.
    used: usize,
    clear_at: usize,
    /// Scratch of `closed`.
    todo: Vec<Position>,
    seen: HashSet<Position>,
}

impl States {
    pub(super) fn new(network: Network, limits: Limits) -> Self {
        let limits = Limits { positions: limits.positions + 2 * network.len(), ..limits };
        let mut states = Self {
            classes: ByteClasses::new(&network),
            stacks: Stacks::new(limits.depth),
            network,
            limits,
            entries: Vec::new(),
            known: HashMap::new(),
            free: Vec::new(),
            transitions: Vec::new(),
            masks: HashSet::new(),
            used: 0,
            clear_at: limits.bytes,
            todo: Vec::new(),
            seen: HashSet::new(),
        };

        // The first state to be interned is `DEAD`, which every byte leads back to.
        let dead = states.intern(&[]);
        states.row_mut(dead).fill(DEAD);
        states
    }

    /// The initial state.
    pub(super) fn start(&mut self) -> State {
        self.todo.push(Position { node: self.network.root(), stack: EMPTY });
        let id = self.closed();
        self.handle(id)
    }

    pub(super) fn handle(&self, id: StateId) -> State {
        self.entries[id as usize].handle.clone()
    }

    /// Returns whether the text may end here.
    pub(super) fn is_end(&self, id: StateId) -> bool {
        self.entries[id as usize].positions.first() == Some(&END)
    }

    pub(super) fn permitted(&self, id: StateId) -> Option<&Arc<TokenMask>> {
        self.entries[id as usize].permitted.as_ref()
    }

    pub(super) fn set_permitted(&mut self, id: StateId, permitted: TokenMask) {
        let permitted = Arc::new(permitted);
        let shared = self.masks.get(&permitted).cloned().unwrap_or_else(|| {
            self.used += permitted.bytes();
            self.masks.insert(Arc::clone(&permitted));
            permitted
        });
        self.entries[id as usize].permitted = Some(shared);
    }

    pub(super) fn forced(&self, id: StateId) -> Option<(Arc<[u8]>, StateId)> {
        self.entries[id as usize].forced.clone()
    }

    pub(super) fn set_forced(&mut self, id: StateId, bytes: Arc<[u8]>, after: StateId) {
        self.used += bytes.len();
        self.entries[id as usize].forced = Some((bytes, after));
    }

    /// The byte that must come, if there is exactly one.
    pub(super) fn only_byte(&self, id: StateId) -> Option<u8> {
        let positions = &self.entries[id as usize].positions;
        let mut edges = positions.iter().flat_map(|position| self.network.edges(position.node));
        let first = edges.next()?;

        let is_only = first.low == first.high
            && edges.all(|edge| (edge.low, edge.high) == (first.low, first.low));
        is_only.then_some(first.low)
    }

    /// The state after `byte`. States with a handle, `from` and those in `live` keep their numbers.
    #[inline]
    pub(super) fn after(&mut self, from: StateId, byte: u8, live: &[StateId]) -> StateId {
        let class = self.classes.of(byte);
        let next = self.transitions[from as usize * self.classes.len() + class];
        if next == UNKNOWN { self.compute(from, class, live) } else { next }
    }

    #[cold]
    fn compute(&mut self, from: StateId, class: usize, live: &[StateId]) -> StateId {
        if self.used > self.clear_at {
            self.clear(from, live);
        }

        let byte = self.classes.example(class);
        let positions = Arc::clone(&self.entries[from as usize].positions);
        for position in positions.iter() {
            let edges = self
                .network
                .edges(position.node)
                .iter()
                .filter(|edge| (edge.low..=edge.high).contains(&byte));
            self.todo.extend(edges.map(|edge| Position { node: edge.next, stack: position.stack }));
        }

        let next = self.closed();
        self.row_mut(from)[class] = next;
        next
    }

    /// The state of all positions that are reachable from those in `todo` without a byte.
    fn closed(&mut self) -> StateId {
        let mut closed = Vec::new();
        self.seen.clear();

        while let Some(position) = self.todo.pop() {
            if !self.seen.insert(position) {
                continue;
            }
            if self.seen.len() > self.limits.positions {
                // Empty again for the next call.
                self.todo.clear();
                return DEAD;
            }

            let stack = position.stack;
            match self.network.node(position.node) {
                Node::Bytes(_) => closed.push(position),
                Node::Either(next) => {
                    self.todo.extend(next.iter().map(|node| Position { node: *node, stack }));
                }
                Node::Call { rule, next } => {
                    let (node, next) = (self.network.start(*rule), *next);
                    // Tail call: return directly to where the outer rule returns.
                    let inner = if next == RETURN { Some(stack) } else { self.push(stack, next) };
                    self.todo.extend(inner.map(|stack| Position { node, stack }));
                }
                Node::Return => match self.stacks.pop(stack) {
                    Some((node, stack)) => self.todo.push(Position { node, stack }),
                    None => closed.push(END),
                },
            }
        }

        closed.sort_unstable();
        self.intern(&closed)
    }

    fn push(&mut self, stack: StackId, node: NodeId) -> Option<StackId> {
        let before = self.stacks.len();
        let pushed = self.stacks.push(stack, node);
        self.used += FRAME_BYTES * (self.stacks.len() - before);
        pushed
    }

    fn row_mut(&mut self, id: StateId) -> &mut [StateId] {
        let width = self.classes.len();
        &mut self.transitions[id as usize * width..][..width]
    }

    fn bytes_of(&self, positions: &[Position]) -> usize {
        ENTRY_BYTES + size_of_val(positions) + 4 * self.classes.len()
    }

    fn intern(&mut self, positions: &[Position]) -> StateId {
        if let Some(id) = self.known.get(positions) {
            return *id;
        }

        self.used += self.bytes_of(positions);
        let positions: Arc<[Position]> = positions.into();
        let next =
            StateId::try_from(self.entries.len()).expect("invariant: the memory bound comes first");
        let id = self.free.pop().unwrap_or(next);
        let entry = Entry {
            positions: Arc::clone(&positions),
            handle: State(Arc::new(id)),
            permitted: None,
            forced: None,
        };

        self.known.insert(positions, id);
        if id == next {
            self.entries.push(entry);
            self.transitions.resize(self.transitions.len() + self.classes.len(), UNKNOWN);
        } else {
            self.entries[id as usize] = entry;
            self.row_mut(id).fill(UNKNOWN);
        }
        id
    }

    /// Drops states without a handle, and everything that can be recomputed.
    fn clear(&mut self, from: StateId, live: &[StateId]) {
        // The entry itself holds one handle.
        let mut is_live: Vec<bool> =
            self.entries.iter().map(|entry| Arc::strong_count(&entry.handle.0) > 1).collect();

        for id in live.iter().chain([&DEAD, &from]) {
            is_live[*id as usize] = true;
        }

        let places =
            || is_live.iter().enumerate().filter(|(_, live)| **live).map(|(place, _)| place);
        let stacks = places()
            .flat_map(|place| self.entries[place].positions.iter().map(|position| position.stack));
        let moved = self.stacks.keep(stacks);

        self.masks.clear();
        self.known.clear();
        self.transitions.fill(UNKNOWN);
        self.free.clear();
        self.used = FRAME_BYTES * self.stacks.len();

        let nothing: Arc<[Position]> = Arc::new([]);
        for (id, is_live) in (0..).zip(is_live) {
            let place = id as usize;
            self.entries[place].permitted = None;
            self.entries[place].forced = None;
            let old = std::mem::replace(&mut self.entries[place].positions, Arc::clone(&nothing));
            if !is_live {
                self.free.push(id);
                continue;
            }
            // Renumbered stacks keep their order, so positions stay sorted.
            let positions: Arc<[Position]> = old
                .iter()
                .map(|position| Position { stack: moved[position.stack as usize], ..*position })
                .collect();
            self.used += self.bytes_of(&positions);
            self.entries[place].positions = Arc::clone(&positions);
            self.known.insert(positions, id);
        }

        self.row_mut(DEAD).fill(DEAD);
        // If more than half of the limit stays in use, a fixed threshold would clear after every
        // few states.
        self.clear_at = self.limits.bytes.max(2 * self.used);
    }

    /// Number of states, including the dead one.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}
