//! One turn that has a sequence: what it has decoded, what comes next, and what it has chosen.

use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;

use super::choice::{self, Chooser, Scratch};
use super::grammar::{Candidates, Grammar};
use super::sequence::SeqId;
use super::wire::{Turn, TurnId};
use super::{EngineError, Finish, Generation};

/// A turn with a sequence.
pub(super) struct Live {
    id: TurnId,
    seq: SeqId,
    /// Cells of the KV pool that are set aside for it.
    cells: u32,
    prompt: Vec<LlamaToken>,
    /// Prompt tokens that are in the KV pool.
    prefilled: usize,
    /// Prompt tokens in the batch under way.
    slice: usize,
    /// Place in the batch under way of the token whose logits are wanted.
    row: Option<i32>,
    chooser: Chooser,
    grammar: Option<Grammar>,
    max_tokens: usize,
    with_logprobs: bool,
    tokens: Vec<u32>,
    logprobs: Vec<f32>,
}

/// The token of a place in the logits.
fn raw(place: usize) -> LlamaToken {
    LlamaToken(i32::try_from(place).expect("invariant: a vocabulary is counted by an i32"))
}

/// What a turn does after a token was chosen.
pub(super) enum Step {
    Continue,
    Finish(Result<Finish, EngineError>),
}

impl Live {
    pub(super) fn new(
        turn: &Turn<'_>,
        seq: SeqId,
        cells: u32,
        prompt: Vec<LlamaToken>,
        grammar: Option<Grammar>,
    ) -> Self {
        Self {
            id: turn.id,
            seq,
            cells,
            prompt,
            prefilled: 0,
            slice: 0,
            row: None,
            chooser: Chooser::new(turn.sampling),
            grammar,
            max_tokens: turn.max_tokens as usize,
            with_logprobs: turn.logprobs,
            tokens: Vec::new(),
            logprobs: Vec::new(),
        }
    }

    pub(super) fn id(&self) -> TurnId {
        self.id
    }

    pub(super) fn seq(&self) -> i32 {
        self.seq.raw()
    }

    pub(super) fn cells(&self) -> u32 {
        self.cells
    }

    pub(super) fn is_generating(&self) -> bool {
        self.prefilled == self.prompt.len()
    }

    /// Adds the token that was chosen last. Returns the number of tokens added.
    pub(super) fn add_next(&mut self, batch: &mut LlamaBatch<'_>) -> usize {
        let last = self.tokens.last().expect("invariant: prefill ends with a choice");
        let token = LlamaToken(last.cast_signed());
        self.row = Some(batch.n_tokens());
        self.add(batch, token, self.prompt.len() + self.tokens.len() - 1, true);
        1
    }

    /// Adds as much of the prompt as there is room for. Returns the number of tokens added.
    pub(super) fn add_prompt(&mut self, batch: &mut LlamaBatch<'_>, room: usize) -> usize {
        let end = self.prompt.len().min(self.prefilled + room);
        self.slice = end - self.prefilled;
        self.row = None;
        for at in self.prefilled..end {
            let last = at + 1 == self.prompt.len();
            if last {
                self.row = Some(batch.n_tokens());
            }
            self.add(batch, self.prompt[at], at, last);
        }
        self.slice
    }

    fn add(&self, batch: &mut LlamaBatch<'_>, token: LlamaToken, position: usize, logits: bool) {
        let position = i32::try_from(position).expect("invariant: positions are below context_tokens, below 2^31");
        batch.add(token, position, &[self.seq.raw()], logits).expect("invariant: the caller left room in the batch");
    }

    /// Takes note that the batch was decoded. Returns where the logits of its last token are, if it has any.
    pub(super) fn decoded(&mut self) -> Option<i32> {
        self.prefilled += std::mem::take(&mut self.slice);
        self.row.take()
    }

    /// Chooses the next token.
    pub(super) fn choose(
        &mut self,
        logits: &[f32],
        model: &LlamaModel,
        candidates: &mut Candidates,
        scratch: &mut Scratch,
    ) -> Step {
        let token = match self.chosen(logits, candidates, scratch) {
            Ok(token) => token,
            Err(error) => return Step::Finish(Err(error)),
        };
        self.tokens.push(token.0.cast_unsigned());
        if model.vocab().is_eog(token) {
            return Step::Finish(Ok(Finish::EndOfText));
        }
        if self.tokens.len() == self.max_tokens {
            return Step::Finish(Ok(Finish::Length));
        }
        match self.grammar.as_mut().map_or(Ok(()), |grammar| grammar.accept(token)) {
            Ok(()) => Step::Continue,
            Err(error) => Step::Finish(Err(error)),
        }
    }

    fn chosen(
        &mut self,
        logits: &[f32],
        candidates: &mut Candidates,
        scratch: &mut Scratch,
    ) -> Result<LlamaToken, EngineError> {
        let mut token = None;
        if self.grammar.is_none() || self.chooser.may_try_first() {
            token = Some(self.chooser.choose(logits, scratch).ok_or(EngineError::NotFinite)?);
        }
        if let Some(grammar) = &mut self.grammar {
            // Looking at one token is far cheaper than at all, and a trained model is rarely rejected.
            token = token.filter(|token| grammar.permits(raw(*token), candidates));
            if token.is_none() {
                let permitted = grammar.mask(logits, candidates);
                token = self.chooser.choose(permitted, scratch);
            }
        }
        let token = token.ok_or_else(|| EngineError::Grammar {
            detail: format!("it permits none of the model's tokens after {} chosen ones", self.tokens.len()),
        })?;
        if self.with_logprobs {
            self.logprobs.push(choice::logprob(logits, token, scratch).ok_or(EngineError::NotFinite)?);
        }
        Ok(raw(token))
    }

    /// Ends the turn; the sequence comes back for its cells to be freed.
    pub(super) fn end(
        self,
        result: Result<Finish, EngineError>,
        model: &LlamaModel,
    ) -> (SeqId, Result<Generation, EngineError>) {
        let generation = result.map(|finish| {
            let vocabulary = model.vocab();
            let mut bytes = Vec::with_capacity(self.tokens.len() * 2);
            for token in &self.tokens {
                vocabulary.token_to_piece_into(LlamaToken(token.cast_signed()), &mut bytes, false, None);
            }
            Generation {
                text: String::from_utf8(bytes)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
                tokens: self.tokens,
                logprobs: self.logprobs,
                prompt_tokens: u32::try_from(self.prompt.len()).unwrap_or(u32::MAX),
                finish,
            }
        });
        (self.seq, generation)
    }
}
