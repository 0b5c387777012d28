//! Compiles GBNF grammars to automata over bytes, whose states know the tokens that may come next.
//!
//! The text is parsed into a network of nodes. States are sets of positions in it, built lazily. A
//! state's mask is computed once, by a walk through a trie of the vocabulary. Without recursion
//! there are finitely many states, and a token costs a table look-up for each of its bytes. Needs
//! neither a model nor llama.cpp.

mod byte_classes;
mod char_class;
mod error;
mod exclusions;
mod gbnf;
mod left_recursion;
mod line_trie;
mod network;
mod stacks;
mod states;
mod syntax;
#[cfg(test)]
mod tests;
mod token_mask;
mod vocabulary;

use std::sync::Arc;

pub use error::GrammarError;
pub use exclusions::{ExclusionState, Exclusions};
use network::Network;
pub use states::State;
use states::{DEAD, Limits, StateId, States};
pub use token_mask::TokenMask;
pub use vocabulary::Vocabulary;

/// Longest run of forced bytes: a grammar may force an endless one.
const FORCED_MAX: usize = 1024;

/// A grammar over a vocabulary. States and masks are computed when first reached.
#[derive(Debug)]
pub struct Automaton {
    vocabulary: Arc<Vocabulary>,
    states: States,
    start: State,
    /// Scratch of `walk`: the states along the path to a node of the trie.
    path: Vec<StateId>,
}

impl Automaton {
    /// Parses a grammar; its start symbol is `root`.
    ///
    /// # Errors
    /// What is wrong with the grammar, and where.
    pub fn new(gbnf: &str, vocabulary: &Arc<Vocabulary>) -> Result<Self, GrammarError> {
        Self::with_limits(gbnf, vocabulary, Limits::default())
    }

    fn with_limits(
        gbnf: &str,
        vocabulary: &Arc<Vocabulary>,
        limits: Limits,
    ) -> Result<Self, GrammarError> {
        let mut states = States::new(Network::new(&gbnf::parse(gbnf)?)?, limits);
        let start = states.start();
        let path = vec![DEAD; vocabulary.depth() + 1];
        Ok(Self { vocabulary: Arc::clone(vocabulary), states, start, path })
    }

    /// The initial state.
    pub fn start(&self) -> State {
        self.start.clone()
    }

    /// Returns whether the text may end here.
    pub fn is_end(&self, state: &State) -> bool {
        self.states.is_end(state.id())
    }

    /// The tokens that may come next, including the end tokens where the text may end. The mask is
    /// empty if no token of the vocabulary fits.
    pub fn permitted(&mut self, state: &State) -> &TokenMask {
        self.computed(state.id())
    }

    /// The mask of [`Self::permitted`], shared.
    fn mask(&mut self, state: &State) -> Arc<TokenMask> {
        Arc::clone(self.computed(state.id()))
    }

    fn computed(&mut self, id: StateId) -> &Arc<TokenMask> {
        if self.states.permitted(id).is_none() {
            let permitted = self.walk(id);
            self.states.set_permitted(id, permitted);
        }
        self.states.permitted(id).expect("invariant: it was just set")
    }

    /// The state after `token`; `None` if it may not come here. An end token has no state after it.
    pub fn after(&mut self, state: &State, token: u32) -> Option<State> {
        let piece = self.vocabulary.piece(token);
        if piece.is_empty() {
            return None;
        }

        let mut at = state.id();
        for byte in piece {
            at = self.states.after(at, *byte, &[]);
        }
        (at != DEAD).then(|| self.states.handle(at))
    }

    /// The bytes that must follow, and the state after them: as long as exactly one byte may come
    /// and the text may not end, at most 1024. They may end inside a character.
    pub fn forced(&mut self, state: &State) -> (Arc<[u8]>, State) {
        let id = state.id();
        let (bytes, after) = self.states.forced(id).unwrap_or_else(|| {
            let mut bytes = Vec::new();
            let mut at = id;
            while bytes.len() < FORCED_MAX
                && !self.states.is_end(at)
                && let Some(byte) = self.states.only_byte(at)
            {
                let next = self.states.after(at, byte, &[]);
                // Only a limit of the automaton cuts a continuation off here.
                if next == DEAD {
                    break;
                }
                bytes.push(byte);
                at = next;
            }

            let bytes: Arc<[u8]> = bytes.into();
            self.states.set_forced(id, Arc::clone(&bytes), at);
            (bytes, at)
        });
        (bytes, self.states.handle(after))
    }

    /// Computes a state's mask by a walk through the trie.
    fn walk(&mut self, from: StateId) -> TokenMask {
        let vocabulary = &self.vocabulary;
        let mut words = vec![0_u64; vocabulary.len().div_ceil(64)];
        let mut permit = |token: u32| words[token as usize / 64] |= 1 << (token % 64);
        if self.states.is_end(from) {
            vocabulary.ends().iter().copied().for_each(&mut permit);
        }

        self.path[0] = from;
        let mut at = 0;
        while let Some(node) = vocabulary.nodes().get(at) {
            let depth = node.depth as usize;
            let before = self.path[depth - 1];
            // The states along the path must keep their numbers if this call drops others.
            let next = self.states.after(before, node.byte, &self.path[..depth]);
            if next == DEAD {
                // No token below this node fits: its subtree is skipped.
                at = node.end as usize;
                continue;
            }
            self.path[depth] = next;
            vocabulary.tokens_at(at).iter().copied().for_each(&mut permit);
            at += 1;
        }

        TokenMask::new(words)
    }
}
