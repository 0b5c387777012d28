//! The grammars of one context: compiled once by text, and the place of one generation in its grammar.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;

use super::EngineError;
use super::automaton::{Automaton, State, Vocabulary};
use super::choice::{Chooser, Scratch};
use super::memory::Token;

/// Compiled grammars that are kept; real deployments have a few per task, and each may take some megabytes.
const CACHED_MAX: usize = 128;

/// A model's tokens as texts, and back.
struct Lexicon {
    vocabulary: Arc<Vocabulary>,
    /// The token of each single byte, if every token is one byte: then there is one way to write a text.
    bytes: Option<Box<[Option<Token>; 256]>>,
    /// The token that ends a text where a grammar leaves nothing else.
    end: Option<Token>,
}

impl Lexicon {
    fn new(model: &LlamaModel, ends: &[u32]) -> Self {
        let vocabulary = model.vocab();
        let piece = |token: LlamaToken| {
            let mut bytes = Vec::new();
            // Special tokens have no text: a grammar never permits them.
            vocabulary.token_to_piece_into(token, &mut bytes, false, None);
            bytes
        };
        let mut pieces: Vec<Vec<u8>> = (0..vocabulary.n_tokens()).map(LlamaToken).map(piece).collect();
        ends.iter().for_each(|end| pieces[*end as usize].clear());
        let is_bytewise = pieces.iter().all(|piece| piece.len() <= 1);
        let bytes = is_bytewise.then(|| {
            let mut tokens = Box::new([None; 256]);
            for (token, piece) in (0..).zip(&pieces) {
                if let [byte] = piece[..]
                    && tokens[usize::from(byte)].is_none()
                {
                    tokens[usize::from(byte)] = Some(token);
                }
            }
            tokens
        });
        let usual = vocabulary.eos().0;
        let is_end = |token: &Token| ends.contains(&token.cast_unsigned());
        let end = Some(usual).filter(is_end).or_else(|| ends.first().map(|end| end.cast_signed()));
        Self { vocabulary: Arc::new(Vocabulary::new(pieces, ends.to_vec())), bytes, end }
    }

    /// Tokens whose texts together are `text`, or a beginning of it.
    fn tokens(&self, model: &LlamaModel, text: &[u8], is_whole: bool) -> Vec<Token> {
        if let Some(bytes) = &self.bytes {
            return text.iter().map_while(|byte| bytes[usize::from(*byte)]).collect();
        }
        let mut tokens: Vec<Token> = model.vocab().tokenize(text, false, false).iter().map(|token| token.0).collect();
        if !is_whole {
            // What follows may belong to the same token.
            tokens.pop();
        }
        // Some tokenizers add a blank, or write what they cannot read otherwise.
        let mut at = 0;
        tokens
            .into_iter()
            .map_while(|token| {
                let piece = self.vocabulary.piece(token.cast_unsigned());
                let is_next = !piece.is_empty() && text[at..].starts_with(piece);
                at += piece.len();
                is_next.then_some(token)
            })
            .collect()
    }
}

/// Compiles each grammar once.
pub(super) struct Grammars<'m> {
    model: &'m LlamaModel,
    lexicon: Option<Rc<Lexicon>>,
    compiled: HashMap<String, Rc<RefCell<Automaton>>>,
}

impl<'m> Grammars<'m> {
    pub(super) fn new(model: &'m LlamaModel) -> Self {
        Self { model, lexicon: None, compiled: HashMap::new() }
    }

    /// The beginning of a grammar; `ends` are the model's tokens that end a text.
    pub(super) fn start(&mut self, text: &str, ends: &[u32]) -> Result<Grammar, EngineError> {
        let lexicon = Rc::clone(self.lexicon.get_or_insert_with(|| Rc::new(Lexicon::new(self.model, ends))));
        let automaton = if let Some(automaton) = self.compiled.get(text) {
            Rc::clone(automaton)
        } else {
            let automaton = Automaton::new(text, &lexicon.vocabulary)
                .map_err(|error| EngineError::Grammar { detail: error.to_string() })?;
            if self.compiled.len() == CACHED_MAX {
                // Rare enough that starting over is fine, and it needs no order of use.
                self.compiled.clear();
            }
            let automaton = Rc::new(RefCell::new(automaton));
            self.compiled.insert(text.to_owned(), Rc::clone(&automaton));
            automaton
        };
        let state = automaton.borrow().start();
        Ok(Grammar { lexicon, automaton, state })
    }
}

/// Where one generation is in its grammar.
pub(super) struct Grammar {
    lexicon: Rc<Lexicon>,
    automaton: Rc<RefCell<Automaton>>,
    state: State,
}

impl Grammar {
    /// Chooses among the permitted tokens; `None` if the grammar permits none that the model has.
    pub(super) fn choose(
        &self,
        logits: &[f32],
        chooser: &mut Chooser,
        scratch: &mut Scratch,
    ) -> Result<Option<usize>, EngineError> {
        let mut automaton = self.automaton.borrow_mut();
        let permitted = automaton.permitted(&self.state);
        if permitted.is_empty() {
            return Ok(None);
        }
        let chosen = match permitted.few() {
            Some(few) => chooser.choose_among(few, logits, scratch),
            None => chooser.choose_masked(permitted.iter(), logits, scratch),
        };
        chosen.map(Some).ok_or(EngineError::NotFinite)
    }

    /// Moves on by a token that `choose` gave and that does not end the text.
    pub(super) fn accept(&mut self, token: Token) -> Result<(), EngineError> {
        let after = self.automaton.borrow_mut().after(&self.state, token.cast_unsigned());
        self.state =
            after.ok_or_else(|| EngineError::Grammar { detail: format!("it lost its place at token {token}") })?;
        Ok(())
    }

    /// Appends the tokens that leave no choice, at most `room`. Returns whether the last one ends the text.
    pub(super) fn force(&mut self, model: &LlamaModel, room: usize, tokens: &mut Vec<Token>) -> bool {
        let mut automaton = self.automaton.borrow_mut();
        let (text, after) = automaton.forced(&self.state);
        let is_end = |automaton: &mut Automaton, state: &State| {
            let few = automaton.permitted(state).few();
            few.is_some_and(|few| {
                !few.is_empty() && few.iter().all(|token| self.lexicon.vocabulary.ends().contains(token))
            })
        };
        let mut left = room;
        if !text.is_empty() {
            let ends = is_end(&mut automaton, &after);
            for token in self.lexicon.tokens(model, &text, ends) {
                let Some(next) = automaton.after(&self.state, token.cast_unsigned()).filter(|_| left > 0) else {
                    break;
                };
                self.state = next;
                tokens.push(token);
                left -= 1;
            }
        }
        let end = self.lexicon.end.filter(|_| left > 0 && is_end(&mut automaton, &self.state));
        tokens.extend(end);
        end.is_some()
    }
}
