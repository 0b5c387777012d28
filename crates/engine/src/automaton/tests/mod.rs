//! Tests of automata.

mod constructs;
mod errors;
mod exclusions;
mod masks;
mod memory;

use std::sync::Arc;

use super::*;

/// A token for each byte, and then the end token.
fn bytes() -> Arc<Vocabulary> {
    let pieces = (0..=u8::MAX).map(|byte| vec![byte]).chain([Vec::new()]);
    Arc::new(Vocabulary::new(pieces.collect(), vec![END]))
}

const END: u32 = 256;

fn vocabulary(pieces: &[&str]) -> Arc<Vocabulary> {
    let pieces: Vec<Vec<u8>> =
        pieces.iter().map(|piece| piece.as_bytes().to_vec()).chain([Vec::new()]).collect();
    let end = u32::try_from(pieces.len() - 1).unwrap();
    Arc::new(Vocabulary::new(pieces, vec![end]))
}

fn automaton(grammar: &str) -> Automaton {
    Automaton::new(grammar, &bytes()).unwrap_or_else(|error| panic!("{grammar}: {error}"))
}

/// The state after a text; `None` if no text of the grammar starts with it.
fn after(automaton: &mut Automaton, text: &[u8]) -> Option<State> {
    text.iter().try_fold(automaton.start(), |state, byte| automaton.after(&state, u32::from(*byte)))
}

fn takes(automaton: &mut Automaton, text: &str) -> bool {
    after(automaton, text.as_bytes()).is_some_and(|state| automaton.is_end(&state))
}
