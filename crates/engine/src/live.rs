//! One turn that has a sequence: what it has decoded, what comes next, and what it has chosen.

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;

use super::choice::{self, Chooser};
use super::grammar::Grammar;
use super::memory::{Placed, Seq, Token};
use super::tools::Tools;
use super::wire::{Turn, TurnId};
use super::{EngineError, Finish, Generation};

/// A turn with a sequence.
pub(super) struct Live {
    id: TurnId,
    seq: Seq,
    /// The prompt, then what was chosen.
    tokens: Vec<Token>,
    /// Length of the prompt.
    prompt: usize,
    /// Tokens that are in the KV pool.
    computed: usize,
    /// Tokens in the batch under way, and the place of the first one in it.
    batched: usize,
    row: i32,
    chooser: Chooser,
    grammar: Option<Grammar>,
    max_tokens: usize,
    with_logprobs: bool,
    ignore_end: bool,
    logprobs: Vec<f32>,
    forced: usize,
    /// Set when the last token is chosen but log-probabilities of it and others before it are still to be computed.
    finish: Option<Finish>,
}

/// What a turn does after a decode.
pub(super) enum Step {
    Continue,
    Finish(Result<Finish, EngineError>),
}

impl Live {
    pub(super) fn new(
        turn: &Turn<'_>,
        placed: Placed,
        prompt: Vec<Token>,
        grammar: Option<Grammar>,
        tools: &Tools<'_>,
    ) -> Self {
        let mut live = Self {
            id: turn.id,
            seq: placed.seq,
            prompt: prompt.len(),
            tokens: prompt,
            computed: placed.there,
            batched: 0,
            row: 0,
            chooser: Chooser::new(turn.sampling),
            grammar,
            max_tokens: turn.max_tokens as usize,
            with_logprobs: turn.logprobs,
            ignore_end: turn.ignore_end,
            logprobs: Vec::new(),
            forced: 0,
            finish: None,
        };
        // What a grammar begins with needs no choice either.
        live.force(tools.model);
        live
    }

    pub(super) fn id(&self) -> TurnId {
        self.id
    }

    pub(super) fn seq(&self) -> Seq {
        self.seq
    }

    /// Whether its prompt is not computed yet, but for a few tokens that go with the next decode anyway.
    pub(super) fn is_filling(&self) -> bool {
        self.computed + 1 < self.prompt
    }

    /// The whole prompt, computed or not.
    pub(super) fn planned(&self) -> &[Token] {
        &self.tokens[..self.prompt]
    }

    /// Tokens that are to be decoded before the next one can be chosen, at least 1.
    pub(super) fn pending(&self) -> usize {
        // A text's last token is never decoded.
        self.tokens.len() - usize::from(self.finish.is_some()) - self.computed
    }

    pub(super) fn forced(&self) -> usize {
        self.forced
    }

    /// Adds the next `count` tokens to the batch, at most those pending.
    pub(super) fn add(&mut self, batch: &mut LlamaBatch<'_>, count: usize) {
        self.row = batch.n_tokens();
        self.batched = count;
        for at in self.computed..self.computed + count {
            let position = i32::try_from(at).expect("invariant: positions are below context_tokens, below 2^31");
            batch
                .add(LlamaToken(self.tokens[at]), position, &[self.seq.raw()], self.wants_logits(at))
                .expect("invariant: the caller left room in the batch");
        }
    }

    fn wants_logits(&self, at: usize) -> bool {
        at + 1 == self.tokens.len() || (self.with_logprobs && at + 1 >= self.prompt)
    }

    /// The tokens that the batch under way has of this turn.
    pub(super) fn batched(&self) -> &[Token] {
        &self.tokens[self.computed..self.computed + self.batched]
    }

    /// Takes note that the batch was decoded, and chooses the next token if all was.
    pub(super) fn decoded(&mut self, context: &LlamaContext<'_>, tools: &mut Tools<'_>) -> Step {
        let (row, start) = (self.row, self.computed);
        self.computed += std::mem::take(&mut self.batched);
        for (row, at) in (row..).zip(start..self.computed) {
            if !self.wants_logits(at) {
                continue;
            }
            let logits = context.get_logits_ith(row);
            let step = match self.tokens.get(at + 1).copied() {
                Some(forced) => self.note_logprob(logits, forced, tools),
                None => self.choose(logits, tools),
            };
            if let Err(error) = step {
                return Step::Finish(Err(error));
            }
        }
        self.is_over().map_or(Step::Continue, |finish| Step::Finish(Ok(finish)))
    }

    fn note_logprob(&mut self, logits: &[f32], token: Token, tools: &mut Tools<'_>) -> Result<(), EngineError> {
        if self.with_logprobs {
            let place = usize::try_from(token).map_err(|_| EngineError::NotFinite)?;
            self.logprobs.push(choice::logprob(logits, place, &mut tools.scratch).ok_or(EngineError::NotFinite)?);
        }
        Ok(())
    }

    /// Chooses the next token, and takes those that a grammar then leaves no choice about.
    fn choose(&mut self, logits: &[f32], tools: &mut Tools<'_>) -> Result<(), EngineError> {
        let scratch = &mut tools.scratch;
        let chosen = match &mut self.grammar {
            None if self.ignore_end => {
                self.chooser.choose_without(&tools.ends, logits, scratch).ok_or(EngineError::NotFinite)?
            }
            None => self.chooser.choose(logits, scratch).ok_or(EngineError::NotFinite)?,
            Some(grammar) => {
                let generated = self.tokens.len() - self.prompt;
                grammar.choose(logits, &mut self.chooser, scratch)?.ok_or_else(|| EngineError::Grammar {
                    detail: format!("it permits none of the model's tokens after {generated} chosen ones"),
                })?
            }
        };
        let token = Token::try_from(chosen).expect("invariant: a vocabulary is counted by an i32");
        self.note_logprob(logits, token, tools)?;
        self.tokens.push(token);
        if tools.ends.contains(&token.cast_unsigned()) {
            self.finish = Some(Finish::EndOfText);
        } else if self.tokens.len() - self.prompt == self.max_tokens {
            self.finish = Some(Finish::Length);
        } else if let Some(grammar) = &mut self.grammar {
            grammar.accept(token)?;
            self.force(tools.model);
        }
        Ok(())
    }

    /// Appends the tokens that the grammar leaves no choice about, up to the longest text.
    fn force(&mut self, model: &LlamaModel) {
        let Some(grammar) = &mut self.grammar else { return };
        let room = self.max_tokens - (self.tokens.len() - self.prompt);
        let before = self.tokens.len();
        let ends = grammar.force(model, room, &mut self.tokens);
        self.forced += self.tokens.len() - before;
        if ends {
            self.finish = Some(Finish::EndOfText);
        } else if self.tokens.len() - self.prompt == self.max_tokens {
            self.finish = Some(Finish::Length);
        }
    }

    /// How it ended, once nothing is left to decode: its last token is chosen, and probabilities that were asked for are
    /// there. A grammar that leaves no choice can end a turn before its first decode.
    pub(super) fn is_over(&self) -> Option<Finish> {
        self.finish.filter(|_| !self.with_logprobs || self.pending() == 0)
    }

    /// What the turn generated.
    pub(super) fn end(
        self,
        result: Result<Finish, EngineError>,
        model: &LlamaModel,
    ) -> Result<Generation, EngineError> {
        let finish = result?;
        let vocabulary = model.vocab();
        let chosen = &self.tokens[self.prompt..];
        let mut bytes = Vec::with_capacity(chosen.len() * 2);
        for token in chosen {
            vocabulary.token_to_piece_into(LlamaToken(*token), &mut bytes, false, None);
        }
        Ok(Generation {
            text: String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
            tokens: chosen.iter().map(|token| token.cast_unsigned()).collect(),
            logprobs: self.logprobs,
            prompt_tokens: u32::try_from(self.prompt).unwrap_or(u32::MAX),
            finish,
        })
    }
}
