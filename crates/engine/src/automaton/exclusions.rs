//! A grammar without some of its texts: those whose last line is one of a list of lines, or begins
//! with one of a list of prefixes.
//!
//! The automaton is shared by all generations under its grammar and knows nothing of exclusions. A
//! state here is a state of the automaton, and how far the current line follows the trie of the
//! excluded lines. A mask is that of the automaton without the tokens after which all texts end
//! with an excluded line. Only tokens that follow the trie, or that have a newline, are examined,
//! unless the mask is short.

use std::collections::HashMap;
use std::sync::Arc;

use super::Automaton;
use super::line_trie::{LineTrie, Place};
use super::states::{DEAD, State, StateId, States};
use super::token_mask::TokenMask;
use super::vocabulary::{ROOT, Vocabulary};

/// Most states that one search for an end visits; an end that it has not found by then is taken to
/// exist. Grammars of actions have some hundreds of states.
const VISITED_MAX: usize = 4096;

/// A state of the automaton, and where the current line stands among the excluded ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExclusionState {
    state: State,
    place: Place,
}

impl ExclusionState {
    fn key(&self) -> (StateId, Place) {
        (self.state.id(), self.place)
    }
}

/// Lines that a text may not end with. Earlier lines of a text are free, so a derivation may quote
/// them.
///
/// The masks permit every text of the grammar that does not end with an excluded line, and no
/// other. They leave no dead end, except where what can follow a newline depends on the lines
/// before it, and every last line is excluded there.
#[derive(Debug, Default)]
pub struct Exclusions {
    lines: LineTrie,
    /// By state, true if some text ends after it. The handle keeps the state's number from being
    /// reused.
    is_live: HashMap<(StateId, Place), (State, bool)>,
}

impl Exclusions {
    /// Excludes `lines`, and all lines that begin with one of `prefixes`. Costs nothing if there
    /// are none.
    pub fn new<'l>(
        lines: impl IntoIterator<Item = &'l str>,
        prefixes: impl IntoIterator<Item = &'l str>,
    ) -> Self {
        Self { lines: LineTrie::new(lines, prefixes), is_live: HashMap::new() }
    }

    /// The initial state; all states of these exclusions must be of the same automaton.
    pub fn start(&self, automaton: &Automaton) -> ExclusionState {
        ExclusionState { state: automaton.start(), place: self.lines.root() }
    }

    /// Returns whether the text may end here.
    pub fn is_end(&self, automaton: &Automaton, at: &ExclusionState) -> bool {
        automaton.is_end(&at.state) && !self.lines.is_line(at.place)
    }

    /// Returns whether every text of the grammar from here on ends with an excluded line.
    pub fn is_exhausted(&mut self, automaton: &mut Automaton, at: &ExclusionState) -> bool {
        !self.lines.is_empty() && !self.is_live(&mut automaton.states, at)
    }

    /// The state after `token`, as [`Automaton::after`].
    pub fn after(
        &self,
        automaton: &mut Automaton,
        at: &ExclusionState,
        token: u32,
    ) -> Option<ExclusionState> {
        let state = automaton.after(&at.state, token)?;
        let place = self.place_after(at.place, automaton.vocabulary.piece(token));
        Some(ExclusionState { state, place })
    }

    /// The bytes that must follow, and the state after them, as [`Automaton::forced`]. From a state
    /// that is not exhausted they lead to one that is not: where the text may not end and only one
    /// byte fits, that byte leads to the end.
    pub fn forced(
        &self,
        automaton: &mut Automaton,
        at: &ExclusionState,
    ) -> (Arc<[u8]>, ExclusionState) {
        let (bytes, state) = automaton.forced(&at.state);
        let place = self.place_after(at.place, &bytes);
        (bytes, ExclusionState { state, place })
    }

    /// The tokens that may come next, including the end tokens where the text may end; none if it
    /// is exhausted.
    pub fn permitted(&mut self, automaton: &mut Automaton, at: &ExclusionState) -> Arc<TokenMask> {
        let mask = automaton.mask(&at.state);
        if self.lines.is_empty() {
            return mask;
        }

        let vocabulary = Arc::clone(&automaton.vocabulary);
        if !self.is_live(&mut automaton.states, at) {
            return Arc::new(TokenMask::none(vocabulary.len()));
        }

        let mut barred = Vec::new();
        if self.lines.is_line(at.place) {
            barred.extend_from_slice(vocabulary.ends());
        }

        // Only a token along the trie, or with a newline, can lead to nothing but excluded lines.
        // In a short mask it is cheaper to check every token.
        if let Some(few) = mask.few() {
            let letters = few.iter().filter(|token| !vocabulary.piece(**token).is_empty());
            barred.extend(letters.filter(|token| self.is_dead_end(automaton, at, **token)));
        } else {
            let breaks = vocabulary.breaks().iter().filter(|token| mask.contains(**token));
            barred.extend(breaks.filter(|token| self.is_dead_end(automaton, at, **token)));
            self.bar_along_lines(&mut automaton.states, &vocabulary, at, &mut barred);
        }

        if barred.is_empty() { mask } else { Arc::new(mask.without(&barred)) }
    }

    fn place_after(&self, place: Place, bytes: &[u8]) -> Place {
        if self.lines.is_empty() {
            return None;
        }
        bytes.iter().fold(place, |place, byte| self.lines.after(place, *byte))
    }

    fn is_dead_end(&mut self, automaton: &mut Automaton, at: &ExclusionState, token: u32) -> bool {
        self.after(automaton, at, token)
            .is_none_or(|after| !self.is_live(&mut automaton.states, &after))
    }

    /// Bars the tokens that follow the trie to a dead end. Where a token leaves the trie, nothing
    /// is excluded.
    fn bar_along_lines(
        &mut self,
        states: &mut States,
        vocabulary: &Vocabulary,
        at: &ExclusionState,
        barred: &mut Vec<u32>,
    ) {
        let Some(line) = at.place else { return };

        let mut todo = vec![(ROOT, at.state.clone(), line)];
        while let Some((node, state, line)) = todo.pop() {
            for child in vocabulary.children(node) {
                let byte = vocabulary.nodes()[child].byte;
                let Some(line) = self.lines.child(line, byte) else { continue };
                let next = states.after(state.id(), byte, &[]);
                if next == DEAD {
                    continue;
                }
                let after = ExclusionState { state: states.handle(next), place: Some(line) };

                let tokens = vocabulary.tokens_at(child);
                if !tokens.is_empty() && !self.is_live(states, &after) {
                    barred.extend_from_slice(tokens);
                }
                todo.push((Some(child), after.state, line));
            }
        }
    }

    /// Returns whether some text ends after this state: a depth-first search, whose result is kept
    /// for all states that it settles.
    fn is_live(&mut self, states: &mut States, from: &ExclusionState) -> bool {
        if let Some((_, is_live)) = self.is_live.get(&from.key()) {
            return *is_live;
        }

        let mut seen = HashMap::from([(from.key(), from.state.clone())]);
        // The states on the way, each with the byte to try next.
        let mut path = vec![(from.clone(), 0_u16)];
        let mut is_live = self.ends(states, from);

        while !is_live && let Some((at, next)) = path.last_mut() {
            let Ok(byte) = u8::try_from(*next) else {
                path.pop();
                continue;
            };
            *next += 1;
            let id = states.after(at.state.id(), byte, &[]);
            if id == DEAD {
                continue;
            }

            let place = self.lines.after(at.place, byte);
            if let Some((_, known)) = self.is_live.get(&(id, place)) {
                is_live = *known;
                continue;
            }
            let after = ExclusionState { state: states.handle(id), place };
            if seen.insert(after.key(), after.state.clone()).is_none() {
                is_live = self.ends(states, &after) || seen.len() > VISITED_MAX;
                path.push((after, 0));
            }
        }

        if is_live {
            // States that were left without success are not settled: they may still reach the end
            // through a state on the path.
            self.is_live.extend(path.into_iter().map(|(at, _)| (at.key(), (at.state, true))));
        } else {
            // The search was exhaustive: nothing that it saw leads to an end.
            self.is_live.extend(seen.into_iter().map(|(key, state)| (key, (state, false))));
        }

        is_live
    }

    fn ends(&self, states: &States, at: &ExclusionState) -> bool {
        states.is_end(at.state.id()) && !self.lines.is_line(at.place)
    }
}
