//! Grammars of one context: compiled and cached by text, and the state of one generation in its
//! grammar.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;

use super::EngineError;
use super::automaton::{Automaton, ExclusionState, Exclusions, Vocabulary};
use super::kv_cache::Token;
use super::sampler::{Sampler, Scratch};
use super::segmented_cache::SegmentedCache;
use super::wire::Turn;

/// Most compiled grammars cached after their first use. A likelihood verifier makes one for each
/// line, most of which are used once.
const USED_ONCE_MAX: usize = 32;
/// Most compiled grammars cached after a second use. A deployment uses a few per task, each of up
/// to some megabytes.
const USED_AGAIN_MAX: usize = 96;

/// Translates between a model's tokens and texts.
struct Lexicon {
    vocabulary: Arc<Vocabulary>,
    /// The token of each byte, if every token is one byte: then a text has only one tokenization.
    bytes: Option<Box<[Option<Token>; 256]>>,
    /// The token that ends a text where a grammar permits nothing else.
    end: Option<Token>,
    /// The tokens whose text begins with a newline.
    newlines: Vec<u32>,
}

impl Lexicon {
    fn new(model: &LlamaModel, ends: &[u32]) -> Self {
        let vocabulary = model.vocab();
        let piece = |token: LlamaToken| {
            let mut bytes = Vec::new();
            // Special tokens have no text, so a grammar never permits them.
            vocabulary.token_to_piece_into(token, &mut bytes, false, None);
            bytes
        };

        let mut pieces: Vec<Vec<u8>> =
            (0..vocabulary.n_tokens()).map(LlamaToken).map(piece).collect();
        // Texts of end tokens do not count here either.
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

        let newlines = (0..).zip(&pieces).filter(|(_, piece)| piece.first() == Some(&b'\n'));
        let newlines = newlines.map(|(token, _)| token).collect();

        let usual = vocabulary.eos().0;
        let is_end = |token: &Token| ends.contains(&token.cast_unsigned());
        let end = Some(usual).filter(is_end).or_else(|| ends.first().map(|end| end.cast_signed()));
        Self { vocabulary: Arc::new(Vocabulary::new(pieces, ends.to_vec())), bytes, end, newlines }
    }

    /// Tokens whose concatenated texts are `text` or a prefix of it. More text may follow unless it
    /// `is_whole`.
    fn tokens(&self, model: &LlamaModel, text: &[u8], is_whole: bool) -> Vec<Token> {
        if let Some(bytes) = &self.bytes {
            return text.iter().map_while(|byte| bytes[usize::from(*byte)]).collect();
        }

        let mut tokens: Vec<Token> =
            model.vocab().tokenize(text, false, false).iter().map(|token| token.0).collect();
        if !is_whole {
            // The last token may extend into what follows.
            tokens.pop();
        }

        // Some tokenizers add a space, or normalize what they cannot encode: only tokens that
        // reproduce the text are taken.
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

/// Compiled grammars.
pub(super) struct GrammarCache<'m> {
    model: &'m LlamaModel,
    lexicon: Option<Rc<Lexicon>>,
    compiled: SegmentedCache<Rc<RefCell<Automaton>>>,
}

impl<'m> GrammarCache<'m> {
    pub(super) fn new(model: &'m LlamaModel) -> Self {
        Self { model, lexicon: None, compiled: SegmentedCache::new(USED_ONCE_MAX, USED_AGAIN_MAX) }
    }

    /// The initial state of a grammar without the last lines that the turn excludes; `ends` are the
    /// model's end-of-generation tokens.
    pub(super) fn start(
        &mut self,
        text: &str,
        turn: &Turn<'_>,
        ends: &[u32],
    ) -> Result<Grammar, EngineError> {
        let lexicon =
            Rc::clone(self.lexicon.get_or_insert_with(|| Rc::new(Lexicon::new(self.model, ends))));

        let automaton = self.compiled.get_or_make(text, || {
            let automaton = Automaton::new(text, &lexicon.vocabulary);
            let automaton =
                automaton.map_err(|error| EngineError::Grammar { detail: error.to_string() })?;
            Ok(Rc::new(RefCell::new(automaton)))
        })?;

        let exclusions = Exclusions::new(
            turn.excluded.iter().map(AsRef::as_ref),
            turn.excluded_prefixes.iter().map(AsRef::as_ref),
        );

        let at = exclusions.start(&automaton.borrow());
        Ok(Grammar {
            lexicon,
            automaton,
            exclusions,
            at,
            newline_ends: turn.newline_ends,
            merged: Vec::new(),
        })
    }
}

/// The state of one generation in its grammar.
pub(super) struct Grammar {
    lexicon: Rc<Lexicon>,
    automaton: Rc<RefCell<Automaton>>,
    /// The exclusions of this generation alone; the automaton is shared.
    exclusions: Exclusions,
    at: ExclusionState,
    /// True if a newline ends the text where the grammar permits the end.
    newline_ends: bool,
    /// A buffer for logits.
    merged: Vec<f32>,
}

impl Grammar {
    /// Returns whether every text from here on ends with an excluded line.
    pub(super) fn is_exhausted(&mut self) -> bool {
        self.exclusions.is_exhausted(&mut self.automaton.borrow_mut(), &self.at)
    }

    /// Returns whether a token's text has this ASCII character.
    pub(super) fn has(&self, token: Token, character: char) -> bool {
        let mut bytes = self.lexicon.vocabulary.piece(token.cast_unsigned()).iter();
        bytes.any(|byte| char::from(*byte) == character)
    }

    /// Samples among the permitted tokens; `None` if the grammar permits none of the model's
    /// tokens.
    pub(super) fn sample(
        &mut self,
        logits: &[f32],
        sampler: &mut Sampler,
        scratch: &mut Scratch,
    ) -> Result<Option<usize>, EngineError> {
        let permitted = self.exclusions.permitted(&mut self.automaton.borrow_mut(), &self.at);

        if permitted.is_empty() {
            return Ok(None);
        }

        // A newline that the grammar does not permit says that the model wants to end.
        let end = self.lexicon.end.filter(|_| self.newline_ends);
        let logits = match end.and_then(|end| usize::try_from(end).ok()) {
            Some(end) if !permitted.iter().any(|token| self.lexicon.newlines.contains(&token)) => {
                let newlines = self.lexicon.newlines.iter();
                let likeliest = newlines
                    .filter_map(|token| logits.get(*token as usize).copied())
                    .fold(f32::NEG_INFINITY, f32::max);
                self.merged.clear();
                self.merged.extend_from_slice(logits);
                if let Some(place) = self.merged.get_mut(end) {
                    *place = place.max(likeliest);
                }
                &self.merged[..]
            }
            _ => logits,
        };

        let chosen = match permitted.few() {
            Some(few) => sampler.sample_among(few, logits, scratch),
            None => sampler.sample_masked(permitted.iter(), logits, scratch),
        };
        chosen.map(Some).ok_or(EngineError::NotFinite)
    }

    /// Advances by a token that `sample` returned and that does not end the text.
    pub(super) fn accept(&mut self, token: Token) -> Result<(), EngineError> {
        let after = self.exclusions.after(
            &mut self.automaton.borrow_mut(),
            &self.at,
            token.cast_unsigned(),
        );
        self.at = after.ok_or_else(|| EngineError::Grammar {
            detail: format!("it does not permit token {token}, which it permitted before"),
        })?;
        Ok(())
    }

    /// The number of `draft`'s first tokens that the grammar permits from here on. None of them
    /// ends the text.
    pub(super) fn permitted_length(&self, draft: &[Token]) -> usize {
        let mut automaton = self.automaton.borrow_mut();
        let mut at = self.at.clone();
        let permitted = draft.iter().map_while(|token| {
            at = self.exclusions.after(&mut automaton, &at, token.cast_unsigned())?;
            Some(())
        });
        permitted.count()
    }

    /// Appends the forced tokens, at most `room`. Returns whether the last one ends the text.
    pub(super) fn force(
        &mut self,
        model: &LlamaModel,
        room: usize,
        tokens: &mut Vec<Token>,
    ) -> bool {
        let mut automaton = self.automaton.borrow_mut();
        let exclusions = &mut self.exclusions;
        let (text, after) = exclusions.forced(&mut automaton, &self.at);

        let ends = self.lexicon.vocabulary.ends();
        let must_end =
            |exclusions: &mut Exclusions, automaton: &mut Automaton, at: &ExclusionState| {
                let permitted = exclusions.permitted(automaton, at);
                permitted.few().is_some_and(|few| {
                    !few.is_empty() && few.iter().all(|token| ends.contains(token))
                })
            };

        let mut left = room;
        if !text.is_empty() {
            let is_whole = must_end(exclusions, &mut automaton, &after);
            for token in self.lexicon.tokens(model, &text, is_whole) {
                let next = exclusions.after(&mut automaton, &self.at, token.cast_unsigned());
                let Some(next) = next.filter(|_| left > 0) else {
                    break;
                };
                self.at = next;
                tokens.push(token);
                left -= 1;
            }
        }

        // Where the text can only end, its end token needs no decode either.
        let end =
            self.lexicon.end.filter(|_| left > 0 && must_end(exclusions, &mut automaton, &self.at));
        tokens.extend(end);
        end.is_some()
    }
}
