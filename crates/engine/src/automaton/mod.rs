//! Grammars in GBNF as automata over bytes, which say at once which tokens may come next.
//!
//! The text is parsed ([`gbnf`]) into a network of nodes ([`network`]); states are sets of places in it, made when they
//! are first met ([`states`]). A state's mask is computed once, by a walk through the trie of the vocabulary. Without
//! recursion, there are finitely many states, and a token costs a look into a table for each of its bytes.

mod bytes;
mod characters;
mod error;
mod gbnf;
mod network;
mod permitted;
mod recursion;
mod stacks;
mod states;
mod syntax;
#[cfg(test)]
mod tests;
mod vocabulary;

use std::sync::Arc;

pub(crate) use error::GrammarError;
use network::Network;
pub(crate) use permitted::Permitted;
pub(crate) use states::State;
use states::{DEAD, Limits, StateId, States};
pub(crate) use vocabulary::Vocabulary;

/// Longest run of forced bytes: a grammar may force an endless one.
const FORCED_MAX: usize = 1024;

/// A grammar over a vocabulary. It is parsed once; its states and masks are computed when they are first met.
#[derive(Debug)]
pub(crate) struct Automaton {
    vocabulary: Arc<Vocabulary>,
    states: States,
    start: State,
    /// The states on the way to a node of the trie.
    path: Vec<StateId>,
}

impl Automaton {
    /// Parses a grammar, which begins with its rule `root`.
    ///
    /// # Errors
    /// What is wrong with the grammar, and where.
    pub(crate) fn new(gbnf: &str, vocabulary: &Arc<Vocabulary>) -> Result<Self, GrammarError> {
        Self::with_limits(gbnf, vocabulary, Limits::default())
    }

    fn with_limits(gbnf: &str, vocabulary: &Arc<Vocabulary>, limits: Limits) -> Result<Self, GrammarError> {
        let mut states = States::new(Network::new(&gbnf::parse(gbnf)?)?, limits);
        let start = states.start();
        let path = vec![DEAD; vocabulary.depth() + 1];
        Ok(Self { vocabulary: Arc::clone(vocabulary), states, start, path })
    }

    /// The state in which a text begins.
    pub(crate) fn start(&self) -> State {
        self.start.clone()
    }

    /// Whether the text may end here.
    pub(crate) fn is_end(&self, state: &State) -> bool {
        self.states.is_end(state.id())
    }

    /// The tokens that may come next; where the text may end, the end tokens are among them. Nothing may come if the
    /// vocabulary cannot say what the grammar asks for.
    pub(crate) fn permitted(&mut self, state: &State) -> &Permitted {
        let id = state.id();
        if self.states.permitted(id).is_none() {
            let permitted = self.walk(id);
            self.states.set_permitted(id, permitted);
        }
        self.states.permitted(id).expect("invariant: it was just set")
    }

    /// The state after `token`; `None` if it may not come here. An end token has no state after it.
    pub(crate) fn after(&mut self, state: &State, token: u32) -> Option<State> {
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

    /// The bytes that must follow, whatever is chosen, and the state after them: as long as exactly one byte can come
    /// and the text may not end, at most 1024. They may end inside a character.
    pub(crate) fn forced(&mut self, state: &State) -> (Arc<[u8]>, State) {
        let id = state.id();
        let (bytes, after) = self.states.forced(id).unwrap_or_else(|| {
            let mut bytes = Vec::new();
            let mut at = id;
            while bytes.len() < FORCED_MAX
                && !self.states.is_end(at)
                && let Some(byte) = self.states.only_byte(at)
            {
                let next = self.states.after(at, byte, &[]);
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

    /// Walks the trie of the tokens along the bytes that may come.
    fn walk(&mut self, from: StateId) -> Permitted {
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
            let next = self.states.after(before, node.byte, &self.path[..depth]);
            if next == DEAD {
                at = node.end as usize;
                continue;
            }
            self.path[depth] = next;
            vocabulary.tokens_at(at).iter().copied().for_each(&mut permit);
            at += 1;
        }
        Permitted::new(words)
    }
}
