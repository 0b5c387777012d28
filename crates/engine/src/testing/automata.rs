//! The engine's grammars without an engine.

use std::sync::Arc;

use crate::automaton::{Automaton, State, Vocabulary};

/// The texts of tokens.
#[derive(Debug, Clone)]
pub struct Words(Arc<Vocabulary>);

impl Words {
    /// The text of each token, none for control tokens, and the tokens that end a text.
    pub fn new(pieces: Vec<Vec<u8>>, ends: Vec<u32>) -> Self {
        Self(Arc::new(Vocabulary::new(pieces, ends)))
    }

    /// Those of a [`TinyModel`](super::TinyModel): each byte, and three control tokens.
    pub fn of_bytes() -> Self {
        let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
        Self::new(bytes.chain((256..super::VOCABULARY).map(|_| Vec::new())).collect(), vec![super::END])
    }

    /// The text of a token; nothing for a control token.
    pub fn piece(&self, token: u32) -> &[u8] {
        self.0.piece(token)
    }
}

/// Walks through a grammar.
#[derive(Debug)]
pub struct Walker(Automaton);

/// A place in a grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place(State);

impl Walker {
    /// A grammar in GBNF over these tokens.
    ///
    /// # Errors
    /// What is wrong with the grammar.
    pub fn new(gbnf: &str, words: &Words) -> Result<Self, String> {
        Automaton::new(gbnf, &words.0).map(Self).map_err(|error| error.to_string())
    }

    /// The beginning.
    pub fn start(&self) -> Place {
        Place(self.0.start())
    }

    /// The tokens that may come next, in ascending order.
    pub fn permitted(&mut self, place: &Place) -> Vec<u32> {
        let permitted = self.0.permitted(&place.0);
        permitted.few().map_or_else(|| permitted.iter().collect(), <[u32]>::to_vec)
    }

    /// How many tokens may come next, and the one that must. Costs nothing but the mask.
    pub fn choice(&mut self, place: &Place) -> (usize, Option<u32>) {
        let permitted = self.0.permitted(&place.0);
        (permitted.len(), permitted.only())
    }

    /// Whether nothing may come next, not even an end.
    pub fn is_stuck(&mut self, place: &Place) -> bool {
        self.0.permitted(&place.0).is_empty()
    }

    /// Whether `token` may come next.
    pub fn permits(&mut self, place: &Place, token: u32) -> bool {
        self.0.permitted(&place.0).contains(token)
    }

    /// The place after `token`; `None` if it may not come here, or ends the text.
    pub fn after(&mut self, place: &Place, token: u32) -> Option<Place> {
        self.0.after(&place.0, token).map(Place)
    }

    /// The bytes that must follow, and the place after them.
    pub fn forced(&mut self, place: &Place) -> (Vec<u8>, Place) {
        let (bytes, after) = self.0.forced(&place.0);
        (bytes.to_vec(), Place(after))
    }

    /// Whether the text may end here.
    pub fn is_end(&self, place: &Place) -> bool {
        self.0.is_end(&place.0)
    }
}

/// Whether a text is in a grammar.
///
/// # Errors
/// What is wrong with the grammar.
pub fn accepts(gbnf: &str, text: &str) -> Result<bool, String> {
    let mut walker = Walker::new(gbnf, &Words::of_bytes())?;
    let end = text.bytes().try_fold(walker.start(), |place, byte| walker.after(&place, u32::from(byte)));
    Ok(end.is_some_and(|place| walker.is_end(&place)))
}
