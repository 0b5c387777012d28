//! The vocabulary of a [`TinyModel`](crate::TinyModel), for grammars without a model.

use std::sync::Arc;

use prime_engine::automaton::{Automaton, GrammarError, Vocabulary};

use crate::{END, VOCABULARY};

/// A token for each byte, and three control tokens.
pub fn byte_vocabulary() -> Arc<Vocabulary> {
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
    Arc::new(Vocabulary::new(
        bytes.chain((256..VOCABULARY).map(|_| Vec::new())).collect(),
        vec![END],
    ))
}

/// Whether a grammar accepts a text.
///
/// # Errors
/// What is wrong with the grammar.
pub fn accepts(gbnf: &str, text: &str) -> Result<bool, GrammarError> {
    let mut automaton = Automaton::new(gbnf, &byte_vocabulary())?;
    let end = text
        .bytes()
        .try_fold(automaton.start(), |state, byte| automaton.after(&state, u32::from(byte)));
    Ok(end.is_some_and(|state| automaton.is_end(&state)))
}
